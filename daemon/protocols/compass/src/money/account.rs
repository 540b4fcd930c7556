//! The budget of models: a cap for each calendar month, which a power cut cannot lead past.
//!
//! Before anything is spent, a lease is written to the card: so much of the month's budget may be gone from now on. A start
//! takes the whole lease for spent, because it does not know how much of it was. So a lease is a small share of what is
//! left of the budget: a start loses no more than that. Amounts are millionths of a dollar, so a price for a million
//! tokens is a price in them for one.

use omir_core::model::Tier;
use omir_core::value::{Map, Value};
use omird_engine::Engine;
use omird_router::DEFAULT_TENANT;
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::names::Sort;
use crate::settings::Settings;
use crate::state::Budget;
use crate::store::{Batch, Shape, Store, Stored, retried};

/// A dollar, which a lease grows by at most, unless one request may cost more.
const DOLLAR: u64 = 1_000_000;
/// Parts of what is left of the budget, one of which a lease grows by. With more of them a start loses less, and the card is
/// written to more often.
const PARTS: u64 = 20;

/// The month as it stands in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Month {
    name: String,
    leased: u64,
    spent: u64,
    /// Set aside for requests under way.
    pending: u64,
    alerted: bool,
}

/// The account of the daemon.
#[derive(Debug, Default)]
pub(crate) struct Account(Mutex<Option<Month>>);

/// An amount that may be spent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    month: String,
    amount: u64,
}

/// A reason not to spend.
#[derive(Debug)]
pub(crate) enum NotReserved {
    /// The budget of the month is used up.
    Capped,
    /// The lease could not be written.
    Failed(Failure),
}

/// The money spent, and a limit that was passed for the first time in this month.
#[derive(Debug, PartialEq)]
pub(crate) struct Settled {
    /// The share of the limit in percent, and the month, where the alert is due.
    pub(crate) alert: Option<(f64, String)>,
}

fn micros(dollars: f64) -> u64 {
    (dollars * DOLLAR as f64) as u64
}

/// Writes an amount in dollars.
pub(crate) fn dollars(micros: u64) -> f64 {
    // In steps of a ten-thousandth, rounded up.
    micros.div_ceil(100) as f64 / 10_000.0
}

impl Account {
    /// Sets an amount aside, and leases as much as that needs, or a small share of the budget where that is more.
    ///
    /// # Errors
    /// The budget has no room for it, or the lease could not be written.
    pub(crate) fn reserve(
        &self,
        engine: &Engine,
        settings: &Settings,
        amount: u64,
    ) -> Result<Reserved, NotReserved> {
        let mut account = self.0.lock();
        let month = this_month(&mut account, engine).map_err(NotReserved::Failed)?;
        let limit = micros(settings.monthly_token_budget_usd);
        let needed = month.spent.saturating_add(month.pending).saturating_add(amount);
        if needed > limit {
            return Err(NotReserved::Capped);
        }
        if needed > month.leased {
            let gone = needed - amount;
            let share = ((limit - gone) / PARTS).min(DOLLAR);
            // No more than is left: a share is a part of that, and the amount has room, as was seen above.
            let leased = gone + amount.max(share);
            let next = Month { leased, ..month.clone() };
            write(engine, &next).map_err(NotReserved::Failed)?;
            *month = next;
        }
        month.pending += amount;
        Ok(Reserved { month: month.name.clone(), amount })
    }

    /// Ends a reservation by what it came to, which is no more than was set aside.
    pub(crate) fn settle(
        &self,
        engine: &Engine,
        settings: &Settings,
        reserved: Reserved,
        spent: u64,
    ) -> Settled {
        let mut account = self.0.lock();
        let Some(month) = account.as_mut().filter(|month| month.name == reserved.month) else {
            // Of a month that is over.
            return Settled { alert: None };
        };
        month.pending = month.pending.saturating_sub(reserved.amount);
        month.spent += spent.min(reserved.amount);
        let limit = micros(settings.monthly_token_budget_usd);
        let share = 100.0 * month.spent as f64 / limit.max(1) as f64;
        if month.alerted || share < settings.alert_threshold_pct {
            return Settled { alert: None };
        }
        let next = Month { alerted: true, ..month.clone() };
        if let Err(failure) = write(engine, &next) {
            // Told after the next call then.
            tracing::warn!(error = failure.error.message, "an alert could not be stored");
            return Settled { alert: None };
        }
        *month = next;
        Settled { alert: Some((share, month.name.clone())) }
    }

