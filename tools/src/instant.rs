//! Moments (RFC 3339) and spans (`7d`, `90m`), as they are typed, sent and shown.
//!
//! Pure functions: the present moment is handed in, except in [`Instant::now`].

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use omir_core::instant::{InstantError, Timestamp};
use omir_core::quantity::parse_duration;

/// Nanoseconds in a second.
pub const NANOS: i128 = 1_000_000_000;

/// A moment in UTC, counted in nanoseconds from 1970-01-01. Years 0000 to 9999.
///
/// Text is read and written by `omir-core`; this adds nanosecond arithmetic and dates without a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    nanos: i128,
}

const EARLIEST: i128 = -62_167_219_200 * NANOS;
const LATEST: i128 = 253_402_300_800 * NANOS;

impl Instant {
    /// The moment that many nanoseconds after 1970 began, if its year has four digits.
    #[must_use]
    pub fn from_unix_nanos(nanos: i128) -> Option<Self> {
        (EARLIEST..LATEST).contains(&nanos).then_some(Self { nanos })
    }

    /// Nanoseconds since 1970 began.
    #[must_use]
    pub fn unix_nanos(self) -> i128 {
        self.nanos
    }

    /// This computer's clock.
    #[must_use]
    pub fn now() -> Self {
        let nanos = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(0),
            Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(0),
        };
        Self { nanos: nanos.clamp(EARLIEST, LATEST - 1) }
    }

    /// The moment `nanos` later, if its year still has four digits.
    #[must_use]
    pub fn plus(self, nanos: i128) -> Option<Self> {
        Self::from_unix_nanos(self.nanos.checked_add(nanos)?)
    }

    /// `HH:MM:SS` in UTC, for a line of a live view.
    #[must_use]
    pub fn clock_time(self) -> String {
        self.to_string()[11..19].to_owned()
    }

    fn timestamp(self) -> Timestamp {
        // Within the years 0000 to 9999 both parts fit by far.
        let secs = i64::try_from(self.nanos.div_euclid(NANOS)).unwrap_or_default();
        let nanos = u32::try_from(self.nanos.rem_euclid(NANOS)).unwrap_or_default();
        Timestamp::from_unix(secs, nanos)
    }
}

/// RFC 3339 in UTC.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.timestamp(), f)
    }
}

/// RFC 3339 (`2026-01-31T12:00:00.5+01:00`), or a date alone for its midnight in UTC.
impl FromStr for Instant {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let read = if text.len() == 10 {
            Timestamp::parse(&format!("{text}T00:00:00Z"))
        } else {
            Timestamp::parse(text)
        };
        let timestamp = read.map_err(|why| BadTime::Instant { text: text.to_owned(), why })?;
        let nanos = i128::from(timestamp.secs()) * NANOS + i128::from(timestamp.nanos());
        Self::from_unix_nanos(nanos).ok_or_else(|| BadTime::Range(text.to_owned()))
    }
}

/// A text that is no time.
#[derive(Debug, Clone, PartialEq)]
pub enum BadTime {
    /// Neither a date nor a time.
    Instant {
        /// The text.
        text: String,
        /// The fault.
        why: InstantError,
    },
    /// The year has more than four digits.
    Range(String),
    /// Neither a span nor a time.
    TimeBound(String),
}

impl fmt::Display for BadTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant { text, why } => write!(
                f,
                "`{text}` is not a date or an RFC 3339 time such as 2026-01-31T12:00:00Z: {why}"
            ),
            Self::Range(text) => write!(f, "`{text}` is out of range"),
            Self::TimeBound(text) => write!(
                f,
                "`{text}` is neither a span such as 90s, 15min, 12h, 7d or 2w, nor a time such as \
                 2026-01-31T12:00:00Z"
            ),
        }
    }
}

impl std::error::Error for BadTime {}

/// One end of a time filter: a moment, or so long before the daemon's present.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeBound {
    /// A moment.
    At(Instant),
    /// Seconds before now, by the clock of the daemon that is asked.
    Ago(f64),
}

impl TimeBound {
    /// As Zenoh's time ranges write it.
    #[must_use]
    pub fn time_expression(self) -> String {
        match self {
            Self::At(instant) => instant.to_string(),
            Self::Ago(seconds) => format!("now(-{seconds}s)"),
        }
    }
}

