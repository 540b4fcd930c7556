//! Refusals over a real Zenoh session with a real daemon: each has the code and the place that docs/replies.md
//! promises, and stores nothing.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use omir_core::code::Code;
use omird_tests::process::{Answer, Client, Daemon};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

struct Rig {
    client: Client,
    daemon: Daemon,
    /// Kept so that the folder lives as long as the daemon.
    _data: tempfile::TempDir,
}

impl Rig {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
        let client = Client::connect(&daemon.endpoint);
        Self { client, daemon, _data: data }
    }
}

/// The mark for no payload in [`REFUSALS`].
const NOTHING: &str = "";
/// The record that is stored before anything is refused, in its second version.
const STORED: &str = r#"{"resourceType":"MemoryRecord","id":"a","content":"x"}"#;

/// Behind `omir/r1/`, the payload, and the code and the path of the refusal.
const REFUSALS: &[(&str, &str, Code, &str)] = &[
    // Payloads that are no resource, or break OMIR R1.
    ("remember", NOTHING, Code::InvalidResource, ""),
    ("remember", "{", Code::InvalidResource, ""),
    ("remember", "[]", Code::InvalidResource, ""),
    ("remember", r#"{"resourceType":"Entity","id":"e","name":3}"#, Code::InvalidResource, "/name"),
    (
        "remember",
        r#"{"resourceType":"Bundle","omirVersion":"R1","foo":1,"entry":[]}"#,
        Code::InvalidResource,
        "",
    ),
    (
        "remember",
        r#"{"resourceType":"MemoryRecord","content":"x","version":1e30}"#,
        Code::InvalidResource,
        "/version",
    ),
    // A reference that does not resolve; the entity before it is not stored either.
    (
        "remember",
        r#"[{"resourceType":"Entity","id":"e","name":"e"},
            {"resourceType":"MemoryRecord","content":"x","entityRefs":[{"ref":"Entity/none"}]}]"#,
        Code::InvalidResource,
        "/1/entityRefs/0/ref",
    ),
    // Poses.
    (
        "remember",
        r#"{"resourceType":"MemoryRecord","content":"x","extension":[
            {"url":"https://omir.io/spec/R1/extension/spatial-pose"}]}"#,
        Code::InvalidResource,
        "/extension/0",
    ),
    (
        "remember",
        r#"{"resourceType":"MemoryRecord","content":"x","extension":[
            {"url":"https://omir.io/spec/R1/extension/spatial-pose",
             "valueJson":{"frame":"map","position":[0,0,0],"orientation":[0,0,0,0]}}]}"#,
        Code::InvalidResource,
        "/extension/0/valueJson/orientation",
    ),
    // Conditions and versions.
    ("remember?ifAbsent=true", STORED, Code::Conflict, "/id"),
    ("remember?ifVersion=1", STORED, Code::Conflict, "/version"),
    (
        "remember",
        r#"{"resourceType":"MemoryRecord","id":"a","content":"y","version":1}"#,
        Code::Conflict,
        "/version",
    ),
    ("remember?ifAbsent=maybe", STORED, Code::InvalidQuery, "/ifAbsent"),
    ("remember?ifVersion=0", STORED, Code::InvalidQuery, "/ifVersion"),
    ("remember?ifVersion=1.5", STORED, Code::InvalidQuery, "/ifVersion"),
    ("remember?ifAbsent=true;ifVersion=1", STORED, Code::InvalidQuery, "/ifVersion"),
    ("remember?merge=true;ifAbsent=true", STORED, Code::InvalidQuery, "/merge"),
    ("remember?merge=overwrite;ifVersion=1", STORED, Code::InvalidQuery, "/merge"),
    // Parameters that are unknown, missing or wrong.
    ("recall?raduis=2", NOTHING, Code::InvalidQuery, "/raduis"),
    ("recall?near=1", NOTHING, Code::InvalidQuery, "/near"),
    ("recall?_time=yesterday", NOTHING, Code::InvalidQuery, "/_time"),
    ("recall?limit=1001", NOTHING, Code::InvalidQuery, "/limit"),
    ("status?format=xml", NOTHING, Code::InvalidQuery, "/format"),
    ("forget", NOTHING, Code::InvalidQuery, "/ref"),
    ("compact?scope=some", NOTHING, Code::InvalidQuery, "/scope"),
    ("compact?range=all", NOTHING, Code::InvalidQuery, "/range"),
    ("feedback?ref=MemoryRecord/a;outcome=maybe", NOTHING, Code::InvalidQuery, "/outcome"),
    (
        "feedback?ref=MemoryRecord/a;outcome=confirmed;weight=0",
        NOTHING,
        Code::InvalidQuery,
        "/weight",
    ),
    // References to memories that are not there.
    ("anchor?ref=MemoryRecord/none", NOTHING, Code::NotFound, "/ref"),
];

/// Codes that no single request provokes on a sound disk, with what tests them.
const ELSEWHERE: [(Code, &str); 7] = [
    (Code::TooLarge, "what_is_too_large_is_refused_with_the_bound"),
    (Code::Unauthorized, "zenoh.rs, a_read_only_daemon_says_so"),
    (Code::StorageFull, "full_card.rs"),
    (Code::Busy, "stopped_clients.rs"),
    (Code::RateLimited, "http_limits.rs"),
    (Code::Unauthenticated, "access_required.rs"),
    (Code::Internal, "card_faults.rs"),
];

