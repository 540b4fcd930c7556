//! The lives whose data folders are kept: what the newest set was written by. Everything is fixed: clock, key, ids,
//! requests and their order. So a build that writes another folder for the same life writes another format.
//!
//! These lives stand alone, apart from those of other tests, which change as those need it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use omir_core::confidence::{FeedbackOutcome, Weight};
use omir_core::instant::Timestamp;
use omir_core::value::Value;
use omird::disk::Folder;
use omird::engine::testing::ByHand;
use omird::engine::{
    Change, CompactionScope, Encoding, FlashSettings, Forgetting, MAX_PIECE, Precedence, Query,
    Settings, Task,
};
use omird::store::format::{segment, wal};
use omird::store::{backup, device_key};

use super::{akashik, open, protocols};
use crate::folder::copy;
use crate::session::{Session, TestClock};

/// Lives a life in a data folder. The clock stands at its end afterwards.
pub type Life = fn(&Path, &Arc<TestClock>) -> io::Result<()>;

/// The name of the life that ends as a backup.
pub const BACKUP: &str = "backup";

/// The name of the life with a kept index. How much an index took is counted in the segments that come later, so its
/// files are those of the format of the index too.
pub const INDEXED: &str = "indexed";

/// All lives, by name.
pub const ALL: [(&str, Life); 10] = [
    ("log", log),
    ("segments", segments),
    (INDEXED, indexed),
    ("compacted", compacted),
    ("producers", producers),
    ("clock", clock_unset),
    ("damaged", damaged),
    (BACKUP, backed_up),
    (protocols::NAME, protocols::life),
    (akashik::NAME, akashik::life),
];

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// The device key of every life.
pub const SECRET: [u8; 32] = [7; 32];

/// Settings of every life, and of every golden folder that is opened. Nothing happens by itself.
pub fn settings() -> Settings {
    let long = Duration::from_secs(1000 * 86_400);
    Settings {
        segment_bytes: 1 << 20,
        segment_max_bytes: 1 << 20,
        seal_after: long,
        purge_after: long,
        keep_history: 2 * HOUR,
        index_from_bytes: 0,
        touch_interval: long,
        mark_interval: long,
        scrub_every: None,
        flash: FlashSettings { reserve_bytes: 0, ..FlashSettings::default() },
        forgetting: Forgetting { sweep_interval: None, ..Forgetting::default() },
        ..Settings::default()
    }
}

/// A robot that lives in a data folder.
pub(super) struct Robot {
    data: PathBuf,
    clock: Arc<TestClock>,
    session: Option<Session>,
    keeps_index: bool,
}

impl Robot {
    pub(super) fn new(data: &Path, clock: &Arc<TestClock>, keeps_index: bool) -> io::Result<Self> {
        device_key(data, || SECRET)?;
        let (data, clock) = (data.to_owned(), clock.clone());
        let mut robot = Self { data, clock, session: None, keeps_index };
        robot.start()?;
        Ok(robot)
    }

    /// Starts the daemon.
    fn start(&mut self) -> io::Result<()> {
        let mut settings = settings();
        if !self.keeps_index {
            settings.index_from_bytes = u64::MAX;
        }
        self.session = Some(open(&self.data, &self.clock, settings)?);
        // The records of a start are a group of their own.
        self.wait();
        Ok(())
    }

    pub(super) fn session(&self) -> &Session {
        self.session.as_ref().expect("the daemon runs")
    }

    /// Stops the daemon cleanly, and starts it.
    fn restart(&mut self) -> io::Result<()> {
        self.session = None;
        self.clock.advance(MINUTE);
        self.start()
    }

    /// The data folder as it is now, with the daemon running, in the place of what a clean stop would leave.
    pub(super) fn kill(mut self) -> io::Result<()> {
        // An answer does not wait for the witness of what it is about.
        self.wait();
        let kept = tempfile::tempdir()?;
        copy(&self.data, kept.path())?;
        self.session = None;
        fs::remove_dir_all(&self.data)?;
        copy(kept.path(), &self.data)
    }

    fn execute(&self, change: Change) {
        self.clock.advance(MINUTE);
        self.session().execute(change).unwrap_or_else(|error| panic!("{error}"));
    }

    fn remember(&self, json: &str) {
        let change = self.session().prepare(json.as_bytes(), Encoding::Json, None);
        self.execute(change.unwrap_or_else(|error| panic!("{json}: {error}")));
    }

    fn forget(&self, name: &str) {
        self.execute(Change::Forget(vec![super::reference(name)]));
    }

    fn merge(&self, json: &str) {
        let merged =
            self.session().prepare_merge(json.as_bytes(), Encoding::Json, Precedence::Newer);
        self.execute(merged.unwrap_or_else(|error| panic!("{json}: {error}")));
    }

