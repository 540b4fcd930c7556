//! Time ranges, `[2026-01-01T00:00:00Z..now(-1h)]`, on the store's clock.
//!
//! The syntax is that of Zenoh's selectors, so that one range means the same to both; the daemon's tests compare the two
//! readers. This one also takes instants before 1970.

use std::fmt;
use std::ops::Bound;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use omir_core::instant::Timestamp;

use omird_engine::TimeRange;

/// A text that is no time range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTimeRange {
    /// The text.
    pub text: String,
}

impl fmt::Display for BadTimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no time range: expected [from..to] with RFC 3339 instants or now(-1h), either end open, \
             and ] or [ turned outwards to exclude it",
            self.text
        )
    }
}

impl std::error::Error for BadTimeRange {}

/// Reads a time range; `now(…)` in it means `now`.
///
/// # Errors
/// If the text is no time range.
pub fn parse(text: &str, now: Timestamp) -> Result<TimeRange, BadTimeRange> {
    let complaint = || BadTimeRange { text: text.to_owned() };
    let mut inner = text.trim().chars();
    let (open, close) = (inner.next(), inner.next_back());
    let from_included = match open {
        Some('[') => true,
        Some(']') => false,
        _ => return Err(complaint()),
    };
    let to_included = match close {
        Some(']') => true,
        Some('[') => false,
        _ => return Err(complaint()),
    };
    let inner = inner.as_str();
    let bound = |at: Option<Timestamp>, included: bool| match at {
        None => Bound::Unbounded,
        Some(at) if included => Bound::Included(at),
        Some(at) => Bound::Excluded(at),
    };
    let end = |text: &str| -> Result<Option<Timestamp>, BadTimeRange> {
        match text.trim() {
            "" => Ok(None),
            text => instant(text, now).map(Some).ok_or_else(complaint),
        }
    };
    let (from, to) = if let Some((from, to)) = inner.split_once("..") {
        (end(from)?, end(to)?)
    } else if let Some((from, length)) = inner.split_once(';') {
        // A length counts from the beginning, as `now(+length)` would if that were now.
        let from = end(from)?.ok_or_else(complaint)?;
        let to = expression(&format!("now({})", length.trim()), from).ok_or_else(complaint)?;
        (Some(from), Some(to))
    } else {
        return Err(complaint());
    };
    Ok(TimeRange { from: bound(from, from_included), to: bound(to, to_included) })
}

fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    Timestamp::parse(text).ok().or_else(|| expression(text, now))
}

/// Reads `now()`, `now(-1h)`, or an instant that leaves out its `T` or its `Z`.
fn expression(text: &str, now: Timestamp) -> Option<Timestamp> {
    let Some(offset) = text.strip_prefix("now(").and_then(|rest| rest.strip_suffix(')')) else {
        return timestamp(humantime::parse_rfc3339_weak(text).ok()?);
    };
    let seconds = match offset.strip_prefix('-') {
        _ if offset.is_empty() => 0.0,
        Some(before) => -seconds(before)?,
        None => seconds(offset)?,
    };
    let distance =
        i128::try_from(Duration::try_from_secs_f64(seconds.abs()).ok()?.as_nanos()).ok()?;
    let now = i128::from(now.secs()) * NANOS + i128::from(now.nanos());
    from_nanos(if seconds < 0.0 { now.checked_sub(distance) } else { now.checked_add(distance) }?)
}

/// Seconds in each unit of a duration. A suffix that ends in another one comes before it.
const UNITS: [(&str, f64); 7] = [
    ("ms", 0.001),
    ("u", 0.000_001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

/// Reads a duration: a number and its unit, or seconds.
fn seconds(text: &str) -> Option<f64> {
    let with_unit = |(unit, seconds): &(&str, f64)| Some((text.strip_suffix(unit)?, *seconds));
    let (number, unit) = UNITS.iter().find_map(with_unit).unwrap_or((text, 1.0));
    Some(unit * number.parse::<f64>().ok()?)
}

fn timestamp(at: SystemTime) -> Option<Timestamp> {
    let since = match at.duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).ok()?,
        Err(before) => -i128::try_from(before.duration().as_nanos()).ok()?,
    };
    from_nanos(since)
}

/// Nanoseconds in a second.
const NANOS: i128 = 1_000_000_000;

/// Returns the time so many nanoseconds after 1970, or before.
fn from_nanos(since: i128) -> Option<Timestamp> {
    let secs = i64::try_from(since.div_euclid(NANOS)).ok()?;
    Some(Timestamp::from_unix(secs, u32::try_from(since.rem_euclid(NANOS)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix(1_780_000_000, 0);

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_length_counts_before_1970_too() {
        let to = |text: &str| parse(text, NOW).unwrap().to;
        assert_eq!(to("[1969-12-31T20:00:00Z;2h]"), Bound::Included(at("1969-12-31T22:00:00Z")));
        assert_eq!(
            to("[1969-12-31T23:00:00.5Z;2h]"),
            Bound::Included(at("1970-01-01T01:00:00.5Z"))
        );
        assert_eq!(to("[1970-01-01T01:00:00Z;-2h]"), Bound::Included(at("1969-12-31T23:00:00Z")));
    }

    #[test]
    fn ends_are_included_excluded_or_open() {
        let range = parse("[2026-01-01T00:00:00Z..2026-01-02T00:00:00Z[", NOW).unwrap();
        assert_eq!(range.from, Bound::Included(at("2026-01-01T00:00:00Z")));
        assert_eq!(range.to, Bound::Excluded(at("2026-01-02T00:00:00Z")));
        let range = parse("]now(-1h)..]", NOW).unwrap();
        assert_eq!(range.from, Bound::Excluded(Timestamp::from_unix(1_780_000_000 - 3600, 0)));
        assert_eq!(range.to, Bound::Unbounded);
        assert_eq!(parse("[..]", NOW).unwrap().from, Bound::Unbounded);
    }

    #[test]
    fn a_range_may_say_how_long() {
        let range = parse("[now(-2h);1h]", NOW).unwrap();
        assert_eq!(range.to, Bound::Included(Timestamp::from_unix(1_780_000_000 - 3600, 0)));
    }

    #[test]
    fn instants_before_1970_and_nanoseconds_keep_their_place() {
        let range =
            parse("[1969-12-31T23:59:59.25Z..2026-01-01T00:00:00.000000001Z]", NOW).unwrap();
        assert_eq!(range.from, Bound::Included(at("1969-12-31T23:59:59.25Z")));
        assert_eq!(range.to, Bound::Included(at("2026-01-01T00:00:00.000000001Z")));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "[", "yesterday", "[yesterday..]", "2026-01-01T00:00:00Z", "[..", "[a;b]"]
            .into_iter()
            // A unit without a number.
            .chain([
                "[now(s)..]",
                "[..now(-s)]",
                "[now();s]",
                "[now();-s]",
                "[now(h)..]",
                "[now(ms)..]",
            ])
        {
            assert!(parse(text, NOW).is_err(), "{text:?}");
        }
    }
}
