//! The instant as it was written, beside the number it denotes.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{InstantError, Timestamp};

/// An RFC 3339 date-time that keeps its text, offset and precision included.
///
/// Equal means written the same; compare [`Instant::at`] for the same moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instant {
    text: String,
    at: Timestamp,
}

impl Instant {
    /// Checks and keeps `text`.
    pub fn parse(text: &str) -> Result<Self, InstantError> {
        Ok(Self { at: Timestamp::parse(text)?, text: text.to_string() })
    }

    /// The point on the time line.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The text as it came.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Written in UTC. RFC 3339 ends with the year 9999 and begins with 0000; instants beyond either
/// become the last or the first it can write.
impl From<Timestamp> for Instant {
    fn from(at: Timestamp) -> Self {
        let at = at.writable();
        Self { text: at.to_string(), at }
    }
}

impl FromStr for Instant {
    type Err = InstantError;

    fn from_str(text: &str) -> Result<Self, InstantError> {
        Self::parse(text)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let at = Timestamp::parse(&text).map_err(de::Error::custom)?;
        Ok(Self { text, at })
    }
}
