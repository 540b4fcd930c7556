//! What there is to gain: dead bytes, and what still tells of something forgotten.

use std::collections::HashMap;
use std::sync::PoisonError;

use super::Piece;
use crate::index::catalog::{Catalog, End};
use crate::index::doc::FileId;
use crate::index::key::RefKey;
use crate::store::sealer::segment_file;
use crate::store::segment::{self, BadSegment, bad};
use crate::sync::RwLock;

/// What is dead in one segment, as far as the index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// Bytes of versions that a compaction would drop.
    pub dead: u64,
    /// What it holds that was forgotten.
    pub told: Told,
}

/// What a segment holds that was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Whether anything, by someone or by a rule.
    pub any: bool,
    /// Since when something that someone has had forgotten; microseconds.
    pub since: Option<i64>,
}

impl Told {
    fn note(&mut self, since: Option<i64>) {
        self.any = true;
        self.since = self.since.into_iter().chain(since).min();
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        let since = self.since.into_iter().chain(other.since).min();
        Self { any: self.any || other.any, since }
    }
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
            End::Forgotten => survey.told.note(catalog.version_forgotten_since(fate.id)),
        }
        survey.dead += u64::from(doc.location.len);
    }
    let of = |piece: &Piece| found.get(&segment_file(piece.number)).copied().unwrap_or_default();
    pieces.iter().map(of).collect()
}

/// What is in logs, of what a segment would hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InLogs {
    /// Bytes of versions that a segment would hold.
    pub live: u64,
    /// Bytes of those that it would not.
    pub dead: u64,
}

/// Looks at what is recorded behind all segments. What was superseded before `horizon` (microseconds) counts as dead.
pub fn survey_logs(catalog: &Catalog, pieces: &[Piece], horizon: i64) -> InLogs {
    let first = pieces.last().map_or(0, |piece| piece.last_seq.saturating_add(1));
    let mut found = InLogs::default();
    for fate in catalog.fates(first, u64::MAX, horizon) {
        let len = u64::from(catalog.doc(fate.id).location.len);
        match fate.end {
            End::Live | End::Kept => found.live += len,
            End::Superseded | End::Forgotten => found.dead += len,
        }
    }
    found
}

/// What a segment tells of that was forgotten, by a name alone if not by what it said: in copies,
/// references, access states and tombstones.
///
/// # Errors
/// If the segment cannot be taken apart.
pub(super) fn tells_of_forgotten(
    catalog: &RwLock<Catalog>,
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
        if catalog.head(key).is_some_and(|head| !head.live) {
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
