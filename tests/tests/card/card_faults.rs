//! The card is full to the brim, mounted read-only, cannot be read for a while, or is pulled out and
//! put in again, and the daemon runs on: it says what is the matter, serves what it can, forgets
//! even on a full disk, goes on by itself when the trouble is over, and has lost nothing.
//!
//! Invariant 19 of ARCHITECTURE.md.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::value::Value;
use omird::disk::{Disk, Folder};
use omird::engine::testing::ByHand;
use omird::engine::{Code, CompactionScope, Error, FlashSettings, Query, Settings};
use omird::store::Lock;
use omird_tests::check::{reopen, store};
use omird_tests::cut_disk::{BLOCK, CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::{Journal, change};
use omird_tests::life::{self, Step};
use omird_tests::model::Request;
use omird_tests::process::eventually;
use omird_tests::session::{Session, TestClock, settings};

/// The file that keeps room for a full disk.
const RESERVE: &str = "reserve";

struct Run {
    disk: CutDisk,
    clock: Arc<TestClock>,
    journal: Journal,
    session: Option<Session>,
}

impl Run {
    fn new() -> Self {
        Self::on(CutDisk::new(), TestClock::new(), Journal::default())
    }

    fn on(disk: CutDisk, clock: Arc<TestClock>, journal: Journal) -> Self {
        let session = Session::open(&disk, &clock).expect("it opens");
        Self { disk, clock, journal, session: Some(session) }
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("it runs")
    }

    fn restart(&mut self) {
        self.session = None;
        self.session = Some(Session::open(&self.disk, &self.clock).expect("it opens"));
    }

    fn ask(&mut self, request: &Request) -> Result<(), Error> {
        self.clock.advance(Duration::from_secs(1));
        let session = self.session.as_ref().expect("it runs");
        self.journal.request(session, request)
    }

    fn live(&mut self, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            match step {
                Step::Ask(request) => self.ask(request)?,
                Step::Restart => self.restart(),
                Step::Recall(_) => {}
                Step::Sweep(hours) => {
                    self.clock.advance(Duration::from_secs(3600 * u64::from(*hours)));
                    self.session().sweep(false).map(drop)?;
                }
                Step::Compact(scope) => {
                    self.session().compact(*scope).map(drop)?;
                }
            }
        }
        Ok(())
    }

    /// Only acknowledged memories are served.
    fn check_served(&self, context: &str) {
        store(self.session(), &self.journal.acknowledged)
            .unwrap_or_else(|why| panic!("{context}: {why}"));
    }

    /// So is what would be there if the power went now.
    fn check_kept(&self, context: &str) {
        for seed in [ONLY_SYNCED, EVERYTHING, 77] {
            reopen(&self.disk.survivors(seed), &self.clock, &self.journal)
                .unwrap_or_else(|why| panic!("{context}, survivors {seed}: {why}"));
        }
    }

    fn state(&self) -> String {
        state(self.session())
    }

    /// Waits until the daemon finds out by itself that the trouble is over.
    fn wait_until_ok(&self) {
        wait_for(self.session(), "ok");
    }
}

fn member(session: &Session, pointer: &str) -> Value {
    session.status("robot").pointer(pointer).cloned().unwrap_or(Value::Null)
}

fn state(session: &Session) -> String {
    member(session, "/disk/state").as_str().expect("there is a state").to_owned()
}

