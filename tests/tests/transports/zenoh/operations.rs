//! Operations by their keys: remember, recall, forget, anchor, feedback, compact.

use std::sync::mpsc;
use std::time::Duration;

use omird_tests::process::eventually;
use serde_json::{Value, json};
use zenoh::Wait;

use crate::zenoh::{POSE, cbor, entity, ids, record, rig};

#[test]
fn what_is_remembered_is_recalled_in_both_encodings() {
    let rig = rig(&[]);
    let client = &rig.client;
    let stored = client.ask_json("omir/r1/remember", &record("a", "red charger", [1.0, 2.0, 0.0]));
    let stored = stored.value();
    assert_eq!(stored["stored"], json!([{"ref": "MemoryRecord/a", "version": 1}]));
    assert_eq!(stored["durable"], true);
    assert!(stored["seq"].is_u64());

    let batch = json!([entity("dock"), {
        "resourceType": "MemoryRecord", "content": "the dock hums",
        "entityRefs": [{"ref": "Entity/dock"}],
    }]);
    let answer = client.one("omir/r1/remember", Some((cbor(&batch), "application/cbor")));
    let stored = answer.value()["stored"].as_array().unwrap().clone();
    assert_eq!(stored.len(), 2);
    let generated = stored[1]["ref"].as_str().unwrap();
    let found = client.ask(&format!("omir/r1/memory/{generated}"));
    assert!(found[0].value()["createdAt"].is_string(), "a missing createdAt is stamped");

    for selector in ["omir/r1/recall?q=charger", "omir/r1/recall?q=charger;format=cbor"] {
        let answer = client.one(selector, None);
        let recall = answer.value();
        assert_eq!(ids(recall), ["a"], "{selector}");
        assert_eq!(recall["total"], 1);
        assert_eq!(recall["hits"][0]["resource"]["content"], "red charger");
    }
    let payload = json!({"near": [1, 2], "radius": 0.5, "explain": true});
    let answer = client.one("omir/r1/recall", Some((cbor(&payload), "")));
    assert_eq!(ids(answer.value()), ["a"], "a payload without encoding is sniffed");
    assert!(answer.value()["hits"][0]["parts"]["proximity"]["value"].is_number());
}

#[test]
fn a_move_is_an_event_with_its_cause_and_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("omird.toml");
    // 10.8 s: the questions before are asked in less.
    std::fs::write(&config, "[forgetting]\nsession_after_h = 0.003\nsweep_interval_s = 1\n")
        .unwrap();
    let rig = rig(&["--config", config.to_str().unwrap()]);
    let client = &rig.client;
    let (events, moves) = mpsc::channel();
    let _subscriber = client
        .session
        .declare_subscriber("omir/r1/event/tier/**")
        .callback(move |sample| drop(events.send(sample)))
        .wait()
        .unwrap();
    client.ask_json("omir/r1/remember", &record("a", "red charger", [1.0, 2.0, 0.0])).value();
    let look = client.one("omir/r1/sweep?dryRun=true", None);
    assert_eq!(look.value()["dryRun"], true);
    assert_eq!(look.value()["moved"], 0, "it was stored a moment ago");
    let explained = client.one("omir/r1/explain?ref=MemoryRecord/a", None);
    assert_eq!(explained.value()["tier"], "working");
    assert_eq!(explained.value()["nextMove"]["tier"], "session");

    let moved = moves.recv_timeout(Duration::from_secs(60)).expect("the daemon sweeps by itself");
    assert_eq!(moved.key_expr().as_str(), "omir/r1/event/tier/MemoryRecord/a");
    let resource: Value = ciborium::from_reader(&*moved.payload().to_bytes()).unwrap();
    assert_eq!(resource["tier"], "session");
    let cause = moved.attachment().expect("it says why").to_bytes();
    let cause: Value = serde_json::from_slice(&cause).unwrap();
    assert_eq!([&cause["cause"], &cause["from"], &cause["to"]], ["sweep", "working", "session"]);
    assert!(cause["reason"].as_str().unwrap().starts_with("age "), "{cause}");
    assert_eq!(client.one("omir/r1/sweep", None).value()["moved"], 0, "it is announced once");
    let explained = client.one("omir/r1/explain?ref=MemoryRecord/a", None);
    assert_eq!(explained.value()["tier"], "session");
    assert_eq!(explained.value()["accessCount"], 0, "a question about a memory is no access");

    let unknown = client.one("omir/r1/explain?ref=MemoryRecord/none", None);
    assert_eq!((unknown.code(), unknown.path()), ("NOT_FOUND", "/ref"));
    assert_eq!(client.one("omir/r1/sweep?dryrun=true", None).code(), "INVALID_QUERY");
}

