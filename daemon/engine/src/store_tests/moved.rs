//! A reader that holds a version of a file that is dropped under it, on a card that was out meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use omir_core::reference::Ref;
use omird_store::{RefKey, pass_on};

use crate::Engine;
use crate::disk::{Disk, DiskFile, Folder, Mode};
use crate::ingest::request::Encoding;
use crate::testing::parts;

/// Long enough for any machine.
const LONG: Duration = Duration::from_secs(60);

/// A folder on a card. When it was pulled out and put in again, files that were open before can be read no more.
struct Card {
    folder: Folder,
    /// True once the card was out. Each file knows the one it was opened under.
    was_out: Arc<AtomicBool>,
}

struct Open {
    file: Arc<dyn DiskFile>,
    /// True if the file was opened after the card was put in again.
    is_new: bool,
    was_out: Arc<AtomicBool>,
}

impl Disk for Card {
    pass_on!(folder: list create_dir rename remove sync_dir);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let is_new = self.was_out.load(Ordering::Acquire);
        let file = self.folder.open(path, mode)?;
        Ok(Arc::new(Open { file, is_new, was_out: self.was_out.clone() }))
    }
}

impl DiskFile for Open {
    pass_on!(file: len write_at sync truncate has_name allocate);

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if self.was_out.load(Ordering::Acquire) && !self.is_new {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()));
        }
        self.file.read_at(buf, offset)
    }
}

#[test]
fn a_version_that_was_sealed_under_a_reader_is_read_where_it_lies_by_now() {
    let dir = tempfile::tempdir().unwrap();
    let was_out = Arc::new(AtomicBool::default());
    let mut parts = parts(dir.path());
    parts.disk = Arc::new(Card { folder: Folder::new(dir.path()), was_out: was_out.clone() });
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    let json = br#"{"resourceType":"Entity","id":"cup","name":"cup"}"#;
    engine.execute(engine.prepare(json, Encoding::Json, None).unwrap()).unwrap();

    let cup: Ref = "Entity/cup".parse().unwrap();
    let held = {
        let catalog = engine.catalog();
        catalog.handle(catalog.live(&RefKey::of(&cup)).unwrap())
    };
    let before = held.bytes().unwrap();
    let log = std::fs::read_dir(dir.path().join("wal"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "wal"))
        .expect("it was written to a log");
    engine.seal_now(LONG).unwrap();
    let patience = Instant::now() + LONG;
    while log.exists() {
        assert!(Instant::now() < patience, "the log is not dropped");
        std::thread::sleep(Duration::from_millis(5));
    }
    was_out.store(true, Ordering::Release);
    assert_eq!(held.bytes().unwrap(), before);
}
