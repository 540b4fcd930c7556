//! `[limits]`: bounds on one request, and on what may wait.

use serde::Deserialize;

use super::{Invalid, quantity, within};
use crate::engine::{DEEPEST, RequestLimits, Settings};

/// Default of `readers`.
const DEFAULT_READERS: usize = 2;

/// `[limits]`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Bytes of a payload.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub max_payload_bytes: Option<usize>,
    /// Nesting of a payload.
    pub max_depth: Option<usize>,
    /// Values in a payload.
    pub max_values: Option<usize>,
    /// Resources in a request.
    pub max_resources: Option<usize>,
    /// Bytes of a stored resource.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub max_resource_bytes: Option<usize>,
    /// Bytes of a payload that is merged.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub max_import_bytes: Option<usize>,
    /// Requests that may wait.
    pub queue_requests: Option<usize>,
    /// Bytes that may wait.
    #[serde(deserialize_with = "quantity::usize_bytes")]
    pub queue_bytes: Option<usize>,
    /// Threads that read for queries.
    pub readers: Option<usize>,
}

/// The section, checked and complete.
pub struct Limits {
    /// Bounds on one request.
    pub requests: RequestLimits,
    /// Requests that may wait for the writer.
    pub queue_requests: usize,
    /// Bytes that may wait for the writer.
    pub queue_bytes: usize,
    /// Threads that read for queries.
    pub readers: usize,
}

/// Checks the section and fills in what it leaves out.
pub fn resolve(asked: &LimitsSection) -> Result<Limits, Invalid> {
    let defaults = Settings::default();
    Ok(Limits {
        requests: of_requests(asked)?,
        queue_requests: within(
            "limits.queue_requests",
            asked.queue_requests,
            defaults.queue_requests,
            1..=1_000_000,
        )?,
        queue_bytes: within(
            "limits.queue_bytes",
            asked.queue_bytes,
            defaults.queue_bytes,
            1 << 16..=1 << 30,
        )?,
        readers: within("limits.readers", asked.readers, DEFAULT_READERS, 1..=64)?,
    })
}

fn of_requests(asked: &LimitsSection) -> Result<RequestLimits, Invalid> {
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
