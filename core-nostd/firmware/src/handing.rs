//! The node at a serial port: gives the daemon on the other end what it remembers.

use embedded_storage::nor_flash::NorFlash;
use heapless::Vec;
use omir_core::fixed::handover::Progress;
use omir_core::fixed::{JournalError, Uptime};
use omir_core::link::{Link, Reason, most_bytes};

use crate::board::Uart;
use crate::sensors::Random;
use crate::{HandOver, Memories};

/// Bytes in a fragment, and fragments under way.
const PAYLOAD: usize = 128;
const WINDOW: usize = 2;
/// Microseconds between two sessions: the port is a console too.
const REST: u64 = 10_000_000;

/// The node's end of the cable. There is one for as long as the node runs: it knows what flash had no room for, and how
/// long the time was waited for.
#[derive(Debug)]
pub struct Cable {
    link: Link<WINDOW, PAYLOAD>,
    /// The records that the daemon has by now.
    pub hand_over: HandOver,
    /// A frame on its way, and how much of it has left.
    frame: Vec<u8, { most_bytes(PAYLOAD) }>,
    sent: usize,
    /// The end of the last session, and the time until which no other is wanted.
    over: Option<Progress>,
    rests_until: u64,
}

impl Cable {
    /// The end of a node of that name.
    pub fn new(name: &str) -> Self {
        Self {
            link: Link::new(name),
            hand_over: HandOver::new(),
            frame: Vec::new(),
            sent: 0,
            over: None,
            rests_until: 0,
        }
    }

    /// Calls at once: there is something new.
    pub fn call(&mut self) {
        (self.over, self.rests_until) = (None, 0);
    }

    /// One turn of the node's main loop, which waits for nothing, also if nobody is at the other end. Says what the
    /// last session came to when all of it has left; until then [`Progress::Working`].
    ///
    /// # Errors
    /// What the flash says.
    pub fn turn<F: NorFlash>(
        &mut self,
        memories: &mut Memories<F>,
        uart: &mut Uart,
        random: &mut Random,
        uptime: Uptime,
    ) -> Result<Progress, JournalError<F::Error>> {
        let now = uptime.micros;
        while let Some(byte) = uart.receive() {
            self.link.receive(&[byte], now);
        }
        if now >= self.rests_until {
            self.over = None;
            match self.hand_over.poll(&mut self.link, memories, uptime)? {
                Progress::Working => {}
                // The random generator begins again with each start. Without the number of the start the link would use
                // the same session number.
                Progress::Lost => self.link.connect(random.draw() ^ uptime.boot, now),
                // All is there; or the daemon is busy, its disk is full, the port only reads, or it wants no session: that
                // may change.
                over => {
                    self.link.close(Reason::Done);
                    (self.over, self.rests_until) = (Some(over), now + REST);
                }
            }
        }
        if self.sent == self.frame.len() {
            self.frame.clear();
            self.sent = 0;
            // There is room for the longest frame.
            self.link.poll_transmit(now, &mut |byte| _ = self.frame.push(byte));
        }
        while self.sent < self.frame.len() && uart.send(self.frame[self.sent]) {
            self.sent += 1;
        }
        let all_left = self.sent == self.frame.len() && self.link.next_timeout() != Some(0);
        Ok(self.over.filter(|_| all_left).unwrap_or(Progress::Working))
    }
}
