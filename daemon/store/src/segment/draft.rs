//! A segment in the making, gathered from the transactions of its logs.
//!
//! The versions are kept as the bytes they came as, and decoded one at a time: as values, those of 8 MiB of
//! small updates took 200 MB.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use omir_core::cbor;
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::reference::Ref;

use super::locate::BadSegment;
use super::manifest::{Manifest, Older};
use super::{bundle, decode_resource};
use crate::recorded::mark::Mark;
use crate::recorded::ref_key::RefKey;
use crate::recorded::tombstone::{DeletionOrigin, Tombstone};
use crate::recorded::transaction::{Op, Touch, Transaction};
use crate::recorded::version::Stamp;

/// A segment in the making.
#[derive(Default)]
pub struct Draft {
    /// The versions as they came, end to end.
    bytes: Vec<u8>,
    /// Each of them: its stamp, and where it lies.
    puts: Vec<(Stamp, Range<usize>)>,
    /// Position of the newest version of each reference that is not forgotten.
    newest: HashMap<RefKey, usize>,
    manifest: Manifest,
    touched: HashMap<String, Touch>,
    forgotten: HashSet<RefKey>,
}

/// Something recorded before a log, that a version in it refers to.
#[derive(Debug)]
pub enum EarlierResource {
    /// Its live version.
    Live(Box<Resource>),
    /// There is no such thing any more.
    Gone,
    /// The card does not give it back.
    OutOfReach,
}

/// Resources recorded earlier that entries refer to, encoded; nothing for what is gone.
type Copies = BTreeMap<Ref, Option<Vec<u8>>>;

impl Draft {
    /// A draft of segment `number`, made from log file `log`.
    pub fn new(number: u64, log: u64, boots: u64) -> Self {
        let manifest = Manifest { segment: number, log, boots, ..Manifest::default() };
        Self { manifest, ..Self::default() }
    }

    /// Returns true if there is nothing to seal: not even a start, whose number must not be missing later.
    pub fn is_empty(&self) -> bool {
        self.manifest.first_seq == 0
    }

