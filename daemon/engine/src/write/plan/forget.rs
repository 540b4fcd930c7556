//! Planning tombstones: of what a user has forgotten, and of the relationships that cannot exist without it.

use std::collections::HashSet;

use omir_core::reference::Ref;
use omird_store::{Handle, ReadError, RecordedOrigin, RefKey};

use super::{NoPlan, Plan, Planner, internal};
use crate::disk;
use crate::encoded::name_of_unreadable;
use crate::index::doc::Doc;
use crate::index::facts::terms_of;
use crate::write::command::Effect;

impl Planner<'_> {
    pub(super) fn forget(&mut self, targets: &[Ref], up_to: u64) -> Result<Plan, NoPlan> {
        // A relationship on its way to the disk may depend on what is forgotten here.
        if !self.pending.is_empty() {
            return Err(NoPlan::Later);
        }
        let mut plan = Plan::to(Effect::Forgotten(0));
        let mut forgotten: HashSet<RefKey> = HashSet::new();
        let named = targets.iter().map(|target| (target.clone(), RefKey::of(target)));
        let mut queue: Vec<(Ref, RefKey)> = {
            let catalog = self.catalog();
            let is_meant =
                |key: &RefKey| catalog.live(key).is_some_and(|id| catalog.doc(id).seq <= up_to);
            named.filter(|(_, key)| is_meant(key)).collect()
        };
        queue.reverse();
        // Names that the card has lost with all versions: a tombstone says that they are not missing any more.
        for target in targets {
            let key = RefKey::of(target);
            let catalog = self.catalog();
            let lost = catalog.losses.missed(&key).filter(|lost| {
                // The time is unknown at which a version was recorded that damaged bytes alone tell of.
                let is_meant = up_to == u64::MAX || !lost.is_presumed && lost.stamp.seq <= up_to;
                is_meant && catalog.live(&key).is_none()
            });
            drop(catalog);
            if let Some(lost) = lost
                && forgotten.insert(key)
            {
                plan.write_tombstone(
                    target.clone(),
                    lost.stamp.version,
                    None,
                    RecordedOrigin::User,
                    None,
                );
                queue.extend(self.dependents(&key)?);
            }
        }
        while let Some((target, key)) = queue.pop() {
            if forgotten.contains(&key) {
                continue;
            }
            let found = {
                let catalog = self.catalog();
                let head = catalog.head(&key).filter(|head| head.live);
                head.map(|head| (head.version, catalog.handle(head.doc)))
            };
            let Some((version, handle)) = found else { continue };
            forgotten.insert(key);
            // An unreadable version can still be forgotten; its words stay in the counts.
            let terms = handle.resource().ok().map(|resource| terms_of(&resource));
            plan.write_tombstone(target, version, terms, RecordedOrigin::User, None);
            queue.extend(self.dependents(&key)?);
        }
        plan.effect = Effect::Forgotten(forgotten.len() as u64);
        self.pending.extend(forgotten.into_iter().map(|key| (key, false)));
        Ok(plan)
    }

    /// Names the relationships that cannot exist without an entity.
    fn dependents(&self, key: &RefKey) -> Result<Vec<(Ref, RefKey)>, NoPlan> {
        let held: Vec<(Doc, Handle)> = {
            let catalog = self.catalog();
            let with_handle = |id| (catalog.doc(id).clone(), catalog.handle(id));
            catalog.dependents(key).map(with_handle).collect()
        };
        let mut named = Vec::new();
        for (doc, dependent) in held {
            let name = match dependent.resource() {
                Ok(resource) => Some(resource.reference()),
                Err(ReadError::Disk { error, .. }) if !disk::is_loss(&error) => {
                    return Err(internal(error).into());
                }
                Err(_) => name_of_unreadable(&dependent, doc.class.resource_type(), doc.key),
            };
            match name {
                Some(target) => named.push((target, doc.key)),
                // It is lost already: nothing tells of it, and it keeps nothing else from being forgotten.
                None => tracing::warn!(
                    at = ?dependent.location,
                    "a relationship of what is forgotten cannot be read, and is not forgotten with it"
                ),
            }
        }
        Ok(named)
    }
}
