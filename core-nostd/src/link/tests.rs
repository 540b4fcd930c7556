//! Two ends and a simulated line: noise, cuts and restarts, in simulated time.
//!
//! Whatever the line does, what an end takes is a beginning of what the other one sent in that session,
//! and all of it once the line is quiet. A failure prints its seed.
//!
//! Invariant 28 of ARCHITECTURE.md.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// One step of the simulation, microseconds.
const TICK: u64 = 1_000;
/// 10 bits at 115200 baud, nanoseconds.
pub(crate) const BYTE_115200: u64 = 86_806;

/// SplitMix64 (Steele, Lea & Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        ((self.next() >> 11) as f64) < p * (1u64 << 53) as f64
    }
}

/// Probabilities of what a line does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    /// For each bit.
    pub(crate) flip: f64,
    /// For each byte.
    pub(crate) lose: f64,
    pub(crate) repeat: f64,
    pub(crate) insert: f64,
}

pub(crate) const QUIET: Noise = Noise { flip: 0.0, lose: 0.0, repeat: 0.0, insert: 0.0 };

/// One direction: bytes leave at the line's pace, and arrive as they are then.
pub(crate) struct Wire {
    pub(crate) waiting: VecDeque<u8>,
    /// When the byte at the front has left, nanoseconds.
    free_at: u64,
    byte: u64,
    pub(crate) noise: Noise,
    pub(crate) up: bool,
    /// Bytes that left so far.
    pub(crate) left: u64,
}

impl Wire {
    pub(crate) fn new(byte: u64) -> Wire {
        Wire { waiting: VecDeque::new(), free_at: 0, byte, noise: QUIET, up: true, left: 0 }
    }

    /// What arrived until `now`, microseconds.
    pub(crate) fn arrived(&mut self, now: u64, random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.free_at + self.byte <= now * 1_000 {
            let Some(mut byte) = self.waiting.pop_front() else {
                self.free_at = now * 1_000;
                break;
            };
            self.free_at += self.byte;
            self.left += 1;
            if !self.up || random.chance(self.noise.lose) {
                continue;
            }
            for bit in 0..8 {
                byte ^= u8::from(random.chance(self.noise.flip)) << bit;
            }
            bytes.push(byte);
            if random.chance(self.noise.repeat) {
                bytes.push(byte);
            }
            if random.chance(self.noise.insert) {
                bytes.push(random.next() as u8);
            }
        }
        bytes
    }
}

/// What an end says in a session: the same bytes whenever it is asked.
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

/// The examples of docs/serial.md.
#[cfg(feature = "alloc")]
#[test]
fn the_document_shows_frames_as_they_are() {
    let document = include_str!("../../../docs/serial.md");
    let push = message::Asked { id: 1, request: message::Request::Push(message::Push::default()) }
        .encode();
    let greet = |window, max_payload, name| Greeting { window, max_payload, name };
    for (from_responder, seq, body) in [
        (false, 0, Body::Hello(greet(2, 128, "mcu"))),
        (true, 0, Body::Welcome(greet(32, 256, ""))),
        (false, 0, Body::Data { last: true, bytes: &push }),
        (true, 1, Body::Ack { bitmap: 0, room: 32 }),
        (false, 0, Body::Bye { reason: Reason::Done, text: "" }),
    ] {
        let mut shown = String::new();
        let frame = Frame { from_responder, session: 0x0403_0201, seq, body };
        frame.encode(&mut |byte| shown += &format!("{byte:02x} "));
        assert!(document.contains(shown.trim()), "docs/serial.md should show {shown}for {frame:?}");
    }
    let shown: Vec<String> = push.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(document.contains(&shown.join(" ")));
}

#[test]
fn the_ends_know_each_other() {
    let mut world = Small::new(1, (1, 1));
    world.finish(5);
    assert_eq!(world.a.link.peer_name(), "responder");
    assert_eq!(world.b.link.peer_name(), "initiator");
    // A second is enough to find out that both are there still; nothing else is said.
    let left = world.to_a.left + world.to_b.left;
    world.pass(10_000);
    assert!(world.a.open && world.b.open);
    let bytes = world.to_a.left + world.to_b.left - left;
    assert!(bytes < 500, "{bytes} bytes in ten idle seconds");
    world.a.link.close(Reason::Done);
    world.pass(100);
    assert!(!world.b.open);
    assert_eq!(world.b.link.next_timeout(), None);
}

