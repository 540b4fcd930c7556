//! Exact counts with a published vocabulary, by the crate `tiktoken-rs`, which carries the tables.

use tiktoken_rs::CoreBPE;

use super::TokenCounter;

/// Longest run of white space that is looked at in one go; bytes.
///
/// The vocabularies' patterns step back over white space one sign at a time, and the engine for patterns gives up after a
/// million steps. A longer run is counted in pieces, which may count some tokens too many: of a run that no text has.
const LONGEST_SPACE: usize = 100_000;

/// A vocabulary of byte pairs. The first count with one reads its table, which takes some tenths of a second and stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// GPT-2 and GPT-3.
    R50kBase,
    /// Models for code of the time of GPT-3.
    P50kBase,
    /// GPT-3.5 and GPT-4, and `text-embedding-3`.
    Cl100kBase,
    /// GPT-4o and later.
    O200kBase,
}

impl Vocabulary {
    fn table(self) -> &'static CoreBPE {
        match self {
            Self::R50kBase => tiktoken_rs::r50k_base_singleton(),
            Self::P50kBase => tiktoken_rs::p50k_base_singleton(),
            Self::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
            Self::O200kBase => tiktoken_rs::o200k_base_singleton(),
        }
    }
}

impl TokenCounter for Vocabulary {
    fn name(&self) -> &str {
        match self {
            Self::R50kBase => "r50k_base",
            Self::P50kBase => "p50k_base",
            Self::Cl100kBase => "cl100k_base",
            Self::O200kBase => "o200k_base",
        }
    }

    /// Counts ordinary tokens: `<|endoftext|>` in a text is text.
    fn count(&self, text: &str) -> usize {
        let table = self.table();
        pieces(text).map(|piece| table.count_ordinary(piece)).sum()
    }
}

/// Cuts a text after each [`LONGEST_SPACE`] bytes of white space without anything else. Most texts are one piece.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut run = 0;
        let end = rest.char_indices().find_map(|(at, c)| {
            run = if c.is_whitespace() { run + c.len_utf8() } else { 0 };
            (run >= LONGEST_SPACE).then_some(at + c.len_utf8())
        });
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Approx1;

    const ALL: [Vocabulary; 4] =
        [Vocabulary::R50kBase, Vocabulary::P50kBase, Vocabulary::Cl100kBase, Vocabulary::O200kBase];

    /// Counts of OpenAI's own `tiktoken` 0.14.0 for Python, in the order of [`ALL`].
    #[test]
    fn the_counts_are_those_of_the_reference() {
        for (text, counts) in include!("vocabulary/reference.in") {
            let ours = ALL.map(|vocabulary| vocabulary.count(text));
            assert_eq!(ours, counts, "{text:?}");
        }
    }

    #[test]
    fn hostile_texts_are_counted_and_end() {
        let texts = [
            " ".repeat(1_100_000),
            "\n \t".repeat(3_000),
            "a".repeat(20_000),
            "\u{301}".repeat(5_000),
            "<|endoftext|>".repeat(100),
            "'s".repeat(2_000),
            "-".repeat(20_000) + "\n/",
        ];
        for text in &texts {
            for vocabulary in [Vocabulary::Cl100kBase, Vocabulary::O200kBase] {
                let tokens = vocabulary.count(text);
                assert!((1..=text.len()).contains(&tokens), "{}: {tokens}", vocabulary.name());
            }
        }
    }

    #[test]
    fn a_text_is_cut_within_white_space_only() {
        let text =
            format!("a{}b{}c", " ".repeat(LONGEST_SPACE - 1), "\n".repeat(LONGEST_SPACE + 5));
        let cut: Vec<usize> = pieces(&text).map(str::len).collect();
        assert_eq!(cut, [2 * LONGEST_SPACE + 1, 6]);
        assert_eq!(pieces("").count(), 0);
    }

    /// What docs/text.md says of `approx-1`: it reads high for English.
    #[test]
    fn a_budget_by_approx_1_is_kept_in_english() {
        let text = "The robot must not enter room 12. The door of the store sticks in wet weather, so push it \
                    twice and wait until the lamp is green before you drive on.";
        assert!(ALL.iter().all(|vocabulary| vocabulary.count(text) <= Approx1.count(text)));
    }
}
