use std::collections::{BTreeMap, BTreeSet};

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::number::Number;
use oxrdf::{Literal, NamedOrBlankNode, Term, Triple};
use oxttl::NTriplesParser;

use super::*;

const EVERYTHING: &str = include_str!("../../../core-nostd/tests/data/everything.omir");
const BASE: &str = "https://example.org/robot-7/";
const NS: &str = "https://omir.io/ns#";

fn document(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn lift(document: &Value, base: Option<&str>) -> Result<String> {
    to_triples(Path::new("x.omir"), document, base)
        .map(|bytes| String::from_utf8(bytes).expect("N-Triples are UTF-8"))
}

fn lifted(text: &str) -> String {
    lift(&document(text), Some(BASE)).unwrap()
}

fn bundle_of(entries: &str) -> String {
    format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{entries}]}}"#)
}

fn record_with(members: &str) -> String {
    bundle_of(&format!(
        r#"{{"resourceType":"MemoryRecord","id":"m","content":"c",
            "createdAt":"2026-01-01T00:00:00Z",{members}}}"#
    ))
}

/// The lines of one predicate, which may be of any namespace.
fn objects<'t>(triples: &'t str, predicate: &str) -> Vec<&'t str> {
    let predicate = format!("{predicate}> ");
    let after = |line: &'t str| line.split_once(&predicate).map(|(_, object)| object);
    triples.lines().filter_map(after).filter_map(|object| object.strip_suffix(" .")).collect()
}

#[test]
fn a_small_bundle_becomes_these_triples() {
    let text = r#"{
      "@context": "https://omir.io/spec/R1/context.jsonld",
      "resourceType": "Bundle", "omirVersion": "R1", "id": "demo", "generatedAt": "2026-05-30T12:00:00Z",
      "entry": [
        {"resourceType": "Episode", "id": "ep-1", "meta": {"omirVersion": "R1", "source": "camera"},
         "content": "Drove.", "source": "observation", "createdAt": "2026-05-30T11:42:03Z",
         "entityRefs": [{"ref": "Entity/john"}], "metadata": {"run no": "7"}},
        {"resourceType": "Entity", "id": "john", "name": "John", "labels": ["person"], "salience": 0.85},
        {"resourceType": "MemoryRecord", "id": "m", "content": "c", "createdAt": "2026-05-30T11:42:03Z",
         "parentId": "m", "extension": [{"url": "urn:x:y", "valueJson": {"b": 1.0, "a": null}}]}]}"#;
    let golden = include_str!("small.nt");
    assert_eq!(lifted(text), golden);
    // The other encoding sorts members by length; the triples are the same, in the same order.
    let other = cbor::from_slice(&cbor::to_vec(&document(text)), &Limits::default()).unwrap();
    assert_eq!(lift(&other, Some(BASE)).unwrap(), golden);
}

/// One value of a document: the field it stands in and the value.
fn leaves<'v>(field: &str, value: &'v Value, out: &mut Vec<(String, &'v Value)>) {
    match value {
        // A JSON literal is one value.
        _ if field == "valueJson" => out.push((field.to_owned(), value)),
        Value::Array(items) => items.iter().for_each(|item| leaves(field, item, out)),
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| *name != "@context") {
                let field = match field {
                    "attributes" | "metadata" => format!("key {name}"),
                    // A reference is the value of the field that holds it.
                    _ if name == "ref" => field.to_owned(),
                    _ => name.to_owned(),
                };
                leaves(&field, member, out);
            }
        }
        _ => out.push((field.to_owned(), value)),
    }
}

/// Returns true if a literal says that value.
fn says(literal: &Literal, value: &Value) -> bool {
    let text = literal.value();
    match (literal.datatype().as_str(), value) {
        ("http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON", value) => document(text) == *value,
        (datatype, Value::Number(number)) => {
            let wanted = ["decimal", "integer"]
                .map(|name| format!("http://www.w3.org/2001/XMLSchema#{name}"));
            wanted.iter().any(|wanted| wanted == datatype)
                && Number::parse(text).is_ok_and(|read| read == *number)
        }
        (_, Value::Bool(yes)) => text == if *yes { "true" } else { "false" },
        (_, Value::Text(wanted)) => text == wanted,
        _ => false,
    }
}

