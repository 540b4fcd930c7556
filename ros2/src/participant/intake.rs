//! Messages in, memories out: the rules, the transforms, and what waits for them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::message::Message;
use crate::rules::{Arrival, Kept, Outcome, Rules, Untold, Wait};
use crate::stamp::Stamp;
use crate::tf::Buffer;

/// Most messages that wait for their transform; beyond it the oldest goes on without one.
const MOST_WAITING: usize = 1000;

/// The state of all that is observed.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) rules: Rules,
    waiting: VecDeque<Waiting>,
    patience: Duration,
}

/// A message whose place is not known yet.
#[derive(Debug)]
struct Waiting {
    wait: Wait,
    topic: String,
    node: Option<String>,
    received: Stamp,
    message: Message,
}

impl Intake {
    /// With rules, where a message waits for its transform at most `patience`.
    pub(super) fn new(rules: Rules, patience: Duration) -> Self {
        Self { rules, waiting: VecDeque::new(), patience }
    }

    /// What is to be remembered of a message.
    pub(super) fn observe(
        &mut self,
        topic: &str,
        node: Option<&str>,
        received: Stamp,
        message: &Message,
        tf: &Buffer,
    ) -> Vec<Kept> {
        let outcomes = self.rules.observe(&Arrival { topic, node, received }, message, tf);
        let mut kept = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Keep(keep) => kept.push(*keep),
                Outcome::Merged { .. } | Outcome::Dropped(_) => {}
                Outcome::Wait(wait) => self.waiting.push_back(Waiting {
                    wait,
                    topic: topic.to_owned(),
                    node: node.map(ToOwned::to_owned),
                    received,
                    message: message.clone(),
                }),
            }
        }
        while self.waiting.len() > MOST_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            kept.extend(self.retry(oldest, tf, true));
        }
        kept
    }

    /// What can be decided by now of what waited; all of it, if there will be no other time.
    pub(super) fn go_on(&mut self, now: Stamp, tf: &Buffer, all: bool) -> Vec<Kept> {
        let mut kept = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let is_over = all
                || now < waiting.received.saturating_sub(self.patience)
                || now >= waiting.received.saturating_add(self.patience);
            if is_over || now >= waiting.wait.expected {
                kept.extend(self.retry(waiting, tf, is_over));
            } else {
                self.waiting.push_back(waiting);
            }
        }
        kept
    }

    /// Whether anything waits.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sights of known things that no memory tells of yet.
    pub(super) fn untold(&mut self, now: Stamp, all: bool) -> Vec<Untold> {
        self.rules.untold(now, all)
    }

    fn retry(&mut self, waiting: Waiting, tf: &Buffer, last: bool) -> Vec<Kept> {
        let Waiting { wait, topic, node, received, message } = waiting;
        let arrival = Arrival { topic: &topic, node: node.as_deref(), received };
        let outcomes = self.rules.retry(&wait, &arrival, &message, tf, last);
        let mut kept = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Keep(keep) => kept.push(*keep),
                Outcome::Merged { .. } | Outcome::Dropped(_) => {}
                Outcome::Wait(wait) => {
                    let (topic, node) = (topic.clone(), node.clone());
                    let message = message.clone();
                    self.waiting.push_back(Waiting { wait, topic, node, received, message });
                }
            }
        }
        kept
    }
}
