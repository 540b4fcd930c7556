//! HTTP under attack and under load: slow, oversized and garbage requests, names and pages of others, wrong tokens, rates,
//! and more connections than there may be. Each is answered as `docs/http.md` says, and the daemon serves on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use omird_access::{Grant, TokenStore};
use omird_tests::http::{Line, get, request};
use omird_tests::process::Daemon;
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
/// The time for a header, with some for a busy machine.
const HEAD: Duration = Duration::from_secs(30 + 20);

struct Rig {
    daemon: Daemon,
    data: tempfile::TempDir,
}

impl Rig {
    fn start(section: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let config = data.path().join("omird.toml");
        std::fs::write(&config, section).unwrap();
        let config = config.to_str().unwrap().to_owned();
        let folder = data.path().join("data");
        let daemon = Daemon::start_http(PROGRAM, &folder, "r1", &["--config", &config]);
        Self { daemon, data }
    }

    fn token(&self) -> String {
        let file = self.data.path().join("data/keys/local.token");
        format!("Authorization: Bearer {}\r\n", std::fs::read_to_string(file).unwrap().trim())
    }

    fn line(&self) -> Line {
        Line::port(self.daemon.http())
    }

    /// It still serves.
    #[track_caller]
    fn serves(&self) {
        let answer = self.line().ask(request("GET /omir/v1/status", &self.token(), b""));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[test]
fn garbage_is_answered_or_cut_off() {
    let rig = Rig::start("");
    let garbage: [&[u8]; 8] = [
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"POST /omir/v1/remember HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /omir/v1/remember HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ];
    for bytes in garbage {
        let mut stream = TcpStream::connect(rig.daemon.http()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(is_refused, "{:?}: {answer}", String::from_utf8_lossy(bytes));
    }
    rig.serves();
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let rig = Rig::start("");
    let token = rig.token();
    // A body, by what its header says: not a byte of it is sent.
    let mut line = rig.line();
    let head = "Content-Type: application/json\r\nContent-Length: 99999999999\r\n";
    let refused = line
        .ask(format!("POST /omir/v1/remember HTTP/1.1\r\nHost: localhost\r\n{token}{head}\r\n"));
    assert_eq!((refused.status, &refused.json()["code"]), (413, &json!("TOO_LARGE")));
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("limits.max_payload_bytes"), "{message}");
    // A body in chunks, as soon as it is above the bound; the answer arrives although the client sends on.
    let mut line = rig.line();
    let head = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    line.send(format!("POST /omir/v1/remember HTTP/1.1\r\nHost: localhost\r\n{token}{head}\r\n"));
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..66 {
        if !line.try_send(&chunk) {
            break;
        }
    }
    assert_eq!(line.answer().map(|answer| answer.status), Some(413));
    // Whoever may not send one is told so before it is read.
    let head = "Content-Type: application/json\r\nContent-Length: 4000000\r\n";
    let refused =
        rig.line().ask(format!("POST /omir/v1/remember HTTP/1.1\r\nHost: localhost\r\n{head}\r\n"));
    assert_eq!(refused.status, 401);
    // Header, path and query.
    let long = "x".repeat(200_000);
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), 431),
        (get(&format!("/omir/v1/recall?q={}", &long[..70_000])), 414),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(200)), 431),
    ] {
        let mut line = rig.line();
        line.try_send(request);
        let answer = line.answer();
        assert!(answer.is_some_and(|answer| answer.status == status), "expected {status}");
    }
    rig.serves();
}

