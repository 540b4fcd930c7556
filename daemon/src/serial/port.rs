//! One port: the device, the link with its session, and the console, turned round by one thread.

mod wire;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use omir_core::link::{Closed, Event, Link, Reason};

use self::wire::{Real, Wire, micros_since};
use super::Port;
use super::console::Console;
use super::cpu_share::Budget;
use super::device::Device;
use super::pace::Pace;
use super::session::{LOOK_AGAIN, SessionHandler};
use super::split::{For, Splitter};
use crate::protocols::Protocols;

/// Time between two looks at whether the daemon stops or the device is back.
const LOOK: Duration = Duration::from_millis(200);
/// A device that is not there is tried again so often.
const RETRY: Duration = Duration::from_secs(1);
/// A device that goes away sooner after it came is not told of in the log each time.
const STEADY: Duration = Duration::from_secs(10);
/// Bytes of text that are given to the line at once: little, so that Ctrl-C is heeded soon.
const TEXT: usize = 64;
/// Bytes read at once.
const PIECE: usize = 4096;
/// Longest time that a stop waits for the line to take the goodbye, microseconds: a frame at 2400 baud.
const GOODBYE: u64 = 1_500_000;

/// As large as the protocol allows, and frames that pass a bit error in 10,000 four times of five.
type PortLink = Link<32, 256>;

/// Sessions that end for what came in their messages are told of in the log so often, microseconds.
const COMPLAIN_EVERY: u64 = 3_600_000_000;

/// A port that is served.
pub struct ServedPort {
    path: PathBuf,
    baud: u32,
    robot: Arc<str>,
    handler: SessionHandler,
    console: Console,
    /// The session that the handler is for.
    session: u32,
    /// The time from which a session without sense may be logged again, microseconds.
    complain_from: u64,
    stopping: Arc<AtomicBool>,
    began: Instant,
}

impl ServedPort {
    /// Not begun yet.
    pub fn new(protocols: Protocols, port: &Port, stopping: Arc<AtomicBool>) -> ServedPort {
        let budget = Budget::new(port.share);
        let name: Arc<str> = format!("serial {}", port.path.display()).into();
        let console = Console::new(protocols.clone(), name.clone(), budget.clone());
        ServedPort {
            console,
            session: 0,
            complain_from: 0,
            path: port.path.clone(),
            baud: port.baud,
            robot: protocols.omir.robot().clone(),
            handler: SessionHandler::new(protocols, name, port.access.clone(), budget),
            stopping,
            began: Instant::now(),
        }
    }

    /// Serves the port until the daemon stops.
    pub fn run(mut self) {
        // Said once, not each second; also of a device that is there and cannot be used.
        let (mut complaint, mut flaps) = (None, false);
        while !self.is_stopping() {
            let mut opened = None;
            let served = Device::open(&self.path, self.baud).and_then(|device| {
                opened = Some(Instant::now());
                if !flaps {
                    tracing::info!(port = %self.path.display(), baud = self.baud, "serial port open");
                }
                self.serve(&Real { device, began: self.began })
            });
            self.handler.clear();
            self.console.clear();
            if let Some(opened) = opened {
                flaps = opened.elapsed() < STEADY;
                complaint = complaint.filter(|_| flaps);
            }
            if let Err(error) = served {
                let said = error.to_string();
                if complaint.as_ref() != Some(&said) {
                    tracing::warn!(port = %self.path.display(), %error, "serial port waited for");
                    complaint = Some(said);
                }
                let began = self.began;
                self.wait_for_device(|| micros_since(began), std::thread::sleep);
            }
        }
    }

