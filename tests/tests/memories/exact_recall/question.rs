//! Questions about somewhere something was seen, or hardly beside it.

use std::ops::Bound;

use omir_core::geo::GeoPoint;
use omir_core::instant::Timestamp;
use omir_core::space::{Aabb, Center};
use omird::engine::{Order, Query, Question, TimeRange};
use omird_tests::life::{WORDS, reference};
use omird_tests::random::Random;

use crate::exact_recall::seen::{ENTITIES, LABELS};
use crate::exact_recall::world::World;

/// Words, forms and beginnings of them, phrases, and what must not occur.
fn written(random: &mut Random, words: &str) -> String {
    let parts = 1 + random.below(3);
    let part = |random: &mut Random| {
        let word = *random.pick(&WORDS);
        let sign = if random.chance(30) { "-" } else { "" };
        match random.below(6) {
            0 => format!("{sign}{word}s"),
            1 => format!("{sign}{}*", &word[..1 + random.below(word.len())]),
            // The words of a memory as they stand, or turned.
            2 => format!("{sign}\"{words}\""),
            3 => format!("{sign}\"{word} and {}\"", random.pick(&WORDS)),
            4 => format!("{sign}\"AND {word}\""),
            _ => format!("{sign}{word}"),
        }
    };
    let parts: Vec<String> = (0..parts).map(|_| part(random)).collect();
    parts.join(" ")
}

/// A question about somewhere something was seen, or hardly beside it.
pub fn question(random: &mut Random, world: &World) -> Query {
    let seen = random.pick(&world.seen).clone();
    let other = random.pick(&world.seen).clone();
    let mut query = Query { touch: false, explain: true, ..Query::default() };
    let radius = *random.pick(&[0.0, 0.01, 0.05, 0.5, 2.0, 20.0, 300.0, 5000.0]);
    let [x, y, z] = seen.at;
    if random.chance(5) {
        // Nothing but words: most of what has them is passed over by its score bound.
        query.text = Some(format!("{} {}", random.pick(&WORDS), random.pick(&WORDS)).into());
        return query;
    }
    if random.chance(5) {
        // Nothing but an order: the index of times, or of places, ends the walk where the page is full.
        query.order = *random.pick(&[Order::Latest, Order::Earliest, Order::Distance]);
        query.near = (query.order == Order::Distance)
            .then(|| Center::Plane { x: seen.at[0], y: seen.at[1] });
        return query;
    }
    match random.below(10) {
        0 => query.near = Some(Center::Plane { x, y }),
        1 => query.near = Some(Center::Space { x: x + 0.005, y, z: z - 0.005 }),
        2..4 => {
            query.near = Some(Center::Plane { x, y });
            query.radius = Some(radius);
        }
        4 => {
            query.near = Some(Center::Space { x, y: y + 0.3 * radius, z });
            query.radius = Some(radius);
        }
        5 => {
            // A radius that ends exactly at something.
            query.near = Some(Center::Space { x, y, z });
            query.radius = other.distance(&query);
        }
        6 => {
            let end = if random.chance(50) { other.at } else { [x + radius, y + radius, z + 1.0] };
            query.within = Some(Aabb::new([x, y, z].into(), end.into()));
        }
        7 | 8 => {
            if let Some(geo) = seen.geo {
                let moved = GeoPoint::new(geo.lat(), geo.lon(), geo.alt().filter(|_| radius < 1.0));
                query.geo = moved.ok();
                query.radius = Some(radius);
                if random.chance(20) {
                    query.radius = other.distance(&query).or(query.radius);
                }
            }
        }
        _ => {}
    }
    if random.chance(15) {
        query.frame = Some((*random.pick(&["map", "odom", "nowhere"])).to_owned());
    }
    if random.chance(25) {
        let (a, b) = (seen.when.min(other.when), seen.when.max(other.when));
        let mut bound = |at| match random.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(Timestamp::from_micros(at)),
            _ => Bound::Excluded(Timestamp::from_micros(at)),
        };
        query.time = Some(TimeRange { from: bound(a), to: bound(b) });
    }
    if random.chance(20) {
        query.text = Some(format!("{} {}", random.pick(&WORDS), random.pick(&WORDS)).into());
        query.all_words = random.chance(40);
    } else if random.chance(25) {
        query.text = Question::parse(&written(random, &seen.words)).unwrap();
    }
    query.has_place = random.chance(15);
    match random.below(16) {
        0 => query.types = vec![seen.name.kind],
        1 => query.kinds = vec![seen.kind, other.kind],
        2 => query.tiers = vec![seen.tier(world.now())],
        3 => query.experience_types = seen.experience.into_iter().chain(other.experience).collect(),
        4 => query.labels = vec![*random.pick(&LABELS)],
        5 | 6 => {
            let name = random.pick(&ENTITIES);
            query.entities = vec![reference(&format!("Entity/{name}")), reference("Entity/none")];
        }
        7 => query.min_importance = seen.importance,
        8 => query.min_confidence = seen.confidence,
        9 => query.min_retrievability = Some(random.unit()),
        _ => {}
    }
    if random.chance(40) {
        query.order = *random.pick(&Order::ALL);
        if query.order == Order::Distance && query.near.is_none() && query.geo.is_none() {
            query.order = Order::Latest;
        }
    }
    query.include_expired = random.chance(30);
    query.include_intentions = random.chance(30);
    query.include_forgotten = random.chance(20);
    if random.chance(30) {
        // Just before, at and just after something changed.
        let at = seen.retired.unwrap_or(seen.recorded) + random.below(3) as i64 - 1;
        query.as_of = Some(Timestamp::from_micros(at));
    }
    query
}
