//! The thread that has vectors made of memories by a server of models, after they were stored. A store never waits for it, and
//! none fails because of it.
//!
//! It is told of each memory that is written, and at its start, when the settings name another model, and when it was told of more than
//! it could keep in mind, it looks for memories without a vector. So it goes on where it was, whatever happened between.

mod backlog;
mod write;

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use omird_embedding::{MAX_DIMS, Vector};

use self::backlog::{Backlog, LONGEST_REST};
use self::write::state_all;
use crate::failure::Failure;
use crate::model::embedding::{Maker, Texts, hash_of};
use crate::model::server::Patience;
use crate::money::paying::{self, NoAnswer, Requester};
use crate::names::Sort;
use crate::queues::vectors::Due;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::Memory;
use crate::store::Store;

/// The pause after a memory was stored, in which more may come.
const GATHERING: Duration = Duration::from_millis(200);
/// Most bytes of memories that are written at a time, unless one alone has more.
const MOST_BYTES: usize = 512 << 10;
/// Bytes by which a memory grows at most: the numbers of its vector in base64, and names.
const VECTOR_BYTES: usize = MAX_DIMS.div_ceil(3) * 4 + 1024;

/// Starts the thread. It ends once the parts that all calls share are dropped.
pub(crate) fn start(shared: &Arc<Shared>) {
    let Some(told) = shared.vector_queue.take_end() else { return };
    let shared = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("omird-cp-vector".into());
    if let Err(error) = thread.spawn(move || run(&shared, &told)) {
        tracing::error!(%error, "there is no thread that has vectors made; words find memories");
    }
}

