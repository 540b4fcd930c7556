//! Recalls while the store is swept beside recalls while it is not, and what a pass costs.
//!
//! Both take turns in one process: the sweeping thread is held between two slices while it is the
//! other side's turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use omird::engine::Engine;
use omird::engine::testing::{ByHand, SWEEP_PAUSE};

use super::Bench;
use crate::Result;
use crate::questions::{Kind, Question, questions};
use crate::records::Records;
use crate::report::{Aim, Row};
use crate::samples::Samples;

/// About how long a turn takes: several slices of a sweep, with their pauses.
const TURN: Duration = Duration::from_millis(60);
/// Different questions of a kind.
const QUESTIONS: usize = 1000;
/// From so many records on the aim holds.
const AIM_RECORDS: u64 = 100_000;

/// Up to so many records the first pass of a day is waited for: it reads each of them.
const WHOLE_RECORDS: u64 = 10_000;

/// The kind of sweep meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// As by the daemon itself.
    Gently,
    /// As for someone who waits for it.
    AtOnce,
}

/// A signal that lets the sweeping thread go on.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    is_waiting: AtomicBool,
    is_over: AtomicBool,
}

impl Gate {
    /// Waits while it is closed; false when all is over.
    fn pass(&self) -> bool {
        while !self.is_open.load(Ordering::SeqCst) && !self.is_over.load(Ordering::SeqCst) {
            self.is_waiting.store(true, Ordering::SeqCst);
            // Rarely: it is the other side's turn.
            std::thread::sleep(Duration::from_millis(5));
        }
        self.is_waiting.store(false, Ordering::SeqCst);
        !self.is_over.load(Ordering::SeqCst)
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
        while self.is_waiting.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
        while !self.is_waiting.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Measures on an engine that does not sweep by itself, with records that time has not moved yet.
pub fn nothing_to_do(
    bench: &mut Bench<'_>,
    engine: &Engine,
    records: &Records,
    size: u64,
) -> Result<()> {
    bench.report.section(format!("Sweeping {size} records, nothing to do"));
    let (report, took, _) = timed(|| engine.sweep(false))?;
    report.map_err(|e| e.message)?;
    bench.report.row(Row::duration("pass, without pauses", took));
    let pause = || {
        std::thread::sleep(SWEEP_PAUSE);
        true
    };
    let (report, took, busy) = timed(|| engine.sweep_gently(&pause))?;
    report.map_err(|e| e.message)?;
    let share = 100.0 * busy.as_secs_f64() / took.as_secs_f64();
    bench.report.row(
        Row::duration("pass, as by itself", took)
            .note(format!("{share:.1} % of one core, {:.1} ms in all", busy.as_secs_f64() * 1e3)),
    );
    recalls(bench, engine, records, size, Manner::Gently)?;
    recalls(bench, engine, records, size, Manner::AtOnce)
}

/// The same when a day has gone by: every record has moved, and is compared with those like it.
pub fn a_day_later(
    bench: &mut Bench<'_>,
    engine: &Engine,
    records: &Records,
    size: u64,
) -> Result<()> {
    bench.report.section(format!("Sweeping {size} records, a day later"));
    recalls(bench, engine, records, size, Manner::Gently)?;
    if size > WHOLE_RECORDS {
        return Ok(());
    }
    let (report, took, _) = timed(|| engine.sweep(false))?;
    let report = report.map_err(|e| e.message)?;
    let note = format!("{} moved, {} merged", report.moved, report.merged);
    bench.report.row(Row::duration("the rest of that pass, without pauses", took).note(note));
    Ok(())
}

/// Does something; gives also how long it took and how long this thread was running meanwhile.
fn timed<T>(f: impl FnOnce() -> T) -> Result<(T, Duration, Duration)> {
    let busy = || -> Result<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
        let nanos = text.split_whitespace().next().ok_or("no time on the processor")?;
        Ok(Duration::from_nanos(nanos.parse()?))
    };
    let (began, before) = (Instant::now(), busy()?);
    let result = f();
    Ok((result, began.elapsed(), busy()?.saturating_sub(before)))
}

fn recalls(
    bench: &mut Bench<'_>,
    engine: &Engine,
    records: &Records,
    size: u64,
    manner: Manner,
) -> Result<()> {
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let pause = || {
                std::thread::sleep(SWEEP_PAUSE);
                gate.pass()
            };
            while gate.pass() {
                let swept = match manner {
                    Manner::Gently => engine.sweep_gently(&pause),
                    Manner::AtOnce => engine.sweep(false),
                };
                swept.map_err(|e| e.message)?;
            }
            Ok::<(), String>(())
        });
        let measured = Kind::DURING_SWEEPS
            .into_iter()
            .try_for_each(|kind| recalls_of(bench, engine, records, size, manner, kind, &gate));
        gate.is_over.store(true, Ordering::SeqCst);
        sweeper.join().map_err(|_| "the sweeping thread panicked")??;
        measured
    })
}

fn recalls_of(
    bench: &mut Bench<'_>,
    engine: &Engine,
    records: &Records,
    size: u64,
    manner: Manner,
    kind: Kind,
    gate: &Gate,
) -> Result<()> {
    let asked = questions(kind, QUESTIONS, records, bench.options.seed);
    let ask = |samples: &mut Samples, question: &Question| -> Result<()> {
        samples.time(|| engine.recall(&question.query)).map_err(|e| e.message)?;
        Ok(())
    };
    let mut trial = Samples::default();
    asked.iter().rev().take(20).try_for_each(|question| ask(&mut trial, question))?;
    let one = trial.summary().p50.max(Duration::from_micros(1));
    let batch = (TURN.as_nanos() / one.as_nanos()).clamp(10, QUESTIONS as u128) as usize;
    let (mut swept, mut still) = (Samples::default(), Samples::default());
    let mut turn = asked.chunks_exact(batch).cycle();
    let began = Instant::now();
    while began.elapsed() < bench.options.patience() {
        // The same questions of both, first of one, then of the other.
        let questions = turn.next().unwrap_or_default();
        let first = (swept.len() / batch).is_multiple_of(2);
        for sweeps in [first, !first] {
            if sweeps {
                gate.open();
            }
            let samples = if sweeps { &mut swept } else { &mut still };
            questions.iter().try_for_each(|question| ask(samples, question))?;
            if sweeps {
                gate.close();
            }
        }
    }
    let (with, without) = (swept.summary(), still.summary());
    let manner = if manner == Manner::Gently { "swept" } else { "swept at once" };
    let mut row =
        Row::over(format!("{}, {manner}", kind.name()), &swept, &still, batch).note(format!(
            "beside not swept; p99 {:.2} ×, n = {}",
            with.p99.as_secs_f64() / without.p99.as_secs_f64(),
            swept.len()
        ));
    if size >= AIM_RECORDS {
        row = row.aim(Aim::RatioAtMost(1.2));
    }
    bench.report.row(row);
    Ok(())
}
