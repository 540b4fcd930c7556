use super::*;
use crate::decode::Limits;
use crate::json;
use crate::value::Map;
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
fn the_list_of_codes_leaves_none_out() {
    for (position, code) in FaultCode::ALL.into_iter().enumerate() {
        assert_eq!(code as usize, position, "{code}");
    }
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
    assert_eq!(with(r#","normalizedStrength":0.5"#), ["E251 /"]);
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

/// `code pointer` of a whole document's findings, what is only worth knowing left out.
fn findings(entries: &str, options: Options<'_>) -> Vec<String> {
    let text = format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entries}]}}"#);
    let (findings, summary) = check_document(&value(&text), options);
    assert!(summary.is_some());
    let serious = findings.iter().filter(|one| one.fault.severity() > Severity::Info);
    serious.map(|one| format!("{} {}", one.fault.code, one.fault.pointer)).collect()
}

fn edge(id: &str, from: &str, to: &str, share: &str, regime: &str) -> String {
    format!(
        r#"{{"resourceType":"Relationship","id":"{id}","relationType":"near","from":{{"ref":"Entity/{from}"}},"to":{{"ref":"Entity/{to}"}},"normalizedStrength":{share},"normalization":{{{regime}}}}}"#
    )
}

const ENDS: &str = r#"{"resourceType":"Entity","id":"a","name":"A"},{"resourceType":"Entity","id":"b","name":"B"}"#;

