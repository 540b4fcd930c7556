use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{MemoryRecord, Resource};
use omir_core::number::Number;
use omird_embedding::{ModelName, Usual, Vector};
use proptest::prelude::*;

use super::*;
use crate::index::doc::{FileId, Location, Stamp};
use crate::index::facts::{Facts, terms_of};
use crate::index::vectors::{VectorSpace, Words};
use crate::question::Question;
use crate::recall::query::{QueryVector, QueryWord};
use crate::recall::ranking::Ranked;
use crate::recall::search::{Matches, search};
use crate::recall::texts::Verdicts;

const NOW: i64 = 1_000_000_000_000;

fn model() -> ModelName {
    ModelName { name: "m".into(), dims: 4, hash: [0; 32] }
}

fn vector(numbers: [f32; 4]) -> Vector {
    Vector::of(&numbers).unwrap()
}

/// Memories with a text, a vector if one is stated, and the minute they are of.
fn catalog(memories: &[(&str, Option<[f32; 4]>, i64)]) -> Catalog {
    let mut catalog = Catalog::new();
    let mut space = VectorSpace::new(model(), false);
    for (seq, (content, numbers, minute)) in (1..).zip(memories) {
        let at = Instant::from(Timestamp::from_unix(1000 + 60 * minute, 0));
        let id = format!("m{seq}").parse().unwrap();
        let record: Resource = MemoryRecord::new(id, *content, at).into();
        let stamp = Stamp { seq, ordinal: 0, version: 1, recorded: 1_000_000 * seq as i64 };
        let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
        let id = catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp, location);
        if let Some(numbers) = numbers {
            space.push(id, &vector(*numbers));
        }
    }
    catalog.vectors.spaces_mut().push(space);
    catalog
}

fn asked(text: Option<&str>, numbers: [f32; 4]) -> Query {
    let (words, is_lexical) = (Vec::new(), false);
    let vector = Some(QueryVector { model: model(), vector: vector(numbers), words, is_lexical });
    Query { text: text.map(Into::into), vector, ..Query::default() }
}

fn found(catalog: &Catalog, query: &Query) -> Matches {
    search(catalog, query, NOW, &mut Verdicts::default())
}

fn docs(matches: &Matches) -> Vec<DocId> {
    matches.page.iter().map(|hit| hit.doc).collect()
}

