//! Random transforms into the buffer and into a list, and every look-up in both.

use std::collections::BTreeMap;
use std::time::Duration;

use omir_ros2::stamp::Stamp;
use omir_ros2::tf::transform::transform;
use omir_ros2::tf::{Buffer, LookupError};
use proptest::prelude::*;

use super::matrix::{self, IDENTITY, Mat, Quat};

const FRAMES: [&str; 7] = ["map", "odom", "base", "arm", "hand", "camera", "cup"];
const KEEP_MS: i64 = 10_000;

#[derive(Clone, Debug)]
struct Op {
    parent: usize,
    child: usize,
    /// Against 100 ms per step.
    jitter_ms: i64,
    position: [f64; 3],
    rotation: Quat,
    is_static: bool,
}

#[derive(Clone, Copy)]
struct Sample {
    at: i64,
    parent: usize,
    position: [f64; 3],
    rotation: Quat,
}

/// The transforms of one child: everything in a list, searched from end to end.
struct Transforms {
    is_static: bool,
    samples: Vec<Sample>,
    refused: Vec<i64>,
}

#[derive(Default)]
struct Model {
    told: BTreeMap<usize, Transforms>,
    named: Vec<usize>,
}

impl Model {
    fn latest(&self, child: usize) -> Option<Sample> {
        self.told.get(&child)?.samples.iter().max_by_key(|sample| sample.at).copied()
    }

    fn latest_chain(&self, from: usize) -> Vec<usize> {
        let mut chain = vec![from];
        while let Some(up) = self.latest(chain[chain.len() - 1]) {
            chain.push(up.parent);
        }
        chain
    }

    fn insert(&mut self, new: Sample, child: usize, is_static: bool) -> Result<(), &'static str> {
        if new.parent == child {
            return Err("self-parent");
        }
        let newest = self.latest(child);
        let told = self.told.get(&child);
        let moving = told.filter(|told| !told.is_static && !is_static);
        let too_old = moving.is_some() && newest.is_some_and(|newest| new.at < newest.at - KEEP_MS);
        // Refused ten times with rising stamps: a new beginning.
        let restart = too_old
            && moving.is_some_and(|told| {
                told.refused.len() >= 9 && told.refused.iter().all(|at| *at < new.at)
            });
        let leads = moving.is_none() || restart || newest.is_none_or(|newest| new.at >= newest.at);
        let changes = leads && newest.is_none_or(|newest| newest.parent != new.parent);
        if changes && self.latest_chain(new.parent).contains(&child) {
            return Err("loop");
        }
        for frame in [new.parent, child] {
            if !self.named.contains(&frame) {
                self.named.push(frame);
            }
        }
        let told = self.told.entry(child).or_insert(Transforms {
            is_static,
            samples: Vec::new(),
            refused: Vec::new(),
        });
        if too_old && !restart {
            if told.refused.iter().all(|at| *at < new.at) {
                told.refused.push(new.at);
            }
            return Err("too-old");
        }
        told.refused.clear();
        if is_static || told.is_static || restart {
            told.samples.clear();
        }
        told.is_static = is_static;
        told.samples.retain(|sample| sample.at != new.at);
        told.samples.push(new);
        let newest = told.samples.iter().map(|sample| sample.at).max().unwrap_or(new.at);
        told.samples.retain(|sample| sample.at >= newest - KEEP_MS);
        Ok(())
    }

    fn up(&self, child: usize, at: i64) -> Option<(usize, Mat)> {
        let told = self.told.get(&child)?;
        let as_matrix = |sample: &Sample| matrix::rigid(sample.rotation, sample.position);
        if told.is_static {
            return told.samples.first().map(|sample| (sample.parent, as_matrix(sample)));
        }
        let before = told.samples.iter().filter(|sample| sample.at <= at).max_by_key(|s| s.at)?;
        let after = told.samples.iter().filter(|sample| sample.at >= at).min_by_key(|s| s.at)?;
        if before.at == after.at || before.parent != after.parent {
            return Some((before.parent, as_matrix(before)));
        }
        let ratio = (at - before.at) as f64 / (after.at - before.at) as f64;
        let position =
            std::array::from_fn(|i| (1.0 - ratio) * before.position[i] + ratio * after.position[i]);
        let rotation = matrix::slerp(before.rotation, after.rotation, ratio);
        Some((before.parent, matrix::rigid(rotation, position)))
    }

    /// From `from` to each frame above it, and whether that ends.
    fn chain(&self, from: usize, at: i64) -> (Vec<(usize, Mat)>, bool) {
        let mut chain = vec![(from, IDENTITY)];
        loop {
            let (frame, transform) = chain[chain.len() - 1];
            let Some((parent, up)) = self.up(frame, at) else { return (chain, true) };
            if chain.iter().any(|(passed, _)| *passed == parent) {
                return (chain, false);
            }
            chain.push((parent, matrix::mul(&up, &transform)));
        }
    }

    /// The transform, or the reasons of which one is right.
    fn lookup(&self, target: usize, source: usize, at: i64) -> Result<Mat, Vec<&'static str>> {
        if target == source {
            return Ok(IDENTITY);
        }
        if [target, source].iter().any(|frame| !self.named.contains(frame)) {
            return Err(vec!["unknown-frame"]);
        }
        let ((ups, ups_end), (downs, downs_end)) = (self.chain(source, at), self.chain(target, at));
        let meets = ups.iter().any(|(frame, _)| *frame == target) || ups_end;
        let found = downs.iter().filter(|_| meets).find_map(|(frame, from_target)| {
            let (_, from_source) = ups.iter().find(|(other, _)| other == frame)?;
            Some(matrix::mul(&matrix::inverse(from_target), from_source))
        });
        if let Some(found) = found {
            return Ok(found);
        }
        if !ups_end || !downs_end {
            return Err(vec!["loop"]);
        }
        if self.latest_chain(source).last() != self.latest_chain(target).last() {
            return Err(vec!["unconnected-frames"]);
        }
        Err(vec!["transform-not-yet", "transform-too-old", "unconnected-frames"])
    }
}

