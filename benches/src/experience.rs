//! `omird-bench experience`: the service levels of experience and hints, as their contract promises them.
//!
//! Ten keys ask 20 times a second each: one record for three questions, on connections that are kept. Each request is sent when
//! it is due: one that waits for the request before it, on the same key, has that wait in its time. The store holds experiences already.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use crate::http::client::{Address, Connection};
use crate::owned::Owned;
use crate::samples::Samples;
use crate::{Result, machine};

/// The contract: 95 of 100 hints within this time.
const HINTS: Duration = Duration::from_secs(2);
/// The contract: 95 of 100 records within this time.
const RECORDS: Duration = Duration::from_secs(5);

/// Measures experience and hints against their service levels.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Folder for the data, which is removed in the end
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data: PathBuf,
    /// Experiences in the store before
    #[arg(long, default_value_t = 10_000)]
    size: u64,
    /// Requests a second, of all keys together
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Keys, each on a connection of its own
    #[arg(long, default_value_t = 10)]
    keys: u32,
    /// Seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// The times of both kinds of request, and what failed.
#[derive(Default)]
struct Measured {
    records: Samples,
    hints: Samples,
    failed: Vec<String>,
}

/// Measures and prints.
///
/// # Errors
/// If a process, the disk or the network fails, a request is refused, or a service level is missed.
pub fn run(options: &Options) -> Result<()> {
    let owned = Owned::open(&options.data)?;
    let keys: Vec<Address> = (0..options.keys).map(|at| key(&owned, at)).collect::<Result<_>>()?;
    fill(&keys, options.size)?;

    let measured = Mutex::new(Measured::default());
    let began = Instant::now() + Duration::from_millis(100);
    std::thread::scope(|scope| {
        for (at, address) in keys.iter().enumerate() {
            let measured = &measured;
            scope.spawn(move || {
                if let Err(error) = client(options, address, at, began, measured) {
                    lock(measured).failed.push(error.to_string());
                }
            });
        }
    });
    let took = began.elapsed();
    let measured = measured.into_inner();
    let count = measured.records.len() + measured.hints.len();
    println!("{} and {:.1} at the end", owned.machine, machine::load());
    println!(
        "{} experiences; {:.0} requests a second for {:.0} s, {} failed",
        options.size,
        count as f64 / took.as_secs_f64(),
        took.as_secs_f64(),
        measured.failed.len()
    );
    let mut missed = measured.failed.first().map(|why| format!("a request failed: {why}"));
    for (name, samples, promised) in
        [("hints", &measured.hints, HINTS), ("record", &measured.records, RECORDS)]
    {
        let [p50, p95] = [50, 95].map(|percent| samples.quantile(percent));
        let longest = samples.longest();
        println!(
            "{name}: p50 {p50:.1?}, P95 {p95:.1?} (promised {promised:?}), longest {longest:.1?}"
        );
        if p95 >= promised {
            missed = missed.or(Some(format!("{name}: P95 {p95:?} is above {promised:?}")));
        }
    }
    missed.map_or(Ok(()), |why| Err(why.into()))
}

fn lock(measured: &Mutex<Measured>) -> MutexGuard<'_, Measured> {
    measured.lock()
}

/// Makes a key whose rates do not matter.
fn key(owned: &Owned, at: u32) -> Result<Address> {
    owned.client(&json!({
        "name": format!("key{at}"), "scopes": ["experience:read", "experience:write"],
        "rate": 100_000, "perHour": 100_000_000
    }))
}

/// Records the experiences that are there before, all keys at once.
fn fill(keys: &[Address], size: u64) -> Result<()> {
    let count = keys.len() as u64;
    std::thread::scope(|scope| {
        let fill = |at: u64, address: &Address| -> std::result::Result<(), String> {
            let mut connection = Connection::open(address).map_err(|error| error.to_string())?;
            for number in (at..size).step_by(keys.len().max(1)) {
                let body = record(&format!("before-{number}"), number);
                let asked = connection.ask("POST", "/api/v0/record", Some(body.as_bytes()));
                asked.map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        let filling: Vec<_> = (0..count)
            .zip(keys)
            .map(|(at, address)| scope.spawn(move || fill(at, address)))
            .collect();
        for one in filling {
            one.join().map_err(|_| "a client panicked")??;
        }
        Ok(())
    })
}

/// Sends the requests of one key as they are due.
fn client(
    options: &Options,
    address: &Address,
    at: usize,
    began: Instant,
    measured: &Mutex<Measured>,
) -> Result<()> {
    let mut connection = Connection::open(address)?;
    let apart = Duration::from_secs(1) * options.keys / options.rate.max(1);
    let first = began + apart * u32::try_from(at)? / options.keys.max(1);
    let most = options.seconds * options.rate / options.keys.max(1);
    for turn in 0..most {
        let due = first + apart * turn;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let number = u64::from(turn) * 31 + at as u64;
        let is_record = turn % 4 == 0;
        let (target, body) = if is_record {
            ("/api/v0/record", record(&format!("load-{at}-{turn}"), number))
        } else {
            ("/api/v0/hints", hints(number))
        };
        // A request that waits for the one before has waited since it was due.
        let ended = connection.ask("POST", target, Some(body.as_bytes()));
        let took = due.elapsed();
        let mut measured = lock(measured);
        if is_record {
            measured.records.push(took)
        } else {
            measured.hints.push(took)
        }
        if let Err(error) = ended {
            measured.failed.push(error.to_string());
            drop(measured);
            connection = Connection::open(address)?;
        }
    }
    Ok(())
}

/// Words of which tasks are made, so that some are alike and most are not.
const WHAT: [&str; 8] = [
    "dock",
    "charge",
    "deliver parcel",
    "open door",
    "map corridor",
    "pick tote",
    "inspect",
    "park",
];
const AT: [&str; 5] = ["station", "gate", "shelf", "lift", "room"];

fn task(number: u64) -> String {
    let what = WHAT[(number % 8) as usize];
    let place = AT[(number / 8 % 5) as usize];
    format!("{what} at {place} {}", number / 40 % 50)
}

fn record(id: &str, number: u64) -> String {
    let title = task(number);
    let outcome = if number.is_multiple_of(7) { "failure" } else { "success" };
    let success = !number.is_multiple_of(7);
    format!(
        r#"{{"request_id":"r-{id}","task_id":"{id}","title":"{title}","intent":"{title} with the robot",
        "nodes_used":[{{"type":"tool","ref":"nav2","outcome":"success","latency_ms":{number}}},
            {{"type":"tool","ref":"tool-{}","outcome":"{outcome}","notes":"as ever"}},
            {{"type":"document","ref":"manual-{}","outcome":"partial"}}],
        "result":{{"summary":"{outcome} after {number}","success":{success}}},
        "timestamps":{{"started_at":"2026-11-24T10:00:00Z","finished_at":"2026-11-24T10:01:00Z"}}}}"#,
        number % 97,
        number % 389
    )
}

fn hints(number: u64) -> String {
    let intent = task(number);
    format!(
        r#"{{"request_id":"h{number}","query_type":"intent","intent":"{intent}","deadline_ms":2000}}"#
    )
}
