//! A flash card in memory whose power can be cut.
//!
//! It keeps what was *written* apart from what was *synced*, by exactly the words of
//! [`omird::disk::Disk`]: bytes are durable after a sync of their file, names after a sync of their
//! folder, a rename is atomic, and whatever was not synced may be lost, torn or reordered. Every
//! operation that changes something has a number; the power can go at any of them, and
//! [`CutDisk::survivors`] gives one of the cards that may be found afterwards.
//!
//! It also keeps an index, as sled does beside the files: of that nothing is durable, and a cut leaves of it what it
//! likes, also what was there before.
//!
//! Other troubles: an operation that fails and may have happened in part, a sync that fails and
//! takes the pages with it (as Linux does: the next sync succeeds and what was lost stays lost), a
//! card that is full, one that is mounted read-only, one that is pulled out (and put in again: what
//! was open before is of no use then), sectors that cannot be read, and bytes that rot.

mod card;
mod content;
mod file;
mod index;
mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use self::card::Card;
use self::names::{Names, Node};
use crate::random::Random;

/// The seed of [`CutDisk::survivors`] that keeps nothing but what was synced.
pub const ONLY_SYNCED: u64 = 0;
/// The seed of [`CutDisk::survivors`] that keeps everything that was written.
pub const EVERYTHING: u64 = 1;

/// Files take up whole blocks of so many bytes, unless [`CutDisk::set_block`] says otherwise.
pub const BLOCK: u64 = 512;

/// The operations that are made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// All that change something.
    Any,
    /// Syncs of files and folders.
    Syncs,
}

/// The card. Clones are the same card.
#[derive(Clone, Default)]
pub struct CutDisk {
    card: Arc<Mutex<Card>>,
}

impl CutDisk {
    /// An empty card.
    pub fn new() -> Self {
        let disk = Self::default();
        disk.card().folders.insert(String::new(), Names::default());
        disk
    }