/// A span (`90s`, `15m`, `12h`, `7d`, `2w`, `1d12h`), `now`, or what [`Instant`] reads.
impl FromStr for TimeBound {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        if text == "now" {
            return Ok(Self::Ago(0.0));
        }
        if let Some(seconds) = span_seconds(text) {
            return Ok(Self::Ago(seconds));
        }
        if let Ok(span) = parse_duration(text) {
            return Ok(Self::Ago(span.as_secs_f64()));
        }
        Instant::from_str(text).map(Self::At).map_err(|_| BadTime::TimeBound(text.to_owned()))
    }
}

fn span_seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let count: f64 = rest[..end].parse().ok()?;
        let mut unit = rest[end..].chars();
        seconds += count
            * match unit.next()? {
                's' => 1.0,
                'm' => 60.0,
                'h' => 3600.0,
                'd' => 86_400.0,
                'w' => 604_800.0,
                _ => return None,
            };
        rest = unit.as_str();
    }
    (!text.is_empty() && seconds.is_finite()).then_some(seconds)
}

/// `3 h ago`, `in 2 d`, `just now`: how far a moment is from the present, for people.
#[must_use]
pub fn age(moment: Instant, now: Instant) -> String {
    let seconds = (now.nanos - moment.nanos).div_euclid(NANOS);
    let distance = seconds.unsigned_abs();
    if distance < 2 {
        return "just now".to_owned();
    }
    let text = span(distance);
    if seconds > 0 { format!("{text} ago") } else { format!("in {text}") }
}

/// A count of seconds in its largest sensible unit.
#[must_use]
pub fn span(seconds: u128) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        172_800..63_072_000 => format!("{} d", seconds / 86_400),
        _ => format!("{} y", seconds / 31_557_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn instants_print_as_they_were_read() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2011-10-03T00:00:00.103735900Z",
            "2000-02-29T23:59:59.999999999Z",
            "1969-12-31T23:59:59.500Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
        ] {
            assert_eq!(at(text).to_string(), text);
        }
        assert_eq!(at("2011-10-03T00:00:00Z").unix_nanos(), 1_317_600_000 * NANOS);
    }

    #[test]
    fn zones_lower_case_dates_and_leap_seconds_are_read() {
        assert_eq!(at("2026-01-01T01:30:00+01:30").to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(at("2025-12-31t19:00:00-05:00"), at("2026-01-01"));
        assert_eq!(at("2016-12-31T23:59:60z"), at("2017-01-01T00:00:00Z"));
        assert_eq!(at("2026-01-01T12:34:56Z").clock_time(), "12:34:56");
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "now",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-01-01T",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+25:00",
            "+026-01-01",
            "2026-01-01T00:00:00Ż",
        ] {
            assert!(text.parse::<Instant>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_and_moments_become_time_expressions() {
        let expression = |text: &str| text.parse::<TimeBound>().unwrap().time_expression();
        assert_eq!(expression("7d"), "now(-604800s)");
        assert_eq!(expression("1d12h"), "now(-129600s)");
        assert_eq!(expression("0.5h"), "now(-1800s)");
        assert_eq!(expression("now"), "now(-0s)");
        assert_eq!(expression("2026-01-01"), "2026-01-01T00:00:00Z");
        assert_eq!(expression("7 days"), "now(-604800s)");
        assert_eq!(expression("90min"), "now(-5400s)");
        for text in ["", "7", "d", "7 fortnights", "-3h", "1.2.3s"] {
            assert!(text.parse::<TimeBound>().is_err(), "{text}");
        }
    }

    #[test]
    fn ages_are_for_people() {
        let now = at("2026-01-10T00:00:00Z");
        assert_eq!(age(at("2026-01-09T21:00:00Z"), now), "3 h ago");
        assert_eq!(age(at("2026-01-09T23:59:59Z"), now), "just now");
        assert_eq!(age(at("2026-01-12T01:00:00Z"), now), "in 2 d");
        assert_eq!(age(at("2020-01-01T00:00:00Z"), now), "6 y ago");
        assert_eq!(span(119), "119 s");
    }
}