/// A client that sends its body behind the header, as most do, knows when it may send the next request on the connection.
#[test]
fn a_body_that_nobody_reads_is_dropped_or_ends_the_connection_aloud() {
    let rig = Rig::start("");
    let head = |path: &str, more: &str, bytes: usize| {
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}Content-Length: {bytes}\r\n\r\n")
    };
    let text = format!("{}Content-Type: text/plain\r\n", rig.token());
    for (path, more, status) in [
        ("/api/v0/record", text.as_str(), 415),
        ("/manifesto/v1/worlds", &text, 415),
        ("/omir/v1/remember", &text, 415),
        ("/api/v0/record", "", 401),
        ("/api/v0/health", &text, 405),
        ("/nothing", &text, 404),
    ] {
        let mut line = rig.line();
        for _ in 0..2 {
            line.send(head(path, more, 500));
            thread::sleep(Duration::from_millis(60));
            line.send("x".repeat(500));
            let refused = line.answer().expect("an answer");
            assert_eq!((refused.status, refused.header("connection")), (status, None), "{path}");
        }
        let answer = line.ask(request("GET /omir/v1/status", &rig.token(), b""));
        assert_eq!(answer.status, 200, "{path}");
    }
    // One that is long, one that never comes, and one that is sent only if it is wanted.
    let waits = format!("{text}Expect: 100-continue\r\n");
    for (more, bytes) in [(&text, 200_000), (&text, 500), (&waits, 500)] {
        let mut line = rig.line();
        let refused = line.ask(head("/api/v0/record", more, bytes));
        assert_eq!((refused.status, refused.header("connection")), (415, Some("close")));
        assert!(line.answer().is_none(), "it is closed");
    }
    rig.serves();
}

/// Protocols with words of their own for it say so at each path of theirs.
#[test]
fn another_verb_is_refused_in_the_words_of_the_protocol() {
    let rig = Rig::start("");
    let mut line = rig.line();
    for (what, code, allow) in [
        ("PUT /api/v0/record", "METHOD_NOT_ALLOWED", "POST"),
        ("POST /api/v0/health", "METHOD_NOT_ALLOWED", "GET,HEAD"),
        ("GET /manifesto/v1/worlds", "METHOD_NOT_ALLOWED", "POST"),
        ("DELETE /manifesto/v1/worlds/a", "METHOD_NOT_ALLOWED", "GET,HEAD"),
        ("PATCH /omir/v1/status", "INVALID_QUERY", "POST,GET,HEAD"),
    ] {
        let refused = line.ask(request(what, "X-Request-ID: mine\r\n", b""));
        assert_eq!((refused.status, &refused.json()["code"]), (405, &json!(code)), "{what}");
        assert_eq!(refused.header("allow"), Some(allow), "{what}");
        let is_named = code != "INVALID_QUERY";
        assert_eq!(refused.header("x-request-id").is_some(), is_named, "{what}: {refused:?}");
        assert_eq!(refused.header("cache-control"), Some("no-store"));
    }
    let allowed = line.ask(request("OPTIONS /api/v0/record", "", b""));
    assert_eq!((allowed.status, allowed.header("allow")), (204, Some("POST")));
    for kind in ["text/plain", "application/json; charset=latin-1"] {
        let headers = format!("{}Content-Type: {kind}\r\n", rig.token());
        let unread = line.ask(request("POST /api/v0/record", &headers, b"{}"));
        let code = json!("UNSUPPORTED_MEDIA_TYPE");
        assert_eq!((unread.status, &unread.json()["code"]), (415, &code), "{kind}");
    }
    let headers = format!("{}Content-Type: Application/JSON;Charset=\"UTF-8\"\r\n", rig.token());
    assert_eq!(line.ask(request("POST /api/v0/record", &headers, b"{}")).status, 400);
}

#[test]
fn slow_clients_are_cut_off_and_others_are_served() {
    let rig = Rig::start("");
    let address = rig.daemon.http();
    let began = Instant::now();
    // Nothing at all, a header byte by byte, and a connection that is idle after a request.
    let drip = |first: String| {
        thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            stream.write_all(first.as_bytes()).unwrap();
            let mut bytes = [0; 4096];
            loop {
                let is_dripping = !first.is_empty() && !first.ends_with("\r\n\r\n");
                if is_dripping && stream.write_all(b"X").is_err() {
                    break;
                }
                match stream.read(&mut bytes) {
                    Ok(0) => break,
                    Err(error)
                        if !matches!(
                            error.kind(),
                            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                        ) =>
                    {
                        break;
                    }
                    _ => {}
                }
                assert!(began.elapsed() < HEAD * 2, "it is still open");
            }
            began.elapsed()
        })
    };
    let slow = [String::new(), "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ".to_owned(), get("/")]
        .map(drip);
    for _ in 0..20 {
        rig.serves();
        thread::sleep(Duration::from_millis(100));
    }
    for one in slow {
        let took = one.join().unwrap();
        assert!(took < HEAD && took > Duration::from_secs(20), "{took:?}");
    }
    rig.serves();
}

