//! Planning what a sweep found to do. Time has passed since it looked: what is no longer as it was
//! then is passed over, and the next sweep looks again.

use omir_core::model::Resource;
use omir_core::reference::{Ref, ResourceType};
use omird_store::{RecordedOrigin, RefKey};

use super::version::stamp;
use super::{NoPlan, Plan, Planner, inherit_access, set_tier};
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::{Facts, terms_of};
use crate::index::fading::Fading;
use crate::time::stamp::undate;
use crate::write::command::{Act, Cause, Chosen, Effect};
use crate::write::consolidate::{Observation, consolidate, event_time};
use omir_core::event::EventKind;

/// Likelihood that a memory is needed again; `None` for one that must not go: one that is anchored, an
/// intention that still holds, and what is no record.
pub(crate) fn need_of(catalog: &Catalog, fading: &Fading, id: DocId, now: i64) -> Option<f64> {
    let doc = catalog.doc(id);
    let access = catalog.decay_state(id)?;
    let holds = doc.class.is_intention() && now < doc.valid_until;
    let may_go = doc.is_live() && !access.anchored && !holds;
    may_go.then(|| fading.need(doc, &access, catalog.confidence(id, doc), now))
}

impl Planner<'_> {
    /// Works out the acts of a sweep, as one transaction: an observation that is merged is never both
    /// in the record it became a part of and beside it.
    pub(super) fn sweep(&mut self, acts: &mut Vec<Act>) -> Result<Plan, NoPlan> {
        // A part of what is merged here may be on its way to the disk.
        if !self.pending.is_empty() {
            return Err(NoPlan::Later);
        }
        let mut plan = Plan::to(Effect::Swept(0));
        let mut done = 0;
        for act in std::mem::take(acts) {
            let did = match act {
                Act::Move(chosen, event) => {
                    let is_current = self.is_current(&chosen);
                    plan.events.extend(is_current.then_some(event));
                    is_current
                }
                Act::Merge(into, others) => self.consolidate(&mut plan, &into, &others),
                Act::Forget(chosen, cause) => {
                    // Until when it is valid is what someone said of it.
                    self.let_go(&mut plan, &chosen, RecordedOrigin::User, cause)
                }
                Act::Evict(chosen, cause) => {
                    self.let_go(&mut plan, &chosen, RecordedOrigin::Rule, cause)
                }
            };
            done += u64::from(did);
        }
        plan.effect = Effect::Swept(done);
        Ok(plan)
    }

    /// Returns true if a version is live, and nothing in this plan has changed that.
    fn is_current(&self, chosen: &Chosen) -> bool {
        let key = RefKey::of(&chosen.target);
        let head = self.catalog().head(&key);
        head.is_some_and(|head| head.live && head.version == chosen.version)
            && !self.pending.contains_key(&key)
    }

    fn let_go(
        &mut self,
        plan: &mut Plan,
        chosen: &Chosen,
        who: RecordedOrigin,
        cause: Cause,
    ) -> bool {
        if !self.is_current(chosen) {
            return false;
        }
        let key = RefKey::of(&chosen.target);
        // An unreadable version can still be forgotten; its words stay in the counts.
        let old = self.stored(&key).ok().and_then(|(_, old)| old);
        let terms = old.map(|(resource, _)| terms_of(&resource));
        plan.write_tombstone(chosen.target.clone(), chosen.version, terms, who, Some(cause));
        self.pending.insert(key, false);
        true
    }

    fn consolidate(&mut self, plan: &mut Plan, into: &Chosen, others: &[Chosen]) -> bool {
        let mut all = std::iter::once(into).chain(others);
        if others.is_empty() || !all.all(|chosen| self.is_current(chosen)) {
            return false;
        }
        let has_children = |chosen: &Chosen| {
            let catalog = self.catalog();
            catalog.has_children(&RefKey::of(&chosen.target))
        };
        if others.iter().any(has_children) {
            return false;
        }
        let Some((before, survivor)) = self.observation(&into.target) else { return false };
        let Some(absorbed) = others
            .iter()
            .map(|chosen| self.observation(&chosen.target))
            .collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        // Its words and its place are those of the newest: that is where the thing is by now.
        let name = survivor.record.id.clone();
        let mut all: Vec<&Observation> =
            absorbed.iter().map(|(_, observation)| observation).chain([&survivor]).collect();
        all.sort_by_cached_key(|observation| self.age_of(observation));
        let Some(record) = all.pop().and_then(|newest| consolidate(&name, newest, all)) else {
            return false;
        };
        let mut resource = Resource::from(record);
        let version = into.version.saturating_add(1);
        stamp(&mut resource, version);
        undate(&mut resource, &before);
        let (facts, terms) = (Facts::of(&resource), terms_of(&resource));
        let superseded = Some(terms_of(&before));
        let kind = EventKind::Updated;
        // One that would grow too large stays apart.
        if self.push(plan, resource, facts, terms, superseded, version, kind).is_err() {
            return false;
        }
        let merging = RecordedOrigin::Merging(plan.steps.len().saturating_sub(1));
        let count = absorbed.len();
        if let Some(event) = plan.events.last_mut() {
            let reason = format!("{count} more observations of the same became part of it");
            event.cause = Some(Cause { name: "consolidation", reason, tiers: None });
        }
        for (chosen, (resource, _)) in others.iter().zip(&absorbed) {
            let key = RefKey::of(&chosen.target);
            let reason = format!("became part of {}", into.target);
            let cause = Cause { name: "consolidation", reason, tiers: None };
            let terms = Some(terms_of(resource));
            plan.write_tombstone(
                chosen.target.clone(),
                chosen.version,
                terms,
                merging,
                Some(cause),
            );
            self.pending.insert(key, false);
        }
        self.pending.insert(RefKey::of(&into.target), true);
        true
    }

    /// Key by which observations are ordered: the time of the event, then when it was recorded.
    fn age_of(&self, of: &Observation) -> ((i64, u32), u64, RefKey) {
        let at = event_time(&of.record);
        let target = Ref { kind: ResourceType::MemoryRecord, id: of.record.id.clone() };
        let key = RefKey::of(&target);
        let catalog = self.catalog();
        let seq = catalog.live(&key).map_or(0, |id| catalog.doc(id).seq);
        ((at.secs(), at.nanos()), seq, key)
    }

    /// A live record as it was stored, and as it is by now.
    fn observation(&self, target: &Ref) -> Option<(Resource, Observation)> {
        let (_, old) = self.stored(&RefKey::of(target)).ok()?;
        let (before, state) = old?;
        let mut now = before.clone();
        inherit_access(&mut now, state.access, false);
        set_tier(&mut now, state.moved);
        let Resource::MemoryRecord(record) = now else { return None };
        Some((before, Observation { record: *record, access: state.access? }))
    }
}
