//! Vectors that a client states: in the extension `urn:omird:ext:embedding` of a resource, or in a question.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use omir_core::model::{Extension, Resource};
use omir_core::value::{Map, Value};

use crate::vector::Vector;

/// The URL of the extension.
pub const EMBEDDING_URL: &str = "urn:omird:ext:embedding";
/// Most numbers in a vector.
pub const MAX_DIMS: usize = 4096;
/// Most characters in the name of a model.
const MAX_NAME: usize = 128;

/// Base64 with or without its padding, as clients write either.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A vector that a resource carries.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The name of the model that made it.
    pub model: String,
    /// The vector, of length 1.
    pub vector: Vector,
}

/// A fault of such an extension: the member, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFault {
    /// A JSON Pointer into the extension, such as `/valueJson/dims`.
    pub pointer: &'static str,
    /// The reason, and what is expected.
    pub reason: String,
}

impl fmt::Display for GivenFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.reason)
    }
}

fn fault(pointer: &'static str, reason: impl Into<String>) -> GivenFault {
    GivenFault { pointer, reason: reason.into() }
}

impl Given {
    /// The vectors of a resource. What cannot be read was refused when it came in; an older store may hold some.
    pub fn all_of(resource: &Resource) -> impl Iterator<Item = Self> + '_ {
        let given = resource.extensions().iter().filter(|one| one.url == EMBEDDING_URL);
        given.filter_map(|extension| Self::from_extension(extension).ok())
    }

    /// Returns true if a resource carries such an extension.
    pub fn is_in(resource: &Resource) -> bool {
        resource.extensions().iter().any(|one| one.url == EMBEDDING_URL)
    }

    /// Reads the extension.
    ///
    /// # Errors
    /// The first fault: a member that is missing, of another type or out of bounds, or numbers that are not finite or have no
    /// direction.
    pub fn from_extension(extension: &Extension) -> Result<Self, GivenFault> {
        const HERE: &str = "/valueJson";
        let Some(map) = extension.value_json.as_ref().and_then(Value::as_object) else {
            return Err(fault(
                HERE,
                "expected an object with `model`, `dims`, and `f32` or `int8`",
            ));
        };
        let model = map.get("model").and_then(Value::as_str);
        let model =
            model.ok_or_else(|| fault("/valueJson/model", "expected the name of a model"))?;
        if !is_model_name(model) {
            let reason = format!("the name of a model is 1 to {MAX_NAME} of A-Z a-z 0-9 . _ - / :");
            return Err(fault("/valueJson/model", reason));
        }
        let dims =
            map.get("dims").and_then(Value::as_u64).and_then(|dims| usize::try_from(dims).ok());
        let dims = dims.filter(|dims| (1..=MAX_DIMS).contains(dims)).ok_or_else(|| {
            fault("/valueJson/dims", format!("expected a whole number from 1 to {MAX_DIMS}"))
        })?;
        let stated = |name: &str| map.get(name).map(Value::as_str);
        let vector = match (stated("f32"), stated("int8")) {
            (Some(_), Some(_)) => {
                return Err(fault(HERE, "states both `f32` and `int8`; one is enough"));
            }
            (None, None) => return Err(fault(HERE, "states neither `f32` nor `int8`")),
            (Some(text), None) => {
                let at = "/valueJson/f32";
                let numbers =
                    floats(text.unwrap_or(""), dims).map_err(|why| fault(at, why.to_string()))?;
                let vector = Vector::of(&numbers);
                vector.ok_or_else(|| fault(at, VectorFault::NoDirection.to_string()))?
            }
            (None, Some(text)) => {
                let at = "/valueJson/int8";
                let scale = map.get("scale").and_then(Value::as_f64);
                if !scale.is_some_and(|scale| scale.is_finite() && scale > 0.0) {
                    return Err(fault("/valueJson/scale", "expected a number above 0"));
                }
                let bytes =
                    bytes(text.unwrap_or(""), dims, 1).map_err(|why| fault(at, why.to_string()))?;
                // -128 has no opposite; the integers are kept between -127 and 127.
                let values = bytes.into_iter().map(|byte| byte.cast_signed().max(-127)).collect();
                let vector = Vector::of_integers(values);
                vector.ok_or_else(|| fault(at, VectorFault::NoDirection.to_string()))?
            }
        };
        Ok(Self { model: model.to_owned(), vector })
    }
}

