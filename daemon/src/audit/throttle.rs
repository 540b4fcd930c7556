//! The pace at which refusals may be told one by one. A caller that guesses tokens causes thousands a second, and each
//! line wears out the card.

use std::time::Duration;

/// Refusals that may come at once.
pub(super) const BURST: u32 = 1000;
/// Time after which another one may come, once so many have.
pub(super) const EVERY: Duration = Duration::from_millis(200);

/// A bucket of refusals (the generic cell rate algorithm of ITU-T I.371).
#[derive(Debug, Default)]
pub(super) struct Throttle {
    /// The time at which all that were told are paid for.
    paid: Duration,
    passed_over: u64,
}

impl Throttle {
    /// Returns the number that were passed over since the last one that was told, if this one may be told. `now` is since
    /// any fixed moment.
    pub(super) fn take(&mut self, now: Duration) -> Option<u64> {
        let paid = now.max(self.paid) + EVERY;
        if paid > now + EVERY * BURST {
            self.passed_over += 1;
            return None;
        }
        self.paid = paid;
        Some(std::mem::take(&mut self.passed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_told_and_then_five_a_second() {
        let mut throttle = Throttle::default();
        let start = Duration::from_secs(60);
        let told = (0..5000).filter(|_| throttle.take(start).is_some()).count();
        assert_eq!(told, 1000);
        let later = start + Duration::from_secs(1);
        let told: Vec<_> = (0..100).filter_map(|_| throttle.take(later)).collect();
        assert_eq!(told, [4000, 0, 0, 0, 0], "the first says how many were passed over");
        assert_eq!(throttle.take(later + EVERY), Some(95));
    }
}
