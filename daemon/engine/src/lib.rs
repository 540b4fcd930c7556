//! The engine: one store, one writer, any number of readers. Every protocol adapts to this and
//! holds no logic of its own.
//!
//! Where something is found is the business of [`index`], which questions there are and what answers them that of
//! [`recall`]. Bytes on disk are those of `omird-store`.

pub mod asked;
pub mod backup;
pub mod budget;
pub mod chore;
pub mod clock;
pub mod command;
pub mod compaction;
mod contained;
pub mod doubt;
pub mod error;
pub mod events;
mod explain;
pub mod export;
mod farewells;
pub mod health;
mod importing;
pub mod index;
pub mod integrity;
pub mod merge;
pub mod plan;
pub mod precondition;
pub mod pressure;
mod proof;
mod publisher;
pub mod reading;
pub mod rebase;
pub mod recall;
mod reconfigure;
pub mod request;
mod reserve;
mod scrubbing;
mod sealing;
pub mod settings;
mod settle;
mod shared;
pub mod stamp;
pub mod status;
#[cfg(test)]
mod store_tests;
pub mod sweep;
#[cfg(test)]
mod testing;
mod time;
pub mod upkeep;
mod view;
pub mod wear;
mod writer;

use omird_store as store;
use omird_store::{PRODUCER, disk, sync};

use std::borrow::Cow;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};
use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::Value;

use self::command::{Change, Receipt, Reply};
use self::compaction::Compactor;
use self::events::Events;
use self::health::Part;
use self::importing::ImportPermits;
use self::integrity::OnFinding;
use self::merge::Precedence;
use self::pressure::Pressure;
use self::publisher::publish_in_background;
use self::reserve::Reserve;
use self::scrubbing::Scrubber;
use self::sealing::{Closed, SealOrder, Sealer, seal_in_background};
use self::settings::{Durability, RequestLimits, Settings};
use self::shared::Shared;
use self::time::Time;
use self::writer::{Message, Writer};
use crate::clock::{Clock, ClockState};
use crate::disk::{Counted, Disk, Pooled, ReadFault, Steady, Usage};
use crate::error::{Code, Error};
use crate::index::catalog::Catalog;
use crate::recall::frames::{Frames, in_fixed_frame};
use crate::recall::query::Query;
use crate::store::cache::Cache;
use crate::store::derived::Derived;
use crate::store::keys;
use crate::store::mending::Mender;
use crate::store::recovery::{self, Damage, Progress, Unsealed};
use crate::store::segment;
use crate::store::signature::DeviceKey;
use crate::store::transaction::{Op, Transaction};
use crate::store::wal::{self, LogError};
use crate::sync::{ReadGuard, RwLock};

pub use self::contained::OnBroken;
pub use self::contained::contain;
pub use self::importing::{ImportPermit, NotAdmitted};
pub use self::view::{Found, Hit, Recall, Unread, id_of};

/// How many segments are open at once, besides one for each thread that reads: a few of the 1024
/// descriptors that a process usually gets.
const OPEN_FILES: usize = 64;

/// What an engine is built from: everything outside it is handed in.
pub struct Parts {
    /// The data folder.
    pub disk: Arc<dyn Disk>,
    /// Where the index may be kept; without it every start rebuilds.
    pub index: Option<Box<dyn Derived>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who signs segments.
    pub key: DeviceKey,
    /// Random bits for ids.
    pub random: Box<dyn Fn() -> u128 + Send + Sync>,
    /// How to run.
    pub settings: Settings,
    /// Who hears of events, from the first on.
    pub events: Events,
}

/// Why a change was not queued: the queue is full.
fn busy() -> Error {
    let message = "too many requests are waiting for the disk; try again in a moment";
    Error::new(Code::Busy, message)
}

/// Why a change was not queued: nobody takes it any more.
fn stopping() -> Error {
    Error::new(Code::Internal, "the daemon is stopping")
}

/// Why there is no answer to a change that was queued.
pub fn unanswered() -> Error {
    let message = "a bug ended the daemon's work on this change: it is not known whether it was made; look, or send \
                   it again";
    Error::new(Code::Internal, message)
}

/// Files that earlier starts set aside, but for those that this one found damaged.
fn set_aside(disk: &dyn Disk, found: &[Damage]) -> Vec<String> {
    let mut files = Vec::new();
    for dir in [segment::DIR, wal::DIR, keys::DIR] {
        let names = disk.list(dir).unwrap_or_default();
        let damaged = names.iter().filter_map(|name| name.strip_suffix(".damaged"));
        let damaged = damaged.map(|name| format!("{dir}/{name}"));
        files.extend(damaged.filter(|file| found.iter().all(|damage| damage.file != *file)));
    }
    files.iter().map(|file| format!("{file}.damaged")).collect()
}

