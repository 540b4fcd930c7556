//! `omir store`: a data folder with no daemon running.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Exit codes of the commands that read a store.
macro_rules! store_codes {
    () => {
        "\n\nExit codes:
  0  done
  2  wrong usage, or a folder that cannot be read or is in use
  3  finished, but something of the store is lost or unreadable"
    };
}

/// `omir store`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir store check /var/lib/omird
  omir store ls /media/card/omird --all
  omir store cat /media/card/omird MemoryRecord/door-3
  omir store repair /media/card/omird --into /var/lib/omird-new

Nothing in the folder is changed. Its lock is taken meanwhile; a card that is mounted read-only is
read without. `ls`, `cat` and `check` also take a single segment (.omirb) or log (.wal).",
    store_codes!(),
    "\n\n`check` has its own: see `omir store check --help`."
))]
pub struct StoreArgs {
    /// The command on the folder.
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// The commands of `omir store`.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum StoreCommand {
    /// Name everything that is wrong, with file and byte
    Check(StoreCheckArgs),
    /// List what is in it
    Ls(StoreLsArgs),
    /// Print a resource, or everything as a Bundle
    Cat(StoreCatArgs),
    /// Write everything that can be read into a new folder
    Repair(StoreRepairArgs),
}

/// `omir store check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir store check /var/lib/omird
  omir store check --json /media/card/omird | jq '.findings[] | select(.severity != \"info\")'
  omir store check segments/0000000003.omirb

Damage to the very last write cannot be told from a write that a power cut stopped, which was never
acknowledged: it is reported as a torn end.

Exit codes:
  0  sound
  1  faults were found, and nothing that was acknowledged is lost
  2  wrong usage, or a folder that cannot be read or is in use
  3  something that was acknowledged is lost, or the daemon cannot read it")]
pub struct StoreCheckArgs {
    /// Data folder, segment or log
    #[arg(value_name = "DIR|FILE")]
    pub path: PathBuf,
}

/// `omir store ls`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir store ls /var/lib/omird
  omir store ls /var/lib/omird --all
  omir store ls /var/lib/omird --files
  omir store ls --json /var/lib/omird | jq -r 'select(.recorded > \"2026-05\") | .ref'

One line for each live resource, in the order they were recorded; with --json one object a line.
`~` before a version marks one whose number or time is only the most likely one.",
    store_codes!()
))]
pub struct StoreLsArgs {
    /// Data folder, segment or log
    #[arg(value_name = "DIR|FILE")]
    pub path: PathBuf,

    /// Also what was superseded or forgotten
    #[arg(long)]
    pub all: bool,

    /// Files instead of resources
    #[arg(long, conflicts_with = "all")]
    pub files: bool,
}

/// `omir store cat`
#[derive(Debug, Args)]
#[command(
    disable_version_flag = true,
    after_help = concat!(
        "Examples:
  omir store cat /var/lib/omird MemoryRecord/door-3
  omir store cat /var/lib/omird Entity/dock --version 2
  omir store cat /var/lib/omird 0000000003.omirb           (what is in that file)
  omir store cat segments/0000000003.omirb -o third.omir
  omir store cat /var/lib/omird -o everything.omirb

A resource is printed as it lies there, accesses since then not counted in; the beginning of its id
is enough where no other begins so. Without one, everything
live comes out as a Bundle that validates alone.",
        store_codes!(),
        "
  1  the resource is not there, or it was forgotten"
    )
)]
pub struct StoreCatArgs {
    /// Data folder, segment or log
    #[arg(value_name = "DIR|FILE")]
    pub path: PathBuf,

    /// Type/id, the id of a MemoryRecord, or a file of the store [default: everything live]
    #[arg(value_name = "REF|FILE")]
    pub what: Option<String>,

    /// This version instead of the newest
    #[arg(id = "number", long = "version", value_name = "N", requires = "what")]
    pub version: Option<u64>,

    /// File to write; .omir is JSON, .omirb is CBOR
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `omir store repair`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir store repair /media/card/omird --into /var/lib/omird-new
  omir store repair broken --into mended && omird --data mended

Versions, times of recording, tombstones and counts of accesses are kept as far as they can be read;
what is lost is listed by file and byte. Segments are signed with the same device key if it is
there. The index is made by the first start of the daemon.

Exit codes:
  0  everything was brought back
  2  wrong usage, a folder that cannot be read or is in use, or a new one that cannot be written
  3  finished, but something was lost")]
pub struct StoreRepairArgs {
    /// Data folder to read; it is not changed
    #[arg(value_name = "DIR")]
    pub path: PathBuf,

    /// Folder to write; it must not exist, or be empty
    #[arg(long, value_name = "NEWDIR")]
    pub into: PathBuf,
}
