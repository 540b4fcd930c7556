//! Times as a model writes them: an instant, or how long ago.

use std::ops::Bound;

use omir_core::instant::Timestamp;
use omir_core::quantity::parse_duration;
use omird_engine::{Error, TimeRange};

/// Descriptions of the two arguments of a time range.
pub(super) const FORMS: &str =
    "RFC 3339, such as 2026-05-30T11:00:00Z, or how long ago, such as 2h or 7d.";

/// Reads a time range from its first and its last moment; `None` if neither is given.
///
/// # Errors
/// `INVALID_QUERY`, naming the argument.
pub(super) fn read(
    since: Option<&str>,
    until: Option<&str>,
    now: Timestamp,
) -> Result<Option<TimeRange>, Error> {
    if since.is_none() && until.is_none() {
        return Ok(None);
    }
    let bound = |name: &str, text: Option<&str>| match text {
        None => Ok(Bound::Unbounded),
        Some(text) => moment(name, text, now).map(Bound::Included),
    };
    Ok(Some(TimeRange { from: bound("since", since)?, to: bound("until", until)? }))
}

fn moment(name: &str, text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    let text = text.trim();
    if text == "now" {
        return Ok(now);
    }
    if let Ok(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let ago = text.strip_suffix("ago").unwrap_or(text).trim();
    match parse_duration(ago) {
        Ok(span) => {
            let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
            Ok(Timestamp::from_micros(now.as_micros().saturating_sub(micros)))
        }
        Err(_) => Err(Error::query(name, format!("{text:?} is no time: expected {FORMS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_an_instant_or_some_time_ago() {
        let now = Timestamp::parse("2026-05-30T12:00:00Z").unwrap();
        let read = |text| super::read(Some(text), None, now).map(|range| range.unwrap().from);
        let at = |text| Ok(Bound::Included(Timestamp::parse(text).unwrap()));
        assert_eq!(read("2026-05-30T13:30:00+02:00"), at("2026-05-30T11:30:00Z"));
        for text in ["2h", " 2h ago", "2 hours ago", "120min"] {
            assert_eq!(read(text), at("2026-05-30T10:00:00Z"), "{text}");
        }
        assert_eq!(read("now"), at("2026-05-30T12:00:00Z"));
        let error = read("yesterday").unwrap_err();
        assert!(error.path == "/since" && error.message.contains("7d"), "{error}");
        let none = super::read(None, None, now).unwrap();
        assert_eq!(none, None);
        let open = super::read(None, Some("1d"), now).unwrap().unwrap();
        assert_eq!(open.from, Bound::Unbounded);
    }
}
