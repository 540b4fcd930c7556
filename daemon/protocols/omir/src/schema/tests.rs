//! Real answers, and the examples of docs/replies.md, against the schemas. Here the schemas are closed: a member that an
//! answer has and its schema does not tell of is a fault.

use std::collections::BTreeSet;
use std::time::Duration;

use jsonschema::Validator;
use omir_core::decode::Limits;
use omir_core::json;
use omir_core::operation::Operation;
use omir_core::reference::Ref;
use omird_engine::{Encoding, Engine, EventQueue};
use omird_router::{Admitted, Caller, Incoming, Method, Router, error_value};
use serde_json::json;

use super::*;
use crate::methods::{DELETE, EVENTS, OMIR, PUT};
use crate::{Omir, Params, Payload, method};

fn all() -> serde_json::Value {
    serde_json::from_str(&json::to_string(&Value::Object(schemas(DEFINITIONS)))).unwrap()
}

fn close(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("unevaluatedProperties".to_owned(), json!(false));
            }
            map.values_mut().for_each(close);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn closed(name: &str) -> Validator {
    let mut definitions = all();
    definitions.as_object_mut().unwrap().values_mut().for_each(close);
    assert!(definitions.get(name).is_some(), "{name} is no schema");
    let schema = json!({"$ref": format!("{DEFINITIONS}{name}"), "$defs": definitions});
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn fits(name: &str, answer: &serde_json::Value) {
    let faults: Vec<String> = closed(name)
        .iter_errors(answer)
        .map(|error| format!("{} {error}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{name}: {faults:#?}\n{answer:#}");
}

struct Rig {
    _dir: tempfile::TempDir,
    engine: Engine,
    router: Router,
    omir: Omir,
}

impl Rig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(omird_engine::testing::parts(dir.path()), &mut |_| {}).unwrap();
        let (router, omir) = (Router::new(engine.clone(), []), Omir::new(engine.clone(), "r1"));
        Self { _dir: dir, engine, router, omir }
    }

    fn admit(&self, method: &'static Method) -> Admitted {
        let caller = Caller::trusted("test", "test");
        self.router.admit(&caller, method, Incoming::default()).unwrap()
    }

    /// Asks, and holds the answer against the schema that the table names: an error against that of errors.
    #[track_caller]
    fn ask(&self, operation: Operation, text: &str, payload: Payload) -> serde_json::Value {
        let pairs = text.split(';').filter_map(|part| part.split_once('='));
        let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let method = method(operation);
        let answer = self.omir.ask(self.admit(method), Params { parameters, payload }, Ok);
        let (name, value) = match answer.and_then(crate::Response::into_value) {
            Ok(value) => (method.about.response, value),
            Err(error) => ("Error", error_value(&error)),
        };
        let value = serde_json::from_str(&json::to_string(&value)).unwrap();
        fits(name, &value);
        value
    }

    #[track_caller]
    fn remember(&self, payload: &serde_json::Value, text: &str) {
        fits("Resources", payload);
        let payload = Payload::Resources(payload.to_string().into_bytes(), Encoding::Json);
        let stored = self.ask(Operation::Remember, text, payload);
        assert!(stored.get("stored").is_some(), "{stored}");
    }

    fn next(&self, events: &EventQueue) -> Option<serde_json::Value> {
        let event = events.next(Duration::from_secs(5))?;
        let value = omir_core::cbor::from_slice(&event.payload(), &Limits::default()).unwrap();
        let value = serde_json::from_str(&json::to_string(&value)).unwrap();
        let is_forgotten = event.kind == omir_core::event::EventKind::Forgotten;
        fits(if is_forgotten { "ForgottenRef" } else { "Resource" }, &value);
        if let Some(cause) = &event.cause {
            let cause = serde_json::from_str(&json::to_string(&cause.to_value())).unwrap();
            fits("Cause", &cause);
        }
        Some(value)
    }
}

