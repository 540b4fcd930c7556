//! A file on its way to a terminal program by ZMODEM (C. Forsberg, "The ZMODEM Inter Application File
//! Transfer Protocol", 1988), around the state machine of the crate `zmodem2`.
//!
//! What that leaves to us: to say `rz` first, to heed five CAN, to end when no receiver answers, and to say again
//! what got lost. Its sender repeats nothing but the first invitation; a receiver that missed the name or
//! the end of the file asks again, and would never be answered. Nor does it know of receivers that drop all
//! control characters (ESCCTL); for them, and lines that eat some, all are escaped.

use std::collections::VecDeque;

use zmodem2::{Action, Event, FileInfo, Position, Sender};

use super::spool::Spool;

/// A terminal program that starts its receiver by itself waits for this.
const CALL: &[u8] = b"rz\r";
/// So often is invited, microseconds; as `sz` of lrzsz does.
const INVITE: u64 = 10_000_000;
/// Nothing was heard and nothing could be sent for so long: no receiver is there.
const PATIENCE: u64 = 60_000_000;
/// The name of the file is not said again sooner: receivers ask twice when both ends begin.
const AGAIN: u64 = 3_000_000;
/// Subpackets of 1 KiB before an acknowledgement is waited for; what follows one with an error is sent in vain.
const WINDOW: usize = 10;
/// On a line with errors: bytes of a subpacket, each of which is waited for. At a bit in 10,000 four of five arrive.
const NOISY_PIECE: usize = 256;
/// After so many subpackets without an error the line is clean.
const CLEAN: u32 = 64;

/// Said by turns when data was not acknowledged: a receiver would wait ten seconds for one more byte before it says
/// where it is. One that is amid a subpacket, whose end was lost, takes the end of one with a wrong CRC for an error
/// at once; a header would only be more data to it. One that waits for a header answers to ZNAK.
const NUDGES: [&[u8]; 2] = [b"\x18kxxxx", b"**\x18B0600000000cd85\r\n\x11"];
/// Time for which the data was not acknowledged then.
const SLOW: u64 = 3_000_000;

/// Begins an escape, and a header. The same byte as CAN.
const ZDLE: u8 = 0x18;
const CAN: u8 = ZDLE;
/// So many in a row cancel.
const CANCEL: u8 = 5;
/// A header is shorter.
const LINE: usize = 64;
/// Received bytes that could not be looked at yet; more is noise.
const MOST_INPUT: usize = 512;

/// The end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The receiver has all of it.
    Sent,
    /// One of the two ends cancelled.
    Cancelled,
    /// The receiver does not want it.
    Skipped,
    /// No receiver answered.
    Unheard,
}

/// Headers of a receiver.
const ZRINIT: &[u8] = b"01";
const ZACK: &[u8] = b"03";
const ZSKIP: &[u8] = b"05";
const ZNAK: &[u8] = b"06";
const ZRPOS: &[u8] = b"09";

/// The two digits of its type, if this begins as a header in hexadecimal; noise may stand before it.
fn kind(line: &[u8]) -> Option<&[u8]> {
    const BEGIN: &[u8] = b"*\x18B";
    let at = line.windows(BEGIN.len()).rposition(|window| window == BEGIN)?;
    line.get(at + BEGIN.len()..at + BEGIN.len() + 2)
}

/// Escapes the control characters that are not. Any receiver undoes it; a header in hexadecimal has some at
/// its end that are none of it.
fn escape(bytes: &[u8], to: &mut VecDeque<u8>) {
    if bytes.starts_with(b"**\x18B") {
        to.extend(bytes);
        return;
    }
    let mut is_escaped = false;
    for &byte in bytes {
        let is_plain = byte & 0x60 != 0 || is_escaped || byte == ZDLE;
        is_escaped = byte == ZDLE && !is_escaped;
        if is_plain {
            to.push_back(byte);
        } else {
            to.extend([ZDLE, byte ^ 0x40]);
        }
    }
}

