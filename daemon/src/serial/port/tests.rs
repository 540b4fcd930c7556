use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

use omir_core::cbor;
use omir_core::link::message::{Pull, Request, RequestMessage, Response, ResponseMessage};
use omir_core::link::pack::pack;
use omir_core::link::{Body, Deframer, Frame};
use omir_core::value::{Map, Value};

use super::*;
use crate::router::AccessPolicy;
use crate::serial::Share;
use crate::serial::testing::Bench;

const SECOND: u64 = 1_000_000;
/// Later than an acknowledgement waits for more to acknowledge.
const ANSWERED: u64 = SECOND;

/// A line in simulated time, which passes by waiting alone.
struct Simulated {
    now: Cell<u64>,
    waits: Cell<u32>,
    /// Bytes of the far end, and their times.
    says: RefCell<Vec<(u64, Vec<u8>)>>,
    /// Messages that it received.
    heard: RefCell<Vec<u8>>,
    /// Bytes that the device takes before its peer listens no more.
    room: Cell<usize>,
    /// The time at which the daemon stops.
    stop: (u64, Arc<AtomicBool>),
    is_discarded: Cell<bool>,
}

impl Wire for Simulated {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut says = self.says.borrow_mut();
        let Some((at, bytes)) = says.first_mut().filter(|(at, _)| *at <= self.now.get()) else {
            return Ok(0);
        };
        let n = bytes.len().min(buffer.len());
        buffer[..n].copy_from_slice(&bytes[..n]);
        bytes.drain(..n);
        // As fast as a line carries it.
        *at += 90 * n as u64;
        if bytes.is_empty() {
            says.remove(0);
        }
        Ok(n)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.room.get());
        self.room.set(self.room.get() - n);
        self.heard.borrow_mut().extend(&bytes[..n]);
        Ok(n)
    }

    fn wait(&self, is_full: bool, patience: Duration) -> io::Result<bool> {
        self.waits.set(self.waits.get() + 1);
        let has_room = is_full && self.room.get() > 0;
        let next = self.says.borrow().first().map(|(at, _)| *at);
        let until = self.now.get() + patience.as_micros() as u64;
        let until = if has_room { self.now.get() } else { until };
        self.now.set(next.map_or(until, |at| until.min(at)).max(self.now.get() + 1));
        if self.now.get() >= self.stop.0 {
            self.stop.1.store(true, Ordering::Release);
        }
        // Threads that work have no simulated time: they get a little of the real one.
        std::thread::yield_now();
        Ok(has_room || next.is_some_and(|at| at <= self.now.get()))
    }

    fn discard(&self) {
        self.is_discarded.set(true);
    }
}

fn serve(bench: &Bench, says: Vec<(u64, Vec<u8>)>, room: usize, stop: u64) -> Simulated {
    serve_within(bench, 1.0, says, room, stop)
}

/// Serves a line with that much room on which that is said, until the daemon stops; what became of it.
fn serve_within(
    bench: &Bench,
    share: f64,
    says: Vec<(u64, Vec<u8>)>,
    room: usize,
    stop: u64,
) -> Simulated {
    let is_stopping = Arc::new(AtomicBool::new(false));
    let mut served = served(bench, share, is_stopping.clone());
    let line = Simulated {
        now: Cell::new(0),
        waits: Cell::new(0),
        says: RefCell::new(says),
        heard: RefCell::default(),
        room: Cell::new(room),
        stop: (stop, is_stopping),
        is_discarded: Cell::new(false),
    };
    served.serve(&line).unwrap();
    line
}

fn served(bench: &Bench, share: f64, is_stopping: Arc<AtomicBool>) -> ServedPort {
    let access = AccessPolicy { write: true, token: None };
    let path = PathBuf::from("simulated");
    let port = Port { path, baud: 115_200, access, share: Share::new(share) };
    ServedPort::new(Protocols::over(&bench.engine, "r2"), &port, is_stopping)
}

/// Bytes of an initiator that opens a session and sends these messages, packed.
fn asks(messages: &[Vec<u8>]) -> Vec<u8> {
    let (mut near, mut far) = (PortLink::new("tool"), PortLink::new("r2"));
    near.connect(7, 0);
    let mut said = Vec::new();
    let packed: Vec<_> = messages.iter().map(|message| pack(message.clone())).collect();
    let mut rest: VecDeque<&[u8]> = packed.iter().map(Vec::as_slice).collect();
    while !(near.is_open() && rest.is_empty() && near.is_flushed()) {
        let before = said.len();
        near.poll_transmit(0, &mut |byte| said.push(byte));
        far.receive(&said[before..], 0);
        while far.poll_event().is_some() {}
        let mut answer = Vec::new();
        far.poll_transmit(ANSWERED, &mut |byte| answer.push(byte));
        near.receive(&answer, 0);
        while near.poll_event().is_some() {}
        if let Some(message) = rest.front_mut() {
            *message = &message[near.send(message, true)..];
            if message.is_empty() {
                rest.pop_front();
            }
        }
    }
    said
}

fn pull() -> Vec<u8> {
    asks(&[RequestMessage { id: 1, request: Request::Pull(Pull::default()) }.encode()])
}

fn ends_with_bye(line: &Simulated) -> bool {
    let mut bye = Vec::new();
    let mut link = PortLink::new("");
    link.receive(&asks(&[]), 0);
    while link.poll_transmit(0, &mut |_| {}) {}
    link.close(Reason::GoingAway);
    link.poll_transmit(0, &mut |byte| bye.push(byte));
    line.heard.borrow().ends_with(&bye)
}

