use super::*;
use crate::decode::Limits;
use crate::json;
use alloc::string::String;
use std::collections::BTreeSet;

const EVERYTHING: &str = include_str!("../../tests/data/everything.omir");

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

/// The faults of one entry, as `code pointer`.
fn entry_faults(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    validate_resource(&value(text), "/", &mut out);
    out.iter().map(|fault| format!("{} {}", fault.code, fault.pointer)).collect()
}

fn errors(faults: &[Fault]) -> Vec<&Fault> {
    faults.iter().filter(|fault| fault.severity() == Severity::Error).collect()
}

const RECORD: &str =
    r#"{"resourceType":"MemoryRecord","id":"a","content":"c","createdAt":"2026-01-01T00:00:00Z""#;
const RELATIONSHIP: &str = r#"{"resourceType":"Relationship","id":"r","relationType":"near","from":{"ref":"Entity/a"},"to":{"ref":"Entity/b"}"#;

#[test]
fn the_bundle_with_everything_conforms() {
    let everything = value(EVERYTHING);
    assert_eq!(errors(&validate_bundle(&everything, Level::Core)), [] as [&Fault; 0]);
    assert!(validate_shape(&everything).is_empty());
    let strict = validate_bundle(&everything, Level::Strict);
    let strict: Vec<&str> = errors(&strict).iter().map(|fault| &*fault.pointer).collect();
    assert_eq!(strict, ["/entry/2", "/entry/5"], "entries without meta");
}

#[test]
fn the_bundle_with_everything_has_every_field_of_the_tables() {
    fn visit(value: &Value, table: &Table, path: &str, seen: &mut BTreeSet<String>) {
        for field in table.fields {
            if let Some(member) = value.get(field.name) {
                let path = format!("{path}.{}", field.name);
                visit_shape(member, &field.shape, &path, seen);
                seen.insert(path);
            }
        }
    }
    fn visit_shape(value: &Value, shape: &Shape, path: &str, seen: &mut BTreeSet<String>) {
        match shape {
            Shape::Object(table) => visit(value, table, path, seen),
            Shape::List(element) => {
                value
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|item| visit_shape(item, element, path, seen));
            }
            _ => {}
        }
    }
    fn expect(table: &Table, path: &str, seen: &BTreeSet<String>) {
        for field in table.fields {
            let path = format!("{path}.{}", field.name);
            assert!(seen.contains(&path), "{path} is not in the test data");
            match &field.shape {
                Shape::Object(table) | Shape::List(Shape::Object(table)) => {
                    expect(table, &path, seen)
                }
                _ => {}
            }
        }
    }
    let everything = value(EVERYTHING);
    let mut seen = BTreeSet::new();
    visit(&everything, &schema::BUNDLE, "", &mut seen);
    for entry in everything.get("entry").unwrap().as_array().unwrap() {
        let kind: ResourceType =
            entry.get("resourceType").unwrap().as_str().unwrap().parse().unwrap();
        visit(entry, schema::resource(kind), kind.as_str(), &mut seen);
    }
    expect(&schema::BUNDLE, "", &seen);
    for kind in ResourceType::ALL {
        // Every part must be somewhere; extensions and meta need not be full on every type.
        for field in schema::resource(kind).fields {
            let path = format!("{kind}.{}", field.name);
            assert!(seen.contains(&path), "{path} is not in the test data");
            match &field.shape {
                Shape::Object(table) if field.name != "meta" => expect(table, &path, &seen),
                _ => {}
            }
        }
    }
    expect(
        match &schema::resource(ResourceType::Episode).fields[2].shape {
            Shape::Object(meta) => meta,
            _ => unreachable!(),
        },
        "Episode.meta",
        &seen,
    );
}

#[test]
fn tables_fit_the_mask_of_seen_fields() {
    for kind in ResourceType::ALL {
        assert!(schema::resource(kind).fields.len() <= u32::BITS as usize);
    }
    assert_eq!(draft_fields(ResourceType::MemoryRecord).count(), 3);
    assert_eq!(draft_fields(ResourceType::Relationship).count(), 3);
    assert_eq!(draft_fields(ResourceType::Episode).count(), 2);
    assert_eq!(draft_fields(ResourceType::Entity).count(), 0);
}

