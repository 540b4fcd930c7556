//! The fading of a memory, and the effect of an access.
//!
//! OMIR R1 stores the *state* of forgetting (`MemoryRecord.decay`) and leaves the curve to the
//! implementation (Memory Semantics §2). This is ours: pure functions of that state and of the time
//! elapsed since `lastAccess`. There is no clock here; the caller reads one and hands in hours.
//!
//! The curve is a power law,
//!
//! ```text
//! R(t) = (1 + 3 t/h)^(-1/2)        t, h in hours; R(0) = 1, R(h) = 1/2
//! ```
//!
//! Sources: Wickelgren, "Single-trace fragility theory of memory dynamics", *Memory & Cognition* 2
//! (1974), gives the form `(1 + b t)^-c`; Wixted & Carpenter, "The Wickelgren power law and the
//! Ebbinghaus savings function", *Psychological Science* 18 (2007), fit it to data. FSRS 4.5
//! (Free Spaced Repetition Scheduler) fixes the exponent at −1/2 and writes
//! `R = (1 + 19/81 · t/S)^(-1/2)`, where `S` is the time to 0.9 because `0.9^-2 − 1 = 19/81`. We
//! state the time to 1/2 instead, and `0.5^-2 − 1 = 3`: the same family, `h = 243/19 · S`.
//!
//! Invariants:
//! - Only `+ - * /` and the correctly rounded square root are used, in a fixed order and never
//!   fused, so IEEE 754 leaves one possible answer: a desktop and a microcontroller without a
//!   floating-point unit agree to the last bit.
//! - No result is NaN; retrievability stays in [0, 1] and never rises as time passes.

/// Below this an anchored record's retrievability does not fall. Dimensionless, in [0, 1].
///
/// OMIR R1, Memory Semantics §2, asks for a floor and leaves its height to us: one half, what an
/// unanchored record has left after one half-life.
pub const ANCHOR_FLOOR: f64 = 0.5;

/// The `g` of the reinforcement rule, dimensionless: see [`Decay::accessed`].
///
/// With 2, the first access exactly one half-life after the last doubles the half-life.
pub const REINFORCEMENT_GAIN: f64 = 2.0;

/// Time after which half of a memory's retrievability is left, in hours. Positive and finite.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct HalfLife(f64);

impl HalfLife {
    /// Half-life of a record without `halfLifeHours`: 168 h, one week.
    pub const DEFAULT: HalfLife = HalfLife(168.0);

    /// The longest half-life accesses can build up: 20 Julian years, 20 · 365.25 · 24 = 175 320 h.
    ///
    /// This caps reinforcement, not what a producer may state. A record that arrives with a longer
    /// half-life keeps it, and fades by it.
    pub const MAX: HalfLife = HalfLife(175_320.0);

    /// A half-life of that many hours; `None` unless `hours` is finite and above zero.
    pub const fn new(hours: f64) -> Option<HalfLife> {
        if hours.is_finite() && hours > 0.0 { Some(HalfLife(hours)) } else { None }
    }

    /// The half-life in hours.
    pub const fn hours(self) -> f64 {
        self.0
    }
}

impl Default for HalfLife {
    fn default() -> HalfLife {
        HalfLife::DEFAULT
    }
}

/// The forgetting state of one record: OMIR's `decay` block without its clock.
///
/// `lastAccess` is not here. Each method is given the hours elapsed since then, so that a value of
/// this type means the same on a machine with a calendar and on one that only counts up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Decay {
    /// Time from the last access to retrievability 1/2.
    pub half_life: HalfLife,
    /// Accesses so far. Stays at `u32::MAX` once there.
    pub access_count: u32,
    /// True if the record resists decay: see [`ANCHOR_FLOOR`].
    pub anchored: bool,
}

