//! The session of a line: messages of the link become requests, and answers become messages (docs/serial-protocol.md,
//! section 3). Requests are worked on one after the other, on a thread of their own, so that the line is
//! served meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use omir_core::link::message::{Answer, Answered, Asked, Inbox, MessageError, Request, weight};
use omir_core::link::pack::{pack, unpack};
use omir_core::value::Map;

use super::share::{Budget, Turn};
use crate::error::{Code, Error};
use crate::protocols::Protocols;
use crate::protocols::omir::link::{self, Exchange, PUSH, Readings, UNKNOWN, Unwanted, failed};
use crate::protocols::omir::worded;
use crate::router::{
    AccessPolicy, Admitted, Bounds, Caller, DecodedBounds, Gate, Incoming, Method,
};

/// Requests of a session that wait; more are answered `BUSY`.
const MOST_WAITING: usize = 2;
/// Messages that are made before the line has taken them.
const AHEAD: usize = 2;
/// Answers that nobody took; who asks for more and lets them lie is not served any longer.
const MOST_UNTAKEN: usize = 64;
/// Bytes that a push takes when it is decoded, about, and any other request. One is at a time.
const MOST_PUSH: usize = 48 << 20;
const MOST_REQUEST: usize = 4 << 20;
/// Requests that were given up and have not noticed yet; more are refused.
const MOST_RUNNING: usize = 4;
/// How somebody on a port gets to write.
const REMEDY: &str = "this port is read-only; unlock it with its token, or set access = \"write\"";

/// Handles one session after the other.
pub struct SessionHandler {
    protocols: Protocols,
    /// The name that whoever is on the line has for the router.
    name: Arc<str>,
    gate: Gate,
    budget: Budget,
    inbox: Inbox,
    waiting: VecDeque<Waiting>,
    running: Option<Running>,
    /// Until then nothing is read: what was read took its share of a core. Microseconds.
    rests_until: u64,
    /// What a pull selected that may go on.
    readings: Readings,
    /// The selection of which this session was given all, by its name.
    told: Option<String>,
    /// One for each thread that still works.
    threads: Arc<()>,
    /// Messages to be sent, the first of them from this byte on.
    out: VecDeque<Vec<u8>>,
    sent: usize,
}

/// A request whose turn is still to come, as it was sent: decoded it may take many times the room.
struct Waiting {
    id: u64,
    message: Vec<u8>,
    admitted: Admitted,
    is_pull: bool,
    deflate: bool,
}

struct Running {
    id: u64,
    /// Lives as long as somebody wants to know.
    _wanted: Arc<()>,
    is_pull: bool,
    messages: Receiver<Message>,
    count: u64,
}

/// An answer as it goes over the line.
struct Message {
    bytes: Vec<u8>,
    /// Resources in it.
    items: u64,
    /// Nothing more is said to that request.
    is_last: bool,
    /// The kept selection that ends with it, by its name.
    told: Option<String>,
}

impl SessionHandler {
    /// Of a port of this name.
    pub fn new(
        protocols: Protocols,
        name: Arc<str>,
        access: AccessPolicy,
        budget: Budget,
    ) -> SessionHandler {
        SessionHandler {
            gate: Gate::new(access),
            protocols,
            name,
            budget,
            inbox: Inbox::default(),
            waiting: VecDeque::new(),
            running: None,
            rests_until: 0,
            readings: Readings::default(),
            told: None,
            threads: Arc::new(()),
            out: VecDeque::new(),
            sent: 0,
        }
    }

    /// A session begins, or ends: nothing of the last one counts.
    pub fn clear(&mut self) {
        self.gate.lock();
        self.told = None;
        self.inbox.clear();
        self.waiting.clear();
        self.running = None;
        self.out.clear();
        self.sent = 0;
    }

    /// The session ends, and its initiator says that all is said: what was given to its end is not gone on with.
    pub fn done(&mut self) {
        if let Some(name) = self.told.take().filter(|_| self.out.is_empty()) {
            self.readings.drop(&name);
        }
        self.clear();
    }

