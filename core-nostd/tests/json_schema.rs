//! The printed schemas against the validator: an independent library must come to the same verdicts.
//!
//! The library rounds numbers to floats, so the validator is shown the document as the library read it.
//!
//! Invariant 11 of ARCHITECTURE.md.

mod arbitrary;

use std::sync::LazyLock;

use arbitrary::resource;
use jsonschema::Validator;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::json_schema::{Drafts, Subject, json_schema};
use omir_core::model::Extension;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::validate::{draft_fields, is_absolute_uri, validate_resource, validate_shape};
use omir_core::value::{Map, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn printed(subject: Subject, drafts: Drafts) -> serde_json::Value {
    theirs(&json_schema(subject, drafts)).expect("no number of a schema is out of range")
}

fn compiled(subject: Subject, drafts: Drafts) -> Validator {
    jsonschema::draft202012::new(&printed(subject, drafts)).expect("a schema")
}

/// The schema of one of the texts, by the name of its definition.
fn text(name: &str) -> Validator {
    let mut schema = printed(Subject::Bundle, Drafts::Allowed);
    schema = serde_json::json!({ "$defs": schema["$defs"], "$ref": format!("#/$defs/{name}") });
    jsonschema::draft202012::new(&schema).expect("a schema")
}

static BUNDLE: LazyLock<Validator> = LazyLock::new(|| compiled(Subject::Bundle, Drafts::Allowed));
static PLAIN: LazyLock<Validator> = LazyLock::new(|| compiled(Subject::Bundle, Drafts::Refused));
static POSE: LazyLock<Validator> =
    LazyLock::new(|| compiled(Subject::SpatialPose, Drafts::Allowed));
static RESOURCES: LazyLock<[(ResourceType, Validator); 4]> = LazyLock::new(|| {
    ResourceType::ALL.map(|kind| (kind, compiled(Subject::Resource(kind), Drafts::Allowed)))
});
static INSTANT: LazyLock<Validator> = LazyLock::new(|| text("Instant"));
static URI: LazyLock<Validator> = LazyLock::new(|| text("Uri"));

/// A document as the library reads it; `None` where it has a number beyond any float.
fn theirs(document: &Value) -> Option<serde_json::Value> {
    serde_json::from_str(&json::to_string(document)).ok()
}

/// Converts a value of the library to ours.
fn ours(document: &serde_json::Value) -> Value {
    json::from_slice(document.to_string().as_bytes(), &Limits::default()).expect("JSON")
}

fn read(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).expect("JSON")
}

fn accepts(validator: &Validator, text: &str) -> bool {
    validator.is_valid(&text.into())
}

fn assert_instant(text: &str) {
    assert_eq!(accepts(&INSTANT, text), Timestamp::parse(text).is_ok(), "{text:?}");
}

fn assert_uri(text: &str) {
    assert_eq!(accepts(&URI, text), is_absolute_uri(text), "{text:?}");
}

const INSTANTS: &[&str] = &[
    "2026-05-30T11:42:05Z",
    "2026-05-30t11:42:05z",
    "2026-05-30T11:42:05.123456789012345678901234567890+23:59",
    "2026-05-30T11:42:05-00:00",
    "2024-02-29T00:00:00Z",
    "2016-12-31T23:59:60Z",
    "2016-12-31t23:59:60.75z",
    "2017-01-01T00:59:60+01:00",
    "2016-12-31T15:59:60-08:00",
    "2017-01-01T05:29:60.0+05:30",
    "2016-12-31T23:58:60Z",
    "2016-12-31T00:59:60Z",
    "2016-12-31T23:59:60+01:00",
    "2016-12-31T23:59:61Z",
    "2026-05-30T11:42:05",
    "2026-05-30T11:42Z",
    "2026-05-30 11:42:05Z",
    "2026-05-30T11:42:05.Z",
    "2026-05-30T11:42:05,5Z",
    "2026-05-30T11:42:05+0100",
    "2026-05-30T11:42:05+24:00",
    "2026-05-30T11:42:05+00:60",
    "2026-05-30T24:00:00Z",
    "2026-05-30T23:60:00Z",
    "2026-00-10T00:00:00Z",
    "2026-13-10T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "1900-02-29T00:00:00Z",
    " 2026-05-30T11:42:05Z",
    "2026-05-30T11:42:05Z\n",
    "2026-05-30T11:42:05Z\r\n",
    "2026-05-30T11:42:05Z\u{2028}",
    "\n2026-05-30T11:42:05Z",
    "2026-05-30T11:42:05Z\n2026-05-30T11:42:05Z",
    "２０２６-05-30T11:42:05Z",
    "٢٠٢٦-05-30T11:42:05Z",
    "+2026-05-30T11:42:05Z",
    "2026-05-30",
    "11:42:05Z",
    "",
];

