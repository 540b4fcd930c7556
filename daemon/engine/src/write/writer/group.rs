//! A group of changes on its way to the log and the catalog.

use omird_store::{Fact, Transaction};

use crate::error::Error;
use crate::index::doc::Stamp;
use crate::ingest::importing::ImportPermit;
use crate::write::command::{Change, Effect, Event, Reply};
use crate::write::plan::Step;

/// Changes that one sync acknowledges.
#[derive(Default)]
pub(super) struct Group {
    pub(super) entries: Vec<Entry>,
    pub(super) refused: Vec<(Reply, Error)>,
    /// Bytes that the changes take in the queue.
    pub(super) weight: usize,
    /// True if a change is among them that must be possible on a full disk.
    pub(super) shrinks: bool,
}

/// A planned change of a group.
pub(super) struct Entry {
    pub(super) effect: Effect,
    pub(super) events: Vec<Event>,
    pub(super) reply: Reply,
    /// Goes with the events, which are as large as what was merged.
    pub(super) permit: Option<ImportPermit>,
    /// `None` if there is nothing to write.
    pub(super) written: Option<Written>,
}

/// A transaction in the log's buffer.
pub(super) struct Written {
    pub(super) transaction: Transaction,
    /// The same for the catalog: a step for each operation.
    pub(super) steps: Vec<Step>,
    /// Offset of its payload in the log.
    pub(super) log_offset: u64,
    /// Offset of each operation's resource in the payload; `None` for those without one.
    pub(super) resource_offsets: Vec<Option<usize>>,
}

/// A step of a transaction that is in the log.
pub(super) struct LoggedStep {
    pub(super) step: Step,
    pub(super) stamp: Stamp,
    /// Offset of its resource in the log, if it has one.
    pub(super) offset: u32,
}

/// Returns true if a change brings something new. What does not, such as forgetting, must be possible on a
/// full disk too.
pub(super) fn grows(change: &Change) -> bool {
    matches!(change, Change::Remember(_) | Change::Merge(..))
}

/// The stamp of a step of a transaction.
pub(super) fn stamp_of(transaction: &Transaction, ordinal: usize, step: &Step) -> Stamp {
    Stamp {
        seq: transaction.seq,
        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
        version: step.version(),
        recorded: transaction.at.as_micros(),
    }
}

/// The facts of a transaction that its log's witness keeps.
pub(super) fn facts_of(transaction: &Transaction, steps: &[Step]) -> Vec<Fact> {
    let fact = |(ordinal, step): (usize, &Step)| {
        let stamp = stamp_of(transaction, ordinal, step);
        match step {
            Step::Put { facts, .. } => Fact::version(&facts.key, stamp),
            Step::Forget { key, by, .. } => Some(Fact::tombstone(key, stamp, *by)),
        }
    };
    steps.iter().enumerate().filter_map(fact).collect()
}
