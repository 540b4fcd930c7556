//! Documents by place: within a radius or a box of a frame, nearest to a point, and the same on
//! the globe.
//!
//! Points of one frame (and, as vectors of unit length, those on the globe) form a `Cloud`: a few
//! static k-d trees, each a plain array in tree order without pointers, and a tail of at most
//! `TAIL` recent points that is scanned. A full tail becomes a tree; `FANOUT` trees of like size
//! become one, as in a log-structured store, up to `MAX_MERGE` points, so that no insertion stops
//! the robot's memory for long. A point costs 32 bytes, where the dynamic R-tree measured beside it
//! (rstar) took 159 and four times as long to insert.
//!
//! Trees split where their points spread most, on whichever axis. A question in the plane ignores
//! the third coordinate: a node's distance then counts only x and y, which stays a lower bound of
//! every point's distance below it. The same argument makes `nearest` correct: it opens nodes and
//! hands out points strictly in order of that bound.
//!
//! Invariants: a range search returns every point a caller's exact test would accept, and possibly
//! a few more (radii are widened by `slack`); callers re-check. Coordinates are finite (checked
//! where requests are parsed). Nothing is removed: callers skip documents they no longer want.
//! A document inserted at two places is reported once for each.

mod tree;

use super::doc::DocId;
use hashbrown::HashMap;

use self::tree::{Cloud, Point, Target, arrange};

pub(crate) use self::tree::Nearest;

/// Number of a frame's name, dense from zero in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// The centre of a search: x, y and, unless distance is meant in the plane, z; in metres.
pub(crate) type Center = (f64, f64, Option<f64>);

/// Spatial index over all frames and the globe.
#[derive(Default)]
pub struct SpatialIndex {
    ids: HashMap<Box<str>, FrameId>,
    frames: Vec<Cloud>,
    globe: Cloud,
    /// True while points are only gathered.
    is_loading: bool,
}

impl SpatialIndex {
    /// The name of a frame, by a look at all of them: there are few.
    pub fn name(&self, frame: FrameId) -> Option<&str> {
        self.ids.iter().find(|(_, id)| **id == frame).map(|(name, _)| &**name)
    }

    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty index that only gathers points until [`SpatialIndex::finish_loading`], before which it
    /// cannot be searched: about half the work of inserting them one by one.
    pub fn loading() -> Self {
        Self { is_loading: true, ..Self::default() }
    }

    /// Builds the trees of what was gathered, on so many threads.
    pub fn finish_loading(&mut self, threads: usize) {
        if !std::mem::take(&mut self.is_loading) {
            return;
        }
        let clouds = self.frames.iter_mut().chain([&mut self.globe]);
        let mut trees: Vec<&mut [Point]> = clouds.flat_map(Cloud::gathered).collect();
        let share = trees.len().div_ceil(threads.max(1)).max(1);
        std::thread::scope(|scope| {
            let mut shares = trees.chunks_mut(share);
            let own = shares.next();
            for trees in shares {
                scope.spawn(move || trees.iter_mut().for_each(|points| arrange(points)));
            }
            own.into_iter().flatten().for_each(|points| arrange(points));
        });
    }

    /// The number of frame `name`, given out now if it is new. Names differ by case.
    fn intern(&mut self, name: &str) -> FrameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = FrameId(self.frames.len() as u32);
        self.ids.insert(name.into(), id);
        self.frames.push(Cloud::default());
        id
    }

    /// The number of frame `name`, if anything was ever inserted under it.
    pub fn frame(&self, name: &str) -> Option<FrameId> {
        self.ids.get(name).copied()
    }

    /// Adds `doc` at a point of `frame`, in metres, and returns the number of the frame.
    pub fn insert(&mut self, frame: &str, at: [f64; 3], doc: DocId) -> FrameId {
        let id = self.intern(frame);
        self.frames[id.0 as usize].add(at, doc, self.is_loading);
        id
    }

    /// Adds `doc` on the globe, at a vector of unit length from the Earth's centre.
    pub fn insert_geo(&mut self, unit: [f64; 3], doc: DocId) {
        self.globe.add(unit, doc, self.is_loading);
    }

    /// Calls `f` for every point within `radius` metres of `center`, and possibly for some a hair
    /// beyond, in no particular order.
    pub fn within(&self, frame: &str, center: Center, radius: f64, f: impl FnMut(DocId)) {
        if let Some(cloud) = self.cloud(frame) {
            cloud.within(&Target::from(center), radius, f);
        }
    }

    /// Calls `f` for every point with `min ≤ point ≤ max` on each axis, in no particular order.
    pub fn in_box(&self, frame: &str, min: [f64; 3], max: [f64; 3], f: impl FnMut(DocId)) {
        if let Some(cloud) = self.cloud(frame) {
            cloud.in_box(min, max, f);
        }
    }

    /// Every point of `frame` with its squared distance from `center` in square metres, nearest
    /// first and by ascending document among equals. Work is done as the iterator advances.
    pub fn nearest(&self, frame: &str, center: Center) -> Nearest<'_> {
        Nearest::new(self.cloud(frame), Target::from(center))
    }

    /// Calls `f` for every point of the globe within the straight-line distance `chord` of `unit`
    /// (2·sin(angle/2), on the unit sphere), and possibly for some a hair beyond.
    pub fn geo_within(&self, unit: [f64; 3], chord: f64, f: impl FnMut(DocId)) {
        self.globe.within(&Target::from(unit), chord, f);
    }

    fn cloud(&self, frame: &str) -> Option<&Cloud> {
        self.frames.get(self.frame(frame)?.0 as usize)
    }
}

#[cfg(test)]
mod tests;
