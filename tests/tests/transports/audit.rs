//! The audit line of a request over Zenoh: who asked for what, and how it ended. Invariant 37 of ARCHITECTURE.md.
//!
//! `serial/audit.rs` has the same over a cable.

use omird::engine::Engine;
use omird::protocols::Protocols;
use omird::router::Router;
use omird::router::testing::AuditLines;
use omird::zenoh::{Keys, Network, Service};
use omird_tests::process::{Client, Daemon, eventually, free_endpoint};
use omird_tests::session::{Session, TestClock, settings};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

/// A service whose audit lines are kept, and a client of it.
struct Scene {
    client: Client,
    audit: AuditLines,
    service: Option<Service>,
    _session: Session,
}

impl Scene {
    fn new(is_read_only: bool) -> Self {
        let mut settings = settings();
        settings.limits.max_payload_bytes = 2000;
        settings.read_only = is_read_only;
        let disk = std::sync::Arc::new(omird_tests::cut_disk::CutDisk::new());
        let session = Session::open_with(disk, &TestClock::new(), settings, None).unwrap();
        let engine: &Engine = &session;
        let audit = AuditLines::default();
        let router = Router::new(engine.clone(), [audit.sink()]);
        let access = Protocols::over(engine, "r1").access;
        let protocols = Protocols::routed(engine, "r1", access, router);
        let endpoint = free_endpoint();
        let network = Network { listen: Some(vec![endpoint.clone()]), ..Network::default() };
        let keys = Keys::new("omir", "r1");
        let service = Service::start(engine, &protocols, &keys, &network, 2).unwrap();
        let client = Client::connect(&endpoint);
        audit.take();
        Self { client, audit, service: Some(service), _session: session }
    }

    /// Waits for a line, which follows the answer.
    fn expect(&self, line: &str) {
        let mut lines = Vec::new();
        eventually(line, || {
            lines.extend(self.audit.take());
            !lines.is_empty()
        });
        assert_eq!(lines, [line]);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            service.stop();
        }
    }
}

