//! The daemon as a process: kills, stops, wrong starts and garbage.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use omird_tests::process::{Answer, Client, Daemon, free_endpoint};
use serde_json::{Value, json};

use crate::zenoh::{PROGRAM, Rig, cbor, entity, record, rig};

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let data = tempfile::tempdir().unwrap();
    let mut acknowledged: BTreeMap<String, String> = BTreeMap::new();
    for cycle in 0u64..4 {
        let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
        let client = Client::connect(&daemon.endpoint);
        for (reference, content) in &acknowledged {
            let found = client.ask(&format!("omir/r1/memory/{reference}"));
            assert_eq!(found.len(), 1, "{reference} was acknowledged and is gone");
            assert_eq!(found[0].value()["content"], json!(content));
        }
        // All of them, before anybody kills it.
        let clients: Vec<Client> = (0..4).map(|_| Client::connect(&daemon.endpoint)).collect();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(150 + 70 * cycle));
            daemon.kill();
        });
        let writers: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(writer, client)| {
                std::thread::spawn(move || {
                    let mut mine = Vec::new();
                    for n in 0.. {
                        let pair: Vec<Value> = ["a", "b"]
                            .iter()
                            .map(|half| {
                                let id = format!("c{cycle}-w{writer}-{n}-{half}");
                                record(&id, &format!("content of {id}"), [f64::from(n), 0.0, 0.0])
                            })
                            .collect();
                        let bytes = serde_json::to_vec(&pair).unwrap();
                        let payload = Some((bytes, "application/json"));
                        match client.send("omir/r1/remember", payload).first() {
                            Some(Answer::Ok(..)) => mine.push(pair),
                            _ => return mine,
                        }
                    }
                    mine
                })
            })
            .collect();
        for writer in writers {
            for record in writer.join().unwrap().into_iter().flatten() {
                let id = format!("MemoryRecord/{}", record["id"].as_str().unwrap());
                acknowledged.insert(id, record["content"].as_str().unwrap().to_owned());
            }
        }
        killer.join().unwrap();
    }
    assert!(acknowledged.len() > 20, "the daemon was killed before it did anything");
    let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
    let client = Client::connect(&daemon.endpoint);
    let all: BTreeSet<String> = client.one("omir/r1/export", None).value()["entry"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect();
    for id in &all {
        let other = match id.strip_suffix("-a") {
            Some(stem) => format!("{stem}-b"),
            None => format!("{}-a", id.strip_suffix("-b").unwrap()),
        };
        assert!(all.contains(&other), "{id} is there and the other half of its request is not");
    }
    for reference in acknowledged.keys() {
        assert!(all.contains(reference.strip_prefix("MemoryRecord/").unwrap()), "{reference}");
    }
}

#[test]
fn a_clean_stop_seals_and_the_status_is_zero() {
    let Rig { client, daemon, data } = rig(&[]);
    client.ask_json("omir/r1/remember", &json!([entity("e"), record("a", "x", [0.0; 3])]));
    let before = client.one("omir/r1/export", None).value()["entry"].clone();
    assert!(daemon.stop().success());
    let segment = std::fs::read(data.path().join("segments/0000000001.omirb")).unwrap();
    let bundle: Value = ciborium::from_reader(&*segment).unwrap();
    assert_eq!(bundle["resourceType"], "Bundle");
    let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
    let client = Client::connect(&daemon.endpoint);
    assert_eq!(client.one("omir/r1/export", None).value()["entry"], before);
    assert_eq!(client.one("omir/r1/status", None).value()["bootCount"], 2);
}

#[test]
fn wrong_starts_say_what_is_wrong() {
    let data = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(PROGRAM)
            .args(["--data", data.path().to_str().unwrap()])
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = run(&["--robot", "a/b"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("robot: \"a/b\""), "{message}");
    let (code, message) = run(&["--listen", "garbage"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("network.listen"), "{message}");
    let file = data.path().join("bad.toml");
    std::fs::write(&file, "[store]\nsegmentbytes = 3\n").unwrap();
    let (code, message) = run(&["--config", file.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(message.contains("bad.toml") && message.contains("segmentbytes"), "{message}");

    let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
    let (code, message) = run(&["--listen", &free_endpoint()]);
    assert_eq!(code, Some(1));
    assert!(message.contains("is using it"), "{message}");
    let other = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(PROGRAM)
        .args(["--data", other.path().to_str().unwrap(), "--listen", &daemon.endpoint])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--listen"));
}

#[test]
fn garbage_on_every_key_changes_nothing() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.ask_json("omir/r1/remember", &json!([entity("e"), record("a", "x", [0.0; 3])]));
    let before = client.one("omir/r1/export", None).value()["entry"].clone();
    let good = cbor(&json!([record("b", "y", [1.0; 3])]));
    // A fixed seed: what fails once fails again.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..400 {
        let mut bytes: Vec<u8> = (0..random() % 64).map(|_| random() as u8).collect();
        if round % 2 == 0 {
            bytes = good[..(random() as usize) % good.len()].to_vec();
        }
        let encoding = ["application/cbor", "application/json", ""][(random() % 3) as usize];
        for key in ["remember", "recall?touch=false", "forget", "anchor", "feedback"] {
            let answers = client.send(&format!("omir/r1/{key}"), Some((bytes.clone(), encoding)));
            assert_eq!(answers.len(), 1, "{key} {bytes:02x?}");
            // An empty payload or `{}` asks a plain recall; anything else that passes is a bug.
            if !key.starts_with("recall") {
                answers[0].code();
            }
        }
        client.put("omir/r1/memory/MemoryRecord/a", bytes);
    }
    assert_eq!(client.one("omir/r1/export", None).value()["entry"], before);
}
