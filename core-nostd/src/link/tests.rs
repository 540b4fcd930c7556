//! Two ends and a simulated line: noise, cuts and restarts, in simulated time.
//!
//! Whatever the line does, what an end takes is a beginning of what the other one sent in that session,
//! and all of it once the line is quiet. A failure prints its seed.
//!
//! Invariant 28 of ARCHITECTURE.md.

mod noise;
mod sessions;
mod wire;

use super::*;

pub(crate) use self::wire::{BYTE_115200, Noise, QUIET, Random, Wire};

/// One step of the simulation, microseconds.
const TICK: u64 = 1_000;

/// An end's messages in a session: the same bytes whenever it is asked.
fn message(session: u32, from_responder: bool, number: usize) -> Vec<u8> {
    let mut random =
        Random(u64::from(session) << 20 | u64::from(from_responder) << 19 | number as u64);
    let len = 1 + random.next() as usize % 700;
    (0..len).map(|i| if i % 7 == 0 { 0 } else { random.next() as u8 }).collect()
}

/// One end with a program that says `total` messages in each session, and checks what it hears.
struct End<const W: usize, const P: usize> {
    link: Link<W, P>,
    responder: bool,
    total: usize,
    open: bool,
    /// The message being sent, and how much of it is.
    sending: (usize, usize),
    /// The message being heard, and how much of it is.
    hearing: (usize, usize),
    sessions: u32,
    heard_bytes: usize,
}

impl<const W: usize, const P: usize> End<W, P> {
    fn new(responder: bool, total: usize) -> Self {
        let name = if responder { "responder" } else { "initiator" };
        End {
            link: Link::new(name),
            responder,
            total,
            open: false,
            sending: (0, 0),
            hearing: (0, 0),
            sessions: 0,
            heard_bytes: 0,
        }
    }

    fn restart(&mut self, session: u32, now: u64) {
        *self = End { sessions: self.sessions, ..End::new(self.responder, self.total) };
        if !self.responder {
            self.link.connect(session, now);
        }
    }

    /// One step of the driver; true if the program wants a new session.
    fn step(&mut self, bytes: &[u8], now: u64, out: &mut Wire) -> bool {
        self.link.receive(bytes, now);
        let session = self.link.session();
        let mut closed = false;
        while let Some(event) = self.link.poll_event() {
            match event {
                Event::Opened => {
                    self.open = true;
                    self.sessions += 1;
                    (self.sending, self.hearing) = ((0, 0), (0, 0));
                }
                Event::Data { bytes, last } => {
                    assert!(self.open, "data outside a session");
                    let (number, at) = &mut self.hearing;
                    let expected = message(session, !self.responder, *number);
                    assert_eq!(Some(bytes), expected.get(*at..*at + bytes.len()));
                    *at += bytes.len();
                    assert_eq!(last, *at == expected.len());
                    self.heard_bytes += bytes.len();
                    if last {
                        (*number, *at) = (*number + 1, 0);
                    }
                }
                Event::Closed(_) => (self.open, closed) = (false, true),
            }
        }
        while self.open && self.sending.0 < self.total {
            let (number, at) = &mut self.sending;
            let bytes = message(session, self.responder, *number);
            *at += self.link.send(&bytes[*at..], true);
            if *at < bytes.len() {
                break;
            }
            (*number, *at) = (*number + 1, 0);
        }
        while out.waiting.len() < 16 {
            if !self.link.poll_transmit(now, &mut |byte| out.waiting.push_back(byte)) {
                break;
            }
            assert!(out.waiting.len() < 16 + most_bytes(P));
        }
        closed && !self.responder
    }

    fn heard_all(&self, other: usize) -> bool {
        self.open && self.hearing == (other, 0)
    }
}

struct World<const AW: usize, const AP: usize, const BW: usize, const BP: usize> {
    now: u64,
    random: Random,
    a: End<AW, AP>,
    b: End<BW, BP>,
    to_a: Wire,
    to_b: Wire,
}

impl<const AW: usize, const AP: usize, const BW: usize, const BP: usize> World<AW, AP, BW, BP> {
    /// `a` calls and says so many messages, `b` answers and says so many.
    fn new(seed: u64, messages: (usize, usize)) -> Self {
        let mut world = World {
            now: 0,
            random: Random(seed),
            a: End::new(false, messages.0),
            b: End::new(true, messages.1),
            to_a: Wire::new(BYTE_115200),
            to_b: Wire::new(BYTE_115200),
        };
        world.call();
        world
    }

    fn call(&mut self) {
        self.a.restart(self.random.next() as u32, self.now);
    }

    fn step(&mut self) {
        self.now += TICK;
        if self.to_a.waiting.is_empty() && self.to_b.waiting.is_empty() {
            // Nothing happens before a timer runs out.
            let timers = [self.a.link.next_timeout(), self.b.link.next_timeout()];
            let next = timers.into_iter().flatten().min().unwrap_or(0);
            self.now = next.clamp(self.now, self.now + 100 * TICK);
        }
        let bytes = self.to_b.arrived(self.now, &mut self.random);
        self.b.step(&bytes, self.now, &mut self.to_a);
        let bytes = self.to_a.arrived(self.now, &mut self.random);
        if self.a.step(&bytes, self.now, &mut self.to_b) {
            self.call();
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        let until = self.now + milliseconds * 1_000;
        while self.now < until {
            self.step();
        }
    }

    fn done(&self) -> bool {
        self.a.heard_all(self.b.total)
            && self.b.heard_all(self.a.total)
            && self.a.link.is_flushed()
            && self.b.link.is_flushed()
            && self.a.link.session() == self.b.link.session()
    }

    /// Goes on until all has arrived; fails if that takes longer than `seconds`.
    fn finish(&mut self, seconds: u64) {
        let until = self.now + seconds * 1_000_000;
        while !self.done() {
            assert!(
                self.now < until,
                "after {seconds} s a heard {:?} of {}, b {:?} of {}: {:?}, {:?}",
                self.a.hearing,
                self.b.total,
                self.b.hearing,
                self.a.total,
                self.a.link.counts(),
                self.b.link.counts()
            );
            self.step();
        }
    }

    fn noise(&mut self, noise: Noise) {
        (self.to_a.noise, self.to_b.noise) = (noise, noise);
    }

    fn up(&mut self, up: bool) {
        (self.to_a.up, self.to_b.up) = (up, up);
    }
}

type Usual = World<32, 256, 32, 256>;
type Small = World<2, 128, 32, 256>;

impl<const AW: usize, const AP: usize, const BW: usize, const BP: usize> World<AW, AP, BW, BP> {
    fn finish_opening(&mut self) {
        while !(self.a.open && self.b.open) {
            self.step();
        }
    }
}
