//! A ring of frames in NOR flash that survives a cut at every write and every erase.
//!
//! Anything behind `embedded-storage`'s [`NorFlash`] will do: internal flash, an SPI chip. Every word is
//! written once between two erases, and one that a cut tore may be one that cannot be read: so flash with ECC will do
//! too. No RAM grows with the flash.
//!
//! ```text
//! page    = head, frame …, erased rest              one erase block; its place is its number mod pages
//! head    = "OMR1", number u32, next u32, crc u32    next: the number of the next new frame
//! frame   = kind u8, keep u8, len u16, number u32, target u32, crc u32, len bytes, FF up to a write unit
//! kinds   = 'R' a record | 'T' another state of record `target` | 'F' that `target` is forgotten
//!         | 'N' a note under the name `target`
//! ```
//!
//! All little endian; `crc` is CRC-32 (IEEE 802.3) over everything of the head, or of the frame with its
//! bytes, but itself and the padding.
//!
//! Frames are appended to the newest page. When it is full, the page after it in flash is opened: it is
//! erased, then frames that must be kept are copied into it from the oldest page, then its head is written.
//! **With its head a page is there, and the oldest is gone, in one write**; until then it is free space, and
//! whatever a cut left in it is erased when it is opened next. So there is one page more than are in use,
//! pages are erased strictly one after the other, which wears them evenly, and a page is always erased
//! right before it is written, also if it looks erased.
//!
//! A frame that a cut tore has a wrong checksum. Nothing is written behind it any more: its page is full
//! from then on. What was appended and answered with `Ok` is there until its page is the oldest, and what is
//! marked *keep* after that too; if nothing but such frames is left, appending is refused ([`RingError::Full`])
//! and nothing is lost. Room for one forgetting is reserved in every page, so forgetting is never refused.
//!
//! **What cannot be read** is no reason to stop, for where flash has ECC that is how a torn word reads, for ever: behind
//! the last sound frame of the newest page it is a torn frame, in the head of the page behind that one a page that was
//! being opened. Elsewhere it has rotted: it costs its frame, and in the head of a frame those behind it in the page;
//! the head of a page that was in use costs nothing, since its place says which one it is, and of a newest page the
//! frames that are newer than all others. But a read that fails may as well be a bus that fails, and then what is there
//! is sound. So it is asked for three times, and each time another place must be readable; else the answer is
//! [`RingError::Flash`], nothing is taken for torn, and nothing is written. What must be kept of a
//! page is looked for in that way before the page goes.
//!
//! A note is a few bytes about the records, such as how far they were handed over: the newest of its name is
//! kept, and replaces the one before in one write.
//!
//! Why the oldest goes, and not what is needed least: dropping a page costs one erase that the ring needs
//! anyway, while choosing among records means to copy all others, each a write that wears the flash. What
//! should outlive its page is marked; that is the firmware's choice, record by record.
//!
//! What it costs: starting reads one head for each page, and the newest page. Finding a record, and the next
//! one in order, reads the heads of all frames; so a walk over `n` records reads `2n²` heads of 16 bytes. That
//! is nothing for some hundred records in internal flash. Appending reads nothing, except when a page is
//! opened: then once over all heads for each frame to be kept.
//!
//! What is assumed of the flash: a cut during a write leaves the written words undefined or unreadable and all others
//! as they were, a cut during an erase does so to its page (as the trait says), and a word that reads as erased
//! after a cut may be written. What cannot be read is an error of the driver for that read alone.

mod find;
mod frame;
mod put;

use core::fmt;

use embedded_storage::nor_flash::NorFlash;

use frame::{HEAD, Kind};
use put::Spared;

/// Bytes moved at once: on the stack, and the largest write unit there may be.
const CHUNK: usize = 64;
/// First bytes of the head of a page.
const MAGIC: [u8; 4] = *b"OMR1";
const ERASED: u8 = 0xFF;
/// So often what cannot be read is asked for.
const TRIES: usize = 3;
/// The highest number of a page: two more can be counted.
const LAST_PAGE: u32 = u32::MAX - 2;

/// The number of a frame: rises with every one, also over those that are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(u32);

impl Number {
    /// As a number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// A number that was written down; 0 is none.
    pub const fn new(number: u32) -> Option<Self> {
        if number == 0 { None } else { Some(Self(number)) }
    }
}

