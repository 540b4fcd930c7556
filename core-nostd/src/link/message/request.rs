//! Requests of an initiator.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ciborium_ll::Header;

use super::members::{Members, array, number, object, text, truth};
use super::{LIMITS, MessageError};
use crate::cbor;
use crate::cbor_head;
use crate::decode::Limits;
use crate::value::{Map, Value};

/// The names of members and operations are shorter, with their heads.
const SHORT: usize = 64;

/// A request and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMessage {
    /// Drawn by the initiator, rising within a session.
    pub id: u64,
    /// The request.
    pub request: Request,
}

/// Requests of an initiator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// `info`: the names and rights of both ends. Answered by [`Info`](super::Info).
    Info,
    /// `pull`: resources. Answered by [`Response::Begin`](super::Response::Begin),
    /// [`Response::Items`](super::Response::Items) and [`Response::End`](super::Response::End).
    Pull(Pull),
    /// `push`: resources to be stored, all or none. Answered by [`Pushed`](super::Pushed) when they are durable.
    Push(Push),
    /// `unlock`: a token that lets this session write.
    Unlock(String),
    /// `cancel`: the request with this number is not wanted any more.
    Cancel(u64),
}

/// Resources to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Push {
    /// The resources.
    pub items: Vec<Value>,
    /// Restores what was forgotten there, as an import does.
    pub restore: bool,
}

/// A selection of resources, and the point to go on from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pull {
    /// Names and values as in a payload of `recall`; nothing means everything.
    pub filter: Map,
    /// The last `next` whose resources are safe here.
    pub after: Option<u64>,
    /// The instant; of the first answer to the same pull.
    pub as_of: Option<String>,
    /// The memory that it was; of the first answer too. Goes with `after`.
    pub store: Option<String>,
    /// Answers may be packed.
    pub deflate: bool,
}

impl RequestMessage {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        let mut map = Map::new();
        map.insert("id", self.id);
        let op = match self.request {
            Request::Info => "info",
            Request::Pull(pull) => {
                if !pull.filter.is_empty() {
                    map.insert("filter", pull.filter);
                }
                if let Some(after) = pull.after {
                    map.insert("after", after);
                }
                if let Some(as_of) = pull.as_of {
                    map.insert("asOf", as_of);
                }
                if let Some(store) = pull.store {
                    map.insert("store", store);
                }
                if pull.deflate {
                    map.insert("deflate", true);
                }
                "pull"
            }
            Request::Push(push) => {
                map.insert("items", Value::Array(push.items));
                if push.restore {
                    map.insert("restore", true);
                }
                "push"
            }
            Request::Unlock(token) => {
                map.insert("token", token);
                "unlock"
            }
            Request::Cancel(of) => {
                map.insert("of", of);
                "cancel"
            }
        };
        map.insert("op", op);
        cbor::to_vec(&Value::Object(map))
    }

    /// Returns the `id` and the `op` of a request without decoding the rest; `None` if they cannot be read.
    pub fn peek(bytes: &[u8]) -> Option<(u64, String)> {
        let short = |bytes: &[u8]| {
            let limits = Limits { max_items: 1, ..LIMITS };
            cbor::read_item(bytes.get(..bytes.len().min(SHORT))?, &limits).ok()
        };
        let Ok((Header::Map(members), mut at)) = cbor_head::read(bytes) else { return None };
        let (mut id, mut op) = (None, None);
        for _ in 0..members.unwrap_or(usize::MAX) {
            let (name, key) = short(bytes.get(at..)?)?;
            let value = bytes.get(at + key..)?;
            match name.as_str()? {
                "id" => id = Some(number(short(value)?.0).ok()?),
                "op" => op = Some(text(short(value)?.0).ok()?),
                _ => {}
            }
            if id.is_some() && op.is_some() {
                break;
            }
            at += key + cbor::skip_item(value, &LIMITS).ok()?;
        }
        Some((id?, op?))
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The bytes are no request; the error names the request if its number can be read.
    pub fn decode(bytes: &[u8]) -> Result<RequestMessage, MessageError> {
        let mut members = Members::read(bytes)?;
        let op = members.text("op")?;
        let request = match op.as_str() {
            "info" => Request::Info,
            "pull" => Request::Pull(Pull {
                filter: members.optional("filter", object)?.unwrap_or_default(),
                after: members.optional("after", number)?,
                as_of: members.optional("asOf", text)?,
                store: members.optional("store", text)?,
                deflate: members.optional("deflate", truth)?.unwrap_or(false),
            }),
            "push" => Request::Push(Push {
                items: members.need("items", array)?,
                restore: members.optional("restore", truth)?.unwrap_or(false),
            }),
            "unlock" => Request::Unlock(members.text("token")?),
            "cancel" => Request::Cancel(members.number("of")?),
            other => {
                let known = "known are info, pull, push, unlock, cancel";
                return Err(members.error("op", format!("unknown operation {other:?}: {known}")));
            }
        };
        Ok(RequestMessage { id: members.finish()?, request })
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use proptest::prelude::*;

    use super::*;

    fn indefinite(inside: &[u8]) -> Vec<u8> {
        [&[0xbf][..], inside, &[0xff]].concat()
    }

    #[test]
    fn a_peek_finds_the_operation_whatever_else_is_in_it() {
        let push = |items| Request::Push(Push { items, restore: true });
        let small: Value = [("a", 1u64)].into_iter().collect::<Map>().into();
        for (request, op) in [
            (Request::Info, "info"),
            (Request::Cancel(7), "cancel"),
            (push(vec![small; 50_000]), "push"),
        ] {
            let message = RequestMessage { id: 9, request }.encode();
            assert_eq!(RequestMessage::peek(&message), Some((9, op.to_owned())));
            let inside = &message[1..];
            assert_eq!(RequestMessage::peek(&indefinite(inside)), Some((9, op.to_owned())));
        }
        let members =
            |json: &str| cbor::to_vec(&crate::json::from_slice(json.as_bytes(), &LIMITS).unwrap());
        for none in
            [r#"{"id":1}"#, r#"{"op":"info"}"#, r#"{"id":[1],"op":"info"}"#, r#"["id"]"#, "{}"]
        {
            assert_eq!(RequestMessage::peek(&members(none)), None, "{none}");
        }
        let long = members(&format!(r#"{{"id":1,"op":"{}"}}"#, "x".repeat(100)));
        assert_eq!(RequestMessage::peek(&long), None);
    }

    proptest! {
        #[test]
        fn a_peek_at_any_bytes_does_no_harm(bytes: Vec<u8>) {
            let _ = (RequestMessage::peek(&bytes), RequestMessage::peek(&indefinite(&bytes)));
        }
    }
}
