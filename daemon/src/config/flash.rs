//! `[flash]`: the card, and what may be written to it.

use serde::Deserialize;

use super::{Invalid, quantity, within};
use crate::engine::FlashSettings;

/// `[flash]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlashSection {
    /// Bytes the store may take on the disk.
    #[serde(deserialize_with = "quantity::bytes")]
    pub max_bytes: Option<u64>,
    /// Bytes that may be written in a day before what can wait does.
    #[serde(deserialize_with = "quantity::bytes")]
    pub bytes_per_day: Option<u64>,
    /// Size of the card.
    #[serde(deserialize_with = "quantity::bytes")]
    pub card_bytes: Option<u64>,
    /// Erasures that each of its cells bears.
    pub card_write_cycles: Option<u64>,
    /// Bytes that it writes for each byte it is given.
    pub card_write_factor: Option<u64>,
    /// Bytes kept for a full disk.
    #[serde(deserialize_with = "quantity::bytes")]
    pub reserve_bytes: Option<u64>,
}

/// Checks it and fills in what it leaves out.
pub fn resolve(asked: &FlashSection) -> Result<FlashSettings, Invalid> {
    let default = FlashSettings::default();
    // 0 says "none" for all of these but the last two.
    let or_none = |key: &str, asked: Option<u64>, default: u64, least: u64, most: u64| match asked {
        Some(0) => Ok(0),
        _ => within(key, asked, default, least..=most).map_err(Invalid::or_none),
    };
    let most = 1 << 50;
    Ok(FlashSettings {
        max_bytes: or_none("flash.max_bytes", asked.max_bytes, default.max_bytes, 1 << 20, most)?,
        bytes_per_day: or_none(
            "flash.bytes_per_day",
            asked.bytes_per_day,
            default.bytes_per_day,
            1 << 16,
            most,
        )?,
        card_bytes: or_none(
            "flash.card_bytes",
            asked.card_bytes,
            default.card_bytes,
            1 << 20,
            most,
        )?,
        reserve_bytes: or_none(
            "flash.reserve_bytes",
            asked.reserve_bytes,
            default.reserve_bytes,
            4 << 10,
            64 << 20,
        )?,
        card_write_cycles: within(
            "flash.card_write_cycles",
            asked.card_write_cycles,
            default.card_write_cycles,
            1..=10_000_000,
        )?,
        card_write_factor: within(
            "flash.card_write_factor",
            asked.card_write_factor,
            default.card_write_factor,
            1..=1000,
        )?,
    })
}
