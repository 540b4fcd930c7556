//! EuRoC MAV: CSV with nanoseconds, position and a quaternion whose w stands first; further columns
//! (velocities, biases) are ignored, the header is a `#` comment or missing.

use super::{Fault, Pose, checked, lines, numbers, orientation};

const EXPECTED: &str = "timestamp [ns], p_x, p_y, p_z, q_w, q_x, q_y, q_z";
const COLUMNS: usize = 8;

/// Reads a trajectory.
///
/// # Errors
/// The first line that is not what it should be.
pub fn parse(text: &str) -> Result<Vec<Pose>, Fault> {
    let mut poses = Vec::new();
    for (line, content) in lines(text) {
        let mut fields = content.split(',').map(str::trim);
        let time = fields.next().unwrap_or_default();
        // A header without its `#`.
        if poses.is_empty() && time.to_ascii_lowercase().starts_with("timestamp") {
            continue;
        }
        let nanos: i128 = time.parse().map_err(|_| {
            Fault::new(
                line,
                format!("`{time}` is not a whole number of nanoseconds; expected {EXPECTED}"),
            )
        })?;
        let rest = std::iter::once("0").chain(fields.take(COLUMNS - 1));
        let [_, x, y, z, qw, qx, qy, qz] = numbers::<COLUMNS>(line, rest, EXPECTED)?;
        poses.push(Pose {
            // Nothing real is beyond i64, and sums with what is inside cannot overflow.
            time: i64::try_from(nanos)
                .map_err(|_| Fault::new(line, format!("`{time}` ns is beyond any calendar")))?
                .into(),
            position: [x, y, z],
            orientation: orientation(line, [qx, qy, qz, qw])?,
            line,
        });
    }
    checked(poses)
}