    /// Recalls words, which counts as an access.
    fn recall(&self, words: &str) {
        let query = Query { text: Some(words.into()), limit: Some(2), ..Query::default() };
        self.session().recall(&query).unwrap_or_else(|error| panic!("{error}"));
        self.wait();
    }

    /// Waits until the writer has done what it was about, and counts accesses.
    fn wait(&self) {
        self.session().run_task(Task::Accesses).unwrap_or_else(|error| panic!("{error}"));
    }

    pub(super) fn seal(&self) {
        self.clock.advance(MINUTE);
        self.session().seal_now(MINUTE).unwrap_or_else(|why| panic!("{why}"));
    }

    fn compact(&self, scope: CompactionScope) {
        self.clock.advance(MINUTE);
        self.session().compact(scope).unwrap_or_else(|error| panic!("{error}"));
    }

    fn sweep(&self) {
        self.session().sweep(false).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn watch(n: u32, words: &str, at: [f64; 3]) -> String {
    let [x, y, z] = at;
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"watch-{n}","content":"{words}, seen from the corridor",
        "createdAt":"2026-05-31T08:{n:02}:00Z","importance":0.{n}5,"entityRefs":[{{"ref":"Entity/table"}}],
        "extension":[{{"url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{{"frame":"map","position":[{x},{y},{z}]}}}}]}}"#
    )
}

/// Entities, episodes, edges and records of every kind, some of them changed, some forgotten.
fn morning(robot: &Robot) {
    robot.remember(
        r#"[{"resourceType":"Entity","id":"table","name":"Table","labels":["product","other"],"salience":0.25,
        "summary":"where parcels are put","attributes":{"colour":"oak","legs":"4"},
        "createdAt":"2026-05-31T07:00:00Z"},
        {"resourceType":"Entity","id":"pot","name":"Pot","createdAt":"2026-05-31T07:00:00.123456Z"},
        {"resourceType":"Relationship","id":"on","from":{"ref":"Entity/pot"},"to":{"ref":"Entity/table"},
        "relationType":"stands_on","strength":0.75,"createdAt":"2026-05-31T07:30:00Z",
        "sourceEpisode":{"ref":"Episode/morning"}},
        {"resourceType":"Episode","id":"morning","content":"a look around the kitchen and its window",
        "name":"First round","createdAt":"2026-05-31T09:00:00Z","eventTime":"2026-05-31T06:45:00+02:00",
        "entityRefs":[{"ref":"Entity/pot"},{"ref":"Entity/table"}]}]"#,
    );
    robot.remember(
        r#"{"resourceType":"MemoryRecord","id":"first","content":"a kettle stands on the table",
        "createdAt":"2026-05-31T08:00:00Z","importance":0.5,"entityRefs":[{"ref":"Entity/table"}],
        "confidence":{"alpha":3,"beta":1.5},"decay":{"halfLifeHours":48,"accessCount":2},
        "extension":[{"url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{"frame":"map","position":[1,2,0.5]}},
        {"url":"https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson":{"frame":"odom","position":[0.25,-1.5,0]}},
        {"url":"urn:example:exact","valueJson":{"big":123456789012345678901234567890,"tiny":1.000e-3}}]}"#,
    );
    robot.remember(
        r#"[{"resourceType":"MemoryRecord","id":"outside","content":"a charger in front of the house",
        "createdAt":"2026-05-31T08:10:00Z","importance":0.7,
        "extension":[{"url":"https://omir.io/spec/R1/extension/spatial-pose","valueJson":{"frame":"map",
        "position":[12,4,0],"geo":{"lat":48.1374,"lon":11.5755,"alt":519.5}}}]},
        {"resourceType":"MemoryRecord","id":"plan","content":"bring the parcel to the door","kind":"plan",
        "experienceType":"intention","createdAt":"2026-05-31T08:20:00Z","eventTime":"2026-06-03T10:00:00Z"},
        {"resourceType":"MemoryRecord","id":"ticket","content":"the lift is out of order","tier":"longterm",
        "createdAt":"2026-05-31T08:30:00Z","validUntil":"2026-06-10T00:00:00Z","parentId":"first"},
        {"resourceType":"MemoryRecord","id":"unicode","content":"Die Straße führt zur 厨房 — naïve café",
        "createdAt":"2026-05-31T08:40:00Z","provenance":{"source":"camera","credibility":0.9}}]"#,
    );
    // Without a date, a version of its own, and a name that comes from the daemon.
    robot.remember(
        r#"{"resourceType":"MemoryRecord","id":"undated","content":"a window was open"}"#,
    );
    robot.remember(&watch(0, "a ladder", [4.0, 1.0, 0.0]));
    robot.remember(&watch(1, "a parcel beside the window", [0.5, 1.0, 0.0]));
    robot.remember(&watch(1, "a parcel below the window", [0.75, 1.0, 0.0]));
    robot.forget("MemoryRecord/unicode");
    robot.remember(
        r#"{"resourceType":"MemoryRecord","id":"unicode","content":"Die Straße führt zur 厨房, once more",
        "createdAt":"2026-05-31T08:41:00Z"}"#,
    );
    robot.execute(Change::Anchor(super::reference("MemoryRecord/first"), true));
    let first = super::reference("MemoryRecord/first");
    robot.execute(Change::Feedback(first, FeedbackOutcome::Confirmed, Weight::ONE));
    robot.recall("kettle window");
}

