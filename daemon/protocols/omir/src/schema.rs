//! JSON Schemas (2020-12) of what is asked and answered: `docs/replies.md` for programs.
//!
//! Those of resources are [`omir_core::json_schema`]'s, which `omir schema` prints too. Those of answers are written down in
//! `schemas/answers.json`. They name what may be relied on: an answer may have more members one day, so they are open.

use omir_core::json_schema::{Drafts, Subject, json_schema};
use omir_core::reference::ResourceType;
use omir_core::value::{Map, Value};
use omird_router::embedded_schemas;

/// The answers, by name. A test reads them.
const ANSWERS: &str = include_str!("../schemas/answers.json");

/// The place of definitions in a schema that stands alone.
const DEFINITIONS: &str = "#/$defs/";

/// Returns all schemas by name. References in them lead to `base` and a name, such as `#/components/schemas/Recall`.
pub fn schemas(base: &str) -> Map {
    let mut all = resources();
    for (name, schema) in embedded_schemas(ANSWERS) {
        all.insert(name, schema);
    }
    for (_, schema) in all.iter_mut() {
        // Each has its name here; generators of clients would call it by the title.
        if let Value::Object(schema) = schema {
            schema.remove("title");
        }
        lead(schema, base);
    }
    all
}

/// The resources of OMIR R1, as they are given out, and as they may come in.
fn resources() -> Map {
    let mut bundle = match json_schema(Subject::Bundle, Drafts::Allowed) {
        Value::Object(bundle) => bundle,
        _ => Map::new(),
    };
    let mut all = match bundle.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    for name in ["$schema", "$id", "$comment"] {
        bundle.remove(name);
    }
    // An entry has a name of its own here, with which generators of clients tell the four apart.
    all.remove("Entry");
    let mut new_bundle = bundle.clone();
    set_entries(&mut bundle, "Resource");
    set_entries(&mut new_bundle, "NewResource");

    let names = ResourceType::ALL.map(ResourceType::as_str);
    for name in names {
        if let Some(Value::Object(mut new)) = all.get(name).cloned() {
            if let Some(required) = new.get_mut("required").and_then(Value::as_array_mut) {
                // A resource that lacks them is completed: docs/keys.md, "Remember".
                required.retain(|name| !matches!(name.as_str(), Some("id" | "createdAt")));
            }
            all.insert(format!("New{name}"), new);
        }
    }
    all.insert("Resource", one_of("A resource of OMIR R1", names.map(str::to_owned)));
    let new = names.map(|name| format!("New{name}"));
    let about =
        "A resource to be stored: a missing `id` is generated, a missing `createdAt` is now";
    all.insert("NewResource", one_of(about, new));
    all.insert("Bundle", bundle);
    all.insert("NewBundle", new_bundle);
    let mut list = described("Resources that are stored together, or not at all");
    list.insert("type", "array");
    list.insert("items", reference("NewResource"));
    list.insert("minItems", 1);
    let mut some = described("A resource, an array of resources, or a Bundle");
    let choices = [reference("NewResource"), list, reference("NewBundle")];
    some.insert("anyOf", choices.into_iter().collect::<Value>());
    all.insert("Resources", some);
    all
}

fn set_entries(bundle: &mut Map, name: &str) {
    let entry = bundle.get_mut("properties").and_then(Value::as_object_mut);
    let entry = entry.and_then(|all| all.get_mut("entry")).and_then(Value::as_object_mut);
    if let Some(entry) = entry {
        entry.insert("items", reference(name));
    }
}

/// One of these, told apart by their `resourceType`.
fn one_of(about: &str, names: [String; 4]) -> Map {
    let mut all = described(about);
    all.insert("type", "object");
    let mut mapping = Map::new();
    for (of, name) in ResourceType::ALL.into_iter().zip(&names) {
        mapping.insert(of.as_str(), format!("{DEFINITIONS}{name}"));
    }
    all.insert("oneOf", names.iter().map(|name| reference(name)).collect::<Value>());
    let mut discriminator = Map::new();
    discriminator.insert("propertyName", "resourceType");
    discriminator.insert("mapping", mapping);
    all.insert("discriminator", discriminator);
    all
}

fn described(about: &str) -> Map {
    let mut schema = Map::new();
    schema.insert("description", about);
    schema
}

fn reference(name: &str) -> Map {
    let mut reference = Map::new();
    reference.insert("$ref", format!("{DEFINITIONS}{name}"));
    reference
}

/// Has the references in a schema lead to `base`.
fn lead(schema: &mut Value, base: &str) {
    match schema {
        // No text in a schema begins so but a reference.
        Value::Text(text) => {
            if let Some(name) = text.strip_prefix(DEFINITIONS) {
                *text = format!("{base}{name}");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| lead(item, base)),
        Value::Object(map) => map.iter_mut().for_each(|(_, value)| lead(value, base)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
