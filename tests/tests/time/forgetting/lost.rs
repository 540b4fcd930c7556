//! A segment that is lost takes its tombstones with it: what became part of another does not come back.
//!
//! Invariant 10 of ARCHITECTURE.md.

use omird::engine::testing::ByHand;
use omird::store::format::sidecar::Sidecar;
use omird::store::format::witness;
use omird::store::{Fact, FactKind};

use super::*;

/// The newest file of a kind.
fn newest(disk: &CutDisk, end: &str) -> String {
    disk.paths().into_iter().rfind(|path| path.ends_with(end)).expect("there is one")
}

/// References that a rule let go of, by the sidecar of the newest segment.
fn let_go(disk: &CutDisk) -> Vec<Fact> {
    let sidecar = Sidecar::decode(&disk.bytes(&newest(disk, ".par"))).expect("it is whole");
    let facts = witness::decode(&sidecar.witness.expect("it is whole")).expect("they are whole");
    facts.into_iter().filter(|fact| fact.kind == FactKind::LetGo).collect()
}

#[test]
fn what_was_merged_stays_so_when_the_segment_that_says_it_is_lost() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let weeks = 28 * DAY;
    let patient =
        Settings { seal_after: weeks, purge_after: weeks, segment_bytes: 1 << 20, ..settings() };
    let open = || Session::open_with(Arc::new(disk.clone()), &clock, patient.clone(), None);
    let session = open().expect("it opens");
    cups(&session);
    session.seal_now(HOUR).expect("the disk is good");
    // These are never in a segment.
    put(&session, &cup("c4", 4, 1.0, "cam:4", ""));
    put(&session, &cup("c5", 5, 1.0, "cam:5", ""));
    // More than its sidecar can restore.
    let words = "much is seen ".repeat(1000);
    put(&session, &format!(r#"{{"resourceType":"MemoryRecord","id":"long","content":"{words}"}}"#));
    clock.advance(2 * HOUR);
    assert_eq!(sweep(&session).merged, 4);
    session.seal_now(HOUR).expect("the disk is good");
    assert_eq!(let_go(&disk).len(), 2, "of c2 and c3: nothing is left of c4 and c5");
    drop(session);

    disk.rot(&newest(&disk, ".omirb"), |bytes| bytes.iter_mut().for_each(|byte| *byte ^= 1));
    for start in 0..3 {
        let session = open().expect("it opens");
        assert!(!session.damage().is_empty() || start > 0);
        for id in ["c2", "c3", "c4", "c5"] {
            assert!(get(&session, &format!("MemoryRecord/{id}")).is_none(), "{id} at {start}");
        }
        let merged = session.get(&"MemoryRecord/c1".parse().expect("a reference"));
        assert!(merged.is_err(), "version 2 is lost, and version 1 is not served for it");
    }
}
