//! Questions about all matches, held against a count over what a scan finds.

use std::collections::{BTreeMap, BTreeSet};

use omir_core::instant::Timestamp;
use omird::engine::{Asks, CountBy, Query};
use omird_tests::life::reference;
use omird_tests::random::Random;
use serde_json::{Value, json};

use crate::exact_recall::seen::{ENTITIES, Seen};
use crate::exact_recall::world::World;

const DAY: i64 = 86_400_000_000;

/// Number, first and last of some matches, as the reply has them.
fn run(matches: &[&Seen]) -> (u64, String, String) {
    let times = || matches.iter().map(|seen| seen.when);
    let text = |at: Option<i64>| Timestamp::from_micros(at.expect("one at least")).to_string();
    (matches.len() as u64, text(times().min()), text(times().max()))
}

fn run_of(group: &Value) -> (u64, String, String) {
    let text = |name: &str| group[name].as_str().expect("an instant").to_owned();
    (group["count"].as_u64().expect("a count"), text("first"), text("last"))
}

fn reply(world: &World, query: &Query) -> Value {
    let found = world.session().recall(query).expect("it is answered");
    let value = found.to_value().expect("it is read");
    let cbor = omir_core::cbor::from_slice(&found.to_cbor(), &Default::default());
    assert_eq!(cbor.expect("it is CBOR").get("total"), value.get("total"));
    serde_json::from_str(&omir_core::json::to_string(&value)).expect("it is JSON")
}

