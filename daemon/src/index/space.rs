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

use super::DocId;
use hashbrown::HashMap;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Number of a frame's name, dense from zero in order of first use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Where to search from: x, y and, unless distance is meant in the plane, z; in metres.
pub type Center = (f64, f64, Option<f64>);

/// Points kept unsorted: scanning them costs about as much as descending two trees.
const TAIL: usize = 512;

/// So many trees of one size become one of the next.
const FANOUT: usize = 4;

/// Trees are merged into none larger than this while running: a few milliseconds of work.
const MAX_MERGE: usize = 32_768;

/// Points that are scanned rather than split further.
const LEAF: usize = 16;

/// Spatial index over all frames and the globe.
#[derive(Default)]
pub struct SpaceIndex {
    ids: HashMap<Box<str>, FrameId>,
    names: Vec<Box<str>>,
    frames: Vec<Cloud>,
    globe: Cloud,
    /// Whether points are only gathered for now.
    is_loading: bool,
}

impl SpaceIndex {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty index that only gathers points until [`SpaceIndex::finish_loading`], before which it
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
    pub fn intern(&mut self, name: &str) -> FrameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = FrameId(self.names.len() as u32);
        self.ids.insert(name.into(), id);
        self.names.push(name.into());
        self.frames.push(Cloud::default());
        id
    }

    /// The number of frame `name`, if anything was ever inserted or interned under it.
    pub fn frame(&self, name: &str) -> Option<FrameId> {
        self.ids.get(name).copied()
    }

    /// The name behind a number this index gave out.
    pub fn frame_name(&self, id: FrameId) -> Option<&str> {
        self.names.get(id.0 as usize).map(AsRef::as_ref)
    }

    /// Adds `doc` at a point of `frame`, in metres.
    pub fn insert(&mut self, frame: &str, at: [f64; 3], doc: DocId) {
        let id = self.intern(frame);
        self.frames[id.0 as usize].add(at, doc, self.is_loading);
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

    /// Every point of the globe with its squared chord from `unit`, nearest first and by ascending
    /// document among equals.
    pub fn geo_nearest(&self, unit: [f64; 3]) -> Nearest<'_> {
        Nearest::new(Some(&self.globe), Target::from(unit))
    }

    /// Makes one tree of each frame's points and returns spare memory. Blocks for about 0.2 µs a
    /// point; worth it when many were added at once.
    pub fn settle(&mut self) {
        for cloud in self.frames.iter_mut().chain([&mut self.globe]) {
            cloud.settle();
        }
    }

    /// Number of points, over all frames and the globe.
    pub fn len(&self) -> usize {
        self.frames.iter().chain([&self.globe]).map(Cloud::len).sum()
    }

    /// Whether nothing was inserted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap memory held, in bytes, without the allocator's own overhead.
    pub fn bytes(&self) -> usize {
        let names: usize = self
            .names
            .iter()
            .map(|name| 2 * name.len() + size_of::<(Box<str>, FrameId)>() * 2)
            .sum();
        let slots = self.names.capacity() * size_of::<Box<str>>()
            + self.frames.capacity() * size_of::<Cloud>();
        names + slots + self.frames.iter().chain([&self.globe]).map(Cloud::bytes).sum::<usize>()
    }

    fn cloud(&self, frame: &str) -> Option<&Cloud> {
        self.frames.get(self.frame(frame)?.0 as usize)
    }
}

/// A radius widened so that no rounding here or in the caller's own formula can lose a point.
fn slack(radius: f64) -> f64 {
    radius.max(0.0) * (1.0 + 1e-9) + 1e-9
}

/// The point asked about; `flat` leaves the third axis out of account.
#[derive(Clone, Copy)]
struct Target {
    at: [f64; 3],
    flat: bool,
}

impl From<Center> for Target {
    fn from((x, y, z): Center) -> Self {
        Self { at: [x, y, z.unwrap_or(0.0)], flat: z.is_none() }
    }
}

