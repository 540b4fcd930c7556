//! Detects another daemon of the same name: both do what is asked of it, and either answers.
//!
//! An event under the name that this daemon did not publish raises the suspicion, for whatever is asked of the name
//! makes both announce; but every client that may publish can make one up. So the daemon asks the name for its status
//! then. It warns of another instance that answers in this robot's name.

use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::value::Value;
use parking_lot::Mutex;
use zenoh::Wait;
use zenoh::pubsub::Subscriber;
use zenoh::qos::CongestionControl;
use zenoh::query::{ConsolidationMode, QueryTarget, Reply};
use zenoh::sample::Locality;

use super::keys::Keys;
use crate::engine::Engine;

/// Time between two lines about it in the log.
const SAID_EVERY: Duration = Duration::from_secs(3600);
/// Time between two questions about the name, however many events there are.
const ASKED_EVERY: Duration = Duration::from_secs(2);

#[derive(Default)]
struct NamesakeState {
    at: Option<Timestamp>,
    said: Option<Instant>,
    asked: Option<Instant>,
}

/// Returns true if `every` has gone by since then, which is then now.
fn is_due(since: &mut Option<Instant>, every: Duration) -> bool {
    let is_due = since.is_none_or(|since| since.elapsed() >= every);
    if is_due {
        *since = Some(Instant::now());
    }
    is_due
}

/// Returns true if a status is that of another instance. An older daemon does not tell which it is, and is another.
fn is_another(reply: &Reply, instance: &str) -> bool {
    let Ok(sample) = reply.result() else { return false };
    let status = json::from_slice(&sample.payload().to_bytes(), &Limits::default());
    let told = status.as_ref().ok().and_then(|status| status.get("network")?.get("instance"));
    told.and_then(Value::as_str) != Some(instance)
}

/// Listens for the events of others under the name in `keys`, asks for their status, and tells of another instance than
/// `instance`: in the log, and in `status` as `namesakeHeard`.
pub(super) fn watch(
    session: &zenoh::Session,
    keys: &Keys,
    engine: &Engine,
    instance: &str,
) -> zenoh::Result<Subscriber<()>> {
    let heard = Arc::new(Mutex::new(NamesakeState::default()));
    let (suspected, told, clock) = (heard.clone(), heard.clone(), engine.clone());
    let name = keys.robot().to_owned();
    engine.add_status_section(
        "namesakeHeard",
        Box::new(move || {
            let heard = heard.lock();
            heard.at.map(|at| at.to_string().into())
        }),
    );
    let instance = instance.to_owned();
    let answered = Arc::new(move |reply: Reply| {
        if !is_another(&reply, &instance) {
            return;
        }
        let mut heard = told.lock();
        heard.at = Some(clock.now().0);
        if is_due(&mut heard.said, SAID_EVERY) {
            tracing::warn!(
                robot = name,
                "somebody else answers by this robot's name: another omird, which does what this one is asked; \
                 give each a name of its own (robot, or --robot)"
            );
        }
    });
    let (asking, status) = (session.clone(), keys.operation("status"));
    session
        .declare_subscriber(keys.operation("event/**"))
        .allowed_origin(Locality::Remote)
        .callback(move |sample| {
            // An event on a wildcard comes from no daemon.
            if sample.key_expr().is_wild() {
                return;
            }
            let mut heard = suspected.lock();
            if !is_due(&mut heard.asked, ASKED_EVERY) {
                return;
            }
            drop(heard);
            let answered = answered.clone();
            // On Zenoh's thread: it does not wait for a link that is busy.
            let asked = asking
                .get(&status)
                .target(QueryTarget::All)
                .consolidation(ConsolidationMode::None)
                .congestion_control(CongestionControl::Drop)
                .allowed_destination(Locality::Remote)
                .callback(move |reply| answered(reply))
                .wait();
            if let Err(error) = asked {
                tracing::debug!(%error, "who else announces cannot be asked");
            }
        })
        .wait()
}
