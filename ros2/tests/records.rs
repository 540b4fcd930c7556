//! Resources as messages and back, requests and answers.
//!
//! Invariant 25 of ARCHITECTURE.md.

#[path = "../../core-nostd/tests/arbitrary/mod.rs"]
mod resources;

use std::sync::LazyLock;

use omir_core::decode::Limits;
use omir_core::event::EventKind;
use omir_core::json;
use omir_core::operation::Operation;
use omir_core::value::{Map, Value as Json};
use omir_ros2::interface::Registry;
use omir_ros2::message::{Message, Value};
use omir_ros2::records::{Progress, Records, Refused};
use omir_ros2::stamp::Stamp;
use proptest::prelude::*;

/// Made once, for there are many cases.
static KNOWN: LazyLock<(Registry, Records)> = LazyLock::new(|| {
    let registry = Registry::standard();
    let records = Records::new(&registry).unwrap();
    (registry, records)
});

fn records() -> &'static (Registry, Records) {
    &KNOWN
}

fn json(text: &str) -> Json {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn new(registry: &Registry, name: &str) -> Message {
    Message::new(&registry.message(&format!("omir_msgs/{name}")).unwrap())
}

/// Over the wire and back.
fn sent(records: &Records, resource: &Json) -> Json {
    let message = records.to_message(resource).unwrap();
    let received = Message::decode(message.ty(), &message.encode()).unwrap();
    assert_eq!(received, message);
    records.from_message(&received).unwrap_or_else(|wrong| panic!("{wrong}: {message:?}"))
}

/// The resource in an `omir_msgs/msg/Resource`; `None` if it is empty.
fn from_any(records: &Records, any: &Message) -> Option<Json> {
    let mut found = any.values().iter().filter_map(Value::as_list).flatten();
    let message = found.next().and_then(Value::as_message)?;
    assert_eq!(found.next(), None, "one resource of one type");
    Some(records.from_message(message).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_resource_loses_anything(resource in resources::resource()) {
        let (_, records) = records();
        prop_assert_eq!(sent(records, &resource), resource.clone());
        prop_assert_eq!(from_any(records, &records.to_any(&resource)), Some(resource));
    }

    /// Invalid resources come through as well, so that the daemon says what is wrong with them.
    #[test]
    fn nor_does_what_is_none(
        kind in prop::sample::select(vec!["MemoryRecord", "Entity", "Relationship", "Episode"]),
        members in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "id", "content", "createdAt", "importance", "confidence", "decay", "entityRefs",
                    "version", "extension", "labels", "attributes", "metadata", "from", "other",
                ]),
                resources::value(),
            ),
            0..8,
        ),
    ) {
        let (_, records) = records();
        let mut map = Map::new();
        for (name, value) in members {
            map.insert(name, value);
        }
        map.insert("resourceType", kind);
        let resource = Json::Object(map);
        prop_assert_eq!(sent(records, &resource), resource);
    }

    /// Somebody changes a field of what was given: the change is in the resource, or it is refused.
    #[test]
    fn a_changed_field_is_never_passed_over(
        resource in resources::resource(),
        which in any::<prop::sample::Index>(),
    ) {
        let (_, records) = records();
        let mut message = records.to_message(&resource).unwrap();
        let changes: [(&str, omir_ros2::message::Value, &str, &str); 8] = [
            ("content", "changed".into(), "/content", r#""changed""#),
            ("importance", vec![0.123].into(), "/importance", "0.123"),
            ("decay.half_life_hours", vec![7.5].into(), "/decay/halfLifeHours", "7.5"),
            ("version", 77.into(), "/version", "77"),
            ("name", "changed".into(), "/name", r#""changed""#),
            ("entities", vec!["Entity/new".to_string()].into(), "/entityRefs", r#"[{"ref":"Entity/new"}]"#),
            ("from_ref", "Entity/new".into(), "/from/ref", r#""Entity/new""#),
            ("strength", vec![0.123].into(), "/strength", "0.123"),
        ];
        let mine: Vec<_> =
            changes.iter().filter(|(field, ..)| message.get(field).is_some()).collect();
        let (field, value, pointer, expected) = mine[which.index(mine.len())];
        message.set(field, value.clone()).unwrap();
        match records.from_message(&message) {
            Ok(changed) => prop_assert_eq!(changed.pointer(pointer), Some(&json(expected))),
            Err(Refused { path, .. }) => prop_assert!(pointer.starts_with(&path), "{} {}", path, pointer),
        }
    }

    #[test]
    fn poses_among_other_extensions(
        order in prop::collection::vec(0usize..5, 0..6),
        x in prop_oneof![Just("1.5"), Just("0.1000000000000000055511151231257827"), Just("1e400")],
    ) {
        let (_, records) = records();
        let place = "https://omir.io/spec/R1/extension/spatial-pose";
        let kinds = [
            format!(r#"{{"url":"{place}","valueJson":{{"frame":"map","position":[{x},0,-2]}}}}"#),
            format!(
                r#"{{"url":"{place}","valueJson":{{"frame":"odom","position":[1,2,3],
                "orientation":[0,0,0,1],"stamp":"2026-01-01T01:00:00+01:00","childFrame":"base_link",
                "geo":{{"lat":48.1,"lon":11.5}}}}}}"#
            ),
            format!(r#"{{"url":"{place}","valueString":"none"}}"#),
            r#"{"url":"urn:demo:other","valueNumber":7}"#.into(),
            "null".into(),
        ];
        let all: Vec<String> = order.iter().map(|i| kinds[*i].clone()).collect();
        let text = format!(
            r#"{{"resourceType":"Entity","id":"e","name":"","extension":[{}]}}"#,
            all.join(",")
        );
        let resource = json(&text);
        prop_assert_eq!(sent(records, &resource), resource);
    }
}

const FULL: &str = r#"{
    "resourceType": "MemoryRecord", "id": "m1", "content": "The charger is here.", "kind": "memory",
    "experienceType": "observation", "tier": "longterm", "createdAt": "2026-05-30T11:42:05Z",
    "eventTime": "2026-05-30T11:42:04.250Z", "importance": 0.8,
    "confidence": {"alpha": 3, "beta": 1, "calibrated": 0.7},
    "decay": {"halfLifeHours": 168, "lastAccess": "2026-05-31T00:00:00Z", "accessCount": 0, "anchored": true},
    "provenance": {"source": "detector", "sourceType": "observation", "credibility": 0, "externalId": "x"},
    "entityRefs": [{"ref": "Entity/charger"}], "parentId": "m0", "version": 2,
    "extension": [{"url": "https://omir.io/spec/R1/extension/spatial-pose", "valueJson": {
        "frame": "map", "position": [1.5, -2, 0], "orientation": [0, 0, 1, 0],
        "stamp": "2026-05-30T11:42:04.250Z", "childFrame": "base_link",
        "geo": {"lat": 48.1, "lon": 11.5, "alt": 520}}}]
}"#;