const URIS: &[&str] = &[
    "https://omir.io/spec/R1/extension/spatial-pose",
    "urn:omird:ext:x",
    "a:",
    "a:/",
    "a://",
    "a:///x",
    "a:?",
    "a:#",
    "a:#?/",
    "A+b-c.9:x",
    "mailto:a@b.c",
    "http://u:p@[2001:db8::1]:80/a?b#c",
    "a://[::]",
    "a://[1:2:3:4:5:6:7:8]",
    "a://[1:2:3:4:5:6:7:8:9]",
    "a://[1:2:3:4:5:6:7]",
    "a://[1:2:3:4:5:6:7::]",
    "a://[::2:3:4:5:6:7:8]",
    "a://[1::3:4:5:6:7:8]",
    "a://[1:2:3:4:5:6:7:8::]",
    "a://[1::2::3]",
    "a://[:::]",
    "a://[12345::]",
    "a://[1:2:3:4:5:6:1.2.3.4]",
    "a://[1:2:3:4:5::1.2.3.4]",
    "a://[1:2:3:4:5:6::1.2.3.4]",
    "a://[::255.0.10.199]",
    "a://[::256.0.10.199]",
    "a://[::01.2.3.4]",
    "a://[1.2.3.4::]",
    "a://[fe80::1%25eth0]",
    "a://[v1.x:!]",
    "a://[Vf0.x]",
    "a://[v1.]",
    "a://[v.x]",
    "a://[vg.x]",
    "a://[v1.%41]",
    "http://u@h:",
    "http://@",
    "http://:",
    "http://[::]",
    "http://[v1.x:y]:8",
    "http://[v]",
    "http://[Vz!$&'()*+,;=]",
    "http://h?q@r:s[",
    "http://h?q@r:s",
    "http://h/p:x@y",
    "http://h#f//",
    "http://%41%ff:1",
    "",
    "omir.io",
    "//omir.io/x",
    ":x",
    "1a:x",
    "ä:x",
    "a_b:x",
    "a b:x",
    "a:b c",
    "a:%",
    "a:%2",
    "a:%2g",
    "a://%2/0",
    "a:b#c#d",
    "a:[b]",
    "http://a@b@c",
    "http://a:b:c",
    "http://a:b@c:d",
    "http://[::1",
    "http://[::1]x",
    "http://[::1]:x",
    "http://[x]/",
    "http://[]",
    "http://[1.2.3.4]",
    "http://[v1@x]",
    "http://[v1/x]",
    "http://h:8x/",
    "a:ü",
    "a:\\",
    "a:\"",
    "a:<b>",
    "a:{b}",
    "a:^",
    "a:`",
    "a:|",
    "a:x\n",
    "\na:x",
    "a:x\u{85}",
    "x\na:x",
];

#[test]
fn the_schemas_are_schemas() {
    for subject in Subject::ALL {
        for drafts in [Drafts::Allowed, Drafts::Refused] {
            let schema = printed(subject, drafts);
            assert!(jsonschema::draft202012::meta::is_valid(&schema), "{subject}");
            // Compiling follows every reference, and nothing can be fetched here.
            compiled(subject, drafts);
        }
    }
}

#[test]
fn instants_at_the_borders() {
    for text in INSTANTS {
        assert_instant(text);
    }
    for year in 0..=9999 {
        assert_instant(&format!("{year:04}-02-29T00:00:00Z"));
    }
    for month in 0..=19 {
        for day in 0..=40 {
            assert_instant(&format!("2023-{month:02}-{day:02}T00:00:00Z"));
            assert_instant(&format!("2024-{month:02}-{day:02}T00:00:00Z"));
        }
    }
    for number in 0..=99 {
        assert_instant(&format!("2024-01-01T{number:02}:00:00Z"));
        assert_instant(&format!("2024-01-01T00:{number:02}:00Z"));
        assert_instant(&format!("2024-01-01T00:00:{number:02}Z"));
        assert_instant(&format!("2024-01-01T00:00:00-{number:02}:00"));
        assert_instant(&format!("2024-01-01T00:00:00+00:{number:02}"));
    }
}