fn pose(frame: &str, position: [f64; 3]) -> serde_json::Value {
    json!({"url": "https://omir.io/spec/R1/extension/spatial-pose",
           "valueJson": {"frame": frame, "position": position}})
}

fn memories() -> serde_json::Value {
    json!([
        {"resourceType": "Entity", "id": "hall", "name": "hall", "labels": ["location"]},
        {"resourceType": "Entity", "id": "door", "name": "door 3"},
        {"resourceType": "Relationship", "id": "in", "from": {"ref": "Entity/door"},
         "to": {"ref": "Entity/hall"}, "relationType": "part_of", "strength": 0.9},
        {"resourceType": "Episode", "id": "e", "content": "a tour"},
        {"resourceType": "MemoryRecord", "id": "sticks", "content": "door 3 sticks", "importance": 0.8,
         "validUntil": "2100-01-01T00:00:00Z", "entityRefs": [{"ref": "Entity/hall"}],
         "extension": [pose("map", [4.2, -1.0, 0.0]), pose("kf_1", [0.2, 0.0, 0.0])]},
        {"resourceType": "MemoryRecord", "content": "nobody named this"}
    ])
}

#[test]
fn each_operation_answers_by_its_schema() {
    use Operation::*;
    let asked = Rig::new();
    let events = asked.omir.events(&asked.admit(&EVENTS), 1000);
    asked.remember(&memories(), "");
    asked.remember(&memories(), "merge=true");
    let none = || Payload::None;
    let found = asked.ask(Recall, "q=door;near=4,-1;explain=true", none());
    assert!(found["hits"][0]["parts"]["text"]["weight"].is_number(), "{found}");
    asked.ask(Recall, "geo=1,2;radius=5;includeForgotten=true", none());
    asked.ask(Recall, "near=4", none());
    for name in
        ["MemoryRecord/sticks", "Entity/hall", "Relationship/in", "Episode/e", "Entity/none"]
    {
        asked.ask(Explain, &format!("ref={name}"), none());
    }
    asked.ask(Anchor, "ref=MemoryRecord/sticks", none());
    asked.ask(Anchor, "ref=MemoryRecord/sticks", none());
    asked.ask(Explain, "ref=MemoryRecord/sticks", none());
    asked.ask(Feedback, "ref=MemoryRecord/sticks;outcome=contradicted;weight=0.5", none());
    let keyframes = json!({"frame": "map", "reason": "loop", "keyframes": {
        "kf_1": {"position": [5, 0, 0], "orientation": [0, 0, 0, 1]}, "kf_2": {"position": [0, 0, 0]}}});
    fits("Rebase", &keyframes);
    let members = || {
        let text = keyframes.to_string();
        Payload::Members(json::from_slice(text.as_bytes(), &Limits::default()).unwrap())
    };
    asked.ask(Rebase, "dryRun=true", members());
    let step = asked.ask(Rebase, "", members());
    assert_eq!((step["moved"].as_u64(), step["untied"].as_u64()), (Some(1), Some(1)), "{step}");
    asked.ask(Rebase, &format!("undo={}", step["ref"].as_str().unwrap()), none());
    let bundle = asked.ask(Export, "", none());
    assert!(bundle["entry"].as_array().unwrap().len() >= 6, "{bundle}");
    asked.ask(Sweep, "dryRun=true", none());
    asked.ask(Sweep, "", none());
    let forgotten = asked.ask(Forget, "ref=Entity/door,Entity/none", none());
    assert_eq!(forgotten["forgotten"], 2, "with its Relationship");
    asked.ask(Explain, "ref=Entity/door", none());
    asked.ask(Compact, "scope=all", none());
    let backup = asked.ask(Backup, "", none());
    assert!(backup["segments"][0]["sha256"].is_string(), "{backup}");
    let proof = asked.ask(Prove, "ref=MemoryRecord/sticks", none());
    assert_eq!(proof["resource"]["id"], "sticks", "{proof}");
    asked.ask(Prove, "ref=Entity/none", none());
    asked.ask(Status, "", none());
    let mut kinds = 0;
    while let Some(event) = asked.next(&events) {
        kinds += 1;
        if event.get("ref").is_some_and(|name| name == "Entity/door") {
            break;
        }
    }
    assert!(kinds >= 8, "{kinds} events");
    asked.engine.stop();
}

