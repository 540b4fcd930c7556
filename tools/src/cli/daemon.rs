//! `omir watch`, `status`, `compact`, `explain` and `sweep`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use omir_core::event::EventKind;
use omir_core::reference::Ref;

use super::values;

/// Reads a kind of event.
fn kinds() -> impl TypedValueParser<Value = EventKind> {
    let described = |kind: EventKind| {
        PossibleValue::new(kind.as_str()).help(match kind {
            EventKind::Recorded => "A new resource",
            EventKind::Updated => "A new version",
            EventKind::Forgotten => "A tombstone",
            EventKind::Tier => "A move between tiers",
            EventKind::Rejected => "A resource that was not stored",
            EventKind::Repaired => "A damaged file that is whole again",
            EventKind::Lost => "A file of which something is lost",
        })
    };
    PossibleValuesParser::new(EventKind::ALL.map(described))
        .try_map(|name| name.parse::<EventKind>())
}

/// `omir watch`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir watch
  omir watch --kind recorded,rejected
  omir watch --json --count 1 | jq .resource

Prints one event a line until Ctrl-C, with --json one JSON object a line. It reconnects by itself
when the daemon restarts; events of the meantime are not repeated.",
    online_codes!()
))]
pub struct WatchArgs {
    /// Only these kinds of event
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    pub kinds: Vec<EventKind>,

    /// Stop after so many events
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub count: Option<u64>,
}

/// `omir status`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir status                       (a screen: is it healthy, and what to do if not)
  omir status --all                 (every field, as --json has it)
  omir --robot r2d2 status --json | jq .counts

Without --robot all robots are asked; for several only the verdict is shown. --json prints one
object a line for each robot, with every field.",
    online_codes!()
))]
pub struct StatusArgs {
    /// Show every field below the verdict
    #[arg(long)]
    pub all: bool,
}

/// `omir robots`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir robots
  omir robots --connect tcp/192.168.1.5:7447      (through a router: all that hang on it)
  omir robots --json | jq -r .robot

Prints one line for each robot that is heard, with --json one object a line. A robot that is heard
and does not answer is listed too.",
    online_codes!()
))]
pub struct RobotsArgs {}

/// `omir compact`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir compact
  omir compact --forgotten
  omir --json compact --all | jq .bytesAfter

The daemon compacts by itself when it has nothing else to do; this command does it at once. With
--forgotten or --all, forgotten memories are gone from the card when the command returns. Superseded
versions can be asked for during the daemon's store.keep_history_s, and are dropped after that.",
    online_codes!()
))]
pub struct CompactArgs {
    /// Rewrite all segments with forgotten memories, so that these are gone from the card
    #[arg(long, conflicts_with = "all")]
    pub forgotten: bool,

    /// Rewrite all segments into as few as possible; writes about as much as is stored
    #[arg(long)]
    pub all: bool,
}

/// `omir explain`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir explain MemoryRecord/door-3
  omir explain door-3 --json | jq .nextMove
  omir explain 3f9a12bc             (as `omir recall` shows it)
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
