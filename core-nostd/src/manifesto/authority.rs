//! The judgement of an Authority over a Proposal: its trace alone, by a policy, and the proofs in it.
//!
//! Nothing here can look into a store or select again: all that an Authority needs is in the Proposal.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::check::{Fault, memory_trace, selected_memory};
use super::proof::Proof;
use super::selection::Read;
use super::trace::{found, get_from_proposal};
use super::verifier::{Keys, Method};
use crate::value::{Map, Value};

/// Time by which the selector's clock may be ahead of the Authority's.
const CLOCK_SLACK_MS: i64 = 1000;

/// A policy. Rules that are not stated do not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Memories at most.
    pub max_selected: Option<i64>,
    /// The least confidence of each memory.
    pub min_confidence: Option<f64>,
    /// The actors that may have selected.
    pub selectors: Option<Vec<String>>,
    /// The age of a selection at most, in milliseconds; judged only with `now`.
    pub max_age_ms: Option<i64>,
    /// The time, in milliseconds since 1970, for this crate has no clock.
    pub now: Option<i64>,
    /// There must be a trace.
    pub require_trace: bool,
    /// Each memory must be marked as verified.
    pub require_verified: bool,
    /// The methods of evidence, of which each memory must have one.
    pub methods: Option<Vec<String>>,
    /// The intent is risky: `require_verified`, and evidence by `merkle` or `signature` where no methods are named.
    pub high_risk: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_selected: None,
            min_confidence: None,
            selectors: None,
            max_age_ms: None,
            now: None,
            require_trace: true,
            require_verified: false,
            methods: None,
            high_risk: false,
        }
    }
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The faults, the first hundred or so.
    pub fn from_value(value: &Value) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut read = Read { value, pointer: "", faults: &mut faults };
        read.only(&[
            "maxSelected",
            "minConfidence",
            "selectors",
            "maxAgeMs",
            "now",
            "requireTrace",
            "requireVerified",
            "methods",
            "highRisk",
        ]);
        let policy = Self {
            max_selected: read.integer("maxSelected", 0, i64::MAX),
            min_confidence: read.unit("minConfidence"),
            selectors: read.texts("selectors"),
            max_age_ms: read.integer("maxAgeMs", 0, i64::MAX),
            now: read.integer("now", 0, i64::MAX),
            require_trace: read.flag_or("requireTrace", true),
            require_verified: read.flag("requireVerified"),
            methods: read.texts("methods"),
            high_risk: read.flag("highRisk"),
        };
        if faults.is_empty() { Ok(policy) } else { Err(faults) }
    }

    /// Returns true if a memory must be marked as verified.
    fn needs_verified(&self) -> bool {
        self.require_verified || self.high_risk
    }

    /// Judges the evidence of a memory, if the policy names methods.
    fn takes(&self, method: Option<&str>) -> Option<bool> {
        let weak = [Method::None.as_str(), Method::Existence.as_str()];
        let strong = [Method::Merkle.as_str(), Method::Signature.as_str()];
        match (&self.methods, method) {
            (None, _) if !self.high_risk => None,
            (_, None) => Some(false),
            // A client that writes the word has such evidence.
            (_, Some(method)) if self.high_risk && weak.contains(&method) => Some(false),
            (Some(methods), Some(method)) => Some(methods.iter().any(|known| known == method)),
            (None, Some(method)) => Some(strong.contains(&method)),
        }
    }
}

/// Judges a Proposal: `{present, valid, errors, policy, proofs, accept}`. It advises; the caller decides.
pub fn evaluate(proposal: &Value, policy: &Policy, keys: &Keys) -> Value {
    let trace = get_from_proposal(proposal);
    let errors: Vec<String> = match (trace, found(proposal)) {
        (Some(trace), _) => {
            memory_trace(trace, false).into_iter().map(|fault| fault.text).collect()
        }
        (None, Some(_)) => [String::from("`trace.context.memory` must be an object")].into(),
        (None, None) => Vec::new(),
    };
    let (rules, proofs) = match trace {
        Some(trace) => (rules(proposal, trace, policy), proofs(trace, keys)),
        None => (Rules::default(), Vec::new()),
    };
    let mut rules = rules;
    if policy.require_trace {
        rules.0.insert(0, Rule { rule: "requireTrace", ok: trace.is_some(), index: None });
    }
    let accept = errors.is_empty()
        && rules.0.iter().all(|rule| rule.ok)
        && proofs.iter().all(|proof| proof.valid && proof.bound);
    let mut map = Map::new();
    map.insert("present", trace.is_some());
    map.insert("valid", errors.is_empty());
    map.insert("errors", errors);
    map.insert("policy", rules.0.iter().map(Rule::to_value).collect::<Value>());
    map.insert("proofs", proofs.iter().map(Verified::to_value).collect::<Value>());
    map.insert("accept", accept);
    Value::Object(map)
}

