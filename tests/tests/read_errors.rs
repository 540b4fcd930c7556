//! A file that cannot be read at this start and could be at the next: that is no damage, and nothing
//! may be set aside for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omird::disk::{Disk, DiskFile, Mode};
use omird_tests::check::reopen;
use omird_tests::cut_disk::{CutDisk, ONLY_SYNCED};
use omird_tests::journal::{Ended, Journal};
use omird_tests::life;
use omird_tests::session::{Session, TestClock};

const EMFILE: i32 = 24;
const EIO: i32 = 5;

/// A disk whose files in one folder cannot be opened for reading, a number of times.
#[derive(Clone)]
struct Hurdle {
    card: CutDisk,
    dir: &'static str,
    error: i32,
    times: Arc<AtomicU64>,
}

impl Disk for Hurdle {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.card.create_dir(dir)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.card.list(dir)
    }

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let is_hindered = mode == Mode::Read && path.starts_with(self.dir);
        let left = |times: u64| times.checked_sub(1);
        if is_hindered && self.times.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_ok()
        {
            return Err(io::Error::from_raw_os_error(self.error));
        }
        self.card.open(path, mode)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.card.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.card.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.card.sync_dir(dir)
    }
}

/// A card with segments and a log that is not sealed.
fn lived() -> (CutDisk, Arc<TestClock>, Journal) {
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    // A life ends with a clean stop, which seals everything: this one ends before.
    disk.cut_at(120);
    assert_eq!(journal.live(&disk, &clock, &life::scripted()), Ended::Cut);
    let card = disk.survivors(ONLY_SYNCED);
    for kind in [".omirb", ".wal"] {
        assert!(card.paths().iter().any(|path| path.ends_with(kind)), "a card without {kind}");
    }
    (card, clock, journal)
}

#[test]
fn what_a_process_lacks_ends_the_start_and_sets_nothing_aside() {
    let (card, clock, journal) = lived();
    for dir in ["wal/", "segments/"] {
        let times = Arc::new(AtomicU64::new(u64::MAX));
        let hurdle = Hurdle { card: card.clone(), dir, error: EMFILE, times };
        let Err(error) = Session::open(&hurdle, &clock) else {
            panic!("{dir}: it opened without its files");
        };
        assert!(error.to_string().contains(dir), "{error}");
        assert!(!card.paths().iter().any(|path| path.ends_with(".damaged")), "{:?}", card.paths());
    }
    reopen(&card, &clock, &journal).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn an_error_that_does_not_come_again_loses_nothing() {
    let (card, clock, journal) = lived();
    for count in 1..3 {
        let times = Arc::new(AtomicU64::new(count));
        let hurdle = Hurdle { card: card.clone(), dir: "wal/", error: EIO, times };
        let session = Session::open(&hurdle, &clock).expect("it opens");
        assert!(session.damage().is_empty(), "{:?}", session.damage());
    }
    reopen(&card, &clock, &journal).unwrap_or_else(|why| panic!("{why}"));
}
