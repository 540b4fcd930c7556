//! Hands what the rules keep to the memory, on a thread of its own and several at a time: one sync of the
//! disk for all that waits.
//!
//! What a rule has kept is not dropped any more. If the memory is busy or its disk is full, it is tried
//! again; meanwhile the queue fills, whoever fills it waits, and the subscriptions drop by their depth.
//!
//! A fault inside the memory may be that of the disk, which passes, or of one thing whose stored version
//! cannot be read, which does not. So what meets one is set aside for a while: if others are stored
//! meanwhile, it was not the disk, and it is tried a last time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use omir_core::value::Value;

use crate::memory::{Memory, Refusal};
use crate::rules::{Kept, Untold, folded, told};

/// Memories that may wait for the disk.
const QUEUE: usize = 1024;
/// Memories in one request.
const MOST_AT_ONCE: usize = 256;
/// Entities that are known to be stored, so that nobody asks again; then the list begins anew.
const MOST_KNOWN: usize = 10_000;
/// What is set aside at most.
const MOST_ASIDE: usize = 64;
/// How often something that meets a fault is tried before it is set aside.
const TRIES: u32 = 3;
/// The pause before something is tried again: from, and up to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// What is to be stored.
#[derive(Debug, Clone)]
pub(super) enum Job {
    /// A memory.
    Keep(Box<Kept>),
    /// How often something was seen again.
    Tell(Untold),
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Memories that are durable.
    pub(super) stored: AtomicU64,
    /// Memories that were refused for good.
    pub(super) refused: AtomicU64,
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
        let desk = Desk {
            memory,
            known: HashSet::new(),
            counts: counts.clone(),
            is_stopping: is_stopping.clone(),
            aside: Vec::new(),
            is_hopeless: false,
        };
        let thread = std::thread::Builder::new()
            .name("omird-ros2-rec".into())
            .spawn(move || desk.work(&jobs))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), is_stopping, counts })
    }

    /// From here on nobody waits long for a disk that takes nothing.
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

/// Where jobs are handed in.
#[derive(Clone)]
pub(super) struct Inlet(SyncSender<Job>);

impl Inlet {
    /// Hands in a job.
    pub(super) fn put(&self, job: Job) {
        // It only fails when the thread is gone, which says so itself.
        let _ = self.0.send(job);
    }
}

struct Desk {
    memory: Arc<dyn Memory>,
    /// Entities that are stored.
    known: HashSet<String>,
    counts: Arc<Counts>,
    is_stopping: Arc<AtomicBool>,
    /// What met a fault.
    aside: Vec<Job>,
    /// The daemon stops, and waiting did not help.
    is_hopeless: bool,
}

/// What goes into one request, each name once.
#[derive(Default)]
struct Basket {
    resources: Vec<Value>,
    places: HashMap<String, usize>,
}

