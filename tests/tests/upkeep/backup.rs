//! Backups of real segments: what is fetched, what is removed, what is refused, and that a cut of the
//! run at any operation leaves a backup.
//!
//! Invariant 16 of ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::disk::{self, Disk, DiskFile, Folder as RealDisk, Mode};
use omird::engine::testing::ByHand;
use omird::engine::{Code, Engine, FlashSettings, MAX_PIECE, Query, Settings};
use omird::store::DeviceKey;
use omird::store::backup::{
    BackupError, BackupOutcome, FetchOutcome, Folder, Offer, Offered, RestoreError, TakeError,
    restore, verify,
};
use omird::store::format::segment::{self, Draft, EarlierResource};
use omird::store::format::signature::digest;
use omird::store::pass_on;
use omird_tests::check::{self, decode};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::{Ended, Journal};
use omird_tests::life::{self, Step};
use omird_tests::model::Request;
use omird_tests::session::{DAWN, Session, TestClock, settings};

/// A daemon's offer, with the bytes behind it.
#[derive(Clone)]
struct Robot {
    offer: Offer,
    bytes: BTreeMap<u64, Vec<u8>>,
}

impl Robot {
    /// Everything an engine has, as a client gets it.
    fn of(engine: &Engine) -> Self {
        let offer = engine.offer_backup("r1").unwrap();
        assert_eq!(offer.unsealed, None);
        let mut bytes = BTreeMap::new();
        for offered in &offer.segments {
            let mut whole: Vec<u8> = Vec::new();
            while (whole.len() as u64) < offered.bytes {
                let at = whole.len() as u64;
                whole.extend(engine.segment_piece(offered.segment, at, 1000).unwrap());
            }
            bytes.insert(offered.segment, whole);
        }
        let offer = Offer::from_value(&offer.to_value()).expect("it survives the wire");
        Self { offer, bytes }
    }

    /// The same after its first `run` segments became one.
    fn compacted(&self, run: usize) -> Self {
        let number = self.offer.segments.iter().map(|o| o.segment).max().unwrap() + 1;
        let (replaced, rest) = self.offer.segments.split_at(run);
        let mut draft = Draft::new(number, 0, 1);
        for offered in replaced {
            let bytes = &self.bytes[&offered.segment];
            let layout = segment::layout(bytes).unwrap();
            draft.cover(layout.manifest.first_seq, 0);
            let mut versions: Vec<_> =
                layout.entries.into_iter().chain(layout.superseded).collect();
            versions.sort_by_key(|(stamp, _)| (stamp.seq, stamp.ordinal));
            for (stamp, range) in versions {
                draft.put(stamp, decode(&bytes[range]));
            }
            for tombstone in layout.manifest.forgotten {
                draft.write_tombstone(tombstone);
            }
            draft.cover(layout.manifest.last_seq, layout.manifest.last_recorded);
        }
        let bytes = draft.build(Timestamp::from_micros(DAWN), |_| EarlierResource::Gone);
        let (first, last) = (&replaced[0], &replaced[run - 1]);
        let previous = first.seal().unwrap().previous;
        let seal = DeviceKey::from_secret([7; 32]).sign(
            number,
            &segment::contents(&bytes, digest(&bytes)).unwrap(),
            previous,
            Some(last.seal().unwrap().link()),
        );
        let mut after = self.clone();
        after.offer.segments = vec![Offered {
            segment: number,
            bytes: bytes.len() as u64,
            first_seq: first.first_seq,
            last_seq: last.last_seq,
            signature: Some(seal.to_json()),
        }];
        after.offer.segments.extend_from_slice(rest);
        after.bytes.insert(number, bytes);
        after
    }

    fn piece(&self, number: u64, offset: u64, length: u64) -> Vec<u8> {
        let bytes = &self.bytes[&number];
        let from = usize::try_from(offset).unwrap();
        let to = bytes.len().min(from + usize::try_from(length).unwrap());
        bytes[from..to].to_vec()
    }

