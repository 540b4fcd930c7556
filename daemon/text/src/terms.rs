//! Splits text into the terms that are indexed and searched for.
//!
//! Recall by words works only if a record and a question written differently still meet: "Docks",
//! "dock" and "dock_station_2" share a term, "café" and "CAFE" are one. The same function serves
//! both sides, so whatever it decides, it decides alike. The engine's ranking sees only its output.
//! Changing a rule here invalidates every stored text block.
//!
//! The steps, in order:
//!
//! 1. NFKD; accents are dropped; NFC puts the rest together again. An accent is a mark that floats
//!    above, below or through its letter (combining classes 1, 10–36 and 200–240: Latin diacritics,
//!    Hebrew points, Arabic short vowels). Signs that spell the word, such as Indic and Thai vowels,
//!    viramas and kana voicing, stay. Soft hyphens and other invisible characters go.
//! 2. Words by UAX #29, then split further at everything that is neither letter, digit nor mark,
//!    because robots name things `map:dock_station_2` and `kitchen.door`, each a single word to the
//!    standard. A full stop between digits stays: `3.14`, `10.0.0.5`. The English possessive `'s`
//!    is dropped.
//! 3. Lower case; `ß` becomes `ss` and final `ς` becomes `σ`.
//! 4. Plurals: Harman's S-stemmer (1991), with one rule before it for the sibilants it would leave
//!    apart from their singular (box and boxes). Only ASCII words of more than three letters.
//! 5. At most [`MAX_TERM_BYTES`]: a longer term is cut at a character and not stemmed.
//!
//! An ASCII CamelCase name is one term and also its parts: `DockStation2` gives `dockstation2`,
//! `dock`, `station`, `2`. Names with a part of fewer than three letters (`LiDAR`, `iPhone`,
//! `WiFi`) are ordinary words in fancy dress and stay whole.
//!
//! Invariants: terms are never empty, never longer than [`MAX_TERM_BYTES`], and pure ASCII text
//! gives the same terms by the fast path as by the general one.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

use crate::work::steps;

/// Longest term handed out, in bytes of UTF-8.
pub const MAX_TERM_BYTES: usize = 64;

/// Fewest letters each part of a CamelCase name must have for the parts to count as words.
const MIN_CAMEL_PART: usize = 3;

/// Calls `f` with every term of `text`, in order of appearance, repetitions included.
///
/// Never fails, whatever the text. Allocates one small buffer a call, and for text that is not
/// ASCII a second one as long as the longest stretch without white space.
pub fn terms(text: &str, f: impl FnMut(&str)) {
    split(text, Plurals::Stripped, Names::Both, f);
}

/// Calls `f` with every word of `text`: its terms, with plurals as they stand (step 4 is left out).
///
/// A stemmer works on these: it has rules of its own for plurals.
pub fn words(text: &str, f: impl FnMut(&str)) {
    split(text, Plurals::Kept, Names::Both, f);
}

/// Calls `f` with the words of `text` as they follow one another: a CamelCase name is one word here, or else its parts.
///
/// A search for a phrase looks in both: `at DockStation2` and `dock station` stand in the same text.
pub fn sequence(text: &str, are_split: bool, f: impl FnMut(&str)) {
    split(text, Plurals::Kept, if are_split { Names::Parts } else { Names::Whole }, f);
}

/// What becomes of an English plural.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plurals {
    Stripped,
    Kept,
}

/// What becomes of a CamelCase name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Both,
    Whole,
    Parts,
}

/// The term under way.
struct Buffer {
    text: String,
    plurals: Plurals,
    names: Names,
}

fn split(text: &str, plurals: Plurals, names: Names, mut f: impl FnMut(&str)) {
    steps(text.len());
    let mut token = Buffer { text: String::with_capacity(MAX_TERM_BYTES), plurals, names };
    if text.is_ascii() {
        return ascii_words(text, &mut token, &mut f);
    }
    // One foreign word in a long note must not slow down the rest of it.
    let mut folded = String::new();
    for chunk in text.split_ascii_whitespace() {
        if chunk.is_ascii() {
            ascii_words(chunk, &mut token, &mut f);
        } else {
            general_words(chunk, &mut folded, &mut token, &mut f);
        }
    }
}

/// Words of any text; `folded` is a buffer for its normalized form.
fn general_words(text: &str, folded: &mut String, token: &mut Buffer, f: &mut impl FnMut(&str)) {
    folded.clear();
    let decomposed = text.nfkd().filter(|&c| !is_accent(c) && !is_invisible(c));
    // Typographic and plain apostrophe mean the same; later steps know only the plain one.
    folded.extend(decomposed.nfc().map(|c| if c == '\u{2019}' { '\'' } else { c }));
    if folded.is_ascii() {
        return ascii_words(folded, token, f);
    }
    for word in folded.unicode_words() {
        if word.is_ascii() {
            ascii_words(word, token, f);
            continue;
        }
        for part in word.split(|c: char| !c.is_alphanumeric() && !is_combining_mark(c)) {
            if part.is_ascii() {
                ascii_words(part, token, f);
            } else if part.contains(char::is_alphanumeric) {
                emit_general(part, token, f);
            }
        }
    }
}

