//! Memories that wait for vectors, and what becomes of them after an answer or a failure. No server, no store, no clock.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use omird_engine::Code;

use crate::failure::Failure;
use crate::model::embedding::MOST_TEXTS;
use crate::model::server::{REST, Why};
use crate::money::paying::NoAnswer;
use crate::queues::vectors::Due;

/// Memories that wait, at most.
const MOST_WAITING: usize = 16_384;
/// Longest pause after failures that follow each other.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(600);
/// Texts that are refused one by one before the server is taken to refuse everybody, unless it has taken others.
const MOST_SUSPECTS: usize = 4;

/// The memories that wait.
#[derive(Default)]
pub(super) struct Backlog {
    waiting: VecDeque<Due>,
    /// Memories whose texts the server refuses, or whose vectors the store does.
    refused: HashSet<Due>,
    /// Halves of requests that were refused, to be sent one after the other before anything else.
    parts: VecDeque<VecDeque<Due>>,
    /// Memories whose texts were refused one by one since. They are `refused` once a part is taken: else it refuses everybody.
    suspects: Vec<Due>,
    /// Texts of the largest part that was taken. 0 if none was, so that the server may refuse everybody.
    largest_taken: usize,
    /// Texts that are sent at a time, after more were too many for the server or the money.
    fewer: Option<usize>,
    /// The pause to make before the next request.
    pause: Option<Duration>,
    /// The pause after the last failure.
    rest: Option<Duration>,
}

impl Backlog {
    /// Adds a memory. Returns false if there is no room.
    pub(super) fn add(&mut self, due: Due) -> bool {
        if self.waiting.len() >= MOST_WAITING {
            return false;
        }
        // A text that was refused may be another one now.
        self.refused.remove(&due);
        self.waiting.push_back(due);
        true
    }

    /// Adds a memory that has no vector yet. Returns false if there is no room; one whose text is refused needs none.
    pub(super) fn add_unknown(&mut self, due: Due) -> bool {
        if self.refused.contains(&due) {
            return true;
        }
        let has_room = self.waiting.len() < MOST_WAITING;
        if has_room {
            self.waiting.push_back(due);
        }
        has_room
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.parts.is_empty()
    }

    /// Begins with another model, which may take what the one before refused.
    pub(super) fn begin(&mut self) {
        self.refused.clear();
        self.waiting.extend(self.suspects.drain(..));
        self.join();
        (self.largest_taken, self.fewer) = (0, None);
    }

    /// Takes the pause to make before the next request.
    pub(super) fn take_pause(&mut self) -> Option<Duration> {
        self.pause.take()
    }

    /// Forgets the failures so far: the next pause is short again.
    pub(super) fn recover(&mut self) {
        (self.pause, self.rest) = (None, None);
    }

    /// Returns true if the next request is a part of one that was refused, and the most texts it may have.
    pub(super) fn next_request(&self) -> (bool, usize) {
        match self.parts.is_empty() {
            true => (false, self.fewer.unwrap_or(MOST_TEXTS)),
            false => (true, MOST_TEXTS),
        }
    }

    fn next_dues(&mut self) -> &mut VecDeque<Due> {
        self.parts.front_mut().unwrap_or(&mut self.waiting)
    }

    /// Takes the next memory of that request.
    pub(super) fn pop(&mut self) -> Option<Due> {
        self.next_dues().pop_front()
    }

    /// Puts back the memory that was taken last.
    pub(super) fn push(&mut self, due: Due) {
        self.next_dues().push_front(due);
    }

    /// Ends the request: what it left of its part comes next.
    pub(super) fn end_request(&mut self) {
        if self.parts.front().is_some_and(VecDeque::is_empty) {
            self.parts.pop_front();
        }
    }

    pub(super) fn rest_for(&mut self, rest: Duration) {
        (self.rest, self.pause) = (Some(rest), Some(rest));
    }

    /// Joins parts with all others that wait.
    fn join(&mut self) {
        while let Some(part) = self.parts.pop_back() {
            part.into_iter().rev().for_each(|due| self.waiting.push_front(due));
        }
    }

    /// Notes that a request of so many texts was answered.
    pub(super) fn taken(&mut self, texts: usize, is_part: bool) -> bool {
        self.rest = None;
        if is_part {
            self.largest_taken = self.largest_taken.max(texts);
        } else {
            // One more each time: the server may take more by now.
            self.fewer = self.fewer.map(|fewer| fewer + 1).filter(|fewer| *fewer < MOST_TEXTS);
        }
        true
    }

