//! The console: what a person types becomes commands, one after the other, and what they say comes back.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use omir_core::link::{XOFF, XON};

use super::commands::{Output, Worker};
use super::cpu_share::Budget;
use super::editor::{Editor, MOST_BYTES, Typed};
use super::zmodem::{Ending, Transfer};
use crate::protocols::Protocols;
use crate::protocols::omir::console::{Command, error_line};
use crate::router::{Caller, Scope, Scopes};

/// Bound on the input that is kept while a command runs, bytes.
const MOST_AHEAD: usize = 1024;
/// Input is dropped while so much waits to be shown: a line that echoes must not fill the memory.
const MOST_UNSHOWN: usize = 4096;
/// Longest time that an XOFF holds a transfer, microseconds.
const HELD: u64 = 5_000_000;
/// Longest time that it holds anything else, microseconds: its sender may be gone, or it was noise.
const PAUSED: u64 = 60_000_000;
/// Time after which a half typed line is dropped, microseconds.
const LEFT: u64 = 600_000_000;
/// Lines one after the other that are no commands; more are not answered, nor shown.
const MOST_MISFITS: u8 = 20;
/// Until nothing was typed for so long, microseconds.
const SILENCE: u64 = 60_000_000;
/// Commands that were interrupted and have not noticed yet; more are refused.
const MOST_RUNNING: usize = 4;

/// A person's side of a port.
pub struct Console {
    protocols: Protocols,
    /// The name that the person at the console has for the router.
    name: Arc<str>,
    budget: Budget,
    editor: Editor,
    /// Lines that were no commands since the last that was.
    misfits: u8,
    running: Option<Running>,
    /// The file that it sends.
    transfer: Option<Transfer>,
    /// One for each thread that still works.
    threads: Arc<()>,
    ahead: VecDeque<u8>,
    out: VecDeque<u8>,
    /// The terminal wants nothing now.
    paused: bool,
    /// Since when; as far as is known.
    paused_since: Option<u64>,
    /// The time of the last key, microseconds.
    typed_at: u64,
}

/// A command that runs.
struct Running {
    answer: Receiver<Output>,
    /// Lives as long as a reader wants the output.
    _wanted: Arc<()>,
}

impl Console {
    /// Of a port of this name.
    pub fn new(protocols: Protocols, name: Arc<str>, budget: Budget) -> Console {
        Console {
            protocols,
            name,
            budget,
            editor: Editor::default(),
            misfits: 0,
            running: None,
            transfer: None,
            threads: Arc::new(()),
            ahead: VecDeque::new(),
            out: VecDeque::new(),
            paused: false,
            paused_since: None,
            typed_at: 0,
        }
    }

    /// Another session has the line, or it is gone.
    pub fn clear(&mut self) {
        self.editor.clear();
        self.misfits = 0;
        self.running = None;
        self.transfer = None;
        self.ahead.clear();
        self.out.clear();
        self.paused = false;
    }

    /// Takes a byte that was typed. `now` in microseconds.
    pub fn take(&mut self, byte: u8, now: u64) {
        let silence = now.saturating_sub(std::mem::replace(&mut self.typed_at, now));
        if silence > SILENCE {
            self.misfits = 0;
        }
        let is_left = silence > LEFT;
        if is_left && self.running.is_none() && !self.editor.is_empty() {
            self.editor.clear();
            self.print("\n");
            self.prompt();
        }
        // A person who types Enter wants to see something; without a key for XON it would be nothing.
        if matches!(byte, b'\r' | b'\n') && self.transfer.is_none() {
            self.paused = false;
        }
        match byte {
            XOFF => self.paused = true,
            XON => self.paused = false,
            // Ctrl-C, which is in nothing that a receiver says.
            0x03 if self.transfer.is_some() => {
                self.paused = false;
                self.ahead.clear();
                self.transfer.iter_mut().for_each(|transfer| transfer.cancel(Ending::Cancelled));
            }
            _ if self.transfer.is_some() => {
                self.transfer.iter_mut().for_each(|transfer| transfer.take(byte));
            }
            // Ctrl-C; the document of a dump is not to be continued by an echo.
            0x03 => {
                self.running = None;
                self.ahead.clear();
                self.out.clear();
                self.paused = false;
                self.edit(byte);
            }
            _ if self.running.is_some() => self.keep_for_later(byte),
            _ if self.out.len() < MOST_UNSHOWN => self.edit(byte),
            _ => {}
        }
    }

    /// Returns true if a command runs: there may be something to show without anything coming in.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Returns true if there is something to show now.
    pub fn has_text(&self) -> bool {
        let sends = self.transfer.as_ref().is_some_and(Transfer::has_more);
        !self.paused && (sends || !self.out.is_empty())
    }