impl Decay {
    /// Retrievability `elapsed_hours` after the last access: [`retrievability`], but never below
    /// [`ANCHOR_FLOOR`] for an anchored record.
    pub fn retrievability(&self, elapsed_hours: f64) -> f64 {
        let plain = retrievability(self.half_life, elapsed_hours);
        if self.anchored && plain < ANCHOR_FLOOR { ANCHOR_FLOOR } else { plain }
    }

    /// The state after an access `elapsed_hours` after the previous one.
    ///
    /// ```text
    /// h' = h · (1 + g · (1 − R) / (1 + n))      n' = n + 1
    /// ```
    ///
    /// `g` is [`REINFORCEMENT_GAIN`], `n` the accesses before this one and `R` the plain
    /// [`retrievability`] at this moment; the anchor's floor does not enter, so anchoring a record
    /// and releasing it again leaves what was learned unchanged. The result is capped at
    /// [`HalfLife::MAX`] and is never shorter than before. The caller sets `lastAccess`.
    ///
    /// The gain grows with what had been forgotten, the spacing effect (Cepeda et al.,
    /// "Distributed practice in verbal recall tasks", *Psychological Bulletin* 132, 2006; FSRS has
    /// the same dependence on `1 − R`). Dividing by `1 + n` is our choice of diminishing returns
    /// (docs/keys.md, "Retrievability").
    #[must_use]
    pub fn accessed(&self, elapsed_hours: f64) -> Decay {
        let before = self.half_life.0;
        let forgotten = 1.0 - retrievability(self.half_life, elapsed_hours);
        let factor = 1.0 + REINFORCEMENT_GAIN * forgotten / (1.0 + f64::from(self.access_count));
        let grown = before * factor;
        let after = if before >= HalfLife::MAX.0 {
            before
        } else if grown > HalfLife::MAX.0 {
            HalfLife::MAX.0
        } else {
            grown
        };
        Decay {
            half_life: HalfLife(after),
            access_count: self.access_count.saturating_add(1),
            anchored: self.anchored,
        }
    }
}

/// Retrievability `elapsed_hours` after the last access: `(1 + 3 t/h)^(-1/2)`, in [0, 1].
///
/// Exactly 1 at zero and exactly 1/2 after one half-life. A negative elapsed time (the clock was
/// set back) counts as zero, and so does NaN; infinity gives 0. Source: the module's head.
///
/// Evaluated as `1 / sqrt(1 + 3 * (t / h))`, rounding after each step.
pub fn retrievability(half_life_hours: HalfLife, elapsed_hours: f64) -> f64 {
    if elapsed_hours > 0.0 {
        1.0 / libm::sqrt(1.0 + 3.0 * (elapsed_hours / half_life_hours.0))
    } else {
        1.0
    }
}

