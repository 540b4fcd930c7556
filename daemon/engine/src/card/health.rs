//! Health of the card, and the times of the next tries.
//!
//! A pure state machine: errors, successes and times go in; a state that a person can act on comes
//! out. Three things are watched, because each can fail while the others work: what is new goes
//! into a log, logs are sealed, and memories are read. The worst of them is the state of the card;
//! only fault with the log refuses changes.

use std::io;
use std::time::Duration;

use omir_core::instant::Timestamp;

use crate::disk::{self, Disk};
use crate::error::{Code, Error};

/// The first try comes after so long; each one that fails doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// Tries to write come at least this often, whatever failed before.
const WRITING: Duration = Duration::from_secs(10);
/// A sector that cannot be read may stay so for good, and asking for it can take the card seconds.
/// With doubling up to here, recovery is noticed within as long as the fault lasted.
const READING: Duration = Duration::from_secs(600);

/// State of the card. A later one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum State {
    /// Nothing is wrong.
    #[default]
    Ok,
    /// The disk works, and files on it were found damaged; what can be read of them is served.
    Damaged,
    /// The disk works, and what is to be done on it cannot be: a bug of ours.
    Stalled,
    /// No room is left (`ENOSPC`, `EDQUOT`, `EFBIG`).
    Full,
    /// It is mounted read-only (`EROFS`), as Linux does by itself after errors.
    ReadOnly,
    /// It refuses what it should do (`EIO` and all else).
    Failing,
    /// It is not there: pulled out or unmounted, or the data folder was moved away.
    Gone,
}

impl State {
    /// All of them, the worst last.
    pub const ALL: [Self; 7] = [
        Self::Ok,
        Self::Damaged,
        Self::Stalled,
        Self::Full,
        Self::ReadOnly,
        Self::Failing,
        Self::Gone,
    ];

    /// The name in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Damaged => "damaged",
            Self::Stalled => "stuck",
            Self::Full => "full",
            Self::ReadOnly => "readOnly",
            Self::Failing => "failing",
            Self::Gone => "gone",
        }
    }

    /// Returns true if a daemon on such a card is of no use until the operator has seen to it: what is stored does not survive a
    /// power cut, or cannot be read.
    pub fn is_unfit(self) -> bool {
        matches!(self, Self::Stalled | Self::Failing | Self::Gone)
    }

    /// Explanation for a person, with what can be done; empty if all is well.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Ok => "",
            Self::Damaged => {
                "files on the card are damaged; what can be read of them is served. Stop omird and see what is lost: \
                 omir store check DIR; then restore a backup, or save what can be read: omir store repair. A file that \
                 ends in .damaged is kept for you: once it is moved away, the next start says no more of it"
            }
            Self::Stalled => {
                "logs cannot be made into segments, which is a bug of omird; what is in them is safe \
                 and served, and what is new is stored, but what is forgotten stays on the card and \
                 starts take ever longer. omir export has all that is served, also from logs; a backup has \
                 segments only. Report lastError"
            }
            Self::Full => {
                "the disk is full; what is stored can still be read. Forget something, which makes \
                 room within seconds, or free some space, and try again"
            }
            Self::ReadOnly => {
                "the disk is mounted read-only, perhaps after errors; what is stored can still be \
                 read. See the kernel's log, check the file system, then: mount -o remount,rw"
            }
            Self::Failing => {
                "the disk refuses to work; what it still gives is served. See the kernel's log, and \
                 check the card and its contacts; `omir store repair` saves what can be read"
            }
            Self::Gone => {
                "the data folder is away; put its card back, or mount it again at the same place. \
                 Nothing is written until it is there"
            }
        }
    }
}

/// A kind of work on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Writing what is new.
    Log,
    /// Turning logs into segments.
    Seal,
    /// Reading.
    Read,
}

/// A fault of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// In which way.
    pub state: State,
    /// Since when, on the store's clock.
    pub since: Timestamp,
    /// The last message of the disk.
    pub error: String,
    /// Time of the next try; counted as the caller counts.
    due: Duration,
    delay: Duration,
}

/// Health of the card.
#[derive(Debug, Default)]
pub(crate) struct Health {
    faults: [Option<Fault>; 3],
}

impl Health {
    /// Notes that something failed at `at`, which is `now` for people; returns whether that is news.
    pub(crate) fn fail(
        &mut self,
        part: Part,
        state: State,
        error: String,
        now: Timestamp,
        at: Duration,
    ) -> bool {
        let slot = &mut self.faults[part as usize];
        let most = if part == Part::Read { READING } else { WRITING };
        match slot {
            Some(fault) => {
                let is_news = fault.state != state;
                if is_news {
                    fault.since = now;
                }
                fault.state = state;
                fault.error = error;
                // Changes that come in meanwhile fail as well, and must not put off the next try.
                if at >= fault.due {
                    fault.delay = (fault.delay * 2).min(most);
                    fault.due = at + fault.delay;
                }
                is_news
            }
            None => {
                *slot = Some(Fault { state, since: now, error, due: at + FIRST, delay: FIRST });
                true
            }
        }
    }

