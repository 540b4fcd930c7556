//! The goals of an action server: what each state allows. No clock and no network in here.
//!
//! States and the rules of cancelling: <https://design.ros2.org/articles/actions.html> and
//! `action_msgs/srv/CancelGoal`.

use std::collections::BTreeMap;

use crate::message::Message;
use crate::stamp::Stamp;

/// Name of a goal, chosen by the client.
pub type GoalId = [u8; 16];

/// State of a goal. Numbers of `action_msgs/msg/GoalStatus`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The goal is unknown.
    Unknown = 0,
    /// Accepted, not begun.
    Accepted = 1,
    /// Being worked on.
    Executing = 2,
    /// A client wants it ended; it has not ended yet.
    Canceling = 3,
    /// Ended as it was wanted.
    Succeeded = 4,
    /// Ended because a client wanted it.
    Canceled = 5,
    /// Ended because it could not be reached.
    Aborted = 6,
}

impl Status {
    /// Returns true if nothing follows it.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Canceled | Self::Aborted)
    }
}

/// Outcome of a request to cancel. Numbers of `action_msgs/srv/CancelGoal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    Done = 0,
    /// No goal fits the request.
    Rejected = 1,
    UnknownGoal = 2,
    GoalEnded = 3,
}

/// Most goals whose end is remembered: each is told of with every change of another.
const MOST_ENDED: usize = 100;

pub(super) struct Goals {
    known: BTreeMap<GoalId, Goal>,
    /// Largest number of goals on the way at once.
    most: usize,
    /// For how long an end is remembered, in nanoseconds.
    keep: i64,
    /// Number of goals that have ended.
    ended: u64,
}

struct Goal {
    accepted: Stamp,
    status: Status,
    end: Option<(Stamp, Message)>,
    /// The how many-th it was to end.
    turn: u64,
}

impl Goals {
    pub(super) fn new(most: usize, keep: i64) -> Self {
        Self { known: BTreeMap::new(), most, keep, ended: 0 }
    }