    /// Writes how the month stands.
    pub(crate) fn shown(&self, engine: &Engine, settings: &Settings) -> Result<Value, Failure> {
        let mut account = self.0.lock();
        let month = this_month(&mut account, engine)?;
        let limit = micros(settings.monthly_token_budget_usd);
        let mut map = Map::new();
        map.insert("month", month.name.as_str());
        map.insert("spent_usd", dollars(month.spent));
        map.insert("limit_usd", settings.monthly_token_budget_usd);
        map.insert("alert", month.alerted);
        map.insert("capped", month.spent >= limit);
        Ok(Value::Object(map))
    }
}

/// Returns the present month, read from the store if it has begun since or the daemon has.
fn this_month<'a>(
    account: &'a mut Option<Month>,
    engine: &Engine,
) -> Result<&'a mut Month, Failure> {
    let store = Store::new(engine, DEFAULT_TENANT);
    let (now, _) = store.now();
    let name = Store::stamp(now).chars().take("2026-11".len()).collect::<String>();
    if account.as_ref().is_none_or(|month| month.name != name) {
        let known = store.get::<Budget>(Sort::Budget, &name)?.map(|stored| stored.state);
        let leased = known.as_ref().map_or(0, |known| micros_of(known.leased_usd));
        let alerted = known.is_some_and(|known| known.alerted);
        *account = Some(Month { name, leased, spent: leased, pending: 0, alerted });
    }
    account.as_mut().ok_or_else(|| Failure::internal("there is no month"))
}

/// Reads an amount that was written in dollars, rounded up.
fn micros_of(dollars: f64) -> u64 {
    (dollars.max(0.0) * DOLLAR as f64).ceil() as u64
}

