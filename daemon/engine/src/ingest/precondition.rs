//! Conditions on a write: "only if absent" and "only if the version is n".
//!
//! A condition belongs to one resource of a change ([`Prepared::precondition`]) and is checked while
//! the change is planned, on the writer's thread. Of two writes with the same condition that come in at
//! once, one succeeds and the other is a `CONFLICT`.
//!
//! [`Prepared::precondition`]: crate::ingest::request::Prepared::precondition

use omir_core::reference::Ref;
use omird_store::RefKey;

use crate::error::{Code, Error};
use crate::index::catalog::Catalog;

/// A condition that the stored state of a name must meet, or nothing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precondition {
    /// No condition.
    #[default]
    None,
    /// Nothing lives under the name: it was never used, or what bore it was forgotten.
    Absent,
    /// Something lives under the name, whichever version it is.
    Live,
    /// The newest version has this number, and was not forgotten.
    Version(u64),
}

/// The newest state of a name, as far as the store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is known under the name.
    Unknown,
    /// A version lives, even if the card has lost its bytes.
    Live(u64),
    /// The newest version is a tombstone.
    Forgotten(u64),
}

impl State {
    fn of(catalog: &Catalog, key: &RefKey) -> Self {
        match (catalog.losses.of(key), catalog.head(key)) {
            (Some(lost), None) if lost.is_presumed => Self::Unknown,
            (Some(lost), _) if !lost.is_forgotten => Self::Live(lost.stamp.version),
            (_, Some(head)) if head.live => Self::Live(head.version),
            (Some(lost), _) => Self::Forgotten(lost.stamp.version),
            (None, Some(head)) => Self::Forgotten(head.version),
            (None, None) => Self::Unknown,
        }
    }
}

impl Precondition {
    /// Checks the condition against the newest state of `target`. `pointer` is where its resource
    /// stands in the request.
    ///
    /// # Errors
    /// `CONFLICT` if the condition is not met. The message says what is stored.
    pub(crate) fn check(self, catalog: &Catalog, target: &Ref, pointer: &str) -> Result<(), Error> {
        let state = State::of(catalog, &RefKey::of(target));
        let (member, message) = match (self, state) {
            (Self::None, _) | (Self::Absent, State::Unknown | State::Forgotten(_)) => return Ok(()),
            (Self::Version(expected), State::Live(version)) if expected == version => return Ok(()),
            (Self::Live, State::Live(_)) => return Ok(()),
            (Self::Live, State::Unknown | State::Forgotten(_)) => {
                ("id", format!("{target} is not stored, so there is nothing to update"))
            }
            (Self::Absent, State::Live(version)) => (
                "id",
                format!(
                    "{target} is stored already, as version {version}; to change it, send it with \
                     `ifVersion={version}` instead of `ifAbsent`"
                ),
            ),
            (Self::Version(expected), State::Live(version)) => (
                "version",
                format!(
                    "{target} is version {version}, not {expected}; get it, apply the change to that, \
                     and send it with `ifVersion={version}`"
                ),
            ),
            (Self::Version(expected), State::Forgotten(version)) => (
                "version",
                format!(
                    "{target} was forgotten (version {version} is its tombstone), so it is not version \
                     {expected}; to store it again, send it with `ifAbsent`"
                ),
            ),
            (Self::Version(expected), State::Unknown) => (
                "version",
                format!(
                    "{target} is not stored, so it is not version {expected}; to store it, send it \
                     with `ifAbsent`"
                ),
            ),
        };
        Err(Error::at(Code::Conflict, format!("{pointer}/{member}"), message))
    }
}
