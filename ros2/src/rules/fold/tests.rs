use omir_core::decode::Limits;
use omir_core::extension::CONSOLIDATED_URL;
use omir_core::json;

use super::*;
use crate::stamp::Stamp;

fn value(text: &str) -> Value {
    let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
    Resource::from_value(value.clone()).unwrap_or_else(|faults| panic!("{faults:?}"));
    value
}

/// A record of a cup, with more members.
fn cup(event: &str, x: f64, more: &str) -> Value {
    value(&format!(
        r#"{{"resourceType":"MemoryRecord","id":"ros2-1","content":"saw cup at {x}",
        "createdAt":"2026-05-30T11:00:00Z","eventTime":"{event}",
        "confidence":{{"calibrated":0.5}},
        "extension":[{{"url":"{SPATIAL_POSE_URL}",
            "valueJson":{{"frame":"map","position":[{x},0,0]}}}}]{more}}}"#
    ))
}

fn kept(resource: Value, seen: u64) -> KeptResource {
    KeptResource { resource, about: Vec::new(), seen, is_first: false, unplaced: None, heard: None }
}

fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    value.pointer(pointer)
}

/// Returns the contents of `urn:omird:ext:consolidated`.
fn told_of(value: &Value) -> &Value {
    let extensions = value.get("extension").and_then(Value::as_array).unwrap();
    let is_it = |e: &&Value| e.get("url").and_then(Value::as_str) == Some(CONSOLIDATED_URL);
    extensions.iter().find(is_it).and_then(|e| e.get("valueJson")).unwrap()
}

#[test]
fn what_was_never_stored_is_stored_as_it_is() {
    let new = cup("2026-05-30T11:00:00Z", 1.0, "");
    assert_eq!(folded(None, &kept(new.clone(), 1)), Some(new));
}

