//! Traces of forgotten memories in a segment.

use crate::index::Index;
use crate::recorded::ref_key::RefKey;
use crate::segment;
use crate::segment::locate::{BadSegment, bad};
use crate::sync::RwLock;

/// Traces of forgotten memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForgottenTraces {
    /// True if anything, by someone or by a rule.
    pub any: bool,
    /// Since when something that someone has had forgotten; microseconds.
    pub since: Option<i64>,
}

impl ForgottenTraces {
    /// Adds something that was forgotten, and since when someone has had it so.
    pub fn note(&mut self, since: Option<i64>) {
        self.any = true;
        self.since = self.since.into_iter().chain(since).min();
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        let since = self.since.into_iter().chain(other.since).min();
        Self { any: self.any || other.any, since }
    }
}

/// Finds the traces of forgotten memories in a segment, names among them: in copies,
/// references, access states and tombstones.
///
/// # Errors
/// If the segment cannot be taken apart.
pub(super) fn tells_of_forgotten(
    catalog: &RwLock<impl Index>,
    bytes: &[u8],
) -> Result<ForgottenTraces, BadSegment> {
    let layout = segment::layout(bytes)?;
    let manifest = &layout.manifest;
    let mut told = ForgottenTraces::default();
    let guard = || catalog.read();
    for tombstone in manifest.forgotten.iter().filter(|tombstone| tombstone.name().is_some()) {
        let since = guard().forgotten_since(&tombstone.key());
        told.note(since.map(|_| tombstone.stamp.recorded));
    }
    let mut look = |key: &RefKey| {
        let catalog = guard();
        if catalog.is_known(key) && catalog.live(key).is_none() {
            told.note(catalog.forgotten_since(key));
        }
    };
    manifest.touched.iter().for_each(|touch| look(&RefKey::of_text(&touch.target)));
    let versions = layout.entries.into_iter().chain(layout.superseded).map(|(_, range)| range);
    for range in versions.chain(layout.copies) {
        let start = range.start;
        let resource = segment::decode_resource(&bytes[range])
            .map_err(|fault| bad(start + fault.offset, fault.message))?;
        look(&RefKey::of(&resource.reference()));
        resource.for_each_reference(|_, _, target| look(&RefKey::of(target)));
    }
    Ok(told)
}
