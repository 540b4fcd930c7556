//! Tiers: the place of a memory in the consolidation hierarchy, and its moves.
//!
//! OMIR R1 records a record's tier and leaves the policy to us; it asks that promotion follow age ×
//! importance × access and that an untouched, unimportant memory drift outward (Memory Semantics
//! §3). The rule here is a pure function, [`next`]: one step. [`current`] repeats it until nothing moves,
//! and so tells where a record that was stored a while ago is by now. A store that asks it at each read need not write
//! a record again only because time has passed.
//!
//! ```text
//!            age               age and strength           faded, not anchored
//!  working ───────▶ session ──────────────────▶ longterm ───────────────────▶ archive
//!     └────────────────┴─── faded, not anchored ───▲ ◀──────────────────────────┘
//!        (one step at a time on its way out)            remembered again, or anchored
//! ```
//!
//! Invariants, for any inputs and any policy, NaN included:
//! - One call moves a record by at most one step along [`Tier::ALL`].
//! - Repeated calls with the same inputs come to rest within three steps; none undoes another. A
//!   record leaves the archive only if the rule that sends it there does not apply.
//! - An anchored record never moves to the archive.
//!
//! Only `+ - * /` and comparisons: every platform decides alike.

use core::fmt;
use core::str::FromStr;

/// A level of the memory hierarchy: OMIR's `MemoryRecord.tier`. Ordered from hot to cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Tier {
    /// Active, in focus, short-lived: the smallest and hottest set. What a record without `tier` is.
    #[default]
    Working,
    /// Bounded to a task or conversation.
    Session,
    /// Consolidated knowledge.
    Longterm,
    /// Cold, near-permanent, retrieved in bulk.
    Archive,
}

impl Tier {
    /// Every tier, from hot to cold.
    pub const ALL: [Tier; 4] = [Tier::Working, Tier::Session, Tier::Longterm, Tier::Archive];

    /// The word used in OMIR documents and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Tier::Working => "working",
            Tier::Session => "session",
            Tier::Longterm => "longterm",
            Tier::Archive => "archive",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is not a [`Tier`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownTier;

impl fmt::Display for UnknownTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected working, session, longterm or archive")
    }
}

impl core::error::Error for UnknownTier {}

impl FromStr for Tier {
    type Err = UnknownTier;

    /// Reads exactly the words of [`Tier::as_str`]; anything else is [`UnknownTier`].
    fn from_str(word: &str) -> Result<Tier, UnknownTier> {
        Tier::ALL.into_iter().find(|t| t.as_str() == word).ok_or(UnknownTier)
    }
}

/// Input of the rule from one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierInputs {
    /// Hours since the record was encoded (`createdAt`). Negative means the clock went back, and
    /// reads as "too young".
    pub age_hours: f64,
    /// `importance`, in [0, 1]. Values outside are taken as the nearer end.
    pub importance: f64,
    /// `decay.accessCount`.
    pub access_count: u32,
    /// Retrievability now, in [0, 1]: [`Decay::retrievability`](crate::forgetting::Decay::retrievability).
    pub retrievability: f64,
    /// `decay.anchored`.
    pub anchored: bool,
}

impl TierInputs {
    /// Returns the strength of the memory's claim to its place, in [0, 1]:
    ///
    /// ```text
    /// strength = 1 − (1 − importance) · k / (n + k)
    /// ```
    ///
    /// with `n` the accesses and `k` = [`TierPolicy::access_scale`]. Importance or repeated access
    /// suffices alone and each adds to the other: a noisy-OR (Pearl, *Probabilistic Reasoning in
    /// Intelligent Systems*, 1988, §4.3) of `importance` and the saturating share `n / (n + k)`.
    /// The blend is our own; OMIR names the ingredients only.
    pub fn strength(&self, policy: &TierPolicy) -> f64 {
        let unimportance = 1.0 - self.importance.clamp(0.0, 1.0);
        let scale = policy.access_scale;
        1.0 - unimportance * (scale / (f64::from(self.access_count) + scale))
    }
}

