//! `omir validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Strictness of `omir validate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// What every OMIR consumer must accept
    Core,
    /// Core, and what is only a warning there
    Strict,
}

/// Report formats of `omir validate`.
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
  omir validate --profile omir-robotics --profile patrol.json drive.omir
  omir validate /var/lib/omird/segments           (every .omir and .omirb below)

A document may be larger than memory; one entry of it, or its envelope, may not. With --format json
each file's report is one JSON object on a line of its own; --json means the same. Profiles are
omir-coding-agent, omir-robotics and omir-personal-assistant, by name or URL, or a file with a
profile in JSON; they are checked where a resource claims them in meta.profile, and only when asked
for.

Exit codes:
  0  every file passes
  1  a file fails
  2  wrong usage, or a file cannot be read or decoded (E000, reported on standard error)")]
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

    /// Check resources that claim this profile: a name, a URL or a file; repeatable
    #[arg(long, value_name = "PROFILE")]
    pub profile: Vec<String>,

    /// Warn where a resource does not claim this profile, and check those that do: a name or a URL;
    /// repeatable
    #[arg(long, value_name = "PROFILE")]
    pub require_profile: Vec<String>,

    /// Refuse the draft fields, as releases of R1 without them do
    #[arg(long)]
    pub plain_r1: bool,

    /// File for the report instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
