//! JSON numbers that keep their value exactly.
//!
//! A memory format must not change what it was given: 9 stays 9, 9.0 stays 9.0, and 1e400 is neither
//! infinity nor an error. A number is held as a machine integer, a machine float, or, where neither
//! denotes the same value, as digits.
//!
//! A float stands for its shortest decimal text (0.1 is one tenth), in comparison as in output. That
//! makes every number a decimal, so that equality and order are exact, total and the same whichever
//! encoding a number came through.

mod decimal;
mod serde;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use num_bigint::{BigInt, Sign};

pub(crate) use self::serde::{EXACT_TOKEN, exact_text, from_exact_bytes};
use decimal::Decimal;

/// More digits than this are refused.
pub const MAX_DIGITS: usize = 1000;
/// Decimal exponents beyond this, either way, are refused.
pub const MAX_EXPONENT: i64 = 100_000;

/// Integers up to here equal their float exactly, and no other float comes between.
const FLOAT_INTEGER_LIMIT: u128 = 1 << 53;

/// A finite number of any size and precision JSON can write, up to [`MAX_DIGITS`] and
/// [`MAX_EXPONENT`].
///
/// Equality and order are by value: `9 == 9.0`. What kind of text it was (with a fraction or
/// without) is kept for output.
#[derive(Clone)]
pub struct Number(Repr);

#[derive(Clone)]
enum Repr {
    Int(i128),
    /// Beyond i128.
    Big(Box<BigInt>),
    /// Finite.
    Float(f64),
    /// No float has this value as its shortest text.
    Decimal(Box<Decimal>),
}

/// The form of a number in an encoding without JSON's number grammar.
pub(crate) enum Form<'a> {
    Int(i128),
    Big(&'a BigInt),
    Float(f64),
    /// `digits × 10^exponent`.
    Decimal(&'a BigInt, i64),
}

impl Number {
    /// A float; `None` for NaN and the infinities, which JSON does not have.
    pub fn from_f64(float: f64) -> Option<Self> {
        float.is_finite().then_some(Self(Repr::Float(float)))
    }

    /// Reads one number in JSON's grammar, without surrounding space.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        let parts = Parts::split(text)?;
        if parts.digits() > MAX_DIGITS {
            return Err(NumberError::TooLong);
        }
        if parts.is_integer_text() {
            return Ok(match text.parse::<i128>() {
                Ok(int) => Self(Repr::Int(int)),
                Err(_) => Self::from_big(text.parse().map_err(|_| NumberError::Syntax)?),
            });
        }
        let decimal = Decimal::from_parts(&parts)?;
        // Fifteen digits survive a float in both directions, so the cheap check is exact.
        let short = decimal.digit_count() <= 15 && decimal.magnitude().abs() < 300;
        if let Ok(float) = text.parse::<f64>()
            && float.is_finite()
            && (short || Decimal::from_f64(float) == decimal)
        {
            return Ok(Self(Repr::Float(float)));
        }
        Ok(Self(Repr::Decimal(Box::new(decimal))))
    }

    /// An integer of any size, already known to have at most [`MAX_DIGITS`] digits.
    fn from_big(big: BigInt) -> Self {
        match i128::try_from(&big) {
            Ok(int) => Self(Repr::Int(int)),
            Err(_) => Self(Repr::Big(Box::new(big))),
        }
    }

    /// The integer with these big-endian magnitude bytes; `negative` means `-1 - magnitude`, as CBOR
    /// writes them.
    pub(crate) fn from_bignum(bytes: &[u8], negative: bool) -> Result<Self, NumberError> {
        let start = bytes.iter().position(|&b| b != 0).unwrap_or(bytes.len());
        // 2.4 digits per byte: a cheap refusal before the quadratic conversion.
        if bytes.len() - start > MAX_DIGITS / 2 {
            return Err(NumberError::TooLong);
        }
        let magnitude = BigInt::from_bytes_be(Sign::Plus, &bytes[start..]);
        let big = if negative { -magnitude - 1 } else { magnitude };
        let number = Self::from_big(big);
        if let Repr::Big(big) = &number.0
            && decimal::digit_count(big) > MAX_DIGITS
        {
            return Err(NumberError::TooLong);
        }
        Ok(number)
    }

    /// `digits × 10^exponent`, as a float when a float says the same.
    pub(crate) fn from_decimal(digits: &Self, exponent: i64) -> Result<Self, NumberError> {
        let mut text = match &digits.0 {
            Repr::Int(int) => int.to_string(),
            Repr::Big(big) => big.to_string(),
            Repr::Float(_) | Repr::Decimal(_) => return Err(NumberError::Syntax),
        };
        text.push('e');
        text.push_str(&exponent.to_string());
        Self::parse(&text)
    }

    pub(crate) fn form(&self) -> Form<'_> {
        match &self.0 {
            Repr::Int(int) => Form::Int(*int),
            Repr::Big(big) => Form::Big(big),
            Repr::Float(float) => Form::Float(*float),
            Repr::Decimal(decimal) => Form::Decimal(decimal.digits(), decimal.exponent()),
        }
    }

    /// The nearest float. Numbers beyond its range become infinite, so check where that matters.
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            Repr::Int(int) => *int as f64,
            Repr::Float(float) => *float,
            // Rounding a decimal correctly is what the text parser is for; it takes every such text.
            Repr::Big(_) | Repr::Decimal(_) => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// The value if it is an integer that fits, however it was written.
    pub fn as_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Int(int) => Some(*int),
            Repr::Float(float) if libm::trunc(*float) == *float => {
                let int = *float as i128;
                (int.unsigned_abs() <= FLOAT_INTEGER_LIMIT)
                    .then_some(int)
                    .or_else(|| Decimal::from_f64(*float).to_i128())
            }
            Repr::Float(_) | Repr::Big(_) => None,
            Repr::Decimal(decimal) => decimal.to_i128(),
        }
    }

    /// The value if it is an integer that fits, however it was written.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|int| int.try_into().ok())
    }

    /// The value if it is an integer that fits, however it was written.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|int| int.try_into().ok())
    }

    /// Returns true if the value is an integer: `1`, `1.0` and `1e3` are.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Int(_) | Repr::Big(_) => true,
            Repr::Float(float) => libm::trunc(*float) == *float,
            Repr::Decimal(decimal) => decimal.exponent() >= 0,
        }
    }

    fn to_decimal(&self) -> Decimal {
        match &self.0 {
            Repr::Int(int) => Decimal::new((*int).into(), 0),
            Repr::Big(big) => Decimal::new((**big).clone(), 0),
            Repr::Float(float) => Decimal::from_f64(*float),
            Repr::Decimal(decimal) => (**decimal).clone(),
        }
    }
}

