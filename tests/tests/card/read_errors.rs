//! A file that cannot be read at this start and could be at the next: that is no damage, and nothing
//! may be set aside for it.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use omird::disk::{Disk, DiskFile, Mode};
use omird::engine::Settings;
use omird::engine::testing::ByHand;
use omird::store::pass_on;
use omird_tests::check::reopen;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::{Ended, Journal, change};
use omird_tests::life;
use omird_tests::model::Request;
use omird_tests::session::{Card, Session, TestClock, settings};

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

impl Card for Hurdle {}

impl Disk for Hurdle {
    pass_on!(card: create_dir list rename remove sync_dir);

    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let is_hindered = mode == Mode::Read && path.starts_with(self.dir);
        let left = |times: u64| times.checked_sub(1);
        if is_hindered && self.times.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_ok()
        {
            return Err(io::Error::from_raw_os_error(self.error));
        }
        self.card.open(path, mode)
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

/// Sectors of the newest log that the card never gives back again: the rest of the log is served, no
/// number is given out twice, and what comes after is kept like anything else.
#[test]
fn bad_sectors_in_a_log_cost_what_lies_in_them() {
    const SECTOR: u64 = 4096;
    let (card, clock, _) = (CutDisk::new(), TestClock::new(), ());
    let names: Vec<String> = (0..60).map(|n| format!("thing-{n}")).collect();
    {
        let settings = Settings { segment_bytes: 1 << 20, ..settings() };
        let session =
            Session::open_with(Arc::new(card.clone()), &clock, settings, None).expect("it opens");
        for name in &names {
            let request = Request::Remember(vec![life::entity(name, &"Something ".repeat(30))]);
            let change = change(&session, &request).expect("it is valid");
            session.execute(change).expect("the disk is good");
        }
        // Nothing is sealed on the way out.
        card.cut();
    }
    let card = card.survivors(ONLY_SYNCED);
    let log = card.paths().into_iter().rfind(|path| path.ends_with(".wal")).expect("a log");
    let len = card.bytes(&log).len() as u64;
    assert!(len > 3 * SECTOR, "{len} bytes are too few");
    let last = (len - 1) / SECTOR * SECTOR;
    for hole in [0..SECTOR, SECTOR..2 * SECTOR, last..len, SECTOR..len] {
        let card = card.survivors(EVERYTHING);
        card.make_hole(&log, hole.clone());
        let here = |session: &Session| {
            let found = |name: &&String| {
                let target = format!("Entity/{name}").parse().expect("a reference");
                session.get(&target).expect("it is readable").is_some()
            };
            names.iter().filter(found).cloned().collect::<Vec<_>>()
        };
        let (before, seq) = {
            let session = Session::open(&card, &clock).expect("it opens");
            assert!(!session.damage().is_empty(), "{hole:?}: nothing is said of it");
            let served = here(&session);
            let lost = names.len() - served.len();
            // One frame of some 400 bytes each.
            let held = (hole.end - hole.start) / 300 + 2;
            assert!(hole.start == 0 || lost as u64 <= held, "{hole:?}: {lost} are lost");
            assert!(lost > 0, "{hole:?}: a hole holds something");
            let request = Request::Remember(vec![life::entity("after", "Something new")]);
            let change = change(&session, &request).expect("it is valid");
            (served, session.execute(change).expect("the disk is good").seq)
        };
        assert!(seq > names.len() as u64, "{hole:?}: transaction {seq} was given out before");
        let session = Session::open(&card, &clock).expect("it opens again");
        assert_eq!(here(&session), before, "{hole:?}: a second start changes nothing");
        let after = "Entity/after".parse().expect("a reference");
        assert!(session.get(&after).expect("it is readable").is_some(), "{hole:?}");
    }
}
