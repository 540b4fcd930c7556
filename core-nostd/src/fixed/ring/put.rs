//! Writing: a frame behind the others, and the page that makes room for it.

use embedded_storage::nor_flash::NorFlash;

use super::frame::{Frame, HEAD, Kind};
use super::{CHUNK, ERASED, LAST_PAGE, MAGIC, Newest, Number, Ring, RingError};
use crate::crc::{Crc32, crc32};

/// Records that are not marked to be kept, and do not give way to a frame all the same.
#[derive(Clone, Copy)]
pub(super) struct Spared<'a> {
    /// All above this number.
    pub(super) above: u32,
    /// These below it.
    pub(super) but: &'a [Number],
}

impl Spared<'_> {
    /// All give way.
    pub(super) const NONE: Self = Self { above: u32::MAX, but: &[] };

    fn holds(self, number: u32) -> bool {
        number > self.above || self.but.contains(&Number(number))
    }
}

impl<F: NorFlash> Ring<F> {
    /// Writes a frame, after making room for it, for which none of the `spared` gives way.
    pub(super) fn put(
        &mut self,
        kind: Kind,
        keep: bool,
        target: u32,
        bytes: &[u8],
        spared: Spared<'_>,
    ) -> Result<Number, RingError<F::Error>> {
        if bytes.len() > Self::longest() {
            return Err(RingError::TooLong);
        }
        let size = Self::whole(HEAD + bytes.len());
        // A frame that forgets may take the reserve.
        let reserve = if kind == Kind::Forget { 0 } else { Self::RESERVE };
        let fits = |newest: Newest| newest.end + size + reserve <= Self::PAGE;
        if !self.newest.is_some_and(fits) {
            let pages = if kind == Kind::Forget { 1 } else { self.pages_for(size, spared)? };
            for _ in 0..pages {
                self.open(spared)?;
            }
            // A frame that could not be read when the pages were counted, and then could, was copied too.
            if !self.newest.is_some_and(fits) {
                return Err(RingError::Full);
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

    /// Returns the number of pages to be opened until `size` bytes fit into the newest.
    pub(super) fn pages_for(
        &mut self,
        size: usize,
        spared: Spared<'_>,
    ) -> Result<u32, RingError<F::Error>> {
        if self.newest.is_none() {
            return Ok(1);
        }
        let mut opened = 0;
        for oldest in self.in_use() {
            opened += 1;
            let mut kept = 0;
            self.each_frame(oldest, |ring, frame| {
                if ring.is_kept(&frame, spared)? {
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
    pub(super) fn open(&mut self, spared: Spared<'_>) -> Result<(), RingError<F::Error>> {
        let page = match self.newest {
            Some(newest) if newest.page < LAST_PAGE => newest.page + 1,
            Some(_) => return Err(RingError::WornOut),
            None => self.pages,
        };
        let oldest = self.in_use().start;
        let start = self.address(page % self.pages, 0);
        self.doubtful = true;
        self.flash.erase(start, start + Self::PAGE as u32)?;
        if !self.is_erased(page, 0)? {
            return Err(RingError::Unerased { address: start });
        }

        let mut end = Self::whole(HEAD);
        if self.newest.is_some() {
            self.each_frame(oldest, |ring, frame| {
                if ring.is_kept(&frame, spared)? {
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
        let crc = crc32(&head[..HEAD - 4]);
        head[12..].copy_from_slice(&crc.to_le_bytes());
        let mut writer = Writer::new(start);
        writer.push(&mut self.flash, &head)?;
        writer.finish(&mut self.flash)?;
        self.doubtful = false;
        self.newest = Some(Newest { page, end });
        Ok(())
    }

    /// Returns true if a frame of the oldest page goes on in the newest: a record that is kept or spared, the newest state
    /// of a record that goes on or lies in a page behind, where it was spared before; and the newest note of its
    /// name. What forgets does not: what it forgets stands before it, and is gone by then.
    pub(super) fn is_kept(
        &mut self,
        frame: &Frame,
        spared: Spared<'_>,
    ) -> Result<bool, RingError<F::Error>> {
        let number = match frame.kind {
            Kind::Record => frame.number,
            Kind::Touch => frame.target,
            Kind::Forget => return Ok(false),
            Kind::Note => {
                let newest = self.newest_note(frame.target)?;
                return Ok(newest.is_some_and(|other| other.is_at(frame)));
            }
        };
        let Some((record, touch)) = self.frames_of(number)?.alive() else { return Ok(false) };
        let goes_on = touch.unwrap_or(record).keep || spared.holds(number);
        if !goes_on && record.page <= frame.page {
            return Ok(false);
        }
        let of_use = if frame.kind == Kind::Record { Some(record) } else { touch };
        Ok(of_use.is_some_and(|other| other.is_at(frame)))
    }

    /// Copies a whole frame.
    pub(super) fn copy(
        &mut self,
        frame: &Frame,
        page: u32,
        to: usize,
    ) -> Result<(), RingError<F::Error>> {
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
