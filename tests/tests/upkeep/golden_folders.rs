//! Old robots keep their memory: a copy of every data folder that an earlier build wrote is opened, asked, written to,
//! and opened again. See `omird_tests::golden_folder`.
//!
//! Invariant 36 of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use omird::engine::testing::ByHand;
use omird::engine::{Change, Encoding, Engine};
use omird::store::format::keys;
use omird::store::{DeviceKey, device_key};
use omird_tests::golden_folder::{
    self, Golden, akashik, asked_at, but_counts, clock_at, compare, files, found, lives, open,
    pack, protocols,
};
use omird_tests::session::{DAWN, Session, TestClock};

/// Number of attempts at a life that does not come to the same folder.
const TRIES: usize = 3;

/// The set that the generator writes, and nothing else does.
const SET: &str = "OMIRD_GOLDEN_SET";

/// Opens a data folder at `micros`. Its device key is read, where it has one.
fn open_at(data: &Path, micros: i64) -> Session {
    if data.join(keys::DIR).join("device.key").exists() {
        let key = device_key(data, || panic!("the key is there")).expect("a key");
        assert_eq!(key.public_hex(), DeviceKey::from_secret(lives::SECRET).public_hex());
    }
    open(data, &clock_at(micros), lives::settings()).expect("it opens")
}

