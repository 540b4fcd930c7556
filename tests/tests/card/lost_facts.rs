//! Facts that decide an answer are stored twice: if the card loses an update or a tombstone, the version before it is
//! not served as current, what was forgotten stays forgotten, and no version number is given twice.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::sync::Arc;
use std::time::Duration;

use omir_core::value::Value;
use omird::engine::testing::ByHand;
use omird::engine::{Code, Precondition, Query, Settings};
use omird::store::format::{wal, witness};
use omird_tests::Result;
use omird_tests::check::decode;
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life;
use omird_tests::model::Request;
use omird_tests::session::{Session, TestClock, settings};

/// Nothing is sealed by itself.
fn patient() -> Settings {
    let weeks = Duration::from_secs(28 * 86_400);
    Settings { seal_after: weeks, purge_after: weeks, segment_bytes: 1 << 20, ..settings() }
}

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    Session::open_with(Arc::new(disk.clone()), clock, patient(), None).expect("it opens")
}

fn ask(session: &Session, request: &Request) {
    session.execute(change(session, request).expect("valid")).expect("the disk is good");
}

fn door(session: &Session, state: &str) {
    let door = life::entity("door", &format!("the door is {state}"));
    ask(session, &Request::Remember(vec![door]));
}

/// The state of the door, or the error that stands for it.
fn look(session: &Session) -> Result<Option<String>> {
    let found = session.get(&life::reference("Entity/door"))?;
    Ok(found.map(|bytes| omir_core::json::to_string(&decode(&bytes).to_value())))
}

fn version(session: &Session) -> u64 {
    let explained = session.explain(&life::reference("Entity/door")).expect("it is known");
    explained.get("version").and_then(Value::as_u64).expect("a version")
}

/// A log in which something came before `text` and after it.
fn damaged(text: &str, bits: &[usize], tell: impl FnOnce(&Session)) -> (CutDisk, Arc<TestClock>) {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    // The first stop leaves a segment.
    ask(&session, &Request::Remember(vec![life::entity("first", "the first thing")]));
    drop(session);
    let session = open(&disk, &clock);
    door(&session, "LOCKED");
    tell(&session);
    drop(session);
    if bits.is_empty() {
        return (disk, clock);
    }
    let log = disk.paths().into_iter().rfind(|path| path.ends_with(".wal")).expect("a log");
    disk.rot(&log, |bytes| {
        let at = bytes.windows(text.len()).rposition(|window| window == text.as_bytes());
        let at = at.expect("it is in the log");
        bits.iter().for_each(|bit| bytes[at + bit / 8] ^= 1 << (bit % 8));
    });
    (disk, clock)
}

#[test]
fn an_update_that_is_lost_is_missed_and_what_is_older_is_not_taken_for_it() {
    let (disk, clock) = damaged("the door is OPEN", &[3, 70], |session| door(session, "OPEN"));
    let session = open(&disk, &clock);
    assert!(!session.damage().is_empty());
    // Also once what is left of the log is sealed, at any start after it.
    for start in 0..3 {
        let session = open_again(&disk, &clock, start);
        let why = look(&session).expect_err("it is not known whether it is open");
        assert!(why.to_string().contains("version 2 is unreadable"), "{start}: {why}");
        let explained = session.explain(&life::reference("Entity/door")).expect("it is known");
        assert_eq!(explained.get("unreadable"), Some(&Value::Bool(true)), "{explained:?}");
        assert_eq!(explained.get("readableVersion").and_then(Value::as_u64), Some(1));
        let query = Query { touch: false, ..Query::default() };
        let recall = session.recall(&query).expect("it answers");
        assert_eq!((recall.hits.len(), recall.unreadable), (1, 1), "{start}");
        let export = session.export(&Query::everything()).expect("the others can be read");
        assert_eq!(export.left_out().count, 1, "{start}");
    }
    drop(session);
    let session = open(&disk, &clock);
    door(&session, "LOCKED");
    assert!(look(&session).expect("it is known again").expect("it lives").contains("LOCKED"));
    assert_eq!(version(&session), 3, "the number of the lost version is not given again");
    drop(session);
    let session = open(&disk, &clock);
    assert_eq!(version(&session), 3);
    assert!(look(&session).expect("it is known").is_some());
}

fn open_again(disk: &CutDisk, clock: &Arc<TestClock>, start: usize) -> Session {
    let card = disk.survivors(omird_tests::cut_disk::EVERYTHING);
    let session = open(&card, clock);
    for _ in 0..start {
        session.seal_now(Duration::from_secs(60)).expect("the disk is good");
    }
    drop(session);
    open(&card, clock)
}

