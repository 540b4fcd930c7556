//! Responses to requests.

use alloc::string::String;
use alloc::vec::Vec;

use super::MessageError;
use super::members::{Members, array, object, text, texts, truth};
use crate::cbor;
use crate::value::{Map, Value};

/// A response, and the number of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseMessage {
    /// Of the request.
    pub id: u64,
    /// The response.
    pub response: Response,
}

/// Responses to requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Response {
    /// It was done; with what there is to say of it ([`Info`](super::Info), [`Pushed`](super::Pushed)).
    Ok(Map),
    /// A pull begins.
    Begin {
        /// The instant that the pull refers to; for [`Pull::as_of`](super::Pull::as_of).
        as_of: String,
        /// Number of resources that follow.
        count: u64,
        /// The name of the memory: another one numbers its resources differently; for [`Pull::store`](super::Pull::store).
        store: String,
    },
    /// Resources of a pull, in the order they were recorded.
    Items {
        /// The resources.
        items: Vec<Value>,
        /// The number to resume from after them; means nothing to anybody but the responder.
        next: u64,
        /// Resources that belong here and cannot be read, one text for each.
        lost: Vec<String>,
    },
    /// A pull ends.
    End {
        /// Number of resources that came.
        count: u64,
        /// True if these are all: false if it was cancelled.
        complete: bool,
    },
    /// It was not done.
    Error(Failure),
}

/// A request that was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A code of docs/replies.md, "Errors", such as `INVALID_QUERY` or `UNAUTHORIZED`.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// JSON Pointer into what was sent, where one applies.
    pub path: Option<String>,
}

impl ResponseMessage {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        let mut map = Map::new();
        map.insert("id", self.id);
        match self.response {
            Response::Ok(about) => {
                map.insert("ok", about);
            }
            Response::Begin { as_of, count, store } => {
                let about: [(&str, Value); 3] =
                    [("asOf", as_of.into()), ("count", count.into()), ("store", store.into())];
                map.insert("begin", Map::from_iter(about));
            }
            Response::Items { items, next, lost } => {
                map.insert("items", Value::Array(items));
                map.insert("next", next);
                if !lost.is_empty() {
                    map.insert("lost", lost.into_iter().map(Value::from).collect::<Value>());
                }
            }
            Response::End { count, complete } => {
                let about: [(&str, Value); 2] =
                    [("count", count.into()), ("complete", complete.into())];
                map.insert("end", Map::from_iter(about));
            }
            Response::Error(failure) => {
                let mut about = Map::new();
                about.insert("code", failure.code);
                about.insert("message", failure.message);
                if let Some(path) = failure.path {
                    about.insert("path", path);
                }
                map.insert("error", about);
            }
        }
        cbor::to_vec(&Value::Object(map))
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<ResponseMessage, MessageError> {
        let mut members = Members::read(bytes)?;
        let answer = if let Some(about) = members.optional("ok", object)? {
            Response::Ok(about)
        } else if let Some(about) = members.optional("begin", object)? {
            let mut about = members.inside("begin", about);
            Response::Begin {
                as_of: about.text("asOf")?,
                count: about.number("count")?,
                store: about.text("store")?,
            }
        } else if let Some(items) = members.optional("items", array)? {
            let next = members.number("next")?;
            let lost = members.optional("lost", texts)?.unwrap_or_default();
            Response::Items { items, next, lost }
        } else if let Some(about) = members.optional("end", object)? {
            let mut about = members.inside("end", about);
            Response::End {
                count: about.number("count")?,
                complete: about.need("complete", truth)?,
            }
        } else if let Some(about) = members.optional("error", object)? {
            let mut about = members.inside("error", about);
            Response::Error(Failure {
                code: about.text("code")?,
                message: about.text("message")?,
                path: about.optional("path", text)?,
            })
        } else {
            return Err(members.whole("is none of ok, begin, items, end, error"));
        };
        // Anything else is from a later version; what makes it another message is not.
        let id = members.without(&["op", "ok", "begin", "items", "end", "error"])?;
        Ok(ResponseMessage { id, response: answer })
    }
}
