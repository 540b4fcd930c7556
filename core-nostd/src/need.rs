//! The odds that a memory is needed again, to choose what goes when there is no room for all.
//!
//! The rational analysis of memory (Anderson & Schooler, "Reflections of the environment in memory",
//! *Psychological Science* 2, 1991) finds that how recently and how often something was asked for
//! predict whether it will be asked for again, and that a memory best gives up what has the lowest
//! odds. OMIR has a name for the number (`interference.needProbability`) and leaves its making to us:
//!
//! ```text
//! need = R · s · (1/2 + c/2)
//! ```
//!
//! - `R`, the retrievability, is recency; its half-life has grown with each access that came after a
//!   pause, so it is frequency and spacing as well ([`crate::forgetting`]).
//! - `s`, the strength of [`TierInputs::strength`], is how often and how important: a memory that was never called
//!   important and never asked for has none, and goes first.
//! - `c` is how far it is believed. A memory that is probably wrong is half as much worth as one
//!   that is surely right; it is not worthless, for it says what was thought.
//!
//! A `needProbability` that a record states stays in it and is not used: it is another producer's
//! number on another scale (OMIR R1, Theory & Scope).

use crate::tier::{TierInputs, TierPolicy};

/// Probability, in [0, 1], that a memory is needed again; only its order means anything.
///
/// `confidence` in [0, 1]. Values outside are taken as the nearer end, NaN as 0.
pub fn need(inputs: &TierInputs, confidence: f64, policy: &TierPolicy) -> f64 {
    let likely = unit(inputs.retrievability) * unit(inputs.strength(policy));
    likely * (0.5 + 0.5 * unit(confidence))
}

fn unit(n: f64) -> f64 {
    if n > 0.0 { n.min(1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inputs(importance: f64, access_count: u32, retrievability: f64) -> TierInputs {
        TierInputs { age_hours: 0.0, importance, access_count, retrievability, anchored: false }
    }

    #[test]
    fn need_by_hand() {
        let policy = TierPolicy::default(); // accesses: n / (n + 4)
        let need = |inputs, confidence| super::need(&inputs, confidence, &policy);
        assert_eq!(need(inputs(0.5, 0, 1.0), 1.0), 0.5); // 1 · 0.5 · 1
        assert_eq!(need(inputs(0.5, 4, 0.5), 1.0), 0.375); // 0.5 · 0.75
        assert_eq!(need(inputs(0.5, 4, 0.5), 0.0), 0.1875); // half of that
        assert_eq!(need(inputs(0.0, 0, 1.0), 1.0), 0.0);
    }

    proptest! {
        #[test]
        fn more_of_anything_is_never_needed_less(
            (importance, n, r, c) in (0.0..=1.0f64, 0..1000u32, 0.0..=1.0f64, 0.0..=1.0f64),
            more in 0.0..=1.0f64,
        ) {
            let policy = TierPolicy::default();
            let base = need(&inputs(importance, n, r), c, &policy);
            prop_assert!((0.0..=1.0).contains(&base));
            let slack = 1e-12;
            for better in [
                need(&inputs(importance.max(more), n, r), c, &policy),
                need(&inputs(importance, n + 1, r), c, &policy),
                need(&inputs(importance, n, r.max(more)), c, &policy),
                need(&inputs(importance, n, r), c.max(more), &policy),
            ] {
                prop_assert!(better + slack >= base);
            }
        }

        #[test]
        fn any_numbers_give_one_in_the_unit_interval(
            importance in prop::num::f64::ANY,
            r in prop::num::f64::ANY,
            c in prop::num::f64::ANY,
        ) {
            let need = need(&inputs(importance, 3, r), c, &TierPolicy::default());
            prop_assert!((0.0..=1.0).contains(&need), "{need}");
        }
    }
}
