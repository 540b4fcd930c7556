//! `omir import`: documents and trajectories, request by request, through restarts of the daemon.

mod load;
mod send;

use omir_core::value::Value;

use crate::cli::{Globals, ImportArgs};
use crate::client::Client;
use crate::document::{self, Encoding};
use crate::error::Result;
use crate::output::{self, object};
use crate::parcels;

pub(super) fn run(globals: &Globals, args: &ImportArgs) -> Result<()> {
    if let Some(file) = &args.output {
        document::encoding_for_output(file)?;
    }
    let quiet = globals.quiet || globals.json;
    let resources = load::resources(args, quiet)?;
    let items: Vec<parcels::Item> = resources.iter().map(load::Resource::item).collect();
    let plan = parcels::plan(&items);
    if args.dry_run {
        return dry_run(args, resources, &plan, quiet);
    }
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let mut shipment = send::Shipment::new(globals, args.wait, client, robot);
    let outcome = shipment.send(&resources, &plan);
    let tally = shipment.tally();
    if globals.json {
        output::print_json(&tally.to_json(resources.len()))?;
    } else if tally.acknowledged > 0 || outcome.is_ok() {
        output::print(&tally.to_text(resources.len()))?;
    }
    outcome
}

/// Writes what would be sent, in the order it would be sent in.
fn dry_run(
    args: &ImportArgs,
    resources: Vec<load::Resource>,
    plan: &[Vec<usize>],
    quiet: bool,
) -> Result<()> {
    let count = resources.len();
    let mut resources: Vec<Option<Value>> =
        resources.into_iter().map(|resource| Some(resource.value)).collect();
    let ordered = plan.iter().flatten().filter_map(|&at| resources[at].take());
    let bundle = document::bundle(ordered);
    match &args.output {
        Some(file) => {
            document::write(file, &bundle)?;
            let remark = format!("{count} resources written to {}", file.display());
            output::remark(quiet, &remark);
            Ok(())
        }
        None => Ok(output::print_bytes(&Encoding::Json.write(&bundle))?),
    }
}

/// What the daemon acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    acknowledged: usize,
    recorded: usize,
    updated: usize,
    unchanged: usize,
    requests: usize,
    retries: usize,
}

impl Tally {
    fn to_json(self, total: usize) -> Value {
        object([
            ("resources", total.into()),
            ("acknowledged", self.acknowledged.into()),
            ("recorded", self.recorded.into()),
            ("updated", self.updated.into()),
            ("unchanged", self.unchanged.into()),
            ("requests", self.requests.into()),
            ("retries", self.retries.into()),
        ])
    }

    fn to_text(self, total: usize) -> String {
        let mut text = format!(
            "{} of {total} resources acknowledged: {} new, {} updated, {} already there",
            self.acknowledged, self.recorded, self.updated, self.unchanged
        );
        if self.retries > 0 {
            text.push_str(&format!("; {} requests sent again", self.retries));
        }
        text
    }
}