/// Steps after it: more of the same, changes over requests, and things that go.
fn evening(robot: &Robot) {
    robot.remember(&watch(2, "a kettle", [2.0, 2.0, 0.0]));
    robot.remember(&watch(1, "a parcel behind the window", [1.0, 1.0, 0.0]));
    robot.remember(
        r#"[{"resourceType":"Entity","id":"dock","name":"Dock","labels":["location"]},
        {"resourceType":"Relationship","id":"beside","from":{"ref":"Entity/dock"},"to":{"ref":"Entity/table"},
        "relationType":"stands_beside","sourceEpisode":{"ref":"Episode/morning"}},
        {"resourceType":"Episode","id":"evening","content":"back at the charger",
        "createdAt":"2026-06-01T20:00:00Z","entityRefs":[{"ref":"Entity/dock"}]}]"#,
    );
    // The edge cannot be without the pot, the episode can.
    robot.forget("Entity/pot");
    robot.remember(
        r#"[{"resourceType":"Entity","id":"pot","name":"Another pot"},
        {"resourceType":"Relationship","id":"under","from":{"ref":"Entity/table"},"to":{"ref":"Entity/pot"},
        "relationType":"stands_under"}]"#,
    );
    robot.forget("MemoryRecord/watch-0");
    robot.recall("charger");
}

/// A log and its witness, left by a daemon that was killed.
fn log(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let mut robot = Robot::new(data, clock, false)?;
    morning(&robot);
    robot.restart()?;
    evening(&robot);
    robot.kill()
}

/// Several segments and a log behind them.
fn segments(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    sealed(Robot::new(data, clock, false)?)
}

/// The same with the kept index.
fn indexed(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    sealed(Robot::new(data, clock, true)?)
}

fn sealed(mut robot: Robot) -> io::Result<()> {
    morning(&robot);
    robot.seal();
    evening(&robot);
    robot.seal();
    robot.remember(&watch(3, "a charger", [3.0, 3.0, 0.0]));
    robot.restart()?;
    robot.seal();
    robot.forget("Episode/evening");
    robot.remember(&watch(4, "a ladder at the dock", [4.0, 4.0, 0.0]));
    robot.remember(&watch(3, "a charger, moved", [3.5, 3.0, 0.0]));
    robot.kill()
}

/// Segments that were made into one, without what nobody needs any more, one in front of them and one behind.
fn compacted(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let mut robot = Robot::new(data, clock, false)?;
    morning(&robot);
    robot.seal();
    evening(&robot);
    robot.seal();
    clock.advance(3 * HOUR);
    robot.compact(CompactionScope::All);
    robot.remember(&watch(3, "a charger", [3.0, 3.0, 0.0]));
    robot.forget("MemoryRecord/watch-2");
    robot.seal();
    robot.restart()?;
    robot.remember(&watch(3, "a charger, moved", [3.5, 3.0, 0.0]));
    clock.advance(3 * HOUR);
    robot.compact(CompactionScope::Forgotten);
    robot.forget("MemoryRecord/ticket");
    robot.seal();
    robot.remember(&watch(5, "a kettle at last", [5.0, 5.0, 0.0]));
    Ok(())
}

