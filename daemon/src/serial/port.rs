//! One port: the device, the link with its desk, and the console, turned round by one thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use omir_core::link::{Event, Link, Reason};

use super::console::Console;
use super::desk::{Desk, LOOK_AGAIN};
use super::device::Device;
use super::pace::Pace;
use super::split::{For, Splitter};
use super::{Announcements, Port};
use crate::engine::Engine;

/// How often is looked whether the daemon stops, or the device is back.
const LOOK: Duration = Duration::from_millis(200);
/// A device that is not there is tried again so often.
const RETRY: Duration = Duration::from_secs(1);
/// Bytes of text that are given to the line at once: little, so that Ctrl-C is heeded soon.
const TEXT: usize = 64;
/// What is read at once.
const PIECE: usize = 4096;

/// As large as the protocol allows, and frames that pass a bit error in 10,000 four times of five.
type PortLink = Link<32, 256>;

/// A port that is served.
pub struct Served {
    path: PathBuf,
    baud: u32,
    robot: Arc<str>,
    desk: Desk,
    console: Console,
    stopping: Arc<AtomicBool>,
    began: Instant,
}

impl Served {
    /// Not begun yet.
    pub fn new(
        engine: Engine,
        robot: Arc<str>,
        port: &Port,
        announced: Announcements,
        stopping: Arc<AtomicBool>,
    ) -> Served {
        let console = Console::new(engine.clone(), robot.clone(), announced, port.share);
        Served {
            console,
            path: port.path.clone(),
            baud: port.baud,
            robot: robot.clone(),
            desk: Desk::new(engine, robot, port.access.clone(), port.share),
            stopping,
            began: Instant::now(),
        }
    }

    /// Serves the port until the daemon stops.
    pub fn run(mut self) {
        // Said once, not each second.
        let mut complaint = None;
        while !self.is_stopping() {
            let served = Device::open(&self.path, self.baud).and_then(|device| {
                tracing::info!(port = %self.path.display(), baud = self.baud, "serial port open");
                complaint = None;
                self.serve(&device)
            });
            self.desk.clear();
            self.console.clear();
            if let Err(error) = served {
                let said = error.to_string();
                if complaint.as_ref() != Some(&said) {
                    tracing::warn!(port = %self.path.display(), %error, "serial port waited for");
                    complaint = Some(said);
                }
                let until = Instant::now() + RETRY;
                while Instant::now() < until && !self.is_stopping() {
                    std::thread::sleep(LOOK);
                }
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Microseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Serves a device that is there.
    fn serve(&mut self, device: &Device) -> io::Result<()> {
        let mut link = PortLink::new(&self.robot);
        let mut pace = Pace::new(self.baud);
        let mut splitter = Splitter::default();
        let mut buffer = [0; PIECE];
        let mut out = Vec::new();
        loop {
            let read = device.read(&mut buffer)?;
            let now = self.now();
            for &byte in &buffer[..read] {
                // In a session everything is frames, and what is none is noise.
                if link.is_open() || splitter.take(byte, now) == For::Frame {
                    link.receive(&[byte], now);
                } else {
                    self.console.take(byte);
                }
            }
            self.take_events(&mut link, now);
            if self.is_stopping() {
                link.close(Reason::GoingAway);
            }
            self.hand_over(&mut link);
            while out.is_empty() && now >= pace.ready_at() {
                if !link.poll_transmit(now, &mut |byte| out.push(byte)) {
                    break;
                }
            }
            if out.is_empty() && !link.is_open() && now >= pace.ready_at() {
                self.console.show(TEXT, &mut out, now);
            }
            let written = device.write(&out)?;
            pace.sent(written, now);
            out.drain(..written);
            if self.is_stopping() {
                return Ok(());
            }
            if read < PIECE {
                let text = !link.is_open() && self.console.has_text();
                device.wait(self.patience(&link, &pace, !out.is_empty(), text))?;
            }
        }
    }

    fn take_events(&mut self, link: &mut PortLink, now: u64) {
        let mut broken = None;
        while let Some(event) = link.poll_event() {
            match event {
                Event::Opened => {
                    self.desk.clear();
                    self.console.clear();
                }
                Event::Closed(why) => {
                    tracing::debug!(port = %self.path.display(), %why, "serial session over");
                    self.desk.clear();
                }
                Event::Data { bytes, last } => {
                    if let Err(error) = self.desk.receive(bytes, last, now) {
                        broken = Some(error);
                        break;
                    }
                }
            }
        }
        if let Some(error) = broken {
            tracing::warn!(port = %self.path.display(), %error, "no message of the serial link");
            link.close(Reason::Protocol);
            self.desk.clear();
        }
    }

    /// Gives the link what it has room for.
    fn hand_over(&mut self, link: &mut PortLink) {
        while link.is_open() {
            let Some((bytes, last)) = self.desk.next_part() else { return };
            let all = bytes.len();
            let sent = link.send(bytes, last);
            self.desk.sent(sent);
            if sent < all {
                return;
            }
        }
    }

    /// How long nothing needs to be done unless something comes in: `is_full`, if the device took not all
    /// it was given; `text`, if there is some to be shown.
    fn patience(&self, link: &PortLink, pace: &Pace, is_full: bool, text: bool) -> Duration {
        if is_full {
            return Duration::from_millis(1);
        }
        let now = self.now();
        let text = text.then_some(0);
        let due = [link.next_timeout(), text].into_iter().flatten().min();
        let due = due.map(|at| at.max(pace.ready_at()));
        let patience =
            due.map_or(LOOK, |at| Duration::from_micros(at.saturating_sub(now))).min(LOOK);
        let is_busy = self.desk.is_busy() || self.console.is_busy();
        if is_busy { patience.min(LOOK_AGAIN) } else { patience }
    }
}
