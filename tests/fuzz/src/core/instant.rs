//! RFC 3339 instants, beside a second reader that takes the text apart by position.

use omir_core::instant::{Instant, Timestamp};

/// Start of the year 0000 and end of the year 9999, in seconds from 1970.
const FIRST_YEAR: i64 = -719_528 * 86_400;
const LAST_YEAR: i64 = 2_932_897 * 86_400;

/// Reads a text both ways; an accepted instant keeps its text and its place in time.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let ours = Timestamp::parse(text);
    assert_eq!(ours.as_ref().ok().copied(), by_position(text), "{text:?}");
    match (ours, Instant::parse(text)) {
        (Ok(at), Ok(instant)) => {
            assert_eq!((instant.as_str(), instant.at()), (text, at));
            // An offset can lead out of the years that can be written.
            let written = Instant::from(at);
            assert_eq!(Timestamp::parse(written.as_str()), Ok(written.at()), "{text:?}");
            assert!(
                written.at() == at || !(FIRST_YEAR..LAST_YEAR).contains(&at.secs()),
                "{text:?}"
            );
        }
        (Err(_), Err(_)) => {}
        (ours, instant) => panic!("{text:?}: {ours:?} {instant:?}"),
    }
}

/// RFC 3339 §5.6 and §5.7.
fn by_position(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().all(u8::is_ascii_digit).then_some(())?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let mut at = 19;
    let mut nanos = 0;
    if is(at, b".") {
        let digits: Vec<u32> = bytes[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| u32::from(byte - b'0'))
            .collect();
        if digits.is_empty() {
            return None;
        }
        nanos = (0..9).fold(0, |sum, at| sum * 10 + digits.get(at).copied().unwrap_or(0));
        at += 1 + digits.len();
    }
    let offset = match bytes.get(at)? {
        b'Z' | b'z' if bytes.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == at + 6 && is(at + 3, b":") => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = hours * 60 + minutes;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, 28 + i64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days from 0000-01-01, one by one; 1970 began 719,528 days later.
    let years_before = |step: i64| if year > 0 { (year - 1) / step + 1 } else { 0 };
    let leap_days = years_before(4) - years_before(100) + years_before(400);
    let months: i64 = lengths[..usize::try_from(month - 1).ok()?].iter().sum();
    let days = year * 365 + leap_days + months + day - 1 - 719_528;
    let minutes = days * 1440 + hour * 60 + minute - offset;
    if second == 60 && minutes.rem_euclid(1440) != 1439 {
        return None;
    }
    // A leap second stands for the start of the next one.
    let nanos = if second == 60 { 0 } else { nanos };
    Some(Timestamp::from_unix(minutes * 60 + second, nanos))
}
