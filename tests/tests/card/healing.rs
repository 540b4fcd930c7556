//! Segments that rot while the daemon runs: what is lost of one is restored as it is read, and written back in idle
//! time. What nobody reads is found all the same, within the time of a round.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::sync::Arc;
use std::time::Duration;

use omir_core::event::EventKind;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::disk::Disk;
use omird::engine::testing::ByHand;
use omird::engine::{Code, CompactionScope, Settings, Task};
use omird::store::format::signature::{Seal, chain_breaks};
use omird::store::format::{segment, wal};
use omird_tests::check::decode;
use omird_tests::cut_disk::{CutDisk, EVERYTHING};
use omird_tests::journal::change;
use omird_tests::life;
use omird_tests::model::Request;
use omird_tests::process::eventually;
use omird_tests::session::{Session, TestClock, settings};

const SEALED: Duration = Duration::from_secs(60);

/// A card with segments of which each holds one record, and who serves it.
struct Robot {
    disk: CutDisk,
    clock: Arc<TestClock>,
    session: Session,
}

fn patient() -> Settings {
    Settings { segment_bytes: 1 << 20, ..settings() }
}

impl Robot {
    fn new(segments: usize) -> Self {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session =
            Session::open_with(Arc::new(disk.clone()), &clock, patient(), None).expect("it opens");
        let robot = Self { disk, clock, session };
        for n in 0..segments {
            robot.remember(n, "as it was");
            robot.session.seal_now(SEALED).expect("a good disk");
        }
        robot
    }

    fn remember(&self, n: usize, words: &str) {
        let words = format!("record {n} {words} ").repeat(40);
        let request = Request::Remember(vec![life::record(&format!("r{n}"), &words, &[], None)]);
        let change = change(&self.session, &request).expect("valid");
        self.session.execute(change).expect("a good disk");
    }

    /// Starts again on what lies on the card.
    fn restarted(self) -> Self {
        let Self { disk, clock, session } = self;
        drop(session);
        let session =
            Session::open_with(Arc::new(disk.clone()), &clock, patient(), None).expect("it opens");
        Self { disk, clock, session }
    }

    fn names(&self) -> Vec<Ref> {
        let name = |n: usize| format!("MemoryRecord/r{n}").parse().expect("a reference");
        (0..).map(name).take_while(|name| matches!(self.session.get(name), Ok(Some(_)))).collect()
    }

    fn words(&self, n: usize) -> String {
        let target: Ref = format!("MemoryRecord/r{n}").parse().expect("a reference");
        let bytes = self.session.get(&target).expect("it is read").expect("it is there");
        format!("{:?}", decode(&bytes))
    }

    fn count(&self, pointer: &str) -> u64 {
        let status = self.session.status("robot");
        status.pointer(pointer).and_then(Value::as_u64).expect("a count")
    }

    fn text(&self, pointer: &str) -> Option<String> {
        let status = self.session.status("robot");
        status.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
    }

    /// Lets the thread that seals do what it does in idle time.
    fn idle(&self) {
        self.session.run_task(Task::Seal).expect("it runs");
    }
}

#[test]
fn what_rots_while_it_is_served_is_restored_as_it_is_read_and_then_on_the_card() {
    let robot = Robot::new(3);
    let path = segment::path(2);
    let whole = robot.disk.bytes(&path);
    assert_eq!(robot.names().len(), 3);
    robot.disk.rot(&path, |bytes| bytes.fill(0));
    assert!(robot.words(1).contains("record 1 as it was"), "{}", robot.words(1));
    assert_eq!(robot.count("/unreadable"), 0);
    eventually("it is written back", || {
        robot.idle();
        robot.disk.bytes(&path) == whole
    });
    eventually("it is told", || robot.count("/disk/repairs") == 1);
    assert_eq!(robot.text("/disk/state").as_deref(), Some("ok"));
    let robot = robot.restarted();
    assert_eq!(robot.session.damage(), []);
    assert!(robot.words(1).contains("record 1 as it was"));
}

#[test]
fn a_sector_that_cannot_be_read_is_restored_as_well() {
    let robot = Robot::new(2);
    robot.disk.make_hole(&segment::path(1), 0..512);
    assert!(robot.words(0).contains("record 0 as it was"));
}

