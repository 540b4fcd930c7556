//! The OMIR protocol over HTTP: each operation, the conditions of headers, both encodings, documents of any size, events.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use omird_tests::http::{Answer, Line, request};
use omird_tests::process::{Daemon, Settings, free_endpoint};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

struct Rig {
    daemon: Daemon,
    data: tempfile::TempDir,
}

impl Rig {
    fn start(more: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", more);
        Self { daemon, data }
    }

    fn token(&self) -> String {
        let token = std::fs::read_to_string(self.data.path().join("keys/local.token")).unwrap();
        format!("Authorization: Bearer {}\r\n", token.trim())
    }

    fn line(&self) -> Asking {
        Asking { line: Line::port(self.daemon.http()), token: self.token() }
    }
}

/// A connection with a token.
struct Asking {
    line: Line,
    token: String,
}

impl Asking {
    #[track_caller]
    fn ask(&mut self, what: &str, headers: &str, body: &[u8]) -> Answer {
        let headers = format!("{}{headers}", self.token);
        self.line.ask(request(what, &headers, body))
    }

    #[track_caller]
    fn json(&mut self, what: &str, body: &Value) -> Answer {
        let body = serde_json::to_vec(body).unwrap();
        self.ask(what, "Content-Type: application/json\r\n", &body)
    }

    #[track_caller]
    fn get(&mut self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "", b"")
    }
}

fn entity(name: &str) -> Value {
    json!({"resourceType": "Entity", "name": name})
}

#[test]
fn each_operation_answers_as_over_zenoh() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let door = json!({"resourceType": "MemoryRecord", "id": "door-3", "content": "door 3 sticks"});
    let stored = line.json("POST /omir/v1/remember", &door);
    assert_eq!(stored.status, 200, "{stored:?}");
    assert_eq!(stored.json()["stored"][0], json!({"ref": "MemoryRecord/door-3", "version": 1}));
    assert_eq!(stored.json()["durable"], true);
    for recall in [
        "GET /omir/v1/recall?q=door+3&type=MemoryRecord&explain",
        "POST /omir/v1/recall?q=door%203",
    ] {
        let found = line.ask(recall, "", b"");
        assert_eq!((found.status, &found.json()["total"]), (200, &json!(1)), "{found:?}");
    }
    let found = line
        .json("POST /omir/v1/recall", &json!({"q": "door", "type": ["MemoryRecord", "Entity"]}));
    assert_eq!(found.json()["hits"][0]["resource"]["id"], "door-3");
    assert_eq!(
        line.json("POST /omir/v1/anchor", &json!({"ref": "MemoryRecord/door-3"})).json()["anchored"],
        true
    );
    let believed =
        line.ask("POST /omir/v1/feedback?ref=MemoryRecord/door-3&outcome=confirmed", "", b"");
    assert_eq!(believed.json()["version"], 3);
    assert_eq!(line.get("/omir/v1/explain?ref=MemoryRecord/door-3").json()["anchored"], true);
    assert_eq!(line.get("/omir/v1/status").json()["counts"]["types"]["MemoryRecord"], 1);
    assert_eq!(line.ask("POST /omir/v1/sweep?dryRun", "", b"").json()["dryRun"], true);
    let backup = line.ask("POST /omir/v1/backup", "", b"").json();
    let segment = &backup["segments"][0];
    let piece = line.json("POST /omir/v1/backup", &json!({"segment": segment["segment"]}));
    assert_eq!(piece.header("content-type"), Some("application/octet-stream"));
    assert_eq!(piece.body.len() as u64, segment["bytes"].as_u64().unwrap());
    assert!(
        line.json("POST /omir/v1/compact", &json!({"scope": "all"})).json()["segmentsAfter"]
            .is_u64()
    );
    let keyframes = json!({"frame": "map", "keyframes": {"kf_1": {"position": [5, 0, 0]}}});
    let rebased = line.json("POST /omir/v1/rebase?dryRun=true", &keyframes);
    assert_eq!((rebased.status, &rebased.json()["moved"]), (200, &json!(0)), "{rebased:?}");
    let export = line.get("/omir/v1/export?type=MemoryRecord").json();
    assert_eq!(export["entry"][0]["id"], "door-3");
    let forgotten = line.ask("POST /omir/v1/forget?ref=MemoryRecord/door-3", "", b"");
    assert_eq!(forgotten.json()["forgotten"], 1);
    // No clock but that of the machine.
    let clock = line.ask("PUT /omir/v1/clock", "Content-Type: application/json\r\n", b"12");
    assert_eq!((clock.status, &clock.json()["code"]), (400, &json!("INVALID_QUERY")));
}

