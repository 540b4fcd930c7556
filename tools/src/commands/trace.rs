//! `omir trace`: the memory traces of Manifesto, read by a person.

use std::path::Path;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::manifesto::{Fault, get_from_proposal, memory_trace};
use omir_core::value::{Map, Value};

use crate::cli::{Globals, TraceArgs, TraceCommand, TraceValidateArgs};
use crate::error::{Error, Result, told};
use crate::{document, output};

pub(super) fn run(globals: &Globals, args: &TraceArgs) -> Result<()> {
    match &args.command {
        TraceCommand::Validate(args) => validate(globals, args),
    }
}

fn validate(globals: &Globals, args: &TraceValidateArgs) -> Result<()> {
    let bytes = document::read_bytes(&args.file)?;
    let read = json::from_slice(&bytes, &Limits::default());
    let value = read.map_err(|why| Error::input(&args.file, why))?;
    let (at, trace) = trace_in(&value);
    let faults = memory_trace(trace, false);
    let printed = match faults.is_empty() {
        _ if globals.json => output::print_json(&report(at, &faults)),
        true => output::print(&valid(trace)),
        false => Ok(()),
    };
    let verdict = match faults.is_empty() {
        true => Ok(()),
        false => {
            Err(Error::Negative { code: "INVALID", message: invalid(&args.file, at, &faults) })
        }
    };
    told(printed, verdict)
}

/// Returns the trace, and where it lies: the file may hold a Proposal that carries one.
fn trace_in(value: &Value) -> (&'static str, &Value) {
    match get_from_proposal(value) {
        Some(trace) => ("/trace/context/memory", trace),
        None => ("", value),
    }
}

fn valid(trace: &Value) -> String {
    let selected = trace.get("selected").and_then(Value::as_array).unwrap_or_default();
    let verified = selected.iter().filter(|one| one.get("verified") == Some(&Value::Bool(true)));
    let (count, verified) = (selected.len(), verified.count());
    format!(
        "valid: {count} selected, {verified} of them said to be verified\n\
         Their proofs are not checked here: an Authority does that."
    )
}

fn invalid(file: &Path, at: &str, faults: &[Fault]) -> String {
    let mut message = format!("{}: not valid", file.display());
    for Fault { pointer, text } in faults {
        message.push_str(&format!("\n  {at}{pointer}: {text}"));
    }
    message
}

fn report(at: &str, faults: &[Fault]) -> Value {
    let fault = |Fault { pointer, text }: &Fault| {
        Map::from_iter([("path", format!("{at}{pointer}")), ("message", text.clone())])
    };
    let errors: Value = faults.iter().map(fault).collect();
    Map::from_iter([("valid", Value::Bool(faults.is_empty())), ("errors", errors)]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
    }

    const TRACE: &str = r#"{"selector": {"actorId": "a", "kind": "agent"}, "query": "dock",
        "selectedAt": 1, "atWorldId": "w", "selected": [{"ref": {"worldId": "v"}, "reason": "r",
        "confidence": 1.5, "verified": true}]}"#;

    #[test]
    fn the_trace_of_a_proposal_is_found_and_its_faults_are_placed() {
        let alone = read(TRACE);
        assert_eq!(trace_in(&alone).0, "");
        let proposal = read(&format!(r#"{{"trace": {{"context": {{"memory": {TRACE}}}}}}}"#));
        let (at, trace) = trace_in(&proposal);
        assert_eq!(trace, &alone);
        let faults = memory_trace(trace, false);
        let message = invalid(Path::new("t.json"), at, &faults);
        let place = "\n  /trace/context/memory/selected/0/confidence: selected[0]: ";
        assert!(message.starts_with("t.json: not valid") && message.contains(place), "{message}");
        let told = json::to_string(&report(at, &faults));
        assert!(told.starts_with(r#"{"valid":false,"errors":[{"path":"/trace/"#), "{told}");
    }

    #[test]
    fn what_is_no_trace_says_what_is_missing() {
        for text in ["{}", "[]", "1", r#"{"trace": {"context": {"memory": 5}}}"#] {
            let value = read(text);
            assert!(!memory_trace(trace_in(&value).1, false).is_empty(), "{text}");
        }
    }
}