/// Marks whose absence leaves the same word, by canonical combining class.
fn is_accent(c: char) -> bool {
    c >= '\u{300}' && matches!(canonical_combining_class(c), 1 | 10..=36 | 200..=240)
}

/// Characters without a shape of their own: soft hyphen, joiners, direction and variation marks.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// The fast path: in ASCII, the rules come down to runs of letters and digits.
fn ascii_words(text: &str, token: &mut Buffer, f: &mut impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let is = |at: usize, class: fn(&u8) -> bool| bytes.get(at).is_some_and(class);
    let mut at = 0;
    while at < bytes.len() {
        if !is(at, u8::is_ascii_alphanumeric) {
            at += 1;
            continue;
        }
        let start = at;
        loop {
            while is(at, u8::is_ascii_alphanumeric) {
                at += 1;
            }
            let decimal_point = is(at, |&b| b == b'.')
                && is(at - 1, u8::is_ascii_digit)
                && is(at + 1, u8::is_ascii_digit);
            if !decimal_point {
                break;
            }
            at += 1;
        }
        emit_ascii(&text[start..at], token, f);
        let possessive = is(at, |&b| b == b'\'')
            && is(at - 1, u8::is_ascii_alphabetic)
            && is(at + 1, |&b| b == b's' || b == b'S')
            && !is(at + 2, u8::is_ascii_alphanumeric);
        if possessive {
            at += 2;
        }
    }
}

/// Hands out one ASCII word, and its parts if it is a CamelCase name.
fn emit_ascii(word: &str, token: &mut Buffer, f: &mut impl FnMut(&str)) {
    let bytes = word.as_bytes();
    let humps =
        bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    let is_name = humps
        && camel_parts(word).all(|part| !starts_with_letter(part) || part.len() >= MIN_CAMEL_PART);
    if !is_name || token.names != Names::Parts {
        emit_one_ascii(word, token, f);
    }
    if is_name && token.names != Names::Whole {
        for part in camel_parts(word) {
            emit_one_ascii(part, token, f);
        }
    }
}

fn starts_with_letter(part: &str) -> bool {
    part.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
}

/// Splits before a capital that follows a small letter, and between letters and digits.
fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let hump = |pair: &[u8]| {
            pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
                || pair[0].is_ascii_alphabetic() != pair[1].is_ascii_alphabetic()
        };
        let end = rest.as_bytes().windows(2).position(hump).map_or(rest.len(), |at| at + 1);
        let (part, tail) = rest.split_at(end);
        rest = tail;
        Some(part)
    })
}

fn emit_one_ascii(word: &str, token: &mut Buffer, f: &mut impl FnMut(&str)) {
    token.text.clear();
    steps(word.len());
    if word.len() <= MAX_TERM_BYTES {
        token.text.push_str(word);
        token.text.make_ascii_lowercase();
        strip_plural(token);
    } else {
        token.text.push_str(&word[..MAX_TERM_BYTES]);
        token.text.make_ascii_lowercase();
    }
    f(&token.text);
}

fn emit_general(word: &str, token: &mut Buffer, f: &mut impl FnMut(&str)) {
    token.text.clear();
    steps(word.len());
    'word: for c in word.chars().flat_map(char::to_lowercase) {
        let folded = match c {
            'ß' => ['s', 's'].as_slice(),
            'ς' => &['σ'],
            _ => &[c],
        };
        for &c in folded {
            if token.text.len() + c.len_utf8() > MAX_TERM_BYTES {
                break 'word;
            }
            token.text.push(c);
        }
    }
    // Folding can leave plain ASCII ("Straße"), which must meet its other spelling's stem.
    if token.text.is_ascii() {
        strip_plural(token);
    }
    f(&token.text);
}

