//! Revising one record in place: anchoring it, or saying how believable it turned out.

use omir_core::confidence::{Beta, FeedbackOutcome, Weight};
use omir_core::event::EventKind;
use omir_core::instant::Instant;
use omir_core::model::{Confidence, Resource};
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omird_store::RefKey;

use super::{NoPlan, Plan, Planner, State, inherit_access, set_tier};
use crate::error::{Code, Error};
use crate::index::catalog::Head;
use crate::index::facts::{Facts, terms_of};
use crate::time::stamp::undate;
use crate::write::command::{Effect, Stored};

/// A change of a record.
#[derive(Clone, Copy)]
pub(super) enum Revision {
    /// True if it resists forgetting.
    Anchor(bool),
    /// The outcome.
    Feedback(FeedbackOutcome, Weight),
}

impl Planner<'_> {
    pub(super) fn revise(&mut self, target: &Ref, revision: Revision) -> Result<Plan, NoPlan> {
        let key = RefKey::of(target);
        if self.pending.contains_key(&key) {
            return Err(NoPlan::Later);
        }
        if target.kind != ResourceType::MemoryRecord {
            let message = format!("{target} is no MemoryRecord; only records can be revised so");
            return Err(Error::at(Code::InvalidQuery, "/ref", message).into());
        }
        let found = {
            let catalog = self.catalog();
            catalog.head(&key).filter(|head| head.live).map(|head| {
                let state = State::of(&catalog, head.doc, self.now);
                (head, catalog.handle(head.doc), state)
            })
        };
        let Some((Head { doc, version, .. }, handle, state)) = found else {
            let message = format!("{target} is not in the store");
            return Err(Error::at(Code::NotFound, "/ref", message).into());
        };
        let before = self.read(doc, &handle)?;
        let mut resource = before.clone();
        inherit_access(&mut resource, state.access, matches!(revision, Revision::Anchor(_)));
        set_tier(&mut resource, state.moved);
        let Resource::MemoryRecord(record) = &mut resource else {
            return Err(Error::new(Code::Internal, "a record is no record").into());
        };
        let mut belief = Beta::PRIOR;
        match revision {
            Revision::Anchor(anchored) => {
                let decay = record.decay.get_or_insert_default();
                if decay.anchored.unwrap_or(false) == anchored {
                    let stored = Stored::new(target.clone(), version, true);
                    return Ok(Plan::to(Effect::Anchored(stored, anchored)));
                }
                decay.anchored = Some(anchored);
                // A floor or its loss counts from now, not from an access that may be long ago.
                if decay.last_access.is_none() {
                    decay.last_access = Some(Instant::from(self.now));
                }
            }
            Revision::Feedback(outcome, weight) => {
                let confidence = record.confidence.get_or_insert_default();
                belief = belief_of(confidence).after(outcome, weight);
                confidence.alpha = Number::from_f64(belief.alpha());
                confidence.beta = Number::from_f64(belief.beta());
                confidence.calibrated = Number::from_f64(belief.damped());
            }
        }
        let version = version.saturating_add(1);
        record.version = Some(Number::from(version));
        undate(&mut resource, &before);
        let stored = Stored::new(target.clone(), version, false);
        let mut plan = Plan::to(match revision {
            Revision::Anchor(anchored) => Effect::Anchored(stored, anchored),
            Revision::Feedback(..) => Effect::Believed(stored, belief),
        });
        let facts = Facts::of(&resource);
        let (terms, old) = (terms_of(&resource), terms_of(&before));
        self.push(&mut plan, resource, facts, terms, Some(old), version, EventKind::Updated)?;
        self.pending.insert(key, true);
        Ok(plan)
    }
}

/// The belief a record states, or the prior where it states none.
fn belief_of(confidence: &Confidence) -> Beta {
    let number = |n: &Option<Number>| n.as_ref().map(Number::as_f64);
    match (number(&confidence.alpha), number(&confidence.beta)) {
        (Some(alpha), Some(beta)) => Beta::new(alpha, beta).unwrap_or(Beta::PRIOR),
        _ => Beta::PRIOR,
    }
}
