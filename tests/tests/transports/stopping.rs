//! A stop answers everybody: who asks while it goes on is told so, and is not left waiting. What was acknowledged
//! before is there after the next start.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use omird::engine::{Code, Encoding, Engine, Error};
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::{Session, TestClock};

const CLIENTS: usize = 4;

/// Remembers one thing after the other until that is refused. Returns how many were acknowledged, and the refusal.
fn ask(engine: &Engine, owner: usize, started: &mpsc::Sender<()>) -> (usize, Error) {
    for n in 0.. {
        let json = format!(r#"{{"resourceType":"Entity","id":"e{owner}-{n}","name":"something"}}"#);
        let change = engine.prepare(json.as_bytes(), Encoding::Json, None).expect("it is valid");
        if let Err(error) = engine.execute(change) {
            return (n, error);
        }
        // Whoever waits for the first may have seen enough of them.
        let _ = started.send(());
    }
    unreachable!("a stop refuses what comes after it")
}

#[test]
fn whoever_asks_while_it_stops_is_answered() {
    for round in 0..30 {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = Session::open(&disk, &clock).expect("it opens");
        let (told, ended) = mpsc::channel();
        let (started, at_work) = mpsc::channel();
        for owner in 0..CLIENTS {
            let (engine, told, started) = ((*session).clone(), told.clone(), started.clone());
            thread::spawn(move || {
                let _ = told.send((owner, ask(&engine, owner, &started)));
            });
        }
        drop(started);
        // Something is stored before the stop, so that an engine that refuses everything does not pass.
        at_work.recv_timeout(Duration::from_secs(60)).expect("the engine stores something");
        thread::sleep(Duration::from_millis(round % 5));
        session.stop();
        let mut acknowledged = Vec::new();
        for _ in 0..CLIENTS {
            let (owner, (count, refusal)) =
                ended.recv_timeout(Duration::from_secs(60)).expect("it is answered");
            assert_eq!(refusal.code, Code::Internal, "{refusal}");
            assert!(refusal.message.contains("stopping"), "{refusal}");
            acknowledged.extend((0..count).map(|n| format!("Entity/e{owner}-{n}")));
        }
        assert!(!acknowledged.is_empty());
        drop(session);
        let again = Session::open(&disk, &clock).expect("it opens");
        for name in acknowledged {
            let found = again.get(&name.parse().unwrap()).expect("the disk is good");
            assert!(found.is_some(), "{name} was acknowledged and is gone");
        }
    }
}
