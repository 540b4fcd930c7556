//! Fading: how time and use change a stored version. They decide the tier of a record, the strength of a
//! relationship, and how likely a memory is needed.
//!
//! Nothing of this is stored. It follows from the stored version, the accesses since and the time it
//! is asked for, by the rules of the core; so no write is spent on it, and it cannot be wrong after a
//! power cut.

use omir_core::bond;
use omir_core::forgetting::{HalfLife, hours_until};
use omir_core::need::need;
use omir_core::tier::{Stored, Tier, TierInputs, TierPolicy, TierReason, current, passes};

use super::doc::{self, Doc, hours, or_neutral};
use super::facts::DecayState;

/// Microseconds of an hour.
const HOUR: f64 = 3_600_000_000.0;
/// Error bound of an instant that is computed from hours; microseconds. Rounding in the rules is below it.
pub(crate) const ROUNDING: i64 = 1000;

/// `hours` after `from`; `None` beyond what an instant can name.
pub(crate) fn after(from: i64, hours: f64) -> Option<i64> {
    let micros = hours * HOUR;
    (micros.abs() < 1e17).then(|| from.saturating_add(micros as i64))
}

/// The rules by which memories move and fade.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fading {
    /// Between tiers.
    pub tiers: TierPolicy,
    /// Time from its last use to half the strength of a relationship.
    pub bond_half_life: HalfLife,
}

/// Activations of both ends of a relationship together since it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bond {
    /// Number of activations.
    pub activations: u32,
    /// The last time; microseconds.
    pub last: i64,
}

impl Bond {
    /// Counts one more at `now`.
    pub fn activated(&mut self, now: i64) {
        self.activations = self.activations.saturating_add(1);
        self.last = self.last.max(now);
    }
}

impl Fading {
    /// Inputs of the rule of tiers for a record with this decay state at `now` (microseconds).
    ///
    /// A record is as old as it says, and not younger than the store has had it. An importance that
    /// is not stated counts as neutral.
    pub fn inputs(&self, doc: &Doc, access: &DecayState, now: i64) -> (Stored, TierInputs) {
        let hours_stored = hours(now.saturating_sub(doc.held_since(now)));
        let stored = Stored {
            tier: doc.stored_tier().unwrap_or_default(),
            hours: hours_stored,
            accessed: doc.access.is_some_and(|before| access.last_access > before.last_access),
        };
        let inputs = TierInputs {
            age_hours: hours(now.saturating_sub(doc.since)).max(hours_stored),
            importance: or_neutral(doc.importance),
            access_count: access.access_count,
            retrievability: doc::retrievability(access, now),
            anchored: access.anchored,
        };
        (stored, inputs)
    }

    /// Tier of a record with this decay state at `now` (microseconds), and the rule that moved it there.
    pub fn tier(&self, doc: &Doc, access: &DecayState, now: i64) -> (Tier, TierReason) {
        let (stored, inputs) = self.inputs(doc, access, now);
        current(&stored, &inputs, &self.tiers)
    }

    /// Returns true if such a record has been in `tier` on its way to its tier of now.
    pub fn passes(&self, doc: &Doc, access: &DecayState, now: i64, tier: Tier) -> bool {
        let (stored, inputs) = self.inputs(doc, access, now);
        passes(&stored, &inputs, &self.tiers, tier)
    }

    /// The instants at which such a record may move if it is not accessed: each rule of tiers begins or ends to
    /// hold at one of them. Microseconds, as exact as the rules are; see [`ROUNDING`].
    pub fn moves(&self, doc: &Doc, access: &DecayState) -> [Option<i64>; 7] {
        let policy = &self.tiers;
        let faded_to = |level| {
            let half_life = HalfLife::new(access.half_life_hours)?;
            after(access.last_access, hours_until(half_life, level)?)
        };
        // A clock that is behind the order of the store makes it as old as it says; see `Doc::held_since`.
        [
            Some(doc.recorded),
            after(doc.recorded, policy.session_after_hours),
            after(doc.since, policy.session_after_hours),
            after(doc.recorded, policy.longterm_after_hours),
            after(doc.since, policy.longterm_after_hours),
            faded_to(policy.archive_below),
            faded_to(policy.restore_at),
        ]
    }

    /// An instant before which the record, if it is not accessed, stays where it is at `now`. At most [`ROUNDING`]
    /// before the move; at or before `now` if the move is as close as that.
    pub fn stays_until(&self, doc: &Doc, access: &DecayState, now: i64) -> i64 {
        let moves = self.moves(doc, access).into_iter().flatten();
        let coming = moves.filter(|at| at.saturating_add(ROUNDING) > now);
        coming.map(|at| at.saturating_sub(ROUNDING)).min().unwrap_or(i64::MAX)
    }

    /// Strength of a relationship at `now` (microseconds) that was stated as `stated`.
    pub fn bond(&self, stated: f64, doc: &Doc, bond: Option<&Bond>, now: i64) -> f64 {
        let Bond { activations, last } = bond.copied().unwrap_or_default();
        let last = if activations == 0 { doc.since } else { last.max(doc.since) };
        let idle = hours(now.saturating_sub(last));
        bond::strength(stated, activations, self.bond_half_life, idle)
    }

    /// Likelihood that such a record is needed again: see [`omir_core::need`].
    pub fn need(&self, doc: &Doc, access: &DecayState, confidence: f64, now: i64) -> f64 {
        let (_, inputs) = self.inputs(doc, access, now);
        need(&inputs, confidence, &self.tiers)
    }
}

impl Default for Fading {
    fn default() -> Self {
        let bond_half_life = HalfLife::new(bond::HALF_LIFE_HOURS).unwrap_or_default();
        Self { tiers: TierPolicy::default(), bond_half_life }
    }
}
