//! Links, paths, identifiers and quotes: what its characters alone give away.

use super::vocabulary::{FILE_ENDINGS, FOLDERS, PREFIXES, SERVICES};
use super::{EntityKind, Span};
use crate::lexeme::{LexemeKind, lexemes};
use crate::unit::Unit;
use crate::work::steps;

/// The most characters of a quoted entity: more is speech.
const MAX_QUOTED: usize = 60;
/// The most digits of a reference; more are a colour or a hash.
const MAX_DIGITS: usize = 9;
/// The most letters of the kind before a reference: `PR`, `ISSUE`.
const MAX_KIND: usize = 7;

/// Links, paths and identifiers: stretches without white space, without the marks around them. Links are whole; of other
/// stretches each part between brackets and `=` is read by itself, as in `reload(pg_conf)` and `slot=cdc_1`.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = Span> {
    let pieces = text.split(|c: char| {
        c.is_whitespace() || matches!(c, '"' | '`' | '“' | '”' | '«' | '»' | ',' | ';')
    });
    pieces.flat_map(move |piece| {
        steps(4 * piece.len() + 1);
        let whole = trimmed(piece);
        let inner = if is_link(whole) { &[][..] } else { &['(', ')', '[', ']', '<', '>', '='][..] };
        piece.split(inner).filter_map(move |part| {
            let chunk = trimmed(part);
            let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
            let end = start + chunk.len();
            // The brackets of a call tell that a word is a name, and are no part of it.
            let is_call = || text[end..].starts_with("()") && is_plain_name(chunk);
            let kind = kind_of(chunk).or_else(|| is_call().then_some(EntityKind::Identifier))?;
            Some(Span::new(kind, start, end))
        })
    })
}

/// The stretch without the marks of the sentence around it.
fn trimmed(piece: &str) -> &str {
    let chunk = piece.trim_start_matches(['(', '[', '{', '<', '\'', '*', '#']);
    let chunk = chunk.trim_end_matches(['.', ':', '!', '?', ')', ']', '}', '>', '\'', '*']);
    chunk.strip_suffix("'s").unwrap_or(chunk)
}

