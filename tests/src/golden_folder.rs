//! Data folders of every format that omird has written, kept as files, with the answers they give.
//!
//! `tests/golden_folders/<set>/<name>.tar.gz` is a data folder or a backup, and `<name>.answers` beside it says what an
//! engine on a copy of it must answer, one fact a line. A set holds what one build wrote: [`lives::ALL`] wrote the
//! newest. Sets are never altered; a change of a format adds one, as the README.md there says.

pub mod akashik;
mod asks;
pub mod lives;
pub mod protocols;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::instant::Timestamp;
use omir_core::json;
use omir_core::reference::Ref;
use omir_core::space::Center;
use omir_core::value::{Map, Value};
use omird::disk::Folder;
use omird::engine::testing::ByHand;
use omird::engine::{Engine, Query, Settings};
use omird::store::backup;

use crate::session::{DAWN, Session, TestClock};

/// A moment of the lives at which much that was changed later was as it was.
const THEN: i64 = DAWN + 20 * 60 * 1_000_000;

/// The folder of the sets.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden_folders")
}

/// One golden folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Golden {
    /// The set it belongs to.
    pub set: String,
    /// Its name, which says what is in it.
    pub name: String,
}

/// All golden folders, oldest set first.
///
/// # Errors
/// If they cannot be listed.
pub fn all() -> io::Result<Vec<Golden>> {
    let mut found = Vec::new();
    for set in fs::read_dir(root())? {
        let set = set?;
        if !set.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(set.path())? {
            let file = file?.file_name().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix(".tar.gz") {
                let set = set.file_name().to_string_lossy().into_owned();
                found.push(Golden { set, name: name.to_owned() });
            }
        }
    }
    found.sort();
    Ok(found)
}

impl Golden {
    /// The archive of the folder.
    pub fn archive(&self) -> PathBuf {
        root().join(&self.set).join(format!("{}.tar.gz", self.name))
    }

    /// The file with its answers.
    pub fn answers(&self) -> PathBuf {
        root().join(&self.set).join(format!("{}.answers", self.name))
    }

    /// The file with the replies of the protocols, of a life that is lived by way of them.
    pub fn replies(&self) -> PathBuf {
        root().join(&self.set).join(format!("{}.replies", self.name))
    }

    /// Unpacks the folder into `into`. A backup is restored: a robot whose card died gets its memory back so.
    ///
    /// # Errors
    /// If the archive cannot be unpacked, or the backup not be restored.
    pub fn unpack(&self, into: &Path) -> io::Result<()> {
        if self.name != lives::BACKUP {
            return self.unpack_as_it_is(into);
        }
        let kept = tempfile::tempdir()?;
        self.unpack_as_it_is(kept.path())?;
        let (from, to) = (Folder::new(kept.path()), Folder::new(into));
        backup::restore(&from, &to, false, &mut |_| {}).map_err(io::Error::other)?;
        Ok(())
    }

    /// Unpacks the archive into `into`.
    ///
    /// # Errors
    /// If it cannot be unpacked.
    pub fn unpack_as_it_is(&self, into: &Path) -> io::Result<()> {
        tar::Archive::new(GzDecoder::new(fs::File::open(self.archive())?)).unpack(into)
    }
}

/// Packs the folder `from`: the same files give the same archive.
///
/// # Errors
/// If a file cannot be read or the archive not be written.
pub fn pack(from: &Path, archive: &Path) -> io::Result<()> {
    let packed = GzEncoder::new(fs::File::create_new(archive)?, Compression::best());
    let mut builder = tar::Builder::new(packed);
    builder.mode(tar::HeaderMode::Deterministic);
    for path in files(from)? {
        builder.append_path_with_name(from.join(&path), &path)?;
    }
    builder.into_inner()?.finish()?.sync_all()
}

/// Paths of all files below a folder, in order.
///
/// # Errors
/// If a folder cannot be listed.
pub fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut queue) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() { queue.push(path) } else { found.push(path) }
        }
    }
    let mut found: Vec<PathBuf> = found
        .iter()
        .filter_map(|path| path.strip_prefix(folder).ok())
        .map(Path::to_owned)
        .collect();
    found.sort();
    Ok(found)
}

