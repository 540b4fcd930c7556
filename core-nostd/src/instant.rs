//! Instants: RFC 3339 text and its place on the UTC time line.
//!
//! A memory keeps the text it came with ([`Instant`], lossless), while comparisons, indexes and decay
//! use the number behind it ([`Timestamp`], which needs no allocator). Reading is strict: what RFC 3339
//! does not allow is refused, with the reason.

mod digits;
#[cfg(feature = "alloc")]
mod text;

pub use digits::TimestampText;
#[cfg(feature = "alloc")]
pub use text::Instant;

use core::fmt;
use core::str::FromStr;

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// A point on the UTC time line: whole seconds since 1970 and nanoseconds after them.
///
/// Leap seconds do not exist on this line, as in POSIX time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    secs: i64,
    nanos: u32,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self { secs: 0, nanos: 0 };

    /// Seconds since 1970, which may be negative, and nanoseconds after that second. Nanoseconds
    /// beyond a second carry over.
    pub const fn from_unix(secs: i64, nanos: u32) -> Self {
        Self {
            secs: secs.saturating_add((nanos / NANOS_PER_SECOND) as i64),
            nanos: nanos % NANOS_PER_SECOND,
        }
    }

    /// Microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self {
            secs: micros.div_euclid(MICROS_PER_SECOND),
            nanos: micros.rem_euclid(MICROS_PER_SECOND) as u32 * 1000,
        }
    }

    /// Microseconds since 1970, rounded towards the past; saturates some 292,000 years away.
    pub const fn as_micros(self) -> i64 {
        self.secs.saturating_mul(MICROS_PER_SECOND).saturating_add((self.nanos / 1000) as i64)
    }

    /// Whole seconds since 1970, rounded towards the past.
    pub const fn secs(self) -> i64 {
        self.secs
    }

    /// Nanoseconds after [`Timestamp::secs`], below one thousand million.
    pub const fn nanos(self) -> u32 {
        self.nanos
    }

    /// Reads an RFC 3339 date-time.
    ///
    /// Letter case of `T` and `Z` is free, a fraction may have any length (digits beyond nanoseconds
    /// are dropped), and second 60 is accepted where a leap second can be, at 23:59:60 UTC; it stands
    /// for the start of the following second.
    pub fn parse(text: &str) -> Result<Self, InstantError> {
        Reader { bytes: text.as_bytes(), at: 0 }.date_time()
    }

    /// Hours from `earlier` to `self`; negative when `earlier` is the later one.
    pub fn hours_since(self, earlier: Self) -> f64 {
        let nanos = self.as_nanos() - earlier.as_nanos();
        nanos as f64 / 3.6e12
    }

    /// Microseconds from `earlier` to `self`, rounded towards the past; saturates.
    pub fn micros_since(self, earlier: Self) -> i64 {
        let micros = (self.as_nanos() - earlier.as_nanos()).div_euclid(1000);
        i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX })
    }

    /// This instant moved by `micros`, which may be negative; `None` beyond the time line.
    pub const fn checked_add_micros(self, micros: i64) -> Option<Self> {
        let mut secs = micros.div_euclid(MICROS_PER_SECOND);
        let mut nanos = self.nanos + micros.rem_euclid(MICROS_PER_SECOND) as u32 * 1000;
        if nanos >= NANOS_PER_SECOND {
            nanos -= NANOS_PER_SECOND;
            secs += 1;
        }
        match self.secs.checked_add(secs) {
            Some(secs) => Some(Self { secs, nanos }),
            None => None,
        }
    }

    /// The nearest instant that RFC 3339 can write: it begins with the year 0000 and ends with 9999.
    pub fn writable(self) -> Self {
        const FIRST: Timestamp = Timestamp::from_unix(-62_167_219_200, 0);
        const LAST: Timestamp = Timestamp::from_unix(253_402_300_799, 999_999_999);
        self.clamp(FIRST, LAST)
    }

    /// Writes as `Display` does, without the machinery of formatting.
    pub fn text(self) -> TimestampText {
        TimestampText::new(self)
    }

    fn as_nanos(self) -> i128 {
        i128::from(self.secs) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos)
    }
}

impl FromStr for Timestamp {
    type Err = InstantError;

    fn from_str(text: &str) -> Result<Self, InstantError> {
        Self::parse(text)
    }
}

/// RFC 3339 in UTC, `2026-05-30T11:42:05Z`; a fraction only when there is one, of 3, 6 or 9 digits.
///
/// RFC 3339 knows the years 0000 to 9999. Others are written with a sign and cannot be read back.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().as_str())
    }
}

