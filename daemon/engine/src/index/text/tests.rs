//! The index against the formula applied to every document, and against damaged blocks.

use super::query::{B, COMMON_FROM, K1};
use super::*;
use crate::question::Question;
use omird_text::{Language, is_stop_word};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    omird_text::words(text, |token| out.push(token.to_owned()));
    out
}

fn stem(word: &str) -> String {
    Language::English.stem(word).into_owned()
}

/// The stems of a question's words, without stop words if it has others.
fn stems(query: &str) -> BTreeSet<String> {
    let content = |word: &String| !is_stop_word(Language::English, word);
    let has_content = words(query).iter().any(content);
    words(query)
        .iter()
        .filter(|word| !has_content || content(word))
        .map(|word| stem(word))
        .collect()
}

/// BM25 by the book, over whole texts, divided by its bound.
fn naive(docs: &[String], live: &[bool], query: &str) -> BTreeMap<DocId, f64> {
    let docs: Vec<_> = docs.iter().map(|text| words(text)).collect();
    let alive: Vec<_> = docs
        .iter()
        .zip(live)
        .filter(|(doc, live)| **live && !doc.is_empty())
        .map(|(doc, _)| doc)
        .collect();
    let all = alive.len() as f64;
    let mean = if alive.is_empty() {
        1.0
    } else {
        alive.iter().map(|doc| doc.len() as f64).sum::<f64>() / all
    };
    let mut terms = stems(query);
    // A document counts once for each form that it has.
    let forms = |doc: &Vec<String>, term: &String| {
        let forms: BTreeSet<_> = doc.iter().filter(|word| stem(word) == *term).collect();
        forms.len()
    };
    let df =
        |term: &String| alive.iter().map(|doc| forms(doc, term)).sum::<usize>().min(alive.len());
    let is_common = |term: &String| df(term) > alive.len() / 2;
    if alive.len() >= COMMON_FROM as usize && terms.iter().any(|t| df(t) > 0 && !is_common(t)) {
        terms.retain(|term| !is_common(term));
    }
    let mut sums = BTreeMap::new();
    let mut bound = 0.0;
    for term in &terms {
        let df = df(term) as f64;
        let idf = (1.0 + (all - df + 0.5) / (df + 0.5)).ln();
        bound += idf * (K1 + 1.0);
        for (doc, text) in (0..).zip(&docs) {
            let tf = text.iter().filter(|word| stem(word) == *term).count() as f64;
            if tf > 0.0 {
                let damping = K1 * (1.0 - B + B * text.len() as f64 / mean);
                *sums.entry(doc).or_insert(0.0) += idf * tf * (K1 + 1.0) / (tf + damping);
            }
        }
    }
    sums.into_iter().map(|(doc, sum)| (doc, sum / bound)).collect()
}

fn ask(index: &TextIndex, query: &str, scratch: &mut Scratch) -> Vec<(DocId, f32)> {
    let mut out = Vec::new();
    index.candidates(&index.query(&query.into()), scratch, |doc, score| out.push((doc, score)));
    out
}

fn docs(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(vec![
        "dock",
        "door",
        "doors",
        "Door's",
        "charging",
        "charged",
        "the",
        "red",
        "room",
        "12",
        "kitchen",
        "cup",
        "Café",
        "battery_low",
    ]);
    prop::collection::vec(
        prop::collection::vec(word, 0..8).prop_map(|words| words.join(" ")),
        count,
    )
}

fn indexed(docs: &[String]) -> TextIndex {
    let mut index = TextIndex::new();
    for (doc, text) in (0..).zip(docs) {
        index.add(doc, &DocTerms::of([text.as_str()]));
    }
    index
}

