//! One end of the link: sessions, acknowledgements, timers.

use super::frame::{Body, Frame, Greeting, MOST_NAME, Reason};
use super::incoming::{Arrival, Incoming};
use super::line::Deframer;
use super::outgoing::Outgoing;
use super::timer::Timeout;

/// The first wait for a WELCOME before HELLO is said again; it doubles up to [`MOST_HELLO`].
const FIRST_HELLO: u64 = 250_000;
const MOST_HELLO: u64 = 2_000_000;
/// An acknowledgement waits so long for a second frame to acknowledge.
const ACK_DELAY: u64 = 20_000;
/// An initiator that has heard nothing for so long asks.
const PING_AFTER: u64 = 1_000_000;
/// A session in which nothing was heard for so long is over.
const SILENCE: u64 = 15_000_000;
/// The least time between two answers to frames of sessions that are not open here.
const BYE_EVERY: u64 = 1_000_000;

/// One end of a serial line.
///
/// It answers a peer that says HELLO (it is the *responder*), until [`Link::connect`] makes it an *initiator*. `WINDOW`
/// (a power of two up to 32) is how many frames are held in each direction, `PAYLOAD` (64 to 1024) how
/// many bytes each may have: `2 · WINDOW · PAYLOAD` bytes and some 400 more in all. With both ends at
/// 32 and 256 bytes it uses nine tenths and more of a clean line; 2 and 128 do on a microcontroller.
///
/// All times are microseconds of a clock that does not run backwards.
#[derive(Debug)]
pub struct Link<const WINDOW: usize, const PAYLOAD: usize> {
    deframer: Deframer<PAYLOAD>,
    session: Session<WINDOW, PAYLOAD>,
}

/// Events of [`Link::poll_event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A session begins. If another one was open, it is over, and what it sent or had to send is dropped.
    Opened,
    /// The next part of a message. Each comes once, and all in order.
    Data {
        /// Not empty, but where a sender ended a message with an empty part.
        bytes: &'a [u8],
        /// The message ends here.
        last: bool,
    },
    /// The session is over. What was not acknowledged may or may not have arrived.
    Closed(Closed),
}

/// The end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The other end said so.
    Bye(Reason),
    /// Nothing was heard of it for 15 seconds.
    Silence,
}

/// Counts of the line's faults at this end so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Frames received whole.
    pub received: u32,
    /// Bytes between two delimiters that were no frame.
    pub faults: u32,
    /// Frames of data that came a second time, or had no room.
    pub needless: u32,
    /// Frames of data sent.
    pub sent: u32,
    /// Those of them that were sent again.
    pub resent: u32,
}

#[derive(Debug)]
struct Session<const WINDOW: usize, const PAYLOAD: usize> {
    responder: bool,
    state: State,
    /// The session that is open, called for, or was last.
    number: u32,
    own_name: Name,
    peer_name: Name,
    out: Outgoing<WINDOW, PAYLOAD>,
    inc: Incoming<WINDOW, PAYLOAD>,
    timeout: Timeout,
    /// Time at which the oldest frame under way is taken for lost.
    resend_at: Option<u64>,
    /// Time at which something of this session was last heard, or it began.
    heard_at: u64,
    pinged_at: u64,
    ack: Ack,
    welcome_due: bool,
    ping_due: bool,
    bye_due: Option<(u32, Reason)>,
    /// Time at which the next answer to a frame of no session may go out.
    bye_from: u64,
    opened: bool,
    closed: Option<Closed>,
    /// The other end is beyond its greeting: what greets once more now is another session, if by the same number.
    beyond_greeting: bool,
    counts: Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    /// Saying HELLO: when next, and how long to wait after that.
    Calling {
        at: u64,
        wait: u64,
    },
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ack {
    None,
    /// One frame is not acknowledged yet.
    At(u64),
    Now,
}

impl<const WINDOW: usize, const PAYLOAD: usize> Link<WINDOW, PAYLOAD> {
    /// A responder without a session. `name` is for people; beyond 32 bytes it is cut.
    pub fn new(name: &str) -> Self {
        Link {
            deframer: Deframer::new(),
            session: Session {
                responder: true,
                state: State::Closed,
                number: 0,
                own_name: Name::new(name),
                peer_name: Name::new(""),
                out: Outgoing::new(),
                inc: Incoming::new(),
                timeout: Timeout::new(),
                resend_at: None,
                heard_at: 0,
                pinged_at: 0,
                ack: Ack::None,
                welcome_due: false,
                ping_due: false,
                bye_due: None,
                bye_from: 0,
                opened: false,
                closed: None,
                beyond_greeting: false,
                counts: Counts::default(),
            },
        }
    }

