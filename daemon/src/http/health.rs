//! Signs of life for monitors outside: no token is needed, and nothing is said but whether it works.
//!
//! `/health/live` is answered by a process that answers at all. `/health/ready` is on proof: the writer has dealt with a message,
//! a reading thread has read what is stored, and the card takes what is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use omir_core::json;
use omir_core::value::{Map, Value};
use tokio::sync::Mutex;

use super::refused::content_type;
use crate::engine::{CardState, Encoding};
use crate::liveness::Liveness;

/// Longest wait for a proof.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for which a look is good: a client that asks more often, without a token, causes no more work.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Looks whether the daemon is ready.
pub(super) struct Health {
    liveness: Liveness,
    card: Arc<dyn Fn() -> CardState + Send + Sync>,
    /// The last look. A request that comes meanwhile waits for the look under way.
    last: Mutex<Option<(Instant, Vec<String>)>>,
}

impl Health {
    /// Asks these threads for signs of life, and `card` for the state of the card.
    pub(super) fn new(
        liveness: Liveness,
        card: impl Fn() -> CardState + Send + Sync + 'static,
    ) -> Self {
        Self { liveness, card: Arc::new(card), last: Mutex::default() }
    }

    /// Returns why the daemon is not ready; nothing if it is.
    pub(super) async fn reasons(&self) -> Vec<String> {
        let mut last = self.last.lock().await;
        if let Some((at, reasons)) = &*last
            && at.elapsed() < GOOD_FOR
        {
            return reasons.clone();
        }
        let (liveness, card) = (self.liveness.clone(), self.card.clone());
        let look = tokio::task::spawn_blocking(move || {
            let silent = liveness.silent(Instant::now() + PATIENCE, &crossbeam_channel::never());
            let silent = silent.unwrap_or_default().into_iter();
            let silent = silent.map(|name| format!("no sign of life from {name}"));
            let card = Some(card()).filter(|state| state.is_unfit());
            silent.chain(card.map(|state| format!("the card is {}", state.as_str()))).collect()
        });
        // The look does not even begin if all threads that may wait hang.
        let reasons = match tokio::time::timeout(2 * PATIENCE, look).await {
            Ok(Ok(reasons)) => reasons,
            Ok(Err(_)) => vec!["a bug ended the look".to_owned()],
            Err(_) => vec!["no sign of life from the threads that answer HTTP".to_owned()],
        };
        *last = Some((Instant::now(), reasons.clone()));
        reasons
    }
}

/// Answers `/health/live`.
pub(super) fn live() -> Response {
    said("live", Vec::new())
}

/// Answers `/health/ready`.
pub(super) async fn ready(health: &Health) -> Response {
    let reasons = health.reasons().await;
    if reasons.is_empty() {
        return said("ready", reasons);
    }
    (StatusCode::SERVICE_UNAVAILABLE, said("unready", reasons)).into_response()
}

fn said(status: &str, reasons: Vec<String>) -> Response {
    let mut map = Map::new();
    map.insert("status", status);
    map.insert("reasons", reasons);
    let text = json::to_string(&Value::Object(map));
    ([(CONTENT_TYPE, content_type(Encoding::Json))], text).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::liveness::Probe;

    fn health(is_silent: Arc<AtomicBool>, asked: Arc<AtomicUsize>, card: CardState) -> Health {
        let probe: Probe = Box::new(move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            let (sign, given) = crossbeam_channel::bounded(1);
            if !is_silent.load(Ordering::Relaxed) {
                sign.send(()).unwrap();
            }
            given
        });
        Health::new(Liveness::new(vec![("the writer", probe)]), move || card)
    }

    #[tokio::test]
    async fn who_is_silent_makes_it_unready_and_a_look_is_good_for_a_while() {
        let (is_silent, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let health = health(is_silent.clone(), asked.clone(), CardState::Full);
        assert_eq!(health.reasons().await, ["no sign of life from the writer"]);
        is_silent.store(false, Ordering::Relaxed);
        // A thousand requests cause one look.
        for _ in 0..1000 {
            health.reasons().await;
        }
        assert!(asked.load(Ordering::Relaxed) <= 2);
        tokio::time::sleep(GOOD_FOR).await;
        assert!(health.reasons().await.is_empty());
        assert_eq!(ready(&health).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_card_that_takes_nothing_makes_it_unready() {
        let health = health(Arc::default(), Arc::default(), CardState::Gone);
        assert_eq!(health.reasons().await, ["the card is gone"]);
        assert_eq!(ready(&health).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(live().status(), StatusCode::OK);
    }
}
