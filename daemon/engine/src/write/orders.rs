//! Orders to the sealing thread and tasks, with what comes of them.

use std::time::Duration;

use crossbeam_channel::Sender;
use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use omird_store::Unsealed;

use crate::error::Error;

/// A log that was begun so much later than now has a wrong stamp; microseconds. A clock that is put right
/// by less only makes it a little older.
const AMISS: i64 = 86_400_000_000;

/// An order to the sealing thread.
pub(crate) enum SealOrder {
    /// Seal these logs, oldest first, when they are due.
    Seal(Vec<Closed>),
    /// Seal what is due, and say so.
    Look(Sender<()>),
    /// Try all that is waiting, once, and report the reason if anything is left.
    Report(Sender<Result<(), Error>>),
    /// Free space on a disk that is full, without waiting until it is time to look.
    FreeUp,
    /// Compact, once everything before is sealed.
    Compact(CompactionScope, CompactionAnswer),
    /// Seal what is due, or all if there is no segment yet, once, and stop.
    Stop,
}

/// A log that is not written on any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed {
    /// The log.
    pub log: Unsealed,
    /// The time at which it was closed, and durable.
    pub at: Timestamp,
}

/// Age of a log. One that was begun long after `now` was so while a wrong clock counted
/// as right: its age is unknown, so it does not wait for that time to come.
pub(crate) fn age(began: Timestamp, now: Timestamp) -> Duration {
    match now.micros_since(began) {
        ahead if ahead < -AMISS => Duration::MAX,
        age => Duration::from_micros(age.max(0).unsigned_abs()),
    }
}

/// Something that is due now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Count the accesses of recalls and journal what changed: `touch_interval`.
    Accesses,
    /// Note what time it is: `mark_interval`.
    Mark,
    /// Seal what is due: `seal_after`.
    Seal,
}

/// A task, and who waits for it.
pub(crate) struct TaskOrder {
    pub(crate) task: Task,
    pub(crate) done: Sender<()>,
}

/// The scope of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionScope {
    /// Segments that are due anyway.
    Due,
    /// Whatever still tells of something forgotten.
    Forgotten,
    /// All segments, into as few as there may be.
    All,
}

impl CompactionScope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Due, Self::Forgotten, Self::All];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Forgotten => "forgotten",
            Self::All => "all",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compaction {
    /// Segments before.
    pub segments_before: u64,
    /// Segments after.
    pub segments_after: u64,
    /// Bytes of all segments before.
    pub bytes_before: u64,
    /// Bytes of all segments after.
    pub bytes_after: u64,
    /// Bytes that were written to the card for it.
    pub bytes_written: u64,
    /// Versions dropped because later ones took their place.
    pub superseded: u64,
    /// Versions dropped because they were forgotten.
    pub forgotten: u64,
}

impl Compaction {
    /// As it goes over the wire.
    pub fn to_value(&self) -> Value {
        let int = |n: u64| Value::Number(Number::from(n));
        let mut dropped = Map::new();
        dropped.insert("superseded", int(self.superseded));
        dropped.insert("forgotten", int(self.forgotten));
        let mut map = Map::new();
        map.insert("segmentsBefore", int(self.segments_before));
        map.insert("segmentsAfter", int(self.segments_after));
        map.insert("bytesBefore", int(self.bytes_before));
        map.insert("bytesAfter", int(self.bytes_after));
        map.insert("bytesWritten", int(self.bytes_written));
        map.insert("dropped", Value::Object(dropped));
        Value::Object(map)
    }
}

/// Receiver of the answer to a request for compaction. Called once, on one of the engine's threads.
pub(crate) type CompactionAnswer = Box<dyn FnOnce(Result<Compaction, Error>) + Send>;
