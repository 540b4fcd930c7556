//! Messages of the link: requests and answers, each one CBOR map.
//!
//! `docs/serial-protocol.md` section 3. A request has an `id` and an `op`, its answers repeat the `id`. Written is the
//! deterministic form of [`crate::cbor`]; read is any well-formed one. A request has the members of its
//! kind and no others: a filter that is not understood must not be passed over. An answer may have more.

use alloc::string::String;
use core::fmt;

use crate::cbor;
use crate::decode::Limits;

mod inbox;
mod info;
mod members;
mod pushed;
mod request;
mod response;
mod weight;

pub use inbox::Inbox;
pub use info::Info;
pub use pushed::Pushed;
pub use request::{Pull, Push, Request, RequestMessage};
pub use response::{Failure, Response, ResponseMessage};
pub use weight::weight;

/// Bytes of a message, unpacked. A resource may have 1 MiB, and comes in one.
pub const MOST_MESSAGE: usize = 2 << 20;
/// Size to which a message with several resources is filled: little enough that not much is lost when the
/// cable is pulled, and enough to compress well.
pub const BATCH: usize = 32 << 10;

/// Bytes, and values, of a message around what is in it; more than there are.
const AROUND: usize = 1024;

const LIMITS: Limits = Limits { max_bytes: MOST_MESSAGE, max_depth: 72, max_items: 500_000 };

/// Returns true if a resource, as CBOR, can be an item of a message: it is neither too large nor nested too deep.
/// A daemon may be set to remember more than that.
pub fn fits(resource: &[u8]) -> bool {
    let inside = Limits {
        max_bytes: LIMITS.max_bytes - AROUND,
        max_depth: LIMITS.max_depth - 2,
        max_items: LIMITS.max_items - AROUND,
    };
    cbor::skip_item(resource, &inside).is_ok()
}

/// A message that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    /// The request it would have been, if it got so far: it is answered with an error, any other ends
    /// the session.
    pub id: Option<u64>,
    /// JSON Pointer to what is wrong.
    pub path: String,
    /// The fault.
    pub message: String,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl core::error::Error for MessageError {}

#[cfg(test)]
mod tests;
