//! Server-sent events: as they happen, and again to a client that comes back.

use std::path::{Path, PathBuf};

use omird_tests::http::{Line, request};
use omird_tests::process::Daemon;
use serde_json::{Value, json};

use crate::http_omir::rig::{PROGRAM, Rig, entity};

/// The events of a stream, as they come.
struct Stream {
    line: Line,
    text: String,
}

impl Stream {
    fn open(rig: &Rig, headers: &str) -> Self {
        let mut line = Line::port(rig.daemon.http());
        line.send(request("GET /omir/v1/events", &format!("{}{headers}", rig.token()), b""));
        let head = line.head().unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        let mut stream = Self { line, text: String::new() };
        assert_eq!(stream.block().unwrap(), "retry: 1000");
        stream
    }

    fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let chunk = self.line.chunk()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event: its kind, its id and its data.
    fn next(&mut self) -> Option<(String, String, Value)> {
        loop {
            let block = self.block()?;
            let field = |name: &str| {
                let line = block.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|rest| rest.strip_prefix(": ")).unwrap_or_default().to_owned()
            };
            if block != ":" {
                let data = serde_json::from_str(&field("data")).unwrap();
                return Some((field("event"), field("id"), data));
            }
        }
    }
}

#[test]
fn events_come_as_they_happen_and_again_to_who_comes_back() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let mut stream = Stream::open(&rig, "");
    line.json("PUT /omir/v1/memory/Entity/a", &entity("a"));
    let (kind, first, data) = stream.next().unwrap();
    assert_eq!(
        (kind.as_str(), &data["ref"], &data["resource"]["name"]),
        ("recorded", &json!("Entity/a"), &json!("a"))
    );
    assert_eq!(data["seq"].to_string(), first);
    line.json("PUT /omir/v1/memory/Entity/a", &entity("b"));
    line.json("POST /omir/v1/remember", &json!([
        {"resourceType": "Entity", "id": "x", "name": "x"}, {"resourceType": "Entity", "id": "y", "name": "y"}]));
    line.ask("DELETE /omir/v1/memory/Entity/x", "", b"");
    let rest: Vec<_> = std::iter::from_fn(|| stream.next()).take(4).collect();
    let kinds: Vec<&str> = rest.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["updated", "recorded", "recorded", "forgotten"]);
    let ids: Vec<&str> = rest.iter().map(|(_, id, _)| id.as_str()).collect();
    assert_eq!(ids[2], format!("{}.1", ids[1]), "of one transaction");
    // Whoever comes back gets what it has not had.
    for had in 0..rest.len() {
        let mut again = Stream::open(&rig, &format!("Last-Event-ID: {}\r\n", ids[had]));
        for expected in &rest[had + 1..] {
            assert_eq!(again.next().as_ref(), Some(expected));
        }
    }
    // Over a restart nobody knows what a client has had: it is told to read.
    let last = ids[3].to_owned();
    let Rig { daemon, data } = rig;
    assert!(daemon.stop().success());
    assert_eq!(stream.next(), None, "a stop ends the stream");
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let rig = Rig { daemon, data };
    let mut back = Stream::open(&rig, &format!("Last-Event-ID: {last}\r\n"));
    let mut late = Stream::open(&rig, &format!("Last-Event-ID: {first}\r\n"));
    assert_eq!([back.next().unwrap().0, late.next().unwrap().0], ["missed", "missed"]);
    rig.line().json("PUT /omir/v1/memory/Entity/z", &entity("z"));
    for stream in [&mut back, &mut late] {
        let (kind, id, data) = stream.next().unwrap();
        assert_eq!((kind.as_str(), &data["ref"]), ("recorded", &json!("Entity/z")));
        assert!(id.parse::<u64>().unwrap() > last.parse::<f64>().unwrap() as u64);
    }
    // From then on it goes as before.
    rig.line().json("PUT /omir/v1/memory/Entity/z", &entity("y"));
    let (_, second, _) = back.next().unwrap();
    let mut again = Stream::open(&rig, &format!("Last-Event-ID: {second}\r\n"));
    rig.line().json("PUT /omir/v1/memory/Entity/z", &entity("x"));
    let (kind, _, data) = again.next().unwrap();
    assert_eq!((kind.as_str(), &data["ref"]), ("updated", &json!("Entity/z")));
}

/// What is found before anything is recorded has an id of this run: a client that has it comes back without a gap.
#[test]
fn a_finding_before_the_first_write_is_no_gap() {
    let rig = Rig::start(&[]);
    for n in 0..20 {
        rig.line()
            .json(&format!("PUT /omir/v1/memory/Entity/e{n}"), &entity("a name of some length"));
    }
    rig.line().ask("POST /omir/v1/compact", "", b"");
    let Rig { daemon, data } = rig;
    assert!(daemon.stop().success());
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let rig = Rig { daemon, data };
    let mut stream = Stream::open(&rig, "");
    rot(&rig.data.path().join("segments"));
    for n in 0..20 {
        assert_eq!(rig.line().get(&format!("/omir/v1/memory/Entity/e{n}")).status, 200);
    }
    let (kind, found, _) = stream.next().unwrap();
    assert_eq!(kind, "repaired");
    let mut back = Stream::open(&rig, &format!("Last-Event-ID: {found}\r\n"));
    rig.line().json("PUT /omir/v1/memory/Entity/z", &entity("z"));
    let (kind, _, data) = back.next().unwrap();
    assert_eq!((kind.as_str(), &data["ref"]), ("recorded", &json!("Entity/z")));
    // One of an earlier run has missed something.
    let transaction: u64 = found.split('.').next().unwrap().parse().unwrap();
    let before = format!("Last-Event-ID: {}\r\n", transaction - 1);
    assert_eq!(Stream::open(&rig, &before).next().unwrap().0, "missed");
}

/// Flips a byte in the middle of each segment.
fn rot(segments: &Path) {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|end| end == "omirb");
    let files = std::fs::read_dir(segments).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<PathBuf> = files.filter(is_segment).collect();
    assert!(!all.is_empty(), "nothing is sealed");
    for path in all {
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        std::fs::write(&path, bytes).unwrap();
    }
}
