//! The rule by which an import meets what is stored: which of two versions of a resource stays.
//!
//! The higher version wins. Only a MemoryRecord states one, and where it states none the version is
//! 1 (OMIR R1, MemoryRecord.version). Between equals the later `meta.lastUpdated` wins; a stored
//! resource that states none of its own was last updated when it was recorded, and one in a file that states
//! none is not newer than anything. What was forgotten here comes back: whoever imports a backup
//! wants what is in it.
//!
//! The rule knows nothing but what the two sides claim, so importing twice changes nothing, and of
//! two files with different claims the same one wins in either order. One thing limits that: a
//! winner whose version is not above that of the store gets the next number there, because versions
//! only rise, and it is that number which the next import meets.

use omir_core::instant::Timestamp;
use omir_core::model::Resource;

use super::plan::stated_version;

/// Who wins where contents differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// The newer one, by the rule of this module.
    Newer,
    /// Always the one in the file.
    File,
}

impl Precedence {
    /// The value of the parameter `merge` that asks for it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "true" => Some(Self::Newer),
            "overwrite" => Some(Self::File),
            _ => None,
        }
    }
}

/// What an import did about one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// It was not in the store.
    Added,
    /// It took the place of what was stored.
    Updated,
    /// It had been forgotten and is back.
    Restored,
    /// What is stored stayed.
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

/// What one version of a resource says about how new it is.
///
/// The order of claims is the rule: what does not say when it was updated is older than what does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// 1 where none is stated; 0 for the types that have none.
    version: u64,
    updated: Option<Timestamp>,
}

impl Claim {
    /// The claim of a resource in a file.
    pub fn of(resource: &Resource) -> Self {
        let version = match resource {
            Resource::MemoryRecord(_) => stated_version(resource).unwrap_or(1),
            _ => 0,
        };
        Self { version, updated: last_updated(resource) }
    }

    /// The claim of a stored resource: `version` is the store's number for it. `is_stale` says that
    /// its date is that of an earlier version.
    pub fn stored(resource: &Resource, version: u64, recorded: Timestamp, is_stale: bool) -> Self {
        let counts = matches!(resource, Resource::MemoryRecord(_));
        let stated = last_updated(resource).filter(|_| !is_stale);
        Self {
            version: if counts { version } else { 0 },
            updated: Some(stated.unwrap_or(recorded)),
        }
    }

    /// Whether a resource further down in a file takes the place of this one, which has the same
    /// name. Of equals the later one does.
    pub fn yields_to(self, later: Self) -> bool {
        later >= self
    }
}

/// When a resource says that it last changed.
pub fn last_updated(resource: &Resource) -> Option<Timestamp> {
    Some(resource.meta()?.last_updated.as_ref()?.at())
}

/// What the store has under the name of a resource that is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing, and never had.
    Nothing,
    /// A tombstone.
    Forgotten,
    /// A version with this claim; `same` says whether its content, apart from the number of the
    /// version, is that of the file.
    Live {
        /// Its claim.
        claim: Claim,
        /// Whether the contents are the same.
        same: bool,
    },
}

