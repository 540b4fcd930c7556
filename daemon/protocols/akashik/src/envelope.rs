//! The envelope of every message: a closed set of members.

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::{Map, Value};

use crate::clock;
use crate::failure::{EPOCH_OVERFLOW, Failure, INVALID_ENVELOPE, UNSUPPORTED_OPERATION, quoted};
use crate::params::check_id;
use crate::words::Operation;

/// The protocol's name in each message.
pub(crate) const PROTOCOL: &str = "akashik";
/// The version that is spoken.
pub(crate) const VERSION: &str = "0.1.0";
/// Levels of a message.
const DEPTH: usize = 16;
/// Values in a message.
const VALUES: usize = 1 << 16;

const MEMBERS: [&str; 8] =
    ["protocol", "version", "id", "operation", "agent_id", "session_id", "epoch", "payload"];

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) id: String,
    pub(crate) operation: Operation,
    pub(crate) agent_id: String,
    pub(crate) session_id: Option<String>,
    pub(crate) epoch: u64,
    pub(crate) payload: Map,
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::new(&INVALID_ENVELOPE, message)
}

impl Envelope {
    /// Reads a message.
    ///
    /// # Errors
    /// `INVALID_ENVELOPE`, `UNSUPPORTED_OPERATION`, `EPOCH_OVERFLOW`. The second part of an error is the operation, as far as it
    /// is known.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, (Failure, Option<Operation>)> {
        let limits = Limits { max_depth: DEPTH, max_items: VALUES, ..Limits::default() };
        let value = json::from_slice(bytes, &limits)
            .map_err(|error| (wrong(format!("unreadable JSON: {error}")), None))?;
        let Value::Object(mut map) = value else {
            let message = format!("an envelope is an object, not {}", value.kind_name());
            return Err((wrong(message), None));
        };
        let operation = map.get("operation").and_then(Value::as_str).and_then(Operation::parse);
        Self::of(&mut map, operation).map_err(|failure| (failure, operation))
    }

    fn of(map: &mut Map, operation: Option<Operation>) -> Result<Self, Failure> {
        if let Some(name) = map.keys().find(|name| !MEMBERS.contains(name)) {
            return Err(wrong(format!("{} is no member of an envelope", quoted(name))));
        }
        if let Some(name) = MEMBERS.iter().find(|name| !map.contains_key(name)) {
            return Err(wrong(format!("`{name}` is missing")));
        }
        for (name, value) in [("protocol", PROTOCOL), ("version", VERSION)] {
            if map.get(name).and_then(Value::as_str) != Some(value) {
                return Err(wrong(format!("`{name}` must be {value:?}")));
            }
        }
        let text = |name: &str| {
            let text = map.get(name).and_then(Value::as_str);
            let text = text.ok_or_else(|| wrong(format!("`{name}` must be a text")))?;
            check_id(text).map_err(|why| wrong(format!("`{name}`: {why}")))?;
            Ok::<_, Failure>(text.to_owned())
        };
        let (id, agent_id) = (text("id")?, text("agent_id")?);
        let session_id = match map.get("session_id") {
            Some(Value::Null) | None => None,
            Some(_) => Some(text("session_id")?),
        };
        let epoch = map.get("epoch").and_then(Value::as_number).filter(|epoch| epoch.is_integer());
        let epoch = epoch.ok_or_else(|| wrong("`epoch` must be a whole number of at least 0"))?;
        let epoch = match (epoch.as_u64(), epoch.as_f64() < 0.0) {
            (Some(epoch), _) if epoch <= clock::LAST => epoch,
            (_, true) => return Err(wrong("`epoch` must be at least 0")),
            _ => {
                let message = format!("`epoch` is above {}, the last there is", clock::LAST);
                return Err(Failure::new(&EPOCH_OVERFLOW, message));
            }
        };
        let Some(operation) = operation else {
            let message = format!("`operation` is none of {}", Operation::WORDS.join(", "));
            let is_text = map.get("operation").is_some_and(|value| value.as_str().is_some());
            let code = if is_text { &UNSUPPORTED_OPERATION } else { &INVALID_ENVELOPE };
            return Err(Failure::new(code, message));
        };
        let Some(Value::Object(payload)) = map.remove("payload") else {
            return Err(wrong("`payload` must be an object"));
        };
        Ok(Self { id, operation, agent_id, session_id, epoch, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: &str = r#"{"protocol":"akashik","version":"0.1.0","id":"m1","operation":"RECORD","agent_id":"a","session_id":null,"epoch":3,"payload":{}}"#;

    fn code(text: &str) -> &'static str {
        Envelope::read(text.as_bytes()).map_or_else(|(failure, _)| failure.code.name, |_| "ok")
    }

    #[test]
    fn an_envelope_is_read() {
        let read = Envelope::read(WHOLE.as_bytes()).unwrap();
        assert_eq!((read.id.as_str(), read.epoch, read.session_id), ("m1", 3, None));
        assert_eq!(read.operation, Operation::Record);
    }

    #[test]
    fn what_is_none_is_refused() {
        let with = |from: &str, to: &str| {
            assert!(WHOLE.contains(from), "{from}");
            code(&WHOLE.replace(from, to))
        };
        assert_eq!(with("akashik", "akasha"), "INVALID_ENVELOPE");
        assert_eq!(with("0.1.0", "0.2.0"), "INVALID_ENVELOPE");
        assert_eq!(with("\"m1\"", "\"\""), "INVALID_ENVELOPE");
        assert_eq!(with("\"m1\"", "7"), "INVALID_ENVELOPE");
        assert_eq!(with("RECORD", "FORGET"), "UNSUPPORTED_OPERATION");
        assert_eq!(with("\"RECORD\"", "1"), "INVALID_ENVELOPE");
        assert_eq!(with("3,", "-1,"), "INVALID_ENVELOPE");
        assert_eq!(with("3,", "1.5,"), "INVALID_ENVELOPE");
        assert_eq!(with("3,", "9007199254740993,"), "EPOCH_OVERFLOW");
        assert_eq!(with("3,", "1e400,"), "EPOCH_OVERFLOW");
        assert_eq!(with("{}", "[]"), "INVALID_ENVELOPE");
        assert_eq!(with("\"payload\":{}", "\"payload\":{},\"token\":\"x\""), "INVALID_ENVELOPE");
        assert_eq!(with(",\"session_id\":null", ""), "INVALID_ENVELOPE");
        assert_eq!(code("[]"), "INVALID_ENVELOPE");
        assert_eq!(code("{"), "INVALID_ENVELOPE");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Envelope::read(&bytes);
        }
    }
}