/// A text that is not an RFC 3339 date-time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstantError {
    /// The text does not have the shape `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`.
    Shape {
        /// Bytes before the first character that does not fit.
        at: usize,
    },
    /// No month has this number.
    Month(u8),
    /// The month has no such day in that year.
    Day {
        /// The day as written.
        day: u8,
        /// Number of days of the month.
        last: u8,
    },
    /// Hours run from 0 to 23.
    Hour(u8),
    /// Minutes run from 0 to 59.
    Minute(u8),
    /// Seconds run from 0 to 59, and to 60 in a leap second.
    Second(u8),
    /// Second 60 elsewhere than at 23:59 UTC.
    LeapSecond,
    /// The offset is beyond ±23:59.
    Offset,
}

impl fmt::Display for InstantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { at } => write!(
                f,
                "not an RFC 3339 date-time from character {} on; write it as 2026-05-30T11:42:05Z",
                at + 1
            ),
            Self::Month(month) => write!(f, "month {month:02} is not between 01 and 12"),
            Self::Day { day, last } => {
                write!(f, "day {day:02} is not between 01 and {last:02}")
            }
            Self::Hour(hour) => write!(f, "hour {hour:02} is not between 00 and 23"),
            Self::Minute(minute) => write!(f, "minute {minute:02} is not between 00 and 59"),
            Self::Second(second) => write!(f, "second {second:02} is not between 00 and 59"),
            Self::LeapSecond => f.write_str("second 60 exists only at 23:59:60 UTC"),
            Self::Offset => f.write_str("the offset from UTC is not between -23:59 and +23:59"),
        }
    }
}

impl core::error::Error for InstantError {}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn date_time(mut self) -> Result<Timestamp, InstantError> {
        let year = i64::from(self.digits(2)?) * 100 + i64::from(self.digits(2)?);
        self.one_of(b"-")?;
        let month = self.digits(2)?;
        self.one_of(b"-")?;
        let day = self.digits(2)?;
        self.one_of(b"Tt")?;
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        self.one_of(b":")?;
        let second = self.digits(2)?;
        let nanos = self.fraction()?;
        let offset = self.offset()?;
        if self.at != self.bytes.len() {
            return Err(InstantError::Shape { at: self.at });
        }

        if !(1..=12).contains(&month) {
            return Err(InstantError::Month(month));
        }
        let last = days_in_month(year, month);
        if day == 0 || day > last {
            return Err(InstantError::Day { day, last });
        }
        if hour > 23 {
            return Err(InstantError::Hour(hour));
        }
        if minute > 59 {
            return Err(InstantError::Minute(minute));
        }
        if second > 60 {
            return Err(InstantError::Second(second));
        }

