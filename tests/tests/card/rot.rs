//! Bytes rot on the card after they were synced. The store never panics, never gives out a value
//! that was never stored, says what it lost, and still serves everything in the other files.
//!
//! Invariant 10 of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use omir_core::json;
use omir_core::model::Resource;
use omir_core::reference::Ref;
use omir_core::value::Value;
use omird::disk::Disk;
use omird::engine::testing::ByHand;
use omird::engine::{Code, CompactionScope, FlashSettings, Query, Settings, Task};
use omird::store::RefKey;
use omird::store::format::{segment, wal};
use omird::store::{Op, Transaction};
use omird_tests::Result;
use omird_tests::check::{conforms, decode};
use omird_tests::cut_disk::{BLOCK, CutDisk, EVERYTHING, Failing, ONLY_SYNCED};
use omird_tests::journal::{Journal, change};
use omird_tests::life::{self, Step};
use omird_tests::model::{Model, Request, without_decay};
use omird_tests::process::eventually;
use omird_tests::random::{Random, seeds};
use omird_tests::session::{Session, TestClock, settings};

/// A card with several segments and a log, and all that was ever stored on it.
struct Past {
    disk: CutDisk,
    clock: Arc<TestClock>,
    model: Model,
    /// Every version of every reference.
    history: BTreeMap<Ref, Vec<Resource>>,
    /// Files that say anything about a reference.
    files: BTreeMap<Ref, BTreeSet<String>>,
}

fn past() -> Past {
    let (disk, clock, mut journal) = (CutDisk::new(), TestClock::new(), Journal::default());
    let mut history: BTreeMap<Ref, Vec<Resource>> = BTreeMap::new();
    let mut session = Session::open(&disk, &clock).expect("it opens");
    let mut steps = life::scripted();
    for n in 0..6 {
        let words = format!("late {n} ").repeat(20);
        let late = life::record(&format!("late-{n}"), &words, &["dock"], None);
        steps.push(Step::Ask(Request::Remember(vec![late])));
    }
    for step in &steps {
        clock.advance(Duration::from_secs(1));
        match step {
            Step::Ask(request) => journal.request(&session, request).expect("the disk is good"),
            Step::Restart => {
                drop(session);
                session = Session::open(&disk, &clock).expect("it opens");
            }
            Step::Recall(_) | Step::Compact(_) | Step::Sweep(_) => {}
        }
        for (target, _, resource) in journal.acknowledged.live() {
            let versions = history.entry(target.clone()).or_default();
            let resource = without_references(resource);
            if versions.last() != Some(&resource) {
                versions.push(resource);
            }
        }
    }
    // Wait until whole logs are sealed, then pull the plug: a log with frames stays behind.
    eventually("whole logs are sealed", || {
        let status = session.status("robot");
        status.pointer("/disk/unsealedLogs").and_then(Value::as_u64) == Some(0)
            && disk.paths().iter().filter(|path| path.ends_with(".wal")).count() == 1
    });
    let kept = disk.survivors(EVERYTHING);
    disk.cut();
    drop(session);
    let names = history.keys().map(|target| (RefKey::of(target), target.clone())).collect();
    let files = files(&kept, &names);
    Past { disk: kept, clock, model: journal.acknowledged, history, files }
}

impl Past {
    /// Without what would mend its segments, and without the index, which answers in their place: a start reads them.
    fn without_sidecars(self) -> Self {
        // All of it is synced but the index.
        let disk = self.disk.survivors(ONLY_SYNCED);
        let this = Self { disk, ..self };
        for path in this.disk.paths().iter().filter(|path| path.ends_with(".par")) {
            this.disk.remove(path).expect("the disk is good");
        }
        this.disk.sync_dir(segment::DIR).expect("the disk is good");
        this
    }
}

/// Versions that sealing may drop do not count here.
fn without_references(resource: &Resource) -> Resource {
    let mut resource = without_decay(resource);
    resource.retain_references(|_| false);
    resource
}

