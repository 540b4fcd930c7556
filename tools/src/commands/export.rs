//! `omir export`: a Bundle in a file.

use std::time::Duration;

use omir_core::value::Value;

use super::filters;
use crate::cli::{ExportArgs, Globals};
use crate::client::Client;
use crate::document::{self, Encoding};
use crate::error::{Error, Result};
use crate::selector::Parameters;
use crate::{output, progress};

/// A large store takes its time to be written out.
const AT_LEAST: Duration = Duration::from_secs(120);

pub(super) fn run(globals: &Globals, args: &ExportArgs) -> Result<()> {
    if let Some(file) = &args.output {
        document::encoding_for_output(file)?;
    }
    let mut parameters = Parameters::new();
    filters::push(&mut parameters, &args.filters)?;
    parameters.push("format", "cbor");
    let mut client = Client::open(globals)?;
    client.be_patient(AT_LEAST);
    let robot = client.robot(globals.robot.as_deref())?;
    let spinner = progress::spinner(globals, &format!("exporting the memory of {robot}"));
    let bundle = client.ask(&robot, "export", &parameters, None)?.value()?;
    spinner.finish_and_clear();
    let count = bundle
        .get("entry")
        .and_then(Value::as_array)
        .map(<[Value]>::len)
        .ok_or_else(|| Error::Partial(format!("the answer of {robot} is no Bundle")))?;
    let as_json = match &args.output {
        Some(file) => document::encoding_for_output(file)? == Encoding::Json,
        None => true,
    };
    let bundle = if as_json { document::in_schema_order(bundle) } else { bundle };
    match &args.output {
        Some(file) => {
            document::write(file, &bundle)?;
            let remark = format!("{count} resources written to {}", file.display());
            output::remark(globals.quiet || globals.json, &remark);
            Ok(())
        }
        None => Ok(output::print_bytes(&Encoding::Json.write(&bundle))?),
    }
}
