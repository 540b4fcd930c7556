//! A client that gets no answer sends its request again. What is stored already is left as it is,
//! also where the daemon filled in when it was made.

use std::sync::Arc;
use std::time::Duration;

use omird::engine::{Effect, Encoding};
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::{Session, TestClock};

const REQUEST: &str = r#"[
    {"resourceType": "Entity", "id": "table", "name": "Table"},
    {"resourceType": "Entity", "id": "kettle", "name": "Kettle"},
    {"resourceType": "Episode", "id": "morning", "content": "a look around"},
    {"resourceType": "MemoryRecord", "id": "seen", "content": "a kettle on the table",
     "entityRefs": [{"ref": "Entity/kettle"}]},
    {"resourceType": "Relationship", "id": "on", "from": {"ref": "Entity/kettle"},
     "to": {"ref": "Entity/table"}, "relationType": "stands_on"}
]"#;

/// Sends the request; tells for each resource its version and whether it was there, the same.
fn send(session: &Session, clock: &Arc<TestClock>) -> Vec<(u64, bool)> {
    clock.advance(Duration::from_secs(10));
    let change = session.prepare(REQUEST.as_bytes(), Encoding::Json, None).expect("it is valid");
    let receipt = session.execute(change).expect("the disk is good");
    let Effect::Remembered(stored) = receipt.effect else { panic!("{receipt:?}") };
    stored.iter().map(|stored| (stored.version, stored.unchanged)).collect()
}

#[test]
fn what_is_sent_again_is_not_stored_again() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    assert_eq!(send(&session, &clock), [(1, false); 5]);
    assert_eq!(send(&session, &clock), [(1, true); 5]);
    drop(session);
    // Sealed meanwhile, and read back.
    let session = Session::open(&disk, &clock).expect("it opens");
    let before = disk.operations();
    assert_eq!(send(&session, &clock), [(1, true); 5]);
    assert_eq!(disk.operations(), before, "nothing is written");
}