fn wait_for(session: &Session, expected: &str) {
    let patience = Instant::now() + Duration::from_secs(60);
    while state(session) != expected {
        assert!(Instant::now() < patience, "it stays {}", state(session));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn remember(name: &str) -> Request {
    Request::Remember(vec![life::record(name, "a kettle on the stove", &[], Some([0.0; 3]))])
}

fn forget(name: &str) -> Request {
    Request::Forget(life::reference(&format!("MemoryRecord/{name}")))
}

#[test]
fn what_is_on_a_disk_full_to_the_brim_can_be_forgotten() {
    let mut run = Run::new();
    for n in 0..12 {
        run.ask(&remember(&format!("memory-{n}"))).unwrap();
    }
    // Not a byte is left, and the log is in the middle of a block.
    run.disk.set_capacity(Some(run.disk.used()));
    let mut taken = 0;
    while run.ask(&remember(&format!("more-{taken}"))).is_ok() {
        taken += 1;
    }
    for n in 0..6 {
        run.ask(&forget(&format!("memory-{n}"))).unwrap();
        let anchor = Request::Anchor(life::reference("MemoryRecord/memory-9"), n % 2 == 0);
        run.ask(&anchor).unwrap();
        assert_eq!(run.state(), "full");
        // The room that this made is not for something new.
        let refusal = run.ask(&remember("one-more")).unwrap_err();
        assert_eq!(refusal.code, Code::StorageFull);
    }
    assert!(!run.disk.paths().iter().any(|path| path == RESERVE), "it was given up");
    run.check_served("on a full disk");
    run.check_kept("on a full disk");
    run.restart();
    assert_eq!(run.state(), "full");
    run.check_served("after a start on a full disk");
    run.ask(&forget("memory-6")).unwrap();

    run.disk.set_capacity(None);
    run.ask(&remember("at-last")).unwrap();
    // The sealing thread may have met the full disk as well, and tries again by itself.
    run.wait_until_ok();
    assert!(run.disk.paths().iter().any(|path| path == RESERVE), "it is kept again");
    run.check_served("with room again");
    run.check_kept("with room again");
}

#[test]
fn a_compaction_that_a_full_disk_refuses_says_so() {
    for scope in [CompactionScope::Forgotten, CompactionScope::All] {
        // The log may be sealed meanwhile, by what room is left. Then nothing is to be compacted, and another life is begun.
        let is_refused = (0..12).any(|_| is_refused_on_a_full_disk(scope));
        assert!(is_refused, "there is no room for it");
    }
}

/// Fills a disk, and compacts. Returns false if nothing was to be compacted.
fn is_refused_on_a_full_disk(scope: CompactionScope) -> bool {
    let mut run = Run::new();
    let flash = FlashSettings { reserve_bytes: 0, ..FlashSettings::default() };
    run.session = None;
    let disk = Arc::new(run.disk.clone());
    let settings = Settings { flash, ..settings() };
    run.session = Some(Session::open_with(disk, &run.clock, settings, None).expect("it opens"));
    for n in 0..6 {
        run.ask(&remember(&format!("memory-{n}"))).unwrap();
    }
    run.disk.set_capacity(Some(run.disk.used()));
    let mut taken = 0;
    // The daemon may make a little room by itself meanwhile: then it is filled again.
    let refused = (0..20).find_map(|_| {
        while run.ask(&remember(&format!("more-{taken}"))).is_ok() {
            taken += 1;
        }
        run.session().compact(scope).err()
    });
    if let Some(refusal) = &refused {
        assert_eq!(refusal.code, Code::StorageFull, "{refusal}");
    }
    run.check_served("on a full disk");
    refused.is_some()
}

#[test]
fn room_on_the_disk_is_noticed_with_nobody_asking() {
    let mut run = Run::new();
    run.disk.set_capacity(Some(run.disk.used()));
    let mut taken = 0;
    while run.ask(&remember(&format!("memory-{taken}"))).is_ok() {
        taken += 1;
    }
    assert_eq!(run.state(), "full");
    run.ask(&Request::Remember(vec![life::entity("more", "More")])).unwrap_err();
    run.disk.set_capacity(Some(run.disk.used() + 200 * BLOCK));
    run.wait_until_ok();
    assert!(run.disk.paths().iter().any(|path| path == RESERVE), "it is kept again");
}

#[test]
fn a_card_that_turns_read_only_is_served_and_gone_on_with() {
    let mut run = Run::new();
    let steps = life::scripted();
    let (before, after) = steps.split_at(steps.len() / 2);
    run.live(before).unwrap();
    run.disk.set_read_only(true);
    let refusal = run.ask(&remember("kettle")).unwrap_err();
    assert_eq!(refusal.code, Code::Internal);
    assert!(refusal.message.contains("read-only"), "{refusal}");
    assert_eq!(run.ask(&forget("first")).unwrap_err().code, Code::Internal);
    assert_eq!(run.state(), "readOnly");
    assert!(member(run.session(), "/disk/since").as_str().is_some());
    run.check_served("read-only");
    run.disk.set_read_only(false);
    run.wait_until_ok();
    run.live(after).unwrap();
    run.check_served("for writing again");
    run.check_kept("for writing again");
}

#[test]
fn a_start_on_a_read_only_card_serves_whatever_a_power_cut_left_there() {
    let steps = life::scripted();
    for cut in (40..).step_by(5) {
        let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
        disk.cut_at(cut);
        journal.live(&disk, &clock, &steps);
        let is_last = !disk.is_off();
        let card = disk.survivors([ONLY_SYNCED, EVERYTHING, cut][cut as usize % 3]);
        let context = format!("cut at {cut}");
        let whole = reopen(&card.survivors(EVERYTHING), &clock, &journal)
            .unwrap_or_else(|why| panic!("{context}: {why}"));
        let journal = Journal { acknowledged: whole, in_doubt: None };
        if card.paths().is_empty() {
            continue;
        }
        card.set_read_only(true);
        let files = card.paths();
        let mut run = Run::on(card, clock, journal);
        assert_eq!(run.state(), "readOnly", "{context}");
        run.check_served(&context);
        run.restart();
        run.check_served(&context);
        assert_eq!(run.disk.paths(), files, "{context}: nothing was changed");

        run.disk.set_read_only(false);
        run.ask(&remember("kettle")).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_eq!(run.state(), "ok", "{context}");
        run.check_served(&context);
        run.check_kept(&context);
        run.restart();
        run.check_kept(&context);
        if is_last {
            break;
        }
    }
}

#[test]
fn a_card_may_be_pulled_out_at_any_moment_and_put_in_again() {
    let steps = life::scripted();
    let mut refused = 0;
    for at in (40..).step_by(3) {
        let context = format!("pulled out at {at}");
        let mut run = Run::new();
        run.disk.pull_out_at(at);
        let mut pulled = false;
        for step in &steps {
            // A daemon that starts meanwhile, or stops, is not what this is about.
            let Step::Ask(request) = step else { continue };
            match run.ask(request) {
                Ok(()) => {}
                Err(error) => {
                    assert!(run.disk.is_out(), "{context}: {error}");
                    assert_eq!(error.code, Code::Internal, "{context}");
                    refused += 1;
                    pulled = true;
                    // It is said so, and what is in memory is told.
                    run.ask(request).unwrap_err();
                    assert_eq!(run.state(), "gone", "{context}");
                    let query = Query { text: Some("kettle".into()), ..Query::default() };
                    run.session().recall(&query).expect("a recall is answered");
                    run.disk.put_in([ONLY_SYNCED, EVERYTHING, at][at as usize % 3]);
                    run.ask(request).unwrap_or_else(|error| panic!("{context}, back: {error}"));
                }
            }
        }
        // The sealing thread may be hit in the background as well, and no caller hears of it.
        run.disk.pull_out_at(u64::MAX);
        pulled |= run.disk.is_out();
        if run.disk.is_out() {
            run.disk.put_in(ONLY_SYNCED);
        }
        run.check_served(&context);
        run.check_kept(&context);
        run.session = None;
        run.check_kept(&format!("{context}, stopped"));
        if !pulled {
            break;
        }
    }
    // How many depends on how far the thread that seals is.
    assert!(refused > 5, "requests were hit: {refused}");
}

#[test]
fn a_card_that_is_out_still_gives_its_totals_and_says_what_is_left_out() {
    let mut run = Run::new();
    for n in 0..5 {
        run.ask(&remember(&format!("memory-{n}"))).unwrap();
    }
    run.disk.pull_out();
    let query = Query { text: Some("kettle".into()), ..Query::default() };
    let recalled = run.session().recall(&query).unwrap();
    assert_eq!((recalled.hits.len(), recalled.total), (0, 5));
    assert_eq!(member(run.session(), "/unreadable").as_u64(), Some(5));
    assert_eq!(member(run.session(), "/counts/types/MemoryRecord").as_u64(), Some(5));
    wait_for(run.session(), "gone");
    run.disk.put_in(ONLY_SYNCED);
    run.wait_until_ok();
    assert_eq!(run.session().recall(&query).unwrap().hits.len(), 5);
}

#[test]
fn a_card_that_cannot_be_read_for_a_while_is_read_again() {
    let mut run = Run::new();
    run.live(&life::scripted()).unwrap();
    run.disk.set_blind(true);
    let query = Query { include_intentions: true, ..Query::everything() };
    let recalled = run.session().recall(&query).unwrap();
    assert!(recalled.hits.is_empty() && recalled.total > 2);
    assert_eq!(run.state(), "failing");
    // New memories are written all the same: it is the reading that fails.
    run.ask(&Request::Remember(vec![life::entity("witness", "Witness")])).unwrap();
    run.disk.set_blind(false);
    run.check_served("read again");
    run.wait_until_ok();
}

#[test]
fn nothing_new_is_taken_in_beyond_the_bound_and_the_rest_goes_on() {
    let flash = FlashSettings { max_bytes: 64 << 10, reserve_bytes: 0, ..FlashSettings::default() };
    let settings = Settings { flash, segment_bytes: 8 << 10, ..settings() };
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    let session = Session::open_with(Arc::new(disk), &clock, settings, None).unwrap();
    let mut taken = 0;
    let refusal = loop {
        match journal.request(&session, &remember(&format!("memory-{taken}"))) {
            Ok(()) => taken += 1,
            Err(error) => {
                // While a log is sealed it lies there twice: only what is refused afterwards too is too much.
                eventually("nothing is sealed any more", || {
                    member(&session, "/disk/unsealedLogs").as_u64() == Some(0)
                });
                if session.quota_usage().refusal(false).is_some() {
                    break error;
                }
            }
        }
    };
    assert_eq!(refusal.code, Code::StorageFull);
    assert!(refusal.message.contains("flash.max_bytes"), "{refusal}");
    let usage = session.quota_usage();
    assert!(usage.bytes > 70 << 10 && usage.bytes_to_free() > 6 << 10, "{usage:?}");
    journal.request(&session, &forget("memory-0")).unwrap();
    let anchor = Request::Anchor(life::reference("MemoryRecord/memory-1"), true);
    journal.request(&session, &anchor).unwrap();
    // Compaction may win some room, now that something is forgotten; it is not enough for many.
    let refused = (0..50).find_map(|n| {
        let new = change(&session, &remember(&format!("new-{n}")));
        new.and_then(|change| session.execute(change)).err()
    });
    assert_eq!(refused.expect("it is full again").code, Code::StorageFull);
    assert_eq!(member(&session, "/disk/bytes").as_u64(), Some(session.quota_usage().bytes));
    assert_eq!(state(&session), "ok", "the disk itself is well");
}

fn watched(data: &Path) -> Arc<dyn Disk> {
    let mut lock = Lock::acquire(data).unwrap();
    lock.stamp(7).unwrap();
    Arc::new(Folder::watched(data, lock.watch()))
}

#[test]
fn nothing_is_written_to_what_lies_in_the_place_of_the_data_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    std::fs::create_dir(&data).unwrap();
    let (clock, mut journal) = (TestClock::new(), Journal::default());
    let session = Session::open_with(watched(&data), &clock, settings(), None).unwrap();
    for n in 0..20 {
        journal.request(&session, &remember(&format!("memory-{n}"))).unwrap();
    }
    std::fs::rename(&data, &elsewhere).unwrap();
    std::fs::create_dir(&data).unwrap();
    let refusal = journal.request(&session, &remember("kettle")).unwrap_err();
    assert_eq!((refusal.code, state(&session).as_str()), (Code::Internal, "gone"));
    assert!(refusal.message.contains("away"), "{refusal}");
    // Open files are still read.
    store(&session, &journal.acknowledged).unwrap();
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);

    std::fs::remove_dir(&data).unwrap();
    std::fs::rename(&elsewhere, &data).unwrap();
    wait_for(&session, "ok");
    journal.request(&session, &remember("kettle")).unwrap();
    store(&session, &journal.acknowledged).unwrap();
    drop(session);
    let session =
        Session::open_with(Arc::new(Folder::new(&data)), &clock, settings(), None).unwrap();
    store(&session, &journal.acknowledged).unwrap();
}
