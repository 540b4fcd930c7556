//! The end of a token, as people write it.

use omir_core::instant::Timestamp;
use omir_core::quantity::parse_duration;

use crate::grant::InvalidGrant;

const FIELD: &str = "expires";

/// Reads the end of a token: a time from now, such as `30d`, or an RFC 3339 instant. `now` and the result are seconds since
/// 1970.
///
/// # Errors
/// It is neither, it is over already, or the clock cannot be trusted.
pub fn expiry(text: &str, now: Option<i64>) -> Result<i64, InvalidGrant> {
    let fault = |message: String| InvalidGrant { field: FIELD, message };
    let Some(now) = now else {
        let message = "the clock cannot be trusted now, so that the token would end at any time; set the clock first";
        return Err(fault(message.to_owned()));
    };
    let end = match text.parse::<Timestamp>() {
        Ok(instant) => instant.as_micros().div_euclid(1_000_000),
        Err(_) => {
            let span = parse_duration(text).map_err(|why| {
                fault(format!("{why}; an instant such as 2027-01-01T00:00:00Z is taken as well"))
            })?;
            now.saturating_add(i64::try_from(span.as_secs()).unwrap_or(i64::MAX))
        }
    };
    if end <= now { Err(fault(format!("{text:?} is over already"))) } else { Ok(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_time_from_now_or_an_instant() {
        let now = 1_790_000_000;
        assert_eq!(expiry("30d", Some(now)), Ok(now + 30 * 86_400));
        assert_eq!(expiry("2027-01-01T00:00:00Z", Some(now)), Ok(1_798_761_600));
        for (text, now, expected) in [
            ("30", Some(now), "has no unit"),
            ("soon", Some(now), "is no time such as"),
            ("0s", Some(now), "is over already"),
            ("2020-01-01T00:00:00Z", Some(now), "is over already"),
            ("30d", None, "the clock cannot be trusted"),
        ] {
            let error = expiry(text, now).unwrap_err().to_string();
            assert!(error.starts_with("expires: ") && error.contains(expected), "{error}");
        }
    }
}
