//! Requests and answers on the serial link: what is read is written the same, and read again.

use omir_core::decode::Limits;
use omir_core::link::message::{MOST_MESSAGE, RequestMessage, ResponseMessage};
use omir_core::link::pack::{pack, unpack};
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};

use crate::support::identical;

/// Takes the bytes for a message, packed or not, or for the JSON of one.
pub fn run(bytes: &[u8]) {
    let limits = Limits { max_depth: 72, ..Limits::default() };
    if let Ok(value) = json::from_slice(bytes, &limits) {
        message(&cbor::to_vec(&value));
    }
    let Ok(plain) = unpack(bytes.to_vec()) else { return };
    assert!(plain.len() <= MOST_MESSAGE);
    if plain.first() != Some(&1) {
        let packed = pack(plain.clone());
        assert!(packed.len() <= plain.len());
        assert_eq!(unpack(packed).as_ref(), Ok(&plain));
    }
    message(&plain);
}

fn message(bytes: &[u8]) {
    let value = cbor::from_slice(bytes, &Limits::default());
    let mut is_answer = false;
    let written = match (RequestMessage::decode(bytes), ResponseMessage::decode(bytes)) {
        (Ok(asked), Err(_)) => asked.encode(),
        (Err(_), Ok(answered)) => {
            is_answer = true;
            answered.encode()
        }
        (Err(asked), Err(answered)) => {
            assert_eq!(asked.id, answered.id);
            assert!(asked.path.starts_with('/') && answered.path.starts_with('/'));
            return;
        }
        (Ok(_), Ok(_)) => panic!("a request that is an answer"),
    };
    // Members that may be left out, and say nothing, are left out.
    let mut expected = value.expect("a message is CBOR");
    let Value::Object(members) = &mut expected else { panic!("a message is a map") };
    let numbers = ["id", "after", "next", "of"];
    members.retain(|name, value| {
        if numbers.contains(&name) {
            *value = value.as_u64().expect("it was read").into();
        }
        let empty = value.as_object().is_some_and(|map| map.is_empty());
        !(name == "filter" && empty || name == "deflate" && *value == Value::Bool(false))
    });
    if is_answer {
        keep(members, &["id", "ok", "begin", "items", "next", "lost", "end", "error"]);
        for (name, known) in [
            ("begin", &["asOf", "count", "store"][..]),
            ("end", &["count", "complete"]),
            ("error", &["code", "message", "path"]),
        ] {
            if let Some(Value::Object(about)) = members.get_mut(name) {
                keep(about, known);
            }
        }
    }
    let again = cbor::from_slice(&written, &Limits::default()).expect("we write CBOR");
    assert!(again == expected && (identical(&again, &expected) || numbers_inside(&expected)));
}

/// Unknown members of a later version are ignored in an answer.
fn keep(members: &mut Map, known: &[&str]) {
    members.retain(|name, _| known.contains(&name));
}

/// Returns true if a number stands where one of another spelling may be read: in what a pull says.
fn numbers_inside(message: &Value) -> bool {
    ["begin", "end"].iter().any(|name| message.get(name).is_some())
}
