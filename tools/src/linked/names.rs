//! Names in RDF: the IRIs of resources, and what they stand on.

use omir_core::cbor;
use omir_core::reference::Id;
use omir_core::value::Value;
use oxrdf::NamedNode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

use super::LiftError;

/// Name of a Bundle without an id.
pub(super) const NAMELESS_BUNDLE: &str = "_:bundle";

/// Everything but the unreserved characters of RFC 3986 §2.3.
const KEY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The IRI that the name of every resource begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base(String);

impl Base {
    /// A base that the user chose.
    ///
    /// # Errors
    /// [`LiftError::Base`] for what is no absolute IRI, or does not end where a name may follow.
    pub fn new(text: &str) -> Result<Self, LiftError> {
        if !text.ends_with(['/', '#', ':']) {
            return Err(LiftError::Base(format!(
                "--base {text}: must end with /, # or :, because names such as Entity/kitchen are \
                 appended to it"
            )));
        }
        // Beyond "https://" a name would become a host.
        let sound = !text.ends_with("://") && NamedNode::new(format!("{text}Entity/x")).is_ok();
        if !sound {
            return Err(LiftError::Base(format!(
                "--base {text}: not an absolute IRI; write it as https://example.org/robot-7/"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// The base of a Bundle without a chosen one: its id, or else the digest of what it says, so that
    /// different Bundles do not meet by accident.
    #[must_use]
    pub fn of_bundle(document: &Value) -> Self {
        let own = match document.get("id").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => {
                let digest = Sha256::digest(cbor::to_vec(document));
                format!("sha256-{digest:x}")
            }
        };
        Self(format!("urn:omird:bundle:{own}:"))
    }

    /// The base as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The IRI of a resource. The characters of an id stand in an IRI as they are; only `.` and `..`,
    /// which mean "here" and "above" in a path (RFC 3986 §3.3), are escaped.
    pub(super) fn resource(&self, kind: &str, id: &Id) -> String {
        let base = &self.0;
        match id.as_str() {
            "." => format!("{base}{kind}/%2E"),
            ".." => format!("{base}{kind}/%2E%2E"),
            id => format!("{base}{kind}/{id}"),
        }
    }
}

/// The IRI of a name that is data, in a namespace: any text at all, and it comes back by
/// percent-decoding.
pub(super) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}{}", utf8_percent_encode(name, KEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_an_iri_of_its_own() {
        let base = Base::new("https://example.org/r/").unwrap();
        for (id, iri) in [
            ("john", "https://example.org/r/Entity/john"),
            ("a:b", "https://example.org/r/Entity/a:b"),
            (".", "https://example.org/r/Entity/%2E"),
            ("..", "https://example.org/r/Entity/%2E%2E"),
            ("...", "https://example.org/r/Entity/..."),
        ] {
            assert_eq!(base.resource("Entity", &Id::new(id).unwrap()), iri);
            assert!(NamedNode::new(iri).is_ok(), "{iri}");
        }
    }

    #[test]
    fn a_base_is_absolute_and_ends_where_a_name_may_follow() {
        for good in ["https://example.org/", "https://example.org/x#", "urn:x:y:", "tag:a,2026:"] {
            assert!(Base::new(good).is_ok(), "{good}");
        }
        for bad in ["", "/", ":", "robot/", "https://", "https://example.org", "urn:a b:", "a:<:"] {
            assert!(matches!(Base::new(bad), Err(LiftError::Base(_))), "{bad}");
        }
    }

    #[test]
    fn without_an_id_the_content_names() {
        let bundle = |id: Option<&str>| {
            let mut members = omir_core::value::Map::new();
            members.insert("resourceType", "Bundle");
            if let Some(id) = id {
                members.insert("id", id);
            }
            Base::of_bundle(&members.into())
        };
        assert_eq!(bundle(Some("a:b")).as_str(), "urn:omird:bundle:a:b:");
        let nameless = bundle(None);
        assert!(nameless.as_str().starts_with("urn:omird:bundle:sha256-"), "{nameless:?}");
        assert!(Base::new(nameless.as_str()).is_ok());
    }

    #[test]
    fn keys_come_back() {
        let iri = key("urn:omird:key:", "a b/ü%");
        assert_eq!(iri, "urn:omird:key:a%20b%2F%C3%BC%25");
        assert!(NamedNode::new(iri).is_ok());
        assert!(NamedNode::new(key("urn:omird:key:", "")).is_ok());
    }
}
