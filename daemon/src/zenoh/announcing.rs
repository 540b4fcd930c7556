//! Announcements of the protocols: a thread of its own puts them, so that a slow network holds up no protocol.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, TrySendError, bounded};

use super::events::Publisher;
use crate::protocols::Protocols;
use crate::router::Announcement;

/// Announcements that wait for the network.
const MOST_WAITING: usize = 8192;

/// Carries announcements until it is dropped.
pub(super) struct Announcing {
    queue: Option<Arc<Sender<Announcement>>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Announcing {
    fn drop(&mut self) {
        // Protocols hold no more than a weak handle of the queue: without this one the thread ends.
        self.queue.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Announcing {
    /// Begins to carry what the protocols announce.
    ///
    /// # Errors
    /// The machine has no thread.
    pub(super) fn start(publisher: Publisher, protocols: &Protocols) -> std::io::Result<Self> {
        let (queue, waiting) = bounded::<Announcement>(MOST_WAITING);
        let thread = std::thread::Builder::new()
            .name("announcing".to_owned())
            .spawn(move || waiting.iter().for_each(|one| publisher.announce(&one)))?;
        let queue = Arc::new(queue);
        for exchange in protocols.exchanges() {
            let queue = Arc::downgrade(&queue);
            exchange.listen(Arc::new(move |announcement| {
                let Some(queue) = queue.upgrade() else { return };
                if let Err(TrySendError::Full(lost)) = queue.try_send(announcement.clone()) {
                    tracing::warn!(
                        key = lost.key,
                        "an announcement is lost: the network is too slow"
                    );
                }
            }));
        }
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }
}
