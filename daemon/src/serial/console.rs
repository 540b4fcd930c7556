//! The console: what a person types becomes commands, one after the other, and what they say comes back.

use std::collections::VecDeque;
use std::sync::Arc;

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use omir_core::link::{XOFF, XON};

use super::commands::{Announcements, Command, Worker, told};
use super::editor::{Editor, Typed};
use super::share::Share;
use crate::engine::Engine;

/// What is typed while a command runs and is kept for later, bytes.
const MOST_AHEAD: usize = 1024;
/// Commands that were interrupted and have not noticed yet; more are refused.
const MOST_RUNNING: usize = 4;

/// A person's side of a port.
pub struct Console {
    engine: Engine,
    robot: Arc<str>,
    announced: Announcements,
    share: Share,
    editor: Editor,
    /// The answer to the command that runs.
    running: Option<Receiver<String>>,
    /// One for each thread that still works.
    threads: Arc<()>,
    ahead: VecDeque<u8>,
    out: VecDeque<u8>,
    /// The terminal wants nothing now.
    paused: bool,
}

impl Console {
    /// Of an engine that serves under this name.
    pub fn new(engine: Engine, robot: Arc<str>, announced: Announcements, share: Share) -> Console {
        Console {
            engine,
            robot,
            announced,
            share,
            editor: Editor::default(),
            running: None,
            threads: Arc::new(()),
            ahead: VecDeque::new(),
            out: VecDeque::new(),
            paused: false,
        }
    }

    /// Somebody else has the line, or it is gone.
    pub fn clear(&mut self) {
        self.editor.clear();
        self.running = None;
        self.ahead.clear();
        self.out.clear();
        self.paused = false;
    }

    /// Takes a byte that was typed.
    pub fn take(&mut self, byte: u8) {
        match byte {
            XOFF => self.paused = true,
            XON => self.paused = false,
            // Ctrl-C; the document of a dump is not to be continued by an echo.
            0x03 => {
                self.running = None;
                self.ahead.clear();
                self.out.clear();
                self.paused = false;
                self.edit(byte);
            }
            _ if self.running.is_some() => {
                if self.ahead.len() < MOST_AHEAD {
                    self.ahead.push_back(byte);
                }
            }
            _ => self.edit(byte),
        }
    }

    /// Whether a command runs: there may be something to show without anything coming in.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Whether there is something to show now.
    pub fn has_text(&self) -> bool {
        !self.paused && !self.out.is_empty()
    }

    /// Up to `most` bytes for the terminal, after those in `to`.
    pub fn show(&mut self, most: usize, to: &mut Vec<u8>) {
        if self.paused {
            return;
        }
        while self.out.len() < most {
            let Some(running) = &self.running else { break };
            match running.try_recv() {
                Ok(text) => self.print(&text),
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

    fn edit(&mut self, byte: u8) {
        let mut echo = Vec::new();
        let typed = self.editor.take(byte, &mut echo);
        self.out.extend(echo);
        match typed {
            None => {}
            Some(Typed::Interrupt) => self.prompt(),
            Some(Typed::Line(line)) => match Command::parse(&line) {
                Ok(None) => self.prompt(),
                Ok(Some(command)) => self.begin(command),
                Err(error) => {
                    self.print(&told(&error));
                    self.prompt();
                }
            },
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
        let worker = Worker {
            engine: self.engine.clone(),
            robot: self.robot.clone(),
            announced: self.announced.clone(),
            out,
        };
        let (share, alive) = (self.share, self.threads.clone());
        std::thread::Builder::new().name("omird-console".to_owned()).spawn(move || {
            worker.run(command, &mut share.begin());
            drop(alive);
        })?;
        self.running = Some(answer);
        Ok(())
    }

    fn prompt(&mut self) {
        let prompt = format!("{}> ", self.robot);
        self.out.extend(prompt.bytes());
    }

    /// What a memory says must not steer the terminal: of control characters only the end of a line passes.
    fn print(&mut self, text: &str) {
        let mut bytes = [0; 4];
        for character in text.chars() {
            match character {
                '\n' => self.out.extend(b"\r\n"),
                _ if character.is_control() => self.out.push_back(b'?'),
                _ => self.out.extend(character.encode_utf8(&mut bytes).bytes()),
            }
        }
    }
}
