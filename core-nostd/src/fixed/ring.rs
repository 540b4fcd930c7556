//! A ring of frames in NOR flash that survives a cut at every write and every erase.
//!
//! Anything behind `embedded-storage`'s [`NorFlash`] will do: internal flash, an SPI chip. Every word is
//! written once between two erases, so flash with ECC will do too. No RAM grows with the flash.
//!
//! ```text
//! page    = head, frame …, erased rest              one erase block; its place is its number mod pages
//! head    = "OMR1", number u32, next u32, crc u32    next: the number of the next new frame
//! frame   = kind u8, keep u8, len u16, number u32, target u32, crc u32, len bytes, FF up to a write unit
//! kinds   = 'R' a record | 'T' another state of record `target` | 'F' that `target` is forgotten
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
//! Why the oldest goes, and not what is needed least: dropping a page costs one erase that the ring needs
//! anyway, while choosing among records means to copy all others, each a write that wears the flash. What
//! should outlive its page is marked; that is the firmware's choice, record by record.
//!
//! What it costs: starting reads one head for each page, and the newest page. Finding a record, and the next
//! one in order, reads the heads of all frames; so a walk over `n` records reads `2n²` heads of 16 bytes. That
//! is nothing for some hundred records in internal flash. Appending reads nothing, except when a page is
//! opened: then once over all heads for each frame to be kept.
//!
//! What is assumed of the flash: a cut during a write leaves the written words undefined and all others as
//! they were, a cut during an erase leaves its page undefined (as the trait says), and a word that reads as
//! erased after a cut may be written.

use core::fmt;

use embedded_storage::nor_flash::NorFlash;

use super::Crc32;

/// Bytes of the head of a page, and of a frame.
const HEAD: usize = 16;
/// Bytes moved at once: on the stack, and the largest write unit there may be.
const CHUNK: usize = 64;
/// What the head of a page begins with.
const MAGIC: [u8; 4] = *b"OMR1";
const ERASED: u8 = 0xFF;
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
}

/// Why the ring did not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError<E> {
    /// The flash said so. Of a write nobody knows whether it happened; what was there before still is.
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
        /// How long it must be.
        needed: usize,
    },
    /// Four thousand million frames were written, and there are no more numbers.
    WornOut,
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
    /// Whether it outlives its page.
    pub keep: bool,
    /// How many bytes of the buffer it took.
    pub len: usize,
    /// How many bytes behind those its newest state took, if it has one beside what it was appended with.
    pub state: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Record = b'R' as isize,
    Touch = b'T' as isize,
    Forget = b'F' as isize,
}

/// The head of a frame, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    keep: bool,
    len: usize,
    number: u32,
    target: u32,
    crc: u32,
    page: u32,
    at: usize,
}

/// Everything about one record.
#[derive(Default)]
struct Found {
    record: Option<Frame>,
    touch: Option<Frame>,
    forgotten: bool,
}

impl Found {
    /// The record, unless it is forgotten, and its newest state.
    fn alive(&self) -> Option<(Frame, Option<Frame>)> {
        if self.forgotten { None } else { Some((self.record?, self.touch)) }
    }
}

