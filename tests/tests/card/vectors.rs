//! The power goes while vectors are written, and their files are lost, cut or of another model: all of it costs only that they
//! are made again, and words are found meanwhile.
//!
//! Invariant 4 of ARCHITECTURE.md.

use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::value::Value;
use omird::engine::{Encoding, Query};
use omird_embedding::{Embedder, Hashed};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::session::{Session, TestClock};
use omird_text::Language;

/// More than one block of a file.
const MEMORIES: usize = 1100;
/// Operations that a life with vectors is cut at, counted from where the memories are durable.
const CUTS: u64 = 12;

fn hashed() -> Option<Arc<dyn Embedder>> {
    Some(Arc::new(Hashed::new(Language::English)))
}

fn fill(session: &Session) {
    let one = |n: usize| {
        let what =
            if n.is_multiple_of(2) { "white mug on the counter" } else { "pallet in the hall" };
        format!(r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"a {what}, {n}"}}"#)
    };
    let all: Vec<String> = (0..MEMORIES).map(one).collect();
    let json = format!("[{}]", all.join(","));
    let change = session.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
    session.execute(change).unwrap();
}

fn vectors(session: &Session) -> u64 {
    let status = session.status("r");
    status.pointer("/embedding/models/0/vectors").and_then(Value::as_u64).unwrap_or(0)
}

fn wait_for_all(session: &Session, what: &str) {
    let began = Instant::now();
    while vectors(session) != MEMORIES as u64 {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {} vectors", vectors(session));
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn total(session: &Session, text: &str, min_cosine: Option<f64>) -> u64 {
    let text = Some(text.into());
    let by_meaning = min_cosine.is_some();
    let query = Query { text, by_meaning, min_cosine, touch: false, ..Query::default() };
    session.recall(&query).unwrap().total
}

/// What a store must answer, with vectors and without.
fn check(session: &Session, what: &str) {
    let half = MEMORIES as u64 / 2;
    assert_eq!(total(session, "mug", None), half, "{what}: words need no vector");
    wait_for_all(session, what);
    let near = total(session, "white mug on the counter", Some(0.5));
    assert_eq!(near, half, "{what}: all are found by meaning");
}

#[test]
fn a_cut_while_vectors_are_written_costs_only_vectors() {
    let mut wrote = false;
    for cut in 0..CUTS {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = Session::open(&disk, &clock).unwrap();
        fill(&session);
        // From here on only vectors are written, and what a stop leaves.
        let at = disk.operations() + cut;
        disk.cut_at(at);
        session.embed_with(hashed());
        // Whoever makes them rests for a minute after a fault of the disk.
        let began = Instant::now();
        while vectors(&session) != MEMORIES as u64 && disk.operations() < at {
            assert!(began.elapsed() < Duration::from_secs(60), "{} vectors", vectors(&session));
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(session);
        for seed in [ONLY_SYNCED, EVERYTHING, 100 + cut] {
            let card = disk.survivors(seed);
            wrote |= card.paths().iter().any(|path| path.ends_with(".omirv"));
            let what = format!("cut at {cut}, survivors {seed}");
            let session = Session::open(&card, &clock).unwrap();
            session.embed_with(hashed());
            check(&session, &what);
            drop(session);
            // And again, from what that start has written.
            let session = Session::open(&card, &clock).unwrap();
            session.embed_with(hashed());
            check(&session, &what);
        }
    }
    assert!(wrote, "files of vectors were cut");
}

#[test]
fn rot_and_swapped_files_cost_only_vectors() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).unwrap();
    session.embed_with(hashed());
    fill(&session);
    wait_for_all(&session, "whole");
    drop(session);
    let file = disk.paths().into_iter().find(|path| path.ends_with(".omirv")).expect("a file");
    let length = disk.bytes(&file).len();
    for seed in 0..8 {
        let card = disk.survivors(EVERYTHING);
        let at = length * seed / 8;
        card.rot(&file, |bytes| bytes[at] ^= 1 << seed);
        let session = Session::open(&card, &clock).unwrap();
        session.embed_with(hashed());
        check(&session, &format!("bit {seed} of byte {at}"));
    }
    // A card that does not give the file back.
    let card = disk.survivors(EVERYTHING);
    card.make_unreadable(&file);
    let session = Session::open(&card, &clock).unwrap();
    session.embed_with(hashed());
    check(&session, "unreadable");
}
