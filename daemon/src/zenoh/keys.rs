//! The keys of `docs/keys.md`. Invariant 12 of ARCHITECTURE.md.

use omir_core::event::EventKind;
use omir_core::reference::{Id, Ref};

use crate::engine::{Code, Error};

/// The keys of one robot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    base: String,
    robot: String,
}

impl Keys {
    /// The keys of `robot` under `prefix`, both already checked by the configuration.
    pub fn new(prefix: &str, robot: &str) -> Self {
        Self { base: format!("{prefix}/{robot}"), robot: robot.to_owned() }
    }

    /// The robot's name.
    pub fn robot(&self) -> &str {
        &self.robot
    }

    /// `omir/<robot>/<name>`.
    pub fn operation(&self, name: &str) -> String {
        format!("{}/{name}", self.base)
    }

    /// Checks that a key expression is that of an operation and of this robot alone.
    ///
    /// # Errors
    /// `INVALID_QUERY` that names the key to use.
    pub fn expect_exactly(&self, name: &str, key: &str) -> Result<(), Error> {
        let exact = self.operation(name);
        if key == exact {
            return Ok(());
        }
        let message = format!(
            "{key}: {name} changes something, and answers to the exact name of a robot only: ask {exact}"
        );
        Err(Error::new(Code::InvalidQuery, message))
    }

    /// Returns the part of a key below this robot's memory, if it names the robot exactly.
    pub fn below_memory<'k>(&self, key: &'k str) -> Option<&'k str> {
        key.strip_prefix(&self.base)?.strip_prefix("/memory/")
    }

    /// The key of a resource.
    pub fn memory(&self, reference: &Ref) -> String {
        format!("{}/memory/{reference}", self.base)
    }

    /// Every resource.
    pub fn all_memory(&self) -> String {
        self.operation("memory/**")
    }

    /// The key of an event. What is not known of the resource is `unknown`.
    pub fn event(&self, kind: EventKind, of: &str, id: &str) -> String {
        format!("{}/event/{kind}/{of}/{id}", self.base)
    }

    /// The events of every robot, as a client that watches all of them subscribes.
    pub fn event_of_any(&self) -> String {
        let prefix = self.base.strip_suffix(&self.robot).unwrap_or_default();
        format!("{prefix}*/event/**")
    }

    /// The liveliness token.
    pub fn alive(&self) -> String {
        self.operation("alive")
    }

    /// The type and id a memory key names, as far as it does: for the key of a rejected event.
    pub fn parts<'k>(&self, key: &'k str) -> (Option<&'k str>, Option<&'k str>) {
        let rest = self.below_memory(key).unwrap_or_default();
        let (of, id) = rest.split_once('/').unwrap_or((rest, ""));
        let of = of.parse::<omir_core::reference::ResourceType>().is_ok().then_some(of);
        (of, Id::new(id).is_ok().then_some(id))
    }

    /// The resource a memory key names, if it names exactly one.
    pub fn reference(&self, key: &str) -> Option<Ref> {
        self.below_memory(key)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_page() {
        let keys = Keys::new("omir", "r1");
        let dock: Ref = "Entity/dock".parse().unwrap();
        assert_eq!(keys.memory(&dock), "omir/r1/memory/Entity/dock");
        assert_eq!(
            keys.event(EventKind::Recorded, "Entity", "dock"),
            "omir/r1/event/recorded/Entity/dock"
        );
        assert_eq!(keys.event_of_any(), "omir/*/event/**");
        assert_eq!(keys.reference("omir/r1/memory/Entity/dock"), Some(dock));
        assert_eq!(keys.reference("omir/r1/memory/Entity/*"), None);
        assert_eq!(keys.parts("omir/r1/memory/Thing/a b"), (None, None));
        assert_eq!(keys.parts("omir/r1/memory/Entity/a/b"), (Some("Entity"), None));
    }

    #[test]
    fn only_the_exact_name_is_exact() {
        let keys = Keys::new("omir", "r1");
        assert!(keys.expect_exactly("forget", "omir/r1/forget").is_ok());
        for wide in ["omir/*/forget", "**/forget", "omir/r$*/forget", "omir/r1/**"] {
            let error = keys.expect_exactly("forget", wide).unwrap_err();
            assert!(error.message.ends_with("ask omir/r1/forget"), "{error}");
        }
        assert_eq!(keys.below_memory("omir/r1/memory/**"), Some("**"));
        assert_eq!(keys.below_memory("omir/*/memory/**"), None);
    }
}
