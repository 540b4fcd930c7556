//! Ranking: the scores and the tier of a version at a given time, as time and use have changed them.

use omir_core::reference::ResourceType;
use omir_core::tier::{Tier, TierReason};

use super::{Catalog, TierCount};
use crate::index::doc::{self, Doc, DocId, or_neutral};
use crate::index::facts::DecayState;
use crate::index::fading::Fading;

impl Catalog {
    /// The rules by which memories move between tiers and bonds fade.
    pub fn fading(&self) -> Option<&Fading> {
        self.usage.fading()
    }

    /// Sets the rules; `None` leaves everything as it was stored.
    pub fn set_fading(&mut self, fading: Option<Fading>) {
        self.usage.set_fading(fading);
        self.tier_counts.all_changed();
    }

    /// The importance of a version as it is ranked at `now` (microseconds): see
    /// [`Producers`](crate::index::producers::Producers), and for relationships [`Fading::bond`].
    /// `as_stored` leaves out their use since.
    pub fn importance(&self, id: DocId, as_stored: bool, now: i64) -> f64 {
        let doc = self.doc(id);
        let kind = doc.class.resource_type;
        let stated = or_neutral(self.producers.comparable(doc.producer, kind, doc.importance));
        match self.fading() {
            Some(fading) if doc.class.resource_type() == ResourceType::Relationship => {
                let bond = if as_stored { None } else { self.usage.bond(id) };
                fading.bond(stated, doc, bond, now)
            }
            _ => stated,
        }
    }

    /// The confidence of a version as it is ranked: ours as stated, and that of other producers by our own rule if
    /// they give the evidence.
    pub fn confidence(&self, id: DocId, doc: &Doc) -> f64 {
        self.producers.belief(doc.producer, id).unwrap_or(or_neutral(doc.confidence))
    }

    /// The tier of a record at `now` (microseconds), and the last rule that moved it there since it was stored;
    /// `None` for other resources. `as_stored` leaves out accesses since. A version that was superseded or forgotten
    /// stays in its tier of then.
    pub fn tier(&self, id: DocId, as_stored: bool, now: i64) -> Option<(Tier, TierReason)> {
        let doc = self.doc(id);
        let stored = doc.stored_tier()?;
        let Some(fading) = self.fading() else { return Some((stored, TierReason::Stays)) };
        let access = if as_stored { doc.access } else { self.decay_state(id) }?;
        Some(fading.tier(doc, &access, now.min(doc.retired)))
    }

    /// The tier of a record at `now` if it is another than the stored one.
    pub fn moved(&self, id: DocId, as_stored: bool, now: i64) -> Option<Tier> {
        let (tier, _) = self.tier(id, as_stored, now)?;
        (self.doc(id).stored_tier() != Some(tier)).then_some(tier)
    }

    /// The decay state of a version with all accesses so far; `None` if it does not fade.
    pub fn decay_state(&self, id: DocId) -> Option<DecayState> {
        self.usage.decay_state(id, self.doc(id))
    }

    /// Probability that a version can still be recalled at `now` (`docs/keys.md`, "Retrievability"). Only memory
    /// records have a decay block in R1, so nothing else fades. `as_stored` leaves out accesses
    /// that came after the version was recorded.
    pub fn retrievability(&self, id: DocId, as_stored: bool, now: i64) -> f64 {
        let access = if as_stored { self.doc(id).access } else { self.decay_state(id) };
        access.map_or(1.0, |access| doc::retrievability(&access, now))
    }

    /// Brings the bounds of retrievability and recency up to `now` (microseconds).
    pub fn refresh_score_bounds(&mut self, now: i64) {
        for id in 0..self.docs().len() as DocId {
            let doc = self.doc(id);
            if doc.is_live() {
                let recency = doc.recency(now);
                let retrievability = self.retrievability(id, false, now);
                self.score_bounds.refresh(id, retrievability, recency);
            }
        }
        self.score_bounds.refreshed(now);
    }

    /// Goes on with a count of tiers; returns true when it is complete. Bounded, so that a change need not wait for
    /// all of it.
    pub fn count_tiers(&self, count: &mut TierCount) -> bool {
        let now = count.now();
        self.tier_counts.go_on(count, self.docs().len(), |id| {
            let doc = self.doc(id);
            if !doc.is_live() {
                return None;
            }
            let (tier, _) = self.tier(id, false, now)?;
            let until = match (self.fading(), self.decay_state(id)) {
                (Some(fading), Some(access)) => fading.stays_until(doc, &access, now),
                _ => i64::MAX,
            };
            Some((tier, until))
        })
    }
}
