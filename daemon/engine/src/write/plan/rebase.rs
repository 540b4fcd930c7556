//! Planning the step after a loop closure: all that is tied to the keyframes, in one transaction.

use std::collections::{BTreeSet, HashSet};

use omir_core::event::EventKind;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use omird_store::RefKey;

use super::version::stamp_at_least;
use super::{NoPlan, Old, Plan, Planner, inherit_access};
use crate::error::{Code, Error};
use crate::index::catalog::Head;
use crate::index::facts::{Facts, terms_of};
use crate::index::spatial::FrameId;
use crate::time::stamp::undate;
use crate::write::command::{Cause, Effect, Stored};
use crate::write::rebase::{
    CAUSE, MAX_STEPS, Moved, Request, Step, moved, moved_back, moved_since, record_of, released,
    step_of, undone,
};

impl Planner<'_> {
    pub(super) fn rebase(&mut self, request: &Request) -> Result<Plan, NoPlan> {
        // A memory that is tied to a keyframe may be on its way to the disk.
        if !self.pending.is_empty() {
            return Err(NoPlan::Later);
        }
        let mut plan =
            Plan::to(Effect::Rebased { record: None, moved: 0, unreadable: 0, untied: 0 });
        let mut tally = Tally::default();
        match &request.step {
            Step::Forward(rebase) => {
                let by = record_of(&request.id);
                let keyframes = rebase.keyframes.iter().map(|(name, _)| name.as_str());
                let (tied, untied) = self.tied(&rebase.frame, keyframes);
                tally.untied = untied;
                let change = |resource: &Resource| Ok(moved(resource, rebase, &by));
                self.move_all(&mut plan, &mut tally, request, tied, &by, change)?;
            }
            Step::Back(by) => {
                let Ok((Some(_), Some((record, _)))) = self.stored(&RefKey::of(by)) else {
                    let message = format!("{by} is not in the store");
                    return Err(Error::at(Code::NotFound, "/undo", message).into());
                };
                let step = step_of(&record)?;
                let keyframes = step.keyframes.iter().map(String::as_str);
                let (tied, _) = self.tied(&step.frame, keyframes);
                let change = |resource: &Resource| {
                    self.check_last(resource, by)?;
                    let resource = moved_back(resource, &step.frame, by);
                    Ok(resource.map(|resource| Moved { resource, over: None }))
                };
                self.move_all(&mut plan, &mut tally, request, tied, by, change)?;
                if tally.moved == 0 {
                    let message = format!(
                        "nothing is where {by} left it: what it moved was forgotten, placed again or \
                         moved again since, and a memory knows of no more than {MAX_STEPS} steps"
                    );
                    return Err(Error::at(Code::Conflict, "/undo", message).into());
                }
            }
        }
        let Tally { moved, unreadable, untied, over, .. } = tally;
        if request.dry_run || moved == 0 {
            return Ok(Plan::to(Effect::Rebased { record: None, moved, unreadable, untied }));
        }
        for step in over {
            self.release(&mut plan, &step)?;
        }
        let record = self.tell(&mut plan, request, moved)?;
        plan.effect = Effect::Rebased { record: Some(record), moved, unreadable, untied };
        let keys = plan.steps.iter().filter_map(|planned| match &planned.step {
            super::Step::Put { facts, .. } => Some((facts.key, true)),
            super::Step::Forget { .. } => None,
        });
        self.pending.extend(keys.collect::<Vec<_>>());
        Ok(plan)
    }

    /// Checks that no later step has moved what `by` moved: that is to be taken back first, or what it
    /// moved would stay behind.
    fn check_last(&self, resource: &Resource, by: &Ref) -> Result<(), Error> {
        let Some(later) = moved_since(resource, by) else { return Ok(()) };
        // One that was forgotten, or that could not read this memory when it was undone, is in the way
        // of nothing.
        match self.stored(&RefKey::of(&later)) {
            Ok((_, Some((record, _)))) if step_of(&record).is_ok() => {
                let message = format!(
                    "{later} moved {} again; undo that first, then {by}",
                    resource.reference()
                );
                Err(Error::at(Code::Conflict, "/undo", message))
            }
            _ => Ok(()),
        }
    }

    /// Memories in the map and in one of the keyframes, and in how many of these nothing does.
    fn tied<'n>(
        &self,
        frame: &str,
        keyframes: impl Iterator<Item = &'n str>,
    ) -> (Vec<RefKey>, u64) {
        let catalog = self.catalog();
        let map = catalog.places.frame(frame);
        let names: HashSet<&str> = keyframes.collect();
        let keyframes: HashSet<FrameId> =
            names.iter().filter_map(|name| catalog.places.frame(name)).collect();
        let (mut tied, mut used) = (Vec::new(), HashSet::new());
        for doc in catalog.docs().iter().filter(|doc| doc.is_live()) {
            let frames = || catalog.places.of(doc).iter().map(|place| place.frame);
            if !frames().any(|frame| Some(frame) == map) {
                continue;
            }
            let known = used.len();
            used.extend(frames().filter(|frame| keyframes.contains(frame)));
            let is_tied = used.len() > known || frames().any(|frame| used.contains(&frame));
            tied.extend(is_tied.then_some(doc.key));
        }
        (tied, (names.len() - used.len()) as u64)
    }

    /// Plans the new version of each, and counts them.
    fn move_all(
        &self,
        plan: &mut Plan,
        tally: &mut Tally,
        request: &Request,
        tied: Vec<RefKey>,
        by: &Ref,
        change: impl Fn(&Resource) -> Result<Option<Moved>, Error>,
    ) -> Result<(), Error> {
        for key in tied {
            let Ok((Some(head), Some(old))) = self.stored(&key) else {
                tally.unreadable += 1;
                continue;
            };
            let Some(Moved { resource, over }) = change(&old.0)? else { continue };
            tally.moved += 1;
            if request.dry_run {
                continue;
            }
            tally.over.extend(over);
            self.revised(plan, resource, head, &old)?;
            if let Some(event) = plan.events.last_mut() {
                tally.bytes += event.resource.len();
                let reason = format!("the map moved: {by}");
                event.cause = Some(Cause { name: CAUSE, reason, tiers: None });
            }
            if tally.bytes > request.max_bytes {
                let message = format!(
                    "more than {} bytes of memories are tied to these keyframes, too much for one \
                     transaction; move fewer keyframes at once, or raise limits.max_import_bytes",
                    request.max_bytes
                );
                return Err(Error::at(Code::TooLarge, "/keyframes", message));
            }
        }
        Ok(())
    }

    /// Plans a new version of what is stored; gives its number.
    fn revised(
        &self,
        plan: &mut Plan,
        mut resource: Resource,
        head: Head,
        (before, state): &Old,
    ) -> Result<u64, Error> {
        let is_touched = self.catalog().doc(head.doc).is_touched;
        if is_touched {
            inherit_access(&mut resource, state.access, false);
        }
        let version = stamp_at_least(&mut resource, head.version.saturating_add(1));
        undate(&mut resource, before);
        let (facts, terms, old) = (Facts::of(&resource), terms_of(&resource), terms_of(before));
        self.push(plan, resource, facts, terms, Some(old), version, EventKind::Updated)?;
        Ok(version)
    }

    /// Lets the record of a step go that some memory can no longer be taken back by: it fades from now
    /// on as others do, or a map that moves every day would fill the store with what cannot be forgotten.
    fn release(&self, plan: &mut Plan, step: &Ref) -> Result<(), Error> {
        // An unreadable record stays as it is.
        let Ok((Some(head), Some(old))) = self.stored(&RefKey::of(step)) else { return Ok(()) };
        let Some(record) = released(&old.0) else { return Ok(()) };
        self.revised(plan, record, head, &old).map(|_| ())
    }

    /// The record that tells of the step, or that it was taken back.
    fn tell(&self, plan: &mut Plan, request: &Request, moved: u64) -> Result<Stored, Error> {
        match &request.step {
            Step::Forward(rebase) => {
                let record = rebase.record(request.id.clone(), moved, self.now);
                let target = record.reference();
                let (facts, terms) = (Facts::of(&record), terms_of(&record));
                self.push(plan, record, facts, terms, None, 1, EventKind::Recorded)?;
                Ok(Stored::new(target, 1, false))
            }
            Step::Back(by) => match self.stored(&RefKey::of(by))? {
                (Some(head), Some(old)) => {
                    let record = undone(&old.0, self.now);
                    let version = self.revised(plan, record, head, &old)?;
                    Ok(Stored::new(by.clone(), version, false))
                }
                _ => Err(Error::new(Code::NotFound, format!("{by} is not in the store"))),
            },
        }
    }
}

/// Result of a step.
#[derive(Default)]
struct Tally {
    moved: u64,
    unreadable: u64,
    /// Keyframes that nothing is tied to.
    untied: u64,
    /// Of what moved.
    bytes: usize,
    /// Steps that some memory can no longer be taken back by.
    over: BTreeSet<Ref>,
}
