//! Vectors through the engine: made, kept, lost, of another model, forgotten.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use omird_embedding::{Embedder, Hashed, StaticModel, parse_vector};
use omird_text::Language;

use super::files::DIR;
use super::{Backend, Embedding, MOST_TRIES};
use crate::index::vectors::Words;
use crate::ingest::request::Encoding;
use crate::question::Question;
use crate::recall::query::{Query, QueryVector};
use crate::recall::search::search;
use crate::recall::tally::Asks;
use crate::settings::{FlashSettings, Settings};
use crate::testing::{ByHand, parts};
use crate::write::command::Change;
use crate::{Code, CompactionScope, Engine, Parts};

const MEMORIES: usize = 1500;

fn hashed() -> Option<Arc<dyn Embedder>> {
    Some(Arc::new(Hashed::new(Language::English)))
}

fn tiny() -> Option<Arc<dyn Embedder>> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../embedding/tests/models/tiny");
    Some(Arc::new(StaticModel::open(Path::new(dir), Language::English).unwrap()))
}

fn open(dir: &Path) -> Engine {
    let settings = Settings {
        flash: FlashSettings { reserve_bytes: 0, ..FlashSettings::default() },
        keep_history: Duration::ZERO,
        ..Settings::default()
    };
    Engine::open(Parts { settings, ..parts(dir) }, &mut |_| {}).unwrap()
}

fn put(engine: &Engine, json: &str) {
    let change = engine.prepare(json.as_bytes(), Encoding::Json, None).unwrap();
    engine.execute(change).unwrap();
}

/// Memories about two things, in requests of a hundred.
fn fill(engine: &Engine) {
    for first in (0..MEMORIES).step_by(100) {
        let one = |n: usize| {
            let what =
                if n.is_multiple_of(2) { "white mug on the counter" } else { "pallet in the hall" };
            format!(r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"a {what}, {n}"}}"#)
        };
        let all: Vec<String> = (first..first + 100).map(one).collect();
        put(engine, &format!("[{}]", all.join(",")));
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Rows of the model that makes vectors.
fn rows(engine: &Engine) -> usize {
    let spaces = engine.inner.shared.vectors.spaces();
    spaces.iter().filter(|space| !space.is_given()).map(|space| space.rows()).sum()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir.join(DIR)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn total(engine: &Engine, text: &str, min_cosine: Option<f64>) -> u64 {
    let text = Some(text.into());
    let query = Query { text, by_meaning: true, min_cosine, ..Query::default() };
    engine.recall(&query).unwrap().total
}

/// Matches by words: nothing is as near as that.
fn by_words(engine: &Engine) -> u64 {
    let query = Query { text: Some("mug".into()), ..Query::default() };
    engine.recall(&query).unwrap().total
}

/// Opens the store with the embedder, and waits until each memory has a vector.
fn embedded(dir: &Path, embedder: Option<Arc<dyn Embedder>>) -> Engine {
    let engine = open(dir);
    engine.embed_with(embedder);
    wait_until("all have a vector", || rows(&engine) == MEMORIES);
    engine
}

#[test]
fn without_an_embedder_nothing_is_made_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(None);
    fill(&engine);
    assert_eq!(by_words(&engine), MEMORIES as u64 / 2);
    assert!(engine.status("r").pointer("/embedding").is_none());
    let query = Query { text: Some("mug".into()), min_cosine: Some(0.5), ..Query::default() };
    assert_eq!(engine.recall(&query).unwrap_err().code, Code::InvalidQuery);
    engine.stop();
    assert!(!dir.path().join(DIR).exists());
}

#[test]
fn a_count_is_of_words_and_of_all_whatever_is_near() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(tiny());
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"a","content":"a camera"}"#);
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"b","content":"a tool"}"#);
    wait_until("all have a vector", || rows(&engine) == 2);
    wait_until("it has looked", || engine.unembedded() == 0);
    let query = Query { text: Some("a camera".into()), by_meaning: true, ..Query::default() };
    let ranked = engine.recall(&query).unwrap();
    assert_eq!(ranked.total, 2, "the tool is near: the model's numbers are random");
    assert!(ranked.more.iter().all(|(name, _)| *name != "pending"));
    let asks = Asks { count: true, ..Asks::default() };
    let counted = engine.recall(&Query { asks, ..query.clone() }).unwrap();
    assert_eq!(counted.total, 1, "words alone decide");
    let lax = |query: Query| engine.recall(&Query { exact_total: false, ..query }).unwrap().total;
    assert_eq!(lax(Query { asks, ..query.clone() }), 1, "a number is all that is asked for");
    assert_eq!(lax(Query { limit: Some(0), ..query.clone() }), 2);
    // A reply says that a vector is missing.
    engine.inner.shared.vectors.pending.store(3, Ordering::Relaxed);
    let told = engine.recall(&query).unwrap();
    assert!(told.more.contains(&("pending", 3_i64.into())), "{:?}", told.more);
    engine.stop();
}

