//! The model's requests as an ordinary Zenoh client makes them, and its answers as they come back.

use std::collections::BTreeMap;

use omir_core::cbor;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::engine::Code;

use crate::check::decode;
use crate::model::{self, Request};
use crate::process::{Answer, Client};

/// A daemon's answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Its answer, and the number of the last transaction if it did something.
    Answer(model::Answer, Option<u64>),
    /// It could not: the code and the message.
    Failure(String),
    /// Nothing, because it is gone.
    Silence,
}

/// The refusals that a request itself can be the reason for.
const REFUSALS: [Code; 3] = [Code::InvalidResource, Code::Conflict, Code::NotFound];

/// Makes a request to the daemon of `robot`: records as CBOR, batches as JSON.
///
/// # Panics
/// If an answer is not as docs/replies.md says.
pub fn ask(client: &Client, robot: &str, request: &Request) -> Heard {
    let mut payload = None;
    let operation = match request {
        Request::Remember(resources) => {
            payload = Some(match &resources[..] {
                [resource] => (cbor::to_vec(&resource.to_value()), "application/cbor"),
                several => {
                    let batch = Value::Array(several.iter().map(Resource::to_value).collect());
                    let text = omir_core::json::to_string(&batch);
                    (text.into_bytes(), "application/json")
                }
            });
            "remember".to_owned()
        }
        Request::Forget(target) => format!("forget?ref={target}"),
        Request::Anchor(target, anchored) => format!("anchor?ref={target};anchored={anchored}"),
        Request::Feedback(target, outcome) => {
            format!("feedback?ref={target};outcome={}", outcome.as_str())
        }
    };
    let mut answers = client.send(&format!("omir/{robot}/{operation}"), payload);
    assert!(answers.len() <= 1, "{request:?} is answered {answers:?}");
    match answers.pop() {
        None => Heard::Silence,
        Some(Answer::Ok(_, value)) => {
            assert_eq!(value["durable"], true, "{request:?} is answered {value}");
            let seq = value["seq"].as_u64().expect("an answer has its transaction");
            Heard::Answer(effect(request, &value), Some(seq))
        }
        Some(Answer::Err(error)) => {
            match REFUSALS.into_iter().find(|code| error["code"] == code.as_str()) {
                Some(code) => Heard::Answer(model::Answer::Refused(code), None),
                None => Heard::Failure(error.to_string()),
            }
        }
    }
}

fn effect(request: &Request, value: &serde_json::Value) -> model::Answer {
    let stored = |value: &serde_json::Value| {
        let target = value["ref"].as_str().and_then(|text| text.parse().ok());
        let version = value["version"].as_u64();
        let unchanged = value["unchanged"].as_bool().unwrap_or(false);
        target.zip(version).map(|(target, version)| (target, version, unchanged))
    };
    let answer = match request {
        Request::Remember(_) => value["stored"]
            .as_array()
            .and_then(|list| list.iter().map(stored).collect())
            .map(model::Answer::Stored),
        Request::Forget(_) => value["forgotten"].as_u64().map(model::Answer::Forgotten),
        Request::Anchor(..) | Request::Feedback(..) => {
            stored(value).map(|one| model::Answer::Stored(vec![one]))
        }
    };
    answer.unwrap_or_else(|| panic!("{request:?} is answered {value}"))
}

/// Everything live whose id begins with `owner`. Not all of it, if the daemon went meanwhile.
///
/// # Panics
/// If something comes twice, or is no resource, or the daemon refuses.
pub fn live(client: &Client, robot: &str, owner: &str) -> BTreeMap<Ref, Resource> {
    let mut found = BTreeMap::new();
    for reply in client.replies(&format!("omir/{robot}/memory/*/{owner}$*?format=cbor"), None) {
        let sample = reply.result().unwrap_or_else(|error| panic!("a get is refused: {error:?}"));
        let resource = decode(&sample.payload().to_bytes());
        if let Some(before) = found.insert(resource.reference(), resource) {
            panic!("{} comes twice", before.reference());
        }
    }
    found
}