#[test]
fn what_was_forgotten_stays_so_when_its_tombstone_is_lost() {
    let forget = |session: &Session| {
        ask(session, &Request::Forget(life::reference("Entity/door")));
    };
    let (disk, clock) = damaged("Entity/door", &[3, 70], forget);
    for start in 0..3 {
        let session = open_again(&disk, &clock, start);
        assert_eq!(look(&session).unwrap(), None, "{start}: forgotten is forgotten");
    }
    let session = open(&disk, &clock);
    door(&session, "NEW");
    assert_eq!(version(&session), 3);
}

#[test]
fn an_entity_can_be_forgotten_although_what_links_it_is_lost() {
    // The bits of the relationship's predicate are beyond repair, or those of its own name are.
    for (text, is_named) in [("stands_on", true), ("door-wall", false)] {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = open(&disk, &clock);
        door(&session, "OPEN");
        let wall = life::entity("wall", "the wall");
        let edge = life::edge("door-wall", "door", "wall", None);
        ask(&session, &Request::Remember(vec![wall, edge]));
        let log = disk.paths().into_iter().rfind(|path| path.ends_with(".wal")).expect("a log");
        disk.rot(&log, |bytes| {
            let at = bytes.windows(text.len()).rposition(|window| window == text.as_bytes());
            let at = at.expect("it is in the log");
            bytes[at] ^= 8;
            bytes[at + 5] ^= 16;
        });
        ask(&session, &Request::Forget(life::reference("Entity/door")));
        assert_eq!(look(&session).expect("it is known"), None);
        let edge = session.get(&life::reference("Relationship/door-wall"));
        assert_eq!(matches!(edge, Ok(None)), is_named, "{edge:?}");
    }
}

/// A version that is lost is there: nothing may take its name for absent. Whoever knows its number may replace it.
#[test]
fn a_lost_version_is_not_absent() {
    let (disk, clock) = damaged("the door is OPEN", &[3, 70], |session| door(session, "OPEN"));
    let session = open(&disk, &clock);
    let write = |precondition: Precondition| {
        let request = Request::Remember(vec![life::entity("door", "the door is NEW")]);
        session.execute(change(&session, &request).expect("valid").only_if(precondition))
    };
    for precondition in [Precondition::Absent, Precondition::Version(1), Precondition::Version(3)] {
        let error = write(precondition).expect_err("version 2 is lost and not forgotten");
        assert_eq!(error.code, Code::Conflict, "{error}");
        assert!(error.message.contains("version 2"), "{error}");
    }
    write(Precondition::Version(2)).expect("that is what was lost");
    assert_eq!(version(&session), 3);
}

#[test]
fn a_single_bit_of_a_log_is_turned_back() {
    for text in ["the door is OPEN", "the door is LOCKED"] {
        for bit in 0..8 * text.len() {
            let (disk, clock) = damaged(text, &[bit], |session| door(session, "OPEN"));
            let session = open(&disk, &clock);
            assert!(session.damage().is_empty(), "{:?}", session.damage());
            assert!(look(&session).expect("it is known").expect("it lives").contains("OPEN"));
            assert_eq!(version(&session), 2);
        }
    }
}

#[test]
fn the_last_write_of_a_stopped_daemon_is_missed_when_it_rots() {
    let (disk, clock) = damaged("the door is OPEN", &[], |session| door(session, "OPEN"));
    let log = disk.paths().into_iter().rfind(|path| path.ends_with(".wal")).expect("a log");
    let whole = disk.bytes(&log);
    let at = whole.windows(4).rposition(|window| window == b"OPEN").expect("it is in the log");
    for cut in [false, true] {
        let card = disk.survivors(omird_tests::cut_disk::EVERYTHING);
        card.rot(&log, |bytes| match cut {
            true => bytes.truncate(at),
            false => bytes[at..].fill(0),
        });
        let session = open(&card, &clock);
        assert!(!session.damage().is_empty(), "it was acknowledged, and no write was cut short");
        let error = session.get(&life::reference("Entity/door")).expect_err("version 2 is lost");
        assert_eq!(error.code, Code::Internal);
    }
}

