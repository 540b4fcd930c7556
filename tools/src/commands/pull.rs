//! `omir pull`: memories over a serial line, into a file that grows with every cable that is plugged in.

mod partial_pull;

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use omir_core::code::Code;
use omir_core::link::message::{Info, Pull, Request, Response};
use omir_core::value::Map;

use self::partial_pull::{Origin, PartialPull};
use super::filters;
use crate::cli::{Globals, PullArgs};
use crate::document;
use crate::error::{Error, Result, told};
use crate::selector::Parameters;
use crate::serial::{Line, Lost, refused};
use crate::{interrupt, output, progress};

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
    let spans = filters::spans(&args.filters);
    let mut partial = PartialPull::open(args.output.as_deref(), filter, spans)?;
    let bar = progress::bar(globals, 0, "pulling");
    bar.set_position(partial.count);
    let guard = interrupt::Guard::new();
    // Until a daemon answers. From then on the line may be gone for longer, and comes back.
    let mut until = Instant::now() + globals.timeout;
    let mut in_vain = 0;
    loop {
        let before = partial.next;
        // Not `clamp`: --timeout may be shorter.
        let patience =
            until.saturating_duration_since(Instant::now()).max(RETRY).min(globals.timeout);
        let mut answered = false;
        let stop = match attempt(globals, args, patience, &mut answered, &mut partial, &bar) {
            Ok(()) => break,
            Err(stop) => stop,
        };
        let lost = match stop {
            Stop::Lost(lost) => lost,
            Stop::Error(error) => {
                bar.finish_and_clear();
                return Err(explained(error, &partial));
            }
        };
        in_vain = if partial.next == before { in_vain + 1 } else { 0 };
        if answered && in_vain < MOST_IN_VAIN {
            until = Instant::now() + args.wait;
        }
        let is_final = matches!(lost, Lost::Nonsense(_) | Lost::Interrupted);
        if is_final || Instant::now() > until {
            bar.finish_and_clear();
            return Err(given_up(lost, &partial));
        }
        bar.set_message("waiting for the line");
        std::thread::sleep(RETRY);
        if interrupt::is_set() {
            bar.finish_and_clear();
            return Err(given_up(Lost::Interrupted, &partial));
        }
    }
    drop(guard);
    bar.finish_and_clear();
    finish(globals, args, partial)
}

/// The member by which a daemon says that a pull cannot go on.
const FROM_THE_START: [&str; 3] = ["/asOf", "/store", "/filter"];

/// Sessions in which nothing came, before the wait is not begun again.
const MOST_IN_VAIN: u32 = 10;

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

/// Goes on with one session, to the end if it lasts. `answered` becomes true once a daemon answers.
fn attempt(
    globals: &Globals,
    args: &PullArgs,
    patience: Duration,
    answered: &mut bool,
    partial: &mut PartialPull,
    bar: &ProgressBar,
) -> std::result::Result<(), Stop> {
    let mut line = Line::open(&args.port, args.baud, patience)?;
    line.ask(Request::Info)?;
    let Response::Ok(info) = refused(line.answer(globals.timeout)?)? else {
        return Err(Lost::Nonsense("the daemon does not say who it is".to_owned()).into());
    };
    let info = Info::from_map(info).map_err(|error| Lost::Nonsense(error.to_string()))?;
    let robot = info.robot;
    *answered = true;
    partial.is_of(&robot)?;
    // Each session again: the daemon forgets it with the line.
    if let Some(token) = &args.token {
        line.ask(Request::Unlock(token.clone()))?;
        refused(line.answer(globals.timeout)?)?;
    }
    let origin = partial.origin.as_ref();
    let pull = Pull {
        filter: partial.filter.clone(),
        after: partial.next,
        as_of: origin.map(|origin| origin.as_of.clone()),
        store: origin.map(|origin| origin.store.clone()),
        deflate: true,
    };
    line.ask(Request::Pull(pull))?;
    loop {
        let answer = line.answer(GATHERING)?;
        match refused(answer).map_err(|error| not_yet(asks_for_token(error, args, &robot)))? {
            Response::Begin { as_of, count, store } => {
                partial.begin(Origin { robot: robot.clone(), store, as_of })?;
                bar.set_length(partial.count + count);
                bar.set_message("pulling");
                bar.reset_eta();
            }
            Response::Items { items, next, lost } => {
                partial.take(items, next, lost)?;
                bar.set_position(partial.count);
            }
            Response::End { complete: true, .. } => {
                line.close();
                return Ok(());
            }
            _ => {
                return Err(Lost::Nonsense("the daemon does not answer the pull".to_owned()).into());
            }
        }
    }
}

/// A daemon that is busy, perhaps with what the last cable asked for, is asked again.
fn not_yet(error: Error) -> Stop {
    match error {
        Error::Refused { code, message, .. } if code == Code::Busy.as_str() => {
            Stop::Lost(Lost::Line(message))
        }
        error => Stop::Error(error),
    }
}

/// A daemon that answers no client without a token says so; here it is told how to give one.
fn asks_for_token(error: Error, args: &PullArgs, robot: &str) -> Error {
    match error {
        Error::Refused { code, path, .. }
            if code == Code::Unauthenticated.as_str() && args.token.is_none() =>
        {
            let port = args.port.display();
            let message = format!(
                "{robot} answers nobody without a token on {port}: give one with --token TOKEN; `omir token add NAME \
                 --scope omir:read` on the robot makes one"
            );
            Error::Refused { code, message, path }
        }
        error => error,
    }
}

/// A refusal to go on is of what lies in `FILE.part`.
fn explained(error: Error, partial: &PartialPull) -> Error {
    match &error {
        Error::Refused { message, path: Some(path), .. }
            if partial.origin.is_some() && FROM_THE_START.contains(&path.as_str()) =>
        {
            partial.start_over(message)
        }
        _ => error,
    }
}

fn given_up(lost: Lost, partial: &PartialPull) -> Error {
    match partial.remains() {
        Some(remains) => {
            let why = match lost {
                Lost::Line(why) | Lost::Nonsense(why) => why,
                Lost::Interrupted => "interrupted".to_owned(),
            };
            Error::Partial(format!("{why}; {remains}"))
        }
        None => lost.into(),
    }
}

fn finish(globals: &Globals, args: &PullArgs, partial: PartialPull) -> Result<()> {
    let count = partial.count;
    let (lost, first) = partial.lost.clone();
    let mut written = partial.finish(args.output.as_deref());
    if let Some(file) = args.output.as_ref().filter(|_| written.is_ok()) {
        written = output::written(globals, count, file, "").map_err(Error::from);
    }
    if lost == 0 {
        return written;
    }
    // Once the rest is written.
    let left_out = Error::Partial(format!(
        "{lost} resources are left out, with what cannot stand without them; the first: {first} \
         (`omir store check` names what is damaged; a backup may have it)"
    ));
    told(written, Err(left_out))
}
