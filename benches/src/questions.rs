//! Questions: recalls for something that is there, as a planner or a person would put it.

use omir_core::reference::{Ref, ResourceType};
use omir_core::space::Center;
use omird::engine::Query;

use crate::records::{ENTITIES, Records, Traits, entity_id};
use omird_tests::random::Random;

/// A kind of recall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Two or three words with meaning, all from one record.
    Words,
    /// The same among function words, as in "where is the red mug".
    Sentence,
    /// Everything within two metres.
    Radius,
    /// Words within ten metres.
    WordsAndRadius,
    /// The ten nearest.
    Nearest,
    /// Resources that mention an entity.
    Entity,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Words, Self::Sentence, Self::Radius, Self::WordsAndRadius, Self::Nearest];
    /// Those that are asked while the store is swept.
    pub const DURING_SWEEPS: [Self; 5] =
        [Self::Words, Self::Sentence, Self::Radius, Self::WordsAndRadius, Self::Entity];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Sentence => "sentence",
            Self::Radius => "radius 2 m",
            Self::WordsAndRadius => "words + radius 10 m",
            Self::Nearest => "nearest 10",
            Self::Entity => "entity",
        }
    }
}

/// A recall, ready to be asked both ways.
#[derive(Debug, Clone)]
pub struct Question {
    /// As a selector's parameters.
    pub parameters: String,
    /// As the engine takes it.
    pub query: Query,
}

/// Makes `count` questions about what `records` made.
pub fn questions(kind: Kind, count: usize, records: &Records, seed: u64) -> Vec<Question> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| {
            let about = &records.traits[random.position(records.traits.len())];
            question(kind, about, records, &mut random)
        })
        .collect()
}

fn question(kind: Kind, about: &Traits, records: &Records, random: &mut Random) -> Question {
    let mut parts = vec!["format=cbor".to_owned()];
    let mut query = Query::default();
    if let Some(text) = text(kind, about, records, random) {
        parts.push(format!("q={}", text.replace(' ', "%20")));
        query.text = Some(text.into());
    }
    let radius = match kind {
        Kind::Radius => Some(2.0),
        Kind::WordsAndRadius => Some(10.0),
        _ => None,
    };
    if radius.is_some() || kind == Kind::Nearest {
        let beside = |n: f64, random: &mut Random| (n + random.normal()).round();
        let [x, y, _] = about.position;
        let (x, y) = (beside(x, random), beside(y, random));
        parts.push(format!("near={x},{y}"));
        query.near = Some(Center::Plane { x, y });
    }
    if kind == Kind::Entity {
        let id = entity_id(random.position(ENTITIES));
        parts.push(format!("entity=Entity/{id}"));
        let id = id.parse().expect("a valid id");
        query.entities.push(Ref { kind: ResourceType::Entity, id });
    }
    if let Some(radius) = radius {
        parts.push(format!("radius={radius}"));
        query.radius = Some(radius);
    }
    Question { parameters: parts.join(";"), query }
}

fn text(kind: Kind, about: &Traits, records: &Records, random: &mut Random) -> Option<String> {
    let words = &records.words;
    let mut chosen: Vec<u16> =
        about.words.iter().copied().filter(|&rank| words.has_meaning(rank)).collect();
    chosen.dedup();
    chosen.truncate(2 + random.position(2));
    match kind {
        Kind::Radius | Kind::Nearest | Kind::Entity => return None,
        Kind::Words | Kind::WordsAndRadius => {}
        Kind::Sentence => {
            let extra: Vec<u16> = (0..3).map(|_| words.draw_function(random)).collect();
            chosen.splice(0..0, extra);
        }
    }
    // A record of function words alone: rare, and still a question.
    if chosen.is_empty() {
        chosen.extend(about.words.iter().take(2));
    }
    Some(words.text(&chosen))
}
