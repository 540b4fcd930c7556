//! The confidence in a memory, and the effect of feedback on it.
//!
//! Belief is a Beta(α, β) posterior (OMIR R1, Memory Semantics §1): α counts confirming evidence and
//! β disconfirming evidence, each with its prior included. The point estimate to act on is damped
//! toward 1/2 while evidence is thin, so that a memory seen once does not pass for a proven one.
//!
//! Only `+ - * /` in a fixed order, never fused: every platform computes the same bits.

use core::fmt;
use core::str::FromStr;

/// The `k` of [`Beta::damped`]: how many pseudo-observations pull the estimate toward 1/2.
pub const DAMPING: f64 = 2.0;

/// A Beta(α, β) posterior over "this memory is right". Both parameters are positive and finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beta {
    alpha: f64,
    beta: f64,
}

impl Beta {
    /// No evidence either way: Beta(1, 1), the uniform distribution (Bayes–Laplace prior).
    pub const PRIOR: Beta = Beta { alpha: 1.0, beta: 1.0 };

    /// A posterior with these parameters; `None` unless both are finite and above zero.
    pub const fn new(alpha: f64, beta: f64) -> Option<Beta> {
        if alpha.is_finite() && alpha > 0.0 && beta.is_finite() && beta > 0.0 {
            Some(Beta { alpha, beta })
        } else {
            None
        }
    }

    /// Confirming evidence, prior included. Dimensionless.
    pub const fn alpha(self) -> f64 {
        self.alpha
    }

    /// Disconfirming evidence, prior included. Dimensionless.
    pub const fn beta(self) -> f64 {
        self.beta
    }

    /// The posterior mean `α / (α + β)`, in [0, 1]: the mean of a Beta distribution.
    pub fn mean(self) -> f64 {
        share(self.alpha, self.beta)
    }

    /// The estimate to act on, OMIR's `calibrated`: `(α + k/2) / (α + β + k)` with `k` =
    /// [`DAMPING`], in [0, 1].
    ///
    /// This is the m-estimate of probability with prior 1/2 and m = k (Cestnik, "Estimating
    /// probabilities: a crucial task in machine learning", ECAI 1990). It lies between
    /// [`Beta::mean`] and 1/2 and approaches the mean as evidence grows.
    pub fn damped(self) -> f64 {
        let half = DAMPING / 2.0;
        share(self.alpha + half, self.beta + half)
    }

    /// The posterior after confirming evidence: `α + weight` (conjugate update of a Beta).
    ///
    /// Evidence beyond what an `f64` can add to α changes nothing; the result stays finite.
    #[must_use]
    pub fn confirmed(self, weight: Weight) -> Beta {
        Beta { alpha: self.alpha + weight.0, beta: self.beta }
    }

    /// The posterior after disconfirming evidence: `β + weight`. Otherwise as [`Beta::confirmed`].
    #[must_use]
    pub fn contradicted(self, weight: Weight) -> Beta {
        Beta { alpha: self.alpha, beta: self.beta + weight.0 }
    }

    /// The posterior after feedback: [`Beta::confirmed`] or [`Beta::contradicted`].
    #[must_use]
    pub fn after(self, outcome: FeedbackOutcome, weight: Weight) -> Beta {
        match outcome {
            FeedbackOutcome::Confirmed => self.confirmed(weight),
            FeedbackOutcome::Contradicted => self.contradicted(weight),
        }
    }
}

impl Default for Beta {
    fn default() -> Beta {
        Beta::PRIOR
    }
}

/// `a / (a + b)` for positive finite `a` and `b`, also where the plain sum would overflow.
fn share(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if sum.is_finite() {
        a / sum
    } else {
        // At least one of the two is huge, so what halving takes from the other cannot show.
        (a / 2.0) / (a / 2.0 + b / 2.0)
    }
}

/// Number of observations that one piece of feedback counts for: finite, 0 < weight ≤ 1000.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Weight(f64);

impl Weight {
    /// One observation, the default of `feedback`.
    pub const ONE: Weight = Weight(1.0);
    /// The heaviest feedback accepted, so that one message cannot drown all others.
    pub const MAX: Weight = Weight(1000.0);

    /// A weight; `None` unless finite, above zero and at most [`Weight::MAX`].
    pub const fn new(weight: f64) -> Option<Weight> {
        // NaN fails both comparisons, infinity the second.
        if weight > 0.0 && weight <= Weight::MAX.0 { Some(Weight(weight)) } else { None }
    }

    /// The weight as a number of observations.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Weight {
        Weight::ONE
    }
}

/// Outcome of acting on a memory: the `outcome` of `feedback` (docs/keys.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FeedbackOutcome {
    /// The memory proved right: raises α.
    Confirmed,
    /// The memory proved wrong: raises β.
    Contradicted,
}

impl FeedbackOutcome {
    /// Every outcome.
    pub const ALL: [FeedbackOutcome; 2] =
        [FeedbackOutcome::Confirmed, FeedbackOutcome::Contradicted];

