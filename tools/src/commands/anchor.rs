//! `omir anchor`: what must not fade.

use crate::cli::{AnchorArgs, Globals};
use crate::client::Client;
use crate::error::Result;
use crate::selector::Parameters;
use crate::{id_prefix, output};

pub(super) fn run(globals: &Globals, args: &AnchorArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let (reference, reply) = id_prefix::with(&client, &robot, &args.reference, |reference| {
        let mut parameters = Parameters::new();
        parameters.push("ref", &reference.to_string());
        parameters.push("anchored", if args.off { "false" } else { "true" });
        client.ask(&robot, "anchor", &parameters, None)
    })?;
    if globals.json {
        return Ok(output::print_json(&reply.value()?)?);
    }
    let state = if args.off { "may fade again" } else { "anchored" };
    Ok(output::print(&format!("{reference} {state}"))?)
}
