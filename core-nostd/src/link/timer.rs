//! The time to wait for an acknowledgement before sending again (RFC 6298).

/// Clock granularity G of the RFC, microseconds.
const GRANULARITY: u64 = 10_000;
/// Before anything was measured (section 2.1).
const FIRST: u64 = 1_000_000;
/// A second, as the RFC has it, is long for a cable of two metres.
const LEAST: u64 = 200_000;
/// A cable that was pulled is noticed so soon after it is back.
const MOST: u64 = 4_000_000;

/// The retransmission timeout. All times in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timeout {
    /// Smoothed round-trip time and its variation, once one was measured.
    measured: Option<(u64, u64)>,
    doubled: u32,
}

impl Timeout {
    /// Nothing measured yet.
    pub const fn new() -> Timeout {
        Timeout { measured: None, doubled: 0 }
    }

    /// Takes in the round-trip time of a frame that was sent once (Karn's rule is the caller's).
    pub fn measure(&mut self, round_trip: u64) {
        let r = round_trip.min(60_000_000);
        self.measured = Some(match self.measured {
            None => (r, r / 2),
            // beta = 1/4, alpha = 1/8; the variation goes first, by the old smoothed time.
            Some((smoothed, variation)) => {
                ((7 * smoothed + r) / 8, (3 * variation + smoothed.abs_diff(r)) / 4)
            }
        });
    }

    /// It ran out: the next one is twice as long.
    pub fn back_off(&mut self) {
        self.doubled = (self.doubled + 1).min(8);
    }

    /// Something new was acknowledged: the line works.
    pub fn progress(&mut self) {
        self.doubled = 0;
    }

    /// Returns the time to wait now.
    pub fn get(&self) -> u64 {
        let base = match self.measured {
            None => FIRST,
            Some((smoothed, variation)) => smoothed + GRANULARITY.max(4 * variation),
        };
        (base.clamp(LEAST, MOST) << self.doubled).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut timeout = Timeout::new();
        assert_eq!(timeout.get(), 1_000_000);
        timeout.measure(100_000); // SRTT 100 ms, RTTVAR 50 ms
        assert_eq!(timeout.get(), 300_000);
        timeout.measure(180_000); // RTTVAR 3/4 · 50 + 1/4 · 80 = 57.5, SRTT 110
        assert_eq!(timeout.get(), 340_000);
        timeout.back_off();
        assert_eq!(timeout.get(), 680_000);
        for _ in 0..100 {
            timeout.back_off();
        }
        assert_eq!(timeout.get(), 4_000_000);
        timeout.progress();
        assert_eq!(timeout.get(), 340_000);
        for _ in 0..100 {
            timeout.measure(1_000);
        }
        assert_eq!(timeout.get(), 200_000);
        timeout.measure(u64::MAX);
        assert_eq!(timeout.get(), 4_000_000);
    }
}
