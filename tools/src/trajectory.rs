//! Recorded drives: poses in time, from the formats that SLAM data sets use.
//!
//! Reading is pure: text in, [`Pose`]s or a [`Fault`] with its line out. What becomes of the poses is
//! in [`memories`].

pub mod euroc;
pub mod kitti;
pub mod memories;
pub mod tum;

use std::fmt;

use crate::cli::Axes;
use crate::instant::{Instant, NANOS};

/// Times before this many seconds count from the start of a drive, not from 1970: no data set is
/// older than March 1973, and no drive lasts three years.
const RELATIVE_BELOW: i128 = 100_000_000 * NANOS;

/// The robot's place at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Nanoseconds, as the file counts them: since 1970 or since the start of the drive.
    pub time: i128,
    /// Metres.
    pub position: [f64; 3],
    /// Unit quaternion: x, y, z, w.
    pub orientation: [f64; 4],
    /// Line of the file, from 1.
    pub line: usize,
}

/// A fault of a trajectory, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line of the file, from 1.
    pub line: usize,
    /// The found and the expected value.
    pub problem: String,
}

impl Fault {
    pub(crate) fn new(line: usize, problem: impl Into<String>) -> Self {
        Self { line, problem: problem.into() }
    }
}

/// `line: problem`, to stand behind a file's name and a colon.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.problem)
    }
}

impl std::error::Error for Fault {}

/// Numbered lines that hold something: no blank ones, no `#` comments.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.trim_start_matches('\u{feff}')
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Exactly `N` finite numbers, or a fault that says what they should be.
fn numbers<'t, const N: usize>(
    line: usize,
    fields: impl Iterator<Item = &'t str>,
    expected: &str,
) -> Result<[f64; N], Fault> {
    let mut numbers = [0.0; N];
    let mut count = 0;
    for field in fields {
        if let Some(number) = numbers.get_mut(count) {
            *number = finite(line, field)?;
        }
        count += 1;
    }
    if count == N {
        Ok(numbers)
    } else {
        Err(Fault::new(line, format!("{count} values found; expected {N}: {expected}")))
    }
}

fn finite(line: usize, field: &str) -> Result<f64, Fault> {
    match field.parse::<f64>() {
        // Adding zero turns a negative zero into zero.
        Ok(number) if number.is_finite() => Ok(number + 0.0),
        Ok(_) => Err(Fault::new(line, format!("`{field}` is not finite"))),
        Err(_) => Err(Fault::new(line, format!("`{field}` is not a number"))),
    }
}

/// A decimal count of seconds in nanoseconds, without the rounding a float would bring: 1311868163.8697
/// has more digits than a float can hold at nanosecond precision. Exponents are understood.
fn seconds(line: usize, field: &str) -> Result<i128, Fault> {
    exact_nanos(field).ok_or_else(|| {
        Fault::new(
            line,
            format!("`{field}` is not a time; expected seconds such as 1311868163.8697"),
        )
    })
}

fn exact_nanos(field: &str) -> Option<i128> {
    let (mantissa, exponent) = match field.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (field, 0),
    };
    let (negative, mantissa) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.bytes().chain(fraction.bytes());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    let mut used: i32 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // Thirty digits reach from 10^12 seconds down to far below a nanosecond.
        if value < 10_i128.pow(29) {
            value = value * 10 + i128::from(digit - b'0');
            used += 1;
        }
    }
    let places = i32::try_from(whole.len()).ok()?.checked_sub(used)?;
    let scale = places.checked_add(exponent)?.checked_add(9)?;
    let nanos = if scale >= 0 {
        value.checked_mul(10_i128.checked_pow(u32::try_from(scale).ok()?)?)?
    } else {
        match 10_i128.checked_pow(scale.unsigned_abs()) {
            // Half a nanosecond goes up.
            Some(divisor) => (value + divisor / 2) / divisor,
            None => 0,
        }
    };
    Some(if negative { -nanos } else { nanos })
}

/// The rotation scaled to unit length, as `omir-core` does it; `None` if it is none.
#[must_use]
pub fn unit_quaternion(q: [f64; 4]) -> Option<[f64; 4]> {
    let unit = omir_core::space::unit_quaternion(q)?;
    Some([unit.i, unit.j, unit.k, unit.w].map(|c| c + 0.0))
}