proptest! {
    #[test]
    fn scores_are_those_of_the_formula(
        docs in docs(0..60),
        dead in prop::collection::vec(any::<bool>(), 60),
        query in prop::sample::subsequence(vec!["doors", "red", "ROOM", "12", "cafe", "nowhere", "low", "charges", "the", "low"], 0..10),
        gap in prop_oneof![0u32..3, Just(4000u32)],
    ) {
        let live: Vec<_> = dead.iter().take(docs.len()).map(|dead| !dead).collect();
        // Gaps, which are as documents without words, spread the rest over several windows.
        let mut index = TextIndex::new();
        let step = gap + 1;
        for (doc, text) in (0..).zip(&docs) {
            index.add(doc * step, &DocTerms::of([text.as_str()]));
        }
        for (doc, text) in (0..).zip(&docs) {
            if !live[doc as usize] {
                let terms = DocTerms::of([text.as_str()]);
                prop_assert_eq!(index.retire(doc * step, &terms), !terms.is_empty());
                prop_assert!(!index.retire(doc * step, &terms), "retired twice");
            }
        }
        let query = query.join(" ");
        let got = ask(&index, &query, &mut Scratch::new());
        let want = naive(&docs, &live, &query);
        let wanted = words(&query);
        let has_all = |text: &String| {
            let held: Vec<String> = words(text).iter().map(|word| stem(word)).collect();
            !wanted.is_empty() && wanted.iter().all(|word| held.contains(&stem(word)))
        };
        let all: Vec<DocId> =
            (0..).zip(&docs).filter(|(_, text)| has_all(text)).map(|(doc, _)| doc * step).collect();
        prop_assert_eq!(index.with_all(&query.as_str().into()), all);
        prop_assert!(got.iter().map(|(doc, _)| *doc).eq(want.keys().map(|doc| doc * step)));
        for (doc, score) in &got {
            prop_assert!(*score > 0.0 && *score <= 1.0);
            prop_assert!((f64::from(*score) - want[&(doc / step)]).abs() < 1e-6, "{} {}", score, want[&(doc / step)]);
        }

        // The same texts in another order, without the dead ones ever there: the very same scores.
        let mut survivors: Vec<_> = docs.iter().zip(&live).filter(|(_, live)| **live).map(|(text, _)| text.clone()).collect();
        let mut scores: Vec<_> = got.iter().filter(|(doc, _)| live[(doc / step) as usize]).map(|(_, score)| score.to_bits()).collect();
        survivors.reverse();
        let mut again: Vec<_> = ask(&indexed(&survivors), &query, &mut Scratch::new()).iter().map(|(_, score)| score.to_bits()).collect();
        scores.sort_unstable();
        again.sort_unstable();
        prop_assert_eq!(scores, again);
    }

    #[test]
    fn blocks_bring_back_the_same_index(
        first in docs(0..40), second in docs(0..40), live in docs(0..20), gap in 0u32..300, modulus in 1u32..5
    ) {
        let terms = |texts: &[String]| texts.iter().map(|text| DocTerms::of([text.as_str()])).collect::<Vec<_>>();
        let mut direct = TextIndex::new();
        let mut stored = TextIndex::new();
        let mut base = 0;
        for batch in [&first, &second] {
            let batch = terms(batch);
            let block = TextBlock::build(batch.iter());
            let bytes = postcard::to_allocvec(&block).unwrap();
            let read: TextBlock = postcard::from_bytes(&bytes).unwrap();
            prop_assert_eq!(&read, &block);
            stored.add_block(base, &read).unwrap();
            (base..).zip(&batch).for_each(|(doc, terms)| direct.add(doc, terms));
            base += batch.len() as DocId + gap;
        }
        // Documents keep coming after start-up.
        for (doc, terms) in (base..).zip(&terms(&live)) {
            stored.add(doc, terms);
            direct.add(doc, terms);
        }
        let scratch = &mut Scratch::new();
        let query = "red door room 12 unheard";
        prop_assert_eq!(direct.live_docs, stored.live_docs);
        prop_assert_eq!(ask(&direct, query, scratch), ask(&stored, query, scratch));

        // Told afterwards or as it happened, the dead weigh nothing either way.
        stored.set_liveness(|doc| doc % modulus != 0, 2);
        let all = first.iter().zip(0..).chain(second.iter().zip(first.len() as DocId + gap..)).chain(live.iter().zip(base..));
        for (text, doc) in all.filter(|(_, doc)| doc % modulus == 0) {
            direct.retire(doc, &DocTerms::of([text.as_str()]));
        }
        prop_assert_eq!(direct.live_docs, stored.live_docs);
        prop_assert_eq!(ask(&direct, query, scratch), ask(&stored, query, scratch));
    }

    #[test]
    fn damaged_blocks_are_refused_whole(docs in docs(1..30), at: prop::sample::Index, to: u8, cut: bool) {
        let terms: Vec<_> = docs.iter().map(|text| DocTerms::of([text.as_str()])).collect();
        let mut bytes = postcard::to_allocvec(&TextBlock::build(terms.iter())).unwrap();
        if cut {
            bytes.truncate(at.index(bytes.len()));
        } else {
            *at.get_mut(&mut bytes) = to;
        }
        let Ok(block) = postcard::from_bytes::<TextBlock>(&bytes) else { return Ok(()) };
        let mut index = indexed(&docs);
        let base = docs.len() as DocId;
        let before = ask(&index, "red door 12", &mut Scratch::new());
        match index.add_block(base, &block) {
            // Damage that makes another sound block is for the segment's checksum to find.
            Ok(()) => {
                for (_, score) in ask(&index, "red door 12", &mut Scratch::new()) {
                    prop_assert!(score > 0.0 && score <= 1.0);
                }
            }
            Err(_) => {
                prop_assert_eq!(index.next_doc(), base);
                prop_assert_eq!(ask(&index, "red door 12", &mut Scratch::new()), before);
            }
        }
        index.set_liveness(|doc| doc % 2 == 0, 1);
    }

    #[test]
    fn blocks_of_any_bytes_do_not_panic(lengths in prop::collection::vec(0u16..4, 0..4), terms in prop::collection::vec(0u8..6, 0..24)) {
        let mut index = TextIndex::new();
        if index.add_block(7, &block(&lengths, &terms)).is_ok() {
            index.add(index.next_doc(), &DocTerms::of(["\u{1}"]));
            ask(&index, "a", &mut Scratch::new());
        }
    }
}