#[test]
fn what_nobody_reads_is_found_within_a_round() {
    let robot = Robot::new(4);
    let paths: Vec<String> = (1..=4).map(segment::path).collect();
    let whole: Vec<Vec<u8>> = paths.iter().map(|path| robot.disk.bytes(path)).collect();
    for path in &paths {
        robot.disk.rot(path, |bytes| bytes[100] ^= 1);
    }
    let is_mended = |at: usize| robot.disk.bytes(&paths[at]) == whole[at];
    for day in 0..70 {
        robot.clock.advance(Duration::from_secs(86_400));
        // Marks are noted by the writer: a start goes on where the round was.
        robot.session.run_task(Task::Mark).expect("a good disk");
        robot.idle();
        robot.idle();
        if day == 3 {
            assert!(!is_mended(3), "all at once is not spread over a month");
        }
    }
    eventually("all is mended", || {
        robot.idle();
        (0..4).all(is_mended)
    });
    assert!(robot.text("/disk/lastScrub").is_some());
}

#[test]
fn a_folder_of_an_older_release_gets_its_sidecars_and_a_lost_signature_is_made_again() {
    let robot = Robot::new(4);
    robot.session.compact(CompactionScope::All).expect("a good disk");
    let robot = (4..7).fold(robot, |robot, n| {
        robot.remember(n, "later");
        robot.session.seal_now(SEALED).expect("a good disk");
        robot
    });
    let Robot { disk, clock, session } = robot;
    drop(session);
    let segments: Vec<u64> = (disk.paths().iter())
        .filter_map(|path| segment::number_of(path.strip_prefix("segments/")?))
        .collect();
    assert!(segments.len() == 4, "{segments:?}");
    let sidecars: Vec<Vec<u8>> =
        segments.iter().map(|&number| disk.bytes(&segment::sidecar_path(number))).collect();
    let seals: Vec<Vec<u8>> =
        segments.iter().map(|&number| disk.bytes(&segment::signature_path(number))).collect();
    // The sidecars of the first two are not there, the seals of the others are gone or rotten.
    disk.remove(&segment::sidecar_path(segments[0])).expect("a good disk");
    disk.remove(&segment::sidecar_path(segments[1])).expect("a good disk");
    disk.remove(&segment::signature_path(segments[2])).expect("a good disk");
    disk.rot(&segment::signature_path(segments[3]), |bytes| bytes[120] ^= 1);
    disk.sync_dir(segment::DIR).expect("a good disk");
    let session =
        Session::open_with(Arc::new(disk.clone()), &clock, patient(), None).expect("it opens");
    let robot = Robot { disk, clock, session };
    assert_eq!(robot.session.damage(), [], "the sidecars vouch for what was signed");
    eventually("all is there again", || {
        robot.idle();
        let is_back = |(at, &number): (usize, &u64)| {
            let there =
                |path: String| robot.disk.paths().contains(&path).then(|| robot.disk.bytes(&path));
            there(segment::sidecar_path(number)).as_ref() == Some(&sidecars[at])
                && there(segment::signature_path(number)).as_ref() == Some(&seals[at])
        };
        segments.iter().enumerate().all(is_back)
    });
}

#[test]
fn a_lost_signature_of_a_compacted_segment_is_made_again() {
    let robot = Robot::new(3);
    robot.session.compact(CompactionScope::All).expect("a good disk");
    let number = (robot.disk.paths().iter())
        .find_map(|path| segment::number_of(path.strip_prefix("segments/")?))
        .expect("a segment");
    let path = segment::signature_path(number);
    let read =
        |robot: &Robot, path: &str| Seal::from_json(&robot.disk.bytes(path)).expect("a seal");
    let before = read(&robot, &path);
    assert!(before.last.is_some());
    robot.disk.remove(&path).expect("a good disk");
    let robot = robot.restarted();
    eventually("it is signed again", || {
        robot.idle();
        robot.disk.paths().contains(&path)
    });
    let new = read(&robot, &path);
    assert!(new.is_authentic() && new.last.is_some());
    assert_eq!((new.contents, new.previous), (before.contents, before.previous));
    // Nothing tells what its link was, but the chain goes on from the one it has now.
    robot.remember(3, "later");
    robot.session.seal_now(SEALED).expect("a good disk");
    let seals: Vec<Seal> = (robot.disk.paths().iter())
        .filter(|path| path.ends_with(".sig"))
        .map(|path| read(&robot, path))
        .collect();
    assert!(seals.len() > 1);
    assert_eq!(chain_breaks(&seals), Vec::<usize>::new());
}

