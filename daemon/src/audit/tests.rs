use std::sync::atomic::AtomicI64;

use omir_core::code::Code;

use super::*;
use crate::protocols::omir::{DELETE, GET, PUT};
use crate::router::testing::Facts;
use crate::router::{Caller, Incoming, Router};

fn sink(audit: &Audit) -> Box<dyn Sink> {
    Box::new(audit.clone())
}

struct Bench {
    folder: tempfile::TempDir,
    audit: Audit,
    router: Router,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::over(folder, "audit.jsonl")
    }

    fn over(folder: tempfile::TempDir, file: &str) -> Self {
        let file = Some(folder.path().join(file));
        let settings = AuditSettings { file, max_bytes: 1 << 20, keep: 1 };
        let micros = AtomicI64::new(1_780_141_325_000_000);
        let now = move || Timestamp::from_micros(micros.fetch_add(1, Ordering::Relaxed));
        let audit = Audit::start(&settings, Box::new(now)).unwrap();
        let facts = Facts { most: 1000, ..Facts::default() };
        let router = Router::new(facts, [sink(&audit)]);
        Self { folder, audit, router }
    }

    /// Returns the lines of the file, once all is written.
    fn lines(&self) -> Vec<Value> {
        self.audit.stop();
        let text = std::fs::read_to_string(self.folder.path().join("audit.jsonl")).unwrap();
        let limits = omir_core::decode::Limits::default();
        text.lines().map(|line| json::from_slice(line.as_bytes(), &limits).unwrap()).collect()
    }

    fn count(&self, name: &str) -> u64 {
        self.audit.status().get(name).and_then(Value::as_u64).unwrap()
    }
}

fn somebody() -> Caller {
    Caller { tenant: Some("t\n1".into()), ..Caller::trusted("zenoh", "arm \"x\"") }
}

#[test]
fn refusals_and_changes_are_written_and_reads_are_not() {
    let bench = Bench::new();
    let cup = "Entity/cup".parse().unwrap();
    let small = Incoming { bytes: 7, ..Incoming::default() };
    let put = || bench.router.admit_named(&somebody(), &PUT, small, Some(&cup)).unwrap();
    put().done();
    put().failed(Code::Conflict);
    drop(put());
    bench.router.admit(&somebody(), &GET, Incoming::default()).unwrap().done();
    let unknown = Caller::unknown("zenoh");
    bench.router.refuse_named(&unknown, &DELETE, 0, Some(&cup), Code::Unauthenticated);
    let lines = bench.lines();
    let member = |name: &str| {
        let text = |line: &Value| line.get(name).map(json::to_string).unwrap_or_default();
        lines.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(member("outcome"), r#""ok" "CONFLICT" "given up" "UNAUTHENTICATED""#);
    assert_eq!(member("method"), r#""put" "put" "put" "delete""#);
    assert_eq!(member("caller"), r#""arm \"x\"" "arm \"x\"" "arm \"x\"" "?""#);
    assert_eq!(member("tenant"), r#""t\n1" "t\n1" "t\n1" "#);
    assert_eq!(member("refs"), [r#"["Entity/cup"]"#; 4].join(" "));
    assert_eq!(member("bytes"), "7 7 7 0");
    assert!(member("time").starts_with(r#""2026-05-30T11:42:05"#), "{}", member("time"));
    assert_eq!((bench.count("written"), bench.count("dropped")), (4, 0));
}

#[test]
fn guesses_by_the_thousand_are_counted_and_cost_few_lines() {
    let bench = Bench::new();
    let unknown = Caller::unknown("zenoh");
    for _ in 0..100_000 {
        bench.router.refuse(&unknown, &GET, 0, Code::Unauthenticated);
    }
    let passed_over = bench.count("passedOver");
    assert!(passed_over > 90_000, "{passed_over}");
    // A change is not passed over for them.
    bench.router.admit(&somebody(), &PUT, Incoming::default()).unwrap().done();
    let lines = bench.lines();
    assert!(lines.len() < 10_000, "{}", lines.len());
    let written = bench.count("written") + bench.count("dropped");
    assert!(written + passed_over > 100_000);
}

#[test]
fn a_disk_that_refuses_holds_nobody_up_and_what_is_lost_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    // A folder in the place of the file: as with a full disk, each write is refused, also for root.
    std::fs::create_dir(folder.path().join("audit.jsonl")).unwrap();
    let bench = Bench::over(folder, "audit.jsonl");
    for _ in 0..3000 {
        bench.router.admit(&somebody(), &PUT, Incoming::default()).unwrap().done();
    }
    bench.audit.stop();
    assert_eq!((bench.count("written"), bench.count("dropped")), (0, 3000));
    let status = bench.audit.status();
    let fault = status.get("trouble").and_then(Value::as_str).unwrap();
    assert!(fault.contains("audit.jsonl"), "{fault}");
}

#[test]
fn without_a_file_there_is_nothing_to_write() {
    let now = || Timestamp::from_micros(0);
    let audit = Audit::start(&AuditSettings::default(), Box::new(now)).unwrap();
    let router = Router::new(Facts::default(), [sink(&audit)]);
    router.refuse(&somebody(), &PUT, 0, Code::Unauthorized);
    audit.stop();
    assert_eq!(audit.status().get("file"), Some(&Value::Null));
}
