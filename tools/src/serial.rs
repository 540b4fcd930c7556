//! A daemon at the other end of a serial line (docs/serial.md).

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use omir_core::link::message::{Inbox, Info, Request, RequestMessage, Response, ResponseMessage};
use omir_core::link::pack::{pack, unpack};
use omir_core::link::{Closed, Event, Link, Reason};
use omird::serial::{Device, Pace};

use crate::error::{Error, Result};
use crate::interrupt;

/// Bytes read at once.
const PIECE: usize = 4096;
/// Time for which the device is asked for more before something else is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Pause after a refusal before the other end is called again.
const AGAIN: Duration = Duration::from_secs(1);

/// The reason why nothing came.
#[derive(Debug)]
pub enum Lost {
    /// The line is gone, or no daemon speaks on it: another one may come.
    Line(String),
    /// The other end says what cannot be understood.
    Nonsense(String),
    /// A signal asks this program to end.
    Interrupted,
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Line(message) => Self::Unreachable(message),
            Lost::Nonsense(message) => Self::Partial(message),
            Lost::Interrupted => Self::Partial("interrupted".to_owned()),
        }
    }
}

/// Explains why a device cannot be opened, and what to do about it.
#[must_use]
pub fn no_device(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            return "there is no such device; `ls /dev/serial/by-id` shows what is plugged in"
                .to_owned();
        }
        io::ErrorKind::IsADirectory => return "is a folder, and no serial device".to_owned(),
        io::ErrorKind::InvalidInput => "`ls /dev/serial/by-id` shows those that are",
        io::ErrorKind::PermissionDenied => {
            "devices are open to a group: `sudo usermod -aG dialout $USER`"
        }
        io::ErrorKind::ResourceBusy => {
            "another program has it, perhaps a terminal or the daemon itself"
        }
        _ => return error.to_string(),
    };
    format!("{error}; {remedy}")
}

/// Longest wait for a line that does not take the goodbye: two frames at 2400 baud.
const GOODBYE: Duration = Duration::from_secs(2);

/// An open session. However it ends, the other end is told: else it would keep the line for 15 seconds.
pub struct Line {
    path: PathBuf,
    device: Device,
    link: Link<32, 256>,
    pace: Pace,
    began: Instant,
    inbox: Inbox,
    out: Vec<u8>,
    id: u64,
    /// The other end said that it reads what is packed.
    packs: bool,
    _guard: interrupt::Guard,
}

impl Line {
    /// Opens the device and a session, within `patience`.
    ///
    /// # Errors
    /// [`Lost::Line`] if there is no device, or no daemon answers.
    pub fn open(path: &Path, baud: u32, patience: Duration) -> std::result::Result<Line, Lost> {
        let device = Device::open(path, baud)
            .map_err(|error| Lost::Line(format!("{}: {}", path.display(), no_device(&error))))?;
        let mut line = Line {
            path: path.to_owned(),
            device,
            link: Link::new("omir"),
            pace: Pace::new(baud),
            began: Instant::now(),
            inbox: Inbox::default(),
            out: Vec::new(),
            id: 0,
            packs: false,
            _guard: interrupt::Guard::new(),
        };
        line.call()?;
        let until = Instant::now() + patience;
        let mut refused = None;
        let mut call_at = None;
        while !line.link.is_open() {
            match line.link.poll_event() {
                Some(Event::Closed(Closed::Bye(Reason::Version))) => {
                    let why =
                        "the daemon speaks another version of the link: update the older of both";
                    return Err(line.lost(why));
                }
                // It stops, or was started just now: it may be back in a moment.
                Some(Event::Closed(why)) => {
                    refused = Some(why);
                    call_at = Some(Instant::now() + AGAIN);
                }
                _ => {}
            }
            if call_at.take_if(|at| Instant::now() >= *at).is_some() {
                line.call()?;
            }
            if Instant::now() > until {
                return Err(match refused {
                    Some(why) => line.lost(why),
                    None => line.lost("no daemon answers; is the port in its configuration?"),
                });
            }
            line.turn()?;
        }
        Ok(line)
    }

    /// Asks for a session, under a number of its own.
    fn call(&mut self) -> std::result::Result<(), Lost> {
        let mut session = [0; 4];
        getrandom::fill(&mut session)
            .map_err(|error| Lost::Line(format!("no random number: {error}")))?;
        let now = self.now();
        self.link.connect(u32::from_le_bytes(session), now);
        Ok(())
    }

    fn lost(&self, why: impl std::fmt::Display) -> Lost {
        Lost::Line(format!("{}: {why}", self.path.display()))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`Lost::Line`].
    pub fn ask(&mut self, request: Request) -> std::result::Result<(), Lost> {
        self.id += 1;
        let message = RequestMessage { id: self.id, request }.encode();
        let message = if self.packs { pack(message) } else { message };
        let mut sent = 0;
        while sent < message.len() {
            if !self.link.is_open() {
                return Err(self.lost("the session ended"));
            }
            sent += self.link.send(&message[sent..], true);
            self.turn()?;
        }
        Ok(())
    }

