//! The session of a line: messages of the link become requests, and answers become messages (docs/serial-protocol.md,
//! section 3). Requests are worked on one after the other, on a thread of their own, so that the line is
//! served meanwhile.

mod job;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use omir_core::link::message::{
    Inbox, MessageError, Request, RequestMessage, Response, ResponseMessage, weight,
};
use omir_core::link::pack::unpack;
use omir_core::value::Map;

use self::job::{Job, Message};
use super::cpu_share::Budget;
use crate::engine::{Code, Error};
use crate::protocols::Protocols;
use crate::protocols::omir::Pacer as _;
use crate::protocols::omir::link::{self, PUSH, Readings, ResponseSink as _, UNKNOWN, failed};
use crate::router::{
    AccessPolicy, Admitted, Bounds, Caller, DecodedBounds, Gate, Incoming, Method, worded,
    worded_for,
};

/// Requests of a session that wait; more are answered `BUSY`.
const MOST_WAITING: usize = 2;
/// Messages that are made before the line has taken them.
const AHEAD: usize = 2;
/// Answers that the peer has not taken. A peer that asks for more and lets them lie is not served any longer.
const MOST_UNTAKEN: usize = 64;
/// Bytes that a push takes when it is decoded, about, and any other request. One is at a time.
const MOST_PUSH: usize = 48 << 20;
const MOST_REQUEST: usize = 4 << 20;
/// Requests that were given up and have not noticed yet; more are refused.
const MOST_RUNNING: usize = 4;