#[test]
fn what_is_near_in_meaning_is_found_without_a_word_in_common() {
    let catalog = catalog(&[
        ("a white mug", Some([1.0, 0.2, 0.0, 0.0]), 0),
        ("the charger hums", Some([0.0, 0.0, 1.0, 0.0]), 200),
        ("nobody made a vector of this cup", None, 400),
    ]);
    let query = asked(Some("cup"), [1.0, 0.0, 0.0, 0.0]);
    let matches = found(&catalog, &query);
    let mut ids = docs(&matches);
    ids.sort_unstable();
    assert_eq!((ids, matches.total), (vec![0, 2], 2));
    let words = Query { vector: None, ..query.clone() };
    assert_eq!(docs(&found(&catalog, &words)), [2]);
    // Of parts, the raw cosine.
    let mug: &Ranked = matches.page.iter().find(|hit| hit.doc == 0).unwrap();
    assert!((mug.scores[ScorePart::Meaning] - 0.98).abs() < 0.01, "{mug:?}");
    assert!(matches.page.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    // A floor hides it, and nothing is left of a question that nothing is near.
    let high = Query { min_cosine: Some(0.99), ..query };
    assert_eq!(docs(&found(&catalog, &high)), [2]);
    let unrelated = asked(None, [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(found(&catalog, &unrelated).total, 0);
}

#[test]
fn fusion_by_hand() {
    let catalog = catalog(&[
        ("a cup and a saucer", Some([1.0, 0.0, 0.0, 0.0]), 0),
        ("a cup", Some([0.0, 1.0, 0.0, 0.0]), 200),
        ("a mug", Some([0.9, 0.1, 0.0, 0.0]), 400),
    ]);
    let query = asked(Some("cup"), [1.0, 0.0, 0.0, 0.0]);
    let matches = found(&catalog, &query);
    assert_eq!(matches.total, 3);
    let weights = matches.weights.unwrap();
    let part = |doc: DocId, part| {
        let hit = matches.page.iter().find(|hit| hit.doc == doc).unwrap();
        hit.scores[part] * weights.of_part(part)
    };
    // The part of words, 0.35 of 0.7, is shared: 0.6 for the best by words, 0.4 for the best by meaning; neighbours could
    // add 0.6, so all are divided by 1.6.
    let best = matches.page.iter().map(|hit| hit.scores[ScorePart::Text]).fold(0.0, f64::max);
    let strength = (best / STRONG_WORDS).min(1.0);
    let words = 0.6 * strength * strength;
    let expected = 0.5 / 1.6 * words;
    assert!((part(1, ScorePart::Text) - expected).abs() < 1e-9, "{best}");
    assert!((part(0, ScorePart::Meaning) - 0.5 / 1.6 * (1.0 - words)).abs() < 1e-6);
    assert_eq!(part(2, ScorePart::Text), 0.0);
    assert_eq!(docs(&matches)[0], 0, "both");
}

#[test]
fn words_that_are_met_by_chance_say_less() {
    let far = Some([0.0, 1.0, 0.0, 0.0]);
    let mut memories = vec![("a yard", far, 0); 60];
    memories.extend([("robot", far, 1), ("a crate and a pallet on a ramp by the dock", far, 2)]);
    let catalog = catalog(&memories);
    let of = |text| {
        let matches = found(&catalog, &asked(Some(text), [1.0, 0.0, 0.0, 0.0]));
        let weights = matches.weights.unwrap();
        let hit = matches.page[0];
        (hit.scores[ScorePart::Text] * weights.of_part(ScorePart::Text), hit)
    };
    // One of three words that are equally rare, and three of six: the share of the weight is not what differs most.
    let (one, _) = of("robot sofa stairs");
    let (three, hit) = of("crate ramp pallet sofa stairs lamp");
    assert!((three - 0.5 / 1.6 * 0.6).abs() < 1e-6, "in full: {three}");
    assert!(one < 0.8 * three, "{one} {three}");
    // The text part is the agreement times the share of the words that are there.
    let share = hit.scores[ScorePart::Text] / hit.text;
    assert!(
        (0.4..0.5).contains(&share),
        "words that nobody ever said weigh a little more: {share}"
    );
}

#[test]
fn neighbours_in_time_share_what_they_are_worth() {
    let near = Some([1.0, 0.0, 0.0, 0.0]);
    let faint = Some([0.5, 0.0, 0.8, 0.0]);
    let memories = [
        ("one", faint, 0),
        ("two", near, 10),
        ("three", faint, 20),
        ("four", faint, 200),
        ("five", None, 400),
    ];
    let catalog = catalog(&memories);
    let query = asked(None, [1.0, 0.0, 0.0, 0.0]);
    let matches = found(&catalog, &query);
    let worth = |doc: DocId| {
        matches.page.iter().find(|hit| hit.doc == doc).unwrap().scores[ScorePart::Neighbours]
    };
    assert_eq!(matches.total, 4);
    assert!((worth(0) - 1.0).abs() < 1e-6, "beside the best");
    assert!((worth(2) - 1.0).abs() < 1e-6, "beside the best, and two hours before another");
    assert!(worth(3) == 0.0 && worth(3).is_sign_positive(), "hours apart: 0, and not -0");
    assert!(worth(1) > 0.9 && worth(1) < 1.1, "two faint ones");
}

#[test]
fn an_older_version_makes_nothing_an_answer() {
    let mut catalog = Catalog::new();
    let space = VectorSpace::new(model(), false);
    let version =
        |catalog: &mut Catalog, name: &str, text: &str, version: u64, old: Option<&str>| {
            let at = Instant::from(Timestamp::from_unix(1000, 0));
            let record = |text: &str| -> Resource {
                MemoryRecord::new(name.parse().unwrap(), text, at.clone()).into()
            };
            let old = old.map(|text| terms_of(&record(text)));
            let new = record(text);
            let seq = catalog.docs().len() as u64 + 1;
            let stamp = Stamp { seq, ordinal: 0, version, recorded: 1_000_000 * seq as i64 };
            let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
            catalog.put(&Facts::of(&new), &terms_of(&new), old.as_ref(), stamp, location)
        };
    version(&mut catalog, "updated", "a cup", 1, None);
    version(&mut catalog, "updated", "the cup again", 2, Some("a cup"));
    version(&mut catalog, "other", "another cup", 1, None);
    catalog.vectors.spaces_mut().push(space);
    let matches = found(&catalog, &asked(Some("cup"), [1.0, 0.0, 0.0, 0.0]));
    let worth = |doc: DocId| {
        let hit = matches.page.iter().find(|hit| hit.doc == doc).unwrap();
        (hit.scores[ScorePart::Neighbours], hit.scores[ScorePart::Text])
    };
    assert_eq!(matches.total, 2);
    assert!(worth(2).0 > 0.0, "beside the version of now");
    let of_other = worth(2).1 / worth(1).1;
    // Each has the other alone beside it: what they bring differs as their texts do.
    assert!((worth(1).0 / worth(2).0 - of_other).abs() < 1e-5, "{:?} {:?}", worth(1), worth(2));
}

#[test]
fn filters_hold_for_what_is_near_and_pages_are_of_one_order() {
    let near = Some([1.0, 0.0, 0.0, 0.0]);
    let memories: Vec<_> =
        (0..30).map(|n| (if n % 3 == 0 { "a cup" } else { "a mug" }, near, n * 100)).collect();
    let catalog = catalog(&memories);
    let query = Query { limit: Some(100), ..asked(Some("cup"), [1.0, 0.0, 0.0, 0.0]) };
    let all = docs(&found(&catalog, &query));
    assert_eq!(all.len(), 30);
    let mut pages = Vec::new();
    for offset in (0..30).step_by(7) {
        let page = Query { limit: Some(7), offset, ..query.clone() };
        pages.extend(docs(&found(&catalog, &page)));
    }
    assert_eq!(pages, all);
    // The same by a scan: filters that everything passes, so that nothing is pruned.
    let scanned = Query { include_expired: true, ..query.clone() };
    assert_eq!(docs(&found(&catalog, &scanned)), all);
    let importance = Query { min_importance: Some(0.5), ..query.clone() };
    assert_eq!(found(&catalog, &importance).total, 0, "none states it");
    let excluded = Query { text: Question::parse("cup -mug").unwrap(), ..query };
    assert_eq!(found(&catalog, &excluded).total, 10);
}

/// Gives the words of a store vectors, and a question the vector of its only word.
fn with_words_of(catalog: &Catalog, query: &mut Query, of: &[(&str, [f32; 4])], word: [f32; 4]) {
    let mut words = Words::new(model());
    let named = |(term, name): (u32, &str)| {
        let (_, numbers) = of.iter().find(|(other, _)| *other == name)?;
        Some((term, vector(*numbers)))
    };
    let made: Vec<_> = catalog.text.names_from(0).filter_map(named).collect();
    assert_eq!(made.len(), of.len());
    words.add(&made, catalog.text.names_from(0).count());
    *catalog.vectors.words_mut() = Some(words);
    let usual = Usual { mean: 0.1, deviation: 0.15 };
    let asked = QueryWord { name: "spectacles".into(), vector: vector(word), usual };
    query.vector.as_mut().unwrap().words = vec![asked];
}

#[test]
fn a_word_that_fits_counts_more_than_texts_that_are_alike() {
    let alike = Some([0.9, 0.3, 0.0, 0.0]);
    let catalog = catalog(&[
        ("a tray beside the plates", alike, 0),
        ("the glasses lie on a shelf in the hall", Some([0.6, 0.0, 0.8, 0.0]), 200),
        ("a tray", Some([0.0, 0.0, 0.0, 1.0]), 400),
        ("glasses and no vector", None, 600),
    ]);
    let mut query = asked(Some("spectacles"), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(docs(&found(&catalog, &query))[0], 0, "by the texts alone");
    let near = [("glasses", [0.9, 0.1, 0.0, 0.0]), ("tray", [0.2, 0.0, 0.9, 0.0])];
    with_words_of(&catalog, &mut query, &near, [1.0, 0.0, 0.0, 0.0]);
    let matches = found(&catalog, &query);
    assert_eq!(docs(&matches)[0], 1);
    // It ranks, and finds nothing by itself.
    assert_eq!(matches.total, 2);
    let scores: Vec<f64> = matches.page.iter().map(|hit| hit.scores[ScorePart::Akin]).collect();
    assert!(scores[0] > 0.1 && scores[0] <= 1.0 && scores[1] == 0.0, "{scores:?}");
    assert!(matches.page.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
    let weights = matches.weights.unwrap();
    // 0.5 of the score is relevance, divided by 1.6 for neighbours, and three quarters of it are of akin words.
    let most = matches.page[0].scores[ScorePart::Akin] * weights.of_part(ScorePart::Akin);
    assert!((most - 0.5 / 1.6 * 0.75).abs() < 1e-6, "{most}");
    assert_eq!(matches.page[1].scores[ScorePart::Neighbours], 0.0);
    // Words of another model are not compared.
    let other = ModelName { name: "n".into(), ..model() };
    *catalog.vectors.words_mut() = Some(Words::new(other));
    let without = found(&catalog, &query);
    assert_eq!(docs(&without)[0], 0);
    assert_eq!(without.weights.unwrap().of_part(ScorePart::Akin), 0.0);
}

#[test]
fn pages_are_of_one_order_with_akin_words_too() {
    let vectors = [[1.0, 0.1, 0.0, 0.0], [0.7, 0.0, 0.7, 0.0], [0.5, 0.5, 0.5, 0.5]];
    let texts = ["a mug and a tray", "a mug", "a cup", "glasses", "a tray"];
    let memories: Vec<(&str, Option<[f32; 4]>, i64)> =
        (0..60).map(|n| (texts[n % 5], Some(vectors[n * 7 % 3]), n as i64 * 9)).collect();
    let catalog = catalog(&memories);
    let mut query = asked(Some("cup"), [1.0, 0.0, 0.0, 0.0]);
    let near = [
        ("cup", [1.0, 0.0, 0.0, 0.0]),
        ("mug", [0.8, 0.2, 0.0, 0.0]),
        ("glasses", [0.5, 0.5, 0.0, 0.0]),
    ];
    with_words_of(&catalog, &mut query, &near, [1.0, 0.0, 0.0, 0.0]);
    let whole = Query { limit: None, ..query.clone() };
    let all = docs(&found(&catalog, &whole));
    assert_eq!(all.len(), 60);
    let mut pages = Vec::new();
    for offset in (0..60).step_by(7) {
        let page = Query { limit: Some(7), offset, ..query.clone() };
        pages.extend(docs(&found(&catalog, &page)));
    }
    assert_eq!(pages, all);
}

/// What one memory of the property below is made of: words, vector, importance in tenths, age in hours.
type Traits = (Vec<usize>, (u8, u8, u8), u8, u32);

fn traits() -> impl Strategy<Value = Traits> {
    (prop::collection::vec(0..8_usize, 1..6), (0..9_u8, 0..9_u8, 0..9_u8), 0..11_u8, 0..5000_u32)
}

const SAID: [&str; 8] = ["mug", "cup", "tray", "glasses", "hall", "dock", "charger", "red"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Score bounds leave out what cannot be among the first few, and nothing else: those are the first of all.
    #[test]
    fn the_first_few_are_those_of_a_look_at_all(
        all in prop::collection::vec(traits(), 20..150),
        (a, b) in (0..8_usize, 0..8_usize),
        asked_for in (1..9_u8, 1..9_u8),
        (with_words, floor, spread) in (any::<bool>(), 0..3_u8, any::<bool>()),
    ) {
        const HOUR: i64 = 3_600;
        let now = 6000 * HOUR;
        let mut catalog = Catalog::new();
        let mut space = VectorSpace::new(model(), false);
        for (seq, (words, (x, y, z), importance, age)) in (1..).zip(&all) {
            let text: Vec<&str> = words.iter().map(|word| SAID[*word]).collect();
            let at = Timestamp::from_unix(now - i64::from(*age) * HOUR, 0);
            let id = format!("m{seq}").parse().unwrap();
            let mut record = MemoryRecord::new(id, text.join(" "), Instant::from(at));
            let importance_of = |tenths: u8| Number::from_f64(f64::from(tenths) / 10.0);
            record.importance = importance_of(*importance).filter(|_| *importance < 10);
            let record: Resource = record.into();
            let stamp = Stamp { seq, ordinal: 0, version: 1, recorded: 1_000_000 * seq as i64 };
            let location = Location { file: FileId::Log(1), offset: 0, len: 1, crc: 0 };
            let doc = catalog.put(&Facts::of(&record), &terms_of(&record), None, stamp, location);
            let numbers = [*x, *y, *z, 1].map(|n| f32::from(n) - 3.0);
            if importance % 4 > 0 {
                space.push(doc, &vector(numbers));
            }
        }
        catalog.vectors.spaces_mut().push(space);
        catalog.refresh_score_bounds(now * 1_000_000);
        let text = format!("{} {}", SAID[a], SAID[b]);
        let numbers = [f32::from(asked_for.0), f32::from(asked_for.1), 0.0, 1.0];
        let mut query = asked(Some(&text), numbers);
        query.floor = f64::from(floor) * 0.4;
        if spread {
            query.related = vec![("MemoryRecord/m3".parse().unwrap(), 0.5)];
        }
        if with_words {
            let said: std::collections::HashSet<usize> =
                all.iter().flat_map(|(words, ..)| words.iter().copied()).collect();
            let near: Vec<(&str, [f32; 4])> = said
                .into_iter()
                .map(|word| (SAID[word], [1.0, word as f32 / 4.0, 0.0, 0.1]))
                .collect();
            with_words_of(&catalog, &mut query, &near, [1.0, 0.2, 0.0, 0.0]);
        }
        let now = now * 1_000_000;
        let of = |limit| {
            let query = Query { limit, ..query.clone() };
            search(&catalog, &query, now, &mut Verdicts::default())
        };
        let whole = of(None);
        for few in [1, 3, 10] {
            let found = of(Some(few));
            prop_assert_eq!((found.total, found.hidden), (whole.total, whole.hidden));
            let first = &whole.page[..few.min(whole.page.len())];
            prop_assert_eq!(docs(&found), first.iter().map(|hit| hit.doc).collect::<Vec<_>>());
            for (hit, expected) in found.page.iter().zip(first) {
                prop_assert_eq!(hit.score, expected.score);
            }
        }
    }
}
