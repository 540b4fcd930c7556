//! Times of many repetitions, and what is said of them.

use std::time::{Duration, Instant};

/// Times of one thing, done often.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Does it once more.
    pub fn time<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = f();
        self.0.push(began.elapsed());
        result
    }

    /// The fastest repetition of each of `count` things that were done in turn, again and again. What
    /// is left is what the things themselves cost: hardly one is interrupted every time.
    pub fn best_of_turns(&self, count: usize) -> Self {
        let best = |at: usize| self.0.iter().skip(at).step_by(count).min().copied();
        Self((0..count).filter_map(best).collect())
    }

    /// Adds one that was timed elsewhere.
    pub fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Adds those of others.
    pub fn extend(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    /// The longest; zero of nothing.
    pub fn longest(&self) -> Duration {
        self.0.iter().max().copied().unwrap_or_default()
    }

    /// Number of repetitions.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The median and the 99th percentile; zero of nothing.
    pub fn summary(&self) -> Summary {
        Summary { p50: self.quantile(50), p99: self.quantile(99) }
    }

    /// The time that so many of a hundred were faster than; zero of nothing.
    pub fn quantile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }
}

/// Ratio of the times of `subject` and `floor`: the median of the ratios of their medians, batch
/// by batch. Both batches of a pair were measured within milliseconds, so a machine that changes its
/// pace during the run changes neither side alone.
pub fn ratio(subject: &Samples, floor: &Samples, batch: usize) -> f64 {
    let of = |part: &[Duration]| Samples(part.to_vec()).summary().p50.as_secs_f64();
    let pairs = subject.0.chunks(batch).zip(floor.0.chunks(batch));
    let ratios: Vec<f64> =
        pairs.map(|(subject, floor)| of(subject) / of(floor).max(f64::MIN_POSITIVE)).collect();
    median(&ratios)
}

/// Statistics of samples.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// Half of them were faster.
    pub p50: Duration,
    /// One in a hundred was slower.
    pub p99: Duration,
}

/// The middle one of some numbers; zero of none.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
