//! `omird-bench http`: what HTTP costs beside Zenoh, and both beside their floors.
//!
//! | part | measures |
//! |---|---|
//! | `recall` | one question by HTTP/1.1 on a connection that is kept, by Zenoh, and by the floor of each |
//! | `writers` | durable writes of one record each, from many clients at once |
//! | `idle` | memory of the daemon with many streams of events, and with and without the port |
//! | `client`, `floor` | HTTP/1.1 as bytes on a socket, and a server that remembers nothing |

pub mod client;
pub mod floor;
mod idle;
mod recall;
mod writers;

use std::path::PathBuf;
use std::time::Duration;

use crate::machine::Machine;
use crate::process::{self, Process};
use crate::records::Records;
use crate::report::Report;
use crate::wire::Wire;
use crate::{Result, machine, measure, path};

use self::client::Address;

/// Measures HTTP beside Zenoh.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Records in the store, one run for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 100_000])]
    sizes: Vec<u64>,
    /// Streams of events that are open at once; this process and the daemon need a descriptor for each
    #[arg(long, default_value_t = 10_000)]
    streams: usize,
    /// Clients that write at once
    #[arg(long, default_value_t = 64)]
    writers: usize,
    /// Longest time of each row, in seconds
    #[arg(long, default_value_t = 8)]
    patience: u64,
    /// Another seed gives other records and questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Options {
    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}

/// Everything that the parts need.
struct Bench<'a> {
    options: &'a Options,
    report: Report,
    folder: tempfile::TempDir,
    /// The floor of Zenoh.
    echo: Wire,
    /// The floor of HTTP.
    floor: Address,
}

/// A daemon that listens on both.
struct Served {
    process: Process,
    wire: Wire,
    http: Address,
}

impl Bench<'_> {
    fn records(&self) -> Records {
        Records::new(self.options.seed, path::Path::walk())
    }

    /// Starts a daemon on a folder of its own, and waits until both ways are open.
    fn serve(&self, name: &str, more: &str) -> Result<Served> {
        let data = self.folder.path().join(name);
        let config = self.folder.path().join(format!("{name}.toml"));
        std::fs::write(&config, more)?;
        let endpoint = process::free_endpoint()?;
        let process = Process::daemon_with(&data, &endpoint, "127.0.0.1:0", Some(&config))?;
        let address = process.http().ok_or("the daemon says no address of HTTP")?;
        let token = std::fs::read_to_string(data.join("keys/local.token"))?;
        let http = Address::new(address, Some(token.trim()));
        Ok(Served { wire: Wire::open(&endpoint)?, process, http })
    }
}

/// Measures and prints.
///
/// # Errors
/// If a process, the disk or the network fails.
pub fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.data)?;
    let machine = Machine::ask(folder.path())?;
    let endpoint = process::free_endpoint()?;
    let _echo = Process::echo(&folder.path().join("appended"), &endpoint)?;
    let floor = Process::http_floor()?;
    let mut bench = Bench {
        options,
        report: Report::new(),
        folder,
        echo: Wire::open(&endpoint)?,
        floor: Address::new(floor.ready(), None),
    };
    for &size in &options.sizes {
        recall::measure(&mut bench, size)?;
    }
    writers::measure(&mut bench)?;
    idle::measure(&mut bench)?;
    println!("{machine} and {:.1} at the end\n{}", machine::load(), bench.report.table());
    Ok(())
}

/// The path of an operation.
fn at(operation: &str) -> String {
    format!("/omir/v1/{operation}")
}

/// The key of an operation.
fn key(operation: &str) -> String {
    measure::key(operation)
}
