//! Sentences of a text, as slices of it.
//!
//! The rule is that of `extract-1`: each line has sentences of its own, and a sentence ends at `.`, `!` or `?` before white
//! space or the end of the line. Additions, so that no fact is cut in two:
//!
//! - Closing quotes and brackets behind the mark belong to it. The sentence goes on behind them with a small letter:
//!   `He said "stop!" and left.`
//! - The full stops of East Asia (`。！？`) end a sentence wherever they stand, because no space follows them.
//! - A full stop behind an abbreviation ([`ABBREVIATIONS`]) ends nothing.
//! - A full stop behind one of [`BEFORE_NUMBERS`] ends nothing if a digit follows: `approx. 3 m` is one fact.

use crate::work::steps;

/// Abbreviations that never end a sentence, in lower case and without their last full stop.
const ABBREVIATIONS: &[&str] =
    &["bzw", "cf", "d.h", "dr", "e.g", "i.e", "mr", "mrs", "ms", "prof", "u.a", "vs", "z.b"];

/// Abbreviations that end nothing before a number; some of them are words too, such as `no`.
const BEFORE_NUMBERS: &[&str] = &[
    "abs", "approx", "art", "ca", "ch", "eq", "fig", "max", "min", "no", "nos", "nr", "p", "para",
    "pp", "rev", "sec", "tab", "v", "ver", "vol",
];

/// The longest abbreviation that is looked for, in bytes.
const MAX_ABBREVIATION: usize = 8;

/// Returns the sentences of `text` in order, trimmed of white space. None is empty.
///
/// Takes time linear in the text and allocates nothing.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r', '\u{2028}', '\u{2029}'])
        .flat_map(Line::new)
        .filter(|sentence| !sentence.is_empty())
}

/// What is left of a line.
struct Line<'a> {
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Self {
        Self { rest: line.trim() }
    }
}

impl<'a> Iterator for Line<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let end = end_of_first(self.rest);
        let (sentence, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        Some(sentence.trim_end())
    }
}

/// The end of the first sentence, in bytes. Never 0 for a line that begins with no white space.
fn end_of_first(line: &str) -> usize {
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        steps(1);
        let is_wide = matches!(c, '。' | '！' | '？');
        if !is_wide && !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some(&(next, mark)) = chars.peek() {
            if !is_closing(mark) && !matches!(mark, '.' | '!' | '?' | '。' | '！' | '？') {
                break;
            }
            end = next + mark.len_utf8();
            chars.next();
        }
        let follows = chars.peek().map(|&(_, c)| c);
        let is_end = is_wide || follows.is_none_or(char::is_whitespace);
        let is_quoted = line[..end].ends_with(is_closing);
        if is_quoted && line[end..].trim_start().starts_with(char::is_lowercase) {
            continue;
        }
        let is_single_stop = c == '.' && end == at + 1;
        if is_end && !(is_single_stop && is_abbreviation(&line[..at], &line[end..])) {
            return end;
        }
    }
    line.len()
}

/// Quotes and brackets that close what the sentence opened.
fn is_closing(c: char) -> bool {
    matches!(
        c,
        '"' | '\'' | ')' | ']' | '}' | '”' | '’' | '»' | '“' | '」' | '』' | '）' | '`' | '*'
    )
}

/// Returns true if the full stop between `before` and `after` belongs to an abbreviation.
fn is_abbreviation(before: &str, after: &str) -> bool {
    // Bytes of ASCII alone, and few: a long line must not be walked again for each of its full stops.
    let bytes = before.as_bytes();
    let tail = &bytes[bytes.len().saturating_sub(MAX_ABBREVIATION + 1)..];
    let begin =
        tail.iter().rposition(|b| !b.is_ascii_alphabetic() && *b != b'.').map_or(0, |at| at + 1);
    let Ok(word) = std::str::from_utf8(&tail[begin..]) else { return false };
    let is_whole = begin > 0 || tail.len() == bytes.len();
    if word.is_empty() || !is_whole {
        return false;
    }
    let one_of = |list: &[&str]| list.iter().any(|known| known.eq_ignore_ascii_case(word));
    let number_follows = after.trim_start().starts_with(|c: char| c.is_ascii_digit());
    one_of(ABBREVIATIONS) && !after.trim_start().is_empty()
        || one_of(BEFORE_NUMBERS) && number_follows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> Vec<&str> {
        sentences(text).collect()
    }

    #[test]
    fn sentences_end_at_marks_before_white_space_and_at_lines() {
        assert_eq!(
            list("Door 3 sticks. Why? Nobody knows!  It is v1.2.3 at 3.14 m"),
            ["Door 3 sticks.", "Why?", "Nobody knows!", "It is v1.2.3 at 3.14 m"]
        );
        assert_eq!(
            list("# Plan\n- one\n\n  - two. three\r\n"),
            ["# Plan", "- one", "- two.", "three"]
        );
        assert_eq!(
            list("He said \"stop.\" It did... Then (at last!) it went."),
            ["He said \"stop.\"", "It did...", "Then (at last!) it went."]
        );
        assert_eq!(list("Use main.rs and 10.0.0.5."), ["Use main.rs and 10.0.0.5."]);
        assert!(list(" \n\t\r\n ").is_empty());
        assert_eq!(list("..."), ["..."]);
    }

    #[test]
    fn no_fact_is_cut_at_an_abbreviation() {
        assert_eq!(list("Keep approx. 3 m away. Go."), ["Keep approx. 3 m away.", "Go."]);
        assert_eq!(list("Ask Dr. Chen, e.g. today. Yes."), ["Ask Dr. Chen, e.g. today.", "Yes."]);
        assert_eq!(list("Is it open? No. It is not."), ["Is it open?", "No.", "It is not."]);
        assert_eq!(list("See no. 7. End"), ["See no. 7.", "End"]);
        assert_eq!(list("It is not a chrono. 3 are."), ["It is not a chrono.", "3 are."]);
        assert_eq!(list("Look at fig"), ["Look at fig"]);
    }

    #[test]
    fn full_stops_of_east_asia_need_no_space() {
        assert_eq!(
            list("門が開く。入れ！なぜ？3.5メートル"),
            ["門が開く。", "入れ！", "なぜ？", "3.5メートル"]
        );
    }

    proptest! {
        #[test]
        fn sentences_are_slices_that_leave_only_white_space(text in "(?s)[a-c.!?。 \\n\"]{0,60}|.{0,60}") {
            let mut left = text.as_str();
            for sentence in sentences(&text) {
                prop_assert!(!sentence.is_empty());
                prop_assert_eq!(sentence.trim(), sentence);
                let at = left.find(sentence);
                prop_assert!(at.is_some());
                let at = at.unwrap();
                prop_assert!(left[..at].trim().is_empty(), "{:?} is lost", &left[..at]);
                left = &left[at + sentence.len()..];
            }
            prop_assert!(left.trim().is_empty());
        }

        #[test]
        fn a_sentence_is_one_sentence(text in "(?s)[a-c.!?。 \\n]{0,60}") {
            for sentence in sentences(&text) {
                prop_assert_eq!(sentences(sentence).collect::<Vec<_>>(), [sentence]);
            }
        }
    }
}