    /// Takes a part of a message. `now` in microseconds.
    ///
    /// # Errors
    /// What came is no message, or one too many: the session is to be ended.
    pub fn receive(&mut self, part: &[u8], last: bool, now: u64) -> Result<(), MessageError> {
        let broken = |message| MessageError { id: None, path: "/".to_owned(), message };
        let Some(bytes) = self.inbox.push(part, last)? else { return Ok(()) };
        if self.out.len() >= MOST_UNTAKEN {
            return Err(broken(format!("{MOST_UNTAKEN} answers wait, and more is asked")));
        }
        let turn = self.budget.begin_at_once();
        let read = unpack(bytes).map_err(|error| broken(error.to_string()));
        let read = read.and_then(|bytes| self.read(bytes, now));
        let owed = u64::try_from(turn.settle().as_micros()).unwrap_or(u64::MAX);
        self.rests_until = now.saturating_add(owed);
        read
    }

    /// Whoever is on the line. Only their requests know what memory decoding takes.
    fn caller(&self) -> Caller {
        let decoded = Some(DecodedBounds { resources: MOST_PUSH, parameters: MOST_REQUEST });
        Caller {
            scopes: self.gate.scopes(),
            bounds: Bounds { decoded, ..Bounds::default() },
            remedy: Some(REMEDY),
            ..Caller::trusted(self.name.clone())
        }
    }

    fn read(&mut self, message: Vec<u8>, now: u64) -> Result<(), MessageError> {
        let glance = Asked::glance(&message);
        let method = glance.as_ref().map_or(&UNKNOWN, |(_, op)| link::method(op));
        let incoming = Incoming {
            bytes: message.len(),
            decoded: weight(&message),
            merges: std::ptr::eq(method, &PUSH),
        };
        // Before memory goes into decoding it. What a glance does not see is refused in `ask`.
        let caller = self.caller();
        if let Err(refusal) = self.protocols.router.check(&caller, method, incoming) {
            let error = worded(refusal);
            self.refuse(method, incoming, error.code);
            let Some((id, _)) = glance else {
                let (path, message) = ("/".to_owned(), error.message);
                return Err(MessageError { id: None, path, message });
            };
            self.answer(id, failed(error));
            return Ok(());
        }
        match Asked::decode(&message) {
            Ok(asked) => self.ask(&caller, asked, message, incoming, now),
            Err(error) => {
                self.refuse(method, incoming, Code::InvalidQuery);
                let Some(id) = error.id else { return Err(error) };
                let refused = Error::at(Code::InvalidQuery, error.path, error.message);
                self.answer(id, failed(refused));
            }
        }
        Ok(())
    }

    fn refuse(&self, method: &'static Method, incoming: Incoming, code: Code) {
        self.protocols.router.refuse(&self.caller(), method, incoming.bytes, code);
    }

    /// Until when nothing more is to be received, if that is later than now.
    pub fn rests_until(&self, now: u64) -> Option<u64> {
        (now < self.rests_until).then_some(self.rests_until)
    }

    /// Bytes to be sent next, and whether their message ends with them.
    pub fn next_part(&mut self) -> Option<(&[u8], bool)> {
        self.advance();
        let message = self.out.front()?;
        Some((&message[self.sent..], true))
    }

