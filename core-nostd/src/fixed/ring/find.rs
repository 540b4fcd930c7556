//! Reading: the end of the newest page, the frames of a record, and the frames to be kept of a page.

use embedded_storage::nor_flash::NorFlash;

use super::frame::{Frame, HEAD, Kind, words};
use super::{CHUNK, ERASED, Entry, LAST_PAGE, MAGIC, Newest, Number, Ring, RingError, TRIES};
use crate::crc::{Crc32, crc32};

/// A record that is not forgotten, and its newest state.
pub(super) type Alive = (Frame, Option<Frame>);

/// Contents of the start of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// A page of this number; and the number of the next new frame when it was opened.
    Page(u32, u32),
    /// Something else.
    Nothing,
    /// It cannot be read.
    Unreadable,
}

/// The frames of one record.
#[derive(Default)]
pub(super) struct Frames {
    record: Option<Frame>,
    touch: Option<Frame>,
    forgotten: bool,
}

impl Frames {
    /// The record, unless it is forgotten, and its newest state.
    pub(super) fn alive(&self) -> Option<Alive> {
        if self.forgotten { None } else { Some((self.record?, self.touch)) }
    }
}

impl<F: NorFlash> Ring<F> {
    /// Looks at the flash again if the last write failed.
    pub(super) fn refresh(&mut self) -> Result<(), RingError<F::Error>> {
        if self.doubtful { self.find() } else { Ok(()) }
    }

