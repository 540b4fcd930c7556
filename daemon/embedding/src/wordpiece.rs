//! BERT's way from a text to tokens: clean, lower case, no accents, words apart from punctuation, and of each word the longest
//! pieces that are in the vocabulary.
//!
//! It does what the library `tokenizers` does with a `BertNormalizer`, a `BertPreTokenizer` and a `WordPiece` model.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::categories::{is_chinese, is_other, is_punctuation, is_spacing_mark};

/// Longest piece of the vocabulary that is looked for, in bytes; a longer one is never found.
const MAX_PIECE: usize = 512;
/// Most tokens of a vocabulary.
const MAX_TOKENS: usize = 4 << 20;

/// A tokenizer that cannot be read, or that is of another kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadTokenizer(pub(crate) String);

/// The cleaning of a text before it is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Normalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
}

/// A text that stands for one token wherever it occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Added {
    content: String,
    id: u32,
}

/// A tokenizer.
#[derive(Debug, Clone)]
pub(crate) struct WordPiece {
    vocabulary: HashMap<Box<str>, u32>,
    normalizer: Normalizer,
    added: Vec<Added>,
    unknown: Option<u32>,
    prefix: Box<str>,
    max_chars_per_word: usize,
    /// Bytes of the longest piece.
    longest: usize,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<FileAdded>,
    normalizer: Option<FileNormalizer>,
    pre_tokenizer: Option<Kind>,
    model: FileModel,
}

#[derive(Deserialize)]
struct FileAdded {
    id: u32,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct FileNormalizer {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default = "yes")]
    clean_text: bool,
    #[serde(default = "yes")]
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    #[serde(default = "yes")]
    lowercase: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct FileModel {
    #[serde(rename = "type")]
    kind: Option<String>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    max_input_chars_per_word: Option<usize>,
    vocab: Option<HashMap<Box<str>, u32>>,
}

impl WordPiece {
    /// Reads `tokenizer.json`.
    pub(crate) fn from_json(bytes: &[u8]) -> Result<Self, BadTokenizer> {
        // First the kind: another kind of model has another form of vocabulary.
        #[derive(Deserialize)]
        struct Kinds {
            model: Kind,
        }
        let kinds: Kinds = serde_json::from_slice(bytes).map_err(|error| {
            BadTokenizer(format!("it is no tokenizer of the library `tokenizers`: {error}"))
        })?;
        if kinds.model.kind != "WordPiece" {
            let kind = kinds.model.kind;
            let message = format!("its model is {kind:?}; only WordPiece is read");
            return Err(BadTokenizer(message));
        }
        let file: File =
            serde_json::from_slice(bytes).map_err(|error| BadTokenizer(error.to_string()))?;
        debug_assert_eq!(file.model.kind.as_deref(), Some("WordPiece"));
        let normalizer = match file.normalizer {
            Some(FileNormalizer {
                kind,
                clean_text,
                handle_chinese_chars,
                strip_accents,
                lowercase,
            }) if kind == "BertNormalizer" => {
                let strip_accents = strip_accents.unwrap_or(lowercase);
                Normalizer { clean_text, handle_chinese_chars, strip_accents, lowercase }
            }
            other => {
                let kind = other.map_or("none".to_owned(), |other| format!("{:?}", other.kind));
                let message = format!("its normalizer is {kind}; only \"BertNormalizer\" is read");
                return Err(BadTokenizer(message));
            }
        };
        if file.pre_tokenizer.as_ref().map(|one| one.kind.as_str()) != Some("BertPreTokenizer") {
            let kind =
                file.pre_tokenizer.map_or("none".to_owned(), |one| format!("{:?}", one.kind));
            let message = format!("its pre-tokenizer is {kind}; only \"BertPreTokenizer\" is read");
            return Err(BadTokenizer(message));
        }
        let vocabulary = file.model.vocab.unwrap_or_default();
        let mut added = Vec::new();
        for one in file.added_tokens {
            if one.content.is_empty() {
                continue;
            }
            if one.single_word || one.lstrip || one.rstrip || one.normalized {
                let content = one.content;
                let message =
                    format!("its added token {content:?} asks for more than to be found as it is");
                return Err(BadTokenizer(message));
            }
            added.push(Added { content: one.content, id: one.id });
        }
        let unknown = file.model.unk_token.as_deref().unwrap_or("[UNK]");
        let prefix = file.model.continuing_subword_prefix.unwrap_or_else(|| "##".to_owned());
        let max = file.model.max_input_chars_per_word.unwrap_or(100);
        Self::of(vocabulary, normalizer, added, unknown, prefix, max)
    }

