//! Durable writes of one record each, from many clients at once: one sync holds what waits, whichever way it came in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::Connection;
use super::{Bench, at, key};
use crate::Result;
use crate::report::{Row, Unit};
use crate::samples::median;

/// Rounds, and the time of each.
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(1);
/// More records than can be remembered in a round.
const MOST: usize = 30_000;

/// Measures on a store that begins empty.
pub fn measure(bench: &mut Bench<'_>) -> Result<()> {
    let many = bench.options.writers;
    bench.report.section("Durable writes of one record, HTTP/1.1 beside Zenoh");
    let served = bench.serve("writers", "")?;
    let mut records = bench.records();
    served.wire.ask(&key("remember"), Some(&records.entities()))?;
    let mut rates = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (rates, count) in rates.iter_mut().zip([1, many]) {
            let mut made = std::iter::repeat_with(|| records.next()).take(MOST);
            let some: Vec<Vec<u8>> = made.by_ref().collect();
            rates.push(by_http(&served.http, count, &some)?);
        }
        for (rates, count) in rates.iter_mut().skip(2).zip([1, many]) {
            let some: Vec<Vec<u8>> = std::iter::repeat_with(|| records.next()).take(MOST).collect();
            rates.push(served.wire.stream(&key("remember"), count, SPAN, &mut some.into_iter())?);
        }
    }
    let [http_one, http_many, zenoh_one, zenoh_many] = rates.map(|rates| median(&rates));
    for (name, rate, beside) in [
        ("one HTTP writer".to_owned(), http_one, zenoh_one),
        (format!("{many} HTTP writers"), http_many, zenoh_many),
    ] {
        bench.report.row(
            Row::number(name, Unit::PerSecond, rate)
                .beside(beside)
                .note("beside as many over Zenoh"),
        );
    }
    let row = Row::number(format!("{many} HTTP writers"), Unit::PerSecond, http_many);
    bench.report.row(row.beside(http_one).note("beside one"));
    drop(served.wire);
    served.process.stop().map(drop)
}

/// Writes from `count` clients for a while; gives how many a second were durable.
fn by_http(address: &super::Address, count: usize, records: &[Vec<u8>]) -> Result<f64> {
    let connections: Vec<Connection> =
        (0..count).map(|_| Connection::open(address)).collect::<Result<_>>()?;
    let is_over = AtomicBool::new(false);
    let began = Instant::now();
    let written = thread::scope(|scope| {
        let parts = records.chunks(records.len().div_ceil(count));
        let writers: Vec<_> = connections
            .into_iter()
            .zip(parts)
            .map(|(mut connection, mine)| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut written = 0u64;
                    for record in mine {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let asked = connection.ask("POST", &at("remember"), Some(record));
                        asked.map_err(|error| error.to_string())?;
                        written += 1;
                    }
                    Ok::<_, String>(written)
                })
            })
            .collect();
        thread::sleep(SPAN);
        is_over.store(true, Ordering::Relaxed);
        let written =
            writers.into_iter().map(|writer| writer.join().unwrap_or(Err("a writer died".into())));
        written.sum::<std::result::Result<u64, String>>()
    })?;
    Ok(written as f64 / began.elapsed().as_secs_f64())
}
