//! Messages made smaller where that helps.
//!
//! ```text
//! 0x01, bytes of the message u32 little endian, the message as raw DEFLATE (RFC 1951)
//! ```
//!
//! A message that is not packed is a CBOR map, whose first byte is 0xa0 or more: the first byte tells.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::message::MOST_MESSAGE;

const PACKED: u8 = 1;
const HEAD: usize = 5;
/// Of zlib's ten levels. A higher one costs a small board more time than a slow line saves.
const LEVEL: u8 = 6;

/// The message, packed if that is shorter by a tenth.
pub fn pack(message: Vec<u8>) -> Vec<u8> {
    let Ok(size) = u32::try_from(message.len()) else { return message };
    let deflated = compress_to_vec(&message, LEVEL);
    if HEAD + deflated.len() > message.len() / 10 * 9 {
        return message;
    }
    let mut packed = Vec::with_capacity(HEAD + deflated.len());
    packed.push(PACKED);
    packed.extend_from_slice(&size.to_le_bytes());
    packed.extend_from_slice(&deflated);
    packed
}

/// A packed message that is none, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackError(&'static str);

impl fmt::Display for UnpackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("a packed message {}", self.0))
    }
}

impl core::error::Error for UnpackError {}

/// The message, whether it was packed or not.
///
/// # Errors
/// Says why it is no message; no more than [`MOST_MESSAGE`] bytes are ever made of it.
pub fn unpack(bytes: Vec<u8>) -> Result<Vec<u8>, UnpackError> {
    if bytes.first() != Some(&PACKED) {
        return Ok(bytes);
    }
    let Some((&[_, a, b, c, d], deflated)) = bytes.split_first_chunk() else {
        return Err(UnpackError("is too short to say its size"));
    };
    let size = u32::from_le_bytes([a, b, c, d]) as usize;
    if size > MOST_MESSAGE {
        return Err(UnpackError("says it is larger than a message may be"));
    }
    let message = decompress_to_vec_with_limit(deflated, size)
        .map_err(|_| UnpackError("is no DEFLATE, or larger than it says"))?;
    if message.len() != size {
        return Err(UnpackError("is smaller than it says"));
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_repeats_is_packed_and_what_does_not_is_left() {
        let long = [b"\xa1dit's the same ".as_slice(); 100].concat();
        let packed = pack(long.clone());
        assert_eq!(packed[..5], [1, 0x40, 0x06, 0, 0]);
        assert!(packed.len() < 100);
        assert_eq!(unpack(packed), Ok(long));
        assert_eq!(pack(b"\xa0".to_vec()), b"\xa0");
    }

    #[test]
    fn what_was_changed_is_refused() {
        let packed = pack(vec![0xa0; 1000]);
        let says = |bytes: &[u8]| unpack(bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(says(&[1, 0, 0]), "a packed message is too short to say its size");
        let sized = |size: u32| [&[1][..], &size.to_le_bytes(), &packed[5..]].concat();
        assert_eq!(says(&sized(999)), "a packed message is no DEFLATE, or larger than it says");
        assert_eq!(says(&sized(1001)), "a packed message is smaller than it says");
        assert_eq!(
            says(&sized(u32::MAX)),
            "a packed message says it is larger than a message may be"
        );
        assert_eq!(says(&packed[..10]), "a packed message is no DEFLATE, or larger than it says");
    }

    proptest! {
        #[test]
        fn packed_and_unpacked_is_the_same(
            head in 0xa0..=0xbfu8,
            rest in prop::collection::vec(prop_oneof![4 => 0..3u8, 1 => any::<u8>()], 0..2000),
        ) {
            let message = [&[head][..], &rest].concat();
            let packed = pack(message.clone());
            prop_assert!(packed.len() <= message.len());
            prop_assert_eq!(unpack(packed), Ok(message));
        }

        #[test]
        fn no_bytes_panic(mut bytes: Vec<u8>) {
            bytes.insert(0, 1);
            let _ = unpack(bytes);
        }
    }
}
