//! `omir restore`: a backup becomes a data folder again.

use std::fs;

use omird::disk::Folder;
use omird::store::backup::{RestoreError, restore};
use omird::store::lock;

use super::backup::{faults_json, hold, int, looking};
use crate::cli::{Globals, RestoreArgs};
use crate::error::{Error, Result};
use crate::output::{self, object};
use crate::table;

pub(super) fn run(globals: &Globals, args: &RestoreArgs) -> Result<()> {
    // Shared, and without a trace in the backup.
    let _source = lock::acquire_unwritten(&args.backup)
        .map_err(|why| Error::input(&args.backup, why.to_string()))?;
    if !args.backup.is_dir() {
        return Err(Error::input(&args.backup, "there is no such folder"));
    }
    let is_new = !args.data.exists();
    let target = hold(&args.data)?;
    let (from, into) = (Folder::new(&args.backup), Folder::new(&args.data));
    let restored = looking(globals, "restoring", |progress| {
        restore(&from, &into, args.force_damaged, progress)
    })
    .map_err(|why| {
        // A folder that holds nothing but the lock just made, and was not there before, goes again.
        if is_new && fs::remove_file(args.data.join("lock")).is_ok() {
            let _ = fs::remove_dir(&args.data);
        }
        refused(args, &why)
    })?;
    drop(target);
    if globals.json {
        output::print_json(&object([
            ("segments", int(restored.segments)),
            ("bytes", int(restored.bytes)),
            ("lastSeq", int(restored.last_seq)),
            ("faults", faults_json(&restored.faults)),
        ]))?;
    } else if !globals.quiet {
        let rows = [
            ("data folder", args.data.display().to_string()),
            ("segments", format!("{}, {}", restored.segments, table::bytes(restored.bytes))),
            ("up to transaction", restored.last_seq.to_string()),
        ];
        let rows: Vec<_> = rows.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        output::print(&table::pairs(&rows))?;
    }
    if restored.faults.is_empty() {
        return Ok(());
    }
    let faults: Vec<String> = restored.faults.iter().map(ToString::to_string).collect();
    Err(Error::Partial(format!("{}: {}", args.backup.display(), faults.join("; "))))
}

fn refused(args: &RestoreArgs, why: &RestoreError) -> Error {
    let (backup, data) = (args.backup.display(), args.data.display());
    match why {
        RestoreError::Unsound(_) => Error::Negative {
            code: "UNSOUND",
            message: format!(
                "{backup}: {why}\nNothing was written. --force-damaged restores what can be had; \
                 `omir store repair` brings back single memories of a damaged segment"
            ),
        },
        RestoreError::NotFresh { .. } | RestoreError::Target(_) => {
            Error::Input { message: format!("{data}: {why}"), path: None }
        }
        _ => Error::Input { message: format!("{backup}: {why}"), path: None },
    }
}
