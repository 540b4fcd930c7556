//! What there is to gain: dead bytes, and what still tells of something forgotten.

use std::collections::HashMap;
use std::sync::PoisonError;

use super::Piece;
use crate::index::catalog::{Catalog, End};
use crate::index::doc::{FileId, NEVER};
use crate::index::key::RefKey;
use crate::store::sealer::segment_file;
use crate::store::segment::{self, BadSegment, bad};
use crate::sync::RwLock;

/// What is dead in one segment, as far as the index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// Bytes of versions that a compaction would drop.
    pub dead: u64,
    /// When the first of those that were forgotten was; microseconds.
    pub forgotten_since: Option<i64>,
}

/// Looks at all segments. What was superseded before `horizon` (microseconds) counts as dead.
pub fn survey(catalog: &Catalog, pieces: &[Piece], horizon: i64) -> Vec<Survey> {
    let mut found: HashMap<FileId, Survey> = HashMap::new();
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Vec::new() };
    for fate in catalog.fates(first.first_seq, last.last_seq, horizon) {
        let doc = catalog.doc(fate.id);
        let survey = found.entry(doc.location.file).or_default();
        match fate.end {
            End::Live | End::Kept => continue,
            End::Superseded => {}
            End::Forgotten => {
                let since = survey.forgotten_since.unwrap_or(NEVER);
                survey.forgotten_since = Some(since.min(doc.retired));
            }
        }
        survey.dead += u64::from(doc.location.len);
    }
    let of = |piece: &Piece| found.get(&segment_file(piece.number)).copied().unwrap_or_default();
    pieces.iter().map(of).collect()
}

/// Since when a segment tells of something forgotten (microseconds), by a name alone if not by
/// what it said: in copies, references, access states and tombstones. `None` if it does not.
///
/// # Errors
/// If the segment cannot be taken apart.
pub(super) fn tells_of_forgotten(
    catalog: &RwLock<Catalog>,
    bytes: &[u8],
) -> Result<Option<i64>, BadSegment> {
    let layout = segment::layout(bytes)?;
    let manifest = &layout.manifest;
    let named = manifest.forgotten.iter().filter(|grave| grave.name().is_some());
    let mut since = named.map(|grave| grave.stamp.recorded).min();
    let mut look = |key: &RefKey| {
        let catalog = catalog.read().unwrap_or_else(PoisonError::into_inner);
        let Some(head) = catalog.head(key).filter(|head| !head.live) else { return };
        // The row of what was compacted away elsewhere is gone: then it is long overdue.
        let at = catalog.docs().get(head.doc as usize).map_or(i64::MIN, |doc| doc.retired);
        since = Some(since.map_or(at, |since| since.min(at)));
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
    Ok(since)
}