#[test]
fn terms_of_all_fields_are_counted_together() {
    let terms = DocTerms::of(["Red doors", "", "door 12, red door"]);
    assert_eq!(
        terms.iter().collect::<Vec<_>>(),
        [("12", 1), ("door", 2), ("doors", 1), ("red", 2)]
    );
    assert_eq!(terms.len(), 6);
    assert!(DocTerms::of(["…", ""]).is_empty());
}

#[test]
fn unknown_words_lower_every_score() {
    let index = indexed(&["red door".to_owned(), "blue door".to_owned()]);
    let scratch = &mut Scratch::new();
    let known = ask(&index, "red", scratch);
    let both = ask(&index, "red zeppelin", scratch);
    assert!(both[0].1 < known[0].1);
    assert!(ask(&index, "?", scratch).is_empty());
}

#[test]
fn extreme_counts_and_lengths_stay_within_bounds() {
    let shout = "door ".repeat(100_000);
    let long = format!("{} door", "x ".repeat(100_000));
    let index = indexed(&[shout, "door".to_owned(), long, String::new()]);
    assert_eq!(index.live_docs, 3);
    for query in ["door", "door y"] {
        let got = ask(&index, query, &mut Scratch::new());
        assert!(got.iter().all(|(_, score)| *score > 0.0 && *score <= 1.0), "{got:?}");
        assert_eq!(got.len(), 3);
    }
}

/// A block as it might come from disk.
fn block(lengths: &[u16], terms: &[u8]) -> TextBlock {
    postcard::from_bytes(&postcard::to_allocvec(&(lengths, terms)).unwrap()).unwrap()
}

