//! For tests of protocols and transports: what holds for every table of methods, a policy that a test sets, its audit lines,
//! and a message asked as a transport asks it. Nothing else uses it. Invariant 37 of ARCHITECTURE.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use omird_engine::{ImportPermit, NotAdmitted};
use parking_lot::Mutex;

use crate::{
    Admitted, AuditLine, Caller, DecodedBounds, Denial, Denied, Effect, Exchange, Incoming,
    Message, Method, Payload, Policy, Protocol, Rate, Refusal, Remedy, Response, Router, Scope,
    Scopes, Sink, Size, Unauthenticated,
};

/// Facts that a test sets.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// No caller may change anything.
    pub is_read_only: bool,
    /// Bytes of a payload; of one that is merged twice as many.
    pub most: usize,
    /// Refusals that were counted.
    pub rejected: Arc<AtomicU64>,
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

/// The audit lines of a router, as `CALLER PROTOCOL.METHOD BYTES OUTCOME REFERENCE ...`. Cloning gives another handle.
#[derive(Debug, Clone, Default)]
pub struct AuditLines(Arc<Mutex<Vec<String>>>);

impl AuditLines {
    /// Returns the sink that they come from.
    pub fn sink(&self) -> Box<dyn Sink> {
        Box::new(self.clone())
    }

    /// Takes the lines so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl Sink for AuditLines {
    fn note(&self, line: &AuditLine<'_>) {
        let AuditLine { caller, method, bytes, outcome, touched, .. } = line;
        let (protocol, name) = (method.protocol, method.name);
        let outcome = outcome.as_str();
        let mut line = format!("{} {protocol}.{name} {bytes} {outcome}", caller.name);
        touched.names().iter().for_each(|name| line.push_str(&format!(" {name}")));
        self.0.lock().push(line);
    }
}

/// Returns a caller with the name `a` and these scopes.
pub fn somebody(scopes: &[Scope]) -> Caller {
    Caller {
        scopes: Scopes::only(scopes),
        remedy: Some(Remedy::Unlock),
        ..Caller::trusted("test", "a")
    }
}

/// The time after which an answer is given up.
const LONGEST_ANSWER: Duration = Duration::from_secs(60);

/// Returns a message with these parameters.
pub fn message(body: &str, parameters: &[(&str, &str)]) -> Message {
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    Message {
        body: body.as_bytes().to_vec(),
        parameters: parameters.iter().map(own).collect(),
        request_id: None,
        trace_id: None,
        began: Instant::now(),
    }
}

/// Asks as a transport does. Returns the place where the answer comes, from any thread; a refusal is there at once.
pub fn begin(
    exchange: &dyn Exchange,
    router: &Router,
    caller: &Caller,
    method: &'static Method,
    message: Message,
) -> Receiver<Response> {
    let (tell, told) = channel();
    let incoming = Incoming { bytes: message.body.len(), ..Incoming::default() };
    match router.admit(caller, method, incoming) {
        Ok(admitted) => {
            let reply = Box::new(move |answer| drop(tell.send(answer)));
            exchange.answer(admitted, message, reply);
        }
        Err(refusal) => {
            let (why, request_id) = (Denial::Refusal(refusal), message.request_id);
            let denied = Denied { method, why, request_id, rate: router.usage(caller, method) };
            drop(tell.send(exchange.refuse(&denied)));
        }
    }
    told
}

/// Asks as a transport does, and waits for the answer.
///
/// # Panics
/// If there is none.
pub fn exchanged(
    exchange: &dyn Exchange,
    router: &Router,
    caller: &Caller,
    method: &'static Method,
    message: Message,
) -> Response {
    let told = begin(exchange, router, caller, method, message);
    told.recv_timeout(LONGEST_ANSWER).expect("there is an answer")
}

