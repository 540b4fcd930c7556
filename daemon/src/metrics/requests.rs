//! Requests by protocol, method, way in and outcome, and how long they take, counted from audit lines.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::router::{AuditLine, Sink};

/// Seconds. A recall in memory takes tens of microseconds, a durable write what the card takes.
const BUCKETS: [f64; 14] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5,
    10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    protocol: &'static str,
    method: &'static str,
    transport: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    protocol: &'static str,
    method: &'static str,
    transport: &'static str,
    outcome: &'static str,
}

/// Requests so far. Cloning gives another handle on the same.
#[derive(Debug, Clone)]
pub struct Requests {
    ended: Family<OutcomeLabels, Counter>,
    took: Family<RequestLabels, Histogram, fn() -> Histogram>,
    bytes: Family<RequestLabels, Counter>,
}

impl Default for Requests {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            ended: Family::default(),
            took: Family::new_with_constructor(histogram),
            bytes: Family::default(),
        }
    }
}

impl Requests {
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Requests that are over, by outcome: ok, given up, or the code of the error";
        registry.register("requests", help, self.ended.clone());
        let help = "Time from the router's decision to the answer; not of answers in many parts";
        registry.register_with_unit("request_duration", help, Unit::Seconds, self.took.clone());
        let help = "Bytes that requests came in";
        registry.register_with_unit("request_payload", help, Unit::Bytes, self.bytes.clone());
    }
}

impl Sink for Requests {
    fn note(&self, line: &AuditLine<'_>) {
        let (protocol, method) = (line.method.protocol, line.method.name);
        let transport = line.caller.transport;
        let outcome = line.outcome.as_str();
        self.ended.get_or_create(&OutcomeLabels { protocol, method, transport, outcome }).inc();
        let asked = RequestLabels { protocol, method, transport };
        self.bytes.get_or_create(&asked).inc_by(line.bytes as u64);
        // A stream lasts as long as its client listens.
        if !line.method.streams {
            self.took.get_or_create(&asked).observe(line.took.as_secs_f64());
        }
    }
}
