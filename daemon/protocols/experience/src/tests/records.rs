//! Records: stored, sent again, in conflict, updated, forgotten.

use omir_core::json;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird_engine::{Change, Query};
use serde_json::json as js;

use crate::testing::{Rig, caller, message, record, with};
use crate::{FETCH, HEALTH, RECORD, SCHEMA};

fn target(task: &str) -> Ref {
    crate::ids::Tenant::new("default").experience(task)
}

#[test]
fn a_record_is_stored_and_told_of_in_the_words_of_the_contract() {
    let rig = Rig::new();
    let told = rig.record(&record("t-1"));
    assert_eq!(told.status, 200, "{told:?}");
    assert_eq!(
        told.body,
        js!({"request_id": "r1", "task_id": "t-1", "status": "recorded", "metadata": {
            "experience_id": "exp_672fd682598d", "storage_location": "/experiences/t-1",
            "indexed_patterns": ["dock", "station", "robot"], "related_experiences": []}})
    );
    assert_eq!(told.header("X-Request-ID"), Some("r1"));
    assert_eq!(told.header("Cache-Control"), Some("no-store"));
    let second = rig.record(&record("t-2"));
    assert_eq!(second.body["metadata"]["related_experiences"], js!(["exp_672fd682598d"]));

    let stored = crate::shared::decoded(&rig.engine.get(&target("t-1")).unwrap().unwrap()).unwrap();
    let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(text("/content").unwrap(), "Dock at station 2\nDock the robot\ndocked");
    assert_eq!(text("/experienceType").unwrap(), "task");
    assert_eq!(text("/eventTime").unwrap(), "2026-05-31T10:15:30Z");
    assert_eq!(text("/validUntil").unwrap(), "2027-06-01T00:00:00Z");
    assert_eq!(text("/provenance/source").unwrap(), "a");
    assert_eq!(stored.pointer("/confidence/alpha"), Some(&Value::from(2)));
    assert_eq!(stored.pointer("/entityRefs").unwrap().as_array().unwrap().len(), 7);
    let body = stored.pointer("/extension/0/valueJson/record").unwrap();
    assert_eq!(body, &record("t-1"), "word for word");
    // One request made it all: the record, its entities, and what relates its nodes.
    let everything = rig.engine.export(&Query::everything()).unwrap();
    assert_eq!(everything.len(), 2 + 7 + 1);
}

#[test]
fn the_same_again_is_a_replay_and_another_is_a_conflict() {
    let rig = Rig::new();
    let first = rig.record(&record("t-1"));
    let before = rig.engine.newest();
    assert_eq!(rig.record(&record("t-1")).body, first.body);
    assert_eq!(rig.engine.newest(), before, "nothing is written");

    for other in
        [with(record("t-1"), "/request_id", "r2"), with(record("t-1"), "/title", "Another title")]
    {
        let told = rig.record(&other);
        assert_eq!((told.status, &told.body["status"]), (409, &js!("rejected")));
        assert_eq!(told.body["error"]["code"], "DUPLICATE_TASK");
        assert_eq!(told.body["error"]["details"]["experience_id"], "exp_672fd682598d");
        assert!(told.body.get("metadata").is_none());
    }

    let update = |value: &Value| {
        let asked = message(&json::to_string(value), &[("on_duplicate", "update")]);
        rig.ask(&RECORD, &caller(None), asked)
    };
    let failed = with(with(record("t-1"), "/result/success", false), "/request_id", "r2");
    let told = update(&failed);
    assert_eq!((told.status, &told.body["status"]), (200, &js!("updated")));
    let stored = crate::shared::decoded(&rig.engine.get(&target("t-1")).unwrap().unwrap()).unwrap();
    assert_eq!(stored.get("version").and_then(Value::as_u64), Some(2));
    assert_eq!(stored.get("experienceType").and_then(Value::as_str), Some("error"));
    assert_eq!(stored.get("createdAt").and_then(Value::as_str), Some("2026-06-01T00:00:00Z"));
    let before = rig.engine.newest();
    assert_eq!(update(&with(failed.clone(), "/request_id", "r3")).body["status"], "updated");
    assert_eq!(rig.engine.newest(), before, "an equal body writes nothing");
    assert_eq!(rig.record(&failed).body["status"], "updated", "the first answer again");
    assert_eq!(update(&record("t-9")).body["status"], "recorded", "there was nothing to update");
}

