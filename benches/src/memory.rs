//! `omird-bench memory`: what sealing and compaction take of memory, and whether they give it back.
//!
//! A daemon of its own gets small updates of a few entities, one by one over Zenoh, until its log is sealed; and
//! again, until there are two segments to compact. What the kernel counts as resident is read before, as the
//! most meanwhile, and after.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use omir_core::cbor;
use omir_core::model::{Entity, Resource};

use crate::Result;
use crate::process::{self, Process};
use crate::wire::Wire;

/// Longest time to seal a log.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rest before memory is read: what threads free at their end is free by then.
const REST: Duration = Duration::from_secs(3);
/// Requests under way at any time.
const IN_FLIGHT: usize = 64;

/// Measures the memory that sealing and compaction take.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value = "/dev/shm")]
    data: PathBuf,
    /// How many entities are updated over and over
    #[arg(long, default_value_t = 64)]
    entities: u64,
    /// Logs to seal before all is compacted
    #[arg(long, default_value_t = 2)]
    segments: usize,
}

/// Memory around one piece of work, in bytes.
struct Around {
    what: String,
    before: u64,
    peak: u64,
    after: u64,
}

/// Measures and prints.
///
/// # Errors
/// If the daemon or the kernel does not do what is expected of it.
pub fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.data)?;
    let endpoint = process::free_endpoint()?;
    let daemon = Process::daemon(folder.path(), &endpoint)?;
    let wire = Wire::open(&endpoint)?;
    let empty = daemon.memory()?.resident;
    let mut updates = (0u64..).map(|number| update(number, options.entities));
    let mut rows = Vec::new();
    for _ in 0..options.segments {
        rows.push(seal(folder.path(), &daemon, &wire, &mut updates)?);
    }
    rows.push(around(&daemon, "compaction of all", || {
        let key = format!("omir/{}/compact?scope=all", process::ROBOT);
        wire.ask_within(PATIENCE, &key, None).map(drop)
    })?);
    println!("{}\nresident when empty: {}", table(&rows), megabytes(empty));
    Ok(())
}

/// The next small update: about a hundred bytes as they are stored.
fn update(number: u64, entities: u64) -> Vec<u8> {
    let id = format!("door-{}", number % entities);
    let name = format!("door seen {number}");
    let entity = match id.parse() {
        Ok(id) => Resource::from(Entity::new(id, &name)),
        Err(_) => return Vec::new(),
    };
    cbor::to_vec(&entity.to_value())
}

/// Updates until the log is nearly full, and, after a rest, until it is sealed.
fn seal(
    data: &Path,
    daemon: &Process,
    wire: &Wire,
    updates: &mut impl Iterator<Item = Vec<u8>>,
) -> Result<Around> {
    let full = omird::engine::Settings::default().segment_bytes;
    let mut fill = |is_done: &dyn Fn() -> Result<bool>| -> Result<()> {
        let began = Instant::now();
        while !is_done()? {
            if began.elapsed() > PATIENCE {
                return Err("the log was not sealed".into());
            }
            let mut some = updates.by_ref().take(256);
            let key = format!("omir/{}/remember", process::ROBOT);
            wire.stream(&key, IN_FLIGHT, PATIENCE, &mut some)?;
        }
        Ok(())
    };
    let wal = data.join("wal");
    fill(&|| Ok(newest(&wal, "wal")?.1 >= full / 10 * 9))?;
    let (filled, _) = newest(&wal, "wal")?;
    around(daemon, &format!("sealing a log of {}", megabytes(full)), || {
        fill(&|| Ok(newest(&wal, "wal")?.0 != filled))?;
        let began = Instant::now();
        // It goes when its segment is there.
        while filled.exists() {
            if began.elapsed() > PATIENCE {
                return Err("the log was not sealed".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    })
}

/// The file of a folder that has this ending and the highest number, and how long it is.
fn newest(folder: &Path, ending: &str) -> Result<(PathBuf, u64)> {
    let mut newest = PathBuf::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            newest = newest.max(path);
        }
    }
    let len = newest.metadata()?.len();
    Ok((newest, len))
}

/// Does some work, and looks at the memory of the daemon around it.
fn around(daemon: &Process, what: &str, work: impl FnOnce() -> Result<()>) -> Result<Around> {
    thread::sleep(REST);
    daemon.forget_peak()?;
    let before = daemon.memory()?.resident;
    work()?;
    thread::sleep(REST);
    let memory = daemon.memory()?;
    Ok(Around { what: what.to_owned(), before, peak: memory.peak, after: memory.resident })
}

fn table(rows: &[Around]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["", "resident before", "most meanwhile", "above", "left after"]);
    for row in rows {
        let above = row.peak.saturating_sub(row.before);
        let numbers = [row.before, row.peak, above, row.after].map(megabytes);
        table.add_row([[row.what.clone()].as_slice(), &numbers].concat());
    }
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    table
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
