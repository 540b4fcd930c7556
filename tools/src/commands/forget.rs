//! `omir forget`: tombstones.

use omir_core::code::Code;
use omir_core::value::Value;

use crate::cli::{ForgetArgs, Globals};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::output::{self, object};
use crate::selector::Parameters;

pub(super) fn run(globals: &Globals, args: &ForgetArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let mut forgotten = 0;
    let mut durable = true;
    let mut seq = Value::Null;
    let mut missing = Vec::new();
    for reference in &args.references {
        let mut parameters = Parameters::new();
        parameters.push("ref", &reference.to_string());
        let reply = match client.ask(&robot, "forget", &parameters, None) {
            Ok(reply) => reply.value()?,
            Err(Error::Refused { code, .. }) if code == Code::NotFound.as_str() => {
                missing.push(reference.to_string());
                continue;
            }
            Err(error) => return Err(interrupted(error, forgotten, args.references.len())),
        };
        let count = reply.get("forgotten").and_then(Value::as_u64).unwrap_or(0);
        if count == 0 {
            missing.push(reference.to_string());
            continue;
        }
        forgotten += count;
        durable &= reply.get("durable").and_then(Value::as_bool) == Some(true);
        seq = reply.get("seq").cloned().unwrap_or_default();
        if !globals.json {
            output::print(&match count {
                1 => format!("{reference} forgotten"),
                _ => format!("{reference} forgotten, and {} that needed it", count - 1),
            })?;
        }
    }
    if globals.json && forgotten > 0 {
        output::print_json(&object([
            ("forgotten", forgotten.into()),
            ("durable", durable.into()),
            ("seq", seq),
        ]))?;
    }
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::not_found(format!("{robot} has no {}", missing.join(", "))))
    }
}

/// A failure after some were forgotten is a partial success.
fn interrupted(error: Error, forgotten: u64, asked: usize) -> Error {
    if forgotten == 0 {
        error
    } else {
        Error::Partial(format!("{forgotten} of {asked} forgotten, then: {error}"))
    }
}
