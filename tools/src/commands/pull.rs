//! `omir pull`: memories over a serial line, into a file that grows with every cable that is plugged in.
//!
//! What came lies in `FILE.part` beside the output until all is there: a sequence of CBOR items, first what
//! was asked for, then `{"items", "next"}` as they came. A last one that was cut short is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::link::message::{Answer, Info, Pull, Request};
use omir_core::value::{Map, Value};

use super::filters;
use crate::cli::{Globals, PullArgs};
use crate::document::{self, Encoding};
use crate::error::{Error, Result};
use crate::selector::Parameters;
use crate::serial::{Line, Lost, refused};
use crate::{output, progress};

/// Between two attempts to open the device.
const RETRY: Duration = Duration::from_millis(500);
/// A large store takes its time to be gathered before the first answer, at a part of one core. Whether
/// anybody is there the link finds out.
const GATHERING: Duration = Duration::from_secs(3600);

pub(super) fn run(globals: &Globals, args: &PullArgs) -> Result<()> {
    if let Some(file) = &args.output {
        document::encoding_for_output(file)?;
    }
    let mut parameters = Parameters::new();
    filters::push(&mut parameters, &args.filters)?;
    let filter: Map = parameters.pairs().iter().cloned().collect();
    if filter.contains_key("asOf") {
        return Err(Error::Usage("--as-of: a pull is of what is known now".to_owned()));
    }
    let mut so_far = SoFar::open(args.output.as_deref(), filter)?;
    let bar = progress::bar(globals, 0, "pulling");
    bar.set_position(so_far.items.len() as u64);
    let mut until = Instant::now() + globals.timeout;
    loop {
        let before = so_far.next;
        match attempt(globals, args, &mut so_far, &bar) {
            Ok(()) => break,
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Lost(lost)) => {
                if so_far.next != before {
                    until = Instant::now() + args.wait;
                }
                if Instant::now() > until || matches!(lost, Lost::Nonsense(_)) {
                    bar.finish_and_clear();
                    return Err(so_far.given_up(lost));
                }
                bar.set_message("waiting for the line");
                std::thread::sleep(RETRY);
            }
        }
    }
    bar.finish_and_clear();
    so_far.finish(globals, args.output.as_deref())
}

enum Stop {
    /// Another cable may do better.
    Lost(Lost),
    Error(Error),
}

