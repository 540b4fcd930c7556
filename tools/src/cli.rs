//! The command line: what may be typed, with examples and exit codes in every `--help`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use omir_core::model::Tier;
use omir_core::reference::ResourceType;

/// Exit codes of a command that asks the daemon.
macro_rules! online_codes {
    () => {
        "\n\nExit codes:
  0  done
  1  the daemon refused, or there is no such memory
  2  wrong usage, or an input that cannot be read
  3  finished, but not everything arrived or was done
  4  no daemon reachable"
    };
}

/// Exit codes of a command that only reads and writes files.
macro_rules! offline_codes {
    () => {
        "\n\nExit codes:
  0  done
  2  wrong usage, or an input that cannot be read"
    };
}

mod akashik;
mod backup;
mod bad_value;
mod convert;
mod daemon;
mod import;
mod mcp;
mod memory;
mod proof;
mod rebase;
mod recall;
mod schema;
mod store;
mod token;
mod validate;
mod values;

pub use akashik::{AkashikArgs, AkashikCommand, ConformanceArgs};
pub use backup::{BackupArgs, RestoreArgs};
pub use bad_value::BadValue;
pub use convert::ConvertArgs;
pub use daemon::{CompactArgs, ExplainArgs, RobotsArgs, StatusArgs, SweepArgs, WatchArgs};
pub use import::{Axes, Format, ImportArgs, RecordingArgs, TrajectoryArgs};
pub use mcp::McpArgs;
pub use memory::{AnchorArgs, FeedbackArgs, FeedbackOutcome, ForgetArgs, GetArgs, RememberArgs};
pub use proof::{ProveArgs, TraceArgs, TraceCommand, TraceValidateArgs, VerifyArgs};
pub use rebase::{Keyframe, RebaseArgs};
pub use recall::{AskArgs, FilterArgs, RecallArgs};
pub use schema::SchemaArgs;
pub use store::{
    StoreArgs, StoreCatArgs, StoreCheckArgs, StoreCommand, StoreLsArgs, StoreRepairArgs,
};
pub use token::{TokenAddArgs, TokenArgs, TokenCommand, TokenListArgs, TokenRevokeArgs};
pub use validate::{Level, ReportFormat, ValidateArgs};
pub use values::{Bounds, Geo, Moment, Orientation, Planar, Position, Spacing};

/// Record, recall, inspect and move robot memories.
///
/// Most commands ask `omird` over Zenoh. `mcp` and `token` use HTTP, `akashik` HTTP or Zenoh;
/// `console`, `pull` and `push` a serial line. `convert`, `validate`, `verify`, `trace`, `schema`,
/// `store`, `restore`, `demo` and `completions` need no running daemon.
#[derive(Debug, Parser)]
#[command(
    name = "omir",
    version,
    arg_required_else_help = true,
    propagate_version = true,
    max_term_width = 100,
    after_help = concat!(
        "Examples:
  omir remember \"door 3 sticks\" --at 4.2,-1.0,0
  omir recall \"door\" --near 4,-1 --radius 5
  omir import --format kitti --times times.txt --name kitti_00 poses.txt",
        online_codes!(),
        "\n\nEvery command lists its own with `omir COMMAND --help`."
    )
)]
pub struct Cli {
    /// Options that every command understands.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that may stand before or behind any command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Robot to ask; not needed if only one is alive
    #[arg(long, global = true, hide_env_values = true, env = "OMIR_ROBOT", value_name = "NAME", value_parser = values::robot)]
    pub robot: Option<String>,

