//! What holds while others work, wait, forget or write what is none of ours, and on a card that has lost something.

use std::sync::atomic::{AtomicBool, Ordering};

use omir_core::confidence::{FeedbackOutcome, Weight};
use omir_core::json;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird_engine::{Change, Encoding};
use serde_json::json as js;

use crate::health::Indexer;
use crate::ids::Tenant;
use crate::testing::{Received, Rig, by_intent, caller, message, record, with};
use crate::{ExperienceSettings, FETCH, RECORD};

fn target(task: &str) -> Ref {
    Tenant::new("default").experience(task)
}

fn update(rig: &Rig, value: &Value) -> Received {
    let asked = message(&json::to_string(value), &[("on_duplicate", "update")]);
    rig.ask(&RECORD, &caller(None), asked)
}

fn stored(rig: &Rig, task: &str) -> Value {
    crate::shared::decoded(&rig.engine.get(&target(task)).unwrap().unwrap()).unwrap()
}

fn put(rig: &Rig, text: &str) {
    let change = rig.engine.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
    rig.engine.execute(change).unwrap();
}

fn uses(told: &Received) -> u64 {
    told.hint("nav2")["metadata"]["uses"].as_u64().unwrap()
}

/// Waits until the listener has seen what was written.
fn until(is_so: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "it never came");
        std::thread::yield_now();
    }
}

#[test]
fn an_update_keeps_what_the_memory_has_earned() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    rig.engine.execute(Change::Anchor(target("t-1"), true)).unwrap();
    for _ in 0..3 {
        let against = Change::Feedback(target("t-1"), FeedbackOutcome::Contradicted, Weight::ONE);
        rig.engine.execute(against).unwrap();
    }
    let failed = with(with(record("t-1"), "/result/success", false), "/request_id", "r2");
    assert_eq!(update(&rig, &failed).body["status"], "updated");
    let resource = stored(&rig, "t-1");
    assert_eq!(resource.pointer("/decay/anchored").and_then(Value::as_bool), Some(true));
    // The prior of a failure is 1 and 2; three contradictions go on.
    let number = |name: &str| resource.pointer(name).and_then(Value::as_f64);
    assert_eq!((number("/confidence/alpha"), number("/confidence/beta")), (Some(1.0), Some(5.0)));
}

#[test]
fn a_restart_counts_the_same_where_there_is_no_room_for_all() {
    let settings = ExperienceSettings { statistics_bytes: 6_000, ..Default::default() };
    let rig = Rig::with(settings);
    for at in 0..40 {
        // Later records ended earlier, so that neither order stands for the other.
        let end = format!("2026-05-{:02}T10:15:30Z", 28 - at % 28);
        rig.record(&with(record(&format!("t-{at}")), "/timestamps/finished_at", end));
    }
    let before = rig.by_intent("dock robot");
    assert!(uses(&before) < 40, "it is cut");
    let rig = rig.again();
    let after = rig.by_intent("dock robot");
    assert_eq!(after.hint("nav2")["usage_stats"], before.hint("nav2")["usage_stats"]);
    assert_eq!(uses(&after), uses(&before));
    // The first is in the table no more, and is found by its id all the same.
    let id = Tenant::new("default").experience_id("t-0");
    let told = rig.ask(&FETCH, &caller(None), message("", &[("task_id", &id)]));
    assert_eq!((told.status, &told.body["task_id"]), (200, &js!("t-0")));
    let told = rig.ask(&FETCH, &caller(None), message("", &[("task_id", "exp_000000000000")]));
    assert_eq!(told.status, 404);
}

#[test]
fn while_experiences_are_counted_nobody_waits() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let shared = &rig.experiences.0;
    shared.indexed(Indexer::Rebuilding);
    let began = std::time::Instant::now();
    assert_eq!(rig.by_intent("dock robot").status, 200);
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "5 s were allowed");
    // An id that is not counted yet may be there.
    let fetch = |name: &str| rig.ask(&FETCH, &caller(None), message("", &[("task_id", name)]));
    let told = fetch("exp_000000000000");
    assert_eq!((told.status, &told.body["code"]), (503, &js!("BUSY")));
    assert!(told.retry_after.is_some());
    assert_eq!(fetch("exp_672fd682598d").status, 200);
    // One that is overtaken is answered all the same.
    let waiting: Vec<_> = (0..10)
        .map(|at| {
            let value = with(record("t-2"), "/request_id", format!("r{at}"));
            rig.begin(&RECORD, &caller(None), message(&json::to_string(&value), &[]))
        })
        .collect();
    for told in waiting {
        assert!(matches!(told().status, 200 | 409));
    }
}