    /// The segment whose number comes `at`th.
    fn number(&self, at: usize) -> u64 {
        self.offer.segments[at].segment
    }
}

/// A run of a backup; how many segments it fetched.
fn back_up(
    robot: &Robot,
    disk: &(impl Disk + Clone),
) -> Result<(BackupOutcome, usize), BackupError> {
    run(robot, disk, false)
}

fn run(
    robot: &Robot,
    disk: &(impl Disk + Clone),
    new_key: bool,
) -> Result<(BackupOutcome, usize), BackupError> {
    let mut folder = Folder::open(Arc::new(disk.clone()), &mut |_| {})?;
    folder.trust(&robot.offer, new_key)?;
    let lacking: Vec<Offered> = folder.lacking(&robot.offer)?.into_iter().cloned().collect();
    for offered in &lacking {
        let mut fetch = |offset, length| {
            Ok::<_, std::convert::Infallible>(robot.piece(offered.segment, offset, length))
        };
        match folder.take(offered, &mut fetch) {
            Ok(_) => {}
            Err(TakeError::Disk(error)) => return Err(BackupError::Disk(error)),
            Err(other) => panic!("{other:?}"),
        }
    }
    let outcome = folder.finish(&robot.offer, Timestamp::from_micros(DAWN))?;
    Ok((outcome, lacking.len()))
}

/// Everything a client can see of a store, now and at moments of the past.
fn everything(engine: &Engine) -> (BTreeMap<Ref, Resource>, Vec<Vec<Vec<u8>>>, Value) {
    let mut live = BTreeMap::new();
    engine.each(None, |bytes| {
        let resource = decode(&bytes);
        live.insert(resource.reference(), resource);
    });
    let forgotten = Query { include_forgotten: true, ..Query::everything() };
    let moments = (0..40).step_by(4).map(|seconds| Query {
        as_of: Some(Timestamp::from_micros(DAWN + seconds * 1_000_000)),
        ..Query::everything()
    });
    let recalls = std::iter::once(forgotten).chain(moments).map(|query| {
        let hits = engine.recall(&query).unwrap().hits;
        let mut found: Vec<Vec<u8>> = hits.into_iter().map(|hit| hit.resource).collect();
        found.sort();
        found
    });
    let recalls = recalls.collect();
    (live, recalls, engine.status("r1").get("counts").unwrap().clone())
}

/// Checks that two stores show a client the same.
#[track_caller]
fn same(a: &Engine, b: &Engine) {
    let (a, b) = (everything(a), everything(b));
    for (target, resource) in &a.0 {
        assert_eq!(Some(resource), b.0.get(target), "{target}");
    }
    assert_eq!(a.0.len(), b.0.len());
    for (at, (a, b)) in a.1.iter().zip(&b.1).enumerate() {
        assert_eq!(a.len(), b.len(), "recall {at}");
        let other = a.iter().zip(b).find(|(a, b)| a != b);
        assert!(other.is_none(), "recall {at}: {:?}", other.map(|(a, b)| (decode(a), decode(b))));
    }
    assert_eq!(a.2, b.2);
}

/// A store that has lived, and what a client sees of it.
fn lived() -> (CutDisk, Arc<TestClock>, Journal) {
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    assert_eq!(journal.live(&disk, &clock, &life::scripted()), Ended::Whole);
    (disk, clock, journal)
}

/// A backup restored into a real folder and opened.
fn restored(backup: &dyn Disk, clock: &Arc<TestClock>) -> (tempfile::TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let into = RealDisk::new(dir.path());
    let done = restore(backup, &into, false, &mut |_| {}).unwrap();
    assert_eq!(done.faults, []);
    let session = Session::open_with(Arc::new(into), clock, settings(), None).unwrap();
    assert!(session.damage().is_empty(), "{:?}", session.damage());
    (dir, session)
}

