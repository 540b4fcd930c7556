//! The program `omir` against daemons that are only their protocol: Zenoh queryables with prepared
//! answers, on loopback endpoints of their own. What is tested is the tool's side of docs/keys.md:
//! exit codes, what stands on which stream, and how a fleet is asked.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use omird_tests::process::{free_endpoint, nobody_reads};
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::Query;
use zenoh::{Config, Session, Wait as _};

const HIT: &str = r#"{"hits":[{"resource":{"resourceType":"MemoryRecord","id":"m","content":"door",
    "createdAt":"2026-01-01T00:00:00Z"},"score":0.5,"retrievability":0.9}],"total":7,"tookMicros":80}"#;
const STORED: &str = r#"{"stored":[{"ref":"MemoryRecord/m","version":1}],"durable":true,"seq":1}"#;
const MERGED: &str = r#"{"stored":[{"ref":"Episode/drive","version":1,"merged":"added"},
    {"ref":"MemoryRecord/m","version":4,"merged":"kept"}],"durable":true,"seq":1}"#;
const MISSING: &str = r#"{"code":"NOT_FOUND","message":"not here","path":"/ref"}"#;

/// Answers of a robot to a verb and its parameters: a reply, an error reply, or nothing.
type Script = fn(&str, &str) -> Option<Result<&'static str, &'static str>>;

struct Robot {
    endpoint: String,
    _session: Session,
    _alive: LivelinessToken,
}

impl Robot {
    fn start(name: &'static str, script: Script) -> Self {
        let endpoint = free_endpoint();
        let mut config = Config::default();
        for (key, value) in [
            ("mode", "\"peer\""),
            ("listen/endpoints", &format!("[\"{endpoint}\"]")),
            ("scouting/multicast/enabled", "false"),
        ] {
            config.insert_json5(key, value).unwrap();
        }
        let session = zenoh::open(config).wait().unwrap();
        session
            .declare_queryable(format!("omir/{name}/**"))
            .callback(move |query| respond(&query, name, script))
            .background()
            .wait()
            .unwrap();
        let alive = session.liveliness().declare_token(format!("omir/{name}/alive")).wait();
        Self { endpoint, _session: session, _alive: alive.unwrap() }
    }
}

fn respond(query: &Query, name: &str, script: Script) {
    // A question to the fleet is answered on the robot's own key.
    let key = query.key_expr().as_str().replacen("/*/", &format!("/{name}/"), 1);
    let verb = key.splitn(3, '/').nth(2).unwrap_or_default();
    match script(verb, query.parameters().as_str()) {
        // Of all that begin so the script says the ids.
        Some(Ok(ids)) if verb.ends_with("$*") => {
            let folder = &key[..=key.rfind('/').unwrap()];
            for id in ids.split(' ') {
                query.reply(format!("{folder}{id}"), "{}").wait().unwrap();
            }
        }
        Some(Ok(body)) => {
            query.reply(&key, body).encoding(Encoding::APPLICATION_JSON).wait().unwrap();
        }
        Some(Err(body)) => {
            query.reply_err(body).encoding(Encoding::APPLICATION_JSON).wait().unwrap();
        }
        None => {}
    }
}

fn command(robots: &[&Robot], words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omir"));
    for robot in robots {
        command.args(["--connect", &robot.endpoint]);
    }
    for variable in ["OMIR_ROBOT", "OMIR_CONNECT", "OMIR_ZENOH_CONFIG", "OMIR_PREFIX", "RUST_LOG"] {
        command.env_remove(variable);
    }
    command.args(words).stdin(Stdio::null());
    command
}

fn omir(robots: &[&Robot], words: &[&str]) -> Output {
    command(robots, words).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[track_caller]
fn assert_ends(output: &Output, code: i32) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "stdout: {out}\nstderr: {err}");
}

