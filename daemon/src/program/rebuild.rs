//! Progress of a rebuild of the index, in the log.

use std::time::{Duration, Instant};

use crate::store::StartProgress;

/// Time between two lines. A rebuild that takes less leaves one line, at its end.
const EVERY: Duration = Duration::from_secs(5);

/// A rebuild under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Rebuild(Option<Began>);

#[derive(Debug)]
struct Began {
    at: Instant,
    logged: Instant,
    done: u64,
}

impl Rebuild {
    /// Logs progress, with the share that is done and the time that is left.
    pub(super) fn note(&mut self, progress: StartProgress) {
        match progress {
            StartProgress::Rebuilding { done, total } => {
                let now = Instant::now();
                let began = self.0.get_or_insert(Began { at: now, logged: now, done: 0 });
                began.done = done;
                if now.duration_since(began.logged) >= EVERY {
                    began.logged = now;
                    let (percent, left) = outlook(done, total, now.duration_since(began.at));
                    tracing::info!(
                        percent,
                        segments = total,
                        seconds_left = left.map(|left| left.as_secs()),
                        "rebuilding the index"
                    );
                }
            }
            StartProgress::Done => {
                if let Some(Began { done, .. }) = self.0.take() {
                    tracing::info!(segments = done, "the index was rebuilt");
                }
            }
        }
    }
}

/// Returns the percentage that is done, and the time that is left at the same pace.
fn outlook(done: u64, total: u64, took: Duration) -> (u64, Option<Duration>) {
    let total = total.max(done).max(1);
    let left = (done > 0).then(|| took.mul_f64((total - done) as f64 / done as f64));
    (done * 100 / total, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_was_done() {
        let took = Duration::from_secs(30);
        assert_eq!(outlook(25, 100, took), (25, Some(Duration::from_secs(90))));
        assert_eq!(outlook(0, 100, took), (0, None));
        assert_eq!(outlook(0, 0, took), (0, None));
        assert_eq!(outlook(7, 7, took), (100, Some(Duration::ZERO)));
    }
}
