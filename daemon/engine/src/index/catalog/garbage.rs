//! The gain of a compaction: how much is dead, and where.

use std::collections::HashMap;

use omird_store::{Fate, FileId, ForgottenTraces, SealedSegment};

use super::Catalog;

/// Dead versions of one segment, as far as the index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Garbage {
    /// Bytes of versions that a compaction would drop.
    pub dead: u64,
    /// Its versions that were forgotten.
    pub told: ForgottenTraces,
}

/// Looks at all segments. What was superseded before `horizon` (microseconds) counts as dead.
pub(crate) fn garbage_in_segments(
    catalog: &Catalog,
    pieces: &[SealedSegment],
    horizon: i64,
) -> Vec<Garbage> {
    let mut found: HashMap<FileId, Garbage> = HashMap::new();
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Vec::new() };
    for entry in catalog.rows.compaction_entries(first.first_seq, last.last_seq, horizon) {
        let doc = catalog.doc(entry.id);
        let garbage = found.entry(doc.location.file).or_default();
        match entry.fate {
            Fate::Live | Fate::Kept => continue,
            Fate::Superseded => {}
            Fate::Forgotten => garbage.told.note(catalog.version_forgotten_since(entry.id)),
        }
        garbage.dead += u64::from(doc.location.len);
    }
    let of = |piece: &SealedSegment| {
        found.get(&FileId::segment(piece.number)).copied().unwrap_or_default()
    };
    pieces.iter().map(of).collect()
}

/// Live and dead versions in logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InLogs {
    /// Bytes of versions that a segment would hold.
    pub live: u64,
    /// Bytes of those that it would not.
    pub dead: u64,
}

/// Looks at what is recorded behind all segments. What was superseded before `horizon` (microseconds) counts as dead.
pub(crate) fn garbage_in_logs(catalog: &Catalog, pieces: &[SealedSegment], horizon: i64) -> InLogs {
    let first = pieces.last().map_or(0, |piece| piece.last_seq.saturating_add(1));
    let mut found = InLogs::default();
    for entry in catalog.rows.compaction_entries(first, u64::MAX, horizon) {
        let len = u64::from(catalog.doc(entry.id).location.len);
        match entry.fate {
            Fate::Live | Fate::Kept => found.live += len,
            Fate::Superseded | Fate::Forgotten => found.dead += len,
        }
    }
    found
}
