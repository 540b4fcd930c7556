//! The log that is written: frames are staged, written together and synced.
//!
//! | module | holds |
//! |---|---|
//! | `wal` | the bytes of a log file, and reading them back |
//! | `witness` | second copies of the facts that decide answers, in a file beside each log |

pub(crate) mod wal;
pub(crate) mod witness;

use std::io;
use std::sync::Arc;

use omir_core::instant::Timestamp;

use self::wal::{DIR, FILE_HEADER, FILE_MAGIC, FRAME_MAGIC, frame_crc, path};
use self::witness::Fact;
use crate::disk::{self, Disk, DiskFile, Mode};

/// A log that is not sealed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsealed {
    /// Its number.
    pub log: u64,
    /// End of its good part.
    pub end: u64,
    /// So much of it is known to have been durable: whatever is unreadable in that was lost later. Of a
    /// log that was damaged when it was found, only its frames can tell.
    pub durable: u64,
    /// Its first transaction that no segment covers.
    pub first: u64,
    /// When that was recorded, by the time that what cannot be undone goes by.
    pub began: Timestamp,
    /// True if all of it that was acknowledged can be read. What is left of another is sealed, and
    /// the file itself is kept for a person to look at.
    pub is_sound: bool,
}

/// The log file being written.
///
/// Frames are collected with [`Log::stage`], written together with [`Log::write`] and made durable
/// with [`Log::sync`]: that is the group commit.
pub struct Log {
    number: u64,
    file: Arc<dyn DiskFile>,
    /// True if there is a file at all.
    exists: bool,
    /// True if looks for its name tell something.
    can_look: bool,
    /// Bytes written; all of it good frames.
    written: u64,
    /// Bytes known to be durable.
    synced: u64,
    staged: Vec<u8>,
    /// The second copy of the facts in it.
    witness: witness::Writer,
}

impl Log {
    /// Starts log file `number`, whose first transaction will be `first_seq`. Durable on return.
    pub fn create(disk: &dyn Disk, number: u64, first_seq: u64) -> io::Result<Self> {
        let mut header = Vec::with_capacity(FILE_HEADER);
        header.extend_from_slice(FILE_MAGIC);
        header.extend_from_slice(&number.to_le_bytes());
        header.extend_from_slice(&first_seq.to_le_bytes());
        header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
        header.resize(FILE_HEADER, 0);
        let path = path(number);
        let file = disk.open(&path, Mode::Create)?;
        let made =
            file.write_at(&header, 0).and_then(|()| file.sync()).and_then(|()| disk.sync_dir(DIR));
        if let Err(error) = made {
            let _ = disk.remove(&path);
            return Err(error);
        }
        let witness = witness::Writer::create(disk, number);
        Ok(Self::with(number, file, true, FILE_HEADER as u64, witness))
    }

    fn with(
        number: u64,
        file: Arc<dyn DiskFile>,
        exists: bool,
        len: u64,
        witness: witness::Writer,
    ) -> Self {
        Self {
            number,
            file,
            exists,
            can_look: true,
            written: len,
            synced: len,
            staged: Vec::new(),
            witness,
        }
    }

    /// Goes on with a log file that was recovered up to `end`: cuts what lies behind it.
    pub fn resume(disk: &dyn Disk, number: u64, end: u64) -> io::Result<Self> {
        let file = disk.open(&path(number), Mode::Write)?;
        if file.len()? != end {
            file.truncate(end)?;
        }
        // The cut must be durable before anything new is written over the torn end, or the old
        // bytes could come back behind the new ones after the next power cut.
        file.sync()?;
        disk.sync_dir(DIR)?;
        Ok(Self::with(number, file, true, end, witness::Writer::resume(disk, number)))
    }

    /// A log that was recovered up to `end` on a disk that cannot be written to: a new one must be
    /// begun before anything is stored.
    pub fn closed(disk: &dyn Disk, number: u64, end: u64) -> io::Result<Self> {
        let file = disk.open(&path(number), Mode::Read)?;
        Ok(Self::with(number, file, true, end, witness::Writer::absent(number)))
    }

    /// No log at all, on a disk that cannot be written to; the next one has the number after this.
    pub fn absent(number: u64) -> Self {
        let witness = witness::Writer::absent(number);
        Self::with(number, Arc::new(NoFile), false, FILE_HEADER as u64, witness)
    }

    /// Returns true if there is a file of this log.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// This file's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A handle for readers.
    pub fn file(&self) -> Arc<dyn DiskFile> {
        self.file.clone()
    }

    /// Bytes written so far, with what is staged.
    pub fn len(&self) -> u64 {
        self.written + self.staged.len() as u64
    }

    /// Returns true if the file holds no frame yet.
    pub fn is_empty(&self) -> bool {
        self.len() == FILE_HEADER as u64
    }

    /// Writes the log again under its name if that leads to it no more, because somebody deleted or moved it: what is
    /// acknowledged must be there for the next start. Durable on return. `None` if the name leads to it; else readers need
    /// the new handle, and false means that the name led to the same bytes, so that nothing was written.
    ///
    /// # Errors
    /// Whatever the disk says. Then nothing more may be acknowledged, and it is to be tried again.
    pub fn keep_name(&mut self, disk: &dyn Disk) -> io::Result<Option<bool>> {
        if !self.exists || !self.can_look || self.file.has_name()? {
            return Ok(None);
        }
        let nameless = |error| nameless(self.number, &error);
        let is_new = write_again(disk, self.number, &*self.file, self.written).map_err(nameless)?;
        self.file = disk.open(&path(self.number), Mode::Write).map_err(nameless)?;
        self.synced = self.written;
        // On a file system that gives a file another number at each look, names tell nothing.
        // An error here must not keep the new handle from readers: the next look meets it again.
        self.can_look = self.file.has_name().unwrap_or(true);
        Ok(Some(is_new))
    }

