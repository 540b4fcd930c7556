//! A data folder with something of everything: several producers, updates, tombstones by users and by rules,
//! names that came back, segments as they were sealed and as they were compacted, and a log that waits.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use omir_core::json;
use omir_core::model::Resource;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::Value;
use omird::disk::Folder;
use omird::engine::testing::ByHand;
use omird::engine::{
    Change, CompactionScope, Effect, Encoding, Engine, Error, Events, FlashSettings, Forgetting,
    Parts, Receipt, Settings,
};
use omird::store::{Lock, SledStore, device_key};

use super::judge::Answers;
use crate::folder::copy;
use crate::life;
use crate::session::{self, TestClock};

const DAY: Duration = Duration::from_secs(86_400);

/// The kind of folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Small segments, whose index is rebuilt at each start.
    Small,
    /// The index of every segment is kept.
    Indexed,
}

/// A folder as it was before anything rotted.
pub struct Past {
    /// The folder. Nothing opens it any more.
    pub folder: PathBuf,
    /// The answers it gives while it is whole.
    pub answers: Answers,
    /// The newest version of each reference that was ever acknowledged, that of a tombstone as well.
    pub highest: BTreeMap<Ref, u64>,
    /// The versions that [`Past::store_all_again`] gives in the whole folder.
    pub given: BTreeMap<Ref, u64>,
    settings: Settings,
    age: Duration,
}

/// An engine that is stopped when this goes.
pub struct Running(Engine);

impl Deref for Running {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn settings(shape: Shape) -> Settings {
    let long = 3650 * DAY;
    Settings {
        segment_bytes: 32 << 10,
        segment_max_bytes: 256 << 10,
        seal_after: long,
        purge_after: long,
        index_from_bytes: if shape == Shape::Indexed { 0 } else { 4 << 20 },
        touch_interval: long,
        flash: FlashSettings { reserve_bytes: 8192, ..FlashSettings::default() },
        forgetting: Forgetting {
            sweep_interval: None,
            expire_after: Duration::from_secs(3600),
            ..Forgetting::default()
        },
        ..Settings::default()
    }
}

/// Opens a folder as the program does: lock, key, engine.
fn open(data: &Path, settings: &Settings, age: Duration) -> io::Result<Running> {
    session::watch_panics();
    let mut lock = Lock::acquire(data).map_err(io::Error::other)?;
    lock.stamp(7)?;
    let key = device_key(data, || [7; 32])?;
    let clock = TestClock::new();
    clock.advance(age);
    let counter = AtomicU64::new(0);
    let parts = Parts {
        disk: Arc::new(Folder::watched(data, lock.watch())),
        index: Some(SledStore::boxed(&data.join("index"))),
        clock,
        key,
        random: Box::new(move || u128::from(counter.fetch_add(1, Ordering::Relaxed))),
        settings: settings.clone(),
        events: Events::default(),
    };
    Engine::open(parts, &mut |_| {}).map(Running)
}

/// Stores a resource.
///
/// # Errors
/// As the engine refuses.
pub fn put(engine: &Engine, resource: &Resource) -> Result<Receipt, Error> {
    let text = json::to_string(&resource.to_value());
    engine.execute(engine.prepare(text.as_bytes(), Encoding::Json, None)?)
}

/// A life under way.
struct Life {
    engine: Running,
    highest: BTreeMap<Ref, u64>,
}

impl Life {
    fn store(&mut self, resource: &Resource) {
        let receipt = put(&self.engine, resource).expect("the disk is good");
        let Effect::Remembered(stored) = receipt.effect else { panic!("{receipt:?}") };
        for one in stored {
            let highest = self.highest.entry(one.target).or_default();
            *highest = one.version.max(*highest);
        }
    }

    fn forget(&mut self, name: &str) {
        let change = Change::Forget(vec![life::reference(name)]);
        self.engine.execute(change).expect("the disk is good");
        self.note();
    }

    /// Asks for the version of everything, as rules change it too.
    fn note(&mut self) {
        for (target, highest) in &mut self.highest {
            *highest = version_of(&self.engine, target).unwrap_or(0).max(*highest);
        }
    }

    fn seal(&self) {
        self.engine.seal_now(Duration::from_secs(60)).expect("the disk is good");
    }

    fn sweep(&mut self) {
        self.engine.sweep(false).expect("it sweeps");
        self.note();
    }

