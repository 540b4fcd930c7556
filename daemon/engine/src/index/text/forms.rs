//! The forms of a word: the terms of the index that share its stem, and those that begin like it.
//!
//! Postings are of words as they stand. Their stems are made in memory, by the language of the store, so that another
//! language asks nothing of the card, and phrases and beginnings of words stay exact.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use omird_text::{Language, is_stop_word};

use super::TextIndex;

/// Ends the list of the terms of one stem.
pub(super) const NONE: u32 = u32::MAX;

/// Letters of a word that typing errors are looked for in: shorter ones are near too many others.
const LEAST_LETTERS: usize = 4;
/// Most words that one may be meant to be.
const MOST_MEANT: usize = 8;

/// Words by stem: for each stem that is not its own only form, the last term that came with it. Each term names the one
/// before it.
#[derive(Default)]
pub(super) struct Stems {
    heads: HashTable<u32>,
    language: Language,
}

impl TextIndex {
    /// The language that words are stemmed by.
    pub fn language(&self) -> Language {
        self.stems.language
    }

    /// Stems all words by another language. Takes as long as it takes to stem each word once.
    pub fn set_language(&mut self, language: Language) {
        if language == self.stems.language {
            return;
        }
        self.stems = Stems { heads: HashTable::new(), language };
        for term in 0..self.terms.len() as u32 {
            self.link(term);
        }
    }

    /// Enters a term under its stem.
    pub(super) fn link(&mut self, term: u32) {
        let Self { terms, names, stems: Stems { heads, language }, hasher, .. } = self;
        let stem_of = |term: u32| language.stem(super::name_of(terms, names, term));
        let stem = stem_of(term);
        let kin = if stem == super::name_of(terms, names, term) {
            NONE
        } else {
            let hash = hasher.hash_one(&*stem);
            match heads.find_mut(hash, |&other| stem_of(other) == stem) {
                Some(head) => std::mem::replace(head, term),
                None => {
                    let rehash = |&other: &u32| hasher.hash_one(&*stem_of(other));
                    heads.insert_unique(hash, term, rehash);
                    NONE
                }
            }
        };
        self.terms[term as usize].kin = kin;
    }

    /// The stem of a word.
    pub(super) fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        self.stems.language.stem(word)
    }

    /// Calls `f` with each term of a stem.
    pub(super) fn each_form(&self, stem: &str, mut f: impl FnMut(u32)) {
        if let Some(term) = self.find(stem).filter(|_| self.stem(stem) == stem) {
            f(term);
        }
        let hash = self.hasher.hash_one(stem);
        let has_it = |&term: &u32| self.stem(self.name(term)) == stem;
        let mut next = self.stems.heads.find(hash, has_it).copied().unwrap_or(NONE);
        while let Some(term) = self.terms.get(next as usize) {
            f(next);
            next = term.kin;
        }
    }

    /// Each term of a stem.
    pub(super) fn forms(&self, stem: &str) -> Vec<u32> {
        let mut forms = Vec::new();
        self.each_form(stem, |term| forms.push(term));
        forms
    }

    /// Each term that begins so: a look at every term.
    pub(super) fn beginning_with(&self, prefix: &str) -> Vec<u32> {
        let terms = 0..self.terms.len() as u32;
        terms.filter(|&term| self.name(term).starts_with(prefix)).collect()
    }

    /// Live documents with these terms; one that has several counts for each.
    pub(super) fn frequency(&self, forms: &[u32]) -> u32 {
        let sum: u64 = forms.iter().map(|&term| u64::from(self.terms[term as usize].live)).sum();
        u32::try_from(sum).unwrap_or(u32::MAX).min(self.live_docs)
    }

    /// The words that a word which no live document has may be meant to be, one for each stem: one letter is missing,
    /// superfluous or another, or two changed places. Those with the same first letter, if there are some: people seldom
    /// mistake it. Words with digits are names and readings, and mean themselves; no stop word is meant.
    pub(super) fn corrected(&self, word: &str) -> Vec<String> {
        if word.chars().count() < LEAST_LETTERS || !word.chars().all(char::is_alphabetic) {
            return Vec::new();
        }
        let first = word.chars().next();
        let mut near: BTreeMap<(bool, String), String> = BTreeMap::new();
        let mut consider = |candidate: &str| {
            let stem = self.stem(candidate);
            let mut is_live = false;
            self.each_form(&stem, |term| is_live |= self.terms[term as usize].live > 0);
            if is_live && !is_stop_word(self.language(), candidate) {
                let other_start = candidate.chars().next() != first;
                let meant = near.entry((other_start, stem.into_owned())).or_default();
                // Told by a form that a memory has, if one is near.
                if meant.is_empty()
                    || (self.find(meant).is_none() && self.find(candidate).is_some())
                {
                    *meant = candidate.to_owned();
                }
            }
        };
        if word.is_ascii() {
            each_edit(word.as_bytes(), &mut consider);
        } else {
            let word: Vec<char> = word.chars().collect();
            for term in 0..self.terms.len() as u32 {
                let name = self.name(term);
                if !name.is_ascii() && is_one_edit(&word, name) {
                    consider(name);
                }
            }
        }
        let same_start = near.keys().any(|(other_start, _)| !other_start);
        let meant = near.into_iter().filter(|((other_start, _), _)| !(same_start && *other_start));
        meant.map(|(_, word)| word).take(MOST_MEANT).collect()
    }
}

/// Calls `f` with each ASCII word at one edit from a word: Damerau's four.
fn each_edit(word: &[u8], f: &mut impl FnMut(&str)) {
    let mut edited = Vec::with_capacity(word.len() + 1);
    let mut give = |edited: &[u8]| {
        if let Ok(text) = std::str::from_utf8(edited) {
            f(text);
        }
    };
    for at in 0..=word.len() {
        let (head, tail) = word.split_at(at);
        let mut with = |middle: &[u8], skipped: usize| {
            edited.clear();
            edited.extend_from_slice(head);
            edited.extend_from_slice(middle);
            edited.extend_from_slice(tail.get(skipped..).unwrap_or_default());
            give(&edited);
        };
        for letter in b'a'..=b'z' {
            with(&[letter], 0);
            if tail.first().is_some_and(|old| *old != letter) {
                with(&[letter], 1);
            }
        }
        if !tail.is_empty() {
            with(&[], 1);
        }
        if let [one, other, ..] = tail
            && one != other
        {
            with(&[*other, *one], 2);
        }
    }
}

/// Returns true if a word is at one edit from another.
fn is_one_edit(word: &[char], other: &str) -> bool {
    // A letter has four bytes at most.
    if other.len().abs_diff(word.iter().map(|letter| letter.len_utf8()).sum()) > 4 {
        return false;
    }
    let other: Vec<char> = other.chars().collect();
    let same = word.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (a, b) = (&word[same..], &other[same..]);
    match (a, b) {
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, a @ ..], b) if a == b => true,
        (a, [_, b @ ..]) if a == b => true,
        ([a0, a1, a @ ..], [b0, b1, b @ ..]) => a0 == b1 && a1 == b0 && a == b,
        _ => false,
    }
}