/// Memories of other producers, and several observations of one thing that became one record.
fn producers(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let mut robot = Robot::new(data, clock, false)?;
    morning(&robot);
    let theirs = |n: u32, of: &str| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"theirs-{n}","content":"a kettle as another sees it",
            "meta":{{"omirVersion":"R1","source":"{of}","lastUpdated":"2026-05-31T0{n}:00:00Z"}},
            "createdAt":"2026-05-30T08:00:00Z","importance":0.9{n},
            "confidence":{{"alpha":{n},"beta":2,"calibrated":0.99}}}}"#
        )
    };
    robot.merge(&format!(
        "[{},{},{}]",
        theirs(1, "veld/0.7.6"),
        theirs(2, "veld/0.7.6"),
        theirs(3, "other/2")
    ));
    robot.seal();
    let cup = |n: u32| {
        format!(
            r#"{{"resourceType":"MemoryRecord","id":"cup-{n}","content":"the red cup stands on the table",
            "createdAt":"2026-06-01T00:0{n}:00Z","entityRefs":[{{"ref":"Entity/table"}}],
            "confidence":{{"alpha":{n}.5,"beta":1}},"provenance":{{"externalId":"camera:{n}"}},
            "extension":[{{"url":"https://omir.io/spec/R1/extension/spatial-pose",
            "valueJson":{{"frame":"map","position":[1,2,0]}}}}]}}"#
        )
    };
    (1..4).for_each(|n| robot.remember(&cup(n)));
    clock.advance(3 * HOUR);
    robot.sweep();
    let parcel = r#"{"resourceType":"MemoryRecord","id":"parcel","content":"a parcel came",
        "meta":{"omirVersion":"R1","lastUpdated":"2026-06-01T01:00:00Z"},"createdAt":"2026-06-01T01:00:00Z"}"#;
    robot.merge(parcel);
    robot.restart()?;
    robot.seal();
    robot.merge(&parcel.replace("T01:00:00Z", "T02:00:00Z").replace("came", "was taken away"));
    robot.recall("cup");
    Ok(())
}

/// Starts without a clock: one that was set later, and one whose memories still wait to be dated.
fn clock_unset(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let mut robot = Robot::new(data, clock, false)?;
    morning(&robot);
    let known = robot.session().now().0.as_micros();
    robot.session = None;
    clock.reboot(0);
    clock.advance(MINUTE);
    robot.start()?;
    robot.remember(r#"{"resourceType":"MemoryRecord","id":"doorbell","content":"the bell rang"}"#);
    let ten_days = 10 * 24 * i64::try_from(HOUR.as_micros()).expect("an hour is short");
    clock.set(known + ten_days, true);
    let corrected = || {
        let status = robot.session().status("robot");
        status.pointer("/clock/corrected").and_then(Value::as_u64) == Some(1)
    };
    while !corrected() {
        std::thread::sleep(Duration::from_millis(5));
    }
    robot.wait();
    robot.seal();
    robot.session = None;
    clock.reboot(0);
    clock.advance(MINUTE);
    robot.start()?;
    robot.remember(r#"{"resourceType":"Entity","id":"visitor","name":"Somebody at the door"}"#);
    robot.kill()
}

/// The segments of another life, of which one has a rotten byte that its sidecar restores, one has more than that can
/// restore, and the log has a frame that cannot be read.
fn damaged(data: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    segments(data, clock)?;
    let rot = |path: String, bytes: &dyn Fn(usize) -> Vec<usize>| -> io::Result<()> {
        let path = data.join(path);
        let mut content = fs::read(&path)?;
        for at in bytes(content.len()) {
            content[at] ^= 0x55;
        }
        fs::write(path, content)
    };
    rot(segment::path(1), &|len| vec![len / 2])?;
    rot(segment::path(2), &|len| (100..len.min(1000)).step_by(97).collect())?;
    rot(segment::sidecar_path(2), &|len| (0..len).step_by(61).collect())?;
    let log = fs::read_dir(data.join(wal::DIR))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| wal::number_of(&name))
        .max()
        .ok_or(io::ErrorKind::NotFound)?;
    rot(wal::path(log), &|len| vec![len / 2, len / 2 + 1, len / 2 + 2])
}

/// A backup of the compacted life.
fn backed_up(into: &Path, clock: &Arc<TestClock>) -> io::Result<()> {
    let data = tempfile::tempdir()?;
    compacted(data.path(), clock)?;
    clock.advance(MINUTE);
    let session = open(data.path(), clock, settings())?;
    let offer = session.offer_backup("robot").map_err(io::Error::other)?;
    let mut folder =
        backup::Folder::open(Arc::new(Folder::new(into)), &mut |_| {}).map_err(io::Error::other)?;
    folder.trust(&offer, true).map_err(io::Error::other)?;
    let lacking: Vec<backup::Offered> =
        folder.lacking(&offer).map_err(io::Error::other)?.into_iter().cloned().collect();
    for offered in &lacking {
        let mut fetch = |offset, length: u64| {
            session.segment_piece(offered.segment, offset, length.min(MAX_PIECE))
        };
        folder.take(offered, &mut fetch).map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    let now = Timestamp::from_micros(session.now().0.as_micros());
    folder.finish(&offer, now).map_err(io::Error::other)?;
    Ok(())
}
