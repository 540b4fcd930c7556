//! TUM RGB-D: `timestamp tx ty tz qx qy qz qw`, separated by spaces, `#` comments.

use super::{Fault, Pose, checked, lines, numbers, orientation, seconds};

const EXPECTED: &str = "timestamp tx ty tz qx qy qz qw";

/// Reads a trajectory.
///
/// # Errors
/// The first line that is not what it should be.
pub fn parse(text: &str) -> Result<Vec<Pose>, Fault> {
    let mut poses = Vec::new();
    for (line, content) in lines(text) {
        let values: [f64; 8] = numbers(line, content.split_whitespace(), EXPECTED)?;
        let [_, x, y, z, qx, qy, qz, qw] = values;
        let time = content.split_whitespace().next().unwrap_or_default();
        poses.push(Pose {
            time: seconds(line, time)?,
            position: [x, y, z],
            orientation: orientation(line, [qx, qy, qz, qw])?,
            line,
        });
    }
    checked(poses)
}