/// A rule, and how the trace or a memory in it stands to that.
struct Rule {
    rule: &'static str,
    ok: bool,
    index: Option<usize>,
}

impl Rule {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("rule", self.rule);
        map.insert("ok", self.ok);
        if let Some(index) = self.index {
            map.insert("index", index);
        }
        Value::Object(map)
    }
}

#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
    fn of_trace(&mut self, rule: &'static str, ok: bool) {
        self.0.push(Rule { rule, ok, index: None });
    }
}

fn rules(proposal: &Value, trace: &Value, policy: &Policy) -> Rules {
    let mut rules = Rules::default();
    let selected = trace.get("selected").and_then(Value::as_array).unwrap_or_default();
    let selected_at = trace.get("selectedAt").and_then(Value::as_i64);
    if let Some(most) = policy.max_selected {
        rules.of_trace("maxSelected", i64::try_from(selected.len()).is_ok_and(|len| len <= most));
    }
    if let Some(selectors) = &policy.selectors {
        let actor = trace.get("selector").and_then(|actor| actor.get("actorId")?.as_str());
        let ok = actor.is_some_and(|actor| selectors.iter().any(|known| known == actor));
        rules.of_trace("selectors", ok);
    }
    if let (Some(most), Some(now)) = (policy.max_age_ms, policy.now) {
        // A selection of the future would never get too old.
        let age = selected_at.map(|at| now.saturating_sub(at));
        rules.of_trace("maxAgeMs", age.is_some_and(|age| (-CLOCK_SLACK_MS..=most).contains(&age)));
    }
    // M-3: the selector is done before the Proposal is submitted.
    if let (Some(at), Some(submitted)) =
        (selected_at, proposal.get("submittedAt").and_then(Value::as_i64))
    {
        rules.of_trace("selectedBeforeSubmitted", at <= submitted);
    }
    for (index, memory) in selected.iter().enumerate() {
        let mut add = |rule, ok| rules.0.push(Rule { rule, ok, index: Some(index) });
        if let Some(least) = policy.min_confidence {
            let confidence = memory.get("confidence").and_then(Value::as_f64);
            add("minConfidence", confidence.is_some_and(|confidence| confidence >= least));
        }
        if policy.needs_verified() {
            let verified = memory.get("verified").and_then(Value::as_bool);
            add("requireVerified", verified == Some(true));
        }
        let method = memory.get("evidence").and_then(|evidence| evidence.get("method")?.as_str());
        if let Some(ok) = policy.takes(method) {
            add("methods", ok);
        }
    }
    rules
}

/// A proof of a trace, verified.
struct Verified {
    index: usize,
    world_id: String,
    method: String,
    valid: bool,
    /// The proof names the World that the memory points to.
    bound: bool,
}

impl Verified {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("index", self.index);
        map.insert("worldId", self.world_id.as_str());
        map.insert("method", self.method.as_str());
        map.insert("valid", self.valid);
        map.insert("bound", self.bound);
        Value::Object(map)
    }
}

/// Verifies the proofs of the memories that are sound. Each is rebuilt of method and proof alone: M-12.
fn proofs(trace: &Value, keys: &Keys) -> Vec<Verified> {
    let selected = trace.get("selected").and_then(Value::as_array).unwrap_or_default();
    let sound =
        selected.iter().enumerate().filter(|(_, memory)| selected_memory(memory, false).is_empty());
    let verified = sound.filter_map(|(index, memory)| {
        let proof = Proof::extract(memory.get("evidence")?)?;
        let world_id = memory.get("ref")?.get("worldId")?.as_str()?;
        Some(Verified {
            index,
            world_id: world_id.to_string(),
            valid: keys.verify(&proof),
            bound: proof.world_id() == Some(world_id),
            method: proof.method,
        })
    });
    verified.collect()
}
