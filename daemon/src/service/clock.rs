//! Simulated time: whoever plays a simulation or a recording back puts it on `omir/<robot>/clock`.

use std::sync::Arc;

use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::value::Value;
use zenoh::Wait;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;

use super::Context;
use super::keys::Keys;
use crate::clock::SimulatedClock;
use crate::error::Code;
use crate::protocols::omir::{CLOCK, worded};
use crate::router::Incoming;

/// Sets `clock` with every PUT on its key.
pub(super) fn set_by(
    session: &zenoh::Session,
    keys: &Keys,
    context: Arc<Context>,
    clock: Arc<SimulatedClock>,
) -> zenoh::Result<Subscriber<()>> {
    let key = keys.operation("clock");
    session
        .declare_subscriber(key.clone())
        .callback(move |sample| {
            // Only the exact key is meant: what is put on `omir/**` or `omir/*/clock` sets no clock.
            if sample.kind() != SampleKind::Put || sample.key_expr().as_str() != key {
                return;
            }
            let incoming = Incoming { bytes: sample.payload().len(), ..Incoming::default() };
            let admitted = match context.protocols.router.admit(&context.caller, &CLOCK, incoming) {
                Ok(admitted) => admitted,
                Err(refusal) => {
                    tracing::warn!(key, why = %worded(refusal), "the time is not set");
                    return;
                }
            };
            match instant(&sample.payload().to_bytes()) {
                Ok(at) => {
                    clock.set(at);
                    admitted.done();
                }
                Err(why) => {
                    admitted.failed(Code::InvalidQuery);
                    tracing::warn!(key, why, "the time is not set");
                }
            }
        })
        .wait()
}

/// An RFC 3339 instant, as text or as a JSON string, or seconds since 1970 as a JSON number.
fn instant(payload: &[u8]) -> Result<Timestamp, String> {
    let expected = "expected an instant such as 2026-05-30T11:42:05Z, or seconds since 1970";
    let limits = Limits { max_bytes: 128, max_depth: 1, max_items: 1 };
    let text = match json::from_slice(payload, &limits) {
        Ok(Value::Number(seconds)) => {
            let micros = (seconds.as_f64() * 1e6).round();
            // Within the years that RFC 3339 can write.
            let range = -62_167_219_200_000_000.0..=253_402_300_799_000_000.0;
            if !range.contains(&micros) {
                return Err(format!("{seconds} is out of range: {expected}"));
            }
            return Ok(Timestamp::from_micros(micros as i64));
        }
        Ok(Value::Text(text)) => text,
        _ => std::str::from_utf8(payload).unwrap_or_default().trim().to_owned(),
    };
    Timestamp::parse(&text).map_err(|error| format!("{text:?}: {error}; {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_each_of_its_forms() {
        let at = Timestamp::parse("2026-05-30T11:42:05Z").unwrap();
        for text in ["2026-05-30T11:42:05Z", "\"2026-05-30T13:42:05+02:00\"", "1780141325"] {
            assert_eq!(instant(text.as_bytes()), Ok(at), "{text}");
        }
        assert_eq!(instant(b"12.25"), Ok(Timestamp::from_micros(12_250_000)));
        for text in ["", "soon", "1e300", "[1]", "\"2026\"", "\u{1}"] {
            assert!(instant(text.as_bytes()).is_err_and(|why| why.contains("expected")), "{text}");
        }
    }
}
