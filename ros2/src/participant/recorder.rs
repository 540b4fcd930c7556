//! Hands what the rules keep to the memory, on a thread of its own and several at a time: one sync of the
//! disk for all that waits.
//!
//! What a rule has kept is not dropped any more. If the memory is busy or its disk is full or away, it is
//! tried again; meanwhile the queue fills, the threads that fill it wait, and the subscriptions drop by their depth.
//! What the memory refuses for good, and what should join a stored resource that is damaged, is counted.
//!
//! Another client may write between a look at what is stored and the request: then the request is refused,
//! because an Entity is gone or a version is not the newest any more, and all is looked at again.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use omir_core::code::Code;
use omir_core::value::Value;

use crate::memory::{Memory, Refusal, Stored};
use crate::rules::{KeptResource, UnreportedSightings, folded, reference, with_unreported};

/// Memories that may wait for the disk.
const QUEUE: usize = 1024;
/// Memories in one request.
const MOST_AT_ONCE: usize = 256;
/// Entities that are known to be stored, so that the memory is not asked again; then the list begins again.
const MOST_KNOWN: usize = 10_000;
/// The pause before something is tried again: from, and up to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// Number of times that something refused is read again: feedback may come in between more than once.
const LOOKS: usize = 3;

/// Resources to be stored.
#[derive(Debug)]
pub(super) enum Job {
    /// A memory.
    Keep(Box<KeptResource>),
    /// Number of sights of something known.
    Tell(UnreportedSightings),
}

/// The outcome.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Memories that are durable.
    pub(super) stored: AtomicU64,
    /// Memories that were refused for good.
    pub(super) refused: AtomicU64,
    /// Sights that a memory tells of already.
    pub(super) told_before: AtomicU64,
}

/// The way to the memory. Dropping it waits until everything is stored, once all inlets are gone.
pub(super) struct Recorder {
    queue: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    is_stopping: Arc<AtomicBool>,
    pub(super) counts: Arc<Counts>,
}

impl Recorder {
    /// Starts the thread.
    pub(super) fn start(memory: Arc<dyn Memory>) -> std::io::Result<Self> {
        let (queue, jobs) = sync_channel(QUEUE);
        let counts = Arc::<Counts>::default();
        let is_stopping = Arc::<AtomicBool>::default();
        let writer = Writer {
            memory,
            known: HashSet::new(),
            counts: counts.clone(),
            is_stopping: is_stopping.clone(),
            is_hopeless: false,
        };
        let thread = std::thread::Builder::new()
            .name("omird-ros2-rec".into())
            .spawn(move || writer.work(&jobs))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), is_stopping, counts })
    }

    /// From here on no thread waits long for a disk that takes nothing.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// A way to hand in jobs; waits while too many wait.
    pub(super) fn inlet(&self) -> Option<Inlet> {
        self.queue.clone().map(Inlet)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
        self.queue = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that stores what ROS brings panicked");
        }
    }
}

/// The queue of jobs.
#[derive(Clone)]
pub(super) struct Inlet(SyncSender<Job>);

impl Inlet {
    /// Hands in a job.
    pub(super) fn put(&self, job: Job) {
        // It only fails when the thread is gone, which says so itself.
        let _ = self.0.send(job);
    }
}

struct Writer {
    memory: Arc<dyn Memory>,
    /// Entities that are stored.
    known: HashSet<String>,
    counts: Arc<Counts>,
    is_stopping: Arc<AtomicBool>,
    /// The daemon stops, and waiting did not help.
    is_hopeless: bool,
}

/// Contents of one request, each name once.
#[derive(Default)]
struct Basket {
    items: Vec<Item>,
    places: HashMap<String, usize>,
}

struct Item {
    resource: Value,
    /// True if nothing was stored under its name.
    is_new: bool,
}

impl Basket {
    /// A later word about the same takes the place of the earlier.
    fn put(&mut self, name: String, resource: Value, is_new: bool) {
        match self.places.get(&name) {
            Some(&at) => self.items[at].resource = resource,
            None => {
                self.places.insert(name, self.items.len());
                self.items.push(Item { resource, is_new });
            }
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.places.get(name).map(|&at| &self.items[at].resource)
    }

    /// As it is sent. What is new is dated by the memory, which alone knows what its clock is worth, and
    /// dates again what it dated wrongly.
    fn into_resources(self) -> Vec<Value> {
        let resources = self.items.into_iter().map(|Item { mut resource, is_new }| {
            if let Value::Object(members) = &mut resource
                && is_new
            {
                members.remove("createdAt");
            }
            resource
        });
        resources.collect()
    }
}

impl Writer {
    fn work(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut batch = vec![first];
            while batch.len() < MOST_AT_ONCE
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            // A bug of ours in one batch is not the end of all that comes after it.
            if catch_unwind(AssertUnwindSafe(|| self.store(&batch))).is_err() {
                tracing::error!("storing what ROS brought panicked; that is a bug in omird");
                self.counts.refused.fetch_add(batch.len() as u64, Ordering::Relaxed);
            }
        }
    }

