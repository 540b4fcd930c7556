//! Memory keys as an ordinary Zenoh storage: puts, gets and deletes, of all that match too.

use std::collections::BTreeSet;
use std::path::Path;

use omird_tests::process::Answer;
use serde_json::{Value, json};
use zenoh::Wait;

use crate::zenoh::{cbor, record, rig};

#[test]
fn memory_keys_are_an_ordinary_zenoh_storage() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.put("omir/r1/memory/Entity/lamp", r#"{"name": "lamp"}"#);
    client.put("omir/r1/memory/Entity/lamb", cbor(&json!({"name": "lamb"})));
    client.put("omir/r1/memory/MemoryRecord/m", r#"{"content": "it glows"}"#);
    let keys = |selector: &str| -> BTreeSet<String> {
        client
            .ask(selector)
            .into_iter()
            .map(|answer| match answer {
                Answer::Ok(key, _) => key,
                Answer::Err(error) => panic!("{error}"),
            })
            .collect()
    };
    assert_eq!(keys("omir/r1/memory/Entity/lamp").len(), 1, "a get after a put reads it");
    assert_eq!(keys("omir/*/memory/Entity/**").len(), 2);
    assert_eq!(keys("omir/r1/memory/Entity/lam$*").len(), 2);
    assert_eq!(keys("omir/r1/memory/**").len(), 3);
    assert!(keys("omir/r1/memory/Entity/none").is_empty());
    client.session.delete("omir/r1/memory/Entity/lamp").wait().unwrap();
    assert!(keys("omir/r1/memory/Entity/lamp").is_empty());
    client.session.delete("omir/r1/memory/Entity/**").wait().unwrap();
    assert_eq!(keys("omir/r1/memory/**").len(), 1);
}

#[test]
fn a_delete_of_all_that_matches_means_what_was_put_before_it() {
    let rig = rig(&[]);
    let client = &rig.client;
    for round in 0..5 {
        for n in 0..20 {
            client.put(&format!("omir/r1/memory/Entity/lamp-{round}-{n}"), r#"{"name": "lamp"}"#);
        }
        client.session.delete("omir/r1/memory/Entity/**").wait().unwrap();
        client.put(&format!("omir/r1/memory/Entity/after-{round}"), r#"{"name": "lamp"}"#);
    }
    let left = client.ask("omir/r1/memory/**");
    assert_eq!(left.len(), 1, "only what was put after the last one");
    assert_eq!(left[0].value()["id"], "after-4");
}

/// Scrambles a text in the logs of a store, as a card does.
fn rot(data: &Path, text: &str) {
    let mut found = 0;
    for log in std::fs::read_dir(data.join("wal")).unwrap() {
        let path = log.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let windows = bytes.windows(text.len());
        let at = windows.enumerate().filter(|(_, window)| *window == text.as_bytes());
        for at in at.map(|(at, _)| at).collect::<Vec<_>>() {
            bytes[at..at + text.len()].fill(b'#');
            found += 1;
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(found > 0, "{text} is in no log");
}

#[test]
fn a_get_of_all_tells_of_what_cannot_be_read() {
    let rig = rig(&[]);
    let client = &rig.client;
    let all: Vec<Value> = ["apple", "plum", "pear"]
        .iter()
        .map(|id| record(id, &format!("plughword of the {id}"), [0.0; 3]))
        .collect();
    client.ask_json("omir/r1/remember", &json!(all)).value();
    rot(rig.data.path(), "plughword of the plum");
    for selector in ["omir/r1/memory/**", "omir/*/memory/MemoryRecord/*?format=cbor"] {
        let answers = client.ask(selector);
        let refused: Vec<&Answer> =
            answers.iter().filter(|answer| matches!(answer, Answer::Err(_))).collect();
        assert_eq!((answers.len(), refused.len()), (3, 1), "{selector}: {answers:?}");
        assert_eq!(refused[0].code(), "INTERNAL");
        let Answer::Err(error) = refused[0] else { unreachable!("it has a code") };
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("MemoryRecord/plum"), "{message}");
    }
    assert_eq!(client.ask("omir/r1/memory/MemoryRecord/a$*").len(), 1, "it was not asked for");
    client.session.delete("omir/r1/memory/MemoryRecord/p$*").wait().unwrap();
    let left = client.ask("omir/r1/memory/**");
    assert_eq!(left.len(), 1, "what cannot be read can be forgotten: {left:?}");
    assert_eq!(left[0].value()["id"], "apple");
}

#[test]
fn what_has_lost_its_name_is_told_of_without_it() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.ask_json("omir/r1/remember", &record("xyzzyplum", "a plum", [0.0; 3])).value();
    rot(rig.data.path(), "xyzzyplum");
    let answer = client.one("omir/r1/memory/MemoryRecord/*", None);
    let Answer::Err(error) = &answer else { panic!("{answer:?}") };
    assert!(error["message"].as_str().unwrap().contains("name is lost"), "{error}");
    assert!(client.ask("omir/r1/memory/Entity/*").is_empty(), "that much is known of it");
}
