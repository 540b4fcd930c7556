//! Sizes and times as people write them: `8MiB`, `3d`, `1h30m`.
//!
//! The one reading of them for the configuration, the rules and the command line.

extern crate std;

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use parse_size::Config;

/// Days after which a time is taken for a slip of the hand: a thousand years.
const MOST: Duration = Duration::from_secs(1000 * 31_557_600);

/// A text that is no size, or no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityError {
    /// The text, as it was given.
    pub given: String,
    /// The matter with it, and the form that is expected.
    pub reason: &'static str,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.given, self.reason)
    }
}

impl core::error::Error for QuantityError {}

const NO_SIZE: &str = "is no size such as \"64KiB\", \"8MiB\" or \"2GB\"";
const LARGE_SIZE: &str = "is larger than any size";
const NO_TIME: &str = "is no time such as \"500ms\", \"90min\", \"1h30m\" or \"3d\"";
const NO_UNIT: &str = "has no unit: \"30s\", \"90min\", \"1h30m\" or \"3d\"";
const LONG_TIME: &str = "is longer than a thousand years";

/// Reads a size in bytes: `8MiB`, `512 KiB`, `1.5GB`, or a number alone, which is bytes.
///
/// `KiB`, `MiB`, `GiB` and `TiB` are powers of 1024; `kB`, `MB`, `GB` and `TB` are powers of 1000, as on the label
/// of a card; a letter alone (`8M`) is the power of 1024, as systemd and `dd` read it.
///
/// # Errors
/// The text is no size.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let error = |reason| QuantityError { given: text.to_owned(), reason };
    let trimmed = text.trim();
    if !trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(error(NO_SIZE));
    }
    let letters = trimmed.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).len();
    let form = Config::new();
    let form = if letters == 1 { form.with_binary() } else { form };
    form.parse_size(trimmed).map_err(|found| match found {
        parse_size::Error::PosOverflow => error(LARGE_SIZE),
        _ => error(NO_SIZE),
    })
}

/// Reads a time with its unit: `500ms`, `30s`, `90min` or `90m`, `1h30m`, `3d`, `2w`.
///
/// A month (`M`, `month`) is 30.44 days, and a year (`y`) 365.25 of them.
///
/// # Errors
/// The text is no time, or a number without a unit.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let error = |reason| QuantityError { given: text.to_owned(), reason };
    let trimmed = text.trim();
    let is_number = !trimmed.is_empty() && trimmed.parse::<f64>().is_ok_and(f64::is_finite);
    if is_number && trimmed != "0" {
        return Err(error(NO_UNIT));
    }
    let read = humantime::parse_duration(trimmed).map_err(|found| match found {
        humantime::DurationError::NumberOverflow => error(LONG_TIME),
        _ => error(NO_TIME),
    })?;
    if read > MOST { Err(error(LONG_TIME)) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1B", 1),
            ("64KiB", 64 << 10),
            ("8MiB", 8 << 20),
            ("8 mib", 8 << 20),
            (" 1.5 GiB ", 3 << 29),
            ("8M", 8 << 20),
            ("1k", 1 << 10),
            ("32GB", 32_000_000_000),
            ("10kB", 10_000),
            ("1_000_000", 1_000_000),
            ("2TiB", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_in_words() {
        for text in [
            "", " ", "big", "8 apples", "-1", "+1", "MiB", "1,5MiB", "8MiB 1", "0x10", "1h", "٣MiB",
        ] {
            let error = parse_size(text).unwrap_err();
            assert!(error.reason.starts_with("is no size such as"), "{text}: {error}");
        }
        for text in ["99999999999999999999", "99999999EiB"] {
            assert_eq!(parse_size(text).unwrap_err().reason, LARGE_SIZE);
        }
        let error = parse_size("8 apples").unwrap_err().to_string();
        assert_eq!(error, r#""8 apples" is no size such as "64KiB", "8MiB" or "2GB""#);
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("90min", 5_400_000),
            ("90m", 5_400_000),
            ("1h30m", 5_400_000),
            ("1h 30min", 5_400_000),
            (" 3d ", 3 * 86_400_000),
            ("2w", 14 * 86_400_000),
            ("1 day 2 hours", 26 * 3_600_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_in_words() {
        for text in ["", "soon", "3 fortnights", "-3d", "h", "3dd", "8MiB", "1:30", "inf", "NaN"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.reason.starts_with("is no time such as"), "{text}: {error}");
        }
        for text in ["30", "1.5", "00"] {
            assert_eq!(parse_duration(text).unwrap_err().reason, NO_UNIT, "{text}");
        }
        for text in ["1001y", "99999999999999999999d", "18446744073709551615w"] {
            assert_eq!(parse_duration(text).unwrap_err().reason, LONG_TIME, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_stop(text in ".{0,24}") {
            let _ = (parse_size(&text), parse_duration(&text));
        }

        #[test]
        fn what_humantime_writes_is_read(millis in 0..31_557_600_000_u64 * 100) {
            let time = Duration::from_millis(millis);
            let text = std::format!("{}", humantime::format_duration(time));
            proptest::prop_assert_eq!(parse_duration(&text), Ok(time));
        }
    }
}