        let days = days_from_civil(year, i64::from(month), i64::from(day));
        let of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
        let secs = days * SECONDS_PER_DAY + of_day - offset;
        if second == 60 {
            // 23:59:60 UTC lands on the midnight that follows.
            if secs.rem_euclid(SECONDS_PER_DAY) != 0 {
                return Err(InstantError::LeapSecond);
            }
            return Ok(Timestamp { secs, nanos: 0 });
        }
        Ok(Timestamp { secs, nanos })
    }

    fn fraction(&mut self) -> Result<u32, InstantError> {
        if self.peek() != Some(b'.') {
            return Ok(0);
        }
        self.at += 1;
        let mut nanos = 0;
        let mut weight = NANOS_PER_SECOND / 10;
        let first = self.at;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            nanos += u32::from(digit - b'0') * weight;
            weight /= 10;
            self.at += 1;
        }
        if self.at == first {
            return Err(InstantError::Shape { at: self.at });
        }
        Ok(nanos)
    }

    /// Seconds to subtract to come to UTC.
    fn offset(&mut self) -> Result<i64, InstantError> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Ok(0),
        };
        let hour = self.digits(2)?;
        self.one_of(b":")?;
        let minute = self.digits(2)?;
        if hour > 23 || minute > 59 {
            return Err(InstantError::Offset);
        }
        Ok(sign * (i64::from(hour) * 3600 + i64::from(minute) * 60))
    }

    fn digits(&mut self, count: usize) -> Result<u8, InstantError> {
        let mut number = 0;
        for _ in 0..count {
            match self.peek() {
                Some(digit @ b'0'..=b'9') => number = number * 10 + (digit - b'0'),
                _ => return Err(InstantError::Shape { at: self.at }),
            }
            self.at += 1;
        }
        Ok(number)
    }

    fn one_of(&mut self, allowed: &[u8]) -> Result<u8, InstantError> {
        match self.peek() {
            Some(byte) if allowed.contains(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            _ => Err(InstantError::Shape { at: self.at }),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

// Both directions of the proleptic Gregorian calendar after Howard Hinnant, "chrono-Compatible
// Low-Level Date Algorithms", https://howardhinnant.github.io/date_algorithms.html: years start in
// March, so that the leap day is the last of its year, and 400 years (an era) repeat exactly.

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn known_instants() {
        assert_eq!(parsed("1970-01-01T00:00:00Z"), Timestamp::EPOCH);
        assert_eq!(parsed("2026-05-30T11:42:05Z").secs(), 1_780_141_325);
        assert_eq!(parsed("1969-12-31T23:59:59.5Z"), Timestamp::from_unix(-1, 500_000_000));
        assert_eq!(parsed("2000-02-29t12:00:00z"), parsed("2000-02-29T14:00:00+02:00"));
        assert_eq!(parsed("0000-01-01T00:00:00Z").secs(), -62_167_219_200);
        assert_eq!(parsed("9999-12-31T23:59:59Z").secs(), 253_402_300_799);
        assert_eq!(parsed("2026-01-01T00:00:00-00:00"), parsed("2026-01-01T00:00:00Z"));
        assert_eq!(parsed("2026-01-01T00:00:00.1234567899999Z").nanos(), 123_456_789);
    }

    #[test]
    fn leap_seconds_only_where_they_can_be() {
        let next = parsed("2017-01-01T00:00:00Z");
        assert_eq!(parsed("2016-12-31T23:59:60Z"), next);
        assert_eq!(parsed("2016-12-31T23:59:60.9Z"), next);
        assert_eq!(parsed("2016-12-31T15:59:60-08:00"), next);
        assert_eq!(parsed("2026-05-30T23:59:60Z"), parsed("2026-05-31T00:00:00Z"));
        for text in ["2016-12-31T23:58:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T00:00:60Z"] {
            assert_eq!(Timestamp::parse(text), Err(InstantError::LeapSecond), "{text}");
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        use InstantError::*;
        for (text, error) in [
            ("", Shape { at: 0 }),
            ("2026", Shape { at: 4 }),
            ("2026-05-30", Shape { at: 10 }),
            ("2026-05-30 11:42:05Z", Shape { at: 10 }),
            ("2026-05-30T11:42:05", Shape { at: 19 }),
            ("2026-05-30T11:42:05.Z", Shape { at: 20 }),
            ("2026-05-30T11:42:05,5Z", Shape { at: 19 }),
            ("2026-05-30T11:42:05Z ", Shape { at: 20 }),
            ("2026-05-30T11:42:05+0100", Shape { at: 22 }),
            ("2026-05-30T11:42Z", Shape { at: 16 }),
            ("+026-05-30T11:42:05Z", Shape { at: 0 }),
            ("２026-05-30T11:42:05Z", Shape { at: 0 }),
            ("2026-13-01T00:00:00Z", Month(13)),
            ("2026-00-01T00:00:00Z", Month(0)),
            ("2026-02-29T00:00:00Z", Day { day: 29, last: 28 }),
            ("1900-02-29T00:00:00Z", Day { day: 29, last: 28 }),
            ("2026-04-31T00:00:00Z", Day { day: 31, last: 30 }),
            ("2026-01-00T00:00:00Z", Day { day: 0, last: 31 }),
            ("2026-01-01T24:00:00Z", Hour(24)),
            ("2026-01-01T00:60:00Z", Minute(60)),
            ("2026-01-01T00:00:61Z", Second(61)),
            ("2026-01-01T00:00:00+24:00", Offset),
            ("2026-01-01T00:00:00+00:60", Offset),
        ] {
            assert_eq!(Timestamp::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn display_trims_the_fraction() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (5_000_000, "1970-01-01T00:00:00.005Z"),
            (5_000, "1970-01-01T00:00:00.000005Z"),
            (5, "1970-01-01T00:00:00.000000005Z"),
        ] {
            assert_eq!(Timestamp::from_unix(0, nanos).to_string(), text);
        }
        assert_eq!(Timestamp::from_unix(253_402_300_800, 0).to_string(), "+10000-01-01T00:00:00Z");
    }

    #[test]
    fn every_day_of_eight_centuries_survives() {
        for day in days_from_civil(1600, 1, 1)..days_from_civil(2400, 1, 1) {
            let (year, month, date) = civil_from_days(day);
            assert_eq!(days_from_civil(year, month, date), day);
        }
    }

    #[test]
    fn micros_round_towards_the_past() {
        assert_eq!(Timestamp::from_unix(-1, 999_999_999).as_micros(), -1);
        assert_eq!(Timestamp::from_micros(-1), Timestamp::from_unix(-1, 999_999_000));
        let at = Timestamp::from_unix(10, 999_999_999);
        assert_eq!(at.checked_add_micros(1), Some(Timestamp::from_unix(11, 999)));
        assert_eq!(at.checked_add_micros(-11_000_000), Some(Timestamp::from_unix(-1, 999_999_999)));
        assert_eq!(Timestamp::from_unix(i64::MAX, 0).checked_add_micros(1_000_000), None);
        assert_eq!(Timestamp::from_unix(7200, 0).hours_since(Timestamp::EPOCH), 2.0);
        assert_eq!(Timestamp::EPOCH.hours_since(Timestamp::from_unix(1800, 0)), -0.5);
        let ends = (Timestamp::from_unix(i64::MAX, 0), Timestamp::from_unix(i64::MIN, 0));
        assert_eq!(ends.0.micros_since(ends.1), i64::MAX);
    }
}
