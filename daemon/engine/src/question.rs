//! A question in words, taken apart: what may, must and must not occur (`docs/keys.md`, "Words").
//!
//! | written | means |
//! |---|---|
//! | `word` | any form of the word; a match has one of the words at least |
//! | `word*` | any word that begins so; as one of the words |
//! | `"two words"` | these words in this order, as they stand; a match must have them |
//! | `-word`, `-word*`, `-"two words"` | a match must not have it |
//!
//! Quotes and signs count only where a word can begin, so `5"`, `read-only` and `A - B` are what they look like. Minus
//! before a digit is a negative number. A quote without its end is no quote.

use std::fmt;

/// Most different words of a question that is taken apart, those that it excludes included.
pub(crate) const MOST_WORDS: usize = 1000;
/// Most beginnings, and most phrases. Each beginning is a look at every word of the store.
pub(crate) const MOST_SIGNS: usize = 32;

/// Characters that open and close a phrase.
const QUOTES: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{201e}'];

/// A question in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Its text without what it excludes: what it is about.
    text: String,
    /// The words, as the index has them, those of phrases too; any of them will do.
    words: Vec<String>,
    /// Beginnings of words, as alternatives to `words`.
    prefixes: Vec<String>,
    /// Phrases that must occur.
    phrases: Vec<Phrase>,
    /// What must not occur.
    excluded: Excluded,
    /// True if a word that no memory has may be read as one that differs by a typing error.
    is_typed: bool,
}

/// Why a question is not taken apart: it costs more than a question may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "has more than {MOST_WORDS} different words, {MOST_SIGNS} beginnings (`word*`) or {MOST_SIGNS} phrases; ask for fewer"
        )
    }
}

impl std::error::Error for TooLong {}

/// Words, beginnings and phrases of which none may occur.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excluded {
    /// Words, each in all of its forms.
    pub words: Vec<String>,
    /// Beginnings of words.
    pub prefixes: Vec<String>,
    /// Phrases.
    pub phrases: Vec<Phrase>,
}

impl Excluded {
    /// Returns true if nothing is excluded.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.prefixes.is_empty() && self.phrases.is_empty()
    }
}

/// Words that stand one behind the other, as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase(Sequence);

/// The words of a text in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The words, CamelCase names whole.
    whole: Vec<String>,
    /// The words, such names in parts.
    parts: Vec<String>,
}

impl Sequence {
    /// Takes a text apart.
    pub fn of(text: &str) -> Self {
        Self { whole: sequence(text, false), parts: sequence(text, true) }
    }
}

impl Phrase {
    fn of(text: &str) -> Option<Self> {
        let words = Sequence::of(text);
        (!words.whole.is_empty()).then_some(Self(words))
    }

    /// The words of its readings: one, or two if there are CamelCase names in it.
    pub fn readings(&self) -> impl Iterator<Item = &[String]> {
        let Sequence { whole, parts } = &self.0;
        let other = (parts != whole).then_some(parts.as_slice());
        std::iter::once(whole.as_slice()).chain(other)
    }

    /// Returns true if a text has the phrase.
    pub fn is_in(&self, text: &Sequence) -> bool {
        let has = |held: &[String], wanted: &[String]| {
            held.windows(wanted.len()).any(|window| window == wanted)
        };
        has(&text.whole, &self.0.whole) || has(&text.parts, &self.0.parts)
    }
}

