//! `omir completions`: a script for the shell.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionsArgs};
use crate::error::Result;
use crate::output;

pub(super) fn run(args: &CompletionsArgs) -> Result<()> {
    // Into memory first: the generator panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "omir", &mut script);
    Ok(output::print_bytes(&script)?)
}