fn remember(session: &Session, journal: &mut Journal, names: &[&str]) {
    for name in names {
        let request = Request::Remember(vec![life::entity(name, "Something new")]);
        journal.request(session, &request).unwrap();
    }
}

#[test]
fn a_backup_holds_all_that_was_acknowledged_and_a_restore_gives_it_back() {
    let (disk, clock, mut journal) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let recalled = session.recall(&Query::default()).unwrap();
    assert!(!recalled.hits.is_empty(), "there is an access to be carried over");
    remember(&session, &mut journal, &["late"]);
    let backup = CutDisk::new();
    let robot = Robot::of(&session);
    let (outcome, fetched) = back_up(&robot, &backup).unwrap();
    assert_eq!((outcome.faults.as_slice(), outcome.removed.len()), (&[][..], 0));
    assert_eq!((fetched, outcome.segments), (robot.bytes.len(), robot.bytes.len() as u64));
    assert_eq!(outcome.last_seq, robot.offer.last_seq());

    let (dir, other) = restored(&backup, &clock);
    check::store(&other, &journal.acknowledged).unwrap();
    same(&other, &session);
    // It goes on: with another key, under the next numbers, and the chain holds.
    let mut journal = journal.clone();
    remember(&other, &mut journal, &["after", "later"]);
    check::store(&other, &journal.acknowledged).unwrap();
    drop(other);
    check::segments(&RealDisk::new(dir.path())).unwrap();
}

#[test]
fn only_what_is_new_is_fetched_and_nothing_is_sealed_for_nothing() {
    let (disk, clock, mut journal) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let backup = CutDisk::new();
    let first = Robot::of(&session);
    back_up(&first, &backup).unwrap();
    let (outcome, fetched) = back_up(&Robot::of(&session), &backup).unwrap();
    assert_eq!((fetched, outcome.segments), (0, first.bytes.len() as u64), "nothing happened");

    remember(&session, &mut journal, &["new"]);
    let (outcome, fetched) = back_up(&Robot::of(&session), &backup).unwrap();
    assert_eq!((fetched, outcome.segments), (1, first.bytes.len() as u64 + 1));
    session.recall(&Query { text: Some("kettle".into()), ..Query::default() }).unwrap();
    let (_, fetched) = back_up(&Robot::of(&session), &backup).unwrap();
    assert_eq!(fetched, 1, "an access is worth keeping too");
    let (_dir, other) = restored(&backup, &clock);
    same(&other, &session);
}

#[test]
fn what_was_compacted_replaces_what_it_covers_and_nothing_else() {
    let (disk, clock, mut journal) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let backup = CutDisk::new();
    let before = Robot::of(&session);
    back_up(&before, &backup).unwrap();
    remember(&session, &mut journal, &["new"]);
    let robot = Robot::of(&session).compacted(3);
    let (outcome, fetched) = back_up(&robot, &backup).unwrap();
    assert_eq!(fetched, 2, "the compacted one and the new one");
    assert_eq!(outcome.removed, [before.number(0), before.number(1), before.number(2)]);
    assert_eq!((outcome.faults, outcome.kept), (vec![], vec![]));
    assert_eq!(verify(&backup, &mut |_| {}).unwrap().faults, []);

    // A segment that the robot lost is kept.
    let mut lossy = robot.clone();
    let lost = lossy.offer.segments.remove(1).segment;
    let (outcome, fetched) = back_up(&lossy, &backup).unwrap();
    assert_eq!((fetched, outcome.kept, outcome.faults), (0, vec![lost], vec![]));
}