fn files(disk: &CutDisk, names: &HashMap<RefKey, Ref>) -> BTreeMap<Ref, BTreeSet<String>> {
    let mut files: BTreeMap<Ref, BTreeSet<String>> = BTreeMap::new();
    for path in disk.paths() {
        let bytes = disk.bytes(&path);
        let mut note = |target: Ref| files.entry(target).or_default().insert(path.clone());
        if path.ends_with(".omirb") {
            let layout = segment::layout(&bytes).unwrap_or_else(|why| panic!("{path}: {why}"));
            for (_, range) in layout.entries.iter().chain(&layout.superseded) {
                note(decode(&bytes[range.clone()]).reference());
            }
            for tombstone in layout.manifest.forgotten {
                note(names[&tombstone.key()].clone());
            }
        } else if let Some(number) = path.strip_prefix("wal/").and_then(wal::number_of) {
            for frame in wal::read(&bytes, number).expect("the log is good").frames {
                for op in Transaction::decode(frame.payload).expect("it is good").0.ops {
                    match op {
                        Op::Put { resource, .. } => note(decode(&resource).reference()),
                        Op::Forget { target, .. } => note(target),
                        Op::Touch(_) | Op::Boot { .. } | Op::Mark(_) => continue,
                    };
                }
            }
        }
    }
    files
}

/// Start of the last frame of a log: damage that reaches it may look like a torn end, as
/// nothing written later tells that it had been durable.
fn last_frame(disk: &CutDisk, path: &str) -> Option<usize> {
    let number = wal::number_of(path.strip_prefix("wal/")?)?;
    let bytes = disk.bytes(path);
    let contents = wal::read(&bytes, number).expect("the log is good");
    Some(contents.frames.last()?.at - wal::FRAME_HEADER)
}

/// Damages a file as the seed says; gives the first and the last byte that changed.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> Option<(usize, usize)> {
    let before = bytes.clone();
    let at = random.below(bytes.len());
    match random.below(6) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => {
            for _ in 0..8 {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
        3 => {
            let page = at / 512 * 512;
            let end = (page + 512).min(bytes.len());
            bytes[page..end].fill(0);
        }
        4 => {
            let end = (at + 64).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = random.bits() as u8);
        }
        _ => bytes.truncate(at),
    }
    let len = bytes.len();
    if len < before.len() {
        return Some((len, before.len()));
    }
    let first = (0..len).find(|&at| bytes[at] != before[at])?;
    let last = (0..len).rfind(|&at| bytes[at] != before[at])?;
    Some((first, last))
}

/// Rules that a damaged store must still follow.
fn check(past: &Past, card: &CutDisk, path: &str, is_excused: bool) -> Result {
    let session = Session::open(card, &past.clock).map_err(|error| format!("no start: {error}"))?;
    let mut is_different = false;
    for (target, versions) in &past.history {
        let found = session.get(target);
        let expected = past.model.memories[target].resource.as_ref().map(without_references);
        let is_elsewhere = !past.files[target].contains(path);
        match &found {
            Ok(Some(bytes)) => {
                let found = without_references(&decode(bytes));
                if !versions.contains(&found) {
                    return Err(format!("{target} never was {found:?}").into());
                }
                is_different |= Some(&found) != expected.as_ref();
                if is_elsewhere && Some(&found) != expected.as_ref() {
                    return Err(format!("{target} lies elsewhere and is {found:?}").into());
                }
            }
            Ok(None) => {
                is_different |= expected.is_some();
                if is_elsewhere && expected.is_some() {
                    return Err(format!("{target} lies elsewhere and is gone").into());
                }
            }
            Err(error) => {
                is_different = true;
                if is_elsewhere {
                    return Err(format!("{target} lies elsewhere: {error}").into());
                }
            }
        }
    }
    let status = session.status("robot");
    let count = |name: &str| status.pointer(name).and_then(Value::as_u64).unwrap_or(0);
    let is_reported = count("/disk/damagedFiles") > 0 || count("/unreadable") > 0;
    if is_different && !is_reported && !is_excused {
        return Err("something is lost and nobody says so".into());
    }
    // A file may be told of twice, and by the name that it has since it was set aside.
    let files: BTreeSet<&str> = session
        .damage()
        .iter()
        .map(|damage| damage.file.strip_suffix(".damaged").unwrap_or(&damage.file))
        .collect();
    if files.len() as u64 != count("/disk/damagedFiles") {
        let (disk, damage) = (status.pointer("/disk"), session.damage());
        return Err(format!("status and damage disagree: {disk:?} {damage:?}").into());
    }
    if let Some(first) = session.damage().first() {
        let text = |name: &str| status.pointer(name).and_then(Value::as_str).unwrap_or_default();
        if (text("/disk/state"), text("/disk/hint").is_empty()) != ("damaged", false) {
            return Err(format!(
                "{} is damaged, and status says {:?}",
                first.file,
                status.get("disk")
            )
            .into());
        }
    }
    // It lives on: what comes in now is kept.
    let late = life::entity("after-the-damage", "After the damage");
    let request = Request::Remember(vec![late.clone()]);
    let change = change(&session, &request).map_err(|e| e.to_string())?;
    session.execute(change).map_err(|error| format!("nothing new is taken: {error}"))?;
    drop(session);
    let session = Session::open(card, &past.clock).map_err(|error| format!("no start: {error}"))?;
    match session.get(&late.reference()) {
        Ok(Some(bytes)) if decode(&bytes) == late => Ok(()),
        other => Err(format!("what was stored after the damage is {other:?}").into()),
    }
}

