//! The kept index is lost, torn, scrambled, stale or in the way. Whatever happened to it, every
//! recall gives the same hits with the same scores in the same order.
//!
//! Invariant 4 of ARCHITECTURE.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use omir_core::space::Center;
use omird::disk::Folder;
use omird::engine::Engine;
use omird::index::catalog::Catalog;
use omird::recall::Query;
use omird::store::cache::Cache;
use omird::store::segment;
use omird_tests::journal::Journal;
use omird_tests::life::{self, Step};
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

/// One hit, to the last bit.
type Hit = (Vec<u8>, u64, u64, Option<u64>, String);

fn open(data: &Path, clock: &Arc<TestClock>) -> Session {
    let disk = Arc::new(Folder::new(data));
    Session::open_with(disk, clock, settings(), Some(data.join("index"))).expect("it opens")
}

/// What a store answers.
fn answers(engine: &Engine) -> Vec<(u64, Vec<Hit>)> {
    let base = || Query { touch: false, ..Query::default() };
    let near = Center::Space { x: 1.0, y: -1.0, z: 0.5 };
    let queries = [
        Query { limit: Some(1000), ..base() },
        Query { limit: Some(1000), include_forgotten: true, ..base() },
        Query { text: Some("kettle window".to_owned()), ..base() },
        Query { text: Some("corridor".to_owned()), offset: 3, limit: Some(4), ..base() },
        Query { near: Some(near), radius: Some(4.0), limit: Some(100), ..base() },
        Query { near: Some(near), text: Some("ladder charger".to_owned()), ..base() },
        Query { entities: vec![life::reference("Entity/e1")], ..base() },
        Query { as_of: Some(engine.now().0), min_importance: Some(0.3), ..base() },
    ];
    let answer = |query: &Query| {
        let recalled = engine.recall(query).expect("a recall is answered");
        let hits = recalled.hits.into_iter().map(|hit| {
            let distance = hit.distance.map(f64::to_bits);
            let (score, fresh) = (hit.score.to_bits(), hit.retrievability.to_bits());
            (hit.resource, score, fresh, distance, hit.reason)
        });
        (recalled.total, hits.collect())
    };
    queries.iter().map(answer).collect()
}

/// A store on disk that was stopped cleanly, and its answers.
struct Stored {
    data: tempfile::TempDir,
    clock: Arc<TestClock>,
    answers: Vec<(u64, Vec<Hit>)>,
}

