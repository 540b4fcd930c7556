//! Hints: what they say, in which order, from where, and how soon.

use std::time::{Duration, Instant};

use omir_core::json;
use omird_engine::{Change, Frames};
use serde_json::json as js;

use crate::testing::{Rig, by_intent, caller, message, record, with};
use crate::{ExperienceSettings, HINTS, RECORD};

#[test]
fn hints_are_what_similar_tasks_used() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let told = rig.by_intent("dock robot");
    assert_eq!(told.status, 200, "{told:?}");
    assert_eq!(told.header("X-Request-ID"), Some("h1"));
    let metadata = &told.body["metadata"];
    assert_eq!(
        (&metadata["total_experiences"], &metadata["cache_status"]),
        (&js!(1), &js!("miss"))
    );
    let nav2 = told.hint("nav2");
    assert_eq!(nav2["type"], "tool");
    assert_eq!(
        nav2["usage_stats"],
        js!({"success_rate": 1.0, "avg_duration_ms": 100, "last_used": "2026-05-31T10:15:30Z"})
    );
    assert_eq!(nav2["reason"], "used in 1 similar task, 100 % of its uses succeeded");
    assert_eq!(nav2["metadata"], js!({"uses": 1, "tasks": ["t-1"], "domain": "general"}));
    let map = told.hint("map_db");
    assert_eq!((&map["type"], &map["metadata"]["node_type"]), (&js!("external"), &js!("database")));
    assert_eq!(told.hint("pattern_dock")["type"], "pattern");
    assert_eq!(told.hint("pattern_dock")["usage_stats"]["avg_duration_ms"], 930_000);
    let of = |hint: &serde_json::Value| hint["confidence"].as_f64().unwrap();
    let hints = told.body["hints"].as_array().unwrap();
    assert!(hints.windows(2).all(|pair| of(&pair[0]) >= of(&pair[1])));
}

#[test]
fn statistics_are_of_all_uses_of_the_tenant() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    // Another task altogether, which used the same tool and failed.
    let other = with(record("t-2"), "/title", "Charge");
    let other = with(with(other, "/intent", "Fill the battery"), "/result/summary", "no power");
    let other = with(other, "/nodes_used/0/outcome", "timeout");
    rig.record(&with(other, "/result/success", false));
    let told = rig.by_intent("dock robot");
    assert_eq!(told.body["metadata"]["total_experiences"], 1);
    assert_eq!(told.hint("nav2")["usage_stats"]["success_rate"], 0.5);
    let rig = rig.again();
    let after = rig.by_intent("dock robot");
    assert_eq!(after.body["hints"], told.body["hints"], "the same after a start");
    let target = crate::ids::Tenant::new("default").experience("t-2");
    rig.engine.execute(Change::Forget(vec![target])).unwrap();
    // Statistics hear of a change after it was answered. Each question is a new one, so that none is answered as kept.
    let rate = |asked: usize| {
        let told = rig.by_intent(&format!("dock{}robot", " ".repeat(asked)));
        told.hint("nav2")["usage_stats"]["success_rate"].clone()
    };
    let counted = (2..1000).map(rate).inspect(|_| std::thread::sleep(Duration::from_millis(5)));
    assert!(counted.into_iter().any(|rate| rate == 1.0), "what is forgotten counts no more");
}

#[test]
fn no_matches_is_an_answer_with_a_body() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    for body in [
        by_intent("zzz qqq"),
        by_intent("dock").replace('}', r#","context":{"domain":"code"}}"#),
        r#"{"request_id":"h1","query_type":"task_id","task_id":"none","deadline_ms":2000}"#.into(),
        r#"{"request_id":"h1","query_type":"similar_pattern","pattern":"zzz","deadline_ms":2000}"#
            .into(),
    ] {
        let told = rig.hints(&body);
        assert_eq!((told.status, &told.body["hints"]), (404, &js!([])), "{body}");
        assert_eq!(told.body["error"]["code"], "NO_MATCHES");
        assert_eq!(told.body["metadata"]["total_experiences"], 0);
        assert!(!told.body["error"]["suggestions"].as_array().unwrap().is_empty());
    }
    let told = rig.ask(&HINTS, &caller(Some("b")), message(&by_intent("dock robot"), &[]));
    assert_eq!(told.status, 404, "of another tenant");
}

