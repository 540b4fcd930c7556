//! No client's pace costs another anything: clients that ask for much and then stop, while others go on.
//!
//! Invariant 34 of ARCHITECTURE.md.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use omird_tests::Result;
use omird_tests::process::{Client, Daemon, eventually};
use serde_json::{Value, json};
use zenoh::Wait;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const STOPPED: &str = env!("CARGO_BIN_EXE_stopped_client");

/// Every answer comes within this. Zenoh closes the link of a client that takes nothing after five seconds, and whoever
/// waits for that gets no answer in time. What an answer takes here is a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(4);
/// Time for which the others go on: until all the stopped ones were closed.
const WHILE: Duration = Duration::from_secs(14);

/// A stopped process, which ends with the test.
struct Stopped(Child);

impl Stopped {
    fn asking(endpoint: &str, selector: &str, times: usize) -> Self {
        let mut command = Command::new(STOPPED);
        command.args([endpoint, selector, &times.to_string()]).stdin(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A daemon that has eight megabytes to tell: more than the buffers of a link hold.
fn full(data: &std::path::Path) -> Daemon {
    let daemon = Daemon::start(PROGRAM, data, "r1", &[]);
    let client = Client::connect(&daemon.endpoint);
    let text = "x".repeat(4000);
    for batch in 0..10 {
        let records: Vec<Value> = (0..200)
            .map(|n| json!({"resourceType": "MemoryRecord", "content": format!("door {batch} {n} {text}")}))
            .collect();
        client.ask_json("omir/r1/remember", &Value::Array(records)).value();
    }
    daemon
}

/// Returns true if it is answered in time, and how well.
fn is_answered(client: &Client, selector: &str, payload: Option<&Value>) -> bool {
    let mut get = client.session.get(selector).timeout(PATIENCE);
    if let Some(payload) = payload {
        get = get.payload(payload.to_string()).encoding("application/json");
    }
    let replies = get.wait().expect("it is sent");
    std::iter::from_fn(|| replies.recv().ok()).any(|reply| reply.result().is_ok())
}

/// Others, each asking one thing again and again; the first that was not answered in time is told.
fn others(endpoint: &str, until: Instant) -> Vec<thread::JoinHandle<Result<u64>>> {
    let lamp = json!({"resourceType": "Entity", "id": "lamp", "name": "lamp"});
    let asked = [
        ("omir/r1/remember", Some(lamp)),
        ("omir/r1/recall?q=door;limit=3", None),
        ("omir/r1/status", None),
        ("omir/r1/memory/Entity/lamp", None),
        ("omir/r1/anchor?ref=MemoryRecord/door", None),
    ];
    let stop = Arc::new(AtomicBool::new(false));
    asked
        .into_iter()
        .map(|(selector, payload)| {
            let client = Client::connect(endpoint);
            let stop = stop.clone();
            thread::spawn(move || {
                let mut answered = 0;
                while Instant::now() < until && !stop.load(Ordering::Acquire) {
                    if !is_answered(&client, selector, payload.as_ref()) {
                        stop.store(true, Ordering::Release);
                        return Err(format!("{selector}: nothing after {answered} answers").into());
                    }
                    answered += 1;
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(answered)
            })
        })
        .collect()
}

#[test]
fn clients_that_stop_cost_the_others_nothing() {
    let data = tempfile::tempdir().unwrap();
    let daemon = full(data.path());
    let client = Client::connect(&daemon.endpoint);
    for (kind, id, text) in [("Entity", "lamp", "name"), ("MemoryRecord", "door", "content")] {
        let one = json!({"resourceType": kind, "id": id, text: "it is there before"});
        client.ask_json("omir/r1/remember", &one).value();
    }
    let mut stopped: Vec<Stopped> =
        (0..4).map(|_| Stopped::asking(&daemon.endpoint, "omir/r1/memory/**", 4)).collect();
    for selector in ["omir/r1/export", "omir/*/recall?limit=1000"] {
        stopped.push(Stopped::asking(&daemon.endpoint, selector, 4));
    }
    let others = others(&daemon.endpoint, Instant::now() + WHILE);
    let network = || client.one("omir/r1/status", None).value()["network"].clone();
    eventually("the answers that nobody takes wait", || {
        network()["queries"].as_u64() > Some(4) && network()["answerBytes"].as_u64() > Some(0)
    });
    for other in others {
        let answered = other.join().unwrap().unwrap_or_else(|why| panic!("{why}"));
        assert!(answered > 3, "{answered}");
    }
    eventually("they are given up and counted", || {
        let network = network();
        network["dropped"].as_u64() > Some(0)
            && network["queries"] == 1
            && network["answerBytes"] == 0
    });
    // One that is slow to take a whole store gets all of it.
    assert_eq!(client.ask("omir/r1/memory/MemoryRecord/*").len(), 2001);
}
