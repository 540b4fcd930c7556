//! An import meets what is stored: each line of the rule over a real Zenoh session, and one merging
//! transaction cut at every operation of the disk.
//!
//! Invariant 2 of ARCHITECTURE.md.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use omir_core::cbor;
use omir_core::confidence::{FeedbackOutcome, Weight};
use omird::engine::testing::ByHand;
use omird::engine::{Change, Effect, Encoding, Merged, Precedence, Query};
use omird_tests::check;
use omird_tests::cut_disk::{CutDisk, EVERYTHING, ONLY_SYNCED};
use omird_tests::process::{Answer, Client, Daemon, eventually};
use omird_tests::session::{Session, TestClock};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");

fn bundle(entries: impl IntoIterator<Item = Value>) -> Value {
    let entries: Vec<Value> = entries.into_iter().collect();
    json!({"resourceType": "Bundle", "omirVersion": "R1", "entry": entries})
}

/// A record; `more` adds members or replaces them.
fn record(id: &str, content: &str, more: Value) -> Value {
    let mut record = json!({
        "resourceType": "MemoryRecord", "id": id, "content": content,
        "createdAt": "2026-05-30T11:42:05Z",
    });
    for (name, value) in more.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}

fn entity(id: &str, name: &str, more: Value) -> Value {
    let mut entity = json!({
        "resourceType": "Entity", "id": id, "name": name, "createdAt": "2026-05-30T11:42:05Z",
    });
    for (name, value) in more.as_object().unwrap() {
        entity[name] = value.clone();
    }
    entity
}

/// `meta` of something last updated in that year.
fn updated(year: u32) -> Value {
    json!({"omirVersion": "R1", "lastUpdated": format!("{year}-01-01T00:00:00Z")})
}

struct Rig {
    client: Client,
    _daemon: Daemon,
    /// Kept so that the folder lives as long as the daemon.
    _data: tempfile::TempDir,
}

impl Rig {
    fn start(more: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let daemon = Daemon::start(PROGRAM, data.path(), "r1", more);
        let client = Client::connect(&daemon.endpoint);
        Self { client, _daemon: daemon, _data: data }
    }

    #[track_caller]
    fn remember(&self, value: &Value) {
        self.client.ask_json("omir/r1/remember", value).value();
    }

    fn import(&self, value: &Value) -> Answer {
        self.client.ask_json("omir/r1/remember?merge=true", value)
    }

    /// Outcome of the resources, and their versions.
    #[track_caller]
    fn merge(&self, value: &Value) -> Vec<(String, u64)> {
        outcomes(&self.import(value))
    }

    #[track_caller]
    fn get(&self, reference: &str) -> Value {
        self.client.one(&format!("omir/r1/memory/{reference}"), None).value().clone()
    }
}

#[track_caller]
fn outcomes(answer: &Answer) -> Vec<(String, u64)> {
    let stored = answer.value()["stored"].as_array().unwrap().iter();
    stored
        .map(|item| {
            let merged = item["merged"].as_str().unwrap().to_owned();
            (merged, item["version"].as_u64().unwrap())
        })
        .collect()
}

#[track_caller]
fn assert_merged(found: Vec<(String, u64)>, expected: &[(&str, u64)]) {
    let found: Vec<(&str, u64)> = found.iter().map(|(word, v)| (word.as_str(), *v)).collect();
    assert_eq!(found, expected);
}