#[test]
fn what_people_use_is_in_fields() {
    let (_, records) = records();
    let message = records.to_message(&json(FULL)).unwrap();
    assert_eq!(message.text("json"), Some(""));
    assert_eq!(message.text("content"), Some("The charger is here."));
    assert_eq!(message.i64("event_time.sec"), Some(1_780_141_324));
    assert_eq!(message.i64("event_time.nanosec"), Some(250_000_000));
    assert_eq!(message.floats("importance"), Some(&[0.8][..]));
    assert_eq!(message.u64("decay.access_count[0]"), Some(0));
    assert_eq!(message.floats("provenance.credibility"), Some(&[0.0][..]));
    assert_eq!(message.text("entities[0]"), Some("Entity/charger"));
    assert_eq!(message.text("pose.header.frame_id"), Some("map"));
    assert_eq!(message.f64("pose.pose.pose.position.y"), Some(-2.0));
    assert_eq!(message.f64("pose.pose.pose.orientation.z"), Some(1.0));
    assert_eq!(message.f64("pose.geo[0].altitude[0]"), Some(520.0));
    assert_eq!(records.from_message(&message).unwrap(), json(FULL));
}

#[test]
fn what_no_field_holds_exactly_is_in_json_too() {
    let (_, records) = records();
    let message = records
        .to_message(&json(
            r#"{"resourceType": "MemoryRecord", "id": "m", "content": "a\u0000b", "meta": {"source": "x"},
            "createdAt": "2026-05-30T13:42:05+02:00", "decay": {"anchored": false, "accessCount": 3},
            "importance": 0.30000000000000000001, "entityRefs": []}"#,
        ))
        .unwrap();
    assert_eq!(message.text("content"), Some("ab"));
    assert_eq!(message.i64("created_at.sec"), Some(1_780_141_325));
    assert_eq!(message.f64("importance[0]"), Some(0.3));
    let rest = json(message.text("json").unwrap());
    assert_eq!(
        rest,
        json(
            r#"{"content": "a\u0000b", "meta": {"source": "x"}, "createdAt": "2026-05-30T13:42:05+02:00",
            "decay": {"anchored": false}, "importance": 0.30000000000000000001, "entityRefs": []}"#
        )
    );
}

