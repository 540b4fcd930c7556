//! A document that waits to be sent, packed in memory: a transfer must know its size before it begins, and
//! may have to go back. On the card it would wear that out; as it is, it may be ten times as large.

use omir_core::link::pack::{pack, unpack};

/// Bytes of a block, unpacked: enough to pack well.
const BLOCK: usize = 64 << 10;

/// Text in blocks, each packed by itself.
#[derive(Debug, Default)]
pub struct Spool {
    /// All but the last, of [`BLOCK`] bytes each.
    packed: Vec<Vec<u8>>,
    last: Vec<u8>,
    /// The block that was read last, and its number.
    open: Option<(usize, Vec<u8>)>,
}

impl Spool {
    /// Adds text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK - self.last.len()));
            self.last.extend_from_slice(now);
            rest = later;
            if self.last.len() == BLOCK {
                let mut block = pack(std::mem::take(&mut self.last));
                block.shrink_to_fit();
                self.packed.push(block);
            }
        }
    }

    /// Bytes of the document.
    pub fn len(&self) -> usize {
        self.packed.len() * BLOCK + self.last.len()
    }

    /// Up to `most` bytes from `offset` on; none at its end.
    pub fn read(&mut self, offset: usize, most: usize) -> &[u8] {
        let (number, at) = (offset / BLOCK, offset % BLOCK);
        let block = match self.packed.get(number) {
            None if number == self.packed.len() => &self.last,
            None => return &[],
            Some(packed) => {
                if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
                    // We packed it, and it never left this memory.
                    let block = unpack(packed.clone()).unwrap_or_default();
                    self.open = Some((number, block));
                }
                self.open.as_ref().map_or(&self.last, |(_, block)| block)
            }
        };
        let rest = block.get(at..).unwrap_or_default();
        &rest[..rest.len().min(most)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_pushed_wherever_one_begins() {
        let mut spool = Spool::default();
        let mut whole = String::new();
        for n in 0..9_000 {
            let line = format!("{{\"id\":\"e{n}\",\"name\":\"thing {n}\"}},\n");
            spool.push(&line);
            whole += &line;
        }
        assert!(spool.packed.len() > 3, "several blocks");
        assert!(spool.packed.iter().map(Vec::len).sum::<usize>() < whole.len() / 4, "packed");
        assert_eq!(spool.len(), whole.len());
        for from in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7, BLOCK / 2, whole.len() - 1] {
            let mut read = Vec::new();
            while let more @ [_, ..] = spool.read(from + read.len(), 1000) {
                read.extend_from_slice(more);
            }
            assert!(read == whole.as_bytes()[from..], "from {from}");
        }
        assert_eq!(spool.read(whole.len(), 10), b"");
        assert_eq!(spool.read(usize::MAX, 10), b"");
    }
}