/// Handles one session after the other.
pub struct SessionHandler {
    protocols: Protocols,
    /// The name that the peer on the line has for the router.
    name: Arc<str>,
    gate: Gate,
    budget: Budget,
    inbox: Inbox,
    waiting: VecDeque<Waiting>,
    running: Option<Running>,
    /// Until then nothing is read: what was read took its share of a core. Microseconds.
    rests_until: u64,
    /// The selection of a pull that may go on.
    readings: Readings,
    /// The selection of which this session was given all, by its name.
    given_in_full: Option<String>,
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
    /// Lives as long as the session wants the answer.
    _wanted: Arc<()>,
    is_pull: bool,
    messages: Receiver<Message>,
    count: u64,
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
            given_in_full: None,
            threads: Arc::new(()),
            out: VecDeque::new(),
            sent: 0,
        }
    }

    /// A session begins, or ends: nothing of the last one counts.
    pub fn clear(&mut self) {
        self.gate.lock();
        self.given_in_full = None;
        self.inbox.clear();
        self.waiting.clear();
        self.running = None;
        self.out.clear();
        self.sent = 0;
    }

    /// The session ends, and its initiator says that all is said: what was given to its end is not gone on with.
    pub fn done(&mut self) {
        if let Some(name) = self.given_in_full.take().filter(|_| self.out.is_empty()) {
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
        let owed = u64::try_from(turn.finish().as_micros()).unwrap_or(u64::MAX);
        self.rests_until = now.saturating_add(owed);
        read
    }

    /// Returns the caller on the line. Only its requests state the memory that decoding takes.
    fn caller(&self) -> Caller {
        let decoded = Some(DecodedBounds { resources: MOST_PUSH, parameters: MOST_REQUEST });
        let bounds = Bounds { decoded, ..Bounds::default() };
        let unknown = Caller { bounds, ..Caller::trusted("serial", self.name.clone()) };
        let access = &self.protocols.access;
        let identify = |token: &str| access.identify("serial", token);
        self.gate.caller(unknown, access.is_required(), &identify)
    }

    fn read(&mut self, message: Vec<u8>, now: u64) -> Result<(), MessageError> {
        let head = RequestMessage::peek(&message);
        let method = head.as_ref().map_or(&UNKNOWN, |(_, op)| link::method(op));
        let incoming = Incoming {
            bytes: message.len(),
            decoded: weight(&message),
            merges: std::ptr::eq(method, &PUSH),
        };
        // Before memory goes into decoding it. What the head does not tell is refused in `ask`.
        let caller = self.caller();
        if let Err(refusal) = self.protocols.router.check(&caller, method, incoming) {
            let error = worded_for(refusal, method);
            self.refuse(method, incoming, error.code);
            let Some((id, _)) = head else {
                let (path, message) = ("/".to_owned(), error.message);
                return Err(MessageError { id: None, path, message });
            };
            self.answer(id, failed(error));
            return Ok(());
        }
        match RequestMessage::decode(&message) {
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

    /// Drops what an interrupted pull left here, if its client has not come back for it. `now` in microseconds.
    pub fn tidy(&mut self, now: u64) {
        self.readings.tidy(self.running.is_some(), now);
    }

    /// Returns true if the selection of a pull is kept.
    #[cfg(test)]
    pub fn keeps(&self) -> bool {
        self.readings.are_kept()
    }

    /// Returns true if a request is worked on: there may be something to send without anything coming in.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    fn ask(
        &mut self,
        caller: &Caller,
        asked: RequestMessage,
        message: Vec<u8>,
        incoming: Incoming,
        now: u64,
    ) {
        let RequestMessage { id, request } = asked;
        let method = link::method_of(&request);
        let incoming = Incoming { merges: std::ptr::eq(method, &PUSH), ..incoming };
        let Protocols { router, omir, .. } = &self.protocols;
        let admitted = match router.admit(caller, method, incoming) {
            Ok(admitted) => admitted,
            Err(refusal) => return self.answer(id, failed(worded_for(refusal, method))),
        };
        match request {
            Request::Info => {
                let may_push = router.check(caller, &PUSH, Incoming::default()).is_ok();
                let info = omir.info(&admitted, may_push);
                admitted.done();
                self.answer(id, Response::Ok(info.to_map()));
            }
            Request::Unlock(token) => {
                let access = &self.protocols.access;
                let identify = |token: &str| access.identify("serial", token);
                let is_required = access.is_required();
                let unlocked = self.gate.unlock(&token, now, is_required, &identify);
                let unlocked = unlocked.map_err(worded);
                admitted.finish(&unlocked);
                self.answer(id, unlocked.map_or_else(failed, |()| Response::Ok(Map::new())));
            }
            Request::Cancel(of) => {
                self.cancel(of);
                admitted.done();
                self.answer(id, Response::Ok(Map::new()));
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
                let end = Response::End { count: running.count, complete: false };
                self.answer(of, end);
            } else {
                // A change that is made is made; it is answered all the same.
                self.running = Some(running);
            }
        }
        let at = self.waiting.iter().position(|asked| asked.id == of);
        if let Some(asked) = at.and_then(|at| self.waiting.remove(at)) {
            asked.admitted.failed(Code::Busy);
            let error = Error::new(Code::Busy, "cancelled before anything was done");
            self.answer(of, failed(error));
        }
    }

    fn answer(&mut self, id: u64, answer: Response) {
        self.out.push_back(ResponseMessage { id, response: answer }.encode());
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
                    self.given_in_full = message.given_in_full.or(self.given_in_full.take());
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
        // It goes to the thread once there is one: what was not begun is refused, and not given up.
        let (hand_over, handed_over) = bounded(1);
        let wanted = Arc::new(());
        let (noted, budget) = (Arc::downgrade(&wanted), self.budget.clone());
        let (omir, readings) = (self.protocols.omir.clone(), self.readings.clone());
        let alive = self.threads.clone();
        let thread = std::thread::Builder::new().name("omird-asked".to_owned());
        let run = move || {
            let Ok(admitted) = handed_over.recv() else { return };
            let mut job = Job { id, deflate, wanted: noted, share: budget.begin(), out };
            // It waited for its share of time, and a session that has ended takes no answer: nothing was begun.
            if job.is_wanted() {
                match RequestMessage::decode(&message) {
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
                let _ = hand_over.send(admitted);
                self.running = Some(Running { id, _wanted: wanted, is_pull, messages, count: 0 });
            }
            Err(error) => {
                admitted.failed(Code::Busy);
                let error = Error::new(Code::Busy, format!("no thread for it: {error}"));
                self.answer(id, failed(error));
            }
        }
    }
}

/// Time that a port with a request under way waits for it before it looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod pulls;

#[cfg(test)]
mod tests;
