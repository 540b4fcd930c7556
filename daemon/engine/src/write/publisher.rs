//! Hands out answers and announcements, each in the order of the commits, off the writer's back.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use crate::contained::{Broken, contain, spawn};
use crate::error::Error;
use crate::write::command::{Event, Receipt, Reply};
use crate::write::events::Events;

/// Answers and events of one group of the writer.
#[derive(Default)]
pub(crate) struct Delivery {
    /// Answers.
    pub replies: Vec<(Reply, Result<Receipt, Error>)>,
    /// Announcements.
    pub events: Vec<Event>,
}

/// Runs the publishing thread until the writer is gone.
pub(crate) fn publish_in_background(
    deliveries: Receiver<Delivery>,
    events: Events,
    broken: &Arc<Broken>,
) -> io::Result<JoinHandle<()>> {
    let broken = broken.clone();
    let run = move || {
        let mut waiting = VecDeque::new();
        while let Ok(delivery) = deliveries.recv() {
            answer(delivery, &mut waiting);
            while let Some(event) = waiting.pop_front() {
                events.announce(&event);
                // An import announces as much as it brought: no answer waits behind that.
                deliveries.try_iter().for_each(|next| answer(next, &mut waiting));
            }
        }
    };
    spawn("omird-publisher", run, move || broken.note("omird-publisher"))
}

fn answer(delivery: Delivery, events: &mut VecDeque<Event>) {
    for (reply, result) in delivery.replies {
        contain("a listener that was given its answer", || reply(result));
    }
    events.extend(delivery.events);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Error};
    use omir_core::event::EventKind;

    #[test]
    fn an_answer_does_not_wait_behind_the_announcements_of_another() {
        let (sender, deliveries) = crossbeam_channel::unbounded();
        let (told, log) = crossbeam_channel::unbounded();
        let delivery = |name: &'static str, events: [&str; 2]| {
            let told = told.clone();
            let reply: Reply = Box::new(move |_| told.send(name.to_owned()).unwrap());
            let event = |id: &str| Event {
                kind: EventKind::Recorded,
                target: format!("Entity/{id}").parse().unwrap(),
                resource: Vec::new(),
                cause: None,
                seq: 0,
            };
            Delivery {
                replies: vec![(reply, Err(Error::new(Code::Internal, "")))],
                events: events.map(event).into(),
            }
        };
        // Both are there before the thread looks.
        sender.send(delivery("first", ["a", "b"])).unwrap();
        sender.send(delivery("second", ["c", "d"])).unwrap();
        drop(sender);
        let announce = told.clone();
        let events = Events::default();
        let listening =
            events.listen(move |event| announce.send(event.target.to_string()).unwrap());
        publish_in_background(deliveries, events, &Arc::default()).unwrap().join().unwrap();
        drop((told, listening));
        let told: Vec<String> = log.try_iter().collect();
        assert_eq!(told, ["first", "Entity/a", "second", "Entity/b", "Entity/c", "Entity/d"]);
    }
}
