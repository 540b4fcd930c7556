//! Decisions about operations in their order, written as one transaction.

use std::collections::HashMap;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;

use super::row::Waiting;
use super::{Answered, Field, State, context, knows};
use crate::clock::{LEAP, LEAP_OF_STRANGERS};
use crate::envelope::Envelope;
use crate::failure::{Failure, INVALID_ENVELOPE, TOO_LARGE};
use crate::fingerprint;
use crate::log::{Delta, Entry};
use crate::model::Model;
use crate::operation_context::{CallerRights, OperationResult};
use crate::operations;
use crate::store::{Batch, StoreView, message_key};
use crate::types::Unit;

/// Bytes that the engine and the handles add to a record, at most.
const BESIDE: usize = 8 << 10;
/// The share of a transaction that is left to what comes after: one that has taken more is written as it is.
const FULL: usize = 4;

/// The changes that are decided about together.
#[derive(Default)]
struct PendingDecisions {
    batch: Batch,
    /// Units that are not written yet.
    pending: HashMap<String, Unit>,
    /// Bytes of its records.
    bytes: usize,
    /// The message of the last entry, which the model does not know yet.
    unapplied: Option<u128>,
    /// The model knows entries that are not written.
    is_ahead: bool,
}

impl PendingDecisions {
    /// Tells the model of the last entry. That is put off until it is needed: where the store refuses the one operation
    /// that came alone, nothing must be taken back.
    fn apply(&mut self, model: &mut Model) {
        if let (Some(key), Some(entry)) = (self.unapplied.take(), self.batch.entries.last()) {
            model.apply(entry, Some(key), &mut |id| self.pending.get(id).cloned());
            self.is_ahead = true;
        }
    }
}

impl Field {
    /// Decides about operations in their order, writes what they change, and returns the answers.
    pub(super) fn decide(
        &self,
        state: &mut State,
        waiting: Vec<Waiting>,
        is_busy: bool,
    ) -> Vec<(Answered, OperationResult)> {
        if let Err(failure) = self.refresh(state) {
            return waiting.into_iter().map(|one| (one.answered, Err(failure.clone()))).collect();
        }
        let leased = self.clock.lock().leased();
        let mut deciding = PendingDecisions::default();
        // The answers, and if each stands for an entry.
        let mut answers: Vec<(Answered, OperationResult, bool)> = Vec::new();
        let mut waiting = waiting.into_iter();
        while let Some(Waiting { envelope, who, answered, .. }) = waiting.next() {
            let before = deciding.batch.entries.len();
            let done = self.one(state, &envelope, &who, is_busy, &mut deciding);
            // One that was answered before stands for an entry as well, which may be of this batch.
            let is_new = deciding.batch.entries.len() > before;
            let is_written = is_new || done.as_ref().is_ok_and(|done| done.2);
            answers.push((answered, done.map(|(status, value, _)| (status, value)), is_written));
            if deciding.bytes > self.most_bytes() / FULL {
                // The rest goes first next time.
                self.row.lock().put_back(waiting.by_ref());
            }
        }
        if deciding.batch.entries.is_empty() {
            return answers.into_iter().map(|(answered, done, _)| (answered, done)).collect();
        }
        deciding.batch.reads = self.take_reads();
        let written = self.store.commit(&deciding.batch, &state.model);
        match &written {
            Err(failure) if failure.is_refusal() && !deciding.is_ahead => {
                self.clock.lock().lease_back(leased);
            }
            Err(_) => state.is_stale = true,
            Ok(()) => {
                deciding.apply(&mut state.model);
                let batch = &deciding.batch;
                let purged = batch.entries.iter().flat_map(|entry| &entry.deltas);
                let purged: Vec<String> = purged
                    .filter_map(|delta| match delta {
                        Delta::Purged { id, .. } => Some(id.clone()),
                        _ => None,
                    })
                    .collect();
                self.known.forget(&purged);
                if let Err(failure) = self.store.purge(&purged) {
                    // The tombstones are written; a start purges what is left.
                    tracing::warn!(
                        message = failure.message,
                        "purged units lie in the store still"
                    );
                }
                self.tell(state, batch);
            }
        }
        answers
            .into_iter()
            .map(|(answered, done, is_written)| match (&written, is_written) {
                (Err(failure), true) => (answered, Err(failure.clone())),
                _ => (answered, done),
            })
            .collect()
    }

