//! The starts of a machine and their times, as far as they are known.

use heapless::Vec;

use super::{BootClock, Dating, Uptime};
use crate::instant::Timestamp;

/// Starts that are known at once.
const MOST: usize = 8;
/// Bytes of one of them, as it is kept: the start u32, microseconds since 1970 i64, and the trust u8.
const ONE: usize = 13;
/// Two words for the same that differ by less, microseconds, are one.
pub(super) const SAME: i64 = 1_000_000;

/// Trust in the clock that told the time. The words are those of docs/serial-protocol.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// The daemon does not know the time: its clock was never set.
    Unknown,
    /// It may be right.
    Coarse,
    /// It follows a better clock.
    Synchronised,
}

impl Trust {
    const ALL: [Self; 3] = [Self::Unknown, Self::Coarse, Self::Synchronised];

    /// The word for it, as in `info`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Coarse => "coarse",
            Self::Synchronised => "synchronised",
        }
    }

    /// Reads a word of `info`; one that is not known here says little.
    pub fn named(word: &str) -> Self {
        Self::ALL.into_iter().find(|trust| trust.as_str() == word).unwrap_or(Self::Coarse)
    }
}

/// The starts of which it is known when they were.
///
/// What happened in a start of which that was never learnt is dated to the latest moment that is possible:
/// when the next one began that is known. Eight are remembered; then the oldest is dropped, and what happened
/// in it is dated to the next one too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// In the order they were.
    known: Vec<(BootClock, Trust), MOST>,
}

impl Starts {
    /// Bytes of all of them, as they are kept.
    pub(super) const BYTES: usize = MOST * ONE;

    /// None is known.
    pub const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// Takes in when a start was. A word of a better clock takes the place of one of a worse; of two that can be
    /// trusted alike the later one counts, since the machine's own counter drifts meanwhile. False if nothing
    /// is new by that: it was known, to the second, or better.
    pub fn learn(&mut self, clock: BootClock, trust: Trust) -> bool {
        // As it is kept, so that it is the same after a power cut.
        let started = Timestamp::from_micros(clock.started.as_micros());
        let clock = BootClock { started, ..clock };
        let at = match self.known.binary_search_by_key(&clock.boot, |(known, _)| known.boot) {
            Ok(at) => {
                let (known, trusted) = &mut self.known[at];
                let moved = started.micros_since(known.started).saturating_abs() >= SAME;
                if trust < *trusted || trust == *trusted && !moved {
                    return false;
                }
                (*known, *trusted) = (clock, trust);
                return true;
            }
            Err(at) => at,
        };
        if self.known.is_full() {
            if at == 0 {
                return false;
            }
            self.known.remove(0);
            // There is room now.
            let _ = self.known.insert(at - 1, (clock, trust));
        } else {
            let _ = self.known.insert(at, (clock, trust));
        }
        true
    }

    /// Returns the trust in the known time of this start; `None` if none is known.
    pub fn trust(&self, boot: u32) -> Option<Trust> {
        self.word(boot).map(|(_, trust)| trust)
    }

    /// Returns the time of this start and the trust in it, if it is known.
    pub(super) fn word(&self, boot: u32) -> Option<(Timestamp, Trust)> {
        let known = self.known.iter().find(|(clock, _)| clock.boot == boot);
        known.map(|(clock, trust)| (clock.started, *trust))
    }

    /// The start by which one is dated: itself, or the next that is known.
    pub fn dated_by(&self, boot: u32) -> Option<u32> {
        self.by(boot).map(|clock| clock.boot)
    }

    fn by(&self, boot: u32) -> Option<&BootClock> {
        self.known.iter().map(|(clock, _)| clock).find(|clock| clock.boot >= boot)
    }

    /// The newest start that is known.
    pub fn newest(&self) -> Option<BootClock> {
        self.known.last().map(|(clock, _)| *clock)
    }

    /// As they are kept.
    pub(super) fn to_bytes(&self) -> Vec<u8, { Starts::BYTES }> {
        let mut bytes = Vec::new();
        for (clock, trust) in &self.known {
            // As many as there are have room.
            let _ = bytes.extend_from_slice(&clock.boot.to_le_bytes());
            let _ = bytes.extend_from_slice(&clock.started.as_micros().to_le_bytes());
            let _ = bytes.push(*trust as u8);
        }
        bytes
    }

    /// Reads the kept note. Other forms, such as those of another version of the program, are ignored.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut starts = Self::new();
        let (all, []) = bytes.as_chunks::<ONE>() else { return starts };
        for one in all {
            let [boot @ .., _, _, _, _, _, _, _, _, _] = *one;
            let [_, _, _, _, micros @ .., trust] = *one;
            let started = Timestamp::from_micros(i64::from_le_bytes(micros));
            let trust = Trust::ALL.get(usize::from(trust)).copied().unwrap_or(Trust::Unknown);
            starts.learn(BootClock { boot: u32::from_le_bytes(boot), started }, trust);
        }
        starts
    }
}

impl Dating for Starts {
    fn date(&self, uptime: Uptime) -> Option<Timestamp> {
        let clock = self.by(uptime.boot)?;
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
        assert!(starts.learn(start(5), Trust::Coarse));
        assert!(starts.learn(start(2), Trust::Coarse));
        assert!(!starts.learn(start(5), Trust::Coarse), "it is known");
        let dated = [0, 2, 3, 5, 6].map(|boot| date(&starts, boot));
        assert_eq!(dated, [Some(2_000), Some(2_007), Some(5_000), Some(5_007), None]);
        assert_eq!(Starts::from_bytes(&starts.to_bytes()), starts);
    }

    #[test]
    fn a_better_word_counts_and_of_equal_ones_the_later() {
        let told = |secs| BootClock { boot: 1, started: Timestamp::from_unix(secs, 0) };
        let mut starts = Starts::new();
        for (secs, trust, is_news) in [
            (100, Trust::Unknown, true),
            (300, Trust::Coarse, true),
            (200, Trust::Unknown, false),
            (301, Trust::Coarse, true),
            (301, Trust::Coarse, false),
            (301, Trust::Synchronised, true),
            (900, Trust::Coarse, false),
            (298, Trust::Synchronised, true),
        ] {
            assert_eq!(starts.learn(told(secs), trust), is_news, "{secs} {trust:?}");
            assert_eq!(Starts::from_bytes(&starts.to_bytes()), starts);
        }
        assert_eq!((date(&starts, 1), starts.trust(1)), (Some(305), Some(Trust::Synchronised)));
        assert_eq!((starts.trust(0), starts.trust(2)), (None, None));
        assert_eq!((starts.dated_by(0), starts.dated_by(2)), (Some(1), None));
        for trust in Trust::ALL {
            assert_eq!(Trust::named(trust.as_str()), trust);
        }
        assert_eq!(Trust::named("atomic"), Trust::Coarse);
    }

    #[test]
    fn the_oldest_is_dropped() {
        let mut starts = Starts::new();
        for boot in 10..30 {
            assert!(starts.learn(start(boot), Trust::Synchronised));
        }
        assert!(!starts.learn(start(1), Trust::Synchronised), "older than all there is room for");
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
