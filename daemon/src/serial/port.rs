//! One port: the device, the link with its session, and the console, turned round by one thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use omir_core::link::{Closed, Event, Link, Reason};

use super::Port;
use super::console::Console;
use super::device::Device;
use super::pace::Pace;
use super::session::{LOOK_AGAIN, SessionHandler};
use super::share::Budget;
use super::split::{For, Splitter};
use crate::protocols::Protocols;

/// How often is looked whether the daemon stops, or the device is back.
const LOOK: Duration = Duration::from_millis(200);
/// A device that is not there is tried again so often.
const RETRY: Duration = Duration::from_secs(1);
/// A device that goes away sooner after it came is not told of in the log each time.
const STEADY: Duration = Duration::from_secs(10);
/// Bytes of text that are given to the line at once: little, so that Ctrl-C is heeded soon.
const TEXT: usize = 64;
/// Bytes read at once.
const PIECE: usize = 4096;
/// How long a stop waits for the line to take the goodbye, microseconds: a frame at 2400 baud.
const GOODBYE: u64 = 1_500_000;

/// As large as the protocol allows, and frames that pass a bit error in 10,000 four times of five.
type PortLink = Link<32, 256>;

/// A line, and the time at it. What serves it sees no more of the world, so that a test needs neither.
trait Wire {
    /// Microseconds since any fixed moment.
    fn now(&self) -> u64;
    /// Reads what is there into the buffer; 0 if nothing is.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// As much as fits; how many bytes.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Waits until something can be read or, if it `is_full`, written, at most `patience`.
    fn wait(&self, is_full: bool, patience: Duration) -> io::Result<bool>;
    /// Takes back what was not sent.
    fn discard(&self);
}

/// A device that is there.
struct Real {
    device: Device,
    began: Instant,
}

impl Wire for Real {
    fn now(&self) -> u64 {
        micros_since(self.began)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.read(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.device.write(bytes)
    }

    fn wait(&self, is_full: bool, patience: Duration) -> io::Result<bool> {
        self.device.wait(is_full, patience)
    }

    fn discard(&self) {
        self.device.discard();
    }
}

fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Sessions that end for what came in their messages are told of in the log so often, microseconds.
const COMPLAIN_EVERY: u64 = 3_600_000_000;

/// A port that is served.
pub struct Served {
    path: PathBuf,
    baud: u32,
    robot: Arc<str>,
    handler: SessionHandler,
    console: Console,
    /// The session that the handler is for.
    session: u32,
    /// When a session without sense may be told of in the log, microseconds.
    complain_from: u64,
    stopping: Arc<AtomicBool>,
    began: Instant,
}

impl Served {
    /// Not begun yet.
    pub fn new(protocols: Protocols, port: &Port, stopping: Arc<AtomicBool>) -> Served {
        let budget = Budget::new(port.share);
        let name: Arc<str> = format!("serial {}", port.path.display()).into();
        let console = Console::new(protocols.clone(), name.clone(), budget.clone());
        Served {
            console,
            session: 0,
            complain_from: 0,
            path: port.path.clone(),
            baud: port.baud,
            robot: protocols.omir.robot().clone(),
            handler: SessionHandler::new(protocols, name, port.access.clone(), budget),
            stopping,
            began: Instant::now(),
        }
    }

    /// Serves the port until the daemon stops.
    pub fn run(mut self) {
        // Said once, not each second; also of a device that is there and cannot be used.
        let (mut complaint, mut flaps) = (None, false);
        while !self.is_stopping() {
            let mut opened = None;
            let served = Device::open(&self.path, self.baud).and_then(|device| {
                opened = Some(Instant::now());
                if !flaps {
                    tracing::info!(port = %self.path.display(), baud = self.baud, "serial port open");
                }
                self.serve(&Real { device, began: self.began })
            });
            self.handler.clear();
            self.console.clear();
            if let Some(opened) = opened {
                flaps = opened.elapsed() < STEADY;
                complaint = complaint.filter(|_| flaps);
            }
            if let Err(error) = served {
                let said = error.to_string();
                if complaint.as_ref() != Some(&said) {
                    tracing::warn!(port = %self.path.display(), %error, "serial port waited for");
                    complaint = Some(said);
                }
                let began = self.began;
                self.wait_for_device(|| micros_since(began), std::thread::sleep);
            }
        }
    }