#[test]
fn a_cut_of_a_run_at_any_operation_leaves_a_backup() {
    let (disk, clock, mut journal) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let old = Robot::of(&session);
    remember(&session, &mut journal, &["new", "newer"]);
    let new = Robot::of(&session).compacted(3);
    drop(session);
    let held = CutDisk::new();
    back_up(&old, &held).unwrap();
    // The first run ever, and one that fetches and removes.
    for (robot, start) in [(&old, CutDisk::new()), (&new, held)] {
        let least = verify(&start, &mut |_| {}).unwrap().judgement.last_seq;
        let mut is_whole = false;
        for cut in 0.. {
            let backup = start.survivors(ONLY_SYNCED);
            backup.cut_at(cut);
            is_whole |= back_up(robot, &backup).is_ok();
            for seed in [ONLY_SYNCED, EVERYTHING, cut + 2] {
                let what = format!("cut at {cut}, survivors {seed}");
                let card = backup.survivors(seed);
                let verified = verify(&card, &mut |_| {}).unwrap();
                assert_eq!(verified.faults, [], "{what}");
                let reached = verified.judgement.last_seq;
                assert!((least..=robot.offer.last_seq()).contains(&reached), "{what}");
                let (outcome, _) = back_up(robot, &card).unwrap_or_else(|w| panic!("{what}: {w}"));
                assert_eq!(outcome.faults, [], "{what}");
                let count = robot.offer.segments.len() as u64;
                assert_eq!((outcome.segments, outcome.last_seq), (count, robot.offer.last_seq()));
                let files: Vec<String> = card.paths();
                let segments = files.iter().filter(|path| path.starts_with("segments/"));
                assert_eq!(segments.count() as u64, 2 * count, "{what}: {files:?}");
            }
            if is_whole {
                assert!(cut > 20, "every operation was cut: {cut}");
                break;
            }
        }
    }
}

#[test]
fn a_damaged_backup_is_named_refused_and_mended_by_the_next_run() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let robot = Robot::of(&session);
    let backup = CutDisk::new();
    back_up(&robot, &backup).unwrap();
    let (second, third) = (segment::path(robot.number(1)), segment::path(robot.number(2)));
    let last = robot.offer.segments.last().unwrap().segment;
    let refuse = |card: &CutDisk, named: &str| {
        let dir = tempfile::tempdir().unwrap();
        let into = RealDisk::new(dir.path());
        match restore(card, &into, false, &mut |_| {}) {
            Err(RestoreError::Unsound(faults)) => {
                let named_too = faults.iter().any(|fault| fault.file == named);
                assert!(named_too, "{named} is not among {faults:?}");
            }
            other => panic!("{named}: {other:?}"),
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was written");
        let (outcome, fetched) = back_up(&robot, card).unwrap();
        assert_eq!(outcome.faults, [], "{named} is mended");
        assert!(fetched > 0);
        restored(card, &clock);
    };
    let card = || backup.survivors(EVERYTHING);

    for at in [0usize, 100, 700] {
        let tampered = card();
        tampered.rot(&second, |bytes| bytes[at] ^= 1);
        refuse(&tampered, &second);
    }
    let unsigned = card();
    unsigned.remove(&segment::signature_path(robot.number(1))).unwrap();
    refuse(&unsigned, &second);

    let swapped = card();
    for path in [segment::path, segment::signature_path] {
        let (a, b) = (path(robot.number(1)), path(robot.number(2)));
        let (x, y) = (swapped.bytes(&a), swapped.bytes(&b));
        disk::replace(&swapped, &a, &y).unwrap();
        disk::replace(&swapped, &b, &x).unwrap();
    }
    refuse(&swapped, &third);

    for (number, named) in [(robot.number(0), &second), (robot.number(1), &third)] {
        let removed = card();
        removed.remove(&segment::path(number)).unwrap();
        removed.remove(&segment::signature_path(number)).unwrap();
        refuse(&removed, named);
    }
    let shortened = card();
    shortened.remove(&segment::path(last)).unwrap();
    shortened.remove(&segment::signature_path(last)).unwrap();
    refuse(&shortened, "backup.json");
}

