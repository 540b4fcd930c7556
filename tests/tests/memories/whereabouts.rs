//! "Where is it now?" is answered by what was seen last, not by what was asked for most.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use omir_core::instant::Timestamp;
use omird::engine::testing::ByHand;
use omird::engine::{Encoding, Engine, Forgetting, Hit, Query, ScorePart, Settings, Task};
use omird_tests::check::decode;
use omird_tests::cut_disk::CutDisk;
use omird_tests::session::{DAWN, Session, TestClock, settings};
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

fn open(disk: &CutDisk, clock: &Arc<TestClock>) -> Session {
    let forgetting = Forgetting { sweep_interval: None, ..Forgetting::default() };
    let settings = Settings { seal_after: 100 * DAY, forgetting, ..settings() };
    Session::open_with(Arc::new(disk.clone()), clock, settings, None).expect("it opens")
}

fn remember(engine: &Engine, resources: &Value) {
    let text = resources.to_string();
    let change = engine.prepare(text.as_bytes(), Encoding::Json, None).expect("it is valid");
    engine.execute(change).expect("the disk is good");
}

fn mug() -> Value {
    json!({"resourceType": "Entity", "id": "mug", "name": "red mug"})
}

/// The mug is seen, in words as long as ever.
fn sighting(id: &str, room: &str, x: f64) -> Value {
    json!({
        "resourceType": "MemoryRecord", "id": id,
        "content": format!("the red mug stands in the {room}"),
        "experienceType": "observation", "importance": 0.2,
        "entityRefs": [{"ref": "Entity/mug"}],
        "extension": [{
            "url": omir_core::spatial::SPATIAL_POSE_URL,
            "valueJson": {"frame": "map", "position": [x, 0.0, 0.0]},
        }],
    })
}

fn whereabouts() -> Query {
    let entity = "Entity/mug".parse().expect("a reference");
    Query {
        text: Some("red mug".into()),
        entities: vec![entity],
        explain: true,
        ..Query::default()
    }
}

fn ask(engine: &Engine, query: &Query) -> Vec<Hit> {
    let hits = engine.recall(query).expect("it is answered").hits;
    // Accesses are counted later; here they are counted now.
    engine.run_task(Task::Accesses).expect("it runs");
    hits
}

fn ids(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| decode(&hit.resource).id().as_str().to_owned()).collect()
}

fn first(engine: &Engine, query: &Query) -> String {
    ids(&ask(engine, query)).swap_remove(0)
}

#[test]
fn the_newest_place_is_first_however_often_another_was_asked_for() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    remember(&session, &json!([mug(), sighting("kitchen", "kitchen", 1.0)]));
    for _ in 0..10 {
        clock.advance(DAY);
        assert_eq!(first(&session, &whereabouts()), "kitchen");
    }
    // Nobody would call this sighting more important, or be surer of it.
    let mut study = sighting("study", "study", 9.0);
    study["importance"] = json!(0.1);
    remember(&session, &study);
    clock.advance(HOUR);
    let hits = ask(&session, &whereabouts());
    assert_eq!(ids(&hits), ["study", "kitchen"]);

    // Both were just asked for; only one of them just happened.
    let hits = ask(&session, &whereabouts());
    let parts: Vec<_> = hits.iter().map(|hit| hit.parts.expect("it is explained").scores).collect();
    assert_eq!(
        [parts[0][ScorePart::Retrievability], parts[1][ScorePart::Retrievability]],
        [1.0, 1.0]
    );
    assert!(parts[0][ScorePart::Recency] > 0.9 && parts[1][ScorePart::Recency] < 0.5, "{parts:?}");

    // Then it was in the kitchen, as far as anybody knew.
    let then = Timestamp::from_micros(DAWN + 9 * 86_400_000_000);
    assert_eq!(ids(&ask(&session, &Query { as_of: Some(then), ..whereabouts() })), ["kitchen"]);

    // Seen in the kitchen again, and after a start without a clock in a third place.
    remember(&session, &sighting("kitchen-again", "kitchen", 1.0));
    clock.advance(HOUR);
    assert_eq!(first(&session, &whereabouts()), "kitchen-again");
    drop(session);
    clock.reboot(0);
    clock.advance(HOUR);
    let session = open(&disk, &clock);
    remember(&session, &sighting("nursery", "nursery", 5.0));
    clock.advance(HOUR);
    assert_eq!(first(&session, &whereabouts()), "nursery");
}

#[test]
fn sightings_that_became_one_are_as_old_as_the_last_of_them() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    remember(&session, &mug());
    for n in 0..4 {
        remember(&session, &sighting(&format!("kitchen-{n}"), "kitchen", 1.0));
        clock.advance(HOUR);
    }
    remember(&session, &sighting("study", "study", 9.0));
    clock.advance(8 * DAY);
    assert!(session.sweep(false).expect("the disk is good").merged > 0);
    // The kitchen was seen four times; the study was seen last.
    assert_eq!(first(&session, &whereabouts()), "study");

    // The same kitchen once more: what it becomes part of happened when this did.
    remember(&session, &sighting("kitchen-again", "kitchen", 1.0));
    clock.advance(8 * DAY);
    assert!(session.sweep(false).expect("the disk is good").merged > 0);
    let hits = ask(&session, &whereabouts());
    assert_eq!(ids(&hits), ["kitchen-0", "study"]);
    let recency = |hit: &Hit| hit.parts.expect("it is explained").scores[ScorePart::Recency];
    assert!(recency(&hits[0]) > recency(&hits[1]));
}

#[test]
fn a_clock_that_is_ahead_does_not_keep_the_first_place() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    let mut ahead = sighting("ahead", "kitchen", 1.0);
    ahead["createdAt"] = json!("2027-06-01T00:00:00Z");
    ahead["eventTime"] = json!("2027-06-01T00:00:00Z");
    remember(&session, &json!([mug(), ahead]));
    clock.advance(2 * DAY);
    remember(&session, &sighting("study", "study", 9.0));
    clock.advance(DAY);
    assert_eq!(ids(&ask(&session, &whereabouts())), ["study", "ahead"]);
}

#[test]
fn what_does_not_happen_does_not_get_old() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = open(&disk, &clock);
    let mut task = sighting("task", "study", 9.0);
    task["experienceType"] = json!("intention");
    task["eventTime"] = json!("2026-07-01T00:00:00Z");
    let mut lesson = sighting("lesson", "bedroom", 5.0);
    lesson["experienceType"] = json!("learning");
    lesson["kind"] = json!("learning");
    remember(&session, &json!([mug(), task, lesson, sighting("kitchen", "kitchen", 1.0)]));
    clock.advance(30 * DAY);
    remember(&session, &sighting("hallway", "hallway", 2.0));
    clock.advance(7 * DAY);
    let query = Query { include_intentions: true, touch: false, ..whereabouts() };
    let hits = ask(&session, &query);
    let recency =
        hits.iter().map(|hit| hit.parts.expect("it is explained").scores[ScorePart::Recency]);
    let recency: BTreeMap<String, f64> = ids(&hits).into_iter().zip(recency).collect();
    assert_eq!([recency["task"], recency["lesson"]], [1.0, 1.0]);
    assert_eq!(recency["hallway"], 0.5, "a week ago");
    assert!(recency["kitchen"] < 0.3);
}