    /// So many of them were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.out.front().is_some_and(|message| self.sent >= message.len()) {
            self.out.pop_front();
            self.sent = 0;
        }
    }

    /// Drops what an interrupted pull left here, if nobody has come back for it. `now` in microseconds.
    pub fn tidy(&mut self, now: u64) {
        self.readings.tidy(self.running.is_some(), now);
    }

    /// Whether something is kept of a pull.
    #[cfg(test)]
    pub fn keeps(&self) -> bool {
        self.readings.are_kept()
    }

    /// Whether a request is being worked on: there may be something to send without anything coming in.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    fn ask(
        &mut self,
        caller: &Caller,
        asked: Asked,
        message: Vec<u8>,
        incoming: Incoming,
        now: u64,
    ) {
        let Asked { id, request } = asked;
        let method = link::method_of(&request);
        let incoming = Incoming { merges: std::ptr::eq(method, &PUSH), ..incoming };
        let Protocols { router, omir, .. } = &self.protocols;
        let admitted = match router.admit(caller, method, incoming) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.answer(id, failed(worded(refusal))),
        };
        match request {
            Request::Info => {
                let may_push = router.check(caller, &PUSH, Incoming::default()).is_ok();
                let info = omir.info(&admitted, may_push);
                admitted.done();
                self.answer(id, Answer::Ok(info.to_map()));
            }
            Request::Unlock(token) => {
                let unlocked = self.gate.unlock(&token, now);
                admitted.finish(&unlocked);
                self.answer(id, unlocked.map_or_else(failed, |()| Answer::Ok(Map::new())));
            }
            Request::Cancel(of) => {
                self.cancel(of);
                admitted.done();
                self.answer(id, Answer::Ok(Map::new()));
            }
            request if self.waiting.len() < MOST_WAITING => {
                let (is_pull, deflate) = match &request {
                    Request::Pull(pull) => (true, pull.deflate),
                    _ => (false, false),
                };
                self.waiting.push_back(Waiting { id, message, admitted, is_pull, deflate });
            }
            _ => {
                admitted.failed(Code::Busy);
                self.answer(id, failed(Error::new(Code::Busy, "too many requests wait")));
            }
        }
    }

    fn cancel(&mut self, of: u64) {
        if let Some(running) = self.running.take_if(|running| running.id == of) {
            if running.is_pull {
                let end = Answer::End { count: running.count, complete: false };
                self.answer(of, end);
            } else {
                // A change that is made is made; it is answered all the same.
                self.running = Some(running);
            }
        }
        if let Some(at) = self.waiting.iter().position(|asked| asked.id == of) {
            self.waiting.remove(at);
            let error = Error::new(Code::Busy, "cancelled before anything was done");
            self.answer(of, failed(error));
        }
    }

    fn answer(&mut self, id: u64, answer: Answer) {
        self.out.push_back(Answered { id, answer }.encode());
    }

    /// Fetches what the request that is worked on has to say, and begins the next one.
    fn advance(&mut self) {
        while self.out.len() < AHEAD {
            let Some(running) = &mut self.running else {
                let Some(asked) = self.waiting.pop_front() else { return };
                self.begin(asked);
                continue;
            };
            match running.messages.try_recv() {
                Ok(message) => {
                    running.count += message.items;
                    self.told = message.told.or(self.told.take());
                    self.out.push_back(message.bytes);
                    if message.is_last {
                        self.running = None;
                    }
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.running = None,
            }
        }
    }

    fn begin(&mut self, asked: Waiting) {
        let Waiting { id, message, admitted, is_pull, deflate } = asked;
        if Arc::strong_count(&self.threads) > MOST_RUNNING {
            admitted.failed(Code::Busy);
            let why = "what was given up is not over yet; try again in a moment";
            return self.answer(id, failed(Error::new(Code::Busy, why)));
        }
        let (out, messages) = bounded(1);
        let wanted = Arc::new(());
        let (noted, budget) = (Arc::downgrade(&wanted), self.budget.clone());
        let (omir, readings) = (self.protocols.omir.clone(), self.readings.clone());
        let alive = self.threads.clone();
        let thread = std::thread::Builder::new().name("omird-asked".to_owned());
        let run = move || {
            let mut job = Job { id, deflate, wanted: noted, share: budget.begin(), out };
            // It waited for its share of time, and a session that has ended takes no answer: nothing was begun.
            if job.is_wanted() {
                match Asked::decode(&message) {
                    Ok(asked) => omir.exchange(admitted, asked.request, &readings, &mut job),
                    // It was understood before it waited.
                    Err(error) => {
                        let error = Error::at(Code::InvalidQuery, error.path, error.message);
                        admitted.failed(error.code);
                        let _ = job.say(failed(error));
                    }
                }
            }
            drop((job, alive));
        };
        match thread.spawn(run) {
            Ok(_) => {
                self.running = Some(Running { id, _wanted: wanted, is_pull, messages, count: 0 });
            }
            Err(error) => {
                let error = Error::new(Code::Busy, format!("no thread for it: {error}"));
                self.answer(id, failed(error));
            }
        }
    }
}

