//! Tests that hold for every function: no panic, and work in proportion to the text, on texts made to be awkward.

use crate::work::counted;
use crate::{Approx1, Claim, HashedEmbedding, Language, Rarity, StemSet, TokenCounter};
use crate::{constraint_cue, entities, facts, keywords, lines, sentences, terms, told, words};

/// Pieces whose repetition is awkward for one function or another.
const PIECES: &[&str] = &[
    "a",
    "A",
    "1",
    ".",
    "-",
    "'",
    "\"",
    "`",
    "/",
    "_",
    " ",
    "\n",
    "(",
    "é",
    "e\u{301}",
    "房",
    "🤖",
    "\u{fdfa}",
    "5 ",
    "1.",
    "1,",
    "1:",
    "a.",
    "A ",
    "a ",
    "A of ",
    "\"a ",
    "'a",
    "dr. ",
    "Mr ",
    "Dr. ",
    "Sister ",
    "no. ",
    "! ",
    "!\" a",
    "room ",
    "room 1 ",
    "a_",
    "a/",
    "a::",
    "://",
    "a@b.",
    "12:34",
    "2026-05-30T",
    "3 m ",
    "not ",
    "is 5 ",
    "must ",
    "x\n",
    "Aa",
    "()",
    "known name ",
    "known ",
    "Bob. ",
    "Bob's ",
    "°",
    "−1",
    "```\n",
    "1:x\n",
    "    x = [\n",
    "at a.b:1\n",
];

fn run_all(text: &str) {
    Approx1.count(text);
    terms(text, |_| ());
    words(text, |_| ());
    sentences(text).for_each(drop);
    lines(text);
    told(text);
    constraint_cue(text);
    for language in [Language::English, Language::German] {
        facts(language, text);
        entities(language, text, &["known name", "known", "A of A of A"]);
        keywords(language, text, 10);
        Claim::of(language, text);
        StemSet::of(language, text);
        HashedEmbedding::new(language).embed(text);
        Rarity::of(language, [text]).vector(text);
    }
}

#[test]
fn work_grows_with_the_text_and_no_faster() {
    for piece in PIECES {
        let steps = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            counted(|| run_all(&text))
        };
        let (small, large) = (steps(1 << 10), steps(1 << 13));
        assert!(small > 0);
        assert!(large < 12 * small, "{piece:?}: {small} steps for 1 KiB, {large} for 8 KiB");
    }
}

#[test]
fn a_text_of_256_kib_is_worked_on() {
    let piece = "Dr. No. 5 is not at /a/b_c \"x\" 3 m. ";
    let text = piece.repeat((256 << 10) / piece.len());
    let steps = counted(|| run_all(&text));
    assert!(steps < 300 * text.len(), "{} steps a byte", steps / text.len());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(128))]

    #[test]
    fn no_text_stops_anything(text in "(?s).{0,100}", picks in proptest::collection::vec(0usize..PIECES.len(), 0..30)) {
        run_all(&text);
        let awkward: String = picks.iter().map(|&pick| PIECES[pick]).collect();
        run_all(&awkward);
    }
}