impl Basket {
    /// A later word about the same takes the place of the earlier.
    fn put(&mut self, name: String, resource: Value) {
        match self.places.get(&name) {
            Some(&at) => self.resources[at] = resource,
            None => {
                self.places.insert(name, self.resources.len());
                self.resources.push(resource);
            }
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.places.get(name).map(|&at| &self.resources[at])
    }
}

impl Desk {
    fn work(mut self, jobs: &Receiver<Job>) {
        loop {
            let next = match self.aside.is_empty() {
                true => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => jobs.recv_timeout(PAUSE.1),
            };
            let mut batch = match next {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => {
                    self.try_what_is_aside(false);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            while batch.len() < MOST_AT_ONCE
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
            self.store(&batch);
        }
        for job in std::mem::take(&mut self.aside) {
            let job = std::slice::from_ref(&job);
            if let Err(refusal) = self.attempt(job) {
                self.give_up(job, &refusal);
            }
        }
    }

    /// Stores a batch, or each of it for itself if the whole is refused.
    fn store(&mut self, batch: &[Job]) {
        let mut pause = PAUSE.0;
        for tries in 1.. {
            match self.attempt(batch) {
                Ok(true) => return self.try_what_is_aside(true),
                Ok(false) => return,
                Err(refusal)
                    if refusal.is_fault() && tries >= TRIES && self.aside.len() < MOST_ASIDE =>
                {
                    match batch {
                        [job] => self.aside.push(job.clone()),
                        _ => batch.chunks(1).for_each(|job| self.store(job)),
                    }
                    return;
                }
                Err(refusal) if refusal.may_pass() => {
                    // When the daemon stops nobody waits for a disk that is full, but once.
                    let is_stopping = self.is_stopping.load(Ordering::Acquire);
                    if is_stopping && (pause == PAUSE.1 || self.is_hopeless) {
                        self.is_hopeless = true;
                        return self.give_up(batch, &refusal);
                    }
                    tracing::debug!(%refusal, "tried again in a moment");
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(PAUSE.1);
                }
                Err(refusal) if batch.len() == 1 => return self.give_up(batch, &refusal),
                Err(_) => return batch.chunks(1).for_each(|job| self.store(job)),
            }
        }
    }

    /// Tries again what met a fault. If something else was stored meanwhile, the memory works: what still
    /// meets a fault is at fault itself.
    fn try_what_is_aside(&mut self, mut works: bool) {
        for job in std::mem::take(&mut self.aside) {
            match self.attempt(std::slice::from_ref(&job)) {
                Ok(is_stored) => works |= is_stored,
                Err(refusal) if works && (refusal.is_fault() || !refusal.may_pass()) => {
                    self.give_up(&[job], &refusal);
                }
                Err(_) => self.aside.push(job),
            }
        }
    }

    fn give_up(&self, batch: &[Job], refusal: &Refusal) {
        self.counts.refused.fetch_add(batch.len() as u64, Ordering::Relaxed);
        tracing::warn!(%refusal, memories = batch.len(), "what ROS brought is not stored");
    }

    /// Whether anything had to be stored, and was.
    fn attempt(&mut self, batch: &[Job]) -> Result<bool, Refusal> {
        let mut basket = Basket::default();
        let mut entities = Vec::new();
        let mut count = 0;
        for job in batch {
            let resource = match job {
                Job::Keep(kept) => {
                    for entity in &kept.about {
                        let Some(name) = reference(entity) else { continue };
                        if self.known.contains(&name) || entities.contains(&name) {
                            continue;
                        }
                        if basket.get(&name).is_none() && self.memory.get(&name)?.is_none() {
                            basket.put(name.clone(), entity.clone());
                        }
                        entities.push(name);
                    }
                    let name = reference(&kept.resource);
                    let stored = match &name {
                        Some(name) if !kept.is_new => self.stored(&basket, name)?,
                        _ => None,
                    };
                    folded(stored.as_ref(), kept)
                }
                Job::Tell(untold) => {
                    let stored = self.stored(&basket, &untold.reference)?;
                    stored.and_then(|stored| told(&stored, untold))
                }
            };
            if let Some(resource) = resource
                && let Some(name) = reference(&resource)
            {
                basket.put(name, resource);
                count += 1;
            }
        }
        let is_any = !basket.resources.is_empty();
        if is_any {
            self.memory.remember(basket.resources, None)?;
            self.counts.stored.fetch_add(count, Ordering::Relaxed);
        }
        if self.known.len() + entities.len() > MOST_KNOWN {
            self.known.clear();
        }
        self.known.extend(entities);
        Ok(is_any)
    }

    /// What there is under a name: in this request, or in the memory.
    fn stored(&self, basket: &Basket, name: &str) -> Result<Option<Value>, Refusal> {
        match basket.get(name) {
            Some(resource) => Ok(Some(resource.clone())),
            None => self.memory.get(name),
        }
    }
}

/// `Type/id` of a resource.
fn reference(resource: &Value) -> Option<String> {
    let text = |name| resource.get(name).and_then(Value::as_str);
    Some(format!("{}/{}", text("resourceType")?, text("id")?))
}

#[cfg(test)]
mod tests;
