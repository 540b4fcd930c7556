//! Notifications as announcements, for transports whose listeners are unknown.

use omir_core::json;
use omir_core::value::{Map, Value};
use omird_router::{Announcement, DEFAULT_TENANT};

use crate::push::Push;

/// The chunk of a key for what is of no session.
const NO_SESSION: &str = "-";

/// Returns the announcement of a notification. There is none of what is of another tenant: keys are everybody's.
pub(crate) fn announcement(push: &Push) -> Option<Announcement> {
    if &*push.tenant != DEFAULT_TENANT {
        return None;
    }
    let session = push.session.as_deref().map_or_else(|| NO_SESSION.to_owned(), chunk);
    let mut reference = Map::new();
    reference.insert("subscription_id", &*push.subscription);
    reference.insert("event", push.event);
    reference.insert("epoch", push.epoch);
    Some(Announcement {
        key: format!("akashik/event/{session}/{}", push.event),
        body: push.open_body.as_bytes().to_vec(),
        reference: json::to_string(&Value::Object(reference)).into_bytes(),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_one_chunk() {
        assert_eq!(chunk("session-7"), "session-7");
        assert_eq!(chunk(NO_SESSION), "%2d");
        assert_eq!(chunk("a/b *?$#"), "a%2fb%20%2a%3f%24%23");
    }

    #[test]
    fn only_what_is_of_the_default_tenant_is_announced() {
        let push = |tenant: &str| Push {
            tenant: tenant.into(),
            agent_id: "a".into(),
            session: None,
            event: "unit.recorded",
            epoch: 7,
            subscription: "s-1".into(),
            body: "{}".into(),
            open_body: r#"{"open":true}"#.into(),
        };
        assert_eq!(announcement(&push("other")), None);
        let told = announcement(&push(DEFAULT_TENANT)).unwrap();
        assert_eq!(told.key, "akashik/event/-/unit.recorded");
        assert_eq!(told.body, br#"{"open":true}"#);
        let bare = br#"{"subscription_id":"s-1","event":"unit.recorded","epoch":7}"#;
        assert_eq!(told.reference, bare, "nothing of a content");
    }
}
