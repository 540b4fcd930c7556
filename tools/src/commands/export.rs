//! `omir export`: a Bundle in a file, or a timeline of it.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use omir_core::value::Value;
use omir_ros2::recording::{Exported, write_timeline};

use super::filters;
use crate::cli::{ExportArgs, ExportFormat, Globals};
use crate::client::{Client, Reply};
use crate::document::{self, Encoding};
use crate::error::{Error, Result, told};
use crate::selector::Parameters;
use crate::{output, progress};

/// A large store takes its time to be written out.
const AT_LEAST: Duration = Duration::from_secs(120);

pub(super) fn run(globals: &Globals, args: &ExportArgs) -> Result<()> {
    if args.uncompressed && args.format == ExportFormat::Omir {
        return Err(Error::Usage("--uncompressed is for --format mcap".to_owned()));
    }
    if let Some(file) = args.output.as_ref().filter(|_| args.format == ExportFormat::Omir) {
        document::encoding_for_output(file)?;
    }
    // Refuses what makes no sense before anything is connected.
    filters::push(&mut Parameters::new(), &args.filters)?;
    let mut client = Client::open(globals)?;
    client.be_patient(AT_LEAST);
    let robot = client.robot(globals.robot.as_deref())?;
    let mut parameters = Parameters::new();
    filters::push(&mut parameters, &filters::of_robot(&client, &robot, &args.filters)?)?;
    parameters.push("format", "cbor");
    let spinner = progress::spinner(globals, &format!("exporting the memory of {robot}"));
    let reply = client.ask(&robot, "export", &parameters, None)?;
    let bundle = reply.value()?;
    spinner.finish_and_clear();
    let written = write(globals, args, &robot, bundle);
    told(written, shortfall(&robot, &reply).map_or(Ok(()), Err))
}

/// Reports what the daemon could not read, once the rest is written.
fn shortfall(robot: &str, reply: &Reply) -> Option<Error> {
    let said = document::decode(&reply.attachment).ok()?;
    let count = said.get("unreadable").and_then(Value::as_u64).filter(|count| *count > 0)?;
    let first = said.get("first").and_then(Value::as_array).unwrap_or_default();
    let first: Vec<&str> = first.iter().filter_map(Value::as_str).collect();
    let more = if count > first.len() as u64 { "; …" } else { "" };
    Some(Error::Partial(format!(
        "{count} resources of {robot} are left out, with what cannot stand without them: {}{more}. \
         `omir store check` names what is damaged, a backup may have it",
        first.join("; ")
    )))
}

fn write(globals: &Globals, args: &ExportArgs, robot: &str, bundle: Value) -> Result<()> {
    let entries = bundle
        .get("entry")
        .and_then(Value::as_array)
        .ok_or_else(|| Error::Partial(format!("the answer of {robot} is no Bundle")))?;
    if let Some(file) = args.output.as_ref().filter(|_| args.format == ExportFormat::Mcap) {
        return timeline(globals, file, entries, !args.uncompressed);
    }
    let count = entries.len();
    let as_json = match &args.output {
        Some(file) => document::encoding_for_output(file)? == Encoding::Json,
        None => true,
    };
    let bundle = if as_json { document::in_schema_order(bundle) } else { bundle };
    match &args.output {
        Some(file) => {
            document::write(file, &bundle)?;
            Ok(output::written(globals, count as u64, file, "")?)
        }
        None => Ok(output::print_bytes(&Encoding::Json.write(&bundle))?),
    }
}

fn timeline(globals: &Globals, file: &Path, entries: &[Value], compressed: bool) -> Result<()> {
    let mut exported = Exported::default();
    let mut write = |out: &mut dyn io::Write| {
        let mut out = Watched { out, failed: None };
        let written = write_timeline(entries, compressed, &mut out);
        exported = written.map_err(|why| match out.failed {
            Some(kind) => io::Error::new(kind, why),
            None => io::Error::other(why),
        })?;
        out.flush()
    };
    if document::is_standard(file) {
        write(&mut io::stdout().lock())?;
    } else {
        document::replace(file, write)?;
    }
    let more = format!(", {} of them with a place", exported.placed);
    Ok(output::written(globals, exported.resources as u64, file, &more)?)
}

/// A writer that remembers how it failed first. The library of MCAP wraps that in errors of its own, and a reader that closed
/// its pipe is no failure.
struct Watched<W> {
    out: W,
    failed: Option<io::ErrorKind>,
}

impl<W> Watched<W> {
    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done
            && error.kind() != io::ErrorKind::Interrupted
        {
            self.failed.get_or_insert(error.kind());
        }
        done
    }
}

impl<W: io::Write> io::Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.noted(done)
    }
}
