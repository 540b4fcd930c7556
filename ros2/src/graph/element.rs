//! Making what a list of messages is made of.

use crate::interface::Element;
use crate::message::{FieldPath, Message, PathError};

impl Message {
    /// A new message of the type that the list at `path` is made of.
    pub(super) fn element(&self, path: &str) -> Result<Self, PathError> {
        let each: FieldPath = format!("{path}[*]").parse()?;
        match each.check(self.ty())?.element {
            Element::Message(ty) => Ok(Self::new(&ty)),
            other => Err(PathError { path: path.into(), why: format!("{other} is no message") }),
        }
    }
}
