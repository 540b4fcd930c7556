//! `omir backup`: what a running daemon has, in a folder; only what is new is fetched.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use omir_core::code::Code;
use omir_core::number::Number;
use omir_core::value::Value;
use omird::disk;
use omird::engine::{Clock as _, SystemClock};
use omird::store::Lock;
use omird::store::backup::{
    BackupError, BackupOutcome, Fault, FetchOutcome, Folder, Offer, Offered, Progress, TakeError,
};

use crate::cli::{BackupArgs, Globals};
use crate::client::{Client, Reply};
use crate::error::{Error, Result, told};
use crate::output::{self, object};
use crate::retry::Retry;
use crate::selector::Parameters;
use crate::{progress, table};

/// A piece over a slow radio, or a daemon that seals first, takes its time.
pub(super) const AT_LEAST: Duration = Duration::from_secs(90);
/// Number of new requests for the list because the daemon has rewritten segments meanwhile.
const ROUNDS: usize = 10;
/// Time for which a busy daemon is asked again.
const PATIENCE: Duration = Duration::from_secs(10);

/// The segments that a run fetched.
#[derive(Default)]
struct Fetched {
    segments: u64,
    bytes: u64,
}

pub(super) fn run(globals: &Globals, args: &BackupArgs) -> Result<()> {
    let began = Instant::now();
    let mut client = Client::open(globals)?;
    client.be_patient(AT_LEAST);
    let robot = client.robot(globals.robot.as_deref())?;
    let spinner = progress::spinner(globals, &format!("{robot} seals what it remembers"));
    let mut offer = list(&client, &robot)?;
    spinner.finish_and_clear();

    let _lock = hold(&args.dir)?;
    let refused = |why| refused(&args.dir, why);
    let disk = Arc::new(disk::Folder::new(&args.dir));
    let mut folder = looking(globals, "looking at the backup", |progress| {
        Folder::open(disk, progress).map_err(refused)
    })?;
    let mut fetched = Fetched::default();
    let mut is_complete = false;
    for _ in 0..ROUNDS {
        folder.trust(&offer, args.new_key).map_err(refused)?;
        is_complete = fetch(globals, args, &client, &robot, &offer, &mut folder, &mut fetched)?;
        if is_complete {
            break;
        }
        offer = list(&client, &robot)?;
    }
    if !is_complete {
        return Err(interrupted(&robot, "rewrites its segments all the time", &fetched));
    }
    let outcome = folder.finish(&offer, SystemClock::default().now()).map_err(refused)?;
    report(globals, args, &offer, &outcome, &fetched, began.elapsed())
}

/// Makes a folder that lasts, and takes its lock.
pub(super) fn hold(dir: &Path) -> Result<Lock> {
    let unusable = |why: &dyn std::fmt::Display| Error::input(dir, why);
    if !dir.is_dir() {
        fs::create_dir_all(dir).map_err(|why| unusable(&why))?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))
            .and_then(|parent| parent.sync_all())
            .map_err(|why| unusable(&why))?;
    }
    Lock::acquire(dir).map_err(|why| unusable(&why))
}

/// Runs long work on bytes under a bar.
pub(super) fn looking<T>(
    globals: &Globals,
    what: &str,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> T,
) -> T {
    let bar = progress::bytes(globals, Some(0), what);
    work(&mut |passed| {
        bar.set_length(passed.total);
        bar.set_position(passed.done);
    })
}

pub(super) fn list(client: &Client, robot: &str) -> Result<Offer> {
    let reply = ask(client, robot, &Parameters::new())?;
    Offer::from_value(&reply.value()?).ok_or_else(|| {
        Error::Partial(format!("the answer of {robot} is no list of segments; is it older?"))
    })
}

/// Asks, again and again while the daemon is busy.
fn ask(client: &Client, robot: &str, parameters: &Parameters) -> Result<Reply> {
    let mut retry = Retry::new(PATIENCE);
    loop {
        let answer = client.ask(robot, "backup", parameters, None);
        let is_busy = answer.as_ref().is_err_and(Error::is_busy);
        match is_busy.then(|| retry.pause(Instant::now())).flatten() {
            Some(pause) => std::thread::sleep(pause),
            None => return answer,
        }
    }
}

/// Fetches what lacks; `false` if a segment is not there any more and the list must be asked again.
fn fetch(
    globals: &Globals,
    args: &BackupArgs,
    client: &Client,
    robot: &str,
    offer: &Offer,
    folder: &mut Folder,
    fetched: &mut Fetched,
) -> Result<bool> {
    let lacking = folder.lacking(offer).map_err(|why| refused(&args.dir, why))?;
    let total = lacking.iter().map(|offered| offered.bytes).sum();
    let bar = progress::bytes(globals, Some(total), &format!("backing up {robot}"));
    for offered in lacking {
        let mut piece = |offset, length| {
            piece(client, robot, offered, offset, length).inspect(|bytes| {
                bar.inc(bytes.len() as u64);
            })
        };
        match folder.take(offered, &mut piece) {
            Ok(taken) => note(globals, &bar, offered, &taken, fetched),
            Err(TakeError::Fetch(Error::Refused { code, .. }))
                if code == Code::NotFound.as_str() =>
            {
                return Ok(false);
            }
            Err(TakeError::Fetch(why @ Error::Refused { .. })) => return Err(why),
            Err(TakeError::Fetch(why)) => {
                return Err(interrupted(robot, &format!("went away ({why})"), fetched));
            }
            Err(TakeError::Short { came, offered: expected }) => {
                let number = offered.segment;
                let why = format!("gave {came} of the {expected} bytes of segment {number}");
                return Err(interrupted(robot, &why, fetched));
            }
            Err(TakeError::Disk(why)) => return Err(Error::input(&args.dir, why)),
        }
    }
    Ok(true)
}

