//! The measurements and their order.

mod life;
pub mod local;
mod recall;
mod remember;
mod slow_disk;
pub mod store;
mod sweep;

use tempfile::TempDir;

use crate::machine::{self, Machine};
use crate::options::Options;
use crate::process::{self, Process};
use crate::report::Report;
use crate::wire::Wire;
use crate::{Result, records};

/// Settings that every measurement needs.
struct Bench<'a> {
    options: &'a Options,
    report: Report,
    folder: TempDir,
    floor: Wire,
}

/// Measures everything and prints it.
///
/// # Errors
/// If a process, the disk or the network fails; what was measured so far is lost.
pub fn all(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let machine = Machine::ask(folder.path())?;
    let endpoint = process::free_endpoint()?;
    let _echo = Process::echo(&folder.path().join("appended"), &endpoint)?;
    let floor = Wire::open(&endpoint)?;
    let mut bench = Bench { options, report: Report::new(), folder, floor };

    if options.life {
        for size in options.sizes() {
            life::measure(&mut bench, size)?;
        }
    } else {
        let empty = remember::measure(&mut bench)?;
        for size in options.sizes() {
            store::measure(&mut bench, size, empty)?;
        }
    }

    println!(
        "{machine} and {:.1} at the end; append and fdatasync: p50 {:.0} µs, p99 {:.0} µs\n{}",
        machine::load(),
        machine.sync.p50.as_secs_f64() * 1e6,
        machine.sync.p99.as_secs_f64() * 1e6,
        bench.report.table()
    );
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&bench.report.to_json(&machine))?;
        std::fs::write(path, text + "\n")?;
    }
    Ok(())
}

impl Bench<'_> {
    fn records(&self) -> Result<records::Records> {
        Ok(records::Records::new(self.options.seed, self.options.path()?))
    }
}

/// The key of an operation of the measured robot.
pub fn key(operation: &str) -> String {
    format!("omir/{}/{operation}", process::ROBOT)
}
