//! The document rules CR-1 to CR-8 of the specification (Conformance, "Document rules") as a table: for
//! each a document that keeps it, the nearest one that does not, and what is said of that, code and
//! place. Beside them the drafts' edge rule, the strict level, profiles, and what cannot be read at all.

use std::collections::{BTreeMap, BTreeSet};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::profile::{self, ROBOTICS};
use omir_core::validate::{
    FaultCode, Finding, Level, Options, Severity, check_document, validate_bundle, validate_shape,
};
use omir_core::value::Value;

/// The code of a document that cannot be read; all others are the validator's.
const UNREADABLE: &str = FaultCode::Unreadable.as_str();

/// The demand on the documents of a row.
#[derive(Clone, Copy, PartialEq)]
enum Ask {
    Core,
    Strict,
    /// R1 without the drafts.
    Plain,
    /// Profiles are checked where they are claimed.
    Claimed,
    /// Every resource must claim the profile for robots.
    Robots,
}

/// One step over one line.
struct Row {
    rule: &'static str,
    ask: Ask,
    passes: String,
    fails: String,
    /// `code pointer` of all that is said of `fails` and not of `passes`.
    faults: Vec<&'static str>,
}

/// The rows of one rule.
struct Rule {
    name: &'static str,
    rows: Vec<Row>,
}

impl Rule {
    fn new(name: &'static str) -> Self {
        Self { name, rows: Vec::new() }
    }

    fn core(
        &mut self,
        passes: impl Into<String>,
        fails: impl Into<String>,
        faults: &[&'static str],
    ) {
        self.row(Ask::Core, passes, fails, faults);
    }

    fn row(
        &mut self,
        ask: Ask,
        passes: impl Into<String>,
        fails: impl Into<String>,
        faults: &[&'static str],
    ) {
        let (passes, fails) = (passes.into(), fails.into());
        self.rows.push(Row { rule: self.name, ask, passes, fails, faults: faults.to_vec() });
    }
}

const A: &str = r#"{"resourceType":"Entity","id":"a","name":"A"}"#;
const E: &str =
    r#"{"resourceType":"Episode","id":"e","content":"x","createdAt":"2026-01-01T00:00:00Z"}"#;
const M: &str =
    r#"{"resourceType":"MemoryRecord","id":"m","content":"x","createdAt":"2026-01-01T00:00:00Z"}"#;
const R: &str = r#"{"resourceType":"Relationship","id":"r","from":{"ref":"Entity/a"},"to":{"ref":"Entity/a"},"relationType":"is"}"#;
const META: &str = r#""meta":{"omirVersion":"R1"}"#;

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn bundle(entries: &str) -> String {
    format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entries}]}}"#)
}

fn joined(documents: &[&str]) -> String {
    bundle(&documents.join(","))
}

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