#[test]
fn fields_alone_make_a_resource() {
    let (registry, records) = records();
    let mut message = new(registry, "msg/MemoryRecord");
    assert_eq!(
        records.from_message(&message).unwrap().to_string(),
        r#"{"resourceType":"MemoryRecord"}"#
    );
    message.set("content", "Here.").unwrap();
    message.set("importance", vec![0.0]).unwrap();
    message.set("entities", vec!["Entity/a".to_string()]).unwrap();
    message.set("pose.header.frame_id", "map").unwrap();
    message
        .set("json", r#"{"meta": {"source": "nav2"}, "extension": [null, {"url": "urn:a:b"}]}"#)
        .unwrap();
    assert_eq!(
        records.from_message(&message).unwrap(),
        json(
            r#"{"resourceType": "MemoryRecord", "content": "Here.", "importance": 0,
            "entityRefs": [{"ref": "Entity/a"}], "meta": {"source": "nav2"}, "extension": [
            {"url": "https://omir.io/spec/R1/extension/spatial-pose", "valueJson":
                {"frame": "map", "position": [0, 0, 0], "orientation": [0, 0, 0, 1]}},
            {"url": "urn:a:b"}]}"#
        )
    );
    // All of it in `json` is as good.
    let mut whole = new(registry, "msg/MemoryRecord");
    whole.set("json", FULL).unwrap();
    whole.set("content", "The charger is here.").unwrap();
    assert_eq!(records.from_message(&whole).unwrap(), json(FULL));
}

