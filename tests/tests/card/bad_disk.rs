//! The disk is full, or refuses a write or a sync, and the power stays on. The daemon says so,
//! serves what it has, goes on as soon as it can, and has lost nothing.

use std::sync::Arc;
use std::time::Duration;

use omird::engine::testing::ByHand;
use omird::engine::{Code, FlashSettings, Settings};
use omird::store::format::wal;
use omird_tests::check::{reopen, store};
use omird_tests::cut_disk::{BLOCK, CutDisk, EVERYTHING, Failing, ONLY_SYNCED};
use omird_tests::journal::Journal;
use omird_tests::life::{self, Step};
use omird_tests::model::Request;
use omird_tests::session::{Session, TestClock, settings};

struct Run {
    disk: CutDisk,
    clock: Arc<TestClock>,
    journal: Journal,
    session: Option<Session>,
    refusals: u64,
}

impl Run {
    fn new() -> Self {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        Self { disk, clock, journal: Journal::default(), session: None, refusals: 0 }
    }

    fn session(&mut self) -> &Session {
        if self.session.is_none() {
            // A start that the disk refuses may be tried again.
            let tries = (0..5).find_map(|_| Session::open(&self.disk, &self.clock).ok());
            self.session = Some(tries.expect("the store opens once the disk works"));
        }
        self.session.as_ref().expect("just opened")
    }

    /// One step; `false` if the disk refused it.
    fn step(&mut self, step: &Step) -> Result<(), Code> {
        self.clock.advance(Duration::from_secs(1));
        match step {
            Step::Restart => {
                self.session = None;
                Ok(())
            }
            Step::Recall(_) => Ok(()),
            Step::Compact(scope) => {
                self.session().compact(*scope).map(drop).map_err(|error| error.code)
            }
            Step::Sweep(hours) => {
                self.clock.advance(Duration::from_secs(3600 * u64::from(*hours)));
                self.session().sweep(false).map(drop).map_err(|error| error.code)
            }
            Step::Ask(request) => {
                self.session();
                let session = self.session.as_ref().expect("just opened");
                self.journal.request(session, request).map_err(|error| {
                    self.refusals += 1;
                    error.code
                })
            }
        }
    }

    /// Served memories must be the acknowledged ones, and none that was refused.
    fn check_served(&mut self, context: &str) {
        let model = self.journal.acknowledged.clone();
        store(self.session(), &model).unwrap_or_else(|why| panic!("{context}: served: {why}"));
    }

    /// The state if the power failed now, or had gone on the way out.
    /// Tries so many of the cards there may be.
    fn check_kept(&self, context: &str, cards: u64) {
        let number = self.disk.operations();
        for card in number..number + cards {
            // The two extremes and anything in between, in turn.
            let seed = [ONLY_SYNCED, EVERYTHING, card + 2][(card % 3) as usize];
            reopen(&self.disk.survivors(seed), &self.clock, &self.journal)
                .unwrap_or_else(|why| panic!("{context}, survivors {seed}: {why}"));
        }
    }
}

/// Failing operations, beginning anywhere. The request it hits may be refused; the
/// engine must be as good as new for the next one.
fn every_failure(failing: Failing, in_a_row: u64, step_by: usize, cards: u64) {
    let steps = life::scripted();
    let mut refusals = 0;
    for at in (0..).step_by(step_by) {
        let mut run = Run::new();
        run.disk.fail(failing, at, in_a_row);
        for step in &steps {
            let context = format!("{in_a_row} of {failing:?} fail at operation {at}");
            match run.step(step) {
                Ok(()) => {}
                Err(Code::Internal) if run.disk.failures_left() < in_a_row => {
                    if run.disk.failures_left() == 0 {
                        // A new log was begun before the refusal was sent: it is final.
                        run.check_served(&context);
                        run.step(&witness(at)).expect("the engine goes on");
                        run.check_kept(&context, cards);
                    }
                }
                Err(code) => panic!("{context}: {step:?} is refused with {code:?}"),
            }
        }
        run.session = None;
        run.check_kept(&format!("{in_a_row} of {failing:?} fail at operation {at}, stopped"), 1);
        refusals += run.refusals;
        if run.disk.failures_left() == in_a_row {
            break;
        }
    }
    assert!(refusals > 10, "some requests were hit: {refusals}");
}

