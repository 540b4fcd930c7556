//! Accesses of recalls: counted into the catalog at once, journaled now and then.

use std::time::Instant;

use omird_store::{Handle, Op, Touch};

use super::Writer;
use crate::index::doc::{self, DocId};
use crate::shared::AccessEvent;

impl Writer {
    /// Counts the accesses of recalls into the catalog. Nothing is written: see `flush_touches`.
    pub(crate) fn take_touches(&mut self) {
        let Some(offset) = self.shared.time.stable_offset() else { return };
        let accesses: Vec<AccessEvent> = self.shared.accesses.take();
        if accesses.is_empty() {
            return;
        }
        let mut catalog = self.catalog.write();
        for AccessEvent { key, target, at, mentions } in accesses {
            let at = at.saturating_add(offset);
            self.touches.bonds.extend(catalog.activate(&mentions, at));
            let Some(access) = catalog.live(&key).and_then(|id| catalog.decay_state(id)) else {
                continue;
            };
            catalog.touch(&key, doc::accessed(&access, at));
            self.touches.records.entry(key).or_insert(target);
        }
    }

    /// Journals the access states that changed since the last time, as one transaction.
    pub(crate) fn flush_touches(&mut self) {
        let touches = self.drain_touches();
        if !touches.is_empty() {
            self.note(touches);
        }
    }

    pub(crate) fn drain_touches(&mut self) -> Vec<Op> {
        self.touches.last_flush = Instant::now();
        if !self.log.is_sound {
            return Vec::new();
        }
        let mut ops = self.drain_bonds();
        if self.touches.records.is_empty() {
            return ops;
        }
        let catalog = self.catalog.read();
        let states = self.touches.records.drain().filter_map(|(key, target)| {
            let access = catalog.live(&key).and_then(|id| catalog.decay_state(id))?;
            Some(Op::Touch(Touch {
                target,
                last_access: access.last_access,
                access_count: access.access_count,
                half_life_hours: access.half_life_hours,
            }))
        });
        ops.extend(states);
        ops
    }

    /// The use of relationships since the last time; their names are read from the disk.
    fn drain_bonds(&mut self) -> Vec<Op> {
        if self.touches.bonds.is_empty() {
            return Vec::new();
        }
        let bonds: Vec<(DocId, Handle)> = {
            let catalog = self.catalog.read();
            let live = self.touches.bonds.drain().filter_map(|key| catalog.live(&key));
            live.map(|id| (id, catalog.handle(id))).collect()
        };
        let touches = bonds.into_iter().filter_map(|(id, handle)| {
            let target = handle.resource().ok()?.reference().to_string();
            let catalog = self.catalog.read();
            catalog.bond_touch(id, target).map(Op::Touch)
        });
        touches.collect()
    }
}