    /// Makes this end an initiator, drops what was open, and calls until the other end answers
    /// ([`Event::Opened`]). `session` is a random number, another one for each call; 0 is taken as 1. A machine without
    /// a source of randomness mixes in what differs from one of its starts to the next: the other end may still be in the
    /// session of the one before.
    pub fn connect(&mut self, session: u32, now: u64) {
        let this = &mut self.session;
        this.responder = false;
        this.state = State::Calling { at: now, wait: FIRST_HELLO };
        this.number = session.max(1);
        this.bye_due = None;
        this.drop_all();
    }

    /// Ends the session: says BYE, drops what is under way. No event follows.
    pub fn close(&mut self, reason: Reason) {
        let this = &mut self.session;
        if this.state != State::Closed {
            this.bye_due = Some((this.number, reason));
            this.state = State::Closed;
            this.drop_all();
        }
    }

    /// Takes bytes from the line.
    pub fn receive(&mut self, bytes: &[u8], now: u64) {
        for &byte in bytes {
            match self.deframer.push(byte) {
                None => {}
                Some(Ok(frame)) => {
                    let counts = &mut self.session.counts;
                    counts.received = counts.received.wrapping_add(1);
                    self.session.handle(frame, now);
                }
                Some(Err(_)) => {
                    self.session.counts.faults = self.session.counts.faults.wrapping_add(1);
                }
            }
        }
    }

    /// Returns the next event, in order. Take events until there are none: what is not taken fills the window.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        let this = &mut self.session;
        if core::mem::take(&mut this.opened) {
            return Some(Event::Opened);
        }
        if !this.inc.ready() {
            return this.closed.take().map(Event::Closed);
        }
        this.inc.take().map(|(bytes, last)| Event::Data { bytes, last })
    }

    /// Queues as much of `bytes` as there is room for and returns how many that was; 0 without an open
    /// session; and for a responder until its [`Event::Opened`] was taken, for what is offered may be of the one before,
    /// which the other end has ended. If all were taken and `last` is set, the message ends; else offer the rest again, or
    /// go on with more. A message has at least one byte.
    pub fn send(&mut self, bytes: &[u8], last: bool) -> usize {
        match self.session.state {
            State::Open if !(self.session.responder && self.session.opened) => {
                self.session.out.write(bytes, last)
            }
            _ => 0,
        }
    }

    /// Writes the next frame that is due to `sink`; false if there is none.
    ///
    /// Call it when the line has little left to send: a frame that waits in a queue of the system is old when it
    /// arrives, and the timers measure that.
    pub fn poll_transmit(&mut self, now: u64, sink: &mut impl FnMut(u8)) -> bool {
        self.session.poll_transmit(now, sink)
    }

    /// Returns the time at which [`Link::poll_transmit`] has something to do unless more comes in; 0 if at once. `None`: never.
    pub fn next_timeout(&self) -> Option<u64> {
        self.session.next_timeout()
    }

    /// Returns true if a session is open.
    pub fn is_open(&self) -> bool {
        self.session.state == State::Open
    }

    /// Returns true if this end says HELLO and waits for an answer.
    pub fn is_calling(&self) -> bool {
        matches!(self.session.state, State::Calling { .. })
    }

    /// Returns true if all that was sent has been acknowledged.
    pub fn is_flushed(&self) -> bool {
        self.session.out.queued() == 0
    }

    /// The number of the session that is open or called for, or was last.
    pub fn session(&self) -> u32 {
        self.session.number
    }

    /// Returns the other end's name.
    pub fn peer_name(&self) -> &str {
        self.session.peer_name.get()
    }

    /// Time at which something of the open session was last heard, microseconds.
    pub fn heard_at(&self) -> Option<u64> {
        self.is_open().then_some(self.session.heard_at)
    }

    /// Returns the line's faults so far.
    pub fn counts(&self) -> Counts {
        self.session.counts
    }
}

