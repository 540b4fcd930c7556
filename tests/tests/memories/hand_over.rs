//! Memories handed over as Bundles: what others wrote comes out as it came in, what we made says so,
//! and what a store exported is no news to it.
//!
//! Invariant 13 of ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::profile::{ROBOTICS, builtin};
use omir_core::validate::{Level, Options, Severity, check_document};
use omir_core::value::Value;
use omird::engine::testing::ByHand;
use omird::engine::{
    Clock, Effect, Encoding, Engine, Merged, Precedence, Query, RequestLimits, Task,
};
use omird_tests::cut_disk::CutDisk;
use omird_tests::life::reference;
use omird_tests::session::{Session, TestClock};

/// From a producer that shares nothing with us but the format.
const FOREIGN: &str = r#"{"resourceType": "Bundle", "omirVersion": "R1", "source": "veld/0.7.6", "entry": [
    {"resourceType": "MemoryRecord", "id": "m1", "content": "the hall is dark",
     "createdAt": "2026-05-30T11:42:05+02:00", "eventTime": "2026-05-30T11:42:00+02:00",
     "meta": {"omirVersion": "R1", "profile": ["https://example.org/profile/nobody-knows",
              "https://omir.io/spec/R1/profile/omir-robotics"], "source": "veld/0.7.6",
              "createdAt": "2026-05-30T09:42:05Z", "lastUpdated": "2026-05-30T09:42:06Z", "maturity": 2},
     "entityRefs": [{"ref": "Entity/hall"}], "importance": 0.82, "version": 3,
     "decay": {"halfLifeHours": 24},
     "extension": [
        {"url": "https://veld.dev/omir/ext/scores", "valueJson": {"b": [1.50, null, {"z": 1, "a": true}], "a": "x"}},
        {"url": "https://veld.dev/omir/ext/rank", "valueNumber": 12345678901234567890},
        {"url": "https://veld.dev/omir/ext/note", "valueString": "ä\u0000", "valueBoolean": false}]},
    {"resourceType": "Entity", "id": "hall", "name": "the hall", "createdAt": "2026-05-30T09:42:05Z",
     "labels": ["location"], "meta": {"omirVersion": "R1", "source": "veld/0.7.6"},
     "extension": [{"url": "urn:example:shape", "valueJson": null}]},
    {"resourceType": "Episode", "id": "tour", "content": "a tour", "source": "message",
     "createdAt": "2026-05-30T09:00:00Z", "meta": {"omirVersion": "R1"},
     "metadata": {"weather": "rain"}},
    {"resourceType": "Relationship", "id": "r", "relationType": "seen_in", "createdAt": "2026-05-30T09:00:00Z",
     "from": {"ref": "Entity/hall"}, "to": {"ref": "Entity/hall"}, "strength": 0.25,
     "meta": {"omirVersion": "R1", "maturity": 0}}
]}"#;

/// Whole, ours by all it says, and without `meta`.
const PLAIN: &str = r#"[
    {"resourceType": "Entity", "id": "dock", "name": "Dock", "createdAt": "2026-05-31T07:00:00Z",
     "labels": ["location"],
     "extension": [{"url": "https://omir.io/spec/R1/extension/spatial-pose",
                    "valueJson": {"frame": "map", "position": [1, 2, 0]}}]},
    {"resourceType": "MemoryRecord", "id": "hum", "content": "the dock hums", "createdAt": "2026-05-31T08:00:00Z",
     "eventTime": "2026-05-31T07:59:00Z", "decay": {"halfLifeHours": 100},
     "entityRefs": [{"ref": "Entity/dock"}]},
    {"resourceType": "Episode", "id": "round", "content": "a round", "source": "observation",
     "createdAt": "2026-05-31T08:00:00Z"},
    {"resourceType": "Relationship", "id": "loop", "relationType": "near", "createdAt": "2026-05-31T08:00:00Z",
     "from": {"ref": "Entity/dock"}, "to": {"ref": "Entity/dock"}}
]"#;