#[test]
fn a_line_on_which_nobody_listens_does_not_keep_the_daemon_awake() {
    let bench = Bench::new();
    let minutes = 10;
    let text = || vec![(0, b"help\r".to_vec())];
    let tail = || vec![(0, b"tail\r".to_vec())];
    let session = || vec![(0, pull())];
    // The device takes nothing at all, or is full after some of it.
    for (said, room) in [(text(), 0), (text(), 100), (session(), 0), (session(), 30), (tail(), 3)] {
        let line = serve(&bench, said, room, minutes * 60 * SECOND);
        let each_second = f64::from(line.waits.get()) / (minutes * 60) as f64;
        assert!(each_second < 10.0, "{each_second} wake-ups a second with room for {room}");
        assert!(line.is_discarded.get(), "it would be waited for");
    }
    // A command that has nothing to say.
    let tail = serve(&bench, tail(), usize::MAX, minutes * 60 * SECOND);
    assert!(tail.waits.get() < 11 * 60 * minutes as u32, "{} wake-ups", tail.waits.get());
    let idle = serve(&bench, Vec::new(), usize::MAX, minutes * 60 * SECOND);
    assert!(idle.waits.get() < 10 * 60 * minutes as u32 && !idle.is_discarded.get());
}

#[test]
fn a_stop_says_goodbye_also_when_the_line_is_busy() {
    let bench = Bench::new();
    for n in 0..40 {
        let content = "x".repeat(500);
        bench.remember(&format!(
            r#"{{"resourceType":"MemoryRecord","id":"m{n}","content":"{content}"}}"#
        ));
    }
    for stop in (0..40).map(|n| SECOND / 20 + n * 7_001) {
        let line = serve(&bench, vec![(0, pull())], usize::MAX, stop);
        assert!(ends_with_bye(&line), "stopped at {stop}");
        assert!(!line.is_discarded.get());
    }
}

#[test]
fn the_console_is_back_after_a_session_that_fell_silent() {
    let bench = Bench::new();
    let said = vec![(0, asks(&[])), (60 * SECOND, b"status\r".to_vec())];
    let line = serve(&bench, said, usize::MAX, 62 * SECOND);
    let heard = line.heard.borrow();
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.contains("status\r\n"), "{heard}");
}

#[test]
fn what_comes_in_is_read_within_the_share() {
    let bench = Bench::new();
    let long = |id: u64| {
        let mut message = Map::new();
        message.insert("id", id);
        message.insert("op", " ".repeat(500_000));
        cbor::to_vec(&Value::Object(message))
    };
    // Ten of them are little on the line, and much to be read. A peer that waits says so now and then.
    let mut ping = Vec::new();
    let frame = Frame { from_responder: false, session: 7, seq: 0, body: Body::Ping };
    frame.encode(&mut |byte| ping.push(byte));
    let messages = asks(&(1..=10).map(long).collect::<Vec<_>>());
    let pings = (1..30).map(|n| (n * 10 * SECOND, ping.clone()));
    let all = || [(0, messages.clone())].into_iter().chain(pings.clone()).collect();
    let answered = |share: f64| {
        let line = serve_within(&bench, share, all(), usize::MAX, 5 * 60 * SECOND);
        let mut deframer = Deframer::<256>::new();
        let heard = line.heard.borrow();
        let frames = heard.iter().filter_map(|&byte| {
            let frame = deframer.push(byte)?.ok()?;
            matches!(frame.body, Body::Data { last: true, .. }).then_some(frame.seq)
        });
        frames.collect::<BTreeSet<_>>().len()
    };
    assert_eq!(answered(1.0), 10);
    // The longest rest, a minute, after each.
    let few = answered(0.000_001);
    assert!((3..=6).contains(&few), "{few} in five minutes");
}

/// One that was asked for what goes by use, so that the selection is kept, and told all of it.
fn told(bench: &Bench) -> ServedPort {
    let mut served = served(bench, 1.0, Arc::default());
    let filter = [("tier", "working")].into_iter().collect();
    let request = Request::Pull(Pull { filter, ..Pull::default() });
    served.handler.receive(&RequestMessage { id: 1, request }.encode(), true, 0).unwrap();
    loop {
        let Some((part, _)) = served.handler.next_part() else {
            std::thread::yield_now();
            continue;
        };
        let (all, answered) = (part.len(), ResponseMessage::decode(part).unwrap());
        served.handler.sent(all);
        if matches!(answered.response, Response::End { complete: true, .. }) {
            return served;
        }
    }
}

#[test]
fn what_was_pulled_to_its_end_is_kept_until_its_initiator_says_so() {
    let bench = Bench::new();
    for (reason, keeps) in [(Reason::GoingAway, true), (Reason::Done, false)] {
        let mut served = told(&bench);
        let mut link = PortLink::new("r2");
        link.receive(&asks(&[]), 0);
        assert!(matches!(link.poll_event(), Some(Event::Opened)));
        let body = Body::Bye { reason, text: "" };
        let bye = Frame { from_responder: false, session: 7, seq: 0, body };
        bye.encode(&mut |byte| link.receive(&[byte], 0));
        assert!(served.handler.keeps());
        served.take_events(&mut link, 0);
        assert_eq!(served.handler.keeps(), keeps, "{reason}");
    }
}

#[test]
fn what_is_kept_does_not_outlast_the_hour_where_the_device_is_away() {
    let bench = Bench::new();
    let mut served = told(&bench);
    served.handler.clear();
    let now = Cell::new(0);
    let sleep = |time: Duration| now.set(now.get() + time.as_micros() as u64);
    let mut wait_until = |minutes: u64| {
        while now.get() < minutes * 60 * SECOND {
            served.wait_for_device(|| now.get(), sleep);
        }
        served.handler.keeps()
    };
    assert!(wait_until(59));
    assert!(!wait_until(62));
}
