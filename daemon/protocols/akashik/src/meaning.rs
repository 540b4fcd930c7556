//! The meaning of texts: vectors, tokens and summaries, without a model.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use omird_embedding::Vector;
use omird_text::{Approx1, HashedEmbedding, Language, Passage, StemSet, Summarizer, TokenCounter};

pub(crate) use omird_text::DIMENSIONS;

/// The counter that budgets are kept by, as answers name it.
pub(crate) const TOKEN_COUNT: &str = "approx-1";

/// Returns the name of the embedding in force.
pub(crate) fn embedding_name() -> String {
    HashedEmbedding::new(Language::English).model()
}

/// Returns the vector of a text; `None` for one without words.
pub(crate) fn embed(text: &str) -> Option<Vector> {
    let embedding = HashedEmbedding::new(Language::English).embed(text);
    Vector::of_integers(Box::from(&embedding.values()[..]))
}

/// Returns the stems of a text as hashes, which are compared within one run alone.
pub(crate) fn stems(text: &str) -> Vec<u64> {
    let hash = |stem: &str| {
        let mut hasher = DefaultHasher::new();
        stem.hash(&mut hasher);
        hasher.finish()
    };
    StemSet::of(Language::English, text).iter().map(hash).collect()
}

/// Returns the tokens of a text.
pub(crate) fn tokens(text: &str) -> usize {
    Approx1.count(text)
}

/// Returns a summary of at most `budget` tokens, or `None` where nothing of the text fits.
pub(crate) fn summary(text: &str, budget: usize) -> Option<String> {
    let summarizer = Summarizer::new(Language::English, &Approx1);
    let summary = summarizer.within(&[Passage::new(text)], budget).ok();
    let summary = summary.map(|summary| summary.text()).filter(|text| !text.is_empty());
    let summary = summary.unwrap_or_else(|| beginning(text, budget));
    (!summary.is_empty() && tokens(&summary) <= budget).then_some(summary)
}

/// Returns the first words of a text that keep a budget, with an ellipsis behind them.
fn beginning(text: &str, budget: usize) -> String {
    let mut kept = String::new();
    for word in text.split_whitespace() {
        let longer = if kept.is_empty() { word.to_owned() } else { format!("{kept} {word}") };
        if tokens(&longer) + 1 > budget {
            break;
        }
        kept = longer;
    }
    if kept.is_empty() { kept } else { kept + "…" }
}

/// Returns the first characters of a text, for a line of a log or a notification.
pub(crate) fn head(text: &str, most: usize) -> String {
    let mut head: String = text.chars().take(most).collect();
    if head.len() < text.len() {
        head.push('…');
    }
    head.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_summary_keeps_its_budget(text in "(door|not|open|must|3|\\.| |\n){0,40}", budget in 0_usize..20) {
            if let Some(summary) = summary(&text, budget) {
                prop_assert!(tokens(&summary) <= budget);
            }
        }
    }

    #[test]
    fn a_long_word_has_no_summary_that_fits() {
        assert_eq!(summary("incomprehensibilities", 2), None);
        assert!(summary("one two three four five six", 4).unwrap().starts_with("one two"));
    }
}