/// What is to be done about a resource with the claim `file`.
pub fn decide(file: Claim, held: Held, precedence: Precedence) -> Merged {
    match held {
        Held::Nothing => Merged::Added,
        Held::Forgotten => Merged::Restored,
        // The same content under a higher number is still news: the number decides the next time.
        Held::Live { claim, same: true } if file.version <= claim.version => Merged::Unchanged,
        Held::Live { claim, .. } => {
            if precedence == Precedence::File || file > claim {
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

    fn against(file: &Resource, stored: &Resource, version: u64, recorded: u32) -> Merged {
        let claim = Claim::stored(stored, version, at(recorded), false);
        decide(Claim::of(file), Held::Live { claim, same: false }, Precedence::Newer)
    }

    #[test]
    fn each_line_of_the_rule() {
        use Merged::{Kept, Updated};
        let (plain, third) = (record(""), record(r#","version":3"#));
        // The version first; not stated means 1.
        assert_eq!(against(&third, &plain, 2, 9), Updated);
        assert_eq!(against(&third, &plain, 4, 0), Kept);
        assert_eq!(against(&plain, &plain, 2, 0), Kept);
        let late = record(&format!(r#","version":1{}"#, meta(9)));
        assert_eq!(against(&late, &plain, 2, 0), Kept, "a lower version is not saved by its date");
        // Then the date; what is stored without one has that of its recording.
        assert_eq!(against(&late, &plain, 1, 8), Updated);
        assert_eq!(against(&late, &plain, 1, 9), Kept);
        assert_eq!(against(&record(&meta(3)), &record(&meta(2)), 1, 9), Updated);
        assert_eq!(against(&record(&meta(2)), &record(&meta(2)), 1, 0), Kept);
        assert_eq!(against(&record(&meta(1)), &record(&meta(2)), 1, 0), Kept);
        // A date that an earlier version had already is none.
        let stale = Claim::stored(&record(&meta(2)), 1, at(5), true);
        assert!(Claim::of(&record(&meta(4))) < stale && stale < Claim::of(&record(&meta(6))));
        // What states none is not newer.
        assert_eq!(against(&plain, &plain, 1, 0), Kept);
        assert_eq!(against(&plain, &record(&meta(0)), 1, 0), Kept);
        // Other types have no version: how often the store counted does not matter.
        assert_eq!(against(&entity(&meta(3)), &entity(&meta(2)), 40, 9), Updated);
        assert_eq!(against(&entity(&meta(1)), &entity(&meta(2)), 40, 9), Kept);
        assert_eq!(against(&entity(""), &entity(""), 1, 0), Kept);
    }

    #[test]
    fn what_there_is_decides_before_the_claims_do() {
        let claim = Claim::of(&record(""));
        let stored = Claim::stored(&record(""), 5, at(1), false);
        for precedence in [Precedence::Newer, Precedence::File] {
            assert_eq!(decide(claim, Held::Nothing, precedence), Merged::Added);
            assert_eq!(decide(claim, Held::Forgotten, precedence), Merged::Restored);
            let same = Held::Live { claim: stored, same: true };
            assert_eq!(decide(claim, same, precedence), Merged::Unchanged);
            let sixth = Claim::of(&record(r#","version":6"#));
            assert_eq!(decide(sixth, same, precedence), Merged::Updated);
        }
        let other = Held::Live { claim: stored, same: false };
        assert_eq!(decide(claim, other, Precedence::Newer), Merged::Kept);
        assert_eq!(decide(claim, other, Precedence::File), Merged::Updated);
    }

    /// What a store that only knows the rule makes of one file after another. The letter stands for
    /// the content.
    fn after(held: Option<(Claim, u8)>, file: (Claim, u8)) -> Option<(Claim, u8)> {
        let view = match held {
            None => Held::Nothing,
            Some((claim, content)) => Held::Live { claim, same: content == file.1 },
        };
        match decide(file.0, view, Precedence::Newer) {
            Merged::Added | Merged::Updated | Merged::Restored => Some(file),
            Merged::Kept | Merged::Unchanged => held,
        }
    }

    fn a_claim() -> impl Strategy<Value = Claim> {
        let updated = proptest::option::of((0u32..4).prop_map(at));
        (0u64..4, updated).prop_map(|(version, updated)| Claim { version, updated })
    }

    proptest! {
        #[test]
        fn importing_again_changes_nothing(held in a_claim(), file in a_claim(), same: bool) {
            let once = after(Some((held, 0)), (file, u8::from(!same)));
            prop_assert_eq!(after(once, (file, u8::from(!same))), once);
        }

        #[test]
        fn different_claims_win_in_either_order(
            held in proptest::option::of(a_claim()),
            one in a_claim(),
            other in a_claim(),
        ) {
            prop_assume!(one != other && held.is_none_or(|held| held != one && held != other));
            let held = held.map(|claim| (claim, 0));
            let there = after(after(held, (one, 1)), (other, 2));
            let back = after(after(held, (other, 2)), (one, 1));
            prop_assert_eq!(there, back);
        }

        #[test]
        fn among_equal_names_of_a_file_the_order_matters_only_on_a_tie(
            one in a_claim(),
            other in a_claim(),
        ) {
            prop_assert_eq!(one.yields_to(other) && other.yields_to(one), one == other);
            prop_assert!(one.yields_to(other) || other.yields_to(one));
        }
    }
}
