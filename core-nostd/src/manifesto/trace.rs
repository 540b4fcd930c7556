//! Traces: made from a request and its result, attached to a Proposal at `trace.context.memory`, and found there.

use alloc::string::String;
use core::fmt;

use crate::value::{Map, Value};

/// Makes a MemoryTrace: it copies, and reads no clock. Both are valid: `SelectionRequest::from_value`,
/// `selection_result`.
pub fn create(request: &Value, result: &Value) -> Value {
    let copied = |from: &Value, name: &str| from.get(name).cloned().unwrap_or_default();
    let mut trace = Map::new();
    trace.insert("selector", copied(request, "selector"));
    trace.insert("query", copied(request, "query"));
    trace.insert("selectedAt", copied(result, "selectedAt"));
    trace.insert("atWorldId", copied(request, "atWorldId"));
    trace.insert("selected", copied(result, "selected"));
    Value::Object(trace)
}

/// A reason why a trace cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachFault {
    /// The Proposal has a memory trace.
    Taken,
    /// Something on the way to it is no object. The JSON Pointer names that, from the Proposal.
    NoObject(String),
}

impl fmt::Display for AttachFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("the Proposal has a memory trace already"),
            Self::NoObject(pointer) => {
                write!(f, "the Proposal has something else than an object at {pointer:?}")
            }
        }
    }
}

impl core::error::Error for AttachFault {}

/// Returns a new Proposal with the trace at `trace.context.memory`. All other members stay. A Proposal without a `trace` gets
/// one whose summary says that memory was used.
///
/// # Errors
/// It has a memory trace, or there is no place for one.
pub fn attach_to_proposal(proposal: &Value, trace: &Value) -> Result<Value, AttachFault> {
    let no_object = |pointer: &str| AttachFault::NoObject(pointer.into());
    let mut proposal = proposal.as_object().cloned().ok_or_else(|| no_object(""))?;
    let mut around = match proposal.get("trace") {
        None | Some(Value::Null) => [("summary", "memory used")].into_iter().collect(),
        Some(Value::Object(around)) => around.clone(),
        Some(_) => return Err(no_object("/trace")),
    };
    let mut context = match around.get("context") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(context)) => context.clone(),
        Some(_) => return Err(no_object("/trace/context")),
    };
    if context.get("memory").is_some_and(|memory| !memory.is_null()) {
        return Err(AttachFault::Taken);
    }
    context.insert("memory", trace.clone());
    around.insert("context", context);
    proposal.insert("trace", around);
    Ok(Value::Object(proposal))
}

/// Returns what stands at `trace.context.memory`, unless it is `null`.
pub(super) fn found(proposal: &Value) -> Option<&Value> {
    let memory = proposal.get("trace")?.get("context")?.get("memory")?;
    Some(memory).filter(|memory| !memory.is_null())
}

/// Returns the memory trace of a Proposal. It may be a broken one.
pub fn get_from_proposal(proposal: &Value) -> Option<&Value> {
    found(proposal).filter(|memory| memory.as_object().is_some())
}

/// Returns true if a Proposal has a memory trace. It may be a broken one.
pub fn has_trace(proposal: &Value) -> bool {
    get_from_proposal(proposal).is_some()
}