fn op() -> impl Strategy<Value = Op> {
    let parent_of = |child: usize| prop_oneof![9 => Just(child.saturating_sub(1)), 1 => 0..7usize];
    let jitter = prop_oneof![6 => -300..300i64, 2 => -4000..0i64, 1 => -15_000..-9000i64];
    let quaternion = prop::array::uniform4(-1.0..1.0f64)
        .prop_filter("a direction", |q| q.iter().map(|c| c * c).sum::<f64>() > 0.01);
    (
        (0..7usize).prop_flat_map(move |child| (parent_of(child), Just(child))),
        jitter,
        prop::array::uniform3(-50.0..50.0f64),
        quaternion,
        prop::bool::weighted(0.02),
    )
        .prop_map(|((parent, child), jitter_ms, position, rotation, is_static)| Op {
            parent,
            child,
            jitter_ms,
            position,
            rotation: matrix::normalised(rotation),
            is_static,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_buffer_is_the_list(
        ops in prop::collection::vec(op(), 1..250),
        lookups in prop::collection::vec((0..7usize, 0..7usize, -14_000..500i64), 60),
    ) {
        let mut buffer = Buffer::new(Duration::from_millis(KEEP_MS as u64));
        let mut model = Model::default();
        let stamp = |ms: i64| Stamp::from_nanos(ms * 1_000_000);
        for (step, op) in ops.iter().enumerate() {
            let at = step as i64 * 100 + op.jitter_ms;
            let (parent, child) = (FRAMES[op.parent], FRAMES[op.child]);
            let iso = transform(op.position, op.rotation).unwrap();
            let sample =
                Sample { at, parent: op.parent, position: op.position, rotation: op.rotation };
            let told = buffer.insert(parent, child, stamp(at), iso, op.is_static);
            let expected = model.insert(sample, op.child, op.is_static);
            prop_assert_eq!(told.map(|_| ()).map_err(|e| e.kind()), expected, "step {}", step);
        }
        let samples: usize =
            model.told.values().filter(|told| !told.is_static).map(|told| told.samples.len()).sum();
        prop_assert_eq!(buffer.samples(), samples);

        for (target, source, back) in lookups {
            let at = ops.len() as i64 * 100 + back;
            let found = buffer.lookup(FRAMES[target], FRAMES[source], stamp(at));
            match (found, model.lookup(target, source, at)) {
                (Ok(found), Ok(expected)) => {
                    let (metres, degrees) = matrix::apart(&matrix::of(&found), &expected);
                    // A turn of less than 1e-8 rad between two samples is lost to rounding.
                    prop_assert!(metres < 1e-5 && degrees < 1e-5, "{metres} m, {degrees}°");
                }
                (Err(error), Err(kinds)) => {
                    prop_assert!(kinds.contains(&error.kind()), "{} {:?}", error, kinds);
                    if let LookupError::Extrapolation { at, oldest, newest, expected, .. } = error {
                        prop_assert!(at < oldest || at > newest);
                        prop_assert_eq!(expected.is_some(), at > newest);
                        prop_assert!(expected.is_none_or(|expected| expected >= at));
                    }
                }
                (found, expected) => prop_assert!(false, "{found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn the_latest_is_where_a_lookup_ends(ops in prop::collection::vec(op(), 1..100)) {
        let mut buffer = Buffer::default();
        for (step, op) in ops.iter().enumerate() {
            let at = Stamp::from_nanos((step as i64 * 100 + op.jitter_ms) * 1_000_000);
            let iso = transform(op.position, op.rotation).unwrap();
            // Refusals and new parents are the other test's.
            let parent = FRAMES[op.child.saturating_sub(1)];
            let _ = buffer.insert(parent, FRAMES[op.child], at, iso, op.is_static);
        }
        for target in FRAMES {
            for source in FRAMES {
                let Ok((latest, at)) = buffer.latest(target, source) else { continue };
                prop_assert_eq!(buffer.lookup(target, source, at), Ok(latest));
                let (back, same) = buffer.latest(source, target).unwrap();
                prop_assert_eq!(at, same);
                let round = matrix::mul(&matrix::of(&back), &matrix::of(&latest));
                let (metres, degrees) = matrix::apart(&round, &IDENTITY);
                prop_assert!(metres < 1e-9 && degrees < 1e-9, "{metres} m, {degrees}°");
            }
        }
    }
}
