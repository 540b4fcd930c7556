//! `omird-bench life`: years of a robot in minutes, as numbers and as a picture.
//!
//! The life itself is `omird_tests::years`. This lives it on a folder in memory, writes one line for
//! each day, and draws what became of the memories, the card and the answers.

mod chart;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use omird::engine::{Forgetting, Settings};
use omird_tests::years::{self, Evening};

use crate::Result;

/// Lives years of a robot in minutes and draws them.
///
/// Writes OUT.csv, one line for each day, and OUT.svg.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How many years of 365 days
    #[arg(long, default_value_t = 2.0)]
    years: f64,
    /// Another seed is another life
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Path of the table and the picture; .csv and .svg are added
    #[arg(long, default_value = "docs/life")]
    out: PathBuf,
    /// Folder for the data, which is removed in the end; in memory it goes faster
    #[arg(long, default_value = "/dev/shm")]
    data: PathBuf,
    /// Days after which a log is sealed
    #[arg(long, value_name = "DAYS", default_value_t = days(Settings::default().seal_after))]
    seal_after: u64,
    /// Hours in which observations of the same gather before they are merged
    #[arg(long, value_name = "HOURS", default_value_t = hours(Forgetting::default().merge_after))]
    merge_after: u64,
    /// Minutes between notes of what time it is
    #[arg(long, value_name = "MINUTES", default_value_t = minutes(Settings::default().mark_interval))]
    mark_interval: u64,
    /// Days after which what was forgotten is gone from the card
    #[arg(long, value_name = "DAYS", default_value_t = days(Settings::default().purge_after))]
    purge_after: u64,
    /// Minutes between journals of accesses
    #[arg(long, value_name = "MINUTES", default_value_t = minutes(Settings::default().touch_interval))]
    touch_interval: u64,
}

fn minutes(interval: Duration) -> u64 {
    interval.as_secs() / 60
}

fn hours(interval: Duration) -> u64 {
    interval.as_secs() / 3600
}

fn days(interval: Duration) -> u64 {
    interval.as_secs() / 86_400
}

/// Lives, writes, draws.
///
/// # Errors
/// If the store loses something, or a file cannot be written.
pub fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir_in(&options.data)?;
    let days = (options.years * 365.0).round().max(1.0) as i64;
    let began = Instant::now();
    let mut evenings: Vec<Evening> = Vec::new();
    let of = |minutes: u64| Duration::from_secs(60 * minutes.max(1));
    let settings = Settings {
        seal_after: Duration::from_secs(86_400 * options.seal_after),
        mark_interval: of(options.mark_interval),
        touch_interval: of(options.touch_interval),
        purge_after: Duration::from_secs(86_400 * options.purge_after),
        forgetting: Forgetting {
            merge_after: Duration::from_secs(3600 * options.merge_after),
            ..Forgetting::default()
        },
        ..Settings::default()
    };
    let lived = years::Options { days, seed: options.seed, keeps_index: true, settings };
    years::run(&lived, folder.path(), &mut |evening| {
        if evening.probes.is_some() {
            eprint!("\rday {} of {days}, {:.0} s", evening.day, began.elapsed().as_secs_f64());
            let _ = std::io::stderr().flush();
        }
        evenings.push(evening.clone());
    })?;
    eprintln!();
    std::fs::write(options.out.with_extension("csv"), table::csv(&evenings))?;
    std::fs::write(options.out.with_extension("svg"), chart::svg(&evenings)?)?;
    println!("{}", table::summary(&evenings, began.elapsed()));
    Ok(())
}
