//! When what bears a stamp of a time to come was recorded.
//!
//! Order never runs backwards. After a clock that was a year ahead, all that is recorded in that year
//! bears stamps from its end, one microsecond after the other. What is to be done some time after
//! something was recorded, such as purging what was forgotten, would wait for that year to be over. So
//! it is remembered which stamps had been given out when what time was certain. Marks tell that.
//!
//! Invariant 8 of ARCHITECTURE.md.

use std::collections::BTreeMap;

/// How far apart in time the stamps are that are remembered; microseconds.
const STEP: i64 = 86_400_000_000;

/// Stamps of a time to come, and the time that was certain when they had been given out.
#[derive(Debug, Default)]
pub struct Stamps {
    certain: BTreeMap<i64, i64>,
}

impl Stamps {
    /// A stamp that is no further ahead of what is certain says well enough when it was given out;
    /// microseconds.
    pub const AHEAD: i64 = 86_400_000_000;

    /// Notes that stamps up to `stamp` had been given out when `certain` was the time, both in
    /// microseconds since 1970. A stamp that is not ahead needs no note, nor does one without a time (0).
    pub fn note(&mut self, stamp: i64, certain: i64) {
        if certain <= 0 || stamp.saturating_sub(certain) <= Self::AHEAD {
            return;
        }
        let mut newest = self.certain.range(..stamp).rev();
        if let (Some((&last, &at)), Some((_, &before))) = (newest.next(), newest.next())
            && (0..STEP).contains(&at.saturating_sub(before))
        {
            self.certain.remove(&last);
        }
        self.certain.insert(stamp, certain);
    }

    /// When a stamp had been given out, at the latest; microseconds since 1970.
    pub fn given_by(&self, stamp: i64) -> i64 {
        self.certain.range(stamp..).fold(stamp, |least, (_, &certain)| least.min(certain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-06-01.
    const DAWN: i64 = 1_780_272_000_000_000;
    const HOUR: i64 = 3_600_000_000;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    #[test]
    fn a_stamp_of_a_time_to_come_was_given_before_the_next_that_is_known() {
        let mut stamps = Stamps::default();
        stamps.note(DAWN, DAWN);
        assert_eq!(stamps.given_by(DAWN - HOUR), DAWN - HOUR);
        for hour in 0..72 {
            stamps.note(DAWN + YEAR + hour, DAWN + hour * HOUR);
        }
        assert!(stamps.certain.len() < 6, "{stamps:?}");
        for hour in 0..72 {
            let late = stamps.given_by(DAWN + YEAR + hour) - (DAWN + hour * HOUR);
            assert!((0..=2 * DAY).contains(&late), "{hour}: {late}");
        }
        assert_eq!(stamps.given_by(DAWN + YEAR + 72), DAWN + YEAR + 72, "nobody knows");
        stamps.note(DAWN + YEAR + 99, 0);
        assert_eq!(stamps.given_by(DAWN + YEAR + 99), DAWN + YEAR + 99);
    }
}
