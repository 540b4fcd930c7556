//! A daemon's resources do not grow with what it was asked: memory, threads and descriptors after many clients did
//! everything again and again, and came and went.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use omird_tests::process::{Client, Daemon};
use serde_json::json;
use zenoh::Wait;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const CLIENTS: usize = 64;
/// Bytes that may be resident besides: what the allocator keeps in its arenas, and versions that are kept for `asOf`.
const SLACK: u64 = 16 << 20;
/// Threads that have nothing to do end after ten seconds.
const QUIET: Duration = Duration::from_secs(14);
/// Longest wait until they did.
const AT_MOST: Duration = Duration::from_secs(40);

/// Resources of a process.
#[derive(Debug, Clone, Copy)]
struct Holds {
    threads: usize,
    descriptors: usize,
    resident: u64,
}

fn holds(daemon: &Daemon) -> Holds {
    let proc = PathBuf::from(format!("/proc/{}", daemon.pid()));
    let count = |what: &str| std::fs::read_dir(proc.join(what)).unwrap().count();
    let status = std::fs::read_to_string(proc.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().next().unwrap().parse().unwrap();
    Holds { threads: count("task"), descriptors: count("fd"), resident: kibibytes << 10 }
}

/// One round of everything; `number` is the client's.
fn round(client: &Client, number: usize, round: usize) {
    let id = format!("c{number}");
    let memory = json!({
        "resourceType": "MemoryRecord", "id": id, "content": format!("door {number} was seen {round} times"),
        "extension": [{"url": "https://omir.io/spec/R1/extension/spatial-pose",
                       "valueJson": {"frame": "map", "position": [number, round % 7, 0.0]}}],
    });
    client.ask_json("omir/r1/remember", &memory).value();
    client.put(
        &format!("omir/r1/memory/Entity/{id}"),
        format!(r#"{{"name": "lamp {}"}}"#, round % 3),
    );
    for selector in [
        format!("omir/r1/recall?q=door;near={number},0;radius=3;limit=5"),
        format!("omir/*/memory/*/{id}"),
        format!("omir/r1/feedback?ref=MemoryRecord/{id};outcome=confirmed"),
        "omir/*/status".to_owned(),
        "omir/r1/recall?raduis=1".to_owned(),
        format!("omir/r1/forget?ref=Entity/{id}"),
    ] {
        assert!(!client.ask(&selector).is_empty(), "{selector} is not answered");
    }
}

/// All clients do `rounds` rounds, at most for so long, as new clients every few of them.
fn crowd(daemon: &Daemon, rounds: usize, at_most: Duration) {
    let until = Instant::now() + at_most;
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let mut left = 0..rounds;
                while !left.is_empty() && Instant::now() < until {
                    let client = Client::connect(&daemon.endpoint);
                    for n in left.by_ref().take(10) {
                        round(&client, number, n);
                    }
                    client.session.close().wait().unwrap();
                }
            });
        }
    });
}

/// A warm-up, then much more of the same: the same is held.
fn holds_as_before(warm_up: (usize, Duration), then: (usize, Duration)) {
    let data = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
    crowd(&daemon, warm_up.0, warm_up.1);
    thread::sleep(QUIET);
    let before = holds(&daemon);
    crowd(&daemon, then.0, then.1);
    let quiet = Instant::now();
    let after = loop {
        let now = holds(&daemon);
        let is_as_before = (now.threads, now.descriptors) == (before.threads, before.descriptors);
        if is_as_before || quiet.elapsed() > AT_MOST {
            break now;
        }
        thread::sleep(Duration::from_millis(200));
    };
    println!("after the warm-up {before:?}, in the end {after:?}");
    assert_eq!(after.threads, before.threads, "threads: {before:?}, {after:?}");
    assert_eq!(after.descriptors, before.descriptors, "descriptors: {before:?}, {after:?}");
    assert!(after.resident <= before.resident + SLACK, "resident: {before:?}, {after:?}");
    assert!(daemon.stop().success());
}

#[test]
fn many_clients_leave_nothing_behind() {
    let minute = Duration::from_secs(60);
    holds_as_before((4, minute), (16, minute));
}

/// As long as a person who looks would wait: `cargo test --release --test transports -- many_clients --ignored --nocapture`.
#[test]
#[ignore = "it takes six minutes"]
fn five_minutes_of_many_clients_leave_nothing_behind() {
    let minute = Duration::from_secs(60);
    holds_as_before((usize::MAX, minute), (usize::MAX, 5 * minute));
}
