//! `omir convert`: the same document in the other encoding, whatever its size, or as linked data.

use crate::cli::{ConvertArgs, Globals};
use crate::document::{self, Encoding, Parts, Writer};
use crate::error::{Error, Result};
use crate::linked;
use crate::output;
use crate::progress;

pub(super) fn run(globals: &Globals, args: &ConvertArgs) -> Result<()> {
    if linked::is_triples(&args.output) {
        return lift(globals, args);
    }
    if args.base.is_some() {
        return Err(Error::Usage("--base is for N-Triples; end the output in .nt".to_owned()));
    }
    // An ending that says nothing is found out before anything is read.
    let written = document::encoding_for_output(&args.output).map_err(|error| match error {
        Error::Usage(message) => Error::Usage(format!("{message}, or .nt (linked data)")),
        other => other,
    })?;
    let mut parts = Parts::open(&args.input)?;
    // JSON keeps the order it has; that of CBOR is not one for reading.
    let mut writer = Writer::new(&args.output, written, parts.encoding() == Encoding::Cbor);
    let bar = progress::bytes(globals, parts.size(), "converting");
    while let Some(part) = parts.next_part()? {
        bar.set_position(parts.offset());
        writer.part(part)?;
    }
    drop(bar);
    writer.finish()
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
