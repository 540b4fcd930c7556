//! A number's exact digits, and the two texts RDF wants of them.

use omir_core::number::{MAX_DIGITS, Number};

/// `0.digits × 10^point`. Exact: a float stands for its shortest decimal text, as everywhere in OMIR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digits {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    point: i64,
}

impl Digits {
    /// The digits of a number; `None` only if its text were no JSON number.
    pub(super) fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i64 = exponent.parse().ok()?;
        let all = format!("{integer}{fraction}");
        let significant = all.trim_start_matches('0');
        let zeros = i64::try_from(all.len() - significant.len()).ok()?;
        let point = i64::try_from(integer.len()).ok()? + exponent - zeros;
        let digits = significant.trim_end_matches('0').to_owned();
        // There is one zero, without a sign.
        let zero = digits.is_empty();
        Some(Self { negative: negative && !zero, digits, point: if zero { 0 } else { point } })
    }

    /// Without an exponent, in the canonical form of `xsd:integer` and, since XSD 1.1 (part 2, §3.3.3), of
    /// `xsd:decimal`: `9`, `0.85`, `-1000`. `None` if that takes more than [`MAX_DIGITS`] digits on
    /// either side of the point: a few bytes must not become a book.
    pub(super) fn plain(&self) -> Option<String> {
        let most = MAX_DIGITS as i64;
        if self.point > most || self.len() - self.point > most {
            return None;
        }
        Some(self.signed(self.plain_unsigned()))
    }

    /// As ECMAScript writes a number, which RFC 8785 (§3.2.2.3) makes the canonical form of JSON. A number
    /// that no double holds keeps all its digits.
    pub(super) fn ecmascript(&self) -> String {
        if (-5..=21).contains(&self.point) {
            return self.signed(self.plain_unsigned());
        }
        let (first, rest) = self.digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        self.signed(format!("{first}{dot}{rest}e{:+}", self.point - 1))
    }

    fn len(&self) -> i64 {
        self.digits.len() as i64
    }

    fn plain_unsigned(&self) -> String {
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        if self.digits.is_empty() {
            "0".to_owned()
        } else if self.point <= 0 {
            format!("0.{}{}", zeros(-self.point), self.digits)
        } else if self.point >= self.len() {
            format!("{}{}", self.digits, zeros(self.point - self.len()))
        } else {
            let (integer, fraction) = self.digits.split_at(self.point as usize);
            format!("{integer}.{fraction}")
        }
    }

    fn signed(&self, text: String) -> String {
        if self.negative { format!("-{text}") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(text: &str) -> Digits {
        Digits::of(&Number::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn plain_text_is_exact_and_canonical() {
        for (text, plain) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("9.0", "9"),
            ("0.85", "0.85"),
            ("8.5e-1", "0.85"),
            ("-1e3", "-1000"),
            ("1.5e-7", "0.00000015"),
            ("120.50", "120.5"),
            ("18446744073709551616", "18446744073709551616"),
            ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ] {
            assert_eq!(digits(text).plain().as_deref(), Some(plain), "{text}");
        }
        assert_eq!(digits("1e400").plain(), Some(format!("1{}", "0".repeat(400))));
        assert_eq!(digits("1e-1000").plain().map(|text| text.len()), Some(1002));
        assert_eq!(digits("1e999").plain().map(|text| text.len()), Some(1000));
        assert_eq!(digits("1e1000").plain(), None);
        assert_eq!(digits("1e-1001").plain(), None);
        assert_eq!(digits("-1e100000").plain(), None);
    }

    #[test]
    fn ecmascript_text_is_that_of_rfc_8785() {
        // Appendix B of RFC 8785, and numbers no double holds.
        for (text, canonical) in [
            ("-0.0", "0"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("295147905179352830000", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("1e23", "1e+23"),
            ("999999999999999700000", "999999999999999700000"),
            ("1e21", "1e+21"),
            ("9.999999999999997e-7", "9.999999999999997e-7"),
            ("0.000001", "0.000001"),
            ("333333333.33333325", "333333333.33333325"),
            ("-2.0", "-2"),
            ("1e400", "1e+400"),
            ("18446744073709551617", "18446744073709551617"),
        ] {
            assert_eq!(digits(text).ecmascript(), canonical, "{text}");
        }
    }
}