    /// Keeps the session for a while, with nothing to say.
    ///
    /// # Errors
    /// [`Lost::Line`], or that a signal came.
    pub fn rest(&mut self, pause: Duration) -> std::result::Result<(), Lost> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            self.turn()?;
        }
        Ok(())
    }

    /// The other end's name; from now on what is sent is packed, if it reads that.
    ///
    /// # Errors
    /// As [`Lost`], and what the daemon says against it.
    pub fn info(&mut self, patience: Duration) -> Result<Info> {
        self.ask(Request::Info)?;
        let nonsense = || Lost::Nonsense("the daemon does not say who it is".to_owned());
        let Response::Ok(told) = refused(self.answer(patience)?)? else {
            return Err(nonsense().into());
        };
        let info = Info::from_map(told).map_err(|_| nonsense())?;
        self.packs = info.deflate;
        Ok(info)
    }

    /// The next answer to the last request, within `patience`.
    ///
    /// # Errors
    /// As [`Lost`].
    pub fn answer(&mut self, patience: Duration) -> std::result::Result<Response, Lost> {
        let until = Instant::now() + patience;
        loop {
            let mut answer = None;
            while answer.is_none() {
                let Some(event) = self.link.poll_event() else { break };
                match event {
                    Event::Opened => {}
                    Event::Closed(why) => return Err(Lost::Line(why.to_string())),
                    Event::Data { bytes, last } => {
                        let nonsense = |error: String| Lost::Nonsense(error);
                        let whole = self.inbox.push(bytes, last);
                        let Some(message) = whole.map_err(|e| nonsense(e.to_string()))? else {
                            continue;
                        };
                        let message = unpack(message).map_err(|e| nonsense(e.to_string()))?;
                        let answered = ResponseMessage::decode(&message)
                            .map_err(|e| nonsense(e.to_string()))?;
                        answer = (answered.id == self.id).then_some(answered.response);
                    }
                }
            }
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if Instant::now() > until {
                return Err(self.lost("no answer came in time"));
            }
            self.turn()?;
        }
    }

    /// All is said.
    pub fn close(mut self) {
        self.leave(Reason::Done);
    }

    /// Says goodbye, if that was not said. A daemon that does not hear it finds out by silence.
    fn leave(&mut self, reason: Reason) {
        self.link.close(reason);
        let (now, out) = (self.now(), &mut self.out);
        // Behind what the line has not taken yet, and without waiting for its pace: nothing comes after it.
        while self.link.poll_transmit(now, &mut |byte| out.push(byte)) {}
        let until = Instant::now() + GOODBYE;
        let mut buffer = [0; PIECE];
        while !self.out.is_empty() {
            let Ok(written) = self.device.write(&self.out) else { return };
            self.out.drain(..written);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The device would be waited for when it is closed.
                return self.device.discard();
            }
            // Bytes that come in would keep the device from waiting.
            let read = self.device.read(&mut buffer);
            if read.is_err() || self.device.wait(!self.out.is_empty(), left.min(LOOK)).is_err() {
                return;
            }
        }
    }

    /// Moves bytes both ways, and waits for a moment if there are none. Events are left where they are.
    fn turn(&mut self) -> std::result::Result<(), Lost> {
        if interrupt::is_set() {
            return Err(Lost::Interrupted);
        }
        let gone =
            |path: &Path, error: std::io::Error| Lost::Line(format!("{}: {error}", path.display()));
        let mut buffer = [0; PIECE];
        let read = self.device.read(&mut buffer).map_err(|error| gone(&self.path, error))?;
        let now = self.now();
        self.link.receive(&buffer[..read], now);
        while self.out.is_empty() && now >= self.pace.ready_at() {
            let out = &mut self.out;
            if !self.link.poll_transmit(now, &mut |byte| out.push(byte)) {
                break;
            }
        }
        let written = self.device.write(&self.out).map_err(|error| gone(&self.path, error))?;
        self.pace.sent(written, now);
        self.out.drain(..written);
        if read == 0 {
            let due = self.link.next_timeout().map(|at| at.max(self.pace.ready_at()));
            let due = due.filter(|_| self.out.is_empty());
            let patience =
                due.map_or(LOOK, |at| Duration::from_micros(at.saturating_sub(now))).min(LOOK);
            self.device
                .wait(!self.out.is_empty(), patience)
                .map_err(|error| gone(&self.path, error))?;
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.leave(Reason::GoingAway);
    }
}

/// The answer to a request that has one, or what the daemon says against it.
///
/// # Errors
/// [`Error::Refused`].
pub fn refused(answer: Response) -> Result<Response> {
    match answer {
        Response::Error(failure) => {
            Err(Error::Refused { code: failure.code, message: failure.message, path: failure.path })
        }
        answer => Ok(answer),
    }
}
