//! Compaction drops what it may and nothing else: questions about the past are answered as before
//! for as long as history is kept, never wrongly after that; and of what was forgotten nothing is
//! left on the card, whenever the power goes.
//!
//! Invariant 3 of ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use omir_core::model::Resource;
use omir_core::reference::{Ref, ResourceType};
use omird::disk::{Disk, Folder};
use omird::engine::testing::ByHand;
use omird::engine::{Code, CompactionScope, Query, Settings};
use omird::store::pass_on;
use omird_tests::check::{self, decode, reopen};
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::journal::{Ended, Journal, change};
use omird_tests::life::{self, Step, entity, record, reference};
use omird_tests::model::{Answer, Model, Request, comparable};
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

/// Time for which these stores keep history: a few steps of a life.
const HISTORY: Duration = Duration::from_secs(12);

fn open(disk: &CutDisk, clock: &Arc<TestClock>, history: Duration) -> Session {
    let settings = Settings { keep_history: history, ..settings() };
    Session::open_with(Arc::new(disk.clone()), clock, settings, None).expect("it opens")
}

/// Memories that a store says were known at a moment.
fn as_of(session: &Session, at: i64) -> BTreeMap<Ref, Resource> {
    let as_of = Some(omir_core::instant::Timestamp::from_micros(at));
    let query =
        Query { as_of, limit: None, touch: false, include_intentions: true, ..Query::default() };
    let recalled = session.recall(&query).expect("it is answered");
    assert_eq!(recalled.hits.len() as u64, recalled.total, "every hit can be read");
    let resources = recalled.hits.iter().map(|hit| decode(&hit.resource));
    resources.map(|resource| (resource.reference(), resource)).collect()
}

/// Compares what a store says of past moments with what was so. `horizon` is when the history that
/// must be kept begins.
fn past_holds(session: &Session, past: &[(i64, Model)], now: &Model, horizon: i64, context: &str) {
    for (at, then) in past {
        let found = as_of(session, *at);
        for (target, memory, resource) in then.live() {
            let latest = &now.memories[target];
            // A later tombstone takes all versions before it along.
            let was_forgotten = latest.lives > memory.lives;
            let said = |resource: &Resource| {
                let mut resource = comparable(resource, &memory.loose);
                resource.retain_references(|_| false);
                if let Resource::MemoryRecord(record) = &mut resource {
                    record.version = None;
                }
                resource
            };
            match found.get(target) {
                Some(found) => {
                    assert_eq!(said(found), said(resource), "{context}: {target} at {at}")
                }
                // Both ends of an edge are part of what it says.
                None if was_forgotten || *at < horizon => {}
                None if resource.resource_type() == ResourceType::Relationship => {}
                None => panic!("{context}: {target} was there at {at} and is not"),
            }
        }
        for target in found.keys() {
            assert!(then.is_live(target), "{context}: {target} was not there at {at}");
        }
    }
}

