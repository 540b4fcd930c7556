//! `omir convert`: the same document in the other encoding.

use crate::cli::ConvertArgs;
use crate::document::{self, Encoding};
use crate::error::Result;

pub(super) fn run(args: &ConvertArgs) -> Result<()> {
    // An ending that says nothing is found out before anything is read.
    let written = document::encoding_for_output(&args.output)?;
    let bytes = document::read_bytes(&args.input)?;
    let (read, value) = document::decode_file(&args.input, &bytes)?;
    let value = match (read, written) {
        (Encoding::Cbor, Encoding::Json) => document::in_schema_order(value),
        _ => value,
    };
    document::write(&args.output, &value)
}
