//! Times that come over the network: Zenoh's hybrid logical clock dates what was put, a peer whose
//! clock is a year ahead drags nobody, and simulated time is set by a key.

use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use omird_tests::process::{Client, Daemon, eventually};
use serde_json::Value;
use zenoh::Wait;
use zenoh::time::{NTP64, Timestamp};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const KEY: &str = "omir/r1/memory/MemoryRecord";
const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the machine that tests has a clock")
}

/// Seconds since 1970.
fn seconds(instant: &Value) -> f64 {
    let text = instant.as_str().expect("a text");
    let at = omir_core::instant::Timestamp::parse(text).expect("an instant");
    at.as_micros() as f64 / 1e6
}

/// Puts a record as a peer whose clock shows `shown`.
fn put(client: &Client, id: &str, shown: Duration) {
    let stamp = Timestamp::new(NTP64::from(shown), *client.session.new_timestamp().get_id());
    let put = client.session.put(format!("{KEY}/{id}"), r#"{"content": "it glows"}"#);
    put.timestamp(stamp).wait().expect("the session is open");
}

fn created(client: &Client, id: &str) -> f64 {
    let mut found = None;
    eventually("it is stored", || {
        found = client.ask(&format!("{KEY}/{id}")).first().map(|got| got.value().clone());
        found.is_some()
    });
    seconds(&found.expect("it is there")["createdAt"])
}

#[test]
fn a_peer_a_year_ahead_drags_nobody() {
    let data = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
    let client = Client::connect(&daemon.endpoint);
    let (sender, events) = mpsc::channel();
    let _events = client
        .session
        .declare_subscriber("omir/r1/event/**")
        .callback(move |sample| {
            if !sample.key_expr().as_str().ends_with("/probe") {
                let _ = sender.send(sample.timestamp().map(|stamp| stamp.get_time().to_duration()));
            }
        })
        .wait()
        .expect("a subscriber");
    client.wait_until_subscribed("r1");
    let began = now();
    put(&client, "ahead", began + YEAR);
    put(&client, "recent", began - Duration::from_secs(600));
    put(&client, "old", began - 2 * YEAR);
    let is_now = |at: f64| at >= began.as_secs_f64() - 1.0 && at <= now().as_secs_f64() + 1.0;
    assert!(is_now(created(&client, "ahead")), "our own time");
    assert!(is_now(created(&client, "old")), "our own time");
    let recent = created(&client, "recent");
    assert!((recent - (began.as_secs_f64() - 600.0)).abs() < 0.001, "when it was sent: {recent}");
    for _ in 0..3 {
        let stamp = events.recv_timeout(Duration::from_secs(10)).expect("an event");
        assert!(is_now(stamp.expect("events are stamped").as_secs_f64()), "{stamp:?}");
    }
    let status = client.one("omir/r1/status", None);
    assert!(is_now(seconds(&status.value()["clock"]["now"])), "{}", status.value()["clock"]);
}

#[test]
fn simulated_time_is_set_by_a_key_and_may_start_over() {
    let data = tempfile::tempdir().expect("a folder");
    let config = data.path().join("omird.toml");
    std::fs::write(&config, "[clock]\nsource = 'simulated'\n").expect("it is written");
    let config = config.to_str().expect("a path");
    let store = data.path().join("data");
    let daemon = Daemon::start(PROGRAM, &store, "r1", &["--config", config]);
    let client = Client::connect(&daemon.endpoint);
    let clock = || client.one("omir/r1/status", None).value()["clock"].clone();
    assert_eq!((&clock()["state"], &clock()["source"]), (&"unknown".into(), &"simulated".into()));
    client.put(&format!("{KEY}/before"), r#"{"content": "nobody knows when"}"#);
    created(&client, "before");
    let (sender, events) = mpsc::channel();
    let _events = client
        .session
        .declare_subscriber("omir/r1/event/updated/MemoryRecord/before")
        .callback(move |sample| {
            // A put on a wildcard below comes here as well.
            if let Some(cause) = sample.attachment() {
                let _ = sender.send(cause.to_bytes().into_owned());
            }
        })
        .wait()
        .expect("a subscriber");
    client.wait_until_subscribed("r1");
    for (time, shown) in [
        (r#""2026-05-30T11:42:05Z""#, "2026-05-30T11:42:05Z"),
        ("1780141400.5", "2026-05-30T11:43:20.500Z"),
        // The recording starts over.
        ("2026-05-30T11:42:05Z", "2026-05-30T11:42:05Z"),
        ("60", "1970-01-01T00:01:00Z"),
    ] {
        client.put("omir/r1/clock", time);
        eventually(shown, || clock()["now"] == shown);
        assert_eq!(clock()["state"], "synchronised");
    }
    client.put("omir/r1/clock", "tomorrow");
    for wide in ["omir/**", "omir/*/clock", "**/clock"] {
        client.put(wide, "90");
    }
    client.put(&format!("{KEY}/during"), r#"{"content": "a minute after the start"}"#);
    assert!((created(&client, "during") - 60.0).abs() < 1e-6, "what cannot be read sets nothing");
    eventually("what came before is dated", || clock()["corrected"] == 1);
    let cause = events.recv_timeout(Duration::from_secs(10)).expect("it says why");
    let cause: Value = serde_json::from_slice(&cause).expect("JSON");
    assert_eq!((&cause["cause"], cause["reason"].is_string()), (&"clock".into(), true));
}