#[test]
fn refusals_have_their_statuses() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let typed = "Content-Type: application/json\r\n";
    for (what, headers, body, status, code, path) in [
        ("POST /omir/v1/remember", typed, "{", 400, "INVALID_RESOURCE", ""),
        ("POST /omir/v1/remember", "", "", 400, "INVALID_RESOURCE", ""),
        (
            "POST /omir/v1/remember",
            typed,
            r#"{"resourceType":"Entity","id":"e","name":3}"#,
            400,
            "INVALID_RESOURCE",
            "/name",
        ),
        ("GET /omir/v1/recall?raduis=2", "", "", 400, "INVALID_QUERY", "/raduis"),
        ("GET /omir/v1/recall?q=a&q=b", "", "", 400, "INVALID_QUERY", "/q"),
        ("GET /omir/v1/status?format=xml", "", "", 400, "INVALID_QUERY", "/format"),
        ("POST /omir/v1/anchor?ref=MemoryRecord/none", "", "", 404, "NOT_FOUND", "/ref"),
        ("GET /omir/v1/memory/Entity/none", "", "", 404, "NOT_FOUND", ""),
        ("GET /omir/v1/memory/Thing/a", "", "", 404, "NOT_FOUND", ""),
        ("PUT /omir/v1/memory/Thing/a", typed, "{}", 400, "INVALID_RESOURCE", ""),
        ("GET /omir/v1/memory/Entity/%ff", "", "", 404, "NOT_FOUND", ""),
        ("PUT /omir/v1/memory/Entity/%ff", typed, "{}", 400, "INVALID_RESOURCE", ""),
        ("GET /omir/v1/memory/Entity/a?q=b", "", "", 400, "INVALID_QUERY", "/q"),
        ("GET /nothing", "", "", 404, "NOT_FOUND", ""),
        ("GET /omir/v1/remember", "", "", 405, "INVALID_QUERY", ""),
        ("GET /omir/v1/sweep?dryRun", "", "", 405, "INVALID_QUERY", ""),
        ("PATCH /omir/v1/memory/Entity/a", "", "", 405, "INVALID_QUERY", ""),
        ("POST /omir/v1/remember", "Content-Type: text/plain\r\n", "{}", 415, "INVALID_QUERY", ""),
        (
            "POST /omir/v1/recall",
            "Content-Type: application/x-www-form-urlencoded\r\n",
            "q=a",
            415,
            "INVALID_QUERY",
            "",
        ),
        ("PUT /omir/v1/memory/Entity/a", "", "{}", 415, "INVALID_QUERY", ""),
        ("GET /omir/v1/events", "Last-Event-ID: x\r\n", "", 400, "INVALID_QUERY", ""),
        (
            "POST /omir/v1/remember?merge=true&ifAbsent=true",
            typed,
            "{}",
            400,
            "INVALID_QUERY",
            "/merge",
        ),
    ] {
        let refused = line.ask(what, headers, body.as_bytes());
        let error = refused.json();
        assert_eq!(
            (refused.status, &error["code"], &error["path"]),
            (status, &json!(code), &json!(path)),
            "{what}: {error}"
        );
        assert_eq!(refused.header("content-type"), Some("application/json"));
        assert_eq!(refused.header("allow").is_some(), status == 405, "{refused:?}");
    }
    // As CBOR, where the client would rather have that.
    let refused = line.ask("GET /nothing", "Accept: application/cbor\r\n", b"");
    let error: Value = ciborium::from_reader(&refused.body[..]).unwrap();
    assert_eq!(error["code"], "NOT_FOUND");
    // Read-only says so.
    let rig = Rig::start(&["--read-only"]);
    let refused = rig.line().json("PUT /omir/v1/memory/Entity/a", &entity("a"));
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("UNAUTHORIZED")));
}