#[test]
fn what_is_wrong_is_named() {
    let rig = Rig::new();
    for (value, path) in [
        (with(record("t"), "/title", ""), "/title"),
        (with(record("t"), "/x", 1), "/x"),
        (with(record("t"), "/nodes_used/0/type", "pattern"), "/nodes_used/0/type"),
        (
            with(record("t"), "/timestamps/finished_at", "2025-09-06 10:00"),
            "/timestamps/finished_at",
        ),
        (with(record("t"), "/task_id", ""), "/task_id"),
    ] {
        let told = rig.record(&value);
        assert_eq!((told.status, &told.body["status"]), (400, &js!("rejected")), "{path}");
        assert_eq!(told.body["error"]["code"], "INVALID_RECORD");
        assert_eq!(told.body["error"]["details"]["path"], path);
        assert_eq!(told.body["request_id"], "r1");
    }
    for body in ["[]", "nope", ""] {
        let told = rig.ask(&RECORD, &caller(None), message(body, &[]));
        assert_eq!((told.status, &told.body["task_id"]), (400, &js!("")), "{body}");
        let made_up = told.header("X-Request-ID").unwrap();
        assert_eq!(made_up.len(), 32, "{made_up}");
    }
    let mut named = message("nope", &[]);
    named.request_id = Some("x-7".into());
    assert_eq!(rig.ask(&RECORD, &caller(None), named).header("X-Request-ID"), Some("x-7"));
    let huge = omir_core::json::from_slice(b"9007199254740993", &Default::default()).unwrap();
    let artifact = with(
        record("t"),
        "/result/artifacts",
        vec![js_value(r#"{"type":"data","content":"x","metadata":{}}"#)],
    );
    let told = rig.record(&with(artifact.clone(), "/result/artifacts/0/metadata/n", huge));
    assert_eq!(told.body["error"]["details"]["path"], "/result/artifacts/0/metadata/n");
    assert_eq!(rig.record(&artifact).status, 200);
}

fn js_value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Default::default()).unwrap()
}

#[test]
fn of_twenty_at_once_one_is_recorded() {
    let rig = Rig::new();
    let waiting: Vec<_> = (0..20)
        .map(|at| {
            let value = with(record("t-1"), "/request_id", format!("r{at}"));
            rig.begin(&RECORD, &caller(None), message(&json::to_string(&value), &[]))
        })
        .collect();
    let mut statuses: Vec<u16> = waiting.into_iter().map(|told| told().status).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], statuses[1], statuses[19]), (200, 409, 409));

    // The same request twenty times at once is one record, and nineteen replays of it.
    let body = json::to_string(&record("t-2"));
    let ask = || rig.begin(&RECORD, &caller(None), message(&body, &[]));
    let waiting: Vec<_> = std::iter::repeat_with(ask).take(20).collect();
    for told in waiting {
        let told = told();
        assert_eq!((told.status, &told.body["status"]), (200, &js!("recorded")));
    }
    // Updates at once are all made, one after the other.
    let waiting: Vec<_> = (0..8)
        .map(|at| {
            let value = with(record("t-2"), "/title", format!("Title {at}"));
            let asked = message(&json::to_string(&value), &[("on_duplicate", "update")]);
            rig.begin(&RECORD, &caller(None), asked)
        })
        .collect();
    for told in waiting {
        assert_eq!(told().body["status"], "updated");
    }
    let (_, version) = rig.engine.get_versioned(&target("t-2")).unwrap().unwrap();
    assert_eq!(version, 9);
}

#[test]
fn an_experience_is_fetched_by_either_name() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    rig.record(&record("t-2"));
    let fetch = |rig: &Rig, name: &str, tenant| {
        rig.ask(&FETCH, &caller(tenant), message("", &[("task_id", name)]))
    };
    let told = fetch(&rig, "t-1", None);
    assert_eq!(
        told.body,
        js!({"task_id": "t-1", "title": "Dock at station 2", "result": {"summary": "docked", "success": true},
            "metadata": {"created_at": "2026-06-01T00:00:00Z", "related_count": 1}})
    );
    assert_eq!(fetch(&rig, "exp_672fd682598d", None).body, told.body);
    for (name, tenant) in [
        ("none", None),
        ("exp_000000000000", None),
        ("t-1", Some("b")),
        ("exp_672fd682598d", Some("b")),
    ] {
        let told = fetch(&rig, name, tenant);
        assert_eq!((told.status, &told.body["code"]), (404, &js!("NOT_FOUND")), "{name}");
    }
    let rig = rig.again();
    rig.hints(r#"{"request_id":"h","query_type":"task_id","task_id":"t-1","deadline_ms":5000}"#);
    assert_eq!(fetch(&rig, "exp_672fd682598d", None).body, told.body, "after a start too");
    rig.engine.execute(Change::Forget(vec![target("t-1")])).unwrap();
    assert_eq!(fetch(&rig, "t-1", None).status, 404);
    assert_eq!(fetch(&rig, "exp_672fd682598d", None).status, 404);
    let told = rig.record(&with(record("t-1"), "/request_id", "r9"));
    assert_eq!(told.body["status"], "recorded", "what was forgotten may be recorded again");
}

