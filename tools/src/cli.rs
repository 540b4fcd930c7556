//! The command line: what may be typed, with examples and exit codes in every `--help`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use omir_core::model::{ExperienceType, Kind, Tier};
use omir_core::reference::{Id, Ref, ResourceType};

use crate::instant::Instant;

/// Exit codes of a command that asks the daemon.
macro_rules! online_codes {
    () => {
        "\n\nExit codes:
  0  done
  1  the daemon refused, or it was not found
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

mod backup;
mod convert;
mod import;
mod rebase;
mod recall;
mod schema;
mod store;
mod validate;
mod values;

pub use backup::{BackupArgs, RestoreArgs};
pub use convert::ConvertArgs;
pub use import::{Axes, Format, ImportArgs, RecordingArgs, TrajectoryArgs};
pub use rebase::{Keyframe, RebaseArgs};
pub use recall::{FilterArgs, RecallArgs};
pub use schema::SchemaArgs;
pub use store::{
    StoreArgs, StoreCatArgs, StoreCheckArgs, StoreCommand, StoreLsArgs, StoreRepairArgs,
};
pub use validate::{Level, ReportFormat, ValidateArgs};
pub use values::{Bounds, Geo, Orientation, Planar, Position, Spacing};

/// Record, recall, inspect and move robot memories.
///
/// `omir` asks the memory daemon `omird` over Zenoh; `convert`, `validate`, `schema`,
/// `store`, `restore` and `completions` need no daemon.
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
    /// What every command understands.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that may stand before or behind any command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Robot to ask; not needed while only one is alive
    #[arg(long, global = true, hide_env_values = true, env = "OMIR_ROBOT", value_name = "NAME", value_parser = values::robot)]
    pub robot: Option<String>,

    /// Zenoh endpoint to connect to instead of tcp/127.0.0.1:7448 and then :7447; repeatable
    #[arg(
        long,
        global = true,
        hide_env_values = true,
        env = "OMIR_CONNECT",
        value_name = "ENDPOINT",
        value_delimiter = ','
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

    /// First part of every key, where the daemon was configured with another
    #[arg(long, global = true, hide_env_values = true, env = "OMIR_PREFIX", value_name = "PREFIX", default_value = "omir", value_parser = values::prefix)]
    pub prefix: String,

    /// How long to wait for an answer
    #[arg(long, global = true, value_name = "SECONDS", default_value = "10", value_parser = values::seconds)]
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
    Recall(Box<RecallArgs>),
    /// Print one resource as JSON
    Get(GetArgs),
    /// Forget resources
    Forget(ForgetArgs),
    /// Keep a memory from fading
    Anchor(AnchorArgs),
    /// Say whether a memory proved right
    Feedback(FeedbackArgs),
    /// Follow what the daemon records, updates and forgets
    Watch(WatchArgs),
    /// Show how a daemon is doing
    Status(StatusArgs),
    /// Make room: merge segments, and drop what was superseded or forgotten
    Compact(CompactArgs),
    /// Say why a memory is where it is, and when it will fade
    Explain(ExplainArgs),
    /// Let time do its work on the memories now, or look at what it would do
    Sweep(SweepArgs),
    /// Move memories with the keyframes they are tied to, after a loop closure
    Rebase(RebaseArgs),
    /// Load .omir and .omirb files, recordings of ROS 2, or trajectories
    Import(Box<ImportArgs>),
    /// Write memories to a .omir or .omirb file
    Export(Box<ExportArgs>),
    /// Talk to a daemon's console on a serial line
    Console(ConsoleArgs),
    /// Fetch memories over a serial line
    Pull(Box<PullArgs>),
    /// Send a document over a serial line
    Push(PushArgs),
    /// Keep a copy of a daemon's memory in a folder; only what is new is fetched
    Backup(BackupArgs),
    /// Make a data folder of a backup
    Restore(RestoreArgs),
    /// Convert between .omir and .omirb, or into linked data (.nt)
    Convert(ConvertArgs),
    /// Check files against OMIR R1
    Validate(ValidateArgs),
    /// Print JSON Schemas of OMIR R1, for editors and other languages
    Schema(SchemaArgs),
    /// Look into a data folder with no daemon running, and repair it
    Store(StoreArgs),
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

/// `omir __daemon`: the arguments of `omird` that the demo needs.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Data folder
    #[arg(long)]
    pub data: PathBuf,
    /// Endpoint to listen on
    #[arg(long)]
    pub listen: String,
}

/// `omir remember`
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").required(true).args(["text", "file"]),
    group = ArgGroup::new("place").multiple(true).args(["at", "geo"]),
    after_help = concat!(
        "Examples:
  omir remember \"door 3 sticks\" --at 4.2,-1.0,0 --importance 0.8
  omir remember \"charging dock\" --at 0,0,0 --yaw 1.57 --entity Entity/dock --anchored
  omir remember \"tree across the path\" --geo 48.8584,2.2945,35
  omir remember --file resources.json
  generate | omir remember --file -

A text that begins with a dash goes behind `--`. With --geo and no --at the position is the same
place in the frame `earth` (WGS 84, earth-centred, REP-105). The command returns when the daemon
has made the memory durable; a request is stored as a whole or not at all.",
        online_codes!()
    )
)]
pub struct RememberArgs {
    /// What to remember
    pub text: Option<String>,

