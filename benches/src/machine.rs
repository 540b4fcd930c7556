//! The machine that the numbers were measured on.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::Result;
use crate::samples::{Samples, Summary};

/// Bytes of the appends that are timed.
const APPEND_BYTES: usize = 450;

/// Facts of this machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Threads that can run at once.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// The kernel's version.
    pub kernel: String,
    /// Processes that wanted to run, on average, in the minute before.
    pub load: f64,
    /// One append and `fdatasync` of a small file in the data folder.
    pub sync: Summary,
}

impl Machine {
    /// Asks the machine; `folder` is on the disk that is measured.
    pub fn ask(folder: &Path) -> Result<Self> {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = cpus
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown", |(_, name)| name.trim());
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut file = File::create(folder.join("sync"))?;
        let mut samples = Samples::default();
        for _ in 0..200 {
            samples.time(|| file.write_all(&[0; APPEND_BYTES]).and_then(|()| file.sync_data()))?;
        }
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            processor: processor.to_owned(),
            kernel: kernel.trim().to_owned(),
            load: load(),
            sync: samples.summary(),
        })
    }
}

/// One line, which ends with the load before.
impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, processor, kernel, load, .. } = self;
        write!(f, "{cores} cores of {processor}, Linux {kernel}; load {load:.1} before")
    }
}

/// Processes that wanted to run, on average, in the last minute. Above the number of cores the
/// 99th percentiles tell of the others more than of what is measured.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or_default()
}
