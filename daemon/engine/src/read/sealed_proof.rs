//! Proofs of memories: `docs/proofs.md`.

use std::ops::Range;

use omir_core::proof::Proof;
use omir_core::reference::Ref;
use omird_store::{ProveError, RefKey, prove};

use crate::Engine;
use crate::error::{Code, Error};
use crate::index::doc::FileId;

/// Most attempts while segments are compacted away.
const TRIES: usize = 5;

impl Engine {
    /// Proves that this device sealed the newest version of a resource. Changes nothing and counts as no access. A
    /// proof reads its whole segment, so one is made at a time.
    ///
    /// # Errors
    /// `NOT_FOUND` if nothing of that name lives, `CONFLICT` if its newest version is not sealed yet, or was sealed by a
    /// release that signed no root, `BUSY` while another proof is made, `INTERNAL` if the card has lost it.
    pub fn prove(&self, target: &Ref) -> Result<Proof, Error> {
        let Some(_turn) = self.inner.proving.try_lock() else {
            let message = "another proof is being made; try again in a moment";
            return Err(Error::new(Code::Busy, message));
        };
        for _ in 0..TRIES {
            let (number, place) = self.sealed_place(target)?;
            match prove(&*self.inner.disk, number, &place) {
                // Compacted away since: the version lies elsewhere now.
                Err(_) if self.sealed_place(target)?.0 != number => {}
                Err(error) => {
                    let code = match error {
                        ProveError::NoRoot => Code::Conflict,
                        _ => Code::Internal,
                    };
                    let path = FileId::segment(number).path();
                    return Err(Error::new(code, format!("{target} lies in {path}: {error}")));
                }
                Ok(proof) => return Ok(proof),
            }
        }
        Err(Error::new(Code::Busy, "segments are being rewritten; try again in a moment"))
    }

    /// The segment that the newest version lies in, and its place there.
    fn sealed_place(&self, target: &Ref) -> Result<(u64, Range<u64>), Error> {
        let key = RefKey::of(target);
        let catalog = self.catalog();
        if let Some(lost) = catalog.losses.missed(&key) {
            let message =
                format!("version {} of {target}, the newest, is damaged", lost.stamp.version);
            return Err(Error::new(Code::Internal, message));
        }
        let id = catalog.live(&key).ok_or_else(|| {
            let message = format!("{target} is not in the store; what is forgotten is not proved");
            Error::at(Code::NotFound, "/ref", message)
        })?;
        let location = catalog.doc(id).location;
        match location.file {
            FileId::Segment(number) => {
                let start = u64::from(location.offset);
                Ok((number.into(), start..start + u64::from(location.len)))
            }
            FileId::Log(_) => {
                let message = format!(
                    "{target} is stored and not sealed yet: it is sealed within weeks by itself, and at once by a backup \
                     (`omir prove --seal`, or the request `backup`)"
                );
                Err(Error::at(Code::Conflict, "/ref", message))
            }
        }
    }
}
