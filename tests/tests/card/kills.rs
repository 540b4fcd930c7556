//! The real daemon at full load, killed at any moment, some two hundred times over on one folder.
//!
//! Each of several clients keeps a journal of its own: what was acknowledged, and the one request
//! that got no answer. After each start it must find exactly the one or the other, and from there on
//! every answer must again be the one its model gives, with every version and number. SIGKILL takes
//! nothing out of the kernel's cache; what a card may lose is simulated in `power_cuts.rs`.
//!
//! `OMIRD_SEED` repeats a run as far as a seed can: requests and delays are the same, threads are
//! not. `OMIRD_CYCLES` sets how many kills there are.
//!
//! Invariant 1 of ARCHITECTURE.md.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use omir_core::instant::Timestamp;
use omird::store::inspect::{self, Store, Verdict};
use omird_tests::Result;
use omird_tests::journal::Journal;
use omird_tests::life::{self, WORDS};
use omird_tests::model::{Model, comparable};
use omird_tests::process::{Answer, Client, Daemon};
use omird_tests::random::Random;
use omird_tests::wire::{self, Heard};
use serde_json::Value;
use zenoh::Wait;

const PROGRAM: &str = env!("CARGO_BIN_EXE_omird-under-test");
const ROBOT: &str = "r1";
const WRITERS: usize = 8;
/// Interval, in kills, at which the folder is looked at as a kill left it, with no daemon running.
const LOOK_EVERY: u64 = 20;

/// Small segments, so that sealing is cut as often as anything else; access counts go to the log all
/// the time.
const CONFIGURATION: &str = "[store]\nsegment_bytes = 16384\ntouch_interval_s = 1\n";

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The end of a cycle.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Killed while it starts, so long after it was spawned.
    WhileStarting(Duration),
    /// Killed under load, so long after it was ready.
    UnderLoad(Duration),
    /// Asked to stop under load, and killed so long after that.
    WhileStopping(Duration, Duration),
    /// Asked to stop under load, and left alone.
    Stopped(Duration),
}

impl End {
    fn any(random: &mut Random, start: Duration) -> Self {
        let load = Duration::from_micros(random.below(300_000) as u64);
        match random.below(100) {
            0..15 => Self::WhileStarting(start.mul_f64(random.between(0.0, 1.2))),
            15..23 => Self::WhileStopping(load, Duration::from_micros(random.below(30_000) as u64)),
            23..26 => Self::Stopped(load),
            _ => Self::UnderLoad(load),
        }
    }
}

/// State shared by the clients of one cycle.
struct Cycle {
    client: Client,
    /// Set before anything happens to the daemon. Whoever still sees `false` when an answer is
    /// complete has a whole answer of a living daemon.
    is_cut: AtomicBool,
    /// Changes and recalls that were answered.
    answers: AtomicU64,
}

impl Cycle {
    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }
}

/// A client that changes what is its own, and knows what that must be.
struct Writer {
    owner: String,
    random: Random,
    journal: Journal,
    steps: usize,
    /// The highest transaction it was told of.
    seq: u64,
}

impl Writer {
    fn new(number: usize, seed: u64) -> Self {
        Self {
            owner: format!("w{number}-"),
            random: Random::new(seed ^ ((number as u64 + 1) << 32)),
            journal: Journal::default(),
            steps: 0,
            seq: 0,
        }
    }

    /// Finds out whether the request in doubt was carried out. Returns whether the daemon lived
    /// long enough to tell.
    fn resolve(&mut self, cycle: &Cycle) -> Result<bool> {
        let found = wire::live(&cycle.client, ROBOT, &self.owner);
        if cycle.is_cut() {
            return Ok(false);
        }
        let differs = |model: &Model| -> Option<String> {
            for (target, memory, expected) in model.live() {
                let Some(found) = found.get(target) else {
                    return Some(format!("{target} is lost"));
                };
                let expected = comparable(expected, &memory.loose);
                let found = comparable(found, &memory.loose);
                if found != expected {
                    return Some(format!("{target} is {found:?}\ninstead of {expected:?}"));
                }
            }
            let stranger = found.keys().find(|target| !model.is_live(target))?;
            Some(format!("{stranger} should not be there"))
        };
        let Some(without) = differs(&self.journal.acknowledged) else {
            self.journal.in_doubt = None;
            return Ok(true);
        };
        match self.journal.in_doubt.take() {
            None => Err(without.into()),
            Some(model) => match differs(&model) {
                None => {
                    self.journal.acknowledged = model;
                    Ok(true)
                }
                Some(with) => Err(format!(
                    "without the request in doubt: {without}\nwith the request in doubt: {with}"
                )
                .into()),
            },
        }
    }

