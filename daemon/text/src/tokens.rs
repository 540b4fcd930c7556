//! Token counts: how much of a model's context a text takes.
//!
//! A budget is kept by one counter, named in the answer. [`Approx1`] needs no vocabulary; an exact counter for a model
//! implements [`TokenCounter`] too (`Vocabulary`, with the feature `tiktoken`). [`Counter`] is one of them, by name.

#[cfg(feature = "tiktoken")]
mod vocabulary;

#[cfg(feature = "tiktoken")]
pub use self::vocabulary::Vocabulary;

/// Counts the tokens of a text.
///
/// Implementations are pure, take time linear in the text or nearly, and count 0 for the empty text.
pub trait TokenCounter {
    /// The counter's name, as answers state it: `approx-1`, `cl100k_base`.
    fn name(&self) -> &str;

    /// Returns the number of tokens of `text`.
    fn count(&self, text: &str) -> usize;
}

/// The counter `approx-1`: sums over the longest runs of a text.
///
/// | run | tokens |
/// |---|---|
/// | n ASCII letters | ⌈n/5⌉ |
/// | n ASCII digits | ⌈n/3⌉ |
/// | white space with a newline | 1 |
/// | white space without one | 0 |
/// | any other character | 1 each |
///
/// It reads high for English, so that a budget kept by it is kept. White space is that of Unicode, and a newline is U+000A.
///
/// For texts a and b: count(a), count(b) ≤ count(ab) ≤ count(a) + count(b) ≤ count(ab) + 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Approx1;

impl TokenCounter for Approx1 {
    fn name(&self) -> &str {
        "approx-1"
    }

    fn count(&self, text: &str) -> usize {
        let mut tokens = 0;
        let mut run = Run::default();
        for c in text.chars() {
            let kind = Kind::of(c);
            if kind != run.kind {
                tokens += std::mem::take(&mut run).tokens();
                run.kind = kind;
            }
            run.length += 1;
            run.has_newline |= c == '\n';
        }
        tokens + run.tokens()
    }
}

/// A counter of this build, to choose by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// [`Approx1`], which needs no vocabulary.
    #[default]
    Approx1,
    /// An exact one.
    #[cfg(feature = "tiktoken")]
    Exact(Vocabulary),
}

impl Counter {
    /// All counters of this build.
    pub const ALL: &'static [Self] = &[
        Self::Approx1,
        #[cfg(feature = "tiktoken")]
        Self::Exact(Vocabulary::R50kBase),
        #[cfg(feature = "tiktoken")]
        Self::Exact(Vocabulary::P50kBase),
        #[cfg(feature = "tiktoken")]
        Self::Exact(Vocabulary::Cl100kBase),
        #[cfg(feature = "tiktoken")]
        Self::Exact(Vocabulary::O200kBase),
    ];

    /// Returns the counter of a name, such as `approx-1`; `None` if this build has none of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|counter| counter.name() == name)
    }

    /// Returns true if the tokens of texts that each end a line add up to those of the whole, where none begins with white space.
    pub fn adds_up(self) -> bool {
        self == Self::Approx1
    }
}

impl TokenCounter for Counter {
    fn name(&self) -> &str {
        match self {
            Self::Approx1 => Approx1.name(),
            #[cfg(feature = "tiktoken")]
            Self::Exact(vocabulary) => vocabulary.name(),
        }
    }

    fn count(&self, text: &str) -> usize {
        match self {
            Self::Approx1 => Approx1.count(text),
            #[cfg(feature = "tiktoken")]
            Self::Exact(vocabulary) => vocabulary.count(text),
        }
    }
}

/// Characters that make up a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Space,
    #[default]
    Other,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letters,
            '0'..='9' => Self::Digits,
            c if c.is_whitespace() => Self::Space,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    kind: Kind,
    length: usize,
    has_newline: bool,
}

impl Run {
    fn tokens(self) -> usize {
        match self.kind {
            Kind::Letters => self.length.div_ceil(5),
            Kind::Digits => self.length.div_ceil(3),
            Kind::Space => usize::from(self.has_newline),
            Kind::Other => self.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_vectors_of_the_rule() {
        for (text, tokens) in [
            ("", 0),
            ("Use JWT tokens.", 5),
            ("door 3 sticks", 4),
            ("8f12c401a9b2", 9),
            ("Deadline is 2026-05-30T11:42:05Z", 16),
            ("The robot must not enter room 12.", 8),
            ("implementation", 3),
            ("für", 3),
            ("a\n\nb", 3),
        ] {
            assert_eq!(Approx1.count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn white_space_and_other_scripts_by_hand() {
        assert_eq!(Approx1.count(" \t\u{a0}\u{3000}"), 0);
        assert_eq!(Approx1.count(" \r\n \n\t"), 1);
        assert_eq!(Approx1.count("a\rb"), 2); // no newline
        assert_eq!(Approx1.count("門が開く"), 4);
        assert_eq!(Approx1.count("e\u{301}"), 2); // a letter, and its mark
        assert_eq!(Approx1.count("٣"), 1); // a digit, but not of ASCII
    }

    #[test]
    fn counters_are_found_by_their_names() {
        for counter in Counter::ALL {
            assert_eq!(Counter::named(counter.name()), Some(*counter));
            assert_eq!(counter.count(""), 0, "{}", counter.name());
        }
        assert_eq!(Counter::named("approx-1"), Some(Counter::default()));
        assert_eq!(Counter::named("approx-2"), None);
        assert_eq!(Counter::named("cl100k_base").is_some(), cfg!(feature = "tiktoken"));
    }

    /// A second way to the same number: runs are cut by splitting, not by walking.
    fn by_splitting(text: &str) -> usize {
        let runs = |is: fn(char) -> bool| {
            text.split(move |c| !is(c)).filter(|run| !run.is_empty()).map(|run| run.chars().count())
        };
        let letters: usize = runs(|c| c.is_ascii_alphabetic()).map(|n| n.div_ceil(5)).sum();
        let digits: usize = runs(|c| c.is_ascii_digit()).map(|n| n.div_ceil(3)).sum();
        let newlines =
            text.split(|c: char| !c.is_whitespace()).filter(|run| run.contains('\n')).count();
        let others =
            text.chars().filter(|c| !c.is_ascii_alphanumeric() && !c.is_whitespace()).count();
        letters + digits + newlines + others
    }

    proptest! {
        #[test]
        fn both_ways_agree(text in "(?s).{0,60}|[a-z0-9 \\n]{0,60}") {
            prop_assert_eq!(Approx1.count(&text), by_splitting(&text));
        }

        #[test]
        fn counts_under_concatenation(a in "(?s).{0,30}|[a-z0-9 \\n]{0,30}", b in "(?s).{0,30}|[a-z0-9 \\n]{0,30}") {
            let (one, two) = (Approx1.count(&a), Approx1.count(&b));
            let both = Approx1.count(&format!("{a}{b}"));
            prop_assert!(both >= one.max(two));
            prop_assert!(both <= one + two && one + two <= both + 1);
        }
    }
}
