//! Lives for a robot to live: one written by hand that has something of everything, and as many
//! others as there are seeds.

use omir_core::confidence::FeedbackOutcome;
use omir_core::model::{Entity, Episode, MemoryRecord, Relationship, Resource};
use omir_core::number::Number;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::space::Center;
use omir_core::spatial::SpatialPose;
use omird::engine::{CompactionScope, Query};

use crate::model::{Model, Request};
use crate::random::Random;

/// One step of a life.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A request, which must be answered as the model says.
    Ask(Request),
    /// A recall of these words that counts as an access.
    Recall(String),
    /// A compaction.
    Compact(CompactionScope),
    /// So many hours without a request, and then a sweep.
    Sweep(u8),
    /// A clean stop and a start.
    Restart,
}

/// The words contents are made of.
pub const WORDS: [&str; 6] = ["kettle", "corridor", "charger", "parcel", "window", "ladder"];

/// Reads an id.
///
/// # Panics
/// If it is none.
pub fn id(text: &str) -> Id {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Reads a reference.
///
/// # Panics
/// If it is none.
pub fn reference(text: &str) -> Ref {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// An entity.
pub fn entity(name: &str, surface: &str) -> Resource {
    let mut entity = Entity::new(id(name), surface);
    entity.salience = Number::from_f64(0.25);
    entity.created_at = Some("2026-05-31T07:00:00Z".parse().expect("an instant"));
    entity.into()
}

/// A record of `words` that mentions entities, somewhere on the map.
pub fn record(name: &str, words: &str, mentions: &[&str], at: Option<[f64; 3]>) -> Resource {
    let created = "2026-05-31T08:00:00Z".parse().expect("an instant");
    let mut record = MemoryRecord::new(id(name), words, created);
    record.importance = Number::from_f64(0.5);
    if !mentions.is_empty() {
        let refs = mentions.iter().map(|m| Ref::new(ResourceType::Entity, id(m)).into());
        record.entity_refs = Some(refs.collect());
    }
    record.extension = at.map(|at| vec![SpatialPose::new("map", at.into()).to_extension()]);
    record.into()
}

/// An episode that mentions entities.
pub fn episode(name: &str, words: &str, mentions: &[&str]) -> Resource {
    let created = "2026-05-31T09:00:00Z".parse().expect("an instant");
    let mut episode = Episode::new(id(name), words, created);
    if !mentions.is_empty() {
        let refs = mentions.iter().map(|m| Ref::new(ResourceType::Entity, id(m)).into());
        episode.entity_refs = Some(refs.collect());
    }
    episode.into()
}

/// An edge between two entities, known from an episode.
pub fn edge(name: &str, from: &str, to: &str, known_from: Option<&str>) -> Resource {
    let entity = |name: &str| Ref::new(ResourceType::Entity, id(name));
    let mut edge = Relationship::new(id(name), entity(from), "stands_on", entity(to));
    edge.created_at = Some("2026-05-31T07:30:00Z".parse().expect("an instant"));
    edge.source_episode = known_from.map(|e| Ref::new(ResourceType::Episode, id(e)).into());
    edge.into()
}

fn with_parent(mut record: Resource, parent: &str) -> Resource {
    if let Resource::MemoryRecord(record) = &mut record {
        record.parent_id = Some(id(parent));
    }
    record
}

fn with_version(mut record: Resource, version: u64) -> Resource {
    if let Resource::MemoryRecord(record) = &mut record {
        record.version = Some(Number::from(version));
    }
    record
}

/// The life written by hand: it records, updates, refers within and across requests and segments,
/// forgets with a cascade, records again under a forgotten name, pins, believes, recalls, is
/// refused, sweeps, compacts, and restarts.
pub fn scripted() -> Vec<Step> {
    use Request::{Anchor, Feedback, Forget, Remember};
    let ask = Step::Ask;
    let one = |resource| ask(Remember(vec![resource]));
    let filler = |n: usize| {
        let words = format!("{} {}", WORDS[n % 6], "seen from the corridor. ".repeat(12));
        one(record(&format!("filler-{n}"), &words, &["table"], Some([n as f64, 1.0, 0.0])))
    };
    vec![
        one(entity("table", "Table")),
        one(record("first", "a kettle", &["table"], Some([1.0, 2.0, 0.0]))),
        // References within one request, in either direction.
        ask(Remember(vec![
            edge("on", "pot", "table", Some("morning")),
            episode("morning", "a look around the kitchen", &["pot", "table"]),
            entity("pot", "Pot"),
            with_parent(record("second", "a pot beside the window", &["pot"], None), "first"),
        ])),
        filler(0),
        one(record("first", "a kettle, moved", &["table"], Some([4.0, 2.0, 0.0]))),
        ask(Anchor(reference("MemoryRecord/first"), true)),
        filler(1),
        Step::Recall("kettle corridor".to_owned()),
        ask(Feedback(reference("MemoryRecord/second"), FeedbackOutcome::Confirmed)),
        filler(2),
        filler(3),
        // Refused, each in its own way; none of it may leave a trace.
        one(record("dangling", "a ladder", &["nobody"], None)),
        one(with_version(record("first", "out of date", &[], None), 1)),
        ask(Anchor(reference("MemoryRecord/nobody"), true)),
        ask(Forget(reference("Entity/nobody"))),
        // The edge cannot exist without the pot; the records can.
        ask(Forget(reference("Entity/pot"))),
        filler(4),
        one(entity("pot", "Another pot")),
        one(edge("under", "table", "pot", None)),
        filler(5),
        Step::Sweep(30),
        Step::Restart,
        one(entity("table", "Table")),
        one(with_version(record("first", "a kettle, found again", &["pot"], None), 9)),
        ask(Forget(reference("MemoryRecord/second"))),
        one(record("second", "a parcel", &["table", "pot"], Some([0.0, 0.5, 1.0]))),
        Step::Recall("parcel".to_owned()),
        ask(Remember(vec![
            record("third", "a charger", &["dock"], Some([2.0, 2.0, 0.0])),
            entity("dock", "Dock"),
            edge("beside", "dock", "table", Some("morning")),
        ])),
        filler(6),
        filler(7),
        // The pot's first life goes, with the edge and the mentions of it.
        Step::Compact(CompactionScope::Forgotten),
        ask(Forget(reference("Episode/morning"))),
        ask(Anchor(reference("MemoryRecord/first"), false)),
        filler(8),
        ask(Forget(reference("Entity/table"))),
        Step::Recall("kettle".to_owned()),
        Step::Sweep(2),
        Step::Compact(CompactionScope::All),
        one(record("last", "a window", &["dock"], Some([-1.0, -1.0, 0.0]))),
    ]
}

/// A life of `steps` steps, as the seed says.
pub fn random(seed: u64, steps: usize) -> Vec<Step> {
    let mut random = Random::new(seed);
    // References are made to what will be there, so the life is planned along a model.
    let mut model = Model::default();
    let mut life = Vec::with_capacity(steps);
    for step in 0..steps {
        match random.below(100) {
            0..6 => life.push(Step::Restart),
            6..9 => life.push(Step::Compact(*random.pick(&CompactionScope::ALL))),
            9..14 => life.push(Step::Recall((*random.pick(&WORDS)).to_owned())),
            14..16 => life.push(Step::Sweep(2)),
            _ => {
                let request = request(&mut random, &model, "", step);
                model.apply(&request);
                life.push(Step::Ask(request));
            }
        }
    }
    life
}

/// A request to a store that holds what `model` says; `step` makes its contents differ from those of
/// others. All names begin with `owner`, so that several clients can each keep a model of their own.
pub fn request(random: &mut Random, model: &Model, owner: &str, step: usize) -> Request {
    match random.below(88) {
        0..12 if !model.memories.is_empty() => {
            let names: Vec<&Ref> = model.memories.keys().collect();
            Request::Forget((*random.pick(&names)).clone())
        }
        12..20 => Request::Anchor(any_record(random, owner), random.chance(60)),
        20..30 => {
            let outcome = *random.pick(&FeedbackOutcome::ALL);
            Request::Feedback(any_record(random, owner), outcome)
        }
        30..63 => Request::Remember(vec![any_resource(random, model, owner, step)]),
        _ => {
            let mut batch: Vec<Resource> = Vec::new();
            for _ in 0..2 + random.below(6) {
                let resource = any_resource(random, model, owner, step);
                if batch.iter().all(|other| other.reference() != resource.reference()) {
                    batch.push(resource);
                }
            }
            Request::Remember(batch)
        }
    }
}

fn any_record(random: &mut Random, owner: &str) -> Ref {
    reference(&format!("MemoryRecord/{owner}r{}", random.below(12)))
}

/// Something new or changed. Few names, so that they meet again; the step makes contents differ.
fn any_resource(random: &mut Random, model: &Model, owner: &str, step: usize) -> Resource {
    let live: Vec<String> = model
        .live()
        .filter(|(target, ..)| target.kind == ResourceType::Entity)
        .map(|(target, ..)| target.id.as_str().to_owned())
        .collect();
    let mut mentions: Vec<&str> = Vec::new();
    if !live.is_empty() {
        for _ in 0..random.below(3) {
            let name = random.pick(&live).as_str();
            if !mentions.contains(&name) {
                mentions.push(name);
            }
        }
    }
    // Now and then something that is not there: the whole request is then refused.
    if random.chance(4) {
        mentions.push("nobody");
    }
    let words = format!(
        "{} {} step {step} {}",
        random.pick(&WORDS),
        random.pick(&WORDS),
        "and so on ".repeat(random.below(40)),
    );
    match random.below(10) {
        0..2 => entity(&format!("{owner}e{}", random.below(8)), &words),
        2 if live.len() >= 2 => {
            let (from, to) = (random.pick(&live), random.pick(&live));
            edge(&format!("{owner}l{}", random.below(6)), from, to, None)
        }
        3 => episode(&format!("{owner}p{}", random.below(4)), &words, &mentions),
        _ => {
            let at = random.chance(70).then(|| {
                [random.between(-8.0, 8.0), random.between(-8.0, 8.0), random.between(0.0, 2.0)]
            });
            record(&format!("{owner}r{}", random.below(12)), &words, &mentions, at)
        }
    }
}

/// A recall with the plain test that says what it must give.
pub struct Question {
    /// The request.
    pub query: Query,
    /// True if a resource belongs to the answer.
    pub selects: fn(&Resource) -> bool,
    /// The entity whose mention is asked for. Where a record was stored before the entity was
    /// forgotten and came back, its mention may count or not: sealing may have dropped it.
    pub mention: Option<Ref>,
}

fn place(resource: &Resource) -> Option<[f64; 3]> {
    let pose = omir_core::spatial::pose_of(resource)?.ok()?;
    Some([pose.position.x, pose.position.y, pose.position.z])
}

/// The recalls every store is asked after a restart.
pub fn questions() -> Vec<Question> {
    let base = || Query { limit: Some(1000), touch: false, ..Query::default() };
    let mut questions = vec![
        Question { query: base(), selects: |_| true, mention: None },
        Question {
            query: Query { text: Some("kettle".into()), ..base() },
            selects: |resource| match resource {
                Resource::MemoryRecord(record) => record.content.contains("kettle"),
                Resource::Episode(episode) => episode.content.contains("kettle"),
                Resource::Entity(entity) => entity.name.contains("kettle"),
                Resource::Relationship(_) => false,
            },
            mention: None,
        },
        Question {
            query: Query {
                near: Some(Center::Plane { x: 1.0, y: 1.0 }),
                radius: Some(3.0),
                ..base()
            },
            selects: |resource| {
                place(resource).is_some_and(|[x, y, _]| (x - 1.0).hypot(y - 1.0) <= 3.0)
            },
            mention: None,
        },
        Question {
            query: Query { types: vec![ResourceType::Relationship], ..base() },
            selects: |resource| resource.resource_type() == ResourceType::Relationship,
            mention: None,
        },
    ];
    for name in ["Entity/table", "Entity/pot", "Entity/e1"] {
        questions.push(Question {
            query: Query { entities: vec![reference(name)], ..base() },
            selects: |_| true,
            mention: Some(reference(name)),
        });
    }
    questions
}
