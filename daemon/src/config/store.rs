//! `[store]`: what an acknowledgement promises, and when what is stored is sealed, journaled, read through and purged.

use std::time::Duration;

use serde::Deserialize;

use super::{Invalid, quantity, seconds, within};
use crate::engine::{Durability, Settings};

/// Default time between two syncs of the log with `durability = "interval"`.
const DEFAULT_SYNC_INTERVAL: Duration = Duration::from_millis(1000);
/// Default of `scrub_days`.
const DEFAULT_SCRUB_DAYS: u64 = 30;

/// `[store]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSection {
    /// `sync`, `interval` or `none`.
    pub durability: Option<String>,
    /// Milliseconds between syncs with `interval`.
    #[serde(deserialize_with = "quantity::millis")]
    pub sync_interval_ms: Option<u64>,
    /// A log of so many bytes is sealed.
    #[serde(deserialize_with = "quantity::bytes")]
    pub segment_bytes: Option<u64>,
    /// A log so old is sealed.
    #[serde(deserialize_with = "quantity::seconds")]
    pub seal_after_s: Option<u64>,
    /// Access counts are journaled this often.
    #[serde(deserialize_with = "quantity::seconds")]
    pub touch_interval_s: Option<u64>,
    /// Time during which superseded versions can be asked for.
    #[serde(deserialize_with = "quantity::seconds")]
    pub keep_history_s: Option<u64>,
    /// Longest time that a forgotten memory stays on the card.
    #[serde(deserialize_with = "quantity::seconds")]
    pub purge_after_s: Option<u64>,
    /// All that is sealed is read through once in so many days.
    #[serde(deserialize_with = "quantity::days")]
    pub scrub_days: Option<u64>,
    /// Compaction makes no segment larger than this.
    #[serde(deserialize_with = "quantity::bytes")]
    pub segment_max_bytes: Option<u64>,
    /// Interval at which the time is written.
    #[serde(deserialize_with = "quantity::seconds")]
    pub mark_interval_s: Option<u64>,
}

/// Checks the section and puts it over `defaults`, the rest of which stays.
pub fn resolve(written: &StoreSection, defaults: Settings) -> Result<Settings, Invalid> {
    Ok(Settings {
        durability: durability(written)?,
        segment_bytes: within(
            "store.segment_bytes",
            written.segment_bytes,
            defaults.segment_bytes,
            4 << 10..=1 << 30,
        )?,
        seal_after: seconds("store.seal_after_s", written.seal_after_s, defaults.seal_after)?,
        touch_interval: seconds(
            "store.touch_interval_s",
            written.touch_interval_s,
            defaults.touch_interval,
        )?,
        mark_interval: seconds(
            "store.mark_interval_s",
            written.mark_interval_s,
            defaults.mark_interval,
        )?,
        // 0: what is superseded may go at once.
        keep_history: Duration::from_secs(within(
            "store.keep_history_s",
            written.keep_history_s,
            defaults.keep_history.as_secs(),
            0..=3_153_600_000,
        )?),
        scrub_every: match within(
            "store.scrub_days",
            written.scrub_days,
            DEFAULT_SCRUB_DAYS,
            0..=3650,
        )? {
            0 => None,
            days => Some(Duration::from_secs(days * 86_400)),
        },
        purge_after: seconds("store.purge_after_s", written.purge_after_s, defaults.purge_after)?,
        segment_max_bytes: within(
            "store.segment_max_bytes",
            written.segment_max_bytes,
            defaults.segment_max_bytes,
            64 << 10..=1 << 30,
        )?,
        ..defaults
    })
}

fn durability(written: &StoreSection) -> Result<Durability, Invalid> {
    let interval = match written.sync_interval_ms {
        None => DEFAULT_SYNC_INTERVAL,
        Some(0) => return Err(Invalid::other("store.sync_interval_ms", "must be at least 1")),
        Some(millis) => Duration::from_millis(millis),
    };
    match written.durability.as_deref() {
        None | Some("sync") => Ok(Durability::Sync),
        Some("interval") => Ok(Durability::Interval(interval)),
        Some("none") => Ok(Durability::None),
        Some(other) => {
            Err(Invalid::none_of("store.durability", other, &["sync", "interval", "none"]))
        }
    }
}
