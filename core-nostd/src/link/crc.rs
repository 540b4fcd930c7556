//! CRC-32 of IEEE 802.3, as zlib computes it, four bits at a time.
//!
//! A table of 16 words instead of one of 256 or more: a microcontroller has no room for it, and a serial
//! line is slower than this by three orders of magnitude.

/// What [`Crc32::finish`] gives over anything followed by its own CRC, little endian.
pub const RESIDUE: u32 = 0x2144_df1c;

/// The polynomial 0x04c11db7 with its bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 16] = {
    let mut table = [0; 16];
    let mut i = 0;
    while i < 16 {
        let mut word = i as u32;
        let mut bit = 0;
        while bit < 4 {
            word = if word & 1 == 1 { word >> 1 ^ POLYNOMIAL } else { word >> 1 };
            bit += 1;
        }
        table[i] = word;
        i += 1;
    }
    table
};

/// A checksum under way.
#[derive(Debug, Clone, Copy)]
pub struct Crc32(u32);

impl Crc32 {
    /// Of nothing so far.
    pub const fn new() -> Crc32 {
        Crc32(!0)
    }

    /// Takes one byte in.
    pub fn push(&mut self, byte: u8) {
        let state = self.0 ^ u32::from(byte);
        let state = state >> 4 ^ TABLE[(state & 15) as usize];
        self.0 = state >> 4 ^ TABLE[(state & 15) as usize];
    }

    /// The checksum of all that was taken in.
    pub fn finish(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn crc32(bytes: &[u8]) -> u32 {
        let mut crc = Crc32::new();
        bytes.iter().for_each(|&byte| crc.push(byte));
        crc.finish()
    }

    #[test]
    fn the_check_value_of_the_catalogue() {
        // Williams, "A painless guide to CRC error detection algorithms" (1993).
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    proptest! {
        #[test]
        fn as_others_compute_it(bytes: Vec<u8>) {
            prop_assert_eq!(crc32(&bytes), crc32fast::hash(&bytes));
            let whole = [&bytes[..], &crc32(&bytes).to_le_bytes()].concat();
            prop_assert_eq!(crc32(&whole), RESIDUE);
        }
    }
}
