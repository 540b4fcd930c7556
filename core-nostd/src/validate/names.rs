//! The names of a document: which resources it holds and which are spoken of.
//!
//! All ids lie one behind the other in one text, found through a table of positions, so that a
//! document of millions of entries costs about its ids and twenty bytes for each.

use alloc::string::String;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::schema;
use super::suggest::closest;
use crate::reference::ResourceType;

/// A name's number; they count from zero in the order they are first met.
pub(super) type NameId = u32;

/// Stands for "no entry" and "no name".
pub(super) const NONE: u32 = u32::MAX;

/// Names compared while looking for near misses, in one document: the search is linear, and a hostile
/// document could ask for it a million times.
const MOST_COMPARED: usize = 200_000;

struct Name {
    start: usize,
    /// Bytes of the id, and in the two lowest bits the position in [`ResourceType::ALL`].
    len_and_kind: usize,
    /// Position of the first entry that bears it, or [`NONE`] while it is only spoken of.
    entry: u32,
}

impl Name {
    fn kind(&self) -> usize {
        self.len_and_kind & 3
    }

    fn text<'a>(&self, all: &'a str) -> &'a str {
        &all[self.start..self.start + (self.len_and_kind >> 2)]
    }
}

/// Every name met so far.
#[derive(Default)]
pub(super) struct Names {
    text: String,
    names: Vec<Name>,
    table: HashTable<NameId>,
    hasher: DefaultHashBuilder,
    compared: usize,
}

impl Names {
    /// The number of a name, given out if it is new.
    pub(super) fn intern(&mut self, kind: ResourceType, id: &str) -> NameId {
        let kind = schema::position(kind);
        let hash = self.hasher.hash_one((kind, id));
        let (names, text) = (&self.names, &self.text);
        let same = |&at: &NameId| {
            let name = &names[at as usize];
            name.kind() == kind && name.text(text) == id
        };
        if let Some(&found) = self.table.find(hash, same) {
            return found;
        }
        let new = u32::try_from(self.names.len()).unwrap_or(NONE);
        self.names.push(Name {
            start: self.text.len(),
            len_and_kind: id.len() << 2 | kind,
            entry: NONE,
        });
        self.text.push_str(id);
        let (names, text, hasher) = (&self.names, &self.text, &self.hasher);
        self.table.insert_unique(hash, new, |&at| {
            let name = &names[at as usize];
            hasher.hash_one((name.kind(), name.text(text)))
        });
        new
    }

    /// Notes that an entry bears a name; returns the first entry that does if it is another.
    pub(super) fn declare(&mut self, name: NameId, entry: usize) -> Option<usize> {
        let first = &mut self.names[name as usize].entry;
        if *first == NONE {
            *first = u32::try_from(entry).unwrap_or(NONE - 1);
            return None;
        }
        Some(*first as usize)
    }

    /// Returns true if an entry bears the name.
    pub(super) fn is_declared(&self, name: NameId) -> bool {
        self.names[name as usize].entry != NONE
    }

    /// Type and id.
    pub(super) fn get(&self, name: NameId) -> (ResourceType, &str) {
        let name = &self.names[name as usize];
        (ResourceType::ALL[name.kind()], name.text(&self.text))
    }

    /// A name of a type that an entry bears and that looks like `name`.
    pub(super) fn nearest(&mut self, kind: ResourceType, name: NameId) -> Option<&str> {
        if self.compared + self.names.len() > MOST_COMPARED {
            return None;
        }
        self.compared += self.names.len();
        let kind = schema::position(kind);
        let borne = self.names.iter().filter(|name| name.kind() == kind && name.entry != NONE);
        let (_, id) = self.get(name);
        closest(id, borne.map(|name| name.text(&self.text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_name_is_a_type_and_an_id() {
        let mut names = Names::default();
        let entity = names.intern(ResourceType::Entity, "a");
        let record = names.intern(ResourceType::MemoryRecord, "a");
        assert_ne!(entity, record);
        assert_eq!(names.intern(ResourceType::Entity, "a"), entity);
        assert_eq!(names.get(record), (ResourceType::MemoryRecord, "a"));
        assert!(!names.is_declared(entity));
        assert_eq!(names.declare(entity, 7), None);
        assert_eq!(names.declare(entity, 9), Some(7));
        assert!(names.is_declared(entity) && !names.is_declared(record));
    }

    #[test]
    fn many_names_stay_apart() {
        let mut names = Names::default();
        let ids: Vec<NameId> =
            (0..10_000).map(|n| names.intern(ResourceType::Episode, &format!("e{n}"))).collect();
        for (n, &id) in ids.iter().enumerate() {
            assert_eq!(names.intern(ResourceType::Episode, &format!("e{n}")), id);
            assert_eq!(names.get(id).1, format!("e{n}"));
        }
    }

    #[test]
    fn near_misses_are_looked_for_among_what_is_there() {
        let mut names = Names::default();
        let kitchen = names.intern(ResourceType::Entity, "kitchen");
        let typo = names.intern(ResourceType::Entity, "kitchn");
        assert_eq!(names.nearest(ResourceType::Entity, typo), None);
        names.declare(kitchen, 0);
        assert_eq!(names.nearest(ResourceType::Entity, typo), Some("kitchen"));
        assert_eq!(names.nearest(ResourceType::Episode, typo), None);
        names.compared = MOST_COMPARED;
        assert_eq!(names.nearest(ResourceType::Entity, typo), None);
    }
}
