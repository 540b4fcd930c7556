//! A running daemon's part of a backup: everything sealed, a list of the segments with their
//! signatures, and their bytes. Segments never change, so no writer is held up and a copy may take as
//! long as it likes.

use std::io;
use std::time::Duration;

use omird_store::backup::{Offer, Offered};

use crate::Engine;
use crate::error::{Code, Error};
use crate::index::doc::FileId;
use crate::write::message::Message;

/// Most bytes of a segment in one answer.
pub const MAX_PIECE: u64 = 1 << 20;
/// Longest wait of a backup for the sealing of acknowledged changes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most attempts to list the segments while some go away.
const TRIES: usize = 5;

impl Engine {
    /// Seals everything that was acknowledged before, and waits for it at most `patience`.
    ///
    /// # Errors
    /// The reason why not all of it is sealed; it is safe in the log.
    pub(crate) fn seal_now(&self, patience: Duration) -> Result<(), Error> {
        let (done, answer) = crossbeam_channel::bounded(1);
        let queue = self.queue().ok_or_else(Error::stopping)?;
        let sent = queue.send_timeout(Message::Seal(done), patience);
        drop(queue);
        sent.map_err(|error| match error {
            crossbeam_channel::SendTimeoutError::Timeout(_) => {
                Error::new(Code::Busy, "the queue is full")
            }
            crossbeam_channel::SendTimeoutError::Disconnected(_) => Error::stopping(),
        })?;
        match answer.recv_timeout(patience) {
            Ok(sealed) => sealed,
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => {
                let message = format!("sealing took longer than {} s", patience.as_secs());
                Err(Error::new(Code::Busy, message))
            }
            Err(crossbeam_channel::RecvTimeoutError::Disconnected) => Err(Error::stopping()),
        }
    }

    /// Seals everything and lists the segments. What could not be sealed, as on a full disk, is no
    /// reason to back up nothing: [`Offer::unsealed`] says why it is not in there.
    ///
    /// # Errors
    /// `BUSY` while another list is being made; `INTERNAL` if a signature cannot be read.
    pub fn offer_backup(&self, robot: &str) -> Result<Offer, Error> {
        let Some(_turn) = self.inner.backing_up.try_lock() else {
            let message = "another backup is being prepared; try again in a moment";
            return Err(Error::new(Code::Busy, message));
        };
        let unsealed = self.seal_now(PATIENCE).err().map(|error| error.message);
        for _ in 0..TRIES {
            if let Some(segments) = self.offered()? {
                return Ok(Offer {
                    robot: robot.to_owned(),
                    program: crate::PRODUCER.to_owned(),
                    public_key: self.inner.public_key.clone(),
                    unsealed,
                    segments,
                });
            }
        }
        Err(Error::new(Code::Busy, "segments are being rewritten; try again in a moment"))
    }

    /// The segments that are served; `None` if some of them went away meanwhile.
    fn offered(&self) -> Result<Option<Vec<Offered>>, Error> {
        let numbers = |served: &[(u64, _, _)]| served.iter().map(|s| s.0).collect::<Vec<_>>();
        let served = self.catalog().files.segments();
        let mut offered = Vec::with_capacity(served.len());
        for (number, span, file) in &served {
            let segment = Offered::of(&*self.inner.disk, *number, *span, &**file);
            offered.push(segment.map_err(|(path, error)| unreadable(&path, &error))?);
        }
        let is_stable = numbers(&served) == numbers(&self.catalog().files.segments());
        Ok(is_stable.then_some(offered))
    }

    /// Bytes of a segment from `offset` on: `length` of them, or fewer where it ends.
    ///
    /// # Errors
    /// `NOT_FOUND` if it was rewritten into another segment meanwhile, `INVALID_QUERY` behind its
    /// end or for more than [`MAX_PIECE`].
    pub fn segment_piece(&self, number: u64, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        if length > MAX_PIECE {
            let message = format!("{length} is more than {MAX_PIECE} bytes at once");
            return Err(Error::query("length", message));
        }
        let file = u32::try_from(number)
            .ok()
            .and_then(|number| self.catalog().files.file(FileId::Segment(number)))
            .ok_or_else(|| {
                let message = format!("there is no segment {number} (any more); list them again");
                Error::at(Code::NotFound, "/segment", message)
            })?;
        let path = FileId::segment(number).path();
        let len = file.len().map_err(|error| unreadable(&path, &error))?;
        let left = len.checked_sub(offset).ok_or_else(|| {
            Error::query("offset", format!("{offset} is behind the end of segment {number}, {len}"))
        })?;
        let mut bytes = vec![0; usize::try_from(length.min(left)).unwrap_or(0)];
        file.read_at(&mut bytes, offset).map_err(|error| unreadable(&path, &error))?;
        Ok(bytes)
    }
}

fn unreadable(path: &str, error: &io::Error) -> Error {
    Error::new(Code::Internal, format!("{path} cannot be read: {error}"))
}