#[test]
fn leap_seconds_at_every_offset() {
    let mut accepted = 0;
    for (sign, direction) in [('+', 1), ('-', -1)] {
        for offset in 0..1440_i32 {
            let right = direction * offset - 1;
            for off in [0, 1, -1, 59, 60, -60, 61, 600, 720] {
                let minute = (right + off).rem_euclid(1440);
                for fraction in ["", ".5"] {
                    let text = format!(
                        "2024-02-29T{:02}:{:02}:60{fraction}{sign}{:02}:{:02}",
                        minute / 60,
                        minute % 60,
                        offset / 60,
                        offset % 60
                    );
                    assert_instant(&text);
                    accepted += usize::from(accepts(&INSTANT, &text));
                }
            }
        }
    }
    assert_eq!(accepted, 2 * 1440 * 2);
    for minute in 0..1440 {
        assert_instant(&format!("2024-02-29T{:02}:{:02}:60Z", minute / 60, minute % 60));
    }
}

#[test]
fn uris_at_the_borders() {
    for text in URIS {
        assert_uri(text);
    }
    for character in 0..0x180_u32 {
        let character = char::from_u32(character).expect("below the surrogates");
        for text in
            ["x:*", "*:", "x*:", "x://*", "x://*@h", "x://[*]", "x://[v*]", "x://h:*", "x:#*"]
        {
            assert_uri(&text.replace('*', character.encode_utf8(&mut [0; 4])));
        }
    }
}

#[test]
fn names_at_the_borders() {
    let (id, reference) = (text("Id"), text("Ref"));
    let long = "x".repeat(Id::MAX_LEN);
    let longer = "x".repeat(Id::MAX_LEN + 1);
    for name in
        ["", "a", "A.b_c:d-9", &long, &longer, "a b", "a/b", "a\n", "\na", "ü", "%", "a\u{85}"]
    {
        assert_eq!(accepts(&id, name), Id::new(name).is_ok(), "{name:?}");
        for kind in ["Entity", "MemoryRecord", "entity", "Bundle", "", "\nEntity", "xEntity"] {
            let text = format!("{kind}/{name}");
            assert_eq!(accepts(&reference, &text), text.parse::<Ref>().is_ok(), "{text:?}");
        }
    }
    assert!(!accepts(&reference, "Entity"));
}

#[test]
fn numbers_at_the_borders() {
    let with = |field: &str, number: &str| {
        read(&format!(
            r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{{"resourceType":"MemoryRecord",
            "id":"m","content":"","createdAt":"2026-01-01T00:00:00Z",{}}}]}}"#,
            field.replace('*', number)
        ))
    };
    let mut verdicts = [0; 2];
    for field in [
        r#""importance":*"#,
        r#""version":*"#,
        r#""decay":{"halfLifeHours":*}"#,
        r#""decay":{"accessCount":*}"#,
        r#""informationContent":{"surprisalBits":*}"#,
        r#""meta":{"omirVersion":"R1","maturity":*}"#,
        r#""extension":[{"url":"a:","valueNumber":*}]"#,
    ] {
        for number in [
            "-1",
            "-0",
            "-0.0",
            "0",
            "0.0",
            "0e5",
            "1e-300",
            "0.5",
            "5e-1",
            "1",
            "1.0",
            "10e-1",
            "1.5",
            "1e3",
            "1000.0",
            "5",
            "5.0",
            "5.5",
            "6",
            "18446744073709551616",
            "1e300",
            "-1e300",
            "null",
            "true",
            "\"1\"",
            "[1]",
            "{}",
        ] {
            let document = with(field, number);
            let expected = validate_shape(&document).is_empty();
            verdicts[usize::from(expected)] += 1;
            let document = theirs(&document).expect("in range");
            assert_eq!(BUNDLE.is_valid(&document), expected, "{document}");
        }
    }
    assert!(verdicts.iter().all(|&count| count > 50), "{verdicts:?}");
}