/// Something that is stored at once: if it is, what was refused before is gone for good.
fn witness(n: u64) -> Step {
    Step::Ask(Request::Remember(vec![life::entity(&format!("witness-{n}"), "Witness")]))
}

#[test]
fn several_syncs_may_fail_in_a_row() {
    // Two: the sync, and that of cutting off what it was to write. Three: the new log's as well.
    every_failure(Failing::Syncs, 2, 5, 2);
    every_failure(Failing::Syncs, 3, 7, 2);
}

#[test]
fn any_operation_may_fail() {
    every_failure(Failing::Any, 1, 1, 1);
}

#[test]
fn what_a_failed_sync_left_behind_does_not_come_back() {
    let mut run = Run::new();
    let flash = FlashSettings { reserve_bytes: 0, ..FlashSettings::default() };
    let settings = Settings { flash, ..settings() };
    let disk = Arc::new(run.disk.clone());
    let session = Session::open_with(disk, &run.clock, settings, None);
    run.session = Some(session.expect("it opens"));
    for n in 0..3 {
        run.step(&witness(n)).expect("the disk is good");
    }
    // The sync fails, and so does that of cutting off what it was to write: it may be on the card
    // or not. There is room for a new log, but none to seal the old one, and no reserve.
    let (used, operations) = (run.disk.used(), run.disk.operations());
    run.disk.fail(Failing::Syncs, operations, 2);
    run.disk.set_capacity(Some(used + 20 * BLOCK));
    assert_eq!(run.step(&witness(3)), Err(Code::Internal));
    run.step(&witness(4)).expect("the engine goes on with a new log");
    assert!(run.disk.paths().contains(&wal::path(1)) && run.disk.paths().contains(&wal::path(2)));
    assert_eq!(run.journal.in_doubt, None, "the refusal is final");
    run.check_kept("refused", 90);
}

#[test]
fn a_full_disk_is_answered_so_and_recovers() {
    let steps = life::scripted();
    let mut refused_somewhere = 0;
    for room in (64..6000).step_by(173) {
        let context = format!("room for {room} bytes more");
        let mut run = Run::new();
        let (before, after) = steps.split_at(8);
        for step in before {
            run.step(step).expect("there is room");
        }
        run.disk.set_capacity(Some(run.disk.used() + room));
        let mut refused = 0;
        for step in after {
            match run.step(step) {
                Ok(()) => {}
                Err(Code::StorageFull) => refused += 1,
                Err(code) => panic!("{context}: {step:?} is refused with {code:?}"),
            }
            if refused == 2 {
                break;
            }
        }
        run.check_served(&context);
        if refused > 0 {
            refused_somewhere += 1;
            let status = run.session().status("robot");
            let full = status.pointer("/disk/full").and_then(omir_core::value::Value::as_bool);
            assert_eq!(full, Some(true), "{context}");
        }
        // A daemon that is restarted on a full disk still serves what it has.
        run.session = None;
        run.session = Some(
            Session::open(&run.disk, &run.clock)
                .unwrap_or_else(|error| panic!("{context}: it does not open: {error}")),
        );
        // The log of that start never synced the last refused change, which may not come back.
        run.check_served(&context);

        run.disk.set_capacity(None);
        run.step(&witness(1)).expect("there is room again");
        for step in after {
            run.step(step).expect("there is room again");
        }
        run.check_served(&context);
        run.session = None;
        run.check_kept(&context, 1);
    }
    assert!(refused_somewhere > 10, "the disk was full: {refused_somewhere}");
}
