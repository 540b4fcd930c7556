//! Simulated time: the player of a simulation or a recording puts it on `omir/<robot>/clock`.

use std::sync::Arc;

use zenoh::Wait;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;

use super::Context;
use super::identity::{ZENOH, identified};
use super::keys::Keys;
use crate::engine::Error;
use crate::protocols::Protocols;
use crate::protocols::omir::{CLOCK, instant};
use crate::router::{Caller, Incoming, worded};

/// Sets the time of the simulation with every PUT on its key.
pub(super) fn follow(
    session: &zenoh::Session,
    keys: &Keys,
    context: Arc<Context>,
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
            let Protocols { access, router, omir, .. } = &context.protocols;
            let admitted = match identified(access, sample.attachment()) {
                Ok(caller) => router.admit(&caller, &CLOCK, incoming),
                Err(refusal) => {
                    let unknown = Caller::unknown(ZENOH);
                    router.refuse(&unknown, &CLOCK, incoming.bytes, refusal.code());
                    Err(refusal)
                }
            };
            let admitted = match admitted {
                Ok(admitted) => admitted,
                Err(refusal) => {
                    // The audit line names the client; one that sends a thousand a second does not fill the log here.
                    tracing::debug!(key, why = %worded(refusal), "the time is not set");
                    return;
                }
            };
            let at = instant(&sample.payload().to_bytes()).map_err(Error::from);
            if let Err(error) = omir.set_time(admitted, at) {
                tracing::warn!(key, why = error.message, "the time is not set");
            }
        })
        .wait()
}