/// A value that may stand anywhere in a document, right or wrong.
fn border() -> BoxedStrategy<Value> {
    let texts = INSTANTS.iter().chain(URIS).copied();
    let words = [
        "R1",
        "Bundle",
        "MemoryRecord",
        "Entity",
        "Relationship",
        "Episode",
        "memory",
        "none",
        "x y",
    ];
    let texts: Vec<&str> = texts.chain(words).chain(["Entity/a", "Entity/", "entity/a"]).collect();
    let others = [
        "null",
        "true",
        "0",
        "1",
        "-1",
        "1.0",
        "1.5",
        "2",
        "5.0",
        "6",
        "1e3",
        "1e300",
        "[]",
        "{}",
        "[null]",
        r#"{"a":1}"#,
        r#"{"a":"b"}"#,
        r#"[{"ref":"Entity/a"}]"#,
        r#"{"ref":"Episode/a","x":1}"#,
        r#"{"omirVersion":"R1"}"#,
        r#"["person","robot"]"#,
        r#"[{"url":"a:","valueJson":null}]"#,
    ];
    prop_oneof![
        select(texts).prop_map(Value::from),
        select(others.to_vec()).prop_map(read),
        arbitrary::value(),
    ]
    .boxed()
}

/// Names of fields, some of them of no object.
fn name() -> BoxedStrategy<String> {
    let names = vec![
        "resourceType",
        "id",
        "meta",
        "omirVersion",
        "content",
        "name",
        "createdAt",
        "eventTime",
        "kind",
        "source",
        "labels",
        "strength",
        "normalizedStrength",
        "normalization",
        "extension",
        "entityRefs",
        "entry",
        "ref",
        "url",
        "valueJson",
        "@context",
        "familiaritySketch",
        "ID",
        "created_at",
        "",
    ];
    select(names).prop_map(str::to_owned).boxed()
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Rename(String),
    Insert(String, Value),
}

fn change() -> BoxedStrategy<Change> {
    prop_oneof![
        4 => border().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        1 => name().prop_map(Change::Rename),
        2 => (name(), border()).prop_map(|(name, value)| Change::Insert(name, value)),
    ]
    .boxed()
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.values().map(size).sum::<usize>(),
        _ => 0,
    }
}

/// Changes the value that is the `at`th of the tree, in the order in which it is written.
fn changed(value: &Value, at: &mut usize, change: &Change) -> Option<Value> {
    let here = *at == 0;
    *at = at.wrapping_sub(1);
    if here && let Change::Replace(other) = change {
        return Some(other.clone());
    }
    if here && let Change::Remove = change {
        return None;
    }
    Some(match value {
        Value::Array(items) => items.iter().filter_map(|item| changed(item, at, change)).collect(),
        Value::Object(map) => {
            let mut members = Map::new();
            for (name, member) in map {
                let renamed = *at == 0;
                if let Some(member) = changed(member, at, change) {
                    match change {
                        Change::Rename(other) if renamed => members.insert(other.as_str(), member),
                        _ => members.insert(name, member),
                    };
                }
            }
            if here && let Change::Insert(name, member) = change {
                members.insert(name.as_str(), member.clone());
            }
            Value::Object(members)
        }
        other => other.clone(),
    })
}

/// A bundle of valid resources, changed in up to two places.
fn bundle() -> impl Strategy<Value = Value> {
    let sketch =
        r#"{"kind":"bloom","domain":"cue","hashes":3,"bits":64.0,"hashAlg":"xxh3-64","data":""}"#;
    let envelope = format!(
        r#"{{"@context":null,"resourceType":"Bundle","omirVersion":"R1","id":"b",
        "generatedAt":"2026-01-01T00:00:00Z","source":"","familiaritySketch":{sketch}}}"#
    );
    (vec(resource(), 0..3), vec((any::<Index>(), change()), 0..3), any::<bool>()).prop_map(
        move |(entries, changes, full)| {
            let mut document = read(&envelope);
            let map = document.as_object_mut().expect("an envelope");
            if !full {
                map.retain(|name, _| name == "resourceType" || name == "omirVersion");
            }
            map.insert("entry", entries);
            for (at, change) in changes {
                let mut at = at.index(size(&document));
                document = changed(&document, &mut at, &change).unwrap_or_default();
            }
            document
        },
    )
}

/// Returns true if a document has a field that releases without the drafts do not know.
fn uses_drafts(document: &Value) -> bool {
    let entries = document.get("entry").and_then(Value::as_array).unwrap_or_default();
    document.get("familiaritySketch").is_some()
        || entries.iter().any(|entry| {
            let kind = entry.get("resourceType").and_then(Value::as_str);
            kind.and_then(|kind| kind.parse::<ResourceType>().ok())
                .is_some_and(|kind| draft_fields(kind).any(|field| entry.get(field).is_some()))
        })
}