#[test]
fn a_head_and_the_allowed_methods_are_told() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    line.json("PUT /omir/v1/memory/Entity/a", &entity("a"));
    let whole = line.get("/omir/v1/memory/Entity/a");
    line.line.send(request("HEAD /omir/v1/memory/Entity/a", &line.token, b""));
    let head = line.line.head().unwrap();
    assert_eq!((head.status, head.header("etag")), (200, Some("\"1\"")));
    assert_eq!(head.header("content-length"), whole.header("content-length"));
    line.line.send(request("HEAD /omir/v1/memory/Entity/none", &line.token, b""));
    assert_eq!(line.line.head().unwrap().status, 404);
    let allowed = line.ask("OPTIONS /omir/v1/memory/Entity/a", "", b"");
    assert_eq!((allowed.status, allowed.header("allow")), (204, Some("GET,HEAD,PUT,DELETE")));
}

#[test]
fn versions_are_tags_and_conditions() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let path = "/omir/v1/memory/Entity/charger";
    let (put, delete) = (format!("PUT {path}"), format!("DELETE {path}"));
    let typed = |condition: &str| format!("Content-Type: application/json\r\n{condition}\r\n");
    let mut ask = |what: &str, condition: &str, name: &str| {
        let body = serde_json::to_vec(&entity(name)).unwrap();
        let body = if what.starts_with("PUT") { body } else { Vec::new() };
        let answer = line.ask(what, &typed(condition), &body);
        (answer.status, answer.header("etag").map(str::to_owned))
    };
    let tag = |version: u64| Some(format!("\"{version}\""));
    assert_eq!(ask(&put, "If-Match: *", "a"), (412, None));
    assert_eq!(ask(&put, "If-None-Match: *", "a"), (201, tag(1)));
    assert_eq!(ask(&put, "If-None-Match: *", "b"), (412, None));
    assert_eq!(ask(&put, "If-Match: \"2\"", "b"), (412, None));
    assert_eq!(ask(&put, "If-Match: W/\"1\"", "b"), (412, None));
    assert_eq!(ask(&put, "If-Match: \"1\"", "b"), (200, tag(2)));
    assert_eq!(ask(&put, "If-Match: *", "c"), (200, tag(3)));
    assert_eq!(ask(&put, "If-Match: \"7\", \"3\"", "d"), (200, tag(4)));
    assert_eq!(ask(&put, "If-None-Match: \"4\"", "e"), (412, None));
    assert_eq!(ask(&put, "If-None-Match: \"3\"", "e"), (200, tag(5)));
    assert_eq!(ask(&put, "X: y", "e"), (200, tag(5)), "the same again is no new version");
    let get = format!("GET {path}");
    assert_eq!(ask(&get, "If-None-Match: \"5\"", ""), (304, tag(5)));
    assert_eq!(ask(&get, "If-None-Match: W/\"5\"", ""), (304, tag(5)));
    assert_eq!(ask(&get, "If-None-Match: \"4\"", ""), (200, tag(5)));
    assert_eq!(ask(&get, "If-Match: \"4\"", ""), (412, None));
    assert_eq!(ask(&delete, "If-Match: \"4\"", ""), (412, None));
    assert_eq!(ask(&delete, "If-Match: \"5\"", ""), (200, None));
    assert_eq!(ask(&delete, "If-Match: *", ""), (412, None));
    assert_eq!(ask(&get, "X: y", "").0, 404);
    assert_eq!(ask(&put, "If-None-Match: *", "f"), (201, tag(7)), "numbers go on after a forget");
    // A version in the resource itself is no condition of a header.
    let old = json!({"resourceType": "MemoryRecord", "content": "x"});
    line.json("PUT /omir/v1/memory/MemoryRecord/m", &old);
    line.json(
        "PUT /omir/v1/memory/MemoryRecord/m",
        &json!({"resourceType": "MemoryRecord", "content": "y"}),
    );
    let old = json!({"resourceType": "MemoryRecord", "content": "z", "version": 1});
    let refused = line.json("PUT /omir/v1/memory/MemoryRecord/m", &old);
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("CONFLICT")));
    let body = serde_json::to_vec(&old).unwrap();
    let refused = line.ask("PUT /omir/v1/memory/MemoryRecord/m", &typed("If-Match: *"), &body);
    assert_eq!(refused.status, 409, "{refused:?}");
}