/// The time of a body, at `/mcp` as everywhere.
#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let rig = Rig::start("");
    let token = rig.token();
    let paths = ["/mcp", "/omir/v1/remember", "/api/v0/record", "/compass/v1/jsonrpc"];
    let mut lines = paths.map(|path| {
        let mut line = rig.line();
        let head = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                    Content-Length: 1000\r\n";
        line.send(format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{token}{head}\r\n{{"));
        line
    });
    let began = Instant::now();
    for (path, line) in paths.iter().zip(&mut lines) {
        let answer = line.answer().unwrap();
        assert_eq!(answer.status, 408, "{path}: {answer:?}");
        assert!(String::from_utf8_lossy(&answer.body).contains("too slowly"), "{path}: {answer:?}");
    }
    let took = began.elapsed();
    assert!(took > Duration::from_secs(20) && took < HEAD, "{took:?}");
    rig.serves();
}

/// A large upload that stalls holds what has come of it, and nobody who asks for little waits for it.
#[test]
fn uploads_that_stall_hold_up_nobody() {
    let rig = Rig::start("");
    let token = rig.token();
    let lengths = ["Content-Length: 33554432\r\n", "Transfer-Encoding: chunked\r\n"];
    let stalled: Vec<_> = (0..8)
        .map(|n| {
            let length = lengths[n % 2];
            let begun = if n % 2 == 0 { "[" } else { "1\r\n[\r\n" };
            let mut line = rig.line();
            line.send(format!(
                "POST /omir/v1/remember?merge=true HTTP/1.1\r\nHost: localhost\r\n{token}\
                 Content-Type: application/json\r\n{length}\r\n{begun}"
            ));
            line
        })
        .collect();
    thread::sleep(Duration::from_millis(500));
    rig.serves();
    let headers = format!(
        "{token}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    );
    let record = br#"{"resourceType": "MemoryRecord", "id": "door", "content": "door 3 sticks"}"#;
    let listed = br#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let content = "x".repeat(18_000);
    let large: Vec<_> = (0..20)
        .map(|n| json!({"resourceType": "MemoryRecord", "id": format!("m{n}"), "content": content}))
        .collect();
    let large = serde_json::to_vec(&large).unwrap();
    let asked: [(&str, &[u8]); 6] = [
        ("POST /omir/v1/remember", record),
        ("GET /omir/v1/recall?q=door", b""),
        ("GET /omir/v1/status", b""),
        ("POST /omir/v1/recall", br#"{"q": "door"}"#),
        ("POST /mcp", listed),
        // A large one as well: those that stall have sent a byte each.
        ("POST /omir/v1/remember", &large),
    ];
    for (what, body) in asked {
        let answer = rig.line().ask(request(what, &headers, body));
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
    }
    drop(stalled);
    rig.serves();
}

/// A daemon that has no descriptor left cannot look at the tokens: they stay in force for a moment, and no longer.
#[test]
fn without_a_descriptor_tokens_stay_in_force_for_a_moment() {
    let rig = Rig::start("");
    let keys = TokenStore::of(&rig.data.path().join("data"));
    let read = || Grant { scopes: vec!["omir:read".to_owned()], ..Grant::default() };
    let add = |name: &str, random| {
        keys.add(Grant { name: name.to_owned(), ..read() }, [random; 32], None).unwrap()
    };
    let first = format!("Authorization: Bearer {}\r\n", add("first", 1).as_str());
    let mut line = rig.line();
    let mut status = |token: &str| line.ask(request("GET /omir/v1/status", token, b"")).status;
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(status(&first), 200);
    let bound = |files: &str| {
        let pid = rig.daemon.pid().to_string();
        let bound = Command::new("prlimit").args(["--pid", &pid, files]).status().unwrap();
        assert!(bound.success());
    };
    bound("--nofile=3:4096");
    // The file is another one now, and is looked at.
    let second = format!("Authorization: Bearer {}\r\n", add("second", 2).as_str());
    let began = Instant::now();
    thread::sleep(Duration::from_secs(3));
    assert_eq!((status(&first), status(&second)), (200, 401), "it is not known yet");
    while status(&first) == 200 {
        assert!(began.elapsed() < Duration::from_secs(25), "it is in force for good");
        thread::sleep(Duration::from_millis(500));
    }
    assert!(began.elapsed() > Duration::from_secs(8), "{:?}", began.elapsed());
    bound("--nofile=4096:4096");
    thread::sleep(Duration::from_millis(1500));
    assert_eq!((status(&first), status(&second)), (200, 200));
}

/// Answers that nobody takes are bounded in memory, all clients together, and hold up nobody who asks for little.
#[test]
fn answers_that_nobody_takes_are_bounded() {
    const READERS: u32 = 50;
    let rig = Rig::start("");
    let token = rig.token();
    let headers = format!("{token}Content-Type: application/json\r\n");
    let content = "x".repeat(18_000);
    for part in 0..2 {
        let list: Vec<_> = (0..100)
            .map(|n| json!({"resourceType": "MemoryRecord", "id": format!("m{part}-{n}"), "content": content}))
            .collect();
        let body = serde_json::to_vec(&list).unwrap();
        let stored = rig.line().ask(request("POST /omir/v1/remember", &headers, &body));
        assert_eq!(stored.status, 200, "{stored:?}");
    }
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", rig.daemon.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
    };
    let answer = rig.line().ask(request("GET /omir/v1/recall?limit=200", &token, b""));
    assert!(answer.body.len() > 3 << 20);
    let before = resident();
    let mut stream = TcpStream::connect(rig.daemon.http()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    // Of each answer the client takes one byte: SETTINGS_INITIAL_WINDOW_SIZE is 1.
    let narrow = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]);
    stream.write_all(&[PREFACE, &narrow].concat()).unwrap();
    for n in 0..READERS {
        stream.write_all(&get_frame(2 * n + 1, "/omir/v1/recall?limit=200", &token)).unwrap();
    }
    let (began, mut most, mut given, mut refused) = (Instant::now(), 0, 0, 0);
    while began.elapsed() < Duration::from_secs(20) {
        most = most.max(resident().saturating_sub(before));
        rig.serves();
        while let Ok((kind, flags, _, payload)) = read_frame(&mut stream) {
            match kind {
                // An indexed field: `:status: 200`.
                HEADERS if payload[0] == 0x88 => given += 1,
                HEADERS => refused += 1,
                PING if flags == 0 => stream.write_all(&frame(PING, ACK, 0, &payload)).unwrap(),
                _ => {}
            }
        }
    }
    // 64 MiB of answers, those that are being made, and what an allocator keeps beside.
    assert!(most < 130, "{most} MiB more");
    // On a busy machine some are not worked on yet.
    assert!(given >= 10 && refused >= 1, "{given}, {refused}");
}

#[test]
fn many_requests_at_once_are_answered_in_order() {
    let rig = Rig::start("");
    let mut line = rig.line();
    let token = rig.token();
    let all: Vec<u8> = (0..100)
        .flat_map(|n| request(&format!("GET /omir/v1/memory/Entity/e{n}"), &token, b""))
        .collect();
    line.send(all);
    for n in 0..100 {
        let answer = line.answer().unwrap();
        assert_eq!(answer.status, 404);
        assert!(
            answer.json()["message"].as_str().unwrap().contains(&format!("Entity/e{n} ")),
            "{answer:?}"
        );
    }
}

#[test]
fn wrong_tokens_by_the_thousand_let_nobody_in_and_hold_up_nobody() {
    let rig = Rig::start("");
    let address = rig.daemon.http();
    let guessers: Vec<_> = (0..4)
        .map(|who| {
            thread::spawn(move || {
                let mut line = Line::port(address);
                let paths =
                    ["GET /omir/v1/recall", "POST /mcp", "GET /access/v1/tokens", "GET /metrics"];
                for n in 0..1000 {
                    let token = format!("Authorization: Bearer omird_{:043}\r\n", who * 1000 + n);
                    let refused = line.ask(request(paths[n % paths.len()], &token, b""));
                    assert_eq!(
                        (refused.status, refused.header("www-authenticate")),
                        (401, Some("Bearer"))
                    );
                }
            })
        })
        .collect();
    while guessers.iter().any(|guesser| !guesser.is_finished()) {
        let began = Instant::now();
        rig.serves();
        assert!(began.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(20));
    }
    guessers.into_iter().for_each(|guesser| guesser.join().unwrap());
    let measures = rig.line().ask(request("GET /metrics", &rig.token(), b"")).body;
    let measures = String::from_utf8(measures).unwrap();
    let of_guesses =
        |line: &&str| line.starts_with("omird_requests_total") && line.contains("UNAUTHENTICATED");
    let counted = measures.lines().filter(of_guesses).map(|line| {
        line.rsplit_once(' ').and_then(|(_, count)| count.parse::<f64>().ok()).unwrap()
    });
    assert!((counted.sum::<f64>() - 4000.0).abs() < 0.5, "each of them is counted");
    for header in [
        "Authorization: Basic YTpi\r\n",
        "Authorization: Bearer\r\n",
        "Cookie: token=x\r\n",
        "Authorization: Bearer \u{e9}\r\n",
    ] {
        assert_eq!(
            rig.line().ask(request("GET /omir/v1/status", header, b"")).status,
            401,
            "{header}"
        );
    }
}

#[test]
fn pages_and_names_of_others_are_refused() {
    let rig =
        Rig::start("[http]\nhosts = [\"rover.local\"]\norigins = [\"https://panel.example\"]\n");
    let (token, port) = (rig.token(), rig.daemon.http().port());
    let ask = |what: &str, host: &str, headers: &str| {
        let head =
            format!("{what} HTTP/1.1\r\nHost: {host}\r\n{token}{headers}Content-Length: 0\r\n\r\n");
        rig.line().ask(head)
    };
    let status = "GET /omir/v1/status";
    for host in [
        "evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[fe80::1]",
        "rover.local.evil.example:80",
    ] {
        let refused = ask(status, host, "");
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (421, &json!("UNAUTHORIZED")),
            "{host}"
        );
    }
    for host in
        ["localhost", "127.0.0.1:1", "[::1]:7449", "rover.local", "ROVER.local:80", "a.localhost"]
    {
        assert_eq!(ask(status, host, "").status, 200, "{host}");
    }
    for host in ["a b", "user@localhost", ""] {
        assert_eq!(ask(status, host, "").status, 400, "{host}");
    }
    // A page of another site neither reads nor writes, also not by a simple request.
    for origin in ["https://evil.example", "null", "http://localhost:1", "https://localhost"] {
        for what in
            [status, "POST /omir/v1/forget?ref=Entity/a", "OPTIONS /omir/v1/status", "GET /mcp"]
        {
            let refused = ask(what, "localhost", &format!("Origin: {origin}\r\n"));
            assert_eq!(refused.status, 403, "{origin} {what}");
            assert_eq!(refused.header("access-control-allow-origin"), None);
        }
    }
    let two = format!("Origin: http://localhost:{port}\r\nOrigin: https://evil.example\r\n");
    assert_eq!(ask(status, &format!("localhost:{port}"), &two).status, 403);
    let own =
        ask(status, &format!("localhost:{port}"), &format!("Origin: http://localhost:{port}\r\n"));
    assert_eq!((own.status, own.header("access-control-allow-origin")), (200, None));
    // A page that is named may.
    let named = "Origin: https://panel.example\r\n";
    let answer = ask(status, "localhost", named);
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("https://panel.example"))
    );
    let preflight = ask(
        "OPTIONS /omir/v1/recall",
        "localhost",
        &format!("{named}Access-Control-Request-Method: POST\r\n"),
    );
    assert_eq!(preflight.status, 204);
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "omir-read-only", "x-request-id", "mcp-method"] {
        assert!(allowed.split(", ").any(|known| known == name), "{name}: {allowed}");
    }
    // Everything that an answer says beside its body can be read.
    let token_line = format!("{named}X-Request-ID: r-1\r\n");
    let hints = ask("POST /api/v0/hints", "localhost", &token_line);
    let exposed = hints.header("access-control-expose-headers").unwrap().to_owned();
    let simple = ["content-type", "content-length", "vary", "date", "cache-control", "connection"];
    for (name, _) in &hints.headers {
        let is_told = name.starts_with("access-control-") || name == "x-content-type-options";
        let can_be_read =
            simple.contains(&name.as_str()) || exposed.split(", ").any(|known| known == name);
        assert!(is_told || can_be_read, "{name}: {exposed}");
    }
    assert!(hints.header("x-request-id").is_some());
    assert_eq!(preflight.header("access-control-allow-credentials"), None);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("vary", "accept, origin"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
}