#[test]
fn what_counts_is_the_same_before_and_after_a_restart() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let body = stored(&rig, "t-1").get("extension").unwrap().clone();
    let body = json::to_string(&body);
    // The body of t-1 under the name of another task, and as an observation under the name of its own in another tenant.
    let other = target("t-2").id;
    let foreign = Tenant::new("b").experience("t-1").id;
    for (id, kind) in [(&other, "task"), (&foreign, "observation")] {
        put(
            &rig,
            &format!(
                r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"x","experienceType":"{kind}","extension":{body},
                "entityRefs":[{{"ref":"Entity/xt.default"}}]}}"#
            ),
        );
    }
    // Anything recorded after them is noted after them.
    rig.record(&record("t-3"));
    put(&rig, r#"{"resourceType":"MemoryRecord","id":"last","content":"x"}"#);
    let before = uses(&rig.by_intent("dock robot"));
    let rig = rig.again();
    assert_eq!((before, uses(&rig.by_intent("dock robot"))), (2, 2));
}

#[test]
fn experiences_are_found_when_somebody_forgot_what_they_refer_to() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let elsewhere = message(&json::to_string(&record("t-1")), &[]);
    rig.ask(&RECORD, &caller(Some("b")), elsewhere);
    let home = Tenant::new("default").entity();
    rig.engine.execute(Change::Forget(vec![home.clone()])).unwrap();
    let total = |told: &Received| told.body["metadata"]["total_experiences"].clone();
    let told = rig.by_intent("dock robot");
    assert_eq!((total(&told), uses(&told)), (1.into(), 1));
    let narrowed = by_intent("dock robots")
        .replace(r#""deadline_ms""#, r#""context":{"domain":"general"},"deadline_ms""#);
    assert_eq!(total(&rig.hints(&narrowed)), 1);
    let narrowed = narrowed.replace("general", "code");
    assert_eq!(rig.hints(&narrowed).status, 404);
    let rig = rig.again();
    let told = rig.by_intent("dock robot");
    assert_eq!((total(&told), uses(&told)), (1.into(), 1), "counted anew");
    let told = rig.record(&record("t-2"));
    assert_eq!(told.body["metadata"]["related_experiences"][0], "exp_672fd682598d");
    assert!(rig.engine.live_version(&home).is_some(), "it is made again");
    let told = rig.by_intent("dock the robot");
    assert_eq!((total(&told), uses(&told)), (2.into(), 2));
}

#[test]
fn a_candidate_that_changed_is_looked_for_again() {
    let rig = Rig::new();
    for task in ["t-1", "t-2"] {
        rig.record(&record(task));
    }
    let total = |told: &Received| told.body["metadata"]["total_experiences"].clone();
    assert_eq!(total(&rig.by_intent("dock robot")), js!(2));
    update(&rig, &with(record("t-1"), "/result/success", false));
    assert_eq!(total(&rig.by_intent("dock robot")), js!(2), "updated");
    rig.engine.execute(Change::Anchor(target("t-2"), true)).unwrap();
    assert_eq!(total(&rig.by_intent("dock robot")), js!(2), "anchored");
    // The kept candidates give no hint any more, and newer ones do.
    let rig = Rig::new();
    let bad = |task: &str| {
        let value = with(record(task), "/nodes_used/0/outcome", "failure");
        let value = with(value, "/result/success", false);
        with(value, "/result/summary", "lost")
    };
    let alone = with(with(bad("a"), "/title", "go"), "/intent", "on");
    rig.record(&alone);
    rig.by_intent("lost");
    for at in 0..3 {
        rig.record(&with(with(bad(&format!("b{at}")), "/title", "go"), "/intent", "on"));
    }
    let new = vec![
        json::from_slice(
            br#"{"type":"tool","ref":"lidar","outcome":"success"}"#,
            &Default::default(),
        )
        .unwrap(),
    ];
    rig.record(&with(with(record("c"), "/result/summary", "lost"), "/nodes_used", new));
    assert!(rig.by_intent("lost").refs().contains(&"lidar"));
}

#[test]
fn a_pattern_is_found_behind_many_of_another_domain() {
    let rig = Rig::new();
    rig.record(&with(record("old"), "/context/domain", "research"));
    rig.clock.advance(std::time::Duration::from_secs(86_400));
    for at in 0..300 {
        let value = with(record(&format!("t-{at}")), "/context/domain", "code");
        rig.record(&with(value, "/nodes_used", Vec::<bool>::new()));
    }
    let asked = r#"{"request_id":"h1","query_type":"similar_pattern","pattern":"pattern_dock","deadline_ms":30000,
        "context":{"domain":"research"}}"#;
    let told = rig.hints(asked);
    assert_eq!((told.status, &told.body["metadata"]["total_experiences"]), (200, &js!(1)));
    assert_eq!(told.body["metadata"]["pattern_match_score"], 1.0);
}