    /// Reads `vocab.txt`: a token on each line, its number that of the line.
    pub(crate) fn from_vocabulary(bytes: &[u8], lowercase: bool) -> Result<Self, BadTokenizer> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| BadTokenizer(format!("vocab.txt is no UTF-8: {error}")))?;
        let mut vocabulary = HashMap::new();
        for (id, token) in (0u32..).zip(text.lines()) {
            vocabulary.insert(token.trim_end().into(), id);
        }
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
        let id =
            |content: &str| Some(Added { content: content.into(), id: *vocabulary.get(content)? });
        let added = special.into_iter().filter_map(id).collect();
        let normalizer = Normalizer {
            clean_text: true,
            handle_chinese_chars: true,
            strip_accents: lowercase,
            lowercase,
        };
        Self::of(vocabulary, normalizer, added, "[UNK]", "##".to_owned(), 100)
    }

    fn of(
        vocabulary: HashMap<Box<str>, u32>,
        normalizer: Normalizer,
        added: Vec<Added>,
        unknown: &str,
        prefix: String,
        max_chars_per_word: usize,
    ) -> Result<Self, BadTokenizer> {
        if vocabulary.is_empty() || vocabulary.len() > MAX_TOKENS {
            let count = vocabulary.len();
            return Err(BadTokenizer(format!("its vocabulary has {count} tokens")));
        }
        let unknown = vocabulary.get(unknown).copied();
        let longest = vocabulary.keys().map(|piece| piece.len()).max().unwrap_or(0).min(MAX_PIECE);
        let prefix = prefix.into();
        Ok(Self { vocabulary, normalizer, added, unknown, prefix, max_chars_per_word, longest })
    }

    /// The largest number of a token.
    pub(crate) fn largest(&self) -> u32 {
        let added = self.added.iter().map(|one| one.id);
        self.vocabulary.values().copied().chain(added).max().unwrap_or(0)
    }

    /// The median length of the tokens in characters, as the Python library counts it.
    pub(crate) fn median_length(&self) -> usize {
        let known = |one: &&Added| !self.vocabulary.contains_key(one.content.as_str());
        let added = self.added.iter().filter(known).map(|one| one.content.chars().count());
        let mut lengths: Vec<usize> =
            self.vocabulary.keys().map(|token| token.chars().count()).chain(added).collect();
        lengths.sort_unstable();
        let middle = lengths.len() / 2;
        match lengths.get(middle) {
            Some(upper) if lengths.len().is_multiple_of(2) => (lengths[middle - 1] + upper) / 2,
            Some(middle) => *middle,
            None => 0,
        }
    }

    /// The number of a token that is added, such as `[CLS]`, or of the vocabulary.
    #[cfg(feature = "onnx")]
    pub(crate) fn id_of(&self, token: &str) -> Option<u32> {
        let added = self.added.iter().find(|one| one.content == token).map(|one| one.id);
        added.or_else(|| self.vocabulary.get(token).copied())
    }

    /// Calls `f` with each token of a text, the unknown one left out, until it returns false.
    pub(crate) fn tokens(&self, text: &str, f: &mut dyn FnMut(u32) -> bool) {
        self.each(text, &mut |token| token.is_none_or(&mut *f));
    }

    /// Calls `f` with each token of a text, the unknown one too, until it returns false.
    #[cfg(feature = "onnx")]
    pub(crate) fn tokens_and_unknown(&self, text: &str, f: &mut dyn FnMut(u32) -> bool) {
        self.each(text, &mut |token| token.or(self.unknown).is_none_or(&mut *f));
    }

    /// Calls `f` with each token of a text, `None` for the unknown one, until it returns false.
    fn each(&self, text: &str, f: &mut dyn FnMut(Option<u32>) -> bool) {
        let mut rest = text;
        while !rest.is_empty() {
            let next = self.added.iter().filter_map(|one| {
                let at = rest.find(&one.content)?;
                Some((at, std::cmp::Reverse(one.content.len()), one.id))
            });
            let Some((at, std::cmp::Reverse(length), id)) = next.min() else {
                self.split(rest, f);
                return;
            };
            let (before, found) = rest.split_at(at);
            if !before.is_empty() && !self.split(before, f) {
                return;
            }
            if !f(Some(id).filter(|_| Some(id) != self.unknown)) {
                return;
            }
            rest = found.get(length..).unwrap_or("");
        }
    }

    /// The tokens of a part without added ones; returns false if `f` did.
    fn split(&self, part: &str, f: &mut dyn FnMut(Option<u32>) -> bool) -> bool {
        let text = self.normalizer.normalize(part);
        let mut piece = String::with_capacity(self.prefix.len() + self.longest);
        let mut start = None;
        for (at, c) in text.char_indices() {
            let is_punctuation = is_punctuation(c);
            if !(is_punctuation || c.is_whitespace()) {
                start.get_or_insert(at);
                continue;
            }
            if let Some(start) = start.take()
                && !self.word(&text[start..at], &mut piece, f)
            {
                return false;
            }
            if is_punctuation && !self.word(&text[at..at + c.len_utf8()], &mut piece, f) {
                return false;
            }
        }
        start.is_none_or(|start| self.word(&text[start..], &mut piece, f))
    }

    /// The pieces of a word; returns false if `f` did. `piece` is scratch.
    fn word(&self, word: &str, piece: &mut String, f: &mut dyn FnMut(Option<u32>) -> bool) -> bool {
        if word.chars().nth(self.max_chars_per_word).is_some() {
            return f(None);
        }
        let mut found = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let prefix: &str = if start == 0 { "" } else { &self.prefix };
            let room = self.longest.saturating_sub(prefix.len());
            let mut end = boundary_before(word, word.len().min(start + room));
            let id = loop {
                if end <= start {
                    // Nothing of it is known: the whole word is the unknown token.
                    return f(None);
                }
                piece.clear();
                piece.push_str(prefix);
                piece.push_str(&word[start..end]);
                if let Some(id) = self.vocabulary.get(piece.as_str()) {
                    break *id;
                }
                end = boundary_before(word, end - 1);
            };
            found.push(id);
            start = end;
        }
        found.into_iter().all(|id| f(Some(id).filter(|_| Some(id) != self.unknown)))
    }
}

