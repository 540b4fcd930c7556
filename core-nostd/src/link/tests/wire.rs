//! A line that flips, loses, repeats and makes up what it carries, by a seed.

use std::collections::VecDeque;

/// 10 bits at 115200 baud, nanoseconds.
pub(crate) const BYTE_115200: u64 = 86_806;

/// SplitMix64 (Steele, Lea & Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        ((self.next() >> 11) as f64) < p * (1u64 << 53) as f64
    }
}

/// Probabilities of what a line does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noise {
    /// For each bit.
    pub(crate) flip: f64,
    /// For each byte.
    pub(crate) lose: f64,
    pub(crate) repeat: f64,
    pub(crate) insert: f64,
}

pub(crate) const QUIET: Noise = Noise { flip: 0.0, lose: 0.0, repeat: 0.0, insert: 0.0 };

/// One direction: bytes leave at the line's pace, and arrive as they are then.
pub(crate) struct Wire {
    pub(crate) waiting: VecDeque<u8>,
    /// Time at which the byte at the front has left, nanoseconds.
    free_at: u64,
    byte: u64,
    pub(crate) noise: Noise,
    pub(crate) up: bool,
    /// Bytes that left so far.
    pub(crate) left: u64,
}

impl Wire {
    pub(crate) fn new(byte: u64) -> Wire {
        Wire { waiting: VecDeque::new(), free_at: 0, byte, noise: QUIET, up: true, left: 0 }
    }

    /// Returns what arrived until `now`, microseconds.
    pub(crate) fn arrived(&mut self, now: u64, random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.free_at + self.byte <= now * 1_000 {
            let Some(mut byte) = self.waiting.pop_front() else {
                self.free_at = now * 1_000;
                break;
            };
            self.free_at += self.byte;
            self.left += 1;
            if !self.up || random.chance(self.noise.lose) {
                continue;
            }
            for bit in 0..8 {
                byte ^= u8::from(random.chance(self.noise.flip)) << bit;
            }
            bytes.push(byte);
            if random.chance(self.noise.repeat) {
                bytes.push(byte);
            }
            if random.chance(self.noise.insert) {
                bytes.push(random.next() as u8);
            }
        }
        bytes
    }
}