#[test]
fn a_log_that_waits_is_read_in_each_round() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let (day, year) = (Duration::from_secs(86_400), Duration::from_secs(365 * 86_400));
    let patient = Settings { seal_after: year, purge_after: year, ..patient() };
    let session =
        Session::open_with(Arc::new(disk.clone()), &clock, patient, None).expect("it opens");
    let robot = Robot { disk, clock, session };
    robot.remember(0, "as it was");
    robot.clock.advance(100 * day);
    robot.idle();
    robot.remember(1, "months later");
    let log = wal::path(1);
    let whole = robot.disk.bytes(&log);
    assert_ne!(robot.disk.paths().iter().filter(|path| path.ends_with(".wal")).count(), 1);
    robot.disk.rot(&log, |bytes| bytes[100] ^= 1);
    eventually("the bit is turned back", || {
        robot.clock.advance(day);
        robot.idle();
        robot.disk.bytes(&log) == whole
    });
    assert_eq!(robot.text("/disk/state").as_deref(), Some("ok"));
    robot.disk.rot(&log, |bytes| bytes[100] ^= 3);
    eventually("it is told", || {
        robot.clock.advance(day);
        robot.idle();
        robot.text("/disk/state").as_deref() == Some("damaged")
    });
    assert!(robot.words(1).contains("record 1 months later"));
}

#[test]
fn what_cannot_be_restored_is_told_of_and_everything_else_served() {
    let robot = Robot::new(2);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let teller = told.clone();
    robot.session.on_finding(Box::new(move |finding| {
        teller.lock().expect("no panic").push((finding.kind, finding.file.clone()));
    }));
    let path = segment::path(1);
    robot.disk.rot(&path, |bytes| bytes.fill(0));
    robot.disk.rot(&segment::sidecar_path(1), |bytes| bytes.fill(0));
    let gone = robot.session.get(&"MemoryRecord/r0".parse().expect("a reference"));
    assert_eq!(gone.err().map(|error| error.code), Some(Code::Internal));
    eventually("it is told", || {
        robot.idle();
        robot.text("/disk/state").as_deref() == Some("damaged")
    });
    assert!(robot.text("/disk/hint").is_some_and(|hint| hint.contains(&path)));
    assert_eq!(robot.count("/disk/damagedFiles"), 1);
    assert_eq!(*told.lock().expect("no panic"), [(EventKind::Lost, path)]);
    assert!(robot.words(1).contains("record 1 as it was"));
}

#[test]
fn compaction_restores_what_it_reads() {
    let robot = Robot::new(3);
    robot.disk.rot(&segment::path(2), |bytes| bytes[200..300].fill(0));
    robot.session.compact(CompactionScope::All).expect("it is restored on the way");
    assert_eq!(robot.names().len(), 3);
    assert_eq!(robot.restarted().session.damage(), []);
}

/// Whatever the moment, a cut leaves the damaged segment, which is mended again, or the sound one.
#[test]
fn the_power_may_go_at_each_step_of_mending() {
    let made = Robot::new(2);
    let whole = made.disk.survivors(EVERYTHING);
    drop(made.session);
    let path = segment::path(1);
    for cut in 0..40 {
        let (disk, clock) = (whole.survivors(EVERYTHING), made.clock.clone());
        let session =
            Session::open_with(Arc::new(disk.clone()), &clock, patient(), None).expect("it opens");
        let robot = Robot { disk, clock, session };
        robot.disk.rot(&path, |bytes| bytes[100..200].fill(0));
        robot.disk.cut_at(robot.disk.operations() + cut);
        let target: Ref = "MemoryRecord/r0".parse().expect("a reference");
        let _ = robot.session.get(&target);
        for _ in 0..3 {
            let _ = robot.session.run_task(Task::Seal);
        }
        let Robot { disk, clock, session } = robot;
        disk.cut();
        drop(session);
        for seed in [cut, EVERYTHING] {
            let disk = disk.survivors(seed);
            let session = Session::open_with(Arc::new(disk.clone()), &clock, patient(), None)
                .expect("it opens");
            let robot = Robot { disk, clock: clock.clone(), session };
            assert!(robot.words(0).contains("record 0 as it was"), "cut at {cut}");
            assert!(robot.words(1).contains("record 1 as it was"), "cut at {cut}");
            assert_eq!(robot.session.damage(), [], "cut at {cut}");
        }
    }
}