    /// Decides about the texts that were refused one by one, once all parts were sent, or so many of them that it is enough.
    pub(super) fn judge(&mut self) -> bool {
        let refuses_all = self.largest_taken == 0 && self.suspects.len() >= MOST_SUSPECTS;
        if !self.parts.is_empty() && !refuses_all {
            return true;
        }
        let taken = std::mem::take(&mut self.largest_taken);
        let suspects = std::mem::take(&mut self.suspects);
        if taken > 0 {
            if suspects.is_empty() {
                // No text was at fault, but their number.
                self.fewer = Some(taken).filter(|taken| *taken < MOST_TEXTS);
            }
            self.refused.extend(suspects);
            return true;
        }
        if suspects.is_empty() {
            return true;
        }
        // Those behind come first then, so that no text holds up the others.
        self.join();
        self.waiting.extend(suspects);
        self.rest_for(LONGEST_REST);
        false
    }

    /// Lets memories wait for a time.
    fn put_off(&mut self, dues: Vec<Due>, is_part: bool, rest: Duration) -> bool {
        if is_part {
            self.parts.push_front(dues.into());
        } else {
            dues.into_iter().rev().for_each(|due| self.waiting.push_front(due));
        }
        self.rest_for(rest);
        false
    }

    /// Has memories sent in two halves.
    fn split(&mut self, mut dues: Vec<Due>) {
        let second = dues.split_off(dues.len() / 2);
        for half in [second, dues].into_iter().filter(|half| !half.is_empty()) {
            self.parts.push_front(half.into());
        }
    }

    /// Notes that vectors were made and could not be stated. What the store never takes must not hold up the others.
    pub(super) fn not_written(&mut self, dues: Vec<Due>, is_part: bool, failure: Failure) -> bool {
        let is_for_good =
            matches!(failure.code, Code::InvalidResource | Code::InvalidQuery | Code::TooLarge);
        let error = failure.error.message;
        if !is_for_good {
            let rest = self.next_rest();
            tracing::warn!(error, seconds = rest.as_secs(), "vectors could not be written");
            return self.put_off(dues, is_part, rest);
        }
        if dues.len() > 1 {
            self.split(dues);
            return true;
        }
        tracing::warn!(error, "a memory goes without a vector; words find it");
        self.refused.extend(dues);
        true
    }

    /// Returns the pause after a failure, twice as long as that before it.
    fn next_rest(&self) -> Duration {
        self.rest.map_or(REST, |rest| (rest * 2).clamp(REST, LONGEST_REST))
    }

    /// Notes that a request was not answered. Returns false where there is a pause to make.
    pub(super) fn failed(&mut self, dues: Vec<Due>, is_part: bool, why: &NoAnswer) -> bool {
        let half = dues.len() / 2;
        let silent = match why {
            NoAnswer::Capped if half > 0 => {
                // No server was asked, and there may be money for half of them.
                if is_part {
                    self.split(dues);
                } else {
                    self.fewer = Some(half);
                    self.put_off(dues, is_part, Duration::ZERO);
                    self.recover();
                }
                return true;
            }
            NoAnswer::Capped => {
                tracing::debug!("there is no money for vectors this month; words find memories");
                self.fewer = None;
                // A shorter text may be within what is left.
                self.waiting.extend(dues);
                self.rest_for(LONGEST_REST);
                return false;
            }
            NoAnswer::Silent(silent) => silent,
        };
        let (why, texts) = (&silent.message, dues.len());
        tracing::warn!(why, texts, "no vectors were made; they are tried again");
        let rest = self.next_rest();
        match silent.why {
            Why::Refused | Why::Unusable if half > 0 => {
                // They may be too many, or one of them may be what the server does not take. So that it is not asked for long
                // where it refuses everybody, texts are not sent one by one from the start.
                self.split(dues);
                true
            }
            // A single text because the server was away before says nothing about the text: a portal of the network may answer.
            Why::Unusable if !is_part && self.fewer.is_none() => {
                // It was paid for, and would be paid for each time.
                self.refused.extend(dues);
                self.rest_for(REST);
                false
            }
            Why::Refused | Why::Unusable => self.suspect(dues),
            Why::NotAsked => self.put_off(dues, is_part, rest),
            Why::Down => {
                if half > 0 && !is_part {
                    // It may be too slow for so many.
                    self.fewer = Some(half);
                }
                self.put_off(dues, is_part, rest)
            }
        }
    }