/// Logs wait for weeks before they are sealed, and what is sealed is dropped.
#[test]
fn a_log_that_rots_while_it_waits_is_set_aside_and_what_is_left_of_it_is_sealed() {
    // Two bytes of the first memory, two of the last, whose frame no later one vouches for, the header
    // and all behind it, and the end. A single bit would be turned back.
    for damage in 0..4 {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let day = Duration::from_secs(86_400);
        let weeks = 28 * day;
        let patient = Settings {
            seal_after: weeks,
            purge_after: weeks,
            segment_bytes: 1 << 20,
            ..settings()
        };
        let open = |disk: &CutDisk| {
            Session::open_with(Arc::new(disk.clone()), &clock, patient.clone(), None)
                .expect("it opens")
        };
        let put = |session: &Session, id: &str| {
            let request = Request::Remember(vec![life::entity(id, &format!("the {id}"))]);
            session.execute(change(session, &request).expect("valid")).expect("a good disk");
        };
        let session = open(&disk);
        ["first", "middle", "last"].iter().for_each(|id| put(&session, id));
        let logs =
            || disk.paths().into_iter().filter(|path| path.ends_with(".wal")).collect::<Vec<_>>();
        let waiting = logs().remove(0);
        clock.advance(8 * day);
        session.run_task(Task::Seal).expect("it runs");
        put(&session, "newest");
        assert_eq!(logs().len(), 2, "a week old, it is written on no more");
        let bytes = disk.bytes(&waiting);
        let at = |word: &str| {
            let place = bytes.windows(word.len()).position(|bytes| bytes == word.as_bytes());
            place.expect("it is in the log")
        };
        let (first, last) = (at("the first"), at("the last"));
        disk.rot(&waiting, |bytes| match damage {
            0 => bytes[first..first + 2].iter_mut().for_each(|byte| *byte ^= 1),
            1 => bytes[last..last + 2].iter_mut().for_each(|byte| *byte ^= 1),
            2 => bytes.fill(0),
            _ => bytes.truncate(last),
        });
        session.seal_now(Duration::from_secs(60)).expect("what is left is sealed");
        let paths = disk.paths();
        assert!(paths.contains(&format!("{waiting}.damaged")), "{damage}: {paths:?}");
        let damaged = session.status("robot").pointer("/disk/damagedFiles").cloned();
        assert_eq!(damaged, Some(Value::from(1u64)), "{damage}");
        let served = |session: &Session| -> Vec<&str> {
            let is_served = |id: &&str| {
                let target = format!("Entity/{id}").parse().expect("a reference");
                matches!(session.get(&target), Ok(Some(_)))
            };
            ["first", "middle", "last", "newest"].into_iter().filter(is_served).collect()
        };
        let expected: &[&str] = match damage {
            0 => &["middle", "last", "newest"],
            1 | 3 => &["first", "middle", "newest"],
            _ => &["newest"],
        };
        assert_eq!(served(&session), expected, "{damage}");
        drop(session);
        assert_eq!(served(&open(&disk)), expected, "{damage}, at the next start");
    }
}

#[test]
fn rotten_bytes_are_never_taken_for_memories() {
    let past = past();
    let paths = past.disk.paths();
    let logs = paths.iter().filter(|path| path.ends_with(".wal")).count();
    assert!(paths.len() > 8 && logs == 1, "segments, signatures and a log: {paths:?}");
    for seed in seeds("OMIRD_SEED", 0..400) {
        let mut random = Random::new(seed);
        // Logs are few and hold the most: they get their share.
        let path = match random.chance(35) {
            true => paths.last().expect("there are files"),
            false => random.pick(&paths),
        };
        let card = past.disk.survivors(EVERYTHING);
        let mut changed = None;
        card.rot(path, |bytes| changed = damage(bytes, &mut random));
        let is_excused = changed.zip(last_frame(&past.disk, path)).is_some_and(|(c, f)| c.1 >= f);
        check(&past, &card, path, is_excused).unwrap_or_else(|why| {
            panic!("OMIRD_SEED={seed}: {path}, bytes {changed:?} damaged: {why}")
        });
    }
}

