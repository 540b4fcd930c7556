//! The attachment of rmw_zenoh to every message, request and response.
//!
//! `docs/design.md` of rmw_zenoh, "Publishers": sequence number and source time as little-endian
//! 64-bit integers, then one byte with the length of the gid, then the gid; 33 bytes. The length is
//! LEB128 (Zenoh's serialisation format), which for 16 is that one byte.

use std::fmt;

use super::token::Gid;

/// Bytes of an attachment as it is written here.
pub const LENGTH: usize = 33;
/// Bytes of a gid; rmw_zenoh_cpp writes so many for Humble too, where rmw's own has 24.
const GID: usize = 16;
/// The beginning of attachments of rmw_zenoh_cpp before 0.2.4, and before 0.1.2 of its line for Humble: the length
/// of a name, then the name.
const BEFORE_0_2_4: &[u8] = b"\x0fsequence_number";

/// Number, time and sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attachment {
    /// Counts up from 1 for each publisher and each client.
    pub sequence: i64,
    /// Time at which it was sent, in nanoseconds since 1970, by the sender's clock.
    pub source_time: i64,
    /// The publisher of the message, or the caller; a response repeats the request's.
    pub gid: Gid,
}

impl Attachment {
    /// The bytes on the wire.
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.source_time.to_le_bytes());
        bytes[16] = GID as u8;
        bytes[17..].copy_from_slice(&self.gid.0);
        bytes
    }

    /// Reads the bytes of the wire.
    ///
    /// # Errors
    /// Says what is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, AttachmentError> {
        if bytes.starts_with(BEFORE_0_2_4) {
            return Err(AttachmentError::Old);
        }
        let length = AttachmentError::Length(bytes.len());
        let (sequence, rest) = bytes.split_first_chunk::<8>().ok_or(length)?;
        let (time, rest) = rest.split_first_chunk::<8>().ok_or(length)?;
        let (&gid_length, rest) = rest.split_first().ok_or(length)?;
        if usize::from(gid_length) != GID {
            return Err(AttachmentError::Gid(gid_length));
        }
        let gid: &[u8; GID] = rest.try_into().map_err(|_| length)?;
        Ok(Self {
            sequence: i64::from_le_bytes(*sequence),
            source_time: i64::from_le_bytes(*time),
            gid: Gid(*gid),
        })
    }
}

/// Bytes that are no attachment of rmw_zenoh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentError {
    /// It has this many bytes.
    Length(usize),
    /// Its gid has this many bytes.
    Gid(u8),
    /// It is that of a release before the format was settled.
    Old,
}

impl fmt::Display for AttachmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(n) => write!(f, "an attachment of {n} bytes; rmw_zenoh sends {LENGTH}"),
            Self::Gid(n) => write!(f, "an attachment with a gid of {n} bytes; rmw_zenoh's has 16"),
            Self::Old => f.write_str(
                "the attachment of rmw_zenoh_cpp before 0.2.4 (Humble: 0.1.2): update that package on \
                 its side",
            ),
        }
    }
}

impl std::error::Error for AttachmentError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOLDEN: &[u8] = &[
        5, 0, 0, 0, 0, 0, 0, 0, // sequence
        0x15, 0xcd, 0x5b, 0x07, 0, 0, 0, 0, // source time
        16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    ];

    #[test]
    fn the_layout_that_rmw_zenoh_documents() {
        let gid = Gid(std::array::from_fn(|i| i as u8));
        let attachment = Attachment { sequence: 5, source_time: 123_456_789, gid };
        assert_eq!(attachment.encode(), GOLDEN);
        assert_eq!(Attachment::decode(GOLDEN), Ok(attachment));
    }

    #[test]
    fn a_gid_of_another_size_is_none_of_rmw_zenoh() {
        let mut bytes = GOLDEN.to_vec();
        bytes[16] = 24;
        bytes.extend([0; 8]);
        assert_eq!(Attachment::decode(&bytes), Err(AttachmentError::Gid(24)));
    }

    #[test]
    fn other_bytes_are_refused_with_what_is_wrong() {
        assert_eq!(Attachment::decode(&[]), Err(AttachmentError::Length(0)));
        assert_eq!(Attachment::decode(&GOLDEN[..32]), Err(AttachmentError::Length(32)));
        let mut wrong = GOLDEN.to_vec();
        wrong[16] = 15;
        assert_eq!(Attachment::decode(&wrong), Err(AttachmentError::Gid(15)));
        let old = [BEFORE_0_2_4, GOLDEN].concat();
        assert!(Attachment::decode(&old).unwrap_err().to_string().contains("Humble: 0.1.2"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(a) = Attachment::decode(&bytes) {
                prop_assert_eq!(Attachment::decode(&a.encode()), Ok(a));
            }
        }
    }
}
