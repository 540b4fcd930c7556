//! Versions of things as the scan sees them: made on a walk, and matched against a question without an index.

use std::ops::Bound;

use omir_core::geo::GeoPoint;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Entity, ExperienceType, Kind, Label, MemoryRecord, Meta, Resource};
use omir_core::number::Number;
use omir_core::reference::{Ref, ResourceType};
use omir_core::space::{Aabb, Center};
use omir_core::spatial::SpatialPose;
use omir_core::tier::Tier;
use omird::engine::testing::Phrase;
use omird::engine::{Query, Question, TimeRange};
use omird_tests::life::{WORDS, id};
use omird_tests::random::Random;

/// One version of one thing, as the scan sees it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub name: Ref,
    pub words: String,
    pub frame: Option<&'static str>,
    pub at: [f64; 3],
    pub geo: Option<GeoPoint>,
    /// Microseconds.
    pub when: i64,
    pub valid_until: Option<i64>,
    pub importance: Option<f64>,
    pub confidence: Option<f64>,
    pub half_life: Option<f64>,
    /// Microseconds; when it was made, or what was inherited from an earlier version.
    pub last_access: i64,
    /// True if the two above were inherited.
    pub is_inherited: bool,
    pub kind: Kind,
    pub tier: Tier,
    pub experience: Option<ExperienceType>,
    pub label: Option<Label>,
    pub mentions: Vec<&'static str>,
    /// Its producer; some producers have other ideas of what is important.
    pub source: Option<&'static str>,
    pub recorded: i64,
    pub retired: Option<i64>,
    pub is_forgotten: bool,
}

pub const ENTITIES: [&str; 4] = ["table", "dock", "door", "lamp"];
pub const LABELS: [Label; 3] = [Label::Person, Label::Location, Label::Product];

/// A walk through the world with stops, and its like on the globe.
pub struct Walk {
    pub at: [f64; 3],
    pub random: Random,
}

impl Walk {
    pub fn place(&mut self) -> [f64; 3] {
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

    pub fn geo(&mut self) -> GeoPoint {
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

pub fn observe(walk: &mut Walk, number: usize, now: i64) -> Seen {
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
    /// Returns true if its words are what a question asks for. All of them are singular, so a form is the word or its
    /// plural, and none is a stop word but "and".
    fn answers(&self, asked: &Question, all: bool) -> bool {
        let held: Vec<&str> = self.words.split(' ').collect();
        let has = |word: &String| held.contains(&word.strip_suffix('s').unwrap_or(word));
        let label = self.label.map(|label| label.as_str());
        let begins = |start: &String| {
            held.iter().copied().chain(label).any(|word| word.starts_with(start.as_str()))
        };
        let has_phrase = |phrase: &Phrase| {
            let words: Vec<&str> =
                phrase.readings().next().unwrap_or_default().iter().map(String::as_str).collect();
            held.windows(words.len()).any(|window| window == words)
        };
        let wanted: Vec<&String> = asked.words().iter().filter(|word| *word != "and").collect();
        let is_wanted = match all {
            true => wanted.iter().all(|word| has(word)),
            // A question that only excludes finds all the rest.
            false if !asked.ranks() => true,
            false => wanted.iter().any(|word| has(word)) || asked.prefixes().iter().any(begins),
        };
        let excluded = asked.excluded();
        is_wanted
            && asked.phrases().iter().all(has_phrase)
            && !excluded.words.iter().any(has)
            && !excluded.prefixes.iter().any(begins)
            && !excluded.phrases.iter().any(has_phrase)
    }

    pub fn resource(&self) -> Resource {
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
            // The number that ranks it may differ from the one that is stated and filtered by.
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

    pub fn is_record(&self) -> bool {
        self.name.kind == ResourceType::MemoryRecord
    }

    pub fn retrievability(&self, now: i64) -> f64 {
        if !self.is_record() {
            return 1.0;
        }
        let hours = (now - self.last_access) as f64 / 3.6e9;
        let half_life = self.half_life.unwrap_or(omir_core::forgetting::HalfLife::DEFAULT.hours());
        if hours <= 0.0 { 1.0 } else { 1.0 / (1.0 + 3.0 * (hours / half_life)).sqrt() }
    }

    /// Recency: half of it is gone after a week. What is dated later than it was
    /// recorded counts from then.
    pub fn recency(&self, now: i64) -> f64 {
        let is_intention = self.experience == Some(ExperienceType::Intention);
        let at = self.when.min(self.recorded);
        if !self.is_record() || self.kind != Kind::Memory || is_intention || now <= at {
            return 1.0;
        }
        1.0 / (1.0 + 3.0 * ((now - at) as f64 / 3.6e9 / 168.0)).sqrt()
    }

    /// The current tier of a record that nobody accesses: the rules of tiers with their default numbers.
    pub fn tier(&self, now: i64) -> Tier {
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

    pub fn distance(&self, query: &Query) -> Option<f64> {
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
    pub fn matches(&self, query: &Query, now: i64) -> bool {
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
            && query.time.is_none_or(|range| contains(&range, Timestamp::from_micros(self.when)))
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
            && (!query.has_place || self.frame.is_some())
            && query.text.as_ref().is_none_or(|asked| self.answers(asked, query.all_words))
    }
}

pub fn contains(range: &TimeRange, at: Timestamp) -> bool {
    let after = match range.from {
        Bound::Unbounded => true,
        Bound::Included(from) => from <= at,
        Bound::Excluded(from) => from < at,
    };
    let before = match range.to {
        Bound::Unbounded => true,
        Bound::Included(to) => at <= to,
        Bound::Excluded(to) => at < to,
    };
    after && before
}
