//! The document rules CR-1 to CR-8, one conformant and several broken documents each, and what the
//! levels make of them.

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::validate::{Fault, Level, Severity, validate_bundle, validate_shape};
use omir_core::value::Value;

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn bundle(entries: &str) -> String {
    format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entries}]}}"#)
}

/// `code pointer` of the errors at that level.
fn errors_at(text: &str, level: Level) -> Vec<String> {
    validate_bundle(&value(text), level)
        .iter()
        .filter(|fault| fault.severity() == Severity::Error)
        .map(|fault| format!("{} {}", fault.code, fault.pointer))
        .collect()
}

fn errors(text: &str) -> Vec<String> {
    errors_at(text, Level::Core)
}

const A: &str = r#"{"resourceType":"Entity","id":"a","name":"A"}"#;
const E: &str =
    r#"{"resourceType":"Episode","id":"e","content":"x","createdAt":"2026-01-01T00:00:00Z"}"#;
const M: &str =
    r#"{"resourceType":"MemoryRecord","id":"m","content":"x","createdAt":"2026-01-01T00:00:00Z"}"#;
const R: &str = r#"{"resourceType":"Relationship","id":"r","from":{"ref":"Entity/a"},"to":{"ref":"Entity/a"},"relationType":"is"}"#;

/// `document` with one more member.
fn with(document: &str, member: &str) -> String {
    format!("{},{member}}}", document.strip_suffix('}').expect("an object"))
}

/// `document` without a member written on one level.
fn without(document: &str, name: &str) -> String {
    let mut value = value(document);
    value.as_object_mut().expect("an object").remove(name).expect("the member");
    value.to_string()
}

fn joined(documents: &[&str]) -> String {
    bundle(&documents.join(","))
}

#[track_caller]
fn conforms(text: &str) {
    assert_eq!(errors(text), [] as [&str; 0], "{text}");
}

#[track_caller]
fn breaks(text: &str, expected: &[&str]) {
    assert_eq!(errors(text), expected, "{text}");
}

