//! The `meta` of what we produce (spec: Conformance, producers): release, source, maturity, and the
//! robotics profile where it is met.
//!
//! What a client sends whole is stored as it came. The daemon stamps what it completed itself, and
//! in an export what has no `meta`; there every stamp of ours also says when the version was
//! recorded, by which another store can tell which is newer. So an export tells for itself where
//! each memory comes from, and still comes back as no change: a stamp of ours beside none is no
//! difference (invariant 13 of ARCHITECTURE.md).

use std::sync::LazyLock;

use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Meta, Resource};
use omir_core::number::Number;
use omir_core::profile::{self, Profile, ROBOTICS};
use omir_core::reference::ResourceType;
use omir_core::value::Value;

/// Beginning of the source of every stamp of ours, whatever the version.
const SOURCE: &str = "omird/";

/// Maturity of a resource type in R1 (spec: Design Principles §4).
fn maturity(kind: ResourceType) -> u64 {
    if kind == ResourceType::MemoryRecord { 4 } else { 3 }
}

/// The profiles that a resource of ours claims: that for robots, where it is met.
pub(crate) fn profiles(resource: &Value) -> Option<Vec<String>> {
    static BUILTIN: LazyLock<Vec<Profile>> = LazyLock::new(profile::builtin);
    let robotics = BUILTIN.iter().find(|profile| profile.url == ROBOTICS)?;
    robotics.is_met_by(resource).then(|| vec![ROBOTICS.to_owned()])
}

/// The `meta` of a resource made by `source`, which is written `name/version`.
pub(crate) fn meta(kind: ResourceType, profile: Option<Vec<String>>, source: &str) -> Meta {
    Meta {
        profile,
        source: Some(source.to_owned()),
        maturity: Some(Number::from(maturity(kind))),
        ..Meta::r1()
    }
}

/// Stamps a resource that has no `meta`, and says in a stamp of ours when it was recorded. A date
/// that the stamp has already came with an import and is kept: it was not updated since.
pub(crate) fn export(resource: &mut Resource, recorded: Timestamp) {
    if resource.meta().is_none() {
        let profiles = profiles(&resource.to_value());
        let meta = meta(resource.resource_type(), profiles, crate::PRODUCER);
        *resource.meta_mut() = Some(meta);
    }
    if let Some(meta) = stamp_of(resource) {
        meta.last_updated.get_or_insert_with(|| Instant::from(recorded));
    }
}

/// Takes the date out of a stamp of ours that `before` has as well: what changed after it was
/// recorded now.
pub(crate) fn undate(resource: &mut Resource, before: &Resource) {
    let dated = |resource: &Resource| resource.meta().and_then(|meta| meta.last_updated.clone());
    if dated(resource) == dated(before)
        && let Some(meta) = stamp_of(resource)
    {
        meta.last_updated = None;
    }
}

/// Takes away a `meta` that is exactly a stamp of ours, of any version and time.
pub(crate) fn strip(resource: &mut Resource) {
    if stamp_of(resource).is_some() {
        *resource.meta_mut() = None;
    }
}

/// Returns true if this was completed by omird, of any version.
pub(crate) fn is_completed(resource: &Resource) -> bool {
    let source = resource.meta().and_then(|meta| meta.source.as_deref());
    source.is_some_and(|source| source.starts_with(SOURCE))
}

/// The `meta` of a resource, if it is a stamp of ours. Whether the profile was claimed depends on
/// the rules of the version that made the stamp, so both are.
fn stamp_of(resource: &mut Resource) -> Option<&mut Meta> {
    let kind = resource.resource_type();
    let found = resource.meta_mut().as_mut()?;
    let source = found.source.as_deref().filter(|source| source.starts_with(SOURCE))?;
    let claims = found.profile.clone();
    if claims.as_ref().is_some_and(|claims| *claims != [ROBOTICS]) {
        return None;
    }
    let stamp = Meta { last_updated: found.last_updated.clone(), ..meta(kind, claims, source) };
    (*found == stamp).then_some(found)
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
        assert!(is_gone(r#"{"omirVersion":"R1","source":"omird/0.1.0","maturity":4}"#));
        let another = ours("omird/0.1.0", "").replace(ROBOTICS, "https://example.org/p");
        assert!(!is_gone(&another), "somebody claims more");
        assert!(!is_gone(r#"{"omirVersion":"R1","source":"omird/0.1.0","maturity":3}"#));
        assert!(!is_gone(r#"{"omirVersion":"R1"}"#));
    }

    #[test]
    fn a_stamp_of_ours_is_dated_once() {
        let recorded = Timestamp::from_unix(1_780_000_000, 0);
        let mut stamped = record("");
        *stamped.meta_mut() = Some(meta(ResourceType::MemoryRecord, None, PRODUCER));
        let undated = stamped.clone();
        export(&mut stamped, recorded);
        let dated = stamped.clone();
        assert_eq!(
            dated.meta().and_then(|meta| meta.last_updated.as_ref()).map(Instant::at),
            Some(recorded)
        );
        export(&mut stamped, Timestamp::from_unix(1_790_000_000, 0));
        assert_eq!(stamped, dated, "it says already when it was updated");
        undate(&mut stamped, &undated);
        assert_eq!(stamped, dated, "a date of its own");
        undate(&mut stamped, &dated);
        assert_eq!(stamped, undated);
    }

    #[test]
    fn what_has_a_meta_keeps_it() {
        let mut known = record(r#","meta":{"omirVersion":"R1","profile":["https://x.example/p"]}"#);
        let before = known.clone();
        export(&mut known, Timestamp::from_unix(0, 0));
        assert_eq!(known, before);
    }
}
