//! The memory as ROS sees it: the operations of `docs/keys.md`, by any implementation.
//!
//! The daemon hands its engine in; a test hands in what it likes. Every call may wait for a disk and comes
//! from a thread that may wait.

use std::fmt;
use std::path::Path;

use omir_core::code::Code;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value};

use crate::stamp::Stamp;

/// A memory.
pub trait Memory: Send + Sync {
    /// Stores resources, all or none; answers once they are durable. With `merge` (`true` or
    /// `overwrite`) they meet what is stored as an import does.
    ///
    /// # Errors
    /// As `remember` of `docs/keys.md`.
    fn remember(&self, resources: Vec<Value>, merge: Option<&str>) -> Result<Value, Refusal>;

    /// Stores what the rules of the node keep, as [`remember`](Self::remember) does. They ask again by themselves
    /// where a refusal may pass.
    ///
    /// # Errors
    /// As `remember` of `docs/keys.md`.
    fn record(&self, resources: Vec<Value>) -> Result<Value, Refusal> {
        self.remember(resources, None)
    }

    /// Returns the resource of a reference, `Type/id`, for the rules of the node.
    ///
    /// # Errors
    /// If that cannot be told now, because the disk is away.
    fn get(&self, reference: &str) -> Result<Stored, Refusal>;

    /// Carries out an operation other than `remember`; its parameters and its answer are those of
    /// `docs/keys.md` and `docs/replies.md`.
    ///
    /// # Errors
    /// As the operation of that name in `docs/keys.md`.
    fn ask(&self, operation: Operation, parameters: &Map) -> Result<Value, Refusal>;

    /// Merges a file (`.omir` or `.omirb`) of the robot into what is stored, as `omir import` does: all of
    /// it or nothing. `progress` is told how many bytes of how many were read, and stops it with `false`.
    ///
    /// # Errors
    /// As `remember` of `docs/keys.md` with `merge`; `NOT_FOUND` if the file cannot be read.
    fn import(
        &self,
        file: &Path,
        overwrite: bool,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Value, Refusal>;

    /// Bytes that a request may have: `limits.max_payload_bytes`, which the daemon tells. A test double need
    /// not, and has the default of the configuration.
    fn most_bytes(&self) -> usize {
        4 << 20
    }

    /// Returns the time of a simulation, if the daemon takes its time from one.
    fn show(&self, now: Stamp);
}

/// The resource of a name.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// Nothing.
    Nothing,
    /// A resource.
    Whole(Value),
    /// A resource that the disk does not give back any more, and why. Asking again does not help; what
    /// refers to it may still be stored.
    Damaged(String),
}

/// A refusal: the error object of `docs/replies.md`, "Errors".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub code: Code,
    /// For people.
    pub message: String,
    /// JSON Pointer to what is meant; empty if it is the whole.
    pub path: String,
}

impl Refusal {
    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("code", self.code.as_str());
        map.insert("message", self.message.as_str());
        map.insert("path", self.path.as_str());
        Value::Object(map)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        if !self.path.is_empty() {
            write!(f, " (at {})", self.path)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