/// A failure of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError<E> {
    /// The flash said so. A write may or may not have happened; older records are still there. Of a read: none
    /// of its places can be read now. Try again.
    Flash(E),
    /// The flash has fewer than two erase blocks, or units of a size this does not go with: units to read
    /// of 1 to 16 bytes, to write of 1 to 64, both powers of two, and an erase block that holds some frames.
    Geometry,
    /// More bytes than fit into one page.
    TooLong,
    /// Everything there is must be kept. Forget something, or keep less.
    Full,
    /// There is no such record, or none any more.
    NotFound,
    /// The buffer is shorter than the record.
    Buffer {
        /// The length that it must have.
        needed: usize,
    },
    /// Four thousand million frames were written, and there are no more numbers.
    WornOut,
    /// A page that was erased does not read as ones, or not at all: it is worn out, or this flash erases to zeros, which the
    /// ring does not go with. Nothing was lost.
    Unerased {
        /// Start of the page.
        address: u32,
    },
}

impl<E: fmt::Debug> fmt::Display for RingError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flash(error) => write!(f, "the flash failed: {error:?}"),
            Self::Geometry => {
                f.write_str("pages or units of this flash have a size that does not do")
            }
            Self::TooLong => f.write_str("longer than a page of the flash"),
            Self::Full => f.write_str("everything in the ring must be kept; forget something"),
            Self::NotFound => f.write_str("no such record"),
            Self::Buffer { needed } => write!(f, "the buffer must have {needed} bytes"),
            Self::WornOut => f.write_str("no numbers are left"),
            Self::Unerased { address } => {
                write!(f, "the flash at {address:#x} was erased and does not read as ones")
            }
        }
    }
}

impl<E: fmt::Debug> core::error::Error for RingError<E> {}

impl<E> From<E> for RingError<E> {
    fn from(error: E) -> Self {
        Self::Flash(error)
    }
}

/// A record as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub number: Number,
    /// True if it outlives its page.
    pub keep: bool,
    /// Number of bytes of the buffer that it took.
    pub len: usize,
    /// Number of bytes behind those that its newest state took, if it has one beside that of the record.
    pub state: Option<usize>,
}

/// Position of the next frame.
#[derive(Clone, Copy, Debug)]
struct Newest {
    page: u32,
    /// Bytes in use; all of the page behind a torn frame.
    end: usize,
}

/// A ring of frames in flash: see the module.
#[derive(Debug)]
pub struct Ring<F> {
    flash: F,
    pages: u32,
    newest: Option<Newest>,
    next: u32,
    /// A write failed: what the flash holds has to be looked at again.
    doubtful: bool,
}

impl<F: NorFlash> Ring<F> {
    /// The size of what is written at once, and where frames begin.
    const UNIT: usize = if F::WRITE_SIZE > F::READ_SIZE { F::WRITE_SIZE } else { F::READ_SIZE };
    const PAGE: usize = F::ERASE_SIZE;
    /// A frame without bytes: room for one is left in every page.
    const RESERVE: usize = Self::whole(HEAD);
    /// Room for frames in a page that has none.
    const ROOM: usize = Self::PAGE.saturating_sub(Self::whole(HEAD) + Self::RESERVE);

    /// Up to the next unit.
    const fn whole(len: usize) -> usize {
        len.next_multiple_of(Self::UNIT)
    }

    /// Finds what is there, whatever a cut left behind. Writes nothing. Flash that holds no ring is an empty
    /// one, and erased page by page as it is filled.
    pub fn mount(flash: F) -> Result<Self, RingError<F::Error>> {
        let pages = u32::try_from(flash.capacity() / Self::PAGE).unwrap_or(u32::MAX);
        let sound = F::READ_SIZE.is_power_of_two()
            && F::READ_SIZE <= HEAD
            && F::WRITE_SIZE.is_power_of_two()
            && F::WRITE_SIZE <= CHUNK
            && Self::PAGE.is_multiple_of(Self::UNIT)
            && Self::ROOM >= 2 * CHUNK
            && u32::try_from(flash.capacity()).is_ok()
            && pages >= 2;
        if !sound {
            return Err(RingError::Geometry);
        }
        let mut ring = Self { flash, pages, newest: None, next: 1, doubtful: false };
        ring.find()?;
        Ok(ring)
    }

    /// Gives the flash back.
    pub fn release(self) -> F {
        self.flash
    }

