//! A memory as a tool shows it: flat, short, and with its units stated.

use omir_core::instant::{Instant, Timestamp};
use omir_core::reference::Ref;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value};
use omir_core::words::{name, words};
use omird_router::field::{ANY_NUMBER, ANY_TEXT};
use omird_router::{Field, Shape};

/// Most characters of a memory's text in a list.
const SHORT: usize = 400;
/// Most entities of a memory in a list.
const MOST_ENTITIES: usize = 8;

/// The members that each memory of a result may have.
pub(super) const MEMORY: &[Field] = &[
    Field::new("reference", ANY_TEXT, "Type/id, for get, forget, anchor, feedback and explain.")
        .required(),
    Field::new("text", ANY_TEXT, "The words of the memory.").required(),
    Field::new(
        "text_is_cut",
        Shape::Flag,
        "True if `text` is only the beginning; get has all of it.",
    ),
    Field::new("time", ANY_TEXT, "When it happened, RFC 3339."),
    Field::new("age", ANY_TEXT, "How long ago that is, in words."),
    Field::new(
        "age_seconds",
        ANY_NUMBER,
        "The same in seconds; negative for what is still to come.",
    ),
    Field::new("x", ANY_NUMBER, "Metres along the x axis of `frame`."),
    Field::new("y", ANY_NUMBER, "Metres along the y axis of `frame`."),
    Field::new("z", ANY_NUMBER, "Metres along the z axis of `frame`."),
    Field::new("frame", ANY_TEXT, "The coordinate frame of x, y and z."),
    Field::new("latitude", ANY_NUMBER, "Degrees, WGS 84."),
    Field::new("longitude", ANY_NUMBER, "Degrees, WGS 84."),
    Field::new("distance_m", ANY_NUMBER, "Metres from the place that was asked about."),
    Field::new(
        "entities",
        Shape::List(&ANY_TEXT, 0, usize::MAX),
        "References of the things it mentions.",
    ),
    Field::new("experience_type", ANY_TEXT, "The nature of the experience."),
    Field::new("importance", ANY_NUMBER, "0 to 1, as stated."),
    Field::new("confidence", ANY_NUMBER, "0 to 1."),
    Field::new("score", ANY_NUMBER, "How well it fits the question, 0 to 1."),
    Field::new("retrievability", ANY_NUMBER, "How far it has not faded yet, 0 to 1."),
];

/// Shows a resource. Of its places the one in `frame` comes first.
pub(super) fn shown(resource: &Value, frame: &str, now: Timestamp) -> Map {
    let mut map = Map::new();
    map.insert("reference", name(resource));
    let words = words(resource);
    match words.char_indices().nth(SHORT) {
        Some((end, _)) => {
            map.insert("text", format!("{}…", words[..end].trim_end()));
            map.insert("text_is_cut", true);
        }
        None => _ = map.insert("text", words),
    }
    if let Some(at) = time_of(resource) {
        map.insert("time", at.to_string());
        insert_age(&mut map, at, now);
    }
    insert_place(&mut map, resource, frame);
    let mentions = mentions(resource);
    if !mentions.is_empty() {
        let shown = mentions.into_iter().take(MOST_ENTITIES);
        map.insert("entities", shown.collect::<Value>());
    }
    for (from, to) in [("experienceType", "experience_type"), ("importance", "importance")] {
        if let Some(value) = resource.get(from) {
            map.insert(to, value.clone());
        }
    }
    if let Some(confidence) = resource.pointer("/confidence/calibrated") {
        map.insert("confidence", confidence.clone());
    }
    map
}

/// The time of an event: `eventTime`, else `createdAt`.
pub(super) fn time_of(resource: &Value) -> Option<Timestamp> {
    let time = |name| resource.get(name)?.as_str()?.parse::<Instant>().ok();
    time("eventTime").or_else(|| time("createdAt")).map(|instant| instant.at())
}

/// Adds the age of something at `at`, in words and in seconds.
pub(super) fn insert_age(map: &mut Map, at: Timestamp, now: Timestamp) {
    let seconds = now.micros_since(at) / 1_000_000;
    map.insert("age", age_in_words(seconds));
    map.insert("age_seconds", seconds);
}

