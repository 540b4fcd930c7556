//! The start of an engine: the layers over the disk, recovery, the record of this start, and the threads.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Instant;

use omir_core::instant::Timestamp;
use omird_store::{
    Cache, Derived, DeviceKey, Log, LogError, MEMORY_DIRS, Mender, Op, RwLock, StartProgress,
    Transaction, Unsealed, recover,
};
use parking_lot::Mutex;

use crate::card::health::Part;
use crate::card::reserve::Reserve;
use crate::contained;
use crate::disk::{Disk, Metered, Pooled, ReadFault, RetryReads, Usage};
use crate::engine::{Engine, Inner};
use crate::index::catalog::Catalog;
use crate::ingest::importing::ImportPermits;
use crate::settings::{Durability, Settings};
use crate::shared::Shared;
use crate::time::clock::Clock;
use crate::time::timeline::Time;
use crate::upkeep::compaction::Compactor;
use crate::upkeep::embedding::embed_in_background;
use crate::upkeep::policy::Allowance;
use crate::upkeep::scrubbing::Scrubber;
use crate::upkeep::sealing::{Sealer, seal_in_background};
use crate::upkeep::sweep;
use crate::write::events::Events;
use crate::write::orders::{Closed, SealOrder};
use crate::write::publisher::publish_in_background;
use crate::write::writer::{OpenLog, PendingTouches, Writer};

/// Most segments open at once, besides one for each thread that reads: a few of the 1024
/// descriptors that a process usually gets.
const OPEN_FILES: usize = 64;

/// Dependencies of an engine, for [`Engine::open`].
pub struct Parts {
    /// The data folder.
    pub disk: Arc<dyn Disk>,
    /// The store of the kept index. Without it every start rebuilds the index.
    pub index: Option<Box<dyn Derived>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The key that signs segments.
    pub key: DeviceKey,
    /// Random bits for ids.
    pub random: Box<dyn Fn() -> u128 + Send + Sync>,
    /// The settings.
    pub settings: Settings,
    /// The listeners for events.
    pub events: Events,
}

impl Engine {
    /// Recovers the store and starts the engine on it.
    ///
    /// # Errors
    /// If the data folder cannot be read or written at all. Damage to single files is no error: the
    /// log and `status` report it, and the rest is served.
    pub fn open(parts: Parts, progress: &mut dyn FnMut(StartProgress)) -> io::Result<Self> {
        let Parts { disk, index, clock, key, random, settings, events } = parts;
        let settings = settings.for_its_card(disk.space().ok().map(|space| space.total));
        let mount_generation = disk.mount_generation()?;
        // Beside the counters: it is no part of what is stored.
        let mut reserve = Reserve::of(disk.clone(), settings.flash.reserve_bytes);
        let Layers { disk, metered, usage, watcher } = Layers::over(disk);
        let cache = index.map_or_else(Cache::none, Cache::new);
        let mut cache = cache.keeping(settings.index_from_bytes);
        let mut found = recover::<Catalog>(&*disk, &mut cache, settings.segment_bytes, progress)?;
        for dir in MEMORY_DIRS {
            metered.survey(dir)?;
        }

        let boots = found.boots + 1;
        let time = Time::new(clock, boots, found.latest, &found.mark).knowing(found.stamps);
        // Once the leftovers of a cut are gone, and before anything takes their room.
        let kept = reserve.keep();
        let shared =
            Shared::new(time, &found.mark, usage, settings.clone(), reserve, found.repaired);
        let shared = Arc::new(shared);
        shared.sealed.index_bytes.store(cache.size_on_disk(), Ordering::Relaxed);
        shared.sealed.segments.store(found.segments.len() as u64, Ordering::Relaxed);
        let _ = watcher.set(shared.clone());
        let log_has_news = !found.log.is_empty();
        let log_began = found.log_began.unwrap_or_else(|| shared.time.history());
        let start = Start { seq: found.next_seq, boots, refused: found.log_refused };
        let start = start.log(&mut found.log, &shared, &*disk);
        if start.log_is_sound
            && let Err(error) = kept
        {
            shared.faults.refused(&*disk, Part::Log, &error);
        }

        let mender = Arc::new(Mender::new(disk.clone()));
        found.catalog.text.set_language(settings.language);
        found.catalog.vectors = shared.vectors.clone();
        found.catalog.set_fusion(settings.fusion);
        found.catalog.set_fading(settings.forgetting.fading());
        found.catalog.refresh_score_bounds(start.now.as_micros());
        found.catalog.files.mended_by(mender.clone());
        let catalog = Arc::new(RwLock::new(found.catalog));
        catalog.write().files.located_by(Arc::new(Arc::downgrade(&catalog)));
        let (queue, receiver) = crossbeam_channel::bounded(settings.queue_requests);
        let (publisher, deliveries) = crossbeam_channel::unbounded();
        let (sealing, orders) = crossbeam_channel::unbounded();
        // Together, not one by one: those that are due become one segment.
        let closed = |log: Unsealed| Closed { at: start.at, log };
        let unsealed = found.unsealed.into_iter().map(closed).collect();
        let _ = sealing.send(SealOrder::Seal(unsealed));
        let public_key = key.public_hex();
        let sealer = Sealer {
            disk: disk.clone(),
            catalog: catalog.clone(),
            key,
            cache,
            next: found.next_segment,
            previous: found.previous,
            pieces: found.segments,
            leftovers: found.leftovers,
            boots,
            bytes_written: shared.odometer.usage.written.clone(),
        };
        let compactor = Compactor::new(&settings, allowance_of(&shared));
        let bare = found.bare.into_iter().collect();
        let scrubber = Scrubber::new(mender, !settings.read_only, bare);
        let writer = Writer {
            shared: shared.clone(),
            catalog: catalog.clone(),
            disk: disk.clone(),
            settings: shared.settings(),
            queue: receiver,
            publisher,
            sealing,
            log: OpenLog {
                file: found.log,
                first: found.log_first,
                has_changes: found.log_has_changes,
                has_news: log_has_news,
                is_sound: start.log_is_sound,
                began: log_began,
                mount_generation,
                last_sync: Instant::now(),
                last_look: Instant::now(),
                is_to_close: false,
            },
            next_seq: start.next_seq,
            touches: PendingTouches {
                records: HashMap::new(),
                bonds: HashSet::new(),
                last_flush: Instant::now(),
            },
            last_mark: Instant::now(),
            last_bounds_refresh: Instant::now(),
            redating: None,
        };
        let threads = vec![
            write_in_background(writer)?,
            publish_in_background(deliveries, events.clone(), &shared.broken)?,
            seal_in_background(sealer, compactor, scrubber, orders, shared.clone())?,
            embed_in_background(shared.clone(), catalog.clone(), disk.clone())?,
        ];
        let (sweeping, stop) = crossbeam_channel::bounded(1);
        let inner = Arc::new(Inner {
            catalog,
            shared,
            queue: Mutex::new(Some(queue)),
            random,
            disk,
            started: Instant::now(),
            boots,
            set_aside: found.set_aside,
            damage: found.damage,
            rebuilt: found.rebuilt,
            last_before: found.next_seq.saturating_sub(1),
            began_with: (start.next_seq > found.next_seq).then_some(found.next_seq),
            frames: OnceLock::new(),
            sections: Mutex::default(),
            public_key,
            imports: ImportPermits::default(),
            events,
            backing_up: Mutex::default(),
            proving: Mutex::default(),
            announced: Mutex::default(),
            sweeping: Mutex::new(Some(sweeping)),
            threads: Mutex::new(threads),
        });
        if let Some(thread) = sweep::sweep_in_background(&inner, stop)? {
            inner.threads.lock().push(thread);
        }
        Ok(Self { inner })
    }
}

