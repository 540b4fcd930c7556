//! Giving the records of a [`Journal`](super::Journal) to a daemon, over a [`Link`], once.
//!
//! Asks the other end what time it is (`info` of docs/serial-protocol.md), dates the starts of the machine by that, and
//! then pushes what was not handed over yet: up to sixteen records in a message, of which only one is in RAM
//! at a time. What was answered with `ok` is durable over there (as far as the daemon's `durability` goes), and
//! only then marked as handed over in flash: [`Journal::handed_over`](super::Journal::handed_over). Wherever the
//! cable is pulled or power goes on either side, the next session goes on behind the mark. What arrived and was not acknowledged is pushed
//! again, with the same id, and the daemon keeps what it has.
//!
//! **A daemon may not know the time** when a node asks: both got power together, and its clock is set over a
//! network that is not up yet. Then what would be dated by this start waits, up to a minute
//! ([`HandOver::waiting`]), and the daemon is asked again; records of earlier starts go meanwhile. When the
//! minute is over they go by the time there is. Dates are as good as the daemon's clock was then.
//!
//! **A record has one date.** What it is dated by is in flash before it goes, and does not change until the daemon
//! has answered. Else what the node hears of the time is not written each time (`handover/time.rs`).
//!
//! **What is refused** holds nothing else up. The mark passes it and names it ([`Mark::refused`]), and it is
//! offered again, alone, at the beginning of each session.
//!
//! What was handed over stays in the journal, until it is forgotten or the ring needs its page. From then on
//! there are two copies that live by themselves: what is used, anchored or forgotten here afterwards is not
//! told, and what a person forgot in the daemon does not come back.
//!
//! No I/O and no clock, as the link, and nothing that waits: a driver is a few lines in the node's main loop. Link
//! and hand-over are kept for as long as the node runs. What the ring had no room to note is known only there, and
//! how long the time was waited for.
//!
//! ```
//! use embedded_storage::nor_flash::NorFlash;
//! use omir_core::fixed::handover::{HandOver, Progress};
//! use omir_core::fixed::{Journal, JournalError, Uptime};
//! use omir_core::link::{Link, Reason};
//!
//! /// A minute.
//! const REST: u64 = 60_000_000;
//!
//! /// The node's end of a cable.
//! struct Cable {
//!     link: Link<2, 128>,
//!     hand_over: HandOver<'static, 512>,
//!     /// No session begins before this.
//!     rests_until: u64,
//! }
//!
//! impl Cable {
//!     /// Between giving the link what was received, and sending what it has.
//!     fn turn<F: NorFlash>(
//!         &mut self,
//!         memories: &mut Journal<F, 24, 48, 2, 512>,
//!         uptime: Uptime,
//!         random: u32,
//!     ) -> Result<(), JournalError<F::Error>> {
//!         let now = uptime.micros;
//!         if now >= self.rests_until {
//!             match self.hand_over.poll(&mut self.link, memories, uptime)? {
//!                 Progress::Working => {}
//!                 // Another number than in the start before, also where randomness begins again with each.
//!                 Progress::Lost => self.link.connect(random ^ uptime.boot, now),
//!                 // Without a word the daemon holds the session, and its console, for 15 seconds more.
//!                 Progress::Done | Progress::Refused => {
//!                     self.link.close(Reason::Done);
//!                     self.rests_until = now + REST;
//!                 }
//!                 // The daemon wants none now: a node that calls at once is sent away as fast as the line carries it.
//!                 Progress::Ended(_) => self.rests_until = now + REST,
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//! ```

mod next;
mod outbox;
mod report;
mod request;
mod response;
#[cfg(all(test, feature = "alloc"))]
mod tests;
mod time;

use heapless::Vec;

use super::ring::{Number, RingError};
use super::{Mark, Starts, Text, Trust, Uptime};
use crate::code::Code;
use crate::link::{Closed, Event, Link, Reason};
use outbox::Fault;
pub use outbox::{Outbox, Written};
pub use report::{Handed, Progress};
use request::Op;
use response::Response;
use time::Word;