#[test]
fn what_is_put_and_deleted_answers_by_its_schema() {
    let asked = Rig::new();
    let name: Ref = "Entity/hall".parse().unwrap();
    for method in [&PUT, &DELETE] {
        let (tell, told) = crossbeam_channel::bounded(1);
        let reply = move |receipt| tell.send(receipt).unwrap();
        let admitted = asked.admit(method);
        if method.name == "put" {
            asked.omir.put(admitted, &name, br#"{"name":"hall"}"#, Encoding::Json, None, reply);
        } else {
            asked.omir.delete(admitted, name.clone(), reply);
        }
        let receipt = told.recv().unwrap().unwrap().to_value();
        fits(method.about.response, &serde_json::from_str(&json::to_string(&receipt)).unwrap());
    }
    asked.engine.stop();
}

/// Clients written from the page and clients generated from the schemas read the same.
#[test]
fn the_examples_of_the_page_fit() {
    let page = include_str!("../../../../../docs/replies.md");
    let mut fitted = BTreeSet::new();
    for section in page.split("\n## ").skip(1) {
        let (heading, text) = section.split_once('\n').unwrap();
        let Some((_, example)) = text.split_once("```json\n") else { continue };
        let (example, _) = example.split_once("```").unwrap();
        let method = OMIR.method(&heading.to_lowercase()).unwrap();
        fits(method.about.response, &serde_json::from_str(example).unwrap());
        fitted.insert(method.name);
    }
    let operations: BTreeSet<&str> = Operation::ALL.map(Operation::as_str).into_iter().collect();
    assert_eq!(fitted, operations);
}

#[test]
fn each_schema_is_one_and_each_name_leads_somewhere() {
    let all = all();
    let names: BTreeSet<&str> = all.as_object().unwrap().keys().map(String::as_str).collect();
    let text = all.to_string();
    for piece in text.split(DEFINITIONS).skip(1) {
        let name = piece.split('"').next().unwrap();
        assert!(names.contains(name), "{name} is no schema");
    }
    for method in OMIR.methods {
        for name in [method.about.payload, method.about.response] {
            assert!(name.is_empty() || names.contains(name), "{}: {name}", method.name);
        }
    }
    for name in names {
        let schema = json!({"$ref": format!("{DEFINITIONS}{name}"), "$defs": all});
        jsonschema::meta::validate(&schema).unwrap();
        jsonschema::draft202012::new(&schema).unwrap();
    }
}

#[test]
fn references_lead_where_they_are_told_to() {
    let text = json::to_string(&Value::Object(schemas("#/components/schemas/")));
    assert!(text.contains("\"#/components/schemas/Recall\"") || text.contains("schemas/Hit\""));
    assert!(!text.contains("$defs"), "a reference leads to a place that is not there");
}

/// What a schema refuses that is closed is not refused by the schema that programs are given.
#[test]
fn a_member_more_is_no_fault_for_programs() {
    let mut definitions = all();
    let answer = json!({"forgotten": 1, "durable": true, "seq": 1, "someDay": 1});
    assert!(closed("Forgotten").iter_errors(&answer).next().is_some());
    let schema = json!({"$ref": "#/$defs/Forgotten", "$defs": definitions.take()});
    let open = jsonschema::draft202012::new(&schema).unwrap();
    assert!(open.is_valid(&answer));
    assert!(!open.is_valid(&json!({"forgotten": -1, "durable": true, "seq": 1})));
}