#[test]
fn an_entity_that_is_forgotten_meanwhile_is_no_fault_of_the_record() {
    let rig = Rig::new();
    let node = Tenant::new("default").node("tool", "nav2");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                let _ = rig.engine.execute(Change::Forget(vec![node.clone()]));
            }
        });
        let statuses: Vec<u16> =
            (0..60).map(|at| rig.record(&record(&format!("t-{at}"))).status).collect();
        is_done.store(true, Ordering::Release);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });
}

#[test]
fn an_expired_experience_is_there_until_it_is_forgotten_and_gives_no_hints() {
    let day = std::time::Duration::from_secs(86_400);
    let settings = ExperienceSettings { retention: Some(day), ..Default::default() };
    let rig = Rig::with(settings);
    rig.record(&record("t-1"));
    rig.clock.advance(2 * day);
    assert_eq!(rig.by_intent("dock robot").status, 404);
    let fetched = rig.ask(&FETCH, &caller(None), message("", &[("task_id", "t-1")]));
    assert_eq!(fetched.status, 200);
    assert_eq!(rig.record(&with(record("t-1"), "/request_id", "r2")).status, 409);
    rig.record(&record("t-2"));
    assert_eq!(uses(&rig.by_intent("dock robot")), 2, "its uses count");
}

#[test]
fn a_record_of_very_many_values_is_refused() {
    let rig = Rig::new();
    let many: Vec<u8> = vec![0; 60_000];
    let metadata: Value = [("a", many.into_iter().map(Value::from).collect::<Vec<Value>>())]
        .into_iter()
        .collect::<omir_core::value::Map>()
        .into();
    let artifact: Value =
        [("type", Value::from("data")), ("content", "x".into()), ("metadata", metadata)]
            .into_iter()
            .collect::<omir_core::value::Map>()
            .into();
    let told = rig.record(&with(record("t-1"), "/result/artifacts", vec![artifact]));
    assert_eq!((told.status, &told.body["error"]["code"]), (400, &js!("INVALID_RECORD")));
    assert!(told.body["error"]["message"].as_str().unwrap().contains("values"));
}

#[test]
fn each_refusal_of_a_post_has_a_name() {
    use omird_engine::{Code, Error};
    use omird_router::{Denial, Denied, Exchange as _, Refusal};
    let rig = Rig::new();
    for method in [&RECORD, &crate::HINTS] {
        for why in [
            Denial::Refusal(Refusal::ReadOnly),
            Denial::Transport { status: 415, error: Error::new(Code::InvalidQuery, "no") },
        ] {
            let denied = Denied { method, why, request_id: None, rate: None };
            let told = crate::testing::told(method, rig.experiences.refuse(&denied));
            assert_eq!(told.header("X-Request-ID").map(str::len), Some(32));
        }
    }
}

#[test]
fn a_lost_experience_is_not_counted_in_silence_and_is_recorded_again() {
    let rig = Rig::new();
    rig.record(&with(record("t-1"), "/result/summary", "kettle"));
    rig.record(&record("t-2"));
    let rig = rig.damaged(b"kettle");
    assert_eq!(rig.experiences.0.indexer(), Indexer::Incomplete);
    let told = rig.record(&with(record("t-1"), "/request_id", "r2"));
    assert_eq!((told.status, &told.body["error"]["code"]), (500, &js!("STORAGE_ERROR")));
    let message = told.body["error"]["message"].as_str().unwrap();
    assert!(message.contains("on_duplicate=update"), "{message}");
    let told = update(&rig, &record("t-1"));
    assert_eq!((told.status, &told.body["status"]), (200, &js!("updated")), "{}", told.body);
    assert_eq!(uses(&rig.by_intent("dock robot")), 2);
    until(|| rig.experiences.0.indexer() == Indexer::Complete);
}

#[test]
fn an_experience_of_which_nothing_is_left_is_recorded_anew() {
    let rig = Rig::new();
    rig.record(&with(record("t-1"), "/result/summary", "kettle"));
    rig.record(&record("t-2"));
    let rig = rig.lost("kettle");
    let told = rig.record(&with(record("t-1"), "/request_id", "r2"));
    assert_eq!((told.status, &told.body["status"]), (200, &js!("recorded")), "{}", told.body);
    assert_eq!(uses(&rig.by_intent("dock robot")), 2);
}
