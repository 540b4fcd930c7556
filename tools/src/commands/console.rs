//! `omir console`: a terminal program for a daemon's serial console, and no more than that.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use omird::serial::Device;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::cli::{ConsoleArgs, Globals};
use crate::error::{Error, Result};
use crate::output;

/// Ctrl-], as in telnet.
const LEAVE: u8 = 0x1d;
/// How soon a key is sent, at the latest.
const LOOK: Duration = Duration::from_millis(20);
/// When nothing more is typed, the answer is over when nothing came for so long.
const QUIET: Duration = Duration::from_secs(2);

pub(super) fn run(globals: &Globals, args: &ConsoleArgs) -> Result<()> {
    let gone = |error: io::Error| Error::Unreachable(format!("{}: {error}", args.port.display()));
    let device = Device::open(&args.port, args.baud).map_err(gone)?;
    let quiet = globals.quiet || globals.json || !io::stdin().is_terminal();
    output::remark(quiet, "Ctrl-] leaves; Enter shows that somebody is there");
    let _raw = Raw::set();
    let keys = keys();
    let mut typed = Vec::new();
    let (mut over, mut heard) = (false, Instant::now());
    let mut buffer = [0; 4096];
    let mut out = io::stdout().lock();
    loop {
        let read = device.read(&mut buffer).map_err(gone)?;
        if read > 0 {
            out.write_all(&buffer[..read])?;
            out.flush()?;
            heard = Instant::now();
        }
        match keys.try_recv() {
            Ok(bytes) => {
                let end = bytes.iter().position(|byte| *byte == LEAVE);
                typed.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
                over |= end.is_some();
                heard = Instant::now();
                if end.is_some() && typed.is_empty() {
                    return Ok(());
                }
            }
            Err(TryRecvError::Disconnected) => over = true,
            Err(TryRecvError::Empty) => {}
        }
        let written = device.write(&typed).map_err(gone)?;
        typed.drain(..written);
        if over && typed.is_empty() && heard.elapsed() > QUIET {
            return Ok(());
        }
        if read == 0 {
            device.wait(!typed.is_empty(), LOOK).map_err(gone)?;
        }
    }
}

/// What is typed, until there is no more.
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