#[test]
fn each_line_of_the_rule() {
    let rig = Rig::start(&[]);
    // Not there: added, with the version that is stated.
    let first = bundle([
        record("high", "from a file", json!({"version": 5})),
        record("plain", "from a file", json!({"version": 1})),
        entity("dated", "from a file", json!({"meta": updated(2020)})),
        record("dated", "from a file", json!({"meta": updated(2020)})),
    ]);
    assert_merged(rig.merge(&first), &[("added", 5), ("added", 1), ("added", 1), ("added", 1)]);
    // The same again.
    let same = [("unchanged", 5), ("unchanged", 1), ("unchanged", 1), ("unchanged", 1)];
    assert_merged(rig.merge(&first), &same);

    // The version decides first.
    let versions = bundle([
        record("high", "lower", json!({"version": 4, "meta": updated(2999)})),
        record("plain", "higher", json!({"version": 7})),
    ]);
    assert_merged(rig.merge(&versions), &[("kept", 5), ("updated", 7)]);
    assert_eq!(rig.get("MemoryRecord/high")["content"], "from a file");
    assert_eq!(rig.get("MemoryRecord/plain")["content"], "higher");
    // The dates decide if the file states no version.
    let plain = bundle([record("plain", "unstated", json!({"meta": updated(2020)}))]);
    assert_merged(rig.merge(&plain), &[("kept", 7)]);
    let plain = bundle([record("plain", "unstated", json!({"meta": updated(2999)}))]);
    assert_merged(rig.merge(&plain), &[("updated", 8)]);
    // A stored record without a number is the first version.
    let numbered = bundle([record("first", "stored", json!({"meta": updated(2999)}))]);
    assert_merged(rig.merge(&numbered), &[("added", 1)]);
    let numbered = bundle([record("first", "numbered", json!({"version": 9}))]);
    assert_merged(rig.merge(&numbered), &[("updated", 9)]);

    // Then the date of the last update.
    let earlier = bundle([
        entity("dated", "earlier", json!({"meta": updated(2019)})),
        record("dated", "earlier", json!({"meta": updated(2019)})),
    ]);
    assert_merged(rig.merge(&earlier), &[("kept", 1), ("kept", 1)]);
    let later = bundle([
        entity("dated", "later", json!({"meta": updated(2021)})),
        record("dated", "later", json!({"meta": updated(2021)})),
    ]);
    assert_merged(rig.merge(&later), &[("updated", 2), ("updated", 2)]);
    assert_eq!(rig.get("Entity/dated")["name"], "later");
    assert_eq!(rig.get("MemoryRecord/dated")["version"], 2);
    // The number the store gave it does not make the same file older than itself.
    assert_merged(rig.merge(&later), &[("unchanged", 2), ("unchanged", 2)]);

    // A stored resource without a date was updated when it was recorded; a file without one is not newer.
    rig.remember(&entity("robot", "said here", json!({})));
    let undated = bundle([entity("robot", "undated", json!({}))]);
    assert_merged(rig.merge(&undated), &[("kept", 1)]);
    let old = bundle([entity("robot", "old", json!({"meta": updated(2020)}))]);
    assert_merged(rig.merge(&old), &[("kept", 1)]);
    let future = bundle([entity("robot", "future", json!({"meta": updated(2999)}))]);
    assert_merged(rig.merge(&future), &[("updated", 2)]);

    // Whoever changes what came with a date and leaves the date standing has changed it now.
    let mut changed = rig.get("Entity/dated");
    changed["name"] = json!("changed here");
    rig.remember(&changed);
    let between = bundle([entity("dated", "between", json!({"meta": updated(2023)}))]);
    assert_merged(rig.merge(&between), &[("kept", 3)]);

    // A forgotten memory comes back, above its tombstone.
    rig.client.one("omir/r1/forget?ref=MemoryRecord/plain", None).value();
    let plain = bundle([record("plain", "back", json!({"version": 2}))]);
    assert_merged(rig.merge(&plain), &[("restored", 10)]);
    assert_eq!(rig.get("MemoryRecord/plain")["content"], "back");
    assert_merged(rig.merge(&plain), &[("unchanged", 10)]);
}

#[test]
fn overwriting_lets_the_file_win() {
    let rig = Rig::start(&[]);
    rig.remember(&json!([
        record("a", "here", json!({"version": 4})),
        entity("e", "here", json!({})),
        entity("same", "same", json!({})),
    ]));
    let file = bundle([
        record("a", "file", json!({})),
        entity("e", "file", json!({"meta": updated(2001)})),
        entity("same", "same", json!({})),
        record("b", "new", json!({})),
    ]);
    let answer = rig.client.ask_json("omir/r1/remember?merge=overwrite", &file);
    let expected = [("updated", 5), ("updated", 2), ("unchanged", 1), ("added", 1)];
    assert_merged(outcomes(&answer), &expected);
    assert_eq!(rig.get("MemoryRecord/a")["content"], "file");
    let answer = rig.client.ask_json("omir/r1/remember?merge=overwrite", &file);
    assert!(outcomes(&answer).iter().all(|(word, _)| word == "unchanged"), "{answer:?}");
}

