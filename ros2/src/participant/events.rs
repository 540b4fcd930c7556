//! `~/events`: what happened to the memory, for nodes that want to know.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use omir_core::event::EventKind;
use omir_core::value::Value;

use super::OpenError;
use crate::graph::{Clock, Node, Publisher, Qos};
use crate::records::Records;

/// Events that may wait to be published.
const QUEUE: usize = 1024;
/// Events that a subscription may lag behind.
const DEPTH: u64 = 100;

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Its kind.
    pub kind: EventKind,
    /// To what: `Type/id`, as far as it is known.
    pub reference: String,
    /// The resource as it is now, `{"ref"}` or an error object, as the kind has it.
    pub carried: Value,
    /// The cause, if no client asked for it.
    pub cause: Option<Value>,
}

/// Hands events to the thread that publishes them. Cloning gives another handle.
#[derive(Debug, Clone)]
pub struct Announcer {
    queue: SyncSender<Notice>,
    dropped: Arc<AtomicU64>,
    publisher: Arc<Publisher>,
}

impl Announcer {
    pub(super) fn start(
        node: &Node,
        records: Arc<Records>,
        clock: Clock,
    ) -> Result<Self, OpenError> {
        let publisher = Arc::new(node.publisher(
            "~/events",
            records.event_type(),
            Qos::DEFAULT.keep_last(DEPTH),
        )?);
        let (queue, notices) = sync_channel::<Notice>(QUEUE);
        let out = publisher.clone();
        std::thread::Builder::new()
            .name("omird-ros2-event".into())
            .spawn(move || {
                while let Ok(Notice { kind, reference, carried, cause }) = notices.recv() {
                    let event = records.event(kind, &reference, &carried, cause.as_ref(), clock());
                    if let Err(error) = out.publish(&event) {
                        tracing::debug!(%error, reference, "an event could not be published");
                    }
                }
            })
            .map_err(OpenError::Thread)?;
        Ok(Self { queue, dropped: Arc::default(), publisher })
    }

    /// Announces something, if anybody listens. Never waits: what there is no room for is counted.
    /// `notice` is only made when it is needed.
    pub fn announce(&self, notice: impl FnOnce() -> Option<Notice>) {
        if !self.publisher.is_heard() {
            return;
        }
        let Some(notice) = notice() else { return };
        if let Err(TrySendError::Full(_)) = self.queue.try_send(notice) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
