//! `omir import`: each file as one transaction that is merged into what is stored.

pub(super) mod check;
pub(super) mod load;
mod recording;
mod send;
mod tally;

use omir_core::value::Value;
use omird::engine::DEFAULT_FRAME;

use self::load::{File, Loaded};
use self::tally::Tally;
use crate::cli::{Format, Globals, ImportArgs};
use crate::client::Client;
use crate::document::{self, Encoding};
use crate::error::{Error, Result, told};
use crate::output::{self, object};

pub(super) fn run(globals: &Globals, args: &ImportArgs) -> Result<()> {
    let args = &recording::with_format(args)?;
    recording::check(args)?;
    if let Some(file) = &args.output {
        document::encoding_for_output(file)?;
    }
    if args.format() == Format::Mcap {
        return recording::run(globals, args);
    }
    let quiet = globals.quiet || globals.json;
    // All of them before anything is sent, so that a fault in the last one is found in time.
    let files = load::files(args, quiet)?;
    if args.dry_run {
        let frame = args.trajectory.frame.as_deref().unwrap_or(DEFAULT_FRAME);
        return dry_run(args, placed(files, frame)?, quiet);
    }
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let has_drives = files.iter().any(|file| matches!(file, Loaded::Drive(..)));
    let frame = match args.trajectory.frame.clone() {
        Some(frame) => frame,
        None if has_drives => client.fixed_frame(&robot)?,
        // Documents say it themselves.
        None => DEFAULT_FRAME.to_owned(),
    };
    let files = placed(files, &frame)?;
    let mut shipment = send::Shipment::new(globals, args, client, robot);
    shipment.check_sizes(&files)?;
    let mut done: Vec<(&File, Tally)> = Vec::new();
    let mut outcome = Ok(());
    // Every file is sent, even if the output cannot be printed.
    let mut printed = Ok(());
    for file in &files {
        let mut tally = Tally::default();
        let sent = shipment.send(file, &mut tally);
        if !globals.json && (sent.is_ok() || tally.acknowledged() > 0) {
            let line = format!("{}: {}", file.path.display(), tally.to_text());
            printed = printed.and(output::print(&line));
        }
        tally.remarks(quiet, file);
        if let Err(error) = sent {
            outcome = Err(incomplete(error, file, &tally, &done));
            done.push((file, tally));
            break;
        }
        done.push((file, tally));
    }
    if globals.json {
        let files: Vec<Value> = done.iter().map(|(file, tally)| tally.to_json(file)).collect();
        printed = printed.and(output::print_json(&object([("files", Value::Array(files))])));
    }
    told(printed, outcome)
}

/// The files as they are sent, trajectories in that frame.
fn placed(files: Vec<Loaded>, frame: &str) -> Result<Vec<File>> {
    files.into_iter().map(|file| file.in_frame(frame)).collect()
}

/// Writes what would be sent.
fn dry_run(args: &ImportArgs, files: Vec<File>, quiet: bool) -> Result<()> {
    let resources: Vec<Value> =
        files.into_iter().flat_map(|file| file.resources).map(|resource| resource.value).collect();
    let count = resources.len();
    let bundle = document::bundle(resources);
    match &args.output {
        Some(file) => {
            document::write(file, &bundle)?;
            let remark = format!("{count} resources written to {}", file.display());
            output::remark(quiet, &remark);
            Ok(())
        }
        None => Ok(output::print_bytes(&Encoding::Json.write(&bundle))?),
    }
}

/// The failure as a whole: what is in stays in.
fn incomplete(error: Error, file: &File, tally: &Tally, done: &[(&File, Tally)]) -> Error {
    let path = file.path.display();
    let part = tally.acknowledged();
    if done.is_empty() && part == 0 {
        return match error {
            Error::Unreachable(message) => Error::Unreachable(format!(
                "{message}; {path} was not acknowledged: importing it again is safe"
            )),
            other => other,
        };
    }
    let mut words = String::new();
    if !done.is_empty() {
        let names: Vec<String> =
            done.iter().map(|(file, _)| file.path.display().to_string()).collect();
        words.push_str(&format!("{}: in. ", names.join(", ")));
    }
    if part == 0 {
        words.push_str(&format!("{path}: not in"));
    } else {
        let total = file.resources.len();
        words.push_str(&format!("{path}: only {part} of {total} resources are acknowledged"));
    }
    Error::Partial(format!("{words}; importing again completes it. The cause: {error}"))
}