#[test]
fn every_refusal_has_its_code_and_place_and_stores_nothing() {
    let rig = Rig::start();
    for content in ["w", "x"] {
        let record = json!({"resourceType": "MemoryRecord", "id": "a", "content": content});
        rig.client.ask_json("omir/r1/remember", &record).value();
    }
    for &(asked, payload, code, path) in REFUSALS {
        let payload = Some((payload.as_bytes().to_vec(), "application/json"));
        let payload = payload.filter(|(bytes, _)| !bytes.is_empty());
        let answer = rig.client.one(&format!("omir/r1/{asked}"), payload);
        assert_eq!((answer.code(), answer.path()), (code.as_str(), path), "{asked}: {answer:?}");
    }
    let all = rig.client.one("omir/r1/export", None);
    let entries = all.value()["entry"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&entries[0]["version"], &entries[0]["content"]), (&json!(2), &json!("x")));
}

#[test]
fn every_code_is_tested_somewhere() {
    let here = REFUSALS.iter().map(|&(_, _, code, _)| code.as_str());
    let tested: BTreeSet<_> = here.chain(ELSEWHERE.map(|(code, _)| code.as_str())).collect();
    assert_eq!(tested, Code::ALL.iter().map(|code| code.as_str()).collect());
}

#[test]
fn what_is_too_large_is_refused_with_the_bound() {
    let rig = Rig::start();
    let client = &rig.client;
    let json = "application/json";
    for (selector, mebibytes, bound) in [
        ("omir/r1/remember", 40, "limits.max_payload_bytes is 4194304"),
        ("omir/r1/remember?merge=true", 40, "limits.max_import_bytes is 33554432"),
        ("omir/r1/remember?merge=true", 90, "limits.max_import_bytes is 33554432"),
        ("omir/r1/recall", 40, "limits.max_payload_bytes is 4194304"),
    ] {
        let answer = client.one(selector, Some((vec![b' '; mebibytes << 20], json)));
        assert_eq!(answer.code(), "TOO_LARGE", "{selector}, {mebibytes} MiB");
        let Answer::Err(error) = &answer else { unreachable!("it has a code") };
        assert!(error["message"].as_str().unwrap().contains(bound), "{error}");
    }
    for (parameters, is_taken) in
        [(60_000, true), (65_000, true), (66_000, false), (100_000, false), (1_000_000, false)]
    {
        for operation in ["recall?q=", "forget?ref=", "memory/**?format="] {
            let asked = format!("omir/r1/{operation}{}", "a".repeat(parameters));
            let answer = client.one(&asked, None);
            let is_refused = matches!(&answer, Answer::Err(error) if error["code"] == "TOO_LARGE");
            assert_eq!(is_refused, !is_taken, "{operation} {parameters}: {answer:?}");
            if let (true, Answer::Err(error)) = (is_refused, &answer) {
                assert!(error["message"].as_str().unwrap().contains("65536"), "{error}");
            }
        }
    }
    client.one("omir/r1/recall?q=x", None).value();
}

#[test]
fn what_is_nested_or_filled_too_much_is_refused() {
    let rig = Rig::start();
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let large = format!("\"{}\"", "x".repeat(5 << 20));
    for payload in [deep, large] {
        let payload = Some((payload.into_bytes(), "application/json"));
        assert_eq!(rig.client.one("omir/r1/remember", payload).code(), "TOO_LARGE");
    }
}

/// Sixteen clients, each on a link of its own: one gets what it asked for, and the others hear why not.
#[test]
fn of_many_clients_with_one_condition_one_succeeds() {
    const CLIENTS: usize = 16;
    let rig = Rig::start();
    let clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(&rig.daemon.endpoint)).collect();
    let mut version = 0;
    for round in 0..8 {
        let selector = match round {
            0 => "omir/r1/remember?ifAbsent=true".to_owned(),
            _ => format!("omir/r1/remember?ifVersion={version}"),
        };
        let start = Barrier::new(CLIENTS);
        let answers: Vec<Answer> = thread::scope(|scope| {
            let ask = |(number, client)| {
                let (start, selector) = (&start, &selector);
                scope.spawn(move || {
                    let lamp = json!({"resourceType": "Entity", "id": "lamp",
                                      "name": format!("{round} {number}")});
                    start.wait();
                    Client::ask_json(client, selector, &lamp)
                })
            };
            let waiting: Vec<_> = clients.iter().enumerate().map(ask).collect();
            waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (won, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| matches!(answer, Answer::Ok(..)));
        assert_eq!(won.len(), 1, "{answers:?}");
        version = won[0].value()["stored"][0]["version"].as_u64().unwrap();
        for answer in refused {
            assert_eq!(answer.code(), "CONFLICT");
            let Answer::Err(Value::Object(error)) = answer else { unreachable!("it has a code") };
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(&format!("`ifVersion={version}`")), "{message}");
        }
    }
    assert_eq!(version, 8);
}
