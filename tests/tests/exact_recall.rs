//! A recall gives what a scan over everything would give: no more, no less, and page by page
//! neither twice nor never. The scan here knows nothing of indexes, and little of the store.
//!
//! Invariant 5 of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use omir_core::geo::GeoPoint;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Entity, ExperienceType, Kind, Label, MemoryRecord, Meta, Resource};
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omir_core::space::{Aabb, Center};
use omir_core::spatial::SpatialPose;
use omir_core::tier::Tier;
use omir_core::value::Value;
use omir_core::{cbor, decode::Limits};
use omird::clock::Clock;
use omird::engine::Hit;
use omird::engine::settings::Settings;
use omird::recall::Query;
use omird::recall::query::Span;
use omird_tests::cut_disk::CutDisk;
use omird_tests::journal::change;
use omird_tests::life::{WORDS, id, reference};
use omird_tests::model::Request;
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

/// One version of one thing, as the scan sees it.
#[derive(Debug, Clone)]
struct Seen {
    name: Ref,
    words: String,
    frame: Option<&'static str>,
    at: [f64; 3],
    geo: Option<GeoPoint>,
    /// Microseconds.
    when: i64,
    valid_until: Option<i64>,
    importance: Option<f64>,
    confidence: Option<f64>,
    half_life: Option<f64>,
    /// Microseconds; when it was made, or what was inherited from an earlier version.
    last_access: i64,
    /// True if the two above were inherited.
    is_inherited: bool,
    kind: Kind,
    tier: Tier,
    experience: Option<ExperienceType>,
    label: Option<Label>,
    mentions: Vec<&'static str>,
    /// Its producer; some producers have other ideas of what is important.
    source: Option<&'static str>,
    recorded: i64,
    retired: Option<i64>,
    is_forgotten: bool,
}

const ENTITIES: [&str; 4] = ["table", "dock", "door", "lamp"];
const LABELS: [Label; 3] = [Label::Person, Label::Location, Label::Product];

/// A walk through the world with stops, and its like on the globe.
struct Walk {
    at: [f64; 3],
    random: Random,
}

impl Walk {
    fn place(&mut self) -> [f64; 3] {
        let random = &mut self.random;
        match random.below(20) {
            // A long way off, far beyond any radius asked about but the greatest.
            0 => self.at = [random.between(-4e3, 4e3), random.between(-4e3, 4e3), 0.0],
            // Back to one of a few stops, where observations pile up within centimetres.
            1..4 => {
                let stop = random.below(3) as f64;
                self.at = [10.0 * stop, -5.0 * stop, 0.5 * stop];
            }
            // Exactly where the last one was.
            4..6 => return self.at,
            6..10 => self.at.iter_mut().for_each(|c| *c += random.between(-0.02, 0.02)),
            _ => self.at.iter_mut().for_each(|c| *c += random.between(-1.0, 1.0)),
        }
        self.at
    }

    fn geo(&mut self) -> GeoPoint {
        let random = &mut self.random;
        let spread = *random.pick(&[1e-7, 1e-5, 1e-3, 0.05]);
        let beside = random.between(-spread, spread);
        let (lat, lon) = match random.below(6) {
            0 => (90.0 - beside.abs(), random.between(-180.0, 180.0)),
            1 => (-90.0 + beside.abs(), random.between(-180.0, 180.0)),
            // On both sides of the date line, and on it.
            2 => (-17.0 + beside, if beside < 0.0 { 180.0 + beside } else { beside - 180.0 }),
            3 => (*random.pick(&[90.0, -90.0, 0.0]), *random.pick(&[180.0, -180.0, 0.0])),
            _ => (48.137 + beside, 11.575 + random.between(-spread, spread)),
        };
        let alt = random.chance(30).then(|| random.between(0.0, 30.0));
        GeoPoint::new(lat, lon, alt).expect("on the earth")
    }
}

