//! Sets of documents that have words, without a score.

use super::TextIndex;
use super::postings::Reader;
use crate::index::doc::DocId;
use crate::question::{Phrase, Question};

/// A set of documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Docs(Vec<u64>);

impl Docs {
    fn add(&mut self, doc: DocId) {
        let word = doc as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (doc % 64);
    }

    /// Returns true if the set has a document.
    #[inline]
    pub fn has(&self, doc: DocId) -> bool {
        super::is_set(&self.0, doc)
    }

    /// Returns true if it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<DocId> for Docs {
    fn from_iter<I: IntoIterator<Item = DocId>>(docs: I) -> Self {
        let mut set = Self::default();
        docs.into_iter().for_each(|doc| set.add(doc));
        set
    }
}

impl TextIndex {
    /// The documents that have every word of a question in one of its forms, ascending, stop words included. None has
    /// those of a text without words.
    pub fn with_all(&self, question: &Question) -> Vec<DocId> {
        let forms = question.words().iter().map(|word| self.forms(&self.stem(word)));
        self.having_each(forms.collect())
    }

    /// The documents that have the words of each phrase, ascending: all that have the phrases are among them.
    pub fn with_words_of(&self, phrases: &[Phrase]) -> Vec<DocId> {
        let of_phrase = |phrase: &Phrase| {
            let of_reading = |words: &[String]| {
                let forms = |word: &String| self.find(word).into_iter().collect::<Vec<u32>>();
                self.having_each(words.iter().map(forms).collect())
            };
            let mut docs: Vec<DocId> = phrase.readings().flat_map(of_reading).collect();
            docs.sort_unstable();
            docs.dedup();
            docs
        };
        let mut all = phrases.iter().map(of_phrase);
        let mut docs = all.next().unwrap_or_default();
        all.for_each(|others| keep(&mut docs, others.into_iter()));
        docs
    }

    /// The documents that have a word or a beginning that a question excludes.
    pub fn excluded(&self, question: &Question) -> Docs {
        let excluded = question.excluded();
        let by_word = excluded.words.iter().map(|word| self.forms(&self.stem(word)));
        let by_prefix = excluded.prefixes.iter().map(|prefix| self.beginning_with(prefix));
        let mut forms: Vec<u32> = by_word.chain(by_prefix).flatten().collect();
        forms.sort_unstable();
        forms.dedup();
        forms.iter().flat_map(|&term| self.docs_of(term)).collect()
    }

    /// The documents that have one term at least of each list, ascending.
    fn having_each(&self, mut lists: Vec<Vec<u32>>) -> Vec<DocId> {
        let bytes = |terms: &Vec<u32>| -> usize {
            terms.iter().map(|&term| self.terms[term as usize].postings.as_slice().len()).sum()
        };
        // Documents of the rarest come first: the others are compared with those alone.
        lists.sort_by_cached_key(bytes);
        let union = |terms: &Vec<u32>| {
            let mut docs: Vec<DocId> = terms.iter().flat_map(|&term| self.docs_of(term)).collect();
            if terms.len() > 1 {
                docs.sort_unstable();
                docs.dedup();
            }
            docs
        };
        let mut lists = lists.iter();
        let mut docs = lists.next().map(union).unwrap_or_default();
        for terms in lists {
            match &terms[..] {
                [term] => keep(&mut docs, self.docs_of(*term)),
                _ => keep(&mut docs, union(terms).into_iter()),
            }
        }
        docs
    }

    /// The documents of a term, ascending.
    fn docs_of(&self, term: u32) -> impl Iterator<Item = DocId> {
        Reader::new(self.terms[term as usize].postings.as_slice()).map(|(doc, _)| doc)
    }
}

/// Keeps of an ascending list what another has too.
fn keep(docs: &mut Vec<DocId>, others: impl Iterator<Item = DocId>) {
    let mut others = others.peekable();
    docs.retain(|&doc| {
        while others.next_if(|&other| other < doc).is_some() {}
        others.peek() == Some(&doc)
    });
}
