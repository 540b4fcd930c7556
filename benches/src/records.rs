//! Memories of the robot: observations of 300 to 500 bytes of CBOR, as a real one would send.

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value};

use crate::path::Path;
use crate::words::Words;
use omird_tests::random::Random;

/// Entities that records mention.
pub const ENTITIES: usize = 64;
/// Time of the first observation: it does not matter, only that it is past.
const BEGINNING: i64 = 1_767_225_600;
/// Of so many records at most the traits are kept, to ask for them later.
const TRAITS: usize = 4096;

/// Attributes by which a record can be asked for.
#[derive(Debug, Clone)]
pub struct Traits {
    /// The words of its content, by rank.
    pub words: Vec<u16>,
    /// The place where it was made.
    pub position: [f64; 3],
}

/// The id of one of the entities.
pub fn entity_id(number: usize) -> String {
    format!("thing-{number}")
}

/// Makes records, one after the other.
pub struct Records {
    /// The vocabulary.
    pub words: Words,
    /// Some of the records made so far, evenly chosen.
    pub traits: Vec<Traits>,
    random: Random,
    path: Path,
    made: u64,
}

fn object(members: Vec<(&str, Value)>) -> Value {
    let mut map = Map::new();
    for (name, value) in members {
        map.insert(name, value);
    }
    Value::Object(map)
}

/// Two decimals, as people and most detectors write importance and confidence.
fn hundredths(n: f64) -> Value {
    ((n.clamp(0.0, 1.0) * 100.0).round() / 100.0).into()
}

fn millimetres(n: f64) -> f64 {
    (n * 1000.0).round() / 1000.0
}

impl Records {
    /// Records along `path`.
    pub fn new(seed: u64, path: Path) -> Self {
        let random = Random::new(seed);
        Self { words: Words::new(), traits: Vec::new(), random, path, made: 0 }
    }

    /// The entities that records mention, as one array, to be remembered before them.
    pub fn entities(&self) -> Vec<u8> {
        let entity = |number: usize| {
            object(vec![
                ("resourceType", "Entity".into()),
                ("id", entity_id(number).into()),
                ("name", self.words.text(&[(30 + number) as u16]).into()),
            ])
        };
        cbor::to_vec(&Value::Array((0..ENTITIES).map(entity).collect()))
    }

    /// The next record as CBOR.
    pub fn next(&mut self) -> Vec<u8> {
        cbor::to_vec(&self.next_value())
    }

    /// An array of the next `count` records as CBOR, and the bytes of the records in it.
    pub fn next_array(&mut self, count: usize) -> (Vec<u8>, u64) {
        let mut out = Vec::with_capacity(count * 450);
        cbor::write_array_header(count, &mut out);
        let header = out.len();
        for _ in 0..count {
            cbor::write(&self.next_value(), &mut out);
        }
        let bytes = (out.len() - header) as u64;
        (out, bytes)
    }

    fn next_value(&mut self) -> Value {
        let random = &mut self.random;
        let pose = self.path.step(random);
        let words: Vec<u16> =
            (0..8 + random.position(13)).map(|_| self.words.draw(random)).collect();
        let content = self.words.text(&words);
        let position = pose.position.map(millimetres);
        let half = pose.yaw / 2.0;
        let micros = (BEGINNING as f64 + pose.seconds) * 1e6;
        let event = Timestamp::from_micros(micros as i64 / 1000 * 1000).to_string();
        let stored = Timestamp::from_micros(micros as i64 / 1000 * 1000 + 120_000).to_string();
        let mentions = random.position(3);
        let number = self.made;
        self.made += 1;
        self.keep_traits(number, words, position);
        let random = &mut self.random;
        let floats = |list: &[f64]| Value::Array(list.iter().map(|&n| n.into()).collect());
        let spatial = object(vec![
            ("frame", "map".into()),
            ("position", floats(&position)),
            ("orientation", floats(&[0.0, 0.0, half.sin(), half.cos()])),
        ]);
        let mut members = vec![
            ("resourceType", "MemoryRecord".into()),
            ("id", format!("obs-{:016x}", random.bits()).into()),
            ("content", content.into()),
            ("createdAt", stored.into()),
            ("eventTime", event.into()),
            ("importance", hundredths(0.4 + 0.2 * random.normal())),
            ("confidence", object(vec![("calibrated", hundredths(random.between(0.5, 1.0)))])),
            (
                "decay",
                object(vec![
                    ("halfLifeHours", Value::from(24.0 * (1 + random.position(14)) as f64)),
                    ("accessCount", Value::from(1u64)),
                ]),
            ),
        ];
        if mentions > 0 {
            let first = random.position(ENTITIES);
            let refs = (0..mentions).map(|n| {
                let entity = format!("Entity/{}", entity_id((first + 7 * n) % ENTITIES));
                object(vec![("ref", entity.into())])
            });
            members.push(("entityRefs", Value::Array(refs.collect())));
        }
        let extension = object(vec![("url", SPATIAL_POSE_URL.into()), ("valueJson", spatial)]);
        members.push(("extension", Value::Array(vec![extension])));
        object(members)
    }

    /// Keeps an even sample of everything (Vitter's algorithm R).
    fn keep_traits(&mut self, number: u64, words: Vec<u16>, position: [f64; 3]) {
        let traits = Traits { words, position };
        if self.traits.len() < TRAITS {
            self.traits.push(traits);
        } else {
            let at = (self.random.unit() * (number + 1) as f64) as usize;
            if let Some(slot) = self.traits.get_mut(at) {
                *slot = traits;
            }
        }
    }
}