    /// Where to connect instead of tcp/127.0.0.1:7448 and then :7447; tcp/ may be left out; repeatable
    #[arg(
        long,
        global = true,
        hide_env_values = true,
        env = "OMIR_CONNECT",
        value_name = "ENDPOINT",
        value_delimiter = ',',
        value_parser = values::endpoint
    )]
    pub connect: Vec<String>,

    /// Zenoh's own JSON5 configuration (TLS, users, access control)
    #[arg(
        long,
        global = true,
        hide_env_values = true,
        env = "OMIR_ZENOH_CONFIG",
        value_name = "FILE"
    )]
    pub zenoh_config: Option<PathBuf>,

    /// File with the token to ask with; else the token is that of OMIR_TOKEN, if it is set
    #[arg(
        long,
        global = true,
        hide_env_values = true,
        env = "OMIR_TOKEN_FILE",
        value_name = "FILE"
    )]
    pub token_file: Option<PathBuf>,

    /// First part of every key, if the daemon was configured with another
    #[arg(long, global = true, hide_env_values = true, env = "OMIR_PREFIX", value_name = "PREFIX", default_value = "omir", value_parser = values::prefix)]
    pub prefix: String,

    /// How long to wait for an answer: 500ms, 2min, or a number of seconds
    #[arg(long, global = true, value_name = "TIME", default_value = "10", value_parser = values::seconds)]
    pub timeout: Duration,

    /// JSON instead of tables and sentences, errors included
    #[arg(long, global = true)]
    pub json: bool,

    /// No progress bars and no remarks, only results and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Record one memory, or a file of resources
    Remember(Box<RememberArgs>),
    /// Find memories by words, place and time, best first
    #[command(visible_aliases = ["search", "ls"])]
    Recall(Box<RecallArgs>),
    /// Print one resource as JSON
    Get(GetArgs),
    /// Forget resources
    #[command(visible_alias = "rm")]
    Forget(ForgetArgs),
    /// Keep a memory from fading
    Anchor(AnchorArgs),
    /// Say whether a memory proved right
    Feedback(FeedbackArgs),
    /// Follow what the daemon records, updates and forgets
    Watch(WatchArgs),
    /// Show how a daemon is doing
    Status(StatusArgs),
    /// List reachable robots
    Robots(RobotsArgs),
    /// Make room: merge segments, and drop what was superseded or forgotten
    Compact(CompactArgs),
    /// Show a memory's tier and when it will fade
    Explain(ExplainArgs),
    /// Run merging, expiry and eviction now, or preview them
    Sweep(SweepArgs),
    /// Move memories with the keyframes they are tied to, after a loop closure
    Rebase(RebaseArgs),
    /// Load .omir and .omirb files, recordings of ROS 2, or trajectories
    Import(Box<ImportArgs>),
    /// Write memories to a .omir or .omirb file
    Export(Box<ExportArgs>),
    /// Talk to a daemon's console on a serial line
    Console(ConsoleArgs),
    /// Offer the memory to a language model, as an MCP client starts it
    Mcp(McpArgs),
    /// Fetch memories over a serial line
    Pull(Box<PullArgs>),
    /// Send a document over a serial line
    Push(PushArgs),
    /// Keep a copy of a daemon's memory in a folder; only what is new is fetched
    Backup(BackupArgs),
    /// Restore a backup into a data folder
    Restore(RestoreArgs),
    /// Show that a robot sealed a memory, without handing over its segment
    Prove(ProveArgs),
    /// Check such a proof by a public key, offline
    Verify(VerifyArgs),
    /// Check memory traces of Manifesto, offline
    Trace(TraceArgs),
    /// Convert between .omir and .omirb, or into linked data (.nt)
    Convert(ConvertArgs),
    /// Check files against OMIR R1
    Validate(ValidateArgs),
    /// Print JSON Schemas of OMIR R1, for editors and other languages
    Schema(SchemaArgs),
    /// Look into a data folder with no daemon running, and repair it
    Store(StoreArgs),
    /// Say who may ask a daemon, and what
    Token(TokenArgs),
    /// Test Akashik endpoints for conformance
    Akashik(AkashikArgs),
    /// Watch a robot remember, lose its power, boot and recall; needs nothing installed
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// The daemon that `demo` runs
    #[command(name = "__daemon", hide = true)]
    Daemon(DaemonArgs),
}

const TIERS: [&str; 4] = [
    Tier::Working.as_str(),
    Tier::Session.as_str(),
    Tier::Longterm.as_str(),
    Tier::Archive.as_str(),
];
const ORDERS: [&str; 4] = ["score", "latest", "earliest", "distance"];
const TYPES: [&str; 4] = [
    ResourceType::MemoryRecord.as_str(),
    ResourceType::Entity.as_str(),
    ResourceType::Relationship.as_str(),
    ResourceType::Episode.as_str(),
];

/// `omir demo`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir demo
  omir demo --into /tmp/robot && ls /tmp/robot/data/segments

It starts a daemon of its own on a free loopback port, so it disturbs none that is running.

Exit codes:
  0  every acknowledged memory survived
  2  the folder cannot be used
  3  an acknowledged memory was lost
  4  the demo's daemon did not start")]
pub struct DemoArgs {
    /// Folder to keep the robot's memory in [default: a new one in the temporary folder]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
}

/// `omir __daemon`: the arguments of `omird` that the demo and tests need.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Data folder
    #[arg(long)]
    pub data: PathBuf,
    /// Endpoint to listen on
    #[arg(long)]
    pub listen: String,
    /// File of the configuration; with one HTTP is as it says
    #[arg(long)]
    pub config: Option<PathBuf>,
}

/// `omir export`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir export -o backup.omirb
  omir export --since 1d -o today.omir
  omir export --format mcap -o memories.mcap         (for Foxglove: docs/recordings.md)
  omir export | jq '.entry | length'

Without -o the Bundle goes to standard output as JSON. With -o the file appears whole or not at all.
Resources that the daemon can no longer read are left out: standard error says how many and where
they lie, and the exit code is 3.",
    online_codes!()
))]
pub struct ExportArgs {
    /// File to write; .omir is JSON, .omirb is CBOR
    #[arg(short, long, value_name = "FILE", required_if_eq("format", "mcap"))]
    pub output: Option<PathBuf>,

