//! Parts that all methods share: the engine, the settings, the table of statistics and the thread that rebuilds it.

use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::event::EventKind;
use omir_core::model::ExperienceType;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::Value;
use omird_engine::{Engine, Event, Listening, Query, contain};

use crate::cache::Cache;
use crate::experience::Experience;
use crate::health::{Indexer, Pulse};
use crate::ids::parse_experience;
use crate::resources::Stored;
use crate::settings::ExperienceSettings;
use crate::statistics::{Row, Table};

/// Work for the thread that may wait where others may not.
type Job = Box<dyn FnOnce() + Send>;

/// The protocol over one engine.
pub(crate) struct Service {
    pub(crate) engine: Engine,
    pub(crate) settings: ExperienceSettings,
    /// The key of pseudonyms.
    pub(crate) key: [u8; 32],
    table: Mutex<Table>,
    indexer: Mutex<Indexer>,
    /// Told when the table is complete.
    indexed: Condvar,
    cache: Mutex<Cache>,
    pulse: Mutex<Pulse>,
    jobs: Sender<Job>,
    listening: OnceLock<Listening>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// Starts the thread, which fills the table first.
    pub(crate) fn start(engine: Engine, settings: ExperienceSettings, key: [u8; 32]) -> Arc<Self> {
        let (jobs, queue) = unbounded();
        let table = Mutex::new(Table::new(settings.statistics_bytes));
        let service = Arc::new(Self {
            engine,
            settings,
            key,
            table,
            indexer: Mutex::new(Indexer::Rebuilding),
            indexed: Condvar::new(),
            cache: Mutex::default(),
            pulse: Mutex::default(),
            jobs,
            listening: OnceLock::new(),
        });
        let told = Arc::downgrade(&service);
        // Before the table is filled, so that nothing is missed in between.
        let listening = service.engine.events().listen(move |event| {
            if let Some(service) = told.upgrade() {
                service.note(event);
            }
        });
        let _ = service.listening.set(listening);
        let weak = Arc::downgrade(&service);
        let thread = std::thread::Builder::new().name("omird-experience".into());
        if let Err(error) = thread.spawn(move || run(&weak, &queue)) {
            tracing::error!(%error, "there is no thread that counts experiences; hints go without statistics");
            service.indexed(Indexer::Failed);
        }
        service
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        locked(&self.table)
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        locked(&self.cache)
    }

    pub(crate) fn pulse(&self) -> MutexGuard<'_, Pulse> {
        locked(&self.pulse)
    }

    pub(crate) fn indexer(&self) -> Indexer {
        *locked(&self.indexer)
    }

    /// Waits until the table counts everything, at most until `deadline`.
    pub(crate) fn wait_indexed(&self, deadline: Instant) {
        let patience = deadline.saturating_duration_since(Instant::now());
        let indexer = locked(&self.indexer);
        let is_made = |indexer: &mut Indexer| *indexer == Indexer::Rebuilding;
        let _ = self.indexed.wait_timeout_while(indexer, patience, is_made);
    }

    fn indexed(&self, indexer: Indexer) {
        *locked(&self.indexer) = indexer;
        self.indexed.notify_all();
    }

    /// Has work done where it may wait: not on the thread that gives the writer's answers.
    pub(crate) fn later(&self, job: impl FnOnce() + Send + 'static) {
        // Where the thread is gone the job is dropped, and whoever waits for it is told of a bug.
        let _ = self.jobs.send(Box::new(job));
    }

    /// Counts what a commit changed. Called on the thread that gives the writer's answers.
    fn note(&self, event: &Event) {
        if event.target.kind != ResourceType::MemoryRecord {
            return;
        }
        let Some((tenant, key)) = parse_experience(event.target.id.as_str()) else { return };
        match event.kind {
            EventKind::Forgotten => self.table().remove(tenant, &key),
            EventKind::Recorded | EventKind::Updated => {
                // What came through `record` is counted already.
                if self.table().seq(tenant, &key).is_some_and(|seq| seq >= event.seq) {
                    return;
                }
                match row(&event.resource, event.seq) {
                    Some(row) => self.table().put(tenant, key, row),
                    None => self.table().remove(tenant, &key),
                }
            }
            _ => {}
        }
    }

    /// Fills the table from the store, unless the service goes meanwhile.
    fn rebuild(weak: &Weak<Self>) {
        let query = Query {
            types: vec![ResourceType::MemoryRecord],
            experience_types: vec![ExperienceType::Task, ExperienceType::Error],
            ..Query::everything()
        };
        let Some(engine) = weak.upgrade().map(|service| service.engine.clone()) else { return };
        let began = Instant::now();
        let mut count = 0_u64;
        let walked = engine.recall_each(&query, |hit| match weak.upgrade() {
            Some(service) => {
                count += u64::from(service.count(&hit.resource));
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        });
        let Some(service) = weak.upgrade() else { return };
        match walked {
            Ok(_) => {
                let took = began.elapsed();
                if count > 0 {
                    tracing::info!(count, ?took, "counted the experiences of the store");
                }
                service.indexed(Indexer::Complete);
            }
            Err(error) => {
                tracing::error!(%error, "the experiences of the store cannot be counted");
                service.indexed(Indexer::Failed);
            }
        }
    }

    /// Counts a stored resource, if it is an experience.
    fn count(&self, resource: &[u8]) -> bool {
        let Some(id) = omird_engine::id_of(resource) else { return false };
        let Some((tenant, key)) = parse_experience(&id) else { return false };
        let Ok(id) = id.parse() else { return false };
        let target = Ref::new(ResourceType::MemoryRecord, id);
        let Some((_, seq)) = self.engine.live_version(&target) else { return false };
        let Some(row) = row(resource, seq) else { return false };
        let mut table = self.table();
        // Told to forget it meanwhile, the listener has removed it, or does so once the table is free.
        if self.engine.live_version(&target).is_some_and(|(_, now)| now == seq) {
            table.put(tenant, key, row);
        }
        true
    }
}

/// Returns what of an experience counts, as the store holds it.
fn row(resource: &[u8], seq: u64) -> Option<Row> {
    let resource = decoded(resource)?;
    let stored = Stored::of(&resource)?;
    let experience = Experience::of(stored.record)?;
    Some(Row::of(&experience, stored.experience_id, &stored.patterns, seq))
}

/// Decodes what the store gives out.
pub(crate) fn decoded(resource: &[u8]) -> Option<Value> {
    cbor::from_slice(resource, &Limits::default()).ok()
}

fn run(service: &Weak<Service>, queue: &Receiver<Job>) {
    contain("the count of experiences", || Service::rebuild(service));
    if let Some(service) = service.upgrade()
        && service.indexer() == Indexer::Rebuilding
    {
        service.indexed(Indexer::Failed);
    }
    // Ends when the service is gone, and its sender with it.
    while let Ok(job) = queue.recv() {
        contain("work on an experience", job);
    }
}

/// The time that is left for waiting of what is left for everything.
pub(crate) fn half_of(deadline: Instant, now: Instant) -> Instant {
    now + deadline.saturating_duration_since(now).min(Duration::from_secs(3600)) / 2
}
