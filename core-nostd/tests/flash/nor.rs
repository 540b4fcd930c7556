//! NOR flash that is cut: bits only fall, words are written once, and power goes when it is told to.

use std::ops::Range;

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash, check_erase, check_read,
    check_write,
};

/// Numbers that look random, from a seed that a failure can print (xorshift64*, Vigna 2016).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The words of a write, or a page, after a cut. The trait leaves them undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// In order: what comes before the cut is written, and no more.
    Clean,
    /// In order, and the word at the cut has fallen in part. A page is half erased.
    Halved,
    /// Any word of the write is old, new, or anything in between. A page is noise.
    Noise,
    /// As flash with error correction has it: the word at the cut cannot be read, nor any other of the write,
    /// or of the page that was being erased.
    Unreadable,
}

impl Torn {
    pub const ALL: [Self; 4] = [Self::Clean, Self::Halved, Self::Noise, Self::Unreadable];

    /// One of them.
    pub fn any(number: u64) -> Self {
        Self::ALL[number as usize % Self::ALL.len()]
    }
}

/// No power, a word whose error correction says no, a bus that fails for a while, or a misuse that real flash would
/// answer with damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Cut,
    Unreadable,
    Bus,
    Misuse(NorFlashErrorKind),
}

impl NorFlashError for Fault {
    fn kind(&self) -> NorFlashErrorKind {
        match self {
            Fault::Cut | Fault::Unreadable | Fault::Bus => NorFlashErrorKind::Other,
            Fault::Misuse(kind) => *kind,
        }
    }
}

/// Flash that writes `WRITE` bytes at once and erases `ERASE`.
#[derive(Clone, Debug)]
pub struct Nor<const WRITE: usize, const ERASE: usize> {
    bytes: Vec<u8>,
    /// By word: written since it was erased.
    written: Vec<bool>,
    /// By word: cannot be read.
    unreadable: Vec<bool>,
    /// By page.
    pub erases: Vec<u32>,
    /// The value of an erased byte.
    erased: u8,
    /// Words written and pages erased so far.
    pub steps: u64,
    /// The step that is cut, and what it leaves.
    cut: Option<(u64, Torn)>,
    dead: bool,
    /// Reads so far, and which of them fail.
    pub reads: u64,
    failing: Range<u64>,
    /// From which read on, which word, and how many times more it is not read.
    hesitating: (u64, usize, u64),
    random: Random,
}

impl<const WRITE: usize, const ERASE: usize> Nor<WRITE, ERASE> {
    /// Flash as it was soldered in: all ones.
    pub fn new(pages: usize) -> Self {
        Self {
            bytes: vec![0xFF; pages * ERASE],
            written: vec![false; pages * ERASE / WRITE],
            unreadable: vec![false; pages * ERASE / WRITE],
            erases: vec![0; pages],
            erased: 0xFF,
            steps: 0,
            cut: None,
            dead: false,
            reads: 0,
            failing: 0..0,
            hesitating: (0, 0, 0),
            random: Random::new(1),
        }
    }

    /// Flash that was used for something else.
    pub fn used(pages: usize, seed: u64) -> Self {
        let mut flash = Self::new(pages);
        flash.random = Random::new(seed);
        for at in 0..flash.bytes.len() {
            flash.bytes[at] = flash.random.next() as u8;
        }
        flash.written.fill(true);
        flash
    }

    /// From now on, erased bytes read as this.
    pub fn erasing_to(mut self, erased: u8) -> Self {
        self.erased = erased;
        self
    }

    /// Power goes in the step `steps` from now.
    pub fn cut_after(mut self, steps: u64, torn: Torn) -> Self {
        self.cut = Some((self.steps + steps, torn));
        self.random = Random::new(self.steps + steps);
        self
    }

    /// Power comes back. A word that reads as erased may be written.
    pub fn power_on(mut self) -> Self {
        (self.cut, self.dead) = (None, false);
        let words = self.bytes.chunks(WRITE).zip(&self.unreadable);
        for ((word, unreadable), written) in words.zip(&mut self.written) {
            *written &= *unreadable || word.iter().any(|byte| *byte != 0xFF);
        }
        self
    }

    /// From now on, the word with this byte cannot be read, until it is erased.
    pub fn spoil(&mut self, at: usize) {
        self.unreadable[at / WRITE] = true;
    }

    /// After `reads` more reads, so many in a row fail, of whatever.
    pub fn failing(mut self, reads: u64, many: u64) -> Self {
        self.failing = self.reads + reads..self.reads + reads + many;
        self
    }

    /// After `reads` more reads, the word with this byte cannot be read so many times, and then it can.
    pub fn hesitating(mut self, reads: u64, at: usize, times: u64) -> Self {
        self.hesitating = (self.reads + reads, at / WRITE, times);
        self
    }

