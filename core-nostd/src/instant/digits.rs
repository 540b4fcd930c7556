//! The text of a timestamp, digit by digit: `core::fmt` would cost a microcontroller some kilobytes.

use super::{SECONDS_PER_DAY, Timestamp, civil_from_days};

/// The longest text: a sign, twelve digits of a year, and 26 characters from the month to `Z`.
const MAX_LEN: usize = 1 + 12 + 26;

/// RFC 3339 in UTC: see [`Timestamp::text`].
#[derive(Clone, Copy, Debug)]
pub struct TimestampText {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl TimestampText {
    pub(super) fn new(at: Timestamp) -> Self {
        let mut text = Self { bytes: [0; MAX_LEN], len: 0 };
        let (year, month, day) = civil_from_days(at.secs.div_euclid(SECONDS_PER_DAY));
        let second = at.secs.rem_euclid(SECONDS_PER_DAY);
        if !(0..=9999).contains(&year) {
            text.push(if year < 0 { b'-' } else { b'+' });
        }
        text.digits(year.unsigned_abs(), 4);
        // Not negative: all of these are remainders.
        for (mark, part) in [
            (b'-', month),
            (b'-', day),
            (b'T', second / 3600),
            (b':', second / 60 % 60),
            (b':', second % 60),
        ] {
            text.push(mark);
            text.digits(part.unsigned_abs(), 2);
        }
        if at.nanos > 0 {
            let (fraction, width) = match at.nanos {
                n if n % 1_000_000 == 0 => (n / 1_000_000, 3),
                n if n % 1000 == 0 => (n / 1000, 6),
                n => (n, 9),
            };
            text.push(b'.');
            text.digits(fraction.into(), width);
        }
        text.push(b'Z');
        text
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Always ASCII.
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// `number` in decimal, with zeros in front up to `width`.
    fn digits(&mut self, number: u64, width: u32) {
        let count = number.checked_ilog10().map_or(1, |log| log + 1).max(width);
        for place in (0..count).rev() {
            let digit = number / 10_u64.pow(place) % 10;
            self.push(b'0' + digit as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_texts_fit() {
        for secs in [i64::MIN, i64::MAX] {
            let at = Timestamp::from_unix(secs, 999_999_999);
            assert!(at.text().as_str().ends_with("Z"), "{at}");
        }
        assert_eq!(Timestamp::from_unix(0, 5).text().as_str(), "1970-01-01T00:00:00.000000005Z");
        assert_eq!(Timestamp::from_unix(-62_167_219_201, 0).to_string(), "-0001-12-31T23:59:59Z");
        // `core::fmt` writes four digits of the year at least, beside the sign.
        assert_eq!(format!("{:+05}", -1), "-0001");
    }
}
