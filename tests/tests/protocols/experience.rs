//! Experiences on a card: through cuts of the power, and through the work of time.
//!
//! An acknowledged experience is there after a cut, whole, with all that it refers to; one that was not acknowledged is there as
//! a whole or not at all. Invariants 1, 2 and 17 of ARCHITECTURE.md.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::value::Value;
use omir_core::{cbor, json};
use omird::engine::testing::ByHand;
use omird::engine::{CompactionScope, Encoding};
use omird::protocols::experience::{
    ExperienceSettings, Experiences, FETCH, HEALTH, HINTS, RECORD, SCHEMA,
};
use omird::router::{Caller, Exchange, Incoming, Message, Method, Router};
use omird_tests::check;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::session::{Session, TestClock};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// The protocol over a session.
struct Robot<'s> {
    session: &'s Session,
    experiences: Experiences,
    router: Router,
}

impl<'s> Robot<'s> {
    fn new(session: &'s Session) -> Self {
        let settings = ExperienceSettings::default();
        let experiences = Experiences::start((**session).clone(), settings, [7; 32]);
        Self { session, experiences, router: Router::new((**session).clone(), []) }
    }

    /// Asks; `None` where no answer comes.
    fn ask(
        &self,
        method: &'static Method,
        body: &str,
        of: &[(&str, &str)],
    ) -> Option<(u16, Value)> {
        let caller = Caller::trusted("test", "arm");
        let incoming = Incoming { bytes: body.len(), ..Incoming::default() };
        let admitted = self.router.admit(&caller, method, incoming).ok()?;
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let message = Message {
            body: body.into(),
            parameters: of.iter().map(own).collect(),
            request_id: None,
            trace_id: None,
            began: Instant::now(),
        };
        let (tell, told) = channel();
        self.experiences.answer(admitted, message, Box::new(move |answer| drop(tell.send(answer))));
        let answer = told.recv().ok()?;
        Some((answer.status, json::from_slice(&answer.body, &Limits::default()).expect("JSON")))
    }

    fn record(&self, step: &Step) -> Option<(u16, Value)> {
        let of: &[(&str, &str)] = if step.updates { &[("on_duplicate", "update")] } else { &[] };
        self.ask(&RECORD, &step.body(), of)
    }

