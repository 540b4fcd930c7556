//! A stop answers everybody: who asks while it goes on is told so, and is not left waiting.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use omird::engine::Engine;
use omird::engine::request::Encoding;
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::{Session, TestClock};

/// Remembers one thing after the other until that is refused.
fn ask(engine: &Engine, owner: usize) {
    for n in 0.. {
        let json = format!(r#"{{"resourceType":"Entity","id":"e{owner}-{n}","name":"something"}}"#);
        let change = engine.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
        if engine.execute(change).is_err() {
            return;
        }
    }
}

#[test]
fn whoever_asks_while_it_stops_is_answered() {
    for round in 0..30 {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = Session::open(&disk, &clock).expect("it opens");
        let (told, ended) = mpsc::channel();
        for owner in 0..4 {
            let (engine, told) = ((*session).clone(), told.clone());
            thread::spawn(move || {
                ask(&engine, owner);
                let _ = told.send(());
            });
        }
        thread::sleep(Duration::from_millis(round % 5));
        session.stop();
        for _ in 0..4 {
            ended.recv_timeout(Duration::from_secs(60)).expect("it is answered");
        }
    }
}
