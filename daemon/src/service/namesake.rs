//! Whether another daemon goes by the same name: both do what is asked of it, and either answers. What it announces
//! tells, for whatever is asked of the name makes both announce.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use omir_core::instant::Timestamp;
use zenoh::Wait;
use zenoh::pubsub::Subscriber;
use zenoh::sample::Locality;

use super::keys::Keys;
use crate::engine::Engine;

/// How often it is said in the log.
const SAID_EVERY: Duration = Duration::from_secs(3600);

#[derive(Default)]
struct Heard {
    at: Option<Timestamp>,
    said: Option<Instant>,
}

/// Listens for the events of others under the name in `keys`, and tells of them: in the log, and in `status` as
/// `namesakeHeard`.
pub(super) fn watch(
    session: &zenoh::Session,
    keys: &Keys,
    engine: &Engine,
) -> zenoh::Result<Subscriber<()>> {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let (told, clock) = (heard.clone(), engine.clone());
    let name = keys.robot().to_owned();
    engine.tell_of(
        "namesakeHeard",
        Box::new(move || {
            let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.at.map(|at| at.to_string().into())
        }),
    );
    session
        .declare_subscriber(keys.operation("event/**"))
        .allowed_origin(Locality::Remote)
        .callback(move |sample| {
            // What is put on a wildcard is nobody's event.
            if sample.key_expr().is_wild() {
                return;
            }
            let mut heard = told.lock().unwrap_or_else(PoisonError::into_inner);
            heard.at = Some(clock.now().0);
            if heard.said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
                heard.said = Some(Instant::now());
                tracing::warn!(
                    robot = name,
                    "somebody else announces under this robot's name: another omird, which does what this one is \
                     asked, and answers for it; give each a name of its own (robot, or --robot)"
                );
            }
        })
        .wait()
}
