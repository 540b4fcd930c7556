//! `omir get`: one resource.

use crate::cli::{GetArgs, Globals};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::{document, output};

pub(super) fn run(globals: &Globals, args: &GetArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let reference = &args.reference;
    match client.fetch(&robot, &format!("memory/{reference}"))? {
        Some(reply) => Ok(output::print_json(&document::in_schema_order(reply.value()?))?),
        None => Err(Error::not_found(format!("{robot} has no {reference}"))),
    }
}