impl Question {
    /// Takes a question apart as people write it, with quotes and signs; `None` if it says nothing.
    ///
    /// # Errors
    /// [`TooLong`] if it has more words, beginnings or phrases than a question may.
    pub fn parse(text: &str) -> Result<Option<Self>, TooLong> {
        let mut question = Self { is_typed: true, ..Self::default() };
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let Some(first) = rest.chars().next() else { break };
            let is_excluded = first == '-'
                && rest[1..].chars().next().is_some_and(|next| {
                    next.is_alphabetic() || (QUOTES.contains(&next) && quoted(&rest[1..]).is_some())
                });
            if is_excluded {
                rest = &rest[1..];
            }
            let (token, tail, is_phrase) = match quoted(rest) {
                Some((phrase, tail)) => (phrase, tail, true),
                None => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (&rest[..end], &rest[end..], false)
                }
            };
            rest = tail;
            if is_excluded {
                question.exclude(token, is_phrase);
            } else {
                question.add(token, is_phrase);
            }
            // At once, so that nothing is made of a text that is too long.
            if question.is_too_long() {
                return Err(TooLong);
            }
        }
        Ok((!question.text.is_empty() || !question.excluded.is_empty()).then_some(question))
    }

    /// The text, to be understood rather than looked up.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The words, in the order in which they were said.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The beginnings of words.
    pub fn prefixes(&self) -> &[String] {
        &self.prefixes
    }

    /// The phrases that must occur.
    pub fn phrases(&self) -> &[Phrase] {
        &self.phrases
    }

    /// What must not occur.
    pub fn excluded(&self) -> &Excluded {
        &self.excluded
    }

    /// Returns true if typing errors are looked for.
    pub fn is_typed(&self) -> bool {
        self.is_typed
    }

    /// Returns true if there is something to rank by: it does not only exclude.
    pub fn ranks(&self) -> bool {
        !self.text.is_empty()
    }

    /// Returns true if the words alone do not tell what matches: the texts do.
    pub fn needs_texts(&self) -> bool {
        !self.phrases.is_empty() || !self.excluded.phrases.is_empty()
    }

    fn is_too_long(&self) -> bool {
        let Excluded { words, prefixes, phrases } = &self.excluded;
        self.words.len() + words.len() > MOST_WORDS
            || self.prefixes.len() + prefixes.len() > MOST_SIGNS
            || self.phrases.len() + phrases.len() > MOST_SIGNS
    }

    fn add(&mut self, token: &str, is_phrase: bool) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(token);
        if is_phrase {
            note(&mut self.phrases, Phrase::of(token));
            self.add_words(token);
        } else if let Some((words, prefix)) = prefix_of(token) {
            note(&mut self.words, words);
            note(&mut self.prefixes, [prefix]);
        } else {
            self.add_words(token);
        }
    }

    fn add_words(&mut self, token: &str) {
        omird_text::words(token, |word| {
            // A question beyond the bound is refused later. Its words are compared no more with all before: a token may be
            // a megabyte.
            if self.words.len() <= MOST_WORDS && !self.words.iter().any(|known| known == word) {
                self.words.push(word.to_owned());
            }
        });
    }

    fn exclude(&mut self, token: &str, is_phrase: bool) {
        let prefix = if is_phrase { None } else { prefix_of(token) };
        match prefix {
            Some((words, prefix)) if words.is_empty() => {
                note(&mut self.excluded.prefixes, [prefix]);
            }
            _ => {
                let Some(phrase) = Phrase::of(token) else { return };
                match &phrase.0.whole[..] {
                    [word] if !is_phrase => note(&mut self.excluded.words, [word.clone()]),
                    _ => note(&mut self.excluded.phrases, [phrase]),
                }
            }
        }
    }
}

/// A text as it is: its words, and no signs.
impl From<&str> for Question {
    fn from(text: &str) -> Self {
        let mut words = Vec::new();
        omird_text::words(text, |word| words.push(word.to_owned()));
        Self { text: text.to_owned(), words, ..Self::default() }
    }
}

impl From<String> for Question {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

/// What stands between the quotes that a text begins with, and what comes behind them.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix(QUOTES)?;
    inner.split_once(QUOTES)
}

/// The words before the last one of `token*`, and the last one, which is a beginning.
fn prefix_of(token: &str) -> Option<(Vec<String>, String)> {
    // In lower case no name is taken apart.
    let mut words = sequence(&token.strip_suffix('*')?.to_lowercase(), false);
    let prefix = words.pop()?;
    Some((words, prefix))
}

/// Adds what a list does not have yet.
fn note<T: PartialEq>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