/// Where new frames go.
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
    /// looked at anew.
    pub fn flash_mut<T>(&mut self, change: impl FnOnce(&mut F) -> T) -> T {
        self.doubtful = true;
        change(&mut self.flash)
    }

    /// How many bytes one record may have at most.
    pub const fn longest() -> usize {
        let room = Self::ROOM - HEAD;
        if room < u16::MAX as usize { room } else { u16::MAX as usize }
    }

    /// How often each page was erased so far, to within one, if no cut ever came into an erase.
    pub fn rounds(&self) -> u32 {
        // The first page has the number `pages`.
        self.newest.map_or(0, |newest| newest.page / self.pages)
    }

    /// Appends a record. With `Ok` it is in the flash, and no later cut takes it away.
    pub fn append(&mut self, bytes: &[u8], keep: bool) -> Result<Number, RingError<F::Error>> {
        self.settle()?;
        self.put(Kind::Record, keep, 0, bytes)
    }

    /// Replaces the state of a record: what comes back beside its bytes, and whether it is kept.
    pub fn touch(
        &mut self,
        record: Number,
        state: &[u8],
        keep: bool,
    ) -> Result<(), RingError<F::Error>> {
        self.settle()?;
        self.look_up(record.0)?.alive().ok_or(RingError::NotFound)?;
        self.put(Kind::Touch, keep, record.0, state).map(drop)
    }

    /// Forgets a record. With `Ok` it never comes back; its bytes go with their page.
    pub fn forget(&mut self, record: Number) -> Result<(), RingError<F::Error>> {
        self.settle()?;
        self.look_up(record.0)?.alive().ok_or(RingError::NotFound)?;
        self.put(Kind::Forget, false, record.0, &[]).map(drop)
    }

    /// Reads a record into `buffer`, and its state behind it.
    pub fn get(&mut self, record: Number, buffer: &mut [u8]) -> Result<Entry, RingError<F::Error>> {
        self.settle()?;
        let found = self.look_up(record.0)?.alive().ok_or(RingError::NotFound)?;
        self.load(found, buffer)
    }

    /// Reads the record after `after` in the order they were appended; the first one after `None`.
    pub fn next(
        &mut self,
        after: Option<Number>,
        buffer: &mut [u8],
    ) -> Result<Option<Entry>, RingError<F::Error>> {
        self.settle()?;
        let mut after = after.map_or(0, Number::get);
        loop {
            let Some(number) = self.record_after(after)? else { return Ok(None) };
            if let Some(found) = self.look_up(number)?.alive() {
                return self.load(found, buffer).map(Some);
            }
            after = number;
        }
    }

    // Reading.

    /// Looks at the flash again if the last write failed.
    fn settle(&mut self) -> Result<(), RingError<F::Error>> {
        if self.doubtful { self.find() } else { Ok(()) }
    }

    /// Finds the newest page, and its end.
    fn find(&mut self) -> Result<(), RingError<F::Error>> {
        self.doubtful = true;
        (self.newest, self.next) = (None, 1);
        for place in 0..self.pages {
            if let Some((page, next)) = self.page_at(place)?
                && page % self.pages == place
                && (self.pages..=LAST_PAGE).contains(&page)
                // Numbers begin with 1.
                && next > 0
                && self.newest.is_none_or(|newest| newest.page < page)
            {
                self.newest = Some(Newest { page, end: Self::PAGE });
                self.next = next;
            }
        }
        if let Some(Newest { page, .. }) = self.newest {
            let mut at = Self::whole(HEAD);
            while let Some(frame) = self.frame(page, at)?
                && self.is_sound(&frame)?
            {
                // Copies from an older page have lower numbers.
                self.next = self.next.max(frame.number.saturating_add(1));
                at = Self::end(&frame);
            }
            if self.is_erased(page, at)? {
                self.newest = Some(Newest { page, end: at });
            } else {
                // A torn frame had this number: never give it to another.
                self.next = self.next.saturating_add(1);
            }
        }
        self.doubtful = false;
        Ok(())
    }

    /// Number and next number of the page that lies at `place`.
    fn page_at(&mut self, place: u32) -> Result<Option<(u32, u32)>, RingError<F::Error>> {
        let mut head = [0; HEAD];
        self.flash.read(self.address(place, 0), &mut head)?;
        let [magic, page, next, crc] = words(&head);
        let sound = magic == u32::from_le_bytes(MAGIC) && crc == checksum(&head[..HEAD - 4]);
        Ok(sound.then_some((page, next)))
    }

    /// Whether this page is there.
    fn holds(&mut self, page: u32) -> Result<bool, RingError<F::Error>> {
        Ok(self.page_at(page % self.pages)?.is_some_and(|(found, _)| found == page))
    }

    /// The pages in use: one less than there are.
    fn in_use(&self) -> core::ops::Range<u32> {
        match self.newest {
            // Numbers begin with `pages`, so this does not go below zero.
            Some(Newest { page, .. }) => page + 2 - self.pages..page + 1,
            None => 0..0,
        }
    }

    /// The frame at `at`; `None` behind the last one, and where it cannot be one. Its checksum was not
    /// looked at.
    fn frame(&mut self, page: u32, at: usize) -> Result<Option<Frame>, RingError<F::Error>> {
        if at + HEAD > Self::PAGE {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        self.flash.read(self.address(page % self.pages, at), &mut head)?;
        let kind = match head[0] {
            b'R' => Kind::Record,
            b'T' => Kind::Touch,
            b'F' => Kind::Forget,
            _ => return Ok(None),
        };
        let [_, number, target, crc] = words(&head);
        let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let frame = Frame { kind, keep: head[1] == 1, len, number, target, crc, page, at };
        Ok((Self::end(&frame) <= Self::PAGE).then_some(frame))
    }

    /// Where the next frame begins.
    fn end(frame: &Frame) -> usize {
        frame.at + Self::whole(HEAD + frame.len)
    }

    /// Shows every frame of a page, checksums not looked at.
    fn each_frame(
        &mut self,
        page: u32,
        mut see: impl FnMut(&mut Self, Frame) -> Result<(), RingError<F::Error>>,
    ) -> Result<(), RingError<F::Error>> {
        if !self.holds(page)? {
            return Ok(());
        }
        let mut at = Self::whole(HEAD);
        while let Some(frame) = self.frame(page, at)? {
            at = Self::end(&frame);
            see(self, frame)?;
        }
        Ok(())
    }

    /// The record with this number, its newest state, and whether it was forgotten.
    fn look_up(&mut self, number: u32) -> Result<Found, RingError<F::Error>> {
        let mut found = Found::default();
        for page in self.in_use() {
            self.each_frame(page, |ring, frame| {
                match frame.kind {
                    Kind::Record if frame.number == number && ring.is_sound(&frame)? => {
                        found.record = Some(frame);
                    }
                    Kind::Touch
                        if frame.target == number
                            && found.touch.is_none_or(|other| other.number < frame.number)
                            && ring.is_sound(&frame)? =>
                    {
                        found.touch = Some(frame);
                    }
                    Kind::Forget if frame.target == number && ring.is_sound(&frame)? => {
                        found.forgotten = true;
                    }
                    Kind::Record | Kind::Touch | Kind::Forget => {}
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The lowest number of a record above `after`.
    fn record_after(&mut self, after: u32) -> Result<Option<u32>, RingError<F::Error>> {
        let mut lowest = None;
        for page in self.in_use() {
            self.each_frame(page, |ring, frame| {
                let closer = frame.number > after && lowest.is_none_or(|low| frame.number < low);
                if frame.kind == Kind::Record && closer && ring.is_sound(&frame)? {
                    lowest = Some(frame.number);
                }
                Ok(())
            })?;
        }
        Ok(lowest)
    }

    fn load(
        &mut self,
        (record, touch): (Frame, Option<Frame>),
        buffer: &mut [u8],
    ) -> Result<Entry, RingError<F::Error>> {
        let needed = record.len + touch.map_or(0, |touch| touch.len);
        let (bytes, rest) = buffer.split_at_mut_checked(record.len).unzip();
        let (Some(bytes), Some(rest)) = (bytes, rest) else {
            return Err(RingError::Buffer { needed });
        };
        self.read_bytes(&record, bytes)?;
        if let Some(touch) = touch {
            let state = rest.get_mut(..touch.len).ok_or(RingError::Buffer { needed })?;
            self.read_bytes(&touch, state)?;
        }
        Ok(Entry {
            number: Number(record.number),
            keep: touch.unwrap_or(record).keep,
            len: record.len,
            state: touch.map(|touch| touch.len),
        })
    }

    fn read_bytes(&mut self, frame: &Frame, bytes: &mut [u8]) -> Result<(), RingError<F::Error>> {
        let mut at = frame.at + HEAD;
        for part in bytes.chunks_mut(CHUNK) {
            let mut chunk = [0; CHUNK];
            self.read_chunk(frame.page, at, &mut chunk, part.len())?;
            part.copy_from_slice(&chunk[..part.len()]);
            at += part.len();
        }
        Ok(())
    }

    /// Reads `len` bytes and what is left of their unit.
    fn read_chunk(
        &mut self,
        page: u32,
        at: usize,
        chunk: &mut [u8; CHUNK],
        len: usize,
    ) -> Result<(), RingError<F::Error>> {
        let address = self.address(page % self.pages, at);
        Ok(self.flash.read(address, &mut chunk[..len.next_multiple_of(F::READ_SIZE)])?)
    }

    /// Whether the checksum fits.
    fn is_sound(&mut self, frame: &Frame) -> Result<bool, RingError<F::Error>> {
        let mut crc = Crc32::new();
        crc.update(&frame.head()[..HEAD - 4]);
        let (mut at, mut left) = (frame.at + HEAD, frame.len);
        while left > 0 {
            let mut chunk = [0; CHUNK];
            let len = left.min(CHUNK);
            self.read_chunk(frame.page, at, &mut chunk, len)?;
            crc.update(&chunk[..len]);
            at += len;
            left -= len;
        }
        Ok(crc.finish() == frame.crc)
    }

    /// Whether nothing was written from `at` to the end of the page.
    fn is_erased(&mut self, page: u32, mut at: usize) -> Result<bool, RingError<F::Error>> {
        while at < Self::PAGE {
            let mut chunk = [0; CHUNK];
            let len = CHUNK.min(Self::PAGE - at);
            self.read_chunk(page, at, &mut chunk, len)?;
            if chunk[..len].iter().any(|byte| *byte != ERASED) {
                return Ok(false);
            }
            at += len;
        }
        Ok(true)
    }

    // Writing.

    /// Writes a frame, after making room for it.
    fn put(
        &mut self,
        kind: Kind,
        keep: bool,
        target: u32,
        bytes: &[u8],
    ) -> Result<Number, RingError<F::Error>> {
        if bytes.len() > Self::longest() {
            return Err(RingError::TooLong);
        }
        let size = Self::whole(HEAD + bytes.len());
        // What forgets may take the reserve.
        let reserve = if kind == Kind::Forget { 0 } else { Self::RESERVE };
        let fits = |newest: Newest| newest.end + size + reserve <= Self::PAGE;
        if !self.newest.is_some_and(fits) {
            // What is to be kept from now on must not go with the page that this makes room in.
            let wanted = if keep { target } else { 0 };
            let pages = if kind == Kind::Forget { 1 } else { self.pages_for(size, wanted)? };
            for _ in 0..pages {
                self.open(wanted)?;
            }
        }
        let Some(newest) = self.newest else { return Err(RingError::Full) };
        if self.next == u32::MAX {
            return Err(RingError::WornOut);
        }
        let mut frame = Frame {
            kind,
            keep,
            len: bytes.len(),
            number: self.next,
            target,
            crc: 0,
            page: newest.page,
            at: newest.end,
        };
        let mut crc = Crc32::new();
        crc.update(&frame.head()[..HEAD - 4]);
        crc.update(bytes);
        frame.crc = crc.finish();

        self.doubtful = true;
        let mut writer = Writer::new(self.address(newest.page % self.pages, newest.end));
        writer.push(&mut self.flash, &frame.head())?;
        writer.push(&mut self.flash, bytes)?;
        writer.finish(&mut self.flash)?;
        self.doubtful = false;

        self.newest = Some(Newest { end: newest.end + size, ..newest });
        self.next += 1;
        Ok(Number(frame.number))
    }

    /// How many pages have to be opened until `size` bytes fit into the newest.
    fn pages_for(&mut self, size: usize, wanted: u32) -> Result<u32, RingError<F::Error>> {
        if self.newest.is_none() {
            return Ok(1);
        }
        let mut opened = 0;
        for oldest in self.in_use() {
            opened += 1;
            let mut kept = 0;
            self.each_frame(oldest, |ring, frame| {
                if ring.is_kept(&frame, wanted)? {
                    kept += Self::end(&frame) - frame.at;
                }
                Ok(())
            })?;
            if kept + size <= Self::ROOM {
                return Ok(opened);
            }
        }
        Err(RingError::Full)
    }

    /// Opens the next page, which ends the oldest: see the module.
    fn open(&mut self, wanted: u32) -> Result<(), RingError<F::Error>> {
        let page = match self.newest {
            Some(newest) if newest.page < LAST_PAGE => newest.page + 1,
            Some(_) => return Err(RingError::WornOut),
            None => self.pages,
        };
        let oldest = self.in_use().start;
        let start = self.address(page % self.pages, 0);
        self.doubtful = true;
        self.flash.erase(start, start + Self::PAGE as u32)?;

        let mut end = Self::whole(HEAD);
        if self.newest.is_some() {
            self.each_frame(oldest, |ring, frame| {
                if ring.is_kept(&frame, wanted)? {
                    ring.copy(&frame, page, end)?;
                    end += Self::end(&frame) - frame.at;
                }
                Ok(())
            })?;
        }

        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&page.to_le_bytes());
        head[8..12].copy_from_slice(&self.next.to_le_bytes());
        let crc = checksum(&head[..HEAD - 4]);
        head[12..].copy_from_slice(&crc.to_le_bytes());
        let mut writer = Writer::new(start);
        writer.push(&mut self.flash, &head)?;
        writer.finish(&mut self.flash)?;
        self.doubtful = false;
        self.newest = Some(Newest { page, end });
        Ok(())
    }

    /// Whether a frame of the oldest page goes on in the newest: a record that is kept, or `wanted` (0 is
    /// none), and its newest state. What forgets does not: what it forgets stands before it, and is gone by
    /// then.
    fn is_kept(&mut self, frame: &Frame, wanted: u32) -> Result<bool, RingError<F::Error>> {
        let number = match frame.kind {
            Kind::Record => frame.number,
            Kind::Touch => frame.target,
            Kind::Forget => return Ok(false),
        };
        let Some((record, touch)) = self.look_up(number)?.alive() else { return Ok(false) };
        if !touch.unwrap_or(record).keep && number != wanted {
            return Ok(false);
        }
        let of_use = if frame.kind == Kind::Record { Some(record) } else { touch };
        Ok(of_use.is_some_and(|other| (other.page, other.at) == (frame.page, frame.at)))
    }

    /// Copies a whole frame.
    fn copy(&mut self, frame: &Frame, page: u32, to: usize) -> Result<(), RingError<F::Error>> {
        let (mut done, size) = (0, Self::whole(HEAD + frame.len));
        while done < size {
            let mut chunk = [0; CHUNK];
            let len = CHUNK.min(size - done);
            self.read_chunk(frame.page, frame.at + done, &mut chunk, len)?;
            self.flash.write(self.address(page % self.pages, to + done), &chunk[..len])?;
            done += len;
        }
        Ok(())
    }

    fn address(&self, place: u32, at: usize) -> u32 {
        // `mount` saw that all of the flash has addresses of 32 bits.
        place * Self::PAGE as u32 + at as u32
    }
}

impl Frame {
    /// As it is in flash.
    fn head(&self) -> [u8; HEAD] {
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

/// Gathers bytes into writes of whole units.
struct Writer {
    at: u32,
    chunk: [u8; CHUNK],
    used: usize,
}

impl Writer {
    fn new(at: u32) -> Self {
        Self { at, chunk: [ERASED; CHUNK], used: 0 }
    }

    fn push<F: NorFlash>(&mut self, flash: &mut F, mut bytes: &[u8]) -> Result<(), F::Error> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.used));
            self.chunk[self.used..self.used + now.len()].copy_from_slice(now);
            self.used += now.len();
            bytes = later;
            if self.used == CHUNK {
                self.write(flash, CHUNK)?;
            }
        }
        Ok(())
    }

    /// Writes what is left, filled up to a unit.
    fn finish<F: NorFlash>(&mut self, flash: &mut F) -> Result<(), F::Error> {
        let unit = if F::WRITE_SIZE > F::READ_SIZE { F::WRITE_SIZE } else { F::READ_SIZE };
        match self.used.next_multiple_of(unit) {
            0 => Ok(()),
            len => self.write(flash, len),
        }
    }

    fn write<F: NorFlash>(&mut self, flash: &mut F, len: usize) -> Result<(), F::Error> {
        flash.write(self.at, &self.chunk[..len])?;
        self.at += len as u32;
        (self.chunk, self.used) = ([ERASED; CHUNK], 0);
        Ok(())
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    super::crc32(bytes)
}

fn words(head: &[u8; HEAD]) -> [u32; 4] {
    let (words, _) = head.as_chunks::<4>();
    core::array::from_fn(|index| u32::from_le_bytes(words[index]))
}