fn run(shared: &Weak<Shared>, told: &Receiver<Option<Due>>) {
    let mut state = ThreadState::default();
    let mut first = true;
    loop {
        let wait = if first { Duration::ZERO } else { state.pause() };
        first = false;
        match told.recv_timeout(wait) {
            Ok(one) => {
                std::thread::sleep(GATHERING);
                for one in std::iter::once(one).chain(told.try_iter()) {
                    match one {
                        Some(due) => state.add(due),
                        // The new settings may have mended the fault.
                        None => {
                            state.not_before = None;
                            state.backlog.recover();
                        }
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        omird_engine::contain("vectors by a server of models", || state.go_on(&shared));
    }
}

/// A memory without a vector, and its text.
struct Blank {
    due: Due,
    text: String,
    hash: String,
    /// Bytes of the memory as it is stored.
    bytes: usize,
    requester: Option<Requester>,
}

/// The state of the thread.
#[derive(Default)]
struct ThreadState {
    backlog: Backlog,
    /// The model that the backlog is about.
    maker: Option<Maker>,
    /// The model that all memories were looked through for.
    looked_for: Option<Maker>,
    not_before: Option<Instant>,
}

impl ThreadState {
    fn add(&mut self, due: Due) {
        if !self.backlog.add(due) {
            self.looked_for = None;
        }
    }

    /// Returns the time for which there is nothing to do unless a change is told.
    fn pause(&self) -> Duration {
        match self.not_before {
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => LONGEST_REST,
        }
    }

    /// Makes the pause of the backlog.
    fn rest(&mut self) {
        self.not_before = self.backlog.take_pause().map(|pause| Instant::now() + pause);
    }

    fn go_on(&mut self, shared: &Shared) {
        if self.not_before.is_some_and(|until| Instant::now() < until) {
            return;
        }
        self.not_before = None;
        loop {
            // The settings may have become others meanwhile.
            let settings = shared.settings();
            let maker = Maker::of(&settings).filter(|_| !shared.engine.settings().read_only);
            let Some(maker) = maker else {
                *self = Self::default();
                return;
            };
            if self.maker.as_ref() != Some(&maker) {
                self.maker = Some(maker.clone());
                self.backlog.begin();
            }
            if shared.vector_queue.take_missed() {
                self.looked_for = None;
            }
            let is_idle = self.backlog.is_empty();
            if self.looked_for.as_ref() != Some(&maker)
                && is_idle
                && let Err(failure) = self.look(shared, &maker)
            {
                let error = failure.error.message;
                tracing::warn!(error, "memories without a vector could not be looked for");
                self.backlog.rest_for(LONGEST_REST);
                return self.rest();
            }
            if self.backlog.is_empty() {
                return self.backlog.recover();
            }
            if !self.step(shared, &settings, &maker) {
                return self.rest();
            }
        }
    }

    /// Looks through all memories for those without a vector.
    fn look(&mut self, shared: &Shared, maker: &Maker) -> Result<(), Failure> {
        let store = Store::new(&shared.engine, omird_router::DEFAULT_TENANT);
        let mut is_cut = false;
        store.each_of_all(|sketch| {
            let due = (sketch.memory.tenant.clone(), sketch.memory.memory_id.clone());
            let is_due = !sketch.memory.archived && !sketch.has_vector_of(maker);
            if is_due && !self.backlog.add_unknown(due) {
                is_cut = true;
            }
        })?;
        self.looked_for = (!is_cut).then(|| maker.clone());
        Ok(())
    }

    /// Takes the memories of the next request, and returns true if they are a part of one that was refused.
    fn next(&mut self, shared: &Shared, maker: &Maker) -> (Vec<Blank>, bool) {
        let limits = shared.engine.settings().limits;
        let (is_part, most) = self.backlog.next_request();
        // The vectors of one request are one write, which the store bounds too.
        let most = most.min(limits.max_resources).max(1);
        let most_bytes = MOST_BYTES.min(limits.max_payload_bytes);
        let mut blanks: Vec<Blank> = Vec::new();
        let mut bytes = 0;
        while blanks.len() < most
            && let Some(due) = self.backlog.pop()
        {
            if blanks.iter().any(|blank| blank.due == due) {
                // It was told of twice.
                continue;
            }
            let blank = match blank(shared, maker, &due) {
                Ok(Some(blank)) => blank,
                Ok(None) => continue,
                Err(failure) => {
                    tracing::debug!(error = failure.error.message, "a memory cannot be read");
                    continue;
                }
            };
            let grown = blank.bytes + VECTOR_BYTES;
            if !blanks.is_empty() && bytes + grown > most_bytes {
                self.backlog.push(due);
                break;
            }
            bytes += grown;
            blanks.push(blank);
        }
        self.backlog.end_request();
        (blanks, is_part)
    }

    /// Has the vectors of the next texts made and stated. Returns false where there is a pause to make.
    fn step(&mut self, shared: &Shared, settings: &Settings, maker: &Maker) -> bool {
        let (blanks, is_part) = self.next(shared, maker);
        let goes_on = if blanks.is_empty() {
            true
        } else {
            match made(shared, settings, maker, &blanks) {
                Ok(vectors) => match state_all(shared, maker, &blanks, &vectors) {
                    Ok(()) => self.backlog.taken(blanks.len(), is_part),
                    Err(failure) => self.backlog.not_written(dues(blanks), is_part, failure),
                },
                Err(why) => self.backlog.failed(dues(blanks), is_part, &why),
            }
        };
        self.backlog.judge() && goes_on
    }
}

fn dues(blanks: Vec<Blank>) -> Vec<Due> {
    blanks.into_iter().map(|blank| blank.due).collect()
}

/// Returns a memory that has no vector yet, and `None` if it has one or needs none.
fn blank(shared: &Shared, maker: &Maker, due: &Due) -> Result<Option<Blank>, Failure> {
    let (tenant, id) = due;
    let store = Store::new(&shared.engine, tenant);
    let Some(stored) = store.get_readable::<Memory>(Sort::Memory, id)? else { return Ok(None) };
    if stored.state.archived || maker.has_made(&stored.record) {
        return Ok(None);
    }
    let Memory { tenant, agent_id, task_id, .. } = &stored.state;
    let requester = task_id.as_ref().map(|task| Requester {
        tenant: tenant.clone(),
        agent: agent_id.clone(),
        task: task.clone(),
    });
    let (bytes, text) = (stored.bytes.len(), stored.record.content);
    Ok(Some(Blank { due: due.clone(), hash: hash_of(&text), text, bytes, requester }))
}

/// Returns a vector for each text: those that are kept in mind, and the others from the server.
fn made(
    shared: &Shared,
    settings: &Settings,
    maker: &Maker,
    blanks: &[Blank],
) -> Result<Vec<Vector>, NoAnswer> {
    let known: Vec<Option<Vector>> =
        blanks.iter().map(|blank| shared.vector_cache.get(maker, &blank.hash)).collect();
    // Of texts that are alike one is sent.
    let mut unknown: Vec<&Blank> = Vec::new();
    for (blank, _) in blanks.iter().zip(&known).filter(|(_, known)| known.is_none()) {
        if unknown.iter().all(|one| one.hash != blank.hash) {
            unknown.push(blank);
        }
    }
    let texts: Vec<&str> = unknown.iter().map(|blank| blank.text.as_str()).collect();
    let mut new = Vec::new();
    if let Some(server) = shared.embedder().filter(|_| !unknown.is_empty())
        && let Some(texts) = Texts::of(settings, &texts)
    {
        let requester = blanks.iter().find_map(|blank| blank.requester.as_ref());
        let patience = Patience::long(settings);
        new = paying::ask(shared.purse(), settings, server, &texts, &patience, requester).answer?;
    }
    let new: HashMap<&str, Vector> =
        unknown.iter().map(|blank| blank.hash.as_str()).zip(new).collect();
    let mut all = Vec::with_capacity(blanks.len());
    for (blank, known) in blanks.iter().zip(known) {
        let Some(vector) = known.or_else(|| new.get(blank.hash.as_str()).cloned()) else { break };
        shared.vector_cache.put(maker, &blank.hash, vector.clone());
        all.push(vector);
    }
    Ok(all)
}