    /// Decides about one operation. The answer says if it stands for an entry.
    fn one(
        &self,
        state: &mut State,
        envelope: &Envelope,
        who: &CallerRights,
        is_busy: bool,
        deciding: &mut PendingDecisions,
    ) -> Result<(u16, Value, bool), Failure> {
        deciding.apply(&mut state.model);
        let key = message_key(&envelope.agent_id, &envelope.id);
        let view = self.view(&deciding.pending, &deciding.batch.entries);
        if let Some(epoch) = state.model.messages.get(&key) {
            return answered_before(&view, *epoch, envelope, who);
        }
        let (epoch, lease) = {
            let clock = self.clock.lock();
            let is_known = knows(&state.model, envelope, who);
            let leap = if is_known { LEAP } else { LEAP_OF_STRANGERS };
            let epoch = self.after(*clock, envelope.epoch, leap)?;
            (epoch, clock.lease_for(epoch))
        };
        let (at, _) = self.store.now();
        let (done, authority, mut deltas, units, description) = {
            let mut context = context(&state.model, &view, who, envelope, epoch, &at, is_busy);
            let done = operations::carry_out(&mut context);
            (done, context.authority, context.deltas, context.units, context.description)
        };
        self.note_unless(done.is_ok() && !deltas.is_empty(), envelope, epoch, &at, &done);
        let (status, reply) = done?;
        for delta in &mut deltas {
            if let Delta::Unit { id, digest } = delta
                && let Some(unit) = units.iter().find(|unit| unit.id == *id)
            {
                *digest = fingerprint::of_unit(unit);
            }
        }
        let is_leased = epoch < self.clock.lock().leased();
        if deltas.is_empty() && is_leased {
            self.go_to(epoch, lease);
            return Ok((status, reply, false));
        }
        let entry = Entry {
            epoch,
            previous: state.model.last,
            at,
            operation: envelope.operation,
            agent_id: envelope.agent_id.clone(),
            authority,
            caller: who.caller.clone(),
            message_id: envelope.id.clone(),
            digest: fingerprint::of_message(envelope),
            session_id: envelope.session_id.clone(),
            lease,
            description,
            deltas,
            status,
            reply: json::to_string(&reply),
        };
        let bytes = match self.measured(&entry, &units) {
            Ok(bytes) => bytes,
            Err(failure) => {
                self.note(envelope, epoch, &entry.at, &Err(failure.clone()));
                return Err(failure);
            }
        };
        deciding.bytes += bytes;
        deciding.pending.extend(units.iter().map(|unit| (unit.id.clone(), unit.clone())));
        deciding.batch.units.extend(units);
        deciding.batch.entries.push(entry);
        deciding.unapplied = Some(key);
        self.go_to(epoch, lease);
        Ok((status, reply, true))
    }

    /// Returns the bytes that one transaction may have.
    fn most_bytes(&self) -> usize {
        self.store.engine.settings().limits.max_payload_bytes
    }

    /// Returns the bytes of the records that an operation writes. An operation that the store would not take is refused here
    /// and alone: in the store it would take along all that are written with it.
    ///
    /// # Errors
    /// `TOO_LARGE`.
    fn measured(&self, entry: &Entry, units: &[Unit]) -> Result<usize, Failure> {
        let most = self.store.engine.settings().limits.max_resource_bytes;
        let mut all = 0;
        let what = entry.operation.as_str();
        let refused = |what: String, bytes: usize, limit: &str, most: usize| {
            let message = format!(
                "{what} would take {bytes} bytes, and {limit} is {most}; send shorter texts, or do less at once"
            );
            Failure::new(&TOO_LARGE, message)
        };
        for (id, bytes) in self.store.sizes(entry, units)? {
            all += bytes;
            let bytes = bytes + BESIDE;
            if bytes > most {
                let record = match id {
                    Some(id) => format!("the unit {id} of this {what}"),
                    None => format!("the entry of this {what} in the log"),
                };
                return Err(refused(record, bytes, "limits.max_resource_bytes", most));
            }
        }
        let most = self.most_bytes() - self.most_bytes() / FULL;
        if all > most {
            let what = format!("all records of this {what}");
            return Err(refused(what, all, "three quarters of limits.max_payload_bytes", most));
        }
        Ok(all)
    }
}

/// Returns the first answer to a message that has come before.
fn answered_before(
    view: &StoreView<'_>,
    epoch: u64,
    envelope: &Envelope,
    who: &CallerRights,
) -> Result<(u16, Value, bool), Failure> {
    let entry = view.entry(epoch)?;
    let entry =
        entry.ok_or_else(|| Failure::internal(format!("entry {epoch} of the log is gone")))?;
    if entry.digest != fingerprint::of_message(envelope)
        || entry.caller != who.caller && !who.is_owner
    {
        let message = format!("message id {:?} was used for another message", envelope.id);
        return Err(Failure::new(&INVALID_ENVELOPE, message));
    }
    let reply = json::from_slice(entry.reply.as_bytes(), &Limits::default()).map_err(|error| {
        Failure::internal(format!("entry {epoch} of the log is damaged: {error}"))
    })?;
    Ok((entry.status, reply, true))
}