#[test]
fn texts_of_what_is_near_are_read_before_the_index_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(tiny());
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"a","content":"a camera in the hall"}"#);
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"b","content":"a tool in the hall"}"#);
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"c","content":"a tool on the in tray"}"#);
    wait_until("all have a vector", || rows(&engine) == 3);
    // Stop words propose nothing: the tool matches by meaning, and its text tells of the phrase.
    let text = Question::parse(r#"a camera "in the""#).unwrap();
    let query = Query { text, by_meaning: true, ..Query::default() };
    let query = engine.understood(Cow::Owned(query)).unwrap();
    assert!(query.vector.is_some());
    let mut verdicts = engine.verdicts(&query, 0);
    let before = verdicts.len();
    let found = search(&engine.catalog(), &query, 0, &mut verdicts);
    assert_eq!((verdicts.len(), before), (3, 3), "the search reads nothing: {found:?}");
    assert_eq!(engine.recall(&query).unwrap().total, 2);
    engine.stop();
}

#[test]
fn vectors_that_are_still_read_in_are_no_mistake_of_the_question() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(None);
    let is_loaded = &engine.inner.shared.vectors.is_loaded;
    wait_until("files are read", || is_loaded.load(Ordering::Acquire));
    let vector = QueryVector::stated(Some("clip"), parse_vector("1,0,0,1").unwrap());
    let query = Query { vector: Some(vector), ..Query::default() };
    assert_eq!(engine.recall(&query).unwrap_err().code, Code::InvalidQuery);
    is_loaded.store(false, Ordering::Release);
    assert_eq!(engine.recall(&query).unwrap_err().code, Code::Busy);
    engine.stop();
}

#[test]
fn vectors_come_back_after_a_start_whatever_became_of_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(hashed());
    fill(&engine);
    wait_until("all have a vector", || rows(&engine) == MEMORIES);
    // Letters in common: a word that no memory has.
    let found = total(&engine, "mugs' counters", Some(0.3));
    // By their words half of them, and by parts of words perhaps a few more.
    assert!(found >= MEMORIES as u64 / 2, "{found}");
    engine.stop();
    let [file] = &files(dir.path())[..] else { panic!("one file") };
    let whole = fs::read(file).unwrap();
    let per_row = whole.len() as f64 / MEMORIES as f64;
    assert!(per_row < 256.0 + 16.0, "{per_row} bytes a memory");

    // As they were: nothing is made again, so nothing is written but by a stop.
    let engine = open(dir.path());
    wait_until("they are read", || rows(&engine) == MEMORIES);
    engine.embed_with(hashed());
    wait_until("it has looked", || engine.unembedded() == 0);
    assert_eq!(total(&engine, "mugs' counters", Some(0.3)), found);
    engine.stop();
    assert_eq!(fs::read(file).unwrap(), whole);

    type Harm<'a> = (&'static str, Box<dyn Fn() + 'a>);
    let harm: [Harm<'_>; 5] = [
        ("lost", Box::new(|| fs::remove_file(file).unwrap())),
        ("cut", Box::new(|| fs::write(file, &whole[..whole.len() / 2]).unwrap())),
        (
            "rotten",
            Box::new(|| {
                let mut rotten = whole.clone();
                rotten[whole.len() - 300] ^= 1;
                fs::write(file, rotten).unwrap();
            }),
        ),
        ("no file of vectors", Box::new(|| fs::write(file, b"something else").unwrap())),
        (
            "left over",
            Box::new(|| {
                fs::write(file.with_extension("tmp"), b"half of it").unwrap();
            }),
        ),
    ];
    for (what, harm) in harm {
        harm();
        let engine = embedded(dir.path(), hashed());
        assert_eq!(total(&engine, "mugs' counters", Some(0.3)), found, "{what}");
        // Nothing is there twice.
        wait_until("it has looked", || engine.unembedded() == 0);
        assert_eq!(rows(&engine), MEMORIES, "{what}");
        engine.stop();
        // One file again, so that the next harm is done to it.
        let left = files(dir.path());
        for extra in left.iter().filter(|one| *one != file) {
            fs::remove_file(extra).unwrap();
        }
        fs::write(file, &whole).unwrap();
    }
}

