//! The router against a table: each reason to refuse, for each method, and one audit line for each request. Invariant 37
//! of ARCHITECTURE.md.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::*;
use crate::error::Error;

const fn method(name: &'static str, effect: Effect, payload: Payload, scope: Scope) -> Method {
    Method { protocol: "toy", name, effect, streams: false, payload, scope }
}

const ADMIN: Scope = Scope("toy:admin");

static TOY: Protocol = Protocol {
    name: "toy",
    methods: &[
        &method("look", Effect::Reads, Payload::Parameters, Scope::READ),
        &Method { streams: true, ..method("watch", Effect::Reads, Payload::None, Scope::READ) },
        &method("tidy", Effect::ChangesUnlessDry, Payload::Parameters, Scope::WRITE),
        &method("save", Effect::Maintains, Payload::None, ADMIN),
        &method("put", Effect::Changes, Payload::Resources, Scope::WRITE),
        &method("move", Effect::Changes, Payload::Parameters, Scope::WRITE),
    ],
};

/// Facts that a test sets.
#[derive(Clone, Default)]
struct Facts {
    is_read_only: bool,
    most: usize,
    rejected: Arc<AtomicU64>,
}

impl Policy for Facts {
    fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn admit(&self, bytes: usize, merges: bool) -> Result<Option<ImportPermit>, NotAdmitted> {
        let (most, limit) = if merges { (2 * self.most, "files") } else { (self.most, "payloads") };
        if bytes > most { Err(NotAdmitted::TooLarge { bytes, most, limit }) } else { Ok(None) }
    }

    fn note_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }
}

/// Keeps audit lines, as `name=value` with spaces between.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == AUDIT {
            let mut line = Line::default();
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() != "micros" {
            let _ = write!(self.0, "{}={value:?} ", field.name());
        }
    }
}

/// Runs `f`, and returns what it gives with the audit lines that it left.
pub(crate) fn audited<T>(f: impl FnOnce() -> T) -> (T, Vec<String>) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    let given = tracing::subscriber::with_default(subscriber, f);
    let lines = lines.0.lock().unwrap().clone();
    (given, lines)
}

fn somebody(scopes: &[Scope]) -> Caller {
    Caller { scopes: Scopes::only(scopes), remedy: Some("say please"), ..Caller::trusted("a") }
}

const ALL: [Scope; 3] = [Scope::READ, Scope::WRITE, ADMIN];
const NOW: Duration = Duration::from_secs(100);