#[test]
fn each_kind_of_damage_is_named() {
    // Postings: document 0 once is 0; one document further, once, is 2; twice is 3 2.
    let sound = [0, 1, b'a', 2, 0, 2, 1, 1, b'b', 2, 3, 2];
    assert_eq!(TextIndex::new().add_block(0, &block(&[1, 3], &sound)), Ok(()));
    let cases: [(&[u16], &[u8], &str); 13] = [
        (&[1, 1], &sound, "lengths do not match the postings"),
        (&[1, 3, 1], &sound, "lengths do not match the postings"),
        (&[1, 3], &[0], "term cut off"),
        (&[1, 3], &[0, 9, b'a'], "term cut off"),
        (&[1, 3], &[1, 1, b'a', 1, 0], "shares more than the previous term has"),
        (&[1, 3], &[0, 0, 1, 0], "terms out of order"),
        (&[2, 3], &[0, 1, b'a', 1, 0, 0, 1, b'a', 1, 0], "terms out of order"),
        (&[1, 3], &[0, 1, 0xff, 1, 0], "term is not UTF-8"),
        (&[1, 3], &[0, 1, b'a', 0], "term without documents"),
        (&[1, 3], &[0, 1, b'a', 9, 0], "postings cut off"),
        (&[1, 0], &[0, 1, b'a', 2, 0, 3], "postings cut off"),
        (&[2, 3], &[0, 1, b'a', 2, 0, 0], "documents out of order"),
        (&[1, 3], &[0, 1, b'a', 1, 4], "document out of range"),
    ];
    for (lengths, terms, want) in cases {
        match TextIndex::new().add_block(0, &block(lengths, terms)) {
            Err(BlockError::Corrupt { reason, .. }) => assert_eq!(reason, want, "{terms:?}"),
            other => panic!("{terms:?} gave {other:?}, not {want}"),
        }
    }
    let long = [&[0, 65][..], &[b'a'; 65], &[1, 0]].concat();
    let error = TextIndex::new().add_block(0, &block(&[1], &long)).unwrap_err();
    assert_eq!(error.to_string(), "text block damaged at byte 0: term too long");
}

#[test]
fn crowded_windows_miss_and_repeat_nothing() {
    let texts = ["dock", "red dock dock", "red", "cup", "12 red cup dock"];
    let docs: Vec<_> = (0..7000).map(|doc| texts[doc * doc % 7 % 5].to_owned()).collect();
    let got = ask(&indexed(&docs), "red dock 12", &mut Scratch::new());
    let want = naive(&docs, &vec![true; docs.len()], "red dock 12");
    assert!(got.iter().map(|(doc, _)| doc).eq(want.keys()));
    assert!(got.iter().all(|(doc, score)| (f64::from(*score) - want[doc]).abs() < 1e-6));
}

#[test]
fn a_block_that_would_overlap_is_refused() {
    let mut index = indexed(&["a".to_owned(), "b".to_owned()]);
    let block = TextBlock::build([&DocTerms::of(["c"])].into_iter());
    assert_eq!(index.add_block(1, &block), Err(BlockError::Range { base: 1, docs: 1, next: 2 }));
    assert!(index.add_block(MAX_DOCS, &block).is_err());
    assert_eq!(index.add_block(2, &block), Ok(()));
}

#[test]
#[should_panic(expected = "ascending")]
fn a_document_cannot_come_twice() {
    let mut index = indexed(&["a".to_owned()]);
    index.add(0, &DocTerms::of(["b"]));
}

fn found(index: &TextIndex, question: &str) -> Vec<DocId> {
    let question = Question::parse(question).unwrap().unwrap();
    let mut docs = Vec::new();
    let query = index.query(&question);
    index.candidates(&query, &mut Scratch::new(), |doc, _| docs.push(doc));
    docs
}

fn corrected(index: &TextIndex, question: &str) -> Vec<(String, Vec<String>)> {
    let query = index.query(&Question::parse(question).unwrap().unwrap());
    query.into_corrected().into_iter().map(|one| (one.from, one.to)).collect()
}