    /// Takes in a goal.
    pub(super) fn accept(&mut self, id: GoalId, now: Stamp) -> Result<(), &'static str> {
        self.expire(now);
        if self.known.contains_key(&id) {
            return Err("there is a goal of that id");
        }
        if self.known.values().filter(|goal| !goal.status.is_end()).count() >= self.most {
            return Err("as many goals are on the way as this action takes at once");
        }
        self.known.insert(id, Goal { accepted: now, status: Status::Accepted, end: None, turn: 0 });
        Ok(())
    }

    /// Work on it begins.
    pub(super) fn begin(&mut self, id: &GoalId) {
        if let Some(goal) = self.known.get_mut(id)
            && goal.status == Status::Accepted
        {
            goal.status = Status::Executing;
        }
    }

    /// Cancels goals by the rules of `CancelGoal`: an id of zeros means any goal, a
    /// time means all goals accepted until then, both mean that goal and those.
    pub(super) fn cancel(&mut self, id: &GoalId, until: Stamp) -> (Cancel, Vec<(GoalId, Stamp)>) {
        let any = *id == GoalId::default();
        if !any && until.is_zero() {
            match self.known.get(id) {
                None => return (Cancel::UnknownGoal, Vec::new()),
                Some(goal) if goal.status.is_end() => return (Cancel::GoalEnded, Vec::new()),
                Some(_) => {}
            }
        }
        let all = any && until.is_zero();
        let mut canceling = Vec::new();
        for (this, goal) in &mut self.known {
            let meant = all || this == id || (!until.is_zero() && goal.accepted <= until);
            if meant && !goal.status.is_end() {
                goal.status = Status::Canceling;
                canceling.push((*this, goal.accepted));
            }
        }
        (if canceling.is_empty() { Cancel::Rejected } else { Cancel::Done }, canceling)
    }

    /// The goal has come to an end. One that was to be cancelled may succeed all the same.
    pub(super) fn end(&mut self, id: &GoalId, status: Status, result: Message, now: Stamp) {
        if let Some(goal) = self.known.get_mut(id)
            && status.is_end()
            && !goal.status.is_end()
        {
            goal.status = status;
            goal.end = Some((now, result));
            self.ended += 1;
            goal.turn = self.ended;
        }
        self.expire(now);
    }

    /// Forgets goals that ended long ago, or before many others: the clock may stand still.
    pub(super) fn expire(&mut self, now: Stamp) {
        let keep = self.keep;
        let oldest = (self.ended + 1).saturating_sub(MOST_ENDED as u64);
        self.known.retain(|_, goal| {
            let is_over =
                |ended: Stamp| now.nanos_since(ended).unsigned_abs() >= keep.unsigned_abs();
            goal.end.as_ref().is_none_or(|(ended, _)| goal.turn >= oldest && !is_over(*ended))
        });
    }

    pub(super) fn status(&self, id: &GoalId) -> Status {
        self.known.get(id).map_or(Status::Unknown, |goal| goal.status)
    }

    /// The result of a goal that has one.
    pub(super) fn result(&self, id: &GoalId) -> Option<(Status, &Message)> {
        let goal = self.known.get(id)?;
        goal.end.as_ref().map(|(_, result)| (goal.status, result))
    }

    /// All goals: for the topic of their states.
    pub(super) fn all(&self) -> impl Iterator<Item = (&GoalId, Stamp, Status)> {
        self.known.iter().map(|(id, goal)| (id, goal.accepted, goal.status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    const A: GoalId = [1; 16];
    const B: GoalId = [2; 16];
    const ANY: GoalId = [0; 16];

    fn at(seconds: i64) -> Stamp {
        Stamp::from_nanos(seconds * 1_000_000_000)
    }

    fn result() -> Message {
        Message::new(&Registry::standard().message("std_msgs/msg/Empty").unwrap())
    }

    fn goals() -> Goals {
        let mut goals = Goals::new(2, 10_000_000_000);
        goals.accept(A, at(1)).unwrap();
        goals.accept(B, at(2)).unwrap();
        goals
    }

    #[test]
    fn a_goal_goes_from_accepted_to_its_end_and_is_forgotten_after_a_while() {
        let mut goals = goals();
        goals.begin(&A);
        assert_eq!((goals.status(&A), goals.status(&B)), (Status::Executing, Status::Accepted));
        goals.end(&A, Status::Executing, result(), at(3));
        assert_eq!(goals.status(&A), Status::Executing, "no end");
        goals.end(&A, Status::Succeeded, result(), at(3));
        goals.end(&A, Status::Aborted, result(), at(4));
        goals.begin(&A);
        assert_eq!(goals.result(&A).unwrap().0, Status::Succeeded);
        assert!(goals.result(&B).is_none());
        goals.expire(at(12));
        assert_eq!(goals.status(&A), Status::Succeeded);
        goals.expire(at(13));
        assert_eq!((goals.status(&A), goals.all().count()), (Status::Unknown, 1));
    }

    #[test]
    fn ends_are_forgotten_also_while_the_clock_stands_still_or_is_set_back() {
        let mut goals = Goals::new(1, 10_000_000_000);
        for n in 0..1000_u128 {
            goals.accept(n.to_le_bytes(), at(5)).unwrap();
            goals.end(&n.to_le_bytes(), Status::Aborted, result(), at(5));
        }
        assert_eq!(goals.all().count(), MOST_ENDED);
        assert_eq!(goals.status(&999_u128.to_le_bytes()), Status::Aborted);
        assert_eq!(goals.status(&0_u128.to_le_bytes()), Status::Unknown);
        goals.expire(at(-6));
        assert_eq!(goals.all().count(), 0);
    }

    #[test]
    fn no_more_goals_are_taken_than_can_be_on_the_way() {
        let mut goals = goals();
        assert!(goals.accept(A, at(3)).unwrap_err().contains("of that id"));
        assert!(goals.accept([3; 16], at(3)).unwrap_err().contains("as many"));
        goals.end(&B, Status::Aborted, result(), at(3));
        goals.accept([3; 16], at(3)).unwrap();
    }

    #[test]
    fn cancelling_takes_one_goal_or_all_until_a_time_or_all() {
        let cancelled = |id, until| {
            let (code, list) = goals().cancel(&id, until);
            (code, list.into_iter().map(|(id, _)| id[0]).collect::<Vec<_>>())
        };
        assert_eq!(cancelled(B, Stamp::ZERO), (Cancel::Done, vec![2]));
        assert_eq!(cancelled(ANY, Stamp::ZERO), (Cancel::Done, vec![1, 2]));
        assert_eq!(cancelled(ANY, at(1)), (Cancel::Done, vec![1]));
        assert_eq!(cancelled(B, at(1)), (Cancel::Done, vec![1, 2]));
        assert_eq!(cancelled([9; 16], Stamp::ZERO), (Cancel::UnknownGoal, vec![]));
        assert_eq!(Goals::new(1, 1).cancel(&ANY, Stamp::ZERO), (Cancel::Rejected, vec![]));
        let mut goals = goals();
        goals.end(&A, Status::Succeeded, result(), at(3));
        assert_eq!(goals.cancel(&A, Stamp::ZERO), (Cancel::GoalEnded, vec![]));
        assert_eq!(goals.cancel(&B, Stamp::ZERO).0, Cancel::Done);
        assert_eq!(goals.status(&B), Status::Canceling);
        goals.end(&B, Status::Canceled, result(), at(3));
        assert_eq!(goals.status(&B), Status::Canceled);
    }
}
