//! Planning resources to remember: a first version of each, or the next one of what is stored.

use omir_core::event::EventKind;
use omir_core::model::Resource;

use super::inherit::{inherit, shown};
use super::version::{next_version, stamp_at_least};
use super::{NoPlan, Plan, Planner};
use crate::index::facts::{Facts, terms_of};
use crate::ingest::import_rule::stated_version;
use crate::ingest::request::Prepared;
use crate::time::stamp::undate;
use crate::write::command::{Effect, Stored};

impl Planner<'_> {
    pub(super) fn remember(&mut self, prepared: Vec<Prepared>) -> Result<Plan, NoPlan> {
        let mut plan = Plan::to(Effect::Remembered(Vec::new()));
        let mut stored = Vec::with_capacity(prepared.len());
        let mut pending = Vec::with_capacity(prepared.len());
        for item in prepared {
            let key = item.facts.key;
            let target = item.resource.reference();
            let (head, old) = match self.whole(&key)? {
                true => self.stored(&key)?,
                // An unreadable version is replaced as a whole; its words stay in the counts.
                false => (self.catalog().head(&key), None),
            };
            let least = self.catalog().losses.least_version(&key);
            let mut resource = item.resource;
            if let Some((before, state)) = &old {
                inherit(&mut resource, before, state, item.stamped);
            }
            let version = match (&old, head) {
                (Some(stored_before @ (before, state)), Some(head)) => {
                    let shown = shown(before, state);
                    let is_same =
                        |same: &Resource| self.is_as_stored(same, head.doc, stored_before, &shown);
                    match next_version(&mut resource, head.version, &item.pointer, is_same)? {
                        Some(version) => version,
                        None => {
                            stored.push(Stored::new(target, head.version, true));
                            continue;
                        }
                    }
                }
                (None, Some(head)) => stamp_at_least(&mut resource, head.version.saturating_add(1)),
                _ if least > 1 => stamp_at_least(&mut resource, least),
                _ => stated_version(&resource).unwrap_or(1),
            };
            if let Some((before, _)) = &old {
                undate(&mut resource, before);
            }
            let facts = Facts::of(&resource);
            let is_update = head.is_some_and(|head| head.live);
            let event = if is_update { EventKind::Updated } else { EventKind::Recorded };
            let superseded = old.map(|(before, _)| terms_of(&before));
            self.push(&mut plan, resource, facts, item.terms, superseded, version, event)?;
            pending.push(key);
            stored.push(Stored::new(target, version, false));
        }
        self.pending.extend(pending.into_iter().map(|key| (key, true)));
        plan.effect = Effect::Remembered(stored);
        Ok(plan)
    }
}
