//! Resources by name, and all of a type.

use std::fmt;
use std::ops::ControlFlow;

use omir_core::reference::{Ref, ResourceType};
use omird_store::RefKey;

use super::outgoing::{Missing, Outgoing, unreadable};
use crate::Engine;
use crate::disk;
use crate::encoded::name_of_unreadable;
use crate::error::Error;
use crate::index::doc::DocId;

/// Something that is there and cannot be read.
#[derive(Debug, Clone)]
pub struct Unread {
    /// Its name, unless that is lost with it.
    pub name: Option<Ref>,
    /// Its location and the fault.
    pub error: Error,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}: {}", self.error.message),
            None => write!(f, "its name is lost: {}", self.error.message),
        }
    }
}

/// The result of a look-up by name.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// Nothing that lives.
    Nothing,
    /// A resource as CBOR.
    Whole(Vec<u8>),
    /// A resource that the disk does not give back, though it is there.
    Damaged(Error),
    /// A resource of which nothing is there any more: only damaged bytes or a second copy tell of it. What is written
    /// under its name takes its place, and nothing may refer to it until then.
    Lost(Error),
}

impl Engine {
    /// The live version of a resource as CBOR, or `None` if there is none.
    ///
    /// # Errors
    /// `INTERNAL` if it is there and the disk does not give it back whole.
    pub fn get(&self, reference: &Ref) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get_versioned(reference)?.map(|(bytes, _)| bytes))
    }

    /// As [`Engine::get`], with the number of the version.
    ///
    /// # Errors
    /// As [`Engine::get`].
    pub fn get_versioned(&self, reference: &Ref) -> Result<Option<(Vec<u8>, u64)>, Error> {
        let key = RefKey::of(reference);
        let (id, version, lost) = {
            let catalog = self.catalog();
            let id = catalog.live(&key);
            let version = id.map_or(0, |id| catalog.doc(id).version);
            (id, version, catalog.losses.missed(&key))
        };
        let named =
            |error: Error| Error { message: format!("{reference}: {}", error.message), ..error };
        match (id.and_then(|id| self.outgoing([id]).pop()), lost) {
            (Some(outgoing), _) => {
                let bytes = self.counted(self.emit(&outgoing)).map_err(named)?;
                Ok(Some((bytes, version)))
            }
            (None, Some(lost)) => {
                let missing = Missing { version: lost.stamp.version, readable: None };
                self.counted(Err(named(unreadable(missing))))
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns the version that lives under a name, as a condition on a write sees it, and the transaction that made it.
    pub fn live_version(&self, reference: &Ref) -> Option<(u64, u64)> {
        let key = RefKey::of(reference);
        let catalog = self.catalog();
        if let Some(lost) = catalog.losses.kept(&key) {
            return Some((lost.stamp.version, lost.stamp.seq));
        }
        let doc = catalog.doc(catalog.live(&key)?);
        Some((doc.version, doc.seq))
    }

    /// Returns true if a resource that is written now may refer to this one: it lives, even if the disk does not give
    /// it back.
    pub fn may_refer_to(&self, reference: &Ref) -> bool {
        self.catalog().live(&RefKey::of(reference)).is_some()
    }

    /// As [`Engine::get`], but tells what is damaged or lost from a card that is away for now.
    ///
    /// # Errors
    /// `INTERNAL` if the card is away.
    pub fn look_up(&self, reference: &Ref) -> Result<Lookup, Error> {
        match self.get(reference) {
            Ok(found) => Ok(found.map_or(Lookup::Nothing, Lookup::Whole)),
            Err(error) => match self.inner.disk.mount_generation() {
                Err(away) if disk::is_gone(&away) => Err(error),
                _ if self.may_refer_to(reference) => Ok(Lookup::Damaged(error)),
                _ => Ok(Lookup::Lost(error)),
            },
        }
    }

    /// Calls `f` with every live resource of a type, or of all types, as CBOR, oldest first. What cannot be read is
    /// left out, and logged.
    pub fn each(&self, of: Option<ResourceType>, mut f: impl FnMut(Vec<u8>)) {
        let _ = self.each_or_unread(of, |one| {
            match one {
                Ok(bytes) => f(bytes),
                Err(unread) => tracing::error!(%unread, "left out"),
            }
            ControlFlow::Continue(())
        });
    }

    /// As [`Engine::each`], also with what cannot be read, and until `f` breaks it off.
    pub fn each_or_unread(
        &self,
        of: Option<ResourceType>,
        mut f: impl FnMut(Result<Vec<u8>, Unread>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ids: Vec<DocId> = {
            let catalog = self.catalog();
            (0..)
                .zip(catalog.docs())
                .filter(|(_, doc)| doc.is_live())
                .filter(|(_, doc)| of.is_none_or(|of| doc.class.resource_type() == of))
                .map(|(id, _)| id)
                .collect()
        };
        // In small parts, so that neither the lock nor the memory is held for all of them.
        for part in ids.chunks(256) {
            for outgoing in self.outgoing(part.iter().copied()) {
                let bytes = self.counted(self.emit(&outgoing));
                f(bytes.map_err(|error| Unread { name: self.name_of(&outgoing), error }))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The name of something that cannot be read, if its bytes still tell it.
    fn name_of(&self, outgoing: &Outgoing) -> Option<Ref> {
        let (of, key) = {
            let catalog = self.catalog();
            let doc = catalog.doc(outgoing.id);
            (doc.class.resource_type(), doc.key)
        };
        name_of_unreadable(&outgoing.handle, of, key)
    }
}
