//! CRC-32 of IEEE 802.3, as zlib and the daemon compute it, four bits at a time.
//!
//! A table of 16 words instead of one of 256 or more: a microcontroller has no room for it, and neither a
//! serial line nor flash is as fast as this.

/// Value of [`Crc32::finish`] over anything followed by its own CRC, little endian.
pub const RESIDUE: u32 = 0x2144_DF1C;

/// Remainders of the sixteen values of four bits; polynomial 0x04C11DB7, reflected.
const NIBBLES: [u32; 16] = {
    let mut table = [0; 16];
    let mut value = 0;
    while value < 16 {
        let mut crc = value as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[value] = crc;
        value += 1;
    }
    table
};

/// A checksum under way.
#[derive(Clone, Copy, Debug)]
pub struct Crc32(u32);

impl Crc32 {
    /// Of nothing yet.
    pub const fn new() -> Self {
        Self(!0)
    }

    /// Takes in one byte.
    pub fn push(&mut self, byte: u8) {
        let state = self.0 ^ u32::from(byte);
        let state = state >> 4 ^ NIBBLES[(state & 0xF) as usize];
        self.0 = state >> 4 ^ NIBBLES[(state & 0xF) as usize];
    }

    /// Takes in what comes next.
    pub fn update(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.push(*byte));
    }

    /// Of everything taken in.
    pub const fn finish(self) -> u32 {
        !self.0
    }
}

impl Default for Crc32 {
    fn default() -> Self {
        Self::new()
    }
}

/// The checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc32::new();
    crc.update(bytes);
    crc.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_check_value_of_the_catalogue() {
        // "CRC-32/ISO-HDLC" in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    proptest! {
        #[test]
        fn as_others_compute_it(bytes: Vec<u8>, cut: prop::sample::Index) {
            let mut crc = Crc32::new();
            let (front, back) = bytes.split_at(cut.index(bytes.len() + 1));
            crc.update(front);
            crc.update(back);
            prop_assert_eq!(crc.finish(), crc32fast::hash(&bytes));
            let whole = [&bytes[..], &crc.finish().to_le_bytes()].concat();
            prop_assert_eq!(crc32(&whole), RESIDUE);
        }
    }
}