/// Positions of the parts of a JSON number text.
struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    exponent: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, NumberError> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let (integer, fraction) = match mantissa.split_once('.') {
            Some((integer, fraction)) => (integer, Some(fraction)),
            None => (mantissa, None),
        };
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        let sound = digits(integer)
            && (integer == "0" || !integer.starts_with('0'))
            && fraction.is_none_or(digits)
            && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
        if !sound {
            return Err(NumberError::Syntax);
        }
        Ok(Self { negative, integer, fraction: fraction.unwrap_or(""), exponent })
    }

    fn digits(&self) -> usize {
        self.integer.len() + self.fraction.len()
    }

    fn is_integer_text(&self) -> bool {
        self.fraction.is_empty() && self.exponent.is_none()
    }

    /// The exponent as written, kept small enough to calculate with: far beyond the limit all values
    /// are alike.
    fn exponent_value(&self) -> i64 {
        const FAR: i64 = 10 * MAX_EXPONENT;
        let text = self.exponent.unwrap_or("0");
        let beyond = if text.starts_with('-') { -FAR } else { FAR };
        text.parse().unwrap_or(beyond).clamp(-FAR, FAR)
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(int: $integer) -> Self {
                Self(Repr::Int(int.into()))
            }
        }
    )*};
}
from_integers!(u8, u16, u32, u64, i8, i16, i32, i64, i128);

impl From<usize> for Number {
    fn from(int: usize) -> Self {
        // No machine has integers of pointer size beyond 64 bits.
        Self(Repr::Int(int as i128))
    }
}

impl From<u128> for Number {
    fn from(int: u128) -> Self {
        Self::from_big(int.into())
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Int(a), Repr::Int(b)) => a.cmp(b),
            // Finite, hence ordered; unlike total_cmp this holds 0.0 and -0.0 equal.
            (Repr::Float(a), Repr::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Repr::Int(a), Repr::Float(b)) if a.unsigned_abs() <= FLOAT_INTEGER_LIMIT => {
                (*a as f64).partial_cmp(b).unwrap_or(Ordering::Equal)
            }
            (Repr::Float(a), Repr::Int(b)) if b.unsigned_abs() <= FLOAT_INTEGER_LIMIT => {
                a.partial_cmp(&(*b as f64)).unwrap_or(Ordering::Equal)
            }
            _ => self.to_decimal().cmp(&other.to_decimal()),
        }
    }
}

impl PartialEq<i64> for Number {
    fn eq(&self, other: &i64) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd<i64> for Number {
    fn partial_cmp(&self, other: &i64) -> Option<Ordering> {
        Some(self.cmp(&Self::from(*other)))
    }
}

impl PartialEq<f64> for Number {
    fn eq(&self, other: &f64) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

/// `None` against NaN only.
impl PartialOrd<f64> for Number {
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        match Self::from_f64(*other) {
            Some(other) => Some(self.cmp(&other)),
            None => 0.0.partial_cmp(other),
        }
    }
}

/// The shortest JSON text of this value; with a fraction or an exponent if and only if it was read
/// with one.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Int(int) => int.fmt(f),
            Repr::Big(big) => big.fmt(f),
            // Debug is the shortest text that reads back, and keeps `.0`; it never writes a bare
            // leading or trailing point, so it is JSON.
            Repr::Float(float) => fmt::Debug::fmt(float, f),
            Repr::Decimal(decimal) => decimal.fmt(f),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        Self::parse(text)
    }
}

/// A text that is no [`Number`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NumberError {
    /// Not a number in JSON's grammar.
    Syntax,
    /// More than [`MAX_DIGITS`] digits or an exponent beyond [`MAX_EXPONENT`].
    TooLong,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str("not a JSON number"),
            Self::TooLong => write!(
                f,
                "number too long; at most {MAX_DIGITS} digits and an exponent within ±{MAX_EXPONENT}"
            ),
        }
    }
}

impl core::error::Error for NumberError {}

/// Digits of a decimal text with the point taken out, sign in front.
fn joined_digits(parts: &Parts<'_>) -> String {
    let mut digits = String::with_capacity(parts.digits() + 1);
    if parts.negative {
        digits.push('-');
    }
    digits.push_str(parts.integer);
    digits.push_str(parts.fraction);
    digits
}

#[cfg(test)]
mod tests;