#[test]
fn fields_and_json_that_disagree_are_refused_with_the_place() {
    let (registry, records) = records();
    let refused = |kind: &str, changes: &[(&str, omir_ros2::message::Value)]| {
        let mut message = new(registry, kind);
        for (path, value) in changes {
            message.set(path, value.clone()).unwrap();
        }
        let Refused { path, why } = records.from_message(&message).unwrap_err();
        assert!(!why.is_empty());
        path
    };
    let record = "msg/MemoryRecord";
    for (text, path) in [
        (r#"{"content": "b"}"#, "/content"),
        (r#"{"importance": 0.8}"#, "/importance"),
        (r#"{"decay": {"halfLifeHours": 2}}"#, "/decay/halfLifeHours"),
        (r#"{"decay": 7}"#, "/decay"),
        (r#"{"entityRefs": []}"#, "/entityRefs"),
        (r#"{"createdAt": "2026-05-30T11:42:05Z"}"#, "/createdAt"),
        (r#"{"resourceType": "Entity"}"#, "/resourceType"),
        (r#"{"extension": {}}"#, "/extension"),
        (r#"{"extension": [null, null]}"#, "/extension/1"),
        (
            r#"{"extension": [{"url": "https://omir.io/spec/R1/extension/spatial-pose",
            "valueJson": {"frame": "odom", "position": [0, 0, 0]}}]}"#,
            "/extension/0",
        ),
        ("[]", "/json"),
        ("{", "/json"),
    ] {
        let changes = [
            ("content", "a".into()),
            ("importance", vec![0.5].into()),
            ("decay.half_life_hours", vec![1.0].into()),
            ("entities", vec!["Entity/a".to_string()].into()),
            ("created_at.sec", 5.into()),
            ("pose.header.frame_id", "map".into()),
            ("json", text.into()),
        ];
        assert_eq!(refused(record, &changes), path, "{text}");
    }
    assert_eq!(refused(record, &[("importance", vec![f64::NAN].into())]), "/importance");
    assert_eq!(refused(record, &[("event_time.nanosec", 1_000_000_000u32.into())]), "/eventTime");
    assert_eq!(
        refused(record, &[("pose.pose.pose.position.x", 1.0.into())]),
        "/pose/header/frame_id"
    );
    let nowhere = [
        ("pose.header.frame_id", "map".into()),
        ("pose.pose.pose.position.x", f64::INFINITY.into()),
    ];
    assert_eq!(refused(record, &nowhere), "/pose/pose/pose/position");
    let pair = new(registry, "msg/KeyValue");
    let twice = [("attributes", vec![pair.clone(), pair].into())];
    assert_eq!(refused("msg/Entity", &twice), "/attributes");
}

#[test]
fn an_object_of_too_many_members_is_refused_at_once() {
    let (registry, records) = records();
    let members = |count: usize| -> String {
        let members: Vec<String> = (0..count).map(|n| format!(r#""m{n}":0"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let with = |count: usize| -> Vec<(&'static str, omir_ros2::message::Value)> {
        vec![("filter.json", members(count).into())]
    };
    assert!(call(Operation::Recall, &with(1000)).is_ok());
    for count in [1001, 100_000] {
        assert_eq!(call(Operation::Recall, &with(count)).unwrap_err().path, "/filter/json");
        let inside = format!(r#"{{"decay":{}}}"#, members(count));
        for (text, path) in [(members(count), "/json"), (inside, "/decay")] {
            let mut record = new(registry, "msg/MemoryRecord");
            record.set("decay.half_life_hours", vec![1.0]).unwrap();
            record.set("json", text).unwrap();
            assert_eq!(records.from_message(&record).unwrap_err().path, path);
        }
        let pairs = (0..count).map(|n| {
            let mut pair = new(registry, "msg/KeyValue");
            pair.set("key", format!("k{n}")).unwrap();
            pair
        });
        let mut entity = new(registry, "msg/Entity");
        entity.set("attributes", pairs.collect::<Vec<_>>()).unwrap();
        assert_eq!(records.from_message(&entity).unwrap_err().path, "/attributes");
    }
    // Values count as in any other request.
    let zeros = format!("[{}0]", "0,".repeat(500_000));
    let mut request = Message::new(&records.service(Operation::Remember).unwrap().request);
    request.set("json", zeros).unwrap();
    assert_eq!(records.request(Operation::Remember, &request).unwrap_err().path, "/json");
}

/// The call that a request of these fields means.
fn call(
    operation: Operation,
    changes: &[(&str, omir_ros2::message::Value)],
) -> Result<Json, Refused> {
    let (_, records) = records();
    let mut request = Message::new(&records.service(operation).unwrap().request);
    for (path, value) in changes {
        request.set(path, value.clone()).unwrap();
    }
    records.request(operation, &request).map(|call| call.parameters.into())
}

#[test]
fn a_recall_has_the_parameters_of_the_page() {
    let (registry, _) = records();
    let point = Message::new(&registry.message("geometry_msgs/msg/Point").unwrap());
    let mut far = point.clone();
    far.set("x", 2.5).unwrap();
    let mut geo = new(registry, "msg/GeoPoint");
    geo.set("latitude", 48.1).unwrap();
    let texts = |text: &str| vec![text.to_string()].into();
    assert_eq!(call(Operation::Recall, &[]).unwrap(), json("{}"));
    assert_eq!(
        call(
            Operation::Recall,
            &[
                ("filter.text", "charger".into()),
                ("filter.near", vec![far.clone()].into()),
                ("filter.planar", true.into()),
                ("filter.frame", "map".into()),
                ("filter.radius", vec![2.0].into()),
                ("filter.box", vec![point.clone(), far.clone()].into()),
                ("filter.geo", vec![geo].into()),
                ("filter.after.sec", 1_780_141_325.into()),
                ("filter.types", texts("MemoryRecord")),
                ("filter.min_importance", vec![0.0].into()),
                ("filter.include_expired", true.into()),
                ("filter.json", r#"{"newParameter": 1}"#.into()),
                ("limit", 5.into()),
                ("untouched", true.into()),
                ("explain", true.into()),
            ],
        )
        .unwrap(),
        json(
            r#"{"q": "charger", "near": [2.5, 0], "frame": "map", "radius": 2, "box": [0,0,0,2.5,0,0],
            "geo": [48.1, 0], "_time": "[2026-05-30T11:42:05Z..]", "type": ["MemoryRecord"],
            "minImportance": 0, "includeExpired": true, "newParameter": 1, "limit": 5, "touch": false,
            "explain": true}"#
        )
    );
    for (changes, path) in [
        (vec![("filter.box", vec![point].into())], "/filter/box"),
        (
            vec![(
                "filter.near",
                vec![{
                    far.set("z", f64::NAN).unwrap();
                    far.clone()
                }]
                .into(),
            )],
            "/filter/near/z",
        ),
        (vec![("filter.time", "[..]".into()), ("filter.before.sec", 1.into())], "/filter/time"),
        (
            vec![("filter.text", "a".into()), ("filter.json", r#"{"q": "b"}"#.into())],
            "/filter/json/q",
        ),
    ] {
        assert_eq!(call(Operation::Recall, &changes).unwrap_err().path, path);
    }
}

#[test]
fn the_other_requests() {
    let texts = |all: &[&str]| all.iter().map(|text| text.to_string()).collect::<Vec<_>>().into();
    assert_eq!(
        call(Operation::Forget, &[("refs", texts(&["Entity/a", "Entity/b"]))]).unwrap(),
        json(r#"{"ref": ["Entity/a", "Entity/b"]}"#)
    );
    let named = ("ref", "MemoryRecord/m".into());
    assert_eq!(
        call(Operation::Anchor, std::slice::from_ref(&named)).unwrap(),
        json(r#"{"ref": "MemoryRecord/m", "anchored": false}"#)
    );
    assert_eq!(
        call(
            Operation::Feedback,
            &[named.clone(), ("outcome", "confirmed".into()), ("weight", 2.0.into())]
        )
        .unwrap(),
        json(r#"{"ref": "MemoryRecord/m", "outcome": "confirmed", "weight": 2}"#)
    );
    let (registry, all) = records();
    let pose = |x: f64| {
        let request = Message::new(&all.service(Operation::Rebase).unwrap().request);
        let mut pose = Message::new(&registry.message("geometry_msgs/msg/Pose").unwrap());
        assert!(request.list("poses").is_some());
        pose.set("position.x", x).unwrap();
        pose
    };
    let two = ["kf_1", "kf_2"].map(String::from).to_vec();
    assert_eq!(
        call(
            Operation::Rebase,
            &[("keyframes", two.clone().into()), ("poses", vec![pose(1.0), pose(2.0)].into())]
        )
        .unwrap(),
        json(
            r#"{"keyframes": {"kf_1": {"position": [1, 0, 0], "orientation": [0, 0, 0, 1]},
                "kf_2": {"position": [2, 0, 0], "orientation": [0, 0, 0, 1]}}}"#
        )
    );
    assert_eq!(call(Operation::Rebase, &[]).unwrap(), json("{}"));
    let lacks = call(Operation::Rebase, &[("keyframes", two.into())]).unwrap_err();
    assert_eq!(lacks.path, "/poses");
    for (operation, field) in
        [(Operation::Forget, "/refs"), (Operation::Anchor, "/ref"), (Operation::Feedback, "/ref")]
    {
        assert_eq!(call(operation, &[]).unwrap_err().path, field);
    }
    assert_eq!(call(Operation::Feedback, &[named]).unwrap_err().path, "/outcome");

    let (_, records) = records();
    let mut goal = Message::new(&records.import().goal);
    assert_eq!(records.import_goal(&goal).unwrap_err().path, "/path");
    goal.set("path", "/data/a.mcap").unwrap();
    assert_eq!(
        Json::from(records.import_goal(&goal).unwrap()),
        json(r#"{"path": "/data/a.mcap"}"#)
    );
}

/// tf2 takes `/map` for `map`.
#[test]
fn a_leading_slash_is_no_other_frame() {
    let (registry, records) = records();
    for (field, operation) in [("filter.frame", Operation::Recall), ("frame", Operation::Rebase)] {
        let frame = |name: &str| call(operation, &[(field, name.into())]);
        assert_eq!(frame("/map").unwrap(), json(r#"{"frame": "map"}"#), "{field}");
        let why = frame("/").unwrap_err().why;
        assert!(why.contains("\"/\" names no frame"), "{why}");
    }

    let pose = Message::new(&registry.message("geometry_msgs/msg/Pose").unwrap());
    let keyframes = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let poses = vec![pose.clone(); names.len()];
        call(Operation::Rebase, &[("keyframes", names.into()), ("poses", poses.into())])
    };
    assert!(keyframes(&["/kf_1"]).unwrap().pointer("/keyframes/kf_1").is_some());
    let twice = keyframes(&["kf_1", "/kf_1"]).unwrap_err();
    assert_eq!(
        (twice.path.as_str(), twice.why.as_str()),
        ("/keyframes/1", "\"kf_1\" is named twice")
    );
    assert_eq!(keyframes(&["kf_1", ""]).unwrap_err().path, "/keyframes/1");

    let of_ros_1 = FULL.replace("\"map\"", "\"/map\"").replace("\"base_link\"", "\"//base_link\"");
    let mut message = records.to_message(&json(&of_ros_1)).unwrap();
    assert_eq!(message.text("pose.header.frame_id"), Some("map"));
    assert_eq!(message.text("pose.child_frame_id"), Some("base_link"));
    assert_eq!(sent(records, &json(&of_ros_1)), json(&of_ros_1), "sent back it is no new version");
    message.set("json", "").unwrap();
    message.set("pose.header.frame_id", "/map").unwrap();
    assert_eq!(records.from_message(&message).unwrap(), json(FULL));
}

#[test]
fn remember_brings_everything_in_its_order() {
    let (_, records) = records();
    let mut request = Message::new(&records.service(Operation::Remember).unwrap().request);
    let record = records.to_message(&json(FULL)).unwrap();
    let entity =
        records.to_message(&json(r#"{"resourceType":"Entity","id":"e","name":"x"}"#)).unwrap();
    request.set("records", vec![record.clone()]).unwrap();
    request.set("entities", vec![entity]).unwrap();
    request
        .set(
            "json",
            r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"resourceType":"Episode"}]}"#,
        )
        .unwrap();
    request.set("merge", "overwrite").unwrap();
    let call = records.request(Operation::Remember, &request).unwrap();
    let kinds: Vec<&str> =
        call.resources.iter().filter_map(|one| one.get("resourceType")?.as_str()).collect();
    assert_eq!(kinds, ["MemoryRecord", "Entity", "Episode"]);
    assert_eq!(call.parameters.get("merge").and_then(Json::as_str), Some("overwrite"));

    let mut wrong = record;
    wrong.set("json", r#"{"content": "other"}"#).unwrap();
    request.set("records", vec![wrong]).unwrap();
    assert_eq!(
        records.request(Operation::Remember, &request).unwrap_err().path,
        "/records/0/content"
    );
}

#[test]
fn the_manifest_of_a_segment_is_no_memory() {
    let (_, records) = records();
    let manifest = r#"{"resourceType":"Episode","id":"omird.segment.0000000001","content":"c",
        "createdAt":"2026-01-01T00:00:00Z","extension":[{"url":"urn:omird:ext:segment","valueJson":{"format":1}}]}"#;
    let other = manifest.replace("omird.segment.", "segment.");
    let mut request = Message::new(&records.service(Operation::Remember).unwrap().request);
    let bundle = format!(
        r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{manifest},{other},{manifest},{other}]}}"#
    );
    request.set("json", bundle).unwrap();
    let call = records.request(Operation::Remember, &request).unwrap();
    assert_eq!(call.resources, [json(&other), json(&other)]);
    // A refusal of the second of them is one of the last entry.
    let place = |path| records.place(Operation::Remember, &request, path);
    assert_eq!(place("/1/content"), "/json/entry/3/content");
    assert_eq!(place("/0"), "/json/entry/1");
}

#[test]
fn answers_become_responses() {
    let (_, records) = records();
    let answer = |operation, text: &str| {
        let response = records.response(operation, Ok(&json(text))).unwrap();
        assert_eq!(response.bool("status.ok"), Some(true));
        Message::decode(response.ty(), &response.encode()).unwrap()
    };
    let stored = answer(
        Operation::Remember,
        r#"{"stored": [{"ref": "Entity/e", "version": 3, "unchanged": true, "merged": "unchanged"}],
        "durable": true, "seq": 7}"#,
    );
    assert_eq!(stored.text("stored[0].ref"), Some("Entity/e"));
    assert_eq!(stored.u64("stored[0].version"), Some(3));
    assert_eq!(stored.bool("stored[0].unchanged"), Some(true));
    assert_eq!(stored.text("stored[0].json"), Some(r#"{"merged":"unchanged"}"#));
    assert_eq!((stored.bool("durable"), stored.u64("seq")), (Some(true), Some(7)));
    assert_eq!(stored.text("json"), Some(""));

    let found = answer(
        Operation::Recall,
        &format!(
            r#"{{"hits": [{{"resource": {FULL}, "score": 0.87, "retrievability": 0.93, "distance": 0,
            "reason": "near", "parts": {{"text": 1}}}}], "total": 42, "tookMicros": 180}}"#
        ),
    );
    let hit = found.message("hits[0]").unwrap();
    assert_eq!(hit.text("ref"), Some("MemoryRecord/m1"));
    assert_eq!(hit.f64("score"), Some(0.87));
    assert_eq!(hit.floats("distance"), Some(&[0.0][..]));
    assert_eq!(hit.text("json"), Some(r#"{"parts":{"text":1}}"#));
    assert_eq!(from_any(records, hit.message("resource").unwrap()), Some(json(FULL)));
    assert_eq!((found.u64("total"), found.u64("took_micros")), (Some(42), Some(180)));
    assert_eq!(found.text("json"), Some(""));

    let forgotten = answer(Operation::Forget, r#"{"forgotten": 0, "durable": false, "seq": 9}"#);
    assert_eq!((forgotten.u64("forgotten"), forgotten.text("json")), (Some(0), Some("")));
    let believed = answer(
        Operation::Feedback,
        r#"{"ref": "MemoryRecord/m", "version": 2, "confidence": {"alpha": 2, "beta": 1, "calibrated": 0.6},
        "durable": true, "seq": 9}"#,
    );
    assert_eq!(believed.f64("confidence.calibrated[0]"), Some(0.6));
    assert_eq!(believed.text("json"), Some(r#"{"ref":"MemoryRecord/m"}"#));
    let moved = answer(
        Operation::Rebase,
        r#"{"ref": "MemoryRecord/s", "version": 1, "moved": 3, "untied": 2, "durable": true,
        "seq": 1}"#,
    );
    assert_eq!((moved.u64("moved"), moved.text("ref")), (Some(3), Some("MemoryRecord/s")));
    assert_eq!((moved.u64("untied"), moved.text("json")), (Some(2), Some("")));
    let bundle = answer(Operation::Export, r#"{"resourceType": "Bundle", "entry": [{}, {}]}"#);
    assert_eq!(bundle.u64("count"), Some(2));
    assert_eq!(bundle.text("bundle"), Some(r#"{"resourceType":"Bundle","entry":[{},{}]}"#));

    assert_eq!(bundle.u64("unreadable"), Some(0));
    let damaged = answer(
        Operation::Export,
        r#"{"resourceType": "Bundle", "entry": [], "leftOut": {"unreadable": 2, "first": ["a", "b"]}}"#,
    );
    assert_eq!(damaged.text("bundle"), Some(r#"{"resourceType":"Bundle","entry":[]}"#));
    assert_eq!((damaged.u64("unreadable"), damaged.text("why[1]")), (Some(2), Some("b")));

    for (operation, _) in records.services() {
        let error = json(r#"{"code": "NOT_FOUND", "message": "no such memory", "path": "/ref"}"#);
        let refused = records.response(operation, Err(&error)).unwrap();
        assert_eq!(refused.bool("status.ok"), Some(false));
        assert_eq!(refused.text("status.code"), Some("NOT_FOUND"));
        assert_eq!(refused.text("status.path"), Some("/ref"));
    }
}

#[test]
fn events_and_the_import() {
    let (_, records) = records();
    let at = Stamp::from_ros(5, 6);
    let event = records.event(EventKind::Recorded, "MemoryRecord/m1", &json(FULL), None, at);
    assert_eq!((event.i64("stamp.sec"), event.text("kind")), (Some(5), Some("recorded")));
    assert_eq!(from_any(records, event.message("resource").unwrap()), Some(json(FULL)));
    let cause = json(r#"{"cause": "tier", "from": "working", "to": "session"}"#);
    let event = records.event(EventKind::Tier, "MemoryRecord/m1", &json(FULL), Some(&cause), at);
    assert_eq!(json(event.text("json").unwrap()), cause);
    let error = json(r#"{"code": "INVALID_RESOURCE", "message": "no", "path": "/id"}"#);
    let event = records.event(EventKind::Rejected, "unknown/unknown", &error, None, at);
    assert_eq!((event.bool("status.ok"), event.text("status.path")), (Some(false), Some("/id")));
    let event =
        records.event(EventKind::Forgotten, "Entity/e", &json(r#"{"ref": "Entity/e"}"#), None, at);
    assert_eq!(from_any(records, event.message("resource").unwrap()), None);

    let progress = Progress { bytes_done: 1, bytes_total: 2, read: 3, stored: 4 };
    let feedback = records.import_feedback(progress);
    assert_eq!((feedback.u64("bytes_total"), feedback.u64("stored")), (Some(2), Some(4)));
    let result = records.import_result(Ok(&json(
        r#"{"stored": [{"ref": "Entity/a", "version": 1}, {"ref": "Entity/b", "version": 2,
                "unchanged": true}], "durable": true}"#,
    )));
    assert_eq!((result.u64("stored"), result.u64("unchanged")), (Some(1), Some(1)));
}
