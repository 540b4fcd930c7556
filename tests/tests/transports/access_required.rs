//! Who is let in over Zenoh, with real tokens before a real daemon: with `access.require` nothing is known without one.
//! Invariant 38 of ARCHITECTURE.md.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use omird_access::{Grant, TokenStore};
use omird_tests::process::{Answer, Client, Daemon, eventually, session};
use serde_json::{Value, json};
use zenoh::Wait;
use zenoh::pubsub::Subscriber;
use zenoh::sample::Sample;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
/// A word that stands in each memory, and so in nothing that anybody may hear.
const SECRET: &str = "xyzzy";

/// A daemon, and a client for each kind of caller.
struct Rig {
    daemon: Daemon,
    nobody: Client,
    guesser: Client,
    reader: Client,
    writer: Client,
    admin: Client,
    owner: Client,
    is_closed: bool,
    _folder: tempfile::TempDir,
}

fn added(data: &Path, name: &str, scopes: &[&str], random: u8) -> String {
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let grant = Grant { name: name.to_owned(), scopes, ..Grant::default() };
    TokenStore::of(data).add(grant, [random; 32], None).unwrap().as_str().to_owned()
}

impl Rig {
    fn start(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("keys")).unwrap();
        let file = folder.path().join("omird.toml");
        std::fs::write(&file, configuration).unwrap();
        let reader = added(&data, "reader", &["omir:read"], 1);
        let writer = added(&data, "writer", &["omir:write"], 2);
        let admin = added(&data, "admin", &["omir:admin"], 3);
        let daemon = Daemon::start(PROGRAM, &data, "r1", &["--config", file.to_str().unwrap()]);
        let local = std::fs::read_to_string(data.join("keys/local.token")).unwrap();
        let nobody = Client::connect(&daemon.endpoint);
        let wrong = reader.replace('A', "B").replace('E', "F");
        assert_ne!(wrong, reader);
        let rig = Self {
            guesser: nobody.with_token(&wrong),
            reader: nobody.with_token(&reader),
            writer: nobody.with_token(&writer),
            admin: nobody.with_token(&admin),
            owner: nobody.with_token(local.trim()),
            nobody,
            is_closed: configuration.contains("require = true"),
            daemon,
            _folder: folder,
        };
        let memories = json!([
            {"resourceType": "Entity", "id": "hall", "name": SECRET},
            {"resourceType": "MemoryRecord", "id": "a", "content": SECRET},
        ]);
        rig.owner.ask_json("omir/r1/remember", &memories).value();
        rig
    }

    fn closed() -> Self {
        Self::start("[access]\nrequire = true\n")
    }

    fn rejected(&self) -> u64 {
        self.owner.one("omir/r1/status", None).value()["rejected"].as_u64().unwrap()
    }

    /// Returns the names that are stored.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .owner
            .ask("omir/r1/memory/**")
            .iter()
            .map(|answer| match answer {
                Answer::Ok(key, _) => key.trim_start_matches("omir/r1/memory/").to_owned(),
                Answer::Err(error) => panic!("{error}"),
            })
            .collect();
        names.sort();
        names
    }
}