#[test]
fn what_can_be_had_of_a_damaged_backup_is_restored_on_purpose() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let backup = CutDisk::new();
    back_up(&Robot::of(&session), &backup).unwrap();
    let path = segment::path(Robot::of(&session).number(1));
    let layout = segment::layout(&backup.bytes(&path)).unwrap();
    let range = layout.entries[0].1.clone();
    let lost = decode(&backup.bytes(&path)[range.clone()]).reference();
    backup.rot(&path, |bytes| bytes[range.start + 8] ^= 1);
    let dir = tempfile::tempdir().unwrap();
    let into = RealDisk::new(dir.path());
    let done = restore(&backup, &into, true, &mut |_| {}).unwrap();
    assert_eq!(done.faults.len(), 1, "{:?}", done.faults);
    let other = Session::open_with(Arc::new(into), &clock, settings(), None).unwrap();
    // The damaged memory, and its name that is missed: both of one file.
    let damage = other.damage();
    assert!(!damage.is_empty() && damage.iter().all(|one| one.file == path), "{damage:?}");
    let (before, after) = (everything(&session).0, everything(&other).0);
    let gone = before.keys().filter(|target| !after.contains_key(target));
    assert!(gone.clone().all(|target| *target == lost), "{:?}", gone.collect::<Vec<_>>());
    drop(other);

    let error = restore(&backup, &RealDisk::new(dir.path()), true, &mut |_| {}).unwrap_err();
    assert!(matches!(error, RestoreError::NotFresh { .. }), "{error}");
}

#[test]
fn a_signature_that_cannot_be_read_holds_up_nothing_that_is_restored_on_purpose() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let backup = CutDisk::new();
    back_up(&Robot::of(&session), &backup).unwrap();
    backup.make_unreadable(&segment::signature_path(Robot::of(&session).number(1)));
    let dir = tempfile::tempdir().unwrap();
    let into = RealDisk::new(dir.path());
    let error = restore(&backup, &into, false, &mut |_| {}).unwrap_err();
    assert!(matches!(error, RestoreError::Unsound(_)), "{error}");
    let done = restore(&backup, &into, true, &mut |_| {}).unwrap();
    assert_eq!(done.faults.len(), 1, "{:?}", done.faults);
    let other = Session::open_with(Arc::new(into), &clock, settings(), None).unwrap();
    assert_eq!(everything(&other).0, everything(&session).0);
}

#[test]
fn a_restore_that_was_cut_short_is_begun_again() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let backup = CutDisk::new();
    back_up(&Robot::of(&session), &backup).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let into = RealDisk::new(dir.path());
    into.create_dir("segments.restoring").unwrap();
    disk::replace(&into, "segments.restoring/0000000099.omirb", b"half").unwrap();
    restore(&backup, &into, false, &mut |_| {}).unwrap();
    let other = Session::open_with(Arc::new(into), &clock, settings(), None).unwrap();
    same(&other, &session);
}

#[test]
fn another_key_and_another_history_are_refused() {
    let (disk, clock, mut journal) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let robot = Robot::of(&session);
    let backup = CutDisk::new();
    back_up(&robot, &backup).unwrap();

    // The robot goes on with a new key.
    let stranger = DeviceKey::from_secret([8; 32]);
    let mut changed = robot.clone();
    changed.offer.public_key = stranger.public_hex();
    let error = run(&changed, &backup, false).unwrap_err();
    assert!(matches!(&error, BackupError::ForeignKey { keys } if *keys == [stranger.public_hex()]));
    let card = backup.survivors(EVERYTHING);
    assert_eq!(run(&changed, &card, true).unwrap().0.faults, []);
    assert_eq!(run(&changed, &card, false).unwrap().1, 0, "it is known from now on");

    // A new card under the same key: nothing of the old history may be overwritten.
    let (new, new_clock) = (CutDisk::new(), TestClock::new());
    new_clock.advance(Duration::from_secs(5));
    let new_card = Session::open(&new, &new_clock).unwrap();
    let files: Vec<Vec<u8>> = backup.paths().iter().map(|path| backup.bytes(path)).collect();
    remember(&new_card, &mut Journal::default(), &["first"]);
    let error = run(&Robot::of(&new_card), &backup, false).unwrap_err();
    assert!(matches!(error, BackupError::OtherHistory { segment: 1 }), "{error}");
    let after: Vec<Vec<u8>> = backup.paths().iter().map(|path| backup.bytes(path)).collect();
    assert_eq!(files, after);

    // A folder that is something else.
    remember(&session, &mut journal, &["new"]);
    let error = run(&robot, &disk, false).unwrap_err();
    assert!(matches!(error, BackupError::NotABackup(_)), "{error}");
    let photos = CutDisk::new();
    disk::replace(&photos, "photo.jpg", b"x").unwrap();
    let error = run(&robot, &photos, false).unwrap_err();
    assert!(matches!(error, BackupError::NotABackup(_)), "{error}");
}