#[test]
fn a_fan_of_strengths_sums_to_one_at_most() {
    let fan = r#""scheme":"fan","over":"source""#;
    let sums =
        |edges: &[String]| findings(&format!("{},{ENDS}", edges.join(",")), Options::default());
    let both = |share: &str, regimes: [&str; 2]| {
        sums(&[edge("r", "a", "b", "0.6", regimes[0]), edge("s", "a", "a", share, regimes[1])])
    };
    assert_eq!(both("0.4", [fan, fan]), [] as [&str; 0]);
    assert_eq!(both("0.4000005", [fan, fan]), [] as [&str; 0], "rounding");
    assert_eq!(both("0.40001", [fan, fan]), ["E250 /entry/0/normalizedStrength"]);
    // Another regime, another sum; without one, none.
    assert_eq!(both("0.6", [fan, r#""scheme":"softmax","over":"source""#]), [] as [&str; 0]);
    assert_eq!(both("0.6", [fan, r#""scheme":"fan","over":"target""#]), [] as [&str; 0]);
    assert_eq!(both("0.6", [fan, r#""scheme":"none""#]), [] as [&str; 0]);
    assert_eq!(both("0.6", [fan, r#""over":"source""#]), [] as [&str; 0]);
    assert_eq!(both("0.6", [fan, r#""scheme":"fan""#]), ["E250 /entry/0/normalizedStrength"]);
    let target = r#""scheme":"softmax","over":"target""#;
    let into_b = [edge("r", "a", "b", "0.6", target), edge("s", "b", "b", "0.6", target)];
    assert_eq!(sums(&into_b), ["E250 /entry/0/normalizedStrength"]);
    let apart = [edge("r", "a", "b", "0.6", target), edge("s", "b", "a", "0.6", target)];
    assert_eq!(sums(&apart), [] as [&str; 0]);
    // An edge that does not fit its schema is no part of a sum.
    assert_eq!(both("1.5", [fan, fan]), ["E120 /entry/1/normalizedStrength"]);
    assert_eq!(both("-5", [fan, fan]), ["E120 /entry/1/normalizedStrength"]);
    for over in [r#""sourc""#, "1"] {
        let other = format!(r#""scheme":"fan","over":{over}"#);
        assert_eq!(both("0.6", [fan, &other]), ["E120 /entry/1/normalization/over"]);
    }
}

#[test]
fn what_is_no_id_is_not_looked_for() {
    for id in ["", "a b"] {
        let entry = format!(r#"{RECORD},"parentId":"{id}"}}"#);
        assert_eq!(findings(&entry, Options::default()), ["E120 /entry/0/parentId"]);
    }
}

#[test]
fn plain_r1_has_no_drafts() {
    let plain = Options { plain_r1: true, ..Options::default() };
    let entries = format!(
        r#"{RECORD},"replayPriority":0.5,"interference":{{}}}},{ENDS},{}"#,
        edge("r", "a", "b", "0.6", r#""scheme":"fan""#)
    );
    let refused = ["E120 /entry/0", "E120 /entry/0", "E120 /entry/3", "E120 /entry/3"];
    assert_eq!(findings(&entries, plain), refused);
    assert_eq!(findings(&entries, Options::default()), [] as [&str; 0]);
    // Nor has it what is asked of them.
    let second = edge("s", "a", "b", "0.6", r#""scheme":"fan""#);
    let found = findings(&format!("{entries},{second}"), plain);
    assert_eq!(found, [&refused[..], &["E120 /entry/4", "E120 /entry/4"]].concat());
    let bare = format!(r#"{ENDS},{RELATIONSHIP},"normalizedStrength":0.5}}"#);
    assert_eq!(findings(&bare, plain), ["E120 /entry/2"]);
    let text = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[],"familiaritySketch":{"kind":"bloom","domain":"cue","hashes":1,"bits":1,"hashAlg":"x","data":""}}"#;
    let (faults, _) = check_document(&value(text), plain);
    assert_eq!(
        faults[0].fault.to_string(),
        "E110 /: \"familiaritySketch\" is a draft field, which plain R1 does not have"
    );
    let (faults, summary) = check_document(&value(text), Options::default());
    assert_eq!(faults, []);
    assert_eq!(summary.unwrap().drafts.get("Bundle.familiaritySketch"), Some(&1));
}

#[test]
fn profiles_are_checked_where_they_are_claimed() {
    let claims =
        |urls: &str| format!(r#"{RECORD},"meta":{{"omirVersion":"R1","profile":[{urls}]}}}}"#);
    let robotics = format!("{:?}", crate::profile::ROBOTICS);
    let known = crate::profile::builtin();
    let asked = Options { profiles: &known, ..Options::default() };
    assert_eq!(findings(&claims(&robotics), Options::default()), [] as [&str; 0]);
    assert_eq!(findings(&claims(&robotics), asked), ["E400 /entry/0", "W403 /entry/0"]);
    assert_eq!(findings(&claims(r#""urn:not:known""#), asked), [] as [&str; 0]);
    let required = [crate::profile::ROBOTICS.to_string()];
    let required = Options { required: &required, ..asked };
    assert_eq!(findings(&claims(""), required), ["W402 /entry/0"]);
    assert_eq!(
        findings(&claims(&format!(r#"{robotics},"urn:not:known""#)), required),
        ["E400 /entry/0", "W403 /entry/0", "E401 /entry/0/meta/profile/1"]
    );
    let only_robotics: Vec<_> =
        known.iter().filter(|profile| profile.url == crate::profile::ROBOTICS).cloned().collect();
    let one_asked = Options { profiles: &only_robotics, ..required };
    let another = format!("{robotics},{:?}", crate::profile::CODING_AGENT);
    assert_eq!(
        findings(&claims(&another), one_asked),
        ["E400 /entry/0", "W403 /entry/0"],
        "a profile of R1 is known, also where it is not asked for"
    );
    let urls: Vec<_> = known.iter().map(|profile| profile.url.as_str()).collect();
    assert_eq!(urls, crate::profile::BUILTIN);
    let relationship = format!(r#"{ENDS},{RELATIONSHIP}}}"#);
    let only = ["W402 /entry/0", "W402 /entry/1"];
    assert_eq!(findings(&relationship, required), only, "it does not speak of relationships");
    let unknown = ["urn:not:known".to_string()];
    let unknown = Options { required: &unknown, ..Options::default() };
    assert_eq!(findings(&claims(r#""urn:not:known""#), unknown), ["E401 /entry/0/meta/profile/0"]);
    assert_eq!(
        findings(&claims(r#""no URI""#), unknown),
        ["E120 /entry/0/meta/profile/0", "W402 /entry/0"]
    );
    let profile_only = FaultCode::Profile;
    assert!(!profile_only.breaks_core() && FaultCode::Dangling.breaks_core());
}

#[test]
fn findings_name_entry_and_value() {
    let entries = format!(
        r#"{ENDS},{RECORD},"importance":7,"entityRefs":[{{"ref":"Entity/aa"}},{{"ref":"Entity/kitchn"}}]}},
        {{"resourceType":"Entity","id":"kitchen","name":"K"}},3"#
    );
    let text =
        format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","id":"a b","entry":[{entries}]}}"#);
    let (findings, summary) = check_document(&value(&text), Options::default());
    let serious: Vec<_> =
        findings.iter().filter(|one| one.fault.severity() > Severity::Info).collect();
    let subject = |one: &Finding| one.entry.as_ref().map(|entry| (entry.index, entry.id.clone()));
    let shown: Vec<_> = serious
        .iter()
        .map(|one| (one.fault.pointer.as_str(), subject(one), one.value.clone()))
        .collect();
    let record = Some((2, Some("a".to_string())));
    assert_eq!(
        shown,
        [
            ("/id", None, Some(Value::from("a b"))),
            ("/entry/2/importance", record.clone(), Some(value("7"))),
            ("/entry/4", Some((4, None)), Some(value("3"))),
            ("/entry/2/entityRefs/0/ref", record.clone(), Some(Value::from("Entity/aa"))),
            ("/entry/2/entityRefs/1/ref", record, Some(Value::from("Entity/kitchn"))),
        ]
    );
    assert!(serious[4].fault.message.ends_with("did you mean \"Entity/kitchen\"?"));
    let summary = summary.unwrap();
    assert_eq!((summary.entries, summary.by_type, summary.references), (5, [1, 3, 0, 0], 0));
}

#[test]
fn entry_by_entry_is_the_same_as_at_once() {
    let everything = value(EVERYTHING);
    let map = everything.as_object().unwrap();
    let (mut found, mut envelope) = (Vec::new(), Map::new());
    let mut checker = Checker::new(Options { level: Level::Strict, ..Options::default() });
    for entry in map.get("entry").unwrap().as_array().unwrap() {
        checker.entry(entry, &mut |one| found.push(one));
    }
    for (name, member) in map.iter().filter(|(name, _)| *name != "entry") {
        envelope.insert(name, member.clone());
    }
    let outcome = checker.finish(&envelope, Entries::Array, &mut |one| found.push(one));
    let options = Options { level: Level::Strict, ..Options::default() };
    let (expected, summary) = check_document(&everything, options);
    assert_eq!(found, expected);
    assert_eq!(outcome, DocumentKind::Bundle(summary.unwrap()));
    let outcome = Checker::default().finish(&Map::new(), Entries::Absent, &mut |_| {});
    assert!(
        matches!(outcome, DocumentKind::NotABundle(one) if one.fault.code == FaultCode::NotABundle)
    );
}