#[test]
fn nothing_of_a_document_with_every_field_is_lost() {
    let document = document(EVERYTHING);
    let triples = lift(&document, Some(BASE)).unwrap();
    let triples: Vec<Triple> =
        NTriplesParser::new().for_slice(&triples).collect::<std::result::Result<_, _>>().unwrap();
    let mut found: BTreeMap<String, Vec<&Term>> = BTreeMap::new();
    for triple in &triples {
        let predicate = triple.predicate.as_str();
        let field = match predicate.strip_prefix(NS) {
            Some("episodeSource") => "source".to_owned(),
            Some(field) => field.to_owned(),
            None => match predicate.strip_prefix("urn:omird:key:") {
                Some(key) => format!("key {key}"),
                None => "resourceType".to_owned(),
            },
        };
        found.entry(field).or_default().push(&triple.object);
    }
    let subjects: BTreeSet<String> = triples
        .iter()
        .filter_map(|triple| match &triple.subject {
            NamedOrBlankNode::NamedNode(node) => Some(node.as_str().to_owned()),
            NamedOrBlankNode::BlankNode(_) => None,
        })
        .collect();

    let mut all = Vec::new();
    leaves("", &document, &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for (field, value) in all {
        let text = value.as_str().unwrap_or_default();
        let there = match field.as_str() {
            "id" => subjects.iter().any(|subject| subject.ends_with(&format!("/{text}"))),
            _ => found.get(&field).is_some_and(|objects| {
                objects.iter().any(|object| match object {
                    Term::Literal(literal) => says(literal, value),
                    Term::NamedNode(node) if field == "parentId" => {
                        node.as_str() == format!("{BASE}MemoryRecord/{text}")
                    }
                    Term::NamedNode(node) if field == "resourceType" => {
                        node.as_str() == format!("{NS}{text}")
                    }
                    Term::NamedNode(node) => {
                        node.as_str() == text || node.as_str() == format!("{BASE}{text}")
                    }
                    Term::BlankNode(_) => false,
                })
            }),
        };
        assert!(there, "{field}: {value:?}");
    }
}

#[test]
fn a_reference_and_its_target_are_one_node() {
    let triples = lifted(&bundle_of(
        r#"{"resourceType":"Entity","id":"..","name":"A"},
           {"resourceType":"Entity","id":"a:b","name":"B"},
           {"resourceType":"Relationship","id":".","from":{"ref":"Entity/.."},"to":{"ref":"Entity/a:b"},
            "relationType":"near"}"#,
    ));
    for iri in ["Entity/%2E%2E", "Entity/a:b"].map(|name| format!("<{BASE}{name}>")) {
        assert!(triples.lines().any(|line| line.starts_with(&iri)), "{iri}");
        assert!(triples.lines().any(|line| line.ends_with(&format!("{iri} ."))), "{iri}");
    }
    assert!(triples.contains(&format!("<{BASE}Relationship/%2E> <{NS}from> ")), "{triples}");
    // A Bundle without an id is no resource anybody can refer to.
    assert!(triples.contains(&format!("_:bundle <{NS}entry> <{BASE}Entity/a:b> .")), "{triples}");
}

#[test]
fn bundles_with_one_base_speak_of_the_same_things() {
    let mut first = document(&bundle_of(r#"{"resourceType":"Entity","id":"john","name":"John"}"#));
    let second = first.clone();
    first.as_object_mut().unwrap().insert("id", "one");
    let about = |document: &Value, base| -> BTreeSet<String> {
        let triples = lift(document, base).unwrap();
        let of_john = |line: &&str| line.contains("Entity/john> <");
        triples.lines().filter(of_john).map(str::to_owned).collect()
    };
    assert_eq!(about(&first, Some(BASE)), about(&second, Some(BASE)));
    assert!(about(&first, None).is_disjoint(&about(&second, None)));
    let own = format!("<urn:omird:bundle:one:Entity/john> <{NS}name> \"John\" .");
    assert!(about(&first, None).contains(&own));
}

#[test]
fn instants_keep_their_text_and_say_what_they_are() {
    for (text, object) in [
        ("2026-01-01T00:00:00.123456789012Z", "\"2026-01-01T00:00:00.123456789012Z\"^^xsd"),
        ("2026-01-01t00:00:00z", "\"2026-01-01T00:00:00Z\"^^xsd"),
        ("2026-01-01T00:00:00+14:00", "\"2026-01-01T00:00:00+14:00\"^^xsd"),
        ("2026-01-01T00:00:00-14:01", "\"2026-01-01T00:00:00-14:01\"^^<urn:omird:rfc3339>"),
        ("2016-12-31t23:59:60z", "\"2016-12-31t23:59:60z\"^^<urn:omird:rfc3339>"),
    ] {
        let triples = lifted(&record_with(&format!(r#""eventTime":"{text}""#)));
        let object = object.replace("xsd", "<http://www.w3.org/2001/XMLSchema#dateTime>");
        assert_eq!(objects(&triples, "#eventTime"), [object]);
    }
}

#[test]
fn numbers_are_exact_or_refused() {
    let number = |text: &str| {
        let extension = format!(r#""extension":[{{"url":"urn:x:y","valueNumber":{text}}}]"#);
        lift(&document(&record_with(&extension)), Some(BASE))
    };
    for (text, digits) in
        [("8.5E-1", "0.85"), ("9.0", "9"), ("0.1000000000000000055", "0.1000000000000000055")]
    {
        let decimal = format!("\"{digits}\"^^<http://www.w3.org/2001/XMLSchema#decimal>");
        assert_eq!(objects(&number(text).unwrap(), "#valueNumber"), [decimal]);
    }
    assert!(number("1e400").unwrap().contains(&format!("\"1{}\"^^", "0".repeat(400))));
    let error = number("1e5000").unwrap_err();
    assert_eq!(error.path(), Some("/entry/0/extension/0/valueNumber"));
    // Inside a JSON literal an exponent is an exponent.
    let json = record_with(r#""extension":[{"url":"urn:x:y","valueJson":[1e5000, 1.50]}]"#);
    let literal = "\"[1e+5000,1.5]\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON>";
    assert_eq!(objects(&lifted(&json), "#valueJson"), [literal]);
}

#[test]
fn data_is_not_taken_for_json_ld() {
    let triples = lifted(&bundle_of(
        r#"{"resourceType":"Entity","id":"e","name":"@id","attributes":
              {"id":"1","@type":"2","name":"3","a:b":"4","":"5","resourceType":"6"},
            "extension":[{"url":"omir:x","valueString":"_:y"},{"url":"id:x","valueJson":{"@id":"z"}}]}"#,
    ));
    for (key, value) in
        [("id", 1), ("%40type", 2), ("name", 3), ("a%3Ab", 4), ("", 5), ("resourceType", 6)]
    {
        assert_eq!(
            objects(&triples, &format!("<urn:omird:key:{key}")),
            [format!("\"{value}\"")],
            "{triples}"
        );
    }
    assert_eq!(objects(&triples, "#url"), ["<omir:x>", "<id:x>"]);
    assert_eq!(objects(&triples, "#name"), ["\"@id\""]);
    assert_eq!(objects(&triples, "#valueString"), ["\"_:y\""]);
    assert!(objects(&triples, "#valueJson")[0].starts_with(r#""{\"@id\":\"z\"}"^^"#), "{triples}");
}

#[test]
fn the_documents_own_context_has_no_say() {
    let plain = record_with(r#""kind":"plan""#);
    let own = plain.replacen('{', r#"{"@context":[{"content":null},"https://x.example/"],"#, 1);
    assert_eq!(lifted(&own), lifted(&plain));
}

#[test]
fn many_entries_are_lifted_in_portions() {
    let entity = |index: usize| {
        let name = "x".repeat(PORTION / 8);
        format!(r#"{{"resourceType":"Entity","id":"e{index}","name":"{name}"}}"#)
    };
    let entries: Vec<String> = (0..20).map(entity).collect();
    let triples = lifted(&bundle_of(&entries.join(",")));
    let names: Vec<&str> = triples
        .lines()
        .filter_map(|line| line.split_once("#entry> <"))
        .map(|(_, name)| name)
        .collect();
    let wanted: Vec<String> = (0..20).map(|index| format!("{BASE}Entity/e{index}> .")).collect();
    assert_eq!(names, wanted);
}

#[test]
fn what_does_not_conform_is_refused_with_its_place() {
    for (text, path) in [
        ("[]".to_owned(), "/"),
        (r#"{"resourceType":"Entity","id":"e","name":"E"}"#.to_owned(), "/resourceType"),
        (bundle_of(r#"{"resourceType":"Entity","id":"e"}"#), "/entry/0"),
        (record_with(r#""importance":2"#), "/entry/0/importance"),
        (record_with(r#""parentId":"x""#), "/entry/0/parentId"),
    ] {
        let error = lift(&document(&text), None).unwrap_err();
        assert_eq!(error.path(), Some(path), "{error}");
        assert!(error.to_string().starts_with(&format!("x.omir: {path}: ")), "{error}");
        assert_eq!(error.exit_code(), crate::error::USAGE);
    }
    let error = lift(&document(&bundle_of("")), Some("robot")).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
}

#[test]
fn the_lift_itself_drops_nothing_unseen() {
    let entry = |text: &str| {
        let mut lift = Lift::new(Base::new(BASE).unwrap(), Vec::new()).unwrap();
        lift.entry(&document(text)).unwrap_err().to_string()
    };
    assert!(entry("3").starts_with("/entry/0: "));
    assert!(entry(r#"{"resourceType":"Entity"}"#).starts_with("/entry/0/id: "));
    let refused =
        |member: &str| entry(&format!(r#"{{"resourceType":"Entity","id":"e",{member}}}"#));
    assert_eq!(
        refused(r#""colour":"red""#),
        "/entry/0/colour: the context has no term for this field"
    );
    for (member, place) in [
        (r#""name":null"#, "name"),
        (r#""meta":{"id":"x"}"#, "meta/id"),
        (r#""meta":{"profile":["a b"]}"#, "meta/profile/0"),
        (r#""meta":{"maturity":1.5}"#, "meta/maturity"),
        (r#""createdAt":"yesterday""#, "createdAt"),
        (r#""from":{"ref":"Thing/x"}"#, "from"),
        (r#""parentId":"a b""#, "parentId"),
        (r#""attributes":{"a":1}"#, "attributes"),
    ] {
        let message = refused(member);
        assert!(message.starts_with(&format!("/entry/0/{place}: ")), "{message}");
    }
}

#[test]
fn every_term_is_the_working_groups() {
    let own = ["https://omir.io/ns#", "urn:omird:", "http://www.w3.org/2001/XMLSchema#"];
    let context = Context::ours().unwrap();
    let file = document(context.text());
    let mut texts = Vec::new();
    leaves("", &file, &mut texts);
    for text in texts.iter().filter_map(|(_, value)| value.as_str()) {
        let local = text.starts_with('@') || text.ends_with('/');
        assert!(local || own.iter().any(|space| text.starts_with(space)), "{text}");
    }
}

#[test]
fn the_context_alone_serves_other_processors() {
    let text = r#"{"resourceType":"Bundle","omirVersion":"R1","id":"b","generatedAt":"2026-01-01T00:00:00Z",
      "entry":[
        {"resourceType":"Episode","id":"ep","content":"c","source":"event","createdAt":"2026-01-01T00:00:00Z",
         "entityRefs":[{"ref":"Entity/john"}]},
        {"resourceType":"Entity","id":"john","name":"John","labels":["person"],"mentionCount":3,
         "properNoun":true},
        {"resourceType":"Relationship","id":"r","from":{"ref":"Entity/john"},"to":{"ref":"Entity/john"},
         "relationType":"is","sourceEpisode":{"ref":"Episode/ep"}},
        {"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z",
         "entityRefs":[{"ref":"Entity/john"}],"parentId":"m","version":1}]}"#;
    let mut raw = document(text);
    let context = document(Context::ours().unwrap().text());
    raw.as_object_mut().unwrap().insert("@context", context);
    let parser = JsonLdParser::new().with_base_iri(BASE).unwrap();
    let alone: BTreeSet<String> = parser
        .for_slice(&json::to_string(&raw))
        .map(|quad| format!("{} .", quad.unwrap()))
        .collect();
    let ours: BTreeSet<String> = lifted(text).lines().map(str::to_owned).collect();
    assert_eq!(alone, ours);
}
