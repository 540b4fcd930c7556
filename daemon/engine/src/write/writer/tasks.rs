//! Tasks that the writer otherwise does at intervals, done now.

use crate::write::orders::{SealOrder, Task, TaskOrder};
use crate::write::writer::Writer;

impl Writer {
    pub(crate) fn run_task(&mut self, TaskOrder { task, done }: TaskOrder) {
        self.take_touches();
        match task {
            Task::Accesses => self.flush_touches(),
            Task::Mark => self.note(Vec::new()),
            Task::Seal => {
                if self.log.is_sound && self.is_log_due() {
                    self.rotate();
                }
                // The sealing thread only goes away after the writer.
                let _ = self.sealing.send(SealOrder::Look(done));
                return;
            }
        }
        // The caller may have gone.
        let _ = done.send(());
    }
}
