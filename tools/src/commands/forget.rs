//! `omir forget`: tombstones.

use omir_core::code::Code;
use omir_core::reference::Ref;
use omir_core::value::Value;

use crate::cli::{ForgetArgs, Globals};
use crate::client::Client;
use crate::error::{Error, Result, told};
use crate::id_prefix;
use crate::output::{self, object};
use crate::selector::Parameters;

/// A shorter beginning of an id is too soon a slip of the hand: what is forgotten does not come back.
const LEAST: usize = 4;

pub(super) fn run(globals: &Globals, args: &ForgetArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let mut forgotten = 0;
    let mut durable = true;
    let mut seq = Value::Null;
    let mut missing = Vec::new();
    // Every named memory is forgotten, even if the output cannot be printed.
    let mut printed = Ok(());
    let mut outcome = Ok(());
    for named in &args.references {
        let done = id_prefix::with(&client, &robot, named, |reference| {
            refuse_hasty(named, reference)?;
            forget(&client, &robot, reference)
        });
        let (reference, reply) = match done {
            Ok(done) => done,
            Err(error) if error.code() == Code::NotFound.as_str() => {
                missing.push(named.to_string());
                continue;
            }
            Err(error) => {
                outcome = Err(interrupted(error, forgotten, args.references.len()));
                break;
            }
        };
        let count = count(&reply);
        forgotten += count;
        durable &= reply.get("durable").and_then(Value::as_bool) == Some(true);
        seq = reply.get("seq").cloned().unwrap_or_default();
        if !globals.json {
            printed = printed.and(output::print(&match count {
                1 => format!("{reference} forgotten"),
                _ => format!("{reference} forgotten, and {} that needed it", count - 1),
            }));
        }
    }
    if globals.json && forgotten > 0 {
        printed = output::print_json(&object([
            ("forgotten", forgotten.into()),
            ("durable", durable.into()),
            ("seq", seq),
        ]));
    }
    if outcome.is_ok() && !missing.is_empty() {
        outcome = Err(Error::not_found(format!("{robot} has no {}", missing.join(", "))));
    }
    told(printed, outcome)
}

fn forget(client: &Client, robot: &str, reference: &Ref) -> Result<Value> {
    let mut parameters = Parameters::new();
    parameters.push("ref", &reference.to_string());
    let reply = client.ask(robot, "forget", &parameters, None)?.value()?;
    if count(&reply) == 0 {
        return Err(Error::not_found(format!("{robot} has no {reference}")));
    }
    Ok(reply)
}

fn count(reply: &Value) -> u64 {
    reply.get("forgotten").and_then(Value::as_u64).unwrap_or(0)
}

fn refuse_hasty(named: &Ref, meant: &Ref) -> Result<()> {
    if named == meant || named.id.as_str().len() >= LEAST {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{named} is the beginning of {meant}; to forget it write at least {LEAST} characters of its id"
    )))
}

/// A failure after some were forgotten is a partial success.
fn interrupted(error: Error, forgotten: u64, asked: usize) -> Error {
    if forgotten == 0 {
        error
    } else {
        Error::Partial(format!("{forgotten} of {asked} forgotten, then: {error}"))
    }
}
