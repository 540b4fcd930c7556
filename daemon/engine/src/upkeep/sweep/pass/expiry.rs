//! Memories that stopped being valid long ago are forgotten.

use super::{BATCH, Pass, PassEnd, ROWS};
use crate::index::doc::{DocId, NEVER, hours};
use crate::write::command::{Act, Cause};

impl Pass<'_> {
    pub(super) fn expire(&mut self) -> Result<(), PassEnd> {
        let kept = self.engine.settings().forgetting.expire_after.as_micros();
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        let certain = self.engine.inner.shared.time.certain().as_micros();
        let mut next = 0;
        loop {
            let (ids, last) = {
                let catalog = self.engine.catalog();
                let slice: Vec<DocId> = catalog.visibility.special_from(next).take(ROWS).collect();
                let is_over = |id: &DocId| {
                    let doc = catalog.doc(*id);
                    doc.valid_until != NEVER
                        && doc.valid_until.saturating_add(kept) <= certain
                        && !catalog.decay_state(*id).is_some_and(|access| access.anchored)
                };
                let last = slice.last().copied();
                (slice.into_iter().filter(is_over).collect::<Vec<_>>(), last)
            };
            for part in ids.chunks(BATCH) {
                let acts = part.iter().filter_map(|&id| self.expiry_of(id)).collect();
                self.submit(acts)?;
            }
            let Some(last) = last else { return Ok(()) };
            next = last.saturating_add(1);
            self.yield_to_others()?;
        }
    }

    fn expiry_of(&mut self, id: DocId) -> Option<Act> {
        let (chosen, doc) = self.chosen(id)?;
        let days = hours(self.now.saturating_sub(doc.valid_until)) / 24.0;
        let reason = format!("it stopped being valid {days:.1} days ago");
        let cause = Cause { name: "expiry", reason, tiers: None };
        self.report.note(&chosen.target.to_string(), &cause);
        Some(Act::Forget(chosen, cause))
    }
}
