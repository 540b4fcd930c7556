//! The strength of a relationship, which grows with use and fades without.
//!
//! `Relationship.strength` is a synaptic weight (OMIR R1, Memory Semantics §4): it rises when both
//! ends are active together and decays toward zero when they are not. What a relationship states is
//! a snapshot of the moment it was last seen to hold; this is what became of it since.
//!
//! ```text
//! s(n, t) = (1 − (1 − s₀) (1 − η)ⁿ) · (1 + 3 t/h)^(-1/2)
//! ```
//!
//! with `n` co-activations since the snapshot and `t` hours since the last of them. Each closes the
//! share η of what is missing to 1: Hebb's rule (*The Organization of Behavior*, 1949) with a bound,
//! as Oja's ("A simplified neuron model as a principal component analyzer", *Journal of Mathematical
//! Biology* 15, 1982) and every other usable form of it has. The second factor is the curve by which
//! memories fade ([`crate::forgetting`]). Fading does not take back what was learned: one use brings
//! an old bond back to what it was (the savings of relearning; Ebbinghaus, 1885). So its state is
//! two numbers, a count and an instant, and does not depend on when it is read.

use crate::forgetting::{HalfLife, retrievability};

/// The share η of what is missing to 1 that one co-activation closes. Dimensionless.
pub const LEARNING_RATE: f64 = 0.1;

/// Below this a bond no longer tells anything; it is not deleted for that.
pub const FAINT: f64 = 0.05;

/// The half-life of a bond that nothing else is said of: 720 h, thirty days.
pub const HALF_LIFE_HOURS: f64 = 720.0;

/// Strength, in [0, 1], of a bond that was stated as `stated`, was active `activations` times since
/// and last `idle_hours` ago. A stated strength outside [0, 1] is taken as the nearer end, NaN as 0.
pub fn strength(stated: f64, activations: u32, half_life: HalfLife, idle_hours: f64) -> f64 {
    learned(stated, activations) * retrievability(half_life, idle_hours)
}

/// The first factor: what was stated, and what use has added since.
pub fn learned(stated: f64, activations: u32) -> f64 {
    let stated = if stated > 0.0 { stated.min(1.0) } else { 0.0 };
    // (1 − η)ⁿ by squaring: only multiplications, so every platform computes the same bits.
    let (mut missing, mut factor, mut n) = (1.0 - stated, 1.0 - LEARNING_RATE, activations);
    while n > 0 {
        if n & 1 == 1 {
            missing *= factor;
        }
        factor *= factor;
        n >>= 1;
    }
    1.0 - missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strength_by_hand() {
        let month = HalfLife::new(HALF_LIFE_HOURS).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(strength(0.5, 0, month, 0.0), 0.5);
        close(strength(0.5, 1, month, 0.0), 0.55); // 0.5 + 0.1 · 0.5
        close(strength(0.5, 2, month, 0.0), 0.595); // 0.55 + 0.1 · 0.45
        close(strength(0.5, 0, month, 720.0), 0.25); // half of it after a half-life
        close(strength(0.0, 0, month, 0.0), 0.0);
        close(strength(f64::NAN, 0, month, 0.0), 0.0);
        assert_eq!(strength(1.0, 9, month, 0.0), 1.0);
    }

    proptest! {
        #[test]
        fn bounded_rising_with_use_and_falling_without(
            (stated, n, more) in (0.0..=1.0f64, 0..10_000u32, 0..10_000u32),
            (idle, later) in (0.0..1e6f64, 0.0..1e6f64),
        ) {
            let month = HalfLife::new(HALF_LIFE_HOURS).unwrap();
            let s = strength(stated, n, month, idle);
            prop_assert!((0.0..=1.0).contains(&s));
            prop_assert!(strength(stated, n + more, month, idle) + 1e-12 >= s);
            prop_assert!(strength(stated, n, month, idle + later) <= s);
        }

        #[test]
        fn uses_add_up_one_by_one(stated in 0.0..=1.0f64, n in 0..200u32) {
            let mut s = stated;
            for _ in 0..n {
                s += LEARNING_RATE * (1.0 - s);
            }
            prop_assert!((learned(stated, n) - s).abs() < 1e-9);
        }
    }
}
