//! `omir console`: a terminal program for a daemon's serial console, and no more than that. What is piped into it is
//! typed line by line, each after the answer to the one before.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use omird::serial::Device;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::cli::{ConsoleArgs, Globals};
use crate::error::{Error, Result};
use crate::output;
use crate::serial::no_device;

/// Ctrl-], as in telnet.
const LEAVE: u8 = 0x1d;
/// Longest delay before a key is sent.
const LOOK: Duration = Duration::from_millis(20);
/// A prompt stands at the end for so long: what is shown does not.
const QUIET: Duration = Duration::from_millis(300);
/// After so long without a prompt Enter is typed again: a program that had the line may have kept it for a while.
const AGAIN: Duration = Duration::from_secs(2);
/// Ctrl-C, which ends a command that another person left running, or half typed; and Enter.
const BEGIN: &[u8] = b"\x03\r";
/// A large store takes its time before the first line of an answer, at a part of one core.
const GATHERING: Duration = Duration::from_secs(600);

pub(super) fn run(globals: &Globals, args: &ConsoleArgs) -> Result<()> {
    let gone = |error: io::Error| Error::Unreachable(format!("{}: {error}", args.port.display()));
    let device = Device::open(&args.port, args.baud)
        .map_err(|error| gone(io::Error::other(no_device(&error))))?;
    if !io::stdin().is_terminal() {
        return Script { device, gone, last: Vec::new() }.run(globals.timeout);
    }
    output::remark(
        globals.quiet || globals.json,
        "Ctrl-] leaves; Enter shows that somebody is there",
    );
    let _raw = Raw::set();
    let keys = keys();
    let mut typed = Vec::new();
    let mut over = false;
    let mut buffer = [0; 4096];
    let mut out = io::stdout().lock();
    loop {
        let read = device.read(&mut buffer).map_err(gone)?;
        if read > 0 {
            out.write_all(&buffer[..read])?;
            out.flush()?;
        }
        match keys.try_recv() {
            Ok(bytes) => {
                let end = bytes.iter().position(|byte| *byte == LEAVE);
                typed.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                over |= end.is_some();
            }
            Err(TryRecvError::Disconnected) => over = true,
            Err(TryRecvError::Empty) => {}
        }
        let written = device.write(&typed).map_err(gone)?;
        typed.drain(..written);
        if over && typed.is_empty() {
            return Ok(());
        }
        if read == 0 {
            device.wait(!typed.is_empty(), LOOK).map_err(gone)?;
        }
    }
}

/// Lines of a pipe, and what is answered.
struct Script<G> {
    device: Device,
    gone: G,
    /// The text behind the last end of a line; of a long one, the beginning.
    last: Vec<u8>,
}

/// More of a line is no prompt.
const MOST_PROMPT: usize = 256;

impl<G: Fn(io::Error) -> Error + Copy> Script<G> {
    fn run(mut self, patience: Duration) -> Result<()> {
        let prompt = self.prompt(patience)?;
        self.show(&prompt)?;
        for line in io::stdin().lock().split(b'\n') {
            let mut line = line?;
            line.retain(|byte| *byte != b'\r');
            line.push(b'\r');
            self.type_in(&line)?;
            self.last.clear();
            let mut has_begun = false;
            let mut until = Instant::now() + GATHERING;
            while !(has_begun && self.last == prompt) {
                if Instant::now() > until {
                    let message = "the answer did not end; the console may still be at it";
                    return Err(Error::Partial(message.to_owned()));
                }
                let shown = self.read()?;
                if !shown.is_empty() {
                    has_begun |= shown.contains(&b'\n');
                    self.show(&shown)?;
                    until = Instant::now() + GATHERING;
                }
            }
        }
        Ok(())
    }

    /// The console's prompt.
    fn prompt(&mut self, patience: Duration) -> Result<Vec<u8>> {
        self.type_in(BEGIN)?;
        let mut heard = Instant::now();
        let mut typed = heard;
        let mut until = heard + patience;
        loop {
            if !self.read()?.is_empty() {
                heard = Instant::now();
                until = heard + patience;
            } else if heard.max(typed).elapsed() > AGAIN && Instant::now() < until {
                self.type_in(b"\r")?;
                typed = Instant::now();
            } else if self.last.ends_with(b"> ") && heard.elapsed() > QUIET {
                return Ok(self.last.clone());
            } else if Instant::now() > until {
                let why = "no console answers; is the port in the daemon's configuration? A program that had \
                           the line and was killed keeps it for 15 seconds";
                return Err((self.gone)(io::Error::other(why)));
            }
        }
    }

    fn type_in(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let written = self.device.write(bytes).map_err(self.gone)?;
            bytes = &bytes[written..];
            if written == 0 {
                self.device.wait(true, LOOK).map_err(self.gone)?;
            }
        }
        Ok(())
    }

    /// Returns what came, after a moment if that is nothing.
    fn read(&mut self) -> Result<Vec<u8>> {
        let mut buffer = vec![0; 4096];
        let read = self.device.read(&mut buffer).map_err(self.gone)?;
        buffer.truncate(read);
        if read == 0 {
            self.device.wait(false, LOOK).map_err(self.gone)?;
        }
        let begin = match buffer.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                self.last.clear();
                end + 1
            }
            None => 0,
        };
        let room = MOST_PROMPT.saturating_sub(self.last.len());
        self.last.extend(buffer[begin..].iter().take(room));
        Ok(buffer)
    }

    fn show(&self, bytes: &[u8]) -> Result<()> {
        Ok(output::print_bytes(bytes)?)
    }
}

/// Reads what is typed, until there is no more.
fn keys() -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 256];
        while let Ok(read @ 1..) = io::stdin().lock().read(&mut buffer) {
            if sender.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Our own terminal passes every key on, until this is dropped.
struct Raw(Option<Termios>);

impl Raw {
    fn set() -> Raw {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        }
        Raw(before)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