/// An engine on a data folder, at a moment, in the first start after a reboot.
///
/// # Errors
/// As [`omird::engine::Engine::open`].
pub fn open(data: &Path, clock: &Arc<TestClock>, settings: Settings) -> io::Result<Session> {
    Session::open_with(Arc::new(Folder::new(data)), clock, settings, Some(data.join("index")))
}

/// The names that are asked for: all that the lives ever gave, forgotten or not.
pub const NAMES: [&str; 30] = [
    "Entity/dock",
    "Entity/pot",
    "Entity/table",
    "Entity/visitor",
    "Episode/evening",
    "Episode/morning",
    "MemoryRecord/cup-1",
    "MemoryRecord/cup-2",
    "MemoryRecord/cup-3",
    "MemoryRecord/doorbell",
    "MemoryRecord/first",
    "MemoryRecord/outside",
    "MemoryRecord/parcel",
    "MemoryRecord/part",
    "MemoryRecord/plan",
    "MemoryRecord/theirs-1",
    "MemoryRecord/theirs-2",
    "MemoryRecord/theirs-3",
    "MemoryRecord/ticket",
    "MemoryRecord/undated",
    "MemoryRecord/unicode",
    "MemoryRecord/watch-0",
    "MemoryRecord/watch-1",
    "MemoryRecord/watch-2",
    "MemoryRecord/watch-3",
    "MemoryRecord/watch-4",
    "MemoryRecord/watch-5",
    "Relationship/beside",
    "Relationship/on",
    "Relationship/under",
];

