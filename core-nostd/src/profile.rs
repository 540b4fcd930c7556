//! Profiles: published constraints on the core, as data.
//!
//! A profile narrows what the schemas allow for a domain: fields that must be there, values that should
//! be used, extensions that are required (spec: Profiles). It is a JSON document, so that anyone can
//! write one and check against it; the three of R1 are such documents, embedded here.
//!
//! ```json
//! { "url": "https://example.org/profile/patrol",
//!   "name": "patrol",
//!   "rules": [
//!     { "on": ["MemoryRecord"], "must": { "path": "/eventTime", "present": true },
//!       "why": "a patrol is told in the order things happened" },
//!     { "on": ["Entity"], "when": [{ "path": "/labels", "contains": ["location"] }],
//!       "must": { "extension": "https://omir.io/spec/R1/extension/spatial-pose" } },
//!     { "on": ["Episode"], "should": { "path": "/source", "in": ["event", "observation"] } }
//!   ] }
//! ```
//!
//! A rule speaks of resources of the types `on` for which every test of `when` holds and none of
//! `unless`. They `must` (E400) or `should` (W403) pass its one test. A test is about one of:
//!
//! | test | passes if |
//! |---|---|
//! | `path`, `present` | the field is there (`true`), or is not (`false`: forbidden) |
//! | `path`, `in` | the field is there and is one of these texts |
//! | `path`, `contains` | the field is an array that holds one of these texts |
//! | `path`, `atLeast`, `atMost` | the field is there and lies in the range, both ends included |
//! | `extension` | an extension with that URL is there |
//! | `poses`: `"valid"` | every spatial pose it carries is one; faults point into it |
//!
//! `path` is a JSON Pointer to a field that the schema of each type in `on` knows. Profiles only add
//! constraints: none can make a resource conform that the core refuses.

mod rule;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::decode::Limits;
use crate::json;
use crate::reference::ResourceType;
use crate::validate::{At, Fault, FaultCode, Severity, Shape, Table, Walk, closed, may, need};
use crate::value::Value;
use rule::Rule;

/// The profile for coding agents.
pub const CODING_AGENT: &str = "https://omir.io/spec/R1/profile/omir-coding-agent";
/// The profile for robots.
pub const ROBOTICS: &str = "https://omir.io/spec/R1/profile/omir-robotics";
/// The profile for personal assistants.
pub const PERSONAL_ASSISTANT: &str = "https://omir.io/spec/R1/profile/omir-personal-assistant";

/// The profiles of R1, by URL.
pub const BUILTIN: [&str; 3] = [CODING_AGENT, ROBOTICS, PERSONAL_ASSISTANT];

static PROFILE: Table = closed(
    "Profile",
    "A published constraint on the core",
    &[
        need("url", Shape::Uri, "Canonical URL, by which resources claim it"),
        need("name", Shape::SomeText, "Short name"),
        may("title", Shape::Text, "Whom it is for"),
        need("rules", Shape::List(&Shape::Object(&rule::RULE)), "What it asks"),
    ],
);

/// A set of constraints that resources claim by its URL in `meta.profile`.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its canonical URL.
    pub url: String,
    /// A short name for people.
    pub name: String,
    rules: Vec<Rule>,
}

impl Profile {
    /// Reads a profile document.
    ///
    /// # Errors
    /// Every fault of the document, with pointers into it.
    pub fn from_value(value: &Value) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let root = At::base("/");
        let Some(map) = value.as_object() else {
            let message = format!("a profile is an object, not {}", value.kind_name());
            return Err(alloc::vec![root.fault(FaultCode::Schema, message)]);
        };
        Walk::new(FaultCode::Schema, &mut faults).members(map, &PROFILE, &root);
        if !faults.is_empty() {
            return Err(faults);
        }
        let at_rules = root.name("rules");
        let rules = map.get("rules").and_then(Value::as_array).unwrap_or_default();
        let rules = rules.iter().enumerate();
        let rules =
            rules.filter_map(|(index, rule)| Rule::read(rule, &at_rules.index(index), &mut faults));
        let rules = rules.collect();
        let text = |name| map.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if faults.is_empty() {
            Ok(Self { url: text("url"), name: text("name"), rules })
        } else {
            Err(faults)
        }
    }

    /// Checks a valid resource, claimed or not, that stands at `pointer`; appends what is against the
    /// profile.
    pub fn check(&self, resource: &Value, pointer: &str, out: &mut Vec<Fault>) {
        if let Some(kind) = kind_of(resource) {
            self.check_at(kind, resource, &At::base(pointer), out);
        }
    }

    pub(crate) fn check_at(
        &self,
        kind: ResourceType,
        resource: &Value,
        at: &At<'_>,
        out: &mut Vec<Fault>,
    ) {
        for rule in self.rules.iter().filter(|rule| rule.on.contains(&kind)) {
            rule.check(&self.name, resource, at, out);
        }
    }

    /// Returns true if a resource may claim the profile: it speaks of the type, and no MUST is broken.
    pub fn is_met_by(&self, resource: &Value) -> bool {
        let mut faults = Vec::new();
        self.check(resource, "/", &mut faults);
        kind_of(resource).is_some_and(|kind| self.applies_to(kind))
            && faults.iter().all(|fault| fault.severity() < Severity::Error)
    }

    /// Returns true if the profile speaks of that type.
    pub fn applies_to(&self, kind: ResourceType) -> bool {
        self.rules.iter().any(|rule| rule.on.contains(&kind))
    }
}

fn kind_of(resource: &Value) -> Option<ResourceType> {
    resource.get("resourceType").and_then(Value::as_str)?.parse().ok()
}

/// The profiles of R1: `omir-coding-agent`, `omir-robotics`, `omir-personal-assistant`.
pub fn builtin() -> Vec<Profile> {
    let texts = [
        include_str!("../profiles/omir-coding-agent.json"),
        include_str!("../profiles/omir-robotics.json"),
        include_str!("../profiles/omir-personal-assistant.json"),
    ];
    // That all three can be read is a test; a profile that cannot is left out rather than a panic.
    let read = |text: &str| {
        let value = json::from_slice(text.as_bytes(), &Limits::default()).ok()?;
        Profile::from_value(&value).ok()
    };
    texts.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests;
