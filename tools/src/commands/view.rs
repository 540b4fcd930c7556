//! How resources look on one line.

use omir_core::value::Value;

use crate::instant::{self, Instant};

/// `Type/id`, as far as the resource says.
pub(super) fn name(resource: &Value) -> String {
    let field = |name| resource.get(name).and_then(Value::as_str).unwrap_or("?");
    format!("{}/{}", field("resourceType"), field("id"))
}

/// What a resource is about, in words.
pub(super) fn words(resource: &Value) -> String {
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

/// How long ago it happened, or else was recorded.
pub(super) fn age(resource: &Value, now: Instant) -> String {
    ["eventTime", "createdAt", "lastSeenAt"]
        .into_iter()
        .find_map(|name| resource.get(name)?.as_str()?.parse().ok())
        .map(|moment: Instant| instant::age(moment, now))
        .unwrap_or_default()
}

/// A number with so many decimals, or nothing.
pub(super) fn number(value: Option<&Value>, decimals: usize) -> String {
    value.and_then(Value::as_f64).map(|number| format!("{number:.decimals$}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

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

    #[test]
    fn age_is_that_of_the_event() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let resource =
            value(r#"{"createdAt":"2026-01-02T00:00:00Z","eventTime":"2026-01-01T12:00:00Z"}"#);
        assert_eq!(age(&resource, now), "12 h ago");
        assert_eq!(age(&value("{}"), now), "");
    }
}
