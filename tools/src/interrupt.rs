//! Ctrl-C, SIGTERM and a terminal that closes, for what must not leave something half done behind: a serial line whose other end would wait.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

/// As a shell tells of a program that a signal 2 ended.
const KILLED: i32 = 130;

static LISTENS: Once = Once::new();
static GUARDS: AtomicUsize = AtomicUsize::new(0);
static IS_SET: AtomicBool = AtomicBool::new(false);

/// While there is one, the first signal only makes [`is_set`] true. The second, or one without it, ends the program.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// From now on. Where no handler can be had, a signal kills as it always does.
    #[must_use]
    pub fn new() -> Guard {
        GUARDS.fetch_add(1, Ordering::AcqRel);
        LISTENS.call_once(|| _ = std::thread::spawn(listen));
        Guard(())
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Returns true if the program is to end.
pub fn is_set() -> bool {
    IS_SET.load(Ordering::Acquire)
}

/// SIGHUP, SIGINT and SIGTERM.
const ENDS: [i32; 3] = [1, 2, 15];

fn listen() {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    runtime.block_on(async {
        // Signals that a shell (for a background program) or nohup ignores stay ignored.
        let heeded = ENDS.into_iter().filter(|&number| !is_ignored(&status, number));
        let mut signals: Vec<Signal> =
            heeded.filter_map(|number| signal(SignalKind::from_raw(number)).ok()).collect();
        loop {
            std::future::poll_fn(|context| {
                if signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            if IS_SET.swap(true, Ordering::AcqRel) || GUARDS.load(Ordering::Acquire) == 0 {
                std::process::exit(KILLED);
            }
        }
    });
}

/// Returns true if a signal is ignored, as `/proc/self/status` tells (proc(5): `SigIgn`, bit 0 is signal 1).
fn is_ignored(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (number - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read_from_the_mask() {
        let status = "Name:\tomir\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, 1) && is_ignored(status, 13));
        assert!(!is_ignored(status, 2) && !is_ignored(status, 15));
        assert!(!is_ignored("", 1) && !is_ignored("SigIgn:\tno", 1));
    }
}
