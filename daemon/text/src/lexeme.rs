//! Words, numbers and times of a text with their positions: what facts, entities and claims are read from.
//!
//! Unlike [`words`](crate::words()) a lexeme keeps its spelling, its case and its place. A name such as `dock_3`, `read-only`,
//! `v1.2.3` or `8f12c4` is one word; `40%` and `21 °C` are a number and a word.

use crate::unit::Unit;
use crate::work::steps;

/// One lexeme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lexeme<'a> {
    pub(crate) kind: LexemeKind,
    /// The lexeme as it stands.
    pub(crate) text: &'a str,
    /// Its first byte in the text.
    pub(crate) start: usize,
}

impl Lexeme<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(crate) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == LexemeKind::Symbol && self.text == symbol
    }

    /// Returns true if it is a word, in any case, with either apostrophe.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.kind == LexemeKind::Word && eq_folded(self.text, word)
    }
}

/// Compares a text with a lower-case ASCII one, whatever the case and the apostrophe.
pub(crate) fn eq_folded(text: &str, lower: &str) -> bool {
    let folded = text.chars().map(|c| if c == '\u{2019}' { '\'' } else { c.to_ascii_lowercase() });
    folded.eq(lower.chars())
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LexemeKind {
    Word,
    /// A number and its value.
    Number(f64),
    /// A time of day, a date, or both.
    Time,
    /// One character that is none of these.
    Symbol,
}

/// The longest run of digits and marks that is read as a number or a time; longer ones are words.
const MAX_NUMBER: usize = 40;

/// Returns the lexemes of `text` in order, white space left out.
pub(crate) fn lexemes(text: &str) -> impl Iterator<Item = Lexeme<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let gap = text[at..].len() - text[at..].trim_start().len();
        at += gap;
        let first = text[at..].chars().next()?;
        let after_word = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let (kind, length) = lexeme(&text[at..], first, after_word);
        let found = Lexeme { kind, text: &text[at..at + length], start: at };
        at += length;
        steps(gap + length);
        Some(found)
    })
}

/// The kind and the length of the first lexeme of `rest`, which begins with `first`.
fn lexeme(rest: &str, first: char, after_word: bool) -> (LexemeKind, usize) {
    let second_is_digit = rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
    let is_signed = matches!(first, '-' | '+' | '−') && second_is_digit && !after_word;
    if first.is_ascii_digit() || is_signed {
        return number(rest, if is_signed { first.len_utf8() } else { 0 });
    }
    if first.is_alphanumeric() || first == '_' {
        return (LexemeKind::Word, word_length(rest));
    }
    (LexemeKind::Symbol, first.len_utf8())
}

/// The length of a word: letters, digits and `_`, and `-`, `'` or `.` between two of them. A dot only before a digit: `v1.2`.
fn word_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        let goes_on = match c {
            '-' | '\'' | '\u{2019}' => next.is_some_and(char::is_alphanumeric),
            '.' => next.is_some_and(|c| c.is_ascii_digit()),
            c => {
                c.is_alphanumeric() || c == '_' || unicode_normalization::char::is_combining_mark(c)
            }
        };
        steps(1);
        if !goes_on {
            return at;
        }
    }
    rest.len()
}

/// A number, a time, or a word that begins with a digit.
fn number(rest: &str, sign: usize) -> (LexemeKind, usize) {
    let bytes = rest.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if sign == 0
        && let Some(length) = time_length(bytes)
    {
        return (LexemeKind::Time, length);
    }
    let (mut end, mut marks) = (sign, 0);
    while digit(end) || matches!(bytes.get(end), Some(b'.' | b',')) && digit(end + 1) {
        marks += usize::from(!digit(end));
        end += 1;
        if end > MAX_NUMBER {
            return (LexemeKind::Word, word_length(&rest[sign..]) + sign);
        }
    }
    steps(end);
    let is_joined = rest[end..].starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_name = is_joined && Unit::first_of(&rest[end..]).is_none();
    match value(&rest[..end], marks) {
        Some(value) if !is_name => (LexemeKind::Number(value), end),
        _ => (LexemeKind::Word, end.max(sign + word_length(&rest[sign..]))),
    }
}

