//! Planning the step after a loop closure: all that is tied to the keyframes, in one transaction.

use omir_core::model::Resource;
use omir_core::reference::Ref;

use super::{NoPlan, Plan, Planner, inherit_access, stamp_at_least, undate};
use crate::engine::command::{Cause, Effect, EventKind, Stored};
use crate::engine::rebase::{Request, Step, moved, moved_back, record_of, told, undone};
use crate::error::{Code, Error};
use crate::index::facts::{Facts, terms_of};
use crate::index::key::RefKey;

impl Planner<'_> {
    pub(super) fn rebase(&mut self, request: &Request) -> Result<Plan, NoPlan> {
        // What is tied to a keyframe may be on its way to the disk.
        if !self.pending.is_empty() {
            return Err(NoPlan::Later);
        }
        let mut plan = Plan::to(Effect::Rebased { record: None, moved: 0, unreadable: 0 });
        let (count, unreadable) = match &request.step {
            Step::Forward(rebase) => {
                let by = record_of(&request.id);
                let keyframes = rebase.keyframes.iter().map(|(name, _)| name.as_str());
                let tied = self.tied(&rebase.frame, keyframes);
                let change = |resource: &Resource| moved(resource, rebase, &by);
                self.move_all(&mut plan, request, tied, &by, change)?
            }
            Step::Back(by) => {
                let Ok((Some(_), Some((record, _)))) = self.stored(&RefKey::of(by)) else {
                    let message = format!("{by} is not in the store");
                    return Err(Error::at(Code::NotFound, "/undo", message).into());
                };
                let told = told(&record)?;
                let tied = self.tied(&told.frame, told.keyframes.iter().map(String::as_str));
                let change = |resource: &Resource| moved_back(resource, &told.frame, by);
                let (count, unreadable) = self.move_all(&mut plan, request, tied, by, change)?;
                if count == 0 {
                    let message = match told.undone {
                        Some(when) => format!("{by} was undone already, at {when}"),
                        None => format!(
                            "nothing is where {by} left it: what it moved was moved again, changed \
                             or forgotten since; undo later steps first"
                        ),
                    };
                    return Err(Error::at(Code::Conflict, "/undo", message).into());
                }
                (count, unreadable)
            }
        };
        if request.dry_run || count == 0 {
            plan = Plan::to(Effect::Rebased { record: None, moved: count, unreadable });
            return Ok(plan);
        }
        let record = self.tell(&mut plan, request, count)?;
        plan.effect = Effect::Rebased { record: Some(record), moved: count, unreadable };
        let keys = plan.steps.iter().filter_map(|step| match step {
            super::Step::Put { facts, .. } => Some((facts.key, true)),
            super::Step::Forget { .. } => None,
        });
        self.pending.extend(keys.collect::<Vec<_>>());
        Ok(plan)
    }

    /// What lies in the map and in one of the keyframes.
    fn tied<'n>(&self, frame: &str, keyframes: impl Iterator<Item = &'n str>) -> Vec<RefKey> {
        let catalog = self.catalog();
        let Some(map) = catalog.frame(frame) else { return Vec::new() };
        let keyframes: std::collections::HashSet<u32> =
            keyframes.filter_map(|name| catalog.frame(name)).collect();
        let is_tied = |doc: &&crate::index::doc::Doc| {
            let places = catalog.places(doc);
            doc.is_live()
                && places.iter().any(|place| place.frame == map)
                && places.iter().any(|place| keyframes.contains(&place.frame))
        };
        catalog.docs().iter().filter(is_tied).map(|doc| doc.key).collect()
    }

    /// Plans the new version of each; gives how many there are, and how many cannot be read.
    fn move_all(
        &self,
        plan: &mut Plan,
        request: &Request,
        tied: Vec<RefKey>,
        by: &Ref,
        change: impl Fn(&Resource) -> Option<Resource>,
    ) -> Result<(u64, u64), Error> {
        let (mut count, mut unreadable, mut bytes) = (0, 0, 0);
        for key in tied {
            let Ok((Some(head), Some((before, state)))) = self.stored(&key) else {
                unreadable += 1;
                continue;
            };
            let Some(mut resource) = change(&before) else { continue };
            count += 1;
            if request.dry_run {
                continue;
            }
            let is_touched = self.catalog().doc(head.doc).is_touched;
            if is_touched {
                inherit_access(&mut resource, state.access, false);
            }
            let version = stamp_at_least(&mut resource, head.version.saturating_add(1));
            undate(&mut resource, &before);
            let (facts, terms, old) =
                (Facts::of(&resource), terms_of(&resource), terms_of(&before));
            let kind = EventKind::Updated;
            self.push(plan, resource, facts, terms, Some(old), version, kind)?;
            if let Some(event) = plan.events.last_mut() {
                bytes += event.resource.len();
                let reason = format!("the map moved: {by}");
                event.cause = Some(Cause { name: "rebase", reason, tiers: None });
            }
            if bytes > request.max_bytes {
                let message = format!(
                    "more than {} bytes of memories are tied to these keyframes, too much for one \
                     transaction; move fewer keyframes at once, or raise limits.max_import_bytes",
                    request.max_bytes
                );
                return Err(Error::at(Code::TooLarge, "/keyframes", message));
            }
        }
        Ok((count, unreadable))
    }

    /// The record that tells of the step, or that it was taken back.
    fn tell(&self, plan: &mut Plan, request: &Request, count: u64) -> Result<Stored, Error> {
        let (mut record, before) = match &request.step {
            Step::Forward(rebase) => (rebase.record(request.id.clone(), count, self.now), None),
            Step::Back(by) => match self.stored(&RefKey::of(by))? {
                (Some(head), Some((before, _))) => {
                    (undone(&before, self.now), Some((head.version, before)))
                }
                _ => return Err(Error::new(Code::NotFound, format!("{by} is not in the store"))),
            },
        };
        let version = match &before {
            Some((version, _)) => stamp_at_least(&mut record, version.saturating_add(1)),
            None => 1,
        };
        let target = record.reference();
        let (facts, terms) = (Facts::of(&record), terms_of(&record));
        let kind = if before.is_some() { EventKind::Updated } else { EventKind::Recorded };
        let old = before.map(|(_, before)| terms_of(&before));
        self.push(plan, record, facts, terms, old, version, kind)?;
        Ok(Stored::new(target, version, false))
    }
}
