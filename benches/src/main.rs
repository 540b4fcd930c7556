//! `omird-bench`: what the daemon costs, beside the least it could cost, in one run.
//!
//! `cargo run --release -p omird-benches` prints one table. Every time is measured next to its
//! *floor* — the same bytes over the same network and disk with no memory in between — in
//! alternating batches, so that a busy machine slows both. `README.md` says what each row means.
//!
//! The daemon and the floor's server run as processes of their own: this program starts itself
//! again with a hidden first argument (see `process`).

mod akashik;
mod compass;
mod compass_quality;
mod echo;
mod experience;
mod http;
mod life;
mod machine;
mod meaning;
mod measure;
mod memory;
mod options;
mod owned;
mod path;
mod process;
mod quality;
mod questions;
mod records;
mod report;
mod samples;
mod waits;
mod wire;
mod words;

use std::process::ExitCode;

use clap::Parser;
use omird_tests::Result;

use crate::options::{Arguments, Measurement};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(process::DAEMON) => process::be_daemon(arguments),
        Some(process::ECHO) => finish(echo::serve(arguments)),
        Some(process::HTTP_FLOOR) => finish(http::floor::serve()),
        _ => finish(measured(&Arguments::parse())),
    }
}

fn measured(arguments: &Arguments) -> Result<()> {
    let Some(measurement) = &arguments.measurement else { return measure::all(&arguments.table) };
    match measurement {
        Measurement::Akashik(options) => akashik::run(options),
        Measurement::Compass(options) => compass::run(options),
        Measurement::CompassQuality(options) => compass_quality::run(options),
        Measurement::Experience(options) => experience::run(options),
        Measurement::Http(options) => http::run(options),
        Measurement::Life(options) => life::run(options),
        Measurement::Meaning(options) => meaning::run(options),
        Measurement::Memory(options) => memory::run(options),
        Measurement::RecallConversations(options) => quality::conversations::run(options),
        Measurement::RecallQuality(options) => quality::run(options),
        Measurement::Waits(options) => waits::run(options),
    }
}

fn finish(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omird-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