    /// Every word is read again that ever was.
    pub fn steady(mut self) -> Self {
        self.hesitating = (0, 0, 0);
        self
    }

    /// A bit falls over by itself.
    pub fn flip(&mut self, bit: usize) {
        self.bytes[bit / 8] ^= 1 << (bit % 8);
    }

    pub fn bits(&self) -> usize {
        self.bytes.len() * 8
    }

    /// Returns what this step leaves, if it is the one that is cut.
    fn step(&mut self) -> Option<Torn> {
        let cut = self.cut.and_then(|(at, torn)| (at == self.steps).then_some(torn));
        self.steps += 1;
        self.dead |= cut.is_some();
        cut
    }

    fn alive(&self) -> Result<(), Fault> {
        if self.dead { Err(Fault::Cut) } else { Ok(()) }
    }

    /// Lets some of the bits fall that are to fall.
    fn fall(&mut self, at: usize, to: u8) {
        let held = self.random.next() as u8;
        self.bytes[at] &= to | held;
    }
}

impl<const WRITE: usize, const ERASE: usize> ErrorType for Nor<WRITE, ERASE> {
    type Error = Fault;
}

impl<const WRITE: usize, const ERASE: usize> ReadNorFlash for Nor<WRITE, ERASE> {
    // Half of the units: what is read may be smaller than what is written.
    const READ_SIZE: usize = if WRITE > 1 { WRITE / 2 } else { 1 };

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Fault> {
        self.alive()?;
        check_read(self, offset, bytes.len()).map_err(Fault::Misuse)?;
        self.reads += 1;
        if self.failing.contains(&(self.reads - 1)) {
            return Err(Fault::Bus);
        }
        let words = offset as usize / WRITE..(offset as usize + bytes.len()).div_ceil(WRITE);
        let (from, word, times) = &mut self.hesitating;
        if self.reads > *from && words.contains(word) && *times > 0 {
            *times -= 1;
            return Err(Fault::Unreadable);
        }
        if self.unreadable[words].contains(&true) {
            return Err(Fault::Unreadable);
        }
        bytes.copy_from_slice(&self.bytes[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

impl<const WRITE: usize, const ERASE: usize> NorFlash for Nor<WRITE, ERASE> {
    const WRITE_SIZE: usize = WRITE;
    const ERASE_SIZE: usize = ERASE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), Fault> {
        self.alive()?;
        check_erase(self, from, to).map_err(Fault::Misuse)?;
        for page in from as usize / ERASE..to as usize / ERASE {
            let torn = self.step();
            self.erases[page] += 1;
            let words = page * ERASE / WRITE..(page + 1) * ERASE / WRITE;
            for word in words.clone() {
                self.unreadable[word] = torn == Some(Torn::Unreadable) && self.random.below(3) == 0;
            }
            for at in page * ERASE..(page + 1) * ERASE {
                match torn {
                    None => self.bytes[at] = self.erased,
                    Some(Torn::Clean) => {}
                    // The front of the page is erased, what is behind has begun to rise.
                    Some(Torn::Halved) if at % ERASE < ERASE / 2 => self.bytes[at] = 0xFF,
                    Some(Torn::Halved) => self.bytes[at] |= self.random.next() as u8,
                    Some(Torn::Noise | Torn::Unreadable) => {
                        self.bytes[at] = self.random.next() as u8;
                    }
                }
            }
            self.alive()?;
            self.written[words].fill(false);
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Fault> {
        self.alive()?;
        check_write(self, offset, bytes.len()).map_err(Fault::Misuse)?;
        let first = offset as usize / WRITE;
        let words = first..first + bytes.len() / WRITE;
        assert!(!self.written[words.clone()].contains(&true), "a word is written once");
        self.written[words.clone()].fill(true);
        for (index, word) in bytes.chunks(WRITE).enumerate() {
            let start = offset as usize + index * WRITE;
            match self.step() {
                None => self.bytes[start..start + WRITE].copy_from_slice(word),
                Some(Torn::Clean) => {}
                Some(Torn::Halved) => (0..WRITE).for_each(|i| self.fall(start + i, word[i])),
                Some(Torn::Noise) => {
                    let from = offset as usize;
                    for (index, byte) in bytes.iter().enumerate() {
                        // Words before the cut may have been written; any may be half.
                        match self.random.below(3) {
                            0 => self.bytes[from + index] &= *byte,
                            1 => self.fall(from + index, *byte),
                            _ => {}
                        }
                    }
                }
                Some(Torn::Unreadable) => {
                    for word in words.clone() {
                        self.unreadable[word] = word == first + index || self.random.below(3) == 0;
                    }
                }
            }
            self.alive()?;
        }
        Ok(())
    }
}