    fn card(&self) -> MutexGuard<'_, Card> {
        self.card.lock()
    }

    /// Number of operations that have changed something so far; the next one has this number.
    pub fn operations(&self) -> u64 {
        self.card().operations
    }

    /// Cuts the power at the operation of this number: it may or may not reach the card, and
    /// everything after it fails.
    pub fn cut_at(&self, operation: u64) {
        self.card().cut_at = Some(operation);
    }

    /// Cuts the power now.
    pub fn cut(&self) {
        self.card().is_off = true;
    }

    /// Returns true if the power is off.
    pub fn is_off(&self) -> bool {
        self.card().is_off
    }

    /// Makes `count` operations of a kind fail, from the operation of number `from` on.
    pub fn fail(&self, failing: Failing, from: u64, count: u64) {
        self.card().failing = Some((failing, from, count));
    }

    /// Number of failures that were asked for and are still to come.
    pub fn failures_left(&self) -> u64 {
        self.card().failing.map_or(0, |(_, _, left)| left)
    }

    /// Bounds the space of all files together, in bytes; `None` for no bound. Every file takes whole
    /// blocks.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.card().capacity = bytes;
    }

    /// Sets how many bytes a block has.
    pub fn set_block(&self, bytes: u64) {
        self.card().block = bytes;
    }

    /// Space of all files together, in bytes.
    pub fn used(&self) -> u64 {
        self.card().used()
    }

    /// Paths of all files, in order.
    pub fn paths(&self) -> Vec<String> {
        let card = self.card();
        let mut paths = Vec::new();
        for (folder, names) in &card.folders {
            for (name, node) in names.current() {
                if matches!(node, Node::File(_)) {
                    paths.push(if folder.is_empty() {
                        name.clone()
                    } else {
                        format!("{folder}/{name}")
                    });
                }
            }
        }
        paths.sort();
        paths
    }

    /// The bytes of a file as a reader sees them now.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let card = self.card();
        let file = card.file(path).unwrap_or_else(|error| panic!("{error}"));
        card.files[file].bytes().to_vec()
    }

    /// Changes bytes of a file behind the store's back, as a dying card does.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn rot(&self, path: &str, f: impl FnOnce(&mut Vec<u8>)) {
        let mut card = self.card();
        let file = card.file(path).unwrap_or_else(|error| panic!("{error}"));
        card.files[file].rot(f);
    }

    /// Makes every read of a file fail, as of sectors whose error correction gave up.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn make_unreadable(&self, path: &str) {
        let mut card = self.card();
        let file = card.file(path).unwrap_or_else(|error| panic!("{error}"));
        card.unreadable.insert(file);
    }

    /// Lets a file be read again: it was only out of reach.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn make_readable(&self, path: &str) {
        let mut card = self.card();
        let file = card.file(path).unwrap_or_else(|error| panic!("{error}"));
        card.unreadable.remove(&file);
    }

    /// Makes reads of some bytes of a file fail, as of a few bad sectors.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn make_hole(&self, path: &str, bytes: Range<u64>) {
        let mut card = self.card();
        let file = card.file(path).unwrap_or_else(|error| panic!("{error}"));
        card.holes.push((file, bytes));
    }

    /// Makes every read of any file fail, or no more.
    pub fn set_blind(&self, is_blind: bool) {
        self.card().is_blind = is_blind;
    }

    /// Mounts the card read-only, or for writing again.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.card().is_read_only = is_read_only;
    }

    /// Pulls the card out: its files can be reached no more, open or not.
    pub fn pull_out(&self) {
        self.card().is_out = true;
    }

    /// Pulls the card out at the operation of this number, which may or may not reach it.
    pub fn pull_out_at(&self, operation: u64) {
        self.card().pull_at = Some(operation);
    }

    /// Returns true if the card is out.
    pub fn is_out(&self) -> bool {
        self.card().is_out
    }

    /// Puts the card in again. Of what was not synced there is what the seed says, as with
    /// [`CutDisk::survivors`]; files that were open stay out of reach.
    pub fn put_in(&self, seed: u64) {
        let kept = std::mem::take(&mut *self.survivors(seed).card());
        let mut card = self.card();
        // Open handles keep their numbers, which are those of no file any more.
        let offset = card.files.len();
        card.files.extend(kept.files);
        card.folders = kept.folders;
        card.folders.values_mut().for_each(|names| names.renumber(offset));
        card.stale_below = offset;
        card.index = kept.index;
        card.is_out = false;
        card.pull_at = None;
        card.returns += 1;
    }

    /// A card that may be found after the power is back: what was synced, and of what was not
    /// whatever the seed says. Its own power is on and it has no troubles.
    ///
    /// [`ONLY_SYNCED`] and [`EVERYTHING`] are the two extremes; any other seed decides for each
    /// operation whether it was lost, kept or torn, and in which order they reached the card.
    pub fn survivors(&self, seed: u64) -> Self {
        let card = self.card();
        let mut random = Random::new(seed);
        let mut kept = Card::default();
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = vec![String::new()];
        while let Some(path) = queue.pop() {
            let found = card.folders.get(&path).map(|names| names.survivors(seed, &mut random));
            let mut names = Names::default();
            for (name, node) in found.unwrap_or_default() {
                match node {
                    Node::Folder => {
                        queue.push(if path.is_empty() {
                            name.clone()
                        } else {
                            format!("{path}/{name}")
                        });
                        names.adopt(name, Node::Folder);
                    }
                    Node::File(old) => {
                        let new = *numbers.entry(old).or_insert_with(|| {
                            kept.files.push(card.files[old].survivors(seed, &mut random));
                            kept.files.len() - 1
                        });
                        names.adopt(name, Node::File(new));
                    }
                }
            }
            kept.folders.insert(path, names);
        }
        kept.index = card.index.survivors(seed);
        Self { card: Arc::new(Mutex::new(kept)) }
    }
}
