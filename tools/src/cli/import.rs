//! `omir import`: files, trajectories and how they are read.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{self, Spacing};
use crate::instant::Instant;

/// Files that hold trajectories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// By the ending: .omir is JSON, .omirb is CBOR
    #[default]
    Omir,
    /// timestamp tx ty tz qx qy qz qw
    Tum,
    /// A 3x4 matrix a line, with --times
    Kitti,
    /// CSV: nanoseconds, position, quaternion with w first
    Euroc,
    /// A recording of ROS 2 (rosbag2's .mcap or .db3, packed or not, or its folder)
    #[value(alias = "db3", alias = "rosbag2", alias = "recording")]
    Mcap,
}

/// Axes of a trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Axes {
    /// x forward, y left, z up (REP-103): taken as it is
    Ros,
    /// x right, y down, z forward, as cameras have it: turned to REP-103
    Optical,
}

/// `omir import`
#[derive(Debug, Clone, Args)]
#[command(after_help = concat!(
    "Examples:
  omir import backup.omirb
  omir import --format tum --name desk groundtruth.txt
  omir import --format kitti --times times.txt --name kitti_00 --spacing 2 poses.txt
  omir import --format euroc --spacing 0 data.csv          (every pose)
  omir import --format tum --dry-run -o desk.omir groundtruth.txt
  omir import monday.omirb tuesday.omirb                    (in this order)
  omir import --overwrite golden.omir                       (the file is right)
  omir import --rules omird.toml monday/ tuesday/           (folders of rosbag2)
  omir import --topics '/camera*' --dry-run drive_0.mcap
  omir import -o drive.omir drive_0.db3                     (no daemon)

A file is merged as a whole or not at all. Of two versions of a resource the higher `version` stays
if the file states one, then the later meta.lastUpdated (the time of recording, if none is stated).
Forgotten resources come back. The report counts for each file what was added, updated, restored,
kept (not newer than the store's) and unchanged; --json lists the names.

Each file is checked before anything is sent (see `omir validate`). Several files are imported one
after another, each by itself, up to the first that fails. The daemon accepts up to
limits.max_import_bytes at once (32 MiB by default); --in-parts imports larger files.

A trajectory becomes one Episode, and a MemoryRecord for each pose that is kept. Ids follow from
--name and the pose, times from the file: importing again stores nothing new. Relative times need
--start; KITTI's default to 2011-10-03T00:00:00Z and, without --times, to ten poses a second.

A recording becomes the memories that a listening daemon would have stored, by the rules in [ros2]
of --rules or by the defaults of well-known types. All files are one recording; times are those of
the messages. A file that was cut off is used as far as it goes, with exit code 3. See
docs/recordings.md.

If the daemon goes away, unacknowledged requests are sent again for --wait seconds. Exit code 4
means that nothing was acknowledged; 3 that some files were, or with --in-parts a part of one:
import again to complete it. With 1 and 2 nothing of the file is stored.",
    online_codes!()
))]
pub struct ImportArgs {
    /// Files to read; .omir, .omirb, recordings and their folders, or trajectories with --format
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// What the files hold [default: omir, or mcap where name or contents say that it is a recording]
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// How long to wait for a daemon that goes away: 30s, 5min, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = values::seconds)]
    pub wait: Duration,

    /// Let the file win wherever it differs from what is stored
    #[arg(long, conflicts_with = "dry_run")]
    pub overwrite: bool,

    /// Send a file in many requests, each stored as a whole or not at all; the file is not
    #[arg(long, conflicts_with = "dry_run")]
    pub in_parts: bool,

    /// Send nothing: write the Bundle to -o, or to standard output; of a recording, count
    #[arg(long)]
    pub dry_run: bool,

    /// Where --dry-run writes, or a recording is written to; .omir is JSON, .omirb is CBOR
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["overwrite", "in_parts"])]
    pub output: Option<PathBuf>,

    /// Reading of a recording.
    #[command(flatten)]
    pub recording: RecordingArgs,

    /// Reading of a trajectory.
    #[command(flatten)]
    pub trajectory: TrajectoryArgs,
}

impl ImportArgs {
    /// The contents of the files, as was said.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format.unwrap_or_default()
    }
}

/// Options that only recordings understand.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Recordings")]
pub struct RecordingArgs {
    /// Configuration with the rules for ROS 2 [default: what the types say]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// Only topics of this name; `*` stands for anything; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub topics: Vec<String>,
}

impl RecordingArgs {
    /// The first option that was given, to refuse it where there is no recording.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        match (&self.rules, self.topics.is_empty()) {
            (Some(_), _) => Some("--rules"),
            (None, false) => Some("--topics"),
            (None, true) => None,
        }
    }
}

/// Options that only trajectories understand.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trajectories")]
pub struct TrajectoryArgs {
    /// Seconds of each pose, one a line (KITTI)
    #[arg(long, value_name = "FILE")]
    pub times: Option<PathBuf>,

    /// Moment that relative times count from
    #[arg(long, value_name = "RFC3339")]
    pub start: Option<Instant>,

    /// Name of the drive; the ids are made of it [default: the file's]
    #[arg(long, value_parser = values::drive)]
    pub name: Option<String>,

    /// Frame of the positions [default: the daemon's fixed frame, and map with --dry-run]
    #[arg(long)]
    pub frame: Option<String>,

    /// Distance between the poses that are kept; 0 keeps all, inf leaves it to --every [default: 1]
    #[arg(long, value_name = "METRES")]
    pub spacing: Option<Spacing>,

    /// Also keep a pose after so long without one: 500ms, 10s, or a number of seconds
    #[arg(long, value_name = "TIME", value_parser = values::pause)]
    pub every: Option<f64>,

    /// How the axes lie [default: optical for KITTI, ros for the others]
    #[arg(long, value_enum)]
    pub axes: Option<Axes>,

    /// How much each pose matters
    #[arg(long, value_name = "0..1", value_parser = values::unit)]
    pub importance: Option<f64>,

    /// Time after which a pose is half forgotten: 3d, 12h, or a number of hours
    #[arg(long, value_name = "TIME", value_parser = values::hours)]
    pub half_life: Option<f64>,
}

impl TrajectoryArgs {
    /// The first option that was given, to refuse it where there is no trajectory.
    #[must_use]
    pub fn given(&self) -> Option<&'static str> {
        [
            (self.times.is_some(), "--times"),
            (self.start.is_some(), "--start"),
            (self.name.is_some(), "--name"),
            (self.frame.is_some(), "--frame"),
            (self.spacing.is_some(), "--spacing"),
            (self.every.is_some(), "--every"),
            (self.axes.is_some(), "--axes"),
            (self.importance.is_some(), "--importance"),
            (self.half_life.is_some(), "--half-life"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}