fn reference(name: &str) -> Ref {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The recalls that are asked, by name.
fn questions() -> Vec<(&'static str, Query)> {
    let base = || Query { limit: Some(1000), touch: false, ..Query::default() };
    let text = |words: &str| Query { text: Some(words.into()), ..base() };
    let near = Some(Center::Space { x: 1.0, y: 1.0, z: 0.5 });
    let mut questions = vec![
        ("everything", Query { include_expired: true, include_intentions: true, ..base() }),
        ("forgotten too", Query { include_forgotten: true, ..base() }),
        ("words", text("kettle window")),
        ("words of one", text("straße 厨房")),
        ("a page", Query { offset: 3, limit: Some(4), ..text("corridor") }),
        ("near", Query { near, radius: Some(4.0), ..base() }),
        ("near, in odom", Query { near, frame: Some("odom".to_owned()), ..base() }),
        ("near, and words", Query { near, ..text("kettle charger") }),
        (
            "on the earth",
            Query { geo: omir_core::geo::GeoPoint::new(48.1, 11.5, None).ok(), ..base() },
        ),
        ("mentions", Query { entities: vec![reference("Entity/table")], ..base() }),
        ("important", Query { min_importance: Some(0.6), ..base() }),
        ("believed", Query { min_confidence: Some(0.5), ..base() }),
        ("held", Query { min_retrievability: Some(0.5), ..base() }),
    ];
    questions.push((
        "as of then",
        Query { as_of: Some(Timestamp::from_micros(THEN)), include_forgotten: true, ..base() },
    ));
    questions
}

/// Answers of an engine, one fact a line. Reasons for people are left out, and a number that was worked out
/// is rounded: arithmetic differs in the last digit from machine to machine.
///
/// # Panics
/// If the engine refuses an answer.
fn answers(engine: &Engine) -> String {
    let mut out = String::new();
    let status = engine.status("robot");
    for name in ["types", "tiers", "forgotten", "versions", "lost"] {
        let count = status.pointer(&format!("/counts/{name}")).unwrap_or(&Value::Null);
        line(&mut out, &format!("counts {name}"), &json::to_string(count));
    }
    for name in NAMES {
        let target = reference(name);
        let got = match engine.get(&target) {
            Ok(Some(bytes)) => json::to_string(&value(&bytes)),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.code.to_string(),
        };
        line(&mut out, &format!("get {name}"), &got);
        let explained = match engine.explain(&target) {
            Ok(explained) => json::to_string(&for_programs(explained)),
            Err(error) => error.code.to_string(),
        };
        line(&mut out, &format!("explain {name}"), &explained);
    }
    for (name, query) in questions() {
        let recalled = engine.recall(&query).unwrap_or_else(|error| panic!("{name}: {error}"));
        line(&mut out, &format!("recall {name}"), &recalled.total.to_string());
        for hit in &recalled.hits {
            let resource = value(&hit.resource);
            let member = |name: &str| resource.get(name).and_then(Value::as_str).unwrap_or("?");
            let mut fact = format!("{}/{}", member("resourceType"), member("id"));
            let _ = write!(fact, " {:.9} {:.9}", hit.score, hit.retrievability);
            if let Some(metres) = hit.distance {
                let _ = write!(fact, " {metres:.6} m");
            }
            if hit.forgotten {
                fact.push_str(" forgotten");
            }
            line(&mut out, &format!("recall {name}"), &fact);
        }
    }
    let export = engine.export(&Query::everything()).unwrap_or_else(|error| panic!("{error}"));
    line(&mut out, "export left out", &export.left_out().count.to_string());
    for entry in export.to_value().get("entry").and_then(Value::as_array).unwrap_or_default() {
        line(&mut out, "export", &json::to_string(entry));
    }
    out
}

/// The clock of a first start after a reboot, at `micros`, set.
pub fn clock_at(micros: i64) -> Arc<TestClock> {
    let clock = TestClock::new();
    clock.reboot(micros);
    clock.set(micros, true);
    clock
}

/// Findings of a first start on a folder: the moment of it, the files that are damaged, and the answers.
pub fn found(session: &Session, micros: i64) -> String {
    let mut text = format!("asked at: {}\n", Timestamp::from_micros(micros));
    for damage in session.damage() {
        text += &format!("damaged: {}\n", damage.file);
    }
    text + &answers(session)
}

/// The moment at which answers were given.
///
/// # Panics
/// If they do not tell.
pub fn asked_at(answers: &str) -> i64 {
    let asked = answers.lines().next().and_then(|line| line.strip_prefix("asked at: "));
    let asked: Timestamp = asked.and_then(|at| at.parse().ok()).expect("the answers tell when");
    asked.as_micros()
}

/// Compares answers line by line.
///
/// # Panics
/// If lines differ: it names all of them.
#[track_caller]
pub fn compare(what: &str, kept: &str, found: &str) {
    let lines = || kept.lines().zip(found.lines());
    let differ = |(number, (kept, found)): (usize, (&str, &str))| {
        (kept != found).then(|| format!("line {number}\n  kept:     {kept}\n  answered: {found}\n"))
    };
    let different: String = (1..).zip(lines()).filter_map(differ).collect();
    assert!(different.is_empty(), "{what}: {different}");
    assert_eq!(kept.lines().count(), found.lines().count(), "{what}: so many lines");
}

/// The answers to everything but how many versions there are: what came and went counts there.
pub fn but_counts(text: &str) -> String {
    let kept = |line: &&str| {
        !["counts ", "damaged: ", "recall forgotten too: "].iter().any(|of| line.starts_with(of))
    };
    text.lines().filter(kept).map(|line| format!("{line}\n")).collect()
}

fn line(out: &mut String, what: &str, fact: &str) {
    let _ = writeln!(out, "{what}: {fact}");
}

fn value(bytes: &[u8]) -> Value {
    cbor::from_slice(bytes, &Limits::default()).expect("what is handed out is CBOR")
}

/// An explanation without its texts for people, its fractions rounded.
fn for_programs(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(name, _)| *name != "reason");
            let mut plain = Map::new();
            for (name, value) in kept {
                plain.insert(name, for_programs(value.clone()));
            }
            Value::Object(plain)
        }
        Value::Number(number) if number.as_u64().is_none() => {
            format!("{:.9}", number.as_f64()).as_str().into()
        }
        other => other,
    }
}
