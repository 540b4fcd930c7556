//! Moments on a machine that may not know the time.

use crate::instant::Timestamp;

/// A moment by the machine's own counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime {
    /// The number of the start of the machine. The firmware counts them; [`super::Journal::next_boot`] helps.
    pub boot: u32,
    /// Microseconds since that start.
    pub micros: u64,
}

/// A moment, dated or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// On the UTC time line.
    At(Timestamp),
    /// While nobody knew the time.
    SinceBoot(Uptime),
}

impl Moment {
    /// The moment on the time line, as far as `dating` knows.
    pub fn at(self, dating: &impl Dating) -> Option<Timestamp> {
        match self {
            Self::At(at) => Some(at),
            Self::SinceBoot(uptime) => dating.date(uptime),
        }
    }

    /// Hours from `earlier` to `self`, as [`Timestamp::hours_since`] has them. Within one start no date
    /// is needed; else `None` where one of the two has none.
    pub fn hours_since(self, earlier: Self, dating: &impl Dating) -> Option<f64> {
        let line = |micros: u64| Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX));
        match (self, earlier) {
            (Self::SinceBoot(to), Self::SinceBoot(from)) if to.boot == from.boot => {
                Some(line(to.micros).hours_since(line(from.micros)))
            }
            _ => Some(self.at(dating)?.hours_since(earlier.at(dating)?)),
        }
    }
}

/// Knowledge of the times at which the machine started.
pub trait Dating {
    /// The moment on the time line, if it is known.
    fn date(&self, uptime: Uptime) -> Option<Timestamp>;
}

/// Nobody knows the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClock;

impl Dating for NoClock {
    fn date(&self, _: Uptime) -> Option<Timestamp> {
        None
    }
}

/// One start of the machine, of which it is known when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootClock {
    /// The number of the start.
    pub boot: u32,
    /// The time at which its counter was zero.
    pub started: Timestamp,
}

impl BootClock {
    /// From the time `now`, learnt when the counter stood at `uptime`. `None` beyond the time line.
    pub fn learnt(now: Timestamp, uptime: Uptime) -> Option<Self> {
        let since = i64::try_from(uptime.micros).ok()?;
        Some(Self { boot: uptime.boot, started: now.checked_add_micros(-since)? })
    }
}

impl Dating for BootClock {
    fn date(&self, uptime: Uptime) -> Option<Timestamp> {
        let since = i64::try_from(uptime.micros).ok()?;
        if uptime.boot == self.boot { self.started.checked_add_micros(since) } else { None }
    }
}

/// Several starts, each known or not.
impl Dating for [BootClock] {
    fn date(&self, uptime: Uptime) -> Option<Timestamp> {
        self.iter().find_map(|clock| clock.date(uptime))
    }
}

impl<D: Dating + ?Sized> Dating for &D {
    fn date(&self, uptime: Uptime) -> Option<Timestamp> {
        (**self).date(uptime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up(boot: u32, hours: u64) -> Uptime {
        Uptime { boot, micros: hours * 3_600_000_000 }
    }

    #[test]
    fn one_start_needs_no_clock() {
        let (early, late) = (Moment::SinceBoot(up(7, 1)), Moment::SinceBoot(up(7, 25)));
        assert_eq!(late.hours_since(early, &NoClock), Some(24.0));
        assert_eq!(early.hours_since(late, &NoClock), Some(-24.0));
        assert_eq!(Moment::SinceBoot(up(8, 0)).hours_since(early, &NoClock), None);
        assert_eq!(Moment::At(Timestamp::EPOCH).hours_since(early, &NoClock), None);
    }

    #[test]
    fn a_start_is_dated_by_the_time_learnt_in_it() {
        let noon = Timestamp::parse("2026-05-30T12:00:00Z").unwrap();
        let clock = BootClock::learnt(noon, up(7, 3)).unwrap();
        let early = Moment::SinceBoot(up(7, 1));
        assert_eq!(early.at(&clock), Some(Timestamp::parse("2026-05-30T10:00:00Z").unwrap()));
        assert_eq!(Moment::At(noon).hours_since(early, &clock), Some(2.0));
        assert_eq!(Moment::SinceBoot(up(6, 1)).at(&clock), None);
        let before = BootClock { boot: 6, started: Timestamp::EPOCH };
        let known = [before, clock];
        assert_eq!(Moment::At(noon).hours_since(early, &&known[..]), Some(2.0));
        assert_eq!(
            BootClock::learnt(Timestamp::from_unix(i64::MIN, 0), up(0, 1)),
            None,
            "beyond the time line"
        );
    }
}
