//! All candidates of a question, in two ascending lists that are walked as one.
//!
//! What is similar in meaning is most of them where a floor is low, and nothing is known of it but the cosine. So it has a list of
//! its own, as the scan of the vectors gives it. Only what has anything else has a row in the other list, which then counts.

use super::candidate::Candidate;
use crate::index::doc::DocId;
use crate::index::vectors::Similar;

/// Lists that may be as long as there are memories.
#[derive(Default)]
pub(super) struct Lists {
    /// All that are similar in meaning, ascending.
    pub(super) similar: Vec<Similar>,
    /// Those that match by words or by a relationship, and those that are similar and have akin words; ascending.
    pub(super) others: Vec<Candidate>,
}

impl Lists {
    /// All candidates, ascending, each once.
    pub(super) fn merged(&self) -> Merged<'_> {
        Merged { similar: &self.similar, others: &self.others }
    }

    /// The candidate of a version.
    pub(super) fn find(&self, id: DocId) -> Option<Candidate> {
        let Self { similar, others } = self;
        let of_others = others.binary_search_by_key(&id, |one| one.id).ok();
        of_others.and_then(|at| others.get(at).copied()).or_else(|| {
            let at = similar.binary_search_by_key(&id, |(id, _)| *id).ok()?;
            similar.get(at).copied().map(Candidate::by_meaning)
        })
    }
}

/// See [`Lists::merged`].
pub(super) struct Merged<'a> {
    similar: &'a [Similar],
    others: &'a [Candidate],
}

impl Iterator for Merged<'_> {
    type Item = Candidate;

    #[inline]
    fn next(&mut self) -> Option<Candidate> {
        let similar = self.similar.split_first();
        if let Some((other, others)) = self.others.split_first()
            && similar.is_none_or(|((id, _), _)| other.id <= *id)
        {
            self.others = others;
            if let Some(((id, _), rest)) = similar
                && *id == other.id
            {
                self.similar = rest;
            }
            return Some(*other);
        }
        let (first, rest) = similar?;
        self.similar = rest;
        Some(Candidate::by_meaning(*first))
    }
}
