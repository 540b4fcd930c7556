//! `omir schema`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use omir_core::json_schema::Subject;

/// `omir schema`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  omir schema > omir.schema.json
  omir schema MemoryRecord | jq .properties.tier
  omir schema -o schemas                          (one file for each, schemas/Bundle.schema.json)
  check-jsonschema --schemafile omir.schema.json notes.omir

In VS Code, .vscode/settings.json completes and checks .omir files with
  { \"files.associations\": { \"*.omir\": \"json\" },
    \"json.schemas\": [{ \"fileMatch\": [\"*.omir\"], \"url\": \"./omir.schema.json\" }] }

A schema stands alone: it refers to nothing outside itself. It accepts and refuses what `omir
validate` does, but for what lies beyond its reach and is named in its $comment: where references
lead, unique ids, sums of weights.

Exit codes:
  0  done
  2  wrong usage, or the files cannot be written")]
pub struct SchemaArgs {
    /// What to describe [default: Bundle, or with -o all of them]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(Subject::ALL.map(Subject::as_str)).try_map(|name| name.parse::<Subject>()))]
    pub subject: Option<Subject>,

    /// Without the draft fields (x-omir-maturity 0), as in releases of R1 that refuse them
    #[arg(long)]
    pub plain_r1: bool,

    /// Folder to write NAME.schema.json to, made if it is not there
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
