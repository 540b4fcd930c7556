//! What the protocols store is a format too: experiences, Worlds and stages of agents are records with extensions of their
//! own. Here a robot lives by way of them, and here are the questions that its folder is asked.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::json;
use omir_core::value::Value;
use omird::engine::Engine;
use omird::protocols::Protocols;
use omird::protocols::experience::{FETCH, HEALTH, HINTS, RECORD};
use omird::protocols::manifesto::{EXISTS, GET, PROVE, PUT, VERIFY_PROOF};

use super::asks::{self, Ask, protocols};
use super::lives::Robot;
use crate::session::TestClock;

/// The name of the life.
pub const NAME: &str = "protocols";

const MINUTE: Duration = Duration::from_secs(60);
/// The World that is proven.
const WORLD: &str =
    r#"{"note":"the dock is at the window","worldId":"w-1","createdAt":1780214400000}"#;

fn experience(task: &str, station: u32, success: bool, summary: &str) -> String {
    format!(
        r#"{{"request_id":"r-{summary}","task_id":"{task}","title":"Dock at station {station}","intent":"Dock the robot",
        "nodes_used":[{{"type":"tool","ref":"nav2","outcome":"success","latency_ms":100}},
            {{"type":"tool","ref":"arm","outcome":"failure"}}],
        "result":{{"summary":"{summary}","success":{success}}},
        "timestamps":{{"started_at":"2026-05-31T10:00:00Z","finished_at":"2026-05-31T10:15:30Z"}}}}"#
    )
}

/// What is told before the first segment.
fn morning() -> Vec<Ask> {
    let task = r#"{"goal":"Tidy the hall","constraints":["stay below 0.5 m/s"]}"#;
    vec![
        Ask::of(&RECORD, experience("dock-1", 2, true, "docked")),
        Ask::of(&RECORD, experience("dock-2", 3, false, "missed the dock")),
        Ask::of(&PUT, format!(r#"{{"world":{WORLD}}}"#)),
        Ask::call(
            "store",
            &format!(
                r#"{{"task_id":"t1","content":"The robot must not enter room 12.","task":{task}}}"#
            ),
        ),
        Ask::call("store", r#"{"task_id":"t1","content":"First a plan: begin at the window."}"#),
        Ask::call(
            "record_error",
            r#"{"task_id":"t1","error_type":"incorrect_action","error_id":"e1",
            "error_description":"drove against the table","error_severity":0.6,
            "recorded_at":"2026-05-31T10:20:00Z"}"#,
        ),
        Ask::call(
            "complete_stage",
            r#"{"task_id":"t1","summary":"A plan is made.","next_stage_type":"execution"}"#,
        ),
    ]
}

/// What is told after it.
fn evening() -> Vec<Ask> {
    let update =
        Ask::of(&RECORD, experience("dock-2", 3, true, "docked at last").replace("r-", "r2-"));
    vec![
        Ask { parameters: vec![("on_duplicate", "update")], ..update },
        Ask::of(
            &PUT,
            r#"{"world":{"note":"the dock has moved","worldId":"w-2","createdAt":1780218000000}}"#,
        ),
        Ask::call(
            "store",
            r#"{"task_id":"t1","content":"The hall is half done.","relevance_score":0.5}"#,
        ),
        Ask::call("adjust_compression", r#"{"task_id":"t1","stage_ratio":4}"#),
    ]
}

/// The questions; those that rank are left to tests of their own.
fn questions() -> Vec<Ask> {
    let hints =
        r#"{"request_id":"h","query_type":"task_id","task_id":"dock-1","deadline_ms":30000}"#;
    vec![
        Ask::named(&FETCH, "task_id", "dock-1"),
        Ask::named(&FETCH, "task_id", "dock-2"),
        Ask::of(&HINTS, hints),
        Ask::named(&GET, "worldId", "w-1"),
        Ask::named(&GET, "worldId", "w-2"),
        Ask::named(&EXISTS, "worldId", "w-2"),
        Ask::call("get_task_progress", r#"{"task_id":"t1"}"#),
        Ask::call("get_error_history", r#"{"task_id":"t1"}"#),
        Ask::call("get_critical_memories", r#"{"task_id":"t1"}"#),
        Ask::call("get_compression_metrics", r#"{"task_id":"t1"}"#),
    ]
}

/// Lives the life.
pub(super) fn life(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let robot = Robot::new(data, clock, false)?;
    let tell = |all: Vec<Ask>| {
        let protocols = protocols(robot.session());
        for ask in all {
            clock.advance(MINUTE);
            ask.tell(&protocols);
        }
    };
    tell(morning());
    robot.seal();
    tell(evening());
    robot.kill()
}

/// Waits until the experiences of the store are counted: hints are made of all of them then.
fn wait_counted(protocols: &Protocols) {
    let began = Instant::now();
    loop {
        let (_, health) = Ask::of(&HEALTH, "").ask(protocols);
        let indexer = health.pointer("/components/pattern_indexer").and_then(Value::as_str);
        if indexer == Some("healthy") {
            return;
        }
        assert!(began.elapsed() < MINUTE, "{health}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The replies of the protocols, one a line, and a proof that they made.
///
/// # Panics
/// If a protocol does not answer.
pub fn replies(engine: &Engine) -> String {
    let protocols = protocols(engine);
    wait_counted(&protocols);
    let prove = format!(r#"{{"memory":{{"worldId":"w-1"}},"world":{WORLD}}}"#);
    let (_, proven) = Ask::of(&PROVE, prove).ask(&protocols);
    let proof = proven.get("proof").unwrap_or_else(|| panic!("no proof: {proven}"));
    let mut text = format!("{}\n", json::to_string(proof));
    text.push_str(&asks::replies(&questions(), &protocols));
    text
}

/// Compares kept replies with those of an engine, and has the protocols verify the proof that was kept.
///
/// # Panics
/// If a member that was told is lost, or another.
#[track_caller]
pub fn compare(what: &str, kept: &str, engine: &Engine) {
    let found = replies(engine);
    let (proof, kept) = kept.split_once('\n').expect("a proof and replies");
    let (status, verified) =
        Ask::of(&VERIFY_PROOF, format!(r#"{{"proof":{proof}}}"#)).ask(&protocols(engine));
    assert_eq!(
        (status, verified.get("valid")),
        (200, Some(&Value::from(true))),
        "{what}: {verified}"
    );
    let (_, found) = found.split_once('\n').expect("a proof and replies");
    asks::compare(what, &questions(), kept, found);
}
