//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::path::Path;
use crate::quality::conversations;
use crate::{
    Result, akashik, compass, compass_quality, experience, http, life, meaning, memory, quality,
    waits,
};

/// Measures omird beside its floors and prints one table.
///
/// Data goes to the temporary folder (`TMPDIR`), which should be on the disk that matters.
#[derive(Debug, clap::Parser)]
#[command(
    name = "omird-bench",
    version,
    propagate_version = true,
    args_conflicts_with_subcommands = true,
    after_help = "EXIT STATUS\n  0  measured, whether or not the aims were met\n  \
                  1  something could not be measured\n  2  wrong arguments"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub measurement: Option<Measurement>,
    #[command(flatten)]
    pub table: Options,
}

/// A measurement of one concern.
#[derive(Debug, clap::Subcommand)]
pub enum Measurement {
    Akashik(akashik::Options),
    Compass(compass::Options),
    CompassQuality(compass_quality::Options),
    Experience(experience::Options),
    Http(http::Options),
    Life(life::Options),
    Meaning(meaning::Options),
    Memory(memory::Options),
    RecallConversations(conversations::Options),
    RecallQuality(quality::Options),
    Waits(waits::Options),
}

/// Measures omird beside its floors and prints one table.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Records in the store, one run for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    sizes: Vec<u64>,
    /// Under a minute: small stores, short measurements
    #[arg(long)]
    quick: bool,
    /// Instead: what a long life costs, which is sweeps, compaction and starts after a cut
    #[arg(long)]
    pub life: bool,
    /// Also write every number to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Poses along a trajectory of the KITTI odometry benchmark instead of a random walk
    #[arg(long, num_args = 2, value_names = ["POSES", "TIMES"])]
    kitti: Option<Vec<PathBuf>>,
    /// Another seed gives other records and questions
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Options {
    /// Records in each store.
    pub fn sizes(&self) -> Vec<u64> {
        let most = if self.quick { 10_000 } else { u64::MAX };
        let mut sizes: Vec<u64> = self.sizes.iter().map(|&size| size.clamp(100, most)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Longest that one row may be measured.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(if self.quick { 700 } else { 8000 })
    }

    /// Most samples of one row.
    pub fn samples(&self) -> usize {
        if self.quick { 300 } else { 3000 }
    }

    /// Rounds of a throughput measurement, and how long each takes.
    pub fn rounds(&self) -> (usize, Duration) {
        if self.quick { (2, Duration::from_millis(400)) } else { (5, Duration::from_millis(1000)) }
    }

    /// The robot's way.
    ///
    /// # Errors
    /// If the trajectory cannot be read.
    pub fn path(&self) -> Result<Path> {
        match self.kitti.as_deref() {
            Some([poses, times]) => Ok(Path::kitti(poses, times)?),
            _ => Ok(Path::walk()),
        }
    }
}