#[test]
fn another_model_another_size_and_none() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(hashed());
    fill(&engine);
    wait_until("all have a vector", || rows(&engine) == MEMORIES);
    // While it runs.
    engine.embed_with(tiny());
    wait_until("the other model has made all", || {
        let spaces = engine.inner.shared.vectors.spaces();
        spaces.len() == 1 && spaces[0].model().dims == 16 && spaces[0].rows() == MEMORIES
    });
    assert!(total(&engine, "the cup", None) > 0, "it answers with the other model");
    engine.stop();
    // At a start.
    let engine = embedded(dir.path(), hashed());
    let status = engine.status("r");
    let model = status.pointer("/embedding/model").and_then(|model| model.as_str());
    assert_eq!(model, Some("hashed-256-en"));
    assert_eq!(by_words(&engine), MEMORIES as u64 / 2);
    engine.stop();
    let engine = open(dir.path());
    engine.embed_with(None);
    wait_until("files of no use are gone", || files(dir.path()).is_empty());
    assert_eq!(by_words(&engine), MEMORIES as u64 / 2);
    engine.stop();
}

#[test]
fn vectors_that_clients_state_are_found_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(None);
    let with = |id: &str, f32: &str| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"one of them","extension":[
                {{"url":"urn:omird:ext:embedding","valueJson":{{"model":"clip","dims":2,"f32":"{f32}"}}}}]}}"#
        )
    };
    put(&engine, &with("right", "AACAPwAAAAA="));
    put(&engine, &with("up", "AAAAAAAAgD8="));
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"none","content":"one of them"}"#);
    let bad = with("bad", "AACAPw==");
    let refused = engine.prepare(bad.as_bytes(), Encoding::Json, None).unwrap_err();
    assert_eq!(refused.code, Code::InvalidResource);
    assert!(refused.path.ends_with("/extension/0/valueJson/f32"), "{}", refused.path);
    let asked = |model: Option<&str>, numbers: &str| {
        let vector = Some(QueryVector::stated(model, parse_vector(numbers).unwrap()));
        Query { vector, ..Query::default() }
    };
    let ids = |engine: &Engine, query: &Query| -> Vec<String> {
        let hits = engine.recall(query).unwrap().hits;
        hits.iter().filter_map(|hit| crate::id_of(&hit.resource)).collect()
    };
    let near = asked(Some("clip"), "1,0.3");
    wait_until("both have a vector", || {
        engine.inner.shared.vectors.spaces().first().is_some_and(|space| space.rows() == 2)
    });
    assert_eq!(ids(&engine, &near), ["right", "up"]);
    let floor = Query { min_cosine: Some(0.5), ..near.clone() };
    assert_eq!(ids(&engine, &floor), ["right"]);
    assert_eq!(ids(&engine, &asked(None, "1,0.3")), ["right", "up"], "the only one of that size");
    for bad in [asked(Some("other"), "1,0"), asked(Some("clip"), "1,0,0"), asked(None, "1,0,0")] {
        let error = engine.recall(&bad).unwrap_err();
        assert!(error.code == Code::InvalidQuery && error.message.contains("clip (2"), "{error}");
    }
    engine.stop();
    let engine = open(dir.path());
    wait_until("they are read", || !engine.inner.shared.vectors.spaces().is_empty());
    assert_eq!(ids(&engine, &near), ["right", "up"]);
    // Words still find what has no vector.
    let text = Some("one".into());
    let both = Query { text, ..near };
    assert_eq!(ids(&engine, &both).len(), 3);
    engine.stop();
}

#[test]
fn what_is_forgotten_leaves_the_files_with_its_segment() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(hashed());
    fill(&engine);
    wait_until("all have a vector", || rows(&engine) == MEMORIES);
    engine.stop();
    let engine = embedded(dir.path(), hashed());
    let size =
        || files(dir.path()).iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>();
    let before = size();
    let targets = (0..MEMORIES).step_by(3).map(|n| format!("MemoryRecord/m{n}").parse().unwrap());
    engine.execute(Change::Forget(targets.collect())).unwrap();
    assert_eq!(by_words(&engine), MEMORIES as u64 / 3);
    engine.compact(CompactionScope::All).unwrap();
    wait_until("their rows are gone", || rows(&engine) == MEMORIES / 3 * 2);
    wait_until("and from the files", || size() < before * 7 / 10);
    assert_eq!(by_words(&engine), MEMORIES as u64 / 3);
    engine.stop();
    let engine = open(dir.path());
    wait_until("the rest is read", || rows(&engine) == MEMORIES / 3 * 2);
    engine.stop();
}

