//! The audit line: who asked for what, of which resources, and how it ended. It never carries contents.
//! Invariant 37 of ARCHITECTURE.md.

use std::time::Duration;

use omir_core::code::Code;
use omir_core::reference::Ref;
use omird_engine::{Effect as Made, Receipt};

use super::caller::Caller;
use super::method::{Effect, Method, Scope};

/// The tracing target of the audit lines; `log = "info,audit=debug"` shows changes too.
pub const AUDIT: &str = "audit";

/// References that one line names; of more it tells the number.
pub const MOST_NAMED: usize = 16;

/// The record of a request that is over.
#[derive(Debug, Clone, Copy)]
pub struct AuditLine<'a> {
    /// The caller; `?` if it is not known.
    pub caller: &'a Caller,
    /// The method that was asked for.
    pub method: &'static Method,
    /// The bytes it came in.
    pub bytes: usize,
    /// The way it ended.
    pub outcome: RequestOutcome,
    /// The resources it changed, or was to change as far as that was known.
    pub touched: &'a Touched,
    /// True if it changes or maintains something when it is done: a dry run does not.
    pub is_change: bool,
    /// The time it took, from the router's decision to the answer.
    pub took: Duration,
}

/// Takes the audit line of each request: a log, a file, counts.
pub trait Sink: Send + Sync {
    /// Takes the line of a request that is over. It must not wait: the request has been answered by this thread.
    fn note(&self, line: &AuditLine<'_>);
}

/// The way a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was answered.
    Done,
    /// It was not answered: a stop, or a bug.
    GivenUp,
    /// It was refused, or failed.
    Refused(Code),
}

impl RequestOutcome {
    /// Returns `ok`, `given up`, or the code of the refusal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::GivenUp => "given up",
            Self::Refused(code) => code.as_str(),
        }
    }
}

/// The weight of an audit line, and so the level it is logged at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A caller was not let in, or asked for more than it may; or the store itself was rearranged. `info`.
    Notable,
    /// Something was changed or looked after, or a request failed. `debug`.
    Change,
    /// Something was read. `trace`.
    Read,
}

impl AuditLine<'_> {
    /// Returns the weight of this line.
    pub fn weight(&self) -> Weight {
        match self.outcome {
            RequestOutcome::Refused(
                Code::Unauthenticated | Code::Unauthorized | Code::RateLimited,
            ) => Weight::Notable,
            RequestOutcome::Refused(_) => Weight::Change,
            RequestOutcome::GivenUp | RequestOutcome::Done if !self.is_change => Weight::Read,
            RequestOutcome::GivenUp => Weight::Change,
            // The others that administer may come often: a backup piece by piece, a clock many times a second.
            RequestOutcome::Done
                if self.method.scope == Scope::ADMIN && self.method.effect != Effect::Maintains =>
            {
                Weight::Notable
            }
            RequestOutcome::Done => Weight::Change,
        }
    }

    /// Writes the line to the log.
    pub fn log(&self) {
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: AUDIT,
                    $level,
                    caller = &*self.caller.name,
                    transport = self.caller.transport,
                    tenant = self.caller.tenant.as_deref(),
                    protocol = self.method.protocol,
                    method = self.method.name,
                    refs = self.touched.in_words(),
                    count = self.touched.count,
                    bytes = self.bytes,
                    outcome = self.outcome.as_str(),
                    micros = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX),
                )
            };
        }
        match self.weight() {
            Weight::Notable => line!(tracing::Level::INFO),
            Weight::Change => line!(tracing::Level::DEBUG),
            Weight::Read => line!(tracing::Level::TRACE),
        }
    }
}

/// Resources that a request touched: the first [`MOST_NAMED`] by name, and how many there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    names: Vec<Box<str>>,
    count: u64,
}

