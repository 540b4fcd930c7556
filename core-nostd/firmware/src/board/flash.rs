//! Flash that is a file of the host, so that it outlives the emulator; and whose power can be cut.
//!
//! Like internal flash of a microcontroller: words of four bytes, pages of 1 KiB, a word is written once.

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash, check_erase, check_read,
    check_write,
};

use super::File;

/// A failure of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashFault {
    /// Power went in this step.
    Cut,
    /// The file did not take it.
    File,
    /// It was asked for what flash does not do.
    Misuse(NorFlashErrorKind),
}

impl NorFlashError for FlashFault {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Self::Misuse(kind) => *kind,
            Self::Cut | Self::File => NorFlashErrorKind::Other,
        }
    }
}

/// Flash in a file.
#[derive(Debug)]
pub struct CutFlash {
    file: File,
    /// Words written and pages erased until power goes; none: it stays.
    left: Option<u32>,
}

impl CutFlash {
    const PAGE: usize = 1024;

    /// The flash in this file, of which the power goes in the step after `left` steps.
    pub fn new(file: File, left: Option<u32>) -> Self {
        Self { file, left }
    }

    /// Returns true if power goes in this step.
    fn cut(&mut self) -> bool {
        match &mut self.left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    fn put(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashFault> {
        if self.file.write(offset, bytes) { Ok(()) } else { Err(FlashFault::File) }
    }
}

impl ErrorType for CutFlash {
    type Error = FlashFault;
}

impl ReadNorFlash for CutFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashFault> {
        check_read(self, offset, bytes.len()).map_err(FlashFault::Misuse)?;
        if self.file.read(offset, bytes) { Ok(()) } else { Err(FlashFault::File) }
    }

    fn capacity(&self) -> usize {
        crate::FLASH
    }
}

impl NorFlash for CutFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = Self::PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashFault> {
        check_erase(self, from, to).map_err(FlashFault::Misuse)?;
        for page in (from..to).step_by(Self::PAGE) {
            let cut = self.cut();
            for at in (page..page + Self::PAGE as u32).step_by(64) {
                // An erase that is cut short leaves anything.
                let left = if cut { [(at >> 6) as u8 ^ 0xA5; 64] } else { [0xFF; 64] };
                self.put(at, &left)?;
            }
            if cut {
                return Err(FlashFault::Cut);
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashFault> {
        check_write(self, offset, bytes.len()).map_err(FlashFault::Misuse)?;
        let (words, _) = bytes.as_chunks::<4>();
        for (at, word) in (offset..).step_by(4).zip(words) {
            let mut there = [0; 4];
            self.read(at, &mut there)?;
            if there != [0xFF; 4] {
                return Err(FlashFault::Misuse(NorFlashErrorKind::Other));
            }
            if self.cut() {
                // Half of the bits have fallen.
                self.put(at, &word.map(|byte| byte | 0xA5))?;
                return Err(FlashFault::Cut);
            }
            self.put(at, word)?;
        }
        Ok(())
    }
}