/// Records in one message. Each costs the daemon one write to its disk.
const BATCH: usize = 16;
/// Microseconds to wait for a time that can be trusted, and between two questions meanwhile.
const PATIENCE: u64 = 60_000_000;
const ASK_AGAIN: u64 = 2_000_000;
/// Age of the last answer from which the time is asked for again in a session that stays open, microseconds.
const STALE: u64 = 600_000_000;
/// Bytes of an answer that are looked at: what is of interest stands in front.
const ANSWER: usize = 192;

/// The state of a hand-over. `BYTES` is the room for the longest record as an OMIR document has it.
#[derive(Debug)]
pub struct HandOver<'a, const BYTES: usize> {
    token: Option<&'a str>,
    state: State,
    /// The number of the request that is asked.
    id: u32,
    /// The message being sent, and how much of it was.
    out: Vec<u8, BYTES>,
    sent: usize,
    /// The records of the message.
    batch: Vec<Number, BATCH>,
    /// Records handed over and refused, by now.
    mark: Mark,
    /// True if the mark is not in flash yet: something was refused, or the ring had no room.
    is_mark_unkept: bool,
    /// The session is new: nothing was done in it.
    is_new: bool,
    /// Of those that were refused earlier, so many were offered again.
    again: usize,
    /// Up to here records are pushed one by one, to find the one that is refused.
    singly: Option<Number>,
    starts: Starts,
    word: Word,
    /// Time of the last write of that to flash, microseconds since the start.
    noted_at: u64,
    /// Up to here records went with a date that hangs on this start, and were not answered yet. So long nothing is learnt
    /// of it; whether something was passed over by that.
    promised: Option<Number>,
    passed_over: bool,
    /// Microseconds to wait for a time that can be trusted, and the beginning of the wait.
    patience: u64,
    untold: Option<u64>,
    /// Of this start, whose date may still become a better one: what it would date waits.
    unsure: Option<u32>,
    /// Time of the last question for the time, microseconds since the start; and the number of them in this session.
    asked_at: u64,
    asked: u8,
    answer: Vec<u8, ANSWER>,
    /// Not all of the answer had room.
    cut: bool,
    refusal: Text<24>,
    /// The reason why the last session was ended on purpose, until it is returned.
    ended: Option<Reason>,
    handed: Handed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A session begins, or begins once more.
    Begin,
    /// The beginning of a request is being sent, or the record of the batch before `next`.
    Sending {
        op: Op,
        next: usize,
    },
    Waiting(Op),
    /// The next records are to be pushed.
    Next,
    /// They wait for the time, which was asked for then.
    Untold(u64),
    Done,
    Refused,
}

impl<const BYTES: usize> Default for HandOver<'_, BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, const BYTES: usize> HandOver<'a, BYTES> {
    /// To a port where every session may write.
    pub const fn new() -> Self {
        Self {
            token: None,
            state: State::Begin,
            id: 0,
            out: Vec::new(),
            sent: 0,
            batch: Vec::new(),
            mark: Mark::new(),
            is_mark_unkept: false,
            is_new: true,
            again: 0,
            singly: None,
            starts: Starts::new(),
            word: Word::Noted,
            noted_at: 0,
            promised: None,
            passed_over: false,
            patience: PATIENCE,
            untold: None,
            unsure: None,
            asked_at: 0,
            asked: 0,
            answer: Vec::new(),
            cut: false,
            refusal: Text::new(),
            ended: None,
            handed: Handed { stored: 0, unchanged: 0, kept: 0, refused: 0, given_up: 0 },
        }
    }

    /// To a port that asks for a token.
    pub const fn with_token(token: &'a str) -> Self {
        let mut this = Self::new();
        this.token = Some(token);
        this
    }

    /// Waits so many microseconds, a minute if this is not said, for a daemon whose clock follows a better one.
    /// With 0 what it says first is taken. Nothing is lost by waiting, as long as the ring has room.
    pub const fn waiting(mut self, micros: u64) -> Self {
        self.patience = micros;
        self
    }

    /// Returns the outcome of the records so far, over all sessions.
    pub const fn handed(&self) -> Handed {
        self.handed
    }

    /// The code that the other end last refused with, such as `UNAUTHORIZED`.
    pub fn refusal(&self) -> &str {
        &self.refusal
    }

