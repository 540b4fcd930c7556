//! `omir prove`, `omir verify` and `omir trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use omir_core::reference::Ref;

use super::values;

/// `omir prove`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir prove MemoryRecord/door-3 -o proof.json
  omir prove door-3 --seal -o proof.json             (first has everything sealed that is not)
  omir prove door-3 --data /var/lib/omird            (with no daemon running, or of a backup)

The proof shows that the robot's device sealed the newest version of the resource. `omir verify`
checks it with nothing but the proof and the public key, which lies in the data folder as
keys/device.pub. What a proof says, and what it does not: docs/proofs.md. With --data the exit
code is never 4.",
    online_codes!()
))]
pub struct ProveArgs {
    /// Type/id, or the id of a MemoryRecord
    #[arg(value_name = "REF", value_parser = values::reference)]
    pub reference: Ref,

    /// File for the proof instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Have everything sealed first if the resource is not; needs the scope omir:admin
    #[arg(long, conflicts_with = "data")]
    pub seal: bool,

    /// Data folder or backup to read instead of asking a daemon
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// `omir verify`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir verify proof.json --key device.pub
  omir verify proof.json --key 03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8
  omir prove door-3 | omir verify - --key device.pub --json | jq .resource

Asks nobody and reads nothing else. The key must come from someone you trust, and not with the
proof.

Exit codes:
  0  the proof is valid
  1  the proof is not valid; the message says why
  2  wrong usage, or the file is no proof or cannot be read")]
pub struct VerifyArgs {
    /// The proof; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Public key: 64 hex digits, or a file with one a line, any of which may have signed; repeatable
    #[arg(long, value_name = "FILE|HEX", required = true)]
    pub key: Vec<String>,
}

/// `omir trace`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir trace validate trace.json

A trace is the record of a selection, which travels in a Proposal: docs/manifesto.md.

Exit codes:
  0  valid
  1  not valid
  2  wrong usage, or an unreadable file")]
pub struct TraceArgs {
    /// The command on traces.
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// The commands of `omir trace`.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum TraceCommand {
    /// Check a memory trace, or a Proposal that carries one
    Validate(TraceValidateArgs),
}

/// `omir trace validate`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir trace validate trace.json
  omir trace validate proposal.json        (at trace.context.memory)
  omir trace validate - --json < trace.json | jq .errors

Asks nobody. It checks the form of the trace by Manifesto Memory 1.2.0, not the proofs in it:
docs/manifesto.md.

Exit codes:
  0  the trace is valid
  1  it is not; the message names each fault and its place
  2  wrong usage, or the file is not JSON or cannot be read")]
pub struct TraceValidateArgs {
    /// The trace or the Proposal, as JSON; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
