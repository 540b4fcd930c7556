//! The kept index of a card: a store of derived data that a cut may do anything to.

use std::collections::BTreeMap;
use std::io;

use omird::store::{Derived, DerivedEntry, DerivedRefused};

use super::card::Fate;
use super::{CutDisk, EVERYTHING, ONLY_SYNCED};
use crate::random::Random;
use crate::session::Card;

/// The contents of the index, and the writes that led to them.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    current: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The writes since it was cleared, in order.
    history: Vec<Vec<DerivedEntry>>,
    /// Refuses to write until it is cleared, as a tree that was cut may.
    is_broken: bool,
}

impl Rows {
    fn apply(&mut self, entries: Vec<DerivedEntry>) {
        for (key, value) in entries.iter().cloned() {
            match value {
                Some(value) => self.current.insert(key, value),
                None => self.current.remove(&key),
            };
        }
        self.history.push(entries);
    }

    /// Contents that a cut leaves: all, nothing, what was there some time ago, a mixture of times, or rot.
    pub(super) fn survivors(&self, seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x1d5e);
        match seed {
            EVERYTHING => return self.clone(),
            ONLY_SYNCED => return Self::default(),
            _ => {}
        }
        let mut left = Self { is_broken: random.chance(10), ..Self::default() };
        let kept = random.below(self.history.len() + 1);
        self.history[..kept].iter().for_each(|entries| left.apply(entries.clone()));
        match random.below(4) {
            0 => {}
            // Of what came later some keys got there, and some not.
            1 => {
                for entries in &self.history[kept..] {
                    let some = entries.iter().filter(|_| random.chance(50)).cloned().collect();
                    left.apply(some);
                }
            }
            2 => left.rot(&mut random),
            // Everything but single keys.
            _ => {
                left = self.clone();
                left.current.retain(|_, _| random.chance(70));
            }
        }
        left
    }

    fn rot(&mut self, random: &mut Random) {
        let keys: Vec<Vec<u8>> = self.current.keys().cloned().collect();
        for key in &keys {
            let other = self.current[random.pick(&keys)].clone();
            let Some(value) = self.current.get_mut(key) else { continue };
            match random.below(5) {
                0 if !value.is_empty() => {
                    let at = random.below(value.len());
                    value[at] ^= 1 << random.below(8);
                }
                1 => value.truncate(random.below(value.len() + 1)),
                2 => *value = other,
                _ => {}
            }
        }
        self.current.insert(b"no key of ours".to_vec(), vec![7; 9]);
    }
}

impl Card for CutDisk {
    fn index(&self) -> Option<Box<dyn Derived>> {
        Some(Box::new(CutIndex(self.clone())))
    }
}

/// The index of a card.
struct CutIndex(CutDisk);

fn refused(error: &io::Error) -> DerivedRefused {
    DerivedRefused(error.to_string())
}

impl Derived for CutIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DerivedRefused> {
        let card = self.0.card();
        card.look().map_err(|error| refused(&error))?;
        Ok(card.index.current.get(key).cloned())
    }

    fn keys(&self) -> Result<Vec<Vec<u8>>, DerivedRefused> {
        let card = self.0.card();
        card.look().map_err(|error| refused(&error))?;
        Ok(card.index.current.keys().cloned().collect())
    }

    fn write(&mut self, mut entries: &[DerivedEntry]) -> Result<(), DerivedRefused> {
        let mut card = self.0.card();
        let fate = card.begin(false).map_err(|error| refused(&error))?;
        if card.index.is_broken {
            return Err(DerivedRefused("it was cut".to_owned()));
        }
        if fate != Fate::Done {
            entries = &entries[..entries.len() / 2];
        }
        card.index.apply(entries.to_vec());
        if fate == Fate::Done {
            Ok(())
        } else {
            Err(DerivedRefused("it happened in part".to_owned()))
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        let mut card = self.0.card();
        let fate = card.begin(true)?;
        if fate == Fate::Done || card.happened() {
            card.index = Rows::default();
        }
        match fate {
            Fate::Done => Ok(()),
            Fate::Fails | Fate::Cut => Err(io::Error::other("it happened, or not")),
        }
    }

    fn size_on_disk(&self) -> u64 {
        let card = self.0.card();
        card.index.current.values().map(|value| value.len() as u64).sum()
    }
}