/// Stated, not timed: the simulated line carries 11520 bytes a second.
fn goodput<const AW: usize, const AP: usize>(noise: Noise) -> f64 {
    let mut world = World::<AW, AP, 32, 256>::new(7, (400, 0));
    world.finish_opening();
    world.noise(noise);
    let (from, heard) = (world.now, world.b.heard_bytes);
    while world.b.heard_bytes < 120_000 {
        world.step();
        assert!(world.now < from + 120_000_000);
    }
    let bytes = (world.b.heard_bytes - heard) as f64;
    bytes / ((world.now - from) as f64 / 1e6) / (1e9 / BYTE_115200 as f64)
}

impl<const AW: usize, const AP: usize, const BW: usize, const BP: usize> World<AW, AP, BW, BP> {
    fn finish_opening(&mut self) {
        while !(self.a.open && self.b.open) {
            self.step();
        }
    }
}

#[test]
fn most_of_the_line_is_used() {
    let bit_errors = Noise { flip: 1e-4, ..QUIET };
    let clean = goodput::<32, 256>(QUIET);
    let noisy = goodput::<32, 256>(bit_errors);
    let small = goodput::<2, 128>(QUIET);
    let small_noisy = goodput::<2, 128>(bit_errors);
    println!("{clean:.3} {noisy:.3} {small:.3} {small_noisy:.3}");
    assert!(clean >= 0.9, "{clean:.3} of a clean line");
    assert!(noisy >= 0.7, "{noisy:.3} of a line with bit errors of 1e-4");
    assert!(small >= 0.7, "{small:.3} of a clean line, by a small end");
    assert!(small_noisy >= 0.3, "{small_noisy:.3} of a noisy one, by a small end");
}

#[test]
fn an_end_that_does_not_listen_stops_the_other_one() {
    let mut a = Link::<2, 128>::new("a");
    let mut b = Link::<2, 128>::new("b");
    a.connect(1, 0);
    let (mut sent, mut now) = (0, 0);
    let message = [5; 2_000];
    let exchange = |a: &mut Link<2, 128>, b: &mut Link<2, 128>, now: u64| {
        let mut line = Vec::new();
        while a.poll_transmit(now, &mut |byte| line.push(byte)) {}
        b.receive(&line, now);
        line.clear();
        while b.poll_transmit(now, &mut |byte| line.push(byte)) {}
        a.receive(&line, now);
    };
    // b takes no event but the first for ten seconds.
    for _ in 0..1_000 {
        exchange(&mut a, &mut b, now);
        sent += a.send(&message[sent..], true);
        now += 10_000;
    }
    assert_eq!(sent, 4 * 127, "two windows: the one over there, and ours");
    assert_eq!(a.counts().resent, 0, "it was all acknowledged");
    let (mut heard, mut steps) = (0, 0);
    assert_eq!(b.poll_event(), Some(Event::Opened));
    while heard < message.len() {
        while let Some(Event::Data { bytes, .. }) = b.poll_event() {
            heard += bytes.len();
        }
        exchange(&mut a, &mut b, now);
        sent += a.send(&message[sent..], true);
        now += 10_000;
        steps += 1;
        assert!(steps < 100);
    }
}

#[test]
fn a_responder_that_knows_another_version_only_says_so() {
    let mut b = Link::<2, 128>::new("b");
    let hello =
        Frame { from_responder: false, session: 5, seq: 0, body: Body::Foreign { version: 9 } };
    let mut line = Vec::new();
    hello.encode(&mut |byte| line.push(byte));
    b.receive(&line, 0);
    assert!(!b.is_open());
    let mut deframer = Deframer::<128>::new();
    let mut bye = None;
    b.poll_transmit(0, &mut |byte| {
        if let Some(Ok(Frame { session, body: Body::Bye { reason, .. }, .. })) = deframer.push(byte)
        {
            bye = Some((session, reason));
        }
    });
    assert_eq!(bye, Some((5, Reason::Version)));
}

#[test]
fn an_echo_is_not_an_answer() {
    let mut a = Link::<2, 128>::new("a");
    a.connect(1, 0);
    for now in (0..30_000_000).step_by(10_000) {
        let mut line = Vec::new();
        while a.poll_transmit(now, &mut |byte| line.push(byte)) {}
        a.receive(&line, now);
        assert_eq!(a.poll_event(), None);
    }
}