#[test]
fn of_two_that_write_at_once_one_wins() {
    const ROUNDS: usize = 20;
    let rig = Rig::start(&[]);
    let barrier = Barrier::new(2);
    let statuses = |who: usize| {
        let mut line = rig.line();
        let mut statuses = Vec::new();
        for round in 0..ROUNDS {
            let body = serde_json::to_vec(&entity(&format!("{who}"))).unwrap();
            barrier.wait();
            let headers = "Content-Type: application/json\r\nIf-None-Match: *\r\n";
            statuses.push(
                line.ask(&format!("PUT /omir/v1/memory/Entity/e{round}"), headers, &body).status,
            );
        }
        statuses
    };
    let all: Vec<Vec<u16>> = thread::scope(|scope| {
        let both = [0, 1].map(|who| scope.spawn(move || statuses(who)));
        both.map(|one| one.join().unwrap()).into()
    });
    for (round, (one, other)) in all[0].iter().zip(&all[1]).enumerate() {
        let mut both = [one, other];
        both.sort_unstable();
        assert_eq!(both, [&201, &412], "round {round}");
    }
}

#[test]
fn cbor_goes_in_and_comes_out() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let mut body = Vec::new();
    ciborium::into_writer(&entity("hall"), &mut body).unwrap();
    let headers = "Content-Type: application/cbor\r\nAccept: application/cbor\r\n";
    let stored = line.ask("PUT /omir/v1/memory/Entity/hall", headers, &body);
    assert_eq!((stored.status, stored.header("content-type")), (201, Some("application/cbor")));
    let receipt: Value = ciborium::from_reader(&stored.body[..]).unwrap();
    assert_eq!(receipt["durable"], true);
    for path in ["/omir/v1/memory/Entity/hall", "/omir/v1/memory/Entity/hall?format=json"] {
        let answer = line.ask(&format!("GET {path}"), "Accept: application/cbor\r\n", b"");
        let value: Value = match path.contains("json") {
            true => answer.json(),
            false => ciborium::from_reader(&answer.body[..]).unwrap(),
        };
        assert_eq!(value["name"], "hall");
    }
    let export = line.ask("GET /omir/v1/export", "Accept: application/cbor\r\n", b"");
    let bundle: Value = ciborium::from_reader(&export.body[..]).unwrap();
    assert_eq!(
        (&bundle["resourceType"], &bundle["entry"][0]["name"]),
        (&json!("Bundle"), &json!("hall"))
    );
    // What was exported goes in again, in both encodings.
    for (bytes, media) in [(export.body, "cbor"), (line.get("/omir/v1/export").body, "json")] {
        let headers = format!("Content-Type: application/{media}\r\n");
        let merged = line.ask("POST /omir/v1/remember?merge=true", &headers, &bytes);
        assert_eq!(
            (merged.status, &merged.json()["stored"][0]["unchanged"]),
            (200, &json!(true)),
            "{merged:?}"
        );
    }
}