    /// Waits until the device is to be tried again, by the clock of the line.
    fn wait_for_device(&mut self, now: impl Fn() -> u64, sleep: impl Fn(Duration)) {
        let began = now();
        while now().saturating_sub(began) < RETRY.as_micros() as u64 && !self.is_stopping() {
            sleep(LOOK);
            // Also of a device that does not come back.
            self.handler.tidy(now());
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Serves a line until it is gone, or the daemon stops.
    fn serve(&mut self, wire: &impl Wire) -> io::Result<()> {
        let mut link = PortLink::new(&self.robot);
        let mut pace = Pace::new(self.baud);
        let mut splitter = Splitter::default();
        let mut buffer = [0; PIECE];
        let mut out = Vec::new();
        let mut stop_at = None;
        let mut look = LOOK_AGAIN;
        loop {
            let read = wire.read(&mut buffer)?;
            let now = wire.now();
            for &byte in &buffer[..read] {
                // In a session everything is frames, and what is none is noise.
                if link.is_open() || splitter.take(byte, now) == For::Frame {
                    link.receive(&[byte], now);
                } else {
                    self.console.take(byte, now);
                }
            }
            if self.is_stopping() {
                link.close(Reason::GoingAway);
                stop_at.get_or_insert(now.saturating_add(GOODBYE));
            }
            self.take_events(&mut link, now);
            self.hand_over(&mut link);
            self.handler.tidy(now);
            while out.is_empty() && now >= pace.ready_at() {
                if !link.poll_transmit(now, &mut |byte| out.push(byte)) {
                    break;
                }
            }
            let is_quiet = out.is_empty() && now >= pace.ready_at();
            if is_quiet && !link.is_open() && stop_at.is_none() {
                self.console.show(TEXT, &mut out, now);
            }
            let written = wire.write(&out)?;
            pace.sent(written, now);
            out.drain(..written);
            if is_quiet && stop_at.is_some() {
                return Ok(());
            }
            if stop_at.is_some_and(|at| now >= at) {
                wire.discard();
                return Ok(());
            }
            // The longer a worker has nothing to say, the less often it is asked.
            look = if read + written > 0 { LOOK_AGAIN } else { (2 * look).min(LOOK / 2) };
            if read < PIECE {
                let text = !link.is_open() && self.console.has_text();
                let is_full = !out.is_empty();
                let mut patience = self.patience(now, &link, &pace, is_full, text);
                if !is_full && (self.handler.is_busy() || self.console.is_busy()) {
                    patience = patience.min(look);
                }
                wire.wait(is_full, patience)?;
            }
        }
    }

    fn take_events(&mut self, link: &mut PortLink, now: u64) {
        let mut broken = None;
        // While the handler rests from what it read, the link holds back what comes in.
        while self.handler.rests_until(now).is_none() {
            let Some(event) = link.poll_event() else { break };
            match event {
                Event::Opened => {
                    self.session = link.session();
                    self.handler.clear();
                    self.console.clear();
                }
                Event::Closed(why) => {
                    tracing::debug!(port = %self.path.display(), %why, "serial session over");
                    match why {
                        Closed::Bye(Reason::Done) => self.handler.done(),
                        Closed::Bye(_) | Closed::Silence => self.handler.clear(),
                    }
                }
                Event::Data { bytes, last } => {
                    if let Err(error) = self.handler.receive(bytes, last, now) {
                        broken = Some(error);
                        break;
                    }
                }
            }
        }
        if let Some(error) = broken {
            // Said once for many: whoever is on the cable is not to fill the log.
            if now >= self.complain_from {
                tracing::warn!(port = %self.path.display(), %error, "no message of the serial link");
                self.complain_from = now.saturating_add(COMPLAIN_EVERY);
            }
            link.close(Reason::Protocol);
            self.handler.clear();
        }
    }

    /// Gives the link what it has room for. What a session that is over had to say is not for the next one, which may
    /// not be heard of yet.
    fn hand_over(&mut self, link: &mut PortLink) {
        while link.is_open() && link.session() == self.session {
            let Some((bytes, last)) = self.handler.next_part() else { return };
            let all = bytes.len();
            let sent = link.send(bytes, last);
            self.handler.sent(sent);
            if sent < all {
                return;
            }
        }
    }

    /// How long nothing needs to be done unless something comes in or, if the device `is_full`, it takes more;
    /// `text`, if there is some to be shown.
    fn patience(
        &self,
        now: u64,
        link: &PortLink,
        pace: &Pace,
        is_full: bool,
        text: bool,
    ) -> Duration {
        if is_full {
            return LOOK;
        }
        let text = text.then_some(0);
        let rest = self.handler.rests_until(now);
        let due = [link.next_timeout(), text, rest].into_iter().flatten().min();
        let due = due.map(|at| at.max(pace.ready_at()));
        due.map_or(LOOK, |at| Duration::from_micros(at.saturating_sub(now))).min(LOOK)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::{BTreeSet, VecDeque};

    use omir_core::cbor;
    use omir_core::link::message::{Answer, Answered, Asked, Pull, Request};
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
        /// Bytes the device takes before nobody listens any more.
        room: Cell<usize>,
        /// When the daemon stops.
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

    fn served(bench: &Bench, share: f64, is_stopping: Arc<AtomicBool>) -> Served {
        let access = AccessPolicy { write: true, token: None };
        let path = PathBuf::from("simulated");
        let port = Port { path, baud: 115_200, access, share: Share::new(share) };
        Served::new(Protocols::over(&bench.engine, "r2"), &port, is_stopping)
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
        asks(&[Asked { id: 1, request: Request::Pull(Pull::default()) }.encode()])
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
        for (said, room) in
            [(text(), 0), (text(), 100), (session(), 0), (session(), 30), (tail(), 3)]
        {
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
        // Ten of them are little on the line, and much to be read. Who waits says so now and then.
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
    fn told(bench: &Bench) -> Served {
        let mut served = served(bench, 1.0, Arc::default());
        let filter = [("tier", "working")].into_iter().collect();
        let request = Request::Pull(Pull { filter, ..Pull::default() });
        served.handler.receive(&Asked { id: 1, request }.encode(), true, 0).unwrap();
        loop {
            let Some((part, _)) = served.handler.next_part() else {
                std::thread::yield_now();
                continue;
            };
            let (all, answered) = (part.len(), Answered::decode(part).unwrap());
            served.handler.sent(all);
            if matches!(answered.answer, Answer::End { complete: true, .. }) {
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
}
