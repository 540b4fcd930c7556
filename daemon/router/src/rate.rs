//! Rates: how often each caller is heard.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::caller::{Caller, Rate};
use super::refusal::Refusal;

/// Callers whose rate is kept before those that are at rest are let go of.
const MOST_KEPT: usize = 1024;

type Name = (Arc<str>, Option<Arc<str>>);

/// The requests of callers lately: for each caller, and each of its rates, the time at which all of them are paid for (the
/// generic cell rate algorithm of ITU-T I.371).
#[derive(Debug, Default)]
pub(super) struct Rates(HashMap<Name, [Duration; 2]>);

impl Rates {
    /// Counts one request. `now` is since any fixed moment.
    ///
    /// # Errors
    /// `TooOften`; the request counts in none of the rates.
    pub(super) fn take(&mut self, caller: &Caller, now: Duration) -> Result<(), Refusal> {
        let rates = caller.bounds.rates;
        if rates == [None, None] {
            return Ok(());
        }
        if self.0.len() >= MOST_KEPT {
            self.0.retain(|_, paid| paid.iter().any(|paid| *paid > now));
        }
        let paid = self.0.entry((caller.name.clone(), caller.tenant.clone())).or_default();
        let mut paid_then = *paid;
        let mut retry_after = Duration::ZERO;
        for (rate, paid) in rates.iter().zip(&mut paid_then) {
            let Some(Rate { requests, per }) = *rate else { continue };
            *paid = now.max(*paid) + per / requests.max(1);
            retry_after = retry_after.max(paid.saturating_sub(now + per));
        }
        if !retry_after.is_zero() {
            return Err(Refusal::TooOften { retry_after });
        }
        *paid = paid_then;
        Ok(())
    }
}