fn stored(seed: u64) -> Stored {
    let (data, clock) = (tempfile::tempdir().expect("a folder"), TestClock::new());
    let mut journal = Journal::default();
    let mut session = open(data.path(), &clock);
    for step in life::random(seed, 90) {
        clock.advance(Duration::from_secs(60));
        match step {
            Step::Ask(request) => {
                journal.request(&session, &request).expect("the disk is good");
            }
            Step::Recall(words) => {
                let text = Some(words);
                session.recall(&Query { text, ..Query::default() }).expect("it is answered");
            }
            Step::Compact(scope) => {
                session.compact(scope).expect("the disk is good");
            }
            Step::Sweep(hours) => {
                clock.advance(Duration::from_secs(3600 * u64::from(hours)));
                session.sweep(false).expect("the disk is good");
            }
            Step::Restart => {
                drop(session);
                session = open(data.path(), &clock);
            }
        }
    }
    drop(session);
    let session = open(data.path(), &clock);
    assert_eq!(session.rebuilt(), 0, "a kept index is used");
    let answers = answers(&session);
    let useful = answers.iter().filter(|(total, _)| *total > 0).count();
    assert!(useful >= 6, "most recalls find something: {useful}");
    drop(session);
    Stored { data, clock, answers }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        match entry.path().is_dir() {
            true => files.extend(files_in(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files.sort();
    files
}

impl Stored {
    /// Opens a copy whose index `spoil` has changed; gives how many blocks were made anew.
    fn with_index(&self, what: &str, spoil: impl FnOnce(&Path)) -> u64 {
        let folder = tempfile::tempdir().expect("a folder");
        copy(self.data.path(), folder.path());
        spoil(&folder.path().join("index"));
        let session = open(folder.path(), &self.clock);
        assert!(session.damage().is_empty(), "{what}: an index is no memory");
        assert_eq!(answers(&session), self.answers, "{what}");
        let rebuilt = session.rebuilt();
        drop(session);
        let session = open(folder.path(), &self.clock);
        assert_eq!(answers(&session), self.answers, "{what}: at the next start");
        rebuilt
    }
}

#[test]
fn an_index_that_is_gone_or_in_the_way_is_made_anew() {
    let stored = stored(1);
    let segments = fs::read_dir(stored.data.path().join("segments")).expect("segments").count() / 3;
    assert!(segments > 3, "{segments} segments");
    let remove = |index: &Path| fs::remove_dir_all(index).expect("it goes");
    assert_eq!(stored.with_index("untouched", |_| ()), 0);
    assert_eq!(stored.with_index("deleted", remove), segments as u64);
    let rebuilt = stored.with_index("a file instead", |index| {
        remove(index);
        fs::write(index, "not a folder").expect("a file");
    });
    assert_eq!(rebuilt, segments as u64);
    stored.with_index("an empty folder", |index| {
        remove(index);
        fs::create_dir(index).expect("a folder");
    });
    stored.with_index("a dangling link", |index| {
        remove(index);
        std::os::unix::fs::symlink("nowhere", index).expect("a link");
    });
    for file in 0..files_in(&stored.data.path().join("index")).len() {
        stored.with_index(&format!("file {file} deleted"), |index| {
            fs::remove_file(&files_in(index)[file]).expect("it goes");
        });
        stored.with_index(&format!("file {file} emptied"), |index| {
            fs::write(&files_in(index)[file], "").expect("it is written");
        });
        stored.with_index(&format!("file {file} replaced by a folder"), |index| {
            let file = files_in(index).swap_remove(file);
            fs::remove_file(&file).expect("it goes");
            fs::create_dir(file).expect("a folder");
        });
    }
}

#[test]
fn an_index_of_another_version_or_another_store_is_made_anew() {
    let (stored, other) = (stored(1), stored(2));
    let segments = |index: &Path| {
        let data = index.parent().expect("it lies in the data folder").to_owned();
        (1..).map_while(move |number| fs::read(data.join(segment::path(number))).ok())
    };
    let rebuilt = stored.with_index("another version", |index| {
        let mut cache = Cache::open(index);
        for (number, bytes) in (1..).zip(segments(index)) {
            let mut block = segment::index::<Catalog>(&bytes).expect("a good segment");
            block.format += 1;
            block.rows.clear();
            cache.put::<Catalog>(number, bytes.len() as u64, &block);
        }
    });
    assert!(rebuilt > 3);
    let rebuilt = stored.with_index("another store", |index| {
        fs::remove_dir_all(index).expect("it goes");
        copy(&other.data.path().join("index"), index);
    });
    assert!(rebuilt > 3);
    let rebuilt = stored.with_index("numbers shifted", |index| {
        let mut cache = Cache::open(index);
        for (number, bytes) in (2..).zip(segments(index)) {
            let block = segment::index::<Catalog>(&bytes).expect("a good segment");
            cache.put::<Catalog>(number, bytes.len() as u64, &block);
        }
    });
    assert!(rebuilt > 3);
}

/// `OMIRD_SEED` repeats one.
#[test]
fn a_scrambled_index_is_made_anew_or_never_missed() {
    let stored = stored(3);
    let files = files_in(&stored.data.path().join("index")).len();
    for seed in seeds("OMIRD_SEED", 0..36) {
        stored.with_index(&format!("OMIRD_SEED={seed}"), |index| {
            let mut random = Random::new(seed);
            let path = files_in(index).swap_remove(seed as usize % files);
            let mut bytes = fs::read(&path).expect("it is read");
            let len = bytes.len().max(1);
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(len, |last| last + 1);
            match seed as usize / files % 5 {
                0 => bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8),
                1 => bytes.truncate(random.below(used)),
                2 => {
                    for _ in 0..1 + random.below(40) {
                        let at = random.below(used);
                        if let Some(byte) = bytes.get_mut(at) {
                            *byte ^= 1 << random.below(8);
                        }
                    }
                }
                3 => {
                    let from = random.below(used);
                    let to = (from + 1 + random.below(4096)).min(bytes.len());
                    if from < to {
                        bytes[from..to].iter_mut().for_each(|byte| *byte = random.bits() as u8);
                    }
                }
                _ => bytes.extend((0..1 + random.below(5000)).map(|_| random.bits() as u8)),
            }
            fs::write(&path, bytes).expect("it is written");
        });
    }
}
