//! The reply of a robot.

use omir_core::value::Value;

use crate::document;
use crate::error::{Error, Result};

/// One robot's answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Key of the answer.
    pub key: String,
    /// In the encoding of the question, JSON without payload.
    pub body: Vec<u8>,
    /// The attachment, as JSON; empty if there is none.
    pub attachment: Vec<u8>,
}

impl Reply {
    /// The answer, decoded.
    ///
    /// # Errors
    /// [`Error::Partial`] if that fails: something answered, and nothing can be said of it.
    pub fn value(&self) -> Result<Value> {
        document::decode(&self.body).map_err(|why| {
            Error::Partial(format!("the answer on {} is unreadable {why}", self.key))
        })
    }
}

/// `{"code", "message", "path"}`, and the robot if the object names one.
pub(super) fn error_object(body: &[u8]) -> Option<(Option<String>, Error)> {
    let value = document::decode(body).ok()?;
    let field = |name: &str| {
        let text = value.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    let error = Error::Refused {
        code: field("code")?,
        message: field("message").unwrap_or_default(),
        path: field("path"),
    };
    Some((field("robot"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_read() {
        let body = br#"{"code":"NOT_FOUND","message":"gone","path":null}"#;
        let (robot, error) = error_object(body).unwrap();
        assert_eq!(robot, None);
        assert_eq!(error.code(), "NOT_FOUND");
        assert_eq!(error.path(), None);
        assert!(error_object(b"Timeout").is_none());
    }
}
