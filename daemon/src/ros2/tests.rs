use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use omir_core::json;
use omird_access::AccessSettings;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::engine::testing::{ByHand as _, lose, parts};
use crate::engine::{ImportPermit, NotAdmitted, Parts, RequestLimits, Settings};
use crate::router::testing::AuditLines;
use crate::router::{Policy, Router};

/// A memory on a disk of its own, with small limits.
struct Bench {
    folder: tempfile::TempDir,
    engine: Engine,
    memory: RoutedMemory,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let limits = RequestLimits {
            max_payload_bytes: 1000,
            max_import_bytes: 4000,
            ..RequestLimits::default()
        };
        let settings = Settings { limits, ..Settings::default() };
        let parts = Parts { settings, ..parts(&data) };
        let engine = Engine::open(parts, &mut |_| {}).unwrap();
        let protocols = Protocols::over(&engine, "r1");
        Self { folder, engine, memory: RoutedMemory { protocols } }
    }

    /// A file of so many records.
    fn file(&self, name: &str, records: usize) -> PathBuf {
        let records: Vec<String> = (0..records).map(|n| record(&format!("{name}-{n}"))).collect();
        let path = self.folder.path().join(name);
        fs::write(&path, format!("[{}]", records.join(","))).unwrap();
        path
    }

    fn import(&self, path: &Path) -> Result<Value, Refusal> {
        self.memory.import(path, false, &mut |_, _| true)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

fn record(id: &str) -> String {
    format!(
        r#"{{"resourceType":"MemoryRecord","id":"{id}","content":"a cup on a table",
        "createdAt":"2026-05-30T11:42:05Z"}}"#
    )
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, Refusal>) -> Code {
    result.unwrap_err().code
}

#[test]
fn only_files_are_imported() {
    let bench = Bench::new();
    let pipe = bench.folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Opening it would wait for a writer.
    let refusal = bench.import(&pipe).unwrap_err();
    assert_eq!((refusal.code.as_str(), refusal.path.as_str()), ("NOT_FOUND", "/path"));
    assert!(refusal.message.contains("is no file"), "{refusal}");
    assert_eq!(code(bench.import(bench.folder.path())), Code::NotFound);
    assert_eq!(code(bench.import(&bench.folder.path().join("nothing"))), Code::NotFound);
    bench.import(&bench.file("small", 2)).unwrap();
    assert!(matches!(bench.memory.get("MemoryRecord/small-1"), Ok(Stored::Whole(_))));
}

