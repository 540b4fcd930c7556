//! A moment as ROS counts it: nanoseconds since 1970, on whichever clock the robot runs.
//!
//! `builtin_interfaces/Time` is a signed second and the nanoseconds after it; a zero stamp means "not
//! stamped" in a header and "the latest there is" in a transform lookup. OMIR writes RFC 3339. With
//! simulated time the count starts at or near zero, and such stamps are ordinary moments here.

use std::fmt;
use std::time::Duration;

use omir_core::instant::{Instant, Timestamp};

use crate::message::Message;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Nanoseconds since 1970-01-01T00:00:00Z, from the year 1677 to 2262.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(i64);

impl Stamp {
    /// Value of an unset `builtin_interfaces/Time`.
    pub const ZERO: Self = Self(0);
    /// The earliest there is.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest there is.
    pub const MAX: Self = Self(i64::MAX);

    /// Nanoseconds since 1970.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// From the fields of `builtin_interfaces/Time`. Nanoseconds beyond a second, which ROS does not
    /// write, carry over.
    pub const fn from_ros(sec: i32, nanosec: u32) -> Self {
        Self(sec as i64 * NANOS_PER_SECOND + nanosec as i64)
    }

    /// From a `builtin_interfaces/Time`; `None` for any other message.
    pub fn from_message(time: &Message) -> Option<Self> {
        let sec = i32::try_from(time.field("sec")?.as_i64()?).ok()?;
        let nanosec = u32::try_from(time.field("nanosec")?.as_u64()?).ok()?;
        Some(Self::from_ros(sec, nanosec))
    }

    /// The fields of `builtin_interfaces/Time`; `None` where its 32-bit second ends (1901, 2038).
    pub fn to_ros(self) -> Option<(i32, u32)> {
        let sec = i32::try_from(self.0.div_euclid(NANOS_PER_SECOND)).ok()?;
        Some((sec, self.0.rem_euclid(NANOS_PER_SECOND) as u32))
    }

    /// `None` outside of 1677 to 2262, where the nanoseconds do not fit.
    pub fn from_timestamp(at: Timestamp) -> Option<Self> {
        let nanos = i128::from(at.secs()) * i128::from(NANOS_PER_SECOND) + i128::from(at.nanos());
        i64::try_from(nanos).ok().map(Self)
    }

    /// Returns true if it is zero: in a header "not stamped", in a lookup "the latest there is".
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Nanoseconds from `earlier` to `self`; negative when `earlier` is the later one. Saturates.
    pub const fn nanos_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Later by `duration`, or [`Stamp::MAX`].
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// Earlier by `duration`, or [`Stamp::MIN`].
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

impl From<Stamp> for Timestamp {
    fn from(stamp: Stamp) -> Self {
        let after = stamp.0.rem_euclid(NANOS_PER_SECOND) as u32;
        Self::from_unix(stamp.0.div_euclid(NANOS_PER_SECOND), after)
    }
}

/// RFC 3339 in UTC, every nanosecond kept.
impl From<Stamp> for Instant {
    fn from(stamp: Stamp) -> Self {
        Timestamp::from(stamp).into()
    }
}

/// Seconds with nine decimals, as the ROS tools print it: `1700000000.250000000`.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let per_second = NANOS_PER_SECOND.unsigned_abs();
        write!(f, "{sign}{}.{:09}", nanos / per_second, nanos % per_second)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        let stamp = Stamp::from_ros(1_780_141_325, 500_000_000);
        assert_eq!(Instant::from(stamp).as_str(), "2026-05-30T11:42:05.500Z");
        assert_eq!(stamp.to_string(), "1780141325.500000000");
        let before = Stamp::from_ros(-1, 999_999_999);
        assert_eq!((before.nanos(), before.to_ros()), (-1, Some((-1, 999_999_999))));
        assert_eq!(before.to_string(), "-0.000000001");
        assert_eq!(Instant::from(before).as_str(), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(Stamp::from_ros(1, u32::MAX).to_ros(), Some((5, 294_967_295)));
        assert!(Stamp::default().is_zero());
    }

    #[test]
    fn the_ends_saturate_and_do_not_wrap() {
        assert_eq!(Stamp::MAX.to_ros(), None);
        assert_eq!(Stamp::MIN.nanos_since(Stamp::MAX), i64::MIN);
        assert_eq!(Stamp::MAX.saturating_add(Duration::MAX), Stamp::MAX);
        assert_eq!(Stamp::MIN.saturating_sub(Duration::from_nanos(1)), Stamp::MIN);
        assert_eq!(Stamp::MIN.to_string(), "-9223372036.854775808");
        assert_eq!(Stamp::from_timestamp(Timestamp::from_unix(i64::MAX, 0)), None);
    }

    proptest! {
        #[test]
        fn timestamps_and_stamps_are_the_same_moments(count: i64) {
            let stamp = Stamp::from_nanos(count);
            prop_assert_eq!(Stamp::from_timestamp(stamp.into()), Some(stamp));
            let text = Instant::from(stamp);
            prop_assert_eq!(Stamp::from_timestamp(text.at()), Some(stamp));
            prop_assert_eq!(Timestamp::parse(text.as_str()), Ok(stamp.into()));
        }

        #[test]
        fn ros_time_survives(sec: i32, nanosec in 0..1_000_000_000u32) {
            prop_assert_eq!(Stamp::from_ros(sec, nanosec).to_ros(), Some((sec, nanosec)));
        }
    }
}