#[test]
fn connections_and_streams_are_bounded_apart() {
    let rig = Rig::start("[http]\nmax_connections = 4\nmax_events = 3\n");
    let token = rig.token();
    let stream = || {
        let mut line = rig.line();
        line.send(request("GET /omir/v1/events", &token, b""));
        let head = line.head().unwrap();
        (line, head.status)
    };
    // More streams than connections there may be at a time: they are counted apart.
    let streams: Vec<_> = (0..3).map(|_| stream()).collect();
    assert!(streams.iter().all(|(_, status)| *status == 200));
    assert_eq!(stream().1, 503);
    let mut idle = Vec::new();
    omird_tests::process::eventually("four are served, once the refused one has gone", || {
        idle.clear();
        idle.extend((0..4).map(|_| {
            let mut line = rig.line();
            let is_served =
                line.try_send(get("/")) && line.answer().is_some_and(|answer| answer.status == 200);
            (line, is_served)
        }));
        idle.iter().all(|(_, is_served)| *is_served)
    });
    let refused = rig.line().answer().expect("one too many is told so");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (503, Some("BUSY")));
    // Whoever holds all of the port does not keep the owner from the socket.
    assert_eq!(Line::socket(&rig.daemon.http_socket()).ask(get("/omir/v1/status")).status, 200);
    drop(idle);
    omird_tests::process::eventually("there is room again", || {
        let mut line = rig.line();
        line.try_send(get("/")) && line.answer().is_some_and(|answer| answer.status == 200)
    });
    drop(streams);
    omird_tests::process::eventually("streams that are gone make room", || stream().1 == 200);
}

