//! Visibility: live versions that every ordinary query sees, counted by frame, and those it must look at.
//!
//! An ordinary query leaves out intentions and what is not valid any more. A live version that is neither an intention
//! nor ever stops being valid is *plain*; any other is *special*.

use std::collections::BTreeSet;

use super::places::PositionRow;
use crate::index::doc::{Doc, DocId, NEVER};
use crate::index::spatial::FrameId;

/// The special versions, and counts of the plain ones.
#[derive(Debug, Default)]
pub struct Visibility {
    special: BTreeSet<DocId>,
    /// Number of plain versions.
    plain: u64,
    /// Number of plain versions with a place in each frame.
    plain_in_frame: Vec<u64>,
}

impl Visibility {
    /// Returns true if the version is plain as long as it is live.
    pub(super) fn is_plain(doc: &Doc) -> bool {
        !doc.class.is_intention() && doc.valid_until == NEVER
    }

    /// Number of plain versions.
    pub fn plain(&self) -> u64 {
        self.plain
    }

    /// Number of plain versions with a place in `frame`.
    pub fn plain_in_frame(&self, frame: FrameId) -> u64 {
        self.plain_in_frame.get(frame.0 as usize).copied().unwrap_or(0)
    }

    /// Special versions from a row on, in ascending order.
    pub fn special_from(&self, first: DocId) -> impl Iterator<Item = DocId> + '_ {
        self.special.range(first..).copied()
    }

    /// Counts a plain version in or out.
    pub(super) fn count_plain(&mut self, places: &[PositionRow], comes: bool) {
        self.plain = if comes { self.plain + 1 } else { self.plain.saturating_sub(1) };
        for (at, place) in places.iter().enumerate() {
            // Once for each frame, however many places it has there.
            if places[..at].iter().any(|before| before.frame == place.frame) {
                continue;
            }
            let frame = place.frame.0 as usize;
            if self.plain_in_frame.len() <= frame {
                self.plain_in_frame.resize(frame + 1, 0);
            }
            let count = &mut self.plain_in_frame[frame];
            *count = if comes { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// Notes that a special version comes or goes.
    pub(super) fn note_special(&mut self, id: DocId, comes: bool) {
        if comes {
            self.special.insert(id);
        } else {
            self.special.remove(&id);
        }
    }
}