/// The last place at or before `at` where a character begins.
fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl Normalizer {
    fn normalize(self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        for c in text.chars() {
            let is_space = matches!(c, '\t' | '\n' | '\r') || c.is_whitespace();
            if self.clean_text && (c == '\0' || c == '\u{fffd}' || (is_other(c) && !is_space)) {
                continue;
            }
            if self.handle_chinese_chars && is_chinese(c) {
                clean.extend([' ', c, ' ']);
            } else {
                clean.push(if self.clean_text && is_space { ' ' } else { c });
            }
        }
        if self.strip_accents && !clean.is_ascii() {
            let is_accent = |c: &char| is_combining_mark(*c) && !is_spacing_mark(*c);
            clean = clean.nfd().filter(|c| !is_accent(c)).collect();
        }
        if self.lowercase {
            if clean.is_ascii() {
                clean.make_ascii_lowercase();
            } else {
                // By characters, as the library does: a final sigma stays what it is.
                clean = clean.chars().flat_map(char::to_lowercase).collect();
            }
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokenizer() -> WordPiece {
        let words = "[PAD]\n[UNK]\na\nwhite\nmug\nun\n##aff\n##able\n,\n猫\nsigma\nσ\nfull\n##y";
        WordPiece::from_vocabulary(words.as_bytes(), true).unwrap()
    }

    fn tokens(text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        tokenizer().tokens(text, &mut |id| {
            found.push(id);
            true
        });
        found
    }

    #[test]
    fn texts_become_tokens_by_hand() {
        for (text, expected) in [
            ("A white  MUG", &[2, 3, 4][..]),
            ("unaffable", &[5, 6, 7]),
            ("unaffablex mug", &[4]),
            ("mug,mug", &[4, 8, 4]),
            ("w\u{302}h\u{ad}ite\u{0}", &[3]),
            ("猫猫", &[9, 9]),
            ("Σ", &[11]),
            ("[PAD]mug[UNK]", &[0, 4]),
            ("fully", &[12, 13]),
            ("", &[]),
            (&"m".repeat(101), &[]),
        ] {
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }

    #[test]
    fn other_kinds_are_refused_by_name() {
        for (json, named) in [
            ("{}", "no tokenizer"),
            (r#"{"model":{"type":"Unigram","vocab":[["a",0]]}}"#, "Unigram"),
            (r#"{"model":{"type":"WordPiece","vocab":{"a":0}}}"#, "normalizer is none"),
            (
                r#"{"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"Metaspace"},
                    "model":{"type":"WordPiece","vocab":{"a":0}}}"#,
                "Metaspace",
            ),
            (
                r#"{"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},
                    "model":{"type":"WordPiece","vocab":{}}}"#,
                "0 tokens",
            ),
        ] {
            let BadTokenizer(message) = WordPiece::from_json(json.as_bytes()).unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }
}
