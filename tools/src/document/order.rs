//! Members in the order of the schemas, for reading: CBOR sorts them by length.

use omir_core::cbor;
use omir_core::model::{Bundle, Resource};
use omir_core::value::{Map, Value};

/// The same document with its members in the order of the schemas: the envelope if it is one of a
/// Bundle, and each resource. What is not valid stays as it is.
#[must_use]
pub fn in_schema_order(value: Value) -> Value {
    let Value::Object(mut members) = value else { return value };
    let Some(entry) = members.get_mut("entry").and_then(Value::as_array_mut) else {
        return resource(Value::Object(members));
    };
    let entry = std::mem::take(entry);
    let mut ordered = envelope(members);
    ordered.insert("entry", entry.into_iter().map(resource).collect::<Value>());
    Value::Object(ordered)
}

/// The members of a document whose `entry` is an empty array, in the order of the schema.
pub(super) fn envelope(members: Map) -> Map {
    let value = Value::Object(members);
    let bundle = Bundle::from_value(value.clone());
    match same(bundle.map(|bundle| bundle.to_value()), value) {
        Value::Object(members) => members,
        // Not reached: what went in was an object.
        _ => Map::new(),
    }
}

/// One resource in the order of its schema.
pub(super) fn resource(value: Value) -> Value {
    let resource = Resource::from_value(value.clone());
    same(resource.map(|resource| resource.to_value()), value)
}

/// `ordered` if nothing but the order changed, which equal bytes tell, because a value has one CBOR
/// form.
fn same<E>(ordered: Result<Value, E>, value: Value) -> Value {
    match ordered {
        Ok(ordered) if cbor::to_vec(&ordered) == cbor::to_vec(&value) => ordered,
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

    fn read(text: &str) -> Value {
        json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
    }

    const RECORD: &str = r#"{"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z","extension":[{"url":"urn:x:y","valueJson":{"b":1.0,"a":2}}]}"#;

    /// The document after a detour over CBOR.
    fn ordered(text: &str) -> String {
        let sorted = cbor::to_vec(&read(text));
        let sorted = cbor::from_slice(&sorted, &Limits::default()).unwrap();
        let ordered = in_schema_order(sorted.clone());
        assert_eq!(ordered, sorted);
        json::to_string(&ordered)
    }

    #[test]
    fn what_was_cbor_reads_like_the_specification() {
        let text = format!(r#"{{"resourceType":"Bundle","omirVersion":"R1","entry":[{RECORD}]}}"#);
        let found = ordered(&text);
        let start = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"resourceType":"MemoryRecord","id":"m","#;
        assert!(found.starts_with(start), "{found}");
        assert!(ordered(RECORD).starts_with(r#"{"resourceType":"MemoryRecord","id":"m","#));
    }

    #[test]
    fn each_part_is_ordered_for_itself() {
        let text =
            format!(r#"{{"resourceType":"Bundle","x":1,"entry":[{{"id":1,"b":2}},{RECORD}]}}"#);
        let found = ordered(&text);
        let start = r#"{"x":1,"entry":[{"b":2,"id":1},{"resourceType":"MemoryRecord","id":"m","#;
        assert!(found.starts_with(start), "{found}");
        assert_eq!(in_schema_order(read("[1]")), read("[1]"));
        assert_eq!(
            ordered(r#"{"resourceType":"Bundle","x":1}"#),
            r#"{"x":1,"resourceType":"Bundle"}"#
        );
    }
}
