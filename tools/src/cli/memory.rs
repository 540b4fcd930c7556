//! `omir remember`, `get`, `forget`, `anchor` and `feedback`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, ValueEnum};
use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::{Id, Ref, ResourceType};

use super::TIERS;
use super::values::{self, Geo, Orientation, Position};
use crate::instant::Instant;

/// `omir remember`
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").required(true).multiple(true).args(["text", "file", "name"]),
    group = ArgGroup::new("place").multiple(true).args(["at", "geo"]),
    after_help = concat!(
        "Examples:
  omir remember \"door 3 sticks\" --at 4.2,-1.0,0 --importance 0.8
  omir remember \"charging dock\" --at 0,0,0 --yaw 1.57 --entity Entity/dock --anchored
  omir remember \"tree across the path\" --geo 48.8584,2.2945,35
  describe | omir remember -
  omir remember --type Entity --name \"charging dock\" --label location --id dock
  omir remember --file resources.json
  generate | omir remember --file -

Put a text that begins with a dash behind `--`. A dash alone reads the text from standard input. The
text of an Entity is its summary. With --geo and without --at the position is the same place in the
frame `earth` (WGS 84, earth-centred, REP-105). The command returns when the memory is durable. A
request is stored as a whole or not at all.",
        online_codes!()
    )
)]
pub struct RememberArgs {
    /// What to remember; - is standard input
    #[arg(value_parser = values::said)]
    pub text: Option<String>,

    /// What it is: a memory, or a thing, place or person that memories are about
    #[arg(long = "type", value_name = "TYPE", default_value = "MemoryRecord", conflicts_with = "file", value_parser = PossibleValuesParser::new(MADE))]
    pub resource_type: String,

    /// Name of the Entity
    #[arg(long, required_if_eq("resource_type", "Entity"), conflicts_with = "file", value_parser = values::said)]
    pub name: Option<String>,

    /// What kind of Entity it is; repeatable
    #[arg(long = "label", value_name = "LABEL", requires = "name", ignore_case = true, value_parser = PossibleValuesParser::new(Label::WORDS))]
    pub labels: Vec<String>,

    /// Position in metres, x forward, y left, z up
    #[arg(long, value_name = "X,Y[,Z]", allow_hyphen_values = true)]
    pub at: Option<Position>,

    /// Frame of the position [default: the daemon's fixed frame, map if it has no other]
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
    #[arg(long, allow_negative_numbers = true, value_name = "0..1", conflicts_with = "file", value_parser = values::unit)]
    pub importance: Option<f64>,

    /// Time after which it is half forgotten: 3d, 12h, or a number of hours
    #[arg(long, allow_negative_numbers = true, value_name = "TIME", conflicts_with = "file", value_parser = values::hours)]
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

    /// Only if nothing is stored under that id
    #[arg(long, conflicts_with = "if_version")]
    pub if_absent: bool,

    /// Only if the stored version is this one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub if_version: Option<u64>,
}

/// Kinds that the options of `remember` describe; the other types come from files.
const MADE: [&str; 2] = [ResourceType::MemoryRecord.as_str(), ResourceType::Entity.as_str()];

impl RememberArgs {
    /// Returns true if the options describe an Entity.
    #[must_use]
    pub fn is_entity(&self) -> bool {
        self.resource_type == ResourceType::Entity.as_str()
    }

    /// The first option that only memories have, to refuse it of an Entity; or the other way round.
    #[must_use]
    pub fn misplaced(&self) -> Option<&'static str> {
        if !self.is_entity() {
            return self.name.as_ref().map(|_| "--name");
        }
        [
            (self.half_life.is_some(), "--half-life"),
            (self.anchored, "--anchored"),
            (!self.entities.is_empty(), "--entity"),
            (self.event_time.is_some(), "--event-time"),
            (self.experience_type.is_some(), "--experience-type"),
            (self.kind.is_some(), "--kind"),
            (self.tier.is_some(), "--tier"),
        ]
        .into_iter()
        .find_map(|(given, name)| given.then_some(name))
    }
}

/// `omir get`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir get MemoryRecord/door-3
  omir get Entity/dock | jq .name
  omir get door-3                   (an id alone names a MemoryRecord)
  omir get 3f9a12bc                 (as `omir recall` shows it; of Entities: Entity/3f9a12bc)

The beginning of an id is enough if no other id begins with it. If several do, all are listed and
nothing is done. A number is not cut: door-3 does not mean door-30.",
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
  omir rm 3f9a12bc                  (as `omir recall` shows it)

The beginning of an id is enough if it has four characters and no other id begins with it. The exact
name of a forgotten memory never stands for another one.
Forgetting an Entity forgets its Relationships too. Names that are not stored are listed at the end,
with exit code 1; the others are forgotten.",
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
  omir anchor --off charging-dock
  omir anchor 3f9a12bc              (as `omir recall` shows it)",
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

/// The verdict of an observation on a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FeedbackOutcome {
    /// It proved right
    Confirmed,
    /// It proved wrong
    Contradicted,
}

impl FeedbackOutcome {
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
  omir feedback door-3 contradicted --weight 2
  omir feedback 3f9a12bc confirmed  (as `omir recall` shows it)",
    online_codes!()
))]
pub struct FeedbackArgs {
    /// MemoryRecord/id, or the id alone
    #[arg(value_name = "REF", value_parser = values::memory)]
    pub reference: Ref,

    /// How it turned out
    pub outcome: FeedbackOutcome,

    /// How many observations this counts for
    #[arg(long, allow_negative_numbers = true, value_name = "WEIGHT", value_parser = values::positive)]
    pub weight: Option<f64>,
}
