//! The first UART of the board, polled: 8 data bits, no parity, one stop bit.
#![allow(unsafe_code, reason = "registers lie at addresses")]

use core::ptr;

/// That UART. There is to be one of these.
#[derive(Debug)]
pub struct Uart(());

fn read(register: usize) -> u32 {
    // SAFETY: the address of a register of this board, word by word, as its manual says.
    unsafe { ptr::read_volatile(register as *const u32) }
}

fn write(register: usize, value: u32) {
    // SAFETY: as above.
    unsafe { ptr::write_volatile(register as *mut u32, value) }
}

/// Arm CMSDK APB UART (Cortex-M System Design Kit, Technical Reference Manual, section 4.3), at the place
/// that application note 386 gives it.
#[cfg(board = "mps2")]
impl Uart {
    const BASE: usize = 0x4000_4000;
    const DATA: usize = Self::BASE;
    /// Bit 0: the transmitter is full. Bit 1: something was received.
    const STATE: usize = Self::BASE + 0x04;
    /// Bit 0: transmits. Bit 1: receives.
    const CTRL: usize = Self::BASE + 0x08;
    const BAUDDIV: usize = Self::BASE + 0x10;

    /// Switches it on, at 115200 baud.
    pub fn start() -> Self {
        write(Self::BAUDDIV, 25_000_000 / 115_200);
        write(Self::CTRL, 0b11);
        Self(())
    }

    /// A byte, if one was received.
    pub fn receive(&mut self) -> Option<u8> {
        // The lowest byte is the data.
        (read(Self::STATE) & 0b10 != 0).then(|| read(Self::DATA) as u8)
    }

    /// False if it has no room for this byte yet.
    pub fn send(&mut self, byte: u8) -> bool {
        let room = read(Self::STATE) & 0b01 == 0;
        if room {
            write(Self::DATA, byte.into());
        }
        room
    }
}

/// The UART of the nRF51 (nRF51 Series Reference Manual 3.0, chapter 29).
#[cfg(board = "microbit")]
impl Uart {
    const BASE: usize = 0x4000_2000;
    const STARTRX: usize = Self::BASE;
    const STARTTX: usize = Self::BASE + 0x008;
    const RXDRDY: usize = Self::BASE + 0x108;
    const TXDRDY: usize = Self::BASE + 0x11C;
    const ENABLE: usize = Self::BASE + 0x500;
    const RXD: usize = Self::BASE + 0x518;
    const TXD: usize = Self::BASE + 0x51C;
    const BAUDRATE: usize = Self::BASE + 0x524;

    /// Switches it on, at 115200 baud.
    pub fn start() -> Self {
        write(Self::BAUDRATE, 0x01D7_E000);
        write(Self::ENABLE, 4);
        write(Self::STARTRX, 1);
        write(Self::STARTTX, 1);
        // The first byte needs no end of one before it: this one the other end ignores.
        write(Self::TXD, 0);
        Self(())
    }

    /// A byte, if one was received.
    pub fn receive(&mut self) -> Option<u8> {
        (read(Self::RXDRDY) != 0).then(|| {
            write(Self::RXDRDY, 0);
            read(Self::RXD) as u8
        })
    }

    /// False if it has no room for this byte yet.
    pub fn send(&mut self, byte: u8) -> bool {
        let room = read(Self::TXDRDY) != 0;
        if room {
            write(Self::TXDRDY, 0);
            write(Self::TXD, byte.into());
        }
        room
    }
}