#[test]
fn a_rotten_manifest_is_not_believed() {
    let past = past().without_sidecars();
    let is_segment = |path: &String| path.ends_with(".omirb");
    for path in past.disk.paths().into_iter().filter(is_segment) {
        let bytes = past.disk.bytes(&path);
        let layout = segment::layout(&bytes).unwrap_or_else(|why| panic!("{path}: {why}"));
        let others = layout.entries.iter().map(|(_, range)| range).chain(&layout.copies);
        let manifest = others.map(|range| range.end).max().unwrap_or(0);
        // Keys of tombstones, which stand for forgotten names, each turned into that of another name.
        for tombstone in &layout.manifest.forgotten {
            let name = tombstone.key().to_hex();
            let needle = name.as_bytes();
            for at in manifest..bytes.len() - needle.len() {
                if &bytes[at..at + needle.len()] == needle {
                    let rotten = past.disk.survivors(EVERYTHING);
                    rotten.rot(&path, |bytes| bytes[at + needle.len() - 1] ^= 1);
                    let card = rotten.survivors(EVERYTHING);
                    check(&past, &card, &path, false).unwrap_or_else(|why| {
                        panic!("{path}: {name} misspelt at byte {at}: {why}")
                    });
                    let session = Session::open(&rotten, &past.clock).expect("it opens");
                    let is_believed = session.damage().iter().all(|d| d.message.contains("served"));
                    assert!(!is_believed, "{path}: {name}: {:?}", session.damage());
                }
            }
        }
    }
}

#[test]
fn a_segment_under_the_name_of_another_is_used_once() {
    let past = past().without_sidecars();
    let is_segment = |path: &String| path.ends_with(".omirb");
    let segments: Vec<String> = past.disk.paths().into_iter().filter(is_segment).collect();
    let standing = |session: &Session| {
        let mut all = BTreeMap::new();
        session.each(None, |bytes| {
            let resource = without_references(&decode(&bytes));
            // The last version of an edge may have been in the segment that is lost.
            if !matches!(resource, Resource::Relationship(_)) {
                all.insert(resource.reference(), resource);
            }
        });
        all
    };
    for (at, target) in segments.iter().enumerate() {
        let source = &segments[(at + 1) % segments.len()];
        let card = past.disk.survivors(EVERYTHING);
        card.rot(target, |bytes| *bytes = past.disk.bytes(source));
        let session = Session::open(&card, &past.clock).expect("it opens");
        assert!(!session.damage().is_empty(), "{source} as {target}");
        let before = standing(&session);
        let _ = session.compact(CompactionScope::All);
        drop(session);
        let session = Session::open(&card, &past.clock).expect("it opens");
        assert_eq!(standing(&session), before, "{source} as {target}");
    }
}

