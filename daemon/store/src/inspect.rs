//! Looking at a data folder with no daemon running: what lies there, what is damaged, and how what
//! can still be read gets into a new folder.
//!
//! | module | the question it answers |
//! |---|---|
//! | `scan` | what is in this one file? |
//! | `assembly` | what do all files come to, and where does something lack? |
//! | `estimate` | what is most likely where no stamp tells? |
//! | `check` | which faults are there, and did anything acknowledged get lost? |
//! | `cat` | what did this resource, or this file, say? |
//! | `repair` | how does everything readable become a sound folder again? |
//!
//! Bytes become findings and a [`History`] without printing and without a clock. Every file is read
//! once, whole; where the card gives back an error, the bytes there count as zeros and the rest is
//! still looked at.
//!
//! # What is never done
//!
//! Nothing in the folder is changed, renamed or removed. `lock` is held for reading, so that no daemon
//! starts meanwhile; where that is refused [`Store::remark`] says so. The index is not opened: sled writes
//! when it opens, and nothing is lost with it.
//!
//! # What cannot be told
//!
//! Damage to the very last write of the newest log looks like a write that the power cut short; and
//! of a newest log that was removed nobody knows whether it held anything. Everything before that is
//! held together by transaction numbers, segment numbers and digests, and what is missing is named.

mod assembly;
mod cat;
mod check;
mod estimate;
mod finding;
mod history;
mod mended;
mod prove;
mod repair;
mod scan;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use omir_core::instant::Timestamp;
use parking_lot::Mutex;

use crate::disk::{self, Disk, Folder};
use crate::lock::{Lock, LockError};
use crate::log::wal;
use crate::segment;

pub use cat::{CatError, Reader};
pub use check::{Report, check};
pub use finding::{Finding, Kind, Severity, Verdict};
pub use history::{Act, Event, FileRow, History, HistoryInterval, Position, Row, State, Version};
pub use prove::NoProof;
pub use repair::{KeyOrigin, RepairError, Repaired, repair};

/// The ending of the name of a file that was set aside.
const SET_ASIDE: &str = ".damaged";

/// The kind of a file of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A sealed segment and its number.
    Segment(u64),
    /// A log and its number.
    Log(u64),
}

/// A file of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Its kind.
    pub kind: FileKind,
    /// True if a start of the daemon set it aside as damaged.
    pub is_set_aside: bool,
    /// Path within the data folder.
    pub path: String,
}

impl Source {
    fn of(dir: &str, name: &str) -> Option<Self> {
        let (plain, is_set_aside) = match name.strip_suffix(SET_ASIDE) {
            Some(plain) => (plain, true),
            None => (name, false),
        };
        let kind = match dir {
            segment::DIR => FileKind::Segment(segment::number_of(plain)?),
            _ => FileKind::Log(wal::number_of(plain)?),
        };
        Some(Self { kind, is_set_aside, path: format!("{dir}/{name}") })
    }
}

/// How far a long look has come, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Done.
    pub done: u64,
    /// In all.
    pub total: u64,
}

