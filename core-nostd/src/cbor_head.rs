//! The heads of CBOR items, to bytes and back, without allocating: shared by [`crate::cbor`] and
//! the records of fixed capacity (`fixed`).
//!
//! `ciborium-ll` knows the layout. Its writer takes the shortest form of every head, floats included,
//! which is what RFC 8949 §4.2.1 asks of the deterministic form.

use ciborium_ll::{Decoder, Encoder, Error, Header};

/// The longest head: one byte and a 64-bit argument.
const MAX_LEN: usize = 9;

/// A head that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// The bytes end inside it.
    Truncated,
    /// Its first byte begins no well-formed item.
    Malformed,
}

/// The head that `bytes` begin with, and how long it is.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> Result<(Header, usize), HeadError> {
    match usual(bytes) {
        Some(found) => Ok(found),
        None => read_any(bytes),
    }
}

fn read_any(bytes: &[u8]) -> Result<(Header, usize), HeadError> {
    let mut decoder = Decoder::from(bytes);
    let header = match decoder.pull() {
        Ok(header) => header,
        Err(Error::Io(_)) => return Err(HeadError::Truncated),
        Err(Error::Syntax(_)) => return beyond_usize(bytes).ok_or(HeadError::Malformed),
    };
    let len = decoder.offset();
    // RFC 8949 §3.3: a simple value below 32 in two bytes is not well-formed.
    match header {
        Header::Simple(number) if len == 2 && number < 32 => Err(HeadError::Malformed),
        _ => Ok((header, len)),
    }
}

/// A head with a length that `usize` does not hold, as there are on 32 bits. So much is not there either
/// way: the greatest length says so at the same place as it does on 64 bits.
fn beyond_usize(bytes: &[u8]) -> Option<(Header, usize)> {
    let (&first, rest) = bytes.split_first()?;
    usize::try_from(u64::from_be_bytes(*rest.first_chunk()?)).err()?;
    let most = Some(usize::MAX);
    let header = match first {
        0x5B => Header::Bytes(most),
        0x7B => Header::Text(most),
        0x9B => Header::Array(most),
        0xBB => Header::Map(most),
        _ => return None,
    };
    Some((header, MAX_LEN))
}

/// The header that `bytes` begin with and how long it is, if it is one of those that nearly all are:
/// a definite length below 2³², an integer below that, a truth value, null, or a float of 64 bits. A
/// quarter of the time to rebuild an index went into reading them the general way.
#[inline]
fn usual(bytes: &[u8]) -> Option<(Header, usize)> {
    let (&first, rest) = bytes.split_first()?;
    let (number, len) = match first & 0x1F {
        number @ 0..=23 => (u32::from(number), 1),
        24 => (u32::from(*rest.first()?), 2),
        25 => (u32::from(u16::from_be_bytes(*rest.first_chunk()?)), 3),
        26 => (u32::from_be_bytes(*rest.first_chunk()?), 5),
        27 if first == 0xFB => {
            return Some((Header::Float(f64::from_be_bytes(*rest.first_chunk()?)), 9));
        }
        _ => return None,
    };
    let size = usize::try_from(number).ok();
    let header = match first >> 5 {
        0 => Header::Positive(number.into()),
        1 => Header::Negative(number.into()),
        2 => Header::Bytes(Some(size?)),
        3 => Header::Text(Some(size?)),
        4 => Header::Array(Some(size?)),
        5 => Header::Map(Some(size?)),
        6 => Header::Tag(number.into()),
        _ if len == 1 => Header::Simple(first & 0x1F),
        _ => return None,
    };
    Some((header, len))
}

/// A head as bytes.
pub(crate) struct Head {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Head {
    /// The shortest form of `header`.
    pub(crate) fn new(header: Header) -> Self {
        let mut bytes = [0; MAX_LEN];
        let mut rest = bytes.as_mut_slice();
        // Cannot fail: every head fits the buffer.
        let _ = Encoder::from(&mut rest).push(header);
        let len = MAX_LEN - rest.len();
        Self { bytes, len }
    }

    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_usual_headers_are_what_they_are_read_to_the_general_way(
            first: u8,
            rest in prop::collection::vec(any::<u8>(), 0..10),
        ) {
            let bytes: Vec<u8> = [first].into_iter().chain(rest).collect();
            if let Some((header, len)) = usual(&bytes) {
                // As text: NaN is no equal of itself.
                let general = read_any(&bytes).map(|found| format!("{found:?}"));
                prop_assert_eq!(general.ok(), Some(format!("{:?}", (header, len))));
            } else {
                let info = first & 0x1F;
                prop_assert!(first >= 0xE0 || info >= 27 || bytes.len() < 6);
            }
        }
    }
}
