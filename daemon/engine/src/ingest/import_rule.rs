//! The rule by which an import meets what is stored: which of two versions of a resource stays.
//!
//! The higher version wins where the file states one; only a MemoryRecord can. A store counts every
//! change it sees, so its number says nothing of a file that states none: then the later
//! `meta.lastUpdated` wins, as it does between equal versions and for all other types. A stored
//! resource that states no date of its own was last updated when it was recorded, and one in a file
//! that states none is not newer than anything. What was forgotten here comes back: a client that imports
//! a backup wants what is in it. Unless it comes from one who only hands over what it has, and does not
//! know what became of it here ([`Precedence::Remembered`]).
//!
//! The rule knows nothing but what the two sides claim, so importing twice changes nothing, and of
//! two files with different claims the same one wins in either order. Files that state no version
//! may come in any number and order. Two things limit that: a winner whose version is not above that
//! of the store gets the next number there, because versions only rise, and it is that number which
//! the next import with a number meets; and among three, of which some state a version and some do
//! not, there need not be one that wins against both others.

use std::cmp::Ordering;

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;

/// The winner where contents differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// The newer one, by the rule of this module.
    Newer,
    /// The newer one as well, but what was forgotten stays forgotten, and so does a reference to it.
    Remembered,
    /// Always the one in the file.
    File,
}

/// The effect of an import on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// It was not in the store.
    Added,
    /// It took the place of what was stored.
    Updated,
    /// It had been forgotten and is back.
    Restored,
    /// The stored version stayed; or a forgotten resource stays forgotten.
    Kept,
    /// Both are the same.
    Unchanged,
}

impl Merged {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Restored => "restored",
            Self::Kept => "kept",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Statements of one version of a resource about its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The version that its content states.
    version: Option<u64>,
    updated: Option<Timestamp>,
}

impl Claim {
    /// The claim of a resource in a file.
    pub(crate) fn of(resource: &Resource) -> Self {
        Self { version: stated_version(resource), updated: last_updated(resource) }
    }

    /// The claim of a stored resource. `is_stale` says that its date is that of an earlier version. A
    /// record that states no version was never changed here, so it is the first (OMIR R1,
    /// MemoryRecord.version).
    pub(crate) fn stored(resource: &Resource, recorded: Timestamp, is_stale: bool) -> Self {
        let stated = last_updated(resource).filter(|_| !is_stale);
        let is_record = matches!(resource, Resource::MemoryRecord(_));
        let version = stated_version(resource).or(is_record.then_some(1));
        Self { version, updated: Some(stated.unwrap_or(recorded)) }
    }

    /// The rule: what does not say when it was updated is older than what does.
    fn cmp(self, other: Self) -> Ordering {
        let versions = match (self.version, other.version) {
            (Some(version), Some(other)) => version.cmp(&other),
            _ => Ordering::Equal,
        };
        versions.then(self.updated.cmp(&other.updated))
    }
}

/// Returns the version that a resource states; only records can.
pub(crate) fn stated_version(resource: &Resource) -> Option<u64> {
    match resource {
        Resource::MemoryRecord(record) => record.version.as_ref()?.as_u64(),
        _ => None,
    }
}

/// Returns true if a resource of a file gives way to another of the same name in it. Of equal claims the
/// content decides, since nothing is inferred from the order of entries.
pub(crate) fn yields_to(resource: &Resource, other: &Resource) -> bool {
    let bytes = |resource: &Resource| cbor::to_vec(&resource.to_value());
    let claims = Claim::of(resource).cmp(Claim::of(other));
    claims.then_with(|| bytes(resource).cmp(&bytes(other))).is_lt()
}

/// The time of the last change that a resource states.
pub(crate) fn last_updated(resource: &Resource) -> Option<Timestamp> {
    Some(resource.meta()?.last_updated.as_ref()?.at())
}

/// The stored version under the name of an imported resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredState {
    /// Nothing, and never had.
    Nothing,
    /// A tombstone.
    Forgotten,
    /// A version with this claim; `same` says whether its content, apart from the number of the
    /// version, is that of the file.
    Live {
        /// Its claim.
        claim: Claim,
        /// True if the contents are the same.
        same: bool,
    },
}

