//! `omir restore`: a backup becomes a data folder again.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use omird::disk::Folder;
use omird::store::Lock;
use omird::store::backup::{RestoreError, restore};
use omird::store::format::keys;

use super::backup::{faults_json, hold, int, looking};
use crate::cli::{Globals, RestoreArgs};
use crate::error::{Error, Result, told};
use crate::output::{self, object};
use crate::table;

pub(super) fn run(globals: &Globals, args: &RestoreArgs) -> Result<()> {
    // Shared, and without a trace in the backup.
    let _source = Lock::acquire_unwritten(&args.backup)
        .map_err(|why| Error::input(&args.backup, why.to_string()))?;
    if !args.backup.is_dir() {
        return Err(Error::input(&args.backup, "there is no such folder"));
    }
    let is_new = !args.data.exists();
    let target = hold(&args.data)?;
    let (from, into) = (Folder::new(&args.backup), Folder::new(&args.data));
    let attempt = || {
        looking(globals, "restoring", |progress| {
            restore(&from, &into, args.force_damaged, progress)
        })
    };
    let mut set_aside = None;
    let restored = match attempt() {
        // It was verified before: what is moved away is moved for something.
        Err(RestoreError::NotFresh { .. }) if args.replace => {
            set_aside = Some(move_aside(&args.data)?);
            attempt()
        }
        done => done,
    };
    let restored = restored.map_err(|why| {
        // A folder that holds nothing but the lock just made, and was not there before, goes again.
        if is_new && fs::remove_file(args.data.join("lock")).is_ok() {
            let _ = fs::remove_dir(&args.data);
        }
        let error = refused(args, &why);
        match &set_aside {
            None => error,
            Some(folder) => Error::Input {
                message: format!(
                    "{error}\nNothing is restored yet; what lay there is in {}. Run it once more, or move that back",
                    folder.display()
                ),
                path: None,
            },
        }
    })?;
    drop(target);
    let mut printed = Ok(());
    if globals.json {
        printed = output::print_json(&object([
            ("segments", int(restored.segments)),
            ("bytes", int(restored.bytes)),
            ("lastSeq", int(restored.last_seq)),
            ("setAside", set_aside.map(|folder| folder.display().to_string()).into()),
            ("faults", faults_json(&restored.faults)),
        ]));
    } else if !globals.quiet {
        let mut rows = vec![
            ("data folder", args.data.display().to_string()),
            ("segments", format!("{}, {}", restored.segments, table::bytes(restored.bytes))),
            ("up to transaction", restored.last_seq.to_string()),
        ];
        if let Some(folder) = &set_aside {
            rows.push(("what lay there", folder.display().to_string()));
        }
        let rows: Vec<_> = rows.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        printed = output::print(&table::pairs(&rows));
    }
    if restored.faults.is_empty() {
        return told(printed, Ok(()));
    }
    let faults: Vec<String> = restored.faults.iter().map(ToString::to_string).collect();
    let faults = format!("{}: {}", args.backup.display(), faults.join("; "));
    told(printed, Err(Error::Partial(faults)))
}

/// Files that stay in a data folder whose memory is replaced: the keys, the lock that is held, and what a restore that
/// was cut short has left.
const STAYS: [&str; 3] = [keys::DIR, "lock", "segments.restoring"];

/// Moves a memory into a folder beside its own, where nothing of that name is yet.
fn move_aside(data: &Path) -> Result<PathBuf> {
    let refused = |why: io::Error| {
        let message = "what lies there cannot be moved beside it; move it by hand, or restore into another folder";
        Error::input(data, format!("{message}: {why}"))
    };
    let data = data.canonicalize().map_err(refused)?;
    let name = |number: u32| {
        let mut name = data.clone().into_os_string();
        name.push(".before");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let aside = (1..).map(name).find(|folder| !folder.exists()).unwrap_or_else(|| name(0));
    DirBuilder::new().mode(0o700).create(&aside).map_err(refused)?;
    for entry in fs::read_dir(&data).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        if !STAYS.iter().any(|stays| entry.file_name() == *stays) {
            fs::rename(entry.path(), aside.join(entry.file_name())).map_err(refused)?;
        }
    }
    for folder in [Some(aside.as_path()), Some(data.as_path()), data.parent()].into_iter().flatten()
    {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(refused)?;
    }
    Ok(aside)
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
        RestoreError::NotFresh { .. } => Error::Input {
            message: format!(
                "{data}: {why}. --replace puts the backup in the place of what lies there, which goes to {data}.before"
            ),
            path: None,
        },
        RestoreError::Target(_) => Error::Input { message: format!("{data}: {why}"), path: None },
        _ => Error::Input { message: format!("{backup}: {why}"), path: None },
    }
}
