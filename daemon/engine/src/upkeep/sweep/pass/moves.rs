//! Moves between tiers, and who is told of them: see [`Announced`](crate::write::announced::Announced).

use omir_core::reference::{Ref, ResourceType};
use omir_core::tier::{Tier, TierReason};

use super::{Pass, PassEnd, Slice};
use crate::encoded::id_of;
use crate::index::catalog::Catalog;
use crate::index::doc::{Doc, DocId};
use crate::index::fading::Fading;
use crate::read::outgoing::Outgoing;
use crate::write::command::{Act, Cause, Chosen, Event};
use omir_core::event::EventKind;

/// Moves announced between two pauses; each is read from the disk.
const ANNOUNCED: usize = 64;

struct Move {
    id: DocId,
    tiers: (Tier, Tier),
    reason: TierReason,
    version: u64,
    outgoing: Outgoing,
}

impl Pass<'_> {
    pub(super) fn announce_moves(&mut self, fading: &Fading) -> Result<(), PassEnd> {
        let mut next = 0;
        loop {
            let moves = {
                let catalog = self.engine.catalog();
                let rest = catalog.docs().get(next..).unwrap_or_default();
                if rest.is_empty() {
                    return Ok(());
                }
                let mut slice = Slice::new();
                let mut moves = Vec::new();
                for (id, doc) in (next as DocId..).zip(rest) {
                    if !slice.takes_one() {
                        break;
                    }
                    next += 1;
                    let Some((from, to, reason)) = self.moved(&catalog, fading, id, doc) else {
                        continue;
                    };
                    if from != to {
                        let outgoing = Outgoing::of(&catalog, id, false, self.now);
                        let version = doc.version;
                        moves.push(Move { id, tiers: (from, to), reason, version, outgoing });
                    } else if !self.dry_run {
                        self.announced.set(id, to);
                    }
                }
                moves
            };
            for part in moves.chunks(ANNOUNCED) {
                let acts = part.iter().filter_map(|each| self.announce(each)).collect();
                self.submit(acts)?;
                if !self.dry_run {
                    part.iter().for_each(|each| self.announced.set(each.id, each.tiers.1));
                }
                self.yield_to_others()?;
            }
            self.yield_to_others()?;
        }
    }

    /// The tier last told of a row, the one it is in by now, and why; `None` for what has none.
    fn moved(
        &self,
        catalog: &Catalog,
        fading: &Fading,
        id: DocId,
        doc: &Doc,
    ) -> Option<(Tier, Tier, TierReason)> {
        if !doc.is_live() {
            return None;
        }
        let (to, reason) = catalog.tier(id, false, self.now)?;
        let from = match self.announced.get(id) {
            Some(tier) => tier,
            None => {
                // An access after the last pass is no part of what was announced then.
                let access =
                    catalog.decay_state(id).filter(|access| access.last_access <= self.swept);
                fading.tier(doc, &access.or(doc.access)?, self.swept).0
            }
        };
        Some((from, to, reason))
    }

    fn announce(&mut self, each: &Move) -> Option<Act> {
        // An unreadable record is noticed by those who need it.
        let resource = self.engine.emit(&each.outgoing).ok()?;
        let target = Ref { kind: ResourceType::MemoryRecord, id: id_of(&resource)?.parse().ok()? };
        let reason = match each.reason {
            // Back to the tier it was stored with: the accesses since have undone the move.
            TierReason::Stays => "it was used again".to_owned(),
            reason => reason.to_string(),
        };
        let cause = Cause { name: "sweep", reason, tiers: Some(each.tiers) };
        self.report.note(&target.to_string(), &cause);
        let chosen = Chosen { target: target.clone(), version: each.version };
        let kind = EventKind::Tier;
        Some(Act::Move(chosen, Event { kind, target, resource, cause: Some(cause), seq: 0 }))
    }
}
