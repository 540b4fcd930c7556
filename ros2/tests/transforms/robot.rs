//! A robot drives a course with a closed form; a buffer fed as a robot feeds it must tell where it was.
//!
//! `odom` → `base_link` at 50 Hz is a loop driven at about 1 m/s over uneven ground. `map` → `odom` at
//! 1 Hz corrects the drift of it, with one jump where a loop is closed. The camera is bolted on. Truth is
//! computed from the formulas by 4 × 4 matrices, at moments between all samples.

use std::f64::consts::TAU;
use std::time::Duration;

use omir_ros2::stamp::Stamp;
use omir_ros2::tf::Buffer;
use omir_ros2::tf::transform::transform;

use super::matrix::{self, Mat, Quat};

const METRES: f64 = 0.001;
const DEGREES: f64 = 0.1;
/// The beginning of the recording: an ordinary wall clock, so that nanoseconds count.
const START: i64 = 1_780_141_325_123_456_789;

/// Rotation about x, then y, then z, all fixed (REP-103: roll, pitch, yaw).
fn quat(roll: f64, pitch: f64, yaw: f64) -> Quat {
    let (sr, cr) = (roll / 2.0).sin_cos();
    let (sp, cp) = (pitch / 2.0).sin_cos();
    let (sy, cy) = (yaw / 2.0).sin_cos();
    [
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    ]
}

type Pose = ([f64; 3], Quat);

/// Returns the odometry's pose of the robot after so many seconds.
fn base_in_odom(t: f64) -> Pose {
    let turn = TAU * t / 20.0;
    let position = [3.0 * turn.sin(), 1.5 * (2.0 * turn).sin(), 0.05 * (3.0 * turn).sin()];
    (position, quat(0.02 * (2.0 * turn).cos(), 0.03 * turn.sin(), turn + 0.3 * (2.0 * turn).sin()))
}

/// Returns the localisation at whole seconds: drift, and a jump at 20 s.
fn correction(second: i64) -> ([f64; 3], f64) {
    let t = second as f64;
    let jump = if second >= 20 { 0.4 } else { 0.0 };
    ([0.011 * t - jump, -0.007 * t + jump / 2.0, 0.0], 0.002 * t - jump / 10.0)
}

fn odom_in_map_at(second: i64) -> Pose {
    let (position, yaw) = correction(second);
    (position, quat(0.0, 0.0, yaw))
}

/// In between, tf takes it to move evenly.
fn odom_in_map(t: f64) -> Pose {
    let (from, from_yaw) = correction(t.floor() as i64);
    let (to, to_yaw) = correction(t.floor() as i64 + 1);
    let ratio = t - t.floor();
    let between = |a: f64, b: f64| a * (1.0 - ratio) + b * ratio;
    let position = std::array::from_fn(|i| between(from[i], to[i]));
    (position, quat(0.0, 0.0, between(from_yaw, to_yaw)))
}

/// Looks ahead and down, as optical frames do: z forward, x right.
fn camera_in_base() -> Pose {
    ([0.21, -0.03, 0.34], quat(-1.75, 0.0, -1.57))
}

fn rigid((position, rotation): Pose) -> Mat {
    matrix::rigid(rotation, position)
}

fn camera_in_map(t: f64) -> Mat {
    let base = matrix::mul(&rigid(odom_in_map(t)), &rigid(base_in_odom(t)));
    matrix::mul(&base, &rigid(camera_in_base()))
}

fn stamp(nanos: i64) -> Stamp {
    Stamp::from_nanos(START + nanos)
}

fn insert(tf: &mut Buffer, parent: &str, child: &str, nanos: i64, (position, rotation): Pose) {
    let transform = transform(position, rotation).unwrap();
    tf.insert(parent, child, stamp(nanos), transform, child == "camera").unwrap();
}

/// Even, but with no pattern that samples have: multiples of the golden ratio.
fn moments(count: i64, from: i64, to: i64) -> impl Iterator<Item = i64> {
    (0..count).map(move |i| {
        from + ((i as f64 * 0.618_033_988_749_894_9).fract() * (to - from) as f64) as i64
    })
}

const MS: i64 = 1_000_000;
const S: i64 = 1000 * MS;