/// Asks everything about the matches of a query.
pub fn check(world: &World, query: &Query, random: &mut Random) {
    // Forgotten memories may be gone already.
    let base = Query { include_forgotten: false, limit: Some(1000), offset: 0, ..query.clone() };
    let now = world.now();
    let matches: Vec<&Seen> = world.seen.iter().filter(|seen| seen.matches(&base, now)).collect();
    // Nor is it there any more as of then.
    let forgotten = world.seen.iter().filter(|seen| seen.is_forgotten).map(|seen| &seen.name);
    let forgotten: BTreeSet<_> = forgotten.collect();
    if matches.iter().any(|seen| forgotten.contains(&seen.name)) {
        return;
    }
    let ask = |asks: Asks| reply(world, &Query { asks, ..base.clone() });
    let total = matches.len() as u64;

    let counted = ask(Asks { count: true, ..Asks::default() });
    assert_eq!((&counted["count"], &counted["total"]), (&json!(total), &json!(total)), "{base:?}");
    assert_eq!(counted["hits"], json!([]));

    let mention = |name: &str| -> Vec<&Seen> {
        matches.iter().copied().filter(|seen| seen.mentions.contains(&name)).collect()
    };
    let mentioned: Vec<(String, Vec<&Seen>)> = ENTITIES
        .iter()
        .map(|name| (format!("Entity/{name}"), mention(name)))
        .filter(|(_, seen)| !seen.is_empty())
        .collect();
    let by_entity = ask(Asks { count_by: Some(CountBy::Entity), ..Asks::default() });
    let groups = by_entity["counts"].as_array().expect("groups");
    let told: BTreeMap<String, _> = groups
        .iter()
        .map(|one| (one["entity"].as_str().expect("a name").to_owned(), run_of(one)))
        .collect();
    let expected = mentioned.iter().map(|(name, seen)| (name.clone(), run(seen)));
    assert_eq!(told, expected.collect::<BTreeMap<_, _>>(), "{base:?}");
    assert_eq!(by_entity["groups"], told.len());

    let mut days: BTreeMap<i64, Vec<&Seen>> = BTreeMap::new();
    for &seen in &matches {
        days.entry(seen.when.div_euclid(DAY)).or_default().push(seen);
    }
    let by_day = ask(Asks { count_by: Some(CountBy::Day), ..Asks::default() });
    let told: Vec<(String, _)> = by_day["counts"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|one| (one["day"].as_str().expect("a day").to_owned(), run_of(one)))
        .collect();
    let day = |day: i64| Timestamp::from_micros(day * DAY).to_string()[..10].to_owned();
    let expected: Vec<_> = days.iter().map(|(at, seen)| (day(*at), run(seen))).collect();
    assert_eq!(told, expected, "{base:?}");

    let cell = *random.pick(&[0.25, 1.0, 50.0]);
    let mut squares: BTreeMap<(&str, [i64; 2]), Vec<&Seen>> = BTreeMap::new();
    for &seen in &matches {
        let Some(frame) = seen.frame else { continue };
        let square = [0, 1].map(|axis| (seen.at[axis] / cell).floor() as i64);
        squares.entry((frame, square)).or_default().push(seen);
    }
    let asks = Asks { count_by: Some(CountBy::Place), cell: Some(cell), ..Asks::default() };
    let by_place = ask(asks);
    assert_eq!(by_place["groups"], squares.len(), "{base:?}");
    let mut last = u64::MAX;
    for one in by_place["counts"].as_array().expect("groups") {
        let at = |axis: usize| one["position"][axis].as_f64().expect("metres");
        let square = [0, 1].map(|axis| (at(axis) / cell).floor() as i64);
        let frame = one["frame"].as_str().expect("a frame");
        assert_eq!(run_of(one), run(&squares[&(frame, square)]), "{base:?}");
        assert!(one["count"].as_u64() <= Some(last), "the most frequent first");
        last = one["count"].as_u64().expect("a count");
    }

    let newest = |seen: &[&Seen]| {
        let latest = seen.iter().map(|seen| (seen.when, seen.recorded)).max().expect("one");
        // One of those that nobody can tell apart by their times.
        let all = seen.iter().filter(|seen| (seen.when, seen.recorded) == latest);
        all.map(|seen| seen.name.to_string()).next_back().expect("one")
    };
    let told = |found: &Value| -> BTreeMap<String, String> {
        let hits = found["hits"].as_array().expect("hits").iter();
        hits.flat_map(|hit| {
            let of = &hit["resource"];
            let name =
                format!("{}/{}", of["resourceType"].as_str().unwrap(), of["id"].as_str().unwrap());
            let entities = hit["entities"].as_array().expect("entities").clone();
            entities
                .into_iter()
                .map(move |entity| (entity.as_str().unwrap().to_owned(), name.clone()))
        })
        .collect()
    };
    let distinct = ask(Asks { distinct: true, ..Asks::default() });
    let expected: BTreeMap<String, String> =
        mentioned.iter().map(|(name, seen)| (name.clone(), newest(seen))).collect();
    assert_eq!(told(&distinct), expected, "{base:?}");
    assert_eq!((&distinct["total"], &distinct["groups"]), (&json!(total), &json!(expected.len())));

    let since = random.pick(&world.seen).when + random.below(2) as i64;
    let asks = Asks { unseen_since: Some(Timestamp::from_micros(since)), ..Asks::default() };
    let unseen = ask(asks);
    let named: BTreeSet<String> = base.entities.iter().map(ToString::to_string).collect();
    let expected: BTreeMap<String, String> = mentioned
        .iter()
        .filter(|(name, _)| named.is_empty() || named.contains(name))
        .filter(|(_, seen)| seen.iter().all(|seen| seen.when < since))
        .map(|(name, seen)| (name.clone(), newest(seen)))
        .collect();
    assert_eq!(told(&unseen), expected, "{base:?} unseen since {since}");

    let gap = *random.pick(&[0, 1_000_000, 600_000_000]);
    let visits = ask(Asks { visits: Some(gap), ..Asks::default() });
    let mut times: Vec<i64> = matches.iter().map(|seen| seen.when).collect();
    times.sort_unstable();
    let count = times.windows(2).filter(|pair| pair[1] - pair[0] > gap).count()
        + usize::from(!times.is_empty());
    assert_eq!(visits["visits"]["count"], count, "{base:?}");
    if !matches.is_empty() {
        let (_, first, last) = run(&matches);
        assert_eq!(
            (&visits["visits"]["first"], &visits["visits"]["last"]),
            (&json!(first), &json!(last))
        );
    }

    let thing = *random.pick(&ENTITIES);
    let history = Query {
        entities: vec![reference(&format!("Entity/{thing}"))],
        asks: Asks { history: true, cell: Some(cell), ..Asks::default() },
        ..base.clone()
    };
    let sighted = |seen: &&Seen| seen.frame.is_some() && seen.matches(&history, now);
    if world.seen.iter().filter(sighted).any(|seen| forgotten.contains(&seen.name)) {
        return;
    }
    let mut sightings: Vec<&Seen> =
        world.seen.iter().filter(sighted).filter(|seen| seen.mentions.contains(&thing)).collect();
    sightings.sort_by_key(|seen| (seen.when, seen.recorded));
    let mut stays: Vec<(&Seen, Vec<&Seen>)> = Vec::new();
    for seen in sightings {
        let is_there = |(first, _): &&mut (&Seen, Vec<&Seen>)| {
            let gaps = [0, 1, 2].map(|axis| first.at[axis] - seen.at[axis]);
            let metres = gaps.iter().map(|gap| gap * gap).sum::<f64>().sqrt();
            first.frame == seen.frame && metres <= cell
        };
        match stays.last_mut().filter(is_there) {
            Some((_, all)) => all.push(seen),
            None => stays.push((seen, vec![seen])),
        }
    }
    let found = reply(world, &history);
    let told = &found["history"][0];
    assert_eq!(told["entity"], format!("Entity/{thing}"));
    assert_eq!(told["moves"], stays.len().saturating_sub(1), "{history:?}");
    let places = told["places"].as_array().expect("places");
    assert_eq!(places.len(), stays.len().min(1000));
    for (place, (_, all)) in places.iter().zip(&stays) {
        let last = all.last().expect("one at least");
        assert_eq!(run_of(place), run(all), "{history:?}");
        assert_eq!((&place["frame"], &place["position"]), (&json!(last.frame), &json!(last.at)));
        assert_eq!(place["ref"], last.name.to_string(), "{history:?}");
    }
}
