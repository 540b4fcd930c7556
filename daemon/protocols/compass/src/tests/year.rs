//! A year of use on a small card: what is put aside makes room, and what is critical stays for good.

use std::time::Duration;

use omird_engine::testing::ByHand;
use omird_engine::{FlashSettings, Settings as EngineSettings};

use super::*;

const DAYS: u64 = 365;
/// Memories of a day.
const OF_DAY: u64 = 6;
/// Bytes that the store may take: less than a half of all that is remembered.
const ROOM: u64 = 6 << 20;

#[test]
fn a_year_of_use_does_not_fill_the_card() {
    let dir = tempfile::tempdir().unwrap();
    let clock = TestClock::new();
    let flash = FlashSettings { max_bytes: ROOM, ..EngineSettings::default().flash };
    let settings = EngineSettings {
        flash,
        durability: omird_engine::Durability::None,
        ..EngineSettings::default()
    };
    let parts = Parts { clock: clock.clone(), settings, ..parts(dir.path()) };
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    let compass = Compass::new(&engine, Settings::default(), None);
    let lines = AuditLines::default();
    let router = Router::new(Facts { most: 1 << 20, ..Facts::default() }, [lines.sink()]);
    let rig = Rig { dir, clock, engine, compass, lines, router };
    let mut bytes = 0;
    for day in 0..DAYS {
        let task = format!("day-{day}");
        for n in 0..OF_DAY {
            let filler = "the box was carried past the shelf and the window ".repeat(48);
            let content = match n {
                0 => format!("On day {day} the robot must not enter room {day}."),
                n => format!("Round {n} of day {day}: {filler}"),
            };
            bytes += content.len() as u64;
            let stage = if n < OF_DAY / 2 { "planning" } else { "execution" };
            let params = format!(
                r#"{{"task_id":"{task}","content":"{content}","stage_type":"{stage}","relevance_score":0.5}}"#
            );
            rig.ask("memory.store", &params);
        }
        let params = format!(r#"{{"task_id":"{task}","task_status":"completed"}}"#);
        rig.ask("memory.complete_stage", &params);
        rig.clock.advance(Duration::from_secs(86_400));
        if day % 7 == 6 {
            rig.engine.sweep(false).unwrap();
        }
    }
    rig.engine.sweep(false).unwrap();
    let usage = rig.engine.quota_usage();
    println!("{bytes} bytes of contents in a year; {usage:?}");
    assert!(bytes > 4 << 20);
    for day in [0, 100, 364] {
        let params = format!(r#"{{"query":"enter room {day}","task_id":"day-{day}"}}"#);
        let found = rig.ask("memory.retrieve", &params);
        let fact = format!("On day {day} the robot must not enter room {day}.");
        assert_eq!(text(&found, "/memories/0/memory/content"), fact);
        let context = rig.ask("memory.get_context", &format!(r#"{{"task_id":"day-{day}"}}"#));
        assert!(text(&context, "/context").contains(&fact), "{context}");
    }
    let count = |day: u64| {
        let params = format!(
            r#"{{"query":"box shelf","task_id":"day-{day}","k":100,"include_archived":true}}"#
        );
        list(&rig.ask("memory.retrieve", &params), "/memories").len()
    };
    assert_eq!(count(364), 5, "the newest are there");
    assert!(count(3) < 5, "the oldest made room");
}
