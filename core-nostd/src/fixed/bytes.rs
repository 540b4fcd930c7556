//! A sink of encoded bytes.

use core::fmt;

/// Takes bytes one piece after the other: a buffer, a checksum, a serial port.
pub trait Sink {
    /// A piece that was not taken.
    type Error;

    /// Takes all of `bytes`, or says why not; then what it holds is of no use.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// A buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more bytes than the buffer has room for")
    }
}

impl core::error::Error for NoRoom {}

/// A buffer refuses what does not fit.
impl<const N: usize> Sink for heapless::Vec<u8, N> {
    type Error = NoRoom;

    fn put(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        self.extend_from_slice(bytes).map_err(|_| NoRoom)
    }
}

impl<S: Sink> Sink for &mut S {
    type Error = S::Error;

    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        (**self).put(bytes)
    }
}

/// Counts the bytes and keeps none: how long an encoding is, before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length(pub usize);

impl Sink for Length {
    type Error = core::convert::Infallible;

    fn put(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0 += bytes.len();
        Ok(())
    }
}
