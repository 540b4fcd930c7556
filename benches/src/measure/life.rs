//! Costs of a long life for a store of one size: cuts at full load, starts after them, sweeps,
//! compaction, and bytes written with it.

use std::path::Path;
use std::time::Duration;

use omird::engine::CompactionScope;
use omird::engine::testing::ByHand;

use super::{Bench, key, local, store, sweep};
use crate::Result;
use crate::process::{Process, free_endpoint};
use crate::questions::{Kind, questions};
use crate::records::Records;
use crate::report::{Aim, Row, Unit};
use crate::samples::Samples;
use crate::wire::Wire;

/// Time before a cut during which requests come in one after the other.
const LOAD: Duration = Duration::from_millis(700);
/// Time until the store is swept.
const DAY: Duration = Duration::from_secs(86_400);
/// From so many records on the aims hold.
const AIM_RECORDS: u64 = 1_000_000;

/// Measures a store of `size` records.
pub fn measure(bench: &mut Bench<'_>, size: u64) -> Result<()> {
    let data = bench.folder.path().join(format!("life-{size}"));
    let mut records = bench.records()?;
    bench.report.section(format!("Cuts and starts with {size} records"));
    let endpoint = free_endpoint()?;
    let process = Process::daemon(&data, &endpoint)?;
    let daemon = Wire::open(&endpoint)?;
    let (payload, _) = store::fill(&daemon, &mut records, size)?;
    let written = store::status_number(&daemon, "bytesWrittenSinceBoot")?;
    let sent = process.written()?;
    cut(process, &daemon, &mut records)?;
    drop(daemon);
    starts(bench, &data, &mut records, size, "")?;

    let (engine, _) = local::open_later(&data, Duration::ZERO)?;
    sweep::nothing_to_do(bench, &engine, &records, size)?;
    engine.stop();
    let (engine, _) = local::open_later(&data, DAY)?;
    sweep::a_day_later(bench, &engine, &records, size)?;

    bench.report.section(format!("Life with {size} records"));
    let mut samples = Samples::default();
    for question in questions(Kind::Radius, 100, &records, bench.options.seed) {
        let recall = engine.recall(&question.query).map_err(|e| e.message)?;
        let Some(hit) = recall.hits.first() else { continue };
        let resource = omird::store::decode_resource(&hit.resource).map_err(|e| e.message)?;
        let target = resource.reference();
        samples.time(|| engine.explain(&target)).map_err(|e| e.message)?;
    }
    bench.report.row(Row::times("explain", &samples));
    let began = std::time::Instant::now();
    let done = engine.compact(CompactionScope::All).map_err(|e| e.message)?;
    let took = began.elapsed();
    let runs = done.segments_after.max(1);
    bench.report.row(Row::duration("compaction of all", took).note(format!(
        "{} segments into {}; {:.2} s a segment that is written",
        done.segments_before,
        done.segments_after,
        took.as_secs_f64() / runs as f64,
    )));
    engine.stop();
    let per_payload = |bytes: u64| bytes as f64 / payload as f64;
    let mut row = Row::number(
        "written per payload byte",
        Unit::Times,
        per_payload(written + done.bytes_written),
    )
    .note(format!(
        "as status says; {:.2} without compaction, and {:.2} in pages sent to the disk",
        per_payload(written),
        per_payload(sent)
    ));
    if size >= AIM_RECORDS {
        row = row.aim(Aim::Below(3.0));
    }
    bench.report.row(row);

    bench.report.section(format!("Cuts and starts with {size} records, compacted"));
    let process = Process::daemon(&data, &endpoint)?;
    let daemon = Wire::open(&endpoint)?;
    cut(process, &daemon, &mut records)?;
    drop(daemon);
    starts(bench, &data, &mut records, size, ", compacted")?;
    std::fs::remove_dir_all(&data)?;
    Ok(())
}

/// Kills the daemon while requests come in.
fn cut(process: Process, daemon: &Wire, records: &mut Records) -> Result<()> {
    let arrays: Vec<_> = (0..400).map(|_| records.next_array(100).0).collect();
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            std::thread::sleep(LOAD);
            process.kill()
        });
        // Requests that come after the cut are not answered; one of them is waited for in vain.
        let mut arrays = arrays.iter();
        while !killer.is_finished()
            && let Some(array) = arrays.next()
        {
            let _ = daemon.ask_within(2 * LOAD, &key("remember"), Some(array));
        }
        killer.join().map_err(|_| "the killing thread panicked")?
    })
}

/// Starts after a cut: with the index as it was left, and with none.
fn starts(
    bench: &mut Bench<'_>,
    data: &Path,
    records: &mut Records,
    size: u64,
    after: &str,
) -> Result<()> {
    let endpoint = free_endpoint()?;
    for round in 0..3 {
        let process = Process::daemon(data, &endpoint)?;
        let mut row = Row::duration(format!("start after a cut{after}"), process.start)
            .note(format!("at full load, index kept, cut {}", round + 1));
        if size >= AIM_RECORDS {
            row = row.aim(Aim::Below(3.0));
        }
        bench.report.row(row);
        let daemon = Wire::open(&endpoint)?;
        cut(process, &daemon, records)?;
    }
    store::delete_index(data)?;
    let process = Process::daemon(data, &endpoint)?;
    let row = Row::duration(format!("start after a cut{after}, no index"), process.start)
        .note("`index/` deleted");
    bench.report.row(row);
    process.stop()?;
    Ok(())
}
