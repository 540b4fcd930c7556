//! A request of the link on a thread of its own: its answers become messages.

use std::sync::Weak;

use crossbeam_channel::Sender;
use omir_core::link::message::{Response, ResponseMessage};
use omir_core::link::pack::pack;

use crate::protocols::omir::link::ResponseSink;
use crate::protocols::omir::{Cancelled, Pacer};
use crate::serial::cpu_share::BudgetGuard;

/// An answer as it goes over the line.
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// Resources in it.
    pub(super) items: u64,
    /// Nothing more is said to that request.
    pub(super) is_last: bool,
    /// The kept selection that ends with it, by its name.
    pub(super) given_in_full: Option<String>,
}

/// A request on its own thread. It ends when the session takes no more answers.
pub(super) struct Job {
    /// Of the request.
    pub(super) id: u64,
    /// The other end reads what is packed.
    pub(super) deflate: bool,
    /// The session is gone once it cannot be upgraded.
    pub(super) wanted: Weak<()>,
    pub(super) share: BudgetGuard,
    pub(super) out: Sender<Message>,
}

impl ResponseSink for Job {
    fn say(&mut self, answer: Response) -> Result<(), Cancelled> {
        self.say_end_of(None, answer)
    }

    fn say_end_of(
        &mut self,
        given_in_full: Option<String>,
        answer: Response,
    ) -> Result<(), Cancelled> {
        let items =
            if let Response::Items { items, .. } = &answer { items.len() as u64 } else { 0 };
        let is_last = !matches!(answer, Response::Begin { .. } | Response::Items { .. });
        let message = ResponseMessage { id: self.id, response: answer }.encode();
        let bytes = if self.deflate { pack(message) } else { message };
        self.out.send(Message { bytes, items, is_last, given_in_full }).map_err(|_| Cancelled)
    }
}

impl Pacer for Job {
    fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }

    fn rest(&mut self) {
        self.share.rest();
    }

    fn rest_if_due(&mut self) {
        self.share.rest_if_due();
    }
}