/// A request on its own thread. When nobody takes its answers any more, it ends.
struct Job {
    /// Of the request.
    id: u64,
    /// The other end reads what is packed.
    deflate: bool,
    /// Nobody is left who wants to know, once it cannot be upgraded.
    wanted: Weak<()>,
    share: Turn,
    out: Sender<Message>,
}

impl Exchange for Job {
    fn say(&mut self, answer: Answer) -> Result<(), Unwanted> {
        self.say_end_of(None, answer)
    }

    fn say_end_of(&mut self, told: Option<String>, answer: Answer) -> Result<(), Unwanted> {
        let items = if let Answer::Items { items, .. } = &answer { items.len() as u64 } else { 0 };
        let is_last = !matches!(answer, Answer::Begin { .. } | Answer::Items { .. });
        let message = Answered { id: self.id, answer }.encode();
        let bytes = if self.deflate { pack(message) } else { message };
        self.out.send(Message { bytes, items, is_last, told }).map_err(|_| Unwanted)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }

    fn rest(&mut self) {
        self.share.rest();
    }

    fn rest_if_due(&mut self) {
        self.share.rest_if_due();
    }
}

/// How long a port with a request under way may wait for it before it looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod pulls;

#[cfg(test)]
mod tests {
    use omir_core::cbor;
    use omir_core::decode::Limits;

    use super::*;
    use crate::protocols::omir::link::MOST_TOLD;
    use crate::router::Router;
    use crate::router::testing::Overheard;
    use crate::serial::Share;
    use crate::serial::testing::Bench;

    fn handler(bench: &Bench) -> SessionHandler {
        let budget = Budget::new(Share::new(1.0));
        let access = AccessPolicy { write: false, token: None };
        SessionHandler::new(bench.protocols(), Arc::from("serial"), access, budget)
    }

