//! A field of a message, or of the element that a rule looks at.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use crate::interface::{FieldType, MessageType};
use crate::message::{FieldPath, Message, PathError, Value};

/// The subject of a rule: one message, or one element of a list in it.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The message as it came.
    pub whole: &'a Message,
    /// The element a rule with `each` is at; otherwise the message again.
    pub element: &'a Message,
    /// The topic.
    pub topic: &'a str,
    /// The node that published it, as far as that is known.
    pub node: Option<&'a str>,
}

/// A field of the element, or with `^` of the whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRef {
    of_whole: bool,
    path: FieldPath,
}

impl FieldRef {
    /// The values it leads to.
    pub fn select<'a>(&self, scene: &Scene<'a>) -> Vec<Cow<'a, Value>> {
        let message = if self.of_whole { scene.whole } else { scene.element };
        message.select(&self.path)
    }

    /// The first value it leads to, as a number.
    pub fn number(&self, scene: &Scene<'_>) -> Option<f64> {
        let value = self.select(scene).into_iter().next()?;
        value.as_f64().or_else(|| value.as_bool().map(f64::from))
    }

    /// Checks that types of that form have the field.
    ///
    /// # Errors
    /// Says from where on they do not.
    pub fn check(&self, types: Types<'_>) -> Result<(), PathError> {
        self.ty(types).map(|_| ())
    }

    /// The type of what it leads to.
    ///
    /// # Errors
    /// Says from where on types of that form do not have it.
    pub fn ty(&self, types: Types<'_>) -> Result<FieldType, PathError> {
        self.path.check(if self.of_whole { types.whole } else { types.element })
    }

    /// The path alone.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// Returns true if it is a field of the whole message.
    pub fn is_of_whole(&self) -> bool {
        self.of_whole
    }
}

impl FromStr for FieldRef {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let (of_whole, path) = match text.strip_prefix('^') {
            Some(path) => (true, path),
            None => (false, text),
        };
        Ok(Self { of_whole, path: path.parse()? })
    }
}

/// The types of a [`Scene`].
#[derive(Debug, Clone, Copy)]
pub struct Types<'a> {
    /// That of the message.
    pub whole: &'a Arc<MessageType>,
    /// That of the element.
    pub element: &'a Arc<MessageType>,
}

impl FieldRef {
    /// The name of the constant with that value beside the field: `WARN` for `level`. Where several
    /// have it, the one that begins as the field is called (`POWER_SUPPLY_STATUS_FULL`).
    pub(super) fn constant<'a>(&self, scene: &Scene<'a>, value: &Value) -> Option<&'a str> {
        let message = if self.of_whole { scene.whole } else { scene.element };
        let path = self.path.to_string();
        let (ty, field) = match path.rsplit_once('.') {
            None => (message.ty(), path.as_str()),
            Some((parent, field)) => {
                let parent: FieldPath = parent.parse().ok()?;
                let Cow::Borrowed(Value::Message(parent)) = *message.select(&parent).first()?
                else {
                    return None;
                };
                (parent.ty(), field)
            }
        };
        let number = value.as_i64()?;
        let prefix = format!("{}_", field.to_ascii_uppercase());
        let named = |name: &&str| name.strip_prefix(&prefix).is_some();
        let mut names = ty
            .constants
            .iter()
            .filter(|constant| constant.value.as_i64() == Some(number))
            .map(|constant| constant.name.as_str());
        match names.clone().find(named) {
            Some(name) => name.strip_prefix(&prefix),
            None => names.next(),
        }
    }
}
