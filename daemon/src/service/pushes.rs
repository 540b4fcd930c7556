//! Notifications of Akashik below `omir/<robot>/akashik/event/`: a thread of its own puts them, so that a slow network holds up no field.

use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, TrySendError, bounded};
use omir_core::value::{Map, Value};
use omird_access::Access;
use zenoh::Wait;
use zenoh::bytes::Encoding;

use super::keys::Keys;
use crate::protocols::akashik::{Akashik, Listening, Push};
use crate::router::DEFAULT_TENANT;

/// The chunk of a key for what is of no session.
const NO_SESSION: &str = "-";
/// Notifications that wait for the network.
const MOST_WAITING: usize = 8192;

/// Carries notifications until it is dropped.
pub(super) struct Pushing {
    listening: Option<Listening>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Pushing {
    fn drop(&mut self) {
        // Without a listener nothing can come any more, and the thread ends.
        self.listening.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Pushing {
    /// Begins to carry.
    ///
    /// # Errors
    /// The machine has no thread.
    pub(super) fn start(
        session: zenoh::Session,
        keys: Keys,
        access: Access,
        akashik: &Akashik,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = bounded::<Push>(MOST_WAITING);
        let listening = akashik.pushes().listen(move |push| {
            // What is of another tenant does not go out: keys are everybody's.
            if &*push.tenant == DEFAULT_TENANT
                && let Err(TrySendError::Full(push)) = queue.try_send(push.clone())
            {
                tracing::warn!(
                    epoch = push.epoch,
                    "a notification is lost: the network is too slow"
                );
            }
        });
        let thread = std::thread::Builder::new()
            .name("akashik-push".to_owned())
            .spawn(move || carry(&session, &keys, &access, &waiting))?;
        Ok(Self { listening: Some(listening), thread: Some(thread) })
    }
}

fn carry(session: &zenoh::Session, keys: &Keys, access: &Access, waiting: &Receiver<Push>) {
    for push in waiting {
        let session_name = push.session.as_deref().map_or_else(|| NO_SESSION.to_owned(), chunk);
        let key = keys.operation(&format!("akashik/event/{session_name}/{}", push.event));
        // Zenoh does not identify subscribers: where a token is required, only that something happened is told.
        let body = if access.is_required() { bare(&push) } else { push.open_body.to_string() };
        let put = session.put(&key, body).encoding(Encoding::APPLICATION_JSON).wait();
        if let Err(error) = put {
            tracing::debug!(%error, key, "a notification could not be published");
        }
    }
}

/// Returns a name as one chunk of a key: what no key may hold is written as `%` and two digits, and so is a name that means none.
fn chunk(name: &str) -> String {
    if name == NO_SESSION {
        return "%2d".to_owned();
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.bytes()
        .map(
            |byte| {
                if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }
            },
        )
        .collect()
}

fn bare(push: &Push) -> String {
    let mut map = Map::new();
    map.insert("subscription_id", &*push.subscription);
    map.insert("event", push.event);
    map.insert("epoch", push.epoch);
    omir_core::json::to_string(&Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_one_chunk() {
        assert_eq!(chunk("session-7"), "session-7");
        assert_eq!(chunk(NO_SESSION), "%2d");
        assert_eq!(chunk("a/b *?$#"), "a%2fb%20%2a%3f%24%23");
    }
}