impl<const WINDOW: usize, const PAYLOAD: usize> Session<WINDOW, PAYLOAD> {
    fn drop_all(&mut self) {
        self.out.close();
        self.inc.open();
        self.timeout = Timeout::new();
        self.resend_at = None;
        self.ack = Ack::None;
        (self.welcome_due, self.ping_due, self.opened) = (false, false, false);
        self.closed = None;
        self.beyond_greeting = false;
    }

    fn open(&mut self, peer: Greeting, now: u64) {
        self.drop_all();
        self.state = State::Open;
        self.opened = true;
        (self.heard_at, self.pinged_at) = (now, now);
        self.peer_name = Name::new(peer.name);
        self.out.open(peer.window, peer.max_payload);
    }

    /// The session ends; what was received stays to be taken.
    fn end(&mut self, why: Closed) {
        self.state = State::Closed;
        self.out.close();
        self.ack = Ack::None;
        (self.welcome_due, self.ping_due) = (false, false);
        self.closed = Some(why);
        self.beyond_greeting = false;
    }

    fn handle(&mut self, frame: Frame, now: u64) {
        if frame.from_responder == self.responder {
            return; // an echo
        }
        // A device that takes no bytes may hold up the caller for longer than that.
        if self.state == State::Open && now >= self.heard_at.saturating_add(SILENCE) {
            self.end(Closed::Silence);
        }
        match frame.body {
            Body::Hello(greeting) => {
                // A line keeps the order: a peer that was beyond its greeting and says it again was restarted, and has
                // drawn the number that it had before.
                let same = frame.session == self.number && !self.beyond_greeting;
                if self.state != State::Open || !same {
                    self.number = frame.session;
                    self.bye_due = None;
                    self.open(greeting, now);
                }
                self.heard_at = now;
                self.welcome_due = true;
                return;
            }
            Body::Foreign { .. } => {
                self.bye_due = Some((frame.session, Reason::Version));
                return;
            }
            Body::Welcome(greeting) => {
                let called = matches!(self.state, State::Calling { .. });
                if called && frame.session == self.number {
                    self.open(greeting, now);
                } else if self.beyond_greeting && frame.session == self.number {
                    // It had our data, and begins again: a hello of ours came late, which a line should not do.
                    self.end(Closed::Bye(Reason::NoSession));
                }
                return;
            }
            Body::Bye { reason, .. } => {
                if self.state != State::Closed && frame.session == self.number {
                    self.end(Closed::Bye(reason));
                }
                return;
            }
            Body::Data { .. } | Body::Ack { .. } | Body::Ping => {}
        }

        if self.state != State::Open || frame.session != self.number {
            if self.responder && self.bye_due.is_none() && now >= self.bye_from {
                self.bye_due = Some((frame.session, Reason::NoSession));
                self.bye_from = now.saturating_add(BYE_EVERY);
            }
            return;
        }
        self.heard_at = now;
        // The answer to a hello that was repeated in time may stand behind the first data of a responder, but not behind
        // what says that it has ours.
        self.beyond_greeting |= self.responder;
        match frame.body {
            Body::Data { last, bytes } => {
                let arrival = self.inc.receive(frame.seq, last, bytes);
                if arrival == Arrival::Needless {
                    self.counts.needless = self.counts.needless.wrapping_add(1);
                }
                self.ack = match self.ack {
                    Ack::None if arrival == Arrival::InOrder && !last && WINDOW > 1 => {
                        Ack::At(now.saturating_add(ACK_DELAY))
                    }
                    _ => Ack::Now,
                };
            }
            Body::Ack { bitmap, room } => {
                if let Some(progress) = self.out.acknowledge(frame.seq, bitmap, room) {
                    self.beyond_greeting = true;
                    self.timeout.progress();
                    if let Some(at) = progress.measured_from {
                        self.timeout.measure(now.saturating_sub(at));
                    }
                    self.resend_at = None;
                }
            }
            _ => self.ack = Ack::Now,
        }
    }

