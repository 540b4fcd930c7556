//! Giving the records of a [`Journal`] to a daemon, over a [`Link`], once.
//!
//! Asks the other end what time it is (`info` of docs/serial-protocol.md), dates the starts of the machine by that, and
//! then pushes what was not handed over yet: up to sixteen records in a message, of which only one is in RAM
//! at a time. What was answered with `ok` is durable over there (as far as the daemon's `durability` goes), and
//! only then marked as handed over in flash: [`Journal::handed_over`]. Wherever the cable is pulled or power goes
//! on either side, the next session goes on behind the mark. What arrived and was not acknowledged is pushed
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
//!                 // Another number than in the start before, also where randomness begins anew with each.
//!                 Progress::Lost => self.link.connect(random ^ uptime.boot, now),
//!                 // Without a word the daemon holds the session, and its console, for 15 seconds more.
//!                 Progress::Done | Progress::Refused => {
//!                     self.link.close(Reason::Done);
//!                     self.rests_until = now + REST;
//!                 }
//!                 // The daemon wants none now: whoever calls at once is sent away as fast as the line carries it.
//!                 Progress::Ended(_) => self.rests_until = now + REST,
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//! ```

mod answer;
mod next;
#[cfg(all(test, feature = "alloc"))]
mod tests;
mod time;

use ciborium_ll::Header;
use embedded_storage::nor_flash::NorFlash;
use heapless::Vec;

use super::ring::{Number, RingError};
use super::{Journal, JournalError, Mark, NoRoom, Sink, Starts, Text, Trust, Uptime, WriteError};
use crate::cbor_head::Head;
use crate::code::Code;
use crate::link::{Closed, Event, Link, Reason};
use answer::Answer;
use time::Word;

/// Records in one message. Each costs the daemon one write to its disk.
const BATCH: usize = 16;
/// How long a time is waited for that can be trusted, and how often it is asked for meanwhile; microseconds.
const PATIENCE: u64 = 60_000_000;
const ASK_AGAIN: u64 = 2_000_000;
/// In a session that stays open the time is asked for anew when the last word is older than this, microseconds.
const STALE: u64 = 600_000_000;
/// Bytes of an answer that are looked at: what is of interest stands in front.
const ANSWER: usize = 192;

/// How the hand-over stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It goes on when something comes in, or when the link has room.
    Working,
    /// There is no session any more: connect the link anew, at once or later.
    Lost,
    /// The session was ended on purpose: the other end said so (another version, it stops or needs the line, or what it
    /// got makes no sense to it), or what it said is no answer (`Reason::Protocol`). Another one at once would end
    /// like it, and keep the line from whoever else needs it. Said once, then it is [`Progress::Lost`]: do not call
    /// [`HandOver::poll`] for a minute or so.
    Ended(Reason),
    /// All there is was handed over, but what was refused. After more was remembered: [`HandOver::resume`].
    Done,
    /// The other end takes nothing now, see [`HandOver::refusal`]. Try again later: [`HandOver::resume`].
    Refused,
}

