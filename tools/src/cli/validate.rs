//! `omir validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How strictly `omir validate` looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// What every OMIR consumer must accept
    Core,
    /// Core, and what is only a warning there
    Strict,
}

/// How `omir validate` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For reading
    Human,
    /// One report object for each file
    Json,
}

/// `omir validate`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir validate backup.omirb
  omir validate --level strict --format json notes.omir | jq .summary
  omir validate /var/lib/omird/segments           (every .omir and .omirb below)

With --format json each file's report is one JSON object on a line of its own; --json means the same.

Exit codes:
  0  every file passes
  1  a file fails
  2  wrong usage, or a file cannot be read or decoded (reported on standard error)")]
pub struct ValidateArgs {
    /// Files or folders to check; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// How strictly
    #[arg(long, value_enum, default_value_t = Level::Core)]
    pub level: Level,

    /// How to report
    #[arg(long, value_enum, default_value_t = ReportFormat::Human)]
    pub format: ReportFormat,
}
