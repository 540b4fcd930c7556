//! Bodies and headers of answers.

use std::time::Duration;

use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::value::{Map, Value};
use omird_router::{Method, RateUsage, Response};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::ids::Tenant;

/// Characters that no header holds.
const UNSAFE: &AsciiSet = &CONTROLS.add(b'%');

/// Characters that a segment of a path cannot hold as they are: all but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns an answer with a JSON body.
pub(crate) fn json(status: u16, body: &Value) -> Response {
    Response::new(status, json::to_string(body))
}

/// Adds what every answer of a method says beside its body.
pub(crate) fn with_headers(
    answer: Response,
    method: &Method,
    request_id: Option<&str>,
    rate: Option<RateUsage>,
    now: Timestamp,
) -> Response {
    let mut answer = answer.header("Cache-Control", "no-store");
    if let Some(id) = request_id {
        answer = answer.header("X-Request-ID", header_value(id));
    }
    // A method that needs no key counts for no rate.
    let Some(rate) = rate.filter(|_| method.rates != [None, None]) else { return answer };
    let reset = i64::try_from(rate.reset.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
    let reset = now.secs().saturating_add(reset);
    answer
        .header("X-RateLimit-Limit", rate.rate.requests.to_string())
        .header("X-RateLimit-Remaining", rate.remaining.to_string())
        .header("X-RateLimit-Reset", reset.to_string())
}

/// Returns an id as a header bears it: as it is, or percent-encoded where a header cannot hold it.
pub(crate) fn header_value(id: &str) -> String {
    let is_visible = id.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if is_visible && id.trim() == id {
        return id.to_owned();
    }
    utf8_percent_encode(id, UNSAFE).to_string().replace(' ', "%20")
}

/// Returns the answer to a record that is stored.
pub(crate) fn stored(
    status: &str,
    request_id: &str,
    task_id: &str,
    tenant: &Tenant,
    patterns: Value,
    related: Value,
) -> Response {
    let mut metadata = Map::new();
    metadata.insert("experience_id", tenant.experience_id(task_id));
    let place = utf8_percent_encode(task_id, SEGMENT);
    metadata.insert("storage_location", format!("/experiences/{place}"));
    metadata.insert("indexed_patterns", patterns);
    metadata.insert("related_experiences", related);
    let mut body = Map::new();
    body.insert("request_id", request_id);
    body.insert("task_id", task_id);
    body.insert("status", status);
    body.insert("metadata", metadata);
    json(200, &body.into())
}

/// Returns the answer to a record that is not stored.
pub(crate) fn rejected(
    status: u16,
    request_id: &str,
    task_id: &str,
    code: &str,
    message: &str,
    details: Option<Map>,
) -> Response {
    let mut error = Map::new();
    error.insert("code", code);
    error.insert("message", message);
    if let Some(details) = details {
        error.insert("details", details);
    }
    let mut body = Map::new();
    body.insert("request_id", request_id);
    body.insert("task_id", task_id);
    body.insert("status", "rejected");
    body.insert("error", error);
    json(status, &body.into())
}

/// The metadata of an answer with hints.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) latency: Duration,
    pub(crate) total: usize,
    pub(crate) best: Option<f64>,
    pub(crate) cache: Option<&'static str>,
}

impl Measured {
    fn to_value(self) -> Value {
        let mut map = Map::new();
        let millis = u64::try_from(self.latency.as_millis()).unwrap_or(u64::MAX);
        map.insert("query_latency_ms", millis);
        map.insert("total_experiences", self.total);
        if let Some(best) = self.best {
            map.insert("pattern_match_score", (best * 10_000.0).round() / 10_000.0);
        }
        if let Some(cache) = self.cache {
            map.insert("cache_status", cache);
        }
        map.into()
    }
}

/// Returns the answer with hints.
pub(crate) fn hints(request_id: &str, hints: &[Value], measured: Measured) -> Response {
    let mut body = Map::new();
    body.insert("request_id", request_id);
    body.insert("hints", Value::Array(hints.to_vec()));
    body.insert("metadata", measured.to_value());
    json(200, &body.into())
}

/// Returns the answer without hints.
pub(crate) fn no_hints(
    status: u16,
    request_id: &str,
    code: &str,
    message: &str,
    suggestions: &[&str],
    measured: Measured,
) -> Response {
    let mut error = Map::new();
    error.insert("code", code);
    error.insert("message", message);
    if !suggestions.is_empty() {
        error.insert("suggestions", suggestions.iter().copied().collect::<Value>());
    }
    let mut body = Map::new();
    body.insert("request_id", request_id);
    body.insert("hints", Value::Array(Vec::new()));
    body.insert("metadata", measured.to_value());
    body.insert("error", error);
    json(status, &body.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_holds_any_request_id() {
        for (id, expected) in [
            ("r1", "r1"),
            ("", ""),
            ("a b%", "a b%"),
            ("a\nb", "a%0Ab"),
            ("é", "%C3%A9"),
            (" a\u{7f}% ", "%20a%7F%25%20"),
        ] {
            assert_eq!(header_value(id), expected, "{id:?}");
        }
    }

    #[test]
    fn a_location_is_a_path() {
        let answer = stored(
            "recorded",
            "r",
            "a/b c~1.é_-",
            &Tenant::new("default"),
            Value::Array(Vec::new()),
            Value::Array(Vec::new()),
        );
        let body = String::from_utf8(answer.body).unwrap();
        assert!(body.contains("\"/experiences/a%2Fb%20c~1.%C3%A9_-\""), "{body}");
    }
}
