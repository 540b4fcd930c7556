//! `omird-bench waits`: how long somebody waits for the catalog, in process: for the status of a large store, and for
//! a recall and a remember while an import of the largest size is under way.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use omird::engine::testing::ByHand;
use omird::engine::{Encoding, Engine, Precedence, Query};

use crate::Result;
use crate::measure::local;
use crate::path;
use crate::records::Records;
use crate::samples::Samples;

/// Records of one request while the store is filled.
const BATCH: u64 = 4000;
/// Statuses asked for of each kind.
const STATUSES: usize = 100;
/// Recalls before a status that is not idle.
const RECALLS: usize = 10;
/// Time for which recalls and remembers are measured with no import beside them.
const ALONE: Duration = Duration::from_secs(2);

/// Measures how long somebody waits for the catalog.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value = "/dev/shm")]
    data: PathBuf,
    /// Records in the store, one run for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1_000, 100_000, 1_000_000])]
    sizes: Vec<u64>,
    /// Imports while recalls and remembers are measured
    #[arg(long, default_value_t = 3)]
    imports: usize,
    /// Bytes of an import
    #[arg(long, default_value_t = 33_000_000)]
    bytes: usize,
    /// Another seed gives other records and questions
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Measures and prints.
///
/// # Errors
/// If the engine refuses.
pub fn run(options: &Options) -> Result<()> {
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["records", "", "count", "p50", "p99", "longest"]);
    for &size in &options.sizes {
        let folder = tempfile::tempdir_in(&options.data)?;
        let (engine, _) = local::open(folder.path())?;
        let measured = measure(&engine, size, options);
        engine.stop();
        for (what, samples) in measured? {
            let summary = samples.summary();
            let times = [summary.p50, summary.p99, samples.longest()];
            let numbers = [samples.len().to_string()].into_iter().chain(times.map(milliseconds));
            table.add_row([size.to_string(), what].into_iter().chain(numbers));
        }
    }
    table.column_iter_mut().skip(2).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    println!("{table}");
    Ok(())
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1e3)
}

fn measure(engine: &Engine, size: u64, options: &Options) -> Result<Vec<(String, Samples)>> {
    let mut records = Records::new(options.seed, path::Path::walk());
    local::remember(engine, &records.entities())?;
    let mut left = size;
    while left > 0 {
        let some = left.min(BATCH);
        local::remember(engine, &records.next_array(usize::try_from(some)?).0)?;
        left -= some;
    }
    let mut rows = Vec::new();
    // The first counts what nobody has asked for yet.
    let mut first = Samples::default();
    first.time(|| engine.status("bench"));
    rows.push(("first status".to_owned(), first));
    let mut idle = Samples::default();
    (0..STATUSES).for_each(|_| drop(idle.time(|| engine.status("bench"))));
    rows.push(("status".to_owned(), idle));
    let mut used = Samples::default();
    for round in 0..STATUSES {
        for number in 0..RECALLS {
            recall(engine, &records, round * RECALLS + number, true)?;
        }
        // The writer counts accesses when it has nothing else to do.
        thread::sleep(Duration::from_millis(5));
        used.time(|| engine.status("bench"));
    }
    rows.push((format!("status after {RECALLS} recalls"), used));

    let (mut alone, mut beside) = (Waits::default(), Waits::default());
    alone.measure(engine, &mut records, |_| {
        thread::sleep(ALONE);
        Ok(())
    })?;
    let mut imports = Samples::default();
    let per_record = records.next_array(1000).1 / 1000;
    let count = options.bytes / usize::try_from(per_record + 1)?;
    for _ in 0..options.imports {
        let (payload, _) = records.next_array(count);
        beside.measure(engine, &mut records, |engine| {
            let change = engine.prepare_merge(&payload, Encoding::Cbor, Precedence::Newer);
            let change = change.map_err(|error| error.message)?;
            let done = imports.time(|| engine.execute(change));
            done.map(drop).map_err(|error| error.message.into())
        })?;
    }
    rows.push(("recall".to_owned(), alone.recalls));
    rows.push(("recall beside an import".to_owned(), beside.recalls));
    rows.push(("remember".to_owned(), alone.remembers));
    rows.push(("remember beside an import".to_owned(), beside.remembers));
    rows.push((format!("import of {count}"), imports));
    Ok(rows)
}

fn recall(engine: &Engine, records: &Records, number: usize, touch: bool) -> Result<()> {
    let traits = &records.traits[number % records.traits.len()];
    let [x, y, _] = traits.position;
    let near = Some(omir_core::space::Center::Plane { x, y });
    let query = Query { near, radius: Some(2.0), touch, ..Query::default() };
    engine.recall(&query).map(drop).map_err(|error| error.message.into())
}

/// Measures many recalls and remembers, one after the other on a thread of its own.
#[derive(Default)]
struct Waits {
    recalls: Samples,
    remembers: Samples,
}

impl Waits {
    fn measure(
        &mut self,
        engine: &Engine,
        records: &mut Records,
        work: impl FnOnce(&Engine) -> Result<()>,
    ) -> Result<()> {
        let is_done = AtomicBool::new(false);
        let small: Vec<Vec<u8>> = (0..20_000).map(|_| records.next()).collect();
        let records = &*records;
        let (recalls, remembers) = (&mut self.recalls, &mut self.remembers);
        thread::scope(|scope| {
            let recalling = scope.spawn(|| -> Result<()> {
                for number in 0.. {
                    let began = Instant::now();
                    recall(engine, records, number, false)?;
                    recalls.push(began.elapsed());
                    if is_done.load(Ordering::Acquire) {
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            });
            let remembering = scope.spawn(|| -> Result<()> {
                for payload in &small {
                    let began = Instant::now();
                    local::remember(engine, payload)?;
                    remembers.push(began.elapsed());
                    if is_done.load(Ordering::Acquire) {
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            });
            let worked = work(engine);
            is_done.store(true, Ordering::Release);
            for thread in [recalling, remembering] {
                thread.join().map_err(|_| "a thread panicked")??;
            }
            worked
        })
    }
}