#[test]
fn a_resource_that_is_none_of_ours_is_no_experience() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    // Another client writes a record that mentions the tenant, and one under the name of a task.
    let id = target("t-5").id;
    for text in [
        r#"{"resourceType":"MemoryRecord","id":"x","content":"dock robot station","entityRefs":[{"ref":"Entity/xt.default"}]}"#
            .to_owned(),
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"dock robot","entityRefs":[{{"ref":"Entity/xt.default"}}],
            "extension":[{{"url":"urn:omird:ext:experience","valueJson":{{"record":7}}}}]}}"#
        ),
    ] {
        let change =
            rig.engine.prepare(text.as_bytes(), omird_engine::Encoding::Json, None).unwrap();
        rig.engine.execute(change).unwrap();
    }
    assert_eq!(rig.by_intent("dock robot").body["metadata"]["total_experiences"], 1);
    assert_eq!(rig.record(&record("t-5")).status, 409, "the name is taken");
    let asked = message(&json::to_string(&record("t-5")), &[("on_duplicate", "update")]);
    assert_eq!(rig.ask(&RECORD, &caller(None), asked).status, 200);
}

#[test]
fn health_and_schemas_are_for_everybody() {
    let rig = Rig::new();
    let nobody = omird_router::Caller::unknown("test");
    rig.record(&record("t-1"));
    rig.by_intent("dock");
    let told = rig.ask(&HEALTH, &nobody, message("", &[]));
    assert_eq!((told.status, &told.body["status"]), (200, &js!("healthy")));
    assert_eq!(told.body["components"]["pattern_indexer"], "healthy");
    let told = rig.ask(&SCHEMA, &nobody, message("", &[("name", "hint_request.v0.json")]));
    assert_eq!(told.body["title"], "hint_request.v0");
    assert_eq!(rig.ask(&SCHEMA, &nobody, message("", &[("name", "x")])).status, 404);
}

#[test]
fn rates_are_told_and_kept() {
    let rig = Rig::new();
    let keyed = omird_router::Caller { has_token: true, ..caller(None) };
    let ask = || rig.ask(&FETCH, &keyed, message("", &[("task_id", "none")]));
    let left = |told: &crate::testing::Received| -> u32 {
        told.header("X-RateLimit-Remaining").unwrap().parse().unwrap()
    };
    let first = ask();
    assert_eq!((first.header("X-RateLimit-Limit"), left(&first)), (Some("2000"), 1999));
    let reset: i64 = first.header("X-RateLimit-Reset").unwrap().parse().unwrap();
    let now = rig.engine.now().0.secs();
    assert!((now..=now + 3600).contains(&reset), "{reset} {now}");
    assert_eq!(left(&ask()), 1998);
    let refused = std::iter::repeat_with(ask).take(2000).find(|told| told.status == 429).unwrap();
    assert_eq!(refused.body["code"], "RATE_LIMITED");
    assert!(refused.retry_after.is_some() && refused.header("X-RateLimit-Limit").is_some());
    assert_eq!(rig.ask(&HEALTH, &keyed, message("", &[])).header("X-RateLimit-Limit"), None);
}

#[test]
fn what_a_transport_refuses_is_told_in_the_form_of_the_contract() {
    use omird_engine::{Code, Error};
    use omird_router::{Denial, Denied, Exchange as _};
    let rig = Rig::new();
    let refuse = |method, status, code| {
        let why = Denial::Transport { status, error: Error::new(code, "no") };
        let request_id = Some("x".to_owned());
        let answer = rig.experiences.refuse(&Denied { method, why, request_id, rate: None });
        crate::testing::told(method, answer)
    };
    let told = refuse(&RECORD, 400, Code::InvalidQuery);
    assert_eq!(told.body["error"]["code"], "INVALID_RECORD");
    assert_eq!(told.header("X-Request-ID"), Some("x"));
    assert_eq!(refuse(&RECORD, 500, Code::Internal).body["error"]["code"], "STORAGE_ERROR");
    assert_eq!(
        refuse(&crate::HINTS, 400, Code::InvalidQuery).body["error"]["code"],
        "INVALID_QUERY"
    );
    assert_eq!(refuse(&crate::HINTS, 500, Code::Internal).body["error"]["code"], "SYSTEM_ERROR");
    let busy = refuse(&RECORD, 503, Code::Busy);
    assert!(busy.body["code"] == "BUSY" && busy.retry_after.is_some());
    assert_eq!(refuse(&FETCH, 500, Code::Internal).body["code"], "INTERNAL");
}