    /// Returns the mark of what the daemon has. It is [`Journal::handed_over`](super::Journal::handed_over), or more if
    /// the ring is so full of anchored records that no mark can be written.
    ///
    /// # Errors
    /// The flash failed.
    pub fn reached<O: Outbox>(&self, outbox: &mut O) -> Result<Mark, Fault<O>> {
        if self.is_mark_unkept { Ok(self.mark.clone()) } else { Ok(outbox.ring().handed_over()?) }
    }

    /// Forgets the oldest record that the daemon has, and returns its number. Call it as long as
    /// [`Journal::remember`](super::Journal::remember) finds the ring [`RingError::Full`]. `None`: the daemon has none of
    /// the records that are left. Then there is no room until more is handed over, or something is forgotten. See
    /// [`Journal::forget_oldest`](super::Journal::forget_oldest).
    ///
    /// # Errors
    /// The flash failed.
    pub fn make_room<O: Outbox>(&mut self, outbox: &mut O) -> Result<Option<Number>, Fault<O>> {
        let mark = self.reached(outbox)?;
        let oldest = outbox.ring().forget_oldest(&mark)?;
        // Before what is new takes the room: after a power cut only flash tells what may go.
        self.keep(outbox)?;
        Ok(oldest)
    }

    /// Returns the starts of the machine and their times, as far as they are known by now.
    pub const fn starts(&self) -> &Starts {
        &self.starts
    }

    /// Looks for more to hand over, or tries again, in the session that is open. Asks for the time again if the last
    /// answer is ten minutes old.
    pub fn resume(&mut self) {
        match self.state {
            State::Done => self.state = State::Next,
            State::Refused => (self.state, self.is_new) = (State::Begin, true),
            _ => {}
        }
    }

    /// Takes what the link has received, and gives it what is to be sent. Call it whenever something came in,
    /// or the link sent something, and each second at least. `uptime` is that of now.
    ///
    /// Records may be remembered, used and forgotten between two calls. If one that is being sent is
    /// forgotten, the session is ended ([`Progress::Lost`]), for what was promised cannot be sent.
    ///
    /// # Errors
    /// The flash failed. The session is not over by that; calling again goes on.
    pub fn poll<O: Outbox, const WINDOW: usize, const PAYLOAD: usize>(
        &mut self,
        link: &mut Link<WINDOW, PAYLOAD>,
        outbox: &mut O,
        uptime: Uptime,
    ) -> Result<Progress, Fault<O>> {
        loop {
            match link.poll_event() {
                Some(Event::Opened) => {
                    (self.state, self.is_new, self.asked) = (State::Begin, true, 0);
                    self.ended = None;
                }
                // One that was restarted knows no session, and wants one.
                Some(Event::Closed(Closed::Bye(Reason::NoSession) | Closed::Silence)) => {}
                Some(Event::Closed(Closed::Bye(reason))) => self.ended = Some(reason),
                Some(Event::Data { bytes, last }) => {
                    self.gather(bytes);
                    if last && !self.answered(outbox, uptime)? {
                        link.close(Reason::Protocol);
                        self.ended = Some(Reason::Protocol);
                    }
                }
                None => break,
            }
        }
        while link.is_open() {
            match self.state {
                State::Begin => self.begin(outbox, uptime)?,
                State::Untold(asked) if uptime.micros.saturating_sub(asked) < ASK_AGAIN => {
                    return Ok(Progress::Working);
                }
                State::Untold(_) => self.state = State::Begin,
                State::Done => return Ok(Progress::Done),
                State::Refused => return Ok(Progress::Refused),
                State::Waiting(_) => return Ok(Progress::Working),
                State::Next if uptime.micros.saturating_sub(self.asked_at) >= STALE => {
                    self.asked = 0;
                    self.begin(outbox, uptime)?;
                }
                State::Next => self.plan(outbox, uptime)?,
                State::Sending { op, next } => {
                    let last = next == self.batch.len();
                    self.sent += link.send(&self.out[self.sent..], last);
                    if self.sent < self.out.len() {
                        return Ok(Progress::Working);
                    }
                    if last {
                        self.state = State::Waiting(op);
                    } else if self.encode(outbox, self.batch[next])? {
                        self.state = State::Sending { op, next: next + 1 };
                    } else {
                        link.close(Reason::Done);
                    }
                }
            }
        }
        let ended = self.ended.take();
        Ok(if link.is_calling() {
            Progress::Working
        } else {
            ended.map_or(Progress::Lost, Progress::Ended)
        })
    }