/// The thresholds of the rule. Every comparison with NaN is false: such a threshold is never met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierPolicy {
    /// Age in hours from which a record leaves `working`, whatever its strength: that set stays
    /// small. Default 1.
    pub session_after_hours: f64,
    /// Age in hours from which a strong record may leave `session`. Default 24: consolidation
    /// waits a day.
    pub longterm_after_hours: f64,
    /// Strength, in [0, 1], from which it does: see [`TierInputs::strength`]. Default 0.6, which an
    /// importance of 0.6 reaches alone, and one of 0.5 with a single access.
    pub longterm_strength: f64,
    /// Accesses, above zero, that count for as much as an importance of one half. Default 4.
    pub access_scale: f64,
    /// Retrievability, in [0, 1], below which an unanchored record drifts to `archive`. Default
    /// 0.1: untouched for 33 half-lives, 231 days at the default half-life of a week.
    pub archive_below: f64,
    /// Retrievability, in [0, 1], from which an archived record returns to `longterm`. Default 0.5,
    /// well above [`TierPolicy::archive_below`], so that a record near the border does not
    /// commute: an access takes it back, and 33 new half-lives of silence take it away again.
    pub restore_at: f64,
}

impl Default for TierPolicy {
    fn default() -> TierPolicy {
        TierPolicy {
            session_after_hours: 1.0,
            longterm_after_hours: 24.0,
            longterm_strength: 0.6,
            access_scale: 4.0,
            archive_below: 0.1,
            restore_at: 0.5,
        }
    }
}

/// The reason why [`next`] moved a record, or did not. `Display` gives one clause for people to read.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum TierReason {
    /// No rule applies: the record stays.
    Stays,
    /// `working` → `session`: old enough.
    Aged {
        /// The record's age in hours.
        age_hours: f64,
        /// The age asked for.
        needed_hours: f64,
    },
    /// `session` → `longterm`: old enough and strong enough.
    Consolidated {
        /// The record's strength, in [0, 1].
        strength: f64,
        /// The strength asked for.
        needed: f64,
    },
    /// One step toward `archive`: hardly retrievable any more, and not anchored.
    Faded {
        /// The record's retrievability, in [0, 1].
        retrievability: f64,
        /// The level it fell below.
        below: f64,
    },
    /// `archive` → `longterm`: retrievable again.
    Remembered {
        /// The record's retrievability, in [0, 1].
        retrievability: f64,
        /// The level it reached.
        needed: f64,
    },
    /// `archive` → `longterm`: anchored records do not stay in the archive.
    Anchored,
}

impl fmt::Display for TierReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierReason::Stays => f.write_str("no rule asks it to move"),
            TierReason::Aged { age_hours, needed_hours } => {
                write!(f, "age {age_hours:.2} h reached {needed_hours:.2} h")
            }
            TierReason::Consolidated { strength, needed } => {
                write!(f, "strength {strength:.3} reached {needed:.3}")
            }
            TierReason::Faded { retrievability, below } => {
                write!(f, "retrievability {retrievability:.3} fell below {below:.3}")
            }
            TierReason::Remembered { retrievability, needed } => {
                write!(f, "retrievability {retrievability:.3} reached {needed:.3} again")
            }
            TierReason::Anchored => f.write_str("anchored records do not stay in the archive"),
        }
    }
}

