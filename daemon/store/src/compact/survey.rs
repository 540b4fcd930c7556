//! What a segment still tells of that was forgotten.

use std::sync::PoisonError;

use crate::index::Index;
use crate::key::RefKey;
use crate::segment::{self, BadSegment, bad};
use crate::sync::RwLock;

/// What a segment holds that was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// True if anything, by someone or by a rule.
    pub any: bool,
    /// Since when something that someone has had forgotten; microseconds.
    pub since: Option<i64>,
}

impl Told {
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

/// What a segment tells of that was forgotten, by a name alone if not by what it said: in copies,
/// references, access states and tombstones.
///
/// # Errors
/// If the segment cannot be taken apart.
pub(super) fn tells_of_forgotten(
    catalog: &RwLock<impl Index>,
    bytes: &[u8],
) -> Result<Told, BadSegment> {
    let layout = segment::layout(bytes)?;
    let manifest = &layout.manifest;
    let mut told = Told::default();
    let guard = || catalog.read().unwrap_or_else(PoisonError::into_inner);
    for grave in manifest.forgotten.iter().filter(|grave| grave.name().is_some()) {
        let since = guard().forgotten_since(&grave.key());
        told.note(since.map(|_| grave.stamp.recorded));
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
        let resource = segment::decode(&bytes[range])
            .map_err(|fault| bad(start + fault.offset, fault.message))?;
        look(&RefKey::of(&resource.reference()));
        resource.for_each_reference(|_, _, target| look(&RefKey::of(target)));
    }
    Ok(told)
}
