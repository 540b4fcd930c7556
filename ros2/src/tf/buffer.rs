//! The frames and what is known of each: taking transforms in.

use std::sync::Arc;
use std::time::Duration;

use super::error::InsertError;
use super::frames::{FrameId, Frames, LONGEST_NAME, normalised};
use super::history::{History, Pushed, Sample};
use super::lookup::DEEPEST;
use super::transform::{Transform, checked};
use crate::stamp::Stamp;

/// A clock that goes back by less is being adjusted and not set again.
const CLOCK_ADJUSTMENT: Duration = Duration::from_millis(100);

/// Bounds of a [`Buffer`]. A sample takes about 72 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time before its newest transform for which each frame is known.
    pub keep: Duration,
    /// Frames in all, for good.
    pub frames: usize,
    /// Transforms of one frame over time.
    pub samples_per_frame: usize,
    /// Transforms of all frames over time; beyond, the longest histories get shorter.
    pub samples: usize,
}

/// tf2's ten seconds; a frame at 1 kHz for as long; 36 MB in all.
impl Default for Limits {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(10),
            frames: 16_384,
            samples_per_frame: 10_000,
            samples: 500_000,
        }
    }
}

/// Outcome of adding a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is new.
    New,
    /// It was known.
    Same,
    /// It replaced what was said of the same moment, or of a static frame.
    Replaced,
    /// Everything known of the frame is dropped: its publisher's time ran backwards, or it became static
    /// or ceased to be.
    Restarted,
}

/// A frame's transform to its parent.
#[derive(Debug)]
pub(super) enum Edge {
    /// Nothing: a root.
    None,
    /// It never changes (`/tf_static`).
    Static { parent: FrameId, transform: Transform },
    /// It changes (`/tf`).
    Moving(History),
}

impl Edge {
    /// The parent by the newest that is known.
    pub(super) fn latest_parent(&self) -> Option<FrameId> {
        match self {
            Self::None => None,
            Self::Static { parent, .. } => Some(*parent),
            Self::Moving(history) => Some(history.newest().parent),
        }
    }
}

/// One frame, for status.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameInfo<'b> {
    /// Its name, without a leading slash.
    pub name: &'b str,
    /// Its parent by the newest that is known; `None` for a root.
    pub parent: Option<&'b str>,
    /// True if it never moves in its parent.
    pub is_static: bool,
    /// From when until when it is known, unless it is static or a root.
    pub known: Option<(Stamp, Stamp)>,
}

/// The transforms of the last seconds; see the [module](super).
#[derive(Debug)]
pub struct Buffer {
    limits: Limits,
    pub(super) frames: Frames,
    /// By [`FrameId`].
    pub(super) edges: Vec<Edge>,
    /// In all histories together.
    samples: usize,
    /// The latest time the robot's clock has shown.
    clock: Option<Stamp>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self::with_limits(Limits::default())
    }
}

impl Buffer {
    /// An empty buffer that reaches back so far; all else as [`Limits::default`].
    pub fn new(keep: Duration) -> Self {
        Self::with_limits(Limits { keep, ..Limits::default() })
    }

