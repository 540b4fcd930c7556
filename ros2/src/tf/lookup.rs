//! The transform between two frames: up both branches to the frame that is above both.

use std::sync::Arc;

use super::buffer::{Buffer, Edge};
use super::error::LookupError;
use super::frames::{FrameId, normalised};
use super::history::History;
use super::transform::Transform;
use crate::stamp::Stamp;

/// As tf2: no tree is deeper.
pub(super) const DEEPEST: usize = 1000;

/// End of a walk upwards.
#[derive(Clone, Copy)]
enum End {
    /// At a frame without a parent.
    Root(FrameId),
    /// At a frame whose transform is not known at that moment.
    Gap(FrameId),
}

impl Buffer {
    /// The transform that takes coordinates in `source` to coordinates in `target` at a moment:
    /// `p_target = transform * p_source`, as tf2's `lookupTransform`. A frame in itself is the identity
    /// at all times, known or not.
    ///
    /// Between two samples it is interpolated; outside of them it is refused. The moment is taken
    /// literally: for tf2's "time 0" call [`Buffer::latest`]. Costs O(depth · log samples).
    pub fn lookup(&self, target: &str, source: &str, at: Stamp) -> Result<Transform, LookupError> {
        match self.pair(target, source)? {
            Some((target, source)) => self.between(target, source, at, None),
            None => Ok(Transform::identity()),
        }
    }

    /// The same at the latest moment at which all transforms on the way are known, and that moment;
    /// [`Stamp::ZERO`] if nothing on the way moves.
    pub fn latest(&self, target: &str, source: &str) -> Result<(Transform, Stamp), LookupError> {
        let Some((target, source)) = self.pair(target, source)? else {
            return Ok((Transform::identity(), Stamp::ZERO));
        };
        let way = self.latest_way(target, source)?;
        let at = self.latest_common(way.iter()).unwrap_or(Stamp::ZERO);
        Ok((self.between(target, source, at, None)?, at))
    }

    /// As [`Buffer::lookup`], where `source` rests in its parent until it is said to be elsewhere, and is there at
    /// once: nothing in between is worked out. All else on the way is as at that moment, or where that is still to
    /// come, at the latest that is known.
    pub fn resting(&self, target: &str, source: &str, at: Stamp) -> Result<Transform, LookupError> {
        let Some((target, source)) = self.pair(target, source)? else {
            return Ok(Transform::identity());
        };
        let rests = Some((source, at));
        match self.between(target, source, at, rests) {
            Err(error) if error.expected().is_some() => {
                let way = self.latest_way(target, source)?;
                let latest = self.latest_common(way.iter().filter(|frame| **frame != source));
                self.between(target, source, latest.unwrap_or(at), rests)
            }
            found => found,
        }
    }

    /// tf2's lookup across time: from `source` at `source_at` to `target` at `target_at`, by way of a
    /// frame that is taken not to have moved in between. "Where is now, seen from the robot, what it saw
    /// then": target `base_link` now, source `camera` then, fixed `map`.
    pub fn across(
        &self,
        (target, target_at): (&str, Stamp),
        (source, source_at): (&str, Stamp),
        fixed: &str,
    ) -> Result<Transform, LookupError> {
        Ok(self.lookup(target, fixed, target_at)? * self.lookup(fixed, source, source_at)?)
    }

    /// Both frames, `None` if they are the same.
    fn pair(&self, target: &str, source: &str) -> Result<Option<(FrameId, FrameId)>, LookupError> {
        let target = normalised(target).ok_or(LookupError::NoName)?;
        let source = normalised(source).ok_or(LookupError::NoName)?;
        if target == source {
            return Ok(None);
        }
        Ok(Some((self.known(target)?, self.known(source)?)))
    }

    fn known(&self, name: &str) -> Result<FrameId, LookupError> {
        self.frames.find(name).ok_or_else(|| LookupError::UnknownFrame {
            frame: name.into(),
            nearest: self.frames.nearest(name).map(Into::into),
            known: self.frames.len(),
        })
    }

    fn between(
        &self,
        target: FrameId,
        source: FrameId,
        at: Stamp,
        rests: Option<(FrameId, Stamp)>,
    ) -> Result<Transform, LookupError> {
        // From the source to each frame above it.
        let mut above = Vec::with_capacity(16);
        let source_end = self.walk(source, at, rests, |frame, transform| {
            above.push((frame, transform));
            frame == target
        })?;
        let mut found = None;
        let target_end = self.walk(target, at, rests, |frame, from_target| {
            let shared = above.iter().find(|(above, _)| *above == frame);
            found = shared.map(|(_, from_source)| from_target.inverse() * from_source);
            found.is_some()
        })?;
        match (found, source_end, target_end) {
            (Some(transform), ..) => Ok(transform),
            (None, source_end, target_end) => {
                Err(self.why_not(target, source, at, [source_end, target_end]))
            }
        }
    }