#[test]
fn each_request_over_zenoh_leaves_one_line() {
    let scene = Scene::new(false);
    let client = &scene.client;
    let text = json!({"resourceType": "Entity", "id": "dock", "name": "dock"});
    let size = text.to_string().len();
    // Admitted: handed over to the writer, worked on by a reader, and streamed.
    client.ask_json("omir/r1/remember", &text).value();
    scene.expect(&format!("zenoh omir.remember {size} ok Entity/dock"));
    client.one("omir/r1/recall?q=dock", None).value();
    scene.expect("zenoh omir.recall 0 ok");
    client.ask("omir/r1/memory/**");
    scene.expect("zenoh omir.get 0 ok");
    client.put("omir/r1/memory/Entity/dock", r#"{"name": "quay"}"#);
    scene.expect("zenoh omir.put 16 ok Entity/dock");
    client.delete("omir/r1/memory/Entity/*");
    scene.expect("zenoh omir.delete 0 ok Entity/dock");

    // Refused by the router, and by the transport for the key.
    let large = json!({"resourceType": "Entity", "id": "large", "name": "x".repeat(2000)});
    assert_eq!(client.ask_json("omir/r1/remember", &large).code(), "TOO_LARGE");
    scene.expect(&format!("zenoh omir.remember {} TOO_LARGE", large.to_string().len()));
    assert_eq!(client.one("omir/*/forget?ref=Entity/dock", None).code(), "INVALID_QUERY");
    scene.expect("zenoh omir.forget 0 INVALID_QUERY");

    // Admitted, and failed: for the parameters, for the payload, and on the writer's thread.
    assert_eq!(client.one("omir/r1/explain?reff=Entity/dock", None).code(), "INVALID_QUERY");
    scene.expect("zenoh omir.explain 0 INVALID_QUERY");
    client.put("omir/r1/memory/Entity/dock", "no JSON");
    scene.expect("zenoh omir.put 7 INVALID_RESOURCE Entity/dock");
    assert_eq!(client.one("omir/r1/anchor?ref=MemoryRecord/none", None).code(), "NOT_FOUND");
    scene.expect("zenoh omir.anchor 0 NOT_FOUND MemoryRecord/none");
}

#[test]
fn a_change_in_read_only_mode_leaves_a_line_too() {
    let scene = Scene::new(true);
    let text = json!({"resourceType": "Entity", "id": "dock", "name": "dock"});
    assert_eq!(scene.client.ask_json("omir/r1/remember", &text).code(), "UNAUTHORIZED");
    scene.expect(&format!("zenoh omir.remember {} UNAUTHORIZED", text.to_string().len()));
    assert_eq!(scene.client.one("omir/r1/sweep", None).code(), "UNAUTHORIZED");
    scene.expect("zenoh omir.sweep 0 UNAUTHORIZED");
    scene.client.one("omir/r1/sweep?dryRun=true", None).value();
    scene.expect("zenoh omir.sweep 0 ok");
    scene.client.put("omir/r1/memory/Entity/dock", r#"{"name": "quay"}"#);
    scene.expect("zenoh omir.put 16 UNAUTHORIZED Entity/dock");
    scene.client.one("omir/r1/status", None).value();
    scene.expect("zenoh omir.status 0 ok");
}

/// They wait for each other on a thread of their own.
#[test]
fn each_delete_that_waits_at_a_stop_leaves_its_line() {
    const DELETES: usize = 200;
    let mut scene = Scene::new(false);
    let entity = |n: usize| json!({"resourceType": "Entity", "id": format!("e{n}"), "name": "e"});
    for n in 0..40 {
        scene.client.ask_json("omir/r1/remember", &entity(n)).value();
    }
    scene.audit.take();
    for _ in 0..DELETES {
        scene.client.delete("omir/r1/memory/**");
    }
    // It comes behind them.
    scene.client.one("omir/r1/recall", None).value();
    scene.service.take().unwrap().stop();
    let lines = scene.audit.take();
    let deletes = lines.iter().filter(|line| line.starts_with("zenoh omir.delete 0 "));
    assert_eq!(deletes.count(), DELETES, "{lines:?}");
}

/// Everybody in one file: who was refused, who changed what; and nothing of what it was.
#[test]
fn the_file_names_callers_and_references_and_holds_no_contents_and_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("log/audit.jsonl"));
    let configuration = folder.path().join("omird.toml");
    let text = format!("[access]\nrequire = true\n[audit]\nfile = {:?}\n", file.to_str().unwrap());
    std::fs::write(&configuration, text).unwrap();
    let more = ["--config", configuration.to_str().unwrap()];
    let daemon = Daemon::start(PROGRAM, &data, "r1", &more);
    let token = std::fs::read_to_string(data.join("keys/local.token")).unwrap();
    let nobody = Client::connect(&daemon.endpoint);
    let (owner, guesser) = (nobody.with_token(token.trim()), nobody.with_token("omird_plugh"));

    let cups: Vec<Value> = (0..20)
        .map(|n| json!({"resourceType": "Entity", "id": format!("cup{n}"), "name": "xyzzy"}))
        .collect();
    owner.ask_json("omir/r1/remember", &json!(cups)).value();
    owner.one("omir/r1/recall?q=xyzzy", None).value();
    assert_eq!(guesser.one("omir/r1/recall?q=xyzzy", None).code(), "UNAUTHENTICATED");
    assert_eq!(nobody.one("omir/r1/forget?ref=Entity/cup0", None).code(), "UNAUTHENTICATED");
    guesser.put("omir/r1/memory/Entity/cup0", r#"{"name": "xyzzy"}"#);
    nobody.delete("omir/r1/memory/**");
    owner.one("omir/r1/forget?ref=Entity/cup1,Entity/cup2", None).value();
    let status = || owner.one("omir/r1/status", None).value()["audit"].clone();
    eventually("all is written", || status()["written"].as_u64() >= Some(6));
    assert_eq!((&status()["dropped"], &status()["trouble"]), (&json!(0), &Value::Null));
    // Nothing but reads came since.
    assert!(daemon.stop().success());

    let text = std::fs::read_to_string(&file).unwrap();
    for never in ["xyzzy", "plugh", token.trim()] {
        assert!(!text.contains(never), "{never} in {text}");
    }
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut told: Vec<String> = lines
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            assert_eq!((text("transport"), text("protocol")), ("zenoh".into(), "omir".into()));
            let names: Vec<_> =
                line["refs"].as_array().unwrap().iter().map(Value::to_string).collect();
            let names = if names.len() > 2 { names.len().to_string() } else { names.join(" ") };
            let count = &line["count"];
            format!("{} {} {} {count}: {names}", text("caller"), text("method"), text("outcome"))
        })
        .collect();
    told.sort();
    let expected = [
        "? delete UNAUTHENTICATED 0: ",
        "? forget UNAUTHENTICATED 0: ",
        r#"? put UNAUTHENTICATED 1: "Entity/cup0""#,
        "? recall UNAUTHENTICATED 0: ",
        r#"local forget ok 2: "Entity/cup1" "Entity/cup2""#,
        "local remember ok 20: 16",
    ];
    assert_eq!(told, expected);
}

/// Whoever guesses neither fills the disk nor holds up others.
#[test]
fn wrong_tokens_by_the_thousand_cost_others_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("audit.jsonl"));
    let configuration = folder.path().join("omird.toml");
    let text = format!(
        "[access]\nrequire = true\n[audit]\nfile = {:?}\nmax_bytes = \"16KiB\"\nkeep = 2\n",
        file.to_str().unwrap()
    );
    std::fs::write(&configuration, text).unwrap();
    let more = ["--config", configuration.to_str().unwrap()];
    let daemon = Daemon::start(PROGRAM, &data, "r1", &more);
    let token = std::fs::read_to_string(data.join("keys/local.token")).unwrap();
    let nobody = Client::connect(&daemon.endpoint);
    let owner = nobody.with_token(token.trim());
    for n in 0..5000 {
        nobody.with_token(&format!("omird_{n:043}")).delete("omir/r1/memory/**");
    }
    let cup = json!({"resourceType": "Entity", "id": "cup", "name": "cup"});
    owner.ask_json("omir/r1/remember", &cup).value();
    let status = || owner.one("omir/r1/status", None).value().clone();
    eventually("all are counted", || status()["rejected"] == json!(5000));
    let passed_over = status()["audit"]["passedOver"].as_u64().unwrap();
    assert!(passed_over > 3000, "{passed_over}");
    assert_eq!(owner.one("omir/r1/recall?q=cup", None).value()["total"], 1);
    assert!(daemon.stop().success());
    let mut files = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().starts_with("audit.jsonl") {
            assert!(entry.metadata().unwrap().len() <= 16 << 10, "{entry:?}");
            files += 1;
        }
    }
    assert_eq!(files, 3);
    let newest = std::fs::read_to_string(&file).unwrap();
    assert!(newest.contains("\"remember\""), "a change is not passed over: {newest}");
}