#[test]
fn what_comes_from_elsewhere_is_not_completed() {
    let rig = Rig::start(&[]);
    let dock = json!({"resourceType": "Entity", "id": "dock", "name": "dock"});
    let near = json!({
        "resourceType": "Relationship", "id": "near", "relationType": "near",
        "from": {"ref": "Entity/dock"}, "to": {"ref": "Entity/dock"},
    });
    let file = bundle([dock.clone(), near.clone()]);
    assert_merged(rig.merge(&file), &[("added", 1), ("added", 1)]);
    assert_eq!(rig.get("Entity/dock"), dock);
    assert_eq!(rig.get("Relationship/near"), near);
    assert_merged(rig.merge(&file), &[("unchanged", 1), ("unchanged", 1)]);
    // A resource that a client stores here gets its creation date here.
    rig.remember(&json!({"resourceType": "Entity", "id": "door", "name": "door"}));
    let door = rig.get("Entity/door");
    assert!(door["createdAt"].is_string());
    let same = bundle([json!({"resourceType": "Entity", "id": "door", "name": "door"})]);
    assert_merged(rig.merge(&same), &[("unchanged", 1)]);
    assert_eq!(rig.get("Entity/door"), door);
}

#[test]
fn a_name_that_comes_twice_counts_once() {
    let rig = Rig::start(&[]);
    let file = bundle([
        record("v", "higher", json!({"version": 3})),
        entity("e", "first", json!({})),
        record("v", "lower", json!({"version": 2, "meta": updated(2999)})),
        entity("e", "other", json!({})),
    ]);
    assert_merged(rig.merge(&file), &[("added", 3), ("added", 1)]);
    assert_eq!(rig.get("MemoryRecord/v")["content"], "higher");
    // Of equal claims the greater bytes count, wherever they stand.
    let greater = ["first", "other"].map(|name| {
        let mut bytes = Vec::new();
        ciborium::into_writer(name, &mut bytes).unwrap();
        (bytes, name)
    });
    let [.., (_, greater)] = {
        let mut sorted = greater;
        sorted.sort();
        sorted
    };
    assert_eq!(rig.get("Entity/e")["name"], greater);
    let mut entries = file["entry"].as_array().unwrap().clone();
    entries.reverse();
    let reversed = rig.merge(&bundle(entries));
    assert_merged(reversed, &[("unchanged", 1), ("unchanged", 3)]);
    // Only a merge is so lenient.
    assert_eq!(rig.client.ask_json("omir/r1/remember", &file).code(), "INVALID_RESOURCE");
}

#[test]
fn accesses_are_no_difference_and_a_half_life_is() {
    let rig = Rig::start(&[]);
    let decay = json!({"halfLifeHours": 24.0, "lastAccess": "2026-05-30T12:00:00Z"});
    let file = bundle([record("faded", "kettle", json!({"decay": decay}))]);
    rig.merge(&file);
    let backup = rig.client.one("omir/r1/export", None).value().clone();
    for _ in 0..3 {
        rig.client.one("omir/r1/recall?q=kettle", None).value();
    }
    // They are counted by and by.
    eventually("three accesses are counted", || {
        rig.get("MemoryRecord/faded")["decay"]["accessCount"] == 3
    });
    let accessed = rig.get("MemoryRecord/faded");
    // Neither what was sent nor a backup from between knows of the accesses, and both are the same.
    assert_merged(rig.merge(&file), &[("unchanged", 1)]);
    assert_merged(rig.merge(&backup), &[("unchanged", 1)]);
    assert_eq!(rig.get("MemoryRecord/faded"), accessed);
    // A newer one without a word about fading fades on as before.
    let newer = bundle([record("faded", "a kettle", json!({"version": 2, "meta": updated(2990)}))]);
    assert_merged(rig.merge(&newer), &[("updated", 2)]);
    assert_eq!(rig.get("MemoryRecord/faded")["decay"], accessed["decay"]);
    // One that says otherwise is another content.
    let mut slower = rig.get("MemoryRecord/faded");
    slower["decay"]["halfLifeHours"] = json!(1000.0);
    assert_merged(rig.merge(&bundle([slower.clone()])), &[("kept", 2)]);
    slower["meta"] = updated(2999);
    assert_merged(rig.merge(&bundle([slower])), &[("updated", 3)]);
}