    /// Position in metres, x forward, y left, z up
    #[arg(long, value_name = "X,Y[,Z]", allow_hyphen_values = true)]
    pub at: Option<Position>,

    /// Frame of the position [default: map]
    #[arg(long, requires = "at")]
    pub frame: Option<String>,

    /// Orientation as a quaternion
    #[arg(
        long,
        value_name = "QX,QY,QZ,QW",
        allow_hyphen_values = true,
        requires = "place",
        conflicts_with = "yaw"
    )]
    pub orientation: Option<Orientation>,

    /// Heading in radians, counter-clockwise from x
    #[arg(long, value_name = "RAD", allow_hyphen_values = true, requires = "place", value_parser = values::finite)]
    pub yaw: Option<f64>,

    /// WGS 84 position in degrees and metres
    #[arg(long, value_name = "LAT,LON[,ALT]", allow_hyphen_values = true)]
    pub geo: Option<Geo>,

    /// How much it matters, 0 to 1
    #[arg(long, value_name = "0..1", conflicts_with = "file", value_parser = values::unit)]
    pub importance: Option<f64>,

    /// Time after which it is half forgotten
    #[arg(long, value_name = "HOURS", conflicts_with = "file", value_parser = values::positive)]
    pub half_life: Option<f64>,

    /// Never let it fade below its floor
    #[arg(long, conflicts_with = "file")]
    pub anchored: bool,

    /// Entity it is about; repeatable
    #[arg(long = "entity", value_name = "ENTITY/ID", conflicts_with = "file", value_parser = values::entity)]
    pub entities: Vec<Ref>,

    /// When it happened, if not now
    #[arg(long, value_name = "RFC3339", conflicts_with = "file")]
    pub event_time: Option<Instant>,

    /// Nature of the experience
    #[arg(long, value_name = "TYPE", conflicts_with = "file", hide_possible_values = true, value_parser = PossibleValuesParser::new(ExperienceType::WORDS))]
    pub experience_type: Option<String>,

    /// Lifecycle class
    #[arg(long, conflicts_with = "file", value_parser = PossibleValuesParser::new(Kind::WORDS))]
    pub kind: Option<String>,

    /// Place in the hierarchy of memory
    #[arg(long, conflicts_with = "file", value_parser = PossibleValuesParser::new(TIERS))]
    pub tier: Option<String>,

    /// Own id, so that remembering again updates [default: generated]
    #[arg(long, conflicts_with = "file", value_parser = values::id)]
    pub id: Option<Id>,

    /// Resource, array of resources or Bundle to store instead; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "at", "geo"])]
    pub file: Option<PathBuf>,
}

/// `omir get`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir get MemoryRecord/door-3
  omir get Entity/dock | jq .name
  omir get door-3                   (an id alone names a MemoryRecord)",
    online_codes!()
))]
pub struct GetArgs {
    /// What to print: Type/id, or the id of a MemoryRecord
    #[arg(value_name = "REF", value_parser = values::reference)]
    pub reference: Ref,
}

/// `omir forget`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir forget MemoryRecord/door-3
  omir forget door-3 door-4

An Entity takes its Relationships with it, which cannot be without it. What is not there is named in
the end, with exit code 1; the others are forgotten all the same.",
    online_codes!()
))]
pub struct ForgetArgs {
    /// What to forget: Type/id, or the id of a MemoryRecord
    #[arg(value_name = "REF", required = true, value_parser = values::reference)]
    pub references: Vec<Ref>,
}

/// `omir anchor`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir anchor MemoryRecord/charging-dock
  omir anchor --off charging-dock",
    online_codes!()
))]
pub struct AnchorArgs {
    /// MemoryRecord/id, or the id alone
    #[arg(value_name = "REF", value_parser = values::memory)]
    pub reference: Ref,

    /// Let it fade again
    #[arg(long)]
    pub off: bool,
}

/// What an observation said about a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Outcome {
    /// It proved right
    Confirmed,
    /// It proved wrong
    Contradicted,
}

impl Outcome {
    /// As the daemon calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Contradicted => "contradicted",
        }
    }
}

/// `omir feedback`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir feedback MemoryRecord/door-3 confirmed
  omir feedback door-3 contradicted --weight 2",
    online_codes!()
))]
pub struct FeedbackArgs {
    /// MemoryRecord/id, or the id alone
    #[arg(value_name = "REF", value_parser = values::memory)]
    pub reference: Ref,

    /// How it turned out
    pub outcome: Outcome,

    /// How many observations this counts for
    #[arg(long, value_name = "WEIGHT", value_parser = values::positive)]
    pub weight: Option<f64>,
}

/// What the daemon publishes after a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventKind {
    /// A new resource
    Recorded,
    /// A new version
    Updated,
    /// A tombstone
    Forgotten,
    /// A move between tiers
    Tier,
    /// A resource that was not stored
    Rejected,
}

