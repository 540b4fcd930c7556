//! `[flash]`: the card, and what may be written to it.

use super::file::FlashSection;
use super::{Invalid, within};
use crate::engine::FlashSettings;

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