#[test]
fn the_past_is_as_it_was_while_history_is_kept_and_never_another() {
    for seed in seeds("OMIRD_SEED", 0..24) {
        let mut random = Random::new(seed);
        let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
        let mut past: Vec<(i64, Model)> = Vec::new();
        let mut session = open(&disk, &clock, HISTORY);
        let context = format!("OMIRD_SEED={seed}");
        // Sealing drops by the same rule as compaction, in a thread of its own, at any step.
        let kept_from = |session: &Session| {
            let (now, _) = session.now();
            now.as_micros() - HISTORY.as_micros() as i64
        };
        for (number, step) in life::random(seed, 100).into_iter().enumerate() {
            clock.advance(Duration::from_secs(1));
            match step {
                Step::Ask(request) => {
                    // Versions begin again once a tombstone is dropped, so only that is compared.
                    let expected = journal.acknowledged.apply(&request);
                    let result = change(&session, &request).and_then(|c| session.execute(c));
                    let is_refused = matches!(expected, Answer::Refused(_));
                    assert_eq!(result.is_err(), is_refused, "OMIRD_SEED={seed}: {result:?}");
                }
                Step::Restart => {
                    drop(session);
                    session = open(&disk, &clock, HISTORY);
                }
                Step::Compact(_) | Step::Recall(_) if random.chance(70) => {
                    let scope = *random.pick(&CompactionScope::ALL);
                    session.compact(scope).expect("a good disk");
                }
                Step::Sweep(_) => drop(session.sweep(false).expect("a good disk")),
                Step::Compact(_) | Step::Recall(_) => {}
            }
            let (now, _) = session.now();
            past.push((now.as_micros(), journal.acknowledged.clone()));
            if number % 10 == 9 {
                let horizon = kept_from(&session);
                let context = format!("{context}, step {number}");
                past_holds(&session, &past, &journal.acknowledged, horizon, &context);
            }
        }
        drop(session);
        let session = open(&disk, &clock, HISTORY);
        assert!(session.damage().is_empty(), "{context}: {:?}", session.damage());
        let horizon = kept_from(&session);
        let reopened = format!("{context}, reopened");
        past_holds(&session, &past, &journal.acknowledged, horizon, &reopened);
        drop(session);
        check::segments(&disk).unwrap_or_else(|why| panic!("{context}: {why}"));
    }
}

#[test]
fn without_history_only_what_is_live_is_left() {
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    assert_eq!(journal.live(&disk, &clock, &life::scripted()), Ended::Whole);
    clock.advance(Duration::from_secs(60));
    let session = open(&disk, &clock, Duration::ZERO);
    let done = session.compact(CompactionScope::All).expect("a good disk");
    let live = journal.acknowledged.live().count() as u64;
    let count = |session: &Session, pointer: &str| {
        session.status("robot").pointer(pointer).and_then(omir_core::value::Value::as_u64)
    };
    assert_eq!(count(&session, "/counts/versions"), Some(live));
    assert_eq!(count(&session, "/disk/segments"), Some(done.segments_after));
    assert!(done.superseded > 0 && done.bytes_after < done.bytes_before);
    drop(session);
    let session = open(&disk, &clock, Duration::ZERO);
    assert_eq!(count(&session, "/counts/versions"), Some(live));
    let again = session.compact(CompactionScope::All).expect("a good disk");
    assert_eq!((again.superseded, again.forgotten), (0, 0));
}

/// A life in which something is remembered, mentioned, recalled, superseded and forgotten, each in
/// another segment.
fn secret_life() -> Vec<Step> {
    let one = |resource| Step::Ask(Request::Remember(vec![resource]));
    let filler = |n: usize| {
        one(record(&format!("filler-{n}"), &"along the corridor. ".repeat(60), &["hall"], None))
    };
    vec![
        one(entity("hall", "Hall")),
        one(entity("xyzzyname", "the plughword person")),
        one(record("xyzzyrecord", "a plughword said", &["xyzzyname"], Some([1.0, 1.0, 0.0]))),
        filler(0),
        filler(1),
        filler(2),
        Step::Recall("plughword".to_owned()),
        one(record("witness", "somebody said something", &["xyzzyname", "hall"], None)),
        one(life::edge("xyzzyedge", "xyzzyname", "hall", None)),
        filler(3),
        filler(4),
        filler(5),
        one(record("xyzzyrecord", "a plughword said twice", &["xyzzyname"], None)),
        // A segment of its own with a copy of it.
        one(record("bystander", "looked at somebody", &["xyzzyname"], None)),
        filler(6),
        filler(7),
        Step::Restart,
        Step::Ask(Request::Forget(reference("Entity/xyzzyname"))),
        Step::Ask(Request::Forget(reference("MemoryRecord/xyzzyrecord"))),
        filler(8),
    ]
}

const SECRETS: [&str; 2] = ["xyzzy", "plughword"];

