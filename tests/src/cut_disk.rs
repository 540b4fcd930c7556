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

mod content;
mod index;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use omird::disk::{Disk, DiskFile, Gone, Mode, Space};

use self::content::{Change, Content};
use self::index::Rows;
use self::names::{Names, Node};
use crate::random::Random;

/// The seed of [`CutDisk::survivors`] that keeps nothing but what was synced.
pub const ONLY_SYNCED: u64 = 0;
/// The seed of [`CutDisk::survivors`] that keeps everything that was written.
pub const EVERYTHING: u64 = 1;

/// Files take up whole blocks of so many bytes, unless [`CutDisk::set_block`] says otherwise.
pub const BLOCK: u64 = 512;

/// Which operations are made to fail.
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

struct Card {
    files: Vec<Content>,
    /// Files take up whole blocks of so many bytes.
    block: u64,
    /// By path; the root is the empty one.
    folders: BTreeMap<String, Names>,
    operations: u64,
    cut_at: Option<u64>,
    is_off: bool,
    failing: Option<(Failing, u64, u64)>,
    capacity: Option<u64>,
    unreadable: BTreeSet<usize>,
    /// Bytes that cannot be read.
    holes: Vec<(usize, Range<u64>)>,
    /// True if no file can be read.
    is_blind: bool,
    is_read_only: bool,
    is_out: bool,
    pull_at: Option<u64>,
    /// Files with a lower number were open when the card was pulled out.
    stale_below: usize,
    /// How often it was put in again.
    returns: u64,
    /// The kept index.
    index: Rows,
}

/// What becomes of an operation.
#[derive(PartialEq, Eq)]
enum Fate {
    Done,
    /// It fails, and may have happened in part.
    Fails,
    /// The power goes, or the card is pulled out, while it is under way.
    Cut,
}

impl Default for Card {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            block: BLOCK,
            folders: BTreeMap::new(),
            operations: 0,
            cut_at: None,
            is_off: false,
            failing: None,
            capacity: None,
            unreadable: BTreeSet::new(),
            holes: Vec::new(),
            is_blind: false,
            is_read_only: false,
            is_out: false,
            pull_at: None,
            stale_below: 0,
            returns: 0,
            index: Rows::default(),
        }
    }
}

fn no_power() -> io::Error {
    io::Error::other("the power is off")
}

fn failure() -> io::Error {
    io::Error::other("input/output error")
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path} is not there"))
}

/// The folder of a path and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.trim_start_matches("./").rsplit_once('/').unwrap_or(("", path))
}

impl CutDisk {
    /// An empty card.
    pub fn new() -> Self {
        let disk = Self::default();
        disk.card().folders.insert(String::new(), Names::default());
        disk
    }

    fn card(&self) -> MutexGuard<'_, Card> {
        self.card.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations have changed something so far; the next one has this number.
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

    /// How many of the failures that were asked for are still to come.
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

impl Card {
    /// Counts an operation and says what becomes of it.
    fn begin(&mut self, is_sync: bool) -> io::Result<Fate> {
        self.look()?;
        if self.is_read_only && !is_sync {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let number = self.operations;
        self.operations += 1;
        if self.cut_at.is_some_and(|at| number >= at) {
            self.is_off = true;
            return Ok(Fate::Cut);
        }
        if self.pull_at.is_some_and(|at| number >= at) {
            self.is_out = true;
            return Ok(Fate::Cut);
        }
        if let Some((failing, from, left)) = &mut self.failing
            && number >= *from
            && *left > 0
            && (is_sync || *failing == Failing::Any)
        {
            *left -= 1;
            return Ok(Fate::Fails);
        }
        Ok(Fate::Done)
    }

    fn look(&self) -> io::Result<()> {
        if self.is_off {
            Err(no_power())
        } else if self.is_out {
            Err(Gone("the card is out".to_owned()).into())
        } else {
            Ok(())
        }
    }

    /// Whether an open file is one of the card that is in now.
    fn reach(&self, file: usize) -> io::Result<()> {
        self.look()?;
        if file < self.stale_below { Err(failure()) } else { Ok(()) }
    }

    /// Returns true if an operation that fails has happened all the same: every other one has.
    fn happened(&self) -> bool {
        self.operations.is_multiple_of(2)
    }

    fn used(&self) -> u64 {
        let linked: BTreeSet<usize> = self
            .folders
            .values()
            .flat_map(|names| names.current().values())
            .filter_map(|node| match node {
                Node::File(file) => Some(*file),
                Node::Folder => None,
            })
            .collect();
        linked.iter().map(|&file| self.space_of(file)).sum()
    }

    /// The space that a file takes.
    fn space_of(&self, file: usize) -> u64 {
        (self.files[file].bytes().len() as u64).next_multiple_of(self.block)
    }

    fn names(&self, folder: &str) -> io::Result<&Names> {
        self.folders.get(folder).ok_or_else(|| not_found(folder))
    }

    fn names_mut(&mut self, folder: &str) -> io::Result<&mut Names> {
        self.folders.get_mut(folder).ok_or_else(|| not_found(folder))
    }

    fn file(&self, path: &str) -> io::Result<usize> {
        let (folder, name) = split(path);
        match self.names(folder)?.current().get(name) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Folder) => Err(io::Error::new(io::ErrorKind::IsADirectory, path.to_owned())),
            None => Err(not_found(path)),
        }
    }

