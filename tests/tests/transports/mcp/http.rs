//! `/mcp` over HTTP: on the socket of the owner and on the port, with a token and without.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use omird::engine::Engine;
use omird::http::{Http, Listen, Settings, Start};
use omird::liveness::Liveness;
use omird::metrics::Requests;
use omird::protocols::Protocols;
use omird_tests::http::{Answer, Line};
use omird_tests::process::{Daemon, eventually};
use omird_tests::session::{Session, TestClock, settings};
use omird_tests::slow_disk::{Gate, SlowDisk};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

struct Scene {
    daemon: Daemon,
    data: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
        Self { daemon, data }
    }

    fn socket(&self) -> Line {
        Line::socket(&self.daemon.http_socket())
    }

    fn port(&self) -> Line {
        Line::port(self.daemon.http())
    }
}

fn post(headers: &str, message: &Value) -> String {
    let body = message.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn call(tool: &str, arguments: Value) -> Value {
    request("tools/call", json!({"name": tool, "arguments": arguments}))
}

fn names(answer: &Answer) -> Vec<String> {
    let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_owner_of_the_socket_uses_every_tool() {
    let scene = Scene::new();
    let mut line = scene.socket();
    let hello = request(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}),
    );
    let answer = line.ask(post("", &hello));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None, "nothing is kept");
    let result = &answer.json()["result"];
    assert_eq!(result["serverInfo"]["name"], "omird");
    assert_eq!(result["protocolVersion"], "2025-06-18");
    assert!(result["instructions"].as_str().unwrap().contains("robot r1"));
    let stored = line.ask(post("", &call("remember", json!({"text": "a cup", "x": 1, "y": 2}))));
    assert_eq!(stored.json()["result"]["structuredContent"]["durable"], true, "{stored:?}");
    let found = line.ask(post("", &call("what_is_near", json!({"x": 1, "y": 1}))));
    let memories = &found.json()["result"]["structuredContent"]["memories"];
    assert_eq!((&memories[0]["text"], &memories[0]["distance_m"]), (&json!("a cup"), &json!(1.0)));
    // A stream that the server opens by itself is not offered.
    let answer =
        line.ask("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    assert_eq!(answer.status, 405);
}

#[test]
fn a_request_may_be_held_to_reading() {
    let scene = Scene::new();
    let mut line = scene.socket();
    let list = request("tools/list", json!({}));
    assert_eq!(names(&line.ask(post("", &list))).len(), 17);
    for reading in ["Omir-Read-Only: true\r\n", "Omir-Read-Only: \r\n", "omir-read-only: no\r\n"] {
        assert_eq!(names(&line.ask(post(reading, &list))).len(), 9, "{reading:?}");
        let refused = line.ask(post(reading, &call("remember", json!({"text": "a"}))));
        let result = &refused.json()["result"];
        assert_eq!(result["isError"], true);
        assert!(result["content"][0]["text"].as_str().unwrap().contains("--write"));
    }
}