    /// Makes one request after the other until the daemon is gone.
    fn live(&mut self, cycle: &Cycle) -> Result {
        if !self.resolve(cycle)? {
            return Ok(());
        }
        loop {
            self.steps += 1;
            let known = &self.journal.acknowledged;
            let request = life::request(&mut self.random, known, &self.owner, self.steps);
            let mut after = known.clone();
            let expected = after.apply(&request);
            match wire::ask(&cycle.client, ROBOT, &request) {
                Heard::Answer(answer, seq) => {
                    if answer != expected {
                        return Err(
                            format!("{request:?}: {answer:?} instead of {expected:?}").into()
                        );
                    }
                    if let Some(seq) = seq
                        && std::mem::replace(&mut self.seq, seq) > seq
                    {
                        return Err(
                            format!("{request:?}: transaction {seq} is an old number").into()
                        );
                    }
                    self.journal.acknowledged = after;
                    cycle.answers.fetch_add(1, Ordering::Relaxed);
                }
                Heard::Silence | Heard::Failure(_) if cycle.is_cut() => {
                    self.journal.in_doubt = Some(after);
                    return Ok(());
                }
                other => return Err(format!("{request:?}: {other:?}").into()),
            }
        }
    }
}

/// Recalls and looks at the status until the daemon is gone.
fn recall(cycle: &Cycle, seed: u64, boots: u64) -> Result {
    let mut random = Random::new(seed);
    let ask = |selector: &str| -> Result<Option<Value>> {
        match cycle.client.ask(selector).pop() {
            Some(Answer::Ok(_, value)) => Ok(Some(value)),
            _ if cycle.is_cut() => Ok(None),
            other => Err(format!("{selector}: {other:?}").into()),
        }
    };
    loop {
        let Some(status) = ask(&format!("omir/{ROBOT}/status"))? else { return Ok(()) };
        sound(&status)?;
        if status["bootCount"] != boots {
            return Err(format!("this is start {} instead of {boots}", status["bootCount"]).into());
        }
        for _ in 0..20 {
            let (word, x) = (*random.pick(&WORDS), random.between(-8.0, 8.0));
            let selector = match random.below(3) {
                0 => format!("q={word}"),
                1 => format!("near={x},0;radius=4"),
                _ => format!("q={word};near={x},0"),
            };
            let Some(recalled) = ask(&format!("omir/{ROBOT}/recall?{selector}"))? else {
                return Ok(());
            };
            let hits = recalled["hits"].as_array().map_or(0, Vec::len) as u64;
            if Some(hits) != recalled["total"].as_u64().map(|total| total.min(10)) {
                return Err(format!("{selector}: {hits} hits of {}", recalled["total"]).into());
            }
            cycle.answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn sound(status: &Value) -> Result {
    for pointer in ["/disk/damagedFiles", "/unreadable"] {
        match status.pointer(pointer).and_then(Value::as_u64) {
            Some(0) => {}
            other => return Err(format!("the status says {pointer} is {other:?}").into()),
        }
    }
    Ok(())
}

/// Sum of the models of all clients: live resources, versions and tombstones, and how many of the
/// versions a tombstone followed.
fn sums(writers: &[Writer]) -> ([u64; 3], u64) {
    let sum = |count: fn(&Model) -> u64| -> u64 {
        writers.iter().map(|writer| count(&writer.journal.acknowledged)).sum()
    };
    let counts =
        [sum(|model| model.live().count() as u64), sum(|m| m.versions), sum(|m| m.tombstones)];
    (counts, sum(|m| m.forgotten_versions))
}

/// Returns true if what is live is what it should be. Of what was forgotten there may be less: sealing leaves it out,
/// with its tombstones.
fn accounts_for(
    [live, versions, tombstones]: [u64; 3],
    (expected, forgotten_versions): ([u64; 3], u64),
) -> bool {
    live == expected[0]
        && tombstones <= expected[2]
        && versions <= expected[1]
        && expected[1] - versions <= forgotten_versions
}

/// Looks at the folder as `omir store check` does. Nothing may be wrong, as no disk fails here.
fn look(data: &Path) -> Result<[u64; 3]> {
    let since = SystemTime::UNIX_EPOCH.elapsed()?;
    let now = Timestamp::from_micros(since.as_micros() as i64);
    let store = Store::open(data, now)?;
    let report = inspect::check(&store, &mut |_| {})?;
    match report.verdict() {
        Verdict::Sound => Ok([report.live, report.versions, report.tombstones]),
        verdict => Err(format!("the store is {}: {:?}", verdict.as_str(), report.findings).into()),
    }
}

/// A folder with its daemons, one after the other, and their clients.
struct Rig {
    scratch: tempfile::TempDir,
    data: PathBuf,
    configuration: String,
    writers: Vec<Writer>,
    spawned: u64,
    /// Starts that the store must have counted.
    boots: u64,
    /// Duration of the last start.
    start: Duration,
    answers: u64,
}

impl Rig {
    fn new(seed: u64) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let configuration = scratch.path().join("omird.toml");
        std::fs::write(&configuration, CONFIGURATION).unwrap();
        Self {
            data: scratch.path().join("data"),
            configuration: configuration.to_str().unwrap().to_owned(),
            scratch,
            writers: (0..WRITERS).map(|number| Writer::new(number, seed)).collect(),
            spawned: 0,
            boots: 0,
            start: Duration::from_millis(100),
            answers: 0,
        }
    }

    /// A socket of its own for each start: a port that was free a moment ago need not be any more.
    fn spawn(&mut self) -> Daemon {
        self.spawned += 1;
        let socket = self.scratch.path().join(format!("{}.sock", self.spawned));
        let endpoint = format!("unixsock-stream/{}", socket.display());
        let more = ["--config", self.configuration.as_str()];
        Daemon::spawn(PROGRAM, &self.data, ROBOT, &endpoint, &more)
    }

    fn start(&mut self) -> (Daemon, Client) {
        let began = Instant::now();
        let mut daemon = self.spawn();
        daemon.wait_until_ready();
        self.start = began.elapsed();
        let client = Client::connect(&daemon.endpoint);
        (daemon, client)
    }

    /// One start, and what comes after it, to the end.
    fn cycle(&mut self, end: End, seed: u64) -> Result {
        let load = match end {
            End::WhileStarting(delay) => {
                let daemon = self.spawn();
                thread::sleep(delay);
                daemon.kill();
                return Ok(());
            }
            End::UnderLoad(load) | End::WhileStopping(load, _) | End::Stopped(load) => load,
        };
        let (daemon, client) = self.start();
        let status = client.one(&format!("omir/{ROBOT}/status"), None);
        let boots = status.value()["bootCount"].as_u64().unwrap_or(0);
        // A start that was killed may have been counted or not.
        if boots <= self.boots || boots > self.spawned {
            return Err(format!("start {boots} comes after start {}", self.boots).into());
        }
        self.boots = boots;
        let cycle = Cycle { client, is_cut: false.into(), answers: 0.into() };
        let outcomes: Vec<Result> = thread::scope(|scope| {
            let cycle = &cycle;
            let mut clients: Vec<_> = self
                .writers
                .iter_mut()
                .map(|writer| {
                    scope.spawn(move || {
                        Ok(writer.live(cycle).map_err(|why| format!("{} {why}", writer.owner))?)
                    })
                })
                .collect();
            clients.push(scope.spawn(move || recall(cycle, seed, boots)));
            thread::sleep(load);
            cycle.is_cut.store(true, Ordering::SeqCst);
            let stopped = match end {
                End::Stopped(_) => {
                    let status = daemon.stop();
                    status.success().then_some(()).ok_or(format!("it stopped with {status}").into())
                }
                End::WhileStopping(_, delay) => {
                    daemon.ask_to_stop();
                    thread::sleep(delay);
                    daemon.kill();
                    Ok(())
                }
                _ => {
                    daemon.kill();
                    Ok(())
                }
            };
            // A query that was sent in that very moment would wait for its time-out.
            let _ = cycle.client.session.close().wait();
            let joined = clients.into_iter().map(|client| {
                client.join().unwrap_or_else(|_| Err("a client panicked, see above".into()))
            });
            std::iter::once(stopped).chain(joined).collect()
        });
        self.answers += cycle.answers.into_inner();
        outcomes.into_iter().collect()
    }

    /// The last start: every request is resolved, and the folder is sound without a daemon as well.
    fn finish(&mut self) -> Result {
        let (daemon, client) = self.start();
        let cycle = Cycle { client, is_cut: false.into(), answers: 0.into() };
        for writer in &mut self.writers {
            writer.resolve(&cycle)?;
        }
        let expected = sums(&self.writers);
        let status = cycle.client.one(&format!("omir/{ROBOT}/status"), None).value().clone();
        sound(&status)?;
        let counts = &status["counts"];
        let live = counts["types"].as_object().expect("counts").values();
        let found = [
            live.filter_map(Value::as_u64).sum(),
            counts["versions"].as_u64().unwrap_or(u64::MAX),
            counts["forgotten"].as_u64().unwrap_or(u64::MAX),
        ];
        if !accounts_for(found, expected) {
            return Err(format!("the status counts {found:?} instead of {expected:?}").into());
        }
        let stopped = daemon.stop();
        if !stopped.success() {
            return Err(format!("it stopped with {stopped}").into());
        }
        let found = look(&self.data)?;
        if !accounts_for(found, expected) {
            return Err(format!("{found:?} lie on the disk instead of {expected:?}").into());
        }
        Ok(())
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_two_hundred_kills() {
    let seed = setting("OMIRD_SEED", 1);
    let cycles = setting("OMIRD_CYCLES", 200);
    let mut random = Random::new(seed);
    let mut rig = Rig::new(seed);
    for number in 1..=cycles {
        let end = End::any(&mut random, rig.start);
        let mut outcome = rig.cycle(end, random.bits());
        // Before the first whole start there is no store yet, and perhaps half a key.
        if outcome.is_ok() && number % LOOK_EVERY == 0 && rig.boots > 0 {
            outcome = look(&rig.data).map(drop);
        }
        if let Err(why) = outcome {
            panic!("OMIRD_SEED={seed}, cycle {number}, {end:?}: {why}");
        }
    }
    if let Err(why) = rig.finish() {
        panic!("OMIRD_SEED={seed}, after {cycles} cycles: {why}");
    }
    // How many is up to the machine; that there were some is not.
    assert!(rig.answers > cycles, "it was killed before it did anything: {}", rig.answers);
}
