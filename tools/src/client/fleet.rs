//! Robots that are alive, and questions to all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use zenoh::Wait as _;
use zenoh::query::QueryTarget;

use super::{Client, Reply};
use crate::error::{Error, Result};
use crate::selector::Parameters;

/// Time without a sign of life after which no robot is there.
const HEARING: Duration = Duration::from_secs(2);

/// Interval between two questions for robots.
const A_MOMENT: Duration = Duration::from_millis(40);

/// Replies to a question to every robot.
#[derive(Debug, Default)]
pub struct FleetReplies {
    /// Answers by robot.
    pub answers: BTreeMap<String, Reply>,
    /// Robots that answered with an error.
    pub refusals: Vec<(Option<String>, Error)>,
    /// Robots that are alive and did not answer.
    pub silent: BTreeSet<String>,
}

impl FleetReplies {
    /// Robots that refused are not silent. An error reply need not say whose it is: as many silent robots are accounted for
    /// by those that do not.
    fn account_for_refusals(&mut self) {
        for robot in self.refusals.iter().filter_map(|(robot, _)| robot.as_ref()) {
            self.silent.remove(robot);
        }
        let unnamed = self.refusals.iter().filter(|(robot, _)| robot.is_none()).count();
        if self.silent.len() <= unnamed {
            self.silent.clear();
        }
    }

    /// The failure to end with once the answers are shown; `None` if every robot answered.
    #[must_use]
    pub fn shortfall(&mut self) -> Option<Error> {
        if self.answers.is_empty() && !self.refusals.is_empty() {
            return Some(self.refusals.swap_remove(0).1);
        }
        let mut words = Vec::new();
        if !self.silent.is_empty() {
            let names: Vec<&str> = self.silent.iter().map(String::as_str).collect();
            words.push(format!("no answer from {}", names.join(", ")));
        }
        for (robot, error) in &self.refusals {
            words.push(match robot {
                Some(robot) => format!("{robot}: {error}"),
                None => error.to_string(),
            });
        }
        (!words.is_empty()).then(|| Error::Partial(words.join("; ")))
    }
}

impl Client {
    /// Names of the robots that are alive, in order.
    ///
    /// A daemon behind a router may answer the question for robots before it knows that it is alive itself.
    /// So it is asked until an answer brings no new robot, and for `HEARING` where no robot is heard.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if the question cannot be sent.
    pub fn robots(&self) -> Result<BTreeSet<String>> {
        let until = Instant::now() + HEARING.min(self.timeout);
        let mut robots = BTreeSet::new();
        loop {
            let known = robots.len();
            self.hear(&mut robots)?;
            let is_complete = known > 0 && robots.len() == known;
            if is_complete || Instant::now() >= until {
                return Ok(robots);
            }
            std::thread::sleep(A_MOMENT);
        }
    }

    /// Adds the robots of one answer.
    fn hear(&self, robots: &mut BTreeSet<String>) -> Result<()> {
        let replies = self
            .session()?
            .liveliness()
            .get(format!("{}/*/alive", self.prefix))
            .timeout(self.timeout)
            .wait()
            .map_err(|why| self.lost(&why))?;
        while let Ok(reply) = replies.recv() {
            if let Ok(token) = reply.result()
                && let Some(robot) = self.robot_of(token.key_expr().as_str())
            {
                robots.insert(robot.to_owned());
            }
        }
        Ok(())
    }

    /// The robot that is meant: the one named, or the only one alive.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if none is alive, [`Error::Usage`] with their names if several are.
    pub fn robot(&self, named: Option<&str>) -> Result<String> {
        if let Some(name) = named {
            return Ok(name.to_owned());
        }
        let mut robots = self.robots()?;
        match (robots.pop_first(), robots.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(self.nobody()),
            (Some(first), false) => {
                let names: Vec<String> = std::iter::once(first).chain(robots).collect();
                Err(Error::Usage(format!(
                    "several robots are alive: {}; name one with --robot",
                    names.join(", ")
                )))
            }
        }
    }

    /// Asks `<prefix>/<robot>/<path>` of every robot in `alive`, all at once.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if none answers. Single failures are in the result.
    pub fn ask_fleet(
        &self,
        alive: BTreeSet<String>,
        path: &str,
        parameters: &Parameters,
    ) -> Result<FleetReplies> {
        if alive.is_empty() {
            return Err(self.nobody());
        }
        let key = format!("{}/*/{path}", self.prefix);
        let mut fleet = FleetReplies { silent: alive, ..FleetReplies::default() };
        for reply in self.query(&key, parameters, None, QueryTarget::All)? {
            match self.outcome(&reply) {
                Ok(answer) => {
                    if let Some(robot) = self.robot_of(&answer.key) {
                        let robot = robot.to_owned();
                        fleet.silent.remove(&robot);
                        fleet.answers.insert(robot, answer);
                    }
                }
                Err((_, Error::Unreachable(_))) => {}
                Err((robot, error)) => fleet.refusals.push((robot, error)),
            }
        }
        fleet.account_for_refusals();
        if fleet.answers.is_empty() && fleet.refusals.is_empty() {
            let names: Vec<String> = fleet.silent.into_iter().collect();
            return Err(self.no_answer(&names.join(", ")));
        }
        Ok(fleet)
    }

    /// The robot in `<prefix>/<robot>/…`.
    #[must_use]
    pub fn robot_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let rest = key.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        rest.split('/').next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns those that stay silent, of `silent`, after refusals by these robots.
    fn silent(silent: &[&str], refusals: &[Option<&str>]) -> Vec<String> {
        let refusal = |robot: &Option<&str>| {
            (robot.map(str::to_owned), Error::Negative { code: "NO", message: "no".to_owned() })
        };
        let mut fleet = FleetReplies {
            silent: silent.iter().map(|&robot| robot.to_owned()).collect(),
            refusals: refusals.iter().map(refusal).collect(),
            ..FleetReplies::default()
        };
        fleet.account_for_refusals();
        fleet.silent.into_iter().collect()
    }

    #[test]
    fn who_refuses_is_not_silent_and_who_is_silent_is_named() {
        assert_eq!(silent(&["a", "b"], &[Some("a")]), ["b"]);
        assert_eq!(silent(&["a", "b", "c"], &[Some("a"), Some("c")]), ["b"]);
        assert_eq!(silent(&["b"], &[Some("a")]), ["b"]);
        assert_eq!(silent(&["a", "b"], &[Some("a"), None]), [""; 0]);
        assert_eq!(silent(&["a", "b"], &[None]), ["a", "b"]);
        assert_eq!(silent(&["a", "b"], &[None, None]), [""; 0]);
    }
}