fn age_in_words(seconds: i64) -> String {
    let (count, unit) = match seconds {
        ..0 => return "still to come".to_owned(),
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

/// Returns true if the resource has a place, in `frame` if one is named.
pub(super) fn has_place(resource: &Value, frame: Option<&str>) -> bool {
    poses(resource).any(|pose| {
        frame.is_none_or(|frame| pose.get("frame").and_then(Value::as_str) == Some(frame))
    })
}

fn poses(resource: &Value) -> impl Iterator<Item = &Value> {
    let extensions = resource.get("extension").and_then(Value::as_array).unwrap_or_default();
    extensions
        .iter()
        .filter(|one| one.get("url").and_then(Value::as_str) == Some(SPATIAL_POSE_URL))
        .filter_map(|one| one.get("valueJson"))
}

fn insert_place(map: &mut Map, resource: &Value, frame: &str) {
    let frame_of = |pose: &Value| pose.get("frame").and_then(Value::as_str).map(str::to_owned);
    let in_frame = poses(resource).find(|pose| frame_of(pose).as_deref() == Some(frame));
    let Some(pose) = in_frame.or_else(|| poses(resource).next()) else { return };
    let position = pose.get("position").and_then(Value::as_array).unwrap_or_default();
    if let [x, y, z] = position {
        map.insert("x", x.clone());
        map.insert("y", y.clone());
        map.insert("z", z.clone());
        map.insert("frame", frame_of(pose).unwrap_or_default());
    }
    for (from, to) in [("/geo/lat", "latitude"), ("/geo/lon", "longitude")] {
        if let Some(degrees) = pose.pointer(from) {
            map.insert(to, degrees.clone());
        }
    }
}

/// The entities that a record mentions, as references.
fn mentions(resource: &Value) -> Vec<String> {
    let listed = resource.get("entityRefs").and_then(Value::as_array).unwrap_or_default();
    let targets = listed.iter().filter_map(|one| one.get("ref")?.as_str());
    targets.filter(|text| text.parse::<Ref>().is_ok()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::{decode::Limits, json};

    fn value(text: &str) -> Value {
        json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn a_memory_is_flat_and_states_its_place_and_age() {
        let resource = value(
            r#"{"resourceType":"MemoryRecord","id":"a","content":"a cup","createdAt":"2026-01-02T00:00:00Z",
            "eventTime":"2026-01-01T00:00:00Z","importance":0.5,"entityRefs":[{"ref":"Entity/cup"}],
            "confidence":{"calibrated":0.7},"extension":[
            {"url":"urn:omird:ext:owned","valueJson":true},
            {"url":"https://omir.io/spec/R1/extension/spatial-pose","valueJson":{"frame":"odom","position":[9,9,9]}},
            {"url":"https://omir.io/spec/R1/extension/spatial-pose","valueJson":{"frame":"map","position":[1,2.5,0],
             "geo":{"lat":48.1,"lon":11.5}}}]}"#,
        );
        let now = Timestamp::parse("2026-01-01T03:00:00Z").unwrap();
        let expected = r#"{"reference":"MemoryRecord/a","text":"a cup","time":"2026-01-01T00:00:00Z","age":"3 hours ago","age_seconds":10800,"x":1,"y":2.5,"z":0,"frame":"map","latitude":48.1,"longitude":11.5,"entities":["Entity/cup"],"importance":0.5,"confidence":0.7}"#;
        assert_eq!(json::to_string(&Value::Object(shown(&resource, "map", now))), expected);
        assert!(has_place(&resource, None) && has_place(&resource, Some("odom")));
        assert!(!has_place(&resource, Some("base_link")) && !has_place(&value("{}"), None));
    }

    #[test]
    fn long_words_are_cut_and_say_so() {
        let long = "é".repeat(SHORT + 1);
        let resource = value(&format!(r#"{{"resourceType":"Entity","id":"a","name":"{long}"}}"#));
        let map = shown(&resource, "map", Timestamp::EPOCH);
        let text = map.get("text").and_then(Value::as_str).unwrap();
        assert_eq!(text.chars().count(), SHORT + 1);
        assert!(text.ends_with('…'));
        assert_eq!(map.get("text_is_cut"), Some(&Value::Bool(true)));
        assert_eq!(map.get("x"), None);
    }

    #[test]
    fn ages_are_told_in_words() {
        for (seconds, words) in [
            (-1, "still to come"),
            (1, "1 second ago"),
            (119, "119 seconds ago"),
            (120, "2 minutes ago"),
            (7_200, "2 hours ago"),
            (172_800, "2 days ago"),
        ] {
            assert_eq!(age_in_words(seconds), words);
        }
    }
}
