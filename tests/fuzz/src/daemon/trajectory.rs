//! Recorded drives: TUM, KITTI and EuRoC.

use omir_tools::trajectory::{Fault, Pose, euroc, kitti, tum};

/// Nanoseconds in a second.
const NANOS: i128 = 1_000_000_000;

/// Reads a text as each format; what was accepted can be written out and is read the same.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(poses) = sound(tum::parse(text), text) {
        let lines = poses.iter().map(|pose| {
            let [x, y, z] = pose.position;
            let [qx, qy, qz, qw] = pose.orientation;
            format!("{} {x} {y} {z} {qx} {qy} {qz} {qw}\n", seconds(pose.time))
        });
        same(tum::parse(&lines.collect::<String>()), &poses);
    }
    if let Some(poses) = sound(euroc::parse(text), text) {
        let lines = poses.iter().map(|pose| {
            let [x, y, z] = pose.position;
            let [qx, qy, qz, qw] = pose.orientation;
            format!("{},{x},{y},{z},{qw},{qx},{qy},{qz}\n", pose.time)
        });
        same(euroc::parse(&lines.collect::<String>()), &poses);
    }
    let (poses, times) = text.split_once("\n\n").map_or((text, None), |(p, t)| (p, Some(t)));
    if let Ok(poses) = kitti::parse(poses, times) {
        sound(Ok(poses), text);
    }
}

fn seconds(time: i128) -> String {
    let (sign, time) = (if time < 0 { "-" } else { "" }, time.unsigned_abs());
    let nanos = NANOS.unsigned_abs();
    format!("{sign}{}.{:09}", time / nanos, time % nanos)
}

/// Unit quaternions, finite places, and times and lines in order.
fn sound(read: Result<Vec<Pose>, Fault>, text: &str) -> Option<Vec<Pose>> {
    let lines = text.lines().count();
    let poses = match read {
        Ok(poses) => poses,
        Err(fault) => {
            assert!(fault.line <= lines.max(1) && !fault.problem.is_empty(), "{fault}");
            return None;
        }
    };
    for pose in &poses {
        let norm: f64 = pose.orientation.iter().map(|c| c * c).sum();
        assert!((norm - 1.0).abs() < 1e-9, "{pose:?}");
        assert!(pose.position.iter().all(|c| c.is_finite()));
        assert!((1..=lines).contains(&pose.line));
    }
    assert!(poses.is_sorted_by(|a, b| a.time <= b.time && a.line < b.line));
    Some(poses)
}

fn same(again: Result<Vec<Pose>, Fault>, poses: &[Pose]) {
    let again = again.expect("what was written");
    assert_eq!(again.len(), poses.len());
    for (a, b) in again.iter().zip(poses) {
        assert_eq!((a.time, a.position), (b.time, b.position));
        // Scaling to unit length once more may move the last digit.
        assert!(a.orientation.iter().zip(b.orientation).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
