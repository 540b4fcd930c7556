//! The reader against the schema files, by a validator that we did not write.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::check::Shape;
use crate::ingest::read;
use crate::shapes::{HINT_REQUEST, RECORD};

fn validator(name: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(crate::schema::file(name).unwrap()).unwrap();
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft7);
    options.should_validate_formats(true).build(&schema).unwrap()
}

/// A record with everything that a record may have.
fn full_record() -> Value {
    json!({
        "request_id": "r", "task_id": "t", "title": "Dock", "intent": "Dock the robot",
        "nodes_used": [
            {"type": "tool", "ref": "nav2", "outcome": "success", "notes": "n", "latency_ms": 1, "cost_tokens": 0},
            {"type": "api", "ref": "x", "outcome": "partial"}
        ],
        "result": {
            "summary": "", "success": true,
            "artifacts": [{"type": "code", "content": "c", "metadata": {"a": {"b": [1]}}}],
            "validation": {"passed": true, "test_results": ["ok"], "quality_score": 0.5}
        },
        "timestamps": {"started_at": "2025-09-06T10:00:00Z", "finished_at": "2025-09-06T10:15:30+02:00", "duration_ms": 5},
        "context": {"user_id": "u", "session_id": "s", "domain": "code", "adapter_type": "mcp"}
    })
}

fn full_request() -> Value {
    json!({
        "request_id": "r", "query_type": "intent", "task_id": "t", "intent": "i", "pattern": "p",
        "max_hints": 20, "deadline_ms": 100,
        "context": {"user_id": "u", "domain": "general", "adapter_type": "grpc", "current_tools": ["a", "b"]}
    })
}

/// Values that come in the place of others. None is beyond a bound that is ours alone, so that both readers agree.
fn others() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!("x"),
        json!(""),
        json!("tool"),
        json!("2025-09-06 10:00"),
        json!("2024-02-29T10:00:00.5-01:30"),
        json!(0),
        json!(-1),
        json!(1.0),
        json!(1.5),
        json!(20),
        json!(99),
        json!(1e300),
        json!([]),
        json!(["a"]),
        json!([1]),
        json!({}),
        json!({"x": 1}),
    ]
}

/// Returns the number of values in a document, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value at a place of the walk through a document.
fn change(value: &mut Value, place: &mut usize, edit: &mut dyn FnMut(&mut Value)) {
    if *place == 0 {
        edit(value);
        *place = usize::MAX;
        return;
    }
    *place -= 1;
    let parts: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(map) => map.values_mut().collect(),
        _ => Vec::new(),
    };
    for part in parts {
        if *place == usize::MAX {
            return;
        }
        change(part, place, edit);
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Put(usize),
    Add,
    Drop(usize),
}

fn mutated(mut value: Value, edits: &[(usize, Edit)]) -> Value {
    for (place, edit) in edits {
        let mut place = place % count(&value);
        change(&mut value, &mut place, &mut |at| match (edit, at) {
            (Edit::Put(which), at) => *at = others()[which % others().len()].clone(),
            (Edit::Add, Value::Object(map)) => drop(map.insert("extra".into(), json!(1))),
            (Edit::Drop(which), Value::Object(map)) if !map.is_empty() => {
                let name = map.keys().nth(which % map.len()).cloned();
                name.map(|name| map.remove(&name));
            }
            _ => {}
        });
    }
    value
}

fn edits() -> impl Strategy<Value = Vec<(usize, Edit)>> {
    let edit = prop_oneof![
        4 => any::<usize>().prop_map(Edit::Put),
        1 => Just(Edit::Add),
        2 => any::<usize>().prop_map(Edit::Drop),
    ];
    proptest::collection::vec((any::<usize>(), edit), 0..3)
}

/// Both readers, and the pointer that ours gives.
fn agree(name: &str, shape: &Shape, value: &Value, own: impl Fn(&Value) -> bool) {
    let theirs = validator(name).is_valid(value);
    let text = value.to_string();
    let ours = read(text.as_bytes(), shape);
    let expected = theirs && own(value);
    assert_eq!(ours.is_ok(), expected, "{text}: {ours:?}");
    if let Err(rejected) = ours {
        let path = &rejected.fault.path;
        let (parent, _) = path.rsplit_once('/').unwrap_or_default();
        // A missing member has a parent, everything else is there.
        assert!(value.pointer(path).or(value.pointer(parent)).is_some(), "{path} in {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn records_are_what_the_schema_says(edits in edits()) {
        let value = mutated(full_record(), &edits);
        // The one bound of ours that a mutation reaches: a task has a name.
        agree("experience_record.v0", &RECORD, &value, |value| value["task_id"] != "");
    }

    #[test]
    fn requests_are_what_the_schema_says(edits in edits()) {
        agree("hint_request.v0", &HINT_REQUEST, &mutated(full_request(), &edits), |_| true);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &RECORD);
    }
}

#[test]
fn the_full_documents_are_valid() {
    agree("experience_record.v0", &RECORD, &full_record(), |_| true);
    agree("hint_request.v0", &HINT_REQUEST, &full_request(), |_| true);
    assert!(read(full_record().to_string().as_bytes(), &RECORD).is_ok());
    assert!(read(full_request().to_string().as_bytes(), &HINT_REQUEST).is_ok());
}
