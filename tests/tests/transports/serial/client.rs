//! A client that is built of the core's link alone.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::link::message::{
    Failure, Inbox, Pull, Request, RequestMessage, Response, ResponseMessage,
};
use omir_core::link::pack::unpack;
use omir_core::link::{Closed, Event, Link};
use omir_core::value::{Map, Value};
use omird::engine::Query;

use crate::serial::PATIENCE;
use crate::serial::rig::{Cable, Rig};

/// Outcome of waiting.
#[derive(Debug)]
pub enum Heard {
    Opened,
    Response(ResponseMessage),
    Closed(Closed),
}

pub struct Client {
    pub cable: Cable,
    pub link: Link<32, 256>,
    began: Instant,
    inbox: Inbox,
    id: u64,
}

impl Client {
    pub fn on(cable: Cable) -> Client {
        let (link, inbox) = (Link::new("test"), Inbox::default());
        Client { cable, link, began: Instant::now(), inbox, id: 0 }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    pub fn open(&mut self, session: u32) {
        self.link.connect(session, self.now());
        assert!(matches!(self.hear(), Heard::Opened));
    }

    /// One turn of the driver.
    pub fn turn(&mut self) -> Option<Heard> {
        let bytes = self.cable.read();
        let now = self.now();
        self.link.receive(&bytes, now);
        let mut heard = None;
        while heard.is_none() {
            heard = match self.link.poll_event() {
                None => break,
                Some(Event::Opened) => Some(Heard::Opened),
                Some(Event::Closed(why)) => Some(Heard::Closed(why)),
                Some(Event::Data { bytes, last }) => {
                    let message = self.inbox.push(bytes, last).unwrap();
                    message.map(|message| {
                        Heard::Response(ResponseMessage::decode(&unpack(message).unwrap()).unwrap())
                    })
                }
            };
        }
        let mut line = Vec::new();
        while self.link.poll_transmit(now, &mut |byte| line.push(byte)) {}
        self.cable.write(line);
        if heard.is_none() && bytes.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        heard
    }

    #[track_caller]
    pub fn hear(&mut self) -> Heard {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(heard) = self.turn() {
                return heard;
            }
            assert!(Instant::now() < until, "nothing heard: {:?}", self.link.counts());
        }
    }

    pub fn send(&mut self, message: &[u8]) {
        let mut sent = 0;
        while sent < message.len() {
            sent += self.link.send(&message[sent..], true);
            assert!(self.turn().is_none());
        }
    }

    /// Sends a request; its number.
    pub fn ask(&mut self, request: Request) -> u64 {
        self.id += 1;
        let id = self.id;
        self.send(&RequestMessage { id, request }.encode());
        id
    }

    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Response {
        match self.hear() {
            Heard::Response(answered) if answered.id == id => answered.response,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn ok(&mut self, request: Request) -> Map {
        let id = self.ask(request);
        match self.answer(id) {
            Response::Ok(map) => map,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn refused(&mut self, request: Request) -> Failure {
        let id = self.ask(request);
        match self.answer(id) {
            Response::Error(failure) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// All that a pull gives.
    #[track_caller]
    pub fn pull(&mut self, pull: Pull) -> Vec<Value> {
        let id = self.ask(Request::Pull(pull));
        let Response::Begin { count, .. } = self.answer(id) else { panic!("no beginning") };
        let mut all = Vec::new();
        loop {
            match self.answer(id) {
                Response::Items { items, .. } => all.extend(items),
                Response::End { count: sent, complete } => {
                    assert!(complete);
                    assert_eq!((sent, all.len() as u64), (count, count));
                    return all;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

pub fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

pub fn references(resources: &[Value]) -> Vec<String> {
    let text = |value: &Value, name| value.get(name).and_then(Value::as_str).unwrap().to_owned();
    resources.iter().map(|r| format!("{}/{}", text(r, "resourceType"), text(r, "id"))).collect()
}

pub fn bundle(resources: Vec<Value>) -> Value {
    let mut bundle = value(
        r#"{"resourceType":"Bundle","omirVersion":"R1","id":"b","generatedAt":"2026-06-01T00:00:00Z",
            "source":"test"}"#,
    );
    bundle.as_object_mut().unwrap().insert("entry", Value::Array(resources));
    bundle
}

pub fn stored(rig: &Rig) -> BTreeSet<String> {
    let export = rig.session.export(&Query::everything()).unwrap().to_value();
    references(export.get("entry").unwrap().as_array().unwrap()).into_iter().collect()
}