#[test]
fn the_port_needs_a_token() {
    let scene = Scene::new();
    let mut line = scene.port();
    let list = request("tools/list", json!({}));
    for headers in ["", "Authorization: Bearer wrong\r\n", "Omir-Read-Only: true\r\n"] {
        let answer = line.ask(post(headers, &list));
        assert_eq!(answer.status, 401, "{headers:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(answer.json()["code"], "UNAUTHENTICATED");
    }
    let token = std::fs::read_to_string(scene.data.path().join("keys/local.token")).unwrap();
    let authorized = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(names(&line.ask(post(&authorized, &list))).len(), 17);
    let reading = format!("{authorized}Omir-Read-Only: true\r\n");
    assert_eq!(names(&line.ask(post(&reading, &list))).len(), 9);
}

/// A message that asks for no method of a protocol counts as well: by the row `mcp`.
#[test]
fn a_ping_is_rated_and_audited() {
    let scene = Scene::new();
    let body = json!({"name": "m", "scopes": ["omir:read"], "rate": 1}).to_string();
    let added = scene.socket().ask(format!(
        "POST /access/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let token = format!("Authorization: Bearer {}\r\n", added.json()["token"].as_str().unwrap());
    let mut line = scene.port();
    let ping = post(&token, &request("ping", json!({})));
    let statuses: Vec<u16> = (0..3).map(|_| line.ask(ping.clone()).status).collect();
    assert_eq!((statuses[0], statuses.contains(&429)), (200, true), "{statuses:?}");
    let counts = scene.socket().ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let counts = String::from_utf8(counts.body).unwrap();
    for outcome in ["ok", "RATE_LIMITED"] {
        let count = format!(
            "omird_requests_total{{protocol=\"http\",method=\"mcp\",transport=\"mcp\",outcome=\"{outcome}\"}}"
        );
        assert!(counts.contains(&count), "{count} in {counts}");
    }
}

/// What asks for a tool or a resource by its name alone, and for nothing that there is, counts too.
#[test]
fn a_call_of_nothing_is_rated_and_told_of() {
    let scene = Scene::new();
    let mut line = scene.socket();
    let calls = [
        (call("nonsense", json!({})), 200),
        (request("tools/call", json!({})), 200),
        (json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "recall"}}), 202),
        (json!({"id": 1, "method": "tools/call", "params": {"name": "recall"}}), 400),
    ];
    for (message, status) in &calls {
        let answer = line.ask(post("", message));
        assert_eq!(answer.status, *status, "{message}: {answer:?}");
    }
    let counts = line.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let counts = String::from_utf8(counts.body).unwrap();
    let counted: u64 = counts
        .lines()
        .filter(|line| line.starts_with("omird_requests_total") && line.contains("method=\"mcp\""))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(counted, calls.len() as u64, "{counts}");
}

/// A stop gives no call up: the client of a change hears that it is made.
#[test]
fn a_call_under_way_is_finished_at_a_stop() {
    let gate = Arc::new(Gate::default());
    let disk = Arc::new(SlowDisk::behind(&gate));
    let session = Session::open_with(disk, &TestClock::new(), settings(), None).unwrap();
    let engine: &Engine = &session;
    let folder = tempfile::tempdir().unwrap();
    let start = Start {
        engine,
        protocols: &Protocols::over(engine, "r1"),
        data: folder.path(),
        readers: 2,
        liveness: Liveness::new(Vec::new()),
        requests: Requests::default(),
    };
    let http =
        Http::start(&Settings { listen: Listen::Off, ..Settings::default() }, start).unwrap();
    let mut line = Line::socket(&folder.path().join("http.sock"));
    assert_eq!(line.ask(post("", &request("ping", json!({})))).status, 200);
    gate.shut();
    line.send(post("", &call("remember", json!({"text": "a cup"}))));
    eventually("it waits for the disk", || gate.waiting() > 0);
    let stopping = thread::spawn(move || http.stop());
    thread::sleep(Duration::from_millis(300));
    assert!(!stopping.is_finished(), "it waits for the call");
    gate.open();
    let answer = line.answer().unwrap();
    assert_eq!(answer.json()["result"]["structuredContent"]["durable"], true, "{answer:?}");
    stopping.join().unwrap();
}

#[test]
fn what_is_no_message_is_refused() {
    let scene = Scene::new();
    for (request, status) in [
        (
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nAccept: application/json, text/event-stream\r\nContent-Length: 2\r\n\r\n{}",
            415,
        ),
        (
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            406,
        ),
        ("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    ] {
        let answer = scene.socket().ask(request);
        let (code, found) = (answer.json()["code"].clone(), answer.status);
        assert_eq!((found, code), (status, json!("INVALID_QUERY")), "{request}");
    }
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"a\":\"{}\"}}", "x".repeat(300_000));
    let many = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"a\":[{}0]}}", "0,".repeat(20_000));
    let hidden = format!("{{\"a\":1,\"a\":[{}0]}}", "0,".repeat(2_000));
    let bodies = ["{}", "[]", "{\"jsonrpc\":\"2.0\",\"id\":1}", "nonsense", "\u{0}"];
    for body in bodies.into_iter().chain([large.as_str(), many.as_str(), hidden.as_str()]) {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = scene.socket().ask(request);
        let (status, short) = (answer.status, &body[..body.len().min(40)]);
        match body.len() {
            0..100 => {
                assert_eq!(
                    (status, &answer.json()["code"]),
                    (400, &json!("INVALID_QUERY")),
                    "{short:?}"
                );
            }
            _ if body == hidden => assert_eq!(status, 400, "{short:?}"),
            _ => assert_eq!(answer.json()["code"], "TOO_LARGE", "{short:?}"),
        }
    }
}