#[test]
fn a_thing_that_is_lost_is_made_anew_and_may_be_mentioned_again() {
    let mut bench = Bench::new();
    let thing = || value(r#"{"resourceType":"Entity","id":"cup","name":"xylophone"}"#);
    bench.memory.record(vec![thing()]).unwrap();
    bench.engine.seal_now(std::time::Duration::from_secs(60)).unwrap();
    bench.engine.stop();
    lose(&bench.folder.path().join("data"), "xylophone");
    bench.engine = Engine::open(parts(&bench.folder.path().join("data")), &mut |_| {}).unwrap();
    bench.memory = RoutedMemory { protocols: Protocols::over(&bench.engine, "r1") };
    assert!(bench.engine.get(&"Entity/cup".parse().unwrap()).is_err());
    assert!(matches!(bench.memory.get("Entity/cup"), Ok(Stored::Nothing)));
    let mentions = record("seen").replace('{', r#"{"entityRefs":[{"ref":"Entity/cup"}],"#);
    assert_eq!(code(bench.memory.record(vec![value(&mentions)])), Code::InvalidResource);
    bench.memory.record(vec![thing(), value(&mentions)]).unwrap();
}

#[test]
fn large_imports_come_one_at_a_time_whoever_brings_them() {
    let bench = Bench::new();
    let large = bench.file("large", 15);
    let permit = bench.engine.admit(1001, true).unwrap();
    assert!(permit.is_some());
    assert_eq!(code(bench.import(&large)), Code::Busy);
    let many = || (0..15).map(|n| value(&record(&format!("many-{n}")))).collect();
    assert_eq!(code(bench.memory.remember(many(), Some("true"))), Code::Busy);
    // A request of the usual size needs no permit.
    bench.import(&bench.file("small", 2)).unwrap();
    drop(permit);
    bench.import(&large).unwrap();
    bench.memory.remember(many(), Some("true")).unwrap();
    assert!(bench.engine.admit(1001, true).is_ok(), "the permit came back");
    assert_eq!(code(bench.import(&bench.file("huge", 50))), Code::TooLarge);
}

#[test]
fn an_export_that_does_not_fit_an_answer_says_how_to_ask() {
    let bench = Bench::new();
    let export = |parameters: &str| {
        let Value::Object(parameters) = value(parameters) else { panic!() };
        bench.memory.ask(Operation::Export, &parameters)
    };
    for part in ["a", "b", "c"] {
        bench.import(&bench.file(part, 15)).unwrap();
    }
    let refusal = export("{}").unwrap_err();
    assert_eq!(refusal.code, Code::TooLarge);
    assert!(refusal.message.contains("limit and offset"), "{refusal}");
    let mut all = std::collections::BTreeSet::new();
    for offset in (0..45).step_by(15) {
        let page = export(&format!(r#"{{"limit":15,"offset":{offset}}}"#)).unwrap();
        let entries = page.get("entry").and_then(Value::as_array).unwrap();
        all.extend(
            entries.iter().map(|entry| entry.get("id").and_then(Value::as_str).unwrap().to_owned()),
        );
    }
    assert_eq!(all.len(), 45);
}

/// The facts of a memory that is always busy, and the refusals that were counted.
struct AlwaysBusy(Arc<AtomicU64>);

impl Policy for AlwaysBusy {
    fn is_read_only(&self) -> bool {
        false
    }

    fn admit(&self, _: usize, _: bool) -> Result<Option<ImportPermit>, NotAdmitted> {
        Err(NotAdmitted::ImportUnderWay)
    }

    fn note_rejected(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn what_the_rules_try_again_is_no_rejected_request_and_what_a_caller_is_refused_is() {
    let mut bench = Bench::new();
    let small = bench.file("small", 2);
    let rejected = Arc::new(AtomicU64::new(0));
    bench.memory.protocols.router = Router::new(AlwaysBusy(rejected.clone()), []);
    let memory = &bench.memory;
    assert_eq!(code(memory.record(vec![value(&record("a"))])), Code::Busy);
    assert_eq!(code(memory.get("MemoryRecord/a")), Code::Busy);
    assert_eq!(rejected.load(Ordering::Relaxed), 0);
    assert_eq!(code(memory.remember(vec![value(&record("a"))], None)), Code::Busy);
    assert_eq!(code(memory.ask(Operation::Recall, &Map::new())), Code::Busy);
    assert_eq!(code(bench.import(&small)), Code::Busy);
    assert_eq!(rejected.load(Ordering::Relaxed), 3);
}

/// A graph has no tokens: what it may do is bounded, and the rules of the node act as the daemon.
#[test]
fn a_service_acts_with_the_scopes_of_the_graph_and_the_rules_as_the_daemon() {
    for (require, graph, expected) in [
        (false, None, [true, true, true]),
        (true, None, [true, true, false]),
        (true, Some(vec![Scope::READ]), [true, false, false]),
        (false, Some(vec![]), [false, false, false]),
    ] {
        let mut bench = Bench::new();
        let settings = AccessSettings { require, graph, ..AccessSettings::default() };
        bench.memory.protocols.access.reconfigure(settings);
        let memory = &mut bench.memory;
        let told = [
            memory.ask(Operation::Recall, &Map::new()).map(drop),
            memory.remember(vec![value(&record("a"))], None).map(drop),
            memory.ask(Operation::Compact, &Map::new()).map(drop),
        ];
        assert_eq!(told.clone().map(|told| told.is_ok()), expected);
        for refused in told.into_iter().filter_map(Result::err) {
            assert_eq!(refused.code, Code::Unauthorized, "{refused}");
        }
        memory.record(vec![value(&record("b"))]).unwrap();
        assert!(matches!(memory.get("MemoryRecord/b"), Ok(Stored::Whole(_))));
    }
}

/// A rule, a service, a file or the time of a simulation. Invariant 37 of ARCHITECTURE.md.
#[test]
fn each_request_leaves_one_audit_line() {
    let mut bench = Bench::new();
    let (small, huge) = (bench.file("small", 2), bench.file("huge", 50));
    let audit = AuditLines::default();
    bench.memory.protocols.router = Router::new(bench.engine.clone(), [audit.sink()]);
    let _ = bench.memory.remember(vec![value("{}")], None);
    let _ = bench.memory.get("MemoryRecord/a");
    let _ = bench.memory.ask(Operation::Recall, &Map::new());
    let _ = bench.memory.ask(Operation::Forget, &Map::new());
    let _ = bench.import(&small);
    let _ = bench.import(&huge);
    bench.memory.show(Stamp::ZERO);
    let omir = bench.memory.protocols.omir.clone();
    bench.memory.protocols.omir = omir.with_simulated_time(Arc::default());
    bench.memory.show(Stamp::ZERO);
    let lines = audit.take();
    let expected = [
        ("remember", "INVALID_RESOURCE"),
        ("get", "ok"),
        ("recall", "ok"),
        ("forget", "INVALID_QUERY"),
        ("remember", "ok"),
        ("remember", "TOO_LARGE"),
        ("clock", "ok"),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, (method, outcome)) in lines.iter().zip(expected) {
        let told = line.starts_with(&format!("ros2 omir.{method} ")) && line.contains(outcome);
        assert!(told, "{line}");
    }
}

#[test]
fn what_is_damaged_is_told_from_what_is_not_there() {
    let bench = Bench::new();
    bench.memory.remember(vec![value(&record("a"))], None).unwrap();
    bench.memory.remember(vec![value(&record("c"))], None).unwrap();
    assert_eq!(bench.memory.get("MemoryRecord/b"), Ok(Stored::Nothing));
    let logs = fs::read_dir(bench.folder.path().join("data/wal")).unwrap();
    for log in logs.map(|log| log.unwrap().path()) {
        let mut bytes = fs::read(&log).unwrap();
        let at = bytes.windows(5).position(|window| window == b"table");
        if let Some(at) = at {
            // Two bits: a single one would be turned back.
            bytes[at] ^= 3;
            fs::write(&log, bytes).unwrap();
        }
    }
    let found = bench.memory.get("MemoryRecord/a");
    assert!(matches!(found, Ok(Stored::Damaged(_))), "{found:?}");
    // It costs an export only itself.
    let bundle = bench.memory.ask(Operation::Export, &Map::new()).unwrap();
    let entries = bundle.get("entry").and_then(Value::as_array).unwrap();
    assert_eq!(entries.len(), 1);
    let left_out = bundle.get(LEFT_OUT).unwrap();
    assert_eq!(left_out.get("unreadable").and_then(Value::as_u64), Some(1));
    assert_eq!(left_out.get("first").and_then(Value::as_array).map(<[_]>::len), Some(1));
}

#[test]
fn a_file_that_a_service_may_not_see_is_refused_with_the_way_out() {
    let bench = Bench::new();
    let why = |path: &str| bench.import(Path::new(path)).unwrap_err().message;
    for hidden in ["/home/nobody-here/rover.omir", "/tmp/nobody-here/rover.omir"] {
        assert!(why(hidden).contains("/srv"), "{}", why(hidden));
    }
    assert!(!why("/srv/nobody-here/rover.omir").contains("ProtectHome"));
}

#[test]
fn what_is_taken_ends_where_it_was_taken_also_while_others_look() {
    struct Ends(std::sync::mpsc::Sender<std::thread::ThreadId>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.send(std::thread::current().id()).unwrap();
        }
    }
    let (ended, ends) = std::sync::mpsc::channel();
    let (looks, looking) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let slot = Arc::new(Slot(RwLock::new(Some(Ends(ended)))));
    let other = slot.clone();
    let reader = std::thread::spawn(move || {
        other.look(|_| {
            looks.send(()).unwrap();
            wait.recv().unwrap();
        })
    });
    looking.recv().unwrap();
    let taker = std::thread::spawn(move || {
        drop(slot.take());
        std::thread::current().id()
    });
    go.send(()).unwrap();
    assert_eq!(reader.join().unwrap(), Some(()));
    assert_eq!(ends.recv().unwrap(), taker.join().unwrap());
}