/// The code `RATE_LIMITED` of docs/replies.md.
#[test]
fn a_token_that_asks_too_often_is_told_when_it_may() {
    let rig = Rig::start("");
    let grant = json!({"name": "busy", "scopes": ["omir:read"], "rate": 2});
    let body = serde_json::to_vec(&grant).unwrap();
    let typed = "Content-Type: application/json\r\n";
    let mut socket = Line::socket(&rig.daemon.http_socket());
    let added = socket.ask(request("POST /access/v1/tokens", typed, &body));
    assert_eq!(added.status, 201, "{}", String::from_utf8_lossy(&added.body));
    let token = format!("Authorization: Bearer {}\r\n", added.json()["token"].as_str().unwrap());
    let mut line = rig.line();
    let answers: Vec<_> =
        (0..10).map(|_| line.ask(request("GET /omir/v1/status", &token, b""))).collect();
    let limited =
        answers.iter().find(|answer| answer.status == 429).expect("ten at once are too many");
    assert_eq!(limited.json()["code"], "RATE_LIMITED");
    let after: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert_eq!(answers[0].status, 200);
    thread::sleep(Duration::from_secs(after));
    assert_eq!(line.ask(request("GET /omir/v1/status", &token, b"")).status, 200);
    // Others are not held up, and what it may not do it may not.
    rig.serves();
    let refused = rig.line().ask(request("POST /omir/v1/forget?ref=Entity/a", &token, b""));
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("UNAUTHORIZED")));
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// A flag of settings and pings.
const ACK: u8 = 1;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Settings by which no answer may send a byte until its own window says so: SETTINGS_INITIAL_WINDOW_SIZE is 0.
const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

