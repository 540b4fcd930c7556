//! What is seen of a version without looking at its row.

use omir_core::reference::ResourceType;

use super::{Catalog, neutral};
use crate::index::doc::{self, Doc, DocId};
use crate::index::producers::OURS;

/// What can be seen of a version at a glance, in five bytes: enough to pass over most candidates
/// of a query for common words without touching their rows.
#[derive(Debug, Clone, Copy)]
pub struct Glance {
    /// Whether every ordinary query sees it: live, no intention, valid for ever.
    pub is_plain: bool,
    importance: u8,
    confidence: u8,
    /// As of [`Catalog::refresh_glances`]; it only falls from then on, unless there is an access.
    retrievability: u8,
    /// As of then, too.
    recency: u8,
}

impl Glance {
    /// Of a version that comes in after the glances were refreshed at `glanced_at` (microseconds).
    pub(super) fn of(doc: &Doc, confidence: f64, glanced_at: i64) -> Self {
        // What another producer's importance counts for moves with every memory that comes or goes.
        // The same goes for a bond, which grows with use.
        let is_bond = doc.class.resource_type() == ResourceType::Relationship;
        let is_fixed = !is_bond && (doc.producer == OURS || doc.importance.is_nan());
        Self {
            is_plain: false,
            importance: if is_fixed { Self::up(neutral(doc.importance)) } else { u8::MAX },
            confidence: Self::up(confidence),
            // Both only fall, so what they would have been then is never too low from then on.
            retrievability: doc
                .access
                .map_or(u8::MAX, |access| Self::up(doc::retrievability(&access, glanced_at))),
            recency: Self::up(doc.recency(glanced_at)),
        }
    }

    /// Rounded up, so that a bound made of it is never too low.
    fn up(score: f64) -> u8 {
        (score.clamp(0.0, 1.0) * 255.0).ceil() as u8
    }

    /// There was an access: it may be as retrievable as anything.
    pub(super) fn used(&mut self) {
        self.retrievability = u8::MAX;
    }

    /// Not less than its retrievability, if [`Catalog::glances_hold_at`] says so.
    pub fn retrievability(self) -> f64 {
        f64::from(self.retrievability) / 255.0
    }

    /// Not less than its recency, likewise.
    pub fn recency(self) -> f64 {
        f64::from(self.recency) / 255.0
    }

    /// Not less than its importance.
    pub fn importance(self) -> f64 {
        f64::from(self.importance) / 255.0
    }

    /// Not less than its confidence.
    pub fn confidence(self) -> f64 {
        f64::from(self.confidence) / 255.0
    }
}

impl Catalog {
    /// One version, at a glance.
    pub fn glance(&self, id: DocId) -> Glance {
        self.glances[id as usize]
    }

    /// Works out anew how retrievable and how recent everything is at `now` (microseconds), for the glances.
    pub fn refresh_glances(&mut self, now: i64) {
        for id in 0..self.docs.len() {
            if self.docs[id].is_live() {
                let retrievability = self.retrievability(id as DocId, false, now);
                let recency = self.docs[id].recency(now);
                let glance = &mut self.glances[id];
                glance.retrievability = Glance::up(retrievability);
                glance.recency = Glance::up(recency);
            }
        }
        self.glanced_at = now;
    }

    /// Whether the retrievability and recency of the glances are bounds at `now`: memories fade as time
    /// goes on, but a clock may be set back.
    pub fn glances_hold_at(&self, now: i64) -> bool {
        now >= self.glanced_at
    }
}
