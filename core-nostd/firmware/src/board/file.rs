//! A file of the machine that the emulator runs on, and what was said on the emulator's command line.
#![allow(unsafe_code, reason = "semihosting takes addresses")]

use cortex_m_semihosting::{nr, syscall};

/// `r+b`: to be read and written, and there already.
const READ_WRITE: usize = 3;

/// An open file.
#[derive(Debug)]
pub struct File(usize);

impl File {
    /// Opens a file that is there. The name has less than 64 bytes.
    pub fn open(name: &str) -> Option<Self> {
        let mut terminated = [0_u8; 64];
        terminated[..63].get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        // SAFETY: a text that ends with a zero, and its length without it.
        let handle = unsafe { syscall!(OPEN, terminated.as_ptr(), READ_WRITE, name.len()) };
        (handle != usize::MAX).then_some(Self(handle))
    }

    /// Reads what is at `offset`. False if it is not all there.
    pub fn read(&mut self, offset: u32, bytes: &mut [u8]) -> bool {
        // SAFETY: the handle is open, and the buffer as long as it says.
        self.seek(offset) && unsafe { syscall!(READ, self.0, bytes.as_mut_ptr(), bytes.len()) } == 0
    }

    /// Writes at `offset`. False if it was not all written.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) -> bool {
        // SAFETY: the handle is open, and the buffer as long as it says.
        self.seek(offset) && unsafe { syscall!(WRITE, self.0, bytes.as_ptr(), bytes.len()) } == 0
    }

    fn seek(&mut self, offset: u32) -> bool {
        // SAFETY: the handle is open.
        unsafe { syscall!(SEEK, self.0, offset) == 0 }
    }
}

/// The number behind `name=` on the command line of the firmware.
pub fn argument(name: &str) -> Option<u32> {
    let mut line = [0_u8; 128];
    let mut block = [line.as_mut_ptr() as usize, line.len()];
    // SAFETY: the block says where the buffer is and how long; both outlive the call.
    let failed =
        unsafe { cortex_m_semihosting::syscall1(nr::GET_CMDLINE, block.as_mut_ptr() as usize) };
    if failed != 0 {
        return None;
    }
    let end = line.iter().position(|byte| *byte == 0)?;
    let line = core::str::from_utf8(&line[..end]).ok()?;
    line.split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}