fn piece(
    client: &Client,
    robot: &str,
    offered: &Offered,
    offset: u64,
    length: u64,
) -> Result<Vec<u8>> {
    let mut parameters = Parameters::new();
    parameters.push("segment", &offered.segment.to_string());
    parameters.push("offset", &offset.to_string());
    parameters.push("length", &length.to_string());
    Ok(ask(client, robot, &parameters)?.body)
}

fn note(
    globals: &Globals,
    bar: &ProgressBar,
    offered: &Offered,
    taken: &FetchOutcome,
    fetched: &mut Fetched,
) {
    fetched.segments += 1;
    fetched.bytes += offered.bytes;
    if let FetchOutcome::Damaged(why) = taken {
        let number = offered.segment;
        let remark = format!("segment {number} of the robot is damaged: {why}");
        bar.suspend(|| output::remark(globals.quiet || globals.json, &remark));
    }
}

fn interrupted(robot: &str, why: &str, fetched: &Fetched) -> Error {
    let message = format!(
        "{robot} {why}; {} fetched and kept: run it again to go on",
        match fetched.segments {
            1 => "1 segment was".to_owned(),
            n => format!("{n} segments were"),
        }
    );
    Error::Negative { code: "INTERRUPTED", message }
}

fn refused(dir: &Path, why: BackupError) -> Error {
    let message = format!("{}: {why}", dir.display());
    match why {
        BackupError::ForeignKey { .. } => Error::Negative { code: "FOREIGN_KEY", message },
        BackupError::OtherHistory { .. } => Error::Negative { code: "OTHER_HISTORY", message },
        _ => Error::Input { message, path: None },
    }
}

fn report(
    globals: &Globals,
    args: &BackupArgs,
    offer: &Offer,
    outcome: &BackupOutcome,
    fetched: &Fetched,
    took: Duration,
) -> Result<()> {
    let mut printed = Ok(());
    if globals.json {
        let numbers = |numbers: &[u64]| numbers.iter().map(|n| int(*n)).collect::<Vec<_>>();
        let seconds = Number::from_f64(took.as_secs_f64()).map_or(Value::Null, Value::Number);
        printed = output::print_json(&object([
            ("robot", offer.robot.as_str().into()),
            ("segments", int(outcome.segments)),
            ("fetched", int(fetched.segments)),
            ("fetchedBytes", int(fetched.bytes)),
            ("removed", int(outcome.removed.len() as u64)),
            ("kept", Value::Array(numbers(&outcome.kept))),
            ("bytes", int(outcome.bytes)),
            ("lastSeq", int(outcome.last_seq)),
            ("unsealed", offer.unsealed.as_deref().into()),
            ("faults", faults_json(&outcome.faults)),
            ("seconds", seconds),
        ]));
    } else if !globals.quiet {
        let fetched = format!("{}, {}", fetched.segments, table::bytes(fetched.bytes));
        let rows = [
            ("backup", args.dir.display().to_string()),
            ("robot", offer.robot.clone()),
            ("segments", format!("{}, {}", outcome.segments, table::bytes(outcome.bytes))),
            ("fetched", fetched),
            ("removed", outcome.removed.len().to_string()),
            ("up to transaction", outcome.last_seq.to_string()),
        ];
        let rows: Vec<_> = rows.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        printed = output::print(&table::pairs(&rows));
    }
    for number in &outcome.kept {
        let remark = format!("the robot has no segment {number} any more; the backup keeps it");
        output::remark(globals.quiet || globals.json, &remark);
    }
    let mut lacking: Vec<String> = outcome.faults.iter().map(Fault::to_string).collect();
    if let Some(why) = &offer.unsealed {
        lacking.push(format!("what {} has not sealed yet is not in it: {why}", offer.robot));
    }
    let outcome = match lacking.is_empty() {
        true => Ok(()),
        false => Err(Error::Partial(format!("{}: {}", args.dir.display(), lacking.join("; ")))),
    };
    told(printed, outcome)
}

pub(super) fn int(n: u64) -> Value {
    Value::Number(Number::from(n))
}

pub(super) fn faults_json(faults: &[Fault]) -> Value {
    let one = |fault: &Fault| {
        object([("file", fault.file.as_str().into()), ("message", fault.message.as_str().into())])
    };
    Value::Array(faults.iter().map(one).collect())
}
