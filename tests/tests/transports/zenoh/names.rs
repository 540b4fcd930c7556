//! Names of robots: the exact name for a change, several robots, and several of one name.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use omird_tests::process::{Answer, Client, Daemon, eventually, free_endpoint, session};
use serde_json::{Value, json};
use zenoh::Wait;
use zenoh::sample::SampleKind;

use crate::zenoh::{PROGRAM, entity, record, rig};

#[test]
fn only_a_named_operation_is_meant() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.ask_json("omir/r1/remember", &json!([entity("e"), record("a", "x", [0.0; 3])]));
    // A network browser, or somebody who deletes everything a network holds.
    for selector in ["**?ref=Entity/e", "omir/r1/*?ref=Entity/e", "omir/**?ref=MemoryRecord/a"] {
        client.ask(selector);
    }
    client.session.delete("**").wait().unwrap();
    assert_eq!(client.ask("omir/**").len(), 2, "as a storage it answers, and nothing is gone");
}

/// Zenoh's access control denies keys: what denies `omir/r1/forget` lets `omir/*/forget` pass.
#[test]
fn what_changes_something_answers_to_the_exact_name_only() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.ask_json("omir/r1/remember", &json!([entity("e"), record("a", "x", [0.0; 3])]));
    for robot in ["omir/*", "omir/**", "**", "*/r1", "omir/r$*"] {
        for (operation, parameters) in [
            ("remember", ""),
            ("remember", "merge=true"),
            ("forget", "ref=Entity/e"),
            ("anchor", "ref=MemoryRecord/a"),
            ("feedback", "ref=MemoryRecord/a;outcome=confirmed"),
            ("compact", ""),
            ("sweep", ""),
            ("sweep", "dryRun=true"),
            ("rebase", "undo=MemoryRecord/a"),
            ("backup", ""),
            ("backup", "segment=1"),
        ] {
            let asked = format!("{robot}/{operation}?{parameters}");
            let payload = (operation == "remember")
                .then(|| (entity("f").to_string().into_bytes(), "application/json"));
            let answer = client.one(&asked, payload);
            assert_eq!(answer.code(), "INVALID_QUERY", "{asked}");
            let Answer::Err(error) = &answer else { unreachable!("it has a code") };
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(&format!("omir/r1/{operation}")), "{asked}: {message}");
        }
        // Reading is meant for a whole fleet.
        for operation in ["recall?q=x", "status", "export", "explain?ref=Entity/e"] {
            client.one(&format!("{robot}/{operation}"), None).value();
        }
    }
    let there = client.ask("omir/*/memory/**");
    assert_eq!(there.len(), 2, "nothing was changed: {there:?}");
    assert!(there.iter().all(|answer| answer.value()["decay"]["anchored"] != true));
    let status = client.one("omir/r1/status", None);
    assert_eq!(status.value()["disk"]["segments"], 0, "a list of segments seals");
}

#[test]
fn a_delete_of_all_that_matches_names_the_robot() {
    let rig = rig(&[]);
    let client = &rig.client;
    client.ask_json("omir/r1/remember", &json!([entity("e"), entity("f")]));
    let (events, refused) = mpsc::channel();
    let _subscriber = client
        .session
        .declare_subscriber("omir/r1/event/rejected/unknown/unknown")
        .callback(move |sample| {
            // A DELETE of `**` comes here as well.
            if sample.kind() == SampleKind::Put {
                let _ = events.send(sample);
            }
        })
        .wait()
        .unwrap();
    client.wait_until_subscribed("r1");
    for key in ["omir/*/memory/**", "**/memory/**", "omir/r1/*/Entity/e", "omir/**", "**"] {
        client.session.delete(key).wait().unwrap();
        let said = refused.recv_timeout(Duration::from_secs(10)).expect("it is refused");
        let error: Value = ciborium::from_reader(&*said.payload().to_bytes()).unwrap();
        assert_eq!(error["code"], "INVALID_QUERY", "{key}: {error}");
        assert!(error["message"].as_str().unwrap().contains("omir/r1/memory/"), "{key}: {error}");
    }
    assert_eq!(client.ask("omir/r1/memory/**").len(), 2);
    client.session.delete("omir/r1/memory/Entity/*").wait().unwrap();
    assert!(client.ask("omir/r1/memory/**").is_empty());
}

#[test]
fn two_robots_each_give_their_own_answer_through_a_router_that_comes_and_goes() {
    let router_at = free_endpoint();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let daemons: Vec<Daemon> = ["r1", "r2"]
        .iter()
        .zip(&folders)
        .map(|(robot, data)| Daemon::start(PROGRAM, data.path(), robot, &["--connect", &router_at]))
        .collect();
    for (robot, daemon) in ["r1", "r2"].iter().zip(&daemons) {
        Client::connect(&daemon.endpoint)
            .ask_json(&format!("omir/{robot}/remember"), &record("a", "hello", [0.0; 3]));
    }
    // The router comes after the daemons, goes, and comes back.
    for _ in 0..2 {
        let router = session("router", &[&router_at], &[]);
        let client = Client::connect(&router_at);
        let mut robots = BTreeMap::new();
        eventually("both robots answer", || {
            robots = client
                .ask("omir/*/recall?q=hello")
                .into_iter()
                .filter_map(|answer| match answer {
                    Answer::Ok(key, value) => Some((key, value["total"].as_u64()?)),
                    Answer::Err(_) => None,
                })
                .collect();
            robots.len() == 2
        });
        assert_eq!(robots["omir/r1/recall"], 1);
        assert_eq!(robots["omir/r2/recall"], 1);
        client.session.close().wait().unwrap();
        router.close().wait().unwrap();
    }
}

#[test]
fn two_robots_of_one_name_say_so() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let one = Daemon::start(PROGRAM, folders[0].path(), "r1", &[]);
    let client = Client::connect(&one.endpoint);
    let hall = json!({"resourceType": "Entity", "id": "hall", "name": "hall"});
    client.ask_json("omir/r1/remember", &hall);
    let heard = || {
        let statuses = client.ask("omir/r1/status").into_iter();
        let heard = statuses.map(|status| status.value()["namesakeHeard"].clone());
        heard.filter(Value::is_string).count()
    };
    assert_eq!(heard(), 0, "its own events are nobody else's");
    let more = ["--connect", &one.endpoint];
    let _other = Daemon::start(PROGRAM, folders[1].path(), "r1", &more);
    let mut asked = 0;
    eventually("one of them hears the other", || {
        asked += 1;
        let door = json!({"resourceType": "Entity", "id": format!("door{asked}"), "name": "door"});
        client.send("omir/r1/remember", Some((door.to_string().into(), "application/json")));
        heard() > 0
    });
}

/// Whoever may publish can announce in any name.
#[test]
fn an_event_that_somebody_made_up_is_no_namesake() {
    let rig = rig(&[]);
    let client = &rig.client;
    let _token = client.session.liveliness().declare_token("omir/r1/alive").wait().unwrap();
    for round in 0..30 {
        client.put("omir/r1/event/recorded/Entity/hall", r#"{"name": "hall"}"#);
        let status = client.one("omir/r1/status", None);
        assert!(status.value()["namesakeHeard"].is_null(), "round {round}: {status:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
