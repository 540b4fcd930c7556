//! The state of the card, and the fate of each operation on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use omird::disk::FolderGone;

use super::content::{Change, Content};
use super::index::Rows;
use super::names::{Names, Node};
use super::{BLOCK, Failing};

/// A card: its contents, and the faults that it is to have.
pub(super) struct Card {
    pub(super) files: Vec<Content>,
    /// Files take up whole blocks of so many bytes.
    pub(super) block: u64,
    /// By path; the root is the empty one.
    pub(super) folders: BTreeMap<String, Names>,
    pub(super) operations: u64,
    pub(super) cut_at: Option<u64>,
    pub(super) is_off: bool,
    pub(super) failing: Option<(Failing, u64, u64)>,
    pub(super) capacity: Option<u64>,
    pub(super) unreadable: BTreeSet<usize>,
    /// Bytes that cannot be read.
    pub(super) holes: Vec<(usize, Range<u64>)>,
    /// True if no file can be read.
    pub(super) is_blind: bool,
    pub(super) is_read_only: bool,
    pub(super) is_out: bool,
    pub(super) pull_at: Option<u64>,
    /// Files with a lower number were open when the card was pulled out.
    pub(super) stale_below: usize,
    /// Number of times it was put in again.
    pub(super) returns: u64,
    /// The kept index.
    pub(super) index: Rows,
}

/// The fate of an operation.
#[derive(PartialEq, Eq)]
pub(super) enum Fate {
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

pub(super) fn no_power() -> io::Error {
    io::Error::other("the power is off")
}

pub(super) fn failure() -> io::Error {
    io::Error::other("input/output error")
}

pub(super) fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path} is not there"))
}

/// The folder of a path and the name in it.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.trim_start_matches("./").rsplit_once('/').unwrap_or(("", path))
}

impl Card {
    /// Counts an operation and says what becomes of it.
    pub(super) fn begin(&mut self, is_sync: bool) -> io::Result<Fate> {
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

    pub(super) fn look(&self) -> io::Result<()> {
        if self.is_off {
            Err(no_power())
        } else if self.is_out {
            Err(FolderGone("the card is out".to_owned()).into())
        } else {
            Ok(())
        }
    }

    /// Returns true if an open file is one of the card that is in now.
    pub(super) fn reach(&self, file: usize) -> io::Result<()> {
        self.look()?;
        if file < self.stale_below { Err(failure()) } else { Ok(()) }
    }

    /// Returns true if an operation that fails has happened all the same: every other one has.
    pub(super) fn happened(&self) -> bool {
        self.operations.is_multiple_of(2)
    }

    pub(super) fn used(&self) -> u64 {
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
    pub(super) fn space_of(&self, file: usize) -> u64 {
        (self.files[file].bytes().len() as u64).next_multiple_of(self.block)
    }

    pub(super) fn names(&self, folder: &str) -> io::Result<&Names> {
        self.folders.get(folder).ok_or_else(|| not_found(folder))
    }

    pub(super) fn names_mut(&mut self, folder: &str) -> io::Result<&mut Names> {
        self.folders.get_mut(folder).ok_or_else(|| not_found(folder))
    }

    pub(super) fn file(&self, path: &str) -> io::Result<usize> {
        let (folder, name) = split(path);
        match self.names(folder)?.current().get(name) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Folder) => Err(io::Error::new(io::ErrorKind::IsADirectory, path.to_owned())),
            None => Err(not_found(path)),
        }
    }

    /// Changes a file's bytes as far as there is room for.
    pub(super) fn change(&mut self, file: usize, change: Change) -> io::Result<()> {
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
    pub(super) fn rename_or_so(
        &mut self,
        folder: &str,
        f: impl FnOnce(&mut Names),
    ) -> io::Result<()> {
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
