//! A recall gives what a scan over everything would give: no more, no less, and page by page
//! neither twice nor never. The scan here knows nothing of indexes, and little of the store.
//!
//! Invariant 5 of ARCHITECTURE.md.

mod asks;
mod question;
mod seen;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::engine::{Hit, Order, Query, ScorePart};
use omird_tests::life::reference;
use omird_tests::random::{Random, seeds};

use self::question::question;
use self::world::World;

/// Facts that tell one version from all others, as far as a hit shows them; the last is its recency.
type Key = (Ref, String, Option<u64>, u64);

fn key_of(hit: &Hit) -> Key {
    let value = cbor::from_slice(&hit.resource, &Limits::default()).expect("it is CBOR");
    let text = |name| value.get(name).and_then(Value::as_str);
    let name = format!("{}/{}", text("resourceType").unwrap_or(""), text("id").unwrap_or(""));
    let words = text("content").or(text("name")).unwrap_or_default();
    let recency = hit.part(ScorePart::Recency).expect("it is explained");
    (reference(&name), words.to_owned(), hit.distance.map(f64::to_bits), recency.to_bits())
}

/// The place of a hit in the order of a query, the first one least: the measure, and the time of its transaction.
/// `stamps` are its own time and that of its transaction, in microseconds, if they are known.
fn place_in_order(query: &Query, hit: &Hit, stamps: Option<(i64, i64)>) -> Option<(SortKey, i64)> {
    let (when, recorded) = stamps?;
    let nearest_first = query.radius.is_none() && !query.has_words() && hit.distance.is_some();
    let metres = || SortKey(hit.distance.expect("it is asked from a place"));
    Some(match query.order {
        Order::Latest => (SortKey(-(when as f64)), -recorded),
        Order::Earliest => (SortKey(when as f64), recorded),
        Order::Distance => (metres(), -recorded),
        Order::Score if nearest_first => (metres(), -recorded),
        Order::Score => (SortKey(-hit.score), -recorded),
    })
}

/// A number by which hits are ordered.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct SortKey(f64);

/// Asks, page by page, and compares with the scan. What was forgotten may be gone already: sealing leaves it
/// out. It is found or not, but nothing else is.
fn check(world: &World, query: &Query, random: &mut Random) {
    let now = world.now();
    let mut expected: BTreeMap<Key, usize> = BTreeMap::new();
    let forgotten = world.seen.iter().filter(|seen| seen.is_forgotten).map(|seen| &seen.name);
    let forgotten: BTreeSet<&Ref> = forgotten.collect();
    let mut may_be_gone: BTreeMap<Key, usize> = BTreeMap::new();
    let mut times: BTreeMap<Key, Option<(i64, i64)>> = BTreeMap::new();
    let mut most = 0;
    for seen in world.seen.iter().filter(|seen| seen.matches(query, now)) {
        let distance = seen.distance(query).map(f64::to_bits);
        let recency = seen.recency(query.as_of.map_or(now, Timestamp::as_micros)).to_bits();
        let key = (seen.name.clone(), seen.words.clone(), distance, recency);
        if forgotten.contains(&seen.name) {
            *may_be_gone.entry(key.clone()).or_default() += 1;
        }
        // Versions of one key may differ in their times; a hit does not tell which it is.
        let stamps = (seen.when, seen.recorded);
        times
            .entry(key.clone())
            .and_modify(|known| *known = known.filter(|known| *known == stamps))
            .or_insert(Some(stamps));
        *expected.entry(key).or_default() += 1;
        most += 1;
    }
    let least = most - may_be_gone.values().sum::<usize>();
    let few = Query { limit: Some(1 + random.below(4)), ..query.clone() };
    let best = world.session().recall(&few).expect("it is answered");
    let mut total = best.total as usize;
    // An exact total that is not asked for changes no hit.
    let lower = Query { exact_total: false, ..few.clone() };
    let lower = world.session().recall(&lower).expect("it is answered");
    assert!(lower.total <= best.total, "{} of {}: {query:?}", lower.total, best.total);
    if may_be_gone.is_empty() {
        let keys = |hits: &[Hit]| hits.iter().map(key_of).collect::<Vec<_>>();
        assert_eq!(keys(&lower.hits), keys(&best.hits), "without an exact total: {query:?}");
    }
    assert!((least..=most).contains(&total), "{total} of {least} to {most}: {query:?}");
    let page = (1 + random.below(400)).max(total / 8).min(1000);
    let mut found: BTreeMap<Key, usize> = BTreeMap::new();
    let mut last = None;
    let mut offset = 0;
    loop {
        let asked = Query { limit: Some(page), offset, ..query.clone() };
        let recalled = world.session().recall(&asked).expect("it is answered");
        // Sealing goes on meanwhile: what was forgotten may go between two pages, and never comes back.
        if recalled.total < total as u64 && recalled.total >= least as u64 {
            (total, offset, last) = (recalled.total as usize, 0, None);
            found.clear();
            continue;
        }
        assert_eq!(recalled.total, total as u64, "total of {asked:?}");
        if offset == 0 && may_be_gone.is_empty() {
            // However few are asked for, they are the first of all.
            for (few, all) in best.hits.iter().zip(&recalled.hits) {
                assert_eq!(key_of(few), key_of(all), "{asked:?}");
            }
        }
        let wanted = page.min(total.saturating_sub(offset));
        assert_eq!(recalled.hits.len(), wanted, "hits of {asked:?}");
        for hit in &recalled.hits {
            let stamps = times.get(&key_of(hit)).copied().flatten();
            let place = place_in_order(query, hit, stamps);
            assert!(place.is_none() || last <= place, "{last:?} before {place:?}: {asked:?}");
            last = place.or(last);
            *found.entry(key_of(hit)).or_default() += 1;
        }
        offset += page;
        if offset >= total {
            break;
        }
    }
    for (key, gone) in may_be_gone {
        let all = expected.get(&key).copied().unwrap_or_default();
        let there = found.get(&key).copied().unwrap_or_default();
        assert!((all - gone..=all).contains(&there), "{key:?}: {query:?}");
        expected.remove(&key);
        found.remove(&key);
    }
    assert_eq!(found, expected, "{query:?}");
    let beyond = Query { limit: Some(10), offset: total, ..query.clone() };
    assert!(world.session().recall(&beyond).expect("it is answered").hits.is_empty());
}

fn explore(seed: u64) {
    let mut world = World::new(seed, 1500);
    let mut random = Random::new(seed ^ 0xabcd);
    // As it was recorded, and as it is read back from the card, when memories have moved and faded.
    for hours in [0, 3, 40] {
        world.clock.advance(Duration::from_secs(3600 * hours));
        let mut matched = 0;
        for number in 0..200 {
            let query = question(&mut random, &world);
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                check(&world, &query, &mut random);
                // A dozen questions each: of some is enough.
                if number % 10 == 0 {
                    asks::check(&world, &query, &mut random);
                }
            }));
            assert!(caught.is_ok(), "OMIRD_SEED={seed}, after {hours} h, question {number}");
            let now = world.now();
            matched += usize::from(world.seen.iter().any(|seen| seen.matches(&query, now)));
        }
        assert!(matched > 80, "many questions have an answer: {matched}");
        world.open();
    }
}

/// `OMIRD_SEED` repeats one world.
#[test]
fn a_recall_is_exactly_a_scan() {
    std::thread::scope(|scope| {
        for seed in seeds("OMIRD_SEED", 0..2) {
            scope.spawn(move || explore(seed));
        }
    });
}