/// A GET as the one frame of a stream.
fn get_frame(stream: u32, path: &str, token: &str) -> Vec<u8> {
    // Header fields as literals without a table (RFC 7541, section 6.2.2).
    let literal = |name: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("authorization", token.trim().strip_prefix("Authorization: ").unwrap()),
    ];
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| literal(name, value)).collect();
    frame(HEADERS, 5, stream, &block)
}

/// Reads a frame: kind, flags, stream and payload.
fn read_frame(stream: &mut TcpStream) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut payload)?;
    Ok((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
}

/// Over HTTP/2 a client that takes nothing of an answer may look well otherwise: it says that it is there, and takes other
/// answers.
#[test]
fn a_client_that_takes_nothing_of_one_answer_is_cut_off_over_http_2_too() {
    let rig = Rig::start("");
    let token = rig.token();
    let mut stream = TcpStream::connect(rig.daemon.http()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, NO_WINDOW)].concat()).unwrap();
    stream.write_all(&get_frame(1, "/omir/v1/status", &token)).unwrap();
    let (began, mut next, mut answered, mut asked) = (Instant::now(), 3, 0, Instant::now());
    let took = loop {
        match read_frame(&mut stream) {
            Ok((SETTINGS, 0, ..)) => stream.write_all(&frame(SETTINGS, ACK, 0, b"")).unwrap(),
            Ok((PING, 0, _, told)) => stream.write_all(&frame(PING, ACK, 0, &told)).unwrap(),
            Ok((DATA, _, of, payload)) => {
                assert!(of > 1, "it has no window");
                answered += usize::from(!payload.is_empty());
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break began.elapsed(),
        }
        assert!(began.elapsed() < HEAD * 2, "it is still open after {answered} other answers");
        if asked.elapsed() > Duration::from_secs(5) {
            let window = frame(WINDOW_UPDATE, 0, next, &60_000_u32.to_be_bytes());
            let _ =
                stream.write_all(&[get_frame(next, "/omir/v1/status", &token), window].concat());
            (next, asked) = (next + 2, Instant::now());
        }
    };
    assert!(took > Duration::from_secs(25) && answered >= 3, "{took:?}, {answered}");
    rig.serves();
}

#[test]
fn http_2_is_spoken_without_tls_too() {
    let rig = Rig::start("");
    let mut stream = TcpStream::connect(rig.daemon.http()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let ask = get_frame(1, "/omir/v1/status", &rig.token());
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, b""), &ask].concat()).unwrap();
    let mut body = Vec::new();
    loop {
        let (kind, flags, of, payload) = read_frame(&mut stream).unwrap();
        match (kind, of) {
            // An indexed field: `:status: 200`.
            (HEADERS, 1) => assert_eq!(payload[0], 0x88),
            (DATA, 1) => body.extend(payload),
            (3 | 7, _) => panic!("the stream or the connection is refused"),
            _ => {}
        }
        if flags & 1 == 1 && of == 1 {
            break;
        }
    }
    let status: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["robot"], "r1");
}
