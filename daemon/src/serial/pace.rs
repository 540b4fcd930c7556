//! The pace of a line, so that little waits in the queues of the system: what is there cannot be taken
//! back, and frames that wait in it look as if they were lost.

/// The time at which the line will have sent everything that it was given. Times in microseconds.
#[derive(Debug)]
pub struct Pace {
    /// Nanoseconds a byte takes: ten bits.
    byte: u64,
    idle_at: u64,
}

impl Pace {
    /// Of a line of so many bits a second.
    pub fn new(baud: u32) -> Pace {
        Pace { byte: 10_000_000_000 / u64::from(baud.max(1)), idle_at: 0 }
    }

    /// So many bytes were given to it.
    pub fn sent(&mut self, bytes: usize, now: u64) {
        self.idle_at = self.idle_at.max(now) + bytes as u64 * self.byte / 1_000;
    }

    /// Returns the time at which it takes more: a little before it has nothing to do.
    pub fn ready_at(&self) -> u64 {
        self.idle_at.saturating_sub(2_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_takes_a_tenth_of_the_bits_in_bytes() {
        let mut pace = Pace::new(115_200);
        assert_eq!(pace.ready_at(), 0);
        pace.sent(11_520, 5_000_000);
        assert!(pace.ready_at().abs_diff(5_998_000) < 100);
        pace.sent(11_520, 5_000_000);
        assert!(pace.ready_at().abs_diff(6_998_000) < 100);
        pace.sent(1, 9_000_000);
        assert!(pace.ready_at().abs_diff(8_998_086) < 10);
    }
}
