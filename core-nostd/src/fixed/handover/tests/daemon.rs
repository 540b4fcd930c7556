//! The other end of the simulated line: answers as `omird` does, and keeps what it acknowledged.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::super::*;
use super::BEGINNING;
use crate::cbor;
use crate::instant::Timestamp;
use crate::link::message::{
    Failure, Inbox, Info, Push, Pushed, Request, RequestMessage, Response as LinkResponse,
    ResponseMessage,
};
use crate::link::tests::Wire;
use crate::link::{Body, Deframer, Frame};
use crate::model::Resource;
use crate::value::{Map, Value};

/// The other end: answers as `omird` does.
pub(super) struct Daemon {
    pub(super) link: Link<32, 256>,
    pub(super) inbox: Inbox,
    pub(super) out: Vec<Vec<u8>>,
    pub(super) sent: usize,
    /// Durable records by id, as they came.
    pub(super) durable: BTreeMap<String, Vec<u8>>,
    pub(super) stored: usize,
    /// Messages that were answered `ok`.
    pub(super) pushes: usize,
    /// Ids that it does not like.
    pub(super) refuses: Vec<String>,
    /// Ids that a client had it forget.
    pub(super) forgotten: Vec<String>,
    /// Microseconds that its clock is behind, and the trust it states.
    pub(super) behind: i64,
    pub(super) clock: Trust,
    /// Every id that ever came.
    pub(super) came: Vec<String>,
    pub(super) write: bool,
    pub(super) token: Option<String>,
    pub(super) unlocked: bool,
    /// Answers that are longer than a node looks at.
    pub(super) talkative: bool,
    /// It speaks another version of the protocol, or says what is no answer.
    pub(super) foreign: Option<Foreign>,
    /// Number of times that it was called.
    pub(super) calls: usize,
    /// Of what is heard while it sends others away.
    deframer: Deframer<256>,
}

/// Faults of a daemon that a node cannot work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    Bye(Reason),
    Nonsense,
}

impl Daemon {
    pub(super) fn new() -> Self {
        Self {
            link: Link::new("daemon"),
            inbox: Inbox::default(),
            out: Vec::new(),
            sent: 0,
            durable: BTreeMap::new(),
            stored: 0,
            pushes: 0,
            refuses: Vec::new(),
            forgotten: Vec::new(),
            behind: 0,
            clock: Trust::Synchronised,
            came: Vec::new(),
            write: true,
            token: None,
            unlocked: false,
            talkative: false,
            foreign: None,
            calls: 0,
            deframer: Deframer::new(),
        }
    }

    pub(super) fn restart(&mut self) {
        self.link = Link::new("daemon");
        self.forget_session();
    }

    pub(super) fn forget_session(&mut self) {
        self.inbox.clear();
        self.out.clear();
        (self.sent, self.unlocked) = (0, false);
    }

    pub(super) fn step(&mut self, bytes: &[u8], now: u64, line: &mut Wire) {
        if let Some(Foreign::Bye(reason)) = self.foreign {
            return self.send_away(bytes, reason, line);
        }
        self.link.receive(bytes, now);
        let mut asked = Vec::new();
        let mut restarted = false;
        while let Some(event) = self.link.poll_event() {
            match event {
                Event::Opened => {
                    (restarted, asked) = (true, Vec::new());
                    self.calls += 1;
                    self.inbox.clear();
                }
                Event::Data { bytes, last } => asked.extend(self.inbox.push(bytes, last).unwrap()),
                Event::Closed(_) => {}
            }
        }
        if restarted {
            self.out.clear();
            (self.sent, self.unlocked) = (0, false);
        }
        for message in asked {
            let RequestMessage { id, request } = RequestMessage::decode(&message).unwrap();
            assert_eq!(
                RequestMessage { id, request: request.clone() }.encode(),
                message,
                "deterministic"
            );
            let answer = self.answer(request, now);
            self.out.push(match self.foreign {
                None => ResponseMessage { id, response: answer }.encode(),
                Some(_) => b"not what was asked".to_vec(),
            });
        }
        while let Some(message) = self.out.first() {
            self.sent += self.link.send(&message[self.sent..], true);
            if self.sent < message.len() {
                break;
            }
            self.out.remove(0);
            self.sent = 0;
        }
        while line.waiting.len() < 16
            && self.link.poll_transmit(now, &mut |byte| line.waiting.push_back(byte))
        {}
    }

    /// Every node that calls is told to go.
    fn send_away(&mut self, bytes: &[u8], reason: Reason, line: &mut Wire) {
        for &byte in bytes {
            let Some(Ok(Frame { session, body: Body::Hello(_), .. })) = self.deframer.push(byte)
            else {
                continue;
            };
            self.calls += 1;
            let body = Body::Bye { reason, text: "" };
            let bye = Frame { from_responder: true, session, seq: 0, body };
            bye.encode(&mut |byte| line.waiting.push_back(byte));
        }
    }

    pub(super) fn answer(&mut self, request: Request, now: u64) -> LinkResponse {
        match request {
            Request::Info => {
                let info = Info {
                    robot: if self.talkative { "r".repeat(5_000) } else { "r2".to_owned() },
                    program: "daemon 1".to_owned(),
                    write: self.write || self.unlocked,
                    time: Timestamp::from_micros(BEGINNING + now as i64 - self.behind).to_string(),
                    clock: self.clock.as_str().to_owned(),
                    count: self.durable.len() as u64,
                    deflate: true,
                };
                LinkResponse::Ok(info.to_map())
            }
            Request::Unlock(token) if Some(&token) == self.token.as_ref() => {
                self.unlocked = true;
                LinkResponse::Ok(Map::new())
            }
            Request::Push(Push { items, restore: false }) if self.write || self.unlocked => {
                self.push(items)
            }
            _ => self.error("UNAUTHORIZED"),
        }
    }

    pub(super) fn push(&mut self, items: Vec<Value>) -> LinkResponse {
        let mut records = Vec::new();
        for item in items {
            let bytes = cbor::to_vec(&item);
            let resource = Resource::from_value(item).unwrap();
            let id = resource.id().as_str().to_owned();
            self.came.push(id.clone());
            if self.refuses.contains(&id) {
                return self.error("INVALID_RESOURCE");
            }
            records.push((id, bytes));
        }
        let mut pushed = Pushed::default();
        for (id, bytes) in records {
            if self.forgotten.contains(&id) {
                pushed.kept += 1;
                continue;
            }
            match self.durable.get(&id) {
                Some(there) => {
                    assert_eq!(*there, bytes, "{id} came twice, and differs");
                    pushed.unchanged += 1;
                }
                None => {
                    self.durable.insert(id, bytes);
                    pushed.stored += 1;
                }
            }
        }
        self.stored += pushed.stored as usize;
        self.pushes += 1;
        LinkResponse::Ok(pushed.to_map())
    }

    pub(super) fn error(&self, code: &str) -> LinkResponse {
        let message = if self.talkative { "m".repeat(5_000) } else { "no".to_owned() };
        LinkResponse::Error(Failure {
            code: code.to_owned(),
            message,
            path: Some("/items/0".to_owned()),
        })
    }
}