    /// Begins a session: asks for the time.
    fn begin<O: Outbox>(&mut self, outbox: &mut O, uptime: Uptime) -> Result<(), Fault<O>> {
        if self.is_new {
            self.mark = self.reached(outbox)?;
            (self.again, self.singly) = (0, None);
            self.is_new = false;
        }
        self.asked_at = uptime.micros;
        self.request(Op::Info, &[]);
        Ok(())
    }

    /// Takes a part of an answer, as far as there is room.
    fn gather(&mut self, bytes: &[u8]) {
        let room = ANSWER - self.answer.len();
        self.cut |= bytes.len() > room;
        let _ = self.answer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// An answer is here, whole or cut. False if it is none.
    fn answered<O: Outbox>(&mut self, outbox: &mut O, uptime: Uptime) -> Result<bool, Fault<O>> {
        let answer = Response::read(&self.answer, self.cut);
        self.answer.clear();
        self.cut = false;
        let (Some(answer), State::Waiting(op)) = (answer, self.state) else { return Ok(false) };
        if answer.id != u64::from(self.id) {
            return Ok(false);
        }
        if let Some(code) = answer.error {
            self.refusal = code;
            self.refused(op);
            return Ok(true);
        }
        match op {
            Op::Info => {
                let Some(time) = answer.time else { return Ok(false) };
                // Until the time is known, or if the flash fails meanwhile.
                self.state = State::Begin;
                // A daemon that does not rate its clock may have the right time.
                let trust = answer.clock.unwrap_or(Trust::Coarse);
                if !self.learn(outbox, time, trust, uptime)? {
                    return Ok(true);
                }
                match (answer.may_write, self.token) {
                    (Some(false), Some(_)) => self.request(Op::Unlock, &[]),
                    (Some(false), None) => {
                        self.refusal =
                            Text::try_from(Code::Unauthorized.as_str()).unwrap_or_default();
                        self.state = State::Refused;
                    }
                    _ => self.state = State::Next,
                }
            }
            Op::Unlock => self.state = State::Next,
            Op::Push => {
                self.go_on();
                self.handed.stored = self.handed.stored.saturating_add(answer.stored);
                self.handed.unchanged = self.handed.unchanged.saturating_add(answer.unchanged);
                self.handed.kept = self.handed.kept.saturating_add(answer.kept);
                for number in &self.batch {
                    self.mark.accept(*number);
                    self.mark.pass(*number);
                }
                self.is_mark_unkept = true;
                self.keep(outbox)?;
            }
        }
        Ok(true)
    }

    /// The other end refused it.
    fn refused(&mut self, op: Op) {
        // Others would be taken all the same. What is no code known here is not taken for that.
        let is_of_content = self.refusal.as_str().parse().is_ok_and(Code::is_of_content);
        let last = self.batch.last().copied();
        match last {
            Some(only) if op == Op::Push && is_of_content => {
                if self.batch.len() == 1 {
                    self.refuse(only);
                } else {
                    self.singly = last;
                }
                self.go_on();
            }
            _ => self.state = State::Refused,
        }
    }

    /// Writes to flash what is new of the mark, and of the starts if that is due. What finds no room there is tried again
    /// with the next of either.
    fn keep<O: Outbox>(&mut self, outbox: &mut O) -> Result<(), Fault<O>> {
        if self.is_mark_unkept {
            self.is_mark_unkept = !unless_full(outbox.ring().set_handed_over(&self.mark))?;
        }
        self.keep_starts(outbox)
    }
}

/// False if the ring was full: where everything must be kept there is no room for a note, and what is known is
/// known until power goes.
fn unless_full<E>(done: Result<(), RingError<E>>) -> Result<bool, RingError<E>> {
    match done {
        Ok(()) => Ok(true),
        Err(RingError::Full) => Ok(false),
        Err(error) => Err(error),
    }
}