#[test]
fn a_backup_taken_back_changes_nothing_and_an_older_one_loses_nothing() {
    let rig = Rig::start(&[]);
    rig.remember(&json!([
        entity("dock", "dock", json!({})),
        record("seen", "the dock", json!({"entityRefs": [{"ref": "Entity/dock"}]})),
        record("gone", "to be forgotten", json!({})),
    ]));
    let monday = rig.client.one("omir/r1/export", None).value().clone();
    assert!(rig.merge(&monday).iter().all(|(word, _)| word == "unchanged"));
    rig.remember(&record("seen", "the dock, seen again", json!({})));
    rig.remember(&entity("dock", "the new dock", json!({})));
    rig.client.one("omir/r1/forget?ref=MemoryRecord/gone", None).value();
    let mut found = rig.merge(&monday);
    found.sort();
    assert_merged(found, &[("kept", 2), ("kept", 2), ("restored", 3)]);
    assert_eq!(rig.get("MemoryRecord/seen")["content"], "the dock, seen again");
    assert_eq!(rig.get("Entity/dock")["name"], "the new dock");
}

#[test]
fn one_bad_entry_and_nothing_is_in() {
    let rig = Rig::start(&[]);
    rig.remember(&entity("known", "known", json!({})));
    for (bad, path) in [
        (record("bad", "x", json!({"importance": 2})), "/entry/1/importance"),
        (
            record("bad", "x", json!({"entityRefs": [{"ref": "Entity/nobody"}]})),
            "/entry/1/entityRefs/0/ref",
        ),
    ] {
        let file = bundle([
            entity("before", "before", json!({})),
            bad,
            record("after", "after", json!({"entityRefs": [{"ref": "Entity/known"}]})),
        ]);
        let answer = rig.import(&file);
        assert_eq!((answer.code(), answer.path()), ("INVALID_RESOURCE", path));
        let all = rig.client.one("omir/r1/export", None).value()["entry"].clone();
        assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    }
    for parameter in ["merge=false", "merge=", "merge=newest"] {
        let selector = format!("omir/r1/remember?{parameter}");
        let answer = rig.client.ask_json(&selector, &bundle([entity("x", "x", json!({}))]));
        assert_eq!((answer.code(), answer.path()), ("INVALID_QUERY", "/merge"), "{parameter}");
    }
}

#[test]
fn an_import_has_bounds_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("omird.toml");
    let text =
        "[limits]\nmax_payload_bytes = 65536\nmax_resources = 10\nmax_import_bytes = 262144\n";
    std::fs::write(&config, text).unwrap();
    let rig = Rig::start(&["--config", config.to_str().unwrap()]);
    let many = |count: usize, length: usize| {
        bundle((0..count).map(|n| entity(&format!("e{n}"), &"x".repeat(length), json!({}))))
    };
    let status = rig.client.one("omir/r1/status", None).value()["import"].clone();
    assert_eq!((&status["maxBytes"], &status["maxResources"]), (&json!(262_144), &json!(40)));
    let large = many(40, 3000);
    let answer = rig.client.ask_json("omir/r1/remember", &large);
    assert_eq!(answer.code(), "TOO_LARGE");
    assert!(format!("{answer:?}").contains("limits.max_payload_bytes"), "{answer:?}");
    assert_eq!(rig.merge(&large).len(), 40);
    assert_eq!(rig.import(&many(41, 10)).code(), "TOO_LARGE");
    let answer = rig.import(&many(40, 8000));
    assert_eq!(answer.code(), "TOO_LARGE");
    assert!(format!("{answer:?}").contains("limits.max_import_bytes"), "{answer:?}");
    // The turn is given back, whatever the answer was.
    assert!(rig.merge(&large).iter().all(|(word, _)| word == "unchanged"));
}