    /// An empty buffer.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, frames: Frames::default(), edges: Vec::new(), samples: 0, clock: None }
    }

    /// Takes in where `child` is in `parent` at `stamp`, as `geometry_msgs/TransformStamped` says it;
    /// a static one holds at all times. They may come in any order.
    ///
    /// Another parent than before re-parents the frame from `stamp` on. Of the same moment the last word
    /// counts. On error nothing changed, but that repeated refusals of what is too old make a history
    /// begin again: see [`Inserted::Restarted`].
    pub fn insert(
        &mut self,
        parent: &str,
        child: &str,
        stamp: Stamp,
        transform: Transform,
        is_static: bool,
    ) -> Result<Inserted, InsertError> {
        let (parent, child) = (name(parent)?, name(child)?);
        if parent == child {
            return Err(InsertError::SelfParent { frame: child.into() });
        }
        let transform = checked(&transform).map_err(|why| InsertError::Bad {
            parent: parent.into(),
            child: child.into(),
            why,
        })?;
        let known = (self.frames.find(parent), self.frames.find(child));
        self.check_room([(parent, known.0), (child, known.1)])?;
        if let (Some(parent_id), Some(child_id)) = known
            && self.changes_tree(child_id, parent_id, stamp, is_static)
            && let Some(error) = self.misplaces(parent_id, child_id)
        {
            return Err(error);
        }
        let (parent, child) = (self.frames.find_or_add(parent), self.frames.find_or_add(child));
        self.edges.resize_with(self.frames.len(), || Edge::None);
        if is_static {
            return Ok(self.set_static(child, parent, transform));
        }
        self.push(child, Sample { stamp, parent, transform })
    }

    /// Tells what the robot's clock shows. If it went back (a simulation began again, a recording is
    /// played again, the clock was set), the moving transforms are dropped, as tf2 does; then it is
    /// `true`.
    pub fn clock(&mut self, now: Stamp) -> bool {
        let went_back = self.clock.is_some_and(|last| now < last.saturating_sub(CLOCK_ADJUSTMENT));
        if went_back {
            self.clear();
        }
        self.clock = Some(match self.clock {
            Some(last) if !went_back => last.max(now),
            _ => now,
        });
        went_back
    }

    /// Drops all moving transforms. Static ones stay, and so do the names.
    pub fn clear(&mut self) {
        for edge in &mut self.edges {
            if matches!(edge, Edge::Moving(_)) {
                *edge = Edge::None;
            }
        }
        self.samples = 0;
    }

    /// The newest moment at which a frame that moves is known.
    pub fn newest(&self, frame: &str) -> Option<Stamp> {
        match &self.edges[self.frames.find(frame)?.index()] {
            Edge::Moving(history) => Some(history.newest().stamp),
            _ => None,
        }
    }

    /// The last moment, `at` or before, at which a transform said where a frame is that moves.
    pub fn last_before(&self, frame: &str, at: Stamp) -> Option<Stamp> {
        match &self.edges[self.frames.find(frame)?.index()] {
            Edge::Moving(history) => history.last_before(at),
            _ => None,
        }
    }

    /// Returns true if a frame never moves in its parent.
    pub fn is_static(&self, frame: &str) -> bool {
        let edge = self.frames.find(frame).map(|frame| &self.edges[frame.index()]);
        matches!(edge, Some(Edge::Static { .. }))
    }

    /// Its bounds.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Number of moving transforms that it holds now.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Every frame named so far, in the order of their first appearance.
    pub fn frames(&self) -> impl Iterator<Item = FrameInfo<'_>> {
        self.frames.names().zip(&self.edges).map(|(name, edge)| FrameInfo {
            name,
            parent: edge.latest_parent().map(|parent| &**self.frames.name(parent)),
            is_static: matches!(edge, Edge::Static { .. }),
            known: match edge {
                Edge::Moving(history) => Some((history.oldest().stamp, history.newest().stamp)),
                _ => None,
            },
        })
    }

    fn check_room(&self, named: [(&str, Option<FrameId>); 2]) -> Result<(), InsertError> {
        let limit = self.limits.frames;
        let new = named.iter().filter(|(_, known)| known.is_none());
        for (len, (frame, _)) in (self.frames.len()..).zip(new) {
            if len >= limit {
                return Err(InsertError::TooManyFrames { limit, frame: (*frame).into() });
            }
        }
        Ok(())
    }

    /// Returns true if the frame's newest parent becomes another.
    fn changes_tree(&self, child: FrameId, parent: FrameId, at: Stamp, is_static: bool) -> bool {
        let edge = &self.edges[child.index()];
        let leads = match edge {
            Edge::Moving(history) if !is_static => {
                history.would_lead(at, self.limits.keep, self.limits.samples_per_frame)
            }
            _ => true,
        };
        leads && edge.latest_parent() != Some(parent)
    }

    /// Returns the reason why `child` cannot have that parent: the parent hangs below it, or so deep
    /// that nothing is looked up from there. The newest parents form no circle, because this is asked before
    /// each of them changes.
    fn misplaces(&self, parent: FrameId, child: FrameId) -> Option<InsertError> {
        let name = |frame| Arc::clone(self.frames.name(frame));
        let up = |frame: &FrameId| self.edges[frame.index()].latest_parent();
        let mut above = std::iter::successors(Some(parent), up);
        if above.by_ref().take(DEEPEST).any(|frame| frame == child) {
            return Some(InsertError::Loop { parent: name(parent), child: name(child) });
        }
        above.next().map(|_| InsertError::TooDeep { limit: DEEPEST, child: name(child) })
    }

    fn set_static(&mut self, child: FrameId, parent: FrameId, transform: Transform) -> Inserted {
        let edge = Edge::Static { parent, transform };
        match std::mem::replace(&mut self.edges[child.index()], edge) {
            Edge::None => Inserted::New,
            Edge::Static { parent: p, transform: t } if (p, t) == (parent, transform) => {
                Inserted::Same
            }
            Edge::Static { .. } => Inserted::Replaced,
            Edge::Moving(history) => {
                self.samples -= history.len();
                Inserted::Restarted
            }
        }
    }

    fn push(&mut self, child: FrameId, sample: Sample) -> Result<Inserted, InsertError> {
        let Limits { keep, samples_per_frame, .. } = self.limits;
        let edge = &mut self.edges[child.index()];
        let Edge::Moving(history) = edge else {
            let was = std::mem::replace(edge, Edge::Moving(History::new(sample)));
            self.added(1);
            return Ok(if matches!(was, Edge::None) { Inserted::New } else { Inserted::Restarted });
        };
        let stamp = sample.stamp;
        let before = history.len();
        let pushed = history.push(sample, keep, samples_per_frame);
        let (after, newest) = (history.len(), history.newest().stamp);
        self.samples -= before;
        self.added(after);
        match pushed {
            Pushed::New => Ok(Inserted::New),
            Pushed::Same => Ok(Inserted::Same),
            Pushed::Replaced => Ok(Inserted::Replaced),
            Pushed::Restarted => Ok(Inserted::Restarted),
            Pushed::TooOld => {
                let child = Arc::clone(self.frames.name(child));
                Err(InsertError::TooOld { child, stamp, newest })
            }
        }
    }

    /// Counts so many samples more; beyond the limit the longest history sheds an eighth of itself, so
    /// that it need not be sought for each sample.
    fn added(&mut self, samples: usize) {
        self.samples += samples;
        while self.samples > self.limits.samples {
            let histories = self.edges.iter_mut().filter_map(|edge| match edge {
                Edge::Moving(history) => Some(history),
                _ => None,
            });
            let shed = histories.max_by_key(|history| history.len()).map_or(0, History::shed);
            if shed == 0 {
                // One sample per frame is left, and the number of frames has its own bound.
                return;
            }
            self.samples -= shed;
        }
    }
}

