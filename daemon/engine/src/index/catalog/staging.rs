//! A transaction comes into the catalog in two steps, so that a large one keeps no reader waiting.
//!
//! Most of the work of adding a version is done before any reader sees it: its row, its places, its time and its words
//! are added *staged*, a few at a time. Indexes propose staged rows, and every reader passes over them, because a row
//! that is not live, and was not live at any earlier time, matches nothing. Then all of the transaction *enters* at
//! once, in one hold of the catalog: names point to the new versions, those before them retire, counts and the
//! statistics of words move. That is a few percent of the work.
//!
//! Only the writer stages, and it enters all that it staged before it does anything else: nothing is sealed, compacted
//! or redated in between.

use omird_store::RefKey;

use super::Catalog;
use crate::index::block::DeletionOrigin;
use crate::index::doc::{DocId, Location, Stamp};
use crate::index::facts::Facts;
use crate::index::text::{DocTerms, TermIds};

/// One step of a transaction, ready to enter.
#[derive(Debug)]
pub enum Staged {
    /// A version.
    Put {
        /// Its row.
        id: DocId,
        /// Facts of the index about it.
        facts: Box<Facts>,
        /// Its words.
        words: TermIds,
        /// Words of the live version it replaces, if there is one.
        superseded: Option<TermIds>,
    },
    /// A tombstone.
    Forget {
        /// Of what.
        key: RefKey,
        /// The origin of a deletion.
        by: DeletionOrigin,
        /// Its time and version.
        stamp: Stamp,
        /// Words of the live version, if there is one.
        words: Option<TermIds>,
    },
}

impl Catalog {
    /// Stages a version that was just recorded. `superseded` are the words of the live version it replaces, if there
    /// is one. What is staged enters in the order in which it was staged.
    pub fn stage(
        &mut self,
        facts: Box<Facts>,
        terms: &DocTerms,
        superseded: Option<&DocTerms>,
        stamp: Stamp,
        location: Location,
    ) -> Staged {
        let id = self.add_row(&facts, stamp, location);
        let words = self.text.stage(id, terms);
        let superseded = superseded.map(|terms| self.text.ids(terms));
        Staged::Put { id, facts, words, superseded }
    }

    /// Stages a tombstone, and who forgot. `terms` are the words of the live version, if there is one.
    pub fn stage_forget(
        &self,
        key: RefKey,
        terms: Option<&DocTerms>,
        stamp: Stamp,
        by: DeletionOrigin,
    ) -> Staged {
        Staged::Forget { key, by, stamp, words: terms.map(|terms| self.text.ids(terms)) }
    }

    /// Makes a staged step visible; gives the row that it retired.
    pub fn enter_staged(&mut self, staged: &Staged) -> Option<DocId> {
        match staged {
            Staged::Put { id, facts, words, superseded } => {
                let old = self.enter(*id, facts);
                self.text.enter(*id, words);
                if let (Some(old), Some(words)) = (old, superseded) {
                    self.text.leave(old, words);
                }
                old
            }
            Staged::Forget { key, by, stamp, words } => {
                let old = self.add_tombstone(key, *stamp, *by);
                if let (Some(old), Some(words)) = (old, words) {
                    self.text.leave(old, words);
                }
                old
            }
        }
    }

    /// Adds a version that was just recorded, at once.
    pub fn put(
        &mut self,
        facts: &Facts,
        terms: &DocTerms,
        superseded: Option<&DocTerms>,
        stamp: Stamp,
        location: Location,
    ) -> DocId {
        let id = self.add_row(facts, stamp, location);
        let old = self.enter(id, facts);
        self.text.add(id, terms);
        if let (Some(old), Some(terms)) = (old, superseded) {
            self.text.retire(old, terms);
        }
        id
    }

    /// Adds a tombstone at once.
    pub fn forget(
        &mut self,
        key: &RefKey,
        terms: Option<&DocTerms>,
        stamp: Stamp,
        by: DeletionOrigin,
    ) -> Option<DocId> {
        let retired = self.add_tombstone(key, stamp, by);
        if let (Some(old), Some(terms)) = (retired, terms) {
            self.text.retire(old, terms);
        }
        retired
    }
}

#[cfg(test)]
mod tests;