/// Harman's S-stemmer; the first rule whose ending fits and is not excepted applies.
fn strip_plural(token: &mut Buffer) {
    if token.plurals == Plurals::Kept {
        return;
    }
    let word = &mut token.text;
    let len = word.len();
    if len <= 3 || !word.ends_with('s') || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return;
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if ends(&["ies"]) && !ends(&["eies", "aies"]) {
        word.truncate(len - 3);
        word.push('y');
    } else if ends(&["sses", "shes", "xes", "tches", "nches", "rches"]) {
        // Not Harman's: without it "boxes" becomes "boxe" and misses "box".
        word.truncate(len - 2);
    } else if ends(&["es"]) && !ends(&["aes", "ees", "oes"]) || !ends(&["us", "ss"]) {
        word.truncate(len - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        terms(text, |token| out.push(token.to_owned()));
        out
    }

    fn by_general_path(text: &str) -> Vec<String> {
        let (mut out, mut folded) = (Vec::new(), String::new());
        let mut token =
            Buffer { text: String::new(), plurals: Plurals::Stripped, names: Names::Both };
        folded.extend(text.nfkd());
        for word in folded.unicode_words() {
            ascii_words(word, &mut token, &mut |token: &str| out.push(token.to_owned()));
        }
        out
    }

    #[test]
    fn names_of_things_split_into_words_and_numbers() {
        assert_eq!(list("Room 12, charger-7"), ["room", "12", "charger", "7"]);
        assert_eq!(list("map:dock_station_2"), ["map", "dock", "station", "2"]);
        assert_eq!(
            list("kitchen.door v1.2 at 10.0.0.5."),
            ["kitchen", "door", "v1.2", "at", "10.0.0.5"]
        );
        assert_eq!(list("(1.5,-2.25)"), ["1.5", "2.25"]);
    }

    #[test]
    fn camel_case_is_one_name_and_its_parts() {
        assert_eq!(list("DockStation2"), ["dockstation2", "dock", "station", "2"]);
        assert_eq!(list("LiDAR iPhone ROS2 OpenCV"), ["lidar", "iphone", "ros2", "opencv"]);
    }

    #[test]
    fn plurals_meet_their_singular() {
        for (many, one) in [
            ("batteries", "battery"),
            ("doors", "door"),
            ("shoes", "shoe"),
            ("trees", "tree"),
            ("cables", "cable"),
            ("boxes", "box"),
            ("switches", "switch"),
            ("glasses", "glass"),
            ("caches", "cache"),
            ("dishes", "dish"),
        ] {
            assert_eq!(list(many), list(one), "{many}");
        }
        assert_eq!(list("gas bus status glass 120s"), ["gas", "bus", "status", "glass", "120s"]);
        assert_eq!(list("robot's robots' robot’s don't"), ["robot", "robot", "robot", "don", "t"]);
    }

    #[test]
    fn words_keep_their_plurals() {
        let mut out = Vec::new();
        words("Batteries of DockStations, cafés", |word| out.push(word.to_owned()));
        assert_eq!(out, ["batteries", "of", "dockstations", "dock", "stations", "cafes"]);
    }

    #[test]
    fn a_sequence_has_names_whole_or_their_parts() {
        let read = |are_split| {
            let mut out = Vec::new();
            sequence("At DockStation2 now", are_split, |word| out.push(word.to_owned()));
            out
        };
        assert_eq!(read(false), ["at", "dockstation2", "now"]);
        assert_eq!(read(true), ["at", "dock", "station", "2", "now"]);
    }

    #[test]
    fn spelling_variants_of_other_scripts_meet() {
        assert_eq!(list("Café CAFE\u{301} ﬁle"), ["cafe", "cafe", "file"]);
        assert_eq!(
            list("Straße STRASSE ΟΔΟΣ οδός İzmir"),
            ["strasse", "strasse", "οδοσ", "οδοσ", "izmir"]
        );
        assert_eq!(list("co\u{ad}operate m²"), ["cooperate", "m2"]);
        assert_eq!(list("كِتَاب"), list("كتاب"));
        // Spelling signs are not accents: ga is not ka, and Hangul is not taken apart.
        assert_ne!(list("がガス"), list("かガス"));
        assert_eq!(list("한국 हिन्दी"), ["한국", "हिन्दी"]);
        assert_eq!(list("房間"), ["房", "間"]);
        assert!(list(" \u{301} — 🤖 ___ ").is_empty());
    }

    #[test]
    fn long_words_are_cut_at_a_character() {
        assert_eq!(list(&"a".repeat(1000)), ["a".repeat(64)]);
        assert_eq!(list(&"ж".repeat(1000)), ["ж".repeat(32)]);
        assert_eq!(list(&"한".repeat(100)), ["한".repeat(21)]);
    }

    /// FNV-1a over the words of a text, each with its end.
    fn fingerprint(text: &str, mut hash: u64) -> u64 {
        words(text, |term| {
            for byte in term.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        });
        hash
    }

    /// The index on disk holds these words. If this fails, stored text blocks no longer fit: raise their format number.
    #[test]
    fn words_are_those_of_the_index_on_disk() {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        let sampled = (1..0x3100).chain((0x3100..0x1_0000).step_by(16));
        for c in sampled.filter_map(char::from_u32) {
            hash = fingerprint(&format!("Ab{c}Cds 2{c}3"), hash);
        }
        assert_eq!(hash, 0x974b_c2e3_6b2d_678a);
    }

    proptest! {
        #[test]
        fn ascii_paths_agree(text in "[ -~]{0,60}|[a-cA-C0-2s'._:, ]{0,30}") {
            prop_assert_eq!(list(&text), by_general_path(&text));
        }

        #[test]
        fn terms_are_short_lower_case_and_stable(text in "\\PC{0,80}") {
            for token in list(&text) {
                prop_assert!(!token.is_empty() && token.len() <= MAX_TERM_BYTES);
                prop_assert!(!token.contains(|c: char| c.is_ascii_uppercase() || c.is_whitespace()));
            }
        }

        #[test]
        fn normal_form_does_not_matter(text in "[a-zäöüéÉñçåêôŽ ]{0,30}") {
            prop_assert_eq!(list(&text), list(&text.nfd().collect::<String>()));
        }
    }
}