fn orientation(line: usize, q: [f64; 4]) -> Result<[f64; 4], Fault> {
    unit_quaternion(q).ok_or_else(|| Fault::new(line, "a zero quaternion is no orientation"))
}

/// Refuses an empty trajectory and one whose time runs backwards.
fn checked(poses: Vec<Pose>) -> Result<Vec<Pose>, Fault> {
    if poses.is_empty() {
        return Err(Fault::new(1, "no pose in the file"));
    }
    for pair in poses.windows(2) {
        if pair[1].time < pair[0].time {
            return Err(Fault::new(
                pair[1].line,
                format!(
                    "time runs backwards, from {} to {} s; sort the poses by time",
                    as_seconds(pair[0].time),
                    as_seconds(pair[1].time)
                ),
            ));
        }
    }
    Ok(poses)
}

fn as_seconds(nanos: i128) -> f64 {
    nanos as f64 / NANOS as f64
}

/// Poses in the axes of REP-103.
///
/// Optical axes (x right, y down, z forward) are turned for positions and orientations alike: the
/// world and the robot's body both change, so that identity stays identity and a turn to the left,
/// which is about −y in a camera, becomes one about z. For a rotation that changes both sides by the
/// same turn, only the vector part of the quaternion turns.
#[must_use]
pub fn to_ros(axes: Axes, mut poses: Vec<Pose>) -> Vec<Pose> {
    if axes == Axes::Optical {
        for pose in &mut poses {
            pose.position = optical_to_ros(pose.position);
            let [x, y, z, w] = pose.orientation;
            let [x, y, z] = optical_to_ros([x, y, z]);
            pose.orientation = [x, y, z, w];
        }
    }
    poses
}

/// Forward is z there and x here, left is −x and y, up is −y and z. Zero stays positive.
fn optical_to_ros([x, y, z]: [f64; 3]) -> [f64; 3] {
    [z, 0.0 - x, 0.0 - y]
}

/// The moment each pose was taken.
///
/// Times from 1970 on are taken as they are; relative ones count from `start`, or from
/// `default_start` where a format has one.
///
/// # Errors
/// At the first pose: relative times without a start, or a start that absolute times do not need.
/// At any: a moment outside the years 0000 to 9999.
pub fn moments(
    poses: &[Pose],
    start: Option<Instant>,
    default_start: Option<Instant>,
) -> Result<Vec<Instant>, Fault> {
    let Some(first) = poses.first() else {
        return Ok(Vec::new());
    };
    let relative = first.time < RELATIVE_BELOW;
    let origin = match (relative, start.or(default_start), start) {
        (true, Some(origin), _) => origin.unix_nanos(),
        (true, None, _) => {
            return Err(Fault::new(
                first.line,
                format!(
                    "the times begin at {} s, so they count from the start of the drive; say when \
                     that was with --start",
                    as_seconds(first.time)
                ),
            ));
        }
        (false, _, Some(_)) => {
            return Err(Fault::new(
                first.line,
                "the times count from 1970 already; leave --start out",
            ));
        }
        (false, _, None) => 0,
    };
    poses
        .iter()
        .map(|pose| {
            let nanos = origin.checked_add(pose.time);
            nanos
                .and_then(Instant::from_unix_nanos)
                .ok_or_else(|| Fault::new(pose.line, "the time is outside the years 0000 to 9999"))
        })
        .collect()
}

/// Straight distance in metres.
#[must_use]
pub fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1]).hypot(a[2] - b[2])
}

/// Chooses the poses to keep: the first, the last, and every one at least `spacing` metres from the one kept
/// before it or, with `every`, at least so many seconds later. A `spacing` of 0 keeps all.
#[must_use]
pub fn select(poses: &[Pose], spacing: f64, every: Option<f64>) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for (index, pose) in poses.iter().enumerate() {
        let keep = match kept.last() {
            None => true,
            Some(&last) => {
                let last = &poses[last];
                distance(last.position, pose.position) >= spacing
                    || every.is_some_and(|every| as_seconds(pose.time - last.time) >= every)
                    || index + 1 == poses.len()
            }
        };
        if keep {
            kept.push(index);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