    /// Changes a file's bytes as far as there is room for.
    fn change(&mut self, file: usize, change: Change) -> io::Result<()> {
        let fate = self.begin(false)?;
        let own = self.space_of(file);
        let others = self.used().saturating_sub(own);
        let room = self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(others));
        let room = room.max(own) / self.block * self.block;
        match fate {
            Fate::Cut => {
                self.files[file].change(change);
                Err(no_power())
            }
            Fate::Fails => {
                let part = if self.happened() { change.end() } else { change.end() / 2 };
                self.files[file].change(change.up_to(part));
                Err(failure())
            }
            Fate::Done if change.end() > room => {
                self.files[file].change(change.up_to(room));
                Err(io::ErrorKind::StorageFull.into())
            }
            Fate::Done => {
                self.files[file].change(change);
                Ok(())
            }
        }
    }

    /// Changes the names of a folder.
    fn rename_or_so(&mut self, folder: &str, f: impl FnOnce(&mut Names)) -> io::Result<()> {
        match self.begin(false)? {
            Fate::Done => {
                f(self.names_mut(folder)?);
                Ok(())
            }
            Fate::Fails => {
                if self.happened() {
                    f(self.names_mut(folder)?);
                }
                Err(failure())
            }
            Fate::Cut => {
                f(self.names_mut(folder)?);
                Err(no_power())
            }
        }
    }
}

impl Disk for CutDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let mut card = self.card();
        card.look()?;
        let mut path = String::new();
        for name in dir.split('/') {
            let parent = path.clone();
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
            if !card.names(&parent)?.current().contains_key(name) {
                card.folders.insert(path.clone(), Names::default());
                card.rename_or_so(&parent, |names| names.add(name, Node::Folder))?;
            }
        }
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let card = self.card();
        card.look()?;
        Ok(card.names(dir)?.current().keys().cloned().collect())
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut card = self.card();
        card.look()?;
        if card.is_read_only && mode != Mode::Read {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let file = match (card.file(path), mode) {
            (Ok(file), Mode::Read | Mode::Write) => file,
            (Ok(file), Mode::Create) => {
                card.change(file, Change::Truncate(0))?;
                file
            }
            (Err(error), Mode::Create) if error.kind() == io::ErrorKind::NotFound => {
                let (folder, name) = split(path);
                let file = card.files.len();
                card.files.push(Content::default());
                card.rename_or_so(folder, |names| names.add(name, Node::File(file)))?;
                file
            }
            (Err(error), _) => return Err(error),
        };
        Ok(Arc::new(CutFile { card: self.card.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut card = self.card();
        card.look()?;
        let file = card.file(from)?;
        let ((folder, from), (target, to)) = (split(from), split(to));
        assert_eq!(folder, target, "the store renames within a folder only");
        card.rename_or_so(folder, |names| names.rename(from, to, file))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut card = self.card();
        card.look()?;
        let file = card.file(path)?;
        let (folder, name) = split(path);
        card.rename_or_so(folder, |names| names.remove(name, file))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut card = self.card();
        let dir = if dir == "." { "" } else { dir };
        card.names(dir)?;
        match card.begin(true)? {
            Fate::Done => {
                card.names_mut(dir)?.sync();
                Ok(())
            }
            Fate::Fails => Err(failure()),
            Fate::Cut => Err(no_power()),
        }
    }

    fn space(&self) -> io::Result<Space> {
        let card = self.card();
        card.look()?;
        let total = card.capacity.unwrap_or(1 << 40);
        Ok(Space { free: total.saturating_sub(card.used()), total })
    }

    fn mounting(&self) -> io::Result<u64> {
        let card = self.card();
        card.look()?;
        Ok(card.returns)
    }
}

struct CutFile {
    card: Arc<Mutex<Card>>,
    file: usize,
}

impl CutFile {
    fn card(&self) -> MutexGuard<'_, Card> {
        self.card.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskFile for CutFile {
    fn len(&self) -> io::Result<u64> {
        let card = self.card();
        card.reach(self.file)?;
        Ok(card.files[self.file].bytes().len() as u64)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let card = self.card();
        card.reach(self.file)?;
        if card.is_blind || card.unreadable.contains(&self.file) {
            return Err(failure());
        }
        let end = offset.saturating_add(buf.len() as u64);
        if card.holes.iter().any(|(f, h)| *f == self.file && offset < h.end && h.start < end) {
            return Err(failure());
        }
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let found = card.files[self.file].bytes().get(start..start.saturating_add(buf.len()));
        buf.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut card = self.card();
        card.reach(self.file)?;
        card.change(self.file, Change::Write { at: offset, bytes: buf.to_vec() })
    }

    fn sync(&self) -> io::Result<()> {
        let mut card = self.card();
        card.reach(self.file)?;
        match card.begin(true)? {
            Fate::Done => {
                card.files[self.file].sync();
                Ok(())
            }
            Fate::Fails => {
                card.files[self.file].fail_sync();
                Err(failure())
            }
            Fate::Cut => Err(no_power()),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut card = self.card();
        card.reach(self.file)?;
        card.change(self.file, Change::Truncate(len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.truncate(len)
    }
}