/// Outcome of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// New over there.
    pub stored: u32,
    /// There already.
    pub unchanged: u32,
    /// Not taken, for another one of that id stays in their place: the same one with another date, one that was
    /// forgotten there, or **one of another node with this one's ids**.
    pub kept: u32,
    /// Refused by the other end, or cannot be written: longer than `BYTES`, of another program, from a
    /// start after this one. Counted once; they are offered again in each session.
    pub refused: u32,
    /// Refused, and not offered again: newer ones took their place among the eight that are kept in mind. They
    /// stay in the journal, and count as handed over.
    pub given_up: u32,
}

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
    /// It was not written to flash yet: something was refused, or the ring had no room.
    is_mark_unkept: bool,
    /// The session is new: nothing was done in it.
    anew: bool,
    /// Of those that were refused earlier, so many were offered again.
    again: usize,
    /// Up to here records are pushed one by one, to find the one that is refused.
    singly: Option<Number>,
    starts: Starts,
    word: Word,
    /// When that was last found worth a write of flash, microseconds since the start.
    noted_at: u64,
    /// Up to here records went with a date that hangs on this start, and were not answered yet. So long nothing is learnt
    /// of it; whether something was passed over by that.
    promised: Option<Number>,
    passed_over: bool,
    /// How long a time is waited for that can be trusted, microseconds; and since when.
    patience: u64,
    untold: Option<u64>,
    /// Of this start, whose date may still become a better one: what it would date waits.
    unsure: Option<u32>,
    /// When it was asked what time it is, microseconds since the start; and how often in this session.
    asked_at: u64,
    asked: u8,
    answer: Vec<u8, ANSWER>,
    /// Not all of the answer had room.
    cut: bool,
    refusal: Text<24>,
    /// Why the last session was ended on purpose, until that is said.
    ended: Option<Reason>,
    handed: Handed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A session begins, or begins once more.
    Begin,
    /// The beginning of a request is being sent, or the record of the batch before `next`.
    Asking {
        ask: Ask,
        next: usize,
    },
    Waiting(Ask),
    /// The next records are to be pushed.
    Next,
    /// They wait for the time, which was asked for then.
    Untold(u64),
    Done,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Info,
    Unlock,
    Push,
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
            anew: true,
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

    /// Returns the mark of what the daemon has: [`Journal::handed_over`], or more, where the ring is so full of what
    /// is anchored that no mark can be written.
    ///
    /// # Errors
    /// The flash failed.
    pub fn reached<F: NorFlash, const I: usize, const T: usize, const R: usize, const K: usize>(
        &self,
        journal: &mut Journal<F, I, T, R, K>,
    ) -> Result<Mark, JournalError<F::Error>> {
        if self.is_mark_unkept { Ok(self.mark.clone()) } else { journal.handed_over() }
    }

    /// Forgets the oldest record that is over there, and says which: what to do when [`Journal::remember`] finds the
    /// ring [`RingError::Full`], until it does not. See [`Journal::forget_oldest`]. `None`: nothing that is left is
    /// over there, and what was to be remembered has no room until more is handed over, or something forgotten.
    ///
    /// # Errors
    /// The flash failed.
    pub fn make_room<
        F: NorFlash,
        const I: usize,
        const T: usize,
        const R: usize,
        const K: usize,
    >(
        &mut self,
        journal: &mut Journal<F, I, T, R, K>,
    ) -> Result<Option<Number>, JournalError<F::Error>> {
        let mark = self.reached(journal)?;
        let oldest = journal.forget_oldest(&mark)?;
        // Before what is new takes the room: after a power cut only flash tells what may go.
        self.keep(journal)?;
        Ok(oldest)
    }

    /// When the starts of the machine were, as far as is known by now.
    pub const fn starts(&self) -> &Starts {
        &self.starts
    }

    /// Looks for more to hand over, or tries again, in the session that is open. What time it is is asked for again
    /// where the last word is ten minutes old.
    pub fn resume(&mut self) {
        match self.state {
            State::Done => self.state = State::Next,
            State::Refused => (self.state, self.anew) = (State::Begin, true),
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
    pub fn poll<
        F: NorFlash,
        const WINDOW: usize,
        const PAYLOAD: usize,
        const ID: usize,
        const TEXT: usize,
        const REFS: usize,
        const KEPT: usize,
    >(
        &mut self,
        link: &mut Link<WINDOW, PAYLOAD>,
        journal: &mut Journal<F, ID, TEXT, REFS, KEPT>,
        uptime: Uptime,
    ) -> Result<Progress, JournalError<F::Error>> {
        loop {
            match link.poll_event() {
                Some(Event::Opened) => {
                    (self.state, self.anew, self.asked) = (State::Begin, true, 0);
                    self.ended = None;
                }
                // One that was started anew knows no session, and wants one.
                Some(Event::Closed(Closed::Bye(Reason::NoSession) | Closed::Silence)) => {}
                Some(Event::Closed(Closed::Bye(reason))) => self.ended = Some(reason),
                Some(Event::Data { bytes, last }) => {
                    self.gather(bytes);
                    if last && !self.answered(journal, uptime)? {
                        link.close(Reason::Protocol);
                        self.ended = Some(Reason::Protocol);
                    }
                }
                None => break,
            }
        }
        while link.is_open() {
            match self.state {
                State::Begin => self.begin(journal, uptime)?,
                State::Untold(asked) if uptime.micros.saturating_sub(asked) < ASK_AGAIN => {
                    return Ok(Progress::Working);
                }
                State::Untold(_) => self.state = State::Begin,
                State::Done => return Ok(Progress::Done),
                State::Refused => return Ok(Progress::Refused),
                State::Waiting(_) => return Ok(Progress::Working),
                State::Next if uptime.micros.saturating_sub(self.asked_at) >= STALE => {
                    self.asked = 0;
                    self.begin(journal, uptime)?;
                }
                State::Next => self.plan(journal, uptime)?,
                State::Asking { ask, next } => {
                    let last = next == self.batch.len();
                    self.sent += link.send(&self.out[self.sent..], last);
                    if self.sent < self.out.len() {
                        return Ok(Progress::Working);
                    }
                    if last {
                        self.state = State::Waiting(ask);
                    } else if self.encode(journal, self.batch[next])? {
                        self.state = State::Asking { ask, next: next + 1 };
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

    /// A session is open: what time is it?
    fn begin<F: NorFlash, const I: usize, const T: usize, const R: usize, const K: usize>(
        &mut self,
        journal: &mut Journal<F, I, T, R, K>,
        uptime: Uptime,
    ) -> Result<(), JournalError<F::Error>> {
        if self.anew {
            self.mark = self.reached(journal)?;
            (self.again, self.singly) = (0, None);
            self.anew = false;
        }
        self.asked_at = uptime.micros;
        self.ask(Ask::Info, "info", &[]);
        Ok(())
    }

    /// Begins a request: `id`, `op`, and what else.
    fn ask(&mut self, ask: Ask, op: &str, records: &[Number]) {
        self.id = self.id.wrapping_add(1);
        (self.sent, self.cut) = (0, false);
        self.answer.clear();
        self.out.clear();
        self.batch = Vec::from_slice(records).unwrap_or_default();
        self.state = match self.head(ask, op) {
            Ok(()) => State::Asking { ask, next: 0 },
            // No room even for this.
            Err(NoRoom) => State::Refused,
        };
    }

    fn head(&mut self, ask: Ask, op: &str) -> Result<(), NoRoom> {
        // Deterministic: shorter keys first.
        let members = if ask == Ask::Info { 2 } else { 3 };
        put(&mut self.out, Header::Map(Some(members)))?;
        text(&mut self.out, "id")?;
        put(&mut self.out, Header::Positive(self.id.into()))?;
        text(&mut self.out, "op")?;
        text(&mut self.out, op)?;
        match ask {
            Ask::Info => Ok(()),
            Ask::Unlock => {
                text(&mut self.out, "token")?;
                text(&mut self.out, self.token.unwrap_or_default())
            }
            Ask::Push => {
                text(&mut self.out, "items")?;
                put(&mut self.out, Header::Array(Some(self.batch.len())))
            }
        }
    }

    /// Makes a record what is to be sent; false if that cannot be done any more.
    fn encode<F: NorFlash, const I: usize, const T: usize, const R: usize, const K: usize>(
        &mut self,
        journal: &mut Journal<F, I, T, R, K>,
        number: Number,
    ) -> Result<bool, JournalError<F::Error>> {
        match journal.get(number) {
            Ok(record) => {
                self.out.clear();
                self.sent = 0;
                let written: Result<(), WriteError<NoRoom>> =
                    record.write(&self.starts, &mut self.out);
                Ok(written.is_ok())
            }
            Err(JournalError::Read { .. } | JournalError::Ring(RingError::NotFound)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes a part of an answer, as far as there is room.
    fn gather(&mut self, bytes: &[u8]) {
        let room = ANSWER - self.answer.len();
        self.cut |= bytes.len() > room;
        let _ = self.answer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// An answer is here, whole or cut. False if it is none.
    fn answered<F: NorFlash, const I: usize, const T: usize, const R: usize, const K: usize>(
        &mut self,
        journal: &mut Journal<F, I, T, R, K>,
        uptime: Uptime,
    ) -> Result<bool, JournalError<F::Error>> {
        let answer = Answer::read(&self.answer, self.cut);
        self.answer.clear();
        self.cut = false;
        let (Some(answer), State::Waiting(ask)) = (answer, self.state) else { return Ok(false) };
        if answer.id != u64::from(self.id) {
            return Ok(false);
        }
        if let Some(code) = answer.error {
            self.refusal = code;
            self.refused(ask);
            return Ok(true);
        }
        match ask {
            Ask::Info => {
                let Some(time) = answer.time else { return Ok(false) };
                // Until the time is known, or if the flash fails meanwhile.
                self.state = State::Begin;
                // Who does not say whether it can be trusted may be right.
                let trust = answer.clock.unwrap_or(Trust::Coarse);
                if !self.learn(journal, time, trust, uptime)? {
                    return Ok(true);
                }
                match (answer.may_write, self.token) {
                    (Some(false), Some(_)) => self.ask(Ask::Unlock, "unlock", &[]),
                    (Some(false), None) => {
                        self.refusal =
                            Text::try_from(Code::Unauthorized.as_str()).unwrap_or_default();
                        self.state = State::Refused;
                    }
                    _ => self.state = State::Next,
                }
            }
            Ask::Unlock => self.state = State::Next,
            Ask::Push => {
                self.go_on();
                self.handed.stored = self.handed.stored.saturating_add(answer.stored);
                self.handed.unchanged = self.handed.unchanged.saturating_add(answer.unchanged);
                self.handed.kept = self.handed.kept.saturating_add(answer.kept);
                for number in &self.batch {
                    self.mark.settle(*number);
                    self.mark.pass(*number);
                }
                self.is_mark_unkept = true;
                self.keep(journal)?;
            }
        }
        Ok(true)
    }

    /// The other end refused it.
    fn refused(&mut self, ask: Ask) {
        // Others would be taken all the same. What is no code known here is not taken for that.
        let is_of_content = self.refusal.as_str().parse().is_ok_and(Code::is_of_content);
        let last = self.batch.last().copied();
        match last {
            Some(only) if ask == Ask::Push && is_of_content => {
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
    fn keep<F: NorFlash, const I: usize, const T: usize, const R: usize, const K: usize>(
        &mut self,
        journal: &mut Journal<F, I, T, R, K>,
    ) -> Result<(), JournalError<F::Error>> {
        if self.is_mark_unkept {
            self.is_mark_unkept = !unless_full(journal.set_handed_over(&self.mark))?;
        }
        self.keep_starts(journal)
    }
}

/// False if the ring was full: where everything must be kept there is no room for a note, and what is known is
/// known until power goes.
fn unless_full<E>(done: Result<(), JournalError<E>>) -> Result<bool, JournalError<E>> {
    match done {
        Ok(()) => Ok(true),
        Err(JournalError::Ring(RingError::Full)) => Ok(false),
        Err(error) => Err(error),
    }
}

fn put(out: &mut impl Sink<Error = NoRoom>, header: Header) -> Result<(), NoRoom> {
    out.put(Head::new(header).as_bytes())
}

fn text(out: &mut impl Sink<Error = NoRoom>, text: &str) -> Result<(), NoRoom> {
    put(out, Header::Text(Some(text.len())))?;
    out.put(text.as_bytes())
}