#[test]
fn one_robot_needs_no_name() {
    let robot = Robot::start("r1", |verb, parameters| match verb {
        "remember" => Some(Ok(STORED)),
        "recall" if parameters == "q=door%20%3B;near=-1,2;floor=0.5;limit=10" => Some(Ok(HIT)),
        "status" => Some(Ok(r#"{"robot":"r1","bootCount":3}"#)),
        "memory/Entity/dock" => Some(Ok(r#"{"resourceType":"Entity","id":"dock","name":"d"}"#)),
        "forget" => Some(Ok(r#"{"forgotten":1,"durable":true,"seq":2}"#)),
        "export" => Some(Ok(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[]}"#)),
        "explain" if parameters == "ref=MemoryRecord/m" => {
            Some(Ok(r#"{"tier":"session","nextMove":{"tier":"longterm"}}"#))
        }
        "sweep" if parameters == "dryRun=true" => Some(Ok(r#"{"dryRun":true,"moved":1,"merged":0,
            "expired":0,"evicted":0,"items":[{"cause":"sweep","from":"working","to":"session",
            "reason":"age 1.50 h reached 1.00 h","ref":"MemoryRecord/m"}]}"#)),
        _ => Some(Err(MISSING)),
    });
    let ask = |words: &[&str]| {
        let output = omir(&[&robot], words);
        assert_ends(&output, 0);
        text(&output.stdout).to_owned()
    };
    assert_eq!(ask(&["remember", "door"]), "MemoryRecord/m version 1 (durable)\n");
    let found = ask(&["recall", "door ;", "--near", "-1,2"]);
    assert!(found.contains("\ndoor ") && found.contains("  MemoryRecord/m\n"), "{found}");
    assert!(found.ends_with("total 7, shown 1, 0.1 ms\n"), "{found}");
    let found = ask(&["recall", "door ;", "--near", "-1,2", "--json"]);
    assert!(found.contains(r#""robot": "r1""#), "{found}");
    let status = ask(&["status", "--all"]);
    assert_eq!(status, "r1 is healthy\n\nrobot       r1\nboot count  3\n");
    assert!(ask(&["status"]).starts_with("r1 is healthy\n"));
    assert!(ask(&["robots"]).contains("\nr1"));
    assert!(ask(&["get", "Entity/dock"]).contains(r#""id": "dock""#));
    assert_eq!(ask(&["forget", "m"]), "MemoryRecord/m forgotten\n");
    let explained = ask(&["explain", "m"]);
    assert!(explained.contains("session") && explained.contains("longterm"), "{explained}");
    let swept = ask(&["sweep", "--dry-run"]);
    assert!(swept.contains("working to session  MemoryRecord/m  age 1.50 h"), "{swept}");
    assert!(
        swept.ends_with(
            "1 would be moved, 0 would be merged, 0 would be expired, 0 would be evicted\n"
        ),
        "{swept}"
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.omirb");
    ask(&["export", "-o", file.to_str().unwrap()]);
    ask(&["validate", file.to_str().unwrap()]);
}

#[test]
fn the_beginning_of_an_id_is_enough() {
    let robot = Robot::start("r1", |verb, parameters| match (verb, parameters) {
        ("memory/MemoryRecord/3f9a12bc44429646fcdb23f94ea6cc70", _) => {
            Some(Ok(r#"{"resourceType":"MemoryRecord","id":"3f9a","content":"door"}"#))
        }
        ("memory/MemoryRecord/3f9a$*", "format=cbor") => {
            Some(Ok("3f9a12bc44429646fcdb23f94ea6cc70"))
        }
        ("memory/MemoryRecord/3$*", "format=cbor") => Some(Ok("3f9a12bc44429646fcdb23f94ea6cc70")),
        ("memory/MemoryRecord/door$*", "format=cbor") => Some(Ok("door-1 door-2")),
        ("memory/MemoryRecord/door-1$*", "format=cbor") => Some(Ok("door-10")),
        ("memory/MemoryRecord/gone$*", "format=cbor") => Some(Ok("gone-again")),
        ("forget" | "anchor" | "feedback", parameters)
            if parameters.contains("3f9a12bc44429646fcdb23f94ea6cc70") =>
        {
            Some(Ok(r#"{"forgotten":1,"durable":true,"seq":2}"#))
        }
        ("explain", "ref=MemoryRecord/3f9a12bc44429646fcdb23f94ea6cc70") => {
            Some(Ok(r#"{"tier":"session"}"#))
        }
        ("explain", "ref=MemoryRecord/gone") => Some(Ok(r#"{"forgotten":true}"#)),
        (verb, _) if verb.starts_with("memory/") => None,
        _ => Some(Err(MISSING)),
    });
    for (words, said) in [
        (&["get", "3f9a"][..], "door"),
        (&["get", "3"], "door"),
        (&["get", "3f9a…"], "door"),
        (&["explain", "3f9a"], "session"),
        (&["anchor", "3f9a"], "MemoryRecord/3f9a12bc44429646fcdb23f94ea6cc70 anchored"),
        (
            &["feedback", "3f9a", "confirmed"],
            "MemoryRecord/3f9a12bc44429646fcdb23f94ea6cc70 confirmed",
        ),
        (&["rm", "3f9a"], "MemoryRecord/3f9a12bc44429646fcdb23f94ea6cc70 forgotten"),
    ] {
        let output = omir(&[&robot], words);
        assert_ends(&output, 0);
        assert!(text(&output.stdout).contains(said), "{words:?}: {}", text(&output.stdout));
    }
    for (words, code, said) in [
        (
            &["get", "door"][..],
            1,
            "several; write more of the one you mean:\n  MemoryRecord/door-1\n  MemoryRecord/door-2\n",
        ),
        (&["forget", "door"], 1, "several"),
        // A number is a whole, and a name that was forgotten is no beginning of another.
        (&["forget", "door-1"], 1, "has no MemoryRecord/door-1"),
        (&["forget", "gone"], 1, "has no MemoryRecord/gone"),
        (&["forget", "3"], 2, "at least 4 characters"),
    ] {
        let output = omir(&[&robot], words);
        assert_ends(&output, code);
        assert!(text(&output.stderr).contains(said), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn refusals_end_with_one_and_say_why() {
    let robot = Robot::start("r1", |verb, _| match verb {
        "memory/MemoryRecord/gone" => None,
        _ => Some(Err(MISSING)),
    });
    for words in [&["get", "x"][..], &["get", "gone"], &["forget", "x"], &["anchor", "x"]] {
        let output = omir(&[&robot], words);
        assert_ends(&output, 1);
        assert!(output.stdout.is_empty());
    }
    let output = omir(&[&robot], &["anchor", "x", "--json"]);
    assert_ends(&output, 1);
    assert_eq!(
        text(&output.stderr),
        "{\"code\":\"NOT_FOUND\",\"message\":\"not here\",\"path\":\"/ref\"}\n"
    );
}

#[test]
fn a_forget_that_stops_half_way_says_what_is_forgotten() {
    let robot = Robot::start("r1", |verb, parameters| match (verb, parameters) {
        ("forget", "ref=MemoryRecord/first") => {
            Some(Ok(r#"{"forgotten":1,"durable":true,"seq":2}"#))
        }
        ("forget", _) => Some(Err(r#"{"code":"READ_ONLY","message":"no more","path":""}"#)),
        _ => Some(Err(MISSING)),
    });
    let output = omir(&[&robot], &["forget", "first", "second", "third", "--json"]);
    assert_ends(&output, 3);
    let told = text(&output.stdout);
    assert!(told.contains("\"forgotten\": 1") && told.contains("\"seq\": 2"), "{told}");
    assert!(text(&output.stderr).contains("no more"), "{}", text(&output.stderr));
    // A command that forgets nothing has nothing to print.
    let output = omir(&[&robot], &["forget", "second", "--json"]);
    assert_ends(&output, 1);
    assert!(output.stdout.is_empty());
}

#[test]
fn a_robot_that_is_not_there_ends_with_four() {
    let robot = Robot::start("r1", |_, _| None);
    let output = omir(&[&robot], &["--robot", "r9", "status"]);
    assert_ends(&output, 4);
    assert!(text(&output.stderr).contains("alive are r1"), "{}", text(&output.stderr));
    let gone = Robot { endpoint: free_endpoint(), ..robot };
    let output = omir(&[&gone], &["status"]);
    assert_ends(&output, 4);
    assert!(text(&output.stderr).contains("no omird answers at"), "{}", text(&output.stderr));
}

#[test]
fn a_robot_that_is_heard_a_moment_later_is_found() {
    let Robot { endpoint, _session: session, _alive: alive } =
        Robot::start("r1", |_, _| Some(Ok(STORED)));
    alive.undeclare().wait().unwrap();
    let later = session.clone();
    let heard = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        later.liveliness().declare_token("omir/r1/alive").wait().unwrap()
    });
    let output = Command::new(env!("CARGO_BIN_EXE_omir"))
        .args(["--connect", &endpoint, "remember", "x"])
        .env_remove("OMIR_ROBOT")
        .output()
        .unwrap();
    assert_ends(&output, 0);
    drop(heard.join().unwrap());
}

#[test]
fn a_fleet_answers_together() {
    let first = Robot::start("r1", |_, _| Some(Ok(HIT)));
    let second = Robot::start("r2", |_, _| Some(Ok(HIT)));
    let both = [&first, &second];
    let output = omir(&both, &["recall"]);
    assert_ends(&output, 0);
    assert!(text(&output.stdout).contains("total 14, shown 2"), "{}", text(&output.stdout));
    let output = omir(&both, &["recall", "--limit", "1", "--json"]);
    assert!(text(&output.stdout).contains("\"total\": 14"), "{}", text(&output.stdout));
    // A command for one robot does not guess which.
    let output = omir(&both, &["remember", "x"]);
    assert_ends(&output, 2);
    assert!(text(&output.stderr).contains("r1, r2"), "{}", text(&output.stderr));
}

#[test]
fn a_silent_robot_makes_an_answer_partial() {
    let first = Robot::start("r1", |_, _| Some(Ok(HIT)));
    let second = Robot::start("r2", |_, _| None);
    let output = omir(&[&first, &second], &["recall"]);
    assert_ends(&output, 3);
    assert!(text(&output.stdout).contains("total 7"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("no answer from r2"), "{}", text(&output.stderr));
}

#[test]
fn an_import_in_parts_that_stops_half_way_ends_with_three() {
    // The Entity of the last of two requests is refused.
    let robot = Robot::start("r1", |verb, parameters| {
        use std::sync::LazyLock;
        use std::sync::atomic::{AtomicU32, Ordering};
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        static FIRST: LazyLock<String> = LazyLock::new(|| {
            let items = (0..256)
                .map(|n| format!(r#"{{"ref":"Entity/e{n}","version":1,"merged":"added"}}"#));
            let items: Vec<String> = items.collect();
            format!(r#"{{"stored":[{}],"durable":true,"seq":1}}"#, items.join(","))
        });
        assert_eq!((verb, parameters), ("remember", "merge=true"));
        match REQUESTS.fetch_add(1, Ordering::SeqCst) {
            0 => Some(Ok(FIRST.as_str())),
            _ => Some(Err(r#"{"code":"INVALID_RESOURCE","message":"no","path":"/entry/43/name"}"#)),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("many.omir");
    let entries: Vec<String> = (0..300)
        .map(|n| format!(r#"{{"resourceType":"Entity","id":"e{n}","name":"n"}}"#))
        .collect();
    let bundle = format!(
        r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{}]}}"#,
        entries.join(",")
    );
    std::fs::write(&file, bundle).unwrap();
    let file = file.to_str().unwrap();
    let output = omir(&[&robot], &["import", "--in-parts", file]);
    assert_ends(&output, 3);
    assert_eq!(text(&output.stdout), format!("{file}: 256 added\n"));
    let complaint = text(&output.stderr);
    assert!(complaint.contains("only 256 of 300 resources are acknowledged"), "{complaint}");
    assert!(
        complaint.contains("Entity/e299: no (INVALID_RESOURCE at /entry/299/name)"),
        "{complaint}"
    );
}

/// A recording of words, one message each other second.
fn recording(words: &[String]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let one = 1_u16.to_le_bytes().to_vec();
    // Its number, name, encoding and text.
    let schema = [one.clone(), text("std_msgs/msg/String"), text("ros2msg"), text("string data\n")];
    // Its number and that of the schema, the topic, the encoding, and no more.
    let channel = [one.clone(), one.clone(), text("/words"), text("cdr"), vec![0; 4]];
    let mut records = vec![(3_u8, schema.concat()), (4, channel.concat())];
    for (n, words) in (0_u64..).zip(words) {
        let time = ((1_780_000_000 + 2 * n) * 1_000_000_000).to_le_bytes().to_vec();
        let data = [vec![0, 1, 0, 0], text(&format!("{words}\0"))].concat();
        records.push((5, [one.clone(), vec![0; 4], time.clone(), time, data].concat()));
    }
    let mut file = b"\x89MCAP0\r\n".to_vec();
    for (opcode, bytes) in records {
        file.push(opcode);
        file.extend((bytes.len() as u64).to_le_bytes());
        file.extend(bytes);
    }
    file
}

#[test]
fn an_import_of_a_recording_that_stops_within_a_batch_says_what_is_in() {
    // Its resources are one batch, and take two requests.
    let robot = Robot::start("r1", |verb, parameters| {
        use std::sync::atomic::{AtomicU32, Ordering};
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        assert_eq!((verb, parameters), ("remember", "merge=true"));
        match REQUESTS.fetch_add(1, Ordering::SeqCst) {
            0 => Some(Ok(MERGED)),
            _ => Some(Err(r#"{"code":"INVALID_RESOURCE","message":"no","path":""}"#)),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words.mcap");
    let words: Vec<String> = (0..100).map(|n| format!("{n} {}", "x".repeat(8_000))).collect();
    std::fs::write(&file, recording(&words)).unwrap();
    let output = omir(&[&robot], &["import", file.to_str().unwrap(), "--json"]);
    assert_ends(&output, 3);
    let complaint = text(&output.stderr);
    assert!(complaint.contains("2 resources are acknowledged"), "{complaint}");
    let told = text(&output.stdout);
    assert!(told.contains("\"resources\": 100") && told.contains("\"added\": 1"), "{told}");
}

#[test]
fn a_busy_daemon_is_asked_again() {
    let robot = Robot::start("r1", |verb, _| {
        use std::sync::atomic::{AtomicU32, Ordering};
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        if verb == "status" {
            return Some(Ok("{}"));
        }
        assert_eq!(verb, "remember");
        match REQUESTS.fetch_add(1, Ordering::SeqCst) {
            0 => Some(Err(r#"{"code":"BUSY","message":"later","path":""}"#)),
            _ => Some(Ok(MERGED)),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drive.txt");
    std::fs::write(&file, "1311868163.0 0 0 0 0 0 0 1\n").unwrap();
    let file = file.to_str().unwrap();
    let output = omir(&[&robot], &["import", "--format", "tum", file, "--wait", "5", "--json"]);
    assert_ends(&output, 0);
    assert!(text(&output.stdout).contains("\"retries\": 1"), "{}", text(&output.stdout));
}

/// A robot that takes 40 resources at once, keeps one of two, and refuses the Entity `no`.
fn importer() -> Robot {
    Robot::start("r1", |verb, parameters| match (verb, parameters) {
        ("status", _) => {
            Some(Ok(r#"{"import":{"maxBytes":100000,"maxResources":40,"maxResourceBytes":1000}}"#))
        }
        ("remember", "merge=true") => Some(Ok(MERGED)),
        ("remember", "merge=overwrite") => {
            Some(Err(r#"{"code":"INVALID_RESOURCE","message":"no","path":"/entry/0/name"}"#))
        }
        _ => Some(Err(MISSING)),
    })
}

fn written(folder: &tempfile::TempDir, name: &str, entries: &[String]) -> String {
    let file = folder.path().join(name);
    let bundle = format!(
        r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{}]}}"#,
        entries.join(",")
    );
    std::fs::write(&file, bundle).unwrap();
    file.to_str().unwrap().to_owned()
}

fn entities(count: usize) -> Vec<String> {
    let entity = |n| format!(r#"{{"resourceType":"Entity","id":"e{n}","name":"n"}}"#);
    (0..count).map(entity).collect()
}

#[test]
fn an_import_tells_what_became_of_each_file() {
    let robot = importer();
    let folder = tempfile::tempdir().unwrap();
    let mut twice = entities(2);
    twice.push(twice[0].clone());
    let (one, two) = (written(&folder, "a.omir", &entities(2)), written(&folder, "b.omir", &twice));
    let output = omir(&[&robot], &["import", &one, &two]);
    assert_ends(&output, 0);
    let line = |file: &str| format!("{file}: 1 added, 1 kept (not newer than the store's)\n");
    assert_eq!(text(&output.stdout), line(&one) + &line(&two));
    let remarks = text(&output.stderr);
    assert!(remarks.contains("kept MemoryRecord/m; the higher version stays"), "{remarks}");
    assert!(remarks.contains("--overwrite"), "{remarks}");
    assert!(remarks.contains("b.omir: 1 entry has the name of an earlier one"), "{remarks}");

    let output = omir(&[&robot], &["import", "--json", &one]);
    assert_ends(&output, 0);
    let out = text(&output.stdout);
    for part in [r#""files""#, r#""added": 1"#, r#""keptRefs""#, r#""MemoryRecord/m""#] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));

    let output = omir(&[&robot], &["import", "--overwrite", &one]);
    assert_ends(&output, 1);
    assert!(text(&output.stderr).contains("Entity/e0: no"), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_imported_is_refused_before_anything_is_sent() {
    // Nobody listens: what is found wrong is found without a daemon.
    let folder = tempfile::tempdir().unwrap();
    let good = written(&folder, "good.omir", &entities(1));
    let bad = written(&folder, "bad.omir", &[r#"{"resourceType":"Entity","id":"e"}"#.to_owned()]);
    let output = omir(&[], &["import", "--connect", "tcp/127.0.0.1:1", &good, &bad]);
    assert_ends(&output, 2);
    let complaint = text(&output.stderr);
    assert!(complaint.contains("bad.omir: does not conform, nothing was sent"), "{complaint}");
    assert!(complaint.contains("E120 /entry/0"), "{complaint}");
    assert!(complaint.contains("omir validate"), "{complaint}");

    // Also the first file, which would fit, is not sent.
    let robot = importer();
    let many = written(&folder, "many.omir", &entities(41));
    let output = omir(&[&robot], &["import", &good, &many]);
    assert_ends(&output, 1);
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let complaint = text(&output.stderr);
    for part in ["41 resources", "40 resources at once", "Nothing was sent", "--in-parts"] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
    let output = omir(&[&robot], &["import", "--in-parts", &good, &many]);
    assert_ends(&output, 0);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let robot = Robot::start("r1", |_, _| Some(Ok(HIT)));
    let mut child = command(&[&robot], &["recall"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_timeline_into_a_closed_pipe_is_no_failure() {
    let robot = Robot::start("r1", |_, _| {
        Some(Ok(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"resourceType":"Entity",
            "id":"dock","name":"dock"}]}"#))
    });
    let export = ["export", "--format", "mcap", "-o", "-"];
    for words in [&export[..], &[&export[..], &["--uncompressed"]].concat()] {
        let output = command(&[&robot], words).stdout(nobody_reads()).output().unwrap();
        assert_ends(&output, 0);
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    }
    // A card that is full is one.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(&[&robot], &export).stdout(full).output().unwrap();
    assert_ends(&output, 2);
}

#[test]
fn wrong_usage_ends_with_two_and_prints_no_result() {
    for words in [&["recall", "--radius", "1"][..], &["bogus"], &["import", "/no/such.omir"]] {
        let output = omir(&[], words);
        assert_ends(&output, 2);
        assert!(output.stdout.is_empty());
    }
    let output = omir(&[], &["bogus", "--json"]);
    assert_ends(&output, 2);
    assert!(text(&output.stderr).starts_with(r#"{"code":"USAGE","#), "{}", text(&output.stderr));
}
