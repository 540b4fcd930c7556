//! Against models that say the same in the plainest way.

use nalgebra::{Point3, UnitQuaternion};
use proptest::prelude::*;

use super::super::policy::Merge;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: i64) -> Stamp {
    Stamp::from_nanos(seconds * 1_000_000_000)
}

fn spot(x: f64) -> FramePosition {
    FramePosition { frame: "map".into(), position: Point3::new(x, 0.0, 0.0), orientation: None }
}

fn sight(name: u8, seconds: i64) -> Sighting {
    Sighting {
        key: [name; 16],
        received: at(seconds),
        is_live: true,
        event: at(seconds),
        moved: None,
        place: None,
        watched: None,
        assumed: None,
        readings: Vec::new(),
        badness: None,
    }
}

fn memo() -> Memo {
    Memo { id: "m".into(), origin: "o".into(), created: Stamp::ZERO }
}

/// Looks and notes.
fn see(tracker: &mut SightingTracker, sight: Sighting) -> Verdict {
    tracker.at(sight.received);
    let verdict = tracker.look(&sight);
    tracker.note(sight, verdict, memo);
    verdict
}

#[test]
fn a_threshold_tells_once_until_it_was_back() {
    let low = Threshold { is_above: false, at: 0.2, back_at: 0.3 };
    let mut tracker =
        SightingTracker::new(Policy { thresholds: vec![low], ..Policy::default() }, 9);
    let readings = [0.5, 0.21, 0.19, 0.1, 0.25, 0.19, f64::NAN, 0.31, 0.25, 0.15];
    let kept: Vec<bool> = readings
        .iter()
        .zip(0..)
        .map(|(reading, n)| {
            let sight = Sighting { readings: vec![Some(*reading)], ..sight(0, n) };
            see(&mut tracker, sight) == Verdict::New
        })
        .collect();
    assert_eq!(kept, [false, false, true, false, false, false, false, false, false, true]);
}

#[test]
fn a_crossing_that_came_too_soon_is_told_later() {
    let high = Threshold { is_above: true, at: 1.0, back_at: 0.5 };
    let policy =
        Policy { thresholds: vec![high], at_most_every: Some(10 * SECOND), ..Policy::default() };
    let mut tracker = SightingTracker::new(policy, 9);
    let mut reads =
        |n, reading| see(&mut tracker, Sighting { readings: vec![Some(reading)], ..sight(0, n) });
    assert_eq!(reads(0, 2.0), Verdict::New);
    assert!(matches!(reads(1, 0.0), Verdict::Unchanged(Some(_))));
    assert!(matches!(reads(2, 2.0), Verdict::TooSoon(Some(_))));
    assert_eq!(reads(10, 2.0), Verdict::New);
}

#[test]
fn what_is_assumed_at_first_is_no_change() {
    let policy = Policy { on_change: true, ..Policy::default() };
    let mut tracker = SightingTracker::new(policy, 9);
    let mut is = |n, watched: u8, assumed: Option<Key>| {
        let sight = Sighting { watched: Some([watched; 16]), assumed, ..sight(n, 0) };
        see(&mut tracker, sight) == Verdict::New
    };
    assert!(is(0, 0, None));
    assert!(!is(1, 0, Some([0; 16])));
    assert!(is(1, 2, Some([0; 16])));
    assert!(is(1, 0, Some([0; 16])), "back to what was assumed is a change from what was told");
}

#[test]
fn whose_clock_was_ahead_does_not_say_when_it_was_seen_last() {
    let merge = Merge { within_m: None, within: Duration::MAX, update_every: Duration::ZERO };
    let last = |is_live, event, received| {
        let policy = Policy { merge: Some(merge), ..Policy::default() };
        let mut tracker = SightingTracker::new(policy, 9);
        see(&mut tracker, Sighting { event: at(1000), ..sight(0, 1) });
        let again = Sighting { is_live, event: at(event), ..sight(0, received) };
        let verdict = tracker.look(&again);
        tracker.note(again, verdict, memo).unwrap().0.last
    };
    assert_eq!(last(true, 2, 2), at(2));
    assert_eq!(last(true, 970, 1001), at(1000), "late");
    assert_eq!(last(true, 2, 1001), at(2), "by no clock");
    assert_eq!(last(false, 2, 2), at(1000), "recorded");
}

#[test]
fn another_frame_and_a_lost_place_are_told() {
    let policy = Policy { beyond_m: Some(1.0), ..Policy::default() };
    let mut tracker = SightingTracker::new(policy, 9);
    let mut is = |moved| see(&mut tracker, Sighting { moved, ..sight(0, 0) }) == Verdict::New;
    assert!(is(Some(spot(0.0))));
    assert!(!is(Some(spot(1.0))));
    assert!(is(Some(FramePosition { frame: "odom".into(), ..spot(0.0) })));
    assert!(is(None));
    assert!(!is(None));
}

