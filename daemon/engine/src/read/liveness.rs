//! Liveness probes: signs that the writer deals with messages, and that what is stored can be read.

use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use crate::Engine;
use crate::write::message::Message;

/// Longest wait of a query for room in the queue.
const FOR_ROOM: Duration = Duration::from_secs(2);

impl Engine {
    /// Asks the writer for a sign of life; it comes once all that was queued before is dealt with. None comes after
    /// the writer has ended, nor if the queue has no room by `deadline`, or within seconds: the thread that waits for the sign
    /// asks again.
    pub fn probe_writer(&self, deadline: Instant) -> Receiver<()> {
        let (alive, waiting) = crossbeam_channel::bounded(1);
        if let Some(queue) = self.queue() {
            let soon = deadline.min(Instant::now() + FOR_ROOM);
            let _ = queue.send_deadline(Message::Probe(alive), soon);
        }
        waiting
    }

    /// Looks into the catalog and reads one version, as any query would. What the disk says to that
    /// ends no thread: it is answered.
    pub fn probe_readers(&self) {
        let any = {
            let catalog = self.catalog();
            (0..).zip(catalog.docs()).filter(|(_, doc)| doc.is_live()).map(|(id, _)| id).next()
        };
        for outgoing in self.outgoing(any) {
            let _ = self.emit(&outgoing);
        }
    }
}