/// The value of `text`. A comma before exactly three digits parts thousands, any other is a decimal comma. `None` for what is
/// no one number, such as `10.0.0.5`.
fn value(text: &str, marks: usize) -> Option<f64> {
    let text = text.replace('−', "-");
    let parts_thousands =
        |at: usize| text[at + 1..].bytes().take_while(u8::is_ascii_digit).count() == 3;
    let commas: Vec<usize> = text.match_indices(',').map(|(at, _)| at).collect();
    let plain = match (commas.len(), marks) {
        (0, 0 | 1) => text,
        (1, 1) if !parts_thousands(commas[0]) => text.replace(',', "."),
        (n, marks) if marks <= n + 1 && commas.iter().all(|&at| parts_thousands(at)) => {
            text.replace(',', "")
        }
        _ => return None,
    };
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The length of a date (`2026-05-30`, with `T11:42:05Z` behind it or not) or a time of day (`9:05`, `11:42:05`).
fn time_length(bytes: &[u8]) -> Option<usize> {
    let digits = |at: usize| {
        bytes.get(at..).unwrap_or(&[]).iter().take(5).take_while(|b| b.is_ascii_digit()).count()
    };
    let is = |at: usize, mark: u8| bytes.get(at) == Some(&mark);
    let clock = |at: usize| {
        let hours = digits(at);
        if !(1..=2).contains(&hours) || !is(at + hours, b':') || digits(at + hours + 1) != 2 {
            return None;
        }
        let mut end = at + hours + 3;
        if is(end, b':') && digits(end + 1) == 2 {
            end += 3;
            if is(end, b'.') && digits(end + 1) > 0 {
                end += 1;
                while bytes.get(end).is_some_and(u8::is_ascii_digit) {
                    end += 1;
                }
            }
        }
        Some(end)
    };
    let is_date = digits(0) == 4 && is(4, b'-') && digits(5) == 2 && is(7, b'-') && digits(8) == 2;
    let mut end = if is_date {
        let joined = is(10, b'T').then(|| clock(11)).flatten();
        joined.unwrap_or(10)
    } else {
        clock(0)?
    };
    if is(end, b'Z') && end > 10 {
        end += 1;
    } else if end > 10 && (is(end, b'+') || is(end, b'-')) {
        end = clock(end + 1).unwrap_or(end);
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<(&str, LexemeKind)> {
        lexemes(text).map(|lexeme| (lexeme.text, lexeme.kind)).collect()
    }

    #[test]
    fn words_numbers_and_times() {
        use LexemeKind::{Number, Symbol, Time, Word};
        assert_eq!(
            kinds("Don’t touch dock_3: 40% read-only"),
            [
                ("Don’t", Word),
                ("touch", Word),
                ("dock_3", Word),
                (":", Symbol),
                ("40", Number(40.0)),
                ("%", Symbol),
                ("read-only", Word)
            ]
        );
        assert_eq!(
            kinds("8f12c4 3m 21°C"),
            [
                ("8f12c4", Word),
                ("3", Number(3.0)),
                ("m", Word),
                ("21", Number(21.0)),
                ("°", Symbol),
                ("C", Word)
            ]
        );
        assert_eq!(
            kinds("1,200 3,5 -2.5 10.0.0.5"),
            [
                ("1,200", Number(1200.0)),
                ("3,5", Number(3.5)),
                ("-2.5", Number(-2.5)),
                ("10.0.0.5", Word)
            ]
        );
        assert_eq!(
            kinds("9:05 2026-05-30T11:42:05Z 2026-05-30."),
            [("9:05", Time), ("2026-05-30T11:42:05Z", Time), ("2026-05-30", Time), (".", Symbol)]
        );
        assert_eq!(kinds("11:42:05.25+02:00 x-3"), [("11:42:05.25+02:00", Time), ("x-3", Word)]);
        assert_eq!(kinds("v1.2.3 end."), [("v1.2.3", Word), ("end", Word), (".", Symbol)]);
    }

    proptest! {
        #[test]
        fn lexemes_leave_only_white_space(text in "(?s).{0,60}|[-+0-9.,:TZa°%_ ]{0,40}") {
            let mut at = 0;
            for lexeme in lexemes(&text) {
                prop_assert!(!lexeme.text.is_empty());
                prop_assert!(text[at..lexeme.start].trim().is_empty());
                at = lexeme.end();
            }
            prop_assert!(text[at..].trim().is_empty());
        }
    }
}