impl From<Lost> for Stop {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Goes on with one session, to the end if it lasts.
fn attempt(
    globals: &Globals,
    args: &PullArgs,
    so_far: &mut SoFar,
    bar: &ProgressBar,
) -> std::result::Result<(), Stop> {
    let mut line = Line::open(&args.port, args.baud, globals.timeout)?;
    line.ask(Request::Info)?;
    let Answer::Ok(info) = refused(line.answer(globals.timeout)?)? else {
        return Err(Lost::Nonsense("the daemon does not say who it is".to_owned()).into());
    };
    let info = Info::from_map(info).map_err(|error| Lost::Nonsense(error.to_string()))?;
    so_far.is_of(&info.robot)?;
    let pull = Pull {
        filter: so_far.filter.clone(),
        after: so_far.next,
        as_of: so_far.as_of.clone(),
        deflate: true,
    };
    line.ask(Request::Pull(pull))?;
    loop {
        let answer = line.answer(GATHERING)?;
        match refused(answer)? {
            Answer::Begin { as_of, count } => {
                so_far.begin(&info.robot, as_of)?;
                bar.set_length(so_far.items.len() as u64 + count);
                bar.set_message("pulling");
                bar.reset_eta();
            }
            Answer::Items { items, next, lost } => {
                so_far.take(items, next, lost)?;
                bar.set_position(so_far.items.len() as u64);
            }
            Answer::End { complete: true, .. } => {
                line.close();
                return Ok(());
            }
            _ => {
                return Err(Lost::Nonsense("the daemon does not answer the pull".to_owned()).into());
            }
        }
    }
}

/// What came, in memory and in the file beside the output.
struct SoFar {
    part: Option<(PathBuf, File)>,
    filter: Map,
    robot: Option<String>,
    as_of: Option<String>,
    next: Option<u64>,
    items: Vec<Value>,
    /// What the daemon could not read.
    lost: Vec<Value>,
}

impl SoFar {
    fn open(output: Option<&Path>, filter: Map) -> Result<SoFar> {
        let mut so_far = SoFar {
            part: None,
            filter,
            robot: None,
            as_of: None,
            next: None,
            items: Vec::new(),
            lost: Vec::new(),
        };
        let Some(output) = output.filter(|file| !document::is_standard(file)) else {
            return Ok(so_far);
        };
        let mut path = output.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let known = match fs::read(&path) {
            Ok(bytes) => so_far.read(&path, &bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(Error::input(&path, error)),
        };
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.and_then(|file| file.set_len(known).map(|()| file));
        so_far.part = Some((path.clone(), file.map_err(|error| Error::input(&path, error))?));
        Ok(so_far)
    }

    /// Takes up what an earlier run left; how many bytes of it are whole.
    fn read(&mut self, path: &Path, bytes: &[u8]) -> Result<u64> {
        let limits = Limits::default();
        let text = |value: &Value, name| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut at = 0;
        while let Ok((item, length)) = cbor::read_item(&bytes[at..], &limits) {
            let Value::Object(mut members) = item else { break };
            if at == 0 {
                if members.get("filter").and_then(Value::as_object) != Some(&self.filter) {
                    let message = "is of a pull with other filters; remove it to begin anew";
                    return Err(Error::input(path, message));
                }
                let head = Value::Object(members);
                (self.robot, self.as_of) = (text(&head, "robot"), text(&head, "asOf"));
            } else {
                let Some(Value::Array(items)) = members.remove("items") else { break };
                self.items.extend(items);
                if let Some(Value::Array(lost)) = members.remove("lost") {
                    self.lost.extend(lost);
                }
                self.next = members.get("next").and_then(Value::as_u64);
            }
            at += length;
        }
        Ok(at as u64)
    }

    fn is_of(&self, robot: &str) -> Result<()> {
        match (&self.robot, &self.part) {
            (Some(known), Some((path, _))) if known != robot => {
                let message =
                    format!("is of {known}, and this is {robot}; remove it to begin anew");
                Err(Error::input(path, message))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, robot: &str, as_of: String) -> Result<()> {
        if self.as_of.is_some() {
            return Ok(());
        }
        let mut head = Map::new();
        head.insert("robot", robot);
        head.insert("asOf", as_of.as_str());
        head.insert("filter", self.filter.clone());
        self.note(&Value::Object(head))?;
        (self.robot, self.as_of) = (Some(robot.to_owned()), Some(as_of));
        Ok(())
    }

    fn take(&mut self, items: Vec<Value>, next: u64, lost: Vec<String>) -> Result<()> {
        let lost: Vec<Value> = lost.into_iter().map(Value::from).collect();
        let mut members = Map::new();
        members.insert("items", items.clone());
        members.insert("next", next);
        members.insert("lost", lost.clone());
        self.note(&Value::Object(members))?;
        self.items.extend(items);
        self.lost.extend(lost);
        self.next = Some(next);
        Ok(())
    }

    fn note(&mut self, item: &Value) -> Result<()> {
        let Some((path, file)) = &mut self.part else { return Ok(()) };
        file.write_all(&cbor::to_vec(item)).map_err(|error| Error::input(path, error))
    }

    fn given_up(self, lost: Lost) -> Error {
        match (&self.part, self.next) {
            (Some((path, _)), Some(_)) => {
                let (Lost::Line(why) | Lost::Nonsense(why)) = lost;
                Error::Partial(format!(
                    "{why}; {} resources are in {}: run this again to go on",
                    self.items.len(),
                    path.display()
                ))
            }
            _ => lost.into(),
        }
    }

    fn finish(self, globals: &Globals, output: Option<&Path>) -> Result<()> {
        let count = self.items.len();
        let missing = shortfall(&self.lost);
        let bundle = document::bundle(self.items);
        let Some(file) = output else {
            let bundle = document::in_schema_order(bundle);
            output::print_bytes(&Encoding::Json.write(&bundle))?;
            return missing.map_or(Ok(()), Err);
        };
        let bundle = match document::encoding_for_output(file)? {
            Encoding::Json => document::in_schema_order(bundle),
            Encoding::Cbor => bundle,
        };
        document::write(file, &bundle)?;
        if let Some((path, _)) = self.part {
            fs::remove_file(&path).map_err(|error| Error::input(&path, error))?;
        }
        let remark = format!("{count} resources written to {}", file.display());
        output::remark(globals.quiet || globals.json, &remark);
        missing.map_or(Ok(()), Err)
    }
}

/// What the daemon could not read, once the rest is written.
fn shortfall(lost: &[Value]) -> Option<Error> {
    let first = lost.first()?.as_str().unwrap_or_default();
    Some(Error::Partial(format!(
        "{} resources are left out, with what cannot stand without them: {first}; `omir store check` \
         names what is damaged, a backup may have it",
        lost.len()
    )))
}