impl EventKind {
    /// As it stands in the key.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Updated => "updated",
            Self::Forgotten => "forgotten",
            Self::Tier => "tier",
            Self::Rejected => "rejected",
        }
    }
}

/// `omir watch`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir watch
  omir watch --kind recorded,rejected
  omir watch --json --count 1 | jq .resource

One event a line, one JSON object a line with --json, until Ctrl-C. The connection is taken up
again by itself when the daemon restarts; what happened meanwhile is not repeated.",
    online_codes!()
))]
pub struct WatchArgs {
    /// Only these kinds of event
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    pub kinds: Vec<EventKind>,

    /// Stop after so many events
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub count: Option<u64>,
}

/// `omir status`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir status
  omir --robot r2d2 status --json | jq .counts

Without --robot every robot that is alive is asked. --json prints one object a line for each.",
    online_codes!()
))]
pub struct StatusArgs {}

/// `omir compact`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir compact
  omir compact --forgotten
  omir --json compact --all | jq .bytesAfter

The daemon compacts by itself when it has nothing else to do; this does at once what is due. With
--forgotten or --all, nothing on the card tells of what was forgotten when the command returns. What
was superseded can be asked for as long as the daemon's store.keep_history_s says, and goes then.",
    online_codes!()
))]
pub struct CompactArgs {
    /// Rewrite whatever still tells of something forgotten, so that it is gone from the card
    #[arg(long, conflicts_with = "all")]
    pub forgotten: bool,

    /// Rewrite all segments into as few as there may be; writes about as much as is stored
    #[arg(long)]
    pub all: bool,
}

/// `omir explain`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir explain MemoryRecord/door-3
  omir explain door-3 --json | jq .nextMove
  omir explain Relationship/cup-on-table

Tells the tier and the rule that put it there, how retrievable it is, when it moves next if nobody
asks for it, when it fades below the level of the archive, when it expires, and how many others are
needed less. Of a relationship it tells the strength by now. It counts as no access.",
    online_codes!()
))]
pub struct ExplainArgs {
    /// Type/id, or the id of a MemoryRecord
    #[arg(value_name = "REF", value_parser = values::reference)]
    pub reference: Ref,
}

/// `omir sweep`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir sweep --dry-run
  omir sweep --json | jq .merged

The daemon sweeps by itself when it is idle. A sweep announces what has moved to another tier,
merges near-duplicate observations, forgets what stopped being valid long ago, and makes room if
there is too little. With --dry-run nothing is changed.",
    online_codes!()
))]
pub struct SweepArgs {
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `omir export`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir export -o backup.omirb
  omir export --since 1d -o today.omir
  omir export --format mcap -o memories.mcap         (for Foxglove: docs/recordings.md)
  omir export | jq '.entry | length'

Without -o the Bundle goes to standard output as JSON. With -o the file appears whole or not at
all. What the daemon can no longer read is left out: standard error says how many and where they
lie, and the exit code is 3.",
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

    /// Which memories to export.
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// `omir console`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir console --port /dev/ttyUSB0
  echo status | omir console --port /dev/ttyUSB0

Any terminal program will do as well. Ctrl-] leaves. Where no terminal is read from, each line of
the input is typed after the answer to the one before, and the last answer ends it.

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

The daemon serves the port with [[serial]] in its configuration. A device that is not there, or on
which nobody answers, is tried for --timeout seconds. Once a daemon has answered, a line that is
lost is waited for --wait seconds, anew each time; what came lies in FILE.part, and the same command
goes on from there. FILE itself appears when all is there.

Exit codes:
  0  all of it is in the file
  1  the daemon refused
  2  the command line is wrong, or a file cannot be used
  3  the line was lost: FILE.part holds what came. Or all came that the daemon can read, and some
     it cannot: the file is there, and what is missing is said
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
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = values::seconds)]
    pub wait: Duration,

    /// Which memories to fetch.
    #[command(flatten)]
    pub filters: FilterArgs,
}

/// `omir push`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir push --port /dev/ttyUSB0 map.omir
  omir push --port /dev/ttyUSB0 --token SECRET map.omir

All of the file is stored or none of it, up to 2 MiB; a larger one is sent in parts, of which each
is. What is there already is no change, so it may be sent again. What was forgotten there comes
back.

Exit codes:
  0  it is stored
  1  the daemon refused, for one because the port is read-only
  2  the command line is wrong, or the file cannot be read
  3  a part of it is stored: send it again; or the daemon's answer cannot be understood
  4  no such device, no daemon answers on it, or the line was lost: send it again")]
pub struct PushArgs {
    /// The serial device, such as /dev/ttyUSB0
    #[arg(long, value_name = "DEV")]
    pub port: PathBuf,

    /// Its speed
    #[arg(long, value_name = "BAUD", default_value_t = 115_200)]
    pub baud: u32,

    /// What unlocks the port, if it is read-only
    #[arg(long, value_name = "TOKEN", hide_env_values = true, env = "OMIR_SERIAL_TOKEN")]
    pub token: Option<String>,

    /// The document, .omir or .omirb
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// What `omir export` writes.
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
