//! Planning the new versions of memories that came in while the time was unknown.

use omird_store::{RefKey, UntrustedInterval};

use super::version::stamp_at_least;
use super::{NoPlan, Plan, Planner, inherit_access};
use crate::index::facts::{Facts, terms_of};
use crate::time::stamp::undate;
use crate::time::uncertainty::corrected;
use crate::write::command::{Cause, Effect, Stored};
use omir_core::event::EventKind;

impl Planner<'_> {
    /// Redates these, as far as they still wait for it. So a batch that is planned again
    /// after a crash changes nothing twice.
    pub(super) fn correct(
        &mut self,
        keys: &[RefKey],
        intervals: &[UntrustedInterval],
    ) -> Result<Plan, NoPlan> {
        if keys.iter().any(|key| self.pending.contains_key(key)) {
            return Err(NoPlan::Later);
        }
        let mut plan = Plan::to(Effect::Remembered(Vec::new()));
        let mut stored = Vec::new();
        for key in keys {
            // An unreadable memory cannot be redated; whoever reads it is told.
            let Ok((Some(head), Some((before, state)))) = self.stored(key) else { continue };
            let (recorded, is_touched) = {
                let catalog = self.catalog();
                let doc = catalog.doc(head.doc);
                (doc.recorded, doc.is_touched)
            };
            let Some(mut resource) = corrected(&before, recorded, intervals) else { continue };
            if is_touched {
                inherit_access(&mut resource, state.access, false);
            }
            let version = stamp_at_least(&mut resource, head.version.saturating_add(1));
            undate(&mut resource, &before);
            let target = resource.reference();
            let facts = Facts::of(&resource);
            let (terms, old) = (terms_of(&resource), terms_of(&before));
            let event = EventKind::Updated;
            if let Err(error) =
                self.push(&mut plan, resource, facts, terms, Some(old), version, event)
            {
                tracing::warn!(%target, %error, "stays dated as it was before the clock was set");
                continue;
            }
            if let Some(event) = plan.events.last_mut() {
                let reason = "the clock was set".to_owned();
                event.cause = Some(Cause { name: "clock", reason, tiers: None });
            }
            stored.push(Stored::new(target, version, false));
        }
        self.pending.extend(keys.iter().map(|key| (*key, true)));
        plan.effect = Effect::Remembered(stored);
        Ok(plan)
    }
}