/// A file that needs the bounds of an import, with references across all of it.
fn large() -> Value {
    let padding = "and so on ".repeat(100);
    bundle((0..5000).map(|n| {
        let parent = format!("m{}", (n + 1) % 5000);
        record(&format!("m{n}"), &format!("number {n} {padding}"), json!({"parentId": parent}))
    }))
}

#[test]
fn a_daemon_killed_during_an_import_has_all_of_it_or_nothing() {
    let data = tempfile::tempdir().unwrap();
    let mut payload = Vec::new();
    ciborium::into_writer(&large(), &mut payload).unwrap();
    assert!(payload.len() > 4 << 20, "larger than an ordinary request: {}", payload.len());
    let count = |client: &Client| {
        let status = client.one("omir/r1/status", None).value().clone();
        status["counts"]["types"]["MemoryRecord"].as_u64().unwrap()
    };
    let import = |client: Client, payload: Vec<u8>| {
        client.send("omir/r1/remember?merge=true", Some((payload, "application/cbor")))
    };
    // How long it takes where nobody pulls a plug, in a folder of its own.
    let scratch = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(PROGRAM, scratch.path(), "r1", &[]);
    let client = Client::connect(&daemon.endpoint);
    let began = Instant::now();
    assert_eq!(import(client, payload.clone()).len(), 1);
    let whole = began.elapsed();
    drop(daemon);

    for part in [0.1, 0.4, 0.6, 0.8, 0.95] {
        let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
        let (client, payload) = (Client::connect(&daemon.endpoint), payload.clone());
        let sender = std::thread::spawn(move || import(client, payload));
        std::thread::sleep(whole.mul_f64(part));
        daemon.kill();
        let was_acknowledged = sender.join().unwrap().iter().any(|a| matches!(a, Answer::Ok(..)));
        let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
        let found = count(&Client::connect(&daemon.endpoint));
        assert!(found == 0 || found == 5000, "killed at {part}: {found} of 5000");
        assert!(found == 5000 || !was_acknowledged, "killed at {part}: acknowledged and lost");
    }
    // Sent again, it completes: by then it is there or not, and either way there once.
    let daemon = Daemon::start(PROGRAM, data.path(), "r1", &[]);
    let words = outcomes(&import(Client::connect(&daemon.endpoint), payload)[0]);
    assert!(words.iter().all(|word| *word == words[0]), "all the same: {:?}", words[0]);
    assert_eq!(count(&Client::connect(&daemon.endpoint)), 5000);
}

fn prepared(session: &Session, value: &Value) -> Change {
    let bytes = serde_json::to_vec(value).unwrap();
    session.prepare(&bytes, Encoding::Json, None).expect("it is valid")
}

fn merging(session: &Session, value: &Value) -> Change {
    let bytes = serde_json::to_vec(value).unwrap();
    session.prepare_merge(&bytes, Encoding::Json, Precedence::Newer).expect("it is valid")
}

/// Everything a store holds, by name.
fn everything(session: &Session) -> BTreeMap<String, Vec<u8>> {
    let query = Query { touch: false, ..Query::everything() };
    let export = session.export(&query).expect("it is whole").to_value();
    check::conforms(&export).unwrap_or_else(|why| panic!("{why}"));
    let entries = export.get("entry").and_then(|entries| entries.as_array()).unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let bytes = cbor::to_vec(entry);
            (check::decode(&bytes).reference().to_string(), bytes)
        })
        .collect()
}

/// A store with a past: sealed, updated, forgotten.
fn past(disk: &CutDisk, clock: &Arc<TestClock>) {
    let session = Session::open(disk, clock).expect("it opens");
    let padding = "and so on ".repeat(100);
    for change in [
        json!([entity("dock", "dock", json!({})), entity("door", "door", json!({}))]),
        json!([record("a", &padding, json!({})), record("b", &padding, json!({"version": 4}))]),
        json!([record("b", "b again", json!({})), record("gone", &padding, json!({}))]),
    ] {
        clock.advance(Duration::from_secs(1));
        session.execute(prepared(&session, &change)).expect("the disk is good");
    }
    let gone = Change::Forget(vec!["MemoryRecord/gone".parse().unwrap()]);
    session.execute(gone).expect("the disk is good");
}

