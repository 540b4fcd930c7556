//! Words akin to those of a question: which words of the store stand for each, and how much each says of it.
//!
//! The cosine of two texts is that of the means of their words, so one word that fits drowns among others that do not. Here each
//! word of the question looks for the word of the store that fits it best:
//!
//! ```text
//! x    = (cosine − usual) ÷ (4 · deviation), at most 1        what is usual for this word: `Embedder::usual`
//! says = x^2.5 · rarity                                        of the 64 terms that say most
//! ```
//!
//! Rarity is that of the term in the store, as of words: what a robot sees each day tells little. So it is with the weight of a word of
//! the question. `docs/recall.md`, "Measured", says what it brings.

use std::cmp::Reverse;

use super::query::{QueryVector, QueryWord};
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::text::{AkinTerms, Scratch, TextIndex};
use crate::index::vectors::{Similar, Words, compare};

/// Deviations above the mean at which a term says all.
const ALL: f32 = 4.0;
/// Deviations above the mean below which a term says nothing.
const NOTHING: f32 = 1.0;
/// Most terms that stand for one word.
const MOST_TERMS: usize = 64;
/// Terms whose rarity is looked up before any of the others.
const MOST_RARITIES: usize = 512;
/// Most postings that a question looks through, an equal part for each of its words: what a question costs does not grow with the
/// store. What is in so many memories tells little anyway.
const MOST_POSTINGS: usize = 4096;

/// Calls `f` once, ascending, with each version that has words akin to those of a question, and their agreement in (0, 1].
pub(super) fn akin(catalog: &Catalog, wanted: &QueryVector, mut f: impl FnMut(DocId, f32)) {
    let words = catalog.vectors.words();
    let Some(words) = words.as_ref().filter(|words| compare(words.model(), &wanted.model)) else {
        return;
    };
    let weight = |word: &QueryWord| catalog.text.rarity_of_word(&word.name) as f32;
    let weights: Vec<f32> = wanted.words.iter().map(weight).collect();
    let total: f32 = weights.iter().sum();
    let mut similar = Vec::new();
    let most = MOST_POSTINGS / wanted.words.len().max(1);
    let of_word = |(word, weight): (&QueryWord, &f32)| AkinTerms {
        weight: weight / total,
        terms: affordable(&catalog.text, terms_of(&catalog.text, words, word, &mut similar), most),
    };
    let asked: Vec<AkinTerms> = wanted.words.iter().zip(&weights).map(of_word).collect();
    Scratch::with(|scratch| catalog.text.akin(&asked, scratch, &mut f));
}