/// A file that is being sent. Times in microseconds.
pub struct Transfer {
    name: String,
    modified: u32,
    spool: Spool,
    size: u32,
    sender: Sender,
    input: VecDeque<u8>,
    /// The line that is coming in: receivers send nothing but headers in hexadecimal, one a line.
    line: Vec<u8>,
    /// The sender did something since this line began.
    answered: bool,
    /// The receiver's statements on itself.
    greeting: Option<Vec<u8>>,
    /// Position of the next data; `None` before the first of it was asked for.
    next: Option<usize>,
    clean: u32,
    is_skipped: bool,
    cancels: u8,
    out: VecDeque<u8>,
    /// The time at which the name of the file was said, or the receiver was invited.
    offered_at: u64,
    /// The time at which the receiver could be sent something, or was heard. Before it was heard: the beginning.
    alive_at: u64,
    /// The time of the last nudge, and the number of them so far.
    nudged_at: u64,
    nudges: usize,
    /// Bytes of that which have to go out still.
    nudge_left: usize,
    ended: Option<Ending>,
}

impl Transfer {
    /// Of a document under a name; `modified` in seconds since 1970. `None` if it is too large for the
    /// protocol, which counts bytes in 32 bits.
    pub fn new(name: &str, modified: u32, spool: Spool, now: u64) -> Option<Transfer> {
        let mut transfer = Transfer {
            name: name.to_owned(),
            modified,
            size: u32::try_from(spool.len()).ok()?,
            spool,
            sender: Sender::new().ok()?,
            input: VecDeque::new(),
            line: Vec::new(),
            answered: false,
            greeting: None,
            next: None,
            clean: CLEAN,
            is_skipped: false,
            cancels: 0,
            out: CALL.iter().copied().collect(),
            offered_at: now,
            alive_at: now,
            nudged_at: now,
            nudges: 0,
            nudge_left: 0,
            ended: None,
        };
        transfer.sender.set_streaming_window(WINDOW);
        transfer.offer()?;
        Some(transfer)
    }

    /// Returns its end, once all is said.
    pub fn ended(&self) -> Option<Ending> {
        self.ended.filter(|_| self.out.is_empty())
    }

    /// Takes a byte that came in; not XON or XOFF.
    pub fn take(&mut self, byte: u8) {
        self.cancels = if byte == CAN { self.cancels.saturating_add(1) } else { 0 };
        if self.cancels == CANCEL {
            self.cancel(Ending::Cancelled);
        } else if self.input.len() < MOST_INPUT {
            self.input.push_back(byte);
        }
    }

    /// Ends it, and tells the other end.
    pub fn cancel(&mut self, why: Ending) {
        if self.ended.is_none() {
            self.sender.abort();
            self.out.clear();
            self.nudge_left = 0;
            if let Action::WriteWire(bytes) = self.sender.poll() {
                self.out.extend(bytes);
            }
            self.ended = Some(why);
        }
    }

    /// Up to `most` bytes for the line, after those in `to`.
    pub fn send(&mut self, most: usize, to: &mut Vec<u8>, now: u64) {
        self.pump(now);
        let most = most.min(self.out.len());
        if most > self.nudge_left && self.greeting.is_some() {
            self.alive_at = now;
        }
        self.nudge_left = self.nudge_left.saturating_sub(most);
        to.extend(self.out.drain(..most));
        self.pump(now);
    }

    /// Returns true if there is something for the line now.
    pub fn has_more(&self) -> bool {
        !self.out.is_empty()
    }

    /// Time passes, whether anything can be sent or not. True if that ended it.
    pub fn tick(&mut self, now: u64) -> bool {
        if self.ended.is_some() {
            return false;
        }
        if now >= self.alive_at + PATIENCE {
            self.cancel(Ending::Unheard);
        } else if self.greeting.is_none() && now >= self.offered_at + INVITE {
            self.offered_at = now;
            // Not possible is only what waits to be sent still.
            let _ = self.sender.timeout();
        } else if self.next.is_some()
            && self.out.is_empty()
            && now >= self.alive_at.max(self.nudged_at) + SLOW
        {
            self.nudged_at = now;
            let nudge = NUDGES[self.nudges % NUDGES.len()];
            self.nudges += 1;
            self.nudge_left = nudge.len();
            self.out.extend(nudge);
        }
        self.ended.is_some()
    }

