//! `[forgetting]`: how memories fade, move and go.

use std::time::Duration;

use omir_core::forgetting::HalfLife;
use omir_core::tier::TierPolicy;
use serde::Deserialize;

use super::{Invalid, quantity, seconds, within};
use crate::engine::Forgetting;

/// `[forgetting]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForgettingSection {
    /// True if time moves anything at all.
    pub enabled: Option<bool>,
    /// The store is swept this often at most.
    #[serde(deserialize_with = "quantity::seconds")]
    pub sweep_interval_s: Option<u64>,
    /// Age at which a record leaves `working`.
    #[serde(deserialize_with = "quantity::hours")]
    pub session_after_h: Option<f64>,
    /// Age at which a strong record leaves `session`.
    #[serde(deserialize_with = "quantity::hours")]
    pub longterm_after_h: Option<f64>,
    /// Retrievability below which a record drifts to `archive`.
    pub archive_below: Option<f64>,
    /// True if near-duplicates are merged.
    pub merge: Option<bool>,
    /// Time in which they gather before that.
    #[serde(deserialize_with = "quantity::hours")]
    pub merge_after_h: Option<f64>,
    /// Largest distance between them.
    pub merge_radius_m: Option<f64>,
    /// Least similarity of their words.
    pub merge_similarity: Option<f64>,
    /// Time for which a memory is kept that is no longer valid.
    #[serde(deserialize_with = "quantity::seconds")]
    pub expire_after_s: Option<u64>,
    /// Half-life of relationships.
    #[serde(deserialize_with = "quantity::hours")]
    pub relationship_half_life_h: Option<f64>,
}

/// Checks it and fills in what it leaves out.
pub fn resolve(asked: &ForgettingSection) -> Result<Forgetting, Invalid> {
    let defaults = Forgetting::default();
    let hours = |key: &str, asked: Option<f64>, default: f64| {
        within(&format!("forgetting.{key}"), asked, default, 0.001..=1_000_000.0)
    };
    let share = |key: &str, asked: Option<f64>, default: f64| {
        within(&format!("forgetting.{key}"), asked, default, 0.0..=1.0)
    };
    let tiers = defaults.tiers;
    let sweep_interval = defaults.sweep_interval.unwrap_or_default();
    let bond = defaults.relationship_half_life;
    let half_life =
        hours("relationship_half_life_h", asked.relationship_half_life_h, bond.hours())?;
    let merge_after = defaults.merge_after.as_secs_f64() / 3600.0;
    let merge_after = hours("merge_after_h", asked.merge_after_h, merge_after)?;
    let merge_after = Duration::from_secs_f64(3600.0 * merge_after);
    Ok(Forgetting {
        enabled: asked.enabled.unwrap_or(defaults.enabled),
        sweep_interval: Some(seconds(
            "forgetting.sweep_interval_s",
            asked.sweep_interval_s,
            sweep_interval,
        )?),
        tiers: TierPolicy {
            session_after_hours: hours(
                "session_after_h",
                asked.session_after_h,
                tiers.session_after_hours,
            )?,
            longterm_after_hours: hours(
                "longterm_after_h",
                asked.longterm_after_h,
                tiers.longterm_after_hours,
            )?,
            archive_below: within(
                "forgetting.archive_below",
                asked.archive_below,
                tiers.archive_below,
                0.0..=tiers.restore_at,
            )?,
            ..tiers
        },
        merge: asked.merge.unwrap_or(defaults.merge),
        merge_after,
        merge_radius_m: within(
            "forgetting.merge_radius_m",
            asked.merge_radius_m,
            defaults.merge_radius_m,
            0.0..=1000.0,
        )?,
        merge_similarity: share(
            "merge_similarity",
            asked.merge_similarity,
            defaults.merge_similarity,
        )?,
        expire_after: seconds(
            "forgetting.expire_after_s",
            asked.expire_after_s,
            defaults.expire_after,
        )?,
        relationship_half_life: HalfLife::new(half_life).unwrap_or(bond),
    })
}
