use super::*;
use crate::decode::Limits;
use crate::instant::Instant;
use crate::json;
use crate::reference::{Ref, ResourceType};
use crate::value::Value;

const EVERYTHING: &str = include_str!("../../tests/data/everything.omir");

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn everything() -> Bundle {
    Bundle::from_value(value(EVERYTHING)).unwrap()
}

fn reference(text: &str) -> Ref {
    text.parse().unwrap()
}

#[test]
fn every_field_passes_through_the_types() {
    let document = value(EVERYTHING);
    let bundle = everything();
    let written = bundle.to_value();
    assert_eq!(written, document);
    for (entry, resource) in
        document.get("entry").unwrap().as_array().unwrap().iter().zip(&bundle.entry)
    {
        // Equality of values ignores how a number was written; the text does not.
        let sorted = |value: &Value| {
            let mut lines: Vec<String> = json::to_string_pretty(value)
                .lines()
                .map(|l| l.trim_end_matches(',').to_string())
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&resource.to_value()), sorted(entry));
        assert_eq!(resource.to_value().as_object().unwrap().keys().next(), Some("resourceType"));
        assert_eq!(Resource::from_value(resource.to_value()).as_ref(), Ok(resource));
    }
    assert_eq!(written.as_object().unwrap().keys().next(), Some("resourceType"));
}

#[test]
fn an_explicit_null_is_not_an_absent_value() {
    let record = everything().entry.swap_remove(4);
    assert_eq!(record.extensions()[2].value_json, Some(Value::Null));
    assert_eq!(record.extensions()[1].value_json, None);
    let mut bundle = Bundle::new(Vec::new());
    assert!(bundle.to_value().get("@context").is_none());
    bundle.context = Some(Value::Null);
    assert_eq!(Bundle::from_value(bundle.to_value()).unwrap().context, Some(Value::Null));
}

#[test]
fn resources_know_their_names_and_references() {
    let bundle = everything();
    let names: Vec<String> =
        bundle.entry.iter().map(|entry| entry.reference().to_string()).collect();
    assert_eq!(
        names,
        [
            "Episode/patrol-7",
            "Entity/kitchen",
            "Entity/dock",
            "Relationship/kitchen.near:dock",
            "MemoryRecord/kettle-on",
            "MemoryRecord/patrol-plan"
        ]
    );
    let references = |index: usize| {
        let mut seen = Vec::new();
        bundle.entry[index].for_each_reference(|pointer, required, target| {
            seen.push(format!("{pointer} {required} {target}"));
        });
        seen
    };
    assert_eq!(
        references(0),
        ["/entityRefs/0/ref false Entity/kitchen", "/entityRefs/1/ref false Entity/dock"]
    );
    assert_eq!(references(1), [] as [&str; 0]);
    assert_eq!(
        references(3),
        [
            "/from/ref true Entity/kitchen",
            "/to/ref true Entity/dock",
            "/sourceEpisode/ref false Episode/patrol-7"
        ]
    );
    assert_eq!(
        references(4),
        ["/entityRefs/0/ref false Entity/kitchen", "/parentId false MemoryRecord/patrol-plan"]
    );
    for entry in &bundle.entry {
        let value = entry.to_value();
        entry.for_each_reference(|pointer, _, target| {
            let text = value.pointer(pointer).and_then(Value::as_str).unwrap();
            assert!(target.to_string().ends_with(text));
        });
    }
    assert_eq!(bundle.entry[2].created_at(), None);
    assert_eq!(bundle.entry[2].meta(), None);
    assert_eq!(bundle.entry[2].resource_type(), ResourceType::Entity);
}

#[test]
fn optional_references_can_be_dropped() {
    for mut entry in everything().entry {
        let untouched = entry.clone();
        assert!(!entry.retain_references(|_| true));
        assert_eq!(entry, untouched);
        let dropped = entry.retain_references(|_| false);
        let mut left = Vec::new();
        entry.for_each_reference(|pointer, required, _| left.push((pointer.to_string(), required)));
        assert!(left.iter().all(|(_, required)| *required));
        assert_eq!(dropped, entry != untouched);
        assert!(Resource::from_value(entry.to_value()).is_ok());
    }
    let mut episode = everything().entry.remove(0);
    assert!(episode.retain_references(|target| *target != reference("Entity/kitchen")));
    let value = episode.to_value();
    assert_eq!(value.pointer("/entityRefs").unwrap().to_string(), r#"[{"ref":"Entity/dock"}]"#);
}

#[test]
fn new_resources_are_valid() {
    let id = || "x".parse().unwrap();
    let now = || Instant::parse("2026-01-01T00:00:00Z").unwrap();
    let end = || reference("Entity/x");
    let resources: [Resource; 4] = [
        MemoryRecord::new(id(), "", now()).into(),
        Entity::new(id(), "").into(),
        Relationship::new(id(), end(), "near", end()).into(),
        Episode::new(id(), "", now()).into(),
    ];
    for mut resource in resources {
        *resource.meta_mut() = Some(Meta::r1());
        resource.extensions_mut().push(Extension::json("urn:x:y", Value::Null));
        assert_eq!(Resource::from_value(resource.to_value()).as_ref(), Ok(&resource));
    }
    assert!(Bundle::from_value(Bundle::new(Vec::new()).to_value()).is_ok());
}

#[test]
fn every_fault_is_handed_back() {
    let faults = Resource::from_value_at(
        value(r#"{"resourceType":"Episode","id":"?","content":1,"created":"x"}"#),
        "/entry/2",
    )
    .unwrap_err();
    let pointers: Vec<&str> = faults.iter().map(|fault| &*fault.pointer).collect();
    assert_eq!(pointers, ["/entry/2/id", "/entry/2/content", "/entry/2", "/entry/2"]);
    let faults =
        Bundle::from_value(value(r#"{"resourceType":"Bundle","entry":[{},1],"omirVersion":"R1"}"#));
    assert_eq!(faults.unwrap_err().len(), 2);
}

#[test]
fn foreign_formats_carry_the_types() {
    let bundle = everything();
    for entry in &bundle.entry {
        let Ok(text) = serde_json::to_string(entry) else {
            // 1e400 has no place in serde_json's numbers.
            assert_eq!(entry.id().as_str(), "kettle-on");
            continue;
        };
        assert!(text.starts_with(r#"{"resourceType":"#), "{text}");
        assert_eq!(serde_json::from_str::<Resource>(&text).unwrap(), *entry);
    }
    let Resource::Entity(dock) = &bundle.entry[2] else {
        panic!("the dock is an entity");
    };
    let text = serde_json::to_string(dock).unwrap();
    assert_eq!(text, r#"{"resourceType":"Entity","id":"dock","name":"Dock"}"#);
    assert_eq!(serde_json::from_str::<Entity>(&text).unwrap(), **dock);
    assert!(serde_json::from_str::<Episode>(&text).is_err());
    assert!(serde_json::from_str::<Entity>(r#"{"id":"dock","name":"Dock"}"#).is_err());
}

#[test]
fn words_are_what_they_say() {
    assert_eq!("code_edit".parse(), Ok(ExperienceType::CodeEdit));
    assert_eq!(ExperienceType::ALL.len(), 14);
    assert_eq!(Label::ALL.len(), 12);
    for kind in Kind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(*kind));
    }
    let error = "memo".parse::<Kind>().unwrap_err();
    assert_eq!(error.to_string(), "expected one of memory, plan, prompt, learning");
}
