//! Outcome of a push.

use super::MessageError;
use super::members::{Members, number};
use crate::value::Map;

/// The answer to [`Request::Push`](super::Request::Push).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Resources that are new, or newer than what was there.
    pub stored: u64,
    /// Resources that were there just so.
    pub unchanged: u64,
    /// Resources in whose place another one stays: one of that name that is as new, or newer, or that it was
    /// forgotten.
    pub kept: u64,
}

impl Pushed {
    /// As the member `ok` of an answer.
    pub fn to_map(self) -> Map {
        [("stored", self.stored), ("unchanged", self.unchanged), ("kept", self.kept)]
            .into_iter()
            .collect()
    }

    /// Reads the member `ok` of the answer to `push`.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn from_map(map: Map) -> Result<Pushed, MessageError> {
        let mut members = Members::of_ok(map);
        Ok(Pushed {
            stored: members.number("stored")?,
            unchanged: members.number("unchanged")?,
            kept: members.optional("kept", number)?.unwrap_or(0),
        })
    }
}