impl Given {
    /// Writes the extension, with the vector as signed bytes.
    pub fn to_extension(&self) -> Extension {
        let Self { model, vector } = self;
        let bytes: Vec<u8> = vector.values.iter().map(|value| value.cast_unsigned()).collect();
        let mut map = Map::new();
        map.insert("model", model.as_str());
        map.insert("dims", vector.values.len());
        map.insert("scale", f64::from(vector.scale));
        map.insert("int8", BASE64.encode(bytes));
        Extension::json(EMBEDDING_URL, map)
    }
}

/// A text that is no vector, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorFault {
    /// Neither numbers nor base64 of as many bytes as floats take.
    NoForm,
    /// A part between two commas is no number.
    NoNumber(String),
    /// What looks like base64 is none.
    NoBase64(base64::DecodeError),
    /// The base64 is of another number of bytes.
    Bytes {
        /// Bytes that the numbers take.
        expected: usize,
        /// The numbers.
        dims: usize,
    },
    /// It has more numbers than [`MAX_DIMS`].
    TooLong,
    /// All numbers are zero, or one is not finite.
    NoDirection,
}

impl fmt::Display for VectorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoForm => f.write_str("expected numbers with commas, or base64 of 32-bit floats"),
            Self::NoNumber(part) => write!(f, "{part:?} is no number"),
            Self::NoBase64(error) => write!(f, "it is no base64: {error}"),
            Self::Bytes { expected, dims } => {
                write!(f, "expected {expected} bytes in base64 for {dims} numbers")
            }
            Self::TooLong => write!(f, "it has more than {MAX_DIMS} numbers"),
            Self::NoDirection => f.write_str("expected finite numbers that are not all zero"),
        }
    }
}

impl std::error::Error for VectorFault {}

/// Returns true if a text may be the name of a model: what an extension may state.
pub fn is_model_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(is_plain)
}

fn bytes(text: &str, dims: usize, each: usize) -> Result<Vec<u8>, VectorFault> {
    let expected = dims * each;
    // Before it is decoded: text of any length decodes to something.
    let bytes = (text.len() <= expected.div_ceil(3) * 4).then(|| BASE64.decode(text));
    match bytes {
        Some(Ok(bytes)) if bytes.len() == expected => Ok(bytes),
        Some(Err(error)) => Err(VectorFault::NoBase64(error)),
        _ => Err(VectorFault::Bytes { expected, dims }),
    }
}

