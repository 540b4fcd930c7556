//! Memory: what the port takes when nobody asks, and what many streams of events take that hear little.

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::client::Connection;
use super::{Bench, at, key};
use crate::Result;
use crate::process::{self, Process};
use crate::report::{Aim, Row, Unit};

/// Rest before memory is read.
const REST: Duration = Duration::from_secs(3);
/// Most that the port may take when nobody asks.
const PORT: f64 = 4.0 * (1 << 20) as f64;
/// Most that ten thousand streams may take, the daemon included.
const STREAMS: f64 = 250e6;

/// Measures empty daemons.
pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let count = bench.options.streams;
    bench.report.section("Memory of an empty daemon");
    let endpoint = process::free_endpoint()?;
    let without = Process::daemon(&bench.folder.path().join("without"), &endpoint)?;
    let served = bench.serve("idle", &format!("[http]\nmax_events = {count}\n"))?;
    thread::sleep(REST);
    let (off, on) = (without.memory()?.resident, served.process.memory()?.resident);
    without.stop()?;
    let resident = |name: String, bytes: u64| Row::number(name, Unit::Bytes, bytes as f64);
    bench.report.row(resident("resident, --http off".to_owned(), off));
    bench.report.row(resident("resident, with the port".to_owned(), on));
    let more = on.saturating_sub(off);
    bench.report.row(resident("the port".to_owned(), more).aim(Aim::Below(PORT)));

    let began = Instant::now();
    let streams: Vec<TcpStream> = (0..count)
        .map(|_| Connection::listen(&served.http, &at("events")))
        .collect::<Result<_>>()?;
    let opened = began.elapsed();
    thread::sleep(REST);
    let quiet = served.process.memory()?.resident;
    bench.report.row(
        resident(format!("{count} streams of events"), quiet).aim(Aim::Below(STREAMS)).note(
            format!(
                "{:.0} B each; opened in {:.1} s",
                each(quiet, on, count),
                opened.as_secs_f64()
            ),
        ),
    );
    // One event that all of them hear.
    let began = Instant::now();
    served.wire.ask(&key("remember"), Some(&bench.records().next()))?;
    for stream in &streams {
        let mut heard = Vec::new();
        let mut some = [0; 4096];
        while !heard.windows(6).any(|part| part == b"event:") {
            match (&mut &*stream).read(&mut some)? {
                0 => return Err("a stream ended before its event".into()),
                read => heard.extend_from_slice(&some[..read]),
            }
        }
    }
    let told = began.elapsed();
    let after = served.process.memory()?.resident;
    bench.report.row(
        resident(format!("{count} streams after an event"), after)
            .aim(Aim::Below(STREAMS))
            .note(format!("all had it after {:.2} s", told.as_secs_f64())),
    );
    drop(streams);
    thread::sleep(REST);
    bench.report.row(resident("streams closed".to_owned(), served.process.memory()?.resident));
    drop(served.wire);
    served.process.stop().map(drop)
}

fn each(all: u64, before: u64, count: usize) -> f64 {
    all.saturating_sub(before) as f64 / count.max(1) as f64
}
