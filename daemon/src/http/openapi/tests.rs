use std::collections::BTreeSet;

use super::super::refused::status;
use super::statuses::ALL;
use super::*;
use crate::engine::Code;

fn resolve<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    document.pointer(reference.strip_prefix('#')?)
}

fn each_reference(value: &Value, f: &mut impl FnMut(&str)) {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter() {
                match value {
                    Value::Text(text) if name == "$ref" => f(text),
                    value => each_reference(value, f),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_reference(item, f)),
        _ => {}
    }
}

#[test]
fn each_reference_leads_somewhere() {
    let document = Value::Object(openapi());
    let mut count = 0;
    each_reference(&document, &mut |reference| {
        assert!(resolve(&document, reference).is_some(), "{reference}");
        count += 1;
    });
    assert!(count > 200, "{count}");
}

#[test]
fn each_endpoint_is_in_the_document_by_a_name_of_its_own() {
    let document = Value::Object(openapi());
    let mut names = BTreeSet::new();
    for Endpoint { path, verb, .. } in endpoints() {
        let verbs = document.get("paths").and_then(|paths| paths.get(&path)).unwrap();
        let operation = verbs.get(&verb.as_str().to_ascii_lowercase()).unwrap();
        let name = operation.get("operationId").and_then(Value::as_str).unwrap();
        assert!(names.insert(name.to_owned()), "{name} stands twice");
        let summary = operation.get("summary").and_then(Value::as_str).unwrap();
        assert!(summary.ends_with('.'), "{path}: {summary:?}");
    }
    let paths = document.get("paths").and_then(Value::as_object).unwrap();
    let in_document: usize = paths.values().map(|verbs| verbs.as_object().unwrap().len()).sum();
    assert_eq!(in_document, names.len());
}

#[test]
fn each_code_of_an_error_has_a_status_in_the_document() {
    for code in Code::ALL {
        let number = status(code).as_u16();
        let about = ALL.iter().filter(|status| status.number == number);
        assert_eq!(about.count(), 1, "{code}: {number}");
    }
}

#[test]
fn only_signs_of_health_and_published_schemas_need_no_token() {
    let document = Value::Object(openapi());
    for Endpoint { path, verb, serves } in endpoints() {
        let place = document.get("paths").and_then(|paths| paths.get(&path)).unwrap();
        let operation = place.get(&verb.as_str().to_ascii_lowercase()).unwrap();
        let is_open = operation.get("security").is_some();
        let is_of_health = path.starts_with("/health/") || path.ends_with("/health");
        assert_eq!(is_open, is_of_health || path.contains("/schemas/"), "{path}");
        assert_eq!(is_open, serves.is_open(), "{path}");
    }
}