#[test]
fn cr_1_be_a_bundle() {
    conforms(&bundle(""));
    conforms(r#"{"@context":null,"resourceType":"Bundle","omirVersion":"R1","id":"b","entry":[]}"#);
    breaks("[]", &["E111 /"]);
    breaks("3", &["E111 /"]);
    breaks("{}", &["E111 /"]);
    breaks(A, &["E111 /resourceType"]);
    breaks(r#"{"resourceType":"bundle","omirVersion":"R1","entry":[]}"#, &["E111 /resourceType"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":"R2","entry":[]}"#, &["E300 /omirVersion"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":1,"entry":[]}"#, &["E300 /omirVersion"]);
    breaks(r#"{"resourceType":"Bundle","entry":[]}"#, &["E300 /"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":"R1"}"#, &["E110 /"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":{}}"#, &["E110 /entry"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":null}"#, &["E110 /entry"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[],"id":"a b"}"#, &["E110 /id"]);
    breaks(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[],"meta":{}}"#, &["E110 /"]);
    breaks(
        r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[],"familiaritySketch":{"kind":"bloom","bits":0}}"#,
        &[
            "E110 /familiaritySketch/bits",
            "E110 /familiaritySketch",
            "E110 /familiaritySketch",
            "E110 /familiaritySketch",
            "E110 /familiaritySketch",
        ],
    );
}

#[test]
fn cr_2_validate_against_the_schemas() {
    conforms(&joined(&[A, E, M, R]));
    breaks(&bundle("1,null"), &["E100 /entry/0", "E100 /entry/1"]);
    breaks(
        &bundle(r#"{},{"resourceType":"Thing"}"#),
        &["E101 /entry/0", "E101 /entry/1/resourceType"],
    );
    breaks(&bundle(&bundle("")), &["E101 /entry/0/resourceType"]);
    breaks(&bundle(&with(A, r#""labels":["place"]"#)), &["E120 /entry/0/labels/0"]);
    breaks(&bundle(&with(M, r#""version":0"#)), &["E120 /entry/0/version"]);
    breaks(&bundle(&with(A, r#""meta":{"source":"x"}"#)), &["E301 /entry/0/meta"]);
    breaks(&joined(&[A, &with(R, r#""normalizedStrength":1"#)]), &["E251 /entry/1"]);
}

#[test]
fn cr_3_carry_required_fields() {
    for (document, fields) in [
        (M, ["id", "content", "createdAt"].as_slice()),
        (A, &["id", "name"]),
        (R, &["id", "from", "to", "relationType"]),
        (E, &["id", "content", "createdAt"]),
    ] {
        conforms(
            &joined(&[
                A.replace("\"a\"", "\"z\"").as_str(),
                document,
                &A.replace("\"a\"", "\"y\""),
            ])
            .replace("Entity/a", "Entity/z"),
        );
        for field in fields {
            let broken = without(document, field).replace("Entity/a", "Entity/z");
            let other = A.replace("\"a\"", "\"z\"");
            breaks(&joined(&[&broken, &other]), &["E120 /entry/0"]);
        }
        breaks(&bundle(&without(document, "resourceType")), &["E101 /entry/0"]);
    }
}

#[test]
fn cr_4_use_unique_ids_per_type() {
    // The same id under two types is two names.
    conforms(&joined(&[A, &M.replace("\"m\"", "\"a\"")]));
    for bad in ["", "a b", "ä", &"x".repeat(129), "a/b"] {
        breaks(&bundle(&A.replace("\"a\"", &format!("\"{bad}\""))), &["E120 /entry/0/id"]);
    }
    let twice = joined(&[A, M, A]);
    conforms(&twice);
    let faults = validate_bundle(&value(&twice), Level::Core);
    let warning: Vec<&Fault> =
        faults.iter().filter(|fault| fault.severity() == Severity::Warning).collect();
    assert_eq!(warning.len(), 1);
    assert_eq!((warning[0].pointer.as_str(), warning[0].code.as_str()), ("/entry/2/id", "W202"));
    let strict = errors_at(&twice, Level::Strict);
    assert!(strict.contains(&"W202 /entry/2/id".to_string()), "{strict:?}");
}

#[test]
fn cr_5_satisfy_reference_integrity() {
    let refers =
        |field: &str, target: &str| with(M, &format!(r#""{field}":[{{"ref":"{target}"}}]"#));
    conforms(&joined(&[&refers("entityRefs", "Entity/a"), A]));
    conforms(&joined(&[A, E, &with(R, r#""sourceEpisode":{"ref":"Episode/e"}"#)]));
    conforms(&joined(&[&with(M, r#""parentId":"m""#)]));
    // What an extension holds is its own business, and competitors may be elsewhere.
    conforms(&bundle(&with(M, r#""extension":[{"url":"a:b","valueJson":{"ref":"Entity/none"}}]"#)));
    conforms(&bundle(&with(M, r#""interference":{"competesWith":[{"ref":"MemoryRecord/none"}]}"#)));

    breaks(&bundle(&refers("entityRefs", "Entity/a")), &["E200 /entry/0/entityRefs/0/ref"]);
    breaks(&bundle(&with(M, r#""parentId":"p""#)), &["E200 /entry/0/parentId"]);
    breaks(&joined(&[&with(M, r#""parentId":"a""#), A]), &["E200 /entry/0/parentId"]);
    breaks(&bundle(R), &["E200 /entry/0/from/ref", "E200 /entry/0/to/ref"]);
    breaks(
        &joined(&[&with(E, r#""entityRefs":[{"ref":"Entity/a"},{"ref":"Entity/b"}]"#), A]),
        &["E200 /entry/0/entityRefs/1/ref"],
    );
    breaks(
        &joined(&[A, &with(R, r#""sourceEpisode":{"ref":"Episode/none"}"#)]),
        &["E200 /entry/1/sourceEpisode/ref"],
    );
    // There, but of the wrong type.
    breaks(&joined(&[&refers("entityRefs", "Episode/e"), E]), &["E201 /entry/0/entityRefs/0/ref"]);
    breaks(
        &joined(&[A, M, &R.replacen("Entity/a", "MemoryRecord/m", 1)]),
        &["E201 /entry/2/from/ref"],
    );
    breaks(
        &joined(&[A, &with(R, r#""sourceEpisode":{"ref":"Entity/a"}"#)]),
        &["E201 /entry/1/sourceEpisode/ref"],
    );
    // Of the wrong type and not there.
    breaks(&bundle(&refers("entityRefs", "Episode/e")), &["E200 /entry/0/entityRefs/0/ref"]);
    // No reference at all is a matter of the schema only.
    breaks(&bundle(&refers("entityRefs", "Entity")), &["E120 /entry/0/entityRefs/0/ref"]);
}

#[test]
fn cr_6_carry_no_undeclared_fields() {
    let extra = r#""x-mood":"good""#;
    for document in [A, E, M] {
        conforms(&bundle(&with(
            document,
            r#""extension":[{"url":"urn:x:mood","valueString":"good"}]"#,
        )));
        breaks(&bundle(&with(document, extra)), &["E120 /entry/0"]);
    }
    breaks(&joined(&[A, &with(R, extra)]), &["E120 /entry/1"]);
    breaks(&bundle(&with(M, r#""decay":{"rate":1}"#)), &["E120 /entry/0/decay"]);
    breaks(
        &bundle(&with(M, r#""meta":{"omirVersion":"R1","version":1}"#)),
        &["E120 /entry/0/meta"],
    );
}

#[test]
fn cr_7_keep_scores_in_range() {
    for score in ["0", "1", "0.0", "1.0", "0.5", "1e-400", "0.99999999999999999999999"] {
        conforms(&bundle(&with(M, &format!(r#""importance":{score}"#))));
        conforms(&bundle(&with(A, &format!(r#""salience":{score}"#))));
    }
    for score in [
        "-0.1",
        "1.1",
        "2",
        "-1e-400",
        "1.00000000000000000000001",
        "1e400",
        "null",
        "\"1\"",
        "true",
    ] {
        breaks(
            &bundle(&with(M, &format!(r#""importance":{score}"#))),
            &["E120 /entry/0/importance"],
        );
        breaks(&bundle(&with(A, &format!(r#""salience":{score}"#))), &["E120 /entry/0/salience"]);
        breaks(
            &joined(&[A, &with(R, &format!(r#""strength":{score}"#))]),
            &["E120 /entry/1/strength"],
        );
        breaks(
            &bundle(&with(M, &format!(r#""provenance":{{"credibility":{score}}}"#))),
            &["E120 /entry/0/provenance/credibility"],
        );
        breaks(
            &bundle(&with(M, &format!(r#""confidence":{{"calibrated":{score}}}"#))),
            &["E120 /entry/0/confidence/calibrated"],
        );
    }
}

#[test]
fn cr_8_use_rfc_3339_timestamps() {
    let dated = |text: &str| bundle(&M.replace("2026-01-01T00:00:00Z", text));
    for instant in [
        "2026-01-01T00:00:00.5+05:30",
        "2026-01-01t00:00:00z",
        "2016-12-31T23:59:60Z",
        "2024-02-29T12:00:00-23:59",
    ] {
        conforms(&dated(instant));
    }
    for instant in [
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00+24:00",
        "1767225600",
        "",
    ] {
        breaks(&dated(instant), &["E120 /entry/0/createdAt"]);
    }
}

#[test]
fn metadata_is_asked_for_by_the_strict_level() {
    let text = joined(&[A, &with(M, r#""meta":{"omirVersion":"R1"}"#)]);
    let core = validate_bundle(&value(&text), Level::Core);
    assert_eq!(core.len(), 1);
    assert_eq!((core[0].code.as_str(), core[0].severity()), ("I302", Severity::Info));
    assert_eq!(errors_at(&text, Level::Strict), ["E302 /entry/0"]);
    assert!(validate_shape(&value(&text)).is_empty());
}

#[test]
fn a_shape_may_refer_beyond_itself() {
    assert!(validate_shape(&value(&joined(&[R, A, A]))).is_empty());
    assert_eq!(validate_shape(&value(&joined(&[R, "1"]))).len(), 1);
    assert_eq!(validate_shape(&value("{}")).len(), 1);
}

/// Slow means seconds: a quadratic pass over 100,000 entries would take minutes.
#[test]
fn a_hundred_thousand_entries_are_no_burden() {
    let entries: Vec<String> = (0..100_000)
        .map(|i| {
            format!(
                r#"{{"resourceType":"MemoryRecord","id":"m{i}","content":"x","createdAt":"2026-01-01T00:00:00Z","parentId":"m{}"}}"#,
                i / 2
            )
        })
        .collect();
    let document = value(&bundle(&entries.join(",")));
    let start = std::time::Instant::now();
    let faults = validate_bundle(&document, Level::Core);
    assert_eq!(faults.len(), 100_000, "no meta, and nothing else");
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