fn check(golden: &Golden) {
    let what = format!("{}/{}", golden.set, golden.name);
    let data = tempfile::tempdir().expect("a folder");
    golden.unpack(data.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let kept =
        fs::read_to_string(golden.answers()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let micros = asked_at(&kept);

    let session = open_at(data.path(), micros);
    let first = found(&session, micros);
    compare(&what, &kept, &first);

    // It is written to, and stopped cleanly, and everything is as before, with what came in.
    let new = r#"{"resourceType":"Entity","id":"golden-new","name":"Kettle of today"}"#;
    let change = session.prepare(new.as_bytes(), Encoding::Json, None).expect("it is valid");
    session.execute(change).unwrap_or_else(|error| panic!("{what} takes nothing new: {error}"));
    let with_new = found(&session, micros);
    assert_ne!(with_new, first, "{what}: what came in is found");
    drop(session);
    let session = open_at(data.path(), micros);
    compare(
        &format!("{what}, started again"),
        &but_counts(&with_new),
        &but_counts(&found(&session, micros)),
    );

    // Sealed, and what came in forgotten: all as it was kept.
    session
        .seal_now(std::time::Duration::from_secs(60))
        .unwrap_or_else(|why| panic!("{what}: {why}"));
    let target = "Entity/golden-new".parse().expect("a reference");
    session.execute(Change::Forget(vec![target])).unwrap_or_else(|error| panic!("{what}: {error}"));
    compare(&format!("{what}, and on"), &but_counts(&kept), &but_counts(&found(&session, micros)));
    drop(session);
    let session = open_at(data.path(), micros);
    compare(&format!("{what}, at last"), &but_counts(&kept), &but_counts(&found(&session, micros)));
}

#[test]
fn every_golden_folder_is_answered_from_as_it_was_written() {
    let all = golden_folder::all().expect("the golden folders are listed");
    assert!(all.len() >= lives::ALL.len(), "{all:?}");
    all.iter().for_each(check);
}

/// Makes the replies of an engine.
type Replies = fn(&Engine) -> String;
/// Compares kept replies, named for what they are of, with those of an engine.
type Compare = fn(&str, &str, &Engine);

/// The lives by way of protocols.
const LIVED: [(&str, Replies, Compare); 2] = [
    (protocols::NAME, protocols::replies, protocols::compare),
    (akashik::NAME, akashik::replies, akashik::compare),
];

#[test]
fn what_protocols_stored_is_told_as_it_was() {
    let all = golden_folder::all().expect("the golden folders are listed");
    for (name, _, compare) in LIVED {
        let lived: Vec<&Golden> = all.iter().filter(|golden| golden.name == name).collect();
        assert!(!lived.is_empty(), "a life by way of {name} is kept");
        for golden in lived {
            let what = format!("{}/{}", golden.set, golden.name);
            let data = tempfile::tempdir().expect("a folder");
            golden.unpack(data.path()).unwrap_or_else(|error| panic!("{what}: {error}"));
            let asked = fs::read_to_string(golden.answers()).expect("there are answers");
            let kept = fs::read_to_string(golden.replies()).expect("there are replies");
            let session = open_at(data.path(), asked_at(&asked));
            compare(&what, &kept, &session);
            // And from a segment.
            session.seal_now(std::time::Duration::from_secs(60)).expect("the disk is good");
            compare(&format!("{what}, sealed"), &kept, &session);
        }
    }
}

/// Lives a life, and gives the moment at its end.
fn live(name: &str, data: &Path) -> i64 {
    let (_, life) = lives::ALL.iter().find(|(known, _)| *known == name).expect("a life");
    let clock = TestClock::new();
    life(data, &clock).unwrap_or_else(|error| panic!("{name}: {error}"));
    // Long after, by a clock that is set.
    DAWN + 20 * 86_400 * 1_000_000
}

/// Everything in a folder but the index, which is derived and whose bytes sled decides.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = files(folder).expect("it is listed").into_iter();
    let kept = paths.filter(|path| !path.starts_with("index"));
    kept.map(|path| (path.clone(), fs::read(folder.join(path)).expect("it is read"))).collect()
}

#[test]
fn this_build_writes_the_newest_set_byte_for_byte() {
    let all = golden_folder::all().expect("the golden folders are listed");
    let newest = all.last().expect("there is a set").set.clone();
    // The records that a protocol writes may grow: its replies are compared instead.
    let is_lived = |name: &str| LIVED.iter().any(|(lived, ..)| *lived == name);
    let is_compared = |name: &str| name != lives::INDEXED && !is_lived(name);
    for (name, _) in lives::ALL.iter().filter(|(name, _)| is_compared(name)) {
        let golden = Golden { set: newest.clone(), name: (*name).to_owned() };
        let kept = tempfile::tempdir().expect("a folder");
        golden.unpack_as_it_is(kept.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let kept = contents(kept.path());
        let lived = || {
            let data = tempfile::tempdir().expect("a folder");
            live(name, data.path());
            contents(data.path())
        };
        // Which changes share a sync, and so a record of the witness, is the machine's to say when it is busy.
        let now = (0..TRIES).map(|_| lived()).find(|now| *now == kept).unwrap_or_else(lived);
        let differ: BTreeSet<&PathBuf> = kept.keys().chain(now.keys()).collect();
        let differ: Vec<_> =
            differ.into_iter().filter(|path| kept.get(*path) != now.get(*path)).collect();
        assert!(
            differ.is_empty(),
            "{newest}/{name}: this build writes other files: {differ:?}. If that is meant, add a set, as \
             tests/golden_folders/README.md says"
        );
    }
}

/// True for the answer to a question with words: their ranking is a rule of the build, and nothing on the disk.
fn is_ranked_by_words(line: &str) -> bool {
    ["words", "words of one", "a page", "near, and words"]
        .iter()
        .any(|name| line.starts_with(&format!("recall {name}: ")))
}

/// Answers questions with words again, if their ranking has changed on purpose. All other answers stay as they are.
#[test]
#[ignore = "writes files into the source tree"]
fn answer_words_anew() {
    for golden in golden_folder::all().expect("the golden folders are listed") {
        let data = tempfile::tempdir().expect("a folder");
        golden.unpack(data.path()).expect("it is unpacked");
        let kept = fs::read_to_string(golden.answers()).expect("the answers are there");
        let micros = asked_at(&kept);
        let now = found(&open_at(data.path(), micros), micros);
        let rest = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !is_ranked_by_words(line)).map(str::to_owned).collect()
        };
        assert_eq!(rest(&kept), rest(&now), "{}/{}", golden.set, golden.name);
        fs::write(golden.answers(), now).expect("it is written");
    }
}

/// Writes a new set: `OMIRD_GOLDEN_SET=<name> cargo test --workspace --test upkeep -- --ignored`.
#[test]
#[ignore = "writes files into the source tree"]
fn write_a_set() {
    let set = std::env::var(SET).unwrap_or_else(|_| panic!("{SET} names the new set"));
    let folder = golden_folder::root().join(&set);
    assert!(!folder.exists(), "{} is there: a set is never altered", folder.display());
    fs::create_dir_all(&folder).expect("a folder");
    for (name, _) in lives::ALL {
        let golden = Golden { set: set.clone(), name: name.to_owned() };
        let data = tempfile::tempdir().expect("a folder");
        let micros = live(name, data.path());
        pack(data.path(), &golden.archive()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let data = tempfile::tempdir().expect("a folder");
        golden.unpack(data.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let session = open_at(data.path(), micros);
        fs::write(golden.answers(), found(&session, micros)).expect("it is written");
        if let Some((_, replies, _)) = LIVED.iter().find(|(lived, ..)| *lived == name) {
            fs::write(golden.replies(), replies(&session)).expect("it is written");
        }
    }
}