fn secret_in(bytes: &[u8]) -> Option<&'static str> {
    SECRETS.into_iter().find(|secret| bytes.windows(secret.len()).any(|w| w == secret.as_bytes()))
}

#[test]
fn whenever_the_power_goes_the_forgotten_is_gone_after_a_compaction() {
    let mut steps = secret_life();
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    journal.live(&disk, &clock, &steps);
    let before = disk.operations();
    assert!(disk.paths().iter().any(|path| secret_in(&disk.bytes(path)).is_some()));
    steps.push(Step::Compact(CompactionScope::Forgotten));
    let mut hits = 0;
    // How many operations a life takes depends a little on what is sealed together.
    for cut in before - 40.. {
        let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
        disk.cut_at(cut);
        let ended = journal.live(&disk, &clock, &steps);
        for seed in [ONLY_SYNCED, EVERYTHING, cut + 2] {
            let card = disk.survivors(seed);
            let context = format!("cut at {cut}, survivors {seed}");
            let found =
                reopen(&card, &clock, &journal).unwrap_or_else(|why| panic!("{context}: {why}"));
            let session = Session::open(&card, &clock).expect("it opens");
            session.compact(CompactionScope::Forgotten).expect("a good disk");
            if found.is_live(&reference("Entity/xyzzyname")) {
                continue;
            }
            let query = Query {
                include_forgotten: true,
                text: Some("plughword".into()),
                ..Query::default()
            };
            let recalled = session.recall(&query).expect("it is answered");
            drop(session);
            let is_gone = !found.is_live(&reference("MemoryRecord/xyzzyrecord"));
            assert_eq!(recalled.total, u64::from(!is_gone), "{context}");
            for path in card.paths().iter().filter(|_| is_gone) {
                assert_eq!(secret_in(&card.bytes(path)), None, "{context}: {path}");
            }
            let journal = Journal { acknowledged: found, ..Journal::default() };
            reopen(&card, &clock, &journal).unwrap_or_else(|why| panic!("{context}, after: {why}"));
        }
        if ended == Ended::Whole {
            break;
        }
        hits += 1;
    }
    assert!(hits > 10, "the compaction was cut: {hits}");
}

/// All files of a folder, sled's among them.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"))
    {
        match entry.file_type().expect("a type").is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn no_file_of_the_data_folder_tells_of_what_was_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = folder.path().join("index");
    let clock = TestClock::new();
    let open = || {
        let disk: Arc<dyn Disk> = Arc::new(Folder::new(folder.path()));
        Session::open_with(disk, &clock, settings(), Some(index.clone())).expect("it opens")
    };
    let mut journal = Journal::default();
    let mut session = open();
    for step in secret_life() {
        clock.advance(Duration::from_secs(1));
        match step {
            Step::Ask(request) => journal.request(&session, &request).expect("a good disk"),
            Step::Restart => {
                drop(session);
                session = open();
            }
            Step::Recall(words) => {
                let query = Query { text: Some(words.into()), ..Query::default() };
                assert!(session.recall(&query).expect("it is answered").total > 0);
            }
            Step::Compact(scope) => drop(session.compact(scope).expect("a good disk")),
            Step::Sweep(_) => drop(session.sweep(false).expect("a good disk")),
        }
    }
    let tell_once = || -> std::io::Result<Vec<PathBuf>> {
        let mut telling = Vec::new();
        for path in files(folder.path()) {
            let name = path.to_string_lossy();
            if secret_in(&std::fs::read(&path)?).is_some() || secret_in(name.as_bytes()).is_some() {
                telling.push(path);
            }
        }
        Ok(telling)
    };
    // The index renames files of its own meanwhile: then all are looked at again.
    let tell = || (0..100).find_map(|_| tell_once().ok()).expect("files that stay");
    let told = tell();
    let is_in = |dir: &str| told.iter().any(|path| path.starts_with(folder.path().join(dir)));
    assert!(is_in("segments") && is_in("wal") && is_in("index"), "it is there before: {told:?}");
    let done = session.compact(CompactionScope::Forgotten).expect("a good disk");
    assert!(done.forgotten >= 3 && done.bytes_written > 0, "{done:?}");
    assert_eq!(tell(), Vec::<PathBuf>::new(), "while it runs");
    check::store(&session, &journal.acknowledged).unwrap_or_else(|why| panic!("{why}"));
    drop(session);
    assert_eq!(tell(), Vec::<PathBuf>::new(), "after a stop");
    let session = open();
    assert_eq!((session.rebuilt(), session.damage()), (0, &[][..]), "the index was kept");
    check::store(&session, &journal.acknowledged).unwrap_or_else(|why| panic!("{why}"));
    drop(session);
    assert_eq!(tell(), Vec::<PathBuf>::new(), "after a start");
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let to = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_all(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), &to).expect("a copy")),
        }
    }
}