#[test]
fn a_word_that_nobody_said_is_one_at_a_typing_error_from_it() {
    let docs =
        ["the door sticks", "seats and sheets", "umbrella", "zwei Türen", "bot 1234", "rick"];
    let mut index = indexed(&docs.map(str::to_owned));
    let one = |from: &str, to: &[&str]| {
        vec![(from.to_owned(), to.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())]
    };
    // A letter more, less, another, and two swapped; by its stem too.
    for typed in ["stiicks", "stcks", "stidks", "sticsk"] {
        assert_eq!(found(&index, typed), [0], "{typed}");
        assert_eq!(corrected(&index, typed), one(typed, &["sticks"]));
    }
    assert_eq!(corrected(&index, "umbrelas"), one("umbrelas", &["umbrellas"]));
    assert_eq!(found(&index, "umbrelas"), [2]);
    // All that it may be; those with another first letter only if there is no other.
    assert_eq!(found(&index, "sheats"), [1]);
    assert_eq!(corrected(&index, "sheats").remove(0).1, ["seats", "sheets"]);
    assert_eq!(corrected(&index, "kick"), one("kick", &["rick"]));
    // Known words, short ones, names with digits, phrases and plain texts stay.
    for said in ["door", "sticking", "bat", "bot1235", "\"sticls\"", "nobody", "thee"] {
        assert!(corrected(&index, said).is_empty(), "{said}");
    }
    assert!(index.query(&"sticls".into()).into_corrected().is_empty());
    // Once no memory has it any more it is no word to be meant.
    index.retire(0, &DocTerms::of(["the door sticks"]));
    assert!(corrected(&index, "stiicks").is_empty());
    assert_eq!(found(&index, "sticks"), [0], "what was is still found");
    index.set_language(Language::German);
    assert_eq!(found(&index, "türe"), [3]);
    assert_eq!(corrected(&index, "tüüren"), one("tuuren", &["turen"]));
}

#[test]
fn another_script_is_corrected_too() {
    let index = indexed(&["дверь заедает".to_owned(), "кружка".to_owned()]);
    for typed in ["дврь", "двеерь", "дверъ", "девьр"] {
        assert_eq!(found(&index, typed).len(), usize::from(typed != "девьр"), "{typed}");
    }
}

#[test]
fn another_language_has_other_stems_at_once() {
    let docs = ["Türen", "Tür", "doors", "door", "charging"].map(str::to_owned);
    let mut index = indexed(&docs);
    assert_eq!(found(&index, "door"), [2, 3]);
    index.set_language(Language::German);
    assert_eq!(found(&index, "tür"), [0, 1]);
    index.set_language(Language::Other);
    assert_eq!(found(&index, "door"), [3]);
    index.set_language(Language::English);
    for (doc, text) in (0..).zip(&docs) {
        index.add(doc + 5, &DocTerms::of([text.as_str()]));
    }
    assert_eq!(found(&index, "charged"), [4, 9]);
    assert_eq!(found(&index, "door"), [2, 3, 7, 8]);
}

#[test]
fn beginnings_phrases_and_what_is_excluded() {
    let docs = ["red dock", "docking red", "dock red", "a docker", "DockStation2"];
    let index = indexed(&docs.map(str::to_owned));
    assert_eq!(found(&index, "dock*"), [0, 1, 2, 3, 4]);
    assert_eq!(found(&index, "docki*"), [1]);
    let question = |text: &str| Question::parse(text).unwrap().unwrap();
    let with = |text: &str| index.with_words_of(question(text).phrases());
    assert_eq!(with("\"red dock\""), [0, 2], "either order: the texts tell");
    assert_eq!(with("\"dock station\""), [4]);
    assert_eq!(with("\"dockstation2\""), [4]);
    let excluded = index.excluded(&question("-dock"));
    let has = (0..5).filter(|&doc| excluded.has(doc)).collect::<Vec<_>>();
    assert_eq!(has, [0, 1, 2, 4], "in any form");
    assert!(index.excluded(&question("dock")).is_empty());
}

#[test]
fn a_share_is_that_of_the_weight_of_all_words() {
    let index = indexed(&["red door", "red", "red cup"].map(str::to_owned));
    let query = index.query(&"red doors zeppelin".into());
    let mut shares = Vec::new();
    index.candidates_with_shares(&query, &mut Scratch::new(), |_, _, share| shares.push(share));
    let idf = |df: f64| (1.0 + (3.0 - df + 0.5) / (df + 0.5)).ln();
    let (red, door, none) = (idf(3.0), idf(1.0), idf(0.0));
    let want = [(red + door), red, red].map(|part| part / (red + door + none));
    for (share, want) in shares.iter().zip(want) {
        assert!((f64::from(*share) - want).abs() < 1e-6, "{shares:?} {want}");
    }
    let bm25 = query.bm25(0.5);
    assert!((bm25 - 0.5 * (red + door + none) * (K1 + 1.0)).abs() < 1e-9);
}