#[test]
fn what_use_and_others_made_of_it_stays() {
    let stored = cup("2026-05-30T11:00:00Z", 1.0, "");
    let mut stored = stored.as_object().cloned().unwrap();
    stored.insert("version", 4);
    stored.insert("tier", "longterm");
    stored.insert("confidence", value_of(r#"{"alpha":3,"beta":1,"calibrated":0.8}"#));
    stored.insert("decay", value_of(r#"{"halfLifeHours":99,"accessCount":7,"anchored":true}"#));
    let extensions = stored.get_mut("extension").and_then(Value::as_array_mut).unwrap();
    extensions.push(value_of(r#"{"url":"urn:other:note","valueString":"mine"}"#));
    // The daemon merged four others into it.
    extensions.push(value_of(&format!(
        r#"{{"url":"{CONSOLIDATED_URL}","valueJson":{{"count":5,"first":"2026-05-01T00:00:00Z",
        "last":"2026-05-30T11:00:00Z","from":["a","b"],
        "evidence":[{{"source":"x","alpha":2,"beta":0}}]}}}}"#
    )));
    let stored = Value::Object(stored);
    let new = kept(cup("2026-05-30T12:00:00Z", 2.0, ""), 3);
    let value = folded(Some(&stored), &new).unwrap();
    Resource::from_value(value.clone()).unwrap();
    assert_eq!(at(&value, "/content"), Some(&Value::from("saw cup at 2")));
    assert_eq!(at(&value, "/eventTime"), Some(&Value::from("2026-05-30T12:00:00Z")));
    // The version as well, so that a store can tell whether it is still that one.
    for pointer in ["/tier", "/confidence", "/decay", "/createdAt", "/version"] {
        assert_eq!(at(&value, pointer), at(&stored, pointer), "{pointer}");
    }
    assert_eq!(at(&value, "/extension/0/valueJson/position/0"), Some(&Value::from(2.0)));
    assert_eq!(at(&value, "/extension/1/valueString"), Some(&Value::from("mine")));
    let told = told_of(&value);
    assert_eq!(told.get("count"), Some(&Value::from(8)));
    assert_eq!(told.get("first"), Some(&Value::from("2026-05-01T00:00:00Z")));
    assert_eq!(told.get("last"), Some(&Value::from("2026-05-30T12:00:00Z")));
    assert_eq!(told.get("from"), told_of(&stored).get("from"));
    assert_eq!(told.get("evidence"), Some(&value_of(r#"{"x":[2.0,0.0]}"#)));
    assert_eq!(folded(Some(&value), &new), None, "no sight counts twice");
    let earlier = kept(cup("2026-05-30T11:30:00Z", 9.0, ""), 1);
    assert_eq!(folded(Some(&value), &earlier), None, "nor one that it is later than");
}

fn value_of(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

#[test]
fn where_it_was_not_placed_it_is_where_it_was() {
    let stored = cup("2026-05-30T11:00:00Z", 1.0, "");
    let new = value(
        r#"{"resourceType":"MemoryRecord","id":"ros2-1","content":"saw cup",
        "createdAt":"2026-05-30T11:00:00Z","eventTime":"2026-05-30T12:00:00Z",
        "extension":[{"url":"https://omir.io/spec/R1/extension/spatial-pose",
            "valueJson":{"frame":"camera","position":[1,2,3]}},
            {"url":"urn:omird:ext:unplaced","valueString":"no transform"}]}"#,
    );
    let new = KeptResource { unplaced: Some("no transform".into()), ..kept(new, 1) };
    let value = folded(Some(&stored), &new).unwrap();
    assert_eq!(at(&value, "/extension/0"), at(&stored, "/extension/0"));
    assert_eq!(value.get("extension").and_then(Value::as_array).unwrap().len(), 2);
    assert_eq!(told_of(&value).get("count"), Some(&Value::from(2)));
}

#[test]
fn what_was_only_counted_is_told() {
    let stored = cup("2026-05-30T11:00:00Z", 1.0, "");
    let last = "2026-05-30T11:05:00Z".parse().unwrap();
    let untold = UnreportedSightings {
        reference: "MemoryRecord/ros2-1".into(),
        seen: 41,
        last: Stamp::from_timestamp(last).unwrap(),
        heard: None,
        late: None,
    };
    let value = with_unreported(&stored, &untold).unwrap();
    assert_eq!(told_of(&value).get("count"), Some(&Value::from(42)));
    assert_eq!(told_of(&value).get("first"), Some(&Value::from("2026-05-30T11:00:00Z")));
    assert_eq!(at(&value, "/eventTime"), Some(&Value::from("2026-05-30T11:05:00Z")));
    assert_eq!(at(&value, "/content"), at(&stored, "/content"));
    assert_eq!(with_unreported(&value, &untold), None);
}

fn stamp(text: &str) -> Stamp {
    Stamp::from_timestamp(text.parse().unwrap()).unwrap()
}

fn dock(seen: &str, x: f64) -> Value {
    value(&format!(
        r#"{{"resourceType":"Entity","id":"dock","name":"dock","mentionCount":1,"lastSeenAt":"{seen}",
        "extension":[{{"url":"{SPATIAL_POSE_URL}",
            "valueJson":{{"frame":"map","position":[{x},2,0]}}}}]}}"#
    ))
}

#[test]
fn what_is_seen_now_is_news_though_its_stamp_is_behind() {
    // A board without a clock of its own began in 1970; the daemon goes on from when it was shut down.
    let stored = dock("2026-05-30T12:00:00Z", 1.0);
    let moved = |x, stamp_s: &str, heard: &str| KeptResource {
        heard: Some(stamp(heard)),
        ..kept(dock(stamp_s, x), 1)
    };
    let booted = moved(5.0, "1970-01-01T00:01:00Z", "2026-05-30T12:00:30Z");
    let value = folded(Some(&stored), &booted).unwrap();
    assert_eq!(at(&value, "/extension/0/valueJson/position/0"), Some(&Value::from(5.0)));
    assert_eq!(at(&value, "/lastSeenAt"), Some(&Value::from("2026-05-30T12:00:30Z")));
    assert_eq!(folded(Some(&value), &booted), None, "once");
    // A publisher was a year ahead once.
    let ahead = dock("2027-05-30T12:00:00Z", 1.0);
    let right = moved(5.0, "2026-05-30T12:01:00Z", "2026-05-30T12:01:00.100Z");
    let value = folded(Some(&ahead), &right).unwrap();
    assert_eq!(at(&value, "/lastSeenAt"), Some(&Value::from("2026-05-30T12:01:00.100Z")));
    // Of two cameras one is a little late.
    let late = moved(5.0, "2026-05-30T11:59:58Z", "2026-05-30T12:00:01Z");
    assert_eq!(folded(Some(&stored), &late), None);
    // Or the other thinks for a quarter of a minute, or was cut off for minutes: it does not take the dock back.
    for (event, heard) in [
        ("2026-05-30T11:59:50Z", "2026-05-30T12:00:05Z"),
        ("2026-05-30T11:53:00Z", "2026-05-30T12:00:05Z"),
    ] {
        assert_eq!(folded(Some(&stored), &moved(5.0, event, heard)), None, "{event}");
    }
    // A message that its publisher kept may have come before.
    let kept = KeptResource { heard: None, ..booted };
    assert_eq!(folded(Some(&stored), &kept), None);
    // So with records, and with what is only counted.
    let cups = cup("2026-05-30T12:00:00Z", 1.0, "");
    let again = KeptResource {
        heard: Some(stamp("2026-05-30T12:00:30Z")),
        ..self::kept(cup("1970-01-01T00:01:00Z", 5.0, ""), 1)
    };
    let value = folded(Some(&cups), &again).unwrap();
    assert_eq!(at(&value, "/eventTime"), Some(&Value::from("2026-05-30T12:00:30Z")));
    assert_eq!(told_of(&value).get("count"), Some(&Value::from(2)));
    let untold = UnreportedSightings {
        reference: "MemoryRecord/ros2-1".into(),
        seen: 3,
        last: stamp("1970-01-01T00:02:00Z"),
        heard: Some(stamp("2026-05-30T12:01:30Z")),
        late: None,
    };
    let value = with_unreported(&value, &untold).unwrap();
    assert_eq!(told_of(&value).get("count"), Some(&Value::from(5)));
}

#[test]
fn an_entity_keeps_what_is_known_of_it() {
    let stored = value(
        r#"{"resourceType":"Entity","id":"dock","name":"The Dock","labels":["location"],
        "mentionCount":3,"salience":0.9,"attributes":{"maker":"acme"},
        "extension":[{"url":"urn:other:note","valueString":"mine"}]}"#,
    );
    let new = value(&format!(
        r#"{{"resourceType":"Entity","id":"dock","name":"dock","labels":["location","technology"],
        "mentionCount":1,"salience":0.1,"summary":"free","lastSeenAt":"2026-05-30T12:00:00Z",
        "extension":[{{"url":"{SPATIAL_POSE_URL}",
            "valueJson":{{"frame":"map","position":[1,2,0]}}}}]}}"#
    ));
    let value = folded(Some(&stored), &kept(new.clone(), 2)).unwrap();
    Resource::from_value(value.clone()).unwrap();
    assert_eq!(at(&value, "/name"), Some(&Value::from("The Dock")));
    assert_eq!(at(&value, "/mentionCount"), Some(&Value::from(5)));
    assert_eq!(at(&value, "/salience"), at(&stored, "/salience"));
    assert_eq!(at(&value, "/attributes"), at(&stored, "/attributes"));
    assert_eq!(at(&value, "/summary"), Some(&Value::from("free")));
    assert_eq!(at(&value, "/labels"), Some(&vec!["location", "technology"].into()));
    assert_eq!(at(&value, "/extension/0"), at(&new, "/extension/0"));
    assert_eq!(at(&value, "/extension/1"), at(&stored, "/extension/0"));
    assert_eq!(folded(Some(&value), &kept(new, 2)), None);
}
