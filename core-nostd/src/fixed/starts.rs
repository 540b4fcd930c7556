//! When the starts of a machine were, as far as anybody could tell.

use heapless::Vec;

use super::{BootClock, Dating, Uptime};
use crate::instant::Timestamp;

/// Starts that are known at once.
const MOST: usize = 8;
/// Bytes of one of them, as it is kept: the start u32, and microseconds since 1970 i64.
const ONE: usize = 12;

/// The starts of which it is known when they were.
///
/// What happened in a start of which that was never learnt is dated to the latest moment that is possible:
/// when the next one began that is known. Eight are remembered; then the oldest is dropped, and what happened
/// in it is dated to the next one too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// In the order they were.
    known: Vec<BootClock, MOST>,
}

impl Starts {
    /// Bytes of all of them, as they are kept.
    pub(super) const BYTES: usize = MOST * ONE;

    /// None is known.
    pub const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// Takes in when a start was. False if that was known: the first word counts, so that a record that is
    /// handed over twice is dated the same.
    pub fn learn(&mut self, clock: BootClock) -> bool {
        // As it is kept, so that it is the same after a power cut.
        let started = Timestamp::from_micros(clock.started.as_micros());
        let clock = BootClock { started, ..clock };
        let at = match self.known.binary_search_by_key(&clock.boot, |known| known.boot) {
            Ok(_) => return false,
            Err(at) => at,
        };
        if self.known.is_full() {
            if at == 0 {
                return false;
            }
            self.known.remove(0);
            // There is room now.
            let _ = self.known.insert(at - 1, clock);
        } else {
            let _ = self.known.insert(at, clock);
        }
        true
    }

    /// Whether it is known when this start was.
    pub fn knows(&self, boot: u32) -> bool {
        self.known.iter().any(|clock| clock.boot == boot)
    }

    /// The newest start that is known.
    pub fn newest(&self) -> Option<BootClock> {
        self.known.last().copied()
    }

    /// As they are kept.
    pub(super) fn to_bytes(&self) -> Vec<u8, { Starts::BYTES }> {
        let mut bytes = Vec::new();
        for clock in &self.known {
            // As many as there are have room.
            let _ = bytes.extend_from_slice(&clock.boot.to_le_bytes());
            let _ = bytes.extend_from_slice(&clock.started.as_micros().to_le_bytes());
        }
        bytes
    }

    /// What was kept. What is not of this form, such as of another version of the program, is nothing.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut starts = Self::new();
        let (all, []) = bytes.as_chunks::<ONE>() else { return starts };
        for one in all {
            let [boot @ .., _, _, _, _, _, _, _, _] = *one;
            let [_, _, _, _, micros @ ..] = *one;
            let started = Timestamp::from_micros(i64::from_le_bytes(micros));
            starts.learn(BootClock { boot: u32::from_le_bytes(boot), started });
        }
        starts
    }
}

impl Dating for Starts {
    fn date(&self, uptime: Uptime) -> Option<Timestamp> {
        let clock = self.known.iter().find(|clock| clock.boot >= uptime.boot)?;
        if clock.boot == uptime.boot { clock.date(uptime) } else { Some(clock.started) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(boot: u32) -> BootClock {
        BootClock { boot, started: Timestamp::from_unix(i64::from(boot) * 1_000, 0) }
    }

    fn date(starts: &Starts, boot: u32) -> Option<i64> {
        starts.date(Uptime { boot, micros: 7_000_000 }).map(|at| at.secs())
    }

    #[test]
    fn what_was_never_learnt_is_dated_to_the_next_that_was() {
        let mut starts = Starts::new();
        assert_eq!(date(&starts, 0), None);
        assert!(starts.learn(start(5)));
        assert!(starts.learn(start(2)));
        assert!(!starts.learn(BootClock { started: Timestamp::EPOCH, ..start(5) }), "it is known");
        let dated = [0, 2, 3, 5, 6].map(|boot| date(&starts, boot));
        assert_eq!(dated, [Some(2_000), Some(2_007), Some(5_000), Some(5_007), None]);
        assert_eq!(Starts::from_bytes(&starts.to_bytes()), starts);
    }

    #[test]
    fn the_oldest_is_dropped() {
        let mut starts = Starts::new();
        for boot in 10..30 {
            assert!(starts.learn(start(boot)));
        }
        assert!(!starts.learn(start(1)), "older than all there is room for");
        assert_eq!(
            [21, 22, 29].map(|boot| date(&starts, boot)),
            [22_000, 22_007, 29_007].map(Some)
        );
        assert_eq!(starts.newest(), Some(start(29)));
        assert_eq!(starts.to_bytes().len(), Starts::BYTES);
        assert_eq!(Starts::from_bytes(&starts.to_bytes()), starts);
    }

    #[test]
    fn other_bytes_are_nothing() {
        assert_eq!(Starts::from_bytes(b"eleven byte"), Starts::new());
        // Times beyond the time line too.
        let _ = Starts::from_bytes(&[0xFF; 7 * ONE]);
    }
}
