//! Rates: how often each caller is heard.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::caller::Caller;
use super::method::{Method, Rate};
use super::refusal::Refusal;

/// Callers whose rate is kept before those that are at rest are let go of.
const MOST_KEPT: usize = 1024;
/// The time between two looks for those at rest: each of them goes through all callers.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Parts of a long time, which are counted apart: the oldest of them leaves as a whole.
const PARTS: usize = 60;
/// A time from which on requests are counted in a window. In a shorter one they are spread.
const LONG: Duration = Duration::from_secs(60);

/// The caller, its tenant, and the protocol whose rate it is where the caller's key states none: a stated rate counts the
/// requests of all protocols.
type Name = (Arc<str>, Option<Arc<str>>, Option<&'static str>);

/// The state of a rate after a request, for those who are to know how much is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateUsage {
    /// The rate.
    pub rate: Rate,
    /// Requests that would be heard now.
    pub remaining: u32,
    /// The time until one more would be.
    pub reset: Duration,
}

/// The requests of callers lately.
#[derive(Debug, Default)]
pub(super) struct Rates {
    spent: HashMap<Name, [Spent; 2]>,
    /// The time at which those at rest were looked for.
    looked: Duration,
}

impl Rates {
    /// Counts one request. `now` is since any fixed moment.
    ///
    /// # Errors
    /// `TooOften`; the request counts in none of the rates.
    pub(super) fn take(
        &mut self,
        caller: &Caller,
        method: &Method,
        now: Duration,
    ) -> Result<(), Refusal> {
        let rates = of(caller, method);
        if rates.iter().all(Option::is_none) {
            return Ok(());
        }
        if self.spent.len() >= MOST_KEPT && now >= self.looked + BETWEEN_LOOKS {
            self.spent.retain(|_, spent| spent.iter().any(|spent| !spent.is_at_rest(now)));
            self.looked = now;
        }
        let mut spent_then = [Spent::Nothing, Spent::Nothing];
        let mut retry_after = Duration::ZERO;
        for (at, (rate, then)) in rates.iter().zip(&mut spent_then).enumerate() {
            let Some((name, rate)) = rate else { continue };
            *then = self.spent.get(name).map(|spent| spent[at].clone()).unwrap_or_default();
            if let Err(wait) = then.take(*rate, now) {
                retry_after = retry_after.max(wait);
            }
        }
        if !retry_after.is_zero() {
            return Err(Refusal::TooOften { retry_after });
        }
        for (at, (rate, then)) in rates.into_iter().zip(spent_then).enumerate() {
            if let Some((name, _)) = rate {
                self.spent.entry(name).or_default()[at] = then;
            }
        }
        Ok(())
    }

    /// Returns what is left of the second rate of a caller.
    pub(super) fn usage(
        &self,
        caller: &Caller,
        method: &Method,
        now: Duration,
    ) -> Option<RateUsage> {
        let [_, second] = of(caller, method);
        let (name, rate) = second?;
        let (used, reset) = match self.spent.get(&name) {
            Some([_, spent]) => spent.used(rate, now),
            None => (0, Duration::ZERO),
        };
        Some(RateUsage { rate, remaining: rate.requests.saturating_sub(used), reset })
    }
}

/// Returns the rates that hold for a caller, each with the name it is kept by.
fn of(caller: &Caller, method: &Method) -> [Option<(Name, Rate)>; 2] {
    let default = if caller.has_token { method.rates } else { [None, None] };
    let named = |protocol| (caller.name.clone(), caller.tenant.clone(), protocol);
    [0, 1].map(|at| match caller.bounds.rates[at] {
        // Its own: one for all protocols together.
        Some(stated) => Some((named(None), stated)),
        // The protocol's: counted for that protocol alone.
        None => default[at].map(|rate| (named(Some(method.protocol)), rate)),
    })
}

/// The requests of one caller that one of its rates counts.
#[derive(Debug, Clone, Default)]
enum Spent {
    /// None yet.
    #[default]
    Nothing,
    /// All are paid for at this time (the generic cell rate algorithm of ITU-T I.371).
    PaidAt(Duration),
    /// So many in each part of the time that ends now.
    Window(Box<Window>),
}