/// What may be asked, with the scope that it takes. In an order in which the owner may ask it all.
const QUESTIONS: [(&str, &str, &str); 24] = [
    ("omir/r1/recall?q=hall", "", "omir:read"),
    ("omir/*/recall", "", "omir:read"),
    ("omir/r1/recall", r#"{"q": "hall"}"#, "omir:read"),
    ("omir/r1/export", "", "omir:read"),
    ("omir/*/export", "", "omir:read"),
    ("omir/r1/explain?ref=MemoryRecord/a", "", "omir:read"),
    ("**/explain?ref=MemoryRecord/a", "", "omir:read"),
    ("omir/r1/memory/Entity/hall", "", "omir:read"),
    ("omir/r1/memory/Entity/*", "", "omir:read"),
    ("omir/r1/memory/Entity/ha$*", "", "omir:read"),
    ("omir/r1/memory/Entity/**?_time=[now(-1h)..]", "", "omir:read"),
    ("omir/*/memory/Entity/hall", "", "omir:read"),
    ("*/*/*/Entity/*", "", "omir:read"),
    ("omir/r1/remember", r#"{"resourceType":"Entity","id":"hall","name":"xyzzy"}"#, "omir:write"),
    (
        "omir/r1/remember?merge=true",
        r#"{"resourceType":"Entity","id":"hall","name":"xyzzy"}"#,
        "omir:write",
    ),
    ("omir/r1/anchor?ref=MemoryRecord/a", "", "omir:write"),
    ("omir/r1/feedback?ref=MemoryRecord/a;outcome=confirmed", "", "omir:write"),
    ("omir/r1/rebase", r#"{"keyframes":{"k":{"position":[0,0,0]}}}"#, "omir:write"),
    ("omir/r1/forget?ref=Entity/none", "", "omir:write"),
    ("omir/r1/compact", "", "omir:admin"),
    ("omir/r1/sweep?dryRun=true", "", "omir:admin"),
    ("omir/r1/sweep", "", "omir:admin"),
    ("omir/r1/backup", "", "omir:admin"),
    ("omir/r1/backup?segment=1;length=16", "", "omir:admin"),
];

fn ask(client: &Client, selector: &str, payload: &str) -> Answer {
    let payload = (!payload.is_empty()).then(|| (payload.as_bytes().to_vec(), "application/json"));
    // Bytes of a segment are no document; that they came is enough.
    if selector.contains("segment=") {
        let replies = client.replies(selector, payload);
        assert_eq!(replies.len(), 1);
        return match replies[0].result() {
            Ok(sample) => Answer::Ok(String::new(), json!(sample.payload().len())),
            Err(error) => Answer::Err(serde_json::from_slice(&error.payload().to_bytes()).unwrap()),
        };
    }
    client.one(selector, payload)
}

#[test]
fn every_question_needs_a_token_with_its_scope() {
    let rig = Rig::closed();
    let before = rig.names();
    for (selector, payload, scope) in QUESTIONS {
        let holder = match scope {
            "omir:read" => &rig.reader,
            "omir:write" => &rig.writer,
            _ => &rig.admin,
        };
        for stranger in [&rig.nobody, &rig.guesser] {
            let answer = ask(stranger, selector, payload);
            assert_eq!(answer.code(), "UNAUTHENTICATED", "{selector}");
            assert!(!format!("{answer:?}").contains(SECRET), "{selector}: {answer:?}");
        }
        let others = [&rig.reader, &rig.writer, &rig.admin];
        for other in others.into_iter().filter(|other| !std::ptr::eq(*other, holder)) {
            let answer = ask(other, selector, payload);
            assert_eq!(answer.code(), "UNAUTHORIZED", "{selector}");
            assert!(format!("{answer:?}").contains(scope), "{selector}: {answer:?}");
        }
        ask(holder, selector, payload).value();
        ask(&rig.owner, selector, payload).value();
    }
    assert_eq!(rig.names(), before);
}

/// `**` means the memory keys, of whoever asks, and nothing else.
#[test]
fn a_network_browser_sees_that_there_is_a_daemon_and_no_more() {
    let rig = Rig::closed();
    let wide = ["**", "omir/**", "omir/r1/**", "omir/*/memory/**", "omir/r1/memory/**", "*/r1/**"];
    for selector in wide {
        for stranger in [&rig.nobody, &rig.guesser] {
            let answers = stranger.ask(selector);
            let codes: Vec<&str> = answers.iter().map(Answer::code).collect();
            assert_eq!(codes, ["UNAUTHENTICATED"], "{selector}: {answers:?}");
        }
        assert_eq!(rig.writer.one(selector, None).code(), "UNAUTHORIZED", "{selector}");
        let answers = rig.reader.ask(selector);
        assert_eq!(answers.len(), 2, "{selector}: {answers:?}");
        assert!(format!("{answers:?}").contains(SECRET));
    }
    let alive = rig.nobody.session.liveliness().get("omir/*/alive").wait().unwrap();
    assert_eq!(std::iter::from_fn(|| alive.recv().ok()).count(), 1);
    for selector in ["omir/r1/status", "omir/*/status", "omir/r1/status?format=json"] {
        let told = rig.nobody.one(selector, None).value().clone();
        let version = env!("CARGO_PKG_VERSION");
        let expected = json!({"robot": "r1", "version": version, "access": {"requireToken": true}});
        assert_eq!(told, expected, "{selector}");
        assert_eq!(rig.guesser.one(selector, None).code(), "UNAUTHENTICATED");
        assert_eq!(rig.writer.one(selector, None).code(), "UNAUTHORIZED");
        assert!(rig.reader.one(selector, None).value()["counts"].is_object());
    }
}

#[test]
fn what_is_put_or_deleted_needs_a_token_with_its_scope() {
    let rig = Rig::closed();
    let names = rig.names();
    let record = r#"{"content": "xyzzy"}"#;
    let deletes = [
        "omir/r1/memory/Entity/hall",
        "omir/r1/memory/Entity/*",
        "omir/r1/memory/**",
        "omir/*/memory/**",
        "omir/**",
        "**",
    ];
    let before = rig.rejected();
    for (n, stranger) in [&rig.nobody, &rig.guesser, &rig.reader, &rig.admin].iter().enumerate() {
        stranger.put("omir/r1/memory/MemoryRecord/new", record);
        stranger.put("omir/r1/memory/MemoryRecord/a", record);
        stranger.put("omir/r1/memory/**", record);
        for key in deletes {
            stranger.delete(key);
        }
        let expected = before + 9 * (n as u64 + 1);
        // A put on `**` comes to the daemon once, as one on its own key does.
        eventually("each of them is refused, and counted", || rig.rejected() >= expected);
        assert_eq!(rig.rejected(), expected, "{n}");
    }
    assert_eq!(rig.names(), names);

    rig.writer.put("omir/r1/memory/MemoryRecord/new", record);
    eventually("it is there", || rig.names().len() == 3);
    rig.writer.delete("omir/r1/memory/MemoryRecord/*");
    eventually("they are gone", || rig.names() == ["Entity/hall"]);
    rig.writer.delete("omir/r1/memory/Entity/hall");
    eventually("it is gone", || rig.names().is_empty());
}

/// Everything that somebody without a token hears of the daemon.
struct Overheard {
    samples: mpsc::Receiver<Sample>,
    _subscriber: Subscriber<()>,
}

impl Overheard {
    fn by(client: &Client, key: &str) -> Self {
        let (sender, samples) = mpsc::channel();
        let subscriber = client.session.declare_subscriber(key);
        let subscriber = subscriber.callback(move |sample| drop(sender.send(sample)));
        Self { samples, _subscriber: subscriber.wait().unwrap() }
    }

    /// Returns key, payload and attachment of the next one that is not of a probe.
    fn next(&self) -> (String, Value, Option<String>) {
        loop {
            let sample = self.samples.recv_timeout(Duration::from_secs(30)).expect("an event");
            let key = sample.key_expr().as_str().trim_start_matches("omir/r1/event/").to_owned();
            if key.ends_with("/probe") {
                continue;
            }
            let payload = ciborium::from_reader(&*sample.payload().to_bytes()).unwrap();
            let attachment =
                sample.attachment().map(|said| String::from_utf8_lossy(&said.to_bytes()).into());
            return (key, payload, attachment);
        }
    }
}

#[test]
fn events_carry_references_and_no_contents() {
    let rig = Rig::closed();
    // A session of its own: it hears what the daemon says to others.
    let listener = Client::connect(&rig.daemon.endpoint);
    let events = Overheard::by(&listener, "omir/*/event/**");
    listener.wait_until_subscribed("r1");
    let door = |name: &str| json!({"resourceType": "Entity", "id": "door", "name": name});
    rig.owner.ask_json("omir/r1/remember", &door("xyzzy 1")).value();
    rig.owner.ask_json("omir/r1/remember", &door("xyzzy 2")).value();
    rig.owner.one("omir/r1/forget?ref=Entity/door", None).value();
    // Whoever may write and sends what is wrong: the message would quote it.
    rig.writer.put("omir/r1/memory/Entity/door", r#"{"xyzzy": 1}"#);
    rig.nobody.put("omir/r1/memory/Entity/hall", r#"{"name": "xyzzy 3"}"#);
    rig.reader.delete("omir/r1/memory/**");
    let told: Vec<_> = (0..6).map(|_| events.next()).collect();
    for (key, payload, attachment) in &told {
        assert!(!format!("{key} {payload}").contains(SECRET), "{key}: {payload}");
        assert_eq!(*attachment, None, "{key}");
    }
    // Changes are told in their order by one thread, and refusals by others, which may be sooner.
    let (refused, changed): (Vec<_>, Vec<_>) =
        told.iter().partition(|(key, ..)| key.starts_with("rejected/"));
    let expected = ["recorded/Entity/door", "updated/Entity/door", "forgotten/Entity/door"];
    assert_eq!(changed.len(), expected.len());
    for (expected, (key, payload, _)) in expected.iter().zip(changed) {
        assert_eq!(key, expected);
        assert_eq!(*payload, json!({"ref": "Entity/door"}));
    }
    let codes: Vec<_> = refused
        .iter()
        .map(|(key, error, _)| (key.as_str(), error["code"].as_str().unwrap()))
        .collect();
    let expected = [
        ("rejected/Entity/door", "INVALID_RESOURCE"),
        ("rejected/Entity/hall", "UNAUTHENTICATED"),
        ("rejected/unknown/unknown", "UNAUTHORIZED"),
    ];
    let (mut codes, mut expected) = (codes, expected);
    codes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(codes, expected);
}

/// A token travels with each query and put, and Zenoh gives both to whoever has announced himself under their keys. Where no
/// token is required, it does: so this test can fail.
#[test]
fn nobody_else_is_sent_a_token() {
    const ANNOUNCED: [&str; 5] =
        ["**", "omir/**", "omir/*/recall", "omir/r1/**", "omir/r1/memory/**"];
    for (configuration, is_open) in [("[access]\nrequire = true\n", false), ("", true)] {
        let rig = Rig::start(configuration);
        let token = rig._folder.path().join("data/keys/local.token");
        let token = std::fs::read_to_string(token).unwrap();
        let clients = ANNOUNCED.iter().map(|announced| ("client", *announced, "client"));
        // Peers that hear of each other connect to each other, and to a router they send what nobody has asked for.
        let others = ["peer", "router"]
            .into_iter()
            .flat_map(|thief| ["client", "peer"].map(|victim| (thief, "omir/**", victim)));
        for (thief, announced, victim) in clients.chain(others) {
            let stolen = stolen(&rig, thief, announced, victim, token.trim());
            let has_token = stolen.iter().any(|(_, has_token)| *has_token);
            let what = format!("{thief} {announced} {victim}: {stolen:?}");
            match (is_open, thief) {
                (false, _) => assert!(!has_token, "{what}"),
                (true, "client") => assert!(has_token, "{what}"),
                // Zenoh decides if these two meet in time, where nothing is closed.
                (true, _) => {}
            }
        }
    }
}

fn meets(mode: &str, endpoint: &str) -> Client {
    let listen: &[&str] = if mode == "client" { &[] } else { &["tcp/127.0.0.1:0"] };
    Client { session: session(mode, listen, &[endpoint]), token: None }
}

/// Returns the keys of what a thief was sent while a victim asked and put, and whether a token was with it.
fn stolen(
    rig: &Rig,
    thief: &str,
    announced: &str,
    victim: &str,
    token: &str,
) -> Vec<(String, bool)> {
    let endpoint = &rig.daemon.endpoint;
    let thief = meets(thief, endpoint);
    let (sent, stolen) = mpsc::channel();
    let (queried, put) = (sent.clone(), sent);
    let queryable = thief.session.declare_queryable(announced).complete(true);
    let queryable = queryable.callback(move |query| {
        drop(queried.send((query.key_expr().to_string(), query.attachment().is_some())));
    });
    let _queryable = queryable.wait().unwrap();
    let subscriber = thief.session.declare_subscriber(announced).callback(move |sample| {
        let key = sample.key_expr().to_string();
        if !key.contains("/event/") {
            drop(put.send((key, sample.attachment().is_some())));
        }
    });
    let _subscriber = subscriber.wait().unwrap();
    // Its answer comes behind the announcements.
    thief.ask("omir/r1/status");
    let is_peer = victim == "peer";
    let victim = meets(victim, endpoint).with_token(token);
    if is_peer {
        // Time for others to come to it.
        std::thread::sleep(Duration::from_millis(500));
    }
    for selector in ["omir/r1/recall?q=hall", "omir/*/recall?q=hall", "omir/r1/memory/**"] {
        let answers = victim.ask(selector);
        // A query that goes to the thief goes to no other.
        let is_answered = answers.iter().any(|it| matches!(it, Answer::Ok(..)));
        assert!(is_answered || !rig.is_closed, "{selector}");
    }
    victim.put("omir/r1/memory/Entity/quay", format!(r#"{{"name": "{announced}"}}"#));
    let is_stored = || {
        let found = rig.owner.ask("omir/r1/memory/Entity/quay");
        found.iter().any(|it| matches!(it, Answer::Ok(_, value) if value["name"] == announced))
    };
    if rig.is_closed {
        eventually("it is stored", is_stored);
    }
    std::thread::sleep(Duration::from_millis(200));
    stolen.try_iter().collect()
}

/// As before there were tokens, for those who have none; and a token says who asks all the same.
#[test]
fn where_none_is_required_a_wrong_one_is_refused_and_a_right_one_bounds_its_holder() {
    let rig = Rig::start("");
    let listener = Client::connect(&rig.daemon.endpoint);
    let events = Overheard::by(&listener, "omir/*/event/**");
    listener.wait_until_subscribed("r1");
    let hall = r#"{"resourceType":"Entity","id":"hall","name":"quay"}"#;
    for (selector, payload, scope) in [
        ("omir/r1/recall?q=hall", "", "omir:read"),
        ("omir/r1/remember", hall, "omir:write"),
        ("omir/r1/sweep?dryRun=true", "", "omir:admin"),
        ("omir/r1/status", "", "omir:read"),
    ] {
        assert_eq!(ask(&rig.guesser, selector, payload).code(), "UNAUTHENTICATED", "{selector}");
        for (held, client) in [("omir:read", &rig.reader), ("omir:write", &rig.writer)] {
            let answer = ask(client, selector, payload);
            match held == scope {
                true => drop(answer.value()),
                false => assert_eq!(answer.code(), "UNAUTHORIZED", "{selector}"),
            }
        }
        ask(&rig.nobody, selector, payload).value();
    }
    let (key, payload, _) = events.next();
    assert_eq!((key.as_str(), &payload["name"]), ("updated/Entity/hall", &json!("quay")));
    for stranger in [&rig.guesser, &rig.reader] {
        stranger.delete("omir/r1/memory/Entity/hall");
        let (key, _, _) = events.next();
        assert_eq!(key, "rejected/Entity/hall");
    }
    rig.nobody.delete("omir/r1/memory/Entity/hall");
    assert_eq!(events.next().0, "forgotten/Entity/hall");
    // An attachment that is no token says nothing.
    let other =
        rig.nobody.session.get("omir/r1/recall").attachment("{\"trace\": 7}").wait().unwrap();
    assert!(other.recv().unwrap().result().is_ok());
}

#[test]
fn simulated_time_is_set_by_whoever_may_administer() {
    let rig = Rig::start("[access]\nrequire = true\n[clock]\nsource = \"simulated\"\n");
    let year = |rig: &Rig| {
        let status = rig.reader.one("omir/r1/status", None);
        status.value()["clock"]["now"].as_str().unwrap()[..4].to_owned()
    };
    let before = rig.rejected();
    for (n, stranger) in [&rig.nobody, &rig.guesser, &rig.reader, &rig.writer].iter().enumerate() {
        stranger.put("omir/r1/clock", "2031-01-01T00:00:00Z");
        eventually("it is refused", || rig.rejected() > before + n as u64);
        assert_ne!(year(&rig), "2031", "{n}");
    }
    rig.admin.put("omir/r1/clock", "2031-01-01T00:00:00Z");
    eventually("the time is set", || year(&rig) == "2031");
}
