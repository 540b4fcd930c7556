//! `where_is` against a plain list of all that was recorded, and however long ago a thing had a place.

use std::collections::BTreeMap;
use std::sync::Arc;

use omir_core::instant::Timestamp;
use omir_core::spatial::SPATIAL_POSE_URL;
use omird::engine::{Clock as _, Settings};
use omird::router::Scopes;
use omird_tests::cut_disk::CutDisk;
use omird_tests::random::{Random, seeds};
use omird_tests::session::settings;
use serde_json::{Value, json};

use crate::mcp::rig::Rig;

const MINUTE: i64 = 60_000_000;

fn place(frame: &str, x: f64) -> Value {
    json!([{"url": SPATIAL_POSE_URL, "valueJson": {"frame": frame, "position": [x, 0.0, 0.0]}}])
}

fn memory(id: &str, content: &str, when: i64) -> Value {
    let when = Timestamp::from_micros(when).to_string();
    json!({"resourceType": "MemoryRecord", "id": id, "content": content, "eventTime": when})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_known_however_often_the_thing_is_spoken_of_later() {
    let rig = Rig::open().await;
    let start = rig.clock.now().as_micros() - 10_000 * MINUTE;
    let mention = json!([{"ref": "Entity/mug"}]);
    let mut seen = memory("seen", "the red mug on the shelf", start);
    seen["entityRefs"] = mention.clone();
    seen["extension"] = place("map", 4.0);
    let mut chair = memory("chair", "a green chair by the window", start);
    chair["extension"] = place("map", 7.0);
    let mug = json!({"resourceType": "Entity", "id": "mug", "name": "red mug"});
    rig.record(&json!([mug, seen, chair]));
    // Later the mug is only spoken of, and half of the words for the chair have places.
    for batch in 0..6_i64 {
        let spoken = (0..500).map(|n| {
            let when = start + (1 + batch * 500 + n) * MINUTE;
            let mut spoken = memory(&format!("m{batch}-{n}"), "who has the green mug", when);
            spoken["entityRefs"] = mention.clone();
            spoken
        });
        let chairs = (0..500).map(|n| {
            let when = start + (1 + batch * 500 + n) * MINUTE;
            let mut chair = memory(&format!("c{batch}-{n}"), "a blue chair", when);
            chair["extension"] = place("map", 1.0);
            chair
        });
        rig.record(&spoken.chain(chairs).collect());
    }
    let found = rig.ask("where_is", json!({"thing": "red mug"})).await;
    assert_eq!((&found["found"], &found["x"]), (&json!(true), &json!(4.0)), "{found}");
    assert_eq!(found["reference"], "MemoryRecord/seen");
    let found = rig.ask("where_is", json!({"thing": "Green CHAIR"})).await;
    assert_eq!((&found["matched_by"], &found["x"]), (&json!("words"), &json!(7.0)), "{found}");
}

/// A memory as the list has it.
struct Seen {
    id: String,
    words: [&'static str; 2],
    entity: Option<&'static str>,
    frame: Option<&'static str>,
    when: i64,
    is_memory: bool,
}

const COLOURS: [&str; 3] = ["red", "green", "blue"];
const THINGS: [&str; 3] = ["cup", "lamp", "chair"];
const FRAMES: [&str; 2] = ["map", "odom"];
/// What is asked for, and the entity that has the name.
const ASKED: [(&str, Option<&str>); 6] = [
    ("red cup", Some("cup")),
    ("CUP", Some("cup")),
    ("lamp", Some("lamp")),
    ("green chair", None),
    ("chair", None),
    ("blue cup", None),
];
/// The frame in which the lamp is known to stand, whoever saw it.
const LAMP_FRAME: &str = "odom";

/// The reference of what tells the place, by the words of docs/mcp.md.
fn expected(
    seen: &[Seen],
    thing: &str,
    entity: Option<&str>,
    frame: Option<&str>,
    now: i64,
) -> Option<String> {
    let thing = thing.to_lowercase();
    let fits = |of: Option<&str>| of.is_some() && (frame.is_none() || of == frame);
    let latest = |is_wanted: &dyn Fn(&&Seen) -> bool| {
        let all = seen.iter().filter(|one| one.is_memory && fits(one.frame)).filter(is_wanted);
        let (past, ahead): (Vec<&Seen>, Vec<&Seen>) = all.partition(|one| one.when <= now + MINUTE);
        let last = past.into_iter().max_by_key(|one| one.when);
        last.or_else(|| ahead.into_iter().max_by_key(|one| one.when))
            .map(|one| format!("MemoryRecord/{}", one.id))
    };
    let by_entity = || {
        let own =
            (entity == Some("lamp") && fits(Some(LAMP_FRAME))).then(|| "Entity/lamp".to_owned());
        latest(&|one| one.entity == entity).or(own)
    };
    let by_words = || latest(&|one| thing.split(' ').all(|word| one.words.contains(&word)));
    entity.and_then(|_| by_entity()).or_else(by_words)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_is_answers_as_a_look_through_a_list_would() {
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for seed in seeds("WHEREABOUTS_SEED", 0..12) {
        let mut random = Random::new(seed);
        let rig = Rig::over(Arc::new(CutDisk::new()), settings(), Scopes::All).await;
        let now = rig.clock.now().as_micros();
        let mut lamp = json!({"resourceType": "Entity", "id": "lamp", "name": "lamp"});
        lamp["extension"] = place(LAMP_FRAME, 3.0);
        let cup = json!({"resourceType": "Entity", "id": "cup", "name": "red cup"});
        // Frames that nothing was ever recorded in are another matter.
        let mut resources = vec![cup, lamp];
        let mut seen = Vec::new();
        for number in 0..random.below(24) {
            let ahead = if random.chance(30) { 2 * MINUTE } else { -2000 * MINUTE };
            let one = Seen {
                id: format!("n{number}"),
                words: [*random.pick(&COLOURS), *random.pick(&THINGS)],
                entity: random.chance(40).then(|| *random.pick(&["cup", "lamp"])),
                frame: random.chance(50).then(|| *random.pick(&FRAMES)),
                when: now + ahead + random.below(1000) as i64 * MINUTE + number as i64,
                is_memory: random.chance(90),
            };
            let words = format!("there is the {} {}", one.words[0], one.words[1]);
            let mut resource = memory(&one.id, &words, one.when);
            resource["kind"] = json!(if one.is_memory { "memory" } else { "learning" });
            if let Some(entity) = one.entity {
                resource["entityRefs"] = json!([{"ref": format!("Entity/{entity}")}]);
            }
            if let Some(frame) = one.frame {
                resource["extension"] = place(frame, number as f64);
            }
            resources.push(resource);
            seen.push(one);
        }
        rig.record(&Value::Array(resources));
        for (thing, entity) in ASKED {
            for frame in [None, Some("map"), Some("odom")] {
                let mut asked = json!({"thing": thing});
                if let Some(frame) = frame {
                    asked["frame"] = json!(frame);
                }
                let found = rig.ask("where_is", asked).await;
                let wanted = expected(&seen, thing, entity, frame, now);
                let told = found["reference"].as_str().map(str::to_owned);
                assert_eq!(told, wanted, "seed {seed}: {thing} in {frame:?}: {found}");
                assert_eq!(found["found"], wanted.is_some());
                let kind = found["matched_by"].as_str().unwrap_or("nothing").to_owned();
                let is_ahead = found["age_seconds"].as_f64().is_some_and(|age| age < 0.0);
                *answers.entry(format!("{kind}, ahead: {is_ahead}")).or_default() += 1;
            }
        }
    }
    // Each case came.
    assert_eq!(answers.len(), 5, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sighting_that_the_card_has_lost_is_not_passed_over_in_silence() {
    let disk = CutDisk::new();
    // Nothing is sealed meanwhile.
    let settings = Settings { segment_bytes: 1 << 20, segment_max_bytes: 1 << 21, ..settings() };
    let rig = Rig::over(Arc::new(disk.clone()), settings, Scopes::All).await;
    let start = rig.clock.now().as_micros() - 100 * MINUTE;
    let seen = (0..12_i64).map(|n| {
        let mut one =
            memory(&format!("n{n}"), &format!("the mug, time {n:03}"), start + n * MINUTE);
        one["extension"] = place("map", n as f64);
        one
    });
    rig.record(&seen.collect());
    let asked = json!({"thing": "mug"});
    let found = rig.ask("where_is", asked.clone()).await;
    assert_eq!((&found["x"], found.get("unreadable")), (&json!(11.0), None));
    let lose = |n: i64| {
        let words = format!("time {n:03}");
        for path in disk.paths() {
            disk.rot(&path, |bytes| {
                let at = bytes.windows(words.len()).position(|bytes| bytes == words.as_bytes());
                // Two bits: a single one would be turned back.
                at.into_iter().for_each(|at| bytes[at] ^= 3);
            });
        }
    };
    lose(11);
    lose(10);
    let found = rig.ask("where_is", asked.clone()).await;
    assert_eq!((&found["x"], &found["unreadable"]), (&json!(9.0), &json!(true)), "{found}");
    // Too many to look behind: that is no "not found".
    (0..10).for_each(lose);
    let refused = rig.refusal("where_is", asked).await;
    assert_eq!(refused["code"], "INTERNAL", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("does not give back"), "{refused}");
}
