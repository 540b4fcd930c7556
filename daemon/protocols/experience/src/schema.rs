//! The JSON Schemas: the files of the contract, and what the OpenAPI document holds.

use omir_core::value::{Map, Value};
use omird_router::embedded_schemas;

/// The names of the files.
pub(crate) const NAMES: [&str; 4] =
    ["experience_record.v0", "hint_request.v0", "experience_response.v0", "hints_response.v0"];

const FILES: [&str; 4] = [
    include_str!("../schemas/experience_record.v0.json"),
    include_str!("../schemas/hint_request.v0.json"),
    include_str!("../schemas/experience_response.v0.json"),
    include_str!("../schemas/hints_response.v0.json"),
];

/// The names of [`FILES`] in the OpenAPI document.
const COMPONENTS: [&str; 4] =
    ["ExperienceRecord", "HintRequest", "ExperienceResponse", "HintsResponse"];

/// Returns the file of that name, with or without its ending.
pub(crate) fn file(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(".json").unwrap_or(name);
    let at = NAMES.iter().position(|known| *known == name)?;
    Some(FILES[at])
}

/// Returns all schemas for a document of OpenAPI 3.1: what the contract uses of draft-07 means the same in 2020-12. The bodies
/// of the two GETs, for which the contract has examples alone, are `messages.json`.
pub(crate) fn components() -> Map {
    let mut components = embedded_schemas(include_str!("../schemas/messages.json"));
    for (name, text) in COMPONENTS.iter().zip(FILES) {
        let mut schema = embedded_schemas(text);
        schema.retain(|key, _| !matches!(key, "$schema" | "$id"));
        components.insert(*name, Value::Object(schema));
    }
    components
}

#[cfg(test)]
mod tests {
    use omir_core::json;

    use super::*;

    #[test]
    fn each_file_is_a_schema_of_draft_7_and_each_component_one_of_2020() {
        for name in NAMES {
            let schema: serde_json::Value = serde_json::from_str(file(name).unwrap()).unwrap();
            assert_eq!(schema["$id"], format!("https://mnemoverse.dev/schemas/{name}.json"));
            jsonschema::draft7::new(&schema).unwrap();
            assert_eq!(file(name), file(&format!("{name}.json")));
        }
        assert_eq!(file("experience_record.v1"), None);
        let components = components();
        for method in crate::methods::EXPERIENCE.methods {
            for named in [method.about.payload, method.about.response] {
                assert!(named.is_empty() || components.contains_key(named), "{named}");
            }
        }
        for (name, schema) in &components {
            let schema = serde_json::from_str(&json::to_string(schema)).unwrap();
            assert!(jsonschema::draft202012::new(&schema).is_ok(), "{name}");
        }
    }

    /// The contract closes seventeen objects and leaves three open.
    #[test]
    fn the_files_are_closed_where_the_contract_is() {
        let closed: usize =
            FILES.iter().map(|text| text.matches("\"additionalProperties\": false").count()).sum();
        assert_eq!(closed, 17);
    }
}
