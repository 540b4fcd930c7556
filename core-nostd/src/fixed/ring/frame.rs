//! The layout of a frame, and what heads have in common.

/// Bytes of the head of a page, and of a frame.
pub(super) const HEAD: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Record = b'R' as isize,
    Touch = b'T' as isize,
    Forget = b'F' as isize,
    Note = b'N' as isize,
}

/// The head of a frame, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) keep: bool,
    pub(super) len: usize,
    pub(super) number: u32,
    pub(super) target: u32,
    pub(super) crc: u32,
    pub(super) page: u32,
    pub(super) at: usize,
}

impl Frame {
    /// Returns true if both are the same frame in flash.
    pub(super) fn is_at(&self, other: &Frame) -> bool {
        (self.page, self.at) == (other.page, other.at)
    }

    /// As it is in flash.
    pub(super) fn head(&self) -> [u8; HEAD] {
        let mut head = [0; HEAD];
        head[0] = self.kind as u8;
        head[1] = u8::from(self.keep);
        // `put` keeps to what a page holds, and a frame that was read has come out of two bytes.
        head[2..4].copy_from_slice(&(self.len as u16).to_le_bytes());
        head[4..8].copy_from_slice(&self.number.to_le_bytes());
        head[8..12].copy_from_slice(&self.target.to_le_bytes());
        head[12..].copy_from_slice(&self.crc.to_le_bytes());
        head
    }
}

/// The four words of a head.
pub(super) fn words(head: &[u8; HEAD]) -> [u32; 4] {
    let (words, _) = head.as_chunks::<4>();
    core::array::from_fn(|index| u32::from_le_bytes(words[index]))
}