/// The name as it is kept.
fn name(name: &str) -> Result<&str, InsertError> {
    let name = normalised(name).ok_or(InsertError::NoName)?;
    if name.len() > LONGEST_NAME {
        return Err(InsertError::NameTooLong { len: name.len() });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Stamp {
        Stamp::from_nanos((seconds * 1e9) as i64)
    }

    fn x(metres: f64) -> Transform {
        Transform::translation(metres, 0.0, 0.0)
    }

    fn parents(buffer: &Buffer) -> Vec<(&str, Option<&str>)> {
        buffer.frames().map(|frame| (frame.name, frame.parent)).collect()
    }

    #[test]
    fn refusals_change_nothing() {
        let mut buffer = Buffer::with_limits(Limits { frames: 3, ..Limits::default() });
        buffer.insert("map", "odom", at(100.0), x(1.0), false).unwrap();
        buffer.insert("odom", "base_link", at(100.0), x(1.0), false).unwrap();
        let before = parents(&buffer).len();
        let bad = Transform::translation(f64::NAN, 0.0, 0.0);
        for (parent, child, stamp, transform, kind) in [
            ("", "odom", 100.0, x(1.0), "frame-name"),
            ("map", "/", 100.0, x(1.0), "frame-name"),
            ("map", &"x".repeat(256), 100.0, x(1.0), "frame-name"),
            ("odom", "/odom", 100.0, x(1.0), "self-parent"),
            ("map", "odom", 101.0, bad, "no-transform"),
            ("base_link", "map", 100.0, x(1.0), "loop"),
            ("base_link", "odom", 101.0, x(1.0), "loop"),
            ("map", "odom", 89.9, x(1.0), "too-old"),
            ("map", "camera", 100.0, x(1.0), "too-many-frames"),
        ] {
            let error = buffer.insert(parent, child, at(stamp), transform, false).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        assert_eq!((parents(&buffer).len(), buffer.samples()), (before, 2));
        assert_eq!(
            buffer.insert("map", "base_link", at(80.0), x(1.0), false).unwrap_err().to_string(),
            "the transform of \"base_link\" at 80.000000000 is older than the buffer keeps; the newest \
             is of 100.000000000"
        );
    }

    #[test]
    fn a_frame_is_not_put_where_nothing_is_looked_up() {
        let mut buffer = Buffer::default();
        for i in 0..1100 {
            let (parent, child) = (format!("f{i}"), format!("f{}", i + 1));
            buffer.insert(&parent, &child, Stamp::ZERO, x(1.0), true).unwrap();
        }
        buffer.insert("f0", "arm", Stamp::ZERO, x(1.0), true).unwrap();
        let mut hang = |parent| buffer.insert(parent, "arm", Stamp::ZERO, x(1.0), true);
        assert_eq!(hang("f999"), Ok(Inserted::Replaced));
        assert_eq!(hang("f1000").unwrap_err().kind(), "too-deep");
        assert_eq!(
            buffer.insert("f500", "f0", Stamp::ZERO, x(1.0), true).unwrap_err().kind(),
            "loop"
        );
    }

    #[test]
    fn a_leading_slash_is_no_other_frame() {
        let mut buffer = Buffer::default();
        buffer.insert("/map", "/base_link", at(1.0), x(1.0), false).unwrap();
        let again = buffer.insert("map", "base_link", at(1.0), x(1.0), false);
        assert_eq!(again, Ok(Inserted::Same));
        assert_eq!(parents(&buffer), [("map", None), ("base_link", Some("map"))]);
    }

    #[test]
    fn frames_move_to_another_parent() {
        let mut buffer = Buffer::default();
        buffer.insert("table", "cup", at(1.0), x(1.0), false).unwrap();
        buffer.insert("hand", "cup", at(2.0), x(0.0), false).unwrap();
        // The cup's past is no obstacle to its present.
        buffer.insert("cup", "table", at(3.0), x(0.0), false).unwrap();
        // A transform that came late does not decide the parent.
        buffer.insert("table", "cup", at(1.5), x(1.0), false).unwrap();
        assert_eq!(parents(&buffer)[1], ("cup", Some("hand")));
        assert_eq!(buffer.samples(), 4);
    }

    #[test]
    fn static_and_moving_replace_each_other() {
        let mut buffer = Buffer::default();
        let mut insert = |is_static, metres| {
            buffer.insert("base", "camera", at(5.0), x(metres), is_static).unwrap()
        };
        assert_eq!(insert(true, 1.0), Inserted::New);
        assert_eq!(insert(true, 1.0), Inserted::Same);
        assert_eq!(insert(true, 2.0), Inserted::Replaced);
        assert_eq!(insert(false, 2.0), Inserted::Restarted);
        assert_eq!(insert(true, 2.0), Inserted::Restarted);
        assert_eq!(buffer.samples(), 0);
    }

    #[test]
    fn a_clock_that_goes_back_drops_what_moved() {
        let mut buffer = Buffer::default();
        buffer.insert("base", "camera", at(0.0), x(1.0), true).unwrap();
        buffer.insert("odom", "base", at(50.0), x(1.0), false).unwrap();
        assert!(!buffer.clock(at(50.0)));
        assert!(!buffer.clock(at(49.95)));
        assert!(!buffer.clock(at(60.0)));
        assert!(buffer.clock(at(0.1)));
        assert!(!buffer.clock(at(0.2)));
        assert_eq!(buffer.samples(), 0);
        let moving = buffer.frames().find(|frame| frame.name == "base").unwrap();
        assert_eq!((moving.parent, moving.known), (None, None));
        assert!(buffer.frames().any(|frame| frame.is_static && frame.parent == Some("base")));
    }

    #[test]
    fn memory_stays_within_its_bounds() {
        let limits = Limits { samples: 100, samples_per_frame: 70, ..Limits::default() };
        let mut buffer = Buffer::with_limits(limits);
        for i in 0..1000 {
            for child in ["a", "b", "c"].into_iter().take(1 + i % 3) {
                buffer.insert("root", child, at(i as f64 * 0.001), x(1.0), false).unwrap();
                let held: usize = (buffer.edges.iter())
                    .map(|edge| if let Edge::Moving(history) = edge { history.len() } else { 0 })
                    .sum();
                assert_eq!(buffer.samples(), held);
                assert!(held <= 100);
            }
        }
        // The slow ones are not starved by the fast one.
        assert!(buffer.frames().skip(1).all(|frame| {
            let (oldest, newest) = frame.known.unwrap();
            newest.nanos_since(oldest) > 20_000_000
        }));
    }
}
