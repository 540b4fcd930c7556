//! A line as the port sees it: bytes and the time. A test brings one in simulated time.

use std::io;
use std::time::{Duration, Instant};

use crate::serial::device::Device;

/// A line, and the time at it. A port sees no more of the world, so that a test needs neither.
pub(super) trait Wire {
    /// Microseconds since any fixed moment.
    fn now(&self) -> u64;
    /// Reads what is there into the buffer; 0 if nothing is.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// As much as fits; how many bytes.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Waits until something can be read or, if it `is_full`, written, at most `patience`.
    fn wait(&self, is_full: bool, patience: Duration) -> io::Result<bool>;
    /// Takes back what was not sent.
    fn discard(&self);
}

/// A device that is there.
pub(super) struct Real {
    pub(super) device: Device,
    pub(super) began: Instant,
}

impl Wire for Real {
    fn now(&self) -> u64 {
        micros_since(self.began)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.read(buffer)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.device.write(bytes)
    }

    fn wait(&self, is_full: bool, patience: Duration) -> io::Result<bool> {
        self.device.wait(is_full, patience)
    }

    fn discard(&self) {
        self.device.discard();
    }
}

/// Returns the microseconds since then.
pub(super) fn micros_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