    /// Visits a frame and each one above it with the transform from the first to it, until `visit` says
    /// that it is enough (then `None`). A frame that `rests` is where it was said to be last by that time.
    fn walk(
        &self,
        from: FrameId,
        at: Stamp,
        rests: Option<(FrameId, Stamp)>,
        mut visit: impl FnMut(FrameId, Transform) -> bool,
    ) -> Result<Option<End>, LookupError> {
        let (mut frame, mut transform) = (from, Transform::identity());
        for _ in 0..=DEEPEST {
            if visit(frame, transform) {
                return Ok(None);
            }
            let (parent, up) = match &self.edges[frame.index()] {
                Edge::None => return Ok(Some(End::Root(frame))),
                Edge::Static { parent, transform } => (*parent, *transform),
                Edge::Moving(history) => {
                    let found = match rests {
                        Some((resting, by)) if resting == frame => history.said(by),
                        _ => history.at(at),
                    };
                    match found {
                        Some(found) => found,
                        None => return Ok(Some(End::Gap(frame))),
                    }
                }
            };
            transform = up * transform;
            frame = parent;
        }
        Err(LookupError::TooDeep { frame: self.name(from) })
    }

    /// The latest moment at which all on the way is known; `None` if nothing on it moves.
    fn latest_common<'w>(&self, way: impl Iterator<Item = &'w FrameId>) -> Option<Stamp> {
        way.filter_map(|frame| Some(self.history(*frame)?.newest().stamp)).min()
    }

    /// The frames whose transforms to their parents lead from one frame to the other, by the newest
    /// parents.
    fn latest_way(&self, target: FrameId, source: FrameId) -> Result<Vec<FrameId>, LookupError> {
        let mut way = Vec::with_capacity(16);
        self.climb(source, |frame| {
            way.push(frame);
            frame == target
        })?;
        let source_side = way.len();
        let mut shared = None;
        self.climb(target, |frame| {
            shared = way[..source_side].iter().position(|above| *above == frame);
            way.push(frame);
            shared.is_some()
        })?;
        let Some(shared) = shared else {
            return Err(LookupError::Unconnected {
                target: self.name(target),
                target_root: self.name(way[way.len() - 1]),
                source: self.name(source),
                source_root: self.name(way[source_side - 1]),
            });
        };
        way.pop();
        way.drain(shared..source_side);
        Ok(way)
    }

    /// As [`Buffer::walk`], by the newest parents and without the transforms.
    fn climb(
        &self,
        from: FrameId,
        mut visit: impl FnMut(FrameId) -> bool,
    ) -> Result<(), LookupError> {
        let mut frame = from;
        for _ in 0..=DEEPEST {
            if visit(frame) {
                return Ok(());
            }
            let Some(parent) = self.edges[frame.index()].latest_parent() else { return Ok(()) };
            frame = parent;
        }
        Err(LookupError::TooDeep { frame: self.name(from) })
    }

    /// The reason worth telling: two trees, if they are; else a gap that will not close; else, of all
    /// gaps on the way, the one that closes last.
    fn why_not(
        &self,
        target: FrameId,
        source: FrameId,
        at: Stamp,
        ends: [Option<End>; 2],
    ) -> LookupError {
        let way = match self.latest_way(target, source) {
            Ok(way) => way,
            Err(error) => return error,
        };
        // By the parents of that moment the way may have been another.
        let stuck = ends.into_iter().filter_map(|end| match end {
            Some(End::Gap(frame)) => Some(frame),
            _ => None,
        });
        let gaps = way.into_iter().chain(stuck).filter_map(|on| self.gap(target, source, at, on));
        let gap = gaps.max_by_key(|gap| gap.expected().unwrap_or(Stamp::MAX));
        // They hang together now, but at that moment there were two roots.
        let [source_root, target_root] = ends.map(|end| match end {
            Some(End::Root(root) | End::Gap(root)) => self.name(root),
            None => self.name(target),
        });
        let (target, source) = (self.name(target), self.name(source));
        gap.unwrap_or(LookupError::Unconnected { target, target_root, source, source_root })
    }

    /// Returns what is missing of a frame's transform to its parent at a moment.
    fn gap(
        &self,
        target: FrameId,
        source: FrameId,
        at: Stamp,
        child: FrameId,
    ) -> Option<LookupError> {
        let history = self.history(child).filter(|history| history.at(at).is_none())?;
        let (oldest, newest) = (history.oldest(), history.newest());
        let later = at > newest.stamp;
        let expected = later.then(|| {
            let period = i64::try_from(history.mean_period().as_nanos()).unwrap_or(i64::MAX).max(1);
            let missing = at.nanos_since(newest.stamp);
            let periods = missing / period + i64::from(missing % period != 0);
            let expected = newest.stamp.nanos().saturating_add(periods.saturating_mul(period));
            // With one sample there is no rate to go by.
            Stamp::from_nanos(if history.len() == 1 { at.nanos() } else { expected })
        });
        Some(LookupError::Extrapolation {
            target: self.name(target),
            source: self.name(source),
            parent: self.name(if later { newest.parent } else { oldest.parent }),
            child: self.name(child),
            oldest: oldest.stamp,
            newest: newest.stamp,
            at,
            expected,
        })
    }

    fn history(&self, frame: FrameId) -> Option<&History> {
        match &self.edges[frame.index()] {
            Edge::Moving(history) => Some(history),
            _ => None,
        }
    }

    fn name(&self, frame: FrameId) -> Arc<str> {
        Arc::clone(self.frames.name(frame))
    }
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

    /// map → odom at 1 Hz, odom → base_link at 10 Hz, base_link → camera and → lidar static.
    fn robot() -> Buffer {
        let mut buffer = Buffer::default();
        for i in 0..=5 {
            buffer.insert("map", "odom", at(f64::from(i)), x(f64::from(i) * 100.0), false).unwrap();
        }
        for i in 0..=52 {
            let stamp = Stamp::from_nanos(i * 100_000_000);
            buffer.insert("odom", "base_link", stamp, x(i as f64), false).unwrap();
        }
        buffer.insert("base_link", "camera", Stamp::ZERO, x(0.5), true).unwrap();
        buffer.insert("base_link", "lidar", Stamp::ZERO, x(0.25), true).unwrap();
        buffer
    }

    fn reason(result: Result<Transform, LookupError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn up_down_and_across() {
        let buffer = robot();
        let metres = |target, source, seconds| {
            buffer.lookup(target, source, at(seconds)).unwrap().translation.x
        };
        assert_eq!(metres("map", "camera", 2.0), 220.5);
        assert_eq!(metres("camera", "map", 2.0), -220.5);
        assert_eq!(metres("map", "/odom", 2.5), 250.0);
        assert!((metres("odom", "base_link", 2.55) - 25.5).abs() < 1e-12);
        // Beside each other: nothing above them is asked for.
        assert_eq!(metres("lidar", "camera", 1e6), 0.25);
        assert_eq!(metres("odom", "base_link", 5.125), 51.25);
        assert_eq!(metres("nowhere", "/nowhere", 1.0), 0.0);
    }

    #[test]
    fn the_latest_is_the_latest_of_all() {
        let buffer = robot();
        assert_eq!(buffer.latest("map", "camera").unwrap(), (x(550.5), at(5.0)));
        assert_eq!(buffer.latest("camera", "odom").unwrap(), (x(-52.5), at(5.2)));
        assert_eq!(buffer.latest("lidar", "camera").unwrap(), (x(0.25), Stamp::ZERO));
        assert_eq!(buffer.latest("map", "map").unwrap(), (x(0.0), Stamp::ZERO));
    }

    #[test]
    fn two_times_and_a_fixed_frame() {
        let buffer = robot();
        // The point that the camera saw at 1 s, seen from the robot at 3 s: 110.5 m in the map, robot at 330 m.
        let seen = buffer.across(("base_link", at(3.0)), ("camera", at(1.0)), "map").unwrap();
        assert_eq!(seen.translation.x, 110.5 - 330.0);
    }

    #[test]
    fn extrapolation_tells_what_is_missing_and_when_it_may_come() {
        let buffer = robot();
        let early = buffer.lookup("map", "camera", at(5.15)).unwrap_err();
        assert_eq!(
            early.to_string(),
            "from \"camera\" to \"map\" at 5.150000000: the transform of \"odom\" in \"map\" is known from \
             0.000000000 to 5.000000000, 150 ms too early; it may come 850 ms after the time asked for"
        );
        assert_eq!(early.expected(), Some(at(6.0)));
        assert_eq!(early.wait(at(5.2)).unwrap().as_millis(), 800);
        assert_eq!(early.wait(at(7.0)).unwrap().as_millis(), 0);
        // Two gaps: the one that closes last.
        assert_eq!(buffer.lookup("map", "camera", at(6.05)).unwrap_err().expected(), Some(at(7.0)));
        let late = buffer.lookup("map", "camera", at(-0.25)).unwrap_err();
        assert!(late.to_string().ends_with("to 5.200000000, 250 ms too late"), "{late}");
        assert_eq!((late.expected(), late.kind()), (None, "transform-too-old"));
    }

    #[test]
    fn one_sample_is_known_at_its_moment_only() {
        let mut buffer = Buffer::default();
        buffer.insert("map", "odom", at(3.0), x(1.0), false).unwrap();
        assert_eq!(buffer.lookup("map", "odom", at(3.0)), Ok(x(1.0)));
        assert!(
            reason(buffer.lookup("map", "odom", at(3.1))).contains("at 3.000000000 only, 100 ms")
        );
        assert_eq!(buffer.lookup("map", "odom", at(2.9)).unwrap_err().kind(), "transform-too-old");
    }

    #[test]
    fn a_gap_that_will_not_close_is_told_first() {
        let mut buffer = robot();
        buffer.insert("odom", "arm", at(20.0), x(1.0), false).unwrap();
        let error = buffer.lookup("arm", "base_link", at(10.0)).unwrap_err();
        assert_eq!((error.kind(), error.expected()), ("transform-too-old", None));
    }

    #[test]
    fn trees_and_strangers_are_named() {
        let mut buffer = robot();
        buffer.insert("earth", "dock", at(1.0), x(1.0), false).unwrap();
        assert_eq!(
            reason(buffer.lookup("dock", "camera", at(1.0))),
            "no transform leads from \"camera\" to \"dock\": they are of two trees, whose roots are \"map\" \
             and \"earth\""
        );
        // Even where a transform is missing besides: waiting for it would not help.
        assert_eq!(buffer.lookup("dock", "camera", at(99.0)).unwrap_err().expected(), None);
        assert_eq!(buffer.latest("dock", "camera").unwrap_err().kind(), "unconnected-frames");
        assert_eq!(
            reason(buffer.lookup("map", "base_lnik", at(1.0))),
            "frame \"base_lnik\" is not known; is \"base_link\" meant?"
        );
        assert_eq!(
            reason(buffer.lookup("gripper", "map", at(1.0))),
            "frame \"gripper\" is not known (7 frames are)"
        );
        assert_eq!(buffer.lookup("", "map", at(1.0)), Err(LookupError::NoName));
    }

    #[test]
    fn the_past_keeps_its_parents() {
        let mut buffer = Buffer::default();
        for (parent, seconds, metres) in
            [("table", 1.0, 1.0), ("table", 2.0, 2.0), ("hand", 3.0, 7.0), ("hand", 4.0, 8.0)]
        {
            buffer.insert(parent, "cup", at(seconds), x(metres), false).unwrap();
        }
        let metres = |target, seconds| {
            buffer.lookup(target, "cup", at(seconds)).map(|transform| transform.translation.x)
        };
        assert_eq!(metres("table", 1.5), Ok(1.5));
        // In between, what was last said holds.
        assert_eq!(metres("table", 2.75), Ok(2.0));
        assert_eq!(metres("hand", 3.5), Ok(7.5));
        assert_eq!(metres("hand", 1.5).unwrap_err().kind(), "unconnected-frames");
        assert_eq!(buffer.latest("hand", "cup").unwrap(), (x(8.0), at(4.0)));
    }

    #[test]
    fn a_circle_in_the_past_ends() {
        let mut buffer = Buffer::default();
        buffer.insert("a", "b", at(1.0), x(1.0), false).unwrap();
        buffer.insert("a", "b", at(2.0), x(1.0), false).unwrap();
        buffer.insert("c", "b", at(3.0), x(1.0), false).unwrap();
        buffer.insert("b", "a", at(3.0), x(1.0), false).unwrap();
        buffer.insert("b", "a", at(1.0), x(1.0), false).unwrap();
        assert_eq!(buffer.lookup("c", "a", at(1.5)).unwrap_err().kind(), "loop");
    }

    #[test]
    fn very_deep_trees_are_walked_up_to_tf2s_limit() {
        let mut buffer = Buffer::default();
        for i in 0..1100 {
            let (parent, child) = (format!("f{i}"), format!("f{}", i + 1));
            buffer.insert(&parent, &child, Stamp::ZERO, x(1.0), true).unwrap();
        }
        assert_eq!(buffer.lookup("f0", "f1000", at(1.0)), Ok(x(1000.0)));
        assert_eq!(buffer.lookup("f0", "f1001", at(1.0)).unwrap_err().kind(), "loop");
        // The short way is found even where the root is too far.
        assert_eq!(buffer.lookup("f1090", "f1100", at(1.0)), Ok(x(10.0)));
    }
}
