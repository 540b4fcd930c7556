//! Pulls, in one session or in several.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nalgebra::{Isometry3, Vector3};
use omir_core::json;
use omir_core::link::message::Pull;
use omir_core::value::Value;

use super::*;
use crate::engine::testing::TestClock;
use crate::engine::{Change, Frames, Query, READINGS_KEPT};
use crate::router::AccessPolicy;
use crate::serial::Share;
use crate::serial::testing::Bench;

/// Of a record, so that a few fill an answer.
const LONG: usize = 10_000;

fn handler(bench: &Bench) -> SessionHandler {
    let access = AccessPolicy { write: false, token: None };
    let budget = Budget::new(Share::new(1.0));
    SessionHandler::new(bench.protocols(), Arc::from("serial"), access, budget)
}

fn record(id: &str, more: &str) -> String {
    let content = "x".repeat(LONG);
    format!(r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"door {content}"{more}}}"#)
}

fn filter(members: &[(&str, &str)]) -> Map {
    members.iter().copied().collect()
}

/// The next answer of a handler.
fn answer(handler: &mut SessionHandler) -> Response {
    loop {
        if let Some((bytes, _)) = handler.next_part() {
            let (all, answered) = (bytes.len(), ResponseMessage::decode(bytes).unwrap());
            handler.sent(all);
            return answered.response;
        }
        std::thread::yield_now();
    }
}

/// Received part of a pull so far.
#[derive(Default)]
struct Pulled {
    pull: Pull,
    items: Vec<Value>,
    lost: Vec<String>,
}

impl Pulled {
    fn of(members: &[(&str, &str)]) -> Self {
        Self { pull: Pull { filter: filter(members), ..Pull::default() }, ..Self::default() }
    }

    /// One session, cut after so many answers with resources. Whether it came to its end.
    fn session(&mut self, handler: &mut SessionHandler, most: usize) -> Result<bool, String> {
        handler.clear();
        let request = Request::Pull(self.pull.clone());
        handler.receive(&RequestMessage { id: 1, request }.encode(), true, 0).unwrap();
        let Response::Begin { as_of, store, .. } = (match answer(handler) {
            Response::Error(failure) => {
                return Err(format!("{} {}", failure.path.unwrap_or_default(), failure.message));
            }
            other => other,
        }) else {
            panic!("no beginning")
        };
        let known = self.pull.as_of.get_or_insert(as_of.clone());
        assert_eq!(*known, as_of);
        let known = self.pull.store.get_or_insert(store.clone());
        assert_eq!(*known, store);
        for _ in 0..most {
            match answer(handler) {
                Response::Items { items, next, lost } => {
                    self.items.extend(items);
                    self.lost.extend(lost);
                    self.pull.after = Some(next);
                }
                Response::End { complete, .. } => return Ok(complete),
                other => panic!("{other:?}"),
            }
        }
        Ok(false)
    }

    fn all(mut self, bench: &Bench) -> Vec<Value> {
        assert_eq!(self.session(&mut handler(bench), usize::MAX), Ok(true));
        self.items
    }

    fn ids(&self) -> Vec<&str> {
        self.items.iter().map(|item| item.get("id").and_then(Value::as_str).unwrap()).collect()
    }
}

fn pulled(bench: &Bench) -> Vec<Value> {
    Pulled::default().all(bench)
}

/// As an export has it.
fn exported(bench: &Bench) -> Vec<Value> {
    let bundle = bench.engine.export(&Query::everything()).unwrap().to_value();
    bundle.get("entry").and_then(Value::as_array).unwrap().to_vec()
}

fn think_of(bench: &Bench, words: &str) {
    let count = || json::to_string(&Value::Array(exported(bench))).matches("lastAccess").count();
    let before = count();
    let query = Query { text: Some(words.into()), ..Query::default() };
    assert!(bench.engine.recall(&query).unwrap().total > 0);
    // The writer counts it in its own time.
    while count() == before {
        std::thread::yield_now();
    }
}

