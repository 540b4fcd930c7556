//! Large imports come one at a time, whoever brings them: the memory that one takes is enough. Whoever has
//! the permit keeps it until it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use crate::error::{Code, Error};

impl Engine {
    /// The permit to merge a payload of so many bytes, to be taken before it is read and kept until it is
    /// merged; `None` for one that is no larger than any other payload may be.
    ///
    /// # Errors
    /// `BUSY` while somebody else has it.
    pub fn permit_to_merge(&self, bytes: usize) -> Result<Option<ImportPermit>, Error> {
        if bytes <= self.settings().limits.max_payload_bytes {
            return Ok(None);
        }
        let message = "another import is under way; try again in a moment";
        let permit = self.inner.imports.take();
        permit.map(Some).ok_or_else(|| Error::new(Code::Busy, message))
    }
}

/// Where the permit is given out.
#[derive(Default)]
pub(super) struct ImportPermits(Arc<AtomicBool>);

/// The permit.
#[derive(Debug)]
pub struct ImportPermit(Arc<AtomicBool>);

impl ImportPermits {
    /// The permit, unless somebody has it.
    fn take(&self) -> Option<ImportPermit> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| ImportPermit(self.0.clone()))
    }
}

impl Drop for ImportPermit {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permit_comes_back_when_it_is_dropped() {
        let permits = ImportPermits::default();
        let permit = permits.take();
        assert!(permit.is_some());
        assert!(permits.take().is_none());
        drop(permit);
        assert!(permits.take().is_some());
    }
}
