//! A resource in words, on one line: any resource, also an invalid one.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::value::Value;

/// `Type/id`, as far as the resource says.
pub fn name(resource: &Value) -> String {
    let field = |name| resource.get(name).and_then(Value::as_str).unwrap_or("?");
    format!("{}/{}", field("resourceType"), field("id"))
}

/// The words of a resource.
pub fn words(resource: &Value) -> String {
    let text = |name| resource.get(name).and_then(Value::as_str);
    let target = |name| {
        let target = resource.get(name).and_then(|to| to.get("ref"));
        target.and_then(Value::as_str).unwrap_or("?")
    };
    match text("resourceType") {
        Some("Relationship") => {
            let relation = text("relationType").unwrap_or("?");
            format!("{} {relation} {}", target("from"), target("to"))
        }
        Some("Entity") => match (text("name"), text("summary")) {
            (Some(name), Some(summary)) => format!("{name}: {summary}"),
            (name, summary) => name.or(summary).unwrap_or_default().to_owned(),
        },
        _ => text("content").or(text("name")).unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Limits;
    use crate::json;

    fn value(text: &str) -> Value {
        json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn every_type_has_words() {
        for (resource, expected) in [
            (r#"{"resourceType":"MemoryRecord","content":"c"}"#, "c"),
            (r#"{"resourceType":"Entity","name":"n","summary":"s"}"#, "n: s"),
            (r#"{"resourceType":"Entity","name":"n"}"#, "n"),
            (r#"{"resourceType":"Episode","name":"n","content":"c"}"#, "c"),
            (
                r#"{"resourceType":"Relationship","from":{"ref":"Entity/a"},"to":{"ref":"Entity/b"},"relationType":"near"}"#,
                "Entity/a near Entity/b",
            ),
            (r#"{}"#, ""),
            (r#"[]"#, ""),
        ] {
            assert_eq!(words(&value(resource)), expected);
        }
        assert_eq!(name(&value("{}")), "?/?");
    }
}
