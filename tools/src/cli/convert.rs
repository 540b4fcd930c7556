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

The ending says what a file is: .omir and .json are JSON, .omirb and .cbor are CBOR. Standard input
(-) is recognised by its first byte. Nothing is lost either way, numbers included.",
    offline_codes!()
))]
pub struct ConvertArgs {
    /// File to read; - is standard input
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write; - is JSON on standard output
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
}
