//! The kept index is lost, torn, scrambled, stale or in the way. Whatever happened to it, every
//! recall gives the same hits with the same scores in the same order.
//!
//! Invariant 4 of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use omir_core::model::Resource;
use omir_core::space::Center;
use omird::disk::Folder;
use omird::engine::testing::{ByHand, Catalog};
use omird::engine::{Clock, Engine, Events, Query};
use omird::store::format::segment;
use omird::store::{
    Cache, Derived, DerivedEntry, DerivedRefused, IndexExtractor, IndexKind, RefKey, Row, SledStore,
};
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

/// Answers of a store.
fn answers(engine: &Engine) -> Vec<(u64, Vec<Hit>)> {
    let base = || Query { touch: false, ..Query::default() };
    let near = Center::Space { x: 1.0, y: -1.0, z: 0.5 };
    let queries = [
        Query { limit: Some(1000), ..base() },
        Query { limit: Some(1000), include_forgotten: true, ..base() },
        Query { text: Some("kettle window".into()), ..base() },
        Query { text: Some("corridor".into()), offset: 3, limit: Some(4), ..base() },
        Query { near: Some(near), radius: Some(4.0), limit: Some(100), ..base() },
        Query { near: Some(near), text: Some("ladder charger".into()), ..base() },
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

fn take_step(
    session: &mut Session,
    journal: &mut Journal,
    step: Step,
    data: &Path,
    clock: &Arc<TestClock>,
) {
    match step {
        Step::Ask(request) => journal.request(session, &request).expect("the disk is good"),
        Step::Recall(words) => {
            let text = Some(words.into());
            session.recall(&Query { text, ..Query::default() }).expect("it is answered");
        }
        Step::Compact(scope) => drop(session.compact(scope).expect("the disk is good")),
        Step::Sweep(hours) => {
            clock.advance(Duration::from_secs(3600 * u64::from(hours)));
            session.sweep(false).expect("the disk is good");
        }
        Step::Restart => {
            // One at a time has the folder.
            session.stop();
            *session = open(data, clock);
        }
    }
}

fn stored(seed: u64) -> Stored {
    let (data, clock) = (tempfile::tempdir().expect("a folder"), TestClock::new());
    let mut journal = Journal::default();
    let mut session = open(data.path(), &clock);
    for step in life::random(seed, 90) {
        clock.advance(Duration::from_secs(60));
        take_step(&mut session, &mut journal, step, data.path(), &clock);
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
    /// Opens a copy whose index `spoil` has changed; gives how many blocks were rebuilt.
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
fn an_index_that_is_gone_or_in_the_way_is_made_again() {
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

/// The catalog of another release, which keeps the kind with this tag in another way.
struct Newer<const TAG: u8>;

impl<const TAG: u8> IndexExtractor for Newer<TAG> {
    type Facts = <Catalog as IndexExtractor>::Facts;
    type Places = <Catalog as IndexExtractor>::Places;
    type Times = <Catalog as IndexExtractor>::Times;
    type Terms = <Catalog as IndexExtractor>::Terms;
    type Words = <Catalog as IndexExtractor>::Words;
    type Gathering = <Catalog as IndexExtractor>::Gathering;

    fn format(kind: IndexKind) -> u32 {
        <Catalog as IndexExtractor>::format(kind) + u32::from(kind.tag() == TAG)
    }
    fn facts(resource: &Resource) -> Self::Facts {
        <Catalog as IndexExtractor>::facts(resource)
    }
    fn terms(resource: &Resource) -> Self::Terms {
        <Catalog as IndexExtractor>::terms(resource)
    }
    fn places(facts: &Self::Facts) -> &Self::Places {
        <Catalog as IndexExtractor>::places(facts)
    }
    fn times(facts: &Self::Facts) -> Self::Times {
        <Catalog as IndexExtractor>::times(facts)
    }
    fn join(facts: &mut Self::Facts, places: Self::Places, times: Self::Times) {
        <Catalog as IndexExtractor>::join(facts, places, times);
    }
    fn key(facts: &Self::Facts) -> RefKey {
        <Catalog as IndexExtractor>::key(facts)
    }
    fn gather(words: &mut Self::Gathering, terms: &Self::Terms) {
        <Catalog as IndexExtractor>::gather(words, terms);
    }
    fn gathered(words: Self::Gathering) -> Self::Words {
        <Catalog as IndexExtractor>::gathered(words)
    }
    fn is_consistent(rows: &[Row<Self::Facts>], words: &Self::Words) -> bool {
        <Catalog as IndexExtractor>::is_consistent(rows, words)
    }
}

/// A store that notes the keys that are written.
struct Noting(Box<dyn Derived>, Arc<Mutex<Vec<Vec<u8>>>>);

impl Derived for Noting {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DerivedRefused> {
        self.0.get(key)
    }
    fn keys(&self) -> Result<Vec<Vec<u8>>, DerivedRefused> {
        self.0.keys()
    }
    fn write(&mut self, entries: &[DerivedEntry]) -> Result<(), DerivedRefused> {
        let mut noted = self.1.lock().expect("no panic");
        noted.extend(
            entries.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key.clone()),
        );
        drop(noted);
        self.0.write(entries)
    }
    fn clear(&mut self) -> std::io::Result<()> {
        self.0.clear()
    }
    fn size_on_disk(&self) -> u64 {
        self.0.size_on_disk()
    }
}

/// The bytes of the segments beside an index, by number.
fn segments(index: &Path) -> Vec<(u64, Vec<u8>)> {
    let data = index.parent().expect("it lies in the data folder");
    let names = fs::read_dir(data.join(segment::DIR)).expect("segments");
    let names = names.filter_map(|name| name.ok()?.file_name().into_string().ok());
    let numbers = names.filter_map(|name| segment::number_of(&name));
    numbers
        .map(|number| (number, fs::read(data.join(segment::path(number))).expect("it is read")))
        .collect()
}

/// Keeps these kinds of all segments as `D` keeps them; `number` says of which.
fn keep<D: IndexExtractor>(index: &Path, kinds: &[IndexKind], number: impl Fn(u64) -> u64) {
    let mut cache = Cache::new(SledStore::boxed(index));
    for (of, bytes) in segments(index) {
        let block = segment::index::<D>(&bytes).expect("a good segment");
        cache.put::<D>(number(of), bytes.len() as u64, &block, kinds);
    }
}

/// Counts segments read again at a start with what is kept there, and the tags of the keys that were written.
fn start(stored: &Stored, data: &Path) -> (u64, BTreeSet<u8>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    let index = Box::new(Noting(SledStore::boxed(&data.join("index")), written.clone()));
    let disk = Arc::new(Folder::new(data));
    let session =
        Session::open_keeping(disk, &stored.clock, settings(), Some(index), Events::default());
    let session = session.expect("it opens");
    let tags = written.lock().expect("no panic").iter().map(|key| key[0]).collect();
    assert_eq!(answers(&session), stored.answers);
    (session.rebuilt(), tags)
}

fn one_kind_of_another_version_is_rebuilt_alone<const TAG: u8>(stored: &Stored) {
    let folder = tempfile::tempdir().expect("a folder");
    copy(stored.data.path(), folder.path());
    let index = folder.path().join("index");
    let kind = IndexKind::ALL.into_iter().find(|kind| kind.tag() == TAG).expect("a kind");
    keep::<Newer<TAG>>(&index, &[kind], |number| number);
    let all = segments(&index).len() as u64;
    assert_eq!(start(stored, folder.path()), (all, BTreeSet::from([TAG, b'o'])), "{kind}");
    assert_eq!(start(stored, folder.path()), (0, BTreeSet::new()), "{kind}: only once");
}

#[test]
fn each_kind_of_another_version_is_rebuilt_alone() {
    let stored = stored(1);
    one_kind_of_another_version_is_rebuilt_alone::<b'r'>(&stored);
    one_kind_of_another_version_is_rebuilt_alone::<b'w'>(&stored);
    one_kind_of_another_version_is_rebuilt_alone::<b'p'>(&stored);
    one_kind_of_another_version_is_rebuilt_alone::<b't'>(&stored);
}

#[test]
fn an_index_of_another_store_or_another_segment_is_made_again() {
    let (stored, other) = (stored(1), stored(2));
    let rebuilt = stored.with_index("another store", |index| {
        fs::remove_dir_all(index).expect("it goes");
        copy(&other.data.path().join("index"), index);
    });
    assert!(rebuilt > 3);
    let shifted = |number| number + 1;
    let rebuilt = stored
        .with_index("numbers shifted", |index| keep::<Catalog>(index, &IndexKind::ALL, shifted));
    assert!(rebuilt > 3);
    for kind in IndexKind::ALL {
        let what = format!("numbers of the {kind} shifted");
        let rebuilt = stored.with_index(&what, |index| keep::<Catalog>(index, &[kind], shifted));
        assert!(rebuilt > 3, "{what}");
    }
}

/// A build that copied the index to purge it left this file while that was to do.
#[test]
fn an_index_that_may_hold_what_was_forgotten_is_thrown_away() {
    let stored = stored(1);
    let rebuilt = stored.with_index("unpurged", |index| {
        fs::write(index.join("unpurged"), "").expect("it is written");
    });
    assert!(rebuilt > 3);
}

/// The index as it was at some moment of a life, or between two, beside the files of another moment. `OMIRD_SEED`
/// repeats one.
#[test]
fn an_index_that_was_cut_while_it_was_written_is_never_missed() {
    for seed in seeds("OMIRD_SEED", 0..4) {
        let moments = moments(seed);
        let mut random = Random::new(seed);
        for _ in 0..6 {
            let (files, of) = (random.pick(&moments), random.pick(&moments));
            let folder = tempfile::tempdir().expect("a folder");
            copy(&files.folder.path().join("data"), folder.path());
            let index = folder.path().join("index");
            let _ = fs::remove_dir_all(&index);
            let before = random.pick(&moments);
            cut(
                &before.folder.path().join("index"),
                &of.folder.path().join("index"),
                &index,
                &mut random,
            );
            for start in ["a start", "the next start"] {
                let session = open(folder.path(), &files.clock);
                let what = format!("OMIRD_SEED={seed}, {start}");
                assert!(session.damage().is_empty(), "{what}: an index is no memory");
                assert_eq!(answers(&session), files.answers, "{what}");
            }
        }
    }
}

/// A moment of a life: the files, and the index as it was copied about then, while it may have been written.
struct Moment {
    folder: tempfile::TempDir,
    clock: Arc<TestClock>,
    answers: Vec<(u64, Vec<Hit>)>,
}

/// Moments of a life on a folder. A thread copies the index all the while, at no moment in particular.
fn moments(seed: u64) -> Vec<Moment> {
    let (data, clock) = (tempfile::tempdir().expect("a folder"), TestClock::new());
    let copies = Arc::new(Mutex::new(None));
    let is_over = Arc::new(AtomicBool::default());
    let copying = {
        let (index, copies, is_over) = (data.path().join("index"), copies.clone(), is_over.clone());
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Acquire) {
                let folder = tempfile::tempdir().expect("a folder");
                copy_what_is_there(&index, &folder.path().join("index"));
                *copies.lock().expect("no panic") = Some(folder);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    };
    let mut moments = Vec::new();
    let mut journal = Journal::default();
    let mut session = open(data.path(), &clock);
    for (n, step) in life::random(seed, 70).into_iter().enumerate() {
        clock.advance(Duration::from_secs(60));
        take_step(&mut session, &mut journal, step, data.path(), &clock);
        if n % 8 == 7 {
            // Stopped, so that the answers are those of the files.
            drop(session);
            session = open(data.path(), &clock);
            let answers = answers(&session);
            drop(session);
            let taken = copies.lock().expect("no panic").take();
            let folder = taken.unwrap_or_else(|| tempfile::tempdir().expect("a folder"));
            copy(data.path(), &folder.path().join("data"));
            let at = TestClock::new();
            at.set(clock.now().as_micros(), true);
            moments.push(Moment { folder, clock: at, answers });
            session = open(data.path(), &clock);
        }
    }
    is_over.store(true, Ordering::Release);
    copying.join().expect("no panic");
    moments
}

/// Copies a folder that changes meanwhile.
fn copy_what_is_there(from: &Path, to: &Path) {
    let _ = fs::create_dir_all(to);
    for entry in fs::read_dir(from).into_iter().flatten().filter_map(Result::ok) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_what_is_there(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target)),
        }
    }
}

/// Contents that a cut leaves of an index: of each page what was there before, or after; and some files, or not.
fn cut(before: &Path, after: &Path, to: &Path, random: &mut Random) {
    const PAGE: usize = 4096;
    copy_what_is_there(after, to);
    let how = random.below(4);
    for path in files_in(to) {
        let name = path.strip_prefix(to).expect("it lies there");
        let old = fs::read(before.join(name)).unwrap_or_default();
        let mut bytes = fs::read(&path).expect("it is read");
        for (n, page) in bytes.chunks_mut(PAGE).enumerate() {
            let is_lost = match how {
                0 => false,
                1 => random.chance(50),
                2 => random.chance(10),
                _ => random.chance(90),
            };
            for (at, byte) in page.iter_mut().enumerate().filter(|_| is_lost) {
                *byte = old.get(n * PAGE + at).copied().unwrap_or(0);
            }
        }
        if random.chance(15) {
            bytes.truncate(random.below(bytes.len() + 1));
        }
        match random.chance(5) {
            true => fs::remove_file(&path).expect("it goes"),
            false => fs::write(&path, bytes).expect("it is written"),
        }
    }
}

/// `OMIRD_SEED` repeats one.
#[test]
fn a_scrambled_index_is_made_again_or_never_missed() {
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
