//! Bounds of payloads. Large imports come one at a time, whichever clients bring them: the memory that
//! one takes is enough. The change has the permit until it is made; a transport that reads the payload first may take it
//! before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Code, Error};

/// The reason why a payload is not taken.
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
    /// It needs the permit, which another import has.
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
pub(crate) struct ImportPermits(Arc<AtomicBool>);

/// The permit.
#[derive(Debug)]
pub struct ImportPermit(Arc<AtomicBool>);

impl ImportPermits {
    /// The permit, unless another import has it.
    pub(crate) fn take(&self) -> Option<ImportPermit> {
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
    use crate::Engine;
    use crate::ingest::import_rule::Precedence;
    use crate::ingest::request::Encoding;
    use crate::testing::ByHand;

    /// Whatever transport it comes by: there is no other door.
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
            let error: Error = Result::<crate::write::command::Change, Error>::unwrap_err(result);
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
