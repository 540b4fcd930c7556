//! Counts and measures for Prometheus: `docs/metrics.md`.
//!
//! | file | holds |
//! |---|---|
//! | `requests` | requests, counted where the router ends them |
//! | `figures` | the table of what is read from the status of the daemon at each request |
//! | `counts` | what protocols count |
//! | `process` | the process |
//!
//! Contract: labels have few values, all of them known here. Names of callers, agents and memories are never among them.

mod counts;
mod figures;
mod process;
mod requests;

use std::fmt;
use std::sync::Arc;

use omir_core::value::Value;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use self::counts::Counts;
use self::figures::Figures;
use self::process::Process;
pub use self::requests::Requests;
use crate::router::Count;

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The measures of one daemon. Cloning gives another handle on the same.
#[derive(Clone)]
pub struct Metrics(Arc<Registry>);

impl Metrics {
    /// Returns the measures of a daemon: `requests`, and what `status` and the protocols' `counts` give at each
    /// request.
    pub fn new(
        requests: &Requests,
        status: impl Fn() -> Value + Send + Sync + 'static,
        counts: impl Fn() -> Vec<Count> + Send + Sync + 'static,
    ) -> Self {
        let mut registry = Registry::default();
        let of_ours = registry.sub_registry_with_prefix("omird");
        requests.register(of_ours);
        of_ours.register_collector(Box::new(Figures::of(status)));
        of_ours.register_collector(Box::new(Counts(counts)));
        registry.register_collector(Box::new(Process));
        Self(Arc::new(registry))
    }

    /// Returns the measures as OpenMetrics text.
    ///
    /// # Errors
    /// If a measure has no text form, which would be a bug.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests;
