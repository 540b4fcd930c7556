//! Numbers, beside digits and exponents worked out on the text alone.

use std::cmp::Ordering;

use omir_core::number::{MAX_DIGITS, MAX_EXPONENT, Number, NumberError};

/// Reads one number to each line and compares them with each other.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let numbers: Vec<(Number, Digits)> = text.lines().take(8).filter_map(one).collect();
    for (number, digits) in &numbers {
        for (other, other_digits) in &numbers {
            let equal = digits == other_digits;
            assert_eq!(number == other, equal, "{number} {other}");
            assert_eq!(number.cmp(other) == Ordering::Equal, equal, "{number} {other}");
            assert_eq!(number.cmp(other), other.cmp(number).reverse(), "{number} {other}");
            if number < other {
                assert!(number.as_f64() <= other.as_f64(), "{number} {other}");
            }
        }
    }
}

/// Normal form of a number: no zeros at either end of the digits.
#[derive(Debug, PartialEq, Eq)]
struct Digits {
    negative: bool,
    digits: String,
    exponent: i64,
}

fn one(text: &str) -> Option<(Number, Digits)> {
    let grammar = Digits::read(text);
    let number = match Number::parse(text) {
        Ok(number) => number,
        Err(NumberError::TooLong) => {
            let written = text.bytes().filter(u8::is_ascii_digit).count();
            let far = grammar.expect("a number, if a long one").exponent.abs();
            assert!(written > MAX_DIGITS || far > MAX_EXPONENT - MAX_DIGITS as i64, "{text}");
            return None;
        }
        Err(_) => {
            assert_eq!(grammar, None, "{text}");
            return None;
        }
    };
    let digits = grammar.expect("a number");
    let written = number.to_string();
    assert_eq!(Digits::read(&written).as_ref(), Some(&digits), "{text} became {written}");
    assert_eq!(Number::parse(&written).map(|again| again.to_string()), Ok(written.clone()));
    let has_point = |text: &str| text.contains(['.', 'e', 'E']);
    assert_eq!(has_point(&written), has_point(text), "{text} became {written}");
    // The standard library rounds every text to the nearest float.
    let float: f64 = text.parse().expect("JSON's grammar is part of Rust's");
    assert_eq!(number.as_f64(), float, "{text}");
    assert_eq!(number.is_integer(), digits.exponent >= 0, "{text}");
    let integer = (digits.exponent >= 0)
        .then(|| {
            let zeros = usize::try_from(digits.exponent).ok().filter(|&zeros| zeros < 40)?;
            let sign = if digits.negative { "-" } else { "" };
            format!("{sign}{}{}", digits.digits, "0".repeat(zeros)).parse::<i128>().ok()
        })
        .flatten();
    assert_eq!(number.as_i128(), integer, "{text}");
    assert_eq!(number.as_u64(), integer.and_then(|int| int.try_into().ok()), "{text}");
    assert_eq!(number.as_i64(), integer.and_then(|int| int.try_into().ok()), "{text}");
    Some((number, digits))
}

impl Digits {
    /// `None` if the text does not follow RFC 8259 §6.
    fn read(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mantissa_end = rest.find(['e', 'E']).unwrap_or(rest.len());
        let (mantissa, exponent) = rest.split_at(mantissa_end);
        let point = mantissa.find('.').unwrap_or(mantissa.len());
        let (whole, fraction) = mantissa.split_at(point);
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_whole =
            !whole.is_empty() && all_digits(whole) && (whole == "0" || whole.as_bytes()[0] != b'0');
        let is_fraction = fraction.is_empty() || (fraction.len() > 1 && all_digits(&fraction[1..]));
        if !is_whole || !is_fraction {
            return None;
        }
        let mut power = 0;
        if !exponent.is_empty() {
            let (sign, digits) = match exponent.as_bytes().get(1)? {
                b'-' => (-1, &exponent[2..]),
                b'+' => (1, &exponent[2..]),
                _ => (1, &exponent[1..]),
            };
            if digits.is_empty() || !all_digits(digits) {
                return None;
            }
            // Nothing near the limits has more digits than this.
            power = sign * digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        }
        let fraction = fraction.strip_prefix('.').unwrap_or("");
        let all = format!("{whole}{fraction}");
        let all = all.trim_start_matches('0');
        let digits = all.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Self { negative: false, digits: "0".to_owned(), exponent: 0 });
        }
        let exponent = power - fraction.len() as i64 + (all.len() - digits.len()) as i64;
        Some(Self { negative, digits: digits.to_owned(), exponent })
    }
}
