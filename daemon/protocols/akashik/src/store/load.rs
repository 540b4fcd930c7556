//! The state of a field, added up from its log at a start.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use omir_core::reference::ResourceType;
use omird_engine::{Lookup, Order, Query};

use super::held::epoch_in;
use super::{Store, message_key, wrong};
use crate::clock::{Clock, LEASE};
use crate::failure::Failure;
use crate::fingerprint;
use crate::log::{Delta, Entry};
use crate::model::Model;
use crate::names::Sort;
use crate::types::Unit;

impl Store {
    /// Adds up the log. Each entry is read and let go, so that memory is for what they add up to.
    ///
    /// An entry that was forgotten, or that the card does not give back, is left out, and so is a unit: a robot goes on with
    /// the rest. What the entry changed is unknown, so each answer of the field names the gap from then on ([`Model::gaps`]).
    ///
    /// # Errors
    /// The card fails meanwhile, or an entry holds what cannot be understood.
    pub(crate) fn load(&self) -> Result<(Model, Clock), Failure> {
        let is_whole = self.engine.live_version(&self.name(Sort::Log, "log")?).is_some()
            || self.engine.live_version(&self.name(Sort::Field, "field")?).is_none();
        let (mut model, mut clock, mut unread) = self.add_up(!is_whole)?;
        if is_whole && !model.gaps.is_empty() {
            // A client forgot the handle of the log, and with it the index of memories that mention it: all memories
            // are looked through.
            (model, clock, unread) = self.add_up(true)?;
        }
        model.gaps.extend(unread);
        model.gaps.sort_unstable();
        model.gaps.dedup();
        if !model.gaps.is_empty() {
            tracing::error!(
                tenant = self.tenant,
                epochs = ?model.gaps,
                "entries of the log of this field are missing, so its answers may be wrong; restore them from a backup"
            );
        }
        Ok((model, clock))
    }

    /// Adds up the entries under the handle of the log, or all there are. The numbers are the epochs of entries whose unit
    /// the card does not give back.
    fn add_up(&self, everywhere: bool) -> Result<(Model, Clock, Vec<u64>), Failure> {
        let query = Query {
            entities: vec![self.name(Sort::Log, "log")?],
            types: vec![ResourceType::MemoryRecord],
            ..everything()
        };
        let mut epochs = BTreeSet::new();
        let mut failed = None;
        let mut meet = |bytes: &[u8]| match epoch_in(bytes, &self.tenant) {
            Ok(epoch) => {
                epochs.extend(epoch);
                ControlFlow::Continue(())
            }
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        };
        if everywhere {
            let _ = self.engine.each_or_unread(Some(ResourceType::MemoryRecord), |one| match one {
                Ok(bytes) => meet(&bytes),
                Err(_) => ControlFlow::Continue(()),
            });
        } else {
            self.engine.recall_each(&query, |hit| meet(&hit.resource))?;
        }
        if let Some(failure) = failed {
            return Err(failure);
        }
        let (mut model, mut leased, mut last) = (Model::default(), 0, 0);
        let (mut gaps, mut unread) = (Vec::new(), Vec::new());
        let mut purged = Vec::new();
        for epoch in epochs {
            let entry: Option<Entry> = self.read(Sort::Entry, &epoch.to_string(), "entry")?;
            let entry = entry.ok_or_else(|| wrong(format!("entry {epoch} is gone")))?;
            // Logs of before 2026-11-27 do not say which entry came before.
            if entry.previous > last {
                gaps.push(entry.previous);
            }
            (leased, last) = (entry.lease.max(leased), entry.epoch);
            let message = message_key(&entry.agent_id, &entry.message_id);
            let mut unreadable = None;
            model.apply(&entry, Some(message), &mut |id| match self.recorded(id, &entry) {
                Ok(unit) => unit,
                Err(failure) => {
                    // One damaged unit takes no field away.
                    unreadable = Some(failure);
                    None
                }
            });
            if let Some(failure) = unreadable {
                unread.push(epoch);
                tracing::error!(
                    epoch,
                    message = failure.message,
                    "a unit is left out of its field"
                );
            }
            purged.extend(entry.deltas.iter().filter_map(|delta| match delta {
                Delta::Purged { id, .. } => Some(id.clone()),
                _ => None,
            }));
        }
        // The last ones have none behind them that names them. Under the lease there are few epochs to ask for, and behind it
        // those of the next one, which may be lost with all that it covered. A message may have taken the clock far ahead.
        let (under_lease, mut behind) = (leased.min(last + LEASE), leased + LEASE);
        let mut epoch = last;
        loop {
            epoch = if epoch == under_lease { leased.max(under_lease) + 1 } else { epoch + 1 };
            if epoch > behind {
                break;
            }
            let name = self.name(Sort::Entry, &epoch.to_string())?;
            if !matches!(self.engine.look_up(&name)?, Lookup::Nothing) {
                gaps.push(epoch);
                // The next entry names this one as its predecessor, so later starts see the gap too.
                model.last = epoch;
                if epoch >= leased {
                    // Its lease is lost with it, and epochs under that were answered.
                    leased = epoch + LEASE;
                    behind = leased + LEASE;
                }
            }
        }
        model.gaps = gaps;
        // The power may have gone between the tombstone and the purge.
        self.purge(&purged)?;
        let mut clock = Clock::resumed(leased);
        clock.go_to(last, leased);
        Ok((model, clock, unread))
    }

    /// Returns the unit that an entry recorded.
    ///
    /// # Errors
    /// It cannot be read, or its record is not what was recorded.
    pub(super) fn recorded(&self, id: &str, entry: &Entry) -> Result<Option<Unit>, Failure> {
        let Some(unit) = self.unit(id)? else { return Ok(None) };
        let stated = entry.deltas.iter().find_map(|delta| match delta {
            Delta::Unit { id: of, digest } if of == id => digest.as_deref(),
            _ => None,
        });
        if stated.is_some_and(|stated| fingerprint::of_unit(&unit).as_deref() != Some(stated)) {
            return Err(wrong(format!("unit {id} was changed past its field")));
        }
        Ok(Some(unit))
    }
}

/// A query for all there is under a handle.
pub(super) fn everything() -> Query {
    Query {
        include_expired: true,
        include_intentions: true,
        order: Order::Earliest,
        limit: None,
        touch: false,
        ..Query::default()
    }
}