#[test]
fn the_clock_of_a_simulation_is_set() {
    let data = tempfile::tempdir().unwrap();
    let config = data.path().join("omird.toml");
    std::fs::write(&config, "[clock]\nsource = \"simulated\"\n").unwrap();
    let folder = data.path().join("data");
    let config = config.to_str().unwrap();
    let daemon = Daemon::start_http(PROGRAM, &folder, "r1", &["--config", config]);
    let mut line = Line::socket(&daemon.http_socket());
    let typed = "Content-Type: application/json\r\n";
    for (body, now) in [
        ("\"2026-05-30T11:42:05Z\"", "2026-05-30T11:42:05Z"),
        ("1780141326", "2026-05-30T11:42:06Z"),
    ] {
        let set = line.ask(request("PUT /omir/v1/clock", typed, body.as_bytes()));
        assert_eq!((set.status, &set.json()["now"]), (200, &json!(now)));
        let status = line.ask(request("GET /omir/v1/status", "", b"")).json();
        assert_eq!(status["clock"]["now"].as_str().unwrap()[..19], now[..19]);
    }
    let refused = line.ask(request("POST /omir/v1/clock", typed, b"\"soon\""));
    assert_eq!(refused.status, 400);
}

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

#[test]
fn of_many_that_store_one_name_at_once_one_is_told_that_it_is_new() {
    let rig = Rig::start(&[]);
    let ready = Barrier::new(12);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let ask = || {
            let mut line = rig.line();
            ready.wait();
            line.json("PUT /omir/v1/memory/Entity/new", &entity("new")).status
        };
        let all: Vec<_> = (0..12).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, 200 | 201)), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
}

/// What is stored without a condition meets none, also where others delete it all the time.
#[test]
fn without_a_condition_no_put_is_refused() {
    let rig = Rig::start(&[]);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut line = rig.line();
                for _ in 0..20 {
                    let stored = line.json("PUT /omir/v1/memory/Entity/new", &entity("new"));
                    assert!(matches!(stored.status, 200 | 201), "{stored:?}");
                    line.ask("DELETE /omir/v1/memory/Entity/new", "", b"");
                }
            });
        }
    });
}

#[test]
fn a_flood_of_parameters_is_refused_at_once() {
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let names: Vec<String> = (0..10_000).map(|n| format!("a{n}")).collect();
    let refused = line.get(&format!("/omir/v1/recall?{}", names.join("&")));
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("INVALID_QUERY")));
    let members: serde_json::Map<_, _> = names.into_iter().map(|name| (name, json!(1))).collect();
    let refused = line.json("POST /omir/v1/recall", &Value::Object(members));
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("INVALID_QUERY")));
    assert!(refused.json()["message"].as_str().unwrap().contains("no method has more than 64"));
}

#[test]
fn a_large_export_comes_in_parts_and_needs_little_memory() {
    const RESOURCES: usize = 20_000;
    let rig = Rig::start(&[]);
    let mut line = rig.line();
    let content = "corridor ".repeat(100);
    for part in 0..RESOURCES / 2_000 {
        let list: Vec<Value> = (0..2_000)
            .map(|i| json!({"resourceType": "MemoryRecord", "id": format!("m{part}-{i}"), "content": content}))
            .collect();
        let stored = line.json("POST /omir/v1/remember", &Value::Array(list));
        assert_eq!(stored.status, 200, "{stored:?}");
    }
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", rig.daemon.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    let before = resident();
    line.line.send(request("GET /omir/v1/export", &line.token, b""));
    assert_eq!(line.line.head().unwrap().header("transfer-encoding"), Some("chunked"));
    // A client that takes its time has the daemon wait.
    thread::sleep(Duration::from_secs(1));
    let (mut body, mut most) = (Vec::new(), 0);
    while let Some(chunk) = line.line.chunk().unwrap() {
        if body.len() / (1 << 20) != (body.len() + chunk.len()) / (1 << 20) {
            most = most.max(resident());
        }
        body.extend(chunk);
    }
    let bundle: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(bundle["entry"].as_array().unwrap().len(), RESOURCES);
    let grown = most.saturating_sub(before);
    assert!(
        body.len() > 18 << 20 && grown < 10 << 20,
        "{} bytes, {grown} more in memory",
        body.len()
    );
}

