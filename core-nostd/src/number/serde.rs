//! Numbers through serde.
//!
//! Machine integers and floats use serde's own kinds and work with every format. Numbers that fit
//! neither pass between [`Value`](crate::value::Value) and the typed resources by a private agreement
//! with our own serializer and deserializer; any other format refuses them rather than rounding.

use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{self, Serialize, Serializer};

use super::{Number, Repr};

/// The newtype name our own serializer watches for, and the prefix our own deserializer sends.
pub(crate) const EXACT_TOKEN: &str = "$omir::Number";

/// Text behind the digits in the refusal that every foreign format passes on.
const REFUSAL: &str = " does not fit a number of this format";

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Int(int) => {
                if let Ok(int) = i64::try_from(*int) {
                    serializer.serialize_i64(int)
                } else if let Ok(int) = u64::try_from(*int) {
                    serializer.serialize_u64(int)
                } else {
                    serializer.serialize_i128(*int)
                }
            }
            Repr::Float(float) => serializer.serialize_f64(*float),
            Repr::Big(_) | Repr::Decimal(_) => {
                serializer.serialize_newtype_struct(EXACT_TOKEN, &Exact(self))
            }
        }
    }
}

/// A number no format of serde's data model can hold. Serializing it always fails, with the digits in
/// the error: a foreign format reports that, ours takes the digits ([`exact_text`]).
struct Exact<'a>(&'a Number);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom(format_args!("{}{REFUSAL}", self.0)))
    }
}

/// The digits in the message of a refused [`Exact`].
pub(crate) fn exact_text(message: &str) -> Option<&str> {
    message.strip_suffix(REFUSAL)
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E>(self, int: i64) -> Result<Number, E> {
        Ok(int.into())
    }

    fn visit_u64<E>(self, int: u64) -> Result<Number, E> {
        Ok(int.into())
    }

    fn visit_i128<E>(self, int: i128) -> Result<Number, E> {
        Ok(int.into())
    }

    fn visit_u128<E>(self, int: u128) -> Result<Number, E> {
        Ok(int.into())
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Number, E> {
        Number::from_f64(float)
            .ok_or_else(|| E::custom("NaN and infinities are not numbers in JSON"))
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Number, E> {
        from_exact_bytes(bytes).ok_or_else(|| E::invalid_type(de::Unexpected::Bytes(bytes), &self))
    }
}

/// The message our own deserializer sends for a number beyond serde's kinds.
fn exact_bytes(number: &Number) -> String {
    format!("{EXACT_TOKEN}{number}")
}

/// The number in a message of [`exact_bytes`].
pub(crate) fn from_exact_bytes(bytes: &[u8]) -> Option<Number> {
    let digits = bytes.strip_prefix(EXACT_TOKEN.as_bytes())?;
    Number::parse(core::str::from_utf8(digits).ok()?).ok()
}

impl Number {
    /// Hands this number to a visitor, exactly.
    pub(crate) fn visit<'de, V: Visitor<'de>, E: de::Error>(
        &self,
        visitor: V,
    ) -> Result<V::Value, E> {
        match &self.0 {
            Repr::Int(int) => {
                if let Ok(int) = u64::try_from(*int) {
                    visitor.visit_u64(int)
                } else if let Ok(int) = i64::try_from(*int) {
                    visitor.visit_i64(int)
                } else {
                    visitor.visit_i128(*int)
                }
            }
            Repr::Float(float) => visitor.visit_f64(*float),
            Repr::Big(_) | Repr::Decimal(_) => {
                visitor.visit_byte_buf(exact_bytes(self).into_bytes())
            }
        }
    }
}