    /// The word used on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            FeedbackOutcome::Confirmed => "confirmed",
            FeedbackOutcome::Contradicted => "contradicted",
        }
    }
}

impl fmt::Display for FeedbackOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is not a [`FeedbackOutcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFeedbackOutcome;

impl fmt::Display for UnknownFeedbackOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected confirmed or contradicted")
    }
}

impl core::error::Error for UnknownFeedbackOutcome {}

impl FromStr for FeedbackOutcome {
    type Err = UnknownFeedbackOutcome;

    /// Reads exactly the words of [`FeedbackOutcome::as_str`]; anything else is [`UnknownFeedbackOutcome`].
    fn from_str(word: &str) -> Result<FeedbackOutcome, UnknownFeedbackOutcome> {
        FeedbackOutcome::ALL.into_iter().find(|o| o.as_str() == word).ok_or(UnknownFeedbackOutcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn beta(alpha: f64, beta: f64) -> Beta {
        Beta::new(alpha, beta).unwrap()
    }

    #[test]
    fn damped_by_hand() {
        assert_eq!(beta(9.0, 1.0).damped(), 10.0 / 12.0); // (9+1)/(10+2)
        assert_eq!(beta(1.0, 1.0).damped(), 1.0 / 2.0); // (1+1)/(2+2)
        assert_eq!(beta(2.0, 1.0).damped(), 3.0 / 5.0); // (2+1)/(3+2)
        assert_eq!(beta(1.0, 3.0).damped(), 2.0 / 6.0); // (1+1)/(4+2)
    }

    #[test]
    fn mean_by_hand() {
        assert_eq!(Beta::PRIOR.mean(), 0.5); // 1/2
        assert_eq!(beta(9.0, 1.0).mean(), 0.9); // 9/10
        assert_eq!(beta(1.0, 3.0).mean(), 0.25); // 1/4
    }

    #[test]
    fn feedback_by_hand() {
        let once = Beta::PRIOR.after(FeedbackOutcome::Confirmed, Weight::ONE);
        assert_eq!(once, beta(2.0, 1.0)); // mean 2/3, damped 3/5
        let half = Weight::new(0.5).unwrap();
        assert_eq!(once.after(FeedbackOutcome::Contradicted, half), beta(2.0, 1.5));
    }

    #[test]
    fn refuses_what_is_not_evidence() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Beta::new(bad, 1.0), None);
            assert_eq!(Beta::new(1.0, bad), None);
            assert_eq!(Weight::new(bad), None);
        }
        assert_eq!(Weight::new(1000.0), Some(Weight::MAX));
        assert_eq!(Weight::new(1000.0_f64.next_up()), None);
    }

    #[test]
    fn huge_evidence_neither_overflows_nor_grows() {
        let huge = beta(f64::MAX, f64::MAX);
        assert_eq!(huge.mean(), 0.5);
        assert_eq!(huge.damped(), 0.5);
        assert_eq!(huge.confirmed(Weight::MAX), huge);
        assert_eq!(beta(f64::MAX, 1.0).mean(), 1.0);
    }

    #[test]
    fn outcome_words() {
        for outcome in FeedbackOutcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(outcome));
        }
        assert_eq!("Confirmed".parse::<FeedbackOutcome>(), Err(UnknownFeedbackOutcome));
        assert_eq!("".parse::<FeedbackOutcome>(), Err(UnknownFeedbackOutcome));
    }

    fn any_beta() -> impl Strategy<Value = Beta> {
        let one = || prop_oneof![1e-6..1e6f64, prop::num::f64::POSITIVE];
        (one(), one()).prop_filter_map("a posterior", |(a, b)| Beta::new(a, b))
    }

    proptest! {
        #[test]
        fn estimates_stay_in_the_unit_interval(b in any_beta()) {
            prop_assert!((0.0..=1.0).contains(&b.mean()));
            prop_assert!((0.0..=1.0).contains(&b.damped()));
        }

        #[test]
        fn damping_moves_toward_one_half(b in any_beta()) {
            // Two roundings each way leave a slack of a few ulps.
            let slack = 4.0 * f64::EPSILON;
            let (from, to) = ((b.mean() - 0.5).abs(), (b.damped() - 0.5).abs());
            prop_assert!(to <= from + slack, "{} {}", from, to);
        }

        #[test]
        fn feedback_moves_its_way_and_stays_valid(b in any_beta(), w in 1e-9..=1000.0f64) {
            let w = Weight::new(w).unwrap();
            let (up, down) = (b.confirmed(w), b.contradicted(w));
            prop_assert!(Beta::new(up.alpha(), up.beta()).is_some());
            prop_assert!(Beta::new(down.alpha(), down.beta()).is_some());
            let slack = 4.0 * f64::EPSILON;
            prop_assert!(up.mean() >= b.mean() - slack && up.damped() >= b.damped() - slack);
            prop_assert!(down.mean() <= b.mean() + slack && down.damped() <= b.damped() + slack);
        }
    }
}