fn parse(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).expect("it is JSON")
}

fn send(session: &Session, document: &str) -> Vec<(u64, bool)> {
    let change = session.prepare(document.as_bytes(), Encoding::Json, None).expect("it is valid");
    let receipt = session.execute(change).expect("the disk is good");
    let Effect::Remembered(stored) = receipt.effect else { panic!("{receipt:?}") };
    stored.iter().map(|stored| (stored.version, stored.unchanged)).collect()
}

fn export(engine: &Engine) -> Value {
    engine.export(&Query::everything()).expect("it is exported").to_value()
}

/// The entries of a Bundle, or of an array, by reference.
fn entries(document: &Value) -> BTreeMap<String, Value> {
    let list = document.get("entry").unwrap_or(document).as_array().expect("a list");
    let name = |entry: &Value| {
        let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        format!("{}/{}", text("resourceType"), text("id"))
    };
    list.iter().map(|entry| (name(entry), entry.clone())).collect()
}

fn without_meta(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Value::Object(members) = &mut entry {
        members.remove("meta");
    }
    entry
}

fn got(engine: &Engine, name: &str) -> Value {
    let bytes = engine.get(&reference(name)).expect("it is read").expect("it is there");
    omir_core::cbor::from_slice(&bytes, &Limits::default()).expect("it is CBOR")
}

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    Session::open(disk, clock).expect("it opens")
}

#[test]
fn what_others_wrote_comes_out_as_it_came_in() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    assert_eq!(send(&session, FOREIGN), [(3, false), (1, false), (1, false), (1, false)]);
    assert_eq!(entries(&export(&session)), entries(&parse(FOREIGN)));
    drop(session);
    // Sealed, and read back.
    let session = open(&disk, &clock);
    assert_eq!(entries(&export(&session)), entries(&parse(FOREIGN)));
}

#[test]
fn an_export_says_what_each_memory_is() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    send(&session, PLAIN);
    let sent = entries(&parse(PLAIN));
    for (name, entry) in &sent {
        assert_eq!(got(&session, name), *entry, "what came whole is stored as it came");
    }
    clock.advance(Duration::from_secs(60));
    let recorded = clock.now();
    send(&session, &PLAIN.replace("hums", "is silent"));
    clock.advance(Duration::from_secs(60));
    let bundle = export(&session);
    for (name, entry) in entries(&bundle) {
        let meta = entry.get("meta").expect("it is stamped");
        let text = |name| meta.get(name).and_then(Value::as_str);
        assert_eq!(text("omirVersion"), Some("R1"));
        assert!(text("source").is_some_and(|source| source.starts_with("omird/")), "{meta:?}");
        let maturity = if name.starts_with("MemoryRecord") { 4 } else { 3 };
        assert_eq!(meta.get("maturity").and_then(Value::as_u64), Some(maturity));
        let updated = text("lastUpdated").map(|at| Timestamp::parse(at).expect("an instant"));
        let is_new = updated == Some(recorded);
        assert_eq!(is_new, name == "MemoryRecord/hum", "{name} was recorded {updated:?}");
        let claims = meta.pointer("/profile/0").and_then(Value::as_str) == Some(ROBOTICS);
        assert_eq!(claims, !name.starts_with("Relationship"), "{name}: {meta:?}");
        if !is_new {
            assert_eq!(without_meta(&entry), sent[&name]);
        }
    }
    let (profiles, required) = (builtin(), [ROBOTICS.to_owned()]);
    let options =
        |required| Options { level: Level::Strict, plain_r1: true, profiles: &profiles, required };
    for required in [&[][..], &required] {
        let (findings, summary) = check_document(&bundle, options(required));
        let worst = findings.iter().filter(|f| f.fault.severity() > Severity::Info);
        let worst: Vec<String> = worst.map(|f| f.fault.to_string()).collect();
        assert_eq!(worst, Vec::<String>::new());
        assert_eq!(summary.map(|summary| summary.with_meta), Some(4));
    }
}

