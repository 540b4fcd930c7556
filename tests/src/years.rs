//! Years of a robot in minutes: a house, a robot that looks around it, people who ask, and a
//! computer that loses its power five times a day and often its clock.
//!
//! The engine is the real one, on a real folder; only time is not. What the engine does at
//! intervals is asked for whenever a clock on the wall would have it ([`ByHand::run_task`]).
//!
//! [`ByHand::run_task`]: omird::engine::testing::ByHand::run_task

pub mod board;
pub mod card;
pub mod day;
pub mod house;
pub mod ledger;
pub mod probe;
pub mod robot;
pub mod upkeep;

use std::path::Path;

use omir_core::tier::Tier;
use omird::engine::Settings;
use omird::store::folder_size;

use self::board::{DAY, HOUR, MINUTE, Start};
use self::card::Cause;
use self::day::Moment;
use self::probe::Probes;
use self::robot::{Counts, Robot};
use crate::Result;
use crate::session::DAWN;

/// The life to live.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of days.
    pub days: i64,
    /// Another seed is another life.
    pub seed: u64,
    /// True if the index is kept in sled, as on a robot, or rebuilt at each start.
    pub keeps_index: bool,
    /// Settings of the engine; its intervals are kept on the time of this life.
    pub settings: Settings,
}

/// The state in the evening of a day. Counts are since the beginning.
#[derive(Debug, Clone)]
pub struct Evening {
    /// The day, from 1.
    pub day: i64,
    /// Live memory records in each of [`Tier::ALL`].
    pub tiers: [u64; Tier::ALL.len()],
    /// Live entities, relationships and episodes.
    pub others: u64,
    /// Versions, retired ones included.
    pub versions: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes the data folder occupies, in whole blocks.
    pub disk: u64,
    /// Those of the kept index.
    pub index: u64,
    /// Bytes written to the card for each of [`Cause::ALL`].
    pub written: [u64; Cause::ALL.len()],
    /// Bytes that everything else of this process wrote: the kept index.
    pub index_written: u64,
    /// Bytes of the memories that came in, as stored.
    pub payload: u64,
    /// Bytes written per byte of memory over the store's life, as `status` says.
    pub odometer: f64,
    /// Everything else that was counted.
    pub counts: Counts,
    /// The answers of the week, on every seventh day.
    pub probes: Option<Probes>,
}

impl Evening {
    /// Bytes written in all.
    pub fn all_written(&self) -> u64 {
        self.written.iter().sum::<u64>() + self.index_written
    }

    /// Bytes written per byte of memory.
    pub fn amplification(&self) -> f64 {
        self.all_written() as f64 / self.payload.max(1) as f64
    }
}

/// Bytes this process has handed to the kernel to write (`man 5 proc_pid_io`); 0 where there is no
/// such count.
fn process_written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let count = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Lives with the data in `folder`, which is empty, and tells of each evening.
///
/// # Errors
/// A description of the first thing that is wrong, with the day.
pub fn run(options: &Options, folder: &Path, tell: &mut dyn FnMut(&Evening)) -> Result<Robot> {
    let Options { days, seed, keeps_index, .. } = *options;
    let before = process_written();
    let mut robot = Robot::new(folder, options, DAWN);
    robot.board.pass(DAWN + 5 * HOUR);
    robot.start(Start::WithClock)?;
    robot.introduce()?;
    for day in 0..days {
        let house = robot.house.clone();
        let moments = day::plan(DAWN, day, &house, robot.random());
        let mut evening = Some(DAWN + day * DAY + 21 * HOUR + 40 * MINUTE);
        let context = |why| format!("seed {seed}, day {}: {why}", day + 1);
        let mut live = |robot: &mut Robot, moment: &Moment| -> Result {
            if let Some(at) = evening.take_if(|at| *at <= moment.at) {
                robot.pass(at)?;
                if robot.engine().is_some() {
                    let rest = process_written() - before - robot.card.all_written();
                    tell(&look_at(robot, day, if keeps_index { rest } else { 0 })?);
                }
            }
            robot.live(moment)
        };
        for moment in &moments {
            live(&mut robot, moment).map_err(context)?;
        }
    }
    Ok(robot)
}

/// Takes stock in the evening.
fn look_at(robot: &mut Robot, day: i64, index_written: u64) -> Result<Evening> {
    let probes = if day % 7 == 6 {
        robot.audit()?;
        robot.probe()?
    } else {
        None
    };
    let status = robot.engine().ok_or("the power is off")?.status("robot");
    let number = |pointer: &str| {
        status.pointer(pointer).and_then(omir_core::value::Value::as_u64).unwrap_or(0)
    };
    let others = ["Entity", "Relationship", "Episode"];
    let evening = Evening {
        day: day + 1,
        tiers: Tier::ALL.map(|tier| number(&format!("/counts/tiers/{tier}"))),
        others: others.iter().map(|of| number(&format!("/counts/types/{of}"))).sum(),
        versions: number("/counts/versions"),
        segments: number("/disk/segments"),
        disk: folder_size(robot.data()),
        index: folder_size(&robot.data().join("index")),
        written: robot.card.written(),
        index_written,
        payload: robot.counts.payload,
        odometer: status
            .pointer("/wear/overLife/writeAmplification")
            .and_then(omir_core::value::Value::as_number)
            .map_or(f64::NAN, omir_core::number::Number::as_f64),
        counts: robot.counts,
        probes,
    };
    robot.counts.slowest_start = 0.0;
    Ok(evening)
}
