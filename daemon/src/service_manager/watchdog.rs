//! A sign of life for the service manager, which ends what gives none (`WatchdogSec=` of systemd.service(5)).
//!
//! It is given only on proof: the writer has dealt with a message, and a reading thread has read what is stored.
//! A process that merely runs proves nothing: what hangs on a card would hang for ever.

use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::{WATCHDOG, tell};
use crate::liveness::Liveness;

/// The time that the manager has patience is cut into so many parts. A look takes one at most, and so does the pause
/// after it. After a look in vain the next one comes soon: there are several before the patience is over.
const PARTS: u32 = 6;

/// Gives signs of life until it is dropped.
pub struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts, if the service manager waits for signs: `$WATCHDOG_USEC`, of the process `$WATCHDOG_PID`.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn start(liveness: Liveness) -> io::Result<Option<Self>> {
        let set = |name| std::env::var(name).ok();
        let own = std::process::id();
        let Some(patience) = patience(set("WATCHDOG_USEC"), set("WATCHDOG_PID"), own) else {
            return Ok(None);
        };
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let thread = std::thread::Builder::new().name("omird-watchdog".into());
        let thread = thread.spawn(move || run(&liveness, patience / PARTS, &stopped))?;
        Ok(Some(Self { stop: Some(stop), thread: Some(thread) }))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was told of when it happened.
            let _ = thread.join();
        }
    }
}

/// Returns the time that the service manager waits from one sign to the next, if it waits for any from this process.
fn patience(micros: Option<String>, process: Option<String>, own: u32) -> Option<Duration> {
    if process.is_some_and(|process| process.parse() != Ok(own)) {
        return None;
    }
    let micros = micros?.parse().ok().filter(|micros| *micros > 0)?;
    Some(Duration::from_micros(micros))
}

fn run(liveness: &Liveness, part: Duration, stopped: &Receiver<()>) {
    loop {
        let pause = match liveness.silent(Instant::now() + part, stopped) {
            None => return,
            Some(silent) if silent.is_empty() => {
                tell(WATCHDOG);
                part
            }
            Some(silent) => {
                tracing::error!(
                    "no sign of life from {} in {part:?}: the service manager is given none either, and may end omird",
                    silent.join(" and ")
                );
                part / 4
            }
        };
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_given_to_who_waits_for_them() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(patience(text("180000000"), None, 7), Some(Duration::from_secs(180)));
        assert_eq!(patience(text("180000000"), text("7"), 7), Some(Duration::from_secs(180)));
        assert_eq!(patience(text("180000000"), text("8"), 7), None, "another process is meant");
        for none in ["", "0", "soon"] {
            assert_eq!(patience(text(none), None, 7), None);
        }
        assert_eq!(patience(None, None, 7), None);
    }
}