/// What was acknowledged is there after the power was cut.
#[test]
fn what_was_acknowledged_survives_a_kill() {
    let data = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
        let token = std::fs::read_to_string(data.path().join("keys/local.token")).unwrap();
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", token.trim());
        let address = daemon.http();
        let writers: Vec<_> = (0..4)
            .map(|who| {
                let headers = headers.clone();
                thread::spawn(move || {
                    let (mut line, mut stored) = (Line::port(address), Vec::new());
                    for n in 0.. {
                        let id = format!("r{round}-w{who}-{n}");
                        let body = serde_json::to_vec(&entity(&id)).unwrap();
                        let put =
                            request(&format!("PUT /omir/v1/memory/Entity/{id}"), &headers, &body);
                        let answer = line.try_send(put).then(|| line.answer()).flatten();
                        let Some(answer) = answer else { return stored };
                        assert_eq!(answer.status, 201);
                        stored.push(id);
                    }
                    unreachable!()
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(500));
        daemon.kill();
        let stored = writers.into_iter().flat_map(|writer| writer.join().unwrap());
        acknowledged.extend(stored);
    }
    assert!(acknowledged.len() > 30, "{}", acknowledged.len());
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let mut socket = Line::socket(&daemon.http_socket());
    for id in &acknowledged {
        let answer = socket.ask(request(&format!("GET /omir/v1/memory/Entity/{id}"), "", b""));
        assert_eq!(answer.status, 200, "{id} was acknowledged");
    }
}

/// What is under way at a stop is finished, and an answer is of something durable.
#[test]
fn a_stop_lets_what_is_under_way_finish() {
    let rig = Rig::start(&[]);
    let (address, token) = (rig.daemon.http(), rig.token());
    let writer = thread::spawn(move || {
        let (mut line, mut stored) = (Line::port(address), Vec::new());
        let headers = format!("{token}Content-Type: application/json\r\n");
        for n in 0.. {
            let id = format!("s{n}");
            let body = serde_json::to_vec(&entity(&id)).unwrap();
            let put = request(&format!("PUT /omir/v1/memory/Entity/{id}"), &headers, &body);
            let answer = line.try_send(put).then(|| line.answer()).flatten();
            match answer.map(|answer| answer.status) {
                Some(201) => stored.push(id),
                Some(other) => panic!("{other}"),
                None => return stored,
            }
        }
        unreachable!()
    });
    thread::sleep(Duration::from_millis(300));
    let Rig { daemon, data } = rig;
    assert!(daemon.stop().success());
    let stored = writer.join().unwrap();
    assert!(!stored.is_empty());
    let daemon = Daemon::start_http(PROGRAM, data.path(), "r1", &[]);
    let mut socket = Line::socket(&daemon.http_socket());
    for id in &stored {
        let answer = socket.ask(request(&format!("GET /omir/v1/memory/Entity/{id}"), "", b""));
        assert_eq!(answer.status, 200, "{id} was acknowledged");
    }
}

/// The address: taken by default it is gone without, and stated it ends the start.
#[test]
fn a_stated_address_that_is_taken_ends_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = tempfile::tempdir().unwrap();
    let arguments = ["--http", address.as_str()];
    let settings = Settings { arguments: &arguments, ..Settings::default() };
    let mut daemon = Daemon::spawn_with(PROGRAM, data.path(), "r1", &free_endpoint(), &settings);
    let log = daemon.log();
    assert!(log.contains(&format!("http: {address} is taken")), "{log}");
}
