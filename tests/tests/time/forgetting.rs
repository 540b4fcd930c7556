//! Time moves memories, merges what is the same and lets go of what is over; it never loses what was
//! learned, never counts it twice, and asks for no write to know where a memory is.
//!
//! Invariant 17 of ARCHITECTURE.md.

mod cut;
mod lost;
mod merging;
mod owned;
mod room;
mod tiers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use omir_core::event::EventKind;
use omir_core::value::Value;
use omir_core::{cbor, decode::Limits};
use omird::engine::{
    Change, Code, CompactionScope, Effect, Encoding, Event, Events, Listening, Query, Settings,
    SweepReport,
};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

const HOUR: Duration = Duration::from_secs(3600);

const DAY: Duration = Duration::from_secs(86_400);

fn put(session: &Session, json: &str) -> Effect {
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("the disk is good").effect
}

/// Reply of `GET`.
fn get(session: &Session, target: &str) -> Option<Value> {
    let bytes = session.get(&target.parse().expect("a reference")).expect("it is readable")?;
    Some(cbor::from_slice(&bytes, &Limits::default()).expect("it is CBOR"))
}

fn tier(session: &Session, target: &str) -> String {
    let record = get(session, target).expect("it is live");
    record.get("tier").and_then(Value::as_str).unwrap_or("working").to_owned()
}

fn in_tier(session: &Session, tier: &str) -> u64 {
    let tiers = vec![tier.parse().expect("a tier")];
    let recalled = session.recall(&Query { tiers, touch: false, ..Query::default() });
    let total = recalled.expect("it is answered").total;
    let status = session.status("r");
    let counted = status.get("counts").and_then(|counts| counts.get("tiers")?.get(tier)?.as_u64());
    assert_eq!(counted, Some(total), "status and recall agree on {tier}");
    total
}

fn explain(session: &Session, target: &str) -> Value {
    session.explain(&target.parse().expect("a reference")).expect("it is known")
}

fn unchanged(effect: Effect) -> bool {
    let Effect::Remembered(stored) = effect else { panic!("{effect:?}") };
    stored.iter().all(|stored| stored.unchanged)
}

fn sweep(session: &Session) -> SweepReport {
    session.sweep(false).expect("the disk is good")
}

fn counts(report: &SweepReport) -> [u64; 4] {
    [report.moved, report.merged, report.expired, report.evicted]
}

fn number(value: &Value, names: &[&str]) -> f64 {
    let found = names.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(Value::as_f64).unwrap_or_else(|| panic!("no {names:?} in {value}"))
}

const PLAIN: &str = r#"{"resourceType":"MemoryRecord","id":"a","content":"a bench by the lake",
    "createdAt":"2026-06-01T00:00:00Z","importance":0.7}"#;

/// An observation of the cup: who saw it, how sure it is, and what else it states.
fn cup(id: &str, minute: u32, evidence: f64, source: &str, more: &str) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"the red cup stands on the table",
        "createdAt":"2026-06-01T00:{minute:02}:00Z","entityRefs":[{{"ref":"Entity/cup"}}],
        "confidence":{{"alpha":{},"beta":1}},{more}
        "provenance":{{"externalId":"{source}"}},"extension":[{{
        "url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{{"frame":"map","position":[1.0,2.0,0.0]}}}}]}}"#,
        1.0 + evidence,
    )
}

fn cups(session: &Session) {
    put(session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    put(session, &cup("c1", 1, 2.0, "cam:1", r#""importance":0.9,"#));
    put(session, &cup("c2", 2, 3.0, "cam:1", ""));
    put(session, &cup("c3", 3, 1.0, "cam:2", ""));
}

/// α beyond the prior, over all live cups.
fn evidence(session: &Session) -> BTreeMap<String, f64> {
    let query = Query { limit: None, touch: false, ..Query::default() };
    let recalled = session.recall(&query).expect("it is answered");
    let records = recalled
        .hits
        .iter()
        .map(|hit| cbor::from_slice(&hit.resource, &Limits::default()).expect("it is CBOR"));
    records
        .filter(|record| record.get("confidence").is_some())
        .map(|record| {
            let id = record.get("id").and_then(Value::as_str).expect("an id").to_owned();
            (id, number(&record, &["confidence", "alpha"]) - 1.0)
        })
        .collect()
}

/// The refs that are live, with the tier of each.
fn standing(session: &Session) -> BTreeMap<String, String> {
    let mut standing = BTreeMap::new();
    session.each(None, |bytes| {
        let resource = cbor::from_slice(&bytes, &Limits::default()).expect("it is CBOR");
        let text = |name| resource.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        standing.insert(text("id"), text("tier"));
    });
    standing
}

/// Opens a store whose events are kept.
fn watched(disk: &CutDisk, clock: &Arc<TestClock>) -> (Session, Arc<Mutex<Vec<Event>>>, Listening) {
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let log = events.clone();
    let announced = Events::default();
    let listening = announced.listen(move |event| {
        log.lock().expect("no panic").push(event.clone());
    });
    let disk = Arc::new(disk.clone());
    let session = Session::open_announcing(disk, clock, settings(), None, announced);
    (session.expect("it opens"), events, listening)
}
