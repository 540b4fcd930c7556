//! A group of changes on its way to the log and the catalog.

use omird_store::{Fact, Op, Transaction};

use crate::error::Error;
use crate::index::doc::Stamp;
use crate::ingest::importing::ImportPermit;
use crate::write::command::{Change, Reply};
use crate::write::plan::{Plan, Step};

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
    pub(super) plan: Plan,
    pub(super) reply: Reply,
    /// Goes with the plan, which is as large as what was merged.
    pub(super) permit: Option<ImportPermit>,
    /// `None` if there is nothing to write.
    pub(super) written: Option<Written>,
}

/// A transaction in the log's buffer.
pub(super) struct Written {
    pub(super) transaction: Transaction,
    /// Offset of its payload in the log.
    pub(super) log_offset: u64,
    /// Offset of each operation's resource in the payload; `None` for those without one.
    pub(super) resource_offsets: Vec<Option<usize>>,
}

/// Returns true if a change brings something new. What does not, such as forgetting, must be possible on a
/// full disk too.
pub(super) fn grows(change: &Change) -> bool {
    matches!(change, Change::Remember(_) | Change::Merge(..))
}

/// The facts of a transaction that its log's witness keeps.
pub(super) fn facts_of(transaction: &Transaction, steps: &[Step]) -> Vec<Fact> {
    let at = |ordinal: usize, version| Stamp {
        seq: transaction.seq,
        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
        version,
        recorded: transaction.at.as_micros(),
    };
    let steps = transaction.ops.iter().zip(steps).enumerate();
    steps
        .filter_map(|(ordinal, (op, step))| match (op, step) {
            (Op::Put { version, .. }, Step::Put { facts, .. }) => {
                Fact::version(&facts.key, at(ordinal, *version))
            }
            (Op::Forget { version, .. }, Step::Forget { key, by, .. }) => {
                Some(Fact::tombstone(key, at(ordinal, *version), *by))
            }
            _ => None,
        })
        .collect()
}