    /// Notes that it works; returns what was the matter until now.
    pub(crate) fn recover(&mut self, part: Part) -> Option<Fault> {
        self.faults[part as usize].take()
    }

    /// The fault of a part, if it has one.
    pub(crate) fn of(&self, part: Part) -> Option<&Fault> {
        self.faults[part as usize].as_ref()
    }

    /// Returns true if it is time to try again.
    pub(crate) fn is_due(&self, part: Part, at: Duration) -> bool {
        self.of(part).is_some_and(|fault| at >= fault.due)
    }

    /// The worst fault.
    pub(crate) fn worst(&self) -> Option<&Fault> {
        self.faults.iter().flatten().max_by_key(|fault| fault.state)
    }

    /// The answer to a change that could not be written.
    pub(crate) fn refusal(&self) -> Error {
        match self.of(Part::Log) {
            Some(Fault { state: State::Full, error, .. }) => {
                Error::new(Code::StorageFull, format!("{} ({error})", State::Full.hint()))
            }
            Some(fault) => {
                let message = format!("{} ({})", fault.state.hint(), fault.error);
                Error::new(Code::Internal, message)
            }
            None => Error::new(Code::Internal, "the disk refused the write; try again"),
        }
    }
}

/// The state an error puts the card in.
pub(crate) fn judge(error: &io::Error) -> State {
    if disk::is_full(error) {
        State::Full
    } else if disk::is_read_only(error) {
        State::ReadOnly
    } else if disk::is_gone(error) {
        State::Gone
    } else {
        State::Failing
    }
}

/// As [`judge`], but asks the disk whether it is there at all: a card that is pulled out may answer
/// with `EIO`, and a path that is not there with `ENOENT`.
pub(crate) fn judge_on(disk: &dyn Disk, error: &io::Error) -> State {
    match disk.mount_generation() {
        Err(away) if disk::is_gone(&away) => State::Gone,
        _ => judge(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> (Timestamp, Duration) {
        (Timestamp::from_micros(seconds as i64 * 1_000_000), Duration::from_secs(seconds))
    }

    fn fail(health: &mut Health, part: Part, state: State, seconds: u64) -> bool {
        let (now, at) = at(seconds);
        health.fail(part, state, format!("at {seconds}"), now, at)
    }

    #[test]
    fn errors_are_told_apart() {
        for (code, state) in [
            (28, State::Full),
            (122, State::Full),
            (30, State::ReadOnly),
            (19, State::Gone),
            (6, State::Gone),
            (116, State::Gone),
            (5, State::Failing),
            (13, State::Failing),
        ] {
            assert_eq!(judge(&io::Error::from_raw_os_error(code)), state, "errno {code}");
        }
        // A single file that lacks is no card that lacks.
        assert_eq!(judge(&io::ErrorKind::NotFound.into()), State::Failing);
        assert_eq!(judge(&disk::FolderGone("away".into()).into()), State::Gone);
    }

    #[test]
    fn tries_come_ever_later_and_at_least_every_ten_seconds() {
        let mut health = Health::default();
        assert!(fail(&mut health, Part::Log, State::ReadOnly, 100));
        let mut tries = Vec::new();
        for second in 100..160 {
            if health.is_due(Part::Log, at(second).1) {
                tries.push(second);
                assert!(!fail(&mut health, Part::Log, State::ReadOnly, second), "no news");
            }
        }
        assert_eq!(tries, [101, 103, 107, 115, 125, 135, 145, 155]);
        assert_eq!(health.of(Part::Log).unwrap().since, at(100).0);
    }

    #[test]
    fn a_request_that_fails_meanwhile_does_not_put_off_the_next_try() {
        let mut health = Health::default();
        for tenth in 0..10 {
            let at = Duration::from_millis(100 * tenth);
            let now = Timestamp::from_micros(0);
            health.fail(Part::Log, State::Full, String::new(), now, at);
        }
        assert!(health.is_due(Part::Log, Duration::from_secs(1)));
    }

    #[test]
    fn the_worst_is_shown_and_only_the_log_refuses() {
        let mut health = Health::default();
        fail(&mut health, Part::Log, State::Full, 1);
        fail(&mut health, Part::Read, State::Failing, 2);
        assert_eq!(health.worst().unwrap().state, State::Failing);
        assert_eq!(health.refusal().code, Code::StorageFull);
        assert!(health.recover(Part::Read).is_some());
        assert_eq!(health.worst().unwrap().state, State::Full);
        assert!(fail(&mut health, Part::Log, State::Gone, 3), "another state is news");
        assert_eq!(health.worst().unwrap().since, at(3).0);
        health.recover(Part::Log);
        assert!(health.worst().is_none());
    }
}
