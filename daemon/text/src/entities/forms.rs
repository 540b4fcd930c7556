//! Links, paths, identifiers and quotes: what its characters alone give away.

use super::vocabulary::FILE_ENDINGS;
use super::{EntityKind, Span};
use crate::lexeme::{LexemeKind, lexemes};
use crate::work::steps;

/// The most characters of a quoted entity: more is speech.
const MAX_QUOTED: usize = 60;

/// Links, paths and identifiers: stretches without white space, without the marks around them.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = Span> {
    let pieces = text.split(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '`' | '“' | '”' | '«' | '»' | ',' | ';')
    });
    pieces.filter_map(move |piece| {
        steps(4 * piece.len() + 1);
        let chunk = piece.trim_start_matches(['(', '[', '{', '<', '\'', '*', '#']);
        let chunk = chunk.trim_end_matches(['.', ':', '!', '?', ')', ']', '}', '>', '\'', '*']);
        // A call keeps its brackets: `open_gripper()`.
        let is_call = chunk.ends_with('(') && piece.contains("()");
        let chunk = if is_call { &piece[..piece.find("()")? + 2] } else { chunk };
        let chunk = chunk.trim_start_matches(['(', '[', '{', '<', '\'', '*', '#']);
        let chunk = chunk.strip_suffix("'s").unwrap_or(chunk);
        let kind = kind_of(chunk)?;
        let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
        let end = start + chunk.len();
        Some(Span::new(kind, start, end))
    })
}

fn kind_of(chunk: &str) -> Option<EntityKind> {
    if !chunk.contains(char::is_alphanumeric) {
        return None;
    }
    if is_link(chunk) {
        return Some(EntityKind::Link);
    }
    if is_path(chunk) {
        return Some(EntityKind::Path);
    }
    is_identifier(chunk).then_some(EntityKind::Identifier)
}

fn is_link(chunk: &str) -> bool {
    let scheme = chunk.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && !rest.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    });
    let mail = chunk.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty()
            && host.contains('.')
            && !host.starts_with('.')
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
    });
    scheme || mail || (chunk.starts_with("www.") && chunk.len() > 4)
}

fn is_path(chunk: &str) -> bool {
    let allowed = |c: char| {
        c.is_alphanumeric()
            || matches!(c, '/' | '.' | '_' | '-' | '~' | '+' | '@' | '*' | '{' | '}' | '$')
    };
    if !chunk.chars().all(allowed) || chunk.contains("//") {
        return false;
    }
    let has_ending = || {
        let name = chunk.rsplit('/').next().unwrap_or(chunk);
        name.rsplit_once('.').is_some_and(|(stem, ending)| {
            stem.contains(char::is_alphanumeric)
                && FILE_ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
        })
    };
    let is_rooted = ["/", "./", "../", "~/"]
        .iter()
        .any(|root| chunk.len() > root.len() && chunk.starts_with(root));
    is_rooted
        || has_ending()
        || chunk.len() > 1 && chunk.ends_with('/')
        || chunk.matches('/').take(2).count() == 2
            && !chunk.starts_with(|c: char| c.is_ascii_digit())
}

/// Names made for machines: with `_`, `::` or `()`, with a capital inside, or of letters and digits together.
fn is_identifier(chunk: &str) -> bool {
    let inner = chunk.trim_end_matches("()");
    let inner = inner.strip_prefix("--").or(inner.strip_prefix('@')).unwrap_or(inner);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if inner.is_empty() || !inner.chars().all(is_name) {
        return false;
    }
    let joined = |mark: &str| {
        inner.split_once(mark).is_some_and(|(a, b)| {
            a.contains(char::is_alphanumeric) && b.contains(char::is_alphanumeric)
        })
    };
    if inner.len() < chunk.len() || joined("_") || joined("::") {
        return true;
    }
    let bytes = inner.as_bytes();
    let hump =
        bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    if hump && bytes.iter().all(u8::is_ascii_alphanumeric) {
        return true;
    }
    let has_digit = inner.contains(|c: char| c.is_ascii_digit());
    let has_letter = inner.contains(char::is_alphabetic);
    let is_address = || {
        inner.split('.').count() >= 3
            && inner
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    if !has_digit || !has_letter {
        return has_digit && is_address();
    }
    // `40cm`, `9:05` and `2026-05-30T11:42Z` are read as numbers and times, `2nd` is an ordinal.
    let mut parts = lexemes(inner);
    let is_one_word = parts
        .next()
        .is_some_and(|first| first.kind == LexemeKind::Word && first.text.len() == inner.len());
    is_one_word && !is_ordinal(inner)
}

fn is_ordinal(word: &str) -> bool {
    let ending = word.trim_start_matches(|c: char| c.is_ascii_digit());
    ending.len() < word.len() && ["st", "nd", "rd", "th", "x", "D"].contains(&ending)
}

/// Quoted and code words: from a quote to its closing one in the same line, at most [`MAX_QUOTED`] characters on.
pub(super) fn quotes(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut rest = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let after = std::mem::replace(&mut before, c);
        if at < rest {
            continue;
        }
        let close: &[char] = match c {
            '"' => &['"'],
            '`' => &['`'],
            '“' => &['”'],
            '„' => &['“', '”'],
            '«' => &['»'],
            '「' => &['」'],
            '\'' if !after.is_alphanumeric() => &['\''],
            _ => continue,
        };
        let begin = at + c.len_utf8();
        let mut inside =
            text[begin..].char_indices().take(MAX_QUOTED + 1).take_while(|&(_, c)| c != '\n');
        steps(MAX_QUOTED);
        let Some((length, mark)) = inside.find(|&(_, c)| close.contains(&c)) else { continue };
        let end = begin + length + mark.len_utf8();
        // An apostrophe within a word closes nothing.
        let is_inner = mark == '\'' && text[end..].starts_with(char::is_alphanumeric);
        let quoted = &text[begin..begin + length];
        if !is_inner && quoted.trim() == quoted && quoted.contains(char::is_alphanumeric) {
            spans.push(Span {
                start: at,
                end,
                kind: EntityKind::Quoted,
                shown: (begin, begin + length),
            });
            rest = end;
        }
    }
    spans
}