/// Checks that each method of a table is refused for each reason that concerns it, that this is counted, and that each
/// request leaves one line.
///
/// # Panics
/// If not.
pub fn each_method_is_decided(protocol: &'static Protocol, scopes: &[Scope]) {
    let open = Facts { most: 1000, ..Facts::default() };
    for &method in protocol.methods {
        assert_eq!(method.protocol, protocol.name);
        assert_eq!(protocol.method(method.name), Some(method), "its name is its own");
        let small = Incoming { bytes: 10, decoded: 10, merges: false };
        let ask = |facts: &Facts, caller: &Caller, incoming| {
            let before = facts.rejected.load(Ordering::Relaxed);
            let lines = AuditLines::default();
            let router = Router::new(facts.clone(), [lines.sink()]);
            let refusal = router.admit(caller, method, incoming).map(Admitted::done).err();
            let outcome = refusal.map_or("ok", |refusal| refusal.code().as_str());
            let line = format!("a {}.{} {} {outcome}", protocol.name, method.name, incoming.bytes);
            assert_eq!(lines.take(), [line]);
            let counted = facts.rejected.load(Ordering::Relaxed) - before;
            assert_eq!(counted, u64::from(refusal.is_some()), "{}", method.name);
            refusal
        };
        let everything = somebody(scopes);
        assert_eq!(ask(&open, &everything, small), None, "{}", method.name);
        assert_eq!(ask(&open, &Caller::trusted("test", "a"), small), None);

        let read_only = Facts { is_read_only: true, ..open.clone() };
        let refused = (method.effect == Effect::Changes).then_some(Refusal::ReadOnly);
        assert_eq!(ask(&read_only, &everything, small), refused, "{}", method.name);

        let held_to_reading = Caller { only_reads: true, ..everything.clone() };
        let may_change = !matches!(method.effect, Effect::Reads | Effect::ChangesUnlessDry);
        let refused = may_change.then_some(Refusal::OnlyReads);
        assert_eq!(ask(&open, &held_to_reading, small), refused, "{}", method.name);

        let needed = method.scope;
        let closed = needed != Scope::OPEN;
        let is_one = |scope: &Scope| needed.alternatives().any(|needed| needed == *scope);
        let others: Vec<Scope> = scopes.iter().copied().filter(|scope| !is_one(scope)).collect();
        for one in needed.alternatives() {
            assert_eq!(ask(&open, &somebody(&[one]), small), None, "{} by {one}", method.name);
        }
        let refused = closed.then_some(Refusal::Scope { needed, remedy: Some(Remedy::Unlock) });
        assert_eq!(ask(&open, &somebody(&others), small), refused, "{}", method.name);
        let nobody = Caller { remedy: Some(Remedy::Token), ..somebody(&[]) };
        let refused = closed.then_some(Refusal::Unauthenticated(Unauthenticated::Missing));
        assert_eq!(ask(&open, &nobody, small), refused, "{}", method.name);

        let (most, size) = match method.payload {
            Payload::Message(most) => (most, Size::Message),
            _ => (1000, Size::Payload("payloads")),
        };
        let bytes = most + 1;
        let large = Incoming { bytes, ..small };
        let refused = Refusal::TooLarge { bytes, most, size };
        assert_eq!(ask(&open, &everything, large), Some(refused), "{}", method.name);
        let refused = (method.payload != Payload::Resources).then_some(refused);
        assert_eq!(ask(&open, &everything, Incoming { merges: true, ..large }), refused);

        let mut bounded = everything.clone();
        bounded.bounds.decoded = Some(DecodedBounds { resources: 60, parameters: 30 });
        let most = if method.payload == Payload::Resources { 60 } else { 30 };
        let decoded = |bytes| Incoming { decoded: bytes, ..small };
        assert_eq!(ask(&open, &bounded, decoded(most)), None, "{}", method.name);
        let refused = Refusal::TooLarge { bytes: most + 1, most, size: Size::Decoded };
        assert_eq!(ask(&open, &bounded, decoded(most + 1)), Some(refused), "{}", method.name);

        let mut slow = everything.clone();
        slow.bounds.rates[0] = Some(Rate { requests: 1, per: Duration::from_secs(60) });
        let lines = AuditLines::default();
        let router = Router::new(open.clone(), [lines.sink()]);
        let at = |seconds| {
            let now = Duration::from_secs(seconds);
            let refusal = router.admit_at(&slow, method, small, now).map(Admitted::done).err();
            assert_eq!(lines.take().len(), 1);
            refusal
        };
        let retry_after = Duration::from_secs(50);
        assert_eq!(at(100), None);
        assert_eq!(at(110), Some(Refusal::TooOften { retry_after }), "{}", method.name);
        assert_eq!(at(160), None);
    }
}
