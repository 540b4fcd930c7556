//! The library behind `omir`: record, recall, inspect and move robot memories from a shell.
//!
//! Nobody but the program `omir` and its tests should depend on this crate; a program that talks
//! to the daemon speaks Zenoh, and one that reads `.omir` or `.omirb` files uses `omir-core`.
//!
//! | module | the question it answers |
//! |---|---|
//! | [`cli`] | what may be typed |
//! | [`client`] | how a daemon is found and asked |
//! | [`ids`], [`id_prefix`] | how ids are shown and typed short, and what the beginning of one means |
//! | [`selector`] | how a question is written into a Zenoh selector |
//! | [`commands`] | what each command does |
//! | [`document`] | how `.omir` and `.omirb` files are read and written |
//! | [`linked`] | how a Bundle becomes linked data |
//! | [`batches`] | in which order and in what portions resources are sent |
//! | [`retry`] | how long a daemon that is busy is asked again |
//! | [`trajectory`] | how a recorded drive becomes memories |
//! | [`instant`] | how moments and spans of time are read and written |
//! | [`serial`], [`interrupt`] | how a daemon on a serial line is asked, and left in order |
//! | [`socket`] | how a daemon on this machine is asked by its owner |
//! | `port`, `tls` | how a server of HTTP is reached by its URL |
//! | [`table`], [`progress`], [`output`] | what a terminal, a pipe and a script get to see |
//! | [`error`] | what went wrong, and the exit code it means |

pub mod batches;
pub mod cli;
pub mod client;
pub mod commands;
pub mod document;
pub mod error;
pub mod geodesy;
mod http_endpoint;
pub mod id_prefix;
pub mod ids;
pub mod instant;
pub mod interrupt;
pub mod linked;
pub mod output;
pub mod progress;
pub mod retry;
pub mod selector;
pub mod serial;
pub mod socket;
pub mod table;
mod tls;
pub mod trajectory;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::error::Error;

/// Reads the command line, does what it says and returns the exit code.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(complaint) => return refuse(&complaint),
    };
    if !matches!(cli.command, cli::Command::Daemon(_)) {
        // Zenoh's own log stays silent unless `RUST_LOG` asks for it: the tool reports failures itself.
        omird::logs::to_stderr("off");
    }
    let json = cli.globals.json;
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.report(json);
            ExitCode::from(error.exit_code())
        }
    }
}

/// Help and version go to standard output with status 0, complaints to standard error with 2.
fn refuse(complaint: &clap::Error) -> ExitCode {
    if !complaint.use_stderr() {
        // A closed pipe (`omir --help | head -1`) is not worth a word.
        let _ = complaint.print();
        return ExitCode::SUCCESS;
    }
    let json = std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
    if json {
        let text = complaint.render().to_string();
        let text = text.trim().trim_start_matches("error: ");
        Error::Usage(text.to_owned()).report(true);
    } else {
        let _ = complaint.print();
    }
    ExitCode::from(error::USAGE)
}