/// What an adapter has to tell in `status`.
pub type Section = Box<dyn Fn() -> Option<Value> + Send + Sync>;

/// A running engine. Cloning gives another handle; the last one to go stops it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    catalog: Arc<RwLock<Catalog>>,
    shared: Arc<Shared>,
    /// Gone once the engine is told to stop. The writer takes what was sent before, and ends when nobody
    /// can send any more: so each message is answered.
    queue: Mutex<Option<Sender<Message>>>,
    random: Box<dyn Fn() -> u128 + Send + Sync>,
    disk: Arc<dyn Disk>,
    started: Instant,
    boots: u64,
    damage: Vec<Damage>,
    /// What earlier starts set aside and still lies there.
    set_aside: Vec<String>,
    rebuilt: u64,
    /// Who knows where frames are, if anybody does.
    frames: OnceLock<Arc<dyn Frames>>,
    /// What adapters have to tell in `status`.
    sections: Mutex<Vec<(&'static str, Section)>>,
    /// Who signs, in hex.
    public_key: String,
    imports: ImportPermits,
    events: Events,
    /// Held by whoever prepares a backup.
    backing_up: Mutex<()>,
    announced: Mutex<sweep::Announced>,
    /// Wakes the sweeping thread, and ends it when it is dropped.
    sweeping: Mutex<Option<Sender<()>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Recovers the store and starts the engine on it.
    ///
    /// # Errors
    /// If the data folder cannot be read or written at all. Damage to single files is no error: it
    /// is reported by [`Engine::damage`] and the rest is served.
    pub fn open(parts: Parts, progress: &mut dyn FnMut(Progress)) -> io::Result<Self> {
        let Parts { disk, index, clock, key, random, settings, events } = parts;
        let settings = settings.for_its_card(disk.space().ok().map(|space| space.total));
        let mounting = disk.mounting()?;
        // Beside the counters: it is no part of what is stored.
        let mut reserve = Reserve::of(disk.clone(), settings.flash.reserve_bytes);
        let usage = Arc::new(Usage::default());
        let counted = Arc::new(Counted::new(disk, usage.clone()));
        // Who counts what cannot be read comes into being only after the first reads.
        let watcher: Arc<OnceLock<Arc<Shared>>> = Arc::default();
        let on_fault = {
            let watcher = watcher.clone();
            move |fault: ReadFault, error: &io::Error| {
                if let Some(shared) = watcher.get() {
                    shared.unread(fault, error);
                }
            }
        };
        let steady = Arc::new(Steady::new(counted.clone(), Arc::new(on_fault)));
        // The pool is outermost: what it keeps open is opened anew where that helps.
        let disk: Arc<dyn Disk> = Arc::new(Pooled::new(steady, OPEN_FILES));
        let cache = index.map_or_else(Cache::none, Cache::new);
        let mut cache = cache.keeping(settings.index_from_bytes);
        let mut found =
            recovery::recover::<Catalog>(&*disk, &mut cache, settings.segment_bytes, progress)?;
        for dir in [segment::DIR, wal::DIR] {
            counted.survey(dir)?;
        }

        let boots = found.boots + 1;
        let time = Time::new(clock, boots, found.latest, &found.mark).knowing(found.stamps);
        // Once the leftovers of a cut are gone, and before anything takes their room.
        let kept = reserve.keep();
        let shared =
            Shared::new(time, &found.mark, usage, settings.clone(), reserve, found.repaired);
        let shared = Arc::new(shared);
        shared.index_bytes.store(cache.size_on_disk(), Ordering::Relaxed);
        let _ = watcher.set(shared.clone());
        let (now, at) = (shared.time.moment().now, shared.time.order());
        let log_has_news = !found.log.is_empty();
        let log_began = found.log_began.unwrap_or_else(|| shared.time.history());
        let ops = vec![Op::Boot { count: boots }, Op::Mark(shared.mark())];
        let boot = Transaction { seq: found.next_seq, at, ops };
        let mut payload = Vec::new();
        boot.encode(&mut payload);
        found.log.stage(&payload);
        // On a disk that is full or read-only the store still opens, for reading.
        let booted = match found.log_refused {
            Some(error) => Err(LogError::Broken(error)),
            None => found.log.write().and_then(|_| match settings.durability {
                Durability::Sync => found.log.sync(),
                Durability::Interval(_) | Durability::None => Ok(()),
            }),
        };
        let mut next_seq = found.next_seq;
        let mut log_is_sound = true;
        match booted {
            Ok(()) => {
                next_seq += 1;
                shared.time.advance(at);
            }
            Err(error) => {
                log_is_sound = matches!(error, LogError::Refused(_));
                let (LogError::Broken(error) | LogError::Refused(error)) = error;
                tracing::warn!(%error, "this start could not be logged");
                shared.trouble(&*disk, Part::Log, &error);
            }
        }
        if log_is_sound && let Err(error) = kept {
            shared.trouble(&*disk, Part::Log, &error);
        }

        shared.segments.store(found.segments.len() as u64, Ordering::Relaxed);
        found.catalog.set_fading(settings.forgetting.fading());
        found.catalog.refresh_glances(now.as_micros());
        let mender = Arc::new(Mender::new(disk.clone()));
        found.catalog.files.mended_by(mender.clone());
        let catalog = Arc::new(RwLock::new(found.catalog));
        let (queue, receiver) = crossbeam_channel::bounded(settings.queue_requests);
        let (publisher, deliveries) = crossbeam_channel::unbounded();
        let (sealing, orders) = crossbeam_channel::unbounded();
        // Together, not one by one: those that are due become one segment.
        let closed = |log: Unsealed| Closed { at, log };
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
            bytes_written: shared.usage.written.clone(),
        };
        let allowance = {
            let shared = shared.clone();
            move || upkeep::Allowance {
                may_write: shared.budget().may_write(),
                is_short: shared.pressure().bytes_to_free() > 0,
                full: None,
            }
        };
        let compactor = Compactor::new(&settings, Box::new(allowance));
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
            log: found.log,
            log_first: found.log_first,
            log_has_changes: found.log_has_changes,
            log_has_news,
            log_is_sound,
            log_began,
            mounting,
            next_seq,
            last_sync: Instant::now(),
            touched: std::collections::HashMap::new(),
            touched_bonds: std::collections::HashSet::new(),
            last_touch_flush: Instant::now(),
            last_mark: Instant::now(),
            last_glance: Instant::now(),
            settling: None,
        };
        let for_status = writer.disk.clone();
        let set_aside = set_aside(&*for_status, &found.damage);
        let (waiting, broken) = (writer.queue.clone(), shared.broken.clone());
        let on_broken = move || {
            broken.note("omird-writer");
            // A message in a channel lives as long as it has senders: whoever waits for an answer hears that none comes.
            waiting.into_iter().for_each(drop);
        };
        let threads = vec![
            contained::spawn("omird-writer", move || writer.run(), on_broken)?,
            publish_in_background(deliveries, events.clone(), &shared.broken)?,
            seal_in_background(sealer, compactor, scrubber, orders, shared.clone())?,
        ];
        let (sweeping, stop) = crossbeam_channel::bounded(1);
        let inner = Arc::new(Inner {
            catalog,
            shared,
            queue: Mutex::new(Some(queue)),
            random,
            disk: for_status,
            started: Instant::now(),
            boots,
            set_aside,
            damage: found.damage,
            rebuilt: found.rebuilt,
            frames: OnceLock::new(),
            sections: Mutex::default(),
            public_key,
            imports: ImportPermits::default(),
            events,
            backing_up: Mutex::default(),
            announced: Mutex::default(),
            sweeping: Mutex::new(Some(sweeping)),
            threads: Mutex::new(threads),
        });
        if let Some(thread) = sweep::sweep_in_background(&inner, stop)? {
            inner.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(Self { inner })
    }

    /// Lets recalls be asked in any frame that `frames` knows. Only the first to be named counts.
    pub fn follow_frames(&self, frames: Arc<dyn Frames>) {
        let _ = self.inner.frames.set(frames);
    }

    /// Where to listen to what is committed.
    pub fn events(&self) -> &Events {
        &self.inner.events
    }

    /// Names who is told, once, that the writer or the publisher ended by a panic; at once if one has already. From then
    /// on nothing is taken any more, and what was acknowledged is durable: stop, and start anew.
    pub fn on_broken(&self, tell: OnBroken) {
        self.inner.shared.broken.tell(tell);
    }

    /// Names who is told of each file that is found damaged from now on, and what became of it; called on the thread
    /// that seals.
    pub fn on_finding(&self, tell: OnFinding) {
        self.inner.shared.integrity.tell(tell);
    }

    /// Adds a member to `status`; it lacks while `section` gives none.
    pub fn tell_of(&self, name: &'static str, section: Section) {
        let mut sections = self.inner.sections.lock().unwrap_or_else(PoisonError::into_inner);
        sections.push((name, section));
    }

    /// The query in the frame that memories lie in.
    fn placed<'q>(&self, query: &'q Query) -> Result<Cow<'q, Query>, Error> {
        let framed = self.framed(query);
        Ok(self.moved(&framed)?.map_or(framed, Cow::Owned))
    }

    /// The query with the frame it means where it names none.
    fn framed<'q>(&self, query: &'q Query) -> Cow<'q, Query> {
        let has_place = query.near.is_some() || query.within.is_some();
        if query.frame.is_some() || !has_place {
            return Cow::Borrowed(query);
        }
        let frame = Some(self.settings().fixed_frame.clone());
        Cow::Owned(Query { frame, ..query.clone() })
    }

    /// The query in the fixed frame, if its own is another that is tied to that.
    fn moved(&self, query: &Query) -> Result<Option<Query>, Error> {
        self.inner.frames.get().map_or(Ok(None), |frames| in_fixed_frame(query, &**frames))
    }

    /// Whether the place that is asked about is told from where a frame is right now, so that a moment later it is
    /// another one.
    ///
    /// # Errors
    /// `INVALID_QUERY` where nobody knows the frame that is asked in.
    pub fn goes_by_place(&self, query: &Query) -> Result<bool, Error> {
        Ok(self.moved(&self.framed(query))?.is_some())
    }

    /// The newest transaction by which something was recorded or forgotten.
    pub fn newest(&self) -> u64 {
        self.catalog().newest()
    }

    /// What the last start found damaged.
    pub fn damage(&self) -> &[Damage] {
        &self.inner.damage
    }

    /// How many index blocks the last start had to make anew.
    pub fn rebuilt(&self) -> u64 {
        self.inner.rebuilt
    }

    /// How the engine runs as of now.
    pub fn settings(&self) -> Arc<Settings> {
        self.inner.shared.settings()
    }

    /// Which memory this is, also after it was copied or moved: the public key of what signs its segments, in
    /// hexadecimal. Another one on the same robot, or another robot of the same name, has another; two that began
    /// as copies of one card have the same.
    pub fn identity(&self) -> &str {
        &self.inner.public_key
    }

    /// How much lies on the card beside what may.
    pub fn pressure(&self) -> Pressure {
        self.inner.shared.pressure()
    }

    /// The time to date by, and how far it can be trusted.
    pub fn now(&self) -> (Timestamp, ClockState) {
        self.inner.shared.now()
    }

    /// An id nobody else has.
    pub fn new_id(&self) -> String {
        request::random_id((self.inner.random)())
    }

    /// Counts a refused request, for `status`.
    pub fn note_rejected(&self) {
        self.inner.shared.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Decodes what a client wants remembered: a resource, an array, or a Bundle. `key` is the key
    /// it was put on, if it was.
    ///
    /// # Errors
    /// `INVALID_RESOURCE` with a JSON Pointer, or `TOO_LARGE`.
    pub fn prepare(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        key: Option<&Ref>,
    ) -> Result<Change, Error> {
        self.admit(payload.len(), false)?;
        let limits = &self.settings().limits;
        Ok(Change::Remember(self.take(payload, encoding, key, limits, None, false)?))
    }

    /// As [`Engine::prepare`], of what another clock says was sent at `sent`: a missing `createdAt`
    /// is that, where it can be believed.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    pub fn prepare_sent(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        key: Option<&Ref>,
        sent: Timestamp,
    ) -> Result<Change, Error> {
        self.admit(payload.len(), false)?;
        let limits = &self.settings().limits;
        Ok(Change::Remember(self.take(payload, encoding, key, limits, Some(sent), false)?))
    }

    /// Decodes what a client wants merged into what is stored. A name that comes twice counts once.
    ///
    /// # Errors
    /// As [`Engine::prepare`], with bounds of its own, and `BUSY` while another large one is under way.
    pub fn prepare_merge(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        precedence: Precedence,
    ) -> Result<Change, Error> {
        self.prepare_admitted(None, payload, encoding, precedence)
    }

    /// As [`Engine::prepare_merge`], with the permit that [`Engine::admit`] gave, if it gave one.
    ///
    /// # Errors
    /// As [`Engine::prepare_merge`].
    pub fn prepare_admitted(
        &self,
        permit: Option<ImportPermit>,
        payload: &[u8],
        encoding: request::Encoding,
        precedence: Precedence,
    ) -> Result<Change, Error> {
        let permit = match permit {
            Some(permit) => Some(permit),
            None => self.admit(payload.len(), true)?,
        };
        let limits = self.settings().limits.for_import();
        let prepared = self.take(payload, encoding, None, &limits, None, true)?;
        Ok(Change::Merge(prepared, precedence, permit))
    }

    fn take(
        &self,
        payload: &[u8],
        encoding: request::Encoding,
        key: Option<&Ref>,
        limits: &RequestLimits,
        sent: Option<Timestamp>,
        merging: bool,
    ) -> Result<Vec<request::Prepared>, Error> {
        let around = limits.around_resources();
        let value = request::decode(payload, encoding, &around, Code::InvalidResource)?;
        let time = &self.inner.shared.time;
        let moment = time.moment();
        let doubt = time.doubt_now(&moment);
        let is_shared = doubt.is_none() && !time.is_simulated();
        let sent = sent.filter(|sent| is_shared && doubt::believable(*sent, moment.now));
        let now = sent.unwrap_or(moment.now);
        let new_id = || self.new_id();
        request::Intake { limits, now, doubt, new_id: &new_id, key, merging }.take(value)
    }

    /// # Errors
    /// `UNAUTHORIZED` if the daemon is configured read-only.
    fn check_writable(&self) -> Result<(), Error> {
        if self.settings().read_only {
            let message = "this daemon is configured read-only (access.read_only)";
            return Err(Error::new(Code::Unauthorized, message));
        }
        Ok(())
    }

    /// Hands a change to the writer. `reply` is called once it is as durable as the settings
    /// promise, or refused; at once, on this thread, if it cannot even be queued.
    pub fn submit(&self, change: Change, bytes: usize, reply: Reply) {
        let shared = &self.inner.shared;
        if let Err(error) = self.check_writable() {
            return reply(Err(error));
        }
        if let Some(error) = shared.broken.refusal() {
            return reply(Err(error));
        }
        // A large import waits for its turn and not for room in the queue, which is for what a robot remembers
        // meanwhile.
        let bytes = if matches!(change, Change::Merge(_, _, Some(_))) { 0 } else { bytes };
        let queued = shared.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        // A request larger than the bound may pass when nothing else waits.
        if queued > 0 && queued + bytes > self.settings().queue_bytes {
            shared.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
            return reply(Err(busy()));
        }
        shared.accepted.fetch_add(1, Ordering::AcqRel);
        match self.try_send(Message::Change { change, bytes, reply }) {
            Ok(()) => {}
            Err(error) => {
                shared.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
                shared.accepted.fetch_sub(1, Ordering::AcqRel);
                let (message, error) = match error {
                    TrySendError::Full(message) => (message, busy()),
                    TrySendError::Disconnected(message) => (message, stopping()),
                };
                if let Message::Change { reply, .. } = message {
                    reply(Err(error));
                }
            }
        }
    }

    /// The way to the writer, until the engine is told to stop. Not to be kept: the writer waits for it.
    fn queue(&self) -> Option<Sender<Message>> {
        self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[expect(
        clippy::result_large_err,
        reason = "what is not taken goes back to who sent it, as from the queue itself"
    )]
    fn try_send(&self, message: Message) -> Result<(), TrySendError<Message>> {
        match self.queue() {
            Some(queue) => queue.try_send(message),
            None => Err(TrySendError::Disconnected(message)),
        }
    }

    /// Makes a change and waits for its receipt.
    ///
    /// # Errors
    /// As [`Engine::submit`] replies.
    pub fn execute(&self, change: Change) -> Result<Receipt, Error> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let reply = Box::new(move |result| {
            let _ = sender.send(result);
        });
        self.submit(change, 0, reply);
        receiver.recv().unwrap_or_else(|_| Err(unanswered()))
    }

    /// Waits until everything that was queued before is committed, at most `patience`; returns whether it is.
    ///
    /// A client that puts and then gets over one connection reads what it wrote.
    pub fn settle(&self, patience: Duration) -> bool {
        let shared = &self.inner.shared;
        let target = shared.accepted.load(Ordering::Acquire);
        let began = Instant::now();
        let mut pause = Duration::from_micros(20);
        while shared.committed.load(Ordering::Acquire) < target {
            if began.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
        true
    }

    fn catalog(&self) -> ReadGuard<'_, Catalog> {
        self.inner.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Seals what is there and stops all threads. Returns when everything is on the disk. Of a
    /// compaction only the run under way is waited for, of a sweep only the slice.
    pub fn stop(&self) {
        self.inner.shared.is_stopping.store(true, Ordering::Release);
        self.inner.sweeping.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let threads =
            std::mem::take(&mut *self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic in it was told of when it happened.
            let _ = thread.join();
        }
    }
}
