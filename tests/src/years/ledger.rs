//! Memories acknowledged to a robot, and deletions reported to it.

use std::collections::{BTreeMap, HashMap};

use omir_core::reference::{Ref, ResourceType};

/// Importance of a memory to the robot, which decides how long it should be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// One of many sightings of the same thing.
    Trivia,
    /// Something that happened once.
    Happening,
    /// Something to know for good, and anchored.
    Anchored,
    /// Something to know that is asked for again and again.
    Used,
    /// Something to know that nobody has asked for since.
    ToldOnce,
    /// Anything else: things, tasks, days.
    Other,
}

/// One acknowledged resource.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// True time of the acknowledgement.
    pub at: i64,
    /// Its importance to the robot.
    pub worth: Worth,
    /// True if it is still there, as far as was acknowledged and announced.
    pub is_live: bool,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    known: HashMap<Ref, Known>,
    live: BTreeMap<&'static str, u64>,
}

impl Ledger {
    /// Something was acknowledged, at `at`.
    pub fn remember(&mut self, target: Ref, at: i64, worth: Worth) {
        let kind = target.kind.as_str();
        let before = self.known.insert(target, Known { at, worth, is_live: true });
        if before.is_none_or(|known| !known.is_live) {
            *self.live.entry(kind).or_default() += 1;
        }
    }

    /// Something was announced as forgotten.
    pub fn forget(&mut self, target: &Ref) {
        if let Some(known) = self.known.get_mut(target)
            && known.is_live
        {
            known.is_live = false;
            if let Some(count) = self.live.get_mut(target.kind.as_str()) {
                *count -= 1;
            }
        }
    }

    /// Facts about a resource.
    pub fn get(&self, target: &Ref) -> Option<&Known> {
        self.known.get(target)
    }

    /// Everything that should be there.
    pub fn live(&self) -> impl Iterator<Item = (&Ref, &Known)> {
        self.known.iter().filter(|(_, known)| known.is_live)
    }

    /// Counts the memories of a type that should be there.
    pub fn count(&self, of: ResourceType) -> u64 {
        self.live.get(of.as_str()).copied().unwrap_or(0)
    }

    /// Sightings from before `then` that are still there, and how many there were.
    pub fn trivia_before(&self, then: i64) -> (u64, u64) {
        let old = self.known.values().filter(|k| k.worth == Worth::Trivia && k.at < then);
        old.fold((0, 0), |(live, all), known| (live + u64::from(known.is_live), all + 1))
    }
}
