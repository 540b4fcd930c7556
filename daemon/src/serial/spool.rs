//! A document that waits to be sent, packed in memory: a transfer must know its size before it begins, and
//! may have to go back. On the card it would wear that out; as it is, it may be ten times as large.

use omir_core::link::pack::{pack, unpack};

/// Bytes of a block, unpacked: enough to pack well.
const BLOCK: usize = 64 << 10;
/// Packed bytes, at most: what a small robot can spare for a while.
pub const MOST_PACKED: usize = 32 << 20;

/// Text in blocks, each packed by itself.
#[derive(Debug)]
pub struct Spool {
    most: usize,
    /// All but the last, of [`BLOCK`] bytes each.
    packed: Vec<Vec<u8>>,
    /// Bytes of them, packed.
    held: usize,
    last: Vec<u8>,
    /// The block that was read last, and its number.
    open: Option<(usize, Vec<u8>)>,
}

/// There is no room for more.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl Spool {
    /// Empty; it takes about so many bytes of memory at most, [`MOST_PACKED`] where nothing else is known.
    pub fn new(most: usize) -> Spool {
        Spool { most, packed: Vec::new(), held: 0, last: Vec::new(), open: None }
    }

    /// Adds text.
    ///
    /// # Errors
    /// [`Full`]: some of it found no room, and nothing does any more.
    pub fn push(&mut self, text: &str) -> Result<(), Full> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK - self.last.len()));
            self.last.extend_from_slice(now);
            rest = later;
            if self.last.len() == BLOCK {
                let mut block = pack(std::mem::take(&mut self.last));
                block.shrink_to_fit();
                self.held += block.len();
                self.packed.push(block);
            }
            // ZMODEM counts bytes in 32 bits.
            if self.held > self.most || self.len() > u32::MAX as usize - BLOCK {
                return Err(Full);
            }
        }
        Ok(())
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
        let mut spool = Spool::new(MOST_PACKED);
        let mut whole = String::new();
        for n in 0..9_000 {
            let line = format!("{{\"id\":\"e{n}\",\"name\":\"thing {n}\"}},\n");
            spool.push(&line).unwrap();
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

    #[test]
    fn what_is_held_has_a_bound() {
        const MOST: usize = 5 * BLOCK;
        let mut spool = Spool::new(MOST);
        // Packs badly: as hexadecimal digits, to half of it.
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:016x}", state ^ state >> 29)
        };
        let text: String = (0..BLOCK / 16).map(|_| noise()).collect();
        let mut blocks = 0;
        while spool.push(&text).is_ok() {
            blocks += 1;
            assert!(blocks < 20, "{} bytes are held", spool.held);
        }
        assert!(spool.held < MOST + BLOCK && blocks > MOST / BLOCK, "{blocks} blocks");
        assert_eq!(spool.push("x"), Err(Full));
    }
}