    fn ask(handler: &mut SessionHandler, id: u64, request: &str) -> Result<(), MessageError> {
        let text = format!(r#"{{"id":{id},{request}}}"#);
        let message = cbor::to_vec(
            &omir_core::json::from_slice(text.as_bytes(), &Limits::default()).unwrap(),
        );
        handler.receive(&message, true, 0)
    }

    #[test]
    fn who_asks_and_never_listens_is_not_served_any_longer() {
        let bench = Bench::new();
        let mut handler = handler(&bench);
        let answered = (1..1000).take_while(|&id| ask(&mut handler, id, r#""op":"info""#).is_ok());
        assert_eq!(answered.count(), MOST_UNTAKEN);
        handler.clear();
        ask(&mut handler, 1, r#""op":"info""#).unwrap();
    }

    #[test]
    fn what_waits_is_not_decoded_and_what_may_not_be_done_does_not_wait() {
        let bench = Bench::new();
        let mut handler = handler(&bench);
        let push = |id: u64| {
            let items = std::iter::repeat_n(r#"{"a":0}"#, 100).collect::<Vec<_>>().join(",");
            (id, format!(r#""op":"push","items":[{items}]"#))
        };
        // Whether or not anything else is still to be answered.
        for id in 1..=40 {
            ask(&mut handler, id, r#""op":"info""#).unwrap();
        }
        let (id, text) = push(41);
        ask(&mut handler, id, &text).unwrap();
        assert_eq!(handler.waiting.len(), 0);
        let told = |handler: &SessionHandler| {
            let last = cbor::from_slice(handler.out.back().unwrap(), &Limits::default()).unwrap();
            omir_core::json::to_string(&last)
        };
        assert!(told(&handler).contains("UNAUTHORIZED"), "{}", told(&handler));
        handler.gate = Gate::new(AccessPolicy { write: true, token: None });
        let (id, text) = push(42);
        ask(&mut handler, id, &text).unwrap();
        assert!(handler.waiting.iter().all(|waiting| waiting.message.len() < 600));
        assert_eq!(handler.waiting.len(), 1);
        // A megabyte as it is sent, and sixty as it would be read.
        let small = [0xbf, 0x61, b'a', 0x00, 0xff].repeat(200_000);
        let head = cbor::to_vec(
            &omir_core::json::from_slice(br#"{"id":43,"op":"push"}"#, &Limits::default()).unwrap(),
        );
        let message = [&[0xbf][..], &head[1..], b"\x65items\x9f", &small, &[0xff, 0xff]].concat();
        handler.receive(&message, true, 0).unwrap();
        assert!(told(&handler).contains("TOO_LARGE"), "{}", told(&handler));
        assert_eq!(handler.waiting.len(), 1);
    }

    /// There are more ways to write a message than a glance knows.
    #[test]
    fn a_push_in_disguise_is_refused_too() {
        let bench = Bench::new();
        let mut handler = handler(&bench);
        let text =
            br#"{"id":1,"op":"push","items":[{"resourceType":"Entity","id":"e","name":"e"}]}"#;
        let push = cbor::to_vec(&omir_core::json::from_slice(text, &Limits::default()).unwrap());
        // "This is CBOR": RFC 8949, section 3.4.6.
        let disguised = [&[0xd9, 0xd9, 0xf7][..], &push].concat();
        assert!(Asked::glance(&disguised).is_none() && Asked::decode(&disguised).is_ok());
        handler.receive(&disguised, true, 0).unwrap();
        assert!(handler.waiting.is_empty() && handler.running.is_none());
        let answer = cbor::from_slice(handler.out.back().unwrap(), &Limits::default()).unwrap();
        let answer = omir_core::json::to_string(&answer);
        assert!(answer.contains("UNAUTHORIZED"), "{answer}");
    }

    #[test]
    fn a_refusal_does_not_repeat_a_long_question() {
        let bench = Bench::new();
        let mut handler = handler(&bench);
        ask(&mut handler, 1, &format!(r#""op":"{}""#, "\u{e9}".repeat(100_000))).unwrap();
        let (answer, _) = handler.next_part().unwrap();
        assert!(answer.len() < 2 * MOST_TOLD, "{} bytes", answer.len());
    }

    #[test]
    fn what_nobody_waits_for_does_not_go_on_in_any_number() {
        let bench = Bench::new();
        let mut handler = handler(&bench);
        // As many as may run do, and none of them is over.
        let busy: Vec<_> = (0..MOST_RUNNING).map(|_| handler.threads.clone()).collect();
        ask(&mut handler, 1, r#""op":"pull""#).unwrap();
        let (answer, _) = handler.next_part().unwrap();
        let answer =
            omir_core::json::to_string(&cbor::from_slice(answer, &Limits::default()).unwrap());
        assert!(answer.contains("BUSY"), "{answer}");
        drop(busy);
    }

    /// Whatever becomes of it: answered at once, refused before it is decoded, no request at all, or given up. Invariant
    /// 37 of ARCHITECTURE.md.
    #[test]
    fn each_request_leaves_one_audit_line() {
        let bench = Bench::new();
        let policy = Overheard::new(bench.engine.clone());
        let mut handler = handler(&bench);
        handler.protocols.router = Router::new(policy.clone());
        ask(&mut handler, 1, r#""op":"info""#).unwrap();
        ask(&mut handler, 2, r#""op":"push","items":[]"#).unwrap();
        ask(&mut handler, 3, r#""op":"unlock","token":"sesame42""#).unwrap();
        ask(&mut handler, 4, r#""op":"fetch""#).unwrap();
        ask(&mut handler, 5, r#""op":"pull","depth":1"#).unwrap();
        ask(&mut handler, 6, r#""op":"pull""#).unwrap();
        handler.clear();
        let lines = policy.lines();
        let told: Vec<String> = lines
            .iter()
            .map(|line| {
                let mut words = line.splitn(4, ' ');
                let (caller, method) = (words.next().unwrap(), words.next().unwrap());
                assert_eq!(caller, "serial");
                let method = method.strip_prefix("omir.").unwrap();
                format!("{method} {}", words.nth(1).unwrap())
            })
            .collect();
        let expected = [
            "info ok",
            "push UNAUTHORIZED",
            "unlock UNAUTHORIZED",
            "? INVALID_QUERY",
            "pull INVALID_QUERY",
            "pull given up",
        ];
        assert_eq!(told, expected);
        let rejected = bench.engine.status("r1").get("rejected").cloned();
        assert_eq!(rejected, Some(4_u64.into()));
    }
}
