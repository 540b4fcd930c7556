//! The corruption campaign: `cargo run --release -p omird-tests --bin rot_campaign -- --help`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use omird_tests::Result;
use omird_tests::rot::{Class, Kind, Past, Shape, Table, run};

/// Hurts one file of a data folder at a time, starts, and compares every answer with those of the whole
/// folder. Ends with 1 if there was anything of which there must be none.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of folders to hurt.
    #[arg(long, default_value_t = 200)]
    trials: u64,
    /// Seed of the first trial; each has the next. With `--trials 1` a failure is repeated.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One bit, or a sector of 512 or 4096 bytes.
    #[arg(long, value_parser = ["flip", "sector"], default_value = "flip")]
    kind: String,
    /// Only these: segments, sidecars, signatures, logs, witnesses, index, keys, others.
    #[arg(long, value_delimiter = ',', value_parser = class)]
    files: Vec<Class>,
    /// The place of the folders; memory (/dev/shm), where there is some.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The counts as JSON.
    #[arg(long)]
    json: bool,
}

fn class(name: &str) -> Result<Class> {
    Class::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Class::ALL.iter().map(|class| class.as_str()).collect();
        format!("one of {}", names.join(", ")).into()
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let kind = if arguments.kind == "sector" { Kind::Sector } else { Kind::Flip };
    let classes = match arguments.files.is_empty() {
        true => Class::ALL.to_vec(),
        false => arguments.files,
    };
    let memory = PathBuf::from("/dev/shm");
    let dir = arguments.dir.unwrap_or(if memory.is_dir() { memory } else { std::env::temp_dir() });
    let root = tempfile::tempdir_in(dir).expect("a folder for the folders");
    let pasts = [Shape::Small, Shape::Indexed].map(|shape| Past::live(root.path(), shape));
    let mut table = Table::default();
    for seed in arguments.seed..arguments.seed.saturating_add(arguments.trials) {
        // Sled takes its time to open: every fourth folder keeps an index.
        let past = &pasts[usize::from(seed % 4 == 0)];
        let Some(outcome) = run(past, &root.path().join("trial"), kind, &classes, seed) else {
            continue;
        };
        let faults = outcome.faults();
        if let Some(first) = faults.first() {
            let more = faults.len() - 1;
            let first: String = first.chars().take(300).collect();
            eprintln!("seed {seed}: {}: {first} (and {more} more)", outcome.what);
        }
        table.add(&outcome);
    }
    if arguments.json {
        println!("{}", table.to_json());
    } else {
        print!("{table}");
    }
    if table.faults() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