    /// Lets the sender do what it can, one piece ahead of what the line has taken.
    fn pump(&mut self, now: u64) {
        while self.ended.is_none() && self.out.len() <= CALL.len() {
            match self.sender.poll() {
                Action::WriteWire(bytes) => {
                    let written = bytes.len();
                    escape(bytes, &mut self.out);
                    self.sender.wire_written(written);
                    self.answered = true;
                }
                Action::ReadFile { offset, max_len } => {
                    self.answered = true;
                    self.read(offset.get() as usize, max_len);
                }
                Action::Event(Event::FileCompleted) => {
                    self.answered = true;
                    self.is_skipped = kind(&self.line) == Some(ZSKIP);
                    let _ = self.sender.finish();
                }
                Action::Event(Event::SessionCompleted) if kind(&self.line) == Some(ZRINIT) => {
                    // It takes that for an answer to its goodbye; the receiver has not heard it.
                    let _ = self.restart(false);
                }
                Action::Event(Event::SessionCompleted) => {
                    if let Action::WriteWire(bytes) = self.sender.poll() {
                        self.out.extend(bytes);
                    }
                    let how = if self.is_skipped { Ending::Skipped } else { Ending::Sent };
                    self.ended = Some(how);
                }
                Action::Event(Event::Aborted) => self.ended = Some(Ending::Cancelled),
                _ => match self.input.pop_front() {
                    Some(byte) => self.hear(byte, now),
                    None => return,
                },
            }
        }
    }

    fn read(&mut self, offset: usize, most: usize) {
        let is_again = self.next.is_some_and(|next| next != offset);
        self.clean = if is_again { 0 } else { self.clean.saturating_add(1) };
        // Less than is asked for ends the window.
        let most = if self.clean < CLEAN { most.min(NOISY_PIECE) } else { most };
        let data = self.spool.read(offset, most);
        self.next = Some(offset + data.len());
        if self.sender.submit_file(data).is_err() {
            self.cancel(Ending::Cancelled);
        }
    }

    fn hear(&mut self, byte: u8, now: u64) {
        self.line.push(byte);
        // The sender itself tells the other end that a header is wrong.
        let _ = self.sender.submit_wire(&[byte]);
        // Some receivers set bit 7 of it.
        if byte & 0x7f == b'\n' {
            self.line_ended(now);
        } else if self.line.len() > LINE {
            self.line.clear();
        }
    }

    fn line_ended(&mut self, now: u64) {
        let line = std::mem::take(&mut self.line);
        let answered = std::mem::take(&mut self.answered);
        let Some(kind) = kind(&line) else { return };
        if self.greeting.is_none() {
            if kind == ZRINIT && answered {
                self.greeting = Some(line);
                (self.offered_at, self.alive_at) = (now, now);
            }
            return;
        }
        self.alive_at = now;
        let is_named = self.next.is_some();
        let is_end = self.next == Some(self.size as usize);
        if !answered && !is_named && (kind == ZRINIT || kind == ZNAK) {
            if now >= self.offered_at + AGAIN {
                self.offered_at = now;
                let _ = self.restart(true);
            }
        } else if !answered && is_named && (kind == ZRPOS || is_end && kind == ZACK) {
            // It has not heard that this was the end.
            if self.restart(true).is_some() {
                self.hush();
                line.iter().for_each(|byte| _ = self.sender.submit_wire(&[*byte]));
            }
        }
    }

    /// Tells the sender what is to be sent.
    fn offer(&mut self) -> Option<()> {
        let info = FileInfo::new(self.name.as_bytes(), Some(Position::new(self.size)));
        self.sender.start_file(info.with_modified(self.modified).with_mode(0o100_644)).ok()
    }

    /// A new sender that has just heard the receiver's greeting, and says the name of the file, or goodbye.
    fn restart(&mut self, with_file: bool) -> Option<()> {
        self.sender = Sender::new().ok()?;
        self.sender.set_streaming_window(WINDOW);
        self.hush();
        if with_file {
            self.offer()?;
        } else {
            self.sender.finish().ok()?;
        }
        for byte in self.greeting.iter().flatten() {
            let _ = self.sender.submit_wire(&[*byte]);
        }
        Some(())
    }

    /// Drops what the sender would say now.
    fn hush(&mut self) {
        while let Action::WriteWire(bytes) = self.sender.poll() {
            let all = bytes.len();
            self.sender.wire_written(all);
        }
    }
}

#[cfg(test)]
mod tests;
