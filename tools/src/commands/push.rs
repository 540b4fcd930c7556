//! `omir push`: a document over a serial line.

use std::time::Duration;

use omir_core::link::message::{Answer, MOST_MESSAGE, Pushed, Request};
use omir_core::value::Value;

use crate::cli::{Globals, PushArgs};
use crate::document;
use crate::error::{Error, Result};
use crate::output;
use crate::serial::{Line, Lost, refused};

/// A slow line and a slow card take their time.
const AT_LEAST: Duration = Duration::from_secs(300);

pub(super) fn run(globals: &Globals, args: &PushArgs) -> Result<()> {
    let document = document::read(&args.file)?;
    let resources = document::resources(&args.file, document)?;
    let items: Vec<Value> = resources.into_iter().map(|(_, resource)| resource).collect();
    let request = Request::Push(items);
    let bytes = omir_core::link::message::Asked { id: 0, request: request.clone() }.encode().len();
    if bytes > MOST_MESSAGE - 16 {
        let message = format!(
            "has {bytes} bytes, and a serial line takes {MOST_MESSAGE} at once: use `omir import`, \
             or smaller files"
        );
        return Err(Error::input(&args.file, message));
    }
    let mut line = Line::open(&args.port, args.baud, globals.timeout)?;
    if let Some(token) = &args.token {
        line.ask(Request::Unlock(token.clone()))?;
        refused(line.answer(globals.timeout)?)?;
    }
    let spinner = crate::progress::spinner(globals, "pushing");
    line.ask(request)?;
    let answer = refused(line.answer(globals.timeout.max(AT_LEAST))?)?;
    spinner.finish_and_clear();
    line.close();
    let nonsense = || Lost::Nonsense("the daemon does not answer the push".to_owned());
    let Answer::Ok(told) = answer else { return Err(nonsense().into()) };
    let pushed = Pushed::from_map(told).map_err(|_| nonsense())?;
    if globals.json {
        let told = [("stored", pushed.stored.into()), ("unchanged", pushed.unchanged.into())];
        output::print_json(&output::object(told))?;
    } else {
        output::print(&format!("{} stored, {} unchanged\n", pushed.stored, pushed.unchanged))?;
    }
    Ok(())
}
