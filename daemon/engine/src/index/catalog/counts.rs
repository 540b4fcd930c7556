//! Counts of versions by type and by what became of them, kept as they come and go.

use omir_core::reference::ResourceType;

use crate::index::doc::Doc;
use crate::index::facts::position;

/// Counts of a catalog's rows.
#[derive(Debug, Default)]
pub struct Counts {
    /// Live resources of each type, in the order of [`ResourceType::ALL`].
    live: [u64; ResourceType::ALL.len()],
    /// Rows that were forgotten and are still held.
    forgotten: u64,
    /// Rows that no reader may see yet.
    staged: u64,
}

impl Counts {
    /// Numbers of live resources of each type, in the order of [`ResourceType::ALL`].
    pub fn live(&self) -> [u64; ResourceType::ALL.len()] {
        self.live
    }

    /// Number of live resources of a type.
    pub(super) fn live_of(&self, of: ResourceType) -> u64 {
        self.live[usize::from(position(&ResourceType::ALL, &of))]
    }

    /// Number of versions held that were forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Number of staged versions.
    pub(super) fn staged(&self) -> u64 {
        self.staged
    }

    /// Notes that a row comes in, staged.
    pub(super) fn stage(&mut self) {
        self.staged += 1;
    }

    /// Notes that a staged row becomes live.
    pub(super) fn enter(&mut self, doc: &Doc) {
        self.staged -= 1;
        self.live[usize::from(doc.class.resource_type)] += 1;
    }

    /// Notes that a row is live no longer.
    pub(super) fn retire(&mut self, doc: &Doc) {
        self.live[usize::from(doc.class.resource_type)] -= 1;
        self.forgotten += u64::from(doc.forgotten);
    }

    /// Notes that a compaction drops a row.
    pub(super) fn drop_version(&mut self, doc: &Doc) {
        self.forgotten -= u64::from(doc.forgotten && !doc.dropped);
    }
}
