//! Parts that all methods share: the engine, the settings, the table of statistics, and two threads. One fills the table, the
//! other takes the records that another one has overtaken.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::event::EventKind;
use omir_core::model::ExperienceType;
use omir_core::reference::{Ref, ResourceType};
use omir_core::value::Value;
use omird_engine::{Engine, Event, Listening, Query, contain};
use parking_lot::{Mutex, MutexGuard};

use crate::cache::Cache;
use crate::experience::Experience;
use crate::health::{HealthWindow, Indexer};
use crate::ids::{Key, Tenant, key, parse_experience};
use crate::relevance::Relevance;
use crate::resources::Stored;
use crate::settings::ExperienceSettings;
use crate::statistics::{Row, Table};

/// An overtaken record that waits. Called with false it is refused.
struct Job {
    bytes: usize,
    look_again: Box<dyn FnOnce(bool) + Send>,
}

/// The most overtaken records that wait.
const MOST_WAITING: usize = 64;
/// Bytes of them; one alone may be longer.
const MOST_WAITING_BYTES: usize = 8 << 20;
/// The time after which the store is counted again, if some of it could not be read; four times as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The protocol over one engine.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) settings: ExperienceSettings,
    /// The key of pseudonyms.
    pub(crate) key: [u8; 32],
    table: Mutex<Table>,
    indexer: Mutex<Indexer>,
    cache: Mutex<Cache>,
    window: Mutex<HealthWindow>,
    relevance: Mutex<Relevance>,
    waiting: Sender<Job>,
    waiting_bytes: AtomicUsize,
    /// Never sent to: the thread that counts sees that it is gone.
    _alive: Sender<()>,
    listening: OnceLock<Listening>,
}

impl Shared {
    /// Starts the threads.
    pub(crate) fn start(engine: Engine, settings: ExperienceSettings, key: [u8; 32]) -> Arc<Self> {
        let (waiting, overtaken) = bounded(MOST_WAITING);
        let (alive, gone) = bounded(0);
        let table = Mutex::new(Table::new(settings.statistics_bytes));
        let shared = Arc::new(Self {
            engine,
            settings,
            key,
            table,
            indexer: Mutex::new(Indexer::Rebuilding),
            cache: Mutex::default(),
            window: Mutex::default(),
            relevance: Mutex::default(),
            waiting,
            waiting_bytes: AtomicUsize::new(0),
            _alive: alive,
            listening: OnceLock::new(),
        });
        let told = Arc::downgrade(&shared);
        // Before the table is filled, so that nothing is missed in between.
        let listening = shared.engine.events().listen(move |event| {
            if let Some(shared) = told.upgrade() {
                shared.note(event);
            }
        });
        let _ = shared.listening.set(listening);
        let (weak, of_retries) = (Arc::downgrade(&shared), Arc::downgrade(&shared));
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        if let Err(error) = thread("omird-xp-count").spawn(move || count(&weak, &gone)) {
            tracing::error!(%error, "there is no thread that counts experiences; hints go without statistics");
            shared.indexed(Indexer::Failed);
        }
        // A thread of its own: the count of a large store takes its time.
        if let Err(error) =
            thread("omird-xp-retry").spawn(move || look_again(&of_retries, &overtaken))
        {
            tracing::error!(%error, "there is no thread for records that are overtaken; they are refused");
        }
        shared
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    pub(crate) fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock()
    }

