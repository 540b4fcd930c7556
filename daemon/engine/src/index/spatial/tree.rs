//! The points of one frame: static k-d trees and a tail. [`super`] says how they grow.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Center;
use crate::index::doc::DocId;

/// Points kept unsorted: scanning them costs about as much as descending two trees.
const TAIL: usize = 512;

/// So many trees of one size become one of the next.
pub(super) const FANOUT: usize = 4;

/// Trees are merged into none larger than this while running: a few milliseconds of work.
pub(super) const MAX_MERGE: usize = 32_768;

/// Points that are scanned rather than split further.
const LEAF: usize = 16;

/// A radius widened so that no rounding here or in the caller's own formula can lose a point.
fn slack(radius: f64) -> f64 {
    radius.max(0.0) * (1.0 + 1e-9) + 1e-9
}

/// The point asked about; `flat` leaves the third axis out of account.
#[derive(Clone, Copy)]
pub(super) struct Target {
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
pub(super) fn sum_of_squares(offsets: [f64; 3]) -> f64 {
    offsets[0] * offsets[0] + offsets[1] * offsets[1] + offsets[2] * offsets[2]
}

/// A point, and in the middle of a tree's range also the axis that range is split on: the byte
/// lies in what would be padding.
#[derive(Clone, Copy)]
pub(super) struct Point {
    at: [f64; 3],
    doc: DocId,
    axis: u8,
}

/// The points of one frame.
#[derive(Default)]
pub(super) struct Cloud {
    pub(super) trees: Vec<Tree>,
    tail: Vec<Point>,
}

impl Cloud {
    pub(super) fn add(&mut self, at: [f64; 3], doc: DocId, is_loading: bool) {
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
    pub(super) fn gathered(&mut self) -> impl Iterator<Item = &mut [Point]> {
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
        // The newest trees are the smallest, but for one that loading may have left: it goes along.
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

    pub(super) fn within(&self, target: &Target, radius: f64, mut f: impl FnMut(DocId)) {
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

    pub(super) fn in_box(&self, min: [f64; 3], max: [f64; 3], mut f: impl FnMut(DocId)) {
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
}

/// A balanced k-d tree as an array: the middle of a range longer than [`LEAF`] is its node, what
/// lies before it is not above it on the node's axis, and what lies after is not below.
pub(super) struct Tree {
    pub(super) points: Box<[Point]>,
}

impl Tree {
    fn build(mut points: Vec<Point>) -> Self {
        arrange(&mut points);
        Self { points: points.into_boxed_slice() }
    }
}

pub(super) fn arrange(points: &mut [Point]) {
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

/// Points in order of distance; see [`super::SpatialIndex::nearest`].
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
    pub(super) fn new(cloud: Option<&'a Cloud>, target: Target) -> Self {
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
