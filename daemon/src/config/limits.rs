//! Bounds of one request in `[limits]`. The keys that bound queues (`queue_requests`,
//! `queue_bytes`, `readers`) are read in [`super::resolve`].

use super::file::LimitsSection;
use super::{Invalid, within};
use crate::engine::{DEEPEST, RequestLimits};

/// Checks the bounds on one request and fills in what is left out.
pub fn resolve(asked: &LimitsSection) -> Result<RequestLimits, Invalid> {
    let limits = RequestLimits::default();
    Ok(RequestLimits {
        max_payload_bytes: within(
            "limits.max_payload_bytes",
            asked.max_payload_bytes,
            limits.max_payload_bytes,
            1024..=256 << 20,
        )?,
        max_depth: within("limits.max_depth", asked.max_depth, limits.max_depth, 8..=DEEPEST)?,
        max_values: within(
            "limits.max_values",
            asked.max_values,
            limits.max_values,
            100..=100_000_000,
        )?,
        max_resources: within(
            "limits.max_resources",
            asked.max_resources,
            limits.max_resources,
            1..=1_000_000,
        )?,
        max_resource_bytes: within(
            "limits.max_resource_bytes",
            asked.max_resource_bytes,
            limits.max_resource_bytes,
            256..=64 << 20,
        )?,
        max_import_bytes: within(
            "limits.max_import_bytes",
            asked.max_import_bytes,
            limits.max_import_bytes,
            1024..=256 << 20,
        )?,
    })
}
