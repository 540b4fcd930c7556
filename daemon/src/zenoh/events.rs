//! Announces what was committed, and what was refused without anyone waiting for an answer. Invariant 38 of ARCHITECTURE.md.

use crate::router::{Announcement, error_value};
use omir_core::event::EventKind;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};
use omird_access::Access;
use zenoh::Wait;
use zenoh::bytes::Encoding;

use super::keys::Keys;
use crate::engine::{Code, Error, Event, RotFinding};

/// The way out for events.
#[derive(Clone)]
pub(super) struct Publisher {
    session: zenoh::Session,
    keys: Keys,
    access: Access,
}

impl Publisher {
    pub(super) fn new(session: zenoh::Session, keys: Keys, access: Access) -> Self {
        Self { session, keys, access }
    }

    /// Returns true if subscribers that hear of a memory must ask for it, with a token: Zenoh does not identify
    /// subscribers.
    fn tells_only_references(&self) -> bool {
        self.access.is_required()
    }

    /// Announces a change after its commit.
    pub(super) fn publish(&self, event: &Event) {
        let target = &event.target;
        let key = self.keys.event(event.kind, target.kind.as_str(), target.id.as_str());
        if self.tells_only_references() {
            return self.put(&key, cbor::to_vec(&reference_of(target)), None);
        }
        let attachment = event.cause.as_ref().map(|cause| json::to_string(&cause.to_value()));
        self.put(&key, event.payload().into_owned(), attachment);
    }

    /// Announces that what was put or deleted on `key` was refused.
    pub(super) fn rejected(&self, key: &str, error: &Error) {
        let (of, id) = self.keys.parts(key);
        let key =
            self.keys.event(EventKind::Rejected, of.unwrap_or("unknown"), id.unwrap_or("unknown"));
        if self.tells_only_references() && error.code != Code::Unauthenticated {
            // A message may quote what was sent, or what is stored.
            let message = "a token is required here, so the reason is told in no event";
            let error = Error::new(error.code, message);
            return self.put(&key, cbor::to_vec(&error_value(&error)), None);
        }
        self.put(&key, cbor::to_vec(&error_value(error)), None);
    }

    /// Announces what became of a file that was found damaged.
    pub(super) fn found(&self, finding: &RotFinding) {
        let (of, name) = finding.file.rsplit_once('/').unwrap_or(("unknown", &finding.file));
        let key = self.keys.event(finding.kind, of, name);
        let mut map = Map::new();
        map.insert("file", finding.file.as_str());
        if !self.tells_only_references() {
            map.insert("message", finding.message.as_str());
        }
        self.put(&key, cbor::to_vec(&Value::Object(map)), None);
    }

    /// Sends what a protocol announces.
    pub(super) fn announce(&self, announcement: &Announcement) {
        let Announcement { key, body, reference } = announcement;
        let payload = if self.tells_only_references() { reference } else { body };
        let key = self.keys.operation(key);
        let put = self.session.put(&key, payload.clone()).encoding(Encoding::APPLICATION_JSON);
        log_failure(put.wait(), &key);
    }

    fn put(&self, key: &str, payload: Vec<u8>, attachment: Option<String>) {
        let put = self.session.put(key, payload).encoding(Encoding::APPLICATION_CBOR);
        log_failure(put.attachment(attachment).wait(), key);
    }
}

fn log_failure(put: zenoh::Result<()>, key: &str) {
    if let Err(error) = put {
        tracing::debug!(%error, key, "an event could not be published");
    }
}

/// Returns `{"ref"}`.
fn reference_of(target: &Ref) -> Value {
    let mut map = Map::new();
    map.insert("ref", target.to_string());
    Value::Object(map)
}
