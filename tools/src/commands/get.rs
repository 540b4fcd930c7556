//! `omir get`: one resource.

use crate::cli::{GetArgs, Globals};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::{document, id_prefix, output};

pub(super) fn run(globals: &Globals, args: &GetArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let (_, reply) = id_prefix::with(&client, &robot, &args.reference, |reference| {
        let reply = client.fetch(&robot, &format!("memory/{reference}"))?;
        reply.ok_or_else(|| Error::not_found(format!("{robot} has no {reference}")))
    })?;
    Ok(output::print_json(&document::in_schema_order(reply.value()?))?)
}