/// Hours from the last access until an unanchored record has faded to `level`: the inverse of
/// [`retrievability`], `t = h/3 · (1/level² − 1)`.
///
/// `None` unless 0 < `level` ≤ 1, or when the answer exceeds what an `f64` holds. The answer is
/// rounded, so the retrievability at that instant may lie a few units in the last place to either
/// side of `level`. An anchored record does not fade below [`ANCHOR_FLOOR`]; for it, ask only about
/// levels above.
pub fn hours_until(half_life: HalfLife, level: f64) -> Option<f64> {
    if !(level > 0.0 && level <= 1.0) {
        return None;
    }
    let hours = half_life.0 / 3.0 * (1.0 / (level * level) - 1.0);
    hours.is_finite().then_some(hours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hours(h: f64) -> HalfLife {
        HalfLife::new(h).unwrap()
    }

    fn decay(half_life: f64, access_count: u32) -> Decay {
        Decay { half_life: hours(half_life), access_count, anchored: false }
    }

    #[test]
    fn retrievability_by_hand() {
        let h = hours(24.0);
        assert_eq!(retrievability(h, 0.0), 1.0); // 1/sqrt(1)
        assert_eq!(retrievability(h, 24.0), 1.0 / 2.0); // t = h:    1 + 3     = 4,   1/2
        assert_eq!(retrievability(h, 64.0), 1.0 / 3.0); // t = 8h/3: 1 + 3·8/3 = 9,   1/3
        assert_eq!(retrievability(h, 120.0), 1.0 / 4.0); // t = 5h:  1 + 15    = 16,  1/4
        assert_eq!(retrievability(h, 192.0), 1.0 / 5.0); // t = 8h:  1 + 24    = 25,  1/5
        assert_eq!(retrievability(h, 792.0), 1.0 / 10.0); // t = 33h: 1 + 99   = 100, 1/10
    }

    #[test]
    fn exact_bits_of_an_inexact_value() {
        // 1/sqrt(1 + 3·10/168) = 0.921132372943676583… with 60 digits; the steps in binary64, taken
        // in Python, give these bits. A platform that disagrees in the last one fails here.
        let r = retrievability(HalfLife::DEFAULT, 10.0);
        assert_eq!(r.to_bits(), 0x3fed_79ea_9922_8f15, "{r}");
    }

    #[test]
    fn odd_elapsed_times() {
        let h = HalfLife::DEFAULT;
        assert_eq!(retrievability(h, -5.0), 1.0);
        assert_eq!(retrievability(h, f64::NEG_INFINITY), 1.0);
        assert_eq!(retrievability(h, f64::NAN), 1.0);
        assert_eq!(retrievability(h, f64::INFINITY), 0.0);
        assert_eq!(retrievability(hours(1e-300), 1e300), 0.0); // t/h overflows
    }

    #[test]
    fn fades_slower_than_an_exponential_after_the_half_life() {
        // At t = 3h: 1/sqrt(10) = 0.316, while 2^-3 = 0.125.
        assert!(retrievability(hours(1.0), 3.0) > 0.125);
    }

    #[test]
    fn anchored_by_hand() {
        let d = Decay { anchored: true, ..decay(24.0, 0) };
        assert_eq!(d.retrievability(0.0), 1.0);
        assert_eq!(d.retrievability(8.0), 1.0 / libm::sqrt(2.0)); // 1 + 3·8/24 = 2: above the floor
        assert_eq!(d.retrievability(120.0), 0.5); // 1/4 without the anchor
        assert_eq!(d.retrievability(f64::INFINITY), 0.5);
    }

    #[test]
    fn reinforcement_by_hand() {
        // (h, n, t, h'), with h' = h · (1 + 2(1 − R)/(1 + n))
        let table = [
            (24.0, 0, 24.0, 48.0),    // R = 1/2: 1 + 2·(1/2)/1 = 2
            (24.0, 1, 24.0, 36.0),    // R = 1/2: 1 + 2·(1/2)/2 = 3/2
            (24.0, 3, 24.0, 30.0),    // R = 1/2: 1 + 2·(1/2)/4 = 5/4
            (24.0, 0, 120.0, 60.0),   // R = 1/4: 1 + 2·(3/4)/1 = 5/2
            (24.0, 2, 120.0, 36.0),   // R = 1/4: 1 + 2·(3/4)/3 = 3/2
            (168.0, 0, 168.0, 336.0), // the default doubles after its first half-life
            (24.0, 0, 0.0, 24.0),     // R = 1: nothing forgotten, nothing gained
            (24.0, 0, -9.0, 24.0),    // clock went back: as at once
        ];
        for (h, n, t, expected) in table {
            let after = decay(h, n).accessed(t);
            assert_eq!(after.half_life.hours(), expected, "h={h} n={n} t={t}");
            assert_eq!(after.access_count, n + 1);
        }
    }

    #[test]
    fn reinforcement_ends_at_the_cap() {
        // 100 000 h doubled would be 200 000 h, above 175 320 h.
        assert_eq!(decay(100_000.0, 0).accessed(100_000.0).half_life, HalfLife::MAX);
        // A producer's longer half-life is neither raised nor cut.
        assert_eq!(decay(1e6, 0).accessed(1e6).half_life, hours(1e6));
        assert_eq!(decay(f64::MAX, 0).accessed(f64::MAX).half_life, hours(f64::MAX));
        let worn = decay(24.0, u32::MAX).accessed(24.0);
        assert_eq!(worn.access_count, u32::MAX);
    }

    #[test]
    fn hours_until_by_hand() {
        let h = hours(24.0);
        assert_eq!(hours_until(h, 1.0), Some(0.0)); // 8 · (1 − 1)
        assert_eq!(hours_until(h, 0.5), Some(24.0)); // 8 · (4 − 1)
        assert_eq!(hours_until(h, 0.25), Some(120.0)); // 8 · (16 − 1)
        for level in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY, 1e-200] {
            assert_eq!(hours_until(h, level), None, "{level}");
        }
    }

    #[test]
    fn half_life_rejects_what_is_not_a_duration() {
        for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(HalfLife::new(bad), None, "{bad}");
        }
        assert_eq!(HalfLife::new(168.0), Some(HalfLife::default()));
        assert_eq!(Decay::default(), decay(168.0, 0));
        assert_eq!(HalfLife::MAX.hours(), 20.0 * 365.25 * 24.0);
    }

    fn any_half_life() -> impl Strategy<Value = HalfLife> {
        prop_oneof![1e-3..1e6f64, prop::num::f64::POSITIVE]
            .prop_filter_map("a half-life", HalfLife::new)
    }

    fn any_hours() -> impl Strategy<Value = f64> {
        prop_oneof![-10.0..1e7f64, prop::num::f64::ANY]
    }

    proptest! {
        #[test]
        fn in_unit_interval_and_anchored_above_floor(h in any_half_life(), t in any_hours(), n: u32) {
            let plain = Decay { half_life: h, access_count: n, anchored: false };
            let r = plain.retrievability(t);
            prop_assert!((0.0..=1.0).contains(&r), "{}", r);
            let held = Decay { anchored: true, ..plain }.retrievability(t);
            prop_assert!((ANCHOR_FLOOR..=1.0).contains(&held));
            prop_assert!(held >= r);
        }

        #[test]
        fn never_rises_with_time(h in any_half_life(), a in 0.0..1e9f64, b in 0.0..1e9f64) {
            let (early, late) = if a <= b { (a, b) } else { (b, a) };
            prop_assert!(retrievability(h, late) <= retrievability(h, early));
        }

        #[test]
        fn half_is_exact_for_every_half_life(h in any_half_life()) {
            prop_assert_eq!(retrievability(h, h.hours()), 0.5);
        }

        #[test]
        fn access_never_shortens(h in any_half_life(), n: u32, t in any_hours(), anchored: bool) {
            let before = Decay { half_life: h, access_count: n, anchored };
            let after = before.accessed(t);
            prop_assert!(after.half_life >= before.half_life);
            prop_assert!(HalfLife::new(after.half_life.hours()).is_some());
            prop_assert!(after.half_life <= HalfLife::MAX || after.half_life == h);
            prop_assert_eq!(after.access_count, n.saturating_add(1));
            prop_assert_eq!(after.anchored, anchored);
        }

        #[test]
        fn more_accesses_gain_no_more(h in 1.0..1e4f64, n in 0..1000u32, t in 0.0..1e5f64) {
            let gain = |n| decay(h, n).accessed(t).half_life;
            prop_assert!(gain(n + 1) <= gain(n));
        }

        #[test]
        fn longer_gaps_gain_no_less(h in 1.0..1e4f64, n in 0..1000u32, t in 0.0..1e5f64, more in 0.0..1e5f64) {
            prop_assert!(decay(h, n).accessed(t + more).half_life >= decay(h, n).accessed(t).half_life);
        }

        #[test]
        fn hours_until_inverts(h in 1e-3..1e6f64, level in 1e-6..1.0f64) {
            let t = hours_until(hours(h), level).unwrap();
            prop_assert!((retrievability(hours(h), t) - level).abs() <= 1e-14);
        }
    }
}