/// A folder that is copied just before the first segment is removed: what `kill -9` leaves there.
struct Killed {
    folder: Folder,
    from: PathBuf,
    to: PathBuf,
}

impl Disk for Killed {
    pass_on!(folder: create_dir list open rename sync_dir);

    fn remove(&self, path: &str) -> io::Result<()> {
        if path.ends_with(".omirb") && !self.to.exists() {
            copy_all(&self.from, &self.to);
        }
        self.folder.remove(path)
    }
}

#[test]
fn a_kill_in_a_compaction_leaves_no_word_of_what_was_forgotten_in_the_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("data"), folder.path().join("killed"));
    std::fs::create_dir(&from).expect("a folder");
    let clock = TestClock::new();
    let open = |disk: Arc<dyn Disk>, data: &Path| {
        Session::open_with(disk, &clock, settings(), Some(data.join("index"))).expect("it opens")
    };
    let disk = Killed { folder: Folder::new(&from), from: from.clone(), to: to.clone() };
    let session = open(Arc::new(disk), &from);
    let mut journal = Journal::default();
    let secret = "mirabelle";
    for n in 0..4 {
        // No word before it begins alike: of those the index keeps the rest.
        let id = if n == 0 { secret.to_owned() } else { format!("x{n}") };
        let request =
            Request::Remember(vec![record(&id, &format!("{id} on the shelf"), &[], None)]);
        journal.request(&session, &request).expect("a good disk");
    }
    session.compact(CompactionScope::All).expect("a good disk");
    let forget = Request::Forget(reference(&format!("MemoryRecord/{secret}")));
    journal.request(&session, &forget).expect("a good disk");
    session.compact(CompactionScope::Forgotten).expect("a good disk");
    drop(session);

    let tell = || -> Vec<PathBuf> {
        let tells = |path: &PathBuf| {
            let bytes = std::fs::read(path).expect("a file");
            bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
        };
        files(&to).into_iter().filter(tells).collect()
    };
    let told = tell();
    let is_in = |dir: &str| told.iter().any(|path| path.starts_with(to.join(dir)));
    assert!(is_in("segments") && !is_in("index"), "the segments go last: {told:?}");
    let session = open(Arc::new(Folder::new(&to)), &to);
    session.compact(CompactionScope::Forgotten).expect("a good disk");
    assert_eq!(tell(), Vec::<PathBuf>::new());
    drop(session);
    assert_eq!(tell(), Vec::<PathBuf>::new(), "after a stop");
}

#[test]
fn a_read_only_store_is_not_compacted() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    drop(Session::open(&disk, &clock).expect("it opens"));
    let settings = Settings { read_only: true, ..settings() };
    let session = Session::open_with(Arc::new(disk), &clock, settings, None).expect("it opens");
    let refused = session.compact(CompactionScope::All).expect_err("it is refused");
    assert_eq!(refused.code, Code::Unauthorized);
}
