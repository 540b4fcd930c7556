//! Without room, the least needed memories are forgotten.

use std::sync::atomic::Ordering;

use omird_store::RefKey;

use super::{BATCH, Pass, PassEnd, Slice};
use crate::index::doc::DocId;
use crate::index::fading::Fading;
use crate::write::command::{Act, Cause};
use crate::write::plan;

const DAY: i64 = 86_400_000_000;

/// A row that may go when there is no room, and what it is worth.
struct Evictable {
    is_young: bool,
    need: f64,
    id: DocId,
    key: RefKey,
    bytes: u64,
}

impl Pass<'_> {
    pub(super) fn evict(&mut self, fading: &Fading) -> Result<(), PassEnd> {
        let shared = &self.engine.inner.shared;
        // Said once, done once; the pressure is measured again each time.
        let asked = match self.dry_run {
            true => shared.sweep.bytes_to_free.load(Ordering::Relaxed),
            false => shared.sweep.bytes_to_free.swap(0, Ordering::Relaxed),
        };
        let wanted = asked.max(shared.quota_usage().bytes_to_free());
        if wanted == 0 {
            shared.sweep.can_free.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let (mut rows, dead) = self.evictable(fading)?;
        shared.sweep.can_free.store(dead > 0 || !rows.is_empty(), Ordering::Relaxed);
        // Compaction frees what it may drop already, without losing anything.
        let mut wanted = wanted.saturating_sub(dead);
        rows.sort_by(|a, b| {
            let order = a.is_young.cmp(&b.is_young).then(a.need.total_cmp(&b.need));
            order.then(a.key.cmp(&b.key))
        });
        let mut rows = rows.into_iter();
        while wanted > 0 {
            let mut acts = Vec::new();
            for row in rows.by_ref() {
                let Some((chosen, _)) = self.chosen(row.id) else { continue };
                let reason = format!("no room, and its need of {:.4} is the lowest", row.need);
                let cause = Cause { name: "eviction", reason, tiers: None };
                self.report.note(&chosen.target.to_string(), &cause);
                acts.push(Act::Evict(chosen, cause));
                wanted = wanted.saturating_sub(row.bytes);
                if wanted == 0 || acts.len() == BATCH {
                    break;
                }
            }
            if acts.is_empty() {
                break;
            }
            self.submit(acts)?;
            self.yield_to_others()?;
        }
        Ok(())
    }

    /// All that may go, and the bytes that compaction may drop as it is.
    fn evictable(&self, fading: &Fading) -> Result<(Vec<Evictable>, u64), PassEnd> {
        let (mut rows, mut dead, mut next) = (Vec::new(), 0u64, 0);
        let history = self.engine.settings().keep_history.as_micros();
        let order = self.engine.inner.shared.time.history().as_micros();
        let horizon = order.saturating_sub(i64::try_from(history).unwrap_or(i64::MAX));
        loop {
            {
                let catalog = self.engine.catalog();
                let rest = catalog.docs().get(next..).unwrap_or_default();
                if rest.is_empty() {
                    return Ok((rows, dead));
                }
                let mut slice = Slice::new();
                for (id, doc) in (next as DocId..).zip(rest) {
                    if !slice.takes_one() {
                        break;
                    }
                    next += 1;
                    if doc.dropped {
                        continue;
                    }
                    if doc.tombstoned || doc.retired < horizon {
                        dead += u64::from(doc.location.len);
                    } else if let Some(need) = plan::need_of(&catalog, fading, id, self.now) {
                        rows.push(Evictable {
                            is_young: self.now.saturating_sub(doc.held_since(self.now)) < DAY,
                            need,
                            id,
                            key: doc.key,
                            bytes: u64::from(doc.location.len),
                        });
                    }
                }
            }
            self.yield_to_others()?;
        }
    }
}
