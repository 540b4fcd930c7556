//! The gain of a compaction: how much is dead, and where.

use std::collections::HashMap;

use super::Catalog;
use crate::index::doc::FileId;
use crate::store::compact::{Piece, Told};
use crate::store::index::End;
use crate::store::sealer::segment_file;

/// What is dead in one segment, as far as the index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Survey {
    /// Bytes of versions that a compaction would drop.
    pub dead: u64,
    /// What it holds that was forgotten.
    pub told: Told,
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
