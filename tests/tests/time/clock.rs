//! Clocks that are wrong: boards that boot in 1970, batteries that are flat, clocks a year ahead,
//! machines that sleep. Memories fade by the time that went by, and what came in without a clock is
//! redated, once.
//!
//! Invariants 8 and 18 of ARCHITECTURE.md.

mod ahead;
mod believed;
mod cuts;
mod redated;

use std::sync::Arc;
use std::time::Duration;

use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{MemoryRecord, Resource};
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::engine::{ClockState, Encoding, Query, Stored};
use omird_tests::check;
use omird_tests::cut_disk::CutDisk;
use omird_tests::process::eventually;
use omird_tests::session::{Session, TestClock};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    Session::open(disk, clock).expect("it opens")
}

/// Remembers a JSON text as it came and says what became of it.
fn remember(session: &Session, json: &str) -> Stored {
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    match session.execute(change).expect("it is stored").effect {
        omird::engine::Effect::Remembered(mut stored) => stored.remove(0),
        other => panic!("{other:?}"),
    }
}

fn record(id: &str, more: &str) -> String {
    format!(r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"{id} is seen"{more}}}"#)
}

fn bytes(session: &Session, id: &str) -> Vec<u8> {
    let target: Ref = format!("MemoryRecord/{id}").parse().expect("a reference");
    session.get(&target).expect("it is whole").expect("it is there")
}

fn get(session: &Session, id: &str) -> MemoryRecord {
    match check::decode(&bytes(session, id)) {
        Resource::MemoryRecord(record) => *record,
        other => panic!("{other:?}"),
    }
}

fn micros(instant: &Instant) -> i64 {
    instant.at().as_micros()
}

/// The note about the clock that a record bears.
fn note(record: &MemoryRecord) -> Option<Value> {
    let mut extensions = record.extension.iter().flatten();
    extensions.find(|extension| extension.url == "urn:omird:ext:clock")?.value_json.clone()
}

fn state_of(record: &MemoryRecord) -> Option<String> {
    Some(note(record)?.get("state")?.as_str()?.to_owned())
}

fn version(record: &MemoryRecord) -> u64 {
    record.version.as_ref().and_then(|version| version.as_u64()).unwrap_or(1)
}

/// Retrievability of a record, without an access by this question.
fn retrievability(session: &Session, id: &str) -> f64 {
    let text = Some(id.into());
    let query = Query { text, touch: false, ..Query::default() };
    session.recall(&query).expect("a recall").hits[0].retrievability
}

fn think_of(session: &Session, id: &str) {
    let query = Query { text: Some(id.into()), ..Query::default() };
    assert_eq!(session.recall(&query).expect("a recall").hits.len(), 1);
}

fn clock_status(session: &Session, name: &str) -> Value {
    let status = session.status("r1");
    status.pointer(&format!("/clock/{name}")).cloned().expect(name)
}

fn corrected(session: &Session, count: u64) {
    eventually("what waits is redated", || {
        clock_status(session, "corrected").as_u64() == Some(count)
    });
}

fn state(session: &Session) -> ClockState {
    session.now().1
}

/// Memories of a week ago, and a machine that was cut off its power just now.
fn lived() -> (CutDisk, Arc<TestClock>) {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    remember(&session, &record("old", ""));
    clock.advance(seconds(7 * 86_400));
    remember(&session, &record("new", ""));
    drop(session);
    (disk, clock)
}

fn clock_now(clock: &TestClock) -> i64 {
    use omird::engine::Clock;
    clock.now().as_micros()
}
