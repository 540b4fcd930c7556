//! How large a payload may be, and that large imports come one at a time, whoever brings them: the memory that
//! one takes is enough. The change has the permit until it is made; whoever reads the payload first may take it
//! before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Engine;
use crate::error::{Code, Error};

impl Engine {
    /// Takes or refuses a payload of so many bytes, to be merged or not; gives the permit, if it needs one.
    /// Asked again by what prepares it: whoever asks before only saves reading what would be refused.
    ///
    /// # Errors
    /// Says which bound it is above, or that somebody else has the permit.
    pub fn admit(&self, bytes: usize, merges: bool) -> Result<Option<ImportPermit>, NotAdmitted> {
        let limits = &self.settings().limits;
        if bytes <= limits.max_payload_bytes {
            return Ok(None);
        }
        if !merges {
            let (most, limit) = (limits.max_payload_bytes, "max_payload_bytes");
            return Err(NotAdmitted::TooLarge { bytes, most, limit });
        }
        let most = limits.for_import().max_payload_bytes;
        if bytes > most {
            return Err(NotAdmitted::TooLarge { bytes, most, limit: "max_import_bytes" });
        }
        self.inner.imports.take().map(Some).ok_or(NotAdmitted::ImportUnderWay)
    }
}

/// Why a payload is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It is above a bound.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        most: usize,
        /// The name of the bound in `[limits]` of the configuration.
        limit: &'static str,
    },
    /// It needs the permit, which somebody else has.
    ImportUnderWay,
}

impl From<NotAdmitted> for Error {
    fn from(not: NotAdmitted) -> Self {
        match not {
            NotAdmitted::TooLarge { bytes, most, limit } => {
                let message = format!(
                    "a payload of {bytes} bytes; limits.{limit} is {most}: raise that, or send it in parts \
                     (omir import --in-parts)"
                );
                Self::new(Code::TooLarge, message)
            }
            NotAdmitted::ImportUnderWay => {
                Self::new(Code::Busy, "another import is under way; try again in a moment")
            }
        }
    }
}

/// The dispenser of permits.
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
    use crate::merge::Precedence;
    use crate::request::Encoding;

    /// Whatever adapter it comes by: there is no other door.
    #[test]
    fn a_large_import_has_the_permit_until_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let mut parts = crate::testing::parts(dir.path());
        parts.settings.limits.max_payload_bytes = 1000;
        parts.settings.limits.max_import_bytes = 4000;
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let file = |id: &str, bytes: usize| {
            let filler = " ".repeat(bytes);
            format!(
                r#"[{{"resourceType":"Entity","id":"{id}","name":"x","createdAt":"2026-05-30T11:42:05Z"}}{filler}]"#
            )
        };
        let merge = |id: &str, bytes: usize| {
            engine.prepare_merge(file(id, bytes).as_bytes(), Encoding::Json, Precedence::Newer)
        };
        let refused = |code: Code, name: &str, result: Result<_, Error>| {
            let error: Error = Result::<crate::command::Change, Error>::unwrap_err(result);
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(name), "{error}");
        };
        let first = merge("a", 1000).unwrap();
        refused(Code::Busy, "another import", merge("b", 1000));
        merge("c", 10).expect("a small one needs no permit");
        engine.execute(first).unwrap();
        let second = merge("b", 1000).expect("it came back");
        drop(second);
        merge("b", 1000).expect("it came back from one that was never made");
        refused(Code::TooLarge, "limits.max_import_bytes is 4000", merge("d", 4000));
        let plain = engine.prepare(file("e", 1000).as_bytes(), Encoding::Json, None);
        refused(Code::TooLarge, "limits.max_payload_bytes is 1000", plain);
        assert_eq!(engine.live(), 1);
        engine.stop();
    }

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
