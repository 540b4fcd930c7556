//! Contents of a resource, or of a whole file.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use super::Store;
use super::history::{Act, History, Position, Row, State, Version};
use crate::disk::DiskFile;
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::DeletionOrigin;
use crate::{PRODUCER, segment};

/// Why there is nothing to show.
#[derive(Debug)]
#[non_exhaustive]
pub enum CatError {
    /// Nothing of that name was ever recorded, as far as can be read.
    Unknown(Ref),
    /// It was forgotten; older versions can still be asked for.
    Forgotten {
        /// The reference.
        target: Ref,
        /// When; microseconds.
        at: i64,
        /// The last version before.
        last: u64,
        /// The origin of the deletion.
        by: DeletionOrigin,
    },
    /// It has no such version, but these.
    NoVersion {
        /// The reference.
        target: Ref,
        /// Versions that can be read.
        versions: Vec<u64>,
    },
    /// There is no such file in the store.
    NoFile(String),
    /// The disk does not give it back.
    Disk {
        /// The file.
        file: String,
        /// Its message.
        error: io::Error,
    },
}

impl fmt::Display for CatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(target) => write!(f, "{target} is not in there"),
            Self::Forgotten { target, at, last, by } => {
                let at = omir_core::instant::Timestamp::from_micros(*at);
                write!(f, "{target} was forgotten at {at} by {by}; version {last} was its last")
            }
            Self::NoVersion { target, versions } => {
                let versions: Vec<String> = versions.iter().map(u64::to_string).collect();
                write!(f, "{target} has no such version, but {}", versions.join(", "))
            }
            Self::NoFile(path) => write!(f, "there is no file {path} in this store"),
            Self::Disk { file, error } => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for CatError {}

/// Reads versions from where they lie.
pub struct Reader<'a> {
    store: &'a Store,
    paths: Vec<String>,
    /// The file that was read from last; neighbours in time lie in one file.
    open: Option<(usize, Arc<dyn DiskFile>)>,
}

impl<'a> Reader<'a> {
    /// A reader of a store and its history.
    pub fn new(store: &'a Store, history: &History) -> Self {
        Self::over(store, history.files.iter().map(|row| row.source.path.clone()).collect())
    }

    pub(super) fn over(store: &'a Store, paths: Vec<String>) -> Self {
        Self { store, paths, open: None }
    }

    /// The resource at a place, typed.
    ///
    /// # Errors
    /// If the disk gives an error, or something else than when the history was read.
    pub fn resource(&mut self, place: &Position) -> io::Result<Resource> {
        let file = match &self.open {
            Some((file, handle)) if *file == place.file => handle.clone(),
            _ => {
                let path = self.paths.get(place.file).ok_or(io::ErrorKind::NotFound)?;
                let handle = self.store.open_read(path)?;
                self.open = Some((place.file, handle.clone()));
                handle
            }
        };
        let len = place.range.end.saturating_sub(place.range.start);
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        file.read_at(&mut bytes, place.range.start)?;
        segment::decode_resource(&bytes)
            .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault.to_string()))
    }

    fn wanted(&mut self, place: &Position) -> Result<Resource, CatError> {
        self.resource(place).map_err(|error| {
            let file = self.paths.get(place.file).cloned().unwrap_or_default();
            CatError::Disk { file, error }
        })
    }
}

impl History {
    /// One version of a resource: the newest, or the one that is asked for.
    ///
    /// # Errors
    /// If there is none, or it was forgotten and no version is asked for.
    pub fn version(&self, target: &Ref, version: Option<u64>) -> Result<Row<'_>, CatError> {
        let rows: Vec<Row<'_>> =
            self.rows().into_iter().filter(|row| row.version.target == *target).collect();
        let Some(newest) = rows.last() else { return Err(CatError::Unknown(target.clone())) };
        if let Some(wanted) = version {
            let found = rows.iter().rev().find(|row| row.version.stamp.version == wanted);
            return found.copied().ok_or_else(|| CatError::NoVersion {
                target: target.clone(),
                versions: rows.iter().map(|row| row.version.stamp.version).collect(),
            });
        }
        match newest.state {
            State::Forgotten { at, by, .. } => Err(CatError::Forgotten {
                target: target.clone(),
                at,
                by,
                last: newest.version.stamp.version,
            }),
            State::Live | State::Superseded => Ok(*newest),
        }
    }

    /// Position in [`History::files`] of the file with this path or name.
    ///
    /// # Errors
    /// [`CatError::NoFile`]
    pub fn file(&self, path: &str) -> Result<usize, CatError> {
        let is_it = |own: &str| own == path || own.rsplit('/').next() == Some(path);
        let found = self.files.iter().position(|row| is_it(&row.source.path));
        found.ok_or_else(|| CatError::NoFile(path.to_owned()))
    }

    /// A conformant Bundle of everything live, or of what one file holds: the last version of each
    /// resource in it that is not forgotten again within it, with the copies they refer to.
    ///
    /// What a reference names and is not there is left out (spec: Conformance, producers), and so
    /// is a relationship without its ends.
    ///
    /// # Errors
    /// If something cannot be read: a Bundle is whole or it is none.
    pub fn bundle(&self, store: &Store, file: Option<usize>) -> Result<Value, CatError> {
        let mut reader = Reader::new(store, self);
        let mut resources: Vec<Resource> = Vec::new();
        for place in self.selected(file) {
            resources.push(reader.wanted(place)?);
        }
        let mut present: HashSet<Ref> = resources.iter().map(Resource::reference).collect();
        let intervals = self.intervals.iter().filter(|interval| interval.file == file);
        for (target, place) in intervals.flat_map(|interval| &interval.copies) {
            if file.is_some() && present.insert(target.clone()) {
                resources.push(reader.wanted(place)?);
            }
        }
        // Drops resources that refer to something that is gone, then those that referred to these.
        loop {
            let before = resources.len();
            resources.retain(|resource| {
                let mut stands = true;
                resource.for_each_reference(|_, required, target| {
                    stands &= !required || present.contains(target);
                });
                if !stands {
                    present.remove(&resource.reference());
                }
                stands
            });
            if resources.len() == before {
                break;
            }
        }
        let entries = resources.into_iter().map(|mut resource| {
            resource.retain_references(|target| present.contains(target));
            resource.to_value()
        });
        let mut bundle = Map::new();
        bundle.insert("resourceType", "Bundle");
        bundle.insert("omirVersion", "R1");
        bundle.insert("source", PRODUCER);
        bundle.insert("entry", Value::Array(entries.collect()));
        Ok(Value::Object(bundle))
    }

    /// The newest live versions, of everything or of one file, in the order they were recorded.
    fn selected(&self, file: Option<usize>) -> Vec<&Position> {
        let mut live: HashMap<RefKey, &Version> = HashMap::new();
        let intervals = self.intervals.iter().filter(|c| file.is_none() || c.file == file);
        for event in intervals.flat_map(|interval| &interval.events) {
            match &event.act {
                Act::Put(version) => {
                    live.insert(RefKey::of(&version.target), version);
                }
                Act::Forget(tombstone) => {
                    live.remove(&tombstone.key());
                }
                Act::Touch(_) => {}
            }
        }
        let mut versions: Vec<&Version> = live.into_values().collect();
        versions.sort_by_key(|version| (version.stamp.seq, version.stamp.ordinal));
        versions.into_iter().map(|version| &version.position).collect()
    }
}
