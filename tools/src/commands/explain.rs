//! `omir explain`: why a memory is where it is.

use super::status::rows;
use crate::cli::{ExplainArgs, Globals};
use crate::client::Client;
use crate::error::Result;
use crate::selector::Parameters;
use crate::{id_prefix, output, table};

pub(super) fn run(globals: &Globals, args: &ExplainArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let (_, reply) = id_prefix::with(&client, &robot, &args.reference, |reference| {
        let mut parameters = Parameters::new();
        parameters.push("ref", &reference.to_string());
        client.ask(&robot, "explain", &parameters, None)
    })?;
    let explanation = reply.value()?;
    if globals.json {
        output::print_json(&explanation)?;
    } else {
        output::print(&table::pairs(&rows(&explanation)))?;
    }
    Ok(())
}
