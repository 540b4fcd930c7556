//! The OMIR protocol over HTTP: each operation, the conditions of headers, both encodings, documents of any size.

mod events;
mod lifetime;
mod rig;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use omird_tests::http::{Line, request};
use omird_tests::process::Daemon;
use serde_json::{Value, json};

use rig::{PROGRAM, Rig, entity};

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
    // An export goes in again, in both encodings.
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

/// `If-Match: *` holds for whichever version there is: of many that write at once none is refused, and once it is forgotten
/// all are.
#[test]
fn any_version_is_matched_however_many_write() {
    let rig = Rig::start(&[]);
    let typed = "Content-Type: application/json\r\nIf-Match: *\r\n";
    let path = "/omir/v1/memory/Entity/shared";
    rig.line().json(&format!("PUT {path}"), &entity("first"));
    let ready = Barrier::new(16);
    thread::scope(|scope| {
        for writer in 0..16 {
            let (rig, ready) = (&rig, &ready);
            scope.spawn(move || {
                let mut line = rig.line();
                ready.wait();
                for n in 0..20 {
                    let body = entity(&format!("{writer} {n}")).to_string();
                    let stored = line.ask(&format!("PUT {path}"), typed, body.as_bytes());
                    assert_eq!(stored.status, 200, "{stored:?}");
                }
            });
        }
    });
    let mut line = rig.line();
    let found = line.get(path);
    assert_eq!(found.header("etag"), Some("\"321\""), "each of them was stored");
    assert_eq!(line.ask(&format!("DELETE {path}"), "If-Match: *\r\n", b"").status, 200);
    let body = entity("late").to_string();
    for (what, body) in [("PUT", body.as_bytes()), ("DELETE", b"")] {
        let refused = line.ask(&format!("{what} {path}"), typed, body);
        assert_eq!((refused.status, &refused.json()["code"]), (412, &json!("CONFLICT")), "{what}");
    }
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
    // A token that is revoked meanwhile reads no further.
    let added = line.json("POST /access/v1/tokens", &json!({"name": "r", "scopes": ["omir:read"]}));
    let token = format!("Authorization: Bearer {}\r\n", added.json()["token"].as_str().unwrap());
    let mut reader = rig.line().line;
    reader.send(request("GET /omir/v1/export", &token, b""));
    assert_eq!(reader.head().unwrap().status, 200);
    assert_eq!(line.ask("DELETE /access/v1/tokens/r", "", b"").status, 200);
    let mut read = 0;
    while let Some(Some(chunk)) = reader.chunk() {
        read += chunk.len();
        assert!(read < body.len(), "it reads on to the end");
    }
}