fn observe(walk: &mut Walk, number: usize, now: i64) -> Seen {
    let at = walk.place();
    let geo = walk.random.chance(50).then(|| walk.geo());
    let random = &mut walk.random;
    let is_entity = random.chance(10);
    let kind = if is_entity { ResourceType::Entity } else { ResourceType::MemoryRecord };
    let frame = match random.below(10) {
        0 => None,
        1..3 => Some("odom"),
        _ => Some("map"),
    };
    // Events lie in the hour before they are recorded, many at the very same second; a few are dated
    // by a clock that is ahead.
    let ago = if random.chance(5) { -7200 } else { random.below(3600) as i64 };
    let when = now - 1_000_000 * ago;
    let optional = |random: &mut Random| random.chance(70).then(|| random.below(11) as f64 / 10.0);
    let mut mentions: Vec<&'static str> = Vec::new();
    if !is_entity && random.chance(40) {
        mentions.push(*random.pick(&ENTITIES));
    }
    let half_life = random.chance(40).then(|| random.between(0.1, 5.0));
    Seen {
        name: Ref::new(kind, id(&format!("n{number}"))),
        words: format!("{} and {}", random.pick(&WORDS), random.pick(&WORDS)),
        frame,
        at,
        geo: geo.filter(|_| frame.is_some()),
        when: if is_entity { now } else { when },
        valid_until: (!is_entity && random.chance(15))
            .then(|| now + 1_000_000 * random.below(4000) as i64),
        importance: optional(random),
        confidence: optional(random).filter(|_| !is_entity),
        half_life: half_life.filter(|_| !is_entity),
        last_access: now,
        is_inherited: false,
        kind: *random.pick(Kind::ALL),
        tier: *random.pick(&Tier::ALL),
        experience: random.chance(60).then(|| *random.pick(ExperienceType::ALL)),
        label: is_entity.then(|| *random.pick(&LABELS)),
        mentions,
        source: *random.pick(&[None, None, Some("omird/0.1.0"), Some("a/1"), Some("b/2")]),
        recorded: now,
        retired: None,
        is_forgotten: false,
    }
}

impl Seen {
    fn resource(&self) -> Resource {
        let pose = self.frame.map(|frame| {
            let mut pose = SpatialPose::new(frame, self.at.into());
            pose.geo = self.geo;
            vec![pose.to_extension()]
        });
        let instant = |micros| Instant::from(Timestamp::from_micros(micros));
        let number = |n: Option<f64>| n.and_then(Number::from_f64);
        let source = self.source.map(str::to_owned);
        let meta = source.map(|source| Meta { source: Some(source), ..Meta::r1() });
        if self.name.kind == ResourceType::Entity {
            let mut entity = Entity::new(self.name.id.clone(), self.words.clone());
            entity.salience = number(self.importance);
            entity.created_at = Some(instant(self.recorded));
            entity.labels = self.label.map(|label| vec![label]);
            entity.extension = pose;
            entity.meta = meta;
            return entity.into();
        }
        let (name, words) = (self.name.id.clone(), self.words.clone());
        let mut record = MemoryRecord::new(name, words, instant(self.recorded));
        record.meta = meta;
        record.event_time = Some(instant(self.when));
        record.valid_until = self.valid_until.map(instant);
        record.importance = number(self.importance);
        if self.confidence.is_some() {
            let confidence = record.confidence.get_or_insert_default();
            confidence.calibrated = number(self.confidence);
            // What ranks it may be another number than what is stated and filtered by.
            confidence.alpha = number(Some(3.0));
            confidence.beta = number(Some(1.5));
        }
        if self.half_life.is_some() && !self.is_inherited {
            record.decay.get_or_insert_default().half_life_hours = number(self.half_life);
        }
        record.kind = Some(self.kind);
        record.tier = Some(self.tier);
        record.experience_type = self.experience;
        if !self.mentions.is_empty() {
            let refs = self.mentions.iter().map(|m| Ref::new(ResourceType::Entity, id(m)).into());
            record.entity_refs = Some(refs.collect());
        }
        record.extension = pose;
        record.into()
    }

    fn is_record(&self) -> bool {
        self.name.kind == ResourceType::MemoryRecord
    }

    fn retrievability(&self, now: i64) -> f64 {
        if !self.is_record() {
            return 1.0;
        }
        let hours = (now - self.last_access) as f64 / 3.6e9;
        let half_life = self.half_life.unwrap_or(omir_core::forgetting::HalfLife::DEFAULT.hours());
        if hours <= 0.0 { 1.0 } else { 1.0 / (1.0 + 3.0 * (hours / half_life)).sqrt() }
    }

