//! Tasks that the writer does at intervals, on request.
//!
//! The intervals of [`Settings`](crate::settings::Settings) run on the machine's own time. A program
//! that keeps another one, such as a simulation, sets them long and asks instead.

use crate::Engine;
use crate::error::Error;
use crate::write::message::Message;
use crate::write::orders::{Task, TaskOrder};

impl Engine {
    /// Does what is otherwise done at intervals, and waits until it is done. A disk that refuses is
    /// reported in `status` and logged, as it is when the interval asks.
    ///
    /// # Errors
    /// `INTERNAL` if the engine is stopping.
    pub(crate) fn run_task(&self, task: Task) -> Result<(), Error> {
        let (done, waiting) = crossbeam_channel::bounded(1);
        let queue = self.queue().ok_or_else(Error::stopping)?;
        queue.send(Message::Task(TaskOrder { task, done })).map_err(|_| Error::stopping())?;
        drop(queue);
        waiting.recv().map_err(|_| Error::stopping())
    }
}
