//! Retries while a daemon cannot serve just now, on every way to it.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::cli::Globals;
use crate::output;

/// The hindrance, if [`Error::is_busy`].
///
/// [`Error::is_busy`]: crate::error::Error::is_busy
pub const BUSY: &str = "the daemon is busy";

/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// One request, and how long it is tried after it failed first.
#[derive(Debug)]
pub struct Retry {
    wait: Duration,
    since: Option<Instant>,
}

impl Retry {
    /// For a request that has not failed yet.
    #[must_use]
    pub const fn new(wait: Duration) -> Self {
        Self { wait, since: None }
    }

    /// Returns true if an attempt failed.
    #[must_use]
    pub const fn is_tried(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the pause after an attempt that failed `now`; `None` once it was tried for long enough.
    pub fn pause(&mut self, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(*self.since.get_or_insert(now));
        let left = self.wait.saturating_sub(passed);
        (!left.is_zero()).then(|| PAUSE.min(left))
    }

    /// As [`Retry::pause`]; the first time people are told what hinders.
    pub fn pause_for(
        &mut self,
        hindrance: &'static str,
        globals: &Globals,
        bar: &ProgressBar,
    ) -> Option<Duration> {
        if !self.is_tried() {
            bar.set_message(hindrance);
            if bar.is_hidden() {
                let seconds = self.wait.as_secs_f64();
                let quiet = globals.quiet || globals.json;
                output::remark(quiet, &format!("{hindrance}; trying again for {seconds} s"));
            }
        }
        self.pause(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_go_on_until_the_wait_is_over() {
        let (wait, start) = (Duration::from_millis(600), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let mut retry = Retry::new(wait);
        assert!(!retry.is_tried());
        // The wait begins with the first failure, not with the first attempt.
        assert_eq!(retry.pause(at(5_000)), Some(PAUSE));
        assert!(retry.is_tried());
        assert_eq!(retry.pause(at(5_300)), Some(PAUSE));
        assert_eq!(retry.pause(at(5_550)), Some(Duration::from_millis(50)));
        assert_eq!(retry.pause(at(5_600)), None);
        assert_eq!(Retry::new(Duration::ZERO).pause(start), None);
    }
}
