//! `omir convert`: the same document in the other encoding, or as linked data.

use crate::cli::{ConvertArgs, Globals};
use crate::document::{self, Encoding};
use crate::error::{Error, Result};
use crate::linked;
use crate::output;

pub(super) fn run(globals: &Globals, args: &ConvertArgs) -> Result<()> {
    if linked::is_triples(&args.output) {
        return lift(globals, args);
    }
    if args.base.is_some() {
        return Err(Error::Usage("--base is for N-Triples; end the output in .nt".to_owned()));
    }
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

fn lift(globals: &Globals, args: &ConvertArgs) -> Result<()> {
    let document = document::read(&args.input)?;
    let triples = linked::to_triples(&args.input, &document, args.base.as_deref())?;
    if document.get("@context").is_some() {
        output::remark(
            globals.quiet,
            "the document's own @context is not used; docs/linked-data.md says what is",
        );
    }
    document::write_bytes(&args.output, &triples)
}