#[test]
fn each_member_of_a_record_is_held_to_its_schema() {
    for (member, fault) in [
        (r#""kind":"memo""#, "E120 /kind"),
        (r#""kind":null"#, "E120 /kind"),
        (r#""tier":"Working""#, "E120 /tier"),
        (r#""importance":1.0000000000000000001"#, "E120 /importance"),
        (r#""importance":-1e-400"#, "E120 /importance"),
        (r#""importance":"0.5""#, "E120 /importance"),
        (r#""version":0"#, "E120 /version"),
        (r#""version":1.5"#, "E120 /version"),
        (r#""eventTime":"yesterday""#, "E120 /eventTime"),
        (r#""eventTime":"2026-01-01 00:00:00Z""#, "E120 /eventTime"),
        (r#""parentId":"a/b""#, "E120 /parentId"),
        (r#""colour":"red""#, "E120 /"),
        (r#""confidence":{"alpha":0}"#, "E120 /confidence/alpha"),
        (r#""confidence":{"alpha":1,"gamma":1}"#, "E120 /confidence"),
        (r#""confidence":[]"#, "E120 /confidence"),
        (r#""decay":{"halfLifeHours":-1}"#, "E120 /decay/halfLifeHours"),
        (r#""decay":{"anchored":1}"#, "E120 /decay/anchored"),
        (r#""decay":{"accessCount":0.5}"#, "E120 /decay/accessCount"),
        (r#""entityRefs":{"ref":"Entity/a"}"#, "E120 /entityRefs"),
        (r#""entityRefs":["Entity/a"]"#, "E120 /entityRefs/0"),
        (r#""entityRefs":[{"ref":"Entity/a"},{"ref":"Bundle/a"}]"#, "E120 /entityRefs/1/ref"),
        (r#""entityRefs":[{}]"#, "E120 /entityRefs/0"),
        (r#""entityRefs":[{"ref":"Entity/a","display":"A"}]"#, "E120 /entityRefs/0"),
        (r#""meta":{}"#, "E301 /meta"),
        (r#""meta":{"omirVersion":"R2"}"#, "E301 /meta/omirVersion"),
        (r#""meta":{"omirVersion":"R1","maturity":6}"#, "E120 /meta/maturity"),
        (r#""meta":{"omirVersion":"R1","profile":["not a uri"]}"#, "E120 /meta/profile/0"),
        (r#""extension":[{"valueString":"x"}]"#, "E120 /extension/0"),
        (r#""extension":[{"url":"x"}]"#, "E120 /extension/0/url"),
        (r#""extension":[{"url":"a:b","valueNumber":"1"}]"#, "E120 /extension/0/valueNumber"),
        (r#""extension":[{"url":"a:b","valueString":null}]"#, "E120 /extension/0/valueString"),
        (
            r#""informationContent":{"surprisalBits":-0.5}"#,
            "E120 /informationContent/surprisalBits",
        ),
        (
            r#""interference":{"competesWith":[{"ref":"x"}]}"#,
            "E120 /interference/competesWith/0/ref",
        ),
    ] {
        assert_eq!(entry_faults(&format!("{RECORD},{member}}}")), [fault], "{member}");
    }
    for member in [
        r#""version":1.0"#,
        r#""version":1e3"#,
        r#""version":123456789012345678901234567890123456789012345678901234567890"#,
        r#""importance":0"#,
        r#""importance":1"#,
        r#""importance":1e-400"#,
        r#""confidence":{"alpha":1e-400,"beta":1e400}"#,
        r#""confidence":{}"#,
        r#""entityRefs":[]"#,
        r#""entityRefs":[{"ref":"Episode/x"}]"#,
        r#""replayPriority":0.0"#,
        r#""extension":[{"url":"a:b"}]"#,
        r#""extension":[{"url":"a:b","valueJson":null,"valueString":"both"}]"#,
        r#""eventTime":"2016-12-31t23:59:60z""#,
    ] {
        assert_eq!(entry_faults(&format!("{RECORD},{member}}}")), [] as [&str; 0], "{member}");
    }
}

#[test]
fn all_faults_of_an_entry_are_reported_at_once() {
    let text = r#"{"resourceType":"Entity","nmae":"x","labels":["Person",3],"attributes":{"a":1,"b/c":null},"salience":7}"#;
    assert_eq!(
        entry_faults(text),
        [
            "E120 /",
            "E120 /labels/0",
            "E120 /labels/1",
            "E120 /attributes/a",
            "E120 /attributes/b~1c",
            "E120 /salience",
            "E120 /",
            "E120 /",
        ]
    );
}

#[test]
fn messages_help() {
    let message = |text: &str| {
        let mut out = Vec::new();
        validate_resource(&value(text), "/entry/4", &mut out);
        assert_eq!(out.len(), 1, "{out:?}");
        out.remove(0).to_string()
    };
    for (member, expected) in [
        (
            r#""created_at":1"#,
            "E120 /entry/4: unknown field \"created_at\"; did you mean \"createdAt\"?",
        ),
        (
            r#""colour":1"#,
            "E120 /entry/4: unknown field \"colour\"; data beyond the core belongs in \"extension\"",
        ),
        (
            r#""tier":"long-term""#,
            "E120 /entry/4/tier: \"long-term\" is not one of working, session, longterm, archive; did you mean \"longterm\"?",
        ),
        (r#""importance":1.5"#, "E120 /entry/4/importance: 1.5 is not between 0 and 1"),
        (
            r#""eventTime":"2026-02-30T00:00:00Z""#,
            "E120 /entry/4/eventTime: \"2026-02-30T00:00:00Z\": day 30 is not between 01 and 28",
        ),
        (
            r#""decay":null"#,
            "E120 /entry/4/decay: an object is expected here, not null; leave the field out instead",
        ),
    ] {
        assert_eq!(message(&format!("{RECORD},{member}}}")), expected);
    }
    let long = format!("{RECORD},\"{}\":1}}", "x".repeat(1000));
    assert!(message(&long).len() < 200);
}

#[test]
fn entries_that_are_no_resource() {
    assert_eq!(entry_faults("[]"), ["E100 /"]);
    assert_eq!(entry_faults("null"), ["E100 /"]);
    assert_eq!(entry_faults("{}"), ["E101 /"]);
    assert_eq!(entry_faults(r#"{"resourceType":"Memory"}"#), ["E101 /resourceType"]);
    assert_eq!(entry_faults(r#"{"resourceType":["Entity"]}"#), ["E101 /resourceType"]);
    assert_eq!(entry_faults(r#"{"resourceType":"Bundle"}"#), ["E101 /resourceType"]);
}

#[test]
fn a_portable_weight_needs_its_regime() {
    let with = |members: &str| entry_faults(&format!("{RELATIONSHIP}{members}}}"));
    assert_eq!(with(""), [] as [&str; 0]);
    assert_eq!(with(r#","normalizedStrength":0.5"#), ["E120 /"]);
    assert_eq!(with(r#","normalizedStrength":0.5,"normalization":{}"#), [] as [&str; 0]);
    assert_eq!(with(r#","normalization":{"scheme":"fan"}"#), [] as [&str; 0]);
    assert_eq!(with(r#","normalization":{"scheme":"fna"}"#), ["E120 /normalization/scheme"]);
}

#[test]
fn pointers_start_where_the_caller_says() {
    let mut out = Vec::new();
    validate_resource(&value("{}"), "/entry/3", &mut out);
    validate_resource(&value(&format!("{RECORD},\"kind\":1}}")), "", &mut out);
    assert_eq!(out[0].pointer, "/entry/3");
    assert_eq!(out[1].pointer, "/kind");
}

#[test]
fn hostile_documents_do_not_fill_the_memory_with_faults() {
    let ones = "1,".repeat(10_000) + "1";
    let record = format!("{RECORD},\"entityRefs\":[{ones}]}}");
    assert_eq!(entry_faults(&record).len(), 1000);
    let bundle = format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{ones}]}}"#);
    assert_eq!(validate_shape(&value(&bundle)).len(), 1000);
    // A report for a person leaves out nothing that stands on its own.
    assert_eq!(validate_bundle(&value(&bundle), Level::Core).len(), 10_001);
}
