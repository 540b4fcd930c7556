//! Planning an import: each resource against what is stored, by [`import_rule`].

use std::collections::HashSet;

use omir_core::event::EventKind;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omird_store::RefKey;

use super::inherit::{bare, inherit, inherit_access, set_tier, shown};
use super::version::{check_version, stamp_at_least};
use super::{NoPlan, Old, Plan, Planner, names};
use crate::index::catalog::Head;
use crate::index::doc::DocId;
use crate::index::facts::{Facts, terms_of};
use crate::ingest::import_rule::{self, Claim, Merged, Precedence, StoredState, stated_version};
use crate::ingest::request::Prepared;
use crate::write::command::{Effect, Stored};

/// Difference between a resource of a file and the stored one where the only difference are references
/// that the store let go of, because what they name was forgotten.
enum Lost {
    /// There is no such reference, or another difference.
    Nothing,
    /// Their targets are there again, or come with the file: a client that imports a backup wants what
    /// is in it.
    Restorable,
    /// Some of what they name is not there.
    Gone,
}

impl Planner<'_> {
    /// Works out a merge. `prepared` is taken once nothing stands in the way of planning it now.
    pub(super) fn merge(
        &mut self,
        prepared: &mut Vec<Prepared>,
        precedence: Precedence,
    ) -> Result<Plan, NoPlan> {
        if prepared.iter().any(|item| self.pending.contains_key(&item.facts.key)) {
            return Err(NoPlan::Later);
        }
        let prepared = std::mem::take(prepared);
        let mut within = names(&prepared);
        let restores = precedence != Precedence::Remembered;
        if !restores {
            // A name that stays forgotten cannot be referred to.
            let catalog = self.catalog();
            within.retain(|key| catalog.head(key).is_none() || self.will_live(&catalog, key));
        }
        let mut plan = Plan::to(Effect::Remembered(Vec::new()));
        let mut stored = Vec::with_capacity(prepared.len());
        let mut pending = Vec::new();
        for mut item in prepared {
            check_version(&item.resource, &item.pointer)?;
            let key = item.facts.key;
            let target = item.resource.reference();
            let is_whole = self.whole(&key)?;
            let (head, old) = match is_whole {
                true => self.stored(&key)?,
                false => (self.catalog().head(&key), None),
            };
            let least = self.catalog().losses.least_version(&key);
            let claim = Claim::of(&item.resource);
            if let Some((before, state)) = &old {
                inherit(&mut item.resource, before, state, item.stamped);
            }
            let held = self.held(&item.resource, head, old.as_ref());
            let merged = match self.lost(&item.resource, head, old.as_ref(), &within) {
                // The card has lost what is stored: anything is better, but what says itself that it is older.
                _ if !is_whole => {
                    let newest = head.map_or(least - 1, |head| head.version);
                    match stated_version(&item.resource).is_some_and(|stated| stated < newest) {
                        true => Merged::Kept,
                        false => Merged::Updated,
                    }
                }
                Lost::Nothing => import_rule::decide(claim, held, precedence),
                Lost::Restorable if restores => Merged::Updated,
                Lost::Restorable | Lost::Gone => Merged::Unchanged,
            };
            if matches!(merged, Merged::Kept | Merged::Unchanged) {
                let version = head.map_or(0, |head| head.version);
                stored.push(Stored::merged(target, version, merged));
                continue;
            }
            // Only what is written: what stays refers to what was there already.
            self.check_references_of(&item, &within)?;
            let version = match head {
                Some(head) => stamp_at_least(&mut item.resource, head.version.saturating_add(1)),
                None if least > 1 => stamp_at_least(&mut item.resource, least),
                None => stated_version(&item.resource).unwrap_or(1),
            };
            let facts = Facts::of(&item.resource);
            let event = match merged {
                Merged::Updated => EventKind::Updated,
                _ => EventKind::Recorded,
            };
            let superseded = old.map(|(before, ..)| terms_of(&before));
            self.push(&mut plan, item.resource, facts, item.terms, superseded, version, event)?;
            pending.push(key);
            stored.push(Stored::merged(target, version, merged));
        }
        self.pending.extend(pending.into_iter().map(|key| (key, true)));
        plan.effect = Effect::Remembered(stored);
        Ok(plan)
    }

    /// The stored resource beside `resource`, which has inherited from it already.
    fn held(&self, resource: &Resource, head: Option<Head>, old: Option<&Old>) -> StoredState {
        match (head, old) {
            (None, _) => StoredState::Nothing,
            (Some(_), None) => StoredState::Forgotten,
            (Some(head), Some(old)) => {
                let claim = self.claim(head, &old.0);
                StoredState::Live { claim, same: self.is_same(resource, head.doc, old) }
            }
        }
    }

    /// Returns true if the stored resource has lost references that a file states: see [`Lost`].
    fn lost(
        &self,
        resource: &Resource,
        head: Option<Head>,
        old: Option<&Old>,
        within: &HashSet<RefKey>,
    ) -> Lost {
        let (Some(head), Some(old)) = (head, old) else { return Lost::Nothing };
        let mut rest = resource.clone();
        let (mut found, mut restorable) = (false, true);
        {
            let catalog = self.catalog();
            rest.retain_references(|target| {
                let key = RefKey::of(target);
                let is_lost = catalog.head(&key).is_some() && !catalog.stands(head.doc, &key);
                found |= is_lost;
                restorable &= !is_lost || within.contains(&key) || self.will_live(&catalog, &key);
                !is_lost
            });
        }
        match (found && self.is_same(&rest, head.doc, old), restorable) {
            (false, _) => Lost::Nothing,
            (true, true) => Lost::Restorable,
            (true, false) => Lost::Gone,
        }
    }

    /// A stored resource's claims. A date that the version before it states as well was left
    /// standing by the client that changed the rest, and says nothing of this one.
    fn claim(&self, head: Head, stored: &Resource) -> Claim {
        let (recorded, before) = {
            let catalog = self.catalog();
            let doc = catalog.doc(head.doc);
            let has_date = import_rule::last_updated(stored).is_some();
            // A memory that was forgotten and is back was stated again, with whatever date it bears.
            let is_update = doc.older != DocId::MAX && !catalog.doc(doc.older).forgotten;
            let before = (has_date && is_update).then(|| catalog.handle(doc.older));
            (Timestamp::from_micros(doc.recorded), before)
        };
        let before = before.and_then(|handle| handle.resource().ok());
        let is_stale = before.is_some_and(|before| {
            import_rule::last_updated(&before) == import_rule::last_updated(stored)
        });
        Claim::stored(stored, recorded, is_stale)
    }

    /// Returns true if a resource says what the stored one says: apart from the version, which the store
    /// may have had to raise, and from accesses, which no file can know the latest of.
    fn is_same(&self, resource: &Resource, id: DocId, old: &Old) -> bool {
        let (before, state) = old;
        let shown = shown(before, state);
        let mut same = resource.clone();
        if let (Resource::MemoryRecord(same), Resource::MemoryRecord(before)) = (&mut same, before)
        {
            same.version = before.version.clone();
        }
        if self.is_as_stored(&same, id, old, &shown) {
            return true;
        }
        let mut current = before.clone();
        inherit_access(&mut current, state.access, false);
        set_tier(&mut same, self.moved_on(resource, id, state));
        take_access(&mut same, &current) && bare(same) == shown
    }
}

/// Takes over the access state where it is that of another moment; returns whether it was.
fn take_access(resource: &mut Resource, current: &Resource) -> bool {
    let (Resource::MemoryRecord(record), Resource::MemoryRecord(current)) = (resource, current)
    else {
        return false;
    };
    let (Some(decay), Some(current)) = (&mut record.decay, &current.decay) else { return false };
    // A half-life alone is no trace of an access: a client has changed it.
    if decay.last_access == current.last_access && decay.access_count == current.access_count {
        return false;
    }
    decay.last_access = current.last_access.clone();
    decay.access_count = current.access_count.clone();
    decay.half_life_hours = current.half_life_hours.clone();
    true
}
