//! The node at a serial port: gives the daemon on the other end what it remembers.

use embedded_storage::nor_flash::NorFlash;
use heapless::Vec;
use omir_core::fixed::handover::{HandOver, Progress};
use omir_core::fixed::{JournalError, Uptime};
use omir_core::link::{Link, Reason, most_bytes};

use crate::Memories;
use crate::board::{Clock, Uart};
use crate::sensors::Random;

/// Bytes in a fragment, and fragments under way.
const PAYLOAD: usize = 128;
const WINDOW: usize = 2;
/// Who takes nothing now is asked again after this, microseconds.
const PATIENCE: u64 = 2_000_000;

/// Hands everything over, however often that has to be begun. `begun` is the uptime when `clock` was started.
///
/// # Errors
/// What the flash says.
pub fn hand_over<F: NorFlash>(
    memories: &mut Memories<F>,
    uart: &mut Uart,
    clock: &mut Clock,
    random: &mut Random,
    begun: Uptime,
) -> Result<HandOver<'static, 512>, JournalError<F::Error>> {
    let mut link = Link::<WINDOW, PAYLOAD>::new("node");
    let mut hand_over = HandOver::new();
    // A frame on its way, and how much of it has left.
    let mut frame = Vec::<u8, { most_bytes(PAYLOAD) }>::new();
    let mut sent = 0;
    let mut refused_at = None;
    let mut done = false;
    loop {
        let now = clock.micros();
        while let Some(byte) = uart.receive() {
            link.receive(&[byte], now);
        }
        let uptime = Uptime { micros: begun.micros + now, ..begun };
        if !done {
            match hand_over.poll(&mut link, memories, uptime)? {
                Progress::Working => {}
                Progress::Lost => link.connect(random.draw(), now),
                Progress::Done => {
                    done = true;
                    link.close(Reason::Done);
                }
                Progress::Refused => {
                    // Busy, or its disk is full: that may change.
                    if now >= *refused_at.get_or_insert(now + PATIENCE) {
                        hand_over.resume();
                        refused_at = None;
                    }
                }
            }
        }
        if sent == frame.len() {
            frame.clear();
            sent = 0;
            // There is room for the longest frame.
            let more = link.poll_transmit(now, &mut |byte| {
                let _ = frame.push(byte);
            });
            if done && !more {
                return Ok(hand_over);
            }
        }
        while sent < frame.len() && uart.send(frame[sent]) {
            sent += 1;
        }
    }
}
