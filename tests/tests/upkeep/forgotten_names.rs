//! A new thing under the name of a forgotten one: what referred to the old one does not refer to
//! the new one, and it makes no difference when the log was sealed.
//!
//! Invariant 20 of ARCHITECTURE.md.

use std::sync::Arc;
use std::time::Duration;

use omir_core::confidence::FeedbackOutcome;
use omir_core::json;
use omir_core::model::{MemoryRecord, Resource};
use omir_core::value::Value;
use omird::engine::testing::ByHand;
use omird::engine::{CompactionScope, Encoding, Precedence, Query, Settings};
use omird_tests::check::decode;
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::{entity, record, reference};
use omird_tests::model::{Answer, Request};
use omird_tests::session::{Session, TestClock, settings};

/// Age at which the log is sealed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sealed {
    BeforeItIsForgotten,
    WhileItIsForgotten,
    OnceTheNameIsBack,
    Never,
}

const ALL: [Sealed; 4] = [
    Sealed::BeforeItIsForgotten,
    Sealed::WhileItIsForgotten,
    Sealed::OnceTheNameIsBack,
    Sealed::Never,
];

fn ask(session: &Session, request: &Request) -> Answer {
    Answer::of(&change(session, request).and_then(|change| session.execute(change)))
}

fn send(session: &Session, resource: Resource) -> Answer {
    ask(session, &Request::Remember(vec![resource]))
}

fn seen() -> Resource {
    record("seen", "a pot on the table", &["pot", "table"], None)
}

fn get(session: &Session) -> MemoryRecord {
    let bytes = session.get(&reference("MemoryRecord/seen")).expect("it is read");
    match decode(&bytes.expect("it is there")) {
        Resource::MemoryRecord(record) => *record,
        other => panic!("{other:?}"),
    }
}

fn mentions(record: &MemoryRecord) -> Vec<String> {
    record.entity_refs.iter().flatten().map(|entity| entity.target.to_string()).collect()
}

fn seal(session: &Session, clock: &TestClock) {
    clock.advance(Duration::from_secs(1));
    session.seal_now(Duration::from_secs(60)).expect("there is room");
}

/// A record mentions a pot, and the pot is forgotten.
fn a_pot_forgotten(disk: &CutDisk, clock: &Arc<TestClock>, sealed: Sealed) -> Session {
    let session = Session::open(disk, clock).expect("it opens");
    send(&session, entity("table", "Table"));
    send(&session, entity("pot", "Pot"));
    send(&session, seen());
    if sealed == Sealed::BeforeItIsForgotten {
        seal(&session, clock);
    }
    ask(&session, &Request::Forget(reference("Entity/pot")));
    assert_eq!(mentions(&get(&session)), ["Entity/table"]);
    if sealed == Sealed::WhileItIsForgotten {
        seal(&session, clock);
    }
    session
}

/// As [`a_pot_forgotten`], and there is another pot.
fn another_pot(disk: &CutDisk, clock: &Arc<TestClock>, sealed: Sealed) -> Session {
    let session = a_pot_forgotten(disk, clock, sealed);
    send(&session, entity("pot", "Another pot"));
    if sealed == Sealed::OnceTheNameIsBack {
        seal(&session, clock);
    }
    session
}

fn stored(version: u64, unchanged: bool) -> Answer {
    Answer::Stored(vec![(reference("MemoryRecord/seen"), version, unchanged)])
}

#[test]
fn what_is_served_does_not_depend_on_when_it_is_sealed() {
    for sealed in ALL {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = another_pot(&disk, &clock, sealed);
        assert_eq!(mentions(&get(&session)), ["Entity/table"], "{sealed:?}");
        drop(session);
        let session = Session::open(&disk, &clock).expect("it opens");
        assert_eq!(mentions(&get(&session)), ["Entity/table"], "{sealed:?}, after a restart");
    }
}

#[test]
fn an_export_says_the_same() {
    for sealed in ALL {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = another_pot(&disk, &clock, sealed);
        let export = session.export(&Query::default()).expect("it is read");
        let Value::Object(bundle) = export.to_value() else { panic!("an export is a Bundle") };
        let entries = bundle.get("entry").and_then(Value::as_array).expect("it has entries");
        let is_seen = |entry: &&Value| entry.pointer("/id").and_then(Value::as_str) == Some("seen");
        let seen = entries.iter().find(is_seen);
        let refs = seen.and_then(|seen| seen.pointer("/entityRefs")).expect("it is exported");
        assert_eq!(refs.to_string(), r#"[{"ref":"Entity/table"}]"#, "{sealed:?}");
    }
}

#[test]
fn what_is_served_can_be_sent_back() {
    for sealed in ALL {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = another_pot(&disk, &clock, sealed);
        let served = get(&session);
        assert_eq!(send(&session, served.into()), stored(1, true), "{sealed:?}");
    }
}

#[test]
fn mentioning_the_new_one_is_news_and_is_kept() {
    for sealed in ALL {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = another_pot(&disk, &clock, sealed);
        assert_eq!(send(&session, seen()), stored(2, false), "{sealed:?}");
        assert_eq!(send(&session, seen()), stored(2, true), "{sealed:?}");
        for _ in 0..2 {
            seal(&session, &clock);
            assert_eq!(mentions(&get(&session)), ["Entity/pot", "Entity/table"], "{sealed:?}");
        }
        drop(session);
        let session = Session::open(&disk, &clock).expect("it opens");
        assert_eq!(mentions(&get(&session)), ["Entity/pot", "Entity/table"], "{sealed:?}");
    }
}

#[test]
fn a_new_version_made_here_does_not_bring_the_mention_back() {
    for sealed in ALL {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = another_pot(&disk, &clock, sealed);
        let target = reference("MemoryRecord/seen");
        ask(&session, &Request::Anchor(target.clone(), true));
        ask(&session, &Request::Feedback(target, FeedbackOutcome::Confirmed));
        assert_eq!(mentions(&get(&session)), ["Entity/table"], "{sealed:?}");
    }
}

#[test]
fn a_backup_brings_the_mention_back_with_what_it_mentions() {
    for sealed in ALL {
        for with_the_pot in [true, false] {
            let (disk, clock) = (CutDisk::new(), TestClock::new());
            let session = a_pot_forgotten(&disk, &clock, sealed);
            let file = [entity("table", "Table"), entity("pot", "Pot"), seen()];
            let file: Vec<_> = file
                .iter()
                .filter(|r| with_the_pot || *r != &file[1])
                .map(Resource::to_value)
                .collect();
            let file = json::to_string(&Value::Array(file));
            for _ in 0..2 {
                let change = session
                    .prepare_merge(file.as_bytes(), Encoding::Json, Precedence::Newer)
                    .expect("it is valid");
                session.execute(change).expect("nothing stands in its way");
                let expected: &[&str] =
                    if with_the_pot { &["Entity/pot", "Entity/table"] } else { &["Entity/table"] };
                assert_eq!(mentions(&get(&session)), expected, "{sealed:?}");
            }
        }
    }
}

#[test]
fn a_compaction_does_not_bring_the_mention_back() {
    for sealed in ALL {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        drop(another_pot(&disk, &clock, sealed));
        let settings = || Settings { keep_history: Duration::ZERO, ..settings() };
        clock.advance(Duration::from_secs(60));
        for _ in 0..2 {
            let disk = Arc::new(disk.clone());
            let session = Session::open_with(disk, &clock, settings(), None).expect("it opens");
            session.compact(CompactionScope::All).expect("there is room");
            assert_eq!(mentions(&get(&session)), ["Entity/table"], "{sealed:?}");
        }
    }
}
