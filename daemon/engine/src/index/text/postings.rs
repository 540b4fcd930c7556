//! Postings: the documents that have one term, and how often, compressed and in ascending order.
//!
//! A posting is one or two LEB128 numbers: the distance from the previous document (from zero for
//! the first) shifted left, its lowest bit telling whether a second number, the count, follows;
//! otherwise the count is one. A typical posting is one byte.
//!
//! ```text
//! varint  (document − previous) << 1 | (count > 1)
//! varint  count                                       if count > 1
//! ```
//!
//! Most terms of a vocabulary are in a handful of documents, so up to [`INLINE`] bytes are held in
//! place, without an allocation.

use crate::index::doc::DocId;

/// Documents are numbered below this, so that a distance and its flag fit 32 bits.
pub(super) const MAX_DOCS: u32 = 1 << 31;

/// As many as fit beside the tag without making [`Postings`] larger than a `Vec` of a 64-bit board.
const INLINE: usize = 15;

/// The bytes of one term's postings.
pub(super) enum Postings {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Vec<u8>),
}

impl Postings {
    pub(super) const fn new() -> Self {
        Self::Inline { len: 0, bytes: [0; INLINE] }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }

    pub(super) fn extend(&mut self, more: &[u8]) {
        match self {
            Self::Inline { len, bytes } => {
                let (old, new) = (usize::from(*len), usize::from(*len) + more.len());
                if new <= INLINE {
                    bytes[old..new].copy_from_slice(more);
                    *len = new as u8;
                } else {
                    let mut heap = Vec::with_capacity(new.max(32));
                    heap.extend_from_slice(&bytes[..old]);
                    heap.extend_from_slice(more);
                    *self = Self::Heap(heap);
                }
            }
            Self::Heap(bytes) => {
                // Doubling would leave a third of a large index unused.
                if bytes.capacity() - bytes.len() < more.len() {
                    bytes.reserve_exact(more.len().max(bytes.len() / 4).max(16));
                }
                bytes.extend_from_slice(more);
            }
        }
    }
}

/// Reads postings; ends early where the bytes make no sense.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    doc: DocId,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, doc: 0 }
    }

    pub(super) fn bytes_left(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if every byte was read; tells an end from damage.
    pub(super) fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Iterator for Reader<'_> {
    /// Document and how often it has the term.
    type Item = (DocId, u32);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // Nearly all postings are one or two bytes. Which of the two is a coin toss the processor
        // cannot predict, so both are read and the second masked out.
        if let &[head, count, ..] = self.bytes {
            let flag = head & 1;
            if head < 0x80 && flag & count >> 7 == 0 {
                self.bytes = &self.bytes[1 + usize::from(flag)..];
                self.doc = self.doc.wrapping_add(u32::from(head >> 1));
                let more = u32::from(count).wrapping_sub(1) & u32::from(flag).wrapping_neg();
                return Some((self.doc, more.wrapping_add(1)));
            }
        }
        // The rest of a list that is cut off stays unread, so that `is_done` tells.
        let mut bytes = self.bytes;
        let head = read_varint(&mut bytes)?;
        let count = if head & 1 == 0 { 1 } else { read_varint(&mut bytes)? };
        self.bytes = bytes;
        self.doc = self.doc.wrapping_add(head >> 1);
        Some((self.doc, count))
    }
}

/// Writes one posting, `distance` after the previous one.
pub(super) fn encode(distance: u32, count: u32, out: &mut impl Extend<u8>) {
    write_varint(distance << 1 | u32::from(count > 1), out);
    if count > 1 {
        write_varint(count, out);
    }
}

pub(super) fn write_varint(mut value: u32, out: &mut impl Extend<u8>) {
    while value >= 0x80 {
        out.extend([value as u8 | 0x80]);
        value >>= 7;
    }
    out.extend([value as u8]);
}

/// The number at the front of `bytes`, which moves past it; `None` if it is cut off or exceeds
/// 32 bits.
#[inline]
pub(super) fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u32::from(first));
    }
    let mut value = u32::from(first & 0x7f);
    for (index, &byte) in rest.iter().enumerate().take(4) {
        let bits = u32::from(byte & 0x7f);
        if index == 3 && bits > 0xf {
            return None;
        }
        value |= bits << (7 * (index + 1));
        if byte < 0x80 {
            *bytes = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn postings_take_no_more_room_than_a_vec() {
        assert_eq!(size_of::<Postings>(), size_of::<Vec<u8>>());
    }

    proptest! {
        #[test]
        fn reads_what_was_written(list in prop::collection::vec((1u32..1 << 24, 1u32..300), 0..100)) {
            let (mut postings, mut doc, mut want) = (Postings::new(), 0, Vec::new());
            for (distance, count) in list {
                let mut bytes = Vec::new();
                encode(distance, count, &mut bytes);
                postings.extend(&bytes);
                doc += distance;
                want.push((doc, count));
            }
            let mut reader = Reader::new(postings.as_slice());
            prop_assert_eq!(reader.by_ref().collect::<Vec<_>>(), want);
            prop_assert!(reader.is_done());
        }

        #[test]
        fn varints_of_any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..8), value: u32) {
            let _ = read_varint(&mut bytes.as_slice());
            let mut out = Vec::new();
            write_varint(value, &mut out);
            prop_assert_eq!(read_varint(&mut out.as_slice()), Some(value));
        }
    }
}