#[test]
fn a_file_that_is_emptied_holds_up_no_later_purge() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    engine.embed_with(hashed());
    for n in 0..3 {
        put(
            &engine,
            &format!(r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"a mug"}}"#),
        );
        wait_until("it has a vector", || rows(&engine) == 1);
        engine.seal_now(Duration::from_secs(60)).unwrap();
        let target = format!("MemoryRecord/m{n}").parse().unwrap();
        engine.execute(Change::Forget(vec![target])).unwrap();
        engine.compact(CompactionScope::All).unwrap();
        wait_until("its row is gone, and its file", || {
            engine.inner.shared.vectors.wake();
            rows(&engine) == 0 && files(dir.path()).is_empty()
        });
    }
    engine.stop();
}

#[test]
fn what_a_cut_left_of_the_forgotten_leaves_the_files_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    embedded_and_filled(dir.path(), hashed()).stop();
    let engine = embedded(dir.path(), hashed());
    engine.stop();
    let before: Vec<_> =
        files(dir.path()).iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect();
    let engine = open(dir.path());
    let targets = (0..MEMORIES).step_by(3).map(|n| format!("MemoryRecord/m{n}").parse().unwrap());
    engine.execute(Change::Forget(targets.collect())).unwrap();
    engine.compact(CompactionScope::All).unwrap();
    engine.stop();
    // As if the power had gone after the compaction: the files are those of before.
    for file in files(dir.path()) {
        fs::remove_file(file).unwrap();
    }
    for (file, bytes) in &before {
        fs::write(file, bytes).unwrap();
    }
    let engine = open(dir.path());
    engine.embed_with(hashed());
    wait_until("the rest is read", || rows(&engine) == MEMORIES / 3 * 2);
    engine.stop();
    let stored: usize = files(dir.path())
        .iter()
        .map(|file| crate::index::vectors::file::read(&fs::read(file).unwrap()).unwrap().rows.len())
        .sum();
    assert_eq!(stored, MEMORIES / 3 * 2, "and nothing else is on the card");
}

#[test]
fn what_the_card_does_not_give_back_is_read_again_and_given_up_at_last() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"m","content":"a mug"}"#);
    let inner = &engine.inner;
    // The engine's own thread has no embedder, and does nothing.
    let mut embedding = Embedding {
        shared: Arc::clone(&inner.shared),
        catalog: Arc::clone(&inner.catalog),
        disk: Arc::clone(&inner.disk),
        backend: Backend { embedder: hashed(), generation: 1 },
        next: 1,
        unread: vec![(0, 1)],
        done: Vec::new(),
        files: Vec::new(),
        next_file: 1,
        purged: 0,
        wait_until: None,
    };
    let log = fs::read_dir(dir.path().join("wal")).unwrap().next().unwrap().unwrap().path();
    let sound = fs::read(&log).unwrap();
    let mut rotten = sound.clone();
    for byte in rotten.iter_mut().skip(64) {
        *byte ^= 0x55;
    }
    let write = |bytes: &[u8]| {
        let mut file = fs::OpenOptions::new().write(true).open(&log).unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
    };
    write(&rotten);
    for tries in 2..=MOST_TRIES {
        embedding.read_again();
        assert_eq!(embedding.unread, [(0, tries)]);
        assert_eq!(inner.shared.vectors.pending.load(Ordering::Relaxed), 1, "it is told");
    }
    write(&sound);
    embedding.read_again();
    assert_eq!((rows(&engine), embedding.unread.len()), (1, 0));
    write(&rotten);
    embedding.unread = vec![(0, MOST_TRIES)];
    embedding.read_again();
    assert!(embedding.unread.is_empty(), "five times are enough");
    engine.stop();
}

#[test]
fn words_of_the_store_have_vectors_where_the_model_has_some() {
    let dir = tempfile::tempdir().unwrap();
    let engine = embedded_and_filled(dir.path(), tiny());
    let words = || engine.inner.shared.vectors.words().as_ref().map(Words::len);
    // White, mug, counter, pallet and hall: numbers are names, and stop words say nothing.
    wait_until("words are known", || words() == Some(5));
    assert!(engine.status("r").pointer("/embedding/wordBytes").is_some());
    put(&engine, r#"{"resourceType":"MemoryRecord","id":"n","content":"the kettle whistles"}"#);
    wait_until("new ones too", || words() > Some(5));
    // Another model has none.
    engine.embed_with(hashed());
    wait_until("they are gone", || words().is_none());
    assert!(engine.status("r").pointer("/embedding/words").is_none());
    engine.stop();
}

fn embedded_and_filled(dir: &Path, embedder: Option<Arc<dyn Embedder>>) -> Engine {
    let engine = open(dir);
    engine.embed_with(embedder);
    fill(&engine);
    engine
}