fn floats(text: &str, dims: usize) -> Result<Vec<f32>, VectorFault> {
    let bytes = bytes(text, dims, 4)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Reads the vector of a question: numbers with commas between, or base64 of 32-bit floats, little-endian.
///
/// # Errors
/// If it is neither, too long, or has no direction.
pub fn parse_vector(text: &str) -> Result<Vector, VectorFault> {
    let text = text.trim();
    let numbers: Vec<f32> = if text.contains(',') {
        let numbers = text.split(',').take(MAX_DIMS + 1).map(|part| {
            let part = part.trim();
            part.parse::<f32>().map_err(|_| VectorFault::NoNumber(part.to_owned()))
        });
        numbers.collect::<Result<_, _>>()?
    } else {
        let length =
            text.trim_end_matches('=').len() / 4 * 3 + text.trim_end_matches('=').len() % 4 * 3 / 4;
        if length == 0 || !length.is_multiple_of(4) {
            return Err(VectorFault::NoForm);
        }
        floats(text, length / 4)?
    };
    if numbers.len() > MAX_DIMS {
        return Err(VectorFault::TooLong);
    }
    Vector::of(&numbers).ok_or(VectorFault::NoDirection)
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;

    use super::*;

    fn extension(value: &str) -> Extension {
        let value = omir_core::json::from_slice(value.as_bytes(), &Limits::default()).unwrap();
        Extension::json(EMBEDDING_URL, value)
    }

    #[test]
    fn vectors_are_read_in_both_forms() {
        // 1.0 and -2.0.
        let given = extension(r#"{"model":"m","dims":2,"f32":"AACAPwAAAMA="}"#);
        let given = Given::from_extension(&given).unwrap();
        assert_eq!((given.model.as_str(), &*given.vector.values), ("m", &[64, -127][..]));
        let unpadded = extension(r#"{"model":"m","dims":2,"f32":"AACAPwAAAMA"}"#);
        assert_eq!(Given::from_extension(&unpadded).unwrap(), given);
        let integers = extension(r#"{"model":"m","dims":3,"int8":"AYD/","scale":0.5}"#);
        let integers = Given::from_extension(&integers).unwrap();
        assert_eq!(&*integers.vector.values, [1, -127, -1]);
        assert_eq!(Given::from_extension(&integers.to_extension()).unwrap(), integers);
        assert_eq!(parse_vector("1,-2").unwrap(), given.vector);
        assert_eq!(parse_vector("AACAPwAAAMA=").unwrap(), given.vector);
    }

    #[test]
    fn bad_vectors_say_where_and_why() {
        for (value, pointer) in [
            ("7", "/valueJson"),
            (r#"{"dims":1,"f32":"AACAPw=="}"#, "/valueJson/model"),
            (r#"{"model":"","dims":1,"f32":"AACAPw=="}"#, "/valueJson/model"),
            (r#"{"model":"a b","dims":1,"f32":"AACAPw=="}"#, "/valueJson/model"),
            (r#"{"model":"m","f32":"AACAPw=="}"#, "/valueJson/dims"),
            (r#"{"model":"m","dims":0,"f32":""}"#, "/valueJson/dims"),
            (r#"{"model":"m","dims":4097,"f32":""}"#, "/valueJson/dims"),
            (r#"{"model":"m","dims":1.5,"f32":""}"#, "/valueJson/dims"),
            (r#"{"model":"m","dims":1}"#, "/valueJson"),
            (r#"{"model":"m","dims":1,"f32":"AACAPw==","int8":"AQ==","scale":1}"#, "/valueJson"),
            (r#"{"model":"m","dims":2,"f32":"AACAPw=="}"#, "/valueJson/f32"),
            (r#"{"model":"m","dims":1,"f32":"AACAfw=="}"#, "/valueJson/f32"),
            (r#"{"model":"m","dims":1,"f32":"AAAAAA=="}"#, "/valueJson/f32"),
            (r#"{"model":"m","dims":1,"f32":"!!!!!!!!"}"#, "/valueJson/f32"),
            (r#"{"model":"m","dims":1,"f32":[1]}"#, "/valueJson/f32"),
            (r#"{"model":"m","dims":1,"int8":"AQ=="}"#, "/valueJson/scale"),
            (r#"{"model":"m","dims":1,"int8":"AQ==","scale":0}"#, "/valueJson/scale"),
            (r#"{"model":"m","dims":1,"int8":"AA==","scale":1}"#, "/valueJson/int8"),
        ] {
            let fault = Given::from_extension(&extension(value)).unwrap_err();
            assert_eq!(fault.pointer, pointer, "{value}: {fault}");
        }
        for text in ["", "a", "1,", "1,nan", "0,0", "inf,1", "AACAPwA=", "AACAfw=="] {
            assert!(parse_vector(text).is_err(), "{text}");
        }
        let long = parse_vector(&vec!["1"; MAX_DIMS + 1].join(","));
        assert_eq!(long, Err(VectorFault::TooLong));
        assert_eq!(parse_vector("1,two").unwrap_err().to_string(), "\"two\" is no number");
    }
}