/// Each method of a table is refused for each reason that concerns it, counted, and leaves one line.
pub(crate) fn each_method_is_decided(protocol: &'static Protocol, scopes: &[Scope]) {
    let open = Facts { most: 1000, ..Facts::default() };
    for &method in protocol.methods {
        assert_eq!(method.protocol, protocol.name);
        assert_eq!(protocol.method(method.name), Some(method), "its name is its own");
        let small = Incoming { bytes: 10, decoded: 10, merges: false };
        let ask = |facts: &Facts, caller: &Caller, incoming| {
            let before = facts.rejected.load(Ordering::Relaxed);
            let router = Router::new(facts.clone());
            let (refusal, lines) = audited(|| match router.admit(caller, method, incoming) {
                Ok(admitted) => {
                    admitted.done();
                    None
                }
                Err(refusal) => Some(refusal),
            });
            let outcome = refusal.map_or("ok", |refusal| refusal.code().as_str());
            let line = format!(
                "caller=\"a\" protocol=\"{}\" method=\"{}\" bytes={} outcome=\"{outcome}\" ",
                protocol.name, method.name, incoming.bytes
            );
            assert_eq!(lines, [line]);
            let counted = facts.rejected.load(Ordering::Relaxed) - before;
            assert_eq!(counted, u64::from(refusal.is_some()), "{}", method.name);
            refusal
        };
        let everything = somebody(scopes);
        assert_eq!(ask(&open, &everything, small), None, "{}", method.name);
        assert_eq!(ask(&open, &Caller::trusted("a"), small), None);

        let read_only = Facts { is_read_only: true, ..open.clone() };
        let refused = (method.effect == Effect::Changes).then_some(Refusal::ReadOnly);
        assert_eq!(ask(&read_only, &everything, small), refused, "{}", method.name);

        let others: Vec<Scope> =
            scopes.iter().copied().filter(|scope| *scope != method.scope).collect();
        let refused = Refusal::Scope { needed: method.scope, remedy: Some("say please") };
        assert_eq!(ask(&open, &somebody(&others), small), Some(refused), "{}", method.name);

        let large = Incoming { bytes: 1001, ..small };
        let (bytes, most) = (1001, 1000);
        let refused = Refusal::TooLarge { bytes, most, size: Size::Payload("payloads") };
        assert_eq!(ask(&open, &everything, large), Some(refused), "{}", method.name);
        assert_eq!(ask(&open, &everything, Incoming { merges: true, ..large }), None);

        let mut bounded = everything.clone();
        bounded.bounds.decoded = Some(DecodedBounds { resources: 60, parameters: 30 });
        let most = if method.payload == Payload::Resources { 60 } else { 30 };
        let decoded = |bytes| Incoming { decoded: bytes, ..small };
        assert_eq!(ask(&open, &bounded, decoded(most)), None, "{}", method.name);
        let refused = Refusal::TooLarge { bytes: most + 1, most, size: Size::Decoded };
        assert_eq!(ask(&open, &bounded, decoded(most + 1)), Some(refused), "{}", method.name);

        let mut slow = everything.clone();
        slow.bounds.rate = Some(Rate { requests: 1, per: Duration::from_secs(60) });
        let router = Router::new(open.clone());
        let at = |now| {
            let (refusal, lines) =
                audited(|| router.admit_at(&slow, method, small, now).map(Admitted::done).err());
            assert_eq!(lines.len(), 1);
            refusal
        };
        let retry_after = Duration::from_secs(50);
        assert_eq!(at(NOW), None);
        let refusal = Some(Refusal::TooOften { retry_after });
        assert_eq!(at(NOW + Duration::from_secs(10)), refusal, "{}", method.name);
        assert_eq!(at(NOW + Duration::from_secs(60)), None);
    }
}

#[test]
fn each_method_of_a_table_is_refused_for_each_reason() {
    each_method_is_decided(&TOY, &ALL);
}

#[test]
fn each_refusal_has_its_code() {
    let too_large = Refusal::TooLarge { bytes: 2, most: 1, size: Size::Decoded };
    let too_often = Refusal::TooOften { retry_after: NOW };
    for (refusal, code) in [
        (Refusal::ReadOnly, "UNAUTHORIZED"),
        (Refusal::Scope { needed: ADMIN, remedy: None }, "UNAUTHORIZED"),
        (too_large, "TOO_LARGE"),
        (Refusal::ImportUnderWay, "BUSY"),
        (too_often, "BUSY"),
    ] {
        assert_eq!(refusal.code().as_str(), code);
    }
}

#[test]
fn what_a_caller_may_not_do_costs_it_nothing_of_its_rate() {
    let router = Router::new(Facts { most: 1000, ..Facts::default() });
    let mut caller = somebody(&[Scope::READ]);
    caller.bounds.rate = Some(Rate { requests: 1, per: Duration::from_secs(60) });
    let ask = |name| {
        let method = TOY.method(name).unwrap();
        router.admit_at(&caller, method, Incoming::default(), NOW).map(Admitted::done)
    };
    assert!(matches!(ask("put"), Err(Refusal::Scope { .. })));
    ask("look").unwrap();
    assert!(matches!(ask("look"), Err(Refusal::TooOften { .. })));
}