#[test]
fn what_is_damaged_on_the_robot_is_kept_as_it_came_and_never_over_something_better() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let robot = Robot::of(&session);
    let mut damaged = robot.clone();
    let number = robot.number(1);
    damaged.bytes.get_mut(&number).unwrap()[50] ^= 1;

    let backup = CutDisk::new();
    let (outcome, _) = back_up(&damaged, &backup).unwrap();
    assert_eq!(outcome.faults.len(), 1);
    assert_eq!(outcome.faults[0].file, segment::path(number));
    assert_eq!(backup.bytes(&segment::path(number)), damaged.bytes[&number]);
    let mut folder = Folder::open(Arc::new(backup.clone()), &mut |_| {}).unwrap();
    folder.trust(&robot.offer, false).unwrap();
    let lacking = folder.lacking(&damaged.offer).unwrap();
    assert_eq!(lacking.len(), 1, "it is asked for again");
    let offered = lacking[0].clone();
    let mut fetch = |at, len| Ok::<_, std::convert::Infallible>(damaged.piece(number, at, len));
    assert!(matches!(folder.take(&offered, &mut fetch), Ok(FetchOutcome::Damaged(_))));
    let (outcome, _) = back_up(&robot, &backup).unwrap();
    assert_eq!(outcome.faults, [], "the robot's card recovered");
    let (outcome, fetched) = back_up(&damaged, &backup).unwrap();
    assert_eq!((fetched, outcome.faults), (0, vec![]), "the good one stays");
}

#[test]
fn a_piece_is_bounded_and_what_is_gone_is_not_found() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let offered = Robot::of(&session).offer.segments[0].clone();
    let refused = |segment, offset, length| {
        let error = session.segment_piece(segment, offset, length).unwrap_err();
        (error.code, error.path)
    };
    assert_eq!(refused(99, 0, 1), (Code::NotFound, "/segment".to_owned()));
    assert_eq!(refused(u64::MAX, 0, 1), (Code::NotFound, "/segment".to_owned()));
    let (number, beyond) = (offered.segment, offered.bytes + 1);
    assert_eq!(refused(number, beyond, 1), (Code::InvalidQuery, "/offset".to_owned()));
    assert_eq!(refused(number, 0, MAX_PIECE + 1), (Code::InvalidQuery, "/length".to_owned()));
    assert_eq!(session.segment_piece(number, offered.bytes, 10).unwrap(), b"");
}

