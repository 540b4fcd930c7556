//! Remembers where the charger is and asks what is near, with nothing but `zenoh` and `serde_json`.
//!
//! Run it beside `omird --robot rover`: `cargo run -p omird-tests --example remember_and_recall`
//! Arguments: robot, endpoint.

use serde_json::{Value, json};
use zenoh::{Config, Session, Wait, bytes::Encoding};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns the answer to an operation of docs/keys.md. An error holds the daemon's code, message and path.
fn ask(session: &Session, robot: &str, operation: &str, payload: &Value) -> Result<Value, Failure> {
    let replies = session
        .get(format!("omir/{robot}/{operation}"))
        .payload(payload.to_string())
        .encoding(Encoding::APPLICATION_JSON)
        .wait()?;
    let reply = replies.recv().map_err(|_| format!("no daemon answers for the robot {robot}"))?;
    match reply.result() {
        Ok(sample) => Ok(serde_json::from_slice(&sample.payload().to_bytes())?),
        Err(error) => Err(String::from_utf8_lossy(&error.payload().to_bytes()).into()),
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let robot = arguments.next().unwrap_or_else(|| "rover".into());
    let endpoint = arguments.next().unwrap_or_else(|| "tcp/127.0.0.1:7448".into());

    let mut config = Config::default();
    config.insert_json5("mode", "\"client\"")?;
    config.insert_json5("connect/endpoints", &json!([endpoint]).to_string())?;
    let session = zenoh::open(config).wait()?;

    let stored = ask(
        &session,
        &robot,
        "remember",
        &json!({
            "resourceType": "MemoryRecord",
            "content": "the charger is by the window",
            "extension": [{
                "url": "https://omir.io/spec/R1/extension/spatial-pose",
                "valueJson": {"frame": "map", "position": [1.5, 0.2, 0.0]},
            }],
        }),
    )?;
    println!("stored durably: {}", stored["durable"]);

    let found = ask(&session, &robot, "recall", &json!({"near": [1, 0], "radius": 2}))?;
    for hit in found["hits"].as_array().into_iter().flatten() {
        let metres = hit["distance"].as_f64().unwrap_or_default();
        let content = hit["resource"]["content"].as_str().unwrap_or_default();
        println!("{metres:.2} m away: {content}");
    }
    session.close().wait()
}