/// Why a store cannot be looked at.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// A daemon, or another look, has it.
    Locked {
        /// The folder.
        path: PathBuf,
        /// The refusal of the lock.
        error: LockError,
    },
    /// There is no store: neither a data folder, nor a segment, nor a log.
    NoStore {
        /// The given path.
        path: PathBuf,
        /// A description of what lies there.
        message: String,
    },
    /// The operating system refuses.
    Disk {
        /// The given path.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NoStore { path, message } => write!(f, "{}: {message}", path.display()),
            Self::Disk { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

/// A data folder, or one file of it, to be looked at. The folder is locked as long as this lives.
pub struct Store {
    disk: Arc<dyn Disk>,
    /// The data folder; for a file alone, the folder it lies in.
    root: PathBuf,
    sources: Vec<Source>,
    is_folder: bool,
    /// Nothing can have been recorded later, unless it says so itself and is whole.
    now: Timestamp,
    remark: Option<String>,
    /// Files that are damaged, as their second copies mend them.
    mended: Mutex<HashMap<String, Arc<[u8]>>>,
    _lock: Option<Lock>,
}

impl Store {
    /// Opens a data folder, or a single segment or log. `now` bounds the guesses at times that are
    /// lost, and dates what a repair seals.
    ///
    /// # Errors
    /// See [`OpenError`]. A damaged store is no error.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, OpenError> {
        let disk_error = |error| OpenError::Disk { path: path.to_owned(), error };
        let found = fs::metadata(path).map_err(disk_error)?;
        if found.is_dir() { Self::open_folder(path, now) } else { Self::open_file(path, now) }
    }

    fn open_folder(path: &Path, now: Timestamp) -> Result<Self, OpenError> {
        if ![segment::DIR, wal::DIR].iter().any(|dir| path.join(dir).is_dir()) {
            let message = "no data folder: it has neither segments/ nor wal/".to_owned();
            return Err(OpenError::NoStore { path: path.to_owned(), message });
        }
        let (lock, remark) = hold(path)?;
        let mut store = Self {
            disk: Arc::new(Folder::new(path)),
            root: path.to_owned(),
            sources: Vec::new(),
            is_folder: true,
            now,
            remark,
            mended: Mutex::default(),
            _lock: lock,
        };
        for dir in [segment::DIR, wal::DIR] {
            let names = store
                .names(dir)
                .map_err(|error| OpenError::Disk { path: path.join(dir), error })?;
            store.sources.extend(names.iter().filter_map(|name| Source::of(dir, name)));
        }
        store.sources.sort();
        Ok(store)
    }

    /// A sealed segment never changes and a log only grows, so a file alone needs no lock.
    fn open_file(path: &Path, now: Timestamp) -> Result<Self, OpenError> {
        let disk_error = |error| OpenError::Disk { path: path.to_owned(), error };
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let root = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let disk = Folder::new(&root);
        let plain = name.strip_suffix(SET_ASIDE).unwrap_or(&name);
        let kind = if plain.ends_with(".wal") {
            let (head, _) = disk::read_around(&disk, &name).map_err(disk_error)?;
            let number = wal::number_of(plain).or(wal::stored_number(&head));
            FileKind::Log(number.unwrap_or(0))
        } else if plain.ends_with(".omirb") {
            FileKind::Segment(segment::number_of(plain).unwrap_or(0))
        } else {
            let message = "a single file must be a segment (.omirb) or a log (.wal)".to_owned();
            return Err(OpenError::NoStore { path: path.to_owned(), message });
        };
        let is_set_aside = name.ends_with(SET_ASIDE);
        Ok(Self {
            disk: Arc::new(disk),
            root,
            sources: vec![Source { kind, is_set_aside, path: name }],
            is_folder: false,
            now,
            remark: None,
            mended: Mutex::default(),
            _lock: None,
        })
    }

    /// Something a person should know of how the store was opened.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }

    /// Returns true if it is a data folder and not a file alone.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// Its segments and logs.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Reads all files into one history.
    ///
    /// # Errors
    /// If a file may not be read at all (permission). What is damaged is no error.
    pub fn history(&self, progress: &mut dyn FnMut(Progress)) -> io::Result<History> {
        assembly::read(self, false, progress)
    }

    /// Names in a folder of the store; none if there is no such folder.
    fn names(&self, dir: &str) -> io::Result<Vec<String>> {
        match self.disk.list(dir) {
            Ok(mut names) => {
                names.sort();
                Ok(names)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The signature file that belongs to a segment.
    fn signature_path(&self, source: &Source) -> Option<String> {
        let FileKind::Segment(_) = source.kind else { return None };
        let plain = source.path.strip_suffix(SET_ASIDE).unwrap_or(&source.path);
        Some(format!("{}.sig", plain.strip_suffix(".omirb").unwrap_or(plain)))
    }
}

/// Takes the folder's lock for reading, which leaves no trace; the second value says that it could not.
fn hold(path: &Path) -> Result<(Option<Lock>, Option<String>), OpenError> {
    match Lock::acquire_unwritten(path) {
        // Without a lock file it is a backup or a copy, and no daemon has been here.
        Ok(lock) => Ok((lock, None)),
        Err(LockError::Disk(error)) => {
            let path = path.join("lock");
            let remark = format!("{}: {error}; the folder is read without a lock", path.display());
            Ok((None, Some(remark)))
        }
        Err(error) => Err(OpenError::Locked { path: path.to_owned(), error }),
    }
}