    /// Waits until the device is to be tried again, by the clock of the line.
    fn wait_for_device(&mut self, now: impl Fn() -> u64, sleep: impl Fn(Duration)) {
        let began = now();
        while now().saturating_sub(began) < RETRY.as_micros() as u64 && !self.is_stopping() {
            sleep(LOOK);
            // Also of a device that does not come back.
            self.handler.tidy(now());
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Serves a line until it is gone, or the daemon stops.
    fn serve(&mut self, wire: &impl Wire) -> io::Result<()> {
        let mut link = PortLink::new(&self.robot);
        let mut pace = Pace::new(self.baud);
        let mut splitter = Splitter::default();
        let mut buffer = [0; PIECE];
        let mut out = Vec::new();
        let mut stop_at = None;
        let mut look = LOOK_AGAIN;
        loop {
            let read = wire.read(&mut buffer)?;
            let now = wire.now();
            for &byte in &buffer[..read] {
                // In a session everything is frames, and what is none is noise.
                if link.is_open() || splitter.take(byte, now) == For::Frame {
                    link.receive(&[byte], now);
                } else {
                    self.console.take(byte, now);
                }
            }
            if self.is_stopping() {
                link.close(Reason::GoingAway);
                stop_at.get_or_insert(now.saturating_add(GOODBYE));
            }
            self.take_events(&mut link, now);
            self.hand_over(&mut link);
            self.handler.tidy(now);
            while out.is_empty() && now >= pace.ready_at() {
                if !link.poll_transmit(now, &mut |byte| out.push(byte)) {
                    break;
                }
            }
            let is_quiet = out.is_empty() && now >= pace.ready_at();
            if is_quiet && !link.is_open() && stop_at.is_none() {
                self.console.show(TEXT, &mut out, now);
            }
            let written = wire.write(&out)?;
            pace.sent(written, now);
            out.drain(..written);
            if is_quiet && stop_at.is_some() {
                return Ok(());
            }
            if stop_at.is_some_and(|at| now >= at) {
                wire.discard();
                return Ok(());
            }
            // The longer a worker has nothing to say, the less often it is asked.
            look = if read + written > 0 { LOOK_AGAIN } else { (2 * look).min(LOOK / 2) };
            if read < PIECE {
                let text = !link.is_open() && self.console.has_text();
                let is_full = !out.is_empty();
                let mut patience = self.patience(now, &link, &pace, is_full, text);
                if !is_full && (self.handler.is_busy() || self.console.is_busy()) {
                    patience = patience.min(look);
                }
                wire.wait(is_full, patience)?;
            }
        }
    }

    fn take_events(&mut self, link: &mut PortLink, now: u64) {
        let mut broken = None;
        // While the handler rests from what it read, the link holds back what comes in.
        while self.handler.rests_until(now).is_none() {
            let Some(event) = link.poll_event() else { break };
            match event {
                Event::Opened => {
                    self.session = link.session();
                    self.handler.clear();
                    self.console.clear();
                }
                Event::Closed(why) => {
                    tracing::debug!(port = %self.path.display(), %why, "serial session over");
                    match why {
                        Closed::Bye(Reason::Done) => self.handler.done(),
                        Closed::Bye(_) | Closed::Silence => self.handler.clear(),
                    }
                }
                Event::Data { bytes, last } => {
                    if let Err(error) = self.handler.receive(bytes, last, now) {
                        broken = Some(error);
                        break;
                    }
                }
            }
        }
        if let Some(error) = broken {
            // Said once for many: the peer on the cable is not to fill the log.
            if now >= self.complain_from {
                tracing::warn!(port = %self.path.display(), %error, "no message of the serial link");
                self.complain_from = now.saturating_add(COMPLAIN_EVERY);
            }
            link.close(Reason::Protocol);
            self.handler.clear();
        }
    }

    /// Gives the link what it has room for. What a session that is over had to say is not for the next one, which may
    /// not be heard of yet.
    fn hand_over(&mut self, link: &mut PortLink) {
        while link.is_open() && link.session() == self.session {
            let Some((bytes, last)) = self.handler.next_part() else { return };
            let all = bytes.len();
            let sent = link.send(bytes, last);
            self.handler.sent(sent);
            if sent < all {
                return;
            }
        }
    }

    /// Returns the time in which nothing needs to be done, unless something comes in or, if the device `is_full`, it
    /// takes more;
    /// `text`, if there is some to be shown.
    fn patience(
        &self,
        now: u64,
        link: &PortLink,
        pace: &Pace,
        is_full: bool,
        text: bool,
    ) -> Duration {
        if is_full {
            return LOOK;
        }
        let text = text.then_some(0);
        let rest = self.handler.rests_until(now);
        let due = [link.next_timeout(), text, rest].into_iter().flatten().min();
        let due = due.map(|at| at.max(pace.ready_at()));
        due.map_or(LOOK, |at| Duration::from_micros(at.saturating_sub(now))).min(LOOK)
    }
}

#[cfg(test)]
mod tests;
