//! Signals to supervisors of the agents: an error that is severe, errors that are many, a new pattern, money that runs
//! out.
//!
//! A signal stands in the result of the call that caused it, where there is one, and goes to all listeners of the
//! protocol. Its key is `compass/signal/<task>`, with the task as the store names it: a task's id may have any
//! characters.

use omir_core::json;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};
use omird_router::{Announcement, Listener};
use parking_lot::Mutex;

use crate::names::Sort;

/// The cause of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalType {
    /// One error is severe.
    Severity,
    /// Too many of the memories of a stage are errors.
    ErrorRate,
    /// Errors repeat themselves in a way that is new.
    Pattern,
    /// The money of the month runs out.
    Budget,
}

impl SignalType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Severity => "severity",
            Self::ErrorRate => "error_rate",
            Self::Pattern => "pattern",
            Self::Budget => "budget",
        }
    }
}

/// A signal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signal {
    pub(crate) signal_type: SignalType,
    pub(crate) value: f64,
    pub(crate) threshold: f64,
    pub(crate) task_id: String,
    pub(crate) agent_id: String,
    /// RFC 3339.
    pub(crate) at: String,
    /// The task in the store.
    pub(crate) task: Ref,
    /// The record that it is about: an error, a pattern, a budget.
    pub(crate) about: Ref,
}

impl Signal {
    /// As it stands in an answer.
    pub(crate) fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("signal_type", self.signal_type.as_str());
        map.insert("value", self.value);
        map.insert("threshold", self.threshold);
        map.insert("task_id", self.task_id.as_str());
        map.insert("agent_id", self.agent_id.as_str());
        map.insert("at", self.at.as_str());
        Value::Object(map)
    }

    fn announcement(&self) -> Announcement {
        let mut reference = Map::new();
        reference.insert("signal_type", self.signal_type.as_str());
        reference.insert("ref", self.about.to_string());
        Announcement {
            key: format!("compass/signal/{}", Sort::Task.key_of(&self.task)),
            body: json::to_string(&self.to_value()).into_bytes(),
            reference: json::to_string(&Value::Object(reference)).into_bytes(),
        }
    }
}

/// The listeners.
#[derive(Default)]
pub(crate) struct Announcer(Mutex<Vec<Listener>>);

impl Announcer {
    pub(crate) fn add(&self, listener: Listener) {
        self.0.lock().push(listener);
    }

    /// Tells all listeners. No lock is held while a listener runs.
    pub(crate) fn tell(&self, signal: &Signal) {
        let listeners = self.0.lock().clone();
        if listeners.is_empty() {
            return;
        }
        let announcement = signal.announcement();
        listeners.iter().for_each(|listener| listener(&announcement));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::name;

    #[test]
    fn a_signal_has_a_key_that_is_no_wildcard_and_a_form_without_contents() {
        let of = |task: &str| Signal {
            signal_type: SignalType::Severity,
            value: 0.9,
            threshold: 0.7,
            task_id: task.to_owned(),
            agent_id: "a1".to_owned(),
            at: "2026-05-30T11:42:05Z".to_owned(),
            task: name(Sort::Task, "default", task).unwrap(),
            about: name(Sort::Error, "default", "e1").unwrap(),
        };
        assert_eq!(of("t1").announcement().key, "compass/signal/t1");
        let key = of("*/**").announcement().key;
        let name = key.strip_prefix("compass/signal/").unwrap();
        assert!(name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
        let reference = String::from_utf8(of("t1").announcement().reference).unwrap();
        assert_eq!(reference, r#"{"signal_type":"severity","ref":"MemoryRecord/ce.e1"}"#);
    }
}