#[test]
fn what_the_daemon_completes_is_stamped_once() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    let seen = r#"{"resourceType": "MemoryRecord", "id": "seen", "content": "a kettle",
        "eventTime": "2026-05-31T07:59:00Z", "extension": [{"valueJson": {"frame": "map", "position": [1, 2, 0],
        "orientation": [0, 0, 0, 2]}, "url": "https://omir.io/spec/R1/extension/spatial-pose"}]}"#;
    assert_eq!(send(&session, seen), [(1, false)]);
    let stored = got(&session, "MemoryRecord/seen");
    let meta = stored.get("meta").expect("it is stamped");
    assert!(meta.get("lastUpdated").is_none());
    assert_eq!(meta.pointer("/profile/0").and_then(Value::as_str), Some(ROBOTICS));
    let recorded = clock.now();
    clock.advance(Duration::from_secs(60));
    let exported = entries(&export(&session))["MemoryRecord/seen"].clone();
    assert_eq!(without_meta(&exported), without_meta(&stored));
    let updated = exported.pointer("/meta/lastUpdated").and_then(Value::as_str);
    assert_eq!(updated.map(Timestamp::parse), Some(Ok(recorded)), "an export says when");
    assert_eq!(send(&session, &json::to_string(&exported)), [(1, true)]);
    clock.advance(Duration::from_secs(60));
    assert_eq!(send(&session, seen), [(1, true)]);
    let whole = json::to_string(&without_meta(&stored));
    assert_eq!(send(&session, &whole), [(1, true)], "without our stamp it is the same");
    // A client that states a `meta` of its own is heard.
    let own = r#"{"resourceType": "MemoryRecord", "id": "own", "content": "a kettle",
        "meta": {"omirVersion": "R1", "source": "veld/0.7.6"}}"#;
    send(&session, own);
    let meta = got(&session, "MemoryRecord/own").get("meta").cloned();
    assert_eq!(meta, Some(parse(r#"{"omirVersion": "R1", "source": "veld/0.7.6"}"#)));
}

#[test]
fn what_was_exported_is_no_news() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    send(&session, PLAIN);
    send(&session, FOREIGN);
    clock.advance(Duration::from_secs(3600));
    session.recall(&Query { text: Some("dock".into()), ..Query::default() }).expect("answered");
    let bundle = json::to_string(&export(&session));
    let same = |session: &Session, bundle: &str| {
        // The start may have found something to seal, which is not what is sent.
        session.run_task(Task::Seal).expect("it runs");
        let before = disk.operations();
        let stored = send(session, bundle);
        assert_eq!(stored.len(), 8);
        assert!(stored.iter().all(|(_, unchanged)| *unchanged), "{stored:?}");
        assert_eq!(disk.operations(), before, "nothing is written");
    };
    same(&session, &bundle);
    drop(session);
    let session = open(&disk, &clock);
    same(&session, &bundle);

    // By way of another robot, which keeps what it is told.
    let (other, later) = (CutDisk::new(), TestClock::new());
    later.advance(Duration::from_secs(86_400));
    let away = open(&other, &later);
    send(&away, &bundle);
    assert_eq!(entries(&export(&away)), entries(&parse(&bundle)));
    same(&session, &json::to_string(&export(&away)));

    // A claim that another version of us did not make is none, and another text is news.
    let hum = entries(&parse(&bundle))["MemoryRecord/hum"].clone();
    let hum = json::to_string(&hum);
    let unclaimed = hum.replace(&format!(r#""profile":["{ROBOTICS}"],"#), "");
    assert_ne!(unclaimed, hum);
    assert_eq!(send(&session, &unclaimed), [(1, true)]);
    assert_eq!(send(&session, &hum.replace("hums", "is silent")), [(2, false)]);
}

/// Outcome of merging one store's export, for each memory in another.
fn hand_over(from: &Session, to: &Session) -> Vec<Option<Merged>> {
    let bundle = json::to_string(&export(from));
    let change = to
        .prepare_merge(bundle.as_bytes(), Encoding::Json, Precedence::Newer)
        .expect("an export is valid");
    let receipt = to.execute(change).expect("the disk is good");
    let Effect::Remembered(stored) = receipt.effect else { panic!("{receipt:?}") };
    stored.iter().map(|stored| stored.merged).collect()
}

#[test]
fn what_was_completed_and_changed_later_reaches_the_other_robot() {
    // Without `createdAt`: the daemon completes and stamps them.
    let seen = r#"[{"resourceType": "Entity", "id": "dock", "name": "the dock is free"},
        {"resourceType": "Episode", "id": "round", "content": "the dock is free", "source": "observation"},
        {"resourceType": "Relationship", "id": "loop", "relationType": "free",
         "from": {"ref": "Entity/dock"}, "to": {"ref": "Entity/dock"}},
        {"resourceType": "MemoryRecord", "id": "seen", "content": "the dock is free"}]"#;
    let (here, there, clock) = (CutDisk::new(), CutDisk::new(), TestClock::new());
    let (a, b) = (open(&here, &clock), open(&there, &clock));
    let hour = Duration::from_secs(3600);
    let all = |merged| vec![Some(merged); 4];
    send(&a, seen);
    clock.advance(hour);
    assert_eq!(hand_over(&a, &b), all(Merged::Added));
    clock.advance(hour);
    send(&a, &seen.replace("free", "taken"));
    clock.advance(hour);
    assert_eq!(hand_over(&b, &a), all(Merged::Kept), "what was not changed since is older");
    assert_eq!(hand_over(&a, &b), all(Merged::Updated));
    assert_eq!(hand_over(&a, &b), all(Merged::Unchanged));
    clock.advance(hour);
    // Changed there as a client gets it, with the stamp and its date.
    for name in ["Entity/dock", "Episode/round", "Relationship/loop", "MemoryRecord/seen"] {
        let resource = json::to_string(&got(&b, name));
        assert!(resource.contains("lastUpdated"), "{resource}");
        send(&b, &resource.replace("taken", "gone"));
    }
    clock.advance(hour);
    assert_eq!(hand_over(&a, &b), all(Merged::Kept));
    assert_eq!(hand_over(&b, &a), all(Merged::Updated));
    assert_eq!(hand_over(&b, &a), all(Merged::Unchanged));
    assert_eq!(hand_over(&a, &b), all(Merged::Unchanged));
}

/// A resource as deep as one may be comes back in what wraps it: an array, and its own export.
#[test]
fn the_deepest_resource_is_accepted_from_its_own_export() {
    let levels = RequestLimits::default().max_depth;
    let deep = format!("{}{}", "[".repeat(levels - 3), "]".repeat(levels - 3));
    let deep = format!(
        r#"{{"resourceType": "Entity", "id": "a", "name": "a", "createdAt": "2026-05-31T07:00:00Z",
            "extension": [{{"url": "urn:example:deep", "valueJson": {deep}}}]}}"#
    );
    let clock = TestClock::new();
    let (one, other) = (open(&CutDisk::new(), &clock), open(&CutDisk::new(), &clock));
    assert_eq!(send(&one, &deep), [(1, false)]);
    assert_eq!(send(&one, &format!("[{deep}]")), [(1, true)]);
    let bundle = json::to_string(&export(&one));
    let merge = other.prepare_merge(bundle.as_bytes(), Encoding::Json, Precedence::Newer);
    other.execute(merge.expect("what an export gave is accepted")).expect("it is merged");
    assert_eq!(other.live(), 1);
}
