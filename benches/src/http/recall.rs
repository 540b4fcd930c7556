//! The same recalls four ways, in turns: over HTTP and Zenoh, and to the floor of each.

use std::time::Instant;

use super::client::Connection;
use super::floor::echo_path;
use super::{Bench, at, key};
use crate::Result;
use crate::echo::echo_key;
use crate::measure::store::fill;
use crate::questions::{Kind, questions};
use crate::report::{Aim, Row};
use crate::samples::Samples;

/// Questions that are asked of one side before it is the next one's turn.
const BATCH: usize = 20;
/// Different questions of a kind.
const QUESTIONS: usize = 1000;
/// Most samples of a row.
const SAMPLES: usize = 3000;
/// From so many records on the aims hold.
const AIM_RECORDS: u64 = 100_000;

/// Measures a store of `size` records.
pub fn measure(bench: &mut Bench<'_>, size: u64) -> Result<()> {
    bench.report.section(format!("Recall among {size} records, HTTP/1.1 beside Zenoh"));
    let served = bench.serve(&format!("recall-{size}"), "")?;
    let mut records = bench.records();
    fill(&served.wire, &mut records, size)?;
    let mut http = Connection::open(&served.http)?;
    let mut empty = Connection::open(&bench.floor)?;
    for kind in Kind::ALL {
        let asked = questions(kind, QUESTIONS, &records, bench.options.seed);
        let [mut by_http, mut no_http, mut by_zenoh, mut no_zenoh] = [const { Samples::new() }; 4];
        let began = Instant::now();
        let mut turn = asked.chunks(BATCH).cycle();
        let mut bytes = Vec::new();
        let mut is_warm = false;
        while by_http.len() < SAMPLES && began.elapsed() < bench.options.patience() {
            let batch = turn.next().unwrap_or_default();
            let first = bytes.len();
            for question in batch {
                let target = format!("{}?{}", at("recall"), question.parameters.replace(';', "&"));
                bytes.push(by_http.time(|| http.ask("GET", &target, None))?.len());
            }
            for &bytes in &bytes[first..] {
                no_http.time(|| empty.ask("GET", &echo_path(bytes), None))?;
            }
            for question in batch {
                let selector = format!("{}?{}", key("recall"), question.parameters);
                by_zenoh.time(|| served.wire.ask(&selector, None))?;
            }
            for (question, &bytes) in batch.iter().zip(&bytes[first..]) {
                let selector = format!("{}?{}", echo_key(bytes), question.parameters);
                no_zenoh.time(|| bench.echo.ask(&selector, None))?;
            }
            if !std::mem::replace(&mut is_warm, true) {
                for samples in [&mut by_http, &mut no_http, &mut by_zenoh, &mut no_zenoh] {
                    *samples = Samples::new();
                }
                bytes.clear();
            }
        }
        let mean = bytes.iter().sum::<usize>() / bytes.len().max(1);
        let name = kind.name();
        let note = format!("{mean} B replies, n = {}", by_http.len());
        bench.report.row(Row::over(format!("{name}, HTTP"), &by_http, &no_http, BATCH).note(note));
        bench.report.row(Row::over(format!("{name}, Zenoh"), &by_zenoh, &no_zenoh, BATCH));
        let mut beside =
            Row::over(format!("{name}, HTTP beside Zenoh"), &by_http, &by_zenoh, BATCH);
        if size >= AIM_RECORDS {
            beside = beside.aim(Aim::RatioAtMost(1.5));
        }
        bench.report.row(beside);
    }
    drop(http);
    drop(served.wire);
    served.process.stop().map(drop)
}
