//! Threads that others wait for, and the proof that they work: the writer has dealt with a message, a reading thread has read
//! what is stored. A process that merely runs proves nothing.

use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{Receiver, select};

/// Asks for a sign of life by a deadline, and gives the channel that it comes by.
pub type Probe = Box<dyn Fn(Instant) -> Receiver<()> + Send + Sync>;

/// Threads by name, and how each is asked for a sign of life. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Liveness(Arc<[(&'static str, Probe)]>);

impl Liveness {
    /// Threads by name, with the way to ask each.
    pub fn new(all: Vec<(&'static str, Probe)>) -> Self {
        Self(all.into())
    }

    /// Returns the threads that give no sign by the deadline; `None` if it is stopped meanwhile. All are asked at once.
    pub fn silent(&self, deadline: Instant, stopped: &Receiver<()>) -> Option<Vec<&'static str>> {
        let asked: Vec<_> = self.0.iter().map(|(name, ask)| (*name, ask(deadline))).collect();
        let mut silent = Vec::new();
        for (name, sign) in asked {
            select! {
                // An error: no thread is left to give one.
                recv(sign) -> sign => if sign.is_err() { silent.push(name) },
                recv(stopped) -> _ => return None,
                default(deadline.saturating_duration_since(Instant::now())) => silent.push(name),
            }
        }
        Some(silent)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_is_silent_is_named() {
        fn alive(_: Instant) -> Receiver<()> {
            let (sign, given) = crossbeam_channel::bounded(1);
            sign.send(()).unwrap();
            given
        }
        fn hangs(_: Instant) -> Receiver<()> {
            crossbeam_channel::never()
        }
        fn is_gone(_: Instant) -> Receiver<()> {
            crossbeam_channel::bounded(1).1
        }
        let probe = |name, ask: fn(Instant) -> Receiver<()>| (name, Box::new(ask) as Probe);
        let (going_on, stopped) = crossbeam_channel::bounded::<()>(0);
        let soon = || Instant::now() + Duration::from_millis(10);
        let look = |all| Liveness::new(all).silent(soon(), &stopped);
        assert_eq!(look(vec![probe("w", alive), probe("r", alive)]), Some(vec![]));
        assert_eq!(look(vec![probe("w", hangs), probe("r", alive)]), Some(vec!["w"]));
        assert_eq!(look(vec![probe("w", alive), probe("r", is_gone)]), Some(vec!["r"]));
        drop(going_on);
        assert_eq!(look(vec![probe("w", hangs)]), None);
    }
}