impl From<[f64; 3]> for Target {
    fn from(at: [f64; 3]) -> Self {
        Self { at, flat: false }
    }
}

impl Target {
    fn offset(&self, axis: usize, coordinate: f64) -> f64 {
        if self.flat && axis == 2 { 0.0 } else { coordinate - self.at[axis] }
    }

    fn distance2(&self, at: &[f64; 3]) -> f64 {
        sum_of_squares([self.offset(0, at[0]), self.offset(1, at[1]), self.offset(2, at[2])])
    }
}

/// Always added in this order: rounding is monotonic then, and a node's bound never exceeds the
/// distance of a point in it by even the last bit.
fn sum_of_squares(offsets: [f64; 3]) -> f64 {
    offsets[0] * offsets[0] + offsets[1] * offsets[1] + offsets[2] * offsets[2]
}

/// A point, and in the middle of a tree's range also the axis that range is split on: the byte
/// lies in what would be padding.
#[derive(Clone, Copy)]
struct Point {
    at: [f64; 3],
    doc: DocId,
    axis: u8,
}

/// The points of one frame.
#[derive(Default)]
struct Cloud {
    trees: Vec<Tree>,
    tail: Vec<Point>,
}

impl Cloud {
    fn add(&mut self, at: [f64; 3], doc: DocId, is_loading: bool) {
        self.tail.push(Point { at, doc, axis: 0 });
        if is_loading {
            if self.tail.len() == MAX_MERGE {
                let points = std::mem::replace(&mut self.tail, Vec::with_capacity(MAX_MERGE));
                self.trees.push(Tree { points: points.into_boxed_slice() });
            }
        } else if self.tail.len() >= TAIL {
            self.plant();
        }
    }

    /// The points of trees that were gathered and are to be arranged.
    fn gathered(&mut self) -> impl Iterator<Item = &mut [Point]> {
        if self.tail.len() >= TAIL {
            let points = std::mem::take(&mut self.tail).into_boxed_slice();
            self.trees.push(Tree { points });
        }
        self.tail.shrink_to_fit();
        self.trees.iter_mut().map(|tree| &mut *tree.points)
    }

    /// Makes a tree of the tail, together with trees of like size.
    fn plant(&mut self) {
        let mut points = self.tail.clone();
        self.tail.clear();
        // The newest trees are the smallest, but for one that `settle` may have left: it goes along.
        while points.len() * FANOUT <= MAX_MERGE {
            let alike = self
                .trees
                .iter()
                .rev()
                .take_while(|tree| tree.points.len() <= points.len())
                .count();
            if alike + 1 < FANOUT {
                break;
            }
            let total =
                self.trees[self.trees.len() - alike..].iter().map(|tree| tree.points.len()).sum();
            points.reserve_exact(total);
            for tree in self.trees.drain(self.trees.len() - alike..) {
                points.extend_from_slice(&tree.points);
            }
        }
        self.trees.push(Tree::build(points));
    }

    fn settle(&mut self) {
        let mut points = std::mem::take(&mut self.tail);
        if points.is_empty() && self.trees.len() <= 1 {
            return;
        }
        points.reserve_exact(self.trees.iter().map(|tree| tree.points.len()).sum());
        for tree in self.trees.drain(..) {
            points.extend_from_slice(&tree.points);
        }
        self.trees = vec![Tree::build(points)];
    }

    fn within(&self, target: &Target, radius: f64, mut f: impl FnMut(DocId)) {
        // May overflow to infinity, and then accepts everything whose square overflows too.
        let reach = slack(radius);
        let reach2 = reach * reach;
        let mut visit = |points: &[Point]| {
            for point in points {
                if target.distance2(&point.at) <= reach2 {
                    f(point.doc);
                }
            }
        };
        visit(&self.tail);
        for tree in &self.trees {
            walk(&tree.points, [0.0; 3], target, reach2, &mut visit);
        }
    }

