//! docs/keys.md over a real Zenoh session with a real daemon: every key, both encodings, two robots,
//! and power cuts by SIGKILL. `refusals.rs` has what is refused.
//!
//! Invariant 12 of ARCHITECTURE.md.

mod names;
mod operations;
mod process;
mod storage;

use omird_tests::process::{Client, Daemon};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const POSE: &str = "https://omir.io/spec/R1/extension/spatial-pose";

struct Rig {
    client: Client,
    daemon: Daemon,
    /// Kept so that the folder lives as long as the daemon.
    data: tempfile::TempDir,
}

fn rig(more: &[&str]) -> Rig {
    let data = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(PROGRAM, data.path(), "r1", more);
    let client = Client::connect(&daemon.endpoint);
    Rig { client, daemon, data }
}

fn record(id: &str, content: &str, position: [f64; 3]) -> Value {
    json!({
        "resourceType": "MemoryRecord", "id": id, "content": content,
        "createdAt": "2026-05-30T11:42:05Z",
        "extension": [{"url": POSE, "valueJson": {"frame": "map", "position": position}}],
    })
}

fn entity(id: &str) -> Value {
    json!({"resourceType": "Entity", "id": id, "name": id})
}

fn cbor(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn ids(recall: &Value) -> Vec<&str> {
    let hits = recall["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["resource"]["id"].as_str().unwrap()).collect()
}