/// The valueJson of a pose, right or wrong.
fn pose() -> impl Strategy<Value = Value> {
    let coordinate =
        select(vec!["0", "-0.0", "1e-10", "-1e-10", "1e-9", "1", "-2.5", "1e308", "true", "null"]);
    let numbers = move |expected: usize| {
        let right = vec(select(vec!["0", "0.0", "-1e-9", "3"]), expected);
        prop_oneof![3 => right, 1 => vec(coordinate.clone(), expected.saturating_sub(1)..expected + 2)]
            .prop_map(|items| read(&format!("[{}]", items.join(","))))
            .boxed()
    };
    let frame = select(vec!["\"map\"", "\"\"", "1", "null"]).prop_map(read).boxed();
    let stamp = select(INSTANTS).prop_map(Value::from).boxed();
    let geo = (
        select(vec!["90", "-90.5", "0"]),
        select(vec!["180", "-180.1", "[]"]),
        select(vec!["0", "null"]),
    )
        .prop_map(|(lat, lon, alt)| read(&format!(r#"{{"lat":{lat},"lon":{lon},"alt":{alt}}}"#)))
        .boxed();
    let fields = vec![
        ("frame", 0.95, frame.clone()),
        ("position", 0.95, numbers(3)),
        ("orientation", 0.5, numbers(4)),
        ("stamp", 0.2, stamp),
        ("covariance", 0.2, numbers(36)),
        ("childFrame", 0.2, frame),
        ("geo", 0.2, geo),
        ("child_frame", 0.05, Just(Value::Null).boxed()),
    ];
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, likely, value)| {
            proptest::option::weighted(likely, value)
                .prop_map(move |value| value.map(|value| (name, value)))
        })
        .collect();
    fields.prop_map(|members| Value::Object(members.into_iter().flatten().collect::<Map>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_same_documents_are_accepted(document in bundle()) {
        let Some(document) = theirs(&document) else { return Ok(()) };
        let value = ours(&document);
        let faults = validate_shape(&value);
        let expected = faults.is_empty();
        prop_assert_eq!(BUNDLE.is_valid(&document), expected, "{} {:?}", document, faults);
        prop_assert_eq!(PLAIN.is_valid(&document), expected && !uses_drafts(&value), "{}", document);
    }

    #[test]
    fn the_same_resources_are_accepted(
        resource in resource(),
        change in proptest::option::of((any::<Index>(), change())),
    ) {
        let document = match change {
            Some((at, change)) => changed(&resource, &mut at.index(size(&resource)), &change),
            None => Some(resource),
        };
        let Some(document) = theirs(&document.unwrap_or_default()) else { return Ok(()) };
        let value = ours(&document);
        let mut faults = Vec::new();
        validate_resource(&value, "/", &mut faults);
        for (kind, schema) in &*RESOURCES {
            let named = value.get("resourceType").and_then(Value::as_str) == Some(kind.as_str());
            let expected = named && faults.is_empty();
            prop_assert_eq!(schema.is_valid(&document), expected, "{} {:?}", document, faults);
        }
    }

    #[test]
    fn the_same_poses_are_accepted(pose in pose()) {
        let extension = Extension::json(SPATIAL_POSE_URL, pose.clone());
        let expected = SpatialPose::from_extension(&extension);
        let pose = theirs(&pose).expect("in range");
        prop_assert_eq!(POSE.is_valid(&pose), expected.is_ok(), "{} {:?}", pose, expected);
    }

    #[test]
    fn the_same_uris_are_accepted(
        text in "(a:|x+-.1:|1:)?(//)?[a-z0-9A-F:/?#@%.v\\[\\]\\n!]{0,16}",
        address in "([0-9a-f]{1,4}:){0,7}(::?)?([0-9a-f]{1,5}:){0,3}([0-9a-f]{1,4}|(2?[0-9]{1,2}\\.){3}[0-9]{1,3})?",
        any in any::<String>(),
    ) {
        assert_uri(&text);
        assert_uri(&format!("a://[{address}]"));
        assert_uri(&any);
    }

    #[test]
    fn the_same_instants_are_accepted(
        text in "[0-2][09][0-3][0-9]-[01][0-9]-[0-3][0-9][TtZ ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,3})?([Zz]|[-+][0-2][0-9]:[0-6][0-9])\\n?",
        near in "[0-9TtZz:.+ -]{0,30}",
    ) {
        assert_instant(&text);
        assert_instant(&near);
    }
}
