//! Places: the positions of each version, and the spatial index over them.

use omir_core::geo::GeoPoint;

use crate::index::doc::{Doc, DocId};
use crate::index::facts::Position;
use crate::index::spatial::{FrameId, SpatialIndex};

/// A position of a version.
#[derive(Debug, Clone)]
pub struct PositionRow {
    /// The frame.
    pub frame: FrameId,
    /// Metres in that frame.
    pub position: [f64; 3],
    /// Geographic point.
    pub geo: Option<GeoPoint>,
}

/// The positions of all versions.
#[derive(Default)]
pub struct Places {
    rows: Vec<PositionRow>,
    index: SpatialIndex,
}

impl Places {
    /// No positions; they can be searched only after [`Places::finish_loading`].
    pub(super) fn loading() -> Self {
        Self { index: SpatialIndex::loading(), ..Self::default() }
    }

    /// Arranges positions for search, on so many threads.
    pub(super) fn finish_loading(&mut self, threads: usize) {
        self.index.finish_loading(threads);
    }

    /// The positions of a version; most have one or none.
    pub fn of(&self, doc: &Doc) -> &[PositionRow] {
        let start = doc.place as usize;
        self.rows.get(start..start + usize::from(doc.places)).unwrap_or_default()
    }

    /// The number of a frame, if anything was ever recorded in it.
    pub fn frame(&self, name: &str) -> Option<FrameId> {
        self.index.frame(name)
    }

    /// The name of a frame.
    pub fn name(&self, frame: FrameId) -> &str {
        self.index.name(frame).unwrap_or_default()
    }

    /// The spatial index.
    pub fn index(&self) -> &SpatialIndex {
        &self.index
    }

    /// Adds the positions of a version, and returns the first of their rows and how many there are.
    pub(super) fn add(&mut self, id: DocId, places: &[Position]) -> (u32, u16) {
        let first = u32::try_from(self.rows.len()).expect("fewer than 2^32 places");
        let count = u16::try_from(places.len()).unwrap_or(u16::MAX);
        for place in &places[..usize::from(count)] {
            let frame = self.index.insert(&place.frame, place.position, id);
            let geo = place.geo_point();
            if let Some(point) = &geo {
                self.index.insert_geo(point.unit_vector(), id);
            }
            self.rows.push(PositionRow { frame, position: place.position, geo });
        }
        (first, count)
    }
}
