//! Stored versions on their way out, brought up to date: accesses, tiers, references that still stand.
//!
//! The catalog is locked only while rows are chosen; bytes are read afterwards, from files that
//! never change under a reader.

use std::fmt;
use std::sync::atomic::Ordering;

use omir_core::cbor;
use omir_core::model::Resource;
use omir_core::tier::Tier;
use omird_store::{Handle, RefKey, decode_resource};

use crate::Engine;
use crate::encoded::{has_optional_references, with_access, with_tier};
use crate::error::{Code, Error};
use crate::index::catalog::Catalog;
use crate::index::doc::DocId;
use crate::index::facts::DecayState;
use crate::write::plan::{inherit_access, set_tier};

/// A stored version on its way out, with what came after it was written.
pub(crate) struct Outgoing {
    pub(super) id: DocId,
    pub(super) handle: Handle,
    /// The accesses so far, if there were any.
    access: Option<DecayState>,
    /// The tier, if time has moved it.
    tier: Option<Tier>,
    /// True if it may refer to something that was forgotten.
    may_dangle: bool,
    /// The newer version that the card has lost: this one must not pass for the current one.
    missing: Option<Missing>,
}

/// A version that is known to have been there and cannot be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    pub(super) version: u64,
    /// The newest that can be read, if there is one.
    pub(super) readable: Option<u64>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} is unreadable: the card has lost it. ", self.version)?;
        match self.readable {
            Some(readable) => write!(
                f,
                "Version {readable}, before it, can be read by `asOf`. Remember it again, or forget it"
            ),
            None => f.write_str("Remember it again, or forget it"),
        }
    }
}

impl Outgoing {
    /// A version as it is at `now` (microseconds); `as_of` if that is another time than now, when
    /// later accesses had not been.
    pub(crate) fn of(catalog: &Catalog, id: DocId, as_of: bool, now: i64) -> Self {
        let is_touched = catalog.doc(id).is_touched && !as_of;
        Self {
            id,
            handle: catalog.handle(id),
            access: if is_touched { catalog.decay_state(id) } else { None },
            tier: catalog.moved(id, as_of, now),
            may_dangle: catalog.has_tombstones() && !as_of,
            missing: catalog.missing(id).filter(|stamp| !as_of || stamp.recorded <= now).map(
                |stamp| Missing { version: stamp.version, readable: Some(catalog.doc(id).version) },
            ),
        }
    }

    /// Its size on the disk.
    pub(crate) fn stored_bytes(&self) -> u64 {
        u64::from(self.handle.location.len)
    }

    /// # Errors
    /// `INTERNAL` if the card has lost a newer version.
    fn check_is_newest(&self) -> Result<(), Error> {
        self.missing.map_or(Ok(()), |missing| Err(unreadable(missing)))
    }

    /// The resource as CBOR.
    fn cbor(&self) -> Result<Vec<u8>, Error> {
        self.check_is_newest()?;
        let mut bytes = self.handle.bytes().map_err(unreadable)?;
        if let Some(access) = self.access {
            bytes = with_access(&bytes, &access).map_err(unreadable)?;
        }
        if let Some(tier) = self.tier {
            bytes = with_tier(&bytes, tier).map_err(unreadable)?;
        }
        Ok(bytes)
    }

    /// The resource, typed.
    pub(crate) fn resource(&self) -> Result<Resource, Error> {
        self.check_is_newest()?;
        let mut resource = self.handle.resource().map_err(unreadable)?;
        inherit_access(&mut resource, self.access, false);
        set_tier(&mut resource, self.tier);
        Ok(resource)
    }
}

pub(super) fn unreadable(fault: impl std::fmt::Display) -> Error {
    Error::new(Code::Internal, format!("a stored resource cannot be read: {fault}"))
}

impl Engine {
    pub(crate) fn outgoing(&self, ids: impl IntoIterator<Item = DocId>) -> Vec<Outgoing> {
        let (now, _) = self.now();
        let catalog = self.catalog();
        ids.into_iter()
            // Forgotten and compacted away since the lock was let go.
            .filter(|&id| !catalog.doc(id).dropped)
            .map(|id| Outgoing::of(&catalog, id, false, now.as_micros()))
            .collect()
    }

    /// The bytes as a client gets them: with all accesses so far, in the tier it is in by now, and
    /// without references to what was forgotten, so that they can be changed and sent back.
    pub(crate) fn emit(&self, outgoing: &Outgoing) -> Result<Vec<u8>, Error> {
        let bytes = outgoing.cbor()?;
        if !outgoing.may_dangle || !has_optional_references(&bytes) {
            return Ok(bytes);
        }
        let mut resource = decode_resource(&bytes).map_err(unreadable)?;
        let catalog = self.catalog();
        let dropped =
            resource.retain_references(|target| catalog.stands(outgoing.id, &RefKey::of(target)));
        Ok(if dropped { cbor::to_vec(&resource.to_value()) } else { bytes })
    }

    /// Counts what cannot be read.
    pub(crate) fn counted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.inner.shared.unreadable.fetch_add(1, Ordering::Relaxed);
        }
        result
    }
}
