//! The table of measures that the status of the daemon has: each is a place in it (`docs/replies.md`, "Status").

use std::fmt;

use omir_core::value::Value;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::engine::{CardState, ClockState};

/// One measure.
pub(super) struct Figure {
    /// The name behind `omird_`.
    pub(super) name: &'static str,
    /// The meaning, with the unit.
    pub(super) help: &'static str,
    is_total: bool,
    at: At,
}

/// A place in the status, as a JSON Pointer.
enum At {
    /// A number, or true and false as 1 and 0. A null is no measure.
    One(&'static str),
    /// An object of numbers: the label has the names of its members.
    Each(&'static str, &'static str),
    /// A word of a list: 1 for the one that holds and 0 for the others, by the label.
    Word(&'static str, &'static str, fn() -> Vec<&'static str>),
}

const fn gauge(name: &'static str, at: &'static str, help: &'static str) -> Figure {
    Figure { name, help, is_total: false, at: At::One(at) }
}

/// Counts upwards since the start of the daemon. In the text its name ends in `_total`.
const fn counter(name: &'static str, at: &'static str, help: &'static str) -> Figure {
    Figure { is_total: true, ..gauge(name, at, help) }
}

const fn by(at: At, name: &'static str, help: &'static str) -> Figure {
    Figure { name, help, is_total: false, at }
}

fn card_states() -> Vec<&'static str> {
    CardState::ALL.map(CardState::as_str).to_vec()
}

fn clock_states() -> Vec<&'static str> {
    ClockState::ALL.map(ClockState::as_str).to_vec()
}

/// All of them.
pub(super) static FIGURES: [Figure; 36] = [
    gauge("uptime_seconds", "/uptimeSeconds", "Seconds since the start"),
    gauge("boots", "/bootCount", "Starts of this store"),
    gauge("read_only", "/readOnly", "1 if the configuration lets nobody change anything"),
    by(At::Each("type", "/counts/types"), "memories", "Resources that are remembered"),
    by(At::Each("tier", "/counts/tiers"), "records", "Records by the tier they are in"),
    gauge("forgotten", "/counts/forgotten", "Resources that were forgotten and leave a tombstone"),
    gauge("versions", "/counts/versions", "Versions of resources in the index"),
    gauge("lost", "/counts/lost", "Resources that the card has lost"),
    gauge("store_bytes", "/disk/bytes", "Bytes of the data folder"),
    gauge("store_max_bytes", "/disk/maxBytes", "Bound on them; missing if there is none"),
    gauge("store_segments", "/disk/segments", "Segments"),
    gauge("store_unsealed_logs", "/disk/unsealedLogs", "Logs that wait to be sealed"),
    gauge("store_log_bytes", "/disk/logBytes", "Bytes of all logs that are not sealed"),
    gauge("store_damaged_files", "/disk/damagedFiles", "Files that are damaged beyond repair"),
    counter("store_repairs", "/disk/repairs", "Files that were damaged and repaired"),
    by(At::Word("state", "/disk/state", card_states), "card_state", "1 for the state of the card"),
    gauge("card_free_bytes", "/disk/freeBytes", "Bytes that are free on the card"),
    counter(
        "card_written_bytes",
        "/wear/sinceBoot/bytesWritten",
        "Bytes that were written to the card",
    ),
    counter(
        "card_block_bytes",
        "/wear/sinceBoot/blockBytes",
        "Bytes of the blocks that these writes touched",
    ),
    counter("payload_bytes", "/wear/sinceBoot/payloadBytes", "Bytes of memories that came in"),
    gauge(
        "card_life_written_bytes",
        "/wear/overLife/bytesWritten",
        "Bytes that were written over the life of the store",
    ),
    gauge("card_written_bytes_per_day", "/wear/bytesPerDay", "Bytes written a day, on average"),
    gauge("card_years", "/wear/cardYears", "Years that the card lasts at this rate"),
    gauge(
        "card_budget_bytes_per_day",
        "/wear/budget/bytesPerDay",
        "Bytes a day for work that can wait; missing if there is no bound",
    ),
    gauge("card_written_bytes_today", "/wear/budget/writtenToday", "Bytes of it written today"),
    by(
        At::Word("state", "/clock/state", clock_states),
        "clock_state",
        "1 for the state of the clock",
    ),
    gauge(
        "clock_offset_seconds",
        "/clock/offsetSeconds",
        "Seconds that the machine's clock is ahead of the store's",
    ),
    gauge("clock_to_correct", "/clock/toCorrect", "Memories whose date is still to be corrected"),
    counter("clock_corrected", "/clock/corrected", "Memories whose date was corrected"),
    gauge("queue_requests", "/queue/waiting", "Changes that wait for the card"),
    gauge("queue_capacity", "/queue/capacity", "Changes that may wait"),
    gauge("queue_bytes", "/queue/bytes", "Bytes of the changes that wait"),
    counter("rejected", "/rejected", "Requests that were refused"),
    counter("unreadable", "/unreadable", "Reads that the card failed"),
    gauge("zenoh_queries", "/network/queries", "Queries over Zenoh that are under way"),
    counter("zenoh_dropped", "/network/dropped", "Queries over Zenoh without their whole answer"),
];