    /// How lately it happened: half of it is gone after a week. What is dated later than it was
    /// recorded counts from then.
    fn recency(&self, now: i64) -> f64 {
        let is_intention = self.experience == Some(ExperienceType::Intention);
        let at = self.when.min(self.recorded);
        if !self.is_record() || self.kind != Kind::Memory || is_intention || now <= at {
            return 1.0;
        }
        1.0 / (1.0 + 3.0 * ((now - at) as f64 / 3.6e9 / 168.0)).sqrt()
    }

    /// The current tier of a record that nobody accesses: the rules of tiers with their default numbers.
    fn tier(&self, now: i64) -> Tier {
        let now = self.retired.map_or(now, |retired| now.min(retired));
        let hours = (now - self.recorded) as f64 / 3.6e9;
        if hours < 1.0 {
            return self.tier;
        }
        if self.retrievability(now) < 0.1 {
            return Tier::Archive;
        }
        let is_strong = self.importance.unwrap_or(0.5) >= 0.6;
        match self.tier {
            Tier::Working | Tier::Session if hours >= 24.0 && is_strong => Tier::Longterm,
            Tier::Working => Tier::Session,
            stays => stays,
        }
    }

    fn distance(&self, query: &Query) -> Option<f64> {
        let [x, y, z] = self.at;
        if let Some(near) = query.near {
            return Some(match near {
                Center::Plane { x: cx, y: cy } => {
                    ((cx - x) * (cx - x) + (cy - y) * (cy - y)).sqrt()
                }
                Center::Space { x: cx, y: cy, z: cz } => {
                    ((cx - x) * (cx - x) + (cy - y) * (cy - y) + (cz - z) * (cz - z)).sqrt()
                }
            });
        }
        Some(query.geo?.distance_m(&self.geo?))
    }

    /// The whole of docs/keys.md, "Recall", one line for each filter.
    fn matches(&self, query: &Query, now: i64) -> bool {
        let now = query.as_of.map_or(now, Timestamp::as_micros);
        let any = |wanted: bool, is_empty: bool| is_empty || wanted;
        let is_known = self.recorded <= now
            && (self.retired.is_none_or(|retired| query.as_of.is_some() && now < retired)
                || (query.include_forgotten && self.is_forgotten));
        let is_in_frame = self.frame == Some(query.frame());
        let needs_frame = query.frame.is_some() || query.near.is_some() || query.within.is_some();
        let [x, y, z] = self.at;
        let is_in_box = |b: &Aabb| {
            (b.min.x..=b.max.x).contains(&x)
                && (b.min.y..=b.max.y).contains(&y)
                && (b.min.z..=b.max.z).contains(&z)
        };
        is_known
            && (query.include_expired || self.valid_until.is_none_or(|until| now < until))
            && (query.include_intentions
                || !self.is_record()
                || self.experience != Some(ExperienceType::Intention))
            && (!needs_frame || is_in_frame)
            && query.within.as_ref().is_none_or(is_in_box)
            && (query.geo.is_none() || self.geo.is_some())
            && query.radius.is_none_or(|r| self.distance(query).is_some_and(|d| d <= r))
            && query.time.is_none_or(|span| contains(&span, Timestamp::from_micros(self.when)))
            && any(query.types.contains(&self.name.kind), query.types.is_empty())
            && any(self.is_record() && query.kinds.contains(&self.kind), query.kinds.is_empty())
            && any(
                self.is_record() && query.tiers.contains(&self.tier(now)),
                query.tiers.is_empty(),
            )
            && any(
                self.is_record()
                    && self.experience.is_some_and(|e| query.experience_types.contains(&e)),
                query.experience_types.is_empty(),
            )
            && any(self.label.is_some_and(|l| query.labels.contains(&l)), query.labels.is_empty())
            && any(
                query.entities.iter().any(|e| self.mentions.contains(&e.id.as_str())),
                query.entities.is_empty(),
            )
            && query.min_importance.is_none_or(|least| self.importance.is_some_and(|i| i >= least))
            && query.min_confidence.is_none_or(|least| self.confidence.is_some_and(|c| c >= least))
            && query.min_retrievability.is_none_or(|least| self.retrievability(now) >= least)
            && query.text.as_ref().is_none_or(|words| {
                words.split(' ').any(|word| self.words.split(' ').any(|other| other == word))
            })
    }
}