#[test]
fn what_cannot_be_sealed_is_no_reason_to_back_up_nothing() {
    let (disk, clock, mut journal) = lived();
    // With a reserve it would be sealed all the same.
    let flash = FlashSettings { reserve_bytes: 0, ..FlashSettings::default() };
    let without = Settings { flash, ..settings() };
    let session = Session::open_with(Arc::new(disk.clone()), &clock, without, None).unwrap();
    let sealed = Robot::of(&session).offer.segments.len();
    remember(&session, &mut journal, &["new"]);
    disk.set_capacity(Some(disk.used()));
    let offer = session.offer_backup("r1").unwrap();
    assert_eq!(offer.segments.len(), sealed);
    assert!(offer.unsealed.is_some());
    disk.set_capacity(None);
    drop(session);

    let step = [Step::Ask(Request::Remember(vec![life::entity("newer", "x")]))];
    let session = Session::open(&disk, &clock).unwrap();
    assert_eq!(session.offer_backup("r1").unwrap().unsealed, None);
    drop(session);
    // A daemon that lost its power with something in its log, and comes up read-only.
    let operations = disk.operations();
    assert_eq!(journal.live(&disk, &clock, &step[..0]), Ended::Whole);
    assert!(disk.operations() > operations);
    let session = Session::open(&disk, &clock).unwrap();
    remember(&session, &mut journal, &["newer"]);
    disk.cut();
    drop(session);
    let card = disk.survivors(ONLY_SYNCED);
    let read_only = omird::engine::Settings { read_only: true, ..settings() };
    let session = Session::open_with(Arc::new(card), &clock, read_only, None).unwrap();
    let offer = session.offer_backup("r1").unwrap();
    assert!(offer.unsealed.unwrap().contains("read-only"));
}

/// A folder that is written to until a process is killed.
struct Killed {
    folder: RealDisk,
    /// Operations left.
    left: Arc<AtomicU64>,
}

struct KilledFile {
    file: Arc<dyn DiskFile>,
    left: Arc<AtomicU64>,
}

fn live_on(left: &AtomicU64) -> io::Result<()> {
    let take = |left: u64| left.checked_sub(1);
    match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
        Ok(_) => Ok(()),
        Err(_) => Err(io::Error::other("killed")),
    }
}

impl Disk for Killed {
    pass_on!(folder: list);

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        live_on(&self.left)?;
        self.folder.create_dir(dir)
    }
    fn open(&self, path: &str, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        if mode != Mode::Read {
            live_on(&self.left)?;
        }
        let file = self.folder.open(path, mode)?;
        Ok(Arc::new(KilledFile { file, left: self.left.clone() }))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        live_on(&self.left)?;
        self.folder.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        live_on(&self.left)?;
        self.folder.remove(path)
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        live_on(&self.left)?;
        self.folder.sync_dir(dir)
    }
}

impl DiskFile for KilledFile {
    pass_on!(file: len read_at has_name);

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        live_on(&self.left)?;
        self.file.write_at(buf, offset)
    }
    fn sync(&self) -> io::Result<()> {
        live_on(&self.left)?;
        self.file.sync()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        live_on(&self.left)?;
        self.file.truncate(len)
    }
}

#[test]
fn a_restore_killed_at_any_operation_is_whole_or_no_store_at_all() {
    let (disk, clock, _) = lived();
    let session = Session::open(&disk, &clock).unwrap();
    let backup = CutDisk::new();
    back_up(&Robot::of(&session), &backup).unwrap();
    let (mut refused, mut whole) = (0, 0);
    for operations in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let left = Arc::new(AtomicU64::new(operations));
        let into = Killed { folder: RealDisk::new(dir.path()), left };
        let done = restore(&backup, &into, false, &mut |_| {});
        let folder = || Arc::new(RealDisk::new(dir.path()));
        let is_empty = folder().list("").unwrap().is_empty();
        match Session::open_with(folder(), &clock, settings(), None) {
            Ok(opened) if !is_empty => {
                whole += 1;
                same(&opened, &session);
            }
            // Nothing was begun: any empty folder opens.
            Ok(_) => {}
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("omir restore"), "{error}");
                restore(&backup, &*folder(), false, &mut |_| {}).unwrap();
                same(&Session::open_with(folder(), &clock, settings(), None).unwrap(), &session);
            }
        }
        if done.is_ok() {
            break;
        }
    }
    assert!(refused > 5 && whole > 0, "refused {refused} times, whole {whole} times");
}