    /// Stores a batch, or each of it for itself if the whole is refused.
    fn store(&mut self, batch: &[Job]) {
        let mut pause = PAUSE.0;
        let mut looks = 1;
        loop {
            match self.attempt(batch) {
                Ok(()) => return,
                Err(refusal) if refusal.code.may_pass() => {
                    // The recorder waits for a full disk only once while the daemon stops.
                    let is_stopping = self.is_stopping.load(Ordering::Acquire);
                    if is_stopping && (pause == PAUSE.1 || self.is_hopeless) {
                        self.is_hopeless = true;
                        return self.give_up(batch, &refusal);
                    }
                    tracing::debug!(%refusal, "tried again in a moment");
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE.1);
                }
                Err(_) if looks < LOOKS => {
                    looks += 1;
                    self.forget_known(batch);
                }
                Err(refusal) if batch.len() == 1 => return self.give_up(batch, &refusal),
                Err(_) => return batch.chunks(1).for_each(|job| self.store(job)),
            }
        }
    }

    /// Forgets that the Entities of a batch are stored.
    fn forget_known(&mut self, batch: &[Job]) {
        for job in batch {
            if let Job::Keep(kept) = job {
                for name in kept.about.iter().filter_map(reference) {
                    self.known.remove(&name);
                }
            }
        }
    }

    fn give_up(&self, batch: &[Job], refusal: &Refusal) {
        let more = batch.len() as u64;
        let before = self.counts.refused.fetch_add(more, Ordering::Relaxed);
        let count = before + more;
        // Whatever comes at the rate of messages is logged ever more rarely.
        if before.checked_ilog2() != count.checked_ilog2() {
            tracing::warn!(%refusal, count, "what ROS brought is not stored");
        }
    }

    fn attempt(&mut self, batch: &[Job]) -> Result<(), Refusal> {
        let mut basket = Basket::default();
        let mut entities = HashSet::new();
        let (mut count, mut told_before) = (0, 0);
        for job in batch {
            let (name, is_new, resource) = match job {
                Job::Keep(kept) => {
                    for entity in &kept.about {
                        let Some(name) = reference(entity) else { continue };
                        if self.known.contains(&name) || entities.contains(&name) {
                            continue;
                        }
                        // A damaged Entity exists, and references to it hold.
                        if basket.get(&name).is_none() && self.memory.get(&name)? == Stored::Nothing
                        {
                            basket.put(name.clone(), entity.clone(), true);
                        }
                        entities.insert(name);
                    }
                    let Some(name) = reference(&kept.resource) else { continue };
                    let stored = self.stored(&basket, &name)?;
                    (name, stored.is_none(), folded(stored.as_ref(), kept))
                }
                Job::Tell(untold) => {
                    let name = untold.reference.clone();
                    let stored = self.stored(&basket, &name)?;
                    (name, false, stored.and_then(|stored| with_unreported(&stored, untold)))
                }
            };
            if let Some(resource) = resource {
                basket.put(name, resource, is_new);
                count += 1;
            } else if matches!(job, Job::Keep(_)) {
                told_before += 1;
            }
        }
        if !basket.items.is_empty() {
            self.memory.record(basket.into_resources())?;
            self.counts.stored.fetch_add(count, Ordering::Relaxed);
        }
        self.counts.told_before.fetch_add(told_before, Ordering::Relaxed);
        if self.known.len() + entities.len() > MOST_KNOWN {
            self.known.clear();
        }
        self.known.extend(entities);
        Ok(())
    }

    /// Returns the resource of a name: in this request, or in the memory.
    fn stored(&self, basket: &Basket, name: &str) -> Result<Option<Value>, Refusal> {
        if let Some(resource) = basket.get(name) {
            return Ok(Some(resource.clone()));
        }
        match self.memory.get(name)? {
            Stored::Nothing => Ok(None),
            Stored::Whole(resource) => Ok(Some(numbered(resource))),
            Stored::Damaged(why) => Err(Refusal {
                code: Code::NotFound,
                message: format!("what is stored of {name} is damaged: {why}"),
                path: String::new(),
            }),
        }
    }
}

/// A stored record with the number of its version, which it need not state if it is the first (OMIR R1,
/// MemoryRecord.version): another that came in between is a CONFLICT then.
fn numbered(mut resource: Value) -> Value {
    let is_record = resource.get("resourceType").and_then(Value::as_str) == Some("MemoryRecord");
    if let Value::Object(members) = &mut resource
        && is_record
        && !members.contains_key("version")
    {
        members.insert("version", 1u64);
    }
    resource
}

#[cfg(test)]
mod tests;