/// The tier a record should be in next, at most one step from `tier`, and why.
///
/// When [`TierReason::Stays`] comes back the tier is unchanged; every other reason is a move. The
/// rules, first match wins:
///
/// 1. Not anchored and retrievability below `archive_below`: one step colder, to `archive` at last.
/// 2. `working` and age ≥ `session_after_hours`: `session`.
/// 3. `session`, age ≥ `longterm_after_hours` and strength ≥ `longterm_strength`: `longterm`.
/// 4. `archive` and anchored, or retrievability ≥ `restore_at`: back to `longterm`.
pub fn next(tier: Tier, inputs: &TierInputs, policy: &TierPolicy) -> (Tier, TierReason) {
    let retrievability = inputs.retrievability;
    if !inputs.anchored && retrievability < policy.archive_below {
        let reason = TierReason::Faded { retrievability, below: policy.archive_below };
        return match tier {
            Tier::Working => (Tier::Session, reason),
            Tier::Session => (Tier::Longterm, reason),
            Tier::Longterm => (Tier::Archive, reason),
            Tier::Archive => (Tier::Archive, TierReason::Stays),
        };
    }
    match tier {
        Tier::Working if inputs.age_hours >= policy.session_after_hours => {
            let reason = TierReason::Aged {
                age_hours: inputs.age_hours,
                needed_hours: policy.session_after_hours,
            };
            (Tier::Session, reason)
        }
        Tier::Session if inputs.age_hours >= policy.longterm_after_hours => {
            let (strength, needed) = (inputs.strength(policy), policy.longterm_strength);
            if strength >= needed {
                (Tier::Longterm, TierReason::Consolidated { strength, needed })
            } else {
                (Tier::Session, TierReason::Stays)
            }
        }
        Tier::Archive if inputs.anchored => (Tier::Longterm, TierReason::Anchored),
        Tier::Archive if retrievability >= policy.restore_at => {
            let reason = TierReason::Remembered { retrievability, needed: policy.restore_at };
            (Tier::Longterm, reason)
        }
        Tier::Working | Tier::Session | Tier::Longterm | Tier::Archive => (tier, TierReason::Stays),
    }
}

/// Facts about a record since it was put into its tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// The tier it was stored with.
    pub tier: Tier,
    /// Hours since then.
    pub hours: f64,
    /// True if it was accessed since.
    pub accessed: bool,
}

/// Returns the current tier of a record stored as `stored`, and the last rule that moved it there.
///
/// [`next`], repeated until the record rests, with two guards:
///
/// - For the first [`TierPolicy::session_after_hours`] in the store nothing moves, whatever dates
///   the record states: what was stored a moment ago is given back as it came.
/// - What was stored in the archive is not remembered again by its dates alone, but by an access.
///
/// The answer depends on its arguments only. While time passes and nobody accesses the record, it
/// moves outward along the path of [`passes`] and never back.
pub fn current(stored: &Stored, inputs: &TierInputs, policy: &TierPolicy) -> (Tier, TierReason) {
    let (mut tier, mut why) = (stored.tier, TierReason::Stays);
    walk(stored, inputs, policy, |to, reason| (tier, why) = (to, reason));
    (tier, why)
}

/// Returns true if a record stored as `stored` has been in `tier` on its way to where it is by now.
pub fn passes(stored: &Stored, inputs: &TierInputs, policy: &TierPolicy, tier: Tier) -> bool {
    let mut passed = stored.tier == tier;
    walk(stored, inputs, policy, |to, _| passed |= to == tier);
    passed
}

/// Calls `f` with each step of a stored record.
fn walk(
    stored: &Stored,
    inputs: &TierInputs,
    policy: &TierPolicy,
    mut f: impl FnMut(Tier, TierReason),
) {
    // Not so for NaN: then nothing moves.
    let is_old_enough = stored.hours >= policy.session_after_hours;
    if !is_old_enough {
        return;
    }
    let mut tier = stored.tier;
    // `next` comes to rest within three steps; the bound only says so to the reader.
    for _ in Tier::ALL {
        let (to, reason) = next(tier, inputs, policy);
        let is_by_date = matches!(reason, TierReason::Remembered { .. }) && !stored.accessed;
        if to == tier || is_by_date {
            return;
        }
        tier = to;
        f(to, reason);
    }
}

#[cfg(test)]
mod tests;
