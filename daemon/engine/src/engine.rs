//! The engine as its users see it: a handle to one store.

mod embedding;
mod frames;
mod requests;
mod submit;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::Sender;
use omir_core::instant::Timestamp;
use omir_core::value::Value;
use omird_store::backup::Pins;
use omird_store::{Damage, ReadGuard, RwLock};
use parking_lot::Mutex;

use crate::card::integrity::OnFinding;
use crate::card::quota::QuotaUsage;
use crate::contained::OnBroken;
use crate::disk::Disk;
use crate::index::catalog::Catalog;
use crate::ingest::importing::ImportPermits;
use crate::ingest::request;
use crate::recall::frames::Frames;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::time::clock::ClockState;
use crate::write::announced::Announced;
use crate::write::events::Events;
use crate::write::message::Message;

pub(crate) use self::submit::busy;
pub use self::submit::unanswered;

/// A transport's member of `status`.
pub(crate) type Section = Box<dyn Fn() -> Option<Value> + Send + Sync>;

/// A running engine. Cloning gives another handle; the last one to go stops it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) catalog: Arc<RwLock<Catalog>>,
    pub(crate) shared: Arc<Shared>,
    /// Gone once the engine is told to stop. The writer takes what was sent before, and ends when no sender
    /// is left: so each message is answered.
    pub(crate) queue: Mutex<Option<Sender<Message>>>,
    pub(crate) random: Box<dyn Fn() -> u128 + Send + Sync>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) started: Instant,
    pub(crate) boots: u64,
    pub(crate) damage: Vec<Damage>,
    /// Files that earlier starts set aside and that still lie there.
    pub(crate) set_aside: Vec<String>,
    pub(crate) rebuilt: u64,
    /// The last transaction of earlier runs.
    pub(crate) last_before: u64,
    /// The transaction by which this run began; `None` if the card did not take it.
    pub(crate) began_with: Option<u64>,
    /// Positions of frames, if a transport knows them.
    pub(crate) frames: OnceLock<Arc<dyn Frames>>,
    /// Members that transports add to `status`.
    pub(crate) sections: Mutex<Vec<(&'static str, Section)>>,
    /// The public key of the signer, in hex.
    pub(crate) public_key: String,
    pub(crate) imports: ImportPermits,
    pub(crate) events: Events,
    /// Held by the thread that prepares a backup.
    pub(crate) backing_up: Mutex<()>,
    /// Held by the thread that makes a proof, which takes the memory of a segment.
    pub(crate) proving: Mutex<()>,
    pub(crate) announced: Mutex<Announced>,
    /// Wakes the sweeping thread, and ends it when it is dropped.
    pub(crate) sweeping: Mutex<Option<Sender<()>>>,
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Returns the events of committed changes.
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    /// Sets the callback for a panic that ends the writer or the publisher. It is called once, and at once if that has
    /// happened already. From then on the engine takes no change; what was acknowledged is durable. Stop, and start again.
    pub fn on_broken(&self, tell: OnBroken) {
        self.inner.shared.broken.tell(tell);
    }

    /// Adds a callback for each damaged file that is found from now on, and what became of it. It is called on the
    /// sealing thread.
    pub fn on_finding(&self, tell: OnFinding) {
        self.inner.shared.integrity.listen(tell);
    }

    /// Adds a member to `status`. It is left out while `section` returns `None`.
    pub fn add_status_section(&self, name: &'static str, section: Section) {
        let mut sections = self.inner.sections.lock();
        sections.push((name, section));
    }

    /// Returns the newest transaction that recorded or forgot something.
    pub fn newest(&self) -> u64 {
        self.catalog().newest()
    }

    /// Returns the last transaction of earlier runs: no event of this one belongs to it, unless the card takes no writes.
    pub fn last_before(&self) -> u64 {
        self.inner.last_before
    }

    /// Returns the transaction by which this run began, which no other run has; `None` if the card did not take it.
    pub fn began_with(&self) -> Option<u64> {
        self.inner.began_with
    }

    /// Returns the current settings.
    pub fn settings(&self) -> Arc<Settings> {
        self.inner.shared.settings()
    }

    /// Returns the public key that signs the segments, in hexadecimal. It identifies the store, also after a copy or a
    /// move. Copies of one card share it; any other store has another, even under the same robot name.
    pub fn identity(&self) -> &str {
        &self.inner.public_key
    }

    /// Returns the public keys, in hexadecimal, that this store was signed with before. Where the card does not give them
    /// back there are none, and the log says so.
    pub fn former_keys(&self) -> Vec<String> {
        match Pins::read(&*self.inner.disk) {
            Ok(pins) => pins.former.into_iter().collect(),
            Err(error) => {
                tracing::warn!(%error, "former device keys cannot be read: what they signed is not verified");
                Vec::new()
            }
        }
    }

    /// Returns the bytes used on the card, and the quota.
    pub(crate) fn quota_usage(&self) -> QuotaUsage {
        self.inner.shared.quota_usage()
    }

    /// Returns the time to date by, and how far it can be trusted.
    pub fn now(&self) -> (Timestamp, ClockState) {
        self.inner.shared.now()
    }

    /// Returns a random id.
    pub fn new_id(&self) -> String {
        request::random_id((self.inner.random)())
    }

    /// Counts a refused request, for `status`.
    pub fn note_rejected(&self) {
        self.inner.shared.queue.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn catalog(&self) -> ReadGuard<'_, Catalog> {
        self.inner.catalog.read()
    }

    /// Seals what is there and stops all threads. Returns when everything is on the disk. Of a
    /// compaction only the run under way is waited for, of a sweep only the slice.
    pub fn stop(&self) {
        self.inner.shared.is_stopping.store(true, Ordering::Release);
        self.inner.shared.vectors.wake();
        self.inner.sweeping.lock().take();
        self.inner.queue.lock().take();
        let threads = std::mem::take(&mut *self.inner.threads.lock());
        for thread in threads {
            // A panic in it was told of when it happened.
            let _ = thread.join();
        }
    }
}
