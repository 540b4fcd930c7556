//! `omir convert`.

use std::path::PathBuf;

use clap::Args;

/// `omir convert`
#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Examples:
  omir convert backup.omirb backup.omir
  omir convert notes.omir notes.omirb
  omir convert segments/0000000001.omirb -        (JSON on standard output)
  omir convert --base https://example.org/robot-7/ backup.omirb backup.nt

A file's ending names its format: .omir and .json are JSON, .omirb and .cbor are CBOR. Standard
input (-) is recognised by its first byte. Nothing is lost either way, numbers included. A document
may be larger than memory: its entries wait in a temporary file beside OUT (for - in $TMPDIR), and
OUT is replaced when everything is written.

If OUT ends in .nt, a Bundle becomes linked data: N-Triples, one statement on a line. Every resource
is named by the base and its reference, such as https://example.org/robot-7/Entity/kitchen. Bundles
with the same base refer to the same things. The Bundle must fit into memory.",
    offline_codes!()
))]
pub struct ConvertArgs {
    /// File to read; - is standard input
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write (.omir, .omirb or .nt); - is JSON on standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// What the names in linked data begin with; ends in /, # or : [default: urn:omird:bundle:ID:]
    #[arg(long, value_name = "IRI")]
    pub base: Option<String>,
}
