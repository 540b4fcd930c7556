//! Resources on one line each.

use omir_core::reference::ResourceType;
use omir_core::value::Value;
pub(super) use omir_core::words::{name, words};

use crate::ids;
use crate::instant::{self, Instant};

/// Short names of these on a terminal, which may be typed for them: the id, as short as it is alone, behind the type
/// of what is no memory.
pub(super) fn short_names(resources: &[Value]) -> Vec<String> {
    fn field<'a>(resource: &'a Value, name: &str) -> &'a str {
        resource.get(name).and_then(Value::as_str).unwrap_or("?")
    }
    let all: Vec<&str> = resources.iter().map(|resource| field(resource, "id")).collect();
    let types = resources.iter().map(|resource| field(resource, "resourceType"));
    types.zip(&all).map(|(of, id)| short_name(of, ids::short(id, &all))).collect()
}

/// The same of references.
pub(super) fn short_refs(references: &[String]) -> Vec<String> {
    let parts = references.iter().map(|name| name.split_once('/').unwrap_or(("?", name)));
    let parts: Vec<(&str, &str)> = parts.collect();
    let all: Vec<&str> = parts.iter().map(|(_, id)| *id).collect();
    parts.iter().map(|(of, id)| short_name(of, ids::short(id, &all))).collect()
}

fn short_name(of: &str, id: &str) -> String {
    if of == ResourceType::MemoryRecord.as_str() { id.to_owned() } else { format!("{of}/{id}") }
}

/// Age since it happened, or else since it was recorded.
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
    fn age_is_that_of_the_event() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let resource =
            value(r#"{"createdAt":"2026-01-02T00:00:00Z","eventTime":"2026-01-01T12:00:00Z"}"#);
        assert_eq!(age(&resource, now), "12 h ago");
        assert_eq!(age(&value("{}"), now), "");
    }
}