    pub(crate) fn window(&self) -> MutexGuard<'_, HealthWindow> {
        self.window.lock()
    }

    pub(crate) fn relevance(&self) -> MutexGuard<'_, Relevance> {
        self.relevance.lock()
    }

    pub(crate) fn indexer(&self) -> Indexer {
        *self.indexer.lock()
    }

    pub(crate) fn indexed(&self, indexer: Indexer) {
        *self.indexer.lock() = indexer;
    }

    /// Returns the tenant's Entity, if every experience of the tenant refers to it. A client of OMIR may have forgotten it: that
    /// takes the references along, and made again it has a later version. Experiences are known by their names then.
    pub(crate) fn home(&self, tenant: &Tenant) -> Option<Ref> {
        Some(tenant.entity()).filter(|home| self.is_first(home))
    }

    /// Returns true if an Entity has been neither changed nor forgotten since it was made.
    fn is_first(&self, entity: &Ref) -> bool {
        matches!(self.engine.live_version(entity), Some((1, _)))
    }

    /// Has an overtaken record look again where it may wait: not on the thread that gives the writer's answers. It is called
    /// with false, at once, where too many wait.
    pub(crate) fn later(&self, bytes: usize, look_again: impl FnOnce(bool) + Send + 'static) {
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel);
        let job = Job { bytes, look_again: Box::new(look_again) };
        let refused = if waiting > 0 && waiting + bytes > MOST_WAITING_BYTES {
            Some(job)
        } else {
            self.waiting.try_send(job).err().map(TrySendError::into_inner)
        };
        if let Some(job) = refused {
            self.waiting_bytes.fetch_sub(bytes, Ordering::AcqRel);
            (job.look_again)(false);
        }
    }

    /// Counts what a commit changed. Called on the thread that gives the writer's answers.
    fn note(&self, event: &Event) {
        if event.target.kind != ResourceType::MemoryRecord {
            return;
        }
        let Some((tenant, key)) = parse_experience(event.target.id.as_str()) else { return };
        match event.kind {
            EventKind::Forgotten => self.table().remove(tenant, &key, event.seq),
            EventKind::Recorded | EventKind::Updated => {
                // An experience that came through `record` is counted already.
                if self.table().seq(tenant, &key).is_some_and(|seq| seq >= event.seq) {
                    return;
                }
                match self.row(&event.resource, tenant, &key, event.seq) {
                    Some(row) => self.table().put(tenant, key, row),
                    None => self.table().remove(tenant, &key, event.seq),
                }
            }
            _ => {}
        }
    }

    /// Fills the table from the store, unless the protocol stops meanwhile, and returns the state that leaves it in.
    fn rebuild(weak: &Weak<Self>) -> Indexer {
        let query = Query {
            types: vec![ResourceType::MemoryRecord],
            experience_types: vec![ExperienceType::Task, ExperienceType::Error],
            ..Query::everything()
        };
        let engine = weak.upgrade().map(|shared| shared.engine.clone());
        let Some(engine) = engine else { return Indexer::Failed };
        let began = Instant::now();
        let (mut count, mut read) = (0_u64, 0_u64);
        let walked = engine.recall_each(&query, |hit| match weak.upgrade() {
            Some(shared) => {
                read += 1;
                count += u64::from(shared.count(&hit.resource));
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        });
        let took = began.elapsed();
        match walked {
            Ok(matches) if read < matches => {
                // The engine leaves out what the card does not give back. What was changed or forgotten meanwhile is not
                // there either: the next count tells the two apart.
                let unread = matches - read;
                tracing::warn!(count, unread, ?took, "some experiences could not be counted");
                Indexer::Incomplete
            }
            Ok(_) => {
                if count > 0 {
                    tracing::info!(count, ?took, "counted the experiences of the store");
                }
                Indexer::Complete
            }
            Err(error) => {
                tracing::error!(%error, "the experiences of the store cannot be counted");
                Indexer::Failed
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
        let Some(row) = self.row(resource, tenant, &key, seq) else { return false };
        let mut table = self.table();
        // Told to forget it meanwhile, the listener has removed it, or does so once the table is free.
        if self.engine.live_version(&target).is_some_and(|(_, now)| now == seq) {
            table.put(tenant, key, row);
        }
        true
    }

    /// Returns what of an experience counts, as the store holds it under the name of this tenant and key. Whatever way it came,
    /// it counts only if it may be a candidate: anybody may write a record with the name or the extension of one.
    fn row(&self, resource: &[u8], tenant: &str, named: &Key, seq: u64) -> Option<Row> {
        let resource = decoded(resource)?;
        let stored = Stored::of(&resource)?;
        let experience = Experience::of(stored.record)?;
        let is_ended = matches!(resource.get("experienceType")?.as_str()?, "task" | "error");
        if !is_ended || key(&[experience.task_id]) != *named {
            return None;
        }
        let home = Ref::new(ResourceType::Entity, format!("xt.{tenant}").parse().ok()?);
        let (text, mentions) = (home.to_string(), resource.get("entityRefs"));
        let is_home = |mention: &Value| mention.get("ref").and_then(Value::as_str) == Some(&text);
        let mut mentions = mentions.and_then(Value::as_array).into_iter().flatten();
        if !mentions.any(is_home) && self.is_first(&home) {
            return None;
        }
        Some(Row::of(&experience, stored.experience_id, &stored.patterns, seq))
    }
}

/// Decodes what the store gives out.
pub(crate) fn decoded(resource: &[u8]) -> Option<Value> {
    cbor::from_slice(resource, &Limits::default()).ok()
}

/// Counts the experiences of the store, again after a pause as long as some of them could not be read.
fn count(shared: &Weak<Shared>, alive: &Receiver<()>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let mut counted = Indexer::Failed;
        contain("the count of experiences", || counted = Shared::rebuild(shared));
        match shared.upgrade() {
            Some(shared) => shared.indexed(counted),
            None => return,
        }
        let is_done = counted == Indexer::Complete;
        // The sender goes with the shared parts.
        if is_done || alive.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        pause = (4 * pause).min(LONGEST_PAUSE);
    }
}

/// Has overtaken records look again, until the shared parts are dropped, and their sender with them.
fn look_again(shared: &Weak<Shared>, waiting: &Receiver<Job>) {
    while let Ok(Job { bytes, look_again }) = waiting.recv() {
        if let Some(shared) = shared.upgrade() {
            shared.waiting_bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
        contain("work on an experience", || look_again(true));
    }
}