    fn poll_transmit(&mut self, now: u64, sink: &mut impl FnMut(u8)) -> bool {
        let from_responder = self.responder;
        let mut write = |session: u32, seq: u16, body: Body<'_>| {
            Frame { from_responder, session, seq, body }.encode(sink);
            true
        };
        if let Some((session, reason)) = self.bye_due.take() {
            return write(session, 0, Body::Bye { reason, text: "" });
        }
        let session = self.number;
        match self.state {
            State::Closed => return false,
            State::Calling { at, wait } => {
                if now < at {
                    return false;
                }
                let next = now.saturating_add(wait);
                self.state = State::Calling { at: next, wait: (2 * wait).min(MOST_HELLO) };
                return write(session, 0, Body::Hello(greeting::<WINDOW, PAYLOAD>(&self.own_name)));
            }
            State::Open => {}
        }
        if now >= self.heard_at.saturating_add(SILENCE) {
            self.end(Closed::Silence);
            return false;
        }
        if core::mem::take(&mut self.welcome_due) {
            let own = greeting::<WINDOW, PAYLOAD>(&self.own_name);
            return write(session, 0, Body::Welcome(own));
        }
        if self.ack_due(now) {
            self.ack = Ack::None;
            let (next, bitmap, room) = self.inc.acknowledgement();
            return write(session, next, Body::Ack { bitmap, room });
        }
        self.look_at_the_timer(now);
        if let Some((seq, last, bytes, again)) = self.out.transmit(now) {
            self.counts.sent = self.counts.sent.wrapping_add(1);
            self.counts.resent = self.counts.resent.wrapping_add(u32::from(again));
            return write(session, seq, Body::Data { last, bytes });
        }
        if core::mem::take(&mut self.ping_due) || self.ping_at().is_some_and(|at| now >= at) {
            self.pinged_at = now;
            return write(session, 0, Body::Ping);
        }
        false
    }

    fn ack_due(&self, now: u64) -> bool {
        match self.ack {
            Ack::Now => true,
            Ack::At(at) => now >= at || self.inc.has_more_room(),
            Ack::None => self.inc.has_more_room(),
        }
    }

    /// Resends the oldest frame under way, or asks for room, when the time is up.
    fn look_at_the_timer(&mut self, now: u64) {
        let waiting = self.out.under_way() > 0 || self.out.blocked();
        if !waiting {
            self.resend_at = None;
        } else if self.resend_at.is_none_or(|at| now >= at) {
            if self.resend_at.is_some() {
                self.timeout.back_off();
                self.out.time_out();
                self.ping_due |= self.out.blocked();
            }
            self.resend_at = Some(now.saturating_add(self.timeout.get()));
        }
    }

    fn ping_at(&self) -> Option<u64> {
        let last = self.heard_at.max(self.pinged_at);
        (!self.responder).then(|| last.saturating_add(PING_AFTER))
    }

    fn next_timeout(&self) -> Option<u64> {
        if self.bye_due.is_some() {
            return Some(0);
        }
        match self.state {
            State::Closed => None,
            State::Calling { at, .. } => Some(at),
            State::Open => {
                let waiting = self.out.under_way() > 0 || self.out.blocked();
                let now = self.welcome_due
                    || self.ping_due
                    || self.ack_due(0)
                    || self.out.ready()
                    || (waiting && self.resend_at.is_none());
                if now {
                    return Some(0);
                }
                let ack = if let Ack::At(at) = self.ack { Some(at) } else { None };
                let resend = self.resend_at.filter(|_| waiting);
                let silence = Some(self.heard_at.saturating_add(SILENCE));
                [ack, resend, self.ping_at(), silence].into_iter().flatten().min()
            }
        }
    }
}

fn greeting<const WINDOW: usize, const PAYLOAD: usize>(name: &Name) -> Greeting<'_> {
    Greeting { window: WINDOW as u8, max_payload: PAYLOAD as u16, name: name.get() }
}

/// A name, cut to what a greeting holds.
#[derive(Debug)]
struct Name {
    bytes: [u8; MOST_NAME],
    len: usize,
}

impl Name {
    fn new(name: &str) -> Name {
        let mut len = name.len().min(MOST_NAME);
        while !name.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; MOST_NAME];
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Name { bytes, len }
    }

    fn get(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl core::fmt::Display for Closed {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        match self {
            Closed::Bye(reason) => reason.fmt(f),
            Closed::Silence => f.write_str("nothing was heard of the other end for 15 seconds"),
        }
    }
}
