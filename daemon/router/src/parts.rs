//! Messages that hold several requests, such as a batch of JSON-RPC: each part is decided and told of by itself.
//!
//! A transport admits the message as one request of a row that takes any scope of the protocol. It knows no more of it. The
//! protocol reads the message and has each part admitted: by the scope and effect of the part's own row, by the
//! caller's rate, and with an audit line of its own. The message was counted when it came in, so its first part is not
//! counted again. A message without parts keeps its own line.

use super::admitted::Admitted;
use super::caller::Caller;
use super::method::Method;
use super::refusal::Refusal;
use super::{Incoming, Router};
use omir_core::code::Code;

/// A message whose parts are admitted one by one.
pub struct Parts {
    router: Router,
    caller: Caller,
    /// The message, until a part has taken its place.
    message: Option<Admitted>,
}

impl Parts {
    /// Takes a message apart that was admitted.
    pub fn of(message: Admitted) -> Self {
        let (router, caller) = (message.router().clone(), message.caller().clone());
        Self { router, caller, message: Some(message) }
    }

    /// Returns who asks.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Admits a part of so many bytes, or refuses it.
    ///
    /// # Errors
    /// Why it is refused. That is counted, and in the audit line of the part.
    pub fn admit(&mut self, method: &'static Method, bytes: usize) -> Result<Admitted, Refusal> {
        let incoming = Incoming { bytes, ..Incoming::default() };
        let Some(mut first) = self.message.take() else {
            return self.router.admit(&self.caller, method, incoming);
        };
        first.turn_into(method, bytes);
        let decided = self.router.check(&self.caller, method, incoming);
        match decided.and_then(|()| self.router.permit(method, incoming)) {
            Ok(permit) => {
                first.put_permit(permit);
                Ok(first)
            }
            Err(refusal) => {
                first.failed(refusal.code());
                Err(refusal)
            }
        }
    }

    /// Ends a message of which nothing could be asked: it is no such message.
    pub fn failed(self, code: Code) {
        if let Some(message) = self.message {
            message.failed(code);
        }
    }
}