/// The newest segment, hurt worse than its sidecar can mend, while what it held was an update or a tombstone.
#[test]
fn what_a_lost_segment_held_is_missed() {
    for is_forgotten in [false, true] {
        let (disk, clock) = damaged("the door is LOCKED", &[], |session| {
            session.seal_now(Duration::from_secs(60)).expect("the disk is good");
            match is_forgotten {
                true => ask(session, &Request::Forget(life::reference("Entity/door"))),
                false => door(session, "OPEN"),
            }
            // More than one block of 4 KiB, so that not all of it can be mended.
            let words = "much is seen ".repeat(1000);
            ask(session, &Request::Remember(vec![life::record("long", &words, &[], None)]));
            session.seal_now(Duration::from_secs(60)).expect("the disk is good");
        });
        let newest = disk.paths().into_iter().rfind(|path| path.ends_with(".omirb"));
        disk.rot(&newest.expect("a segment"), |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 1));
        for start in 0..3 {
            let session = open_again(&disk, &clock, start);
            match is_forgotten {
                true => {
                    assert_eq!(look(&session).unwrap(), None, "{start}: forgotten is forgotten")
                }
                false => {
                    assert!(
                        look(&session).expect_err("lost").to_string().contains("version 2"),
                        "{start}"
                    )
                }
            }
        }
        let session = open(&disk, &clock);
        door(&session, "NEW");
        assert_eq!(version(&session), 3);
    }
}

/// A wrong length hides where the memories behind it begin; without a sidecar nothing mends it.
#[test]
fn a_wrong_length_in_a_segment_takes_no_other_memory_with_it() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    for n in 0..30 {
        ask(&session, &Request::Remember(vec![life::entity(&format!("e{n:02}"), "a thing")]));
    }
    ask(&session, &Request::Forget(life::reference("Entity/e07")));
    session.seal_now(Duration::from_secs(60)).expect("the disk is good");
    drop(session);
    let of = |end: &str| disk.paths().into_iter().find(|path| path.ends_with(end)).expect(end);
    disk.rot(&of(".par"), Vec::clear);
    disk.rot(&of(".omirb"), |bytes| {
        let id = b"\x62id\x63e20";
        let at = bytes.windows(id.len()).position(|window| window == id).expect("it is there");
        // The id claims to be longer by 26 bytes.
        bytes[at + 3] ^= 0x1a;
    });
    for _ in 0..2 {
        let session = open(&disk, &clock);
        let damage = session.damage();
        assert!(damage.iter().any(|told| told.message.contains("memories: 1,")), "{damage:?}");
        for n in (0..30).filter(|&n| n != 20) {
            let found = session.get(&life::reference(&format!("Entity/e{n:02}"))).expect("whole");
            assert_eq!(found.is_some(), n != 7, "e{n:02}");
        }
    }
}

#[test]
fn a_witness_that_rots_is_made_again_from_its_log() {
    let (disk, clock) = damaged("the door is OPEN", &[], |session| door(session, "OPEN"));
    let path = disk.paths().into_iter().rfind(|path| path.ends_with(".facts")).expect("a witness");
    let number = witness::number_of(path.rsplit('/').next().expect("a name")).expect("a number");
    let told = witness::read(&disk.bytes(&path), number);
    assert!(told.is_whole && !told.facts.is_empty(), "{told:?}");
    for damage in 0..3 {
        let card = disk.survivors(omird_tests::cut_disk::EVERYTHING);
        card.rot(&path, |bytes| match damage {
            0 => bytes.clear(),
            1 => bytes.iter_mut().for_each(|byte| *byte = !*byte),
            _ => bytes[30] ^= 1,
        });
        let session = open(&card, &clock);
        assert!(session.damage().is_empty(), "{:?}", session.damage());
        assert_eq!(version(&session), 2);
        drop(session);
        let again = witness::read(&card.bytes(&path), number);
        assert_eq!((again.is_whole, &again.facts), (true, &told.facts), "{damage}");
    }
}

#[test]
fn no_first_version_is_given_twice_after_a_loss_that_nobody_can_name() {
    let text = "the door is LOCKED";
    let (disk, clock) = damaged(text, &[3, 70], |session| {
        ask(session, &Request::Remember(vec![life::entity("other", "another thing")]));
    });
    let session = open(&disk, &clock);
    assert!(session.damage().iter().any(|damage| damage.file.starts_with(wal::DIR)));
    let why = look(&session).expect_err("the damaged bytes still name it");
    assert!(why.to_string().contains("version 1 is unreadable"), "{why}");
    door(&session, "LOCKED");
    assert_eq!(version(&session), 2);
}