fn sequence(text: &str, are_split: bool) -> Vec<String> {
    let mut words = Vec::new();
    omird_text::sequence(text, are_split, |word| words.push(word.to_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Question {
        Question::parse(text).unwrap().unwrap_or_default()
    }

    fn phrase(text: &str) -> Phrase {
        Phrase::of(text).unwrap()
    }

    #[test]
    fn a_question_is_taken_apart() {
        let question =
            read("Where's the \"Red mug\" dock* -open -\"front door\" -tempor* read-only -5 -");
        assert_eq!(question.words(), ["where", "the", "red", "mug", "read", "only", "5"]);
        assert_eq!(question.prefixes(), ["dock"]);
        assert_eq!(question.phrases(), [phrase("red mug")]);
        let excluded = question.excluded();
        assert_eq!(excluded.words, ["open"]);
        assert_eq!(excluded.prefixes, ["tempor"]);
        assert_eq!(excluded.phrases, [phrase("front door")]);
        assert_eq!(question.text(), "Where's the Red mug dock* read-only -5 -");
    }

    #[test]
    fn signs_within_words_are_no_signs() {
        for text in ["5\" pipe and 6\" pipe", "A - B", "\"never closed", "say \"", "-\"open"] {
            let question = read(text);
            assert!(!question.needs_texts() && question.excluded().is_empty(), "{text}");
        }
        assert_eq!(read("map:dock_stat*").words(), ["map", "dock"]);
        assert_eq!(read("map:dock_stat*").prefixes(), ["stat"]);
        assert_eq!(read("-read-only").excluded().phrases, [phrase("read only")]);
        assert_eq!(read("„zwei Wörter“").phrases(), [phrase("zwei worter")]);
        assert_eq!(read("*").prefixes(), [""; 0]);
        assert_eq!(Question::parse("  "), Ok(None));
        assert!(!read("-door").ranks());
    }

    #[test]
    fn a_phrase_is_in_a_text_as_it_stands() {
        let red = phrase("red mug");
        let is_in = |phrase: &Phrase, text| phrase.is_in(&Sequence::of(text));
        assert!(is_in(&red, "a RED, mug"));
        for text in ["red mugs", "mug red", "red big mug"] {
            assert!(!is_in(&red, text), "{text}");
        }
        assert!(is_in(&phrase("dock station 2"), "at DockStation2 now"));
        assert!(is_in(&phrase("dockstation2 now"), "at DockStation2 now"));
        assert!(is_in(&phrase("at DockStation2"), "at dock station 2"));
    }

    #[test]
    fn what_is_said_twice_counts_once_and_too_much_is_refused() {
        assert_eq!(
            read("mug red mug -a* -a* -b -b \"a b\" \"a b\"").words(),
            ["mug", "red", "a", "b"]
        );
        assert_eq!(read("-a* -a* -b -b").excluded().prefixes, ["a"]);
        assert_eq!(read("-a* -a* -b -b").excluded().words, ["b"]);
        assert_eq!(read("\"a b\" \"a b\"").phrases().len(), 1);
        let each = |count: usize, of: &dyn Fn(usize) -> String| {
            Question::parse(&(0..count).map(of).collect::<Vec<_>>().join(" "))
        };
        assert!(each(MOST_WORDS, &|at| format!("w{at}")).is_ok());
        assert_eq!(each(MOST_WORDS + 1, &|at| format!("w{at}")), Err(TooLong));
        assert_eq!(each(MOST_WORDS + 1, &|at| format!("-w{at}")), Err(TooLong));
        for sign in ["w#*", "-w#*", "\"w#\"", "-\"a w#\""] {
            assert!(each(MOST_SIGNS, &|at| sign.replace('#', &at.to_string())).is_ok(), "{sign}");
            let more = each(MOST_SIGNS + 1, &|at| sign.replace('#', &at.to_string()));
            assert_eq!(more, Err(TooLong), "{sign}");
        }
        let token = (0..1_000_000).map(|at| format!("{at}_")).collect::<String>();
        assert_eq!(Question::parse(&token), Err(TooLong));
    }

    #[test]
    fn a_plain_text_has_no_signs() {
        let question = Question::from("-open \"red mug\" dock*");
        assert_eq!(question.words(), ["open", "red", "mug", "dock"]);
        assert!(!question.needs_texts() && question.excluded().is_empty());
        assert!(!question.is_typed());
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "\\PC{0,40}|[-\"*a é„“]{0,20}") {
            if let Some(question) = Question::parse(&text).unwrap() {
                prop_assert!(question.ranks() || !question.excluded().is_empty());
            }
        }
    }
}
