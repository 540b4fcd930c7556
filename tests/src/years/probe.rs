//! Questions with known answers, asked every week without leaving a trace in the memory.

use std::ops::Bound;

use omir_core::instant::Timestamp;
use omir_core::reference::{Ref, ResourceType};
use omir_core::space::Center;
use omird::engine::{Engine, Hit, Query, TimeRange};

use super::board::DAY;
use super::day::LESSONS;
use super::house::{House, Nature};
use super::ledger::{Ledger, Worth};
use crate::Result;
use crate::check::decode;

/// An answer counts if it is among so many.
const TOP: usize = 5;
/// A place counts as known if it is remembered within so many metres.
const NEAR: f64 = 0.75;
/// Sightings older than this should have given way to newer ones.
pub const STALE: i64 = 90 * DAY;

/// Quality of the answers to one kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quality {
    /// Questions asked.
    pub asked: u64,
    /// Answered by the best hit.
    pub first: u64,
    /// Answered among the best five.
    pub found: u64,
    /// Sum of 1/rank over all questions.
    pub reciprocal: f64,
}

impl Quality {
    fn add(&mut self, rank: Option<usize>) {
        self.asked += 1;
        if let Some(rank) = rank {
            self.first += u64::from(rank == 0);
            self.found += 1;
            self.reciprocal += 1.0 / (rank + 1) as f64;
        }
    }

    /// Adds up.
    pub fn add_all(&mut self, other: &Quality) {
        self.asked += other.asked;
        self.first += other.first;
        self.found += other.found;
        self.reciprocal += other.reciprocal;
    }

    /// Share of questions answered among the best five; nothing if none was asked.
    pub fn rate(&self) -> Option<f64> {
        (self.asked > 0).then(|| self.found as f64 / self.asked as f64)
    }

    /// Mean reciprocal rank, counting 0 beyond the fifth; nothing if none was asked.
    pub fn mean_reciprocal_rank(&self) -> Option<f64> {
        (self.asked > 0).then(|| self.reciprocal / self.asked as f64)
    }
}

/// The answers of one week.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Probes {
    /// The question where a thing was seen last.
    pub places: Quality,
    /// The question "what happened near here this week?".
    pub happenings: Quality,
    /// Lessons that were anchored.
    pub anchored: Quality,
    /// Lessons that are asked for again and again.
    pub used: Quality,
    /// Lessons told once and never asked for.
    pub told_once: Quality,
    /// Hits among the best five of questions about places.
    pub hits: u64,
    /// Of these, trivial sightings more than 90 days old.
    pub stale: u64,
    /// Sightings more than 90 days old that are still kept one by one.
    pub old_kept: u64,
    /// Sightings more than 90 days old that there were.
    pub old_all: u64,
}

/// A lesson that was told.
#[derive(Debug, Clone)]
pub struct Lesson {
    /// Its number.
    pub number: usize,
    /// Its memory.
    pub target: Ref,
    /// Its treatment after it was told.
    pub worth: Worth,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Happening {
    /// Its memory.
    pub target: Ref,
    /// The place; metres in `map`.
    pub place: [f64; 2],
    /// True time.
    pub at: i64,
}

/// A question that leaves no trace.
fn question() -> Query {
    let types = vec![ResourceType::MemoryRecord];
    Query { types, limit: Some(TOP), touch: false, ..Query::default() }
}

/// The place stated by a hit; metres in `map`.
pub fn place(hit: &Hit) -> Option<[f64; 2]> {
    let pose = omir_core::spatial::pose_of(&decode(&hit.resource))?.ok()?;
    Some([pose.position.x, pose.position.y])
}

/// Metres between two places.
pub fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// The question where a thing is.
pub fn whereabouts(house: &House, thing: usize) -> Query {
    let thing = &house.things[thing];
    let entity = format!("Entity/{}", thing.id).parse().expect("an entity of the house");
    Query { text: Some(thing.name.as_str().into()), entities: vec![entity], ..question() }
}

/// The question for a lesson.
pub fn lesson(number: usize) -> Query {
    Query { text: Some(LESSONS[number].0.into()), ..question() }
}

/// The question what is known of a place.
pub fn surroundings(place: [f64; 2]) -> Query {
    Query {
        near: Some(Center::Plane { x: place[0], y: place[1] }),
        radius: Some(2.0),
        ..question()
    }
}

/// Asks everything.
///
/// # Errors
/// If a recall fails.
pub fn ask(
    engine: &Engine,
    house: &House,
    ledger: &Ledger,
    lessons: &[Lesson],
    happenings: &[Happening],
    now: i64,
) -> Result<Probes> {
    let mut probes = Probes::default();
    let recall = |query: &Query| -> Result<Vec<Hit>> { Ok(engine.recall(query)?.hits) };
    let position = |hits: &[Hit], target: &Ref| {
        hits.iter().position(|hit| decode(&hit.resource).reference() == *target)
    };
    let is_stale = |hit: &&Hit| {
        let known = ledger.get(&decode(&hit.resource).reference());
        known.is_some_and(|known| known.worth == Worth::Trivia && known.at < now - STALE)
    };

    for thing in house.all(Nature::Small) {
        let Some((_, seen)) = house.things[thing].seen else { continue };
        let hits = recall(&whereabouts(house, thing))?;
        let is_there = |hit: &Hit| place(hit).is_some_and(|at| distance(at, seen) <= NEAR);
        probes.places.add(hits.iter().position(is_there));
        probes.hits += hits.len() as u64;
        probes.stale += hits.iter().filter(is_stale).count() as u64;
    }
    for furniture in house.all(Nature::Furniture) {
        let hits = recall(&surroundings(house.things[furniture].at))?;
        probes.hits += hits.len() as u64;
        probes.stale += hits.iter().filter(is_stale).count() as u64;
    }
    for happening in happenings.iter().filter(|happening| happening.at > now - 7 * DAY) {
        let from = Bound::Included(Timestamp::from_micros(now - 7 * DAY));
        let time = Some(TimeRange { from, to: Bound::Unbounded });
        let query = Query { time, ..surroundings(happening.place) };
        probes.happenings.add(position(&recall(&query)?, &happening.target));
    }
    for told in lessons {
        let rank = position(&recall(&lesson(told.number))?, &told.target);
        match told.worth {
            Worth::Anchored => probes.anchored.add(rank),
            Worth::Used => probes.used.add(rank),
            _ => probes.told_once.add(rank),
        }
    }
    (probes.old_kept, probes.old_all) = ledger.trivia_before(now - STALE);
    Ok(probes)
}
