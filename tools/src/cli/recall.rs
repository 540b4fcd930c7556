//! `omir recall`, and the filters that `omir export` shares with it.

use clap::Args;
use clap::builder::PossibleValuesParser;
use omir_core::model::{ExperienceType, Kind, Label};
use omir_core::reference::Ref;

use super::values::{self, Bounds, Geo, Moment, Planar, VectorText};
use super::{ORDERS, TIERS, TYPES};
use crate::instant::TimeBound;

/// The filters that `recall` and `export` share.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Near a place; two coordinates mean distance in the plane
    #[arg(long, value_name = "X,Y[,Z]", allow_hyphen_values = true)]
    pub near: Option<Planar>,

    /// Within so many metres of --near or --geo
    #[arg(long, allow_negative_numbers = true, value_name = "METRES", value_parser = values::not_negative)]
    pub radius: Option<f64>,

    /// Frame of --near and --box [default: the daemon's fixed frame, map if it has no other]
    #[arg(long)]
    pub frame: Option<String>,

    /// Inside an axis-aligned box
    #[arg(long = "box", value_name = "X0,Y0,Z0,X1,Y1,Z1", allow_hyphen_values = true)]
    pub bounds: Option<Bounds>,

    /// Near a WGS 84 position
    #[arg(long, value_name = "LAT,LON[,ALT]", allow_hyphen_values = true, conflicts_with = "near")]
    pub geo: Option<Geo>,

    /// Not before: 7d, 12h, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<TimeBound>,

    /// Not after
    #[arg(long, value_name = "WHEN")]
    pub until: Option<TimeBound>,

    /// Earlier than this memory (Type/id), or than a time
    #[arg(long, value_name = "MEMORY|WHEN", value_parser = values::moment)]
    pub before: Option<Moment>,

    /// Later than this memory, or than a time
    #[arg(long, value_name = "MEMORY|WHEN", value_parser = values::moment)]
    pub after: Option<Moment>,

    /// Resource type
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(TYPES))]
    pub resource_type: Option<String>,

    /// Lifecycle class
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::WORDS))]
    pub kind: Option<String>,

    /// Place in the hierarchy of memory
    #[arg(long, value_parser = PossibleValuesParser::new(TIERS))]
    pub tier: Option<String>,

    /// Nature of the experience
    #[arg(long, value_name = "TYPE", hide_possible_values = true, value_parser = PossibleValuesParser::new(ExperienceType::WORDS))]
    pub experience_type: Option<String>,

    /// About this entity
    #[arg(long, value_name = "ENTITY/ID", value_parser = values::entity)]
    pub entity: Option<Ref>,

    /// Entities with this label
    #[arg(long, hide_possible_values = true, value_parser = PossibleValuesParser::new(Label::WORDS))]
    pub label: Option<String>,

    /// At least this important
    #[arg(long, allow_negative_numbers = true, value_name = "0..1", value_parser = values::unit)]
    pub min_importance: Option<f64>,

    /// At least this certain
    #[arg(long, allow_negative_numbers = true, value_name = "0..1", value_parser = values::unit)]
    pub min_confidence: Option<f64>,

    /// Hide memories that have faded below this (1 = just used)
    #[arg(long, allow_negative_numbers = true, value_name = "0..1", value_parser = values::unit)]
    pub min_retrievability: Option<f64>,

    /// Also what is no longer valid
    #[arg(long)]
    pub include_expired: bool,

    /// Also intentions
    #[arg(long)]
    pub include_intentions: bool,

    /// Also what was forgotten
    #[arg(long)]
    pub include_forgotten: bool,

    /// What was known then: an RFC 3339 time, or an age such as 2d
    #[arg(long, value_name = "WHEN")]
    pub as_of: Option<TimeBound>,
}

