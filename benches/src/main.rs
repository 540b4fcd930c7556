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

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some(process::DAEMON) => process::be_daemon(arguments),
        Some(life::NAME) => finish(life::run(&life::Options::parse_from(std::env::args().skip(1)))),
        Some(memory::NAME) => {
            finish(memory::run(&memory::Options::parse_from(std::env::args().skip(1))))
        }
        Some(http::NAME) => finish(http::run(&http::Options::parse_from(std::env::args().skip(1)))),
        Some(akashik::NAME) => {
            finish(akashik::run(&akashik::Options::parse_from(std::env::args().skip(1))))
        }
        Some(compass::NAME) => {
            finish(compass::run(&compass::Options::parse_from(std::env::args().skip(1))))
        }
        Some(meaning::NAME) => {
            finish(meaning::run(&meaning::Options::parse_from(std::env::args().skip(1))))
        }
        Some(experience::NAME) => {
            finish(experience::run(&experience::Options::parse_from(std::env::args().skip(1))))
        }
        Some(compass_quality::NAME) => finish(compass_quality::run(
            &compass_quality::Options::parse_from(std::env::args().skip(1)),
        )),
        Some(waits::NAME) => {
            finish(waits::run(&waits::Options::parse_from(std::env::args().skip(1))))
        }
        Some(quality::NAME) => {
            finish(quality::run(&quality::Options::parse_from(std::env::args().skip(1))))
        }
        Some(quality::conversations::NAME) => finish(quality::conversations::run(
            &quality::conversations::Options::parse_from(std::env::args().skip(1)),
        )),
        Some(process::ECHO) => finish(echo::serve(arguments)),
        Some(process::HTTP_FLOOR) => finish(http::floor::serve()),
        _ => finish(measure::all(&options::Options::parse())),
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
