//! Conditions on a write: "only if absent" and "only if the version is n", for each type of resource. The writer
//! decides, so of many that ask for the same at once exactly one succeeds.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use omird::engine::testing::ByHand;
use omird::engine::{Code, CompactionScope, Effect, Encoding, Engine, Error, Precondition, Stored};
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::{Session, TestClock};

use Precondition::{Absent, Version};

const NAMES: [&str; 4] = ["MemoryRecord/m", "Entity/e", "Relationship/r", "Episode/p"];

/// A resource that says `text`, as JSON. The Relationship needs an Entity called `hall`.
fn resource(name: &str, text: &str) -> String {
    let (kind, id) = name.split_once('/').expect("a reference");
    let members = match kind {
        "MemoryRecord" => format!(r#""content":"{text}""#),
        "Entity" => format!(r#""name":"{text}""#),
        "Relationship" => {
            let hall = r#"{"ref":"Entity/hall"}"#;
            format!(r#""from":{hall},"to":{hall},"relationType":"{text}""#)
        }
        _ => format!(r#""content":"{text}""#),
    };
    format!(r#"{{"resourceType":"{kind}","id":"{id}",{members}}}"#)
}

fn write(engine: &Engine, json: &str, precondition: Precondition) -> Result<Vec<Stored>, Error> {
    let change = engine.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
    match engine.execute(change.only_if(precondition))?.effect {
        Effect::Remembered(stored) => Ok(stored),
        other => panic!("a remember had the effect {other:?}"),
    }
}

fn version(result: Result<Vec<Stored>, Error>) -> u64 {
    result.expect("the condition is met")[0].version
}

#[track_caller]
fn conflict<T: std::fmt::Debug>(result: Result<T, Error>, path: &str, says: &str) {
    let error = result.expect_err("the condition is not met");
    assert_eq!((error.code, &*error.path), (Code::Conflict, path), "{error}");
    assert!(error.message.contains(says), "{error}");
}

fn open() -> (CutDisk, Arc<TestClock>, Session) {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    write(&session, &resource("Entity/hall", "hall"), Absent).expect("it is the first");
    (disk, clock, session)
}

fn forget(engine: &Engine, name: &str) {
    let target = name.parse().expect("a reference");
    let change = omird::engine::Change::Forget(vec![target]);
    engine.execute(change).expect("the disk is good");
}

#[test]
fn each_type_is_written_only_where_the_condition_holds() {
    let (_, _, session) = open();
    for name in NAMES {
        conflict(write(&session, &resource(name, "a"), Version(1)), "/version", "is not stored");
        assert_eq!(version(write(&session, &resource(name, "a"), Absent)), 1);
        conflict(write(&session, &resource(name, "b"), Absent), "/id", "as version 1");
        // The same once more is not absent either.
        conflict(write(&session, &resource(name, "a"), Absent), "/id", "as version 1");
        conflict(write(&session, &resource(name, "b"), Version(2)), "/version", "is version 1");
        assert_eq!(version(write(&session, &resource(name, "b"), Version(1))), 2);
        conflict(write(&session, &resource(name, "c"), Version(1)), "/version", "is version 2");
        let same = write(&session, &resource(name, "b"), Version(2)).expect("it is version 2");
        assert_eq!(same, [Stored::new(name.parse().unwrap(), 2, true)], "nothing to write");
    }
}

/// A forgotten name is absent, and its numbers go on. No condition names a tombstone.
#[test]
fn a_forgotten_name_is_absent() {
    let (disk, clock, session) = open();
    for name in NAMES {
        write(&session, &resource(name, "a"), Absent).expect("it is the first");
        forget(&session, name);
        for number in 1..4 {
            let refused = write(&session, &resource(name, "b"), Version(number));
            conflict(refused, "/version", "was forgotten (version 2 is its tombstone)");
        }
    }
    drop(session);
    // The log decides after a start, and decides alike.
    let session = Session::open(&disk, &clock).expect("it opens");
    for name in NAMES {
        conflict(write(&session, &resource(name, "b"), Version(2)), "/version", "was forgotten");
        assert_eq!(version(write(&session, &resource(name, "b"), Absent)), 3);
        assert_eq!(version(write(&session, &resource(name, "c"), Version(3))), 4);
        forget(&session, name);
    }
    // And once no tombstone is left.
    clock.advance(Duration::from_secs(400 * 86_400));
    session.compact(CompactionScope::All).expect("the disk is good");
    drop(session);
    let session = Session::open(&disk, &clock).expect("it opens");
    for name in NAMES {
        write(&session, &resource(name, "d"), Absent).expect("it is absent");
    }
}

#[test]
fn one_condition_that_fails_refuses_the_whole_request() {
    let (_, _, session) = open();
    write(&session, &resource("Entity/e", "a"), Absent).expect("it is the first");
    let [new, old] = ["MemoryRecord/m", "Entity/e"].map(|name| resource(name, "b"));
    let both = format!("[{new},{old}]");
    conflict(write(&session, &both, Absent), "/1/id", "Entity/e is stored already");
    conflict(write(&session, &both, Version(1)), "/0/version", "MemoryRecord/m is not stored");
    let bundle =
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","id":"b","entry":{both}}}"#);
    conflict(write(&session, &bundle, Absent), "/entry/1/id", "Entity/e is stored already");
    assert_eq!(session.live(), 2, "the hall, and e");
    // A resource without an id gets a new one, which is absent.
    write(&session, r#"{"resourceType":"MemoryRecord","content":"x"}"#, Absent).expect("it is new");
}

/// A condition beside a stated version: both count.
#[test]
fn the_version_that_a_record_states_is_still_checked() {
    let (_, _, session) = open();
    let stating = |version: u64| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"m","content":"{version}","version":{version}}}"#
        )
    };
    assert_eq!(version(write(&session, &stating(3), Absent)), 3);
    conflict(
        write(&session, &stating(2), Version(3)),
        "/version",
        "older than the stored version 3",
    );
    conflict(write(&session, &stating(4), Version(2)), "/version", "is version 3, not 2");
    assert_eq!(version(write(&session, &stating(4), Version(3))), 4);
}

#[test]
fn of_many_at_once_exactly_one_succeeds() {
    const WRITERS: usize = 16;
    const ROUNDS: u64 = 40;
    let (_, _, session) = open();
    for name in NAMES {
        for round in 0..ROUNDS {
            // The first of each ten rounds finds nothing, or a tombstone.
            let precondition = match round % 10 {
                0 => Absent,
                step => Version(step + 11 * (round / 10)),
            };
            let start = Barrier::new(WRITERS);
            let outcomes = thread::scope(|scope| {
                let writers: Vec<_> = (0..WRITERS)
                    .map(|writer| {
                        let (session, start) = (&session, &start);
                        scope.spawn(move || {
                            let json = resource(name, &format!("writer {writer} in {round}"));
                            start.wait();
                            write(session, &json, precondition)
                        })
                    })
                    .collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
            });
            let winners = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(winners, 1, "{name}, round {round}, {precondition:?}: {outcomes:?}");
            for refused in outcomes.into_iter().filter_map(Result::err) {
                assert_eq!(refused.code, Code::Conflict, "{refused}");
            }
            if round % 10 == 9 {
                forget(&session, name);
            }
        }
    }
}

/// A forget and a write that needs the memory: either is first, and the answers say which.
#[test]
fn a_forget_at_the_same_time_is_before_or_after() {
    let (_, _, session) = open();
    let mut version = 0;
    for round in 0..100 {
        version += 1;
        let first = write(&session, &resource("Entity/e", &format!("a {round}")), Absent);
        assert_eq!(first.expect("it was forgotten")[0].version, version);
        let start = Barrier::new(2);
        let outcome = thread::scope(|scope| {
            let forgets = scope.spawn(|| {
                start.wait();
                forget(&session, "Entity/e");
            });
            start.wait();
            let outcome = write(&session, &resource("Entity/e", "b"), Version(version));
            forgets.join().unwrap();
            outcome
        });
        match outcome {
            // Then the forget came after it.
            Ok(_) => version += 2,
            Err(error) => {
                assert!(error.message.contains("was forgotten"), "{error}");
                version += 1;
            }
        }
        assert_eq!(session.get(&"Entity/e".parse().unwrap()).unwrap(), None);
    }
}
