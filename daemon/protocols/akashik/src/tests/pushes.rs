//! Notifications.

use super::*;
use crate::Push;

fn heard(rig: &Rig) -> (Arc<Mutex<Vec<Push>>>, crate::Listening) {
    let heard: Arc<Mutex<Vec<Push>>> = Arc::default();
    let keep = heard.clone();
    let listening =
        rig.akashik.pushes().listen(move |push| keep.lock().unwrap().push(push.clone()));
    (heard, listening)
}

fn subscribe(rig: &Rig, agent: &str, more: &str) -> String {
    let payload = format!(r#"{{"action":"subscribe","subscription":{{{more}}}}}"#);
    text(&rig.ask(agent, "SUBSCRIBE", &payload), "/subscription_id").to_owned()
}

#[test]
fn each_unit_is_told_of_once_and_in_order() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let id = subscribe(&rig, "b", r#""events":["memory.recorded"]"#);
    let (heard, _listening) = heard(&rig);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let rig = &rig;
            scope.spawn(move || {
                for n in 0..50 {
                    let payload = unit(&format!("Place {thread} has mark {n}."), "");
                    let body = envelope(&format!("{thread}-{n}"), "a", "RECORD", None, 0, &payload);
                    assert_eq!(rig.send(&with(4), &MESSAGE, &body, &[]).status, 201);
                }
            });
        }
    });
    let heard = heard.lock().unwrap();
    let epochs: Vec<u64> = heard
        .iter()
        .filter(|push| push.event == "memory.recorded")
        .map(|push| push.epoch)
        .collect();
    assert_eq!(epochs.len(), 200);
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]));
    let first = value(heard[0].body.as_bytes());
    assert_eq!(
        (text(&first, "/subscription_id"), text(&first, "/event")),
        (id.as_str(), "memory.recorded")
    );
    assert!(!text(&first, "/memory_unit_id").is_empty());
}

#[test]
fn where_anybody_may_listen_no_content_is_told_of_an_agent_with_a_token() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    let caller = token("t", &["c"], &[AGENT]);
    let join = envelope("c-1", "c", "REGISTER", None, 0, r#"{"id":"c","role":"planner"}"#);
    assert_eq!(rig.send(&caller, &MESSAGE, &join, &[]).status, 201);
    let wish = r#"{"action":"subscribe","subscription":{"events":["memory.recorded"]}}"#;
    subscribe(&rig, "b", r#""events":["memory.recorded"]"#);
    let wish = envelope("c-2", "c", "SUBSCRIBE", None, 0, wish);
    assert_eq!(rig.send(&caller, &MESSAGE, &wish, &[]).status, 201);
    let (heard, _listening) = heard(&rig);
    rig.record("a", "The safe is behind the shelf.", "");
    let heard = heard.lock().unwrap();
    let of = |agent: &str| heard.iter().find(|push| &*push.agent_id == agent).unwrap();
    assert_eq!(of("b").body, of("b").open_body, "anybody may ask as it");
    let [body, open] = [&of("c").body, &of("c").open_body].map(|body| value(body.as_bytes()));
    assert!(text(&body, "/summary").contains("safe"), "{body}");
    assert_eq!(text(&open, "/summary"), "memory.recorded");
    assert_eq!(text(&open, "/memory_unit_id"), text(&body, "/memory_unit_id"));
}

#[test]
fn nobody_is_told_of_what_it_may_not_see() {
    let rig = Rig::new();
    rig.join(&["lead", "a", "b"]);
    subscribe(
        &rig,
        "b",
        r#""events":["memory.recorded","session.paused","handoff.incoming","agent.joined"]"#,
    );
    let (heard, _listening) = heard(&rig);
    let made = rig.ask("lead", "SESSION", r#"{"action":"create","goal":"g","members":["a"]}"#);
    let id = text(&made, "/session/id").to_owned();
    rig.ask_in("a", 4, Some(&id), "RECORD", &unit("The hall is full.", ""));
    rig.ask("lead", "SESSION", &format!(r#"{{"action":"pause","session_id":"{id}"}}"#));
    let draft = r#"{"mode":"draft","type":"finding","content":"x","intent":{"purpose":"p"}}"#;
    rig.ask("a", "RECORD", draft);
    assert!(heard.lock().unwrap().is_empty());
    rig.join(&["c"]);
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn relevance_and_gaps_hold_notifications_back() {
    let rig = Rig::new();
    rig.join(&["a", "b"]);
    subscribe(&rig, "b", r#""events":["memory.recorded"],"min_relevance":0.999"#);
    let gap = subscribe(&rig, "b", r#""events":["task.state_changed"],"debounce_ms":60000"#);
    let (heard, _listening) = heard(&rig);
    rig.record("a", "The hall is full.", "");
    rig.ask(
        "a",
        "COORDINATE",
        r#"{"action":"create","task":{"title":"t","id":"t1","assignee":"a"}}"#,
    );
    rig.ask("a", "COORDINATE", r#"{"action":"start","task_id":"t1"}"#);
    {
        let heard = heard.lock().unwrap();
        assert_eq!(
            heard.iter().map(|push| &*push.subscription).collect::<Vec<_>>(),
            [gap.as_str()]
        );
    }
    rig.ask(
        "b",
        "SUBSCRIBE",
        &format!(r#"{{"action":"unsubscribe","subscription":{{"id":"{gap}"}}}}"#),
    );
    assert_eq!(
        rig.fault(
            "b",
            "SUBSCRIBE",
            &format!(r#"{{"action":"unsubscribe","subscription":{{"id":"{gap}"}}}}"#)
        ),
        "SUBSCRIPTION_NOT_FOUND"
    );
    rig.ask("a", "COORDINATE", r#"{"action":"create","task":{"title":"t","id":"t2"}}"#);
    assert_eq!(heard.lock().unwrap().len(), 1);
}
