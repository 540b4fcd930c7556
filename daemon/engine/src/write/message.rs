//! Messages to the writer.

use crossbeam_channel::Sender;

use crate::error::Error;
use crate::write::command::{Change, Reply};
use crate::write::orders::{CompactionAnswer, CompactionScope, TaskOrder};

/// A message to the writer.
pub(crate) enum Message {
    /// A change, its size in the queue, and where the answer goes.
    Change {
        /// The change.
        change: Change,
        /// Its weight against the bound on queued bytes.
        bytes: usize,
        /// Receiver of the answer.
        reply: Reply,
    },
    /// Seal all that was acknowledged before, and say so once it is done.
    Seal(Sender<Result<(), Error>>),
    /// Compact segments.
    Compact {
        /// The segments.
        scope: CompactionScope,
        /// Receiver of the answer.
        answer: CompactionAnswer,
    },
    /// Something that is otherwise done at intervals.
    Task(TaskOrder),
    /// Say that messages are dealt with.
    Probe(Sender<()>),
}