/// Returns true for letters, digits and `_` that begin with no digit.
fn is_plain_name(chunk: &str) -> bool {
    chunk.len() > 1
        && !chunk.starts_with(|c: char| c.is_ascii_digit())
        && chunk.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn kind_of(chunk: &str) -> Option<EntityKind> {
    if !chunk.contains(char::is_alphanumeric) {
        return None;
    }
    if is_link(chunk) {
        return Some(EntityKind::Link);
    }
    // A place in a file is told by its line: `src/main.rs:44`.
    let (file, line) = chunk.split_once(':').unwrap_or((chunk, ""));
    if line.bytes().all(|b| b.is_ascii_digit() || b == b':') && is_path(file) {
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
        || is_pair(chunk)
}

/// Two names with one `/` between them, of which one is made for machines or is a usual folder: `deploy/orders-db`,
/// `tests/billing`, and not `and/or`.
fn is_pair(chunk: &str) -> bool {
    let Some((folder, name)) = chunk.split_once('/') else { return false };
    let is_name =
        |part: &str| part.len() > 1 && part.starts_with(char::is_alphabetic) && !part.contains('/');
    let is_made =
        |part: &str| part.contains(['_', '-', '.']) || part.ends_with(|c: char| c.is_ascii_digit());
    let is_folder = || FOLDERS.binary_search(&folder).is_ok();
    is_name(folder) && is_name(name) && (is_made(folder) || is_made(name) || is_folder())
}

/// Names made for machines: with `_` or `::`, with a capital inside, of words with dots between them, of letters and digits
/// together, or with the ending of a service. Options of commands (`--tail`), units and amounts (`500k`, `4m12s`) are none.
fn is_identifier(chunk: &str) -> bool {
    let inner = chunk.strip_prefix('@').unwrap_or(chunk);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if inner.is_empty() || inner.starts_with('-') || !inner.chars().all(is_name) {
        return false;
    }
    let joined = |mark: &str| {
        inner.split_once(mark).is_some_and(|(a, b)| {
            a.contains(char::is_alphanumeric) && b.contains(char::is_alphanumeric)
        })
    };
    if inner.len() < chunk.len() || joined("::") || is_dotted(inner) || is_service(inner) {
        return true;
    }
    if joined("_") {
        return inner.contains(char::is_alphabetic);
    }
    let is_unit = Unit::first_of(inner).is_some_and(|(_, length)| length == inner.len());
    if is_unit || is_amount(inner) {
        return false;
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
        inner.split('.').count() == 4
            && inner
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    if !has_digit || !has_letter {
        return has_digit && (is_address() || is_numbered(inner));
    }
    // `40cm`, `9:05` and `2026-05-30T11:42Z` are read as numbers and times, `2nd` is an ordinal.
    let mut parts = lexemes(inner);
    let is_one_word = parts
        .next()
        .is_some_and(|first| first.kind == LexemeKind::Word && first.text.len() == inner.len());
    is_one_word && !is_ordinal(inner)
}

/// Words of two letters and more with dots between them, as members and modules have them: `dates.today`. A sentence may
/// end at a dot without a space behind it, and the next begin with a capital.
fn is_dotted(chunk: &str) -> bool {
    let parts = chunk.split('.');
    let is_part = |part: &str| {
        part.chars().filter(|c| c.is_alphabetic()).nth(1).is_some()
            && part.starts_with(char::is_alphabetic)
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let count = parts.clone().count();
    count > 1
        && parts.clone().all(is_part)
        && (count > 2
            || parts.clone().next_back().is_some_and(|last| last.starts_with(char::is_lowercase)))
}

/// Digits, a hyphen and digits, as parts of a lot have them: `7731-04`. A year with its month is none.
fn is_numbered(chunk: &str) -> bool {
    let Some((lot, part)) = chunk.split_once('-') else { return false };
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_year = lot.len() == 4 && (lot.starts_with("19") || lot.starts_with("20"));
    is_digits(lot) && is_digits(part) && lot.len() > 3 && part.len() > 1 && !is_year
}

/// Lower-case words joined by hyphens, the last of which is a kind of program: `mail-gateway`.
fn is_service(chunk: &str) -> bool {
    let Some((first, last)) = chunk.rsplit_once('-') else { return false };
    SERVICES.binary_search(&last).is_ok()
        && PREFIXES.binary_search(&first).is_err()
        && first.starts_with(|c: char| c.is_ascii_lowercase())
        && first.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// A number with a letter of size, or a duration: `500k`, `1.2M`, `4m12s`.
fn is_amount(chunk: &str) -> bool {
    let mut letters =
        chunk.split(|c: char| c.is_ascii_digit() || c == '.').filter(|p| !p.is_empty());
    let is_size =
        |letters: &str| ["k", "K", "M", "G", "T", "B", "Gi", "Mi", "Ki"].contains(&letters);
    let is_time = |letters: &str| ["d", "h", "m", "s", "ms"].contains(&letters);
    let Some(first) = letters.next() else { return false };
    let is_last = letters.clone().next().is_none();
    chunk.starts_with(|c: char| c.is_ascii_digit())
        && (is_last && is_size(first) && chunk.ends_with(first)
            || is_time(first) && letters.all(is_time) && chunk.ends_with(char::is_alphabetic))
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
        let is_name = quoted.trim() == quoted && quoted.contains(char::is_alphabetic);
        if !is_inner && is_name && (c == '`' || !is_remark(quoted)) {
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

/// Returns true for what is quoted as it was said: one ordinary word, or words with a comma.
fn is_remark(quoted: &str) -> bool {
    quoted.contains(", ") || quoted.chars().all(char::is_lowercase)
}

/// References to what is kept under a number: `#77`, `PR #77`, `MR !12`.
pub(super) fn references(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    for (at, _) in text.match_indices(['#', '!']) {
        let digits = text[at + 1..].bytes().take(MAX_DIGITS).take_while(u8::is_ascii_digit).count();
        let before = &text.as_bytes()[at.saturating_sub(MAX_KIND + 1)..at];
        steps(MAX_DIGITS + MAX_KIND);
        let end = at + 1 + digits;
        let is_whole = !text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if digits == 0
            || digits == MAX_DIGITS
            || !is_whole
            || before.last().is_some_and(|b| *b != b' ' && *b != b'(' && *b != b'\n')
        {
            continue;
        }
        let kind = before.iter().rev().skip(1).take_while(|b| b.is_ascii_uppercase()).count();
        let is_kind = before.last() == Some(&b' ') && (2..MAX_KIND).contains(&kind);
        if is_kind || text.as_bytes()[at] == b'#' {
            let start = if is_kind { at - 1 - kind } else { at };
            spans.push(Span::new(EntityKind::Identifier, start, end));
        }
    }
    spans
}
