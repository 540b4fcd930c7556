//! `omir store repair`: everything that can be read, in a new folder.

use std::path::Path;

use omir_core::value::Value;
use omird::store::inspect::{self, KeyOrigin, RepairError, Repaired, Verdict};

use super::check::{finding_json, push_findings};
use super::{count, open, with_bar};
use crate::cli::{Globals, StoreRepairArgs};
use crate::error::{Error, Result, told};
use crate::output::{self, object};
use crate::table;

pub(super) fn run(globals: &Globals, args: &StoreRepairArgs) -> Result<()> {
    let store = open(globals, &args.path)?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|why| Error::Usage(format!("the system gives no random bytes: {why}")))?;
    let repaired = with_bar(globals, "repairing (KiB)", |progress| {
        inspect::repair(&store, &args.into, || secret, progress)
    })
    .map_err(|why| match why {
        RepairError::NoFolder => Error::Usage(format!("{}: {why}", args.path.display())),
        other => Error::Input { message: other.to_string(), path: None },
    })?;
    let printed = if globals.json {
        output::print_json(&repaired_json(&repaired, &args.into))
    } else {
        output::print(&repaired_text(globals, &repaired, &args.into))
    };
    let verdict = match repaired.verdict() {
        Verdict::Sound => Ok(()),
        _ => Err(Error::Partial(format!(
            "{}: repaired, but {} of {} could not be brought back",
            args.into.display(),
            stretches(&repaired),
            args.path.display()
        ))),
    };
    told(printed, verdict)
}

fn key_words(key: &KeyOrigin) -> String {
    match key {
        KeyOrigin::Kept => "the same device key".to_owned(),
        KeyOrigin::New { reason } => format!("a new device key ({reason})"),
    }
}

fn repaired_text(globals: &Globals, repaired: &Repaired, into: &Path) -> String {
    let rows = [
        ("new folder", into.display().to_string()),
        ("segments", format!("{}, {} unchanged", repaired.segments, repaired.copied)),
        ("versions", repaired.versions.to_string()),
        ("forgotten", repaired.tombstones.to_string()),
        ("access states", repaired.touches.to_string()),
        ("signed with", key_words(&repaired.key)),
        ("lost", stretches(repaired)),
    ];
    let rows: Vec<(String, String)> = rows.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    let mut text = table::pairs(&rows);
    if globals.quiet {
        return text;
    }
    text.push('\n');
    push_findings(&mut text, repaired.lost());
    if !repaired.approximate.is_empty() {
        text.push_str(
            "The version or the time of recording of these is only the most likely one, and \
             something forgotten may be back:\n",
        );
        for (target, version) in &repaired.approximate {
            text.push_str(&format!("       {target}, version {version}\n"));
        }
    }
    text
}

fn repaired_json(repaired: &Repaired, into: &Path) -> Value {
    let approximate = repaired.approximate.iter().map(|(target, version)| {
        object([("ref", target.to_string().into()), ("version", (*version).into())])
    });
    object([
        ("into", into.display().to_string().into()),
        ("result", repaired.verdict().as_str().into()),
        ("segments", repaired.segments.into()),
        ("unchanged", repaired.copied.into()),
        ("versions", repaired.versions.into()),
        ("forgotten", repaired.tombstones.into()),
        ("touched", repaired.touches.into()),
        ("key", key_words(&repaired.key).into()),
        ("lost", repaired.lost().map(finding_json).collect()),
        ("approximate", approximate.collect()),
    ])
}

fn stretches(repaired: &Repaired) -> String {
    count(repaired.lost().count(), "stretch", "stretches")
}