#[test]
fn a_file_that_cannot_be_read_costs_only_itself() {
    let past = past();
    for path in past.disk.paths() {
        let card = past.disk.survivors(EVERYTHING);
        card.make_unreadable(&path);
        check(&past, &card, &path, false).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
}

#[test]
fn bytes_that_rot_under_a_running_engine_are_refused() {
    let past = past();
    for seed in seeds("OMIRD_SEED", 0..40) {
        let mut random = Random::new(seed);
        let card = past.disk.survivors(EVERYTHING);
        let session = Session::open(&card, &past.clock).expect("it opens");
        let path = random.pick(&card.paths()).clone();
        card.rot(&path, |bytes| {
            for _ in 0..20 {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        });
        for (target, versions) in &past.history {
            if let Ok(Some(bytes)) = session.get(target) {
                let found = without_references(&decode(&bytes));
                assert!(versions.contains(&found), "OMIRD_SEED={seed}: {target} is {found:?}");
            }
        }
    }
}

#[test]
fn the_end_of_an_older_log_is_missed() {
    // Two logs, as after a stop in which sealing failed: the second says how far the first went.
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let flash = FlashSettings { reserve_bytes: 0, ..FlashSettings::default() };
    let settings = Settings { flash, ..settings() };
    let session = Session::open_with(Arc::new(disk.clone()), &clock, settings, None);
    let session = session.expect("it opens");
    let mut journal = Journal::default();
    for n in 0..3 {
        let entity = life::entity(&format!("e{n}"), "Something");
        let request = Request::Remember(vec![entity]);
        journal.request(&session, &request).expect("the disk is good");
    }
    // A failing sync begins a new log; without room and reserve the old one is not sealed.
    disk.fail(Failing::Syncs, 0, 1);
    disk.set_capacity(Some(disk.used() + 20 * BLOCK));
    let refused = Request::Remember(vec![life::entity("refused", "Refused")]);
    journal.request(&session, &refused).expect_err("the sync fails");
    disk.cut();
    drop(session);
    let card = disk.survivors(EVERYTHING);
    assert!(card.paths().contains(&wal::path(2)), "{:?}", card.paths());
    let last = last_frame(&card, &wal::path(1)).expect("it has frames");
    card.rot(&wal::path(1), |bytes| bytes.truncate(last));
    let session = Session::open(&card, &clock).expect("it opens");
    let is_reported = session.damage().iter().any(|damage| damage.file == wal::path(1));
    assert!(is_reported, "{:?} of {:?}", session.damage(), card.paths());
    session.seal_now(Duration::from_secs(60)).expect("the disk is good");
    assert!(card.paths().contains(&format!("{}.damaged", wal::path(1))), "{:?}", card.paths());
}

#[test]
fn one_rotten_memory_costs_an_export_and_a_recall_only_itself() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let all = vec![
        life::entity("desk", "A desk"),
        life::entity("lamp", "A rotten lamp"),
        life::edge("stands", "lamp", "desk", None),
        life::record("seen", "a lamp on a desk", &["desk", "lamp"], None),
        life::record("plain", "nothing special", &[], None),
    ];
    let change = change(&session, &Request::Remember(all)).expect("it is valid");
    session.execute(change).expect("the disk is good");
    let needle = b"rotten";
    disk.rot(&wal::path(1), |bytes| {
        let at = bytes.windows(needle.len()).position(|window| window == needle);
        // Two bits: a single one would be turned back.
        bytes[at.expect("it is in the log")] ^= 3;
    });

    let export = session.export(&Query::everything()).expect("the others can be read");
    let left_out = export.left_out();
    assert_eq!((left_out.count, left_out.first.len()), (1, 1), "{left_out:?}");
    assert!(left_out.first[0].contains("checksum"), "{left_out:?}");
    let bundle = export.to_value();
    conforms(&bundle).expect("it validates alone");
    let entries = bundle.get("entry").and_then(Value::as_array).expect("entries");
    let names = entries.iter().filter_map(|entry| entry.get("id")?.as_str());
    // A relationship to the lost Entity cannot be without it; a memory that mentions it can.
    assert_eq!(names.collect::<BTreeSet<_>>(), BTreeSet::from(["desk", "plain", "seen"]));
    // One by one it is the same.
    let selection = session.select(&Query::everything(), None, || true).expect("it is selected");
    let one_by_one = (0..selection.len()).map(|at| session.selected(&selection, at));
    let (read, unread): (Vec<_>, Vec<_>) = one_by_one.partition(Result::is_ok);
    assert_eq!(unread.len(), 1);
    let read: Vec<Value> = read.into_iter().filter_map(|one| one.ok().flatten()).collect();
    let texts = |all: &[Value]| all.iter().map(json::to_string).collect::<BTreeSet<_>>();
    assert_eq!(texts(&read), texts(entries));
    let recall = session.recall(&Query { touch: false, ..Query::default() }).expect("it answers");
    assert_eq!((recall.hits.len(), recall.total, recall.unreadable), (4, 5, 1));
    let in_json = recall.to_value().expect("it is read");
    let in_cbor = omir_core::cbor::from_slice(&recall.to_cbor(), &Default::default());
    for reply in [in_json, in_cbor.expect("it is CBOR")] {
        assert_eq!(reply.get("unreadable").and_then(Value::as_u64), Some(1));
    }

    // An export fails, and reports no damage, if nothing can be read at all.
    disk.rot(&wal::path(1), |bytes| bytes.iter_mut().skip(64).for_each(|byte| *byte ^= 1));
    let error = session.export(&Query::everything()).expect_err("there is nothing to give");
    assert_eq!(error.code, Code::Internal, "{error}");
}
