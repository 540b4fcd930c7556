//! The validators: the faults of a value, in words and with their place; the first [`MAX_FAULTS`] of them.
//!
//! The checks are those of the specification's section on validation, and nothing else fails them. Unknown members are
//! no faults of a trace. The reader of a request asks with `closed`, and then they are.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::selection::MAX_RESULTS;
use crate::pointer;
use crate::value::Value;

/// Memories in a trace that is judged: no selection has more.
pub const MAX_SELECTED: usize = MAX_RESULTS;

/// Faults that are collected of one value: enough to mend it by. A small request can have millions.
pub const MAX_FAULTS: usize = 100;

/// A fault of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer to the member, from the value that was checked.
    pub pointer: String,
    /// The fault, behind the names of what it is in: `selected[0]: evidence: …`.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks an ActorRef: the selector, or the verifier.
pub fn actor_ref(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| check.is_actor())
}

/// Checks a MemoryRef.
pub fn memory_ref(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| check.memory_ref())
}

/// Checks a VerificationProof. What its `proof` holds is for the verifier.
pub fn verification_proof(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| {
        check.text("method");
        check.only(&["method", "proof"]);
    })
}

/// Checks a VerificationEvidence.
pub fn verification_evidence(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| check.evidence())
}

/// Checks a SelectedMemory.
pub fn selected_memory(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| check.selected_memory())
}

/// Checks a SelectionResult.
pub fn selection_result(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| {
        check.moment("selectedAt");
        check.selected();
        check.only(&["selected", "selectedAt"]);
    })
}

/// Checks a MemoryTrace.
pub fn memory_trace(value: &Value, closed: bool) -> Vec<Fault> {
    checked(value, closed, |check| {
        check.actor("selector");
        check.text("query");
        check.moment("selectedAt");
        check.text("atWorldId");
        check.selected();
        check.only(&["selector", "query", "selectedAt", "atWorldId", "selected"]);
    })
}

fn checked(value: &Value, closed: bool, check: impl FnOnce(&mut Check<'_>)) -> Vec<Fault> {
    let mut faults = Vec::new();
    check(&mut Check { value, closed, pointer: "", label: "", faults: &mut faults });
    faults
}

/// A value being checked, and where it lies.
pub(super) struct Check<'a> {
    value: &'a Value,
    closed: bool,
    pointer: &'a str,
    label: &'a str,
    faults: &'a mut Vec<Fault>,
}

impl<'a> Check<'a> {
    /// Notes a fault of a member.
    fn fault(&mut self, name: &str, text: &str) {
        if self.is_full() {
            return;
        }
        let text = format!("{}{text}", self.label);
        self.faults.push(Fault { pointer: pointer::join(self.pointer, name), text });
    }

    /// Returns true if no more faults are collected.
    fn is_full(&self) -> bool {
        self.faults.len() >= MAX_FAULTS
    }

    /// Checks a member by itself.
    fn inside(&mut self, token: &str, label: &str, value: &Value, check: fn(&mut Check<'_>)) {
        let (pointer, label) =
            (pointer::join(self.pointer, token), format!("{}{label}: ", self.label));
        let (closed, faults) = (self.closed, &mut *self.faults);
        check(&mut Check { value, closed, pointer: &pointer, label: &label, faults });
    }

    /// Returns a member that is there; `null` is not.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) {
        let is_right =
            self.value.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        if !is_right {
            self.fault(name, &format!("`{name}` must be a text that is not empty"));
        }
    }

    fn moment(&mut self, name: &str) {
        let is_right =
            self.value.get(name).and_then(Value::as_i64).is_some_and(|moment| moment > 0);
        if !is_right {
            let unit = "a whole number above 0, milliseconds since 1970";
            self.fault(name, &format!("`{name}` must be {unit}"));
        }
    }

    fn actor(&mut self, name: &str) {
        let missing = Value::Null;
        let value = self.value.get(name).unwrap_or(&missing);
        let (pointer, label) =
            (pointer::join(self.pointer, name), format!("{}`{name}`: ", self.label));
        let (closed, faults) = (self.closed, &mut *self.faults);
        Check { value, closed, pointer: &pointer, label: &label, faults }.is_actor();
    }

    /// Notes one fault at most, for an ActorRef is right or not; but each unknown member.
    fn is_actor(&mut self) {
        let kinds = ["human", "agent", "system"];
        let actor_id = self.value.get("actorId").and_then(Value::as_str).unwrap_or_default();
        let kind = self.value.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name_is_right = self.get("name").is_none_or(|name| name.as_str().is_some());
        let meta_is_right = self.get("meta").is_none_or(|meta| meta.as_object().is_some());
        let label = self.label.trim_end_matches(": ");
        let subject = if label.is_empty() { "it" } else { label };
        let is_right =
            !actor_id.is_empty() && kinds.contains(&kind) && name_is_right && meta_is_right;
        if !is_right && !self.is_full() {
            let wanted = "an ActorRef: `actorId`, and `kind` human, agent or system";
            let text = format!("{subject} must be {wanted}");
            self.faults.push(Fault { pointer: self.pointer.into(), text });
        }
        self.only(&["actorId", "kind", "name", "meta"]);
    }

    fn memory_ref(&mut self) {
        self.text("worldId");
        self.only(&["worldId"]);
    }

    fn evidence(&mut self) {
        self.text("method");
        self.moment("verifiedAt");
        self.actor("verifiedBy");
        self.only(&["method", "proof", "verifiedAt", "verifiedBy"]);
    }

    fn selected_memory(&mut self) {
        let missing = Value::Null;
        let reference = self.value.get("ref").unwrap_or(&missing);
        self.inside("ref", "ref", reference, |check| check.memory_ref());
        self.text("reason");
        match self.value.get("confidence").and_then(Value::as_f64) {
            None => self.fault("confidence", "`confidence` must be a number"),
            Some(confidence) if !(0.0..=1.0).contains(&confidence) => {
                self.fault("confidence", "`confidence` must be from 0 to 1");
            }
            Some(_) => {}
        }
        if self.value.get("verified").and_then(Value::as_bool).is_none() {
            self.fault("verified", "`verified` must be true or false");
        }
        if let Some(evidence) = self.get("evidence") {
            self.inside("evidence", "evidence", evidence, |check| check.evidence());
        }
        self.only(&["ref", "reason", "confidence", "verified", "evidence"]);
    }

    fn selected(&mut self) {
        let Some(selected) = self.value.get("selected").and_then(Value::as_array) else {
            return self.fault("selected", "`selected` must be an array");
        };
        let (pointer, outer) = (pointer::join(self.pointer, "selected"), self.label);
        for (index, memory) in selected.iter().enumerate() {
            if self.is_full() {
                break;
            }
            let (pointer, label) =
                (pointer::join_index(&pointer, index), format!("{outer}selected[{index}]: "));
            let (closed, faults) = (self.closed, &mut *self.faults);
            Check { value: memory, closed, pointer: &pointer, label: &label, faults }
                .selected_memory();
        }
    }

    /// Notes unknown members, if those are faults.
    fn only(&mut self, known: &[&str]) {
        let Some(map) = self.value.as_object().filter(|_| self.closed) else { return };
        for name in map.keys().filter(|name| !known.contains(name)).take(MAX_FAULTS) {
            self.fault(name, &format!("`{name}` is none of {}", known.join(", ")));
        }
    }
}