/// The terms that say most and have no more than `most` postings together.
fn affordable(text: &TextIndex, mut terms: Vec<(u32, f32)>, most: usize) -> Vec<(u32, f32)> {
    let mut left = most;
    terms.retain(|(term, _)| match left.checked_sub(text.postings(*term)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    terms
}

/// The terms that say most of a word, the best first. `similar` is working memory.
fn terms_of(
    text: &TextIndex,
    words: &Words,
    word: &QueryWord,
    similar: &mut Vec<Similar>,
) -> Vec<(u32, f32)> {
    let usual = word.usual;
    similar.clear();
    words.similar(&word.vector, usual.mean + NOTHING * usual.deviation, similar);
    // The most similar first, as rarity takes a logarithm: it is at most 1, so those that are less similar than the last one
    // taken need none.
    let most_similar = MOST_RARITIES.min(similar.len());
    if most_similar < similar.len() {
        similar.select_nth_unstable_by(most_similar, |a, b| b.1.total_cmp(&a.1));
    }
    let stands_out = |cosine: f32| {
        let x = ((cosine - usual.mean) / (ALL * usual.deviation)).clamp(0.0, 1.0);
        x * x * x.sqrt()
    };
    let says = |&(term, cosine): &Similar| {
        let says = stands_out(cosine) * text.rarity(term)? as f32;
        (says > 0.0).then_some((term, says))
    };
    let (most_similar, rest) = similar.split_at(most_similar);
    let mut terms: Vec<(u32, f32)> = most_similar.iter().filter_map(says).collect();
    let least = least_of_best(&terms);
    let may_say_more = |one: &&Similar| stands_out(one.1) >= least;
    terms.extend(rest.iter().filter(may_say_more).filter_map(says));
    // By spelling where they say as much: numbers of terms tell who came first, which must not count.
    let order = |a: &(u32, f32), b: &(u32, f32)| {
        let by_spelling = || text.name_of(a.0).cmp(text.name_of(b.0));
        Reverse(ordered(a.1)).cmp(&Reverse(ordered(b.1))).then_with(by_spelling)
    };
    if terms.len() > MOST_TERMS {
        terms.select_nth_unstable_by(MOST_TERMS, order);
        terms.truncate(MOST_TERMS);
    }
    terms.sort_unstable_by(order);
    terms
}

/// What the last one of the terms that say most says; 0 if there is room for more.
fn least_of_best(terms: &[(u32, f32)]) -> f32 {
    let mut says: Vec<f32> = terms.iter().map(|(_, says)| *says).collect();
    if says.len() < MOST_TERMS {
        return 0.0;
    }
    *says.select_nth_unstable_by(MOST_TERMS - 1, |a, b| b.total_cmp(a)).1
}

/// A number above 0 in the order of integers.
fn ordered(number: f32) -> u32 {
    number.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::text::DocTerms;

    #[test]
    fn the_terms_that_say_most_are_those_of_a_look_at_all() {
        use omird_embedding::{ModelName, Usual, Vector};
        let model = ModelName { name: "m".into(), dims: 4, hash: [0; 32] };
        let (mut text, mut words) = (TextIndex::new(), Words::new(model));
        let names: Vec<String> = (0..3000).map(|n| format!("w{n:04}")).collect();
        // Some are in many documents, and the most similar are not the rarest.
        for doc in 0..400_u32 {
            let said = (0..3000).filter(|n| (n * 7 + doc as usize * 13).is_multiple_of(2 + n % 97));
            let said = said.map(|n| names[n].as_str()).collect::<Vec<_>>().join(" ");
            text.add(doc, &DocTerms::of([said.as_str()]));
        }
        let of = |n: usize| {
            let turn = n as f32 / 3000.0 * 1.5;
            Vector::of(&[turn.cos(), turn.sin(), 0.1, 0.0]).unwrap()
        };
        let all: Vec<(u32, Vector)> =
            text.names_from(0).map(|(term, name)| (term, of(name[1..].parse().unwrap()))).collect();
        words.add(&all, all.len());
        let usual = Usual { mean: 0.1, deviation: 0.2 };
        let word = QueryWord { name: "w0000".into(), vector: of(0), usual };
        let got = terms_of(&text, &words, &word, &mut Vec::new());
        let mut similar = Vec::new();
        words.similar(&word.vector, usual.mean + NOTHING * usual.deviation, &mut similar);
        assert!(similar.len() > 2 * MOST_RARITIES, "{}", similar.len());
        let says = |(term, cosine): &Similar| {
            let x = ((cosine - usual.mean) / (ALL * usual.deviation)).min(1.0);
            x * x * x.sqrt() * text.rarity(*term).unwrap() as f32
        };
        let mut want: Vec<f32> = similar.iter().map(says).collect();
        want.sort_by(|a, b| b.total_cmp(a));
        let got: Vec<f32> = got.iter().map(|(_, says)| *says).collect();
        assert_eq!(got, want[..MOST_TERMS]);
    }

    #[test]
    fn terms_are_taken_the_best_first_while_their_postings_fit() {
        let mut text = TextIndex::new();
        for doc in 0..10 {
            let words = if doc < 3 { "cup mug" } else { "cup" };
            text.add(doc, &DocTerms::of([words]));
        }
        let term = |name: &str| text.names_from(0).find(|(_, one)| *one == name).unwrap().0;
        let terms = vec![(term("cup"), 0.9), (term("mug"), 0.5)];
        let names = |most| {
            let kept = affordable(&text, terms.clone(), most);
            kept.iter().map(|(term, _)| text.name_of(*term).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(13), ["cup", "mug"]);
        assert_eq!(names(12), ["cup"]);
        assert_eq!(names(9), ["mug"], "what is in too many is passed over");
        assert!(names(2).is_empty());
    }
}
