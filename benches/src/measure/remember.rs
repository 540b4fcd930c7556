//! Durable writes of one record each: how long one takes, and how many fit in a second.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use omird::engine::Engine;

use super::store::{self, Empty};
use super::{Bench, key, local};
use crate::Result;
use crate::echo::{append_key, echo_key};
use crate::process::{Process, free_endpoint};
use crate::records::Records;
use crate::report::{Aim, Row, Unit};
use crate::samples::{Samples, median};
use crate::wire::Wire;

/// Writes to one side before it is the other's turn.
const BATCH: usize = 10;
/// Requests under way at once.
const IN_FLIGHT: [usize; 3] = [1, 8, 64];
/// Time that a memory card takes to sync: the lower end of what they need.
const SLOW_SYNC: Duration = Duration::from_millis(5);
/// More records than can be remembered in a second: so many are made before a round begins.
const MOST_PER_SECOND: usize = 50_000;
/// About the bytes of a receipt.
const REPLY: usize = 74;

/// Records on their way, made ahead so that making them costs no measured time, and the bytes of
/// those that went to the daemon.
struct Feed {
    records: Records,
    ready: VecDeque<Vec<u8>>,
    made: u64,
    /// Bytes of records the daemon has.
    stored: u64,
}

impl Feed {
    fn next(&mut self) -> Vec<u8> {
        let record = self.ready.pop_front().unwrap_or_else(|| self.records.next());
        self.made += record.len() as u64;
        record
    }

    /// Makes sure that so many are ready.
    fn prepare(&mut self, count: usize) {
        while self.ready.len() < count {
            self.ready.push_back(self.records.next());
        }
    }

    /// Does something with this feed; what it takes goes to the daemon.
    fn stored<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.made;
        let result = f(self);
        self.stored += self.made - before;
        result
    }
}

impl Iterator for Feed {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        Some(Self::next(self))
    }
}

/// Measures on a store that begins empty; gives what an empty daemon takes.
pub fn measure(bench: &mut Bench<'_>) -> Result<Empty> {
    bench.report.section("Remember, one record a request");
    let data = bench.folder.path().join("remember");
    let endpoint = free_endpoint()?;
    let process = Process::daemon(&data, &endpoint)?;
    let empty = Empty { memory: process.memory()?, start: process.start };
    let daemon = Wire::open(&endpoint)?;
    let (engine, _) = local::open(&bench.folder.path().join("remember-local"))?;
    let records = bench.records()?;
    daemon.ask(&key("remember"), Some(&records.entities()))?;
    local::remember(&engine, &records.entities())?;

    let mut feed = Feed { records, ready: VecDeque::new(), made: 0, stored: 0 };
    one_writer(bench, &daemon, &engine, &mut feed)?;
    many(bench, &daemon, &engine, &mut feed)?;
    engine.stop();
    on_a_slow_card(bench, &mut feed)?;

    let written = store::status_number(&daemon, "bytesWrittenSinceBoot")?;
    drop(daemon);
    let (sent, _) = process.stop()?;
    store::disk_rows(&data, feed.stored, written, sent)?
        .into_iter()
        .for_each(|row| bench.report.row(row));
    Ok(empty)
}

fn one_writer(
    bench: &mut Bench<'_>,
    daemon: &Wire,
    engine: &Engine,
    feed: &mut Feed,
) -> Result<()> {
    let (mut remember, mut floor) = (Samples::default(), Samples::default());
    let (mut local, mut echo) = (Samples::default(), Samples::default());
    let mut reply = 0;
    let began = Instant::now();
    while remember.len() < bench.options.samples() && began.elapsed() < 2 * bench.options.patience()
    {
        feed.prepare(4 * BATCH);
        for _ in 0..BATCH {
            let record = feed.stored(Feed::next);
            reply = remember.time(|| daemon.ask(&key("remember"), Some(&record)))?.len();
        }
        for _ in 0..BATCH {
            let record = feed.next();
            floor.time(|| bench.floor.ask(&append_key(reply), Some(&record)))?;
        }
        for _ in 0..BATCH {
            let record = feed.next();
            local.time(|| local::remember(engine, &record))?;
        }
        for _ in 0..BATCH {
            let record = feed.next();
            echo.time(|| bench.floor.ask(&echo_key(reply), Some(&record)))?;
        }
    }
    let note = format!("n = {}", remember.len());
    bench.report.row(
        Row::over("one writer, Zenoh", &remember, &floor, BATCH)
            .aim(Aim::RatioAtMost(1.3))
            .note(format!("{note}; floor: round trip + append + fdatasync")),
    );
    bench.report.row(Row::times("one writer, in process", &local).note(note));
    bench.report.row(Row::times("round trip alone", &echo).note(format!("{reply} B replies")));
    Ok(())
}

fn many(bench: &mut Bench<'_>, daemon: &Wire, engine: &Engine, feed: &mut Feed) -> Result<()> {
    let (rounds, span) = bench.options.rounds();
    let mut wire = IN_FLIGHT.map(|_| Vec::new());
    let mut local = IN_FLIGHT.map(|_| Vec::new());
    let mut echo = IN_FLIGHT.map(|_| Vec::new());
    let most = (MOST_PER_SECOND as f64 * span.as_secs_f64()) as usize;
    for _ in 0..rounds {
        for (at, &in_flight) in IN_FLIGHT.iter().enumerate() {
            feed.prepare(most);
            wire[at]
                .push(feed.stored(|feed| daemon.stream(&key("remember"), in_flight, span, feed))?);
            feed.prepare(most);
            local[at].push(local::stream(engine, in_flight, span, feed)?);
            feed.prepare(most);
            echo[at].push(bench.floor.stream(&echo_key(REPLY), in_flight, span, feed)?);
        }
    }
    rate_rows(bench, "Zenoh", &wire, true);
    rate_rows(bench, "in process", &local, false);
    rate_rows(bench, "Zenoh without memory", &echo, false);
    Ok(())
}

/// A test of group commit: a disk whose sync takes as long as that of a memory card.
fn on_a_slow_card(bench: &mut Bench<'_>, feed: &mut Feed) -> Result<()> {
    let data = bench.folder.path().join("remember-slow");
    let engine = local::open_with_slow_sync(&data, SLOW_SYNC)?;
    local::remember(&engine, &feed.records.entities())?;
    let (_, span) = bench.options.rounds();
    let mut rates = IN_FLIGHT.map(|_| Vec::new());
    for (rates, &in_flight) in rates.iter_mut().zip(&IN_FLIGHT) {
        rates.push(local::stream(&engine, in_flight, span, feed)?);
    }
    engine.stop();
    let name = format!("in process, sync of {} ms", SLOW_SYNC.as_millis());
    rate_rows(bench, &name, &rates, true);
    Ok(())
}

fn rate_rows(bench: &mut Bench<'_>, name: &str, rates: &[Vec<f64>], has_aim: bool) {
    let one = median(&rates[0]);
    for (in_flight, rates) in IN_FLIGHT.iter().zip(rates) {
        let name = format!("{in_flight} in flight, {name}");
        let mut row = Row::number(name, Unit::PerSecond, median(rates)).beside(one);
        if has_aim && *in_flight == 64 {
            row = row.aim(Aim::RatioAtLeast(20.0));
        }
        bench.report.row(row);
    }
}
