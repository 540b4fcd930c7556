//! Hands out answers and announcements, in the order of the commits, off the writer's back.

use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use super::command::{Event, Receipt, Reply};
use crate::error::Error;

/// Who is told of events.
pub type Listener = Box<dyn Fn(&Event) + Send>;

/// What one group of the writer leads to.
#[derive(Default)]
pub struct Delivery {
    /// Answers.
    pub replies: Vec<(Reply, Result<Receipt, Error>)>,
    /// Announcements.
    pub events: Vec<Event>,
}

/// Runs the publishing thread until the writer is gone.
pub fn publish_in_background(
    deliveries: Receiver<Delivery>,
    listener: Listener,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("omird-publisher".into()).spawn(move || {
        for delivery in deliveries {
            for (reply, result) in delivery.replies {
                reply(result);
            }
            for event in &delivery.events {
                listener(event);
            }
        }
    })
}