/// A file that has something of everything: new, newer, older, forgotten, the same.
fn file() -> Value {
    let padding = "or so ".repeat(80);
    let mut entries = vec![
        entity("dock", "dock", json!({})),
        entity("door", "a newer door", json!({"meta": updated(2999)})),
        record("a", "newer", json!({"version": 3, "parentId": "m0", "meta": updated(2999)})),
        record("b", "older", json!({"version": 2})),
        record("gone", "is back", json!({"entityRefs": [{"ref": "Entity/new"}]})),
        entity("new", "new", json!({})),
    ];
    entries
        .extend((0..20).map(|n| record(&format!("m{n}"), &padding, json!({"parentId": "gone"}))));
    bundle(entries)
}

#[test]
fn a_merge_cut_at_any_operation_is_whole_or_not_there() {
    let clock = TestClock::new();
    let disk = CutDisk::new();
    past(&disk, &clock);
    let before = everything(&Session::open(&disk.survivors(EVERYTHING), &clock).unwrap());
    let after = {
        let session = Session::open(&disk.survivors(EVERYTHING), &clock).unwrap();
        let receipt = session.execute(merging(&session, &file())).expect("the disk is good");
        let Effect::Remembered(stored) = receipt.effect else { panic!("{:?}", receipt.effect) };
        let words: Vec<Merged> = stored.iter().take(6).filter_map(|one| one.merged).collect();
        use Merged::{Added, Kept, Restored, Unchanged, Updated};
        assert_eq!(words, [Unchanged, Updated, Updated, Kept, Restored, Added]);
        everything(&session)
    };
    assert_ne!(before, after);
    let mut outcomes = [0u32; 2];
    for cut in 0.. {
        let card = disk.survivors(EVERYTHING);
        card.cut_at(cut);
        let acknowledged = Session::open(&card, &clock)
            .is_ok_and(|session| session.execute(merging(&session, &file())).is_ok());
        let is_whole = !card.is_off();
        for seed in [ONLY_SYNCED, EVERYTHING, 2 * cut + 2, 2 * cut + 3] {
            let session = Session::open(&card.survivors(seed), &clock).expect("it opens");
            assert!(session.damage().is_empty(), "cut at {cut}: {:?}", session.damage());
            let found = everything(&session);
            assert!(found == before || found == after, "cut at {cut}, survivors {seed}");
            assert!(found == after || !acknowledged, "cut at {cut}: acknowledged and lost");
            outcomes[usize::from(found == after)] += 1;
        }
        if is_whole {
            break;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 8), "both ends were seen: {outcomes:?}");
}

#[test]
fn the_order_of_two_imports_does_not_matter() {
    let one = bundle([
        record("a", "one", json!({"version": 2})),
        record("b", "one", json!({"meta": updated(2021)})),
        entity("e", "one", json!({"meta": updated(2021)})),
        entity("only-one", "one", json!({})),
    ]);
    let other = bundle([
        record("a", "other", json!({"version": 3})),
        record("b", "other", json!({"meta": updated(2020)})),
        entity("e", "other", json!({"meta": updated(2022)})),
        entity("only-other", "other", json!({})),
    ]);
    let contents = |files: [&Value; 2]| {
        let (disk, clock) = (CutDisk::new(), TestClock::new());
        let session = Session::open(&disk, &clock).expect("it opens");
        for file in files {
            clock.advance(Duration::from_secs(1));
            session.execute(merging(&session, file)).expect("the disk is good");
        }
        let names = ["MemoryRecord/a", "MemoryRecord/b", "Entity/e", "Entity/only-one"];
        names.map(|name| {
            let bytes = session.get(&name.parse().unwrap()).unwrap().expect("it is there");
            let mut value: Value = ciborium::from_reader(&bytes[..]).expect("CBOR");
            value.as_object_mut().unwrap().remove("version");
            value
        })
    };
    assert_eq!(contents([&one, &other]), contents([&other, &one]));
}

