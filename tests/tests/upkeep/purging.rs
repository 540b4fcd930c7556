//! A memory forgotten on request leaves the card in time, also where a rule had made it a part of
//! something else; what only a rule let go of waits until it is worth it.
//!
//! Invariant 27 of ARCHITECTURE.md.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use omird::engine::testing::ByHand;
use omird::engine::{Change, CompactionScope, Encoding, Settings, SweepReport, Task};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::session::{Session, TestClock, settings};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// Time for which a memory that someone has had forgotten may stay.
const PURGE: Duration = Duration::from_secs(10 * 86_400);
/// Said by what became a part of something else, and by nothing else.
const SECRET: &str = "plughword";

/// A store, the clock it goes by, and whether it is opened again after each step.
struct Life {
    disk: CutDisk,
    clock: Arc<TestClock>,
    restarts: bool,
    session: Option<Session>,
}

impl Life {
    fn new(restarts: bool) -> Self {
        Self::on(CutDisk::new(), TestClock::new(), restarts)
    }

    fn on(disk: CutDisk, clock: Arc<TestClock>, restarts: bool) -> Self {
        let mut life = Self { disk, clock, restarts, session: None };
        life.open();
        life
    }

    fn open(&mut self) {
        // The one before has to be gone.
        self.session = None;
        let settings = Settings {
            purge_after: PURGE,
            seal_after: PURGE,
            keep_history: HOUR,
            segment_bytes: 1 << 20,
            segment_max_bytes: 1 << 20,
            ..settings()
        };
        let disk = Arc::new(self.disk.clone());
        let session = Session::open_with(disk, &self.clock, settings, None);
        self.session = Some(session.expect("it opens"));
    }

    /// Does something, which succeeds unless the power was cut; then time goes by.
    fn step<T, E: Debug>(&mut self, f: impl FnOnce(&Session) -> Result<T, E>) -> Option<T> {
        let done = f(self.session.as_ref().expect("it is open"));
        let done = done.map_err(|error| assert!(self.disk.is_off(), "{error:?}")).ok();
        self.clock.advance(Duration::from_secs(1));
        if self.restarts {
            self.open();
        }
        done
    }

    fn put(&mut self, json: &str) {
        self.step(|session| {
            let json = json.replace('\n', " ");
            let change = session.prepare(json.as_bytes(), Encoding::Json, None).expect("valid");
            session.execute(change)
        });
    }

    fn forget(&mut self, target: &str) {
        self.step(|session| {
            session.execute(Change::Forget(vec![target.parse().expect("a reference")]))
        });
    }

    /// Puts everything into segments.
    fn seal(&mut self) {
        self.step(|session| session.seal_now(Duration::from_secs(60)));
    }

    fn sweep(&mut self) -> SweepReport {
        self.step(|session| session.sweep(false)).unwrap_or_default()
    }

    fn merge(&mut self) -> u64 {
        self.clock.advance(2 * HOUR);
        self.sweep().merged
    }

    /// Lets time pass, in which what is due is sealed and compacted.
    fn wait(&mut self, time: Duration) {
        let mut left = time;
        while left > Duration::ZERO {
            let next = left.min(DAY);
            self.clock.advance(next);
            left -= next;
            self.step(|session| {
                session.run_task(Task::Seal)?;
                session.compact(CompactionScope::Due)
            });
        }
    }

    fn tells(&self) -> Vec<String> {
        tells(&self.disk)
    }
}

/// The files that still say it.
fn tells(disk: &CutDisk) -> Vec<String> {
    let has = |path: &String| {
        disk.bytes(path).windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
    };
    disk.paths().into_iter().filter(has).collect()
}

/// A sighting of the cup, in words that are much alike.
fn cup(id: &str, word: &str, more: &str) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"a red cup with a broken handle
        stands near the edge of our kitchen table beside an old brown pot {word}",
        "createdAt":"2026-06-01T00:00:00Z","entityRefs":[{{"ref":"Entity/cup"}}]{more}}}"#
    )
}

/// Other contents of the segments, so that they are mostly alive.
fn introduce(life: &mut Life) {
    life.put(r#"{"resourceType":"Entity","id":"cup","name":"Cup"}"#);
    let text = "all along the corridor ".repeat(100);
    life.put(&format!(
        r#"{{"resourceType":"MemoryRecord","id":"filler","content":"{text}",
        "createdAt":"2026-06-01T00:00:00Z"}}"#
    ));
}

/// One cup said the secret, lies in a segment, and became a part of `b`.
fn merged(restarts: bool) -> Life {
    let mut life = Life::new(restarts);
    introduce(&mut life);
    life.put(&cup("a", SECRET, ""));
    life.seal();
    // The name that is kept is that of a part of something.
    life.put(&cup("b", "", ""));
    life.put(&part("b"));
    assert_eq!(life.merge(), 1);
    assert!(!life.tells().is_empty());
    life
}