impl Spent {
    /// Counts a request, or says how long to wait.
    fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        if rate.per >= LONG {
            return self.window(rate, now).take(rate, now);
        }
        let paid = match self {
            Self::PaidAt(paid) => *paid,
            _ => Duration::ZERO,
        };
        let paid = now.max(paid) + rate.per / rate.requests.max(1);
        match paid.saturating_sub(now + rate.per) {
            Duration::ZERO => {
                *self = Self::PaidAt(paid);
                Ok(())
            }
            wait => Err(wait),
        }
    }

    fn window(&mut self, rate: Rate, now: Duration) -> &mut Window {
        let part = rate.per / PARTS as u32;
        if !matches!(self, Self::Window(window) if window.part == part) {
            *self = Self::Window(Box::new(Window::from(part, now)));
        }
        let Self::Window(window) = self else { unreachable!("it was just made") };
        window
    }

    /// Returns the requests that count now, and the time until one of them does no more.
    fn used(&self, rate: Rate, now: Duration) -> (u32, Duration) {
        match self {
            Self::Nothing => (0, Duration::ZERO),
            Self::PaidAt(paid) => {
                let owed = paid.saturating_sub(now);
                let one = rate.per / rate.requests.max(1);
                let used = owed.as_nanos().div_ceil(one.as_nanos().max(1));
                (u32::try_from(used).unwrap_or(u32::MAX), owed.min(one))
            }
            Self::Window(window) => {
                let mut window = window.clone();
                window.go_on(now);
                (window.total, window.next_gone(now))
            }
        }
    }

    fn is_at_rest(&self, now: Duration) -> bool {
        match self {
            Self::Nothing => true,
            Self::PaidAt(paid) => *paid <= now,
            Self::Window(window) => window.ends() <= now,
        }
    }
}

/// The requests of the last [`PARTS`] parts of a time.
#[derive(Debug, Clone)]
struct Window {
    /// The time of one part.
    part: Duration,
    /// The number of the newest part, since the moment that all times are since.
    newest: u64,
    /// The requests of each part, by its number.
    counts: [u32; PARTS],
    total: u32,
}

impl Window {
    fn from(part: Duration, now: Duration) -> Self {
        let part = part.max(Duration::from_nanos(1));
        Self { part, newest: number(part, now), counts: [0; PARTS], total: 0 }
    }

    fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        self.go_on(now);
        if self.total >= rate.requests {
            return Err(self.next_gone(now).max(Duration::from_nanos(1)));
        }
        self.counts[slot(self.newest)] += 1;
        self.total += 1;
        Ok(())
    }

    /// Drops the parts that are over.
    fn go_on(&mut self, now: Duration) {
        let newest = number(self.part, now).max(self.newest);
        for number in self.newest + 1..=newest.min(self.newest + PARTS as u64) {
            self.total -= std::mem::take(&mut self.counts[slot(number)]);
        }
        self.newest = newest;
    }

    /// Returns the time until the oldest part with a request in it is over.
    fn next_gone(&self, now: Duration) -> Duration {
        let oldest = (self.newest + 1).saturating_sub(PARTS as u64);
        let first = (oldest..=self.newest).find(|&number| self.counts[slot(number)] > 0);
        let Some(first) = first else { return Duration::ZERO };
        self.begin(first + PARTS as u64).saturating_sub(now)
    }

    /// Returns the time from which on nothing counts.
    fn ends(&self) -> Duration {
        self.begin(self.newest + PARTS as u64)
    }

    fn begin(&self, number: u64) -> Duration {
        let nanos = self.part.as_nanos().saturating_mul(u128::from(number));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Returns the number of the part that a time is in.
fn number(part: Duration, now: Duration) -> u64 {
    u64::try_from(now.as_nanos() / part.as_nanos().max(1)).unwrap_or(u64::MAX)
}

fn slot(number: u64) -> usize {
    usize::try_from(number % PARTS as u64).unwrap_or(0)
}
