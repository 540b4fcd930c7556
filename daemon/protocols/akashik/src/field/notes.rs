//! Notes of operations that changed nothing. They go to the card with the next change, or when there are many.

use super::Field;
use crate::envelope::Envelope;
use crate::log::Read;
use crate::operation_context::OperationResult;
use crate::store::Batch;

/// Reads that wait for a change to be written with it.
const MOST_READS: usize = 64;

impl Field {
    /// Notes an operation that is in no entry.
    pub(super) fn note(&self, envelope: &Envelope, epoch: u64, at: &str, done: &OperationResult) {
        let outcome = match done {
            Ok(_) => "ok".to_owned(),
            Err(failure) => failure.code.name.to_owned(),
        };
        let read = Read {
            epoch,
            at: at.to_owned(),
            operation: envelope.operation,
            agent_id: envelope.agent_id.clone(),
            outcome,
        };
        let mut reads = self.reads.lock();
        reads.push(read);
        if reads.len() >= MOST_READS {
            let batch = Batch { reads: std::mem::take(&mut *reads), ..Batch::default() };
            drop(reads);
            self.store.write_reads(&batch);
        }
    }

    pub(super) fn note_unless(
        &self,
        is_entry: bool,
        envelope: &Envelope,
        epoch: u64,
        at: &str,
        done: &OperationResult,
    ) {
        if !is_entry {
            self.note(envelope, epoch, at, done);
        }
    }

    pub(super) fn take_reads(&self) -> Vec<Read> {
        std::mem::take(&mut *self.reads.lock())
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        let batch = Batch { reads: self.take_reads(), ..Batch::default() };
        if !batch.reads.is_empty() {
            self.store.write_reads(&batch);
        }
    }
}