    fn in_box(&self, min: [f64; 3], max: [f64; 3], mut f: impl FnMut(DocId)) {
        let mut visit = |points: &[Point]| {
            for point in points {
                if (0..3).all(|axis| min[axis] <= point.at[axis] && point.at[axis] <= max[axis]) {
                    f(point.doc);
                }
            }
        };
        visit(&self.tail);
        for tree in &self.trees {
            walk_box(&tree.points, &min, &max, &mut visit);
        }
    }

    fn len(&self) -> usize {
        self.tail.len() + self.trees.iter().map(|tree| tree.points.len()).sum::<usize>()
    }

    fn bytes(&self) -> usize {
        (self.len() - self.tail.len() + self.tail.capacity()) * size_of::<Point>()
            + self.trees.capacity() * size_of::<Tree>()
    }
}

/// A balanced k-d tree as an array: the middle of a range longer than [`LEAF`] is its node, what
/// lies before it is not above it on the node's axis, and what lies after is not below.
struct Tree {
    points: Box<[Point]>,
}

impl Tree {
    fn build(mut points: Vec<Point>) -> Self {
        arrange(&mut points);
        Self { points: points.into_boxed_slice() }
    }
}

fn arrange(points: &mut [Point]) {
    if points.len() <= LEAF {
        return;
    }
    let axis = widest(points);
    let middle = points.len() / 2;
    points.select_nth_unstable_by(middle, |a, b| a.at[axis].total_cmp(&b.at[axis]));
    let (before, node, after) = split(points);
    node.axis = axis as u8;
    arrange(before);
    arrange(after);
}

fn split(points: &mut [Point]) -> (&mut [Point], &mut Point, &mut [Point]) {
    let (before, rest) = points.split_at_mut(points.len() / 2);
    let (node, after) = rest.split_at_mut(1);
    (before, &mut node[0], after)
}

/// The axis on which the points lie furthest apart.
fn widest(points: &[Point]) -> usize {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in points {
        for axis in 0..3 {
            low[axis] = low[axis].min(point.at[axis]);
            high[axis] = high[axis].max(point.at[axis]);
        }
    }
    let spread = |axis: usize| high[axis] - low[axis];
    (1..3).fold(0, |best, axis| if spread(axis) > spread(best) { axis } else { best })
}

/// A range of a tree taken apart: what lies before the node, the node, what lies after.
fn open(points: &[Point]) -> (&[Point], &Point, &[Point]) {
    let middle = points.len() / 2;
    (&points[..middle], &points[middle], &points[middle + 1..])
}

/// The least distance on each axis from the target to the part before a node and to the part after.
fn bounds(node: &Point, gap: [f64; 3], target: &Target) -> ([f64; 3], [f64; 3]) {
    let axis = usize::from(node.axis);
    let offset = target.offset(axis, node.at[axis]);
    let (mut before, mut after) = (gap, gap);
    // Only the far side gets further away, and never nearer than it already was.
    if offset > 0.0 {
        after[axis] = offset.max(gap[axis]);
    } else {
        before[axis] = (-offset).max(gap[axis]);
    }
    (before, after)
}

/// Shows `visit` every stretch of points that may hold one within the square root of `reach2`.
fn walk(
    points: &[Point],
    gap: [f64; 3],
    target: &Target,
    reach2: f64,
    visit: &mut impl FnMut(&[Point]),
) {
    if points.len() <= LEAF {
        return visit(points);
    }
    let (before, node, after) = open(points);
    let (gap_before, gap_after) = bounds(node, gap, target);
    visit(std::slice::from_ref(node));
    for (part, gap) in [(before, gap_before), (after, gap_after)] {
        if sum_of_squares(gap) <= reach2 {
            walk(part, gap, target, reach2, visit);
        }
    }
}