fn contains(span: &Span, at: Timestamp) -> bool {
    let after = match span.from {
        Bound::Unbounded => true,
        Bound::Included(from) => from <= at,
        Bound::Excluded(from) => from < at,
    };
    let before = match span.to {
        Bound::Unbounded => true,
        Bound::Included(to) => at <= to,
        Bound::Excluded(to) => at < to,
    };
    after && before
}

/// A store and all that was ever recorded in it.
struct World {
    disk: CutDisk,
    clock: Arc<TestClock>,
    session: Option<Session>,
    seen: Vec<Seen>,
}

fn world_settings() -> Settings {
    // Large enough for the spatial index to grow trees, small enough to seal half of it.
    Settings { segment_bytes: 400_000, ..settings() }
}

impl World {
    fn open(&mut self) {
        self.session = None;
        let disk = Arc::new(self.disk.clone());
        let opened = Session::open_with(disk, &self.clock, world_settings(), None);
        self.session = Some(opened.expect("it opens"));
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("it is open")
    }

    fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }

    fn ask(&self, request: &Request) {
        let change = change(self.session(), request).expect("it is valid");
        self.session().execute(change).expect("the disk is good");
    }

    /// Ends the live version of a name.
    fn retire(&mut self, name: &Ref, is_forgotten: bool) {
        let now = self.now();
        let live = self.seen.iter_mut().rev().find(|seen| seen.name == *name);
        if let Some(live) = live.filter(|live| live.retired.is_none()) {
            live.retired = Some(now);
            live.is_forgotten = is_forgotten;
        }
    }

    fn remember(&mut self, batch: Vec<Seen>) {
        self.ask(&Request::Remember(batch.iter().map(Seen::resource).collect()));
        for seen in batch {
            self.retire(&seen.name, false);
            self.seen.push(seen);
        }
    }

    fn live_one(&self, random: &mut Random) -> Ref {
        loop {
            let seen = random.pick(&self.seen);
            if seen.retired.is_none() && seen.name.id.as_str().starts_with('n') {
                return seen.name.clone();
            }
        }
    }

    fn new(seed: u64, count: usize) -> Self {
        let disk = CutDisk::new();
        let mut world = Self { disk, clock: TestClock::new(), session: None, seen: Vec::new() };
        world.open();
        let mut walk = Walk { at: [0.0; 3], random: Random::new(seed) };
        let mut named = Vec::new();
        for name in ENTITIES {
            let mut seen = observe(&mut walk, 0, world.now());
            while seen.name.kind != ResourceType::Entity {
                seen = observe(&mut walk, 0, world.now());
            }
            seen.name.id = id(name);
            named.push(seen);
        }
        world.remember(named);
        let mut number = 0;
        while number < count {
            world.clock.advance(Duration::from_secs(60));
            let mut batch = Vec::new();
            for _ in 0..150 {
                number += 1;
                batch.push(observe(&mut walk, number, world.now()));
            }
            // Some of what was there is seen again, elsewhere.
            if number > 150 {
                for _ in 0..20 {
                    let name = world.live_one(&mut walk.random);
                    let mut again = observe(&mut walk, number, world.now());
                    if again.name.kind == name.kind
                        && batch.iter().all(|other: &Seen| other.name != name)
                    {
                        again.name = name;
                        // A version that says nothing of forgetting inherits what was said; nobody thought of it, so it fades
                        // from its own date.
                        let before = world.seen.iter().rev().find(|seen| seen.name == again.name);
                        if let Some(before) = before.filter(|_| again.half_life.is_none()) {
                            again.half_life = before.half_life;
                            again.is_inherited = true;
                        }
                        batch.push(again);
                    }
                }
            }
            world.remember(batch);
            world.clock.advance(Duration::from_secs(60));
            for _ in 0..5 {
                let name = world.live_one(&mut walk.random);
                world.ask(&Request::Forget(name.clone()));
                world.retire(&name, true);
            }
        }
        world
    }
}

