//! The console: what a person types becomes commands, one after the other, and what they say comes back.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use omir_core::link::{XOFF, XON};

use super::commands::{Command, Said, Worker, told};
use super::editor::{Editor, MOST_BYTES, Typed};
use super::share::Budget;
use super::zmodem::{Outcome, Transfer};
use crate::protocols::Protocols;
use crate::router::{Caller, Scope, Scopes};

/// Bound on the input that is kept while a command runs, bytes.
const MOST_AHEAD: usize = 1024;
/// Input is dropped while so much waits to be shown: a line that echoes must not fill the memory.
const MOST_UNSHOWN: usize = 4096;
/// How long a transfer is held by an XOFF, microseconds.
const HELD: u64 = 5_000_000;
/// How long anything else is, microseconds: who asked for silence may be gone, or it was noise.
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
    /// The person at the console. A console only reads.
    caller: Caller,
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
    /// When the last key came; microseconds.
    typed_at: u64,
}

/// A command that runs.
struct Running {
    answer: Receiver<Said>,
    /// Lives as long as somebody wants to know.
    _wanted: Arc<()>,
}

impl Console {
    /// Of a port of this name.
    pub fn new(protocols: Protocols, name: Arc<str>, budget: Budget) -> Console {
        Console {
            protocols,
            caller: Caller { scopes: Scopes::only(&[Scope::READ]), ..Caller::trusted(name) },
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

    /// Somebody else has the line, or it is gone.
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
        // Whoever types Enter wants to see something; without a key for XON it would be nothing.
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
                self.transfer.iter_mut().for_each(|transfer| transfer.cancel(Outcome::Cancelled));
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
            // Who wanted nothing for so long is gone too, and shall not keep the console waiting.
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
                self.print(told_of(ended));
            }
            let Some(running) = &self.running else { break };
            match running.answer.try_recv() {
                Ok(Said::Text(text)) => self.print(&text),
                Ok(Said::File { name, modified, spool }) => {
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
                    // What was typed meanwhile counts now, up to the next command.
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
                Err(error) => self.misunderstand(&told(&error)),
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

    fn spawn(&mut self, command: Command) -> std::io::Result<()> {
        let (out, answer) = bounded(2);
        let wanted = Arc::new(());
        let worker = Worker {
            protocols: self.protocols.clone(),
            caller: self.caller.clone(),
            wanted: Arc::downgrade(&wanted),
            out,
        };
        let (budget, alive) = (self.budget.clone(), self.threads.clone());
        std::thread::Builder::new().name("omird-console".to_owned()).spawn(move || {
            worker.run(command, &mut budget.begin());
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

/// How a transfer ended, on a line of its own.
fn told_of(ended: Outcome) -> &'static str {
    match ended {
        Outcome::Sent => "\nsent\n",
        Outcome::Cancelled => "\ncancelled\n",
        Outcome::Skipped => "\nthe receiver does not want it; is there a file of that name?\n",
        Outcome::Unheard => "\nno answer from a receiver\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::share::Share;
    use crate::serial::testing::Bench;

    fn console(bench: &Bench) -> Console {
        Console::new(bench.protocols(), Arc::from("serial"), Budget::new(Share::new(1.0)))
    }

    fn run(console: &mut Console, line: &str) -> String {
        line.bytes().chain([b'\r']).for_each(|byte| console.take(byte, 0));
        let mut shown = Vec::new();
        while console.is_busy() || console.has_text() {
            console.show(4096, &mut shown, 0);
        }
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_line_that_echoes_does_not_fill_the_memory() {
        let bench = Bench::new();
        let mut console = console(&bench);
        // Each key shows a long line once more, and nobody looks.
        for line in ["x".repeat(500), "y".repeat(500)] {
            run(&mut console, &line);
        }
        for _ in 0..10_000 {
            b"\x1b[A\x1b[B".iter().for_each(|&key| console.take(key, 0));
        }
        assert!(console.out.len() < 3 * MOST_UNSHOWN, "{} bytes wait", console.out.len());
    }

    fn type_in(console: &mut Console, keys: &[u8], now: u64) {
        keys.iter().for_each(|&key| console.take(key, now));
    }

    /// Returns the output until it is quiet.
    fn shown(console: &mut Console, now: u64) -> String {
        let mut shown = Vec::new();
        while console.is_busy() || console.has_text() {
            console.show(4096, &mut shown, now);
            if console.paused {
                break;
            }
        }
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn an_xoff_does_not_outlive_who_sent_it() {
        let bench = Bench::new();
        for (at, keys) in [(5_000_000, &b"\r"[..]), (PAUSED, b"")] {
            let mut console = console(&bench);
            type_in(&mut console, b"\x13help", 1);
            console.show(64, &mut Vec::new(), 1);
            let mut held = Vec::new();
            console.show(64, &mut held, PAUSED);
            assert_eq!(held, b"", "it is held for a while");
            type_in(&mut console, keys, at + 1);
            console.show(0, &mut Vec::new(), at + 1);
            let shown = shown(&mut console, at + 1);
            assert!(shown.starts_with("help"), "{shown:?}");
            assert_eq!(shown.contains("status"), !keys.is_empty());
        }
    }

    #[test]
    fn enter_does_not_run_what_somebody_else_has_typed() {
        let bench = Bench::new();
        let mut console = console(&bench);
        type_in(&mut console, b"he\x1b", 0);
        type_in(&mut console, b"lp\r", LEFT);
        assert!(shown(&mut console, LEFT).contains("status"), "who hesitates is no other");
        type_in(&mut console, b"help", 2 * LEFT);
        type_in(&mut console, b"\r", 3 * LEFT + 1);
        let shown = shown(&mut console, 3 * LEFT + 1);
        assert_eq!(shown, "help\r\nr1> \r\nr1> ");
    }

    #[test]
    fn two_consoles_on_one_cable_fall_silent() {
        let bench = Bench::new();
        let (mut one, mut other) = (console(&bench), console(&bench));
        type_in(&mut one, b"\r", 0);
        let mut carried = 0;
        while one.has_text() || other.has_text() {
            for (from, to) in [(0, 1), (1, 0)] {
                let pair = [&mut one, &mut other];
                let mut bytes = Vec::new();
                pair[from].show(64, &mut bytes, 0);
                type_in(pair[to], &bytes, 0);
                carried += bytes.len();
            }
            assert!(carried < 100_000, "they talk on");
        }
        // Ctrl-C, a command, or whoever comes a minute later.
        type_in(&mut one, b"\x03help\r", 0);
        let told = shown(&mut one, 0);
        assert!(told.contains("r1> help") && told.contains("status"), "{told:?}");
        type_in(&mut other, b"\x15help\r", 0);
        assert!(shown(&mut other, 0).contains("status"));
    }

    #[test]
    fn who_is_no_person_is_not_answered_for_ever() {
        let bench = Bench::new();
        let mut console = console(&bench);
        let answers = |console: &mut Console, line: &str, times: usize, now: u64| {
            (0..times).for_each(|_| type_in(console, line.as_bytes(), now));
            shown(console, now).matches("unknown command").count()
        };
        assert_eq!(answers(&mut console, "login: r2\r", 30, 0), usize::from(MOST_MISFITS) - 1);
        assert_eq!(answers(&mut console, "login: r2\r", 30, SILENCE), 0);
        assert_eq!(answers(&mut console, "login: r2\r", 1, 2 * SILENCE + 1), 1);
    }

    #[test]
    fn a_line_that_was_cut_is_not_done() {
        let bench = Bench::new();
        let mut console = console(&bench);
        let line = format!("help {}\r", " ".repeat(600));
        type_in(&mut console, line.as_bytes(), 0);
        let shown = shown(&mut console, 0);
        assert!(
            shown.ends_with("a line has at most 512 bytes: nothing was done\r\nr1> "),
            "{shown:?}"
        );
    }

    #[test]
    fn a_memory_does_not_steer_the_terminal() {
        let bench = Bench::new();
        bench.remember(
            r#"{"resourceType":"MemoryRecord","id":"a","content":"k\u00fcche \u001b[2J\u202egone\u2066"}"#,
        );
        let shown = run(&mut console(&bench), "ls");
        assert!(shown.contains("k\u{fc}che ?[2J?gone?"), "{shown:?}");
    }

    #[test]
    fn looking_leaves_no_trace() {
        let bench = Bench::new();
        bench.remember(r#"{"resourceType":"MemoryRecord","id":"a","content":"the door sticks"}"#);
        let reference = "MemoryRecord/a".parse().unwrap();
        let before = bench.engine.get(&reference).unwrap();
        let mut console = console(&bench);
        for line in ["recall door", "ls touch=true", "recall door touch=true"] {
            let shown = run(&mut console, line);
            assert!(shown.contains("the door sticks"), "{shown}");
        }
        assert_eq!(bench.engine.get(&reference).unwrap(), before);
    }
}