    /// Records of this part of the life, by three producers.
    fn observe(&mut self, part: usize, count: usize) {
        for n in 0..count {
            let words = format!("part {part} {} {n} ", life::WORDS[n % 6]).repeat(12);
            let mentions = [format!("e{}", n % 6)];
            let mentions: Vec<&str> = mentions.iter().map(String::as_str).collect();
            let at = (n % 3 == 0).then_some([n as f64 * 3.0, part as f64 * 3.0, 0.0]);
            let record = life::record(&format!("p{part}-{n}"), &words, &mentions, at);
            self.store(&of_producer(record, n % 3));
        }
    }
}

/// The version of what has a name, also of its tombstone.
pub fn version_of(engine: &Engine, target: &Ref) -> Option<u64> {
    engine.explain(target).ok()?.get("version").and_then(Value::as_u64)
}

fn of_producer(resource: Resource, number: usize) -> Resource {
    if number == 0 {
        return resource;
    }
    let mut value = resource.to_value();
    if let Value::Object(map) = &mut value {
        let text = format!(r#"{{"omirVersion":"R1","source":"camera-{number}"}}"#);
        let meta = json::from_slice(text.as_bytes(), &Default::default()).expect("JSON");
        map.insert("meta", meta);
    }
    Resource::from_value(value).expect("a resource")
}

fn parsed(text: &str) -> Resource {
    let value = json::from_slice(text.as_bytes(), &Default::default()).expect("JSON");
    Resource::from_value(value).expect("a resource")
}

fn cup(id: &str, minute: u32) -> Resource {
    parsed(&format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"the red cup stands on the table",
        "createdAt":"2026-06-01T00:{minute:02}:00Z","entityRefs":[{{"ref":"Entity/e1"}}],
        "extension":[{{"url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{{"frame":"map","position":[1.0,2.0,0.0]}}}}]}}"#
    ))
}

impl Past {
    /// Lives a life in a new folder below `root`.
    ///
    /// # Panics
    /// If anything goes wrong: nothing has rotted yet.
    pub fn live(root: &Path, shape: Shape) -> Self {
        let folder = root.join(format!("{shape:?}").to_lowercase());
        fs::create_dir_all(&folder).expect("a folder");
        let settings = settings(shape);
        let engine = open(&folder, &settings, Duration::ZERO).expect("it opens");
        let mut life = Life { engine, highest: BTreeMap::new() };
        for n in 0..8 {
            life.store(&life::entity(&format!("e{n}"), &format!("Thing {n}")));
        }
        life.observe(1, 16);
        life.store(&life::episode("morning", "a look around", &["e1", "e2"]));
        life.store(&life::edge("on", "e1", "e2", Some("morning")));
        life.store(&life::edge("near", "e3", "e4", None));
        life.store(&parsed(
            r#"{"resourceType":"MemoryRecord","id":"shop","content":"the shop is open",
            "createdAt":"2026-06-01T00:00:00Z","validUntil":"2026-06-02T00:00:00Z"}"#,
        ));
        (1..4).for_each(|n| life.store(&cup(&format!("c{n}"), n)));
        life.seal();
        // Updates, tombstones of users, a cascade, and a name that comes back.
        for n in 0..6 {
            let record = life::record(
                &format!("p1-{n}"),
                &format!("updated {n} ").repeat(20),
                &["e1"],
                None,
            );
            life.store(&record);
        }
        life.store(&life::entity("e5", "Thing 5, painted"));
        ["MemoryRecord/p1-7", "MemoryRecord/p1-8", "Entity/e4"]
            .iter()
            .for_each(|name| life.forget(name));
        life.store(&life::entity("e4", "Another thing 4"));
        life.observe(2, 12);
        life.seal();
        drop(life.engine);
        // Rules let go, and all of it is compacted.
        let mut age = 40 * DAY;
        life.engine = open(&folder, &settings, age).expect("it opens");
        life.sweep();
        life.observe(3, 8);
        life.seal();
        life.engine.compact(CompactionScope::All).expect("it compacts");
        ["MemoryRecord/p2-1", "MemoryRecord/p1-1", "Entity/e7"]
            .iter()
            .for_each(|name| life.forget(name));
        for n in 2..5 {
            let text = format!("updated again {n} ").repeat(20);
            life.store(&life::record(&format!("p1-{n}"), &text, &["e2"], None));
        }
        life.seal();
        drop(life.engine);
        age += Duration::from_secs(60);
        life.engine = open(&folder, &settings, age).expect("it opens");
        life.observe(4, 10);
        life.store(&life::record("p1-7", "back under an old name", &["e1"], None));
        life.store(&life::entity("e6", "Thing 6, broken"));
        life.forget("MemoryRecord/p3-2");
        life.seal();
        // Changes from here on stay in the log.
        for n in 3..6 {
            let text = format!("updated a third time {n} ").repeat(20);
            life.store(&life::record(&format!("p1-{n}"), &text, &["e3"], None));
        }
        life.observe(5, 6);
        ["MemoryRecord/p4-1", "MemoryRecord/p5-1"].iter().for_each(|name| life.forget(name));
        life.store(&life::record("p4-2", "the last word", &["e3"], None));
        life.note();
        let Life { engine, highest } = life;
        drop(engine);
        age += Duration::from_secs(60);
        let (answers, given) = (Answers::default(), BTreeMap::new());
        let mut past = Self { folder, answers, highest, given, settings, age };
        past.know();
        past
    }

    /// Asks a copy of the whole folder everything, and which numbers new versions get.
    fn know(&mut self) {
        let copy = self.folder.with_extension("whole");
        self.copy_to(&copy).expect("it is copied");
        let engine = self.open(&copy).expect("it opens");
        assert!(engine.damage().is_empty(), "{:?}", engine.damage());
        self.answers = Answers::of(&engine, self.highest.keys());
        self.given = self.store_all_again(&engine);
        drop(engine);
        fs::remove_dir_all(&copy).expect("it is removed");
    }

    /// Stores something new under every name, and tells which versions that got. What is refused is left out.
    pub fn store_all_again(&self, engine: &Engine) -> BTreeMap<Ref, u64> {
        let mut given = BTreeMap::new();
        for target in self.highest.keys() {
            let name = target.id.as_str();
            let resource = match target.kind {
                ResourceType::Entity => life::entity(name, "Seen again"),
                ResourceType::Episode => life::episode(name, "again", &[]),
                ResourceType::MemoryRecord => life::record(name, "seen again", &[], None),
                ResourceType::Relationship => life::edge(name, "e1", "e2", None),
            };
            let Ok(receipt) = put(engine, &resource) else { continue };
            let Effect::Remembered(stored) = receipt.effect else { continue };
            let new = stored.into_iter().filter(|one| !one.unchanged);
            given.extend(new.map(|one| (one.target, one.version)));
        }
        given
    }

    /// Opens a copy of the folder as the program does.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn open(&self, data: &Path) -> io::Result<Running> {
        open(data, &self.settings, self.age + Duration::from_secs(60))
    }

    /// Copies the folder to a place where there is none.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn copy_to(&self, target: &Path) -> io::Result<()> {
        copy(&self.folder, target)
    }
}
