//! `omir store`: looking at a data folder with no daemon running, and mending it into a new one.

mod cat;
mod check;
mod list;
mod repair;

use std::path::Path;

pub(super) use self::cat::meant;
use indicatif::ProgressBar;
use omir_core::instant::Timestamp;
use omird::engine::{Clock as _, SystemClock};
use omird::store::inspect::{self, History, Progress, Store, Verdict};

use crate::cli::{Globals, StoreArgs, StoreCommand};
use crate::error::{Error, Result};
use crate::{output, progress};

pub(super) fn run(globals: &Globals, args: &StoreArgs) -> Result<()> {
    match &args.command {
        StoreCommand::Check(args) => check::run(globals, args),
        StoreCommand::Ls(args) => list::run(globals, args),
        StoreCommand::Cat(args) => cat::run(globals, args),
        StoreCommand::Repair(args) => repair::run(globals, args),
    }
}

pub(super) fn open(globals: &Globals, path: &Path) -> Result<Store> {
    let unusable = |why: inspect::OpenError| Error::Input { message: why.to_string(), path: None };
    let store = Store::open(path, SystemClock::default().now()).map_err(unusable)?;
    if let Some(remark) = store.remark() {
        output::remark(globals.quiet || globals.json, remark);
    }
    Ok(store)
}

/// Runs long work on bytes under a bar.
fn with_bar<T>(
    globals: &Globals,
    what: &str,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> T,
) -> T {
    let bar = progress::bar(globals, 0, what);
    let done = work(&mut |passed| show(&bar, passed));
    bar.finish_and_clear();
    done
}

/// In KiB: the bar counts in plain numbers.
fn show(bar: &ProgressBar, passed: Progress) {
    bar.set_length(passed.total.div_ceil(1024));
    bar.set_position(passed.done / 1024);
}

pub(super) fn read(globals: &Globals, store: &Store, path: &Path) -> Result<History> {
    with_bar(globals, "reading (KiB)", |progress| store.history(progress))
        .map_err(|why| Error::input(path, why))
}

/// Status 3 if what was read is not all there was.
fn complete(history: &History, path: &Path) -> Result<()> {
    if Verdict::of(&history.findings) != Verdict::Lossy {
        return Ok(());
    }
    Err(Error::Partial(format!(
        "{}: something in there is lost or damaged; `omir store check` tells what",
        path.display()
    )))
}

fn instant(micros: i64) -> String {
    Timestamp::from_micros(micros).to_string()
}

fn count(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;

    use clap::Parser as _;
    use omird::disk::Folder;
    use omird::engine::Encoding;
    use omird::engine::Events;
    use omird::engine::Settings;
    use omird::engine::{Engine, Parts};
    use omird::store::device_key;

    use omir_core::value::Value;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::document;

    fn data() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        let parts = Parts {
            disk: Arc::new(Folder::new(&data)),
            index: None,
            clock: Arc::new(SystemClock::default()),
            key: device_key(&data, || [7; 32]).unwrap(),
            random: Box::new(|| 1),
            settings: Settings::default(),
            events: Events::default(),
        };
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        for id in ["dock", "hall"] {
            let json = format!(r#"{{"resourceType":"Entity","id":"{id}","name":"the {id}"}}"#);
            let change = engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
            engine.execute(change).unwrap();
        }
        let forgotten = "Entity/hall".parse().unwrap();
        engine.execute(omird::engine::Change::Forget(vec![forgotten])).unwrap();
        engine.stop();
        (dir, data)
    }

    /// The exit code of a command line.
    fn code(line: &[&str]) -> u8 {
        let words = ["omir", "--quiet", "store"].iter().chain(line);
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Store(args) = &cli.command else { unreachable!() };
        run(&cli.globals, args).map_or_else(|error| error.exit_code(), |()| 0)
    }

    #[test]
    fn the_exit_codes_are_the_documented_ones() {
        let (dir, data) = data();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (store, new) = (data.display().to_string(), path("new"));
        let segment = data.join("segments/0000000001.omirb");
        assert_eq!(code(&["check", &store]), 0);
        assert_eq!(code(&["ls", &store, "--all", "--json"]), 0);
        assert_eq!(code(&["ls", &store, "--files"]), 0);
        assert_eq!(code(&["cat", &store, "Entity/dock"]), 0);
        assert_eq!(code(&["cat", &store, "Entity/hall"]), 1, "forgotten");
        let gone = ["cat", &store, "Entity/hall", "--version", "1"];
        assert_eq!(code(&gone), 1, "and left out when it was sealed");
        assert_eq!(code(&["cat", &store, "Entity/dock", "--version", "7"]), 1);
        assert_eq!(code(&["cat", &store, "0000000001.omirb"]), 0);
        assert_eq!(code(&["cat", &store, "0000000009.omirb"]), 2);
        let bundle = path("all.omir");
        assert_eq!(code(&["cat", &segment.display().to_string(), "-o", &bundle]), 0);
        let entries = document::read(Path::new(&bundle)).unwrap();
        assert_eq!(entries.pointer("/entry/0/id").and_then(Value::as_str), Some("dock"));
        assert_eq!(entries.get("entry").unwrap().as_array().unwrap().len(), 1);
        assert_eq!(code(&["check", &path("nothing")]), 2);
        assert_eq!(code(&["check", &dir.path().display().to_string()]), 2);
        assert_eq!(code(&["repair", &segment.display().to_string(), "--into", &new]), 2);

        let held = omird::store::Lock::acquire(&data).unwrap();
        assert_eq!(code(&["ls", &store]), 2);
        drop(held);

        fs::remove_file(data.join("segments/0000000001.sig")).unwrap();
        assert_eq!(code(&["check", &store]), 1);
        assert_eq!(code(&["repair", &store, "--into", &new]), 0);
        assert_eq!(code(&["repair", &store, "--into", &new]), 2, "it is not empty any more");
        assert_eq!(code(&["check", &new]), 0);

        let bytes = fs::read(&segment).unwrap();
        let at = bytes.windows(8).position(|window| window == b"the dock").unwrap();
        let mut damaged = bytes;
        damaged[at] ^= 1;
        fs::write(&segment, damaged).unwrap();
        assert_eq!(code(&["check", &store]), 1, "its sidecar restores it");
        fs::remove_file(segment.with_extension("par")).unwrap();
        assert_eq!(code(&["check", &store]), 3);
        assert_eq!(code(&["ls", &store]), 3);
        assert_eq!(code(&["repair", &store, "--into", &path("newer")]), 3);
    }
}
