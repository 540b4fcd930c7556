//! A bound on the share of a core: who used more has to rest.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The share of a core that a thread may use, more than 0, at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

/// A thread at work.
#[derive(Debug)]
pub struct Turn {
    share: Share,
    /// What the thread had used when it last rested.
    since: Duration,
}

impl Share {
    /// `share` of a core; what is outside (0, 1] is taken as 1.
    pub fn new(share: f64) -> Share {
        Share(if share > 0.0 && share < 1.0 { share } else { 1.0 })
    }

    /// Work begins, on this thread.
    pub fn begin(self) -> Turn {
        Turn { share: self, since: used() }
    }

    /// How long to rest after so much work.
    fn owed(self, worked: Duration) -> Duration {
        worked.mul_f64(1.0 / self.0 - 1.0)
    }
}

impl Turn {
    /// Rests for what was worked since the last rest. Waiting is no work.
    pub fn rest(&mut self) {
        let owed = self.share.owed(used().saturating_sub(self.since)).min(Duration::from_secs(60));
        if !owed.is_zero() {
            std::thread::sleep(owed);
        }
        self.since = used();
    }
}

/// The time of a core that this thread has used.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.try_into().unwrap_or(0), used.tv_nsec.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_time_means_resting_for_three() {
        let worked = Duration::from_millis(8);
        assert_eq!(Share::new(0.25).owed(worked), Duration::from_millis(24));
        assert_eq!(Share::new(1.0).owed(worked), Duration::ZERO);
        assert_eq!(Share::new(f64::NAN).owed(worked), Duration::ZERO);
        assert_eq!(Share::new(0.0).owed(worked), Duration::ZERO);
    }
}
