//! Hexadecimal text, as digests, keys and signatures are written.

use alloc::string::String;
use core::fmt::Write;

/// Bytes as lower-case hex.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A String takes everything.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Reads lower- or upper-case hex of exactly `N` bytes.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_written() {
        let bytes = [0, 0x7f, 0xff, 0x0a];
        assert_eq!(encode(&bytes), "007fff0a");
        assert_eq!(decode("007fff0a"), Some(bytes));
        assert_eq!(decode("007FFF0A"), Some(bytes));
        for text in ["007fff0", "007fff0a0", "007fff0g", "+07fff0a", "007fffä", ""] {
            assert_eq!(decode::<4>(text), None, "{text}");
        }
    }
}