/// A question about somewhere something was seen, or hardly beside it.
fn question(random: &mut Random, world: &World) -> Query {
    let seen = random.pick(&world.seen).clone();
    let other = random.pick(&world.seen).clone();
    let mut query = Query { touch: false, explain: true, ..Query::default() };
    let radius = *random.pick(&[0.0, 0.01, 0.05, 0.5, 2.0, 20.0, 300.0, 5000.0]);
    let [x, y, z] = seen.at;
    if random.chance(5) {
        // Nothing but words: most of what has them is passed over at a glance.
        query.text = Some(format!("{} {}", random.pick(&WORDS), random.pick(&WORDS)));
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
        query.time = Some(Span { from: bound(a), to: bound(b) });
    }
    if random.chance(20) {
        query.text = Some(format!("{} {}", random.pick(&WORDS), random.pick(&WORDS)));
    }
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

/// What tells one version from all others, as far as a hit shows it; the last is how lately it happened.
type Key = (Ref, String, Option<u64>, u64);

fn key_of(hit: &Hit) -> Key {
    let value = cbor::from_slice(&hit.resource, &Limits::default()).expect("it is CBOR");
    let text = |name| value.get(name).and_then(Value::as_str);
    let name = format!("{}/{}", text("resourceType").unwrap_or(""), text("id").unwrap_or(""));
    let words = text("content").or(text("name")).unwrap_or_default();
    let (parts, _) = hit.parts.expect("it is explained");
    (reference(&name), words.to_owned(), hit.distance.map(f64::to_bits), parts.recency.to_bits())
}

/// Asks, page by page, and compares with the scan. What was forgotten may be gone already: sealing leaves it
/// out. It is found or not, but nothing else is.
fn check(world: &World, query: &Query, random: &mut Random) {
    let now = world.now();
    let mut expected: BTreeMap<Key, usize> = BTreeMap::new();
    let forgotten = world.seen.iter().filter(|seen| seen.is_forgotten).map(|seen| &seen.name);
    let forgotten: BTreeSet<&Ref> = forgotten.collect();
    let mut may_be_gone: BTreeMap<Key, usize> = BTreeMap::new();
    let mut most = 0;
    for seen in world.seen.iter().filter(|seen| seen.matches(query, now)) {
        let distance = seen.distance(query).map(f64::to_bits);
        let recency = seen.recency(query.as_of.map_or(now, Timestamp::as_micros)).to_bits();
        let key = (seen.name.clone(), seen.words.clone(), distance, recency);
        if forgotten.contains(&seen.name) {
            *may_be_gone.entry(key.clone()).or_default() += 1;
        }
        *expected.entry(key).or_default() += 1;
        most += 1;
    }
    let least = most - may_be_gone.values().sum::<usize>();
    let few = Query { limit: Some(1 + random.below(4)), ..query.clone() };
    let best = world.session().recall(&few).expect("it is answered");
    let mut total = best.total as usize;
    assert!((least..=most).contains(&total), "{total} of {least} to {most}: {query:?}");
    let page = (1 + random.below(400)).max(total / 8).min(1000);
    let mut found: BTreeMap<Key, usize> = BTreeMap::new();
    let mut last = (f64::INFINITY, 0.0);
    let mut offset = 0;
    loop {
        let asked = Query { limit: Some(page), offset, ..query.clone() };
        let recalled = world.session().recall(&asked).expect("it is answered");
        // Sealing goes on meanwhile: what was forgotten may go between two pages, and never comes back.
        if recalled.total < total as u64 && recalled.total >= least as u64 {
            (total, offset, last) = (recalled.total as usize, 0, (f64::INFINITY, 0.0));
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
            assert!(hit.score <= last.0, "best first: {asked:?}");
            let nearest_first = query.radius.is_none() && query.text.is_none();
            if let Some(distance) = hit.distance.filter(|_| nearest_first) {
                assert!(distance >= last.1, "nearest first: {asked:?}");
                last.1 = distance;
            }
            last.0 = hit.score;
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