#[test]
fn a_link_of_a_microcontroller_is_small() {
    let size = size_of::<Link<2, 128>>();
    assert!(size <= 1_280, "{size} bytes");
}

/// Each byte of an exchange, in either direction, may be the last for three seconds, or one that is lost.
#[test]
fn the_cable_is_pulled_at_every_byte() {
    let mut whole = Small::new(3, (1, 1));
    whole.finish(10);
    let (to_a, to_b) = (whole.to_a.left, whole.to_b.left);
    assert!(to_a > 100 && to_b > 100);
    for down in [0, 3_000] {
        for at in 0..to_a.max(to_b) {
            for first in [true, false] {
                let mut world = Small::new(3, (1, 1));
                while (if first { world.to_a.left } else { world.to_b.left }) < at && !world.done()
                {
                    world.step();
                }
                world.up(false);
                world.pass(down.max(2));
                world.up(true);
                world.finish(20);
                assert_eq!(world.a.sessions, 1, "a short cut ends no session");
            }
        }
    }
}

/// Both ends, or one, are started anew after each byte; what the other one sends is in the line still.
#[test]
fn the_ends_are_restarted_at_every_byte() {
    let mut whole = Small::new(4, (1, 1));
    whole.finish(10);
    for at in 0..whole.to_a.left + whole.to_b.left {
        for which in 1..=3 {
            for same in [false, true] {
                let mut world = Small::new(4, (1, 1));
                while world.to_a.left + world.to_b.left < at && !world.done() {
                    world.step();
                }
                if which & 1 != 0 {
                    // It may draw the number that it had before.
                    let drawn = world.random.next() as u32;
                    let session = if same { world.a.link.session() } else { drawn };
                    world.a.restart(session, world.now);
                }
                if which & 2 != 0 {
                    world.b.restart(0, world.now);
                }
                world.finish(20);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Noise of all kinds, cuts, and restarts of both ends; then a quiet line, on which all arrives.
    #[test]
    fn what_arrives_is_what_was_sent(
        seed: u64,
        flip in prop_oneof![Just(0.0), Just(1e-4), Just(1e-3)],
        lose in prop_oneof![Just(0.0), Just(1e-3), Just(1e-2)],
        repeat in prop_oneof![Just(0.0), Just(1e-3)],
        insert in prop_oneof![Just(0.0), Just(1e-3)],
        messages in (0..12usize, 0..12usize),
        troubles in prop::collection::vec((1..3_000u64, 0..4u8), 0..6),
    ) {
        rough(Usual::new(seed, messages), Noise { flip, lose, repeat, insert }, &troubles);
        rough(Small::new(seed, messages), Noise { flip, lose, repeat, insert }, &troubles);
    }

    /// An end may get any bytes, and frames of any kind and content that nobody would send.
    #[test]
    fn no_bytes_harm(
        seed: u64,
        frames in prop::collection::vec(any_frame(), 0..60),
    ) {
        let mut random = Random(seed);
        let mut responder = Link::<4, 64>::new("r");
        let mut initiator = Link::<4, 64>::new("i");
        initiator.connect(1, 0);
        let mut now = 0;
        for frame in frames {
            for link in [&mut responder, &mut initiator] {
                link.receive(&frame, now);
                link.send(&frame, random.chance(0.5));
                if random.chance(0.5) {
                    while link.poll_event().is_some() {}
                }
                let mut frames = 0;
                while link.poll_transmit(now, &mut |_| {}) {
                    frames += 1;
                    prop_assert!(frames < 20, "it would send for ever");
                }
                prop_assert!(link.next_timeout().is_none_or(|at| at > 0), "it is done, and says it is not");
            }
            now += random.next() % 400_000;
        }
    }
}

fn rough<const AW: usize, const AP: usize, const BW: usize, const BP: usize>(
    mut world: World<AW, AP, BW, BP>,
    noise: Noise,
    troubles: &[(u64, u8)],
) {
    world.noise(noise);
    for &(wait, trouble) in troubles {
        world.pass(wait);
        match trouble {
            0 => world.call(),
            1 => {
                let now = world.now;
                world.b.restart(0, now);
            }
            2 => {
                world.up(false);
                let down = world.random.next() % 20_000;
                world.pass(down);
                world.up(true);
            }
            _ => {}
        }
    }
    world.noise(QUIET);
    world.finish(60);
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let built = (
        prop_oneof![0..8u8, 0x80..0x88u8],
        prop_oneof![Just(1u32), Just(2), any::<u32>()],
        prop_oneof![0..8u16, any::<u16>()],
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            Just(vec![1, 4, 64, 0]),
            (0..8u8, 0..5u8).prop_map(|(bits, room)| vec![bits, 0, 0, 0, room]),
        ],
    )
        .prop_map(|(kind, session, seq, payload)| {
            let mut head = [kind, 0, 0, 0, 0, 0, 0];
            head[1..5].copy_from_slice(&session.to_le_bytes());
            head[5..].copy_from_slice(&seq.to_le_bytes());
            let mut bytes = Vec::new();
            line::encode(&head, [&payload, &[]], &mut |byte| bytes.push(byte));
            bytes
        });
    prop_oneof![4 => built, 1 => prop::collection::vec(any::<u8>(), 0..100)]
}

/// The frames an end has to say, one after the other.
fn said<const W: usize, const P: usize>(link: &mut Link<W, P>, now: u64) -> Vec<u8> {
    let mut line = Vec::new();
    while link.poll_transmit(now, &mut |byte| line.push(byte)) {}
    line
}

#[test]
fn silence_ends_a_session_also_where_nothing_can_be_sent() {
    const SILENCE: u64 = 15_000_000;
    for (heard_at, over) in [(SILENCE - 1, false), (SILENCE, true), (4 * SILENCE, true)] {
        let (mut near, mut far) = (Link::<4, 64>::new("near"), Link::<4, 64>::new("far"));
        near.connect(7, 0);
        far.receive(&said(&mut near, 0), 0);
        assert_eq!(far.poll_event(), Some(Event::Opened));
        near.receive(&said(&mut far, 0), 0);
        assert_eq!(near.poll_event(), Some(Event::Opened));
        assert_eq!(far.send(b"what the other end no longer waits for", true), 38);
        // The device takes nothing, so that it is never asked what to send; then there is a frame of the session.
        near.send(b"late", true);
        let late = said(&mut near, 1_000_000);
        far.receive(&late, heard_at);
        if over {
            assert_eq!(far.poll_event(), Some(Event::Closed(Closed::Silence)));
            assert_eq!(far.poll_event(), None, "it is of no session");
            assert!(!far.is_open());
            near.receive(&said(&mut far, heard_at), 1_000_001);
            assert_eq!(near.poll_event(), Some(Event::Closed(Closed::Bye(Reason::NoSession))));
        } else {
            assert_eq!(far.poll_event(), Some(Event::Data { bytes: b"late", last: true }));
        }
    }
}

/// A line is to keep the order of what it carries. What if one repeats a HELLO late, all the same? Then the responder
/// begins anew, and the initiator hears of that: neither goes on as if nothing had been.
#[test]
fn a_hello_that_is_repeated_late_ends_the_session_at_both_ends() {
    let (mut near, mut far) = (Link::<4, 64>::new("near"), Link::<4, 64>::new("far"));
    near.connect(7, 0);
    let hello = said(&mut near, 0);
    far.receive(&hello, 0);
    assert_eq!(far.poll_event(), Some(Event::Opened));
    // In time, it is answered and nothing else.
    far.receive(&hello, 0);
    assert_eq!(far.poll_event(), None);
    near.receive(&said(&mut far, 0), 0);
    assert_eq!(near.poll_event(), Some(Event::Opened));
    near.receive(&said(&mut far, 0), 0);
    assert!(near.is_open());
    near.send(b"one", true);
    far.receive(&said(&mut near, 0), 0);
    assert_eq!(far.poll_event(), Some(Event::Data { bytes: b"one", last: true }));
    assert_eq!(far.send(b"an answer", true), 9);
    let answer = said(&mut far, 0);
    near.receive(&answer, 0);

    far.receive(&hello, 0);
    // What was to be said in the old session is not said in the new one.
    assert_eq!(far.send(b"the rest", true), 0, "nobody here has heard of it yet");
    assert_eq!(far.poll_event(), Some(Event::Opened));
    assert_eq!(far.send(b"hello", true), 5);
    near.receive(&said(&mut far, 0), 0);
    assert_eq!(near.poll_event(), Some(Event::Data { bytes: b"an answer", last: true }));
    assert_eq!(near.poll_event(), Some(Event::Closed(Closed::Bye(Reason::NoSession))));
    assert_eq!(near.poll_event(), None, "what was said in the other session is not heard");
}