/// Shows `visit` every stretch of points that may hold one inside the box.
fn walk_box(points: &[Point], min: &[f64; 3], max: &[f64; 3], visit: &mut impl FnMut(&[Point])) {
    if points.len() <= LEAF {
        return visit(points);
    }
    let (before, node, after) = open(points);
    let axis = usize::from(node.axis);
    visit(std::slice::from_ref(node));
    if min[axis] <= node.at[axis] {
        walk_box(before, min, max, visit);
    }
    if node.at[axis] <= max[axis] {
        walk_box(after, min, max, visit);
    }
}

/// Points in order of distance; see [`SpaceIndex::nearest`].
pub struct Nearest<'a> {
    target: Target,
    /// Everything not yet handed out is in one of these: as itself, or in a range whose bound is
    /// not beyond it.
    queue: BinaryHeap<Candidate<'a>>,
}

struct Candidate<'a> {
    distance2: f64,
    what: What<'a>,
}

enum What<'a> {
    Range { points: &'a [Point], gap: [f64; 3] },
    Found(DocId),
}

impl<'a> Nearest<'a> {
    fn new(cloud: Option<&'a Cloud>, target: Target) -> Self {
        let mut queue = Vec::new();
        if let Some(cloud) = cloud {
            queue.extend(cloud.trees.iter().map(|tree| Candidate::range(&tree.points, [0.0; 3])));
            queue.extend(cloud.tail.iter().map(|point| Candidate::found(point, &target)));
        }
        Self { target, queue: queue.into() }
    }
}

impl<'a> Candidate<'a> {
    fn range(points: &'a [Point], gap: [f64; 3]) -> Self {
        Self { distance2: sum_of_squares(gap), what: What::Range { points, gap } }
    }

    fn found(point: &Point, target: &Target) -> Self {
        Self { distance2: target.distance2(&point.at), what: What::Found(point.doc) }
    }
}

impl Iterator for Nearest<'_> {
    type Item = (DocId, f64);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Candidate { distance2, what } = self.queue.pop()?;
            let (points, gap) = match what {
                What::Found(doc) => return Some((doc, distance2)),
                What::Range { points, gap } => (points, gap),
            };
            if points.len() <= LEAF {
                self.queue.extend(points.iter().map(|point| Candidate::found(point, &self.target)));
                continue;
            }
            let (before, node, after) = open(points);
            let (gap_before, gap_after) = bounds(node, gap, &self.target);
            self.queue.push(Candidate::found(node, &self.target));
            self.queue.push(Candidate::range(before, gap_before));
            self.queue.push(Candidate::range(after, gap_after));
        }
    }
}