/// Decides about a resource with the claim `file`.
pub(crate) fn decide(file: Claim, held: StoredState, precedence: Precedence) -> Merged {
    match held {
        StoredState::Nothing => Merged::Added,
        StoredState::Forgotten if precedence == Precedence::Remembered => Merged::Kept,
        StoredState::Forgotten => Merged::Restored,
        // The same content under a higher number is still news: the number decides the next time.
        StoredState::Live { claim, same: true }
            if file.version <= Some(claim.version.unwrap_or(1)) =>
        {
            Merged::Unchanged
        }
        StoredState::Live { claim, .. } => {
            if precedence == Precedence::File || file.cmp(claim).is_gt() {
                Merged::Updated
            } else {
                Merged::Kept
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;
    use proptest::prelude::*;

    fn record(members: &str) -> Resource {
        let text = format!(
            r#"{{"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z"{members}}}"#
        );
        Resource::from_value(json::from_slice(text.as_bytes(), &Limits::default()).unwrap())
            .unwrap()
    }

    fn entity(members: &str) -> Resource {
        let text = format!(r#"{{"resourceType":"Entity","id":"e","name":"n"{members}}}"#);
        Resource::from_value(json::from_slice(text.as_bytes(), &Limits::default()).unwrap())
            .unwrap()
    }

    fn at(day: u32) -> Timestamp {
        Timestamp::from_unix(i64::from(day) * 86_400, 0)
    }

    /// `meta` that was last updated on that day of 1970.
    fn meta(day: u32) -> String {
        format!(
            r#","meta":{{"omirVersion":"R1","lastUpdated":"1970-01-{:02}T00:00:00Z"}}"#,
            day + 1
        )
    }

    fn against(file: &Resource, stored: &Resource, recorded: u32) -> Merged {
        let claim = Claim::stored(stored, at(recorded), false);
        decide(Claim::of(file), StoredState::Live { claim, same: false }, Precedence::Newer)
    }

    #[test]
    fn each_line_of_the_rule() {
        use Merged::{Kept, Updated};
        let numbered = |version: u32, more: &str| record(&format!(r#","version":{version}{more}"#));
        let (plain, third) = (record(""), numbered(3, ""));
        // The version first, where the file states one.
        assert_eq!(against(&third, &numbered(2, ""), 9), Updated);
        assert_eq!(against(&third, &numbered(4, ""), 0), Kept);
        let late = numbered(1, &meta(9));
        assert_eq!(
            against(&late, &numbered(2, ""), 0),
            Kept,
            "a lower version is not saved by its date"
        );
        // A stored record without a number is the first version; a file without one leaves it to the dates.
        assert_eq!(against(&third, &plain, 0), Updated);
        assert_eq!(against(&late, &plain, 8), Updated);
        assert_eq!(against(&record(&meta(9)), &third, 8), Updated);
        assert_eq!(against(&record(&meta(9)), &numbered(3, &meta(8)), 20), Updated);
        assert_eq!(against(&record(&meta(7)), &third, 8), Kept);
        // Then the date; what is stored without one has that of its recording.
        assert_eq!(against(&late, &numbered(1, ""), 8), Updated);
        assert_eq!(against(&late, &numbered(1, ""), 9), Kept);
        assert_eq!(against(&record(&meta(3)), &record(&meta(2)), 9), Updated);
        assert_eq!(against(&record(&meta(2)), &record(&meta(2)), 0), Kept);
        assert_eq!(against(&record(&meta(1)), &record(&meta(2)), 0), Kept);
        // A date that an earlier version had already is none.
        let stale = Claim::stored(&record(&meta(2)), at(5), true);
        assert!(Claim::of(&record(&meta(4))).cmp(stale).is_lt());
        assert!(Claim::of(&record(&meta(6))).cmp(stale).is_gt());
        // A record without a date is not newer.
        assert_eq!(against(&plain, &plain, 0), Kept);
        assert_eq!(against(&plain, &record(&meta(0)), 0), Kept);
        // Other types have no version.
        assert_eq!(against(&entity(&meta(3)), &entity(&meta(2)), 9), Updated);
        assert_eq!(against(&entity(&meta(1)), &entity(&meta(2)), 9), Kept);
        assert_eq!(against(&entity(""), &entity(""), 0), Kept);
    }

    #[test]
    fn what_there_is_decides_before_the_claims_do() {
        let claim = Claim::of(&record(""));
        let stored = Claim::stored(&record(r#","version":5"#), at(1), false);
        for precedence in [Precedence::Newer, Precedence::File] {
            assert_eq!(decide(claim, StoredState::Nothing, precedence), Merged::Added);
            assert_eq!(decide(claim, StoredState::Forgotten, precedence), Merged::Restored);
            let same = StoredState::Live { claim: stored, same: true };
            assert_eq!(decide(claim, same, precedence), Merged::Unchanged);
            let sixth = Claim::of(&record(r#","version":6"#));
            assert_eq!(decide(sixth, same, precedence), Merged::Updated);
        }
        let other = StoredState::Live { claim: stored, same: false };
        assert_eq!(decide(claim, StoredState::Forgotten, Precedence::Remembered), Merged::Kept);
        assert_eq!(decide(claim, StoredState::Nothing, Precedence::Remembered), Merged::Added);
        assert_eq!(decide(claim, other, Precedence::Remembered), Merged::Kept);
        assert_eq!(decide(claim, other, Precedence::Newer), Merged::Kept);
        assert_eq!(decide(claim, other, Precedence::File), Merged::Updated);
    }

    /// Contents of a store: the number it counted up to, the claim, and a letter for the content.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Stored {
        number: u64,
        claim: Claim,
        content: u8,
    }

    /// Imports one file after another. As in the plan, versions only rise, and what
    /// takes the place of another states the number it was given.
    fn after(held: Option<Stored>, (file, content): (Claim, u8)) -> Option<Stored> {
        let view = match held {
            None => StoredState::Nothing,
            Some(held) => StoredState::Live { claim: held.claim, same: content == held.content },
        };
        match (decide(file, view, Precedence::Newer), held) {
            (Merged::Kept | Merged::Unchanged, _) => held,
            (_, None) => Some(Stored { number: file.version.unwrap_or(1), claim: file, content }),
            (_, Some(held)) => {
                let number = file.version.unwrap_or(0).max(held.number + 1);
                let claim = Claim { version: Some(number), ..file };
                Some(Stored { number, claim, content })
            }
        }
    }

    fn a_claim() -> impl Strategy<Value = Claim> {
        let updated = proptest::option::of((0u32..4).prop_map(at));
        (proptest::option::of(1u64..4), updated)
            .prop_map(|(version, updated)| Claim { version, updated })
    }

    proptest! {
        #[test]
        fn importing_again_changes_nothing(held in a_claim(), file in a_claim(), same: bool) {
            let file = (file, u8::from(!same));
            let once = after(after(None, (held, 0)), file);
            prop_assert_eq!(after(once, file), once);
        }

        #[test]
        fn different_claims_win_in_either_order(one in a_claim(), other in a_claim()) {
            prop_assume!(one.cmp(other).is_ne());
            let content = |files: [(Claim, u8); 2]| {
                files.into_iter().fold(None, after).map(|stored| stored.content)
            };
            prop_assert_eq!(content([(one, 1), (other, 2)]), content([(other, 2), (one, 1)]));
        }

        #[test]
        fn files_without_versions_may_come_in_any_order(
            days in proptest::sample::subsequence(vec![0u32, 1, 2, 3, 4, 5], 1..6)
                .prop_flat_map(|days| Just(days).prop_shuffle()),
        ) {
            let files = days.iter().map(|&day| {
                (Claim { version: None, updated: Some(at(day)) }, day as u8)
            });
            let stored = files.fold(None, after).map(|stored| u32::from(stored.content));
            prop_assert_eq!(stored, days.iter().copied().max());
        }

        #[test]
        fn among_equal_names_of_a_file_the_order_never_matters(
            versions in proptest::array::uniform2(0u32..3),
            days in proptest::array::uniform2(0u32..3),
        ) {
            let [one, other] = [0, 1].map(|n| {
                let version = match versions[n] {
                    0 => String::new(),
                    version => format!(r#","version":{version}"#),
                };
                record(&format!("{version}{}", meta(days[n])))
            });
            prop_assert_eq!(yields_to(&one, &other) ^ yields_to(&other, &one), one != other);
        }
    }
}
