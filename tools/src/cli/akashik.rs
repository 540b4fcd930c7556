//! `omir akashik`

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

/// `omir akashik`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir akashik conformance --url http://127.0.0.1:7449/akashik/v1 --tokens tokens.txt

Exit codes:
  0  all items up to the level are met
  1  an item is not met
  2  wrong usage, or a file that cannot be read
  3  none is unmet, but some are undecided
  4  nobody answers")]
pub struct AkashikArgs {
    /// The command.
    #[command(subcommand)]
    pub command: AkashikCommand,
}

/// The commands of `omir akashik`.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum AkashikCommand {
    /// Hold an Akashik endpoint against the checklist of its level
    Conformance(ConformanceArgs),
}

/// `omir akashik conformance`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir akashik conformance --url http://127.0.0.1:7449/akashik/v1 --tokens tokens.txt
  omir akashik conformance --level 1 --url http://field.local:8080/v1
  omir akashik conformance --zenoh omir/rover/akashik --tokens tokens.txt --json

It registers agents of its own and records units in the field it asks: use a field for tests. The
file of tokens has a line AUTHORITY TOKEN for each of 2, 4, 6 and 10, as
  omir token add NAME --scope akashik:agent --authority 6
prints them; without it no token is sent. Items that need a restart, a second transport or a
payload that the draft leaves open can be undecided. docs/akashik.md.

Exit codes:
  0  all items up to the level are met
  1  an item is not met
  2  wrong usage, or a file that cannot be read
  3  none is unmet, but some are undecided
  4  nobody answers")]
pub struct ConformanceArgs {
    /// The level, 0 to 3
    #[arg(long, value_name = "N", default_value = "3", value_parser = RangedU64ValueParser::<u8>::new().range(0..=3))]
    pub level: u8,

    /// The base of an endpoint over HTTP; `/record` and the like come behind it
    #[arg(long, value_name = "URL", required_unless_present = "zenoh")]
    pub url: Option<String>,

    /// The authorities of the certificate of https, in PEM; these alone are trusted
    #[arg(long, value_name = "FILE", requires = "url")]
    pub ca: Option<PathBuf>,

    /// The key of an endpoint over Zenoh, found by --connect; with --url both are asked
    #[arg(long, value_name = "KEY")]
    pub zenoh: Option<String>,

    /// File with a line AUTHORITY TOKEN for each of 2, 4, 6 and 10
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,

    /// A shell command that ends the endpoint and starts it again, for what must outlive that
    #[arg(long, value_name = "COMMAND")]
    pub restart: Option<String>,
}
