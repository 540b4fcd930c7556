//! Does now what the writer does by itself at intervals.
//!
//! The intervals of [`Settings`](super::settings::Settings) run on the machine's own time. A program
//! that keeps another one, such as a simulation, sets them long and asks instead.

use crossbeam_channel::Sender;

use super::Engine;
use super::sealing::SealOrder;
use super::writer::{Message, Writer};
use crate::error::{Code, Error};

/// Something that is due now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    /// Count the accesses of recalls and journal what changed: `touch_interval`.
    Accesses,
    /// Note what time it is: `mark_interval`.
    Mark,
    /// Seal what is due: `seal_after`.
    Seal,
}

/// A chore, and who waits for it.
pub(super) struct Asked {
    chore: Chore,
    done: Sender<()>,
}

impl Engine {
    /// Does what is otherwise done at intervals, and waits until it is done. A disk that refuses is
    /// reported in `status` and logged, as it is when the interval asks.
    ///
    /// # Errors
    /// `INTERNAL` if the engine is stopping.
    pub fn attend(&self, chore: Chore) -> Result<(), Error> {
        let stopping = || Error::new(Code::Internal, "the daemon is stopping");
        let (done, waiting) = crossbeam_channel::bounded(1);
        let queue = self.queue().ok_or_else(stopping)?;
        queue.send(Message::Chore(Asked { chore, done })).map_err(|_| stopping())?;
        drop(queue);
        waiting.recv().map_err(|_| stopping())
    }
}

impl Writer {
    pub(super) fn attend(&mut self, Asked { chore, done }: Asked) {
        self.take_touches();
        match chore {
            Chore::Accesses => self.flush_touches(),
            Chore::Mark => self.note(Vec::new()),
            Chore::Seal => {
                if self.log_is_sound && self.is_log_due() {
                    self.rotate();
                }
                // The sealing thread only goes away after the writer.
                let _ = self.sealing.send(SealOrder::Look(done));
                return;
            }
        }
        // Whoever asked may have gone.
        let _ = done.send(());
    }
}
