//! The members of a message, taken out one by one. What is left over of a request is not understood, and refused.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{LIMITS, MessageError};
use crate::cbor;
use crate::value::{Map, Value};

/// The members of a map, taken out one by one.
pub(super) struct Members {
    id: u64,
    /// Of the map in the message.
    path: String,
    map: Map,
}

impl Members {
    pub(super) fn read(bytes: &[u8]) -> Result<Members, MessageError> {
        let root = |message: String| MessageError { id: None, path: "/".to_owned(), message };
        let value = cbor::from_slice(bytes, &LIMITS).map_err(|error| root(format!("{error}")))?;
        let Value::Object(mut map) = value else {
            return Err(root(format!("a message is a map, and this is {}", value.kind_name())));
        };
        let id = map.remove("id").as_ref().and_then(Value::as_u64);
        let Some(id) = id else {
            let message = "is missing, or no number from 0 on".to_owned();
            return Err(MessageError { id: None, path: "/id".to_owned(), message });
        };
        Ok(Members { id, path: String::new(), map })
    }

    /// Those of the member `ok` of an answer.
    pub(super) fn of_ok(map: Map) -> Members {
        Members { id: 0, path: "/ok".to_owned(), map }
    }

    /// The members of a member.
    pub(super) fn inside(&self, name: &str, map: Map) -> Members {
        Members { id: self.id, path: format!("{}/{name}", self.path), map }
    }

    pub(super) fn error(&self, name: &str, message: impl Into<String>) -> MessageError {
        let path = crate::pointer::join(&self.path, name);
        MessageError { id: Some(self.id), path, message: message.into() }
    }

    pub(super) fn whole(&self, message: &str) -> MessageError {
        MessageError { id: Some(self.id), path: "/".to_owned(), message: message.to_owned() }
    }

    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        read: Read<T>,
    ) -> Result<Option<T>, MessageError> {
        let Some(value) = self.map.remove(name) else { return Ok(None) };
        let found = value.kind_name();
        read(value)
            .map(Some)
            .map_err(|expected| self.error(name, format!("expected {expected}, found {found}")))
    }

    pub(super) fn need<T>(&mut self, name: &str, read: Read<T>) -> Result<T, MessageError> {
        self.optional(name, read)?.ok_or_else(|| self.error(name, "is missing"))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, MessageError> {
        self.need(name, text)
    }

    pub(super) fn number(&mut self, name: &str) -> Result<u64, MessageError> {
        self.need(name, number)
    }

    /// The number of the request, if none of these is left.
    pub(super) fn without(self, names: &[&str]) -> Result<u64, MessageError> {
        match names.iter().find(|name| self.map.get(name).is_some()) {
            None => Ok(self.id),
            Some(name) => Err(self.error(name, "does not belong here")),
        }
    }

    /// The number of the request, if nothing is left.
    pub(super) fn finish(self) -> Result<u64, MessageError> {
        match self.map.keys().next() {
            None => Ok(self.id),
            Some(name) => Err(self.error(name, "is unknown here")),
        }
    }
}

/// Contents of a member, or what it should hold.
type Read<T> = fn(Value) -> Result<T, &'static str>;

pub(super) fn text(value: Value) -> Result<String, &'static str> {
    if let Value::Text(text) = value { Ok(text) } else { Err("a string") }
}

pub(super) fn number(value: Value) -> Result<u64, &'static str> {
    value.as_u64().ok_or("a whole number from 0 on")
}

pub(super) fn truth(value: Value) -> Result<bool, &'static str> {
    value.as_bool().ok_or("a boolean")
}

pub(super) fn array(value: Value) -> Result<Vec<Value>, &'static str> {
    if let Value::Array(items) = value { Ok(items) } else { Err("an array") }
}

pub(super) fn texts(value: Value) -> Result<Vec<String>, &'static str> {
    array(value)
        .and_then(|all| all.into_iter().map(text).collect())
        .map_err(|_| "an array of strings")
}

pub(super) fn object(value: Value) -> Result<Map, &'static str> {
    if let Value::Object(map) = value { Ok(map) } else { Err("an object") }
}
