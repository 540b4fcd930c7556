//! A store of one size: filling it, recalling from it, its size, and starting on it again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Bench, key, local, recall};
use crate::Result;
use crate::process::{Memory, Process, free_endpoint};
use crate::records::Records;
use crate::report::{Aim, Row, Unit};
use crate::wire::Wire;

/// Records in one request while filling.
pub const CHUNK: u64 = 500;
/// From so many records on the aims hold.
const AIM_RECORDS: u64 = 100_000;

/// Memory of a daemon with an empty store.
#[derive(Debug, Clone, Copy)]
pub struct Empty {
    /// Memory.
    pub memory: Memory,
    /// Time from start to ready.
    pub start: Duration,
}

/// The files of a data folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files {
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes of the blocks they occupy, folders included.
    pub allocated: u64,
}

impl Files {
    /// Adds up a folder; nothing where there is none.
    pub fn of(folder: &Path) -> Result<Self> {
        if !folder.exists() {
            return Ok(Self::default());
        }
        let mut sum = Self { bytes: 0, allocated: folder.metadata()?.blocks() * 512 };
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                let inner = Self::of(&entry.path())?;
                sum.bytes += inner.bytes;
                sum.allocated += inner.allocated;
            } else {
                sum.bytes += meta.len();
                sum.allocated += meta.blocks() * 512;
            }
        }
        Ok(sum)
    }
}

/// Measures a store of `size` records.
pub(super) fn measure(bench: &mut Bench<'_>, size: u64, empty: Empty) -> Result<()> {
    let data = bench.folder.path().join(format!("store-{size}"));
    let mut records = bench.records()?;

    bench.report.section(format!("Recall among {size} records"));
    let endpoint = free_endpoint()?;
    let process = Process::daemon(&data, &endpoint)?;
    let daemon = Wire::open(&endpoint)?;
    let (payload, filling) = fill(&daemon, &mut records, size)?;
    let filled = process.memory()?;
    recall::over_network(bench, &daemon, &records, size)?;
    let written = status_number(&daemon, "bytesWrittenSinceBoot")?;
    drop(daemon);
    let (sent, stopping) = process.stop()?;
    let disk = disk_rows(&data, payload, written, sent)?;

    let (engine, reopened) = local::open(&data)?;
    recall::in_process(bench, &engine, &records, size)?;
    engine.stop();

    bench.report.section(format!("A store of {size} records"));
    let rate = size as f64 / filling.as_secs_f64();
    let mut rows = vec![
        Row::number("filling, Zenoh", Unit::PerSecond, rate)
            .note(format!("records, {CHUNK} a request, one request after the other")),
        Row::number("payload per record", Unit::Bytes, payload as f64 / size as f64).note("CBOR"),
    ];
    rows.extend(disk);
    rows.extend(reopen(&data, &endpoint, reopened, size, empty, filled)?);
    rows.push(Row::duration("clean stop", stopping));
    rows.into_iter().for_each(|row| bench.report.row(row));
    Ok(())
}

fn aimed(row: Row, size: u64, aim: Aim) -> Row {
    if size >= AIM_RECORDS { row.aim(aim) } else { row }
}

/// Remembers `size` records; gives the bytes of their CBOR and the time.
pub fn fill(daemon: &Wire, records: &mut Records, size: u64) -> Result<(u64, Duration)> {
    daemon.ask(&key("remember"), Some(&records.entities()))?;
    let (mut payload, mut spent) = (0, Duration::ZERO);
    let mut left = size;
    while left > 0 {
        let count = left.min(CHUNK);
        let (array, bytes) = records.next_array(usize::try_from(count)?);
        payload += bytes;
        left -= count;
        let began = Instant::now();
        daemon.ask(&key("remember"), Some(&array))?;
        spent += began.elapsed();
    }
    Ok((payload, spent))
}

/// Starts on the store again, in all the ways it can happen.
fn reopen(
    data: &Path,
    endpoint: &str,
    kept: Duration,
    size: u64,
    empty: Empty,
    filled: Memory,
) -> Result<Vec<Row>> {
    let process = Process::daemon(data, endpoint)?;
    let (ready, memory) = (process.start, process.memory()?);
    process.stop()?;

    delete_index(data)?;
    let (engine, rebuilt) = local::open(data)?;
    engine.stop();

    let per_record = |memory: Memory| {
        memory.anonymous.saturating_sub(empty.memory.anonymous) as f64 / size as f64
    };
    Ok(vec![
        aimed(Row::duration("reopen, index kept", kept), size, Aim::Below(1.0)),
        Row::duration("reopen, index deleted", rebuilt),
        Row::duration("daemon from start to ready", ready)
            .beside(empty.start.as_secs_f64())
            .note("beside an empty one"),
        Row::number("memory of the daemon", Unit::Bytes, memory.resident as f64)
            .beside(empty.memory.resident as f64)
            .note(format!(
                "VmRSS after a restart beside an empty one; {:.1} MB when just filled",
                filled.resident as f64 / 1e6
            )),
        Row::number("index in memory per record", Unit::Bytes, per_record(memory)).note(format!(
            "RssAnon above an empty daemon's; {:.0} B when just filled",
            per_record(filled)
        )),
    ])
}

/// Deletes the index of a stopped store. A small one has none on the disk.
pub fn delete_index(data: &Path) -> Result<()> {
    match std::fs::remove_dir_all(data.join("index")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Size on the disk of `payload` bytes of records.
pub fn disk_rows(data: &Path, payload: u64, written: u64, sent: u64) -> Result<[Row; 2]> {
    let per_payload = |bytes: u64| bytes as f64 / payload as f64;
    let (files, index) = (Files::of(data)?, Files::of(&data.join("index"))?);
    let mut on_disk =
        Row::number("on disk per payload byte", Unit::Times, per_payload(files.allocated)).note(
            format!(
                "allocated after a clean stop; {:.3} without index; {:.3} in file lengths",
                per_payload(files.allocated - index.allocated),
                per_payload(files.bytes),
            ),
        );
    // A store below that is mostly whole blocks of small files.
    if payload > 1 << 24 {
        on_disk = on_disk.aim(Aim::Below(1.3));
    }
    let written =
        Row::number("written per payload byte", Unit::Times, per_payload(written)).note(format!(
            "as status says, without index; {:.2} in pages sent to the disk, all included",
            per_payload(sent)
        ));
    Ok([on_disk, written])
}

/// A number from the daemon's status.
pub fn status_number(daemon: &Wire, name: &str) -> Result<u64> {
    let status: serde_json::Value = serde_json::from_slice(&daemon.ask(&key("status"), None)?)?;
    status.get(name).and_then(serde_json::Value::as_u64).ok_or_else(|| format!("no {name}").into())
}
