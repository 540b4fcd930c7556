//! Answers of a responder.

use alloc::string::String;
use alloc::vec::Vec;

use super::MessageError;
use super::members::{Members, array, object, text, texts, truth};
use crate::cbor;
use crate::value::{Map, Value};

/// An answer, and the number of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Of the request.
    pub id: u64,
    /// The answer.
    pub answer: Answer,
}

/// Answers of a responder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// It was done; with what there is to say of it ([`Info`](super::Info), [`Pushed`](super::Pushed)).
    Ok(Map),
    /// A pull begins.
    Begin {
        /// The instant that the pull refers to; for [`Pull::as_of`](super::Pull::as_of).
        as_of: String,
        /// How many resources follow.
        count: u64,
        /// Which memory this is: another one numbers its resources differently; for [`Pull::store`](super::Pull::store).
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
        /// How many resources came.
        count: u64,
        /// True if these are all: false if it was cancelled.
        complete: bool,
    },
    /// It was not done.
    Error(Failure),
}

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A code of docs/replies.md, "Errors", such as `INVALID_QUERY` or `UNAUTHORIZED`.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// JSON Pointer into what was sent, where one applies.
    pub path: Option<String>,
}

impl Answered {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        let mut map = Map::new();
        map.insert("id", self.id);
        match self.answer {
            Answer::Ok(about) => {
                map.insert("ok", about);
            }
            Answer::Begin { as_of, count, store } => {
                let about: [(&str, Value); 3] =
                    [("asOf", as_of.into()), ("count", count.into()), ("store", store.into())];
                map.insert("begin", Map::from_iter(about));
            }
            Answer::Items { items, next, lost } => {
                map.insert("items", Value::Array(items));
                map.insert("next", next);
                if !lost.is_empty() {
                    map.insert("lost", lost.into_iter().map(Value::from).collect::<Value>());
                }
            }
            Answer::End { count, complete } => {
                let about: [(&str, Value); 2] =
                    [("count", count.into()), ("complete", complete.into())];
                map.insert("end", Map::from_iter(about));
            }
            Answer::Error(failure) => {
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
    pub fn decode(bytes: &[u8]) -> Result<Answered, MessageError> {
        let mut members = Members::read(bytes)?;
        let answer = if let Some(about) = members.optional("ok", object)? {
            Answer::Ok(about)
        } else if let Some(about) = members.optional("begin", object)? {
            let mut about = members.inside("begin", about);
            Answer::Begin {
                as_of: about.text("asOf")?,
                count: about.number("count")?,
                store: about.text("store")?,
            }
        } else if let Some(items) = members.optional("items", array)? {
            let next = members.number("next")?;
            let lost = members.optional("lost", texts)?.unwrap_or_default();
            Answer::Items { items, next, lost }
        } else if let Some(about) = members.optional("end", object)? {
            let mut about = members.inside("end", about);
            Answer::End { count: about.number("count")?, complete: about.need("complete", truth)? }
        } else if let Some(about) = members.optional("error", object)? {
            let mut about = members.inside("error", about);
            Answer::Error(Failure {
                code: about.text("code")?,
                message: about.text("message")?,
                path: about.optional("path", text)?,
            })
        } else {
            return Err(members.whole("is none of ok, begin, items, end, error"));
        };
        // Anything else is from a later version; what makes it another message is not.
        let id = members.without(&["op", "ok", "begin", "items", "end", "error"])?;
        Ok(Answered { id, answer })
    }
}
