//! The JSON Schemas that protocols ship.

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};

/// Reads JSON Schemas by name from a text that is compiled in (`include_str!`).
///
/// # Panics
/// If the text is no JSON object: it is a file of ours, so that is our bug.
pub fn embedded_schemas(text: &str) -> Map {
    match json::from_slice(text.as_bytes(), &Limits::default()) {
        Ok(Value::Object(schemas)) => schemas,
        Ok(other) => {
            let found = other.kind_name();
            panic!("schemas that are compiled in: expected an object, found {found}")
        }
        Err(error) => panic!("schemas that are compiled in: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read() {
        let schemas = embedded_schemas(r#"{"Pose": {"type": "object"}}"#);
        assert!(schemas.contains_key("Pose"));
    }

    #[test]
    #[should_panic(expected = "schemas that are compiled in")]
    fn a_mistake_in_the_text_is_not_passed_over() {
        embedded_schemas("{");
    }
}