    /// Lets `change` do something to the flash, such as clear an error of its controller. Afterwards it is
    /// looked at again.
    pub fn flash_mut<T>(&mut self, change: impl FnOnce(&mut F) -> T) -> T {
        self.doubtful = true;
        change(&mut self.flash)
    }

    /// Returns the largest number of bytes of one record.
    pub const fn longest() -> usize {
        let room = Self::ROOM - HEAD;
        if room < u16::MAX as usize { room } else { u16::MAX as usize }
    }

    /// Returns the number of times that each page was erased, to within one, if no cut ever came into an erase.
    pub fn rounds(&self) -> u32 {
        // The first page has the number `pages`.
        self.newest.map_or(0, |newest| newest.page / self.pages)
    }

    /// Appends a record. With `Ok` it is in the flash, and no later cut takes it away.
    pub fn append(&mut self, bytes: &[u8], keep: bool) -> Result<Number, RingError<F::Error>> {
        self.refresh()?;
        self.put(Kind::Record, keep, 0, bytes, Spared::NONE)
    }

    /// Replaces the state of a record: what comes back beside its bytes, and whether it is kept. If it is not
    /// kept and lies in the oldest page, it may be what gives way to its own new state.
    pub fn touch(
        &mut self,
        record: Number,
        state: &[u8],
        keep: bool,
    ) -> Result<(), RingError<F::Error>> {
        self.refresh()?;
        self.frames_of(record.0)?.alive().ok_or(RingError::NotFound)?;
        // A record that is kept from now on must not go with the page that this frees.
        let wanted = [record];
        let but = if keep { &wanted[..] } else { &[] };
        self.put(Kind::Touch, keep, record.0, state, Spared { but, ..Spared::NONE }).map(drop)
    }

    /// Forgets a record. With `Ok` it never comes back; its bytes go with their page.
    pub fn forget(&mut self, record: Number) -> Result<(), RingError<F::Error>> {
        self.refresh()?;
        self.frames_of(record.0)?.alive().ok_or(RingError::NotFound)?;
        self.put(Kind::Forget, false, record.0, &[], Spared::NONE).map(drop)
    }

    /// Reads a record into `buffer`, and its state behind it.
    pub fn get(&mut self, record: Number, buffer: &mut [u8]) -> Result<Entry, RingError<F::Error>> {
        self.refresh()?;
        let found = self.frames_of(record.0)?.alive().ok_or(RingError::NotFound)?;
        self.load(found, buffer)
    }

    /// Reads the record after `after` in the order they were appended; the first one after `None`.
    pub fn next(
        &mut self,
        after: Option<Number>,
        buffer: &mut [u8],
    ) -> Result<Option<Entry>, RingError<F::Error>> {
        self.refresh()?;
        let Some(found) = self.alive_after(after)? else { return Ok(None) };
        self.load(found, buffer).map(Some)
    }

    /// The number of the record after `after`; of the first one after `None`. Reads heads, but no records.
    pub fn number_after(
        &mut self,
        after: Option<Number>,
    ) -> Result<Option<Number>, RingError<F::Error>> {
        self.refresh()?;
        Ok(self.alive_after(after)?.map(|(record, _)| Number(record.number)))
    }

    /// Writes a note in the place of the one that has this name. With `Ok` it is in the flash, and outlives its
    /// page. Only records up to `until` give way to it, but not those in `but`; [`RingError::Full`] if that is not
    /// enough.
    pub fn set_note(
        &mut self,
        name: u32,
        bytes: &[u8],
        until: Option<Number>,
        but: &[Number],
    ) -> Result<(), RingError<F::Error>> {
        self.refresh()?;
        let spared = Spared { above: until.map_or(0, Number::get), but };
        self.put(Kind::Note, true, name, bytes, spared).map(drop)
    }

    /// Reads the note of this name into `buffer`, and says how long it is; `None` if there is none.
    pub fn note(
        &mut self,
        name: u32,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, RingError<F::Error>> {
        self.refresh()?;
        let Some(frame) = self.newest_note(name)? else { return Ok(None) };
        let bytes = buffer.get_mut(..frame.len);
        self.read_bytes(&frame, bytes.ok_or(RingError::Buffer { needed: frame.len })?)?;
        Ok(Some(frame.len))
    }

    fn address(&self, place: u32, at: usize) -> u32 {
        // `mount` saw that all of the flash has addresses of 32 bits.
        place * Self::PAGE as u32 + at as u32
    }
}
