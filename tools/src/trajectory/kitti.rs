//! KITTI odometry: a 3×4 matrix a line, row by row, and the seconds of each pose in another file.
//!
//! Rounded matrices are no exact rotations. A small deviation is repaired by taking the nearest
//! rotation, a large one means that the numbers are something else.

use super::{Fault, Pose, checked, lines, numbers, orientation, seconds};
use crate::instant::NANOS;

const EXPECTED: &str = "r11 r12 r13 tx r21 r22 r23 ty r31 r32 r33 tz";

/// Largest entry of `RRᵀ − I` that still is rounding. Six digits give 1e-5.
const TOLERANCE: f64 = 1e-2;

/// Time between poses without a file of times: KITTI was recorded at ten scans a second.
const NOMINAL_PERIOD: i128 = NANOS / 10;

type Matrix = [[f64; 3]; 3];

/// Reads the times of each pose, in nanoseconds, with the line each is on.
///
/// # Errors
/// The first line that is not one number.
pub fn parse_times(text: &str) -> Result<Vec<(usize, i128)>, Fault> {
    lines(text).map(|(line, content)| Ok((line, seconds(line, content)?))).collect()
}

/// The fault, and its file of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KittiFault {
    /// In the file of poses.
    Poses(Fault),
    /// In the file of times.
    Times(Fault),
}

/// Reads a trajectory; the times are those of `times` or ten a second.
///
/// # Errors
/// The first line of either file that is not what it should be, or where one ends before the other.
pub fn parse(text: &str, times: Option<&str>) -> Result<Vec<Pose>, KittiFault> {
    let times = times.map(parse_times).transpose().map_err(KittiFault::Times)?;
    let mut poses = Vec::new();
    for (line, content) in lines(text) {
        let time = match &times {
            None => i128::try_from(poses.len()).unwrap_or_default() * NOMINAL_PERIOD,
            Some(times) => match times.get(poses.len()) {
                Some(&(_, time)) => time,
                None => {
                    let last = times.last().map_or(1, |&(line, _)| line);
                    let problem =
                        format!("the times end here, after {}, and the poses go on", times.len());
                    return Err(KittiFault::Times(Fault::new(last, problem)));
                }
            },
        };
        poses.push(pose(line, content, time).map_err(KittiFault::Poses)?);
    }
    if let Some(times) = &times {
        if let Some(&(line, _)) = times.get(poses.len()) {
            let problem = format!("a time without a pose; the file of poses has {}", poses.len());
            return Err(KittiFault::Times(Fault::new(line, problem)));
        }
        for pair in times.windows(2) {
            let ((_, before), (line, after)) = (pair[0], pair[1]);
            if after < before {
                let problem = "time runs backwards; the times must be in order";
                return Err(KittiFault::Times(Fault::new(line, problem)));
            }
        }
    }
    checked(poses).map_err(KittiFault::Poses)
}

fn pose(line: usize, content: &str, time: i128) -> Result<Pose, Fault> {
    let m: [f64; 12] = numbers(line, content.split_whitespace(), EXPECTED)?;
    let raw = [[m[0], m[1], m[2]], [m[4], m[5], m[6]], [m[8], m[9], m[10]]];
    let deviation = deviation(&raw);
    // Written so that an overflow to infinity or NaN is refused too.
    let rounded = deviation <= TOLERANCE;
    if !rounded {
        return Err(Fault::new(
            line,
            format!(
                "the left three columns are no rotation: rows differ from unit length and right \
                 angles by {deviation:.3}, at most {TOLERANCE} is rounding"
            ),
        ));
    }
    if determinant(&raw) < 0.0 {
        return Err(Fault::new(
            line,
            "the left three columns mirror instead of rotating; the axes must be right-handed",
        ));
    }
    Ok(Pose {
        time,
        position: [m[3], m[7], m[11]],
        orientation: orientation(line, quaternion(&nearest_rotation(raw)))?,
        line,
    })
}

/// Largest entry of `RRᵀ − I`.
fn deviation(r: &Matrix) -> f64 {
    let mut largest: f64 = 0.0;
    for i in 0..3 {
        for j in 0..3 {
            let dot: f64 = (0..3).map(|k| r[i][k] * r[j][k]).sum();
            let off = (dot - f64::from(u8::from(i == j))).abs();
            if off.is_nan() {
                return f64::INFINITY;
            }
            largest = largest.max(off);
        }
    }
    largest
}

fn determinant(r: &Matrix) -> f64 {
    let [a, b, c] = *r;
    let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
    a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]
}

/// The rotation of the polar decomposition, by Newton's iteration `R ← (R + R⁻ᵀ) / 2`, which from
/// within [`TOLERANCE`] is exact after three steps.
fn nearest_rotation(mut r: Matrix) -> Matrix {
    for _ in 0..4 {
        let det = determinant(&r);
        let mut next = r;
        for i in 0..3 {
            for j in 0..3 {
                let (i1, i2, j1, j2) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
                // The inverse transposed is the matrix of cofactors over the determinant.
                let cofactor = r[i1][j1] * r[i2][j2] - r[i1][j2] * r[i2][j1];
                next[i][j] = (r[i][j] + cofactor / det) / 2.0;
            }
        }
        r = next;
    }
    r
}

/// Shepperd's method: the largest of the four components first, so that no small number divides.
fn quaternion(r: &Matrix) -> [f64; 4] {
    let trace = r[0][0] + r[1][1] + r[2][2];
    let candidates = [r[0][0], r[1][1], r[2][2], trace];
    let largest = (0..4).max_by(|&a, &b| candidates[a].total_cmp(&candidates[b])).unwrap_or(3);
    match largest {
        0 => {
            let s = (1.0 + r[0][0] - r[1][1] - r[2][2]).sqrt() * 2.0;
            [s / 4.0, (r[0][1] + r[1][0]) / s, (r[0][2] + r[2][0]) / s, (r[2][1] - r[1][2]) / s]
        }
        1 => {
            let s = (1.0 + r[1][1] - r[0][0] - r[2][2]).sqrt() * 2.0;
            [(r[0][1] + r[1][0]) / s, s / 4.0, (r[1][2] + r[2][1]) / s, (r[0][2] - r[2][0]) / s]
        }
        2 => {
            let s = (1.0 + r[2][2] - r[0][0] - r[1][1]).sqrt() * 2.0;
            [(r[0][2] + r[2][0]) / s, (r[1][2] + r[2][1]) / s, s / 4.0, (r[1][0] - r[0][1]) / s]
        }
        _ => {
            let s = (1.0 + trace).sqrt() * 2.0;
            [(r[2][1] - r[1][2]) / s, (r[0][2] - r[2][0]) / s, (r[1][0] - r[0][1]) / s, s / 4.0]
        }
    }
}
