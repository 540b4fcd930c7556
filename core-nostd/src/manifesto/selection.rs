//! Requests for a selection, and the filters that they state.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::check::{Fault, MAX_FAULTS, actor_ref};
use super::world::is_world_id;
use crate::pointer;
use crate::value::Value;

/// Memories in a result whose request states no number.
pub const DEFAULT_RESULTS: usize = 10;
/// The most that a request may ask for.
pub const MAX_RESULTS: usize = 1000;

/// Texts in a list of a policy. Each memory is compared with all of them.
const MAX_TEXTS: usize = 64;

/// A SelectionRequest.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectionRequest {
    /// The words.
    pub query: String,
    /// The present World, which is never selected: it is not past.
    pub at_world_id: String,
    /// The actor that selects, as JSON.
    pub selector: Value,
    /// The filters.
    pub constraints: Constraints,
}

/// Filters of a selection. All that are there hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constraints {
    /// Memories at most.
    pub max_results: usize,
    /// The least confidence.
    pub min_confidence: Option<f64>,
    /// Only what proving found valid.
    pub require_verified: bool,
    /// Only what has evidence, by another method than `none`.
    pub require_evidence: bool,
    /// Worlds created later than this, in milliseconds since 1970.
    pub after: Option<i64>,
    /// Worlds created earlier than this.
    pub before: Option<i64>,
}

impl Default for Constraints {
    fn default() -> Self {
        Self {
            max_results: DEFAULT_RESULTS,
            min_confidence: None,
            require_verified: false,
            require_evidence: false,
            after: None,
            before: None,
        }
    }
}

impl SelectionRequest {
    /// Reads a request. Members of `more` may stand in it as well.
    ///
    /// # Errors
    /// The faults, the first hundred or so.
    pub fn from_value(value: &Value, more: &[&str]) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let known = ["query", "atWorldId", "selector", "constraints"];
        let mut read = Read { value, pointer: "", faults: &mut faults };
        read.only(&[&known[..], more].concat());
        let query = read.text("query");
        let at_world_id = read.text("atWorldId");
        if !at_world_id.is_empty() && !is_world_id(&at_world_id) {
            read.fault("atWorldId", "must be at most 512 bytes without control characters");
        }
        let selector = value.get("selector").cloned().unwrap_or_default();
        for mut fault in actor_ref(&selector, true) {
            fault.pointer.insert_str(0, "/selector");
            fault.text.insert_str(0, "`selector`: ");
            faults.push(fault);
        }
        let constraints = match value.get("constraints").filter(|found| !found.is_null()) {
            None => Constraints::default(),
            Some(found) => Constraints::read(found, &mut faults),
        };
        if faults.is_empty() {
            Ok(Self { query, at_world_id, selector, constraints })
        } else {
            Err(faults)
        }
    }
}

impl Constraints {
    fn read(value: &Value, faults: &mut Vec<Fault>) -> Self {
        let mut read = Read { value, pointer: "/constraints", faults };
        read.only(&[
            "maxResults",
            "minConfidence",
            "requireVerified",
            "requireEvidence",
            "timeRange",
        ]);
        let most = read.integer("maxResults", 0, MAX_RESULTS as i64);
        let mut constraints = Self {
            max_results: most.and_then(|most| most.try_into().ok()).unwrap_or(DEFAULT_RESULTS),
            min_confidence: read.unit("minConfidence"),
            require_verified: read.flag("requireVerified"),
            require_evidence: read.flag("requireEvidence"),
            after: None,
            before: None,
        };
        if let Some(range) = value.get("timeRange").filter(|found| !found.is_null()) {
            let mut read = Read { value: range, pointer: "/constraints/timeRange", faults };
            read.only(&["after", "before"]);
            constraints.after = read.integer("after", i64::MIN, i64::MAX);
            constraints.before = read.integer("before", i64::MIN, i64::MAX);
        }
        constraints
    }

    /// Returns true if a World of this time is in the range. One without a time is in none that is stated.
    pub fn is_in_range(&self, created_at: Option<i64>) -> bool {
        let is_after = self.after.is_none_or(|after| created_at.is_some_and(|at| at > after));
        is_after && self.before.is_none_or(|before| created_at.is_some_and(|at| at < before))
    }
}

/// A closed object being read.
pub(super) struct Read<'a> {
    pub(super) value: &'a Value,
    pub(super) pointer: &'a str,
    pub(super) faults: &'a mut Vec<Fault>,
}

impl Read<'_> {
    fn fault(&mut self, name: &str, text: &str) {
        if self.faults.len() >= MAX_FAULTS {
            return;
        }
        let (pointer, text) = (pointer::join(self.pointer, name), format!("`{name}` {text}"));
        self.faults.push(Fault { pointer, text });
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.value.get(name).filter(|found| !found.is_null())
    }

    /// Notes unknown members, or that it is no object.
    pub(super) fn only(&mut self, known: &[&str]) {
        let Some(map) = self.value.as_object() else {
            let text = format!("expected an object, found {}", self.value.kind_name());
            return self.faults.push(Fault { pointer: self.pointer.to_string(), text });
        };
        for name in map.keys().filter(|name| !known.contains(name)).take(MAX_FAULTS) {
            self.fault(name, &format!("is none of {}", known.join(", ")));
        }
    }

    fn text(&mut self, name: &str) -> String {
        let found = self.value.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
        if found.is_empty() {
            self.fault(name, "must be a text that is not empty");
        }
        found
    }

    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    pub(super) fn flag_or(&mut self, name: &str, default: bool) -> bool {
        match self.get(name) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.fault(name, "must be true or false");
                default
            }
        }
    }

    pub(super) fn unit(&mut self, name: &str) -> Option<f64> {
        let found = self.get(name)?.as_f64();
        let number = found.filter(|number| (0.0..=1.0).contains(number));
        if number.is_none() {
            self.fault(name, "must be a number from 0 to 1");
        }
        number
    }

    pub(super) fn integer(&mut self, name: &str, least: i64, most: i64) -> Option<i64> {
        let found = self.get(name)?.as_i64();
        let number = found.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let text = match (least, most) {
                (i64::MIN, i64::MAX) => "must be a whole number".to_string(),
                (_, i64::MAX) => format!("must be a whole number, {least} or more"),
                _ => format!("must be a whole number from {least} to {most}"),
            };
            self.fault(name, &text);
        }
        number
    }

    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().map(ToString::to_string);
        let items = self.get(name)?.as_array().filter(|items| items.len() <= MAX_TEXTS);
        let found = items.and_then(|items| items.iter().map(text).collect());
        if found.is_none() {
            self.fault(name, &format!("must be an array of at most {MAX_TEXTS} texts"));
        }
        found
    }
}