/// A part of a record, so that this one is not merged away.
fn part(of: &str) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"part-of-{of}","content":"its handle",
        "createdAt":"2026-06-01T00:00:00Z","parentId":"{of}"}}"#
    )
}

#[test]
fn what_a_rule_merged_stays_until_someone_asks_or_has_the_rest_forgotten() {
    for restarts in [false, true] {
        let mut life = merged(restarts);
        life.wait(4 * PURGE);
        assert!(!life.tells().is_empty(), "restarts {restarts}: it is not worth a rewrite");
        let done = life.step(|session| session.compact(CompactionScope::Forgotten));
        assert!(done.is_some_and(|done| done.forgotten > 0));
        assert_eq!(life.tells(), Vec::<String>::new(), "restarts {restarts}: asked for");
    }
    for restarts in [false, true] {
        let mut life = merged(restarts);
        life.wait(4 * PURGE);
        life.forget("MemoryRecord/b");
        life.wait(PURGE / 2);
        assert!(!life.tells().is_empty(), "restarts {restarts}: what is forgotten gathers");
        life.wait(PURGE);
        assert_eq!(life.tells(), Vec::<String>::new(), "restarts {restarts}");
    }
}

#[test]
fn what_went_through_several_merges_goes_with_the_last() {
    for (restarts, sealed) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut life = merged(restarts);
        if sealed {
            life.seal();
        }
        life.forget("MemoryRecord/part-of-b");
        life.put(&cup("c", "", ""));
        life.put(&part("c"));
        assert_eq!(life.merge(), 1, "b became a part of c");
        // A tombstone of b is needed by nothing else if b never was in a segment.
        life.wait(4 * PURGE);
        let context = format!("restarts {restarts}, sealed {sealed}");
        assert!(!life.tells().is_empty(), "{context}: not worth a rewrite");
        life.forget("MemoryRecord/c");
        life.wait(PURGE + DAY);
        assert_eq!(life.tells(), Vec::<String>::new(), "{context}");
    }
}

#[test]
fn a_name_that_is_back_hides_nothing() {
    for restarts in [false, true] {
        for again in ["a", "b"] {
            let mut life = merged(restarts);
            if again == "b" {
                life.forget("MemoryRecord/b");
                life.clock.advance(2 * HOUR);
                life.seal();
            }
            // Something else by the name of what was merged, or of what it became a part of.
            life.put(&format!(
                r#"{{"resourceType":"MemoryRecord","id":"{again}","content":"a new thing",
                "createdAt":"2026-06-01T00:00:00Z"}}"#
            ));
            life.wait(PURGE / 2);
            if again == "a" {
                life.forget("MemoryRecord/b");
            }
            life.wait(PURGE + DAY);
            let context = format!("{again} is back, restarts {restarts}");
            assert_eq!(life.tells(), Vec::<String>::new(), "{context}");
            let target = format!("MemoryRecord/{again}").parse().expect("a reference");
            let live = life.step(|session| session.get(&target)).flatten().is_some();
            assert!(live, "{context}");
        }
    }
}

#[test]
fn what_stopped_being_valid_goes_in_time() {
    let mut life = Life::new(true);
    introduce(&mut life);
    life.put(&cup("a", SECRET, r#","validUntil":"2026-06-02T00:00:00Z""#));
    life.seal();
    life.clock.advance(40 * DAY);
    assert_eq!(life.sweep().expired, 1);
    assert!(!life.tells().is_empty());
    life.wait(PURGE + DAY);
    assert_eq!(life.tells(), Vec::<String>::new());
}

#[test]
fn wherever_a_merge_is_cut_all_of_it_goes_in_time() {
    let run = |life: &mut Life| {
        life.put(&cup("b", "", ""));
        life.put(&part("b"));
        life.merge();
        life.seal();
        life.forget("MemoryRecord/b");
        life.wait(PURGE + DAY);
    };
    let begin = || {
        let mut life = Life::new(false);
        introduce(&mut life);
        life.put(&cup("a", SECRET, ""));
        life.seal();
        life
    };
    let mut whole = begin();
    let before = whole.disk.operations();
    run(&mut whole);
    let after = whole.disk.operations();
    assert_eq!(whole.tells(), Vec::<String>::new());
    assert!(after > before + 20, "there is something to cut: {before} to {after}");
    for cut in before..after {
        let mut life = begin();
        life.disk.cut_at(cut);
        run(&mut life);
        let (clock, disk) = (life.clock.clone(), life.disk.clone());
        drop(life);
        for seed in [ONLY_SYNCED, EVERYTHING] {
            let mut life = Life::on(disk.survivors(seed), clock.clone(), false);
            // Both, as it is not known which of them was left.
            life.forget("MemoryRecord/a");
            life.forget("MemoryRecord/b");
            life.wait(PURGE + DAY);
            let context = format!("cut at {cut}, survivors {seed}");
            assert_eq!(life.tells(), Vec::<String>::new(), "{context}");
        }
    }
}