    /// Up to `most` bytes for the terminal, after those in `to`. `now` in microseconds.
    pub fn show(&mut self, most: usize, to: &mut Vec<u8>, now: u64) {
        if self.transfer.as_mut().is_some_and(|transfer| transfer.tick(now)) {
            // A receiver that wanted nothing for so long is gone too, and shall not keep the console waiting.
            self.paused = false;
        }
        self.paused_since = self.paused.then(|| self.paused_since.unwrap_or(now));
        // An XON that a wrong bit made an XOFF; were it none, the receiver asks again for what it lost.
        let longest = if self.transfer.is_some() { HELD } else { PAUSED };
        if self.paused_since.is_some_and(|since| now >= since + longest) {
            self.paused = false;
        }
        if self.paused {
            return;
        }
        while self.out.len() < most {
            if let Some(transfer) = self.transfer.as_mut().filter(|_| self.out.is_empty()) {
                transfer.send(most, to, now);
                let Some(ended) = transfer.ended() else { return };
                self.transfer = None;
                self.print(ending_line(ended));
            }
            let Some(running) = &self.running else { break };
            match running.answer.try_recv() {
                Ok(Output::Text(text)) => self.print(&text),
                Ok(Output::File { name, modified, spool }) => {
                    self.print(&format!("{name}, {} bytes; Ctrl-C ends it\n", spool.len()));
                    self.transfer = Transfer::new(&name, modified, spool, now);
                    if self.transfer.is_none() {
                        self.print("too large for ZMODEM: give a FILTER, or use omir pull\n");
                    }
                    break;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.running = None;
                    self.prompt();
                    // Keys that were typed meanwhile count now, up to the next command.
                    while self.running.is_none() {
                        let Some(byte) = self.ahead.pop_front() else { break };
                        self.edit(byte);
                    }
                }
            }
        }
        let most = most.min(self.out.len());
        to.extend(self.out.drain(..most));
    }

    fn keep_for_later(&mut self, byte: u8) {
        if self.ahead.len() < MOST_AHEAD {
            self.ahead.push_back(byte);
        }
    }

    fn edit(&mut self, byte: u8) {
        let mut echo = Vec::new();
        let typed = self.editor.take(byte, &mut echo);
        if self.misfits < MOST_MISFITS {
            self.out.extend(echo);
        }
        match typed {
            None => {}
            Some(Typed::Interrupt) => {
                self.misfits = 0;
                self.prompt();
            }
            Some(Typed::TooLong) => {
                self.misunderstand(&format!(
                    "a line has at most {MOST_BYTES} bytes: nothing was done\n"
                ));
            }
            Some(Typed::Line(line)) => match Command::parse(&line) {
                Ok(None) => self.misunderstand(""),
                Ok(Some(command)) => {
                    self.misfits = 0;
                    self.begin(command);
                }
                Err(error) => self.misunderstand(&error_line(&error)),
            },
        }
    }

    /// A login prompt or another console at the other end would answer each answer, and each echo, for ever.
    fn misunderstand(&mut self, why: &str) {
        self.misfits = self.misfits.saturating_add(1);
        match self.misfits {
            ..MOST_MISFITS => {
                self.print(why);
                self.prompt();
            }
            MOST_MISFITS => self.print("is that a person? Ctrl-C wakes this console\n"),
            _ => {}
        }
    }

    fn begin(&mut self, command: Command) {
        let refused = if Arc::strong_count(&self.threads) > MOST_RUNNING {
            Some("what was interrupted is not over yet; try again in a moment\n".to_owned())
        } else {
            self.spawn(command).err().map(|error| format!("no thread for it: {error}\n"))
        };
        if let Some(refused) = refused {
            self.print(&refused);
            self.prompt();
        }
    }

    /// Returns the person at the console, who only reads. No command takes a token, so that where one is required the
    /// console is closed.
    fn caller(&self) -> Caller {
        let (access, name) = (&self.protocols.access, self.name.clone());
        if access.is_required() {
            return Caller { name, ..Caller::unknown("serial") };
        }
        Caller { scopes: Scopes::only(&[Scope::READ]), ..Caller::trusted("serial", name) }
    }

    fn spawn(&mut self, command: Command) -> std::io::Result<()> {
        let (out, answer) = bounded(2);
        let wanted = Arc::new(());
        let worker = Worker {
            protocols: self.protocols.clone(),
            caller: self.caller(),
            wanted: Arc::downgrade(&wanted),
            out,
        };
        let (budget, alive) = (self.budget.clone(), self.threads.clone());
        std::thread::Builder::new().name("omird-console".to_owned()).spawn(move || {
            worker.run(&command, &mut budget.begin());
            drop(alive);
        })?;
        self.running = Some(Running { answer, _wanted: wanted });
        Ok(())
    }

    fn prompt(&mut self) {
        let prompt = format!("{}> ", self.protocols.omir.robot());
        self.out.extend(prompt.bytes());
    }

    /// The contents of a memory must not steer the terminal: of control characters only the end of a line passes, and
    /// none that turns round the order in which a line is shown (UAX 9).
    fn print(&mut self, text: &str) {
        let mut bytes = [0; 4];
        for character in text.chars() {
            match character {
                '\n' => self.out.extend(b"\r\n"),
                _ if character.is_control() => self.out.push_back(b'?'),
                '\u{200e}' | '\u{200f}' | '\u{61c}' => self.out.push_back(b'?'),
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.out.push_back(b'?'),
                _ => self.out.extend(character.encode_utf8(&mut bytes).bytes()),
            }
        }
    }
}

/// Returns the line that tells how a transfer ended.
fn ending_line(ended: Ending) -> &'static str {
    match ended {
        Ending::Sent => "\nsent\n",
        Ending::Cancelled => "\ncancelled\n",
        Ending::Skipped => "\nthe receiver does not want it; is there a file of that name?\n",
        Ending::Unheard => "\nno answer from a receiver\n",
    }
}

#[cfg(test)]
mod tests;
