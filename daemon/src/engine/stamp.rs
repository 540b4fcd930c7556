//! The `meta` of what we produce (spec: Conformance, producers): release, source, maturity, and the
//! robotics profile where it is met.
//!
//! What a client sends whole is stored as it came. The daemon stamps what it completed itself, and
//! in an export what has no `meta`; there it also says when the version was recorded. So an export
//! tells for itself where each memory comes from, and still comes back as no change: a stamp of
//! ours beside none is no difference (ARCHITECTURE, invariant 13).

use std::sync::LazyLock;

use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Meta, Resource};
use omir_core::number::Number;
use omir_core::profile::{self, Profile, ROBOTICS};
use omir_core::reference::ResourceType;
use omir_core::value::Value;

/// What the source of every stamp of ours begins with, whatever the version.
const SOURCE: &str = "omird/";

/// Maturity of a resource type in R1 (spec: Design Principles §4).
fn maturity(kind: ResourceType) -> u64 {
    if kind == ResourceType::MemoryRecord { 4 } else { 3 }
}

/// The profiles that a resource of ours claims: that for robots, where it is met.
pub fn profiles(resource: &Value) -> Option<Vec<String>> {
    static BUILTIN: LazyLock<Vec<Profile>> = LazyLock::new(profile::builtin);
    let robotics = BUILTIN.iter().find(|profile| profile.url == ROBOTICS)?;
    robotics.is_met_by(resource).then(|| vec![ROBOTICS.to_owned()])
}

/// The `meta` of a resource made by `source`, which is written `name/version`.
pub fn meta(kind: ResourceType, profile: Option<Vec<String>>, source: &str) -> Meta {
    Meta {
        profile,
        source: Some(source.to_owned()),
        maturity: Some(Number::from(maturity(kind))),
        ..Meta::r1()
    }
}

/// Stamps a resource that has no `meta`, saying when it was recorded.
pub fn export(resource: &mut Resource, recorded: Timestamp) {
    if resource.meta().is_none() {
        let profiles = profiles(&resource.to_value());
        let mut meta = meta(resource.resource_type(), profiles, crate::PRODUCER);
        meta.last_updated = Some(Instant::from(recorded));
        *resource.meta_mut() = Some(meta);
    }
}

/// Takes away a `meta` that is exactly a stamp of ours, of any version and time.
pub fn strip(resource: &mut Resource) {
    if resource.meta().is_some_and(|meta| is_stamp(resource, meta)) {
        *resource.meta_mut() = None;
    }
}

fn is_stamp(resource: &Resource, found: &Meta) -> bool {
    let Some(source) = found.source.as_deref().filter(|source| source.starts_with(SOURCE)) else {
        return false;
    };
    let found = Meta { last_updated: None, ..found.clone() };
    found == meta(resource.resource_type(), profiles(&resource.to_value()), source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PRODUCER;
    use omir_core::decode::Limits;

    fn resource(json: &str) -> Resource {
        let value = omir_core::json::from_slice(json.as_bytes(), &Limits::default()).unwrap();
        Resource::from_value(value).unwrap()
    }

    fn record(more: &str) -> Resource {
        resource(&format!(
            r#"{{"resourceType":"MemoryRecord","id":"a","content":"x",
            "createdAt":"2026-05-30T11:42:05Z"{more}}}"#
        ))
    }

    fn stamped(mut resource: Resource) -> Value {
        export(&mut resource, Timestamp::from_unix(1_780_000_000, 0));
        resource.to_value().get("meta").cloned().unwrap()
    }

    #[test]
    fn the_profile_is_claimed_only_where_it_is_met() {
        let claims = |resource| {
            let meta = stamped(resource);
            assert_eq!(meta.get("source").and_then(Value::as_str), Some(PRODUCER));
            assert!(meta.get("lastUpdated").is_some());
            let profile = meta.pointer("/profile/0").and_then(Value::as_str).map(str::to_owned);
            (meta.get("maturity").and_then(Value::as_u64), profile.as_deref() == Some(ROBOTICS))
        };
        let pose = r#""extension":[{"url":"https://omir.io/spec/R1/extension/spatial-pose",
            "valueJson":{"frame":"map","position":[1,2,3]}}]"#;
        assert_eq!(claims(record("")), (Some(4), false));
        assert_eq!(claims(record(r#","eventTime":"2026-05-30T11:42:05Z""#)), (Some(4), true));
        let place = |more: &str| {
            resource(&format!(
                r#"{{"resourceType":"Entity","id":"e","name":"e","labels":["location"]{more}}}"#
            ))
        };
        assert_eq!(claims(place("")), (Some(3), false));
        assert_eq!(claims(place(&format!(",{pose}"))), (Some(3), true));
        let edge = resource(
            r#"{"resourceType":"Relationship","id":"r","relationType":"near",
            "from":{"ref":"Entity/a"},"to":{"ref":"Entity/b"}}"#,
        );
        // The profile says nothing of relationships, so meeting it means nothing.
        assert_eq!(claims(edge), (Some(3), false));
    }

    #[test]
    fn only_a_stamp_of_ours_is_taken_away() {
        let is_gone = |meta: &str| {
            let mut resource =
                record(&format!(r#","eventTime":"2026-05-30T11:42:05Z","meta":{meta}"#));
            strip(&mut resource);
            resource.meta().is_none()
        };
        let ours = |source: &str, more: &str| {
            format!(
                r#"{{"omirVersion":"R1","profile":["{ROBOTICS}"],"source":"{source}","maturity":4{more}}}"#
            )
        };
        assert!(is_gone(&ours("omird/0.1.0", "")));
        assert!(is_gone(&ours("omird/7", r#","lastUpdated":"2020-01-01T00:00:00Z""#)));
        assert!(!is_gone(&ours("omir/0.1.0", "")), "the tool is another");
        assert!(!is_gone(&ours("omird/0.1.0", r#","createdAt":"2020-01-01T00:00:00Z""#)));
        assert!(!is_gone(r#"{"omirVersion":"R1","source":"omird/0.1.0","maturity":4}"#));
        assert!(!is_gone(r#"{"omirVersion":"R1"}"#));
    }

    #[test]
    fn what_has_a_meta_keeps_it() {
        let mut known = record(r#","meta":{"omirVersion":"R1","profile":["https://x.example/p"]}"#);
        let before = known.clone();
        export(&mut known, Timestamp::from_unix(0, 0));
        assert_eq!(known, before);
    }
}
