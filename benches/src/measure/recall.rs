//! Recalls, over the network beside a reply of the same size, and in this process.

use std::time::Instant;

use omird::engine::Engine;

use super::{Bench, key};
use crate::Result;
use crate::echo::echo_key;
use crate::questions::{Kind, Question, questions};
use crate::records::Records;
use crate::report::{Aim, Row};
use crate::samples::Samples;
use crate::wire::Wire;

/// Questions that are asked of one side before it is the other's turn.
const BATCH: usize = 20;
/// Different questions of a kind.
const QUESTIONS: usize = 1000;
/// From so many records on the aims hold.
const AIM_RECORDS: u64 = 100_000;

/// Recalls of every kind over the network.
pub fn over_network(
    bench: &mut Bench<'_>,
    daemon: &Wire,
    records: &Records,
    size: u64,
) -> Result<()> {
    for kind in Kind::ALL {
        let asked = questions(kind, QUESTIONS, records, bench.options.seed);
        let (mut recall, mut floor) = (Samples::default(), Samples::default());
        let mut bytes = Vec::new();
        let began = Instant::now();
        warm_up(bench, daemon, &asked)?;
        let mut turn = asked.chunks(BATCH).cycle();
        while recall.len() < bench.options.samples() && began.elapsed() < bench.options.patience() {
            let batch = turn.next().unwrap_or_default();
            let first = bytes.len();
            for question in batch {
                let selector = format!("{}?{}", key("recall"), question.parameters);
                bytes.push(recall.time(|| daemon.ask(&selector, None))?.len());
            }
            for (question, &bytes) in batch.iter().zip(&bytes[first..]) {
                let selector = format!("{}?{}", echo_key(bytes), question.parameters);
                floor.time(|| bench.floor.ask(&selector, None))?;
            }
        }
        let mean = bytes.iter().sum::<usize>() / bytes.len().max(1);
        let mut row = Row::over(format!("{}, Zenoh", kind.name()), &recall, &floor, BATCH)
            .note(format!("{mean} B replies, n = {}", recall.len()));
        if size >= AIM_RECORDS {
            row = row.aim(Aim::RatioAtMost(1.5));
        }
        bench.report.row(row);
    }
    Ok(())
}

fn warm_up(bench: &Bench<'_>, daemon: &Wire, asked: &[Question]) -> Result<()> {
    for question in asked.iter().rev().take(BATCH) {
        let selector = format!("{}?{}", key("recall"), question.parameters);
        let bytes = daemon.ask(&selector, None)?.len();
        bench.floor.ask(&format!("{}?{}", echo_key(bytes), question.parameters), None)?;
    }
    Ok(())
}

/// Recalls of every kind in this process: first without counting as accesses, then as they are.
pub fn in_process(
    bench: &mut Bench<'_>,
    engine: &Engine,
    records: &Records,
    size: u64,
) -> Result<()> {
    for touch in [false, true] {
        for kind in Kind::ALL {
            let mut asked = questions(kind, QUESTIONS, records, bench.options.seed);
            for question in &mut asked {
                question.query.touch = touch;
            }
            let mut samples = Samples::default();
            let began = Instant::now();
            let mut candidates = 0;
            for question in asked.iter().cycle() {
                if samples.len() >= bench.options.samples()
                    || began.elapsed() > bench.options.patience()
                {
                    break;
                }
                let recall = samples.time(|| engine.recall(&question.query));
                candidates += recall.map_err(|e| e.message)?.total;
            }
            let mean = candidates / samples.len().max(1) as u64;
            let counted = if touch { "" } else { ", touch=false" };
            let mut row = Row::times(format!("{}, in process{counted}", kind.name()), &samples)
                .note(format!(
                    "p99 of each question's fastest: {:.0} µs; {mean} matches, n = {}",
                    samples.best_of_turns(asked.len()).summary().p99.as_secs_f64() * 1e6,
                    samples.len()
                ));
            if touch && size >= AIM_RECORDS {
                row = row.aim(Aim::P99Below(1e-3));
            }
            bench.report.row(row);
        }
    }
    Ok(())
}