/// The content of the record `m` after these files, with something done here after the first.
fn after_files(files: &[Value], between: impl Fn(&Session)) -> (Vec<Merged>, String) {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let mut words = Vec::new();
    for (index, file) in files.iter().enumerate() {
        clock.advance(Duration::from_secs(3600));
        let receipt = session.execute(merging(&session, file)).expect("the disk is good");
        let Effect::Remembered(stored) = receipt.effect else { panic!("{:?}", receipt.effect) };
        words.extend(stored[0].merged);
        if index == 0 {
            clock.advance(Duration::from_secs(3600));
            between(&session);
        }
    }
    let bytes = session.get(&"MemoryRecord/m".parse().unwrap()).unwrap().expect("it is there");
    let value: Value = ciborium::from_reader(&bytes[..]).expect("CBOR");
    (words, value["content"].as_str().expect("a text").to_owned())
}

fn of_year(year: u32) -> Value {
    bundle([record("m", &format!("of {year}"), json!({"meta": updated(year)}))])
}

#[test]
fn files_without_versions_may_come_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let files = order.map(|n| of_year(2020 + n));
        let (words, content) = after_files(&files, |_| {});
        assert_eq!(content, "of 2022", "{order:?}: {words:?}");
    }
}

#[test]
fn what_was_done_here_between_two_files_counts_by_its_date() {
    let target = || "MemoryRecord/m".parse().unwrap();
    let anchor = |session: &Session| {
        session.execute(Change::Anchor(target(), true)).expect("the disk is good");
    };
    let feedback = |session: &Session| {
        let weight = Weight::default();
        let change = Change::Feedback(target(), FeedbackOutcome::Confirmed, weight);
        session.execute(change).expect("the disk is good");
    };
    // The store's clock stands in 2026.
    for (year, merged) in [(2024, Merged::Kept), (2999, Merged::Updated)] {
        let files = [of_year(2020), of_year(year)];
        for (words, _) in [after_files(&files, anchor), after_files(&files, feedback)] {
            assert_eq!(words, [Merged::Added, merged], "{year}");
        }
    }
}

#[test]
fn what_was_forgotten_and_restored_gives_way_to_a_newer_file() {
    let forget = |session: &Session| {
        let change = Change::Forget(vec!["MemoryRecord/m".parse().unwrap()]);
        session.execute(change).expect("the disk is good");
    };
    let files = [of_year(2020), of_year(2020), of_year(2021)];
    let (words, content) = after_files(&files, forget);
    assert_eq!(words, [Merged::Added, Merged::Restored, Merged::Updated]);
    assert_eq!(content, "of 2021");
}

#[test]
fn a_merge_sees_what_was_asked_just_before_it() {
    let (disk, clock) = (CutDisk::new(), TestClock::new());
    let session = Session::open(&disk, &clock).expect("it opens");
    let (sender, receiver) = std::sync::mpsc::channel();
    // All of them wait for the same sync, and each depends on the one before.
    let changes = [
        prepared(&session, &entity("dock", "dock", json!({"meta": updated(2020)}))),
        merging(&session, &entity("dock", "newer", json!({"meta": updated(2021)}))),
        Change::Forget(vec!["Entity/dock".parse().unwrap()]),
        merging(&session, &entity("dock", "back", json!({"meta": updated(2019)}))),
    ];
    for change in changes {
        let sender = sender.clone();
        let reply = Box::new(move |result: Result<_, _>| {
            let _ = sender.send(result);
        });
        session.submit(change, 0, reply);
    }
    drop(sender);
    let effects: Vec<Effect> =
        receiver.iter().map(|result| result.expect("the disk is good").effect).collect();
    let merged = |effect: &Effect| match effect {
        Effect::Remembered(stored) => (stored[0].merged, stored[0].version),
        other => panic!("{other:?}"),
    };
    assert_eq!(merged(&effects[1]), (Some(Merged::Updated), 2));
    assert_eq!(effects[2], Effect::Forgotten(1));
    assert_eq!(merged(&effects[3]), (Some(Merged::Restored), 4));
}