#[test]
fn how_an_answer_is_written_is_no_parameter_of_an_operation() {
    let rig = rig(&[]);
    rig.client.put("omir/r1/memory/Entity/lamp", r#"{"name": "lamp"}"#);
    assert_eq!(rig.client.ask("omir/r1/memory/Entity/lamp").len(), 1);
    let asked = json!({"ref": "Entity/lamp", "format": "cbor"});
    let answer = rig.client.ask_json("omir/r1/explain", &asked);
    assert_eq!(answer.value()["ref"], "Entity/lamp");
}

#[test]
fn events_follow_the_commit_and_refusals_are_announced() {
    let rig = rig(&[]);
    let client = &rig.client;
    let (sender, receiver) = mpsc::channel();
    let _events = client
        .session
        .declare_subscriber("omir/*/event/**")
        .callback(move |sample| {
            let value: Value = ciborium::from_reader(&*sample.payload().to_bytes()).unwrap();
            let key = sample.key_expr().to_string();
            if !key.ends_with("/probe") {
                let _ = sender.send((key, value));
            }
        })
        .wait()
        .unwrap();
    client.wait_until_subscribed("r1");
    let rejected = || client.one("omir/r1/status", None).value()["rejected"].as_u64().unwrap();
    let before = rejected();
    let next = || receiver.recv_timeout(Duration::from_secs(10)).expect("an event");

    client.put("omir/r1/memory/Entity/lamp", r#"{"name": "lamp"}"#);
    let (key, value) = next();
    assert_eq!(
        (key.as_str(), &value["name"]),
        ("omir/r1/event/recorded/Entity/lamp", &json!("lamp"))
    );
    client.put("omir/r1/memory/Entity/lamp", r#"{"name": "a brighter lamp"}"#);
    assert_eq!(next().0, "omir/r1/event/updated/Entity/lamp");
    client.session.delete("omir/r1/memory/Entity/lamp").wait().unwrap();
    let forgotten =
        ("omir/r1/event/forgotten/Entity/lamp".to_owned(), json!({"ref": "Entity/lamp"}));
    assert_eq!(next(), forgotten);
    client.put("omir/r1/memory/Entity/bad", r#"{"nam": "x"}"#);
    let (key, value) = next();
    assert_eq!(key, "omir/r1/event/rejected/Entity/bad");
    assert_eq!(value["code"], "INVALID_RESOURCE");
    client.put("omir/r1/memory/Thing/a/b", "{}");
    assert_eq!(next().0, "omir/r1/event/rejected/unknown/unknown");
    assert_eq!(rejected(), before + 2);
}

#[test]
fn versions_forgetting_anchoring_and_feedback() {
    let rig = rig(&[]);
    let client = &rig.client;
    let remember = |value: &Value| client.ask_json("omir/r1/remember", value);
    let mut memory = record("a", "first", [0.0; 3]);
    remember(&memory);
    assert_eq!(remember(&memory).value()["stored"][0]["unchanged"], true);
    memory["content"] = json!("second");
    assert_eq!(remember(&memory).value()["stored"][0]["version"], 2);
    memory["version"] = json!(1);
    memory["content"] = json!("third, from an old copy");
    let stale = remember(&memory);
    assert_eq!((stale.code(), stale.path()), ("CONFLICT", "/version"));

    let anchored = client.one("omir/r1/anchor?ref=MemoryRecord/a;anchored=true", None);
    assert_eq!(anchored.value()["version"], 3);
    let belief = client.one("omir/r1/feedback?ref=MemoryRecord/a;outcome=confirmed;weight=2", None);
    // Beta(1, 1) and two confirmations: (3 + 1) / (3 + 1 + 2).
    assert_eq!(
        belief.value()["confidence"],
        json!({"alpha": 3.0, "beta": 1.0, "calibrated": 4.0 / 6.0})
    );
    let stored = client.one("omir/r1/memory/MemoryRecord/a", None);
    assert_eq!(stored.value()["decay"]["anchored"], true);
    assert_eq!(stored.value()["version"], 4);

    remember(&json!([entity("x"), entity("y"), {
        "resourceType": "Relationship", "id": "r", "from": {"ref": "Entity/x"},
        "to": {"ref": "Entity/y"}, "relationType": "near",
    }]));
    let gone = client.one("omir/r1/forget?ref=Entity/x", None);
    assert_eq!(gone.value()["forgotten"], 2, "its relationship cannot exist without it");
    assert_eq!(client.one("omir/r1/forget?ref=Entity/x", None).value()["forgotten"], 0);
    let there = client.one("omir/r1/recall?includeForgotten=true;type=Relationship", None);
    assert_eq!(there.value()["hits"][0]["forgotten"], true);
}

#[test]
fn each_of_several_poses_is_found() {
    let rig = rig(&[]);
    let client = &rig.client;
    let mut memory = record("a", "x", [1.0, 2.0, 3.0]);
    let odom = json!({"url": POSE, "valueJson": {"frame": "odom", "position": [4, 5, 6]}});
    memory["extension"].as_array_mut().unwrap().push(odom);
    client.ask_json("omir/r1/remember", &memory);
    for selector in
        ["near=1,2;radius=0.1", "frame=odom;near=4,5,6;radius=0.1", "near=1,2;frame=map"]
    {
        let answer = client.one(&format!("omir/r1/recall?{selector}"), None);
        assert_eq!(answer.value()["total"], 1, "{selector}");
        assert_eq!(answer.value()["hits"][0]["distance"], 0.0, "{selector}");
    }
}

#[test]
fn what_was_got_can_be_sent_back() {
    let rig = rig(&[]);
    let client = &rig.client;
    let mut memory = record("a", "the dock hums", [0.0; 3]);
    memory["entityRefs"] = json!([{"ref": "Entity/dock"}, {"ref": "Entity/hum"}]);
    client.ask_json("omir/r1/remember", &json!([entity("dock"), entity("hum"), memory]));
    for _ in 0..3 {
        client.one("omir/r1/recall?q=dock", None);
    }
    client.one("omir/r1/forget?ref=Entity/hum", None);
    let mut got = Value::Null;
    // Accesses are counted a moment after the recall was answered.
    eventually("three accesses are counted", || {
        got = client.one("omir/r1/memory/MemoryRecord/a?format=cbor", None).value().clone();
        got["decay"]["accessCount"] == 3
    });
    assert_eq!(got["entityRefs"], json!([{"ref": "Entity/dock"}]), "the forgotten one is left out");
    // As CBOR: this test's own JSON reader rounds the last bit of some numbers.
    let again = client.one("omir/r1/remember", Some((cbor(&got), "application/cbor")));
    assert_eq!(again.value()["stored"][0]["unchanged"], true);
    let mut changed = got;
    changed["content"] = json!("the dock is silent");
    let again = client.ask_json("omir/r1/remember", &changed);
    assert_eq!(again.value()["stored"][0]["version"], 2);
}

#[test]
fn a_read_only_daemon_says_so() {
    let rig = rig(&["--read-only"]);
    let client = &rig.client;
    let answer = client.ask_json("omir/r1/remember", &entity("e"));
    assert_eq!(answer.code(), "UNAUTHORIZED");
    assert_eq!(client.one("omir/r1/compact?scope=all", None).code(), "UNAUTHORIZED");
    client.one("omir/r1/recall", None).value();
}

#[test]
fn a_compaction_says_what_it_did() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.ask_json("omir/r1/remember", &json!([entity("e"), record("a", "plughword", [0.0; 3])]));
    // A memory that is forgotten while it is in a log never comes into a segment.
    client.one("omir/r1/compact?scope=all", None).value();
    client.one("omir/r1/forget?ref=MemoryRecord/a", None).value();
    let idle = client.one("omir/r1/compact", None);
    assert_eq!(idle.value()["bytesWritten"], 0, "nothing is due");
    let answer = client.one("omir/r1/compact?scope=forgotten", None);
    let done = answer.value();
    assert_eq!(done["dropped"], json!({"superseded": 0, "forgotten": 1}));
    // That it is forgotten is in a segment of its own.
    assert_eq!((&done["segmentsBefore"], &done["segmentsAfter"]), (&json!(2), &json!(2)));
    assert!(done["bytesAfter"].as_u64() < done["bytesBefore"].as_u64());
    assert!(done["bytesWritten"].as_u64() > Some(0));
    let gone = client.one("omir/r1/recall?q=plughword;includeForgotten=true", None);
    assert_eq!(gone.value()["total"], 0);
    assert_eq!(client.ask("omir/r1/memory/**").len(), 1);
}