/// The disk as the engine uses it.
struct Layers {
    /// The outermost layer.
    disk: Arc<dyn Disk>,
    /// The layer that counts, for the files that are never opened.
    metered: Arc<Metered>,
    usage: Arc<Usage>,
    /// The listener for failed reads. It comes into being only after the first reads.
    watcher: Arc<OnceLock<Arc<Shared>>>,
}

impl Layers {
    fn over(disk: Arc<dyn Disk>) -> Self {
        let usage = Arc::new(Usage::default());
        let metered = Arc::new(Metered::new(disk, usage.clone()));
        let watcher: Arc<OnceLock<Arc<Shared>>> = Arc::default();
        let on_fault = {
            let watcher = watcher.clone();
            move |fault: ReadFault, error: &io::Error| {
                if let Some(shared) = watcher.get() {
                    shared.faults.unread(fault, error);
                }
            }
        };
        let retrying = Arc::new(RetryReads::new(metered.clone(), Arc::new(on_fault)));
        // The pool is outermost: what it keeps open is opened again where that helps.
        let disk: Arc<dyn Disk> = Arc::new(Pooled::new(retrying, OPEN_FILES));
        Self { disk, metered, usage, watcher }
    }
}

/// A start that is not logged yet.
struct Start {
    seq: u64,
    boots: u64,
    /// The reason why the log may not be written on.
    refused: Option<io::Error>,
}

/// A start after it was logged, or not.
struct Started {
    now: Timestamp,
    at: Timestamp,
    next_seq: u64,
    log_is_sound: bool,
}

impl Start {
    /// Logs this start. On a disk that is full or read-only the store still opens, for reading.
    fn log(self, log: &mut Log, shared: &Shared, disk: &dyn Disk) -> Started {
        let (now, at) = (shared.time.moment().now, shared.time.order());
        let ops = vec![Op::Boot { count: self.boots }, Op::Mark(shared.mark())];
        let mut payload = Vec::new();
        Transaction { seq: self.seq, at, ops }.encode(&mut payload);
        log.stage(&payload);
        let logged = match self.refused {
            Some(error) => Err(LogError::Broken(error)),
            None => log.write().and_then(|_| match shared.settings().durability {
                Durability::Sync => log.sync(),
                Durability::Interval(_) | Durability::None => Ok(()),
            }),
        };
        match logged {
            Ok(()) => {
                shared.time.advance(at);
                Started { now, at, next_seq: self.seq + 1, log_is_sound: true }
            }
            Err(error) => {
                let log_is_sound = matches!(error, LogError::Refused(_));
                let (LogError::Broken(error) | LogError::Refused(error)) = error;
                tracing::warn!(%error, "this start could not be logged");
                shared.faults.refused(disk, Part::Log, &error);
                Started { now, at, next_seq: self.seq, log_is_sound }
            }
        }
    }
}

/// Returns what compaction may do to the card, as of each call.
fn allowance_of(shared: &Arc<Shared>) -> Box<dyn Fn() -> Allowance + Send> {
    let shared = shared.clone();
    Box::new(move || Allowance {
        may_write: shared.odometer.budget().may_write(),
        is_short: shared.quota_usage().bytes_to_free() > 0,
        full: None,
    })
}

/// Starts the thread of the writer.
fn write_in_background(writer: Writer) -> io::Result<JoinHandle<()>> {
    let (waiting, broken) = (writer.queue.clone(), writer.shared.broken.clone());
    let on_broken = move || {
        broken.note("omird-writer");
        // A message in a channel lives as long as it has senders. Dropped, it tells its sender that no answer comes.
        waiting.into_iter().for_each(drop);
    };
    contained::spawn("omird-writer", move || writer.run(), on_broken)
}