fn write(engine: &Engine, month: &Month) -> Result<(), Failure> {
    let store = Store::new(engine, DEFAULT_TENANT);
    let state = Budget {
        tenant: DEFAULT_TENANT.to_owned(),
        agent_id: String::new(),
        month: month.name.clone(),
        leased_usd: month.leased as f64 / DOLLAR as f64,
        spent_usd: month.spent as f64 / DOLLAR as f64,
        alerted: month.alerted,
    };
    let shape = Shape {
        content: format!("Money for models in {}", month.name),
        tier: Some(Tier::Longterm),
        anchored: true,
        external_id: Some(format!("compass:budget:{}", month.name)),
        ..Shape::default()
    };
    retried(|| {
        let mut batch = Batch::default();
        let known: Option<Stored<Budget>> = store.get(Sort::Budget, &month.name)?;
        match &known {
            Some(stored) => store.change(&mut batch, stored, &state, &shape)?,
            None => store.add(&mut batch, Sort::Budget, &state, &shape)?,
        };
        let written = store.commit(batch)?;
        if written.is_durable() {
            return Ok(());
        }
        // With `durability` other than `sync` a cut may take it back.
        tracing::debug!("a lease is not durable yet: store.durability says when it is");
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use omird_engine::Parts;
    use omird_engine::testing::{TestClock, parts};

    use super::*;

    fn settings(limit: f64) -> Settings {
        Settings { monthly_token_budget_usd: limit, ..Settings::default() }
    }

    fn open(dir: &std::path::Path, clock: &Arc<TestClock>) -> Engine {
        Engine::open(Parts { clock: clock.clone(), ..parts(dir) }, &mut |_| {}).unwrap()
    }

    fn spent(account: &Account, engine: &Engine, settings: &Settings) -> f64 {
        let shown = account.shown(engine, settings).unwrap();
        shown.get("spent_usd").and_then(Value::as_f64).unwrap()
    }

    #[test]
    fn no_cut_leads_past_the_cap() {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let settings = settings(2.5);
        let mut truly = 0.0;
        let mut calls = 0;
        // A daemon that is cut after each request that it has sent, before it has settled anything.
        for _ in 0..20 {
            let engine = open(dir.path(), &clock);
            let account = Account::default();
            if let Ok(reserved) = account.reserve(&engine, &settings, 300_000) {
                truly += 0.3;
                calls += 1;
                drop(reserved);
            }
            engine.stop();
        }
        assert!(truly <= 2.5 && calls >= 2, "{truly} of 2.5 in {calls} calls");
        let engine = open(dir.path(), &clock);
        let account = Account::default();
        let capped = account.reserve(&engine, &settings, 300_000);
        assert!(matches!(capped, Err(NotReserved::Capped)));
        engine.stop();
    }

    #[test]
    fn a_start_loses_a_small_share_of_a_small_budget() {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let settings = settings(0.5);
        let mut before = 0.0;
        for start in 0..10 {
            let engine = open(dir.path(), &clock);
            let account = Account::default();
            let lost = spent(&account, &engine, &settings) - before;
            assert!(lost <= 0.5 / 20.0 + 0.001, "start {start} lost {lost} of half a dollar");
            let reserved = account.reserve(&engine, &settings, 1_000).unwrap();
            account.settle(&engine, &settings, reserved, 1_000);
            before = spent(&account, &engine, &settings);
            engine.stop();
        }
        assert!(before < 0.25, "{before} of half a dollar after ten starts");
    }

    #[test]
    fn a_lease_is_not_written_for_each_request() {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path(), &TestClock::new());
        let (account, settings) = (Account::default(), settings(10.0));
        let stored = || -> Stored<Budget> {
            let store = Store::new(&engine, DEFAULT_TENANT);
            store.get(Sort::Budget, "2026-06").unwrap().unwrap()
        };
        for _ in 0..400 {
            let reserved = account.reserve(&engine, &settings, 1_000).unwrap();
            account.settle(&engine, &settings, reserved, 1_000);
        }
        assert_eq!(stored().version, 1, "a twentieth of ten dollars is half a dollar");
        // One that may cost more than a share leases what it needs.
        let reserved = account.reserve(&engine, &settings, 5_000_000).unwrap();
        account.settle(&engine, &settings, reserved, 0);
        assert_eq!((stored().version, stored().state.leased_usd), (2, 5.4));
        engine.stop();
    }

    #[test]
    fn what_is_spent_counts_once_and_the_alert_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        let clock = TestClock::new();
        let engine = open(dir.path(), &clock);
        let (account, settings) = (Account::default(), settings(4.0));
        let spend = |amount, came_to| {
            let reserved = account.reserve(&engine, &settings, amount)?;
            Ok::<_, NotReserved>(account.settle(&engine, &settings, reserved, came_to).alert)
        };
        assert_eq!(spend(500_000, 100_000).unwrap(), None);
        assert_eq!(spent(&account, &engine, &settings), 0.1);
        // A server that says more than can be does not empty the purse.
        assert_eq!(spend(500_000, u64::MAX).unwrap(), None);
        assert_eq!(spent(&account, &engine, &settings), 0.6);
        let alert = spend(3_000_000, 2_400_100).unwrap().unwrap();
        assert!(alert.0 > 75.0 && alert.1.len() == 7, "{alert:?}");
        assert_eq!(spend(1, 1).unwrap(), None);
        assert!(matches!(spend(1_000_000, 0), Err(NotReserved::Capped)));
        // After a start all that was leased counts, and the alert is not told again.
        engine.stop();
        let engine = open(dir.path(), &clock);
        let account = Account::default();
        let shown = account.shown(&engine, &settings).unwrap();
        assert_eq!(shown.get("spent_usd").and_then(Value::as_f64), Some(3.6));
        assert_eq!(shown.get("alert").and_then(Value::as_bool), Some(true));
        assert_eq!(shown.get("capped").and_then(Value::as_bool), Some(false));
        // All of what is left may be spent, and no more.
        let spend = |amount| {
            let reserved = account.reserve(&engine, &settings, amount)?;
            account.settle(&engine, &settings, reserved, amount);
            Ok::<_, NotReserved>(())
        };
        assert!(matches!(spend(400_001), Err(NotReserved::Capped)));
        spend(400_000).unwrap();
        let shown = account.shown(&engine, &settings).unwrap();
        assert_eq!(shown.get("capped").and_then(Value::as_bool), Some(true));
        // Another month.
        clock.advance(Duration::from_secs(32 * 86_400));
        assert_eq!(spent(&account, &engine, &settings), 0.0);
        engine.stop();
    }

    #[test]
    fn requests_under_way_count() {
        let dir = tempfile::tempdir().unwrap();
        let engine = open(dir.path(), &TestClock::new());
        let (account, settings) = (Account::default(), settings(1.0));
        let first = account.reserve(&engine, &settings, 600_000).unwrap();
        let second = account.reserve(&engine, &settings, 600_000);
        assert!(matches!(second, Err(NotReserved::Capped)));
        account.settle(&engine, &settings, first, 1);
        assert!(account.reserve(&engine, &settings, 600_000).is_ok());
        engine.stop();
    }
}
