//! Zenoh's access control before a real daemon: the example of docs/keys.md, as it stands there, closes what it says it
//! closes, and a rule that denies one key is not got round by a wildcard.
//!
//! Invariant 12 of ARCHITECTURE.md.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use omird_tests::process::{Answer, Client, Daemon, eventually};
use serde_json::{Value, json};
use zenoh::Wait;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const PAGE: &str = include_str!("../../../docs/keys.md");

/// The daemon `rover` with a file for Zenoh.
fn rover(data: &Path, zenoh_config: &str) -> Daemon {
    let file = data.join("zenoh.json5");
    std::fs::write(&file, zenoh_config).unwrap();
    let store = data.join("store");
    std::fs::create_dir(&store).unwrap();
    Daemon::start(PROGRAM, &store, "rover", &["--zenoh-config", file.to_str().unwrap()])
}

/// Connects as somebody; nothing, if that is refused.
fn client(daemon: &Daemon, user: Option<&str>) -> Option<Client> {
    let mut config = zenoh::Config::default();
    let mut set = |key: &str, value: String| config.insert_json5(key, &value).unwrap();
    set("mode", "\"client\"".to_owned());
    set("scouting/multicast/enabled", "false".to_owned());
    set("connect/endpoints", json!([daemon.endpoint]).to_string());
    if let Some(user) = user {
        set("transport/auth/usrpwd/user", format!("{user:?}"));
        set("transport/auth/usrpwd/password", format!("\"{user}'s password\""));
    }
    Some(Client { session: zenoh::open(config).wait().ok()?, token: None })
}

/// Collects the replies of a moment: a query that is denied is not answered.
fn soon(client: &Client, selector: &str, payload: Option<&Value>) -> Vec<Answer> {
    let mut get = client.session.get(selector).timeout(Duration::from_secs(3));
    if let Some(payload) = payload {
        get = get.payload(payload.to_string()).encoding("application/json");
    }
    let replies = get.wait().unwrap();
    let answers = std::iter::from_fn(|| replies.recv().ok());
    let decoded = answers.filter_map(|reply| match reply.result() {
        Ok(sample) => {
            let value = serde_json::from_slice(&sample.payload().to_bytes()).unwrap();
            Some(Answer::Ok(sample.key_expr().to_string(), value))
        }
        // Zenoh's own, such as `Timeout`, are no JSON.
        Err(error) => serde_json::from_slice(&error.payload().to_bytes()).ok().map(Answer::Err),
    });
    decoded.collect()
}

fn entity(id: &str) -> Value {
    json!({"resourceType": "Entity", "id": id, "name": id})
}

#[test]
fn the_example_of_the_page_denies_all_that_it_does_not_name() {
    let example = PAGE.split("```json5\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let users = folder.path().join("users");
    let lines =
        ["viewer", "operator", "stranger"].map(|name| format!("{name}:{name}'s password\n"));
    std::fs::write(&users, lines.concat()).unwrap();
    assert!(example.contains("\"/etc/omird/users\""), "{example}");
    let example = example.replace("/etc/omird/users", users.to_str().unwrap());
    let daemon = rover(folder.path(), &example);

    let operator = client(&daemon, Some("operator")).unwrap();
    operator.ask_json("omir/rover/remember", &json!([entity("hall"), entity("lift")])).value();
    let viewer = client(&daemon, Some("viewer")).unwrap();
    let (sender, events) = mpsc::channel();
    let _subscriber = viewer
        .session
        .declare_subscriber("omir/rover/event/**")
        .callback(move |sample| drop(sender.send(sample.key_expr().to_string())))
        .wait()
        .unwrap();
    assert_eq!(viewer.one("omir/rover/recall?q=hall", None).value()["total"], 1);
    assert_eq!(viewer.one("omir/*/recall?q=hall", None).value()["total"], 1);
    assert_eq!(viewer.one("omir/rover/status", None).value()["robot"], "rover");
    assert_eq!(viewer.ask("omir/rover/memory/**").len(), 2);
    let alive = viewer.session.liveliness().get("omir/*/alive").wait().unwrap();
    assert_eq!(std::iter::from_fn(|| alive.recv().ok()).count(), 1);
    for (selector, payload) in [
        ("omir/rover/remember", Some(entity("door"))),
        ("omir/rover/forget?ref=Entity/hall", None),
        ("omir/*/forget?ref=Entity/hall", None),
        ("**/forget?ref=Entity/hall", None),
        ("omir/rover/compact?scope=all", None),
        ("omir/rover/backup", None),
    ] {
        let answers = soon(&viewer, selector, payload.as_ref());
        assert_eq!(answers, [], "{selector}");
    }
    viewer.put("omir/rover/memory/Entity/hall", r#"{"name": "a viewer's hall"}"#);
    for key in ["omir/rover/memory/Entity/hall", "omir/rover/memory/**", "omir/*/memory/**", "**"] {
        viewer.session.delete(key).wait().unwrap();
    }
    viewer.put("omir/rover/event/forgotten/Entity/hall", "");
    // The viewer's puts have arrived once its later query is answered.
    viewer.one("omir/rover/status", None).value();
    assert!(client(&daemon, None).is_none(), "who is that?");
    let stranger = client(&daemon, Some("stranger")).unwrap();
    for selector in ["omir/rover/status", "omir/*/recall", "omir/rover/memory/**"] {
        assert_eq!(soon(&stranger, selector, None), [], "{selector}: nothing allows it");
    }
    let left = operator.one("omir/rover/export", None);
    let left = left.value()["entry"].as_array().unwrap();
    let names: Vec<&Value> = left.iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["hall", "lift"], "a viewer changes nothing");
    eventually("the viewer hears what happens", || {
        operator.ask_json("omir/rover/remember", &entity("ramp")).value();
        operator.one("omir/rover/forget?ref=Entity/ramp", None).value();
        events.try_iter().any(|key| key == "omir/rover/event/forgotten/Entity/ramp")
    });
}

#[test]
fn a_denied_key_is_not_reached_by_a_wildcard() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = rover(
        folder.path(),
        r#"{ access_control: {
            enabled: true,
            default_permission: "allow",
            rules: [
                { id: "no forgetting", permission: "deny", flows: ["ingress"], messages: ["query"],
                  key_exprs: ["omir/rover/forget"] },
                { id: "no deleting", permission: "deny", flows: ["ingress"], messages: ["delete"],
                  key_exprs: ["omir/rover/memory/**"] },
            ],
            subjects: [{ id: "everybody" }],
            policies: [{ rules: ["no forgetting", "no deleting"], subjects: ["everybody"] }],
        } }"#,
    );
    let client = client(&daemon, None).unwrap();
    client.ask_json("omir/rover/remember", &entity("hall")).value();
    assert_eq!(soon(&client, "omir/rover/forget?ref=Entity/hall", None), []);
    for wide in ["omir/*/forget", "**/forget", "omir/**/forget", "omir/rove$*/forget", "*/*/forget"]
    {
        let answers = soon(&client, &format!("{wide}?ref=Entity/hall"), None);
        assert!(!answers.is_empty(), "{wide}");
        assert!(answers.iter().all(|answer| answer.code() == "INVALID_QUERY"), "{answers:?}");
    }
    for wide in ["omir/rover/memory/**", "omir/*/memory/**", "**/memory/**", "omir/**", "**"] {
        client.session.delete(wide).wait().unwrap();
    }
    assert_eq!(client.ask("omir/rover/memory/**").len(), 1, "nothing is gone");
}