#[test]
fn a_clock_that_is_set_back_hides_nothing() {
    let clock = TestClock::new();
    let bench = Bench::by(clock.clone());
    for (id, step) in [("ahead", -86_400), ("far", -400 * 86_400), ("since", 0)] {
        bench.remember(&record(id, ""));
        clock.step(step);
        // Not what they say: they have new dates meanwhile.
        let ids = |items: Vec<Value>| -> BTreeSet<String> {
            items.iter().map(|item| item.get("id").unwrap().as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(pulled(&bench)), ids(exported(&bench)), "after {id}");
    }
}

#[test]
fn what_is_recorded_after_the_beginning_belongs_to_another_pull() {
    let clock = TestClock::new();
    let bench = Bench::by(clock.clone());
    let ids: Vec<String> = (0..12).map(|n| format!("m{n}")).collect();
    ids.iter().for_each(|id| bench.remember(&record(id, "")));
    // From now on all that is recorded bears one stamp.
    clock.step(-30);
    let (mut handler, mut pulled) = (handler(&bench), Pulled::default());
    for session in 0.. {
        if pulled.session(&mut handler, 1).unwrap() {
            break;
        }
        bench.remember(&record(&format!("late{session}"), ""));
        // One that came, and one that did not.
        bench.remember(&record("m0", r#","importance":0.5"#));
        bench.remember(&record("m11", r#","importance":0.5"#));
    }
    assert_eq!(pulled.ids(), ids, "each came, once, and nothing else");
    assert!(pulled.items.iter().all(|item| item.get("importance").is_none()));
}

#[test]
fn a_span_until_now_is_the_same_in_each_session() {
    let clock = TestClock::new();
    let bench = Bench::by(clock.clone());
    for n in 0..12 {
        bench.remember(&record(&format!("m{n}"), ""));
        clock.advance(Duration::from_secs(360));
    }
    let all = [("_time", "[now(-1h)..]")];
    let (mut handler, mut pulled) = (handler(&bench), Pulled::of(&all));
    while !pulled.session(&mut handler, 1).unwrap() {
        clock.advance(Duration::from_secs(1800));
    }
    let expected: Vec<String> = (2..12).map(|n| format!("m{n}")).collect();
    assert_eq!(pulled.ids(), expected);
}

#[test]
fn what_was_used_comes_as_an_export_has_it() {
    let clock = TestClock::new();
    let bench = Bench::by(clock.clone());
    bench.remember(&record("old", r#","createdAt":"2025-06-01T00:00:00Z""#));
    bench.remember(&record("new", ""));
    let bright = || Pulled::of(&[("minRetrievability", "0.9")]).all(&bench).len();
    assert_eq!(bright(), 1);
    think_of(&bench, "door");
    let (pulled, exported) = (pulled(&bench), exported(&bench));
    assert!(pulled == exported);
    let count = |item: &Value| item.get("decay")?.get("accessCount")?.as_u64();
    assert!(pulled.iter().all(|item| count(item) == Some(1)));
    assert_eq!(bright(), 2, "it is remembered again");
}

#[test]
fn what_goes_by_use_is_selected_once() {
    let clock = TestClock::new();
    let bench = Bench::by(clock.clone());
    // Each needs the one before it, which this filter does not select by itself.
    let old = r#","createdAt":"2025-06-01T00:00:00Z""#;
    for n in 0..6 {
        bench.remember(&record(&format!("faded{n}"), old));
        bench.remember(&record(&format!("m{n}"), ""));
    }
    let bright = [("minRetrievability", "0.9")];
    let (mut handler, mut pulled) = (handler(&bench), Pulled::of(&bright));
    assert_eq!(pulled.session(&mut handler, 1), Ok(false));
    think_of(&bench, "door");
    let mut elsewhere = Pulled { pull: pulled.pull.clone(), ..Pulled::default() };
    while !pulled.session(&mut handler, 1).unwrap() {}
    let expected: Vec<String> = (0..6).map(|n| format!("m{n}")).collect();
    assert_eq!(pulled.ids(), expected);
    // Another port knows nothing of it, nor does this one when no client came for an hour.
    let refused = elsewhere.session(&mut self::handler(&bench), 1).unwrap_err();
    assert!(refused.starts_with("/store ") && refused.contains("begin again"), "{refused}");
    handler.tidy(0);
    handler.tidy(READINGS_KEPT);
    assert_eq!(elsewhere.session(&mut handler, 9), Ok(true));
    handler.tidy(READINGS_KEPT);
    handler.tidy(2 * READINGS_KEPT + 1);
    assert!(elsewhere.session(&mut handler, 1).unwrap_err().contains("not kept"));
}

#[test]
fn what_mentions_an_entity_still_comes_when_that_is_forgotten() {
    let bench = Bench::new();
    bench.remember(r#"{"resourceType":"Entity","id":"dock","name":"dock"}"#);
    for n in 0..6 {
        bench.remember(&record(&format!("m{n}"), r#","entityRefs":[{"ref":"Entity/dock"}]"#));
    }
    let (mut handler, mut pulled) = (handler(&bench), Pulled::of(&[("entity", "Entity/dock")]));
    assert_eq!(pulled.session(&mut handler, 1), Ok(false));
    bench.engine.execute(Change::Forget(vec!["Entity/dock".parse().unwrap()])).unwrap();
    let mut elsewhere = Pulled { pull: pulled.pull.clone(), ..Pulled::default() };
    while !pulled.session(&mut handler, 1).unwrap() {}
    let expected: Vec<String> = (0..6).map(|n| format!("m{n}")).collect();
    assert!(expected.iter().all(|id| pulled.ids().contains(&id.as_str())), "{:?}", pulled.ids());
    // A handler that did not keep the pull refuses to go on: the rest would not be the whole.
    let refused = elsewhere.session(&mut self::handler(&bench), 1).unwrap_err();
    assert!(refused.starts_with("/store ") && refused.contains("begin again"), "{refused}");
}

/// A robot that drives on.
struct Robot(Arc<AtomicBool>);

impl Frames for Robot {
    fn fixed(
        &self,
        frame: &str,
    ) -> Result<Option<(String, Isometry3<f64>)>, Box<dyn std::error::Error + Send + Sync>> {
        let x = if self.0.load(Ordering::Acquire) { 1000.0 } else { 0.0 };
        let pose = Isometry3::new(Vector3::new(x, 0.0, 0.0), Vector3::zeros());
        Ok((frame == "base_link").then(|| ("map".to_owned(), pose)))
    }
}

#[test]
fn around_the_robot_is_where_it_was_at_the_beginning() {
    let bench = Bench::new();
    let has_moved = Arc::new(AtomicBool::new(false));
    bench.engine.follow_frames(Arc::new(Robot(has_moved.clone())));
    for n in 0..8 {
        let x = if n % 2 == 0 { 0 } else { 1000 };
        let pose = format!(r#"{{"frame":"map","position":[{x},0,0]}}"#);
        let url = "https://omir.io/spec/R1/extension/spatial-pose";
        let place = format!(r#","extension":[{{"url":"{url}","valueJson":{pose}}}]"#);
        bench.remember(&record(&format!("m{n}"), &place));
    }
    let here = [("near", "0,0"), ("radius", "2"), ("frame", "base_link")];
    let (mut handler, mut pulled) = (handler(&bench), Pulled::of(&here));
    assert_eq!(pulled.session(&mut handler, 1), Ok(false));
    has_moved.store(true, Ordering::Release);
    assert_eq!(pulled.session(&mut handler, 9), Ok(true));
    assert_eq!(pulled.ids(), ["m0", "m2", "m4", "m6"]);
}

#[test]
fn what_was_forgotten_before_it_began_is_not_in_it() {
    let bench = Bench::new();
    for id in ["a", "b"] {
        bench.remember(&record(id, ""));
    }
    bench.engine.execute(Change::Forget(vec!["MemoryRecord/a".parse().unwrap()])).unwrap();
    assert_eq!(pulled(&bench), exported(&bench));
}

#[test]
fn a_pull_does_not_go_on_where_its_history_ended() {
    let bench = Bench::new();
    let mut pulled = Pulled::default();
    pulled.session(&mut handler(&bench), 1).unwrap();
    pulled.pull.as_of = Some("2001-01-01T00:00:00Z".to_owned());
    let refused = pulled.session(&mut handler(&bench), 1).unwrap_err();
    assert!(refused.starts_with("/asOf ") && refused.contains("keep_history_s"), "{refused}");
}

#[test]
fn a_pull_does_not_go_on_in_another_memory() {
    let bench = Bench::new();
    let mut begun = Pulled::default();
    begun.session(&mut handler(&bench), 1).unwrap();
    let refused = |pull: Pull| {
        let mut pulled = Pulled { pull, ..Pulled::default() };
        pulled.session(&mut handler(&bench), 1).unwrap_err()
    };
    for store in ["", "00ff", "00ff.1", bench.engine.identity()] {
        let pull = Pull { store: Some(store.to_owned()), ..begun.pull.clone() };
        assert!(refused(pull).starts_with("/store "), "{store}");
    }
    assert!(refused(Pull { store: None, ..begun.pull.clone() }).starts_with("/store "));
    assert!(refused(Pull { as_of: None, ..begun.pull.clone() }).starts_with("/asOf "));
    let unknown = filter(&[("bogus", "1")]);
    assert!(refused(Pull { filter: unknown, ..Pull::default() }).starts_with("/filter/bogus "));
    let only_after = Pull { after: Some(1), ..Pull::default() };
    assert!(refused(only_after).starts_with("/asOf "));
    begun.pull.after = Some(1);
    assert_eq!(begun.session(&mut handler(&bench), 9), Ok(true));
}

#[test]
fn what_no_message_can_carry_is_told_and_the_rest_comes() {
    let bench = Bench::of(|mut parts| {
        let limits = &mut parts.settings.limits;
        (limits.max_payload_bytes, limits.max_resource_bytes) = (8 << 20, 4 << 20);
        parts
    });
    let mut handler = handler(&bench);
    let large = "x".repeat(3 << 20);
    let json = r#""resourceType":"MemoryRecord""#;
    let deep = format!("{}0{}", "[".repeat(60), "]".repeat(60));
    bench.remember(&record("before", ""));
    bench.remember(&format!(r#"{{{json},"id":"large","content":"{large}"}}"#));
    bench.remember(&format!(
        r#"{{{json},"id":"deep","content":"c","extension":[{{"url":"urn:x:deep","valueJson":{deep}}}]}}"#
    ));
    bench.remember(&record("after", ""));
    let mut asked = Pulled::of(&[]);
    assert_eq!(asked.session(&mut handler, usize::MAX), Ok(true));
    let names: Vec<_> = asked.items.iter().map(|item| item.get("id").unwrap().clone()).collect();
    assert_eq!(names, ["before", "deep", "after"].map(Value::from));
    assert!(
        matches!(&asked.lost[..], [why] if why.starts_with("MemoryRecord/large (31")),
        "{:?}",
        asked.lost
    );
}