/// Measures of the status that a function gives.
pub(super) struct Figures {
    status: Box<dyn Fn() -> Value + Send + Sync>,
}

impl Figures {
    /// Measures of the status that `status` gives at each request.
    pub(super) fn of(status: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        Self { status: Box::new(status) }
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Figures")
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let status = (self.status)();
        for figure in &FIGURES {
            figure.encode(&status, &mut encoder)?;
        }
        let version = status.get("version").and_then(Value::as_str).unwrap_or_default();
        let labels = [("version", version)];
        let help = "The version of the daemon";
        encoder.encode_descriptor("build", help, None, MetricType::Info)?.encode_info(&labels)
    }
}

impl Figure {
    /// Returns the name as the text has it.
    #[cfg(test)]
    pub(super) fn full_name(&self) -> String {
        format!("omird_{}{}", self.name, if self.is_total { "_total" } else { "" })
    }

    fn encode(&self, status: &Value, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = if self.is_total { MetricType::Counter } else { MetricType::Gauge };
        match self.at {
            At::One(at) => {
                let Some(value) = status.pointer(at).and_then(number) else { return Ok(()) };
                let metric = encoder.encode_descriptor(self.name, self.help, None, kind)?;
                self.encode_value(value, metric)
            }
            At::Each(label, at) => {
                let Some(all) = status.pointer(at).and_then(Value::as_object) else {
                    return Ok(());
                };
                let mut metric = encoder.encode_descriptor(self.name, self.help, None, kind)?;
                for (name, value) in all.iter() {
                    let Some(value) = number(value) else { continue };
                    self.encode_value(value, metric.encode_family(&[(label, name)])?)?;
                }
                Ok(())
            }
            At::Word(label, at, words) => {
                let Some(holds) = status.pointer(at).and_then(Value::as_str) else { return Ok(()) };
                let mut metric = encoder.encode_descriptor(self.name, self.help, None, kind)?;
                for word in words() {
                    let value = if word == holds { 1.0 } else { 0.0 };
                    self.encode_value(value, metric.encode_family(&[(label, word)])?)?;
                }
                Ok(())
            }
        }
    }

    fn encode_value(&self, value: f64, metric: MetricEncoder<'_>) -> fmt::Result {
        if self.is_total {
            ConstCounter::new(value).encode(metric)
        } else {
            ConstGauge::new(value).encode(metric)
        }
    }
}

/// Integers above 2^53 lose their last digits, as all numbers of Prometheus do.
fn number(value: &Value) -> Option<f64> {
    value.as_bool().map(|holds| if holds { 1.0 } else { 0.0 }).or_else(|| value.as_f64())
}
