//! Score bounds: upper bounds of each version's scores, which prune candidates without a look at their rows.

use omir_core::reference::ResourceType;

use crate::index::doc::{self, Doc, DocId, or_neutral};
use crate::index::producers::OURS;
use crate::index::scores::ScorePart;

/// The parts that have a bound: those that depend on the version alone. Retrievability and recency are as of
/// the last refresh; they only fall from then on, unless there is an access.
const BOUNDED: [ScorePart; 4] =
    [ScorePart::Retrievability, ScorePart::Recency, ScorePart::Importance, ScorePart::Confidence];

/// Upper bounds of a version's scores, in five bytes.
#[derive(Debug, Clone, Copy)]
pub struct ScoreBound {
    /// True if the version is live, and every ordinary query sees it.
    pub is_plain: bool,
    /// In the order of [`BOUNDED`].
    upper: [u8; BOUNDED.len()],
}

impl ScoreBound {
    /// Rounded up, so that a bound made of it is never too low.
    fn up(score: f64) -> u8 {
        let score = if score.is_nan() { 1.0 } else { score };
        (score.clamp(0.0, 1.0) * 255.0).ceil() as u8
    }

    /// The most that the parts with a bound bring to a score, if [`ScoreBounds::hold_at`] says so. The sum may be too low by what
    /// rounding makes of four terms.
    #[inline]
    pub fn most(self, weights: &BoundWeights) -> f64 {
        weights.0.iter().zip(self.upper).map(|(weight, upper)| weight * f64::from(upper)).sum()
    }
}

/// The weights of the parts with a bound, in one query.
#[derive(Debug, Clone, Copy)]
pub struct BoundWeights([f64; BOUNDED.len()]);

impl BoundWeights {
    /// From the weight of each part.
    pub fn of(weight: impl Fn(ScorePart) -> f64) -> Self {
        Self(BOUNDED.map(|part| weight(part) / 255.0))
    }
}

/// The bounds of all versions.
#[derive(Debug, Default)]
pub struct ScoreBounds {
    bounds: Vec<ScoreBound>,
    /// The time of the last refresh; microseconds.
    refreshed_at: i64,
}

impl ScoreBounds {
    /// The bounds of one version.
    #[inline]
    pub fn of(&self, id: DocId) -> ScoreBound {
        self.bounds[id as usize]
    }

    /// Returns true if the bounds hold at `now`: memories fade as time goes on, but a clock may be set back.
    pub fn hold_at(&self, now: i64) -> bool {
        now >= self.refreshed_at
    }

    /// Adds the bounds of the next version.
    pub(super) fn push(&mut self, doc: &Doc, confidence: f64) {
        // The rank of another producer's importance moves with every memory that comes or goes, and a bond grows
        // with use.
        let is_bond = doc.class.resource_type() == ResourceType::Relationship;
        let is_fixed = !is_bond && (doc.producer == OURS || doc.importance.is_nan());
        let access = doc.access;
        // Both only fall, so their value at the last refresh is never too low.
        let retrievability = access.map(|access| doc::retrievability(&access, self.refreshed_at));
        let upper = [
            retrievability.map_or(u8::MAX, ScoreBound::up),
            ScoreBound::up(doc.recency(self.refreshed_at)),
            if is_fixed { ScoreBound::up(or_neutral(doc.importance)) } else { u8::MAX },
            ScoreBound::up(confidence),
        ];
        self.bounds.push(ScoreBound { is_plain: false, upper });
    }

    pub(super) fn set_plain(&mut self, id: DocId, is_plain: bool) {
        self.bounds[id as usize].is_plain = is_plain;
    }

    /// Notes an access: the version may be as retrievable as any.
    pub(super) fn accessed(&mut self, id: DocId) {
        let [retrievability, ..] = &mut self.bounds[id as usize].upper;
        *retrievability = u8::MAX;
    }

    /// Brings the bounds that fall with time up to date.
    pub(super) fn refresh(&mut self, id: DocId, retrievability: f64, recency: f64) {
        let [old_retrievability, old_recency, ..] = &mut self.bounds[id as usize].upper;
        *old_retrievability = ScoreBound::up(retrievability);
        *old_recency = ScoreBound::up(recency);
    }

    /// Notes that all live versions were refreshed at `now` (microseconds).
    pub(super) fn refreshed(&mut self, now: i64) {
        self.refreshed_at = now;
    }
}
