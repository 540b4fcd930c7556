//! The robot's path: on a random walk through a building, or on a recorded trajectory.

use std::fs;
use std::path::Path as FilePath;

use omird_tests::random::Random;

use crate::Result;

/// The building: metres in x and y.
const BUILDING: (f64, f64) = (120.0, 80.0);
/// Seconds between two observations of the walk.
const STEP_SECONDS: f64 = 2.0;

/// A pose: where, which way, and when.
#[derive(Debug, Clone, Copy)]
pub struct Pose {
    /// Metres in `map`; x forward, z up.
    pub position: [f64; 3],
    /// Heading about z, radians.
    pub yaw: f64,
    /// Seconds since the first pose.
    pub seconds: f64,
}

/// An endless sequence of poses.
#[derive(Debug, Clone)]
pub enum Path {
    /// A random walk at walking speed, reflected by the building's walls.
    Walk {
        /// Its current place.
        pose: Pose,
    },
    /// A recorded trajectory, driven again and again, each time a little beside the last.
    Recorded {
        /// Its poses.
        poses: Vec<Pose>,
        /// Number given out.
        given: usize,
    },
}

impl Path {
    /// A random walk from the middle of the building.
    pub fn walk() -> Self {
        let position = [BUILDING.0 / 2.0, BUILDING.1 / 2.0, 0.0];
        Self::Walk { pose: Pose { position, yaw: 0.0, seconds: 0.0 } }
    }

    /// A trajectory of the KITTI odometry benchmark: a 3×4 matrix a line in camera axes (z forward,
    /// x right, y down), and a file with the seconds of each.
    ///
    /// # Errors
    /// Names the file and the line.
    pub fn kitti(poses: &FilePath, times: &FilePath) -> Result<Self> {
        let read = |path: &FilePath| -> Result<Vec<Vec<f64>>> {
            let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            text.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(at, line)| {
                    line.split_whitespace()
                        .map(str::parse)
                        .collect::<Result<Vec<f64>, _>>()
                        .map_err(|e| format!("{}, line {}: {e}", path.display(), at + 1).into())
                })
                .collect()
        };
        let (rows, times) = (read(poses)?, read(times)?);
        let poses: Vec<Pose> = rows
            .iter()
            .zip(&times)
            .filter_map(|(m, time)| {
                let &[_, _, fx, x, _, _, _, y, _, _, fz, z] = m.as_slice() else { return None };
                let seconds = *time.first()?;
                Some(Pose { position: [z, -x, -y], yaw: (-fx).atan2(fz), seconds })
            })
            .collect();
        if poses.is_empty() {
            return Err("the trajectory has no pose of twelve numbers with a time".into());
        }
        Ok(Self::Recorded { poses, given: 0 })
    }

    /// The next pose.
    pub fn step(&mut self, random: &mut Random) -> Pose {
        match self {
            Self::Walk { pose } => {
                pose.yaw += 0.35 * random.normal();
                let length = random.between(0.2, 1.6);
                let [x, y, _] = pose.position;
                let to = [x + length * pose.yaw.cos(), y + length * pose.yaw.sin()];
                let inside = [to[0].clamp(0.0, BUILDING.0), to[1].clamp(0.0, BUILDING.1)];
                if inside != to {
                    pose.yaw += std::f64::consts::PI;
                }
                pose.position = [inside[0], inside[1], 0.0];
                pose.seconds += STEP_SECONDS;
                *pose
            }
            Self::Recorded { poses, given } => {
                let (lap, at) = (*given / poses.len(), *given % poses.len());
                *given += 1;
                let mut pose = poses[at];
                let lap_seconds = poses.last().map_or(0.0, |last| last.seconds) + 60.0;
                pose.seconds += lap as f64 * lap_seconds;
                if lap > 0 {
                    pose.position[0] += 0.3 * random.normal();
                    pose.position[1] += 0.3 * random.normal();
                }
                pose
            }
        }
    }
}
