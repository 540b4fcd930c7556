//! Operations of the field itself: leases of epochs, and the conflicts that were put off.

use std::collections::HashMap;

use omir_core::value::Map;

use super::{Field, State, context, overflow};
use crate::clock::LEAP;
use crate::envelope::Envelope;
use crate::failure::Failure;
use crate::log::{Delta, Entry};
use crate::operation_context::CallerRights;
use crate::operations::detect;
use crate::store::Batch;
use crate::words::Operation;

/// Deferred units that are looked at between two transactions.
const DEFERRED_AT_ONCE: usize = 8;
/// The name that the field has where it does something by itself.
const FIELD: &str = "field";

impl Field {
    /// Writes a lease ahead, so that reads go on.
    pub(super) fn lease(&self, received: u64) -> Result<(), Failure> {
        let mut state = self.write();
        self.refresh(&mut state)?;
        let epoch = {
            let clock = self.clock.lock();
            let epoch = self.after(*clock, received, LEAP)?;
            if epoch < clock.leased() {
                return Ok(());
            }
            epoch
        };
        self.by_itself(&mut state, Operation::Attune, epoch, "a lease of epochs", Vec::new())
    }

    /// Writes an entry of the field's own.
    fn by_itself(
        &self,
        state: &mut State,
        operation: Operation,
        epoch: u64,
        description: &str,
        deltas: Vec<Delta>,
    ) -> Result<(), Failure> {
        let (at, _) = self.store.now();
        let lease = self.clock.lock().lease_for(epoch);
        let entry = Entry {
            epoch,
            previous: state.model.last,
            at,
            operation,
            agent_id: FIELD.to_owned(),
            authority: 0,
            caller: FIELD.to_owned(),
            message_id: format!("{FIELD}-{epoch}"),
            digest: String::new(),
            session_id: None,
            lease,
            description: description.to_owned(),
            deltas,
            status: 200,
            reply: "null".to_owned(),
        };
        let batch = Batch { entries: vec![entry], reads: self.take_reads(), ..Batch::default() };
        if let Err(failure) = self.store.commit(&batch, &state.model) {
            state.is_stale = !failure.is_refusal();
            return Err(failure);
        }
        batch.entries.iter().for_each(|entry| state.model.apply(entry, None, &mut |_| None));
        self.go_to(epoch, lease);
        self.tell(state, &batch);
        Ok(())
    }

    /// Looks for the conflicts of units that were put off.
    pub(super) fn detect_deferred(&self, state: &mut State) -> Result<(), Failure> {
        let ids: Vec<String> =
            state.model.deferred.iter().take(DEFERRED_AT_ONCE).cloned().collect();
        let clock = *self.clock.lock();
        let epoch = clock.after(0, LEAP).map_err(|_| overflow(0))?;
        let (at, _) = self.store.now();
        let who = CallerRights {
            authority: 0,
            holder: String::new(),
            caller: FIELD.to_owned(),
            agents: Vec::new(),
            reads_robot: false,
            is_owner: false,
        };
        let envelope = Envelope {
            id: format!("{FIELD}-{epoch}"),
            operation: Operation::Detect,
            agent_id: FIELD.to_owned(),
            session_id: None,
            epoch,
            payload: Map::new(),
        };
        let (pending, entries) = (HashMap::new(), Vec::new());
        let view = self.view(&pending, &entries);
        let deltas = {
            let mut context = context(&state.model, &view, &who, &envelope, epoch, &at, false);
            for id in &ids {
                detect::of_stored(&mut context, id, false)?;
            }
            context.deltas.push(Delta::Detected { ids });
            context.deltas
        };
        self.by_itself(state, Operation::Detect, epoch, "conflicts that were put off", deltas)
    }
}