    /// Waits until the experiences of the store are counted. Hints do not.
    fn wait_counted(&self) {
        let began = Instant::now();
        loop {
            let (_, body) = self.ask(&HEALTH, "", &[]).expect("an answer");
            let indexer = body.pointer("/components/pattern_indexer").and_then(Value::as_str);
            if indexer == Some("healthy") {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{body:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the summary of a task, if it is there.
    fn summary(&self, task: &str) -> Option<String> {
        let (status, body) = self.ask(&FETCH, "", &[("task_id", task)]).expect("an answer");
        let summary = body.pointer("/result/summary").and_then(Value::as_str);
        (status == 200).then(|| summary.expect("there is one").to_owned())
    }

    /// Checks that everything which a task's record refers to is there.
    fn is_whole(&self, task: &str) -> bool {
        let asked = format!(
            r#"{{"request_id":"h","query_type":"task_id","task_id":{task:?},"deadline_ms":30000}}"#
        );
        let (status, body) = self.ask(&HINTS, &asked, &[]).expect("an answer");
        assert_eq!(status, 200, "{body:?}");
        let mut found = 0;
        self.session.each(None, |bytes| {
            let resource = cbor::from_slice(&bytes, &Limits::default()).expect("CBOR");
            let origin = resource.pointer("/provenance/externalId").and_then(Value::as_str);
            if origin == Some(&format!("experience:{task}")) {
                found += 1;
                let mentions = resource.get("entityRefs").and_then(Value::as_array).expect("some");
                assert!(mentions.len() >= 5, "{mentions:?}");
                for mention in mentions {
                    let target = mention.get("ref").and_then(Value::as_str).expect("a reference");
                    let target = target.parse().expect("a reference");
                    assert!(self.session.live_version(&target).is_some(), "{target}");
                }
            }
        });
        found == 1
    }
}

/// A report.
#[derive(Clone)]
struct Step {
    task: String,
    summary: String,
    updates: bool,
}

impl Step {
    fn body(&self) -> String {
        let Self { task, summary, .. } = self;
        format!(
            r#"{{"request_id":"r-{summary}","task_id":{task:?},"title":"Dock at station 2","intent":"Dock the robot",
            "nodes_used":[{{"type":"tool","ref":"nav2","outcome":"success","latency_ms":100}},
                {{"type":"tool","ref":"arm of {task}","outcome":"failure"}}],
            "result":{{"summary":{summary:?},"success":true}},
            "timestamps":{{"started_at":"2026-05-31T10:00:00Z","finished_at":"2026-05-31T10:15:30Z"}}}}"#
        )
    }
}

fn steps() -> Vec<Step> {
    let step = |task: &str, summary: &str, updates| Step {
        task: task.into(),
        summary: summary.into(),
        updates,
    };
    vec![
        step("a", "first", false),
        step("b", "second", false),
        step("a", "third", true),
        step("c", "fourth", false),
        step("b", "fifth", true),
        step("d", "sixth", false),
    ]
}

/// Lives until the power goes; returns how many steps were acknowledged.
fn live(disk: &CutDisk, clock: &Arc<TestClock>) -> usize {
    let Ok(session) = Session::open(disk, clock) else { return 0 };
    let robot = Robot::new(&session);
    let mut steps = steps().into_iter();
    steps.position(|step| robot.record(&step).is_none_or(|(status, _)| status != 200)).unwrap_or(6)
}

/// Returns what is known of a task after so many steps.
fn known(task: &str, steps: &[Step]) -> Option<String> {
    steps.iter().rev().find(|step| step.task == task).map(|step| step.summary.clone())
}

#[test]
fn a_cut_at_any_operation_loses_no_acknowledged_experience() {
    let steps = steps();
    for cut in 0.. {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        disk.cut_at(cut);
        let acknowledged = live(&disk, &clock);
        let is_whole = !disk.is_off();
        let extreme = if cut % 2 == 0 { ONLY_SYNCED } else { EVERYTHING };
        for seed in [extreme, cut + 2] {
            let card = disk.survivors(seed);
            let session = Session::open(&card, &clock).expect("it opens");
            let robot = Robot::new(&session);
            // The step in doubt happened, or it did not.
            let before = &steps[..acknowledged];
            let after = &steps[..steps.len().min(acknowledged + 1)];
            for task in ["a", "b", "c", "d"] {
                let found = robot.summary(task);
                let expected = [known(task, before), known(task, after)];
                assert!(
                    expected.contains(&found),
                    "cut at {cut}, survivors {seed}: {task} {found:?}"
                );
                assert!(found.is_none() || robot.is_whole(task), "cut at {cut}: {task}");
            }
            // It is sent again, as a client does that got no answer, and is there once.
            for step in after {
                let (status, body) = robot.record(step).expect("an answer");
                let is_newest = robot.summary(&step.task).as_deref() == Some(&*step.summary);
                assert!(status == 200 || !is_newest, "cut at {cut}: {body:?}");
            }
            for task in ["a", "b", "c", "d"] {
                assert_eq!(robot.summary(task).is_some(), known(task, after).is_some());
                assert!(robot.summary(task).is_none() || robot.is_whole(task));
            }
        }
        if is_whole {
            assert_eq!(acknowledged, steps.len());
            assert!(cut > 10, "every operation was cut: {cut}");
            break;
        }
    }
}

fn put(session: &Session, text: &str) {
    let change = session.prepare(text.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).expect("the disk is good");
}

/// Returns the uses of the tool that all runs used, as the hints count them.
fn uses(robot: &Robot<'_>) -> Option<u64> {
    let asked =
        r#"{"request_id":"h","query_type":"intent","intent":"dock robot","deadline_ms":30000}"#;
    let (_, body) = robot.ask(&HINTS, asked, &[]).expect("an answer");
    let hints = body.get("hints")?.as_array()?;
    let nav2 = hints.iter().find(|hint| hint.get("ref").and_then(Value::as_str) == Some("nav2"))?;
    nav2.pointer("/metadata/uses").and_then(Value::as_u64)
}

#[test]
fn a_day_of_runs_that_look_alike_survives_the_work_of_time() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let robot = Robot::new(&session);
    put(&session, r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    let tasks: Vec<String> = (0..24).map(|hour| format!("run {hour}")).collect();
    let mut has_merged = false;
    for (hour, task) in tasks.iter().enumerate() {
        let step = Step { task: task.clone(), summary: "docked".into(), updates: false };
        assert_eq!(robot.record(&step).expect("an answer").0, 200);
        let cup = format!(
            r#"{{"resourceType":"MemoryRecord","id":"cup{hour}","content":"a red cup","entityRefs":[{{"ref":"Entity/cup"}}]}}"#
        );
        put(&session, &cup);
        clock.advance(HOUR);
        has_merged |= session.sweep(false).expect("the disk is good").merged > 0;
    }
    assert_eq!(uses(&robot), Some(24));
    clock.advance(9 * DAY);
    let swept = session.sweep(false).expect("the disk is good");
    // A sweep that is asked for merges what is old enough, so most of it has been merged on the way.
    assert!(has_merged || swept.merged > 0, "what is seen again becomes one");
    session.seal_now(HOUR).expect("the disk is good");
    session.compact(CompactionScope::All).expect("the disk is good");
    drop(robot);
    drop(session);
    check::segments(&disk).expect("each segment validates alone");

    let session = Session::open(&disk, &clock).expect("it opens");
    let robot = Robot::new(&session);
    robot.wait_counted();
    assert_eq!(uses(&robot), Some(24), "counted again from what is sealed");
    for task in &tasks {
        assert_eq!(robot.summary(task).as_deref(), Some("docked"), "{task}");
        assert!(robot.is_whole(task), "{task}");
    }
    // Past its retention an experience is in no hint, and a month later it is gone.
    clock.advance(360 * DAY);
    assert_eq!(uses(&robot), None);
    assert_eq!(robot.summary("run 0").as_deref(), Some("docked"));
    clock.advance(31 * DAY);
    let swept = session.sweep(false).expect("the disk is good");
    assert_eq!(swept.expired, 24);
    assert!(tasks.iter().all(|task| robot.summary(task).is_none()));
    let (status, _) = robot.ask(&SCHEMA, "", &[("name", "hint_request.v0")]).expect("an answer");
    assert_eq!(status, 200);
}