    /// What to write; a Bundle, or a timeline that Foxglove shows
    #[arg(long, value_enum, default_value_t = ExportFormat::Omir)]
    pub format: ExportFormat,

    /// Leave a timeline uncompressed
    #[arg(long)]
    pub uncompressed: bool,

    /// The memories to export.
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// `omir console`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir console --port /dev/ttyUSB0
  echo status | omir console --port /dev/ttyUSB0

Any terminal program works too. Ctrl-] leaves. If the input is no terminal, each line is typed after
the answer to the one before, and the command ends with the last answer.

Exit codes:
  0  left
  2  the command line is wrong, or what came cannot be written
  3  an answer to what was piped in did not end
  4  there is no such device, or it is gone")]
pub struct ConsoleArgs {
    /// The serial device, such as /dev/ttyUSB0
    #[arg(long, value_name = "DEV")]
    pub port: PathBuf,

    /// Its speed
    #[arg(long, value_name = "BAUD", default_value_t = 115_200)]
    pub baud: u32,
}

/// `omir pull`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir pull --port /dev/ttyUSB0 -o robot.omir
  omir pull --port /dev/ttyUSB0 --since 1d --type Episode -o today.omirb
  omir pull --port /dev/ttyUSB0 --token SECRET -o robot.omir

The daemon needs [[serial]] in its configuration. The command waits --timeout seconds for the device
and an answer. Once a daemon has answered, it waits --wait seconds for a lost line, each time.
Received data lies in FILE.part, and the same command resumes from there. FILE appears when it is
complete.

Exit codes:
  0  all of it is in the file
  1  the daemon refused
  2  the command line is wrong, or a file cannot be used
  3  the line was lost, or Ctrl-C: FILE.part holds what came. Or all came that the daemon can read,
     and some it cannot: the file is there, and what is missing is said
  4  there is no such device, or no daemon answers on it")]
pub struct PullArgs {
    /// The serial device, such as /dev/ttyUSB0
    #[arg(long, value_name = "DEV")]
    pub port: PathBuf,

    /// Its speed
    #[arg(long, value_name = "BAUD", default_value_t = 115_200)]
    pub baud: u32,

    /// File to write; .omir is JSON, .omirb is CBOR [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// How long to wait for a cable that was pulled, or a daemon that was stopped, after it had answered
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = values::seconds)]
    pub wait: Duration,

    /// What unlocks the port, if the daemon answers nobody without a token
    #[arg(long, value_name = "TOKEN", hide_env_values = true, env = "OMIR_SERIAL_TOKEN")]
    pub token: Option<String>,

    /// The memories to fetch.
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// `omir push`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir push --port /dev/ttyUSB0 map.omir
  omir push --port /dev/ttyUSB0 --token SECRET map.omir

A file of up to 2 MiB is stored as a whole or not at all; a larger one is sent in parts, each
stored as a whole or not at all. Sending it again changes nothing. For that, each resource needs
its id, and each MemoryRecord and Episode its createdAt (`omir remember --file` fills them in). A
file that does not conform is refused before anything is sent. Forgotten resources come back. If
the daemon is busy, for example with another import, the command tries again for --wait seconds.

Exit codes:
  0  it is stored
  1  the daemon refused, for one because the port is read-only, or it stayed busy
  2  the command line is wrong, or the file cannot be read or does not conform
  3  a part of it is stored, or Ctrl-C: send it again. Or the daemon's answer cannot be understood
  4  no such device, no daemon answers on it, or the line was lost: send it again")]
pub struct PushArgs {
    /// The serial device, such as /dev/ttyUSB0
    #[arg(long, value_name = "DEV")]
    pub port: PathBuf,

    /// Its speed
    #[arg(long, value_name = "BAUD", default_value_t = 115_200)]
    pub baud: u32,

    /// How long to try again while the daemon is busy
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = values::seconds)]
    pub wait: Duration,

    /// What unlocks the port, if it is read-only
    #[arg(long, value_name = "TOKEN", hide_env_values = true, env = "OMIR_SERIAL_TOKEN")]
    pub token: Option<String>,

    /// The document, .omir or .omirb
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Formats of `omir export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// By the ending: .omir is JSON, .omirb is CBOR
    Omir,
    /// A timeline: what is to be seen on /omird/memories, all of it on /omird/records
    Mcap,
}

/// `omir completions`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir completions bash > ~/.local/share/bash-completion/completions/omir
  omir completions zsh > \"${fpath[1]}/_omir\"
  omir completions fish > ~/.config/fish/completions/omir.fish",
    offline_codes!()
))]
pub struct CompletionsArgs {
    /// Shell to complete in
    pub shell: Shell,
}

#[cfg(test)]
mod tests;