#[test]
fn a_burst_is_heard_at_once_and_then_evenly() {
    let router = Router::new(Facts::default());
    let mut caller = somebody(&ALL);
    caller.bounds.rate = Some(Rate { requests: 4, per: Duration::from_secs(4) });
    let other = Caller { name: "b".into(), ..caller.clone() };
    let tenant = Caller { tenant: Some("t".into()), ..caller.clone() };
    let heard = |caller: &Caller, millis: u64| {
        let now = NOW + Duration::from_millis(millis);
        router.admit_at(caller, TOY.methods[0], Incoming::default(), now).is_ok()
    };
    assert_eq!((0..9).filter(|_| heard(&caller, 0)).count(), 4);
    assert!(heard(&other, 0) && heard(&tenant, 0), "others do not pay for it");
    assert!(!heard(&caller, 999) && heard(&caller, 1000) && !heard(&caller, 1001));
    assert_eq!((0..9).filter(|_| heard(&caller, 60_000)).count(), 4, "no more than one burst");
}

#[test]
fn a_request_says_how_it_ended_once() {
    let facts = Facts::default();
    let router = Router::new(facts.clone());
    let look = TOY.methods[0];
    let caller = Caller { tenant: Some("t".into()), ..somebody(&ALL) };
    let patient = Caller { retries: true, ..somebody(&ALL) };
    let admit = |caller: &Caller| router.admit(caller, look, Incoming::default()).unwrap();
    let ((), lines) = audited(|| {
        admit(&caller).done();
        drop(admit(&caller));
        admit(&caller).finish::<()>(&Err(Error::new(Code::NotFound, "not there")));
        admit(&patient).failed(Code::Busy);
        admit(&patient).failed(Code::Conflict);
        router.refuse(&caller, look, 7, Code::InvalidQuery);
    });
    let outcomes: Vec<&str> =
        lines.iter().map(|line| line.split("outcome=").nth(1).unwrap().trim()).collect();
    let expected = [
        "\"ok\"",
        "\"given up\"",
        "\"NOT_FOUND\"",
        "\"BUSY\"",
        "\"CONFLICT\"",
        "\"INVALID_QUERY\"",
    ];
    assert_eq!(outcomes, expected);
    assert!(lines[0].starts_with("caller=\"a\" tenant=\"t\" protocol="), "{}", lines[0]);
    let rejected = facts.rejected.load(Ordering::Relaxed);
    assert_eq!(rejected, 3, "who asks again by itself is not refused");
}

#[test]
fn an_answer_in_parts_has_no_bound_as_a_whole() {
    let router = Router::new(Facts::default());
    let mut caller = somebody(&ALL);
    caller.bounds.reply_bytes = Some(500);
    let bound = |name| {
        let method = TOY.method(name).unwrap();
        router.admit(&caller, method, Incoming::default()).unwrap().reply_bytes()
    };
    assert_eq!((bound("look"), bound("watch")), (Some(500), None));
}

#[test]
fn a_dry_run_is_no_change() {
    let ask = |is_read_only| {
        let router = Router::new(Facts { is_read_only, ..Facts::default() });
        let tidy = TOY.method("tidy").unwrap();
        let admitted = router.admit(&somebody(&ALL), tidy, Incoming::default()).unwrap();
        admitted.expect_change()
    };
    assert_eq!((ask(false), ask(true)), (Ok(()), Err(Refusal::ReadOnly)));
}

/// The permit of a large import goes back when the request is over.
#[test]
fn one_large_import_is_let_in_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut parts = crate::testing::parts(dir.path());
    parts.settings.limits.max_payload_bytes = 1000;
    let engine = Engine::open(parts, &mut |_| {}).unwrap();
    let router = Router::new(engine.clone());
    let put = TOY.method("put").unwrap();
    let large = Incoming { bytes: 1001, merges: true, ..Incoming::default() };
    let admit = || router.admit(&Caller::trusted("a"), put, large);
    let first = admit().unwrap();
    assert_eq!(admit().map(Admitted::done), Err(Refusal::ImportUnderWay));
    first.done();
    admit().unwrap().done();
    engine.stop();
}
