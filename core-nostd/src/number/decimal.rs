//! Decimals: the common form in which any two numbers are compared.

use alloc::string::ToString;
use core::cmp::Ordering;
use core::fmt;

use num_bigint::{BigInt, Sign};

use super::{MAX_DIGITS, MAX_EXPONENT, NumberError, Parts, joined_digits};

/// `digits × 10^exponent`, without trailing zeros in `digits`; zero has the exponent 0. Two decimals
/// of the same value are therefore the same.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

impl Decimal {
    pub(super) fn new(digits: BigInt, exponent: i64) -> Self {
        if digits.sign() == Sign::NoSign {
            return Self { digits, exponent: 0 };
        }
        if digits.bit(0) {
            // Odd, so there is no factor ten: the common case without a detour over text.
            return Self { digits, exponent };
        }
        let text = digits.to_string();
        let kept = text.trim_end_matches('0');
        match text.len() - kept.len() {
            0 => Self { digits, exponent },
            zeros => Self { digits: parse_digits(kept), exponent: exponent + zeros as i64 },
        }
    }

    pub(super) fn from_parts(parts: &Parts<'_>) -> Result<Self, NumberError> {
        let exponent = parts.exponent_value() - parts.fraction.len() as i64;
        let decimal = Self::new(parse_digits(&joined_digits(parts)), exponent);
        if decimal.exponent.abs() > MAX_EXPONENT {
            return Err(NumberError::TooLong);
        }
        Ok(decimal)
    }

    /// The shortest decimal that reads back as this finite float.
    pub(super) fn from_f64(float: f64) -> Self {
        let text = alloc::format!("{float:e}");
        match Parts::split(&text) {
            Ok(parts) => {
                let exponent = parts.exponent_value() - parts.fraction.len() as i64;
                Self::new(parse_digits(&joined_digits(&parts)), exponent)
            }
            // Only for what is not finite, which no Number holds.
            Err(_) => Self::new(BigInt::ZERO, 0),
        }
    }

    pub(super) fn digits(&self) -> &BigInt {
        &self.digits
    }

    pub(super) fn exponent(&self) -> i64 {
        self.exponent
    }

    pub(super) fn digit_count(&self) -> usize {
        digit_count(&self.digits)
    }

    /// The power of ten of the leading digit.
    pub(super) fn magnitude(&self) -> i64 {
        self.exponent + self.digit_count() as i64 - 1
    }

    pub(super) fn to_i128(&self) -> Option<i128> {
        let digits = i128::try_from(&self.digits).ok()?;
        let factor = 10_i128.checked_pow(self.exponent.try_into().ok()?)?;
        digits.checked_mul(factor)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.digits.sign().cmp(&other.digits.sign());
        if by_sign.is_ne() || self.digits.sign() == Sign::NoSign {
            return by_sign;
        }
        // The magnitudes decide unless they agree; then the exponents differ by no more than the
        // number of digits, and scaling is cheap however large the exponents are.
        let by_magnitude = match self.magnitude().cmp(&other.magnitude()) {
            Ordering::Equal => {
                let common = self.exponent.min(other.exponent);
                let a = scaled(&self.digits, self.exponent - common);
                return a.cmp(&scaled(&other.digits, other.exponent - common));
            }
            different => different,
        };
        match self.digits.sign() {
            Sign::Minus => by_magnitude.reverse(),
            _ => by_magnitude,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// JSON text with a fraction or an exponent: positional near one, scientific elsewhere.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.digits.magnitude().to_string();
        if self.digits.sign() == Sign::Minus {
            f.write_str("-")?;
        }
        let len = text.len() as i64;
        let point = len + self.exponent;
        if (-4..=0).contains(&point) {
            write!(f, "0.{:0<zeros$}{text}", "", zeros = -point as usize)
        } else if point > 0 && point < len {
            let (integer, fraction) = text.split_at(point as usize);
            write!(f, "{integer}.{fraction}")
        } else {
            let (first, rest) = text.split_at(1);
            f.write_str(first)?;
            if !rest.is_empty() {
                write!(f, ".{rest}")?;
            }
            write!(f, "e{}", point - 1)
        }
    }
}

/// Decimal digits of an integer, sign not counted.
pub(super) fn digit_count(integer: &BigInt) -> usize {
    match u64::try_from(integer.magnitude()) {
        Ok(small) => small.checked_ilog10().map_or(1, |log| log as usize + 1),
        Err(_) => integer.magnitude().to_string().len(),
    }
}

fn scaled(digits: &BigInt, power: i64) -> BigInt {
    // At most the digits of a float or a number within the limits apart.
    debug_assert!((0..=2 * MAX_DIGITS as i64).contains(&power));
    digits * BigInt::from(10).pow(power as u32)
}

/// The integer a checked, non-empty run of digits denotes.
fn parse_digits(text: &str) -> BigInt {
    // Cannot fail on digits; zero is the answer that cannot panic.
    text.parse().unwrap_or(BigInt::ZERO)
}