#[test]
fn a_recording_that_begins_again_is_seen_again() {
    let policy = Policy { at_most_every: Some(60 * SECOND), ..Policy::default() };
    let mut tracker = SightingTracker::new(policy, 9);
    assert_eq!(see(&mut tracker, sight(0, 1000)), Verdict::New);
    assert!(matches!(see(&mut tracker, sight(0, 995)), Verdict::TooSoon(_)), "disorder");
    assert_eq!(see(&mut tracker, sight(0, 5)), Verdict::New, "time began again");
}

#[test]
fn what_was_only_counted_is_told_in_the_end() {
    let merge = Merge { within_m: None, within: 100 * SECOND, update_every: 10 * SECOND };
    let mut tracker = SightingTracker::new(Policy { merge: Some(merge), ..Policy::default() }, 1);
    for n in 0..4 {
        see(&mut tracker, sight(0, n));
    }
    assert!(tracker.untold(at(9), false).is_empty());
    let told = tracker.untold(at(10), false);
    assert_eq!((told.len(), told[0].untold, told[0].count, told[0].last), (1, 3, 4, at(3)));
    assert!(tracker.untold(at(30), true).is_empty(), "told once");
    see(&mut tracker, sight(0, 11));
    see(&mut tracker, sight(1, 12));
    let told = tracker.untold(at(12), false);
    assert_eq!((told.len(), told[0].untold), (1, 1), "what had to make room is told at once");
}

#[test]
fn an_hour_has_room_for_so_many() {
    let policy = Policy { at_most_per_hour: Some(2), ..Policy::default() };
    let mut tracker = SightingTracker::new(policy, 9);
    let mut is_new = |name, seconds| see(&mut tracker, sight(name, seconds)) == Verdict::New;
    let kept = [(0, 0), (1, 10), (2, 20), (0, 3599), (3, 3600), (4, 3601), (5, 3602)]
        .map(|(name, seconds)| is_new(name, seconds));
    assert_eq!(kept, [true, true, false, false, true, true, false]);
}

/// A sight: a name, seconds since the sight before, a place and a reading.
fn sights() -> impl Strategy<Value = Vec<(u8, i64, i32, i32)>> {
    proptest::collection::vec((0..3u8, 0..8i64, -6..6i32, -3..4i32), 0..80)
}

proptest! {
    #[test]
    fn beyond_a_distance_and_at_most_so_often(seen in sights(), limit in 0..5u8, every in 0..9u64) {
        let policy = Policy {
            beyond_m: Some(f64::from(limit)),
            at_most_every: Some(Duration::from_secs(every)),
            ..Policy::default()
        };
        let mut tracker = SightingTracker::new(policy, 1000);
        let mut kept: Vec<(u8, i64, i32)> = Vec::new();
        let mut now = 0;
        for (name, wait, x, _) in seen {
            now += wait;
            let last = kept.iter().rfind(|(other, ..)| *other == name);
            let keep = last.is_none_or(|(_, when, was)| {
                (x - was).abs() > i32::from(limit) && now >= when + every as i64
            });
            let verdict =
                see(&mut tracker, Sighting { moved: Some(spot(f64::from(x))), ..sight(name, now) });
            prop_assert_eq!(verdict == Verdict::New, keep);
            if keep {
                kept.push((name, now, x));
            }
        }
    }

    #[test]
    fn across_thresholds_and_on_change(seen in sights(), at in -2..3i32, gap in 0..3i32, above: bool, change: bool) {
        let sign = if above { 1 } else { -1 };
        let threshold = Threshold {
            is_above: above,
            at: f64::from(at),
            back_at: f64::from(at - sign * gap),
        };
        let policy =
            Policy { thresholds: vec![threshold], on_change: change, ..Policy::default() };
        let mut tracker = SightingTracker::new(policy, 1000);
        // For each name: what was kept last, and whether a crossing was told of and is not back.
        let mut states = [(None, false); 3];
        let mut now = 0;
        for (name, wait, value, reading) in seen {
            now += wait;
            let (last, told) = &mut states[usize::from(name)];
            let beyond = sign * (reading - at) > 0;
            if sign * (reading - (at - sign * gap)) <= 0 {
                *told = false;
            }
            let keep = (beyond && !*told) || (change && *last != Some(value));
            let sight = Sighting {
                watched: change.then_some([value.to_le_bytes()[0]; 16]),
                readings: vec![Some(f64::from(reading))],
                ..sight(name, now)
            };
            prop_assert_eq!(see(&mut tracker, sight) == Verdict::New, keep);
            if keep {
                *last = Some(value);
                *told |= beyond;
            }
        }
    }

    #[test]
    fn the_same_thing_nearby(seen in sights(), within_m in 0..4u8, within in 0..20u64, every in 0..9u64) {
        let merge = Merge {
            within_m: Some(f64::from(within_m)),
            within: Duration::from_secs(within),
            update_every: Duration::from_secs(every),
        };
        let mut tracker = SightingTracker::new(Policy { merge: Some(merge), ..Policy::default() }, 1000);
        // name, place, seen, stored, count
        let mut things: Vec<(u8, i32, i64, i64, u64)> = Vec::new();
        let mut now = 0;
        let mut told = 0;
        let total = seen.len() as u64;
        for (name, wait, x, _) in seen {
            now += wait;
            let near = |thing: &(u8, i32, i64, i64, u64)| {
                thing.0 == name
                    && (thing.1 - x).abs() <= i32::from(within_m)
                    && now - thing.2 <= within as i64
            };
            // The nearest, and of several that seen last: of equal rank the later in the list.
            let mut order: Vec<usize> = (0..things.len()).filter(|n| near(&things[*n])).collect();
            order.sort_by_key(|n| ((things[*n].1 - x).abs(), std::cmp::Reverse(*n)));
            let sight = Sighting { place: Some(spot(f64::from(x))), ..sight(name, now) };
            tracker.at(sight.received);
            let verdict = tracker.look(&sight);
            let noted = tracker.note(sight, verdict, memo).map(|(thing, seen)| (thing.count, seen));
            let (count, untold) = noted.unwrap();
            match order.first() {
                None => {
                    prop_assert_eq!(verdict, Verdict::New);
                    things.push((name, x, now, now, 1));
                }
                Some(&n) => {
                    let mut thing = things.remove(n);
                    let again = now - thing.3 >= every as i64;
                    prop_assert_eq!(matches!(verdict, Verdict::Again(_)), again);
                    prop_assert_eq!(matches!(verdict, Verdict::Counted(_)), !again);
                    thing = (name, x, now, if again { now } else { thing.3 }, thing.4 + 1);
                    things.push(thing);
                }
            }
            prop_assert_eq!(count, things.last().unwrap().4);
            if !matches!(verdict, Verdict::Counted(_)) {
                told += untold;
            }
        }
        // Nothing that was seen is lost, and nothing counted twice.
        told += tracker.untold(at(now), true).iter().map(|thing| thing.untold).sum::<u64>();
        prop_assert_eq!(told, total);
    }
}