    /// Adds the facts of the frame that is staged next, or was staged last.
    pub fn attest(&mut self, facts: impl IntoIterator<Item = Fact>) {
        self.witness.stage(facts);
    }

    /// Says in the witness that the log ends here, with transaction `last_seq`: whatever cannot be read of it
    /// later has rotted. Call it once all is synced.
    pub fn close(&mut self, last_seq: u64) {
        if self.exists {
            let last_seq = if self.is_dirty() { 0 } else { last_seq };
            self.witness.close(self.synced, last_seq);
        }
    }

    /// Adds a frame to the group; returns where its payload will lie in the file.
    pub fn stage(&mut self, payload: &[u8]) -> u64 {
        let len = u32::try_from(payload.len()).expect("a request is far smaller than 4 GiB");
        let synced = u32::try_from(self.synced).expect("a log file is sealed long before 4 GiB");
        let crc = frame_crc(self.number, len, synced, payload);
        self.staged.extend_from_slice(FRAME_MAGIC);
        self.staged.extend_from_slice(&len.to_le_bytes());
        self.staged.extend_from_slice(&synced.to_le_bytes());
        self.staged.extend_from_slice(&crc.to_le_bytes());
        let at = self.len();
        self.staged.extend_from_slice(payload);
        at
    }

    /// Writes the group. On error nothing of it is in the file, or the file is unusable.
    pub fn write(&mut self) -> Result<usize, LogError> {
        let len = self.staged.len();
        let result = self.file.write_at(&self.staged, self.written);
        self.staged.clear();
        self.witness.finish_group(result.is_ok());
        match result {
            Ok(()) => {
                self.written += len as u64;
                Ok(len)
            }
            Err(error) => match self.file.truncate(self.written) {
                Ok(()) => Err(LogError::Refused(error)),
                Err(_) => Err(LogError::Broken(error)),
            },
        }
    }

    /// Makes everything written durable.
    pub fn sync(&mut self) -> Result<(), LogError> {
        match self.file.sync() {
            Ok(()) => {
                self.synced = self.written;
                self.witness.tell(self.synced);
                Ok(())
            }
            Err(error) => {
                // After a failed sync the kernel may have dropped the pages: what was written since
                // the last good sync is neither there nor gone. Cut it off and never write here again.
                // What was cut off is no part of the log: a later sync that succeeds must not call it durable.
                self.written = self.synced;
                self.witness.drop_pending();
                let _ = self.file.truncate(self.synced);
                let _ = self.file.sync();
                Err(LogError::Broken(error))
            }
        }
    }

    /// Bytes of the group that waits to be written.
    pub fn staged(&self) -> u64 {
        self.staged.len() as u64
    }

    /// Drops the group.
    pub fn discard(&mut self) {
        self.staged.clear();
        self.witness.finish_group(false);
    }

    /// How much of the file is known to be durable.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns true if something was written and not synced.
    pub fn is_dirty(&self) -> bool {
        self.synced != self.written
    }
}

/// The error of a log that has lost its name and cannot be written again.
fn nameless(number: u64, error: &io::Error) -> io::Error {
    let message = format!("{} was deleted and cannot be written again: {error}", path(number));
    io::Error::new(error.kind(), message)
}

/// Writes the first `len` bytes of an open log again under its name, durable on return. Another file that lies there by
/// now is not ours to overwrite, and is kept as `.replaced`. Returns false if the same bytes lie there: the card was taken out
/// and is back, say.
pub(crate) fn write_again(
    disk: &dyn Disk,
    number: u64,
    file: &dyn DiskFile,
    len: u64,
) -> io::Result<bool> {
    // The deleted file keeps its room until it is closed.
    disk::check_room(disk, len)?;
    let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    file.read_at(&mut bytes, 0)?;
    // Its folder may be gone as well.
    disk.create_dir(DIR)?;
    disk.sync_dir(".")?;
    let path = path(number);
    if disk.list(DIR)?.iter().any(|name| path == format!("{DIR}/{name}")) {
        let is_same = |there: Vec<u8>| {
            let rest = there.strip_prefix(&bytes[..]);
            rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
        };
        if disk::read(disk, &path).is_ok_and(is_same) {
            disk.open(&path, Mode::Write)?.sync()?;
            return Ok(false);
        }
        disk.rename(&path, &format!("{path}.replaced"))?;
    }
    disk::replace(disk, &path, &bytes)?;
    disk.sync_dir(DIR)?;
    Ok(true)
}

/// The file of a log that could not be made.
struct NoFile;

impl DiskFile for NoFile {
    fn len(&self) -> io::Result<u64> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Why a group could not be logged.
#[derive(Debug)]
pub enum LogError {
    /// Nothing of the group is in the file; the next group may be tried.
    Refused(io::Error),
    /// The file is in doubt behind its last synced byte; a new file must be started.
    Broken(io::Error),
}
