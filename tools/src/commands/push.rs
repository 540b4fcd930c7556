//! `omir push`: a document over a serial line. As one message, if it fits into one; else in parts, each durable
//! before the next, what is referred to first.

use std::time::Duration;

use indicatif::ProgressBar;
use omir_core::code::Code;
use omir_core::link::message::{MOST_MESSAGE, Push, Pushed, Request, Response};
use omir_core::value::Value;

use super::import::check::BundleReferences;
use super::import::load::{self, Resource};
use crate::cli::{Globals, PushArgs};
use crate::error::{Error, Result};
use crate::retry::{BUSY, Retry};
use crate::serial::{Line, Lost, refused};
use crate::{batches, output, progress};

/// A slow line and a slow card take their time.
const AT_LEAST: Duration = Duration::from_secs(300);
/// Text of the bar while nothing hinders.
const PUSHING: &str = "pushing";
/// Of a message around its resources, at most.
const AROUND: usize = 64;

pub(super) fn run(globals: &Globals, args: &PushArgs) -> Result<()> {
    // As an import reads it: what has no name would be stored again each time. But a robot on a bench has what a Bundle refers to.
    let resources = load::read(&args.file, BundleReferences::OrStored)?.resources;
    let parts = parts(args, &resources)?;
    let mut line = Line::open(&args.port, args.baud, globals.timeout)?;
    let info = line.info(globals.timeout)?;
    match &args.token {
        Some(token) => {
            line.ask(Request::Unlock(token.clone()))?;
            refused(line.answer(globals.timeout)?)?;
        }
        // Rather than after minutes of sending.
        None if !info.write => return Err(closed(globals, args, &mut line, &info.robot)?),
        None => {}
    }
    let bar = match parts.len() {
        0 | 1 => progress::spinner(globals, PUSHING),
        _ => progress::bar(globals, resources.len() as u64, PUSHING),
    };
    let mut all = Pushed::default();
    for part in &parts {
        let pushed = match push(globals, args, &mut line, &resources, part, &bar) {
            Ok(pushed) => pushed,
            Err(error) => {
                bar.abandon();
                return Err(incomplete(error, &all, resources.len()));
            }
        };
        all.stored += pushed.stored;
        all.unchanged += pushed.unchanged;
        all.kept += pushed.kept;
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    line.close();
    if globals.json {
        output::print_json(&Value::Object(all.to_map()))?;
    } else {
        output::print(&text(&all))?;
    }
    Ok(())
}

/// Returns why nothing can be pushed without a token. A push of nothing asks the robot: it may need one on all its ports.
fn closed(globals: &Globals, args: &PushArgs, line: &mut Line, robot: &str) -> Result<Error> {
    let nothing = Push { items: Vec::new(), restore: false };
    line.ask(Request::Push(nothing))?;
    let port = args.port.display();
    let (code, message) = match refused(line.answer(globals.timeout)?) {
        Err(Error::Refused { code, message, .. }) if code == Code::Unauthenticated.as_str() => {
            (code, format!("{robot} on {port}: {message}; give it with --token"))
        }
        _ => {
            let message = format!(
                "{port} is read-only on {robot}: give its --token, or set access = \"write\" for the port there"
            );
            (Code::Unauthorized.as_str().to_owned(), message)
        }
    };
    Ok(Error::Refused { code, message, path: None })
}

fn text(all: &Pushed) -> String {
    let kept = match all.kept {
        0 => String::new(),
        kept => format!(", {kept} kept (not newer than the robot's)"),
    };
    format!("{} stored, {} unchanged{kept}\n", all.stored, all.unchanged)
}

/// Splits resources into messages.
fn parts(args: &PushArgs, resources: &[Resource]) -> Result<Vec<Vec<usize>>> {
    if resources.is_empty() {
        return Ok(Vec::new());
    }
    let room = MOST_MESSAGE - AROUND;
    let bytes = |part: &[usize]| part.iter().map(|&at| resources[at].bytes).sum::<usize>();
    let all: Vec<usize> = (0..resources.len()).collect();
    if bytes(&all) <= room {
        return Ok(vec![all]);
    }
    let items: Vec<batches::Item> = resources.iter().map(Resource::item).collect();
    let parts = batches::plan(&items);
    // Parents in a circle travel together.
    match parts.iter().map(|part| bytes(part)).max() {
        Some(bytes) if bytes > room => {
            let message = format!(
                "{bytes} bytes of it belong together, and a serial line takes {MOST_MESSAGE} at once: \
                 use `omir import`"
            );
            Err(Error::input(&args.file, message))
        }
        _ => Ok(parts),
    }
}

/// One message, as often as it takes while the daemon is busy. Durable when it is answered.
fn push(
    globals: &Globals,
    args: &PushArgs,
    line: &mut Line,
    resources: &[Resource],
    part: &[usize],
    bar: &ProgressBar,
) -> Result<Pushed> {
    let mut retry = Retry::new(args.wait);
    loop {
        let error = match attempt(globals, line, resources, part) {
            Ok(pushed) => {
                if retry.is_tried() {
                    bar.set_message(PUSHING);
                }
                return Ok(pushed);
            }
            Err(error) => error,
        };
        let pause = error.is_busy().then(|| retry.pause_for(BUSY, globals, bar)).flatten();
        let Some(pause) = pause else { return Err(error) };
        line.rest(pause)?;
    }
}

fn attempt(
    globals: &Globals,
    line: &mut Line,
    resources: &[Resource],
    part: &[usize],
) -> Result<Pushed> {
    let items = part.iter().map(|&at| resources[at].value.clone()).collect();
    // A push stores all of its file, forgotten memories included, as `omir import` does.
    line.ask(Request::Push(Push { items, restore: true }))?;
    let answer = refused(line.answer(globals.timeout.max(AT_LEAST))?);
    let nonsense = || Lost::Nonsense("the daemon does not answer the push".to_owned());
    match answer.map_err(|error| located(error, resources, part))? {
        Response::Ok(told) => Pushed::from_map(told).map_err(|_| nonsense().into()),
        _ => Err(nonsense().into()),
    }
}

/// A refusal points into the message; the reader knows the file.
fn located(error: Error, resources: &[Resource], part: &[usize]) -> Error {
    let Error::Refused { code, message, path: Some(path) } = error else { return error };
    let in_file = || {
        let inside = path.strip_prefix('/')?;
        let (position, rest) = inside.split_at(inside.find('/').unwrap_or(inside.len()));
        let resource = resources.get(*part.get(position.parse::<usize>().ok()?)?)?;
        Some(format!("{}{rest}", resource.pointer))
    };
    let path = in_file().unwrap_or_else(|| path.clone());
    Error::Refused { code, message, path: Some(path) }
}

/// The failure as a whole: what is in stays in.
fn incomplete(error: Error, done: &Pushed, of: usize) -> Error {
    let count = done.stored + done.unchanged + done.kept;
    if count == 0 {
        return error;
    }
    Error::Partial(format!(
        "{count} of {of} resources are in; pushing again completes it. The cause: {error}"
    ))
}