#[test]
fn what_is_known_of_a_thing_moves_with_its_memory() {
    let merge = Merge { within_m: Some(1.0), within: 3600 * SECOND, update_every: 60 * SECOND };
    let policy = Policy { merge: Some(merge), ..Policy::default() };
    let quarter =
        UnitQuaternion::from_axis_angle(&nalgebra::Vector3::z_axis(), std::f64::consts::FRAC_PI_2);
    let spot = |x, y, orientation| FramePosition {
        frame: "map".into(),
        position: Point3::new(x, y, 0.0),
        orientation: Some(orientation),
    };
    let north = UnitQuaternion::identity();
    let seen = |seconds, x, y| Sighting { place: Some(spot(x, y, north)), ..sight(0, seconds) };
    let mut tracker = SightingTracker::new(policy, 9);
    assert_eq!(see(&mut tracker, seen(0, 1.0, 0.0)), Verdict::New);
    // It has moved on since that was written.
    for (seconds, x) in [(1, 1.9), (2, 2.8)] {
        assert!(matches!(see(&mut tracker, seen(seconds, x, 0.0)), Verdict::Counted(_)));
    }
    assert!(tracker.has_memory("m") && !tracker.has_memory("n"));
    tracker.map_moved("n", &spot(50.0, 50.0, north));
    // The map turned to the left about its origin, and all that is in it.
    tracker.map_moved("m", &spot(0.0, 1.0, quarter));
    assert_eq!(tracker.look(&seen(3, 2.8, 0.0)), Verdict::New);
    assert!(matches!(see(&mut tracker, seen(3, 0.0, 2.8)), Verdict::Counted(_)));
    // And back.
    tracker.map_moved("m", &spot(1.0, 0.0, north));
    assert!(matches!(see(&mut tracker, seen(4, 2.8, 0.0)), Verdict::Counted(_)));
    // Elsewhere, where it was is unknown.
    let camera = FramePosition { frame: "camera".into(), ..spot(0.0, 0.0, north) };
    tracker.map_moved("m", &camera);
    assert!(matches!(tracker.look(&seen(5, 2.8, 0.0)), Verdict::Counted(_)));
}

#[test]
fn a_robot_that_the_map_moved_has_not_moved() {
    let policy = Policy { beyond_m: Some(1.0), ..Policy::default() };
    let mut tracker = SightingTracker::new(policy, 9);
    let seen = |n, x| Sighting { moved: Some(spot(x)), place: Some(spot(x)), ..sight(0, n) };
    assert_eq!(see(&mut tracker, seen(0, 0.0)), Verdict::New);
    tracker.map_moved("m", &spot(100.0));
    assert!(matches!(see(&mut tracker, seen(1, 100.5)), Verdict::Unchanged(_)));
    assert_eq!(see(&mut tracker, seen(2, 101.5)), Verdict::New);
}
