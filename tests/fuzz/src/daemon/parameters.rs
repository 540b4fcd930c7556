//! The parameters of a recall: in a selector, in a payload, and as the tool writes them.

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};
use omir_tools::selector::Parameters;
use omird::engine::{Code, Error, Query};
use omird::protocols::omir::{OMIR, add_parameters, parse_query};
use omird::zenoh::selector_parameters;

use crate::support::decode;

const NOW: Timestamp = Timestamp::from_unix(1_780_000_000, 0);

/// Reads `bytes` as a selector and as a payload; both ways lead to the same query.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(list) = selector_parameters(text)
    {
        ask(&list);
    }
    if let Ok(payload) = decode(bytes)
        && let Ok(list) = members(&payload)
    {
        ask(&list);
    }
}

fn members(payload: &Value) -> Result<Vec<(String, String)>, Error> {
    let mut list = Vec::new();
    add_parameters(&mut list, payload).map(|()| list)
}

fn ask(list: &[(String, String)]) {
    let query = read(list);
    match &query {
        Ok(query) => {
            let recall = OMIR.method("recall").unwrap().about;
            assert!(list.iter().all(|(name, _)| recall.names().any(|known| known == name)));
            is_within_bounds(query);
        }
        Err(error) => {
            assert_eq!(error.code, Code::InvalidQuery, "{error:?}");
            assert!(!error.message.is_empty());
            let is_nameless = list.iter().any(|(name, _)| name.is_empty());
            assert!(error.path.starts_with('/') || is_nameless, "{error:?}");
        }
    }
    // As the tool would write it.
    let names = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if list.iter().all(|(name, _)| !name.is_empty() && name.chars().all(names)) {
        let mut selector = Parameters::new();
        list.iter().for_each(|(name, value)| selector.push(name, value));
        let parsed = zenoh::query::Parameters::from(selector.as_str());
        assert_eq!(parsed.iter().count(), list.len(), "{}", selector.as_str());
        if list.iter().all(|(name, _)| name != "_anyke") {
            let back = selector_parameters(selector.as_str()).expect("what the tool writes");
            assert_eq!(back, list);
        }
        let payload: Map =
            list.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let back = members(&Value::Object(payload)).expect("texts");
        assert_eq!(read(&back), query);
    }
}

fn read(list: &[(String, String)]) -> Result<Query, Error> {
    parse_query(Query::default(), list, NOW)
}

fn is_within_bounds(query: &Query) {
    let unit = |score: Option<f64>| score.is_none_or(|score| (0.0..=1.0).contains(&score));
    assert!(unit(query.min_importance) && unit(query.min_confidence));
    assert!(unit(query.min_retrievability));
    assert!(query.limit.is_none_or(|limit| limit <= 1000));
    assert!(query.radius.is_none_or(|radius| radius.is_finite() && radius >= 0.0));
    assert!(query.radius.is_none() || query.near.is_some() || query.geo.is_some());
}