#[test]
fn akin_words_count_once_each_by_the_best_term() {
    let texts = ["cup mug mug", "cup", "a glass on the shelf", "mug shelf", "dock"];
    // More than one window of them.
    let docs: Vec<String> = (0..5000).map(|doc| texts[doc * doc % 7 % 5].to_owned()).collect();
    let index = indexed(&docs);
    let term = |name: &str| index.names_from(0).find(|(_, other)| *other == name).unwrap().0;
    let words = [
        AkinTerms { weight: 0.75, terms: vec![(term("cup"), 0.5), (term("mug"), 1.0)] },
        AkinTerms { weight: 0.25, terms: vec![(term("shelf"), 0.8)] },
    ];
    let mut got = Vec::new();
    index.akin(&words, &mut Scratch::new(), |doc, score| got.push((doc, score)));
    let tokens: usize = docs.iter().map(|text| text.split(' ').count()).sum();
    let mean = tokens as f32 / docs.len() as f32;
    let damped = |count: f32, len: f32| count / (count + 0.9 * (0.6 + 0.8 * len / mean));
    let score = |text: &str| match text {
        "cup mug mug" => Some(0.75 * damped(2.0, 3.0)),
        "cup" => Some(0.375 * damped(1.0, 1.0)),
        "a glass on the shelf" => Some(0.2 * damped(1.0, 5.0)),
        "mug shelf" => Some(0.95 * damped(1.0, 2.0)),
        _ => None,
    };
    let want: Vec<(DocId, f32)> =
        (0..).zip(&docs).filter_map(|(doc, text)| Some((doc, score(text)?))).collect();
    assert_eq!(got.len(), want.len());
    for ((doc, score), (wanted_doc, wanted)) in got.iter().zip(&want) {
        assert_eq!(doc, wanted_doc);
        assert!((score - wanted).abs() < 1e-5, "{doc}: {score}, not {wanted}");
    }
    index.akin(&[], &mut Scratch::new(), |doc, _| panic!("{doc}"));
}

#[test]
fn a_term_is_as_rare_as_live_documents_make_it() {
    let docs = ["cup", "cup mug", "cup dock", "cup"].map(str::to_owned);
    let mut index = indexed(&docs);
    let term = |index: &TextIndex, name: &str| {
        index.names_from(0).find(|(_, other)| *other == name).unwrap().0
    };
    let (cup, mug) = (term(&index, "cup"), term(&index, "mug"));
    assert!(index.rarity(cup).unwrap() < 0.1);
    assert!((0.4..1.0).contains(&index.rarity(mug).unwrap()));
    assert!(index.retire(1, &DocTerms::of(words(&docs[1]).iter().map(String::as_str))));
    assert_eq!(index.rarity(mug), None);
    assert_eq!(index.rarity(999), None);
}

#[test]
fn words_of_a_question_tell_as_much_as_they_are_rare() {
    let docs = ["cup", "cup mugs", "cup mug", "cup dock"].map(str::to_owned);
    let index = indexed(&docs);
    let of = |word| index.rarity_of_word(word);
    assert!((of("tray") - 1.0).abs() < 1e-9, "nobody ever said it");
    assert!(of("cup") < of("mug") && of("mug") < of("dock"), "in all its forms");
    assert_eq!(of("mug"), of("mugs"));
    // All that a question says, and the part of it that a document has.
    let query = index.query(&"mug dock tray".into());
    assert!((query.rarity_of(1.0) - (of("mug") + of("dock") + 1.0)).abs() < 1e-9);
    assert!((query.rarity_of(0.25) - query.rarity_of(1.0) / 4.0).abs() < 1e-9);
}
