//! The canonical form of JSON: the JSON Canonicalization Scheme, RFC 8785.
//!
//! Equal values have the same bytes, so that a digest or a signature over them means the value. Members are sorted by the
//! UTF-16 code units of their names, numbers are written as ECMAScript prints doubles, and there is no space.
//!
//! A [`Number`] may be more exact than a double. RFC 8785 knows doubles alone, and rounding would give two values
//! one digest. So a number is refused if it states a digit that its double, rounded to as many digits, does not have:
//! `9007199254740993` is. `0.1` is taken, and so is `0.10000000000000001`, which C prints for the same double.
//!
//! ```
//! use omir_core::{decode::Limits, jcs, json};
//!
//! let value = json::from_slice(br#"{"b": [1.0, 1e21], "a": null}"#, &Limits::default())?;
//! assert_eq!(jcs::to_string(&value)?, r#"{"a":null,"b":[1,1e+21]}"#);
//!
//! let value = json::from_slice(br#"{"b": [9007199254740993]}"#, &Limits::default())?;
//! assert_eq!(jcs::to_string(&value).unwrap_err().pointer, "/b/0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::json::write_text;
use crate::number::{Form, Number};
use crate::pointer;
use crate::value::{Map, Value};

/// A number with digits that no double has, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InexactNumber {
    /// The JSON Pointer to it. The root is the empty text, so that the pointer can be put behind another.
    pub pointer: String,
    /// The number as it was read.
    pub number: Number,
}

impl fmt::Display for InexactNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = pointer::displayed(&self.pointer);
        write!(f, "{place}: no double holds all digits of {}; write it as a text", self.number)
    }
}

impl core::error::Error for InexactNumber {}

/// Returns the canonical form.
///
/// # Errors
/// A number has digits that its double has not.
pub fn to_string(value: &Value) -> Result<String, InexactNumber> {
    let mut out = String::new();
    append(value, &mut out)?;
    Ok(out)
}

/// Appends the canonical form to `out`. What stands there after an error is of no use.
///
/// # Errors
/// A number has digits that its double has not.
pub fn append(value: &Value, out: &mut String) -> Result<(), InexactNumber> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => match exact_f64(number) {
            Some(float) => out.push_str(ryu_js::Buffer::new().format_finite(float)),
            None => {
                return Err(InexactNumber { pointer: String::new(), number: number.clone() });
            }
        },
        Value::Text(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                append(item, out).map_err(|error| error.inside(&index.to_string()))?;
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (name, member)) in sorted(map).into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                append(member, out).map_err(|error| error.inside(name))?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Returns the members of an object in canonical order.
pub fn sorted(map: &Map) -> Vec<(&str, &Value)> {
    let mut members: Vec<(&str, &Value)> = map.iter().collect();
    members.sort_by(|(a, _), (b, _)| order(a, b));
    members
}

/// Compares names by their UTF-16 code units. That differs from the order of bytes where characters beyond U+FFFF meet
/// those from U+E000 on.
pub fn order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Returns the double that agrees with every digit of a number.
fn exact_f64(number: &Number) -> Option<f64> {
    let digits = match number.form() {
        // Its digits are the shortest that read back as this double.
        Form::Float(float) => return Some(float),
        Form::Int(int) => significant(&int.unsigned_abs().to_string()),
        Form::Big(big) => significant(&big.magnitude().to_string()),
        Form::Decimal(digits, _) => significant(&digits.magnitude().to_string()),
    };
    let float = number.as_f64();
    if !float.is_finite() {
        return None;
    }
    // The double, rounded to as many digits as are stated. `core` prints any number of digits correctly.
    let rounded = Number::parse(&format!("{float:.*e}", digits.saturating_sub(1)));
    (rounded.as_ref() == Ok(number)).then_some(float)
}

/// Counts the digits up to the last one that is not zero.
fn significant(digits: &str) -> usize {
    digits.trim_end_matches('0').len()
}

impl InexactNumber {
    /// The same error seen from the container that holds the value under `token`.
    fn inside(mut self, token: &str) -> Self {
        let mut outer = String::new();
        pointer::push(&mut outer, token);
        self.pointer.insert_str(0, &outer);
        self
    }
}

#[cfg(test)]
mod tests;