/// The heap's greatest is what comes next: the nearest; among equals first ranges, which may hide
/// a point with a smaller number, then points by number.
impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let tie = |what: &What<'_>| match what {
            What::Range { .. } => None,
            What::Found(doc) => Some(*doc),
        };
        other
            .distance2
            .total_cmp(&self.distance2)
            .then_with(|| tie(&other.what).cmp(&tie(&self.what)))
    }
}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(run: impl FnOnce(&mut dyn FnMut(DocId))) -> Vec<DocId> {
        let mut out = Vec::new();
        run(&mut |doc| out.push(doc));
        out.sort_unstable();
        out
    }

    fn exact(points: &[[f64; 3]], accept: impl Fn(&[f64; 3]) -> bool) -> Vec<DocId> {
        (0..).zip(points).filter(|(_, at)| accept(at)).map(|(doc, _)| doc).collect()
    }

    fn distance2(a: &[f64; 3], (x, y, z): Center) -> f64 {
        let dz = z.map_or(0.0, |z| a[2] - z);
        (a[0] - x) * (a[0] - x) + (a[1] - y) * (a[1] - y) + dz * dz
    }

    fn nearest_of(points: &[[f64; 3]], center: Center) -> Vec<(DocId, f64)> {
        let mut all: Vec<_> =
            (0..).zip(points).map(|(doc, at)| (doc, distance2(at, center))).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        all
    }

    /// The three ways points can get in, which must not differ in what is found.
    fn built(points: &[[f64; 3]], way: u8) -> SpaceIndex {
        if way == 0 {
            let mut index = SpaceIndex::loading();
            (0..).zip(points).for_each(|(doc, &at)| index.insert("map", at, doc));
            index.finish_loading(2);
            return index;
        }
        let mut index = SpaceIndex::new();
        (0..).zip(points).for_each(|(doc, &at)| index.insert("map", at, doc));
        if way == 1 {
            index.settle();
        }
        index
    }

    /// A grid's many ties, a floor plan, a corridor, and a thin tall shaft.
    fn cloud() -> impl Strategy<Value = Vec<[f64; 3]>> {
        let grid = (-4i8..4, -4i8..4, 0i8..3)
            .prop_map(|(x, y, z)| [f64::from(x), f64::from(y), f64::from(z)]);
        let floor = (-5e3..5e3f64, -5e3..5e3f64, 0.0..3.0f64).prop_map(|(x, y, z)| [x, y, z]);
        let corridor = (0.0..1.0f64, 0.0..500.0f64).prop_map(|(x, y)| [x, y, 0.0]);
        let shaft = (0.0..1.0f64, 0.0..80.0f64).prop_map(|(x, z)| [x, x, z]);
        let size = 0..3000usize;
        prop_oneof![
            prop::collection::vec(grid, size.clone()),
            prop::collection::vec(floor, size.clone()),
            prop::collection::vec(corridor, size.clone()),
            prop::collection::vec(shaft, size),
        ]
    }

    fn radius() -> impl Strategy<Value = f64> {
        prop_oneof![
            Just(0.0),
            Just(0.01),
            Just(1.0),
            Just(2.0),
            0.01..10.0f64,
            10.0..5e3f64,
            Just(1e300),
            Just(f64::MAX)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn finds_what_a_scan_finds(
            points in cloud(),
            way in 0u8..3,
            pick: prop::sample::Index,
            nudge in prop_oneof![Just([0.0; 3]), prop::array::uniform3(-3.0..3.0f64)],
            flat: bool,
            radius in radius(),
            size in prop_oneof![
                prop::array::uniform3(-0.5..40.0f64),
                prop::sample::select(vec![[0.0; 3], [2.0, 1.0, 1.0], [0.0, 3.0, 2.0]]),
            ],
        ) {
            let index = built(&points, way);
            let near = if points.is_empty() { [0.0; 3] } else { *pick.get(&points) };
            let at: [f64; 3] = std::array::from_fn(|axis| near[axis] + nudge[axis]);
            let center = (at[0], at[1], (!flat).then_some(at[2]));
            prop_assert_eq!(index.len(), points.len());

            let got = sorted(|f| index.within("map", center, radius, f));
            let want = exact(&points, |at| distance2(at, center).sqrt() <= radius);
            let loose = exact(&points, |at| distance2(at, center).sqrt() <= radius * (1.0 + 2e-9) + 2e-9);
            prop_assert!(want.iter().all(|doc| got.binary_search(doc).is_ok()));
            prop_assert!(got.iter().all(|doc| loose.binary_search(doc).is_ok()));
            prop_assert!(got.is_sorted_by(|a, b| a < b), "reported twice");

            let max: [f64; 3] = std::array::from_fn(|axis| at[axis] + size[axis]);
            let got = sorted(|f| index.in_box("map", at, max, f));
            prop_assert_eq!(got, exact(&points, |p| (0..3).all(|axis| at[axis] <= p[axis] && p[axis] <= max[axis])));

            prop_assert!(index.nearest("map", center).eq(nearest_of(&points, center)));
            prop_assert_eq!(index.nearest("Map", center).count(), 0);
        }

        #[test]
        fn finds_what_a_scan_finds_on_the_globe(
            places in prop::collection::vec(place(), 1..2000),
            bulk: bool,
            pick: prop::sample::Index,
            metres in prop_oneof![Just(0.01), 0.01..1.0f64, 1.0..5e3f64, Just(2e7)],
        ) {
            let points: Vec<_> = places.iter().map(|&(lat, lon)| unit(lat, lon)).collect();
            let mut index = if bulk { SpaceIndex::loading() } else { SpaceIndex::new() };
            (0..).zip(&points).for_each(|(doc, &at)| index.insert_geo(at, doc));
            index.finish_loading(2);
            // A little off a stored place: on the far side of the pole or date line, perhaps.
            let (lat, lon) = *pick.get(&places);
            let from = unit(lat + 1e-8, lon + 1e-8);
            let chord = 2.0 * (metres / EARTH / 2.0).sin();
            let got = sorted(|f| index.geo_within(from, chord, f));
            let want = exact(&points, |to| angle(&from, to) * EARTH <= metres);
            let loose = exact(&points, |to| angle(&from, to) * EARTH <= metres + 0.02);
            prop_assert!(want.iter().all(|doc| got.binary_search(doc).is_ok()));
            prop_assert!(got.iter().all(|doc| loose.binary_search(doc).is_ok()));
            let center = (from[0], from[1], Some(from[2]));
            prop_assert!(index.geo_nearest(from).eq(nearest_of(&points, center)));
        }
    }

    const EARTH: f64 = 6_371_008.8;

    /// Clusters some metres to kilometres wide about the poles, the date line and elsewhere.
    fn place() -> impl Strategy<Value = (f64, f64)> {
        let hub = prop::sample::select(vec![
            (90.0, 0.0),
            (-90.0, 50.0),
            (0.0, 180.0),
            (67.0, -180.0),
            (48.1, 11.6),
        ]);
        let scale = prop::sample::select(vec![1e-7, 1e-4, 0.05]);
        (hub, scale, -1.0..1.0f64, -1.0..1.0f64).prop_map(|((lat, lon), scale, a, b)| {
            // About a pole every longitude is close.
            let spread = if f64::abs(lat) == 90.0 { 180.0 } else { scale };
            (lat + a * scale, lon + b * spread)
        })
    }

    fn unit(lat: f64, lon: f64) -> [f64; 3] {
        let (lat, lon) = (lat.to_radians(), lon.to_radians());
        [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
    }

    /// By the cross product: precise at any distance, and no kin of the chord.
    fn angle(a: &[f64; 3], b: &[f64; 3]) -> f64 {
        let cross =
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
        sum_of_squares(cross).sqrt().atan2(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
    }

    #[test]
    fn growth_keeps_few_trees_and_all_points() {
        let mut index = SpaceIndex::new();
        let mut noise = 1u64;
        for doc in 0..150_000 {
            noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            index.insert("map", [(noise >> 40) as f64, (noise >> 20 & 0xfffff) as f64, 0.0], doc);
        }
        let cloud = &index.frames[0];
        assert!(
            cloud.trees.len() <= 150_000 / MAX_MERGE + 3 * FANOUT,
            "{} trees",
            cloud.trees.len()
        );
        assert!(cloud.trees.iter().all(|tree| tree.points.len() <= MAX_MERGE));
        assert!(index.bytes() < 150_000 * 33);
        assert_eq!(
            sorted(|f| index.within("map", (0.0, 0.0, None), 1e9, f)),
            Vec::from_iter(0..150_000)
        );
    }

    #[test]
    fn frames_are_told_apart_by_exact_name() {
        let mut index = SpaceIndex::new();
        index.insert("map", [0.0; 3], 1);
        index.insert("Map", [0.0; 3], 2);
        assert_eq!(sorted(|f| index.within("Map", (0.0, 0.0, None), 1.0, f)), [2]);
        assert_eq!(index.frame("map"), Some(FrameId(0)));
        assert_eq!(index.frame_name(FrameId(1)), Some("Map"));
        assert_eq!((index.frame("odom"), index.frame_name(FrameId(7))), (None, None));
    }
}
