//! The method `clock`: the time of a simulation.

use std::fmt;

use omir_core::decode::Limits;
use omir_core::instant::{InstantError, Timestamp};
use omir_core::json;
use omir_core::number::Number;
use omir_core::value::Value;
use omird_engine::{Code, Error};
use omird_router::Admitted;

use crate::Omir;

/// A payload that is no instant.
#[derive(Debug, Clone, PartialEq)]
pub enum NotAnInstant {
    /// Seconds that RFC 3339 cannot write.
    OutOfRange(Number),
    /// A text in no form of an instant.
    Unread {
        /// The text.
        text: String,
        /// Its fault.
        error: InstantError,
    },
}

impl std::error::Error for NotAnInstant {}

impl fmt::Display for NotAnInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(seconds) => write!(f, "{seconds} is out of range: ")?,
            Self::Unread { text, error } => write!(f, "{text:?}: {error}; ")?,
        }
        f.write_str("expected an instant such as 2026-05-30T11:42:05Z, or seconds since 1970")
    }
}

impl From<NotAnInstant> for Error {
    fn from(why: NotAnInstant) -> Self {
        Self::new(Code::InvalidQuery, why.to_string())
    }
}

impl Omir {
    /// Returns true if the time is that of a simulation, and can be set.
    pub fn has_simulated_time(&self) -> bool {
        self.simulated.is_some()
    }

    /// Sets the time of the simulation, and ends the request.
    ///
    /// # Errors
    /// That of `at`; `INVALID_QUERY` if the time of this daemon is that of its machine.
    pub fn set_time(
        &self,
        admitted: Admitted,
        at: Result<Timestamp, Error>,
    ) -> Result<Timestamp, Error> {
        let set = at.and_then(|at| {
            let Some(clock) = &self.simulated else {
                let message = "the time of this daemon is that of its machine; only with [clock] source = \"simulated\" \
                               can it be set";
                return Err(Error::new(Code::InvalidQuery, message));
            };
            clock.set(at);
            Ok(at)
        });
        admitted.finish(&set);
        set
    }
}

/// Reads an RFC 3339 instant, as text or as a JSON string, or seconds since 1970 as a JSON number.
///
/// # Errors
/// It is none of them.
pub fn instant(payload: &[u8]) -> Result<Timestamp, NotAnInstant> {
    let limits = Limits { max_bytes: 128, max_depth: 1, max_items: 1 };
    let text = match json::from_slice(payload, &limits) {
        Ok(Value::Number(seconds)) => {
            let micros = (seconds.as_f64() * 1e6).round();
            // Within the years that RFC 3339 can write.
            let range = -62_167_219_200_000_000.0..=253_402_300_799_000_000.0;
            if !range.contains(&micros) {
                return Err(NotAnInstant::OutOfRange(seconds));
            }
            return Ok(Timestamp::from_micros(micros as i64));
        }
        Ok(Value::Text(text)) => text,
        _ => std::str::from_utf8(payload).unwrap_or_default().trim().to_owned(),
    };
    Timestamp::parse(&text).map_err(|error| NotAnInstant::Unread { text, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_each_of_its_forms() {
        let at = Timestamp::parse("2026-05-30T11:42:05Z").unwrap();
        for text in ["2026-05-30T11:42:05Z", "\"2026-05-30T13:42:05+02:00\"", "1780141325"] {
            assert_eq!(instant(text.as_bytes()), Ok(at), "{text}");
        }
        assert_eq!(instant(b"12.25"), Ok(Timestamp::from_micros(12_250_000)));
        for text in ["", "soon", "1e300", "[1]", "\"2026\"", "\u{1}"] {
            assert!(instant(text.as_bytes()).is_err(), "{text}");
        }
    }
}