    /// A text that was sent by itself was refused.
    fn suspect(&mut self, dues: Vec<Due>) -> bool {
        self.suspects.extend(dues);
        if self.largest_taken > 0 {
            return true;
        }
        self.rest_for(REST);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::server::Silent;

    fn dues(ids: &[&str]) -> Vec<Due> {
        ids.iter().map(|id| ("default".to_owned(), (*id).to_owned())).collect()
    }

    fn ids<'d>(all: impl IntoIterator<Item = &'d Due>) -> Vec<&'d str> {
        all.into_iter().map(|(_, id)| id.as_str()).collect()
    }

    fn silent(why: Why) -> NoAnswer {
        NoAnswer::Silent(Silent { message: "no".to_owned(), lost: 0, why })
    }

    /// Fails as one step does.
    fn fail(backlog: &mut Backlog, all: &[&str], why: &NoAnswer) -> bool {
        let is_part = !backlog.parts.is_empty();
        if is_part {
            assert_eq!(ids(&backlog.parts.pop_front().unwrap()), all);
        }
        let goes_on = backlog.failed(dues(all), is_part, why);
        backlog.judge() && goes_on
    }

    #[test]
    fn a_server_that_refuses_everybody_leaves_nobody_without_a_vector() {
        let mut backlog = Backlog::default();
        let refused = silent(Why::Refused);
        assert!(fail(&mut backlog, &["a", "b", "c", "d", "e", "f", "g", "h"], &refused));
        assert!(fail(&mut backlog, &["a", "b", "c", "d"], &refused));
        assert!(fail(&mut backlog, &["a", "b"], &refused));
        for one in ["a", "b"] {
            assert!(!fail(&mut backlog, &[one], &refused), "nothing was taken: it rests");
            assert_eq!(backlog.rest, Some(REST));
        }
        assert!(fail(&mut backlog, &["c", "d"], &refused));
        assert!(!fail(&mut backlog, &["c"], &refused));
        assert!(!fail(&mut backlog, &["d"], &refused));
        assert_eq!(backlog.rest, Some(LONGEST_REST));
        assert_eq!(ids(&backlog.waiting), ["e", "f", "g", "h", "a", "b", "c", "d"]);
        assert!(
            backlog.refused.is_empty() && backlog.parts.is_empty() && backlog.suspects.is_empty()
        );
    }

    #[test]
    fn what_is_refused_while_others_are_taken_goes_without() {
        let mut backlog = Backlog::default();
        let refused = silent(Why::Refused);
        assert!(fail(&mut backlog, &["a", "b", "c"], &refused));
        assert!(!fail(&mut backlog, &["a"], &refused));
        assert!(fail(&mut backlog, &["b", "c"], &refused));
        assert!(backlog.refused.is_empty(), "nobody knows yet");
        backlog.parts.pop_front();
        assert!(backlog.taken(1, true) && backlog.judge());
        assert!(fail(&mut backlog, &["c"], &refused), "the server works: no rest");
        let mut without = ids(&backlog.refused);
        without.sort_unstable();
        assert_eq!(without, ["a", "c"]);
        assert!(backlog.waiting.is_empty() && backlog.fewer.is_none());
    }

    #[test]
    fn after_too_many_fewer_are_sent_and_then_one_more_each_time() {
        let mut backlog = Backlog::default();
        assert!(fail(&mut backlog, &["a", "b", "c", "d"], &silent(Why::Refused)));
        for _ in 0..2 {
            backlog.parts.pop_front();
            assert!(backlog.taken(2, true) && backlog.judge());
        }
        assert_eq!(backlog.fewer, Some(2));
        assert!(backlog.taken(2, false));
        assert_eq!(backlog.fewer, Some(3));
        backlog.fewer = Some(MOST_TEXTS - 1);
        assert!(backlog.taken(1, false));
        assert_eq!(backlog.fewer, None);
        // One that takes too long for all may have the time for some.
        assert!(!fail(&mut backlog, &["a", "b", "c", "d"], &silent(Why::Down)));
        assert_eq!((backlog.fewer, backlog.rest), (Some(2), Some(REST)));
        assert_eq!(ids(&backlog.waiting), ["a", "b", "c", "d"]);
    }

    #[test]
    fn money_for_some_is_spent_on_them() {
        let mut backlog = Backlog::default();
        assert!(fail(&mut backlog, &["a", "b"], &NoAnswer::Capped), "nobody was asked");
        assert_eq!((backlog.fewer, ids(&backlog.waiting)), (Some(1), vec!["a", "b"]));
        backlog.waiting.pop_front();
        assert!(!fail(&mut backlog, &["a"], &NoAnswer::Capped));
        assert_eq!((backlog.fewer, ids(&backlog.waiting)), (None, vec!["b", "a"]));
        assert_eq!(backlog.rest, Some(LONGEST_REST));
    }

    #[test]
    fn no_failure_is_followed_by_another_try_at_once() {
        let backlog = Backlog { rest: Some(Duration::ZERO), ..Backlog::default() };
        assert_eq!(backlog.next_rest(), REST);
        let backlog = Backlog { rest: Some(LONGEST_REST), ..Backlog::default() };
        assert_eq!(backlog.next_rest(), LONGEST_REST);
    }
}