/// All transforms of 40 s in the order of their arrival: the correction 120 ms late, the odometry with
/// every seventh message after the three that follow it.
fn arrivals() -> Vec<(i64, &'static str, &'static str, i64, Pose)> {
    let mut all = vec![(0, "base_link", "camera", 0, camera_in_base())];
    for second in 0..=40 {
        all.push((second * S + 120 * MS, "map", "odom", second * S, odom_in_map_at(second)));
    }
    for i in 0..=40 * 50 {
        let at = i * 20 * MS;
        let delay = if i % 7 == 3 { 65 * MS } else { MS };
        all.push((at + delay, "odom", "base_link", at, base_in_odom(at as f64 / 1e9)));
    }
    all.sort_by_key(|arrival| arrival.0);
    all
}

fn check(tf: &Buffer, nanos: i64) {
    let t = nanos as f64 / 1e9;
    let found = tf.lookup("map", "camera", stamp(nanos)).unwrap();
    let (metres, degrees) = matrix::apart(&matrix::of(&found), &camera_in_map(t));
    assert!(metres < METRES && degrees < DEGREES, "at {t} s: {metres} m and {degrees}° off");
    let back = tf.lookup("camera", "map", stamp(nanos)).unwrap();
    let (metres, degrees) = matrix::apart(&matrix::of(&back), &matrix::inverse(&camera_in_map(t)));
    assert!(metres < METRES && degrees < DEGREES, "at {t} s back: {metres} m and {degrees}° off");
}

#[test]
fn while_it_drives_each_moment_is_right_once_it_is_known() {
    let mut tf = Buffer::new(Duration::from_secs(10));
    let mut asked = moments(4000, 0, 40 * S).collect::<Vec<_>>();
    asked.sort_unstable();
    let mut asked = asked.into_iter().peekable();
    let mut waited = Vec::new();
    let mut answered = 0;
    for (now, parent, child, at, pose) in arrivals() {
        insert(&mut tf, parent, child, at, pose);
        while let Some(nanos) = asked.next_if(|nanos| *nanos <= now) {
            waited.push(nanos);
        }
        // As a caller does it: again when the reason says that it may be there.
        waited.retain(|&nanos| match tf.lookup("map", "camera", stamp(nanos)) {
            Ok(_) => {
                check(&tf, nanos);
                answered += 1;
                false
            }
            Err(error) => {
                let start = nanos < 2 * S;
                assert!(start || error.expected().is_some(), "{error}");
                assert!(now - nanos < 1500 * MS, "waits for good: {error}");
                true
            }
        });
    }
    assert!(answered > 3800, "{answered}");
}

#[test]
fn afterwards_the_last_ten_seconds_are_known_and_no_more() {
    let mut tf = Buffer::new(Duration::from_secs(10));
    for (_, parent, child, at, pose) in arrivals() {
        insert(&mut tf, parent, child, at, pose);
    }
    assert_eq!(tf.samples(), 11 + 501);
    for nanos in moments(4000, 30 * S, 40 * S) {
        check(&tf, nanos);
    }
    assert!(tf.lookup("map", "camera", stamp(30 * S - 1)).unwrap_err().expected().is_none());
    assert!(tf.lookup("map", "camera", stamp(40 * S + 1)).unwrap_err().expected().is_some());
    let (latest, at) = tf.latest("map", "camera").unwrap();
    assert_eq!(at, stamp(40 * S));
    assert!(matrix::apart(&matrix::of(&latest), &camera_in_map(40.0)).0 < METRES);
}

#[test]
fn what_was_seen_then_is_told_from_where_the_robot_is_now() {
    let mut tf = Buffer::new(Duration::from_secs(10));
    for (_, parent, child, at, pose) in arrivals() {
        insert(&mut tf, parent, child, at, pose);
    }
    for (then, now) in moments(500, 30 * S, 35 * S).zip(moments(500, 34 * S, 40 * S)) {
        let found = tf.across(("camera", stamp(now)), ("camera", stamp(then)), "map").unwrap();
        let expected = matrix::mul(
            &matrix::inverse(&camera_in_map(now as f64 / 1e9)),
            &camera_in_map(then as f64 / 1e9),
        );
        let (metres, degrees) = matrix::apart(&matrix::of(&found), &expected);
        // Two look-ups, so twice the error.
        assert!(metres < 2.0 * METRES && degrees < 2.0 * DEGREES, "{metres} m and {degrees}° off");
    }
}