impl Touched {
    pub(super) fn add<'r>(&mut self, targets: impl IntoIterator<Item = &'r Ref>) {
        for target in targets {
            self.count += 1;
            if self.names.len() < MOST_NAMED {
                self.names.push(target.to_string().into());
            }
        }
    }

    /// Takes the resources that a change is asked for, if it names some by itself.
    pub(super) fn ask(&mut self, targets: &[Ref]) {
        if !targets.is_empty() {
            *self = Self::default();
            self.add(targets);
        }
    }

    /// Adds something that is no resource.
    pub(super) fn add_other(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < MOST_NAMED {
            self.names.push(name.into());
        }
    }

    /// Adds as many that have no name here.
    pub(super) fn add_unnamed(&mut self, count: u64) {
        self.count += count;
    }

    /// Takes the resources of a change that was made, in the place of those that were asked for.
    pub(super) fn note(&mut self, receipt: &Receipt) {
        match &receipt.effect {
            Made::Remembered(stored) => {
                *self = Self::default();
                self.add(stored.iter().filter(|one| !one.unchanged).map(|one| &one.target));
            }
            // Resources that went along have no name here.
            Made::Forgotten(count) => self.count = self.count.max(*count),
            Made::Anchored(stored, _) | Made::Believed(stored, _) => {
                *self = Self::default();
                self.add([&stored.target]);
            }
            Made::Rebased { record, moved, .. } => {
                *self = Self::default();
                self.add(record.as_ref().map(|stored| &stored.target));
                self.add_unnamed(*moved);
            }
            Made::Swept(count) => self.count = self.count.max(*count),
        }
    }

    /// Returns the names that are kept.
    pub fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Returns the number of resources, more than there are names if there were many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the names as one text, with blanks between.
    fn in_words(&self) -> String {
        self.names.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::somebody;
    use crate::{About, Payload};

    #[test]
    fn what_a_person_must_see_weighs_more_than_what_robots_do_all_day() {
        let weight = |effect, scope, outcome, is_change| {
            let (protocol, name, about) = ("toy", "do", About::NOTHING);
            let payload = Payload::None;
            let rates = [None, None];
            let streams = false;
            let method = Method { protocol, name, effect, streams, payload, scope, rates, about };
            let (method, took): (&'static Method, _) =
                (Box::leak(Box::new(method)), Duration::ZERO);
            let (caller, touched) = (&somebody(&[]), &Touched::default());
            AuditLine { caller, method, bytes: 0, outcome, touched, is_change, took }.weight()
        };
        let (read, write, admin) = (Scope::READ, Scope::WRITE, Scope::ADMIN);
        let (reads, changes) = (Effect::Reads, Effect::Changes);
        for (expected, is_change, effect, scope, outcome) in [
            (Weight::Read, false, reads, read, RequestOutcome::Done),
            (Weight::Change, false, reads, read, RequestOutcome::Refused(Code::NotFound)),
            (Weight::Notable, false, reads, read, RequestOutcome::Refused(Code::Unauthenticated)),
            (Weight::Notable, false, reads, read, RequestOutcome::Refused(Code::RateLimited)),
            (Weight::Notable, true, changes, write, RequestOutcome::Refused(Code::Unauthorized)),
            (Weight::Change, true, changes, write, RequestOutcome::Done),
            (Weight::Change, true, changes, write, RequestOutcome::GivenUp),
            (Weight::Read, false, reads, read, RequestOutcome::GivenUp),
            (Weight::Notable, true, changes, admin, RequestOutcome::Done),
            (Weight::Read, false, Effect::ChangesUnlessDry, admin, RequestOutcome::Done),
            (Weight::Notable, true, Effect::ChangesUnlessDry, admin, RequestOutcome::Done),
            (Weight::Change, true, Effect::Maintains, admin, RequestOutcome::Done),
            (Weight::Notable, true, Effect::Administers, admin, RequestOutcome::Done),
        ] {
            assert_eq!(
                weight(effect, scope, outcome, is_change),
                expected,
                "{effect:?} {outcome:?}"
            );
        }
    }

    #[test]
    fn the_first_names_are_told_and_all_are_counted() {
        let names: Vec<Ref> = (0..40).map(|n| format!("Entity/e{n}").parse().unwrap()).collect();
        let mut touched = Touched::default();
        touched.add(&names);
        touched.add_unnamed(2);
        assert_eq!((touched.names().len(), touched.count()), (MOST_NAMED, 42));
        assert!(touched.in_words().starts_with("Entity/e0 Entity/e1 "));
        let stored =
            |n: usize, unchanged| omird_engine::Stored::new(names[n].clone(), 1, unchanged);
        let effect = Made::Remembered(vec![stored(0, false), stored(1, true)]);
        touched.note(&Receipt { effect, durable: true, seq: 1 });
        assert_eq!((touched.in_words().as_str(), touched.count()), ("Entity/e0", 1));
        // Resources that went along have no name here.
        let effect = Made::Forgotten(3);
        touched.note(&Receipt { effect, durable: true, seq: 2 });
        assert_eq!((touched.in_words().as_str(), touched.count()), ("Entity/e0", 3));
    }
}
