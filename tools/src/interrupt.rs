//! Ctrl-C and SIGTERM, for what must not leave something half done behind: a serial line whose other end would wait.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

/// Whether the program is to end.
pub fn is_set() -> bool {
    IS_SET.load(Ordering::Acquire)
}

fn listen() {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if IS_SET.swap(true, Ordering::AcqRel) || GUARDS.load(Ordering::Acquire) == 0 {
                std::process::exit(KILLED);
            }
        }
    });
}