    /// Makes room for the versions of a log of so many bytes, at once: what grows by and by is copied, and there
    /// twice meanwhile.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes);
    }

    /// Takes in the next transaction. Resources that no longer pass validation are reported and
    /// left out: they cannot be part of a valid Bundle.
    pub fn add(&mut self, transaction: &Transaction) -> Result<(), BadSegment> {
        let recorded = transaction.at.as_micros();
        self.cover(transaction.seq, recorded);
        let mut faults = Ok(());
        for (ordinal, op) in transaction.ops.iter().enumerate() {
            let stamp = |version| Stamp {
                seq: transaction.seq,
                ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                version,
                recorded,
            };
            match op {
                Op::Put { version, resource: raw } => match decode_resource(raw) {
                    Ok(resource) => self.put_encoded(stamp(*version), &resource.reference(), raw),
                    Err(fault) => faults = Err(fault),
                },
                Op::Forget { target, version, who } => {
                    self.forget(stamp(*version), target.clone(), transaction.by(*who));
                }
                Op::Touch(touch) => self.touch(touch.clone()),
                Op::Boot { count } => self.manifest.boots = self.manifest.boots.max(*count),
                Op::Mark(mark) => self.mark(mark),
            }
        }
        faults
    }

    /// Extends what the segment covers to transaction `seq`. Transactions come in order.
    pub fn cover(&mut self, seq: u64, recorded: i64) {
        if self.manifest.first_seq == 0 {
            self.manifest.first_seq = seq;
        }
        self.manifest.last_seq = seq;
        self.manifest.last_recorded = recorded;
    }

    /// Takes in the next version.
    pub fn put(&mut self, stamp: Stamp, resource: Resource) {
        let encoded = cbor::to_vec(&resource.to_value());
        self.put_encoded(stamp, &resource.reference(), &encoded);
    }

    fn put_encoded(&mut self, stamp: Stamp, reference: &Ref, encoded: &[u8]) {
        let key = RefKey::of(reference);
        self.touched.remove(&reference.to_string());
        self.forgotten.remove(&key);
        self.newest.insert(key, self.puts.len());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(encoded);
        self.puts.push((stamp, start..self.bytes.len()));
    }

    /// Takes in the next tombstone.
    pub fn forget(&mut self, stamp: Stamp, target: Ref, by: DeletionOrigin) {
        let key = RefKey::of(&target);
        self.newest.remove(&key);
        self.touched.remove(&target.to_string());
        self.manifest.forgotten.push(Tombstone::of(&target, stamp, by));
        self.forgotten.insert(key);
    }

    /// Takes in a tombstone of a compacted segment, whose name is gone.
    pub fn write_tombstone(&mut self, tombstone: Tombstone) {
        self.manifest.forgotten.push(tombstone);
    }

    /// Takes in an access state.
    pub fn touch(&mut self, touch: Touch) {
        self.touched.insert(touch.target.clone(), touch);
    }

    /// Takes in the next mark.
    pub fn mark(&mut self, mark: &Mark) {
        self.manifest.mark.get_or_insert_default().follow(mark);
    }

    /// The bytes of the segment.
    ///
    /// `earlier` gives the live version of something recorded before this log.
    pub fn build(
        mut self,
        sealed_at: Timestamp,
        mut earlier: impl FnMut(&Ref) -> EarlierResource,
    ) -> Vec<u8> {
        let mut manifest = std::mem::take(&mut self.manifest);
        let newest: HashSet<usize> = self.newest.values().copied().collect();
        let mut copies = Copies::new();
        let mut entries: Vec<Cow<'_, [u8]>> = Vec::new();
        let mut older: Vec<Older<'_>> = Vec::new();
        for (index, (stamp, range)) in self.puts.iter().enumerate() {
            let raw = &self.bytes[range.clone()];
            let is_newest = newest.contains(&index);
            match is_newest.then(|| self.resolve(raw, &mut copies, &mut earlier)).flatten() {
                Some(entry) => {
                    manifest.crcs.push(crc32fast::hash(&entry));
                    manifest.entries.push(*stamp);
                    entries.push(entry);
                }
                None => older.push((*stamp, raw)),
            }
        }
        entries.extend(copies.into_values().flatten().map(Cow::Owned));
        manifest.touched = self.touched.values().cloned().collect();
        manifest.touched.sort_by(|a, b| a.target.cmp(&b.target));
        let parts = entries.iter().map(|entry| &**entry);
        bundle(&manifest, entries.len(), parts, &older, sealed_at)
    }

    /// Drops references to what is gone and notes what must be copied in. `None` if the resource
    /// cannot stand without something that is gone, or mentions what the card does not give back.
    fn resolve<'a>(
        &self,
        raw: &'a [u8],
        copies: &mut Copies,
        earlier: &mut impl FnMut(&Ref) -> EarlierResource,
    ) -> Option<Cow<'a, [u8]>> {
        let mut resource = decode_resource(raw).ok()?;
        let mut is_out_of_reach = false;
        let mut reachable = |target: &Ref| {
            let key = RefKey::of(target);
            if self.newest.contains_key(&key) {
                return true;
            }
            if self.forgotten.contains(&key) {
                return false;
            }
            if let Some(copy) = copies.get(target) {
                return copy.is_some();
            }
            let copy = match earlier(target) {
                EarlierResource::Live(mut copy) => {
                    copy.retain_references(|_| false);
                    Some(cbor::to_vec(&copy.to_value()))
                }
                EarlierResource::Gone => None,
                EarlierResource::OutOfReach => {
                    is_out_of_reach = true;
                    return true;
                }
            };
            let is_there = copy.is_some();
            copies.insert(target.clone(), copy);
            is_there
        };
        let mut stands = true;
        resource.for_each_reference(|_, required, target| {
            stands &= !required || reachable(target);
        });
        let is_changed = stands && resource.retain_references(|target| reachable(target));
        match (stands, is_changed) {
            // Its bytes are sound: memories that it mentions may be written again.
            _ if is_out_of_reach => None,
            (false, _) => None,
            (_, true) => Some(Cow::Owned(cbor::to_vec(&resource.to_value()))),
            (_, false) => Some(Cow::Borrowed(raw)),
        }
    }
}
