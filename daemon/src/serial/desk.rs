//! Where messages of the link become questions and changes of the engine, and back (docs/serial-protocol.md,
//! section 3). Requests are worked on one after the other, on a thread of their own, so that the line is
//! served meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use omir_core::cbor;
use omir_core::link::message::{
    Answer, Answered, Asked, Failure, Inbox, Info, MessageError, Push, Pushed, Request, weight,
};
use omir_core::link::pack::{pack, unpack};
use omir_core::value::{Map, Value};

use super::share::{Budget, Turn};
use crate::PRODUCER;
use crate::engine::Engine;
use crate::engine::command::Effect;
use crate::engine::merge::{Merged, Precedence};
use crate::engine::reading::Shelf;
use crate::engine::request::Encoding;
use crate::error::{Code, Error};
use crate::router::{AccessPolicy, Gate, Scope};

/// Requests of a session that wait; more are answered `BUSY`.
const MOST_WAITING: usize = 2;
/// Messages that are made before the line has taken them.
const AHEAD: usize = 2;
/// Answers that nobody took; who asks for more and lets them lie is not served any longer.
const MOST_UNTAKEN: usize = 64;
/// Bytes that a push takes when it is decoded, about, and any other request. One is at a time.
const MOST_PUSH: usize = 48 << 20;
const MOST_REQUEST: usize = 4 << 20;
/// Bytes of a refusal, which may quote what was asked, and of where that stands.
const MOST_TOLD: usize = 500;
/// Requests that were given up and have not noticed yet; more are refused.
const MOST_RUNNING: usize = 4;
/// The other side of a port's counter: one session at a time.
pub struct Desk {
    engine: Engine,
    robot: Arc<str>,
    gate: Gate,
    budget: Budget,
    inbox: Inbox,
    waiting: VecDeque<Waiting>,
    running: Option<Running>,
    /// Until then nothing is read: what was read took its share of a core. Microseconds.
    rests_until: u64,
    /// What a pull selected that may go on.
    shelf: Shelf,
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

impl Desk {
    /// Of an engine that serves under this name.
    pub fn new(engine: Engine, robot: Arc<str>, access: AccessPolicy, budget: Budget) -> Desk {
        Desk {
            gate: Gate::new(access),
            engine,
            robot,
            budget,
            inbox: Inbox::default(),
            waiting: VecDeque::new(),
            running: None,
            rests_until: 0,
            shelf: Shelf::default(),
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
            self.shelf.drop(&name);
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

    fn read(&mut self, message: Vec<u8>, now: u64) -> Result<(), MessageError> {
        let glance = Asked::glance(&message);
        let is_push = glance.as_ref().is_some_and(|(_, op)| op == "push");
        // Before memory goes into decoding it. What a glance does not see is refused in `ask`.
        let refused = if is_push && !self.may_write() {
            Some(read_only())
        } else if weight(&message) > if is_push { MOST_PUSH } else { MOST_REQUEST } {
            let why = "decoded it takes more memory than a request may; send less at a time";
            Some(Error::new(Code::TooLarge, why))
        } else {
            None
        };
        match (refused, glance) {
            (Some(error), Some((id, _))) => {
                self.engine.note_rejected();
                self.answer(id, failed(error));
                return Ok(());
            }
            (Some(error), None) => {
                return Err(MessageError {
                    id: None,
                    path: "/".to_owned(),
                    message: error.message,
                });
            }
            (None, _) => {}
        }
        match Asked::decode(&message) {
            Ok(asked) => self.ask(asked, message, now),
            Err(error) => match error.id {
                None => return Err(error),
                Some(id) => {
                    let refused = Error::at(Code::InvalidQuery, error.path, error.message);
                    self.answer(id, failed(refused));
                }
            },
        }
        Ok(())
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
        self.shelf.tidy(self.running.is_some(), now);
    }

    /// Whether something is kept of a pull.
    #[cfg(test)]
    pub fn keeps(&self) -> bool {
        self.shelf.is_used()
    }

    /// Whether a request is being worked on: there may be something to send without anything coming in.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    fn ask(&mut self, asked: Asked, message: Vec<u8>, now: u64) {
        let id = asked.id;
        if matches!(asked.request, Request::Push(_)) && !self.may_write() {
            self.engine.note_rejected();
            return self.answer(id, failed(read_only()));
        }
        match asked.request {
            Request::Info => {
                let info = self.info();
                self.answer(id, Answer::Ok(info.to_map()));
            }
            Request::Unlock(token) => {
                let answer = match self.gate.unlock(&token, now) {
                    Ok(()) => Answer::Ok(Map::new()),
                    Err(error) => failed(error),
                };
                self.answer(id, answer);
            }
            Request::Cancel(of) => {
                self.cancel(of);
                self.answer(id, Answer::Ok(Map::new()));
            }
            request if self.waiting.len() < MOST_WAITING => {
                let (is_pull, deflate) = match &request {
                    Request::Pull(pull) => (true, pull.deflate),
                    _ => (false, false),
                };
                self.waiting.push_back(Waiting { id, message, is_pull, deflate });
            }
            _ => self.answer(id, failed(Error::new(Code::Busy, "too many requests wait"))),
        }
    }

    fn may_write(&self) -> bool {
        self.gate.scopes().hold(Scope::WRITE) && !self.engine.settings().read_only
    }

    fn info(&self) -> Info {
        let (now, clock) = self.engine.now();
        Info {
            robot: self.robot.to_string(),
            program: PRODUCER.to_owned(),
            write: self.may_write(),
            time: now.to_string(),
            clock: clock.as_str().to_owned(),
            count: self.engine.live(),
            deflate: true,
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
        if Arc::strong_count(&self.threads) > MOST_RUNNING {
            let why = "what was given up is not over yet; try again in a moment";
            return self.answer(asked.id, failed(Error::new(Code::Busy, why)));
        }
        let (sender, messages) = bounded(1);
        let Waiting { id, message, is_pull, deflate } = asked;
        let wanted = Arc::new(());
        let job = Job {
            engine: self.engine.clone(),
            id,
            deflate,
            wanted: Arc::downgrade(&wanted),
            shelf: self.shelf.clone(),
            out: sender,
        };
        let budget = self.budget.clone();
        let alive = self.threads.clone();
        let thread = std::thread::Builder::new().name("omird-asked".to_owned());
        let run = move || {
            job.run(&message, &mut budget.begin());
            drop(alive);
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

fn read_only() -> Error {
    let why = "this port is read-only; unlock it with its token, or set access = \"write\"";
    Error::new(Code::Unauthorized, why)
}

fn failed(error: Error) -> Answer {
    let path = Some(error.path).filter(|path| !path.is_empty());
    let path = path.map(clipped);
    let message = clipped(error.message);
    Answer::Error(Failure { code: error.code.as_str().to_owned(), message, path })
}

/// A text that may have come over the line, no longer than a person reads.
fn clipped(mut text: String) -> String {
    if text.len() > MOST_TOLD {
        let end = (0..=MOST_TOLD).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text += " ...";
    }
    text
}

/// A request on its own thread. When nobody takes its answers any more, it ends.
pub(super) struct Job {
    pub(super) engine: Engine,
    /// Of the request.
    id: u64,
    /// The other end reads what is packed.
    deflate: bool,
    /// Nobody is left who wants to know, once it cannot be upgraded.
    pub(super) wanted: Weak<()>,
    pub(super) shelf: Shelf,
    out: Sender<Message>,
}

/// Nobody wants to know any more.
pub(super) struct Unwanted;

impl Job {
    fn run(self, message: &[u8], share: &mut Turn) {
        // It waited for its share of time, and a session that has ended takes no answer: nothing was begun.
        if self.wanted.strong_count() == 0 {
            return;
        }
        let done = match Asked::decode(message).map(|asked| asked.request) {
            Ok(Request::Pull(pull)) => self.pull(&pull, share),
            Ok(Request::Push(push)) => self.push(push),
            Ok(_) => Err(Error::new(Code::InvalidQuery, "this operation is not known here")),
            Err(error) => Err(Error::at(Code::InvalidQuery, error.path, error.message)),
        };
        if let Err(error) = done {
            self.engine.note_rejected();
            let _ = self.say(failed(error));
        }
    }

    pub(super) fn say(&self, answer: Answer) -> Result<(), Unwanted> {
        self.say_last_of(None, answer)
    }

    /// Says what ends the kept selection of that name, if there is one.
    pub(super) fn say_last_of(&self, told: Option<String>, answer: Answer) -> Result<(), Unwanted> {
        let items = if let Answer::Items { items, .. } = &answer { items.len() as u64 } else { 0 };
        let is_last = !matches!(answer, Answer::Begin { .. } | Answer::Items { .. });
        let message = Answered { id: self.id, answer }.encode();
        let bytes = if self.deflate { pack(message) } else { message };
        self.out.send(Message { bytes, items, is_last, told }).map_err(|_| Unwanted)
    }

    fn push(&self, push: Push) -> Result<(), Error> {
        let payload = cbor::to_vec(&Value::Array(push.items));
        // A node that does not know whether a push arrived, or begins anew, undoes no forgetting.
        let precedence = if push.restore { Precedence::Newer } else { Precedence::Remembered };
        let change = self.engine.prepare_merge(&payload, Encoding::Cbor, precedence)?;
        let receipt = self.engine.execute(change)?;
        let Effect::Remembered(stored) = receipt.effect else {
            return Err(Error::new(Code::Internal, "a push was answered as something else"));
        };
        let mut pushed = Pushed::default();
        for one in &stored {
            match one.merged {
                Some(Merged::Unchanged) => pushed.unchanged += 1,
                Some(Merged::Kept) => pushed.kept += 1,
                _ => pushed.stored += 1,
            }
        }
        let _ = self.say(Answer::Ok(pushed.to_map()));
        Ok(())
    }
}

/// How long a port with a request under way may wait for it before it looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use crate::serial::Share;
    use omir_core::decode::Limits;

    use super::*;
    use crate::serial::testing::Bench;

    fn desk(bench: &Bench) -> Desk {
        let access = AccessPolicy { write: false, token: None };
        Desk::new(bench.engine.clone(), Arc::from("r1"), access, Budget::new(Share::new(1.0)))
    }

    fn ask(desk: &mut Desk, id: u64, request: &str) -> Result<(), MessageError> {
        let text = format!(r#"{{"id":{id},{request}}}"#);
        let message = cbor::to_vec(
            &omir_core::json::from_slice(text.as_bytes(), &Limits::default()).unwrap(),
        );
        desk.receive(&message, true, 0)
    }

    #[test]
    fn who_asks_and_never_listens_is_not_served_any_longer() {
        let bench = Bench::new();
        let mut desk = desk(&bench);
        let answered = (1..1000).take_while(|&id| ask(&mut desk, id, r#""op":"info""#).is_ok());
        assert_eq!(answered.count(), MOST_UNTAKEN);
        desk.clear();
        ask(&mut desk, 1, r#""op":"info""#).unwrap();
    }

    #[test]
    fn what_waits_is_not_decoded_and_what_may_not_be_done_does_not_wait() {
        let bench = Bench::new();
        let mut desk = desk(&bench);
        let push = |id: u64| {
            let items = std::iter::repeat_n(r#"{"a":0}"#, 100).collect::<Vec<_>>().join(",");
            (id, format!(r#""op":"push","items":[{items}]"#))
        };
        // Whether or not anything else is still to be answered.
        for id in 1..=40 {
            ask(&mut desk, id, r#""op":"info""#).unwrap();
        }
        let (id, text) = push(41);
        ask(&mut desk, id, &text).unwrap();
        assert_eq!(desk.waiting.len(), 0);
        let told = |desk: &Desk| {
            let last = cbor::from_slice(desk.out.back().unwrap(), &Limits::default()).unwrap();
            omir_core::json::to_string(&last)
        };
        assert!(told(&desk).contains("UNAUTHORIZED"), "{}", told(&desk));
        desk.gate = Gate::new(AccessPolicy { write: true, token: None });
        let (id, text) = push(42);
        ask(&mut desk, id, &text).unwrap();
        assert!(desk.waiting.iter().all(|waiting| waiting.message.len() < 600));
        assert_eq!(desk.waiting.len(), 1);
        // A megabyte as it is sent, and sixty as it would be read.
        let small = [0xbf, 0x61, b'a', 0x00, 0xff].repeat(200_000);
        let head = cbor::to_vec(
            &omir_core::json::from_slice(br#"{"id":43,"op":"push"}"#, &Limits::default()).unwrap(),
        );
        let message = [&[0xbf][..], &head[1..], b"\x65items\x9f", &small, &[0xff, 0xff]].concat();
        desk.receive(&message, true, 0).unwrap();
        assert!(told(&desk).contains("TOO_LARGE"), "{}", told(&desk));
        assert_eq!(desk.waiting.len(), 1);
    }

    /// There are more ways to write a message than a glance knows.
    #[test]
    fn a_push_in_disguise_is_refused_too() {
        let bench = Bench::new();
        let mut desk = desk(&bench);
        let text =
            br#"{"id":1,"op":"push","items":[{"resourceType":"Entity","id":"e","name":"e"}]}"#;
        let push = cbor::to_vec(&omir_core::json::from_slice(text, &Limits::default()).unwrap());
        // "This is CBOR": RFC 8949, section 3.4.6.
        let disguised = [&[0xd9, 0xd9, 0xf7][..], &push].concat();
        assert!(Asked::glance(&disguised).is_none() && Asked::decode(&disguised).is_ok());
        desk.receive(&disguised, true, 0).unwrap();
        assert!(desk.waiting.is_empty() && desk.running.is_none());
        let answer = cbor::from_slice(desk.out.back().unwrap(), &Limits::default()).unwrap();
        let answer = omir_core::json::to_string(&answer);
        assert!(answer.contains("UNAUTHORIZED"), "{answer}");
    }

    #[test]
    fn a_refusal_does_not_repeat_a_long_question() {
        let bench = Bench::new();
        let mut desk = desk(&bench);
        ask(&mut desk, 1, &format!(r#""op":"{}""#, "\u{e9}".repeat(100_000))).unwrap();
        let (answer, _) = desk.next_part().unwrap();
        assert!(answer.len() < 2 * MOST_TOLD, "{} bytes", answer.len());
    }

    #[test]
    fn what_nobody_waits_for_does_not_go_on_in_any_number() {
        let bench = Bench::new();
        let mut desk = desk(&bench);
        // As many as may run do, and none of them is over.
        let busy: Vec<_> = (0..MOST_RUNNING).map(|_| desk.threads.clone()).collect();
        ask(&mut desk, 1, r#""op":"pull""#).unwrap();
        let (answer, _) = desk.next_part().unwrap();
        let answer =
            omir_core::json::to_string(&cbor::from_slice(answer, &Limits::default()).unwrap());
        assert!(answer.contains("BUSY"), "{answer}");
        drop(busy);
    }
}