#[test]
fn a_wrong_question_is_named() {
    let rig = Rig::new();
    for (body, path) in [
        (r#"{"request_id":"h","query_type":"intent","deadline_ms":2000}"#, "/intent"),
        (r#"{"request_id":"h","query_type":"intent","intent":" ","deadline_ms":2000}"#, "/intent"),
        (r#"{"request_id":"h","query_type":"similar_pattern","deadline_ms":2000}"#, "/pattern"),
        (
            r#"{"request_id":"h","query_type":"intent","intent":"a","deadline_ms":99}"#,
            "/deadline_ms",
        ),
        (r#"{"request_id":"h","query_type":"intent","intent":"a"}"#, "/deadline_ms"),
        (r#"{"request_id":"h","query_type":"x","deadline_ms":200}"#, "/query_type"),
        (
            r#"{"request_id":"h","query_type":"intent","intent":"a","deadline_ms":200,"max_hints":0}"#,
            "/max_hints",
        ),
        (
            r#"{"request_id":"h","query_type":"intent","intent":"a","deadline_ms":200,"max_hints":21}"#,
            "/max_hints",
        ),
        (
            r#"{"request_id":"h","query_type":"intent","intent":"a","deadline_ms":200,"context":{"session_id":"s"}}"#,
            "/context/session_id",
        ),
    ] {
        let told = rig.hints(body);
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (400, &js!("INVALID_QUERY")),
            "{body}"
        );
        let message = told.body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(path), "{message}");
        assert_eq!(told.body["request_id"], "h");
    }
    assert_eq!(rig.hints("[").header("X-Request-ID").unwrap().len(), 32);
}

#[test]
fn answers_are_kept_until_something_changes() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let status = |told: &crate::testing::Received| told.body["metadata"]["cache_status"].clone();
    assert_eq!(status(&rig.by_intent("dock robot")), "miss");
    let hit = rig.hints(&by_intent("dock robot").replace("h1", "h2"));
    assert_eq!((status(&hit), &hit.body["request_id"]), (js!("hit"), &js!("h2")));
    let more = with(record("t-2"), "/nodes_used/0/outcome", "failure");
    rig.record(&more);
    let partial = rig.by_intent("dock robot");
    assert_eq!(status(&partial), "partial");
    assert_eq!(partial.hint("nav2")["usage_stats"]["success_rate"], 0.5, "made again");
    assert_eq!(partial.body["metadata"]["total_experiences"], 1, "of the candidates that were");
    assert_eq!(status(&rig.by_intent("dock robot")), "hit");
    // A forgotten experience is in no answer, kept or not.
    let tenant = crate::ids::Tenant::new("default");
    rig.engine.execute(Change::Forget(vec![tenant.experience("t-1")])).unwrap();
    let told = rig.by_intent("dock robot");
    assert_eq!(told.hint("nav2")["metadata"]["tasks"], js!(["t-2"]));
    assert_eq!(
        status(&rig.ask(&HINTS, &caller(Some("b")), message(&by_intent("dock robot"), &[]))),
        js!(null)
    );
}

#[test]
fn a_deadline_that_passed_is_a_timeout() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let mut late = message(&by_intent("dock robot").replace("5000", "100"), &[]);
    late.began = Instant::now().checked_sub(Duration::from_millis(200)).unwrap();
    let told = rig.ask(&HINTS, &caller(None), late);
    assert_eq!((told.status, &told.body["error"]["code"]), (500, &js!("TIMEOUT")));
    let far = by_intent("dock robot").replace("5000", "1e300");
    assert_eq!(rig.hints(&far).status, 200, "a deadline beyond all bounds is the longest");
}

#[test]
fn a_deadline_that_passes_leaves_what_was_found() {
    use crate::candidates::{About, Search};
    let rig = Rig::new();
    for at in 0..30 {
        rig.record(&record(&format!("t-{at}")));
    }
    let tenant = crate::ids::Tenant::new("default");
    let search = |deadline| Search { tenant: &tenant, domain: None, place: None, deadline };
    let shared = &rig.experiences.0;
    let found = search(Instant::now()).run(shared, About::Intent("dock")).unwrap();
    assert_eq!((found.candidates.len(), found.is_partial), (0, true));
    // The task itself is looked at first, and what is like it is not any more.
    let found = search(Instant::now()).run(shared, About::Task("t-3")).unwrap();
    assert_eq!((found.candidates.len(), found.is_partial), (1, true));
    let later = Instant::now() + Duration::from_secs(60);
    let found = search(later).run(shared, About::Task("t-3")).unwrap();
    assert_eq!((found.candidates.len(), found.is_partial), (30, false));
}

#[test]
fn a_task_and_a_pattern_are_asked_by_name() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let ask =
        |query: &str| rig.hints(&format!(r#"{{"request_id":"h1",{query},"deadline_ms":2000}}"#));
    for query in [
        r#""query_type":"task_id","task_id":"t-1""#,
        r#""query_type":"similar_pattern","pattern":"dock""#,
        r#""query_type":"similar_pattern","pattern":"Dock""#,
        r#""query_type":"similar_pattern","pattern":"pattern_station""#,
    ] {
        let told = ask(query);
        assert_eq!(told.status, 200, "{query}");
        assert_eq!(told.body["metadata"]["pattern_match_score"], 1.0, "{query}");
    }
    let one = ask(r#""query_type":"task_id","task_id":"t-1","max_hints":1"#);
    assert_eq!(one.refs().len(), 1);
    // Tools at hand come before others.
    let far = |tools: &str| {
        let asked = format!(
            r#""query_type":"intent","intent":"dock","context":{{"current_tools":[{tools}]}}"#
        );
        ask(&asked).hint("nav2")["confidence"].as_f64().unwrap()
    };
    assert!((far(r#""nav2","x""#) - far("") - 0.05).abs() < 1e-9);
}

#[test]
fn what_is_past_its_retention_is_no_candidate() {
    let settings =
        ExperienceSettings { retention: Some(Duration::from_secs(86_400)), ..Default::default() };
    let rig = Rig::with(settings);
    rig.record(&record("t-1"));
    rig.clock.advance(Duration::from_secs(2 * 86_400));
    assert_eq!(rig.by_intent("dock robot").status, 404);
    let asked = r#"{"request_id":"h1","query_type":"task_id","task_id":"t-1","deadline_ms":2000}"#;
    assert_eq!(rig.hints(asked).status, 404);
}

#[test]
fn what_an_answer_rests_on_counts_as_used() {
    let rig = Rig::new();
    rig.record(&record("t-1"));
    let other = with(record("t-2"), "/title", "Charge");
    let other = with(with(other, "/intent", "x"), "/result/summary", "x");
    rig.record(&with(other, "/nodes_used", Vec::<bool>::new()));
    rig.clock.advance(Duration::from_secs(86_400));
    rig.by_intent("dock robot");
    rig.engine.stop();
    let rig = rig.again();
    let count = |task: &str| {
        let target = crate::ids::Tenant::new("default").experience(task);
        let bytes = rig.engine.get(&target).unwrap().unwrap();
        let resource = crate::shared::decoded(&bytes).unwrap();
        resource.pointer("/decay/accessCount").and_then(omir_core::value::Value::as_u64)
    };
    assert_eq!((count("t-1"), count("t-2")), (Some(1), None));
}

/// A robot docks every hour, and has never been asked politely.
#[test]
fn what_is_done_often_is_found_beside_a_word_that_nobody_knows() {
    let rig = Rig::new();
    let mut similarity = Vec::new();
    for run in 0..80 {
        rig.record(&record(&format!("run-{run}")));
        if matches!(run, 0 | 20 | 79) {
            let told = rig.by_intent("dock robot now please");
            assert_eq!(told.status, 200, "after {run}: {}", told.body);
            similarity.push(told.body["metadata"]["pattern_match_score"].as_f64().unwrap());
            // Another answer next time than the one that is kept.
            rig.clock.advance(Duration::from_secs(61));
        }
    }
    assert!(similarity.iter().all(|found| (0.15..0.35).contains(found)), "{similarity:?}");
    let exact = rig.by_intent("dock robot").body["metadata"]["pattern_match_score"].as_f64();
    assert!(exact > similarity.last().copied(), "{exact:?}");
    assert_eq!(rig.by_intent("zzz qqq").status, 404);
}

#[test]
fn hints_that_are_taken_are_counted() {
    use omird_router::Exchange as _;
    let rig = Rig::new();
    let counts = || {
        let counts = rig.experiences.counts();
        counts.iter().map(|count| count.count).collect::<Vec<u64>>()
    };
    rig.record(&record("t-1"));
    assert_eq!(counts(), [0, 0]);
    // Two nodes and three patterns, and the same from the kept answer.
    let (first, again) = (rig.by_intent("dock robot"), rig.by_intent("dock robot"));
    assert_eq!(first.refs(), again.refs());
    assert_eq!((first.refs().len(), counts()), (5, vec![5, 0]));
    // A node of two fails; a replay and an update are no later experience.
    rig.record(&record("t-1"));
    let updated = with(record("t-1"), "/title", "Dock again");
    let asked = message(&json::to_string(&updated), &[("on_duplicate", "update")]);
    assert_eq!(rig.ask(&RECORD, &caller(None), asked).body["status"], "updated");
    assert_eq!(counts(), [5, 0]);
    let elsewhere = message(&json::to_string(&record("t-2")), &[]);
    rig.ask(&RECORD, &caller(Some("b")), elsewhere);
    assert_eq!(counts(), [5, 0], "of another tenant");
    rig.record(&record("t-2"));
    assert_eq!(counts(), [5, 4]);
}

/// The robot stands somewhere in the map.
struct Somewhere(std::sync::Mutex<[f64; 2]>);

impl Frames for Somewhere {
    fn fixed(
        &self,
        frame: &str,
    ) -> Result<Option<(String, nalgebra::Isometry3<f64>)>, Box<dyn std::error::Error + Send + Sync>>
    {
        let [x, y] = *self.0.lock().unwrap();
        match frame {
            "base_link" => Ok(Some(("map".into(), nalgebra::Isometry3::translation(x, y, 0.0)))),
            "lost" => Err("nobody knows".into()),
            _ => Ok(None),
        }
    }
}

#[test]
fn the_place_rides_along_and_hints_are_asked_near_it() {
    let settings =
        ExperienceSettings { robot_frame: Some("base_link".into()), ..Default::default() };
    let rig = Rig::with(settings);
    let robot = std::sync::Arc::new(Somewhere(std::sync::Mutex::new([1.0, 2.0])));
    rig.engine.follow_frames(robot.clone());
    rig.record(&record("t-1"));
    *robot.0.lock().unwrap() = [50.0, 2.0];
    rig.record(&record("t-2"));
    let near = |parameters: &[(&str, &str)]| {
        rig.ask(&HINTS, &caller(None), message(&by_intent("dock robot"), parameters))
    };
    let tasks = |told: &crate::testing::Received| told.hint("nav2")["metadata"]["tasks"].clone();
    assert_eq!(tasks(&near(&[("near", "1.5,2")])), js!(["t-1"]));
    assert_eq!(
        tasks(&near(&[("near", "49,2,0"), ("radius", "2"), ("frame", "map")])),
        js!(["t-2"])
    );
    assert_eq!(tasks(&near(&[("near", "0,0"), ("frame", "base_link")])), js!(["t-2"]));
    assert_eq!(near(&[("near", "25,2")]).status, 404);
    assert_eq!(near(&[("near", "25,2"), ("frame", "lost")]).status, 400);
    assert_eq!(near(&[("near", "25")]).status, 400);
    assert_eq!(rig.by_intent("dock robot").body["metadata"]["total_experiences"], 2);
}

/// A robot without a graph of ROS says where it was.
#[test]
fn the_place_of_a_task_is_stated_beside_its_record() {
    let settings =
        ExperienceSettings { robot_frame: Some("base_link".into()), ..Default::default() };
    let rig = Rig::with(settings);
    let at = |task: &str, place: &str| {
        let body = json::to_string(&record(task));
        rig.ask(&RECORD, &caller(None), message(&body, &[("at", place)]))
    };
    let near = |place: &str| {
        rig.ask(&HINTS, &caller(None), message(&by_intent("dock robot"), &[("near", place)]))
    };
    let tasks = |told: &crate::testing::Received| told.hint("nav2")["metadata"]["tasks"].clone();
    assert_eq!(at("t-1", "1,2").status, 200);
    assert_eq!(at("t-2", "50, 2, 0.5").status, 200);
    assert_eq!(tasks(&near("1.5,2")), js!(["t-1"]));
    assert_eq!(tasks(&near("50,2,0.4")), js!(["t-2"]));
    assert_eq!(near("25,2").status, 404);
    // The same again is a replay, wherever it is said to have been; a place that is none is refused and stores nothing.
    assert_eq!(at("t-1", "50,2").body["status"], "recorded");
    assert_eq!(tasks(&near("1.5,2.1")), js!(["t-1"]));
    for wrong in ["1", "1,2,3,4", "a,b", "1,nan", ""] {
        let told = at("t-3", wrong);
        assert_eq!((told.status, &told.body["error"]["code"]), (400, &js!("INVALID_RECORD")));
        assert_eq!((&told.body["request_id"], &told.body["task_id"]), (&js!("r1"), &js!("t-3")));
    }
    assert_eq!(rig.by_intent("dock robot").body["metadata"]["total_experiences"], 2);
    // The stated place counts, and not the robot's own.
    let robot = std::sync::Arc::new(Somewhere(std::sync::Mutex::new([-9.0, 0.0])));
    rig.engine.follow_frames(robot);
    assert_eq!(at("t-4", "80,80").status, 200);
    assert_eq!(tasks(&near("80,80")), js!(["t-4"]));
    assert_eq!(near("-9,0").status, 404);
}

#[test]
fn large_records_and_many_of_them_stay_within_their_bounds() {
    let rig = Rig::with(ExperienceSettings { statistics_bytes: 1 << 20, ..Default::default() });
    let nodes = (0..256).map(|at| {
        let reference = format!("{at:0>1024}");
        let text =
            format!(r#"{{"type":"tool","ref":"{reference}","outcome":"success","notes":"x"}}"#);
        json::from_slice(text.as_bytes(), &Default::default()).unwrap()
    });
    let nodes: Vec<omir_core::value::Value> = nodes.collect();
    let big = with(record("big"), "/nodes_used", nodes);
    let big = with(big, "/result/summary", "é".repeat(250_000));
    let told = rig.ask(&RECORD, &caller(None), message(&json::to_string(&big), &[]));
    assert_eq!(told.status, 200, "{}", told.body);
    let told = rig.by_intent("dock robot");
    assert_eq!((told.status, told.refs().len()), (200, 10));
}