    /// Finds the newest page, and its end.
    pub(super) fn find(&mut self) -> Result<(), RingError<F::Error>> {
        self.doubtful = true;
        (self.newest, self.next) = (None, 1);
        let mut is_unreadable = false;
        for place in 0..self.pages {
            match self.page_at(place)? {
                Start::Page(page, next)
                    if page % self.pages == place
                        && (self.pages..=LAST_PAGE).contains(&page)
                        // Numbers begin with 1.
                        && next > 0
                        && self.newest.is_none_or(|newest| newest.page < page) =>
                {
                    self.newest = Some(Newest { page, end: Self::PAGE });
                    self.next = next;
                }
                start => is_unreadable |= start == Start::Unreadable,
            }
        }
        if is_unreadable {
            self.look_behind()?;
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
                // A torn frame had this number; and if it rotted, whole ones may stand behind it, as many as
                // there is room for: none of their numbers is ever given to another.
                let most = (Self::PAGE - at).div_ceil(Self::RESERVE);
                self.next = self.next.saturating_add(most as u32);
            }
        }
        self.doubtful = false;
        Ok(())
    }

    /// If the page behind the newest has an unreadable head, it was torn while that page was opened; or it was
    /// whole, and the page is the newest. Then there are frames in it that are newer than all in the page before, unless
    /// it holds nothing but copies of what the oldest one holds still.
    fn look_behind(&mut self) -> Result<(), RingError<F::Error>> {
        let behind = self.newest.map_or(self.pages, |newest| newest.page + 1);
        if behind > LAST_PAGE {
            return Ok(());
        }
        match self.page_at(behind % self.pages)? {
            // It could not be read before, and now it can.
            Start::Page(page, next) if page == behind => {
                self.newest = Some(Newest { page, end: Self::PAGE });
                self.next = next;
                return Ok(());
            }
            Start::Page(..) | Start::Nothing => return Ok(()),
            Start::Unreadable => {}
        }
        let known = match self.newest {
            Some(newest) => self.next_after(newest.page, self.next)?,
            None => self.next,
        };
        if self.next_after(behind, known)? > known {
            self.newest = Some(Newest { page: behind, end: Self::PAGE });
            self.next = known;
        }
        Ok(())
    }

    /// The number behind the highest of the frames of a page; `next` at least.
    fn next_after(&mut self, page: u32, mut next: u32) -> Result<u32, RingError<F::Error>> {
        self.each_frame(page, |ring, frame| {
            if frame.number >= next && ring.is_sound(&frame)? {
                next = frame.number.saturating_add(1);
            }
            Ok(())
        })?;
        Ok(next)
    }

    /// Reads what lies at `place`.
    fn page_at(&mut self, place: u32) -> Result<Start, RingError<F::Error>> {
        let mut head = [0; HEAD];
        if !self.read(self.address(place, 0), &mut head)? {
            return Ok(Start::Unreadable);
        }
        let [magic, page, next, crc] = words(&head);
        let sound = magic == u32::from_le_bytes(MAGIC) && crc == crc32(&head[..HEAD - 4]);
        Ok(if sound { Start::Page(page, next) } else { Start::Nothing })
    }

    /// Returns true if this page, one that is in use, is there. A head that cannot be read was written whole: no page is opened
    /// behind one that was not. Its frames speak for themselves.
    fn holds(&mut self, page: u32) -> Result<bool, RingError<F::Error>> {
        Ok(match self.page_at(page % self.pages)? {
            Start::Page(found, _) => found == page,
            // Before the first one there is none.
            Start::Unreadable => page >= self.pages,
            Start::Nothing => false,
        })
    }

    /// Reads. False if these bytes cannot be read: a cut tore them, or they rotted, in flash that looks at what it
    /// reads (ECC). They were asked for several times, and other places could be read in between; else it is the flash
    /// or the way to it that fails, and that says nothing of what is there.
    fn read(&mut self, address: u32, bytes: &mut [u8]) -> Result<bool, RingError<F::Error>> {
        for _ in 0..TRIES {
            let Err(error) = self.flash.read(address, bytes) else { return Ok(true) };
            let works = (0..self.pages).any(|place| {
                let address = self.address(place, 0);
                self.flash.read(address, &mut [0; HEAD]).is_ok()
            });
            if !works {
                return Err(error.into());
            }
        }
        Ok(false)
    }

    /// The pages in use: one less than there are.
    pub(super) fn in_use(&self) -> core::ops::Range<u32> {
        match self.newest {
            // Numbers begin with `pages`, so this does not go below zero.
            Some(Newest { page, .. }) => page + 2 - self.pages..page + 1,
            None => 0..0,
        }
    }

    /// The frame at `at`; `None` behind the last one, and where it cannot be one or cannot be read. Its checksum was
    /// not looked at.
    pub(super) fn frame(
        &mut self,
        page: u32,
        at: usize,
    ) -> Result<Option<Frame>, RingError<F::Error>> {
        if at + HEAD > Self::PAGE {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        if !self.read(self.address(page % self.pages, at), &mut head)? {
            return Ok(None);
        }
        let kind = match head[0] {
            b'R' => Kind::Record,
            b'T' => Kind::Touch,
            b'F' => Kind::Forget,
            b'N' => Kind::Note,
            _ => return Ok(None),
        };
        let [_, number, target, crc] = words(&head);
        let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let frame = Frame { kind, keep: head[1] == 1, len, number, target, crc, page, at };
        Ok((Self::end(&frame) <= Self::PAGE).then_some(frame))
    }

    /// Start of the next frame.
    pub(super) fn end(frame: &Frame) -> usize {
        frame.at + Self::whole(HEAD + frame.len)
    }

    /// Shows every frame of a page, checksums not looked at.
    pub(super) fn each_frame(
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
    pub(super) fn frames_of(&mut self, number: u32) -> Result<Frames, RingError<F::Error>> {
        let mut found = Frames::default();
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
                    Kind::Record | Kind::Touch | Kind::Forget | Kind::Note => {}
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The newest note under this name.
    pub(super) fn newest_note(&mut self, name: u32) -> Result<Option<Frame>, RingError<F::Error>> {
        let mut newest: Option<Frame> = None;
        for page in self.in_use() {
            self.each_frame(page, |ring, frame| {
                if frame.kind == Kind::Note
                    && frame.target == name
                    && newest.is_none_or(|other| other.number < frame.number)
                    && ring.is_sound(&frame)?
                {
                    newest = Some(frame);
                }
                Ok(())
            })?;
        }
        Ok(newest)
    }

    /// The lowest number of a record above `after`.
    pub(super) fn record_after(&mut self, after: u32) -> Result<Option<u32>, RingError<F::Error>> {
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

    /// The record after `after` in the order they were appended, and its newest state.
    pub(super) fn alive_after(
        &mut self,
        after: Option<Number>,
    ) -> Result<Option<Alive>, RingError<F::Error>> {
        let mut after = after.map_or(0, Number::get);
        while let Some(number) = self.record_after(after)? {
            if let Some(found) = self.frames_of(number)?.alive() {
                return Ok(Some(found));
            }
            after = number;
        }
        Ok(None)
    }

    pub(super) fn load(
        &mut self,
        (record, touch): Alive,
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

    pub(super) fn read_bytes(
        &mut self,
        frame: &Frame,
        bytes: &mut [u8],
    ) -> Result<(), RingError<F::Error>> {
        let mut at = frame.at + HEAD;
        for part in bytes.chunks_mut(CHUNK) {
            let mut chunk = [0; CHUNK];
            self.read_chunk(frame.page, at, &mut chunk, part.len())?;
            part.copy_from_slice(&chunk[..part.len()]);
            at += part.len();
        }
        Ok(())
    }

    /// Reads `len` bytes and what is left of their unit, of a frame that could be read before.
    pub(super) fn read_chunk(
        &mut self,
        page: u32,
        at: usize,
        chunk: &mut [u8; CHUNK],
        len: usize,
    ) -> Result<(), RingError<F::Error>> {
        let address = self.address(page % self.pages, at);
        Ok(self.flash.read(address, &mut chunk[..len.next_multiple_of(F::READ_SIZE)])?)
    }

    /// The same of what may be torn; false if it cannot be read.
    fn may_read_chunk(
        &mut self,
        page: u32,
        at: usize,
        chunk: &mut [u8; CHUNK],
        len: usize,
    ) -> Result<bool, RingError<F::Error>> {
        let address = self.address(page % self.pages, at);
        self.read(address, &mut chunk[..len.next_multiple_of(F::READ_SIZE)])
    }

    /// Returns true if all of it can be read, and the checksum fits.
    pub(super) fn is_sound(&mut self, frame: &Frame) -> Result<bool, RingError<F::Error>> {
        let mut crc = Crc32::new();
        crc.update(&frame.head()[..HEAD - 4]);
        let (mut at, mut left) = (frame.at + HEAD, frame.len);
        while left > 0 {
            let mut chunk = [0; CHUNK];
            let len = left.min(CHUNK);
            if !self.may_read_chunk(frame.page, at, &mut chunk, len)? {
                return Ok(false);
            }
            crc.update(&chunk[..len]);
            at += len;
            left -= len;
        }
        Ok(crc.finish() == frame.crc)
    }

    /// Returns true if nothing was written from `at` to the end of the page.
    pub(super) fn is_erased(
        &mut self,
        page: u32,
        mut at: usize,
    ) -> Result<bool, RingError<F::Error>> {
        while at < Self::PAGE {
            let mut chunk = [0; CHUNK];
            let len = CHUNK.min(Self::PAGE - at);
            let is_read = self.may_read_chunk(page, at, &mut chunk, len)?;
            if !is_read || chunk[..len].iter().any(|byte| *byte != ERASED) {
                return Ok(false);
            }
            at += len;
        }
        Ok(true)
    }
}