/// `omir recall`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir recall \"where did the door stick\"
  omir recall --near 4.2,-1 --radius 5 --since 7d
  omir recall battery --min-importance 0.5 --explain
  omir recall --entity Entity/cup --order latest --limit 1
  omir recall '\"door 3\" stick* -repaired'      phrase, beginning, what must not occur
  omir recall --entity Entity/cup --after MemoryRecord/m7 --order earliest
  omir recall cup --distinct entity --order latest     where each was seen last
  omir recall --near 4,-1 --radius 2 --visits --count  have I been here?
  omir recall --entity Entity/cup --history place      where has it been?
  omir recall --vector @photo.json --model clip-vit-b32 --min-cosine 0.25
  omir ls --limit 50                         (`search` and `ls` are the same command)
  omir recall --box -1,-1,0,1,1,2 --frame map --json | jq '.hits[].resource.content'

On a terminal ids are cut to the length that `get`, `forget`, `explain` and the others accept, and a
narrow one shows fewer columns. COLUMNS sets another width. Behind a pipe nothing is cut.

Without --robot all robots are asked and the answers are merged by score, or by --order. With
--json each hit names its robot. A robot that does not answer is reported, and the exit code is 3.",
    online_codes!()
))]
pub struct RecallArgs {
    /// Free text
    pub text: Option<String>,

    /// Conditions on memories.
    #[command(flatten)]
    pub filters: FilterArgs,

    /// Which hits come first; distance needs --near or --geo
    #[arg(long, value_name = "ORDER", value_parser = PossibleValuesParser::new(ORDERS))]
    pub order: Option<String>,

    /// At most so many hits
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 10, value_parser = values::limit)]
    pub limit: usize,

    /// Leave out the first hits
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 0)]
    pub offset: usize,

    /// Do not count this recall as an access
    #[arg(long)]
    pub no_touch: bool,

    /// Show the parts of each score
    #[arg(long)]
    pub explain: bool,

    /// Hide what has less than this share of the words' weight; 0 hides nothing [default with text: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "0..1", value_parser = values::unit)]
    pub floor: Option<f64>,

    /// What is near in meaning.
    #[command(flatten)]
    pub meaning: MeaningArgs,

    /// Questions about all matches.
    #[command(flatten)]
    pub asks: AskArgs,
}

/// What is near in meaning.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Meaning")]
pub struct MeaningArgs {
    /// Near this vector: numbers with commas, base64 of 32-bit floats, or @FILE with one of them
    #[arg(long, value_name = "VECTOR|@FILE", allow_hyphen_values = true)]
    pub vector: Option<VectorText>,

    /// The model that made --vector [default: the only one with vectors of that size]
    #[arg(long, value_name = "NAME", requires = "vector")]
    pub model: Option<String>,

    /// The least cosine of a match by meaning [default: the daemon's embedding.min_cosine]
    #[arg(long, allow_negative_numbers = true, value_name = "-1..1", value_parser = values::cosine)]
    pub min_cosine: Option<f64>,

    /// Also what is one relationship away from what the words or --vector find best
    #[arg(long)]
    pub spread: bool,
}

/// Questions about all matches.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Questions about all matches")]
pub struct AskArgs {
    /// Only how many there are
    #[arg(long)]
    pub count: bool,

    /// How many by entity, by place or by day (UTC)
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["entity", "place", "day"]))]
    pub count_by: Option<String>,

    /// Metres of a square of --count-by place, and of a place of --history [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "METRES", value_parser = values::not_negative)]
    pub cell: Option<f64>,

    /// The newest match of each entity
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["entity"]))]
    pub distinct: Option<String>,

    /// The last match of each entity that was not seen again since
    #[arg(long, value_name = "WHEN")]
    pub unseen_since: Option<TimeBound>,

    /// How often it was, and the first and the last time
    #[arg(long)]
    pub visits: bool,

    /// Seconds between two visits [default: 1800]
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", requires = "visits", value_parser = values::not_negative)]
    pub visit_gap: Option<f64>,

    /// The places of --entity, one after the other
    #[arg(long, value_name = "WHAT", requires = "entity", value_parser = PossibleValuesParser::new(["place"]))]
    pub history: Option<String>,
}