fn be_a_bundle() -> Rule {
    let mut rule = Rule::new("CR-1");
    let empty = bundle("");
    rule.core(&empty, "[]", &["E111 /"]);
    rule.core(&empty, "3", &["E111 /"]);
    rule.core(&empty, "null", &["E111 /"]);
    rule.core(&empty, "{}", &["E111 /"]);
    rule.core(bundle(A), A, &["E111 /resourceType"]);
    let says = |kind: &str| format!(r#"{{"resourceType":{kind},"omirVersion":"R1","entry":[]}}"#);
    rule.core(says("\"Bundle\""), says("\"bundle\""), &["E111 /resourceType"]);
    rule.core(says("\"Bundle\""), says("[\"Bundle\"]"), &["E111 /resourceType"]);
    let of = |version: &str| format!(r#"{{"resourceType":"Bundle"{version},"entry":[]}}"#);
    rule.core(of(r#","omirVersion":"R1""#), of(r#","omirVersion":"R2""#), &["E300 /omirVersion"]);
    rule.core(of(r#","omirVersion":"R1""#), of(r#","omirVersion":"r1""#), &["E300 /omirVersion"]);
    rule.core(of(r#","omirVersion":"R1""#), of(r#","omirVersion":1"#), &["E300 /omirVersion"]);
    rule.core(of(r#","omirVersion":"R1""#), of(""), &["E300 /"]);
    let holds = |entry: &str| format!(r#"{{"resourceType":"Bundle","omirVersion":"R1"{entry}}}"#);
    rule.core(holds(r#","entry":[]"#), holds(""), &["E110 /"]);
    rule.core(holds(r#","entry":[]"#), holds(r#","entry":{}"#), &["E110 /entry"]);
    rule.core(holds(r#","entry":[]"#), holds(r#","entry":null"#), &["E110 /entry"]);
    let sketch = |bits: u8| {
        with(
            &empty,
            &format!(
                r#""familiaritySketch":{{"kind":"bloom","domain":"entity","hashes":3,"bits":{bits},"hashAlg":"xxh3-64","data":"AA=="}}"#
            ),
        )
    };
    rule.core(sketch(8), sketch(0), &["E110 /familiaritySketch/bits"]);
    rule.core(
        with(&empty, r#""@context":null"#),
        with(&empty, r#""source":null"#),
        &["E110 /source"],
    );
    rule
}

fn validate_against_the_schemas() -> Rule {
    let mut rule = Rule::new("CR-2");
    let all = joined(&[A, E, M, R]);
    rule.core(&all, joined(&[A, "1", M]), &["E100 /entry/1"]);
    rule.core(&all, bundle("null,[]"), &["E100 /entry/0", "E100 /entry/1"]);
    rule.core(&all, bundle("{}"), &["E101 /entry/0"]);
    rule.core(&all, bundle(&A.replace("Entity", "Thing")), &["E101 /entry/0/resourceType"]);
    rule.core(&all, bundle(&A.replace("\"Entity\"", "null")), &["E101 /entry/0/resourceType"]);
    rule.core(bundle(""), bundle(&bundle("")), &["E101 /entry/0/resourceType"]);
    for (document, good, bad, place) in [
        (A, r#""labels":["location"]"#, r#""labels":["place"]"#, "E120 /entry/0/labels/0"),
        (A, r#""mentionCount":0"#, r#""mentionCount":-1"#, "E120 /entry/0/mentionCount"),
        (A, r#""mentionCount":1.0"#, r#""mentionCount":1.5"#, "E120 /entry/0/mentionCount"),
        (A, r#""properNoun":false"#, r#""properNoun":"no""#, "E120 /entry/0/properNoun"),
        (A, r#""attributes":{"a":""}"#, r#""attributes":{"a":1}"#, "E120 /entry/0/attributes/a"),
        (A, r#""summary":"""#, r#""summary":null"#, "E120 /entry/0/summary"),
        (M, r#""version":1"#, r#""version":0"#, "E120 /entry/0/version"),
        (M, r#""kind":"plan""#, r#""kind":"Plan""#, "E120 /entry/0/kind"),
        (M, r#""tier":"archive""#, r#""tier":"attic""#, "E120 /entry/0/tier"),
        (M, r#""entityRefs":[]"#, r#""entityRefs":{}"#, "E120 /entry/0/entityRefs"),
        (
            M,
            r#""decay":{"halfLifeHours":1}"#,
            r#""decay":{"halfLifeHours":0}"#,
            "E120 /entry/0/decay/halfLifeHours",
        ),
        (
            M,
            r#""confidence":{"alpha":0.1}"#,
            r#""confidence":{"alpha":0}"#,
            "E120 /entry/0/confidence/alpha",
        ),
        (
            M,
            r#""extension":[{"url":"a:"}]"#,
            r#""extension":[{"url":"a"}]"#,
            "E120 /entry/0/extension/0/url",
        ),
        (E, r#""source":"event""#, r#""source":"rumour""#, "E120 /entry/0/source"),
        (E, r#""metadata":{}"#, r#""metadata":[]"#, "E120 /entry/0/metadata"),
        (A, META, r#""meta":{"source":"x"}"#, "E301 /entry/0/meta"),
        (A, META, r#""meta":{"omirVersion":"R2"}"#, "E301 /entry/0/meta/omirVersion"),
        (A, META, r#""meta":{"omirVersion":"R1","maturity":6}"#, "E120 /entry/0/meta/maturity"),
        (
            A,
            r#""meta":{"omirVersion":"R1","profile":["a:b"]}"#,
            r#""meta":{"omirVersion":"R1","profile":["b"]}"#,
            "E120 /entry/0/meta/profile/0",
        ),
    ] {
        rule.core(bundle(&with(document, good)), bundle(&with(document, bad)), &[place]);
    }
    // A release without the drafts refuses their fields.
    let draft = bundle(&with(M, r#""replayPriority":0.5"#));
    rule.row(Ask::Plain, bundle(M), draft, &["E120 /entry/0"]);
    rule
}

fn carry_required_fields() -> Rule {
    let mut rule = Rule::new("CR-3");
    let z = A.replace("\"a\"", "\"z\"");
    for (document, fields) in [
        (M, ["id", "content", "createdAt"].as_slice()),
        (A, &["id", "name"]),
        (R, &["id", "from", "to", "relationType"]),
        (E, &["id", "content", "createdAt"]),
    ] {
        let document = document.replace("Entity/a", "Entity/z");
        let whole = joined(&[&document, &z]);
        for field in fields {
            rule.core(&whole, joined(&[&without(&document, field), &z]), &["E120 /entry/0"]);
        }
        rule.core(&whole, joined(&[&without(&document, "resourceType"), &z]), &["E101 /entry/0"]);
    }
    rule.core(
        joined(&[A, R]),
        joined(&[A, &R.replacen("{\"ref\":\"Entity/a\"}", "{}", 1)]),
        &["E120 /entry/1/from"],
    );
    rule
}

fn use_unique_ids() -> Rule {
    let mut rule = Rule::new("CR-4");
    let named = |id: &str| bundle(&A.replace("\"a\"", &value_of(id)));
    for bad in ["", "a b", "ä", "a/b", "a\n", "%41", &"x".repeat(129)] {
        rule.core(named("A.b_c:d-9"), named(bad), &["E120 /entry/0/id"]);
    }
    rule.core(named(&"x".repeat(128)), bundle(&A.replace("\"a\"", "7")), &["E120 /entry/0/id"]);
    let envelope = |id: &str| with(&bundle(""), &format!(r#""id":{}"#, value_of(id)));
    rule.core(envelope("b"), envelope("a b"), &["E110 /id"]);
    // The same id under two types is two names; under one it is a warning, and an error when strict.
    let [a, m] = [A, &M.replace("\"m\"", "\"a\"")].map(|document| with(document, META));
    let twice = joined(&[&a, &m, &a]);
    rule.core(joined(&[&a, &m]), &twice, &["W202 /entry/2/id"]);
    rule.row(Ask::Strict, joined(&[&a, &m]), &twice, &["W202 /entry/2/id"]);
    rule.row(
        Ask::Strict,
        joined(&[&a]),
        joined(&[&a, &a, &a]),
        &["W202 /entry/1/id", "W202 /entry/2/id"],
    );
    rule
}

fn value_of(text: &str) -> String {
    Value::from(text).to_string()
}

fn satisfy_reference_integrity() -> Rule {
    let mut rule = Rule::new("CR-5");
    let refers = |document: &str, target: &str| {
        with(document, &format!(r#""entityRefs":[{{"ref":"{target}"}}]"#))
    };
    let dangles = ["E200 /entry/0/entityRefs/0/ref"];
    rule.core(joined(&[&refers(M, "Entity/a"), A]), bundle(&refers(M, "Entity/a")), &dangles);
    rule.core(joined(&[&refers(E, "Entity/a"), A]), joined(&[&refers(E, "Entity/b"), A]), &dangles);
    let two = |second: &str| {
        let refs = format!(r#""entityRefs":[{{"ref":"Entity/a"}},{{"ref":"Entity/{second}"}}]"#);
        joined(&[&with(E, &refs), A])
    };
    rule.core(two("a"), two("b"), &["E200 /entry/0/entityRefs/1/ref"]);
    let ends = ["E200 /entry/0/from/ref", "E200 /entry/0/to/ref"];
    rule.core(joined(&[R, A]), bundle(R), &ends);
    let one_end = R.replacen("Entity/a", "Entity/b", 1);
    rule.core(joined(&[A, R]), joined(&[A, &one_end]), &["E200 /entry/1/from/ref"]);
    let child = |parent: &str| with(M, &format!(r#""parentId":"{parent}""#));
    rule.core(bundle(&child("m")), bundle(&child("p")), &["E200 /entry/0/parentId"]);
    // An Entity of that id is no parent.
    rule.core(joined(&[&child("m"), A]), joined(&[&child("a"), A]), &["E200 /entry/0/parentId"]);
    let derived = |target: &str| with(R, &format!(r#""sourceEpisode":{{"ref":"{target}"}}"#));
    let there = joined(&[A, E, &derived("Episode/e")]);
    rule.core(&there, joined(&[A, E, &derived("Episode/f")]), &["E200 /entry/2/sourceEpisode/ref"]);
    // There, but of the wrong type.
    rule.core(&there, joined(&[A, E, &derived("Entity/a")]), &["E201 /entry/2/sourceEpisode/ref"]);
    let wrong = joined(&[&refers(M, "Episode/e"), A, E]);
    rule.core(joined(&[&refers(M, "Entity/a"), A, E]), wrong, &["E201 /entry/0/entityRefs/0/ref"]);
    let end = R.replacen("Entity/a", "MemoryRecord/m", 1);
    rule.core(joined(&[A, M, R]), joined(&[A, M, &end]), &["E201 /entry/2/from/ref"]);
    // Of the wrong type and not there.
    rule.core(joined(&[&refers(M, "Entity/a"), A]), bundle(&refers(M, "Episode/e")), &dangles);
    // A string that is no reference is a matter of the schema only.
    for bad in ["Entity", "Entity/", "entity/a", "Thing/a", "Entity/a b", "/a"] {
        let bad = joined(&[&refers(M, bad), A]);
        rule.core(joined(&[&refers(M, "Entity/a"), A]), bad, &["E120 /entry/0/entityRefs/0/ref"]);
    }
    // References within extensions are not checked, and competitors may be elsewhere.
    let held = bundle(&with(M, r#""extension":[{"url":"a:b","valueJson":{"ref":"Entity/a"}}]"#));
    rule.core(held, bundle(&refers(M, "Entity/a")), &dangles);
    let competes =
        bundle(&with(M, r#""interference":{"competesWith":[{"ref":"MemoryRecord/none"}]}"#));
    rule.core(competes, bundle(&refers(M, "Entity/a")), &dangles);
    rule
}

fn carry_no_undeclared_fields() -> Rule {
    let mut rule = Rule::new("CR-6");
    let declared = r#""extension":[{"url":"urn:x:mood","valueString":"good"}]"#;
    for (index, document) in [A, E, M, R].into_iter().enumerate() {
        let in_place = |extra: &str| {
            let mut documents = [A, E, M, R].map(String::from);
            documents[index] = with(document, extra);
            joined(&documents.each_ref().map(String::as_str))
        };
        let place = ["E120 /entry/0", "E120 /entry/1", "E120 /entry/2", "E120 /entry/3"][index];
        rule.core(in_place(declared), in_place(r#""x-mood":"good""#), &[place]);
        rule.core(in_place(declared), in_place(r#""@type":"x""#), &[place]);
    }
    for (document, good, bad, place) in [
        (M, r#""decay":{"anchored":true}"#, r#""decay":{"rate":1}"#, "E120 /entry/0/decay"),
        (M, r#""confidence":{}"#, r#""confidence":{"p":1}"#, "E120 /entry/0/confidence"),
        (M, r#""provenance":{}"#, r#""provenance":{"by":"x"}"#, "E120 /entry/0/provenance"),
        (A, META, r#""meta":{"omirVersion":"R1","version":1}"#, "E120 /entry/0/meta"),
        (
            A,
            r#""extension":[{"url":"a:"}]"#,
            r#""extension":[{"url":"a:","value":1}]"#,
            "E120 /entry/0/extension/0",
        ),
        (A, r#""attributes":{"anything":"goes"}"#, r#""attribute":{}"#, "E120 /entry/0"),
    ] {
        rule.core(bundle(&with(document, good)), bundle(&with(document, bad)), &[place]);
    }
    rule.core(with(&bundle(""), r#""id":"b""#), with(&bundle(""), META), &["E110 /"]);
    rule
}

fn keep_scores_in_range() -> Rule {
    let mut rule = Rule::new("CR-7");
    let within = ["0", "1", "0.0", "1.0", "0.5", "1e-400", "-0.0", "0.99999999999999999999999"];
    let beyond = [
        "-0.1",
        "1.1",
        "2",
        "-1e-400",
        "1.00000000000000000000001",
        "1e400",
        "null",
        "\"1\"",
        "true",
    ];
    for (index, bad) in beyond.into_iter().enumerate() {
        let good = within[index % within.len()];
        for (document, member, place) in [
            (M, r#""importance":?"#, "E120 /entry/1/importance"),
            (M, r#""confidence":{"calibrated":?}"#, "E120 /entry/1/confidence/calibrated"),
            (M, r#""provenance":{"credibility":?}"#, "E120 /entry/1/provenance/credibility"),
            (M, r#""replayPriority":?"#, "E120 /entry/1/replayPriority"),
            (
                M,
                r#""informationContent":{"novelty":?}"#,
                "E120 /entry/1/informationContent/novelty",
            ),
            (
                M,
                r#""interference":{"needProbability":?}"#,
                "E120 /entry/1/interference/needProbability",
            ),
            (R, r#""strength":?"#, "E120 /entry/1/strength"),
            (R, r#""reverseStrength":?"#, "E120 /entry/1/reverseStrength"),
            (E, r#""boundaryStrength":?"#, "E120 /entry/1/boundaryStrength"),
        ] {
            let scored = |score| joined(&[A, &with(document, &member.replace('?', score))]);
            rule.core(scored(good), scored(bad), &[place]);
        }
        let salient = |score| bundle(&with(A, &format!(r#""salience":{score}"#)));
        rule.core(salient(good), salient(bad), &["E120 /entry/0/salience"]);
    }
    rule
}

fn use_rfc_3339_timestamps() -> Rule {
    let mut rule = Rule::new("CR-8");
    let dated = |text: &str| bundle(&M.replace("2026-01-01T00:00:00Z", text));
    for (good, bad) in [
        ("2026-01-01T00:00:00Z", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00"),
        ("2026-01-01t00:00:00z", "2026-01-01 00:00:00Z"),
        ("2026-01-01T00:00:00.5+05:30", "2026-01-01T00:00:00.+05:30"),
        ("2024-02-29T12:00:00-23:59", "2023-02-29T12:00:00-23:59"),
        ("2000-02-29T00:00:00Z", "1900-02-29T00:00:00Z"),
        ("2026-01-01T23:59:59Z", "2026-01-01T24:00:00Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:58:60Z"),
        ("2017-01-01T05:29:60+05:30", "2017-01-01T05:29:60Z"),
        ("2026-01-01T00:59:00Z", "2026-01-01T00:60:00Z"),
        ("2026-12-31T00:00:00Z", "2026-13-01T00:00:00Z"),
        ("2026-04-30T00:00:00Z", "2026-04-31T00:00:00Z"),
        ("2026-01-01T00:00:00+23:59", "2026-01-01T00:00:00+24:00"),
        ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00+0000"),
        ("0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z"),
        ("1970-01-01T00:00:00Z", "1767225600"),
        ("1970-01-01T00:00:00Z", ""),
        ("1970-01-01T00:00:00Z", "٢٠٢٦-01-01T00:00:00Z"),
    ] {
        rule.core(dated(good), dated(bad), &["E120 /entry/0/createdAt"]);
    }
    rule.core(
        bundle(M),
        bundle(&M.replace("\"2026-01-01T00:00:00Z\"", "1767225600")),
        &["E120 /entry/0/createdAt"],
    );
    for (document, member, place) in [
        (M, r#""eventTime":"?""#, "E120 /entry/1/eventTime"),
        (M, r#""validUntil":"?""#, "E120 /entry/1/validUntil"),
        (M, r#""decay":{"lastAccess":"?"}"#, "E120 /entry/1/decay/lastAccess"),
        (R, r#""validAt":"?""#, "E120 /entry/1/validAt"),
        (R, r#""invalidatedAt":"?""#, "E120 /entry/1/invalidatedAt"),
        (E, r#""eventTime":"?""#, "E120 /entry/1/eventTime"),
        (M, r#""meta":{"omirVersion":"R1","lastUpdated":"?"}"#, "E120 /entry/1/meta/lastUpdated"),
    ] {
        let at = |instant| joined(&[A, &with(document, &member.replace('?', instant))]);
        rule.core(at("2026-01-01T00:00:00Z"), at("yesterday"), &[place]);
    }
    let written = |at: &str| with(&bundle(""), &format!(r#""generatedAt":"{at}""#));
    rule.core(written("2026-01-01T00:00:00Z"), written("today"), &["E110 /generatedAt"]);
    rule
}

fn sum_a_fan_to_one() -> Rule {
    let mut rule = Rule::new("EP-6c");
    let edge = |id: &str, share: &str, regime: &str| {
        let named = R.replace("\"r\"", &format!("\"{id}\""));
        with(&named, &format!(r#""normalizedStrength":{share},"normalization":{{{regime}}}"#))
    };
    let fan = r#""scheme":"fan","over":"source""#;
    let softmax = r#""scheme":"softmax","over":"target""#;
    let both = |first: &str, second: &str, regimes: [&str; 2]| {
        joined(&[A, &edge("r", first, regimes[0]), &edge("s", second, regimes[1])])
    };
    let sum = ["E250 /entry/1/normalizedStrength"];
    rule.core(both("0.4", "0.6", [fan, fan]), both("0.4", "0.7", [fan, fan]), &sum);
    rule.core(both("1", "0", [softmax, softmax]), both("1", "0.1", [softmax, softmax]), &sum);
    // Rounding errors are tolerated; edges of two regimes do not belong together.
    rule.core(both("0.4", "0.6000009", [fan, fan]), both("0.4", "0.60001", [fan, fan]), &sum);
    rule.core(both("0.9", "0.9", [fan, softmax]), both("0.9", "0.9", [fan, fan]), &sum);
    let none = r#""scheme":"none""#;
    rule.core(both("0.9", "0.9", [none, none]), both("0.9", "0.9", [softmax, softmax]), &sum);
    let bare = joined(&[A, &with(R, r#""normalizedStrength":1"#)]);
    rule.core(joined(&[A, &edge("r", "1", fan)]), bare, &["E251 /entry/1"]);
    rule.core(
        joined(&[A, R]),
        joined(&[A, &with(R, r#""normalizedStrength":0"#)]),
        &["E251 /entry/1"],
    );
    rule
}

fn say_the_release() -> Rule {
    let mut rule = Rule::new("strict");
    let known = with(A, META);
    rule.row(Ask::Strict, bundle(&known), bundle(A), &["E302 /entry/0"]);
    rule.row(
        Ask::Strict,
        joined(&[&known, &with(M, META)]),
        joined(&[&known, M]),
        &["E302 /entry/1"],
    );
    rule.core(bundle(&known), bundle(A), &["I302 /entry/0"]);
    rule
}

fn keep_claimed_profiles() -> Rule {
    let mut rule = Rule::new("profiles");
    let claims = |document: &str, url: &str, more: &str| {
        let meta = format!(r#""meta":{{"omirVersion":"R1","profile":["{url}"]}}{more}"#);
        bundle(&with(document, &meta))
    };
    let posed = |pose: &str| {
        format!(
            r#","extension":[{{"url":"https://omir.io/spec/R1/extension/spatial-pose","valueJson":{pose}}}]"#
        )
    };
    let pose = posed(r#"{"frame":"map","position":[1,2,0]}"#);
    let flat = posed(r#"{"frame":"map","position":[1,2]}"#);
    let timed = r#","eventTime":"2026-01-01T00:00:00Z","decay":{"halfLifeHours":1}"#;
    for (document, good, bad, fault) in [
        (A, &*pose, &*flat, "E400 /entry/0/extension/0/valueJson/position"),
        (
            A,
            &format!(r#","labels":["location"]{pose}"#),
            r#","labels":["location"]"#,
            "E400 /entry/0",
        ),
        (M, timed, r#","decay":{"halfLifeHours":1}"#, "E400 /entry/0"),
        (M, timed, r#","eventTime":"2026-01-01T00:00:00Z""#, "W403 /entry/0"),
        (E, r#","source":"event""#, r#","source":"document""#, "W403 /entry/0/source"),
    ] {
        let [good, bad] = [good, bad].map(|more| claims(document, ROBOTICS, more));
        rule.row(Ask::Claimed, good, &bad, &[fault]);
        // A record that does not claim a profile, or is not asked for one, is not held to it.
        let (said, refused) = judged(&bad, Ask::Core);
        assert!(said.is_empty() && !refused, "{said:?}");
    }
    // Nobody need know every profile, unless profiles are required.
    let unknown = claims(A, "https://example.org/profile/unheard-of", "");
    let known = claims(A, ROBOTICS, "");
    rule.row(Ask::Claimed, unknown.clone(), bundle(A), &["I302 /entry/0"]);
    rule.row(Ask::Robots, &known, unknown, &["E401 /entry/0/meta/profile/0", "W402 /entry/0"]);
    rule.row(Ask::Robots, known, bundle(&with(A, META)), &["W402 /entry/0"]);
    rule
}

fn be_readable() -> Rule {
    let mut rule = Rule::new("encoding");
    let whole = bundle(A);
    rule.core(&whole, &whole[..whole.len() - 1], &["E000 /"]);
    rule.core(&whole, format!("{whole}{whole}"), &["E000 /"]);
    rule.core(&whole, bundle(&with(A, r#""name":"B""#)), &["E000 /entry/0"]);
    rule.core(&whole, format!("\u{feff}{whole}"), &["E000 /"]);
    rule.core(&whole, bundle(&A.replace("\"A\"", "\"\\ud800\"")), &["E000 /entry/0/name"]);
    rule
}

fn table() -> Vec<Row> {
    let rules = [
        be_a_bundle(),
        validate_against_the_schemas(),
        carry_required_fields(),
        use_unique_ids(),
        satisfy_reference_integrity(),
        carry_no_undeclared_fields(),
        keep_scores_in_range(),
        use_rfc_3339_timestamps(),
        sum_a_fan_to_one(),
        say_the_release(),
        keep_claimed_profiles(),
        be_readable(),
    ];
    rules.into_iter().flat_map(|rule| rule.rows).collect()
}

/// Returns the faults of a document, as `code pointer`, and true if it is refused.
fn judged(text: &str, ask: Ask) -> (Vec<String>, bool) {
    let document = match json::from_slice(text.as_bytes(), &Limits::default()) {
        Ok(document) => document,
        Err(error) => return (vec![format!("{UNREADABLE} {}", error.pointer)], true),
    };
    let profiles = profile::builtin();
    let required = [ROBOTICS.to_owned()];
    let options = Options {
        level: if ask == Ask::Strict { Level::Strict } else { Level::Core },
        plain_r1: ask == Ask::Plain,
        profiles: if matches!(ask, Ask::Claimed | Ask::Robots) { &profiles } else { &[] },
        required: if ask == Ask::Robots { &required } else { &[] },
    };
    let (findings, _) = check_document(&document, options);
    let refused = findings.iter().any(|one| one.fault.severity() == Severity::Error);
    let shown = |one: &Finding| format!("{} {}", one.fault.code, one.fault.pointer);
    (findings.iter().map(shown).collect(), refused)
}

#[test]
fn each_rule_holds_on_either_side_of_its_line() {
    for row in table() {
        let (before, refused) = judged(&row.passes, row.ask);
        assert!(!refused, "{}: {} is refused: {before:?}", row.rule, row.passes);
        let (after, refused) = judged(&row.fails, row.ask);
        // That an entry has no meta is said of both.
        let is_asked = |said: &&String| {
            !said.starts_with("I302") || row.faults.iter().any(|fault| fault.starts_with("I302"))
        };
        let news: Vec<&String> =
            after.iter().filter(|said| !before.contains(said)).filter(is_asked).collect();
        assert_eq!(news, row.faults.iter().collect::<Vec<_>>(), "{}: {}", row.rule, row.fails);
        let only_remarks = row.faults.iter().all(|fault| !fault.starts_with('E'));
        let is_hard = row.ask == Ask::Strict || !only_remarks;
        assert_eq!(refused, is_hard, "{}: {}", row.rule, row.fails);
    }
}

#[test]
fn every_rule_and_every_code_has_its_rows() {
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    let mut codes = BTreeSet::new();
    for row in table() {
        *rules.entry(row.rule).or_default() += 1;
        codes.extend(row.faults.iter().map(|fault| &fault[..4]));
    }
    for rule in ["CR-1", "CR-2", "CR-3", "CR-4", "CR-5", "CR-6", "CR-7", "CR-8"] {
        assert!(rules.get(rule).is_some_and(|rows| *rows >= 8), "{rule}: {rules:?}");
    }
    assert_eq!(codes, FaultCode::ALL.iter().map(|code| code.as_str()).collect());
}

#[test]
fn a_shape_may_refer_beyond_itself() {
    assert!(validate_shape(&value(&joined(&[R, A, A]))).is_empty());
    assert_eq!(validate_shape(&value(&joined(&[R, "1"]))).len(), 1);
    assert_eq!(validate_shape(&value("{}")).len(), 1);
    // It asks for no metadata either.
    assert!(validate_shape(&value(&joined(&[A, &with(M, META)]))).is_empty());
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
