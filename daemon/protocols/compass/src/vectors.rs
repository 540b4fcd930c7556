//! The thread that has vectors made of memories by a server of models, after they were stored. A store never waits for it, and
//! none fails because of it.
//!
//! It is told of each memory that is written, and at its start, when the settings name another model, and when it was told of more than
//! it could keep in mind, it looks for memories without a vector. So it goes on where it was, whatever happened between.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use omird_embedding::Vector;
use omird_engine::Code;

use crate::asking::{Patience, REST, Why};
use crate::due::Due;
use crate::embedding::{MOST_TEXTS, Maker, Texts, hash_of};
use crate::failure::Failure;
use crate::names::Sort;
use crate::paying::{self, For, NoAnswer};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::Memory;
use crate::store::{Batch, Kept, Shape, Store, retried};

/// Memories that wait, at most.
const MOST_WAITING: usize = 16_384;
/// The pause after a memory was stored, in which more may come.
const GATHERING: Duration = Duration::from_millis(200);
/// Longest pause after failures that follow each other.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// Most bytes of memories that are written at a time, unless one alone has more.
const MOST_BYTES: usize = 256 << 10;

/// Starts the thread. It ends once the parts that all calls share are dropped.
pub(crate) fn start(shared: &Arc<Shared>) {
    let Some(told) = shared.told.take_end() else { return };
    let shared = Arc::downgrade(shared);
    let thread = std::thread::Builder::new().name("omird-cp-vector".into());
    if let Err(error) = thread.spawn(move || run(&shared, &told)) {
        tracing::error!(%error, "there is no thread that has vectors made; words find memories");
    }
}

fn run(shared: &Weak<Shared>, told: &Receiver<Option<Due>>) {
    let mut work = Work::default();
    let mut first = true;
    loop {
        let wait = if first { Duration::ZERO } else { work.pause() };
        first = false;
        match told.recv_timeout(wait) {
            Ok(one) => {
                std::thread::sleep(GATHERING);
                for one in std::iter::once(one).chain(told.try_iter()) {
                    match one {
                        Some(due) => work.add(due),
                        // What was amiss may be mended by the new settings.
                        None => (work.not_before, work.rest) = (None, None),
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        omird_engine::contain("vectors by a server of models", || work.go_on(&shared));
    }
}

/// A memory without a vector, and its text.
struct Blank {
    due: Due,
    text: String,
    hash: String,
    whom: Option<For>,
}

/// The memories that wait, and the state of the thread.
#[derive(Default)]
struct Work {
    waiting: VecDeque<Due>,
    /// The model that all memories were looked through for.
    looked_for: Option<Maker>,
    /// Memories whose texts the server refuses, or whose vectors the store does.
    refused: HashSet<Due>,
    /// Those that were refused since one by one are sent. They are `refused` once another one is taken: else it refuses everybody.
    suspects: Vec<Due>,
    /// Texts that are sent one by one, because a request with all of them was refused.
    singly: usize,
    /// One of those was taken, so the server does not refuse everybody.
    has_taken: bool,
    not_before: Option<Instant>,
    rest: Option<Duration>,
}

impl Work {
    fn add(&mut self, due: Due) {
        if self.waiting.len() < MOST_WAITING {
            // A text that was refused may be another one now.
            self.refused.remove(&due);
            self.waiting.push_back(due);
        } else {
            self.looked_for = None;
        }
    }

    /// Returns the time for which there is nothing to do unless somebody tells of something.
    fn pause(&self) -> Duration {
        match self.not_before {
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => LONGEST_REST,
        }
    }

    fn rest_for(&mut self, rest: Duration) {
        self.rest = Some(rest);
        self.not_before = Some(Instant::now() + rest);
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
                (self.looked_for, self.rest) = (None, None);
                self.waiting.clear();
                return;
            };
            if shared.told.take_missed() {
                self.looked_for = None;
            }
            if self.looked_for.as_ref() != Some(&maker)
                && self.waiting.is_empty()
                && let Err(failure) = self.look(shared, &maker)
            {
                let error = failure.error.message;
                tracing::warn!(error, "memories without a vector could not be looked for");
                return self.rest_for(LONGEST_REST);
            }
            if self.waiting.is_empty() {
                self.rest = None;
                return;
            }
            if !self.step(shared, &settings, &maker) {
                return;
            }
        }
    }

    /// Looks through all memories for those without a vector.
    fn look(&mut self, shared: &Shared, maker: &Maker) -> Result<(), Failure> {
        if self.looked_for.as_ref().is_some_and(|before| before != maker) {
            self.refused.clear();
        }
        let store = Store::new(&shared.engine, omird_router::DEFAULT_TENANT);
        let mut is_cut = false;
        store.each_of_all(|sketch| {
            let due = (sketch.memory.tenant.clone(), sketch.memory.memory_id.clone());
            if sketch.memory.archived || sketch.has_vector_of(maker) || self.refused.contains(&due)
            {
                return;
            }
            match self.waiting.len() < MOST_WAITING {
                true => self.waiting.push_back(due),
                false => is_cut = true,
            }
        })?;
        self.looked_for = (!is_cut).then(|| maker.clone());
        Ok(())
    }

    /// Has the vectors of the next texts made and stated. Returns false where there is a pause to make.
    fn step(&mut self, shared: &Shared, settings: &Settings, maker: &Maker) -> bool {
        let most = if self.singly > 0 { 1 } else { MOST_TEXTS };
        let mut blanks: Vec<Blank> = Vec::new();
        let mut bytes = 0;
        while let Some(due) = self.waiting.pop_front() {
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
            if !blanks.is_empty() && bytes + blank.text.len() > MOST_BYTES {
                self.waiting.push_front(due);
                break;
            }
            bytes += blank.text.len();
            blanks.push(blank);
            if blanks.len() == most {
                break;
            }
        }
        if blanks.is_empty() {
            return true;
        }
        match made(shared, settings, maker, &blanks) {
            Ok(vectors) => match state_all(shared, maker, &blanks, &vectors) {
                Ok(()) => {
                    self.has_taken = self.singly > 1;
                    self.singly = self.singly.saturating_sub(1);
                    self.refused.extend(self.suspects.drain(..));
                    self.rest = None;
                    true
                }
                Err(failure) => self.not_written(blanks, failure),
            },
            Err(why) => self.failed(blanks, &why),
        }
    }

    /// Lets memories wait for a time.
    fn put_off(&mut self, blanks: Vec<Blank>, rest: Duration) -> bool {
        blanks.into_iter().rev().for_each(|blank| self.waiting.push_front(blank.due));
        self.rest_for(rest);
        false
    }

    /// Vectors were made and could not be stated. What the store never takes must not hold up the others.
    fn not_written(&mut self, blanks: Vec<Blank>, failure: Failure) -> bool {
        let is_for_good =
            matches!(failure.code, Code::InvalidResource | Code::InvalidQuery | Code::TooLarge);
        let error = failure.error.message;
        if !is_for_good {
            let rest = self.next_rest();
            tracing::warn!(error, seconds = rest.as_secs(), "vectors could not be written");
            return self.put_off(blanks, rest);
        }
        if blanks.len() > 1 {
            (self.singly, self.has_taken) = (blanks.len(), false);
            self.put_off(blanks, Duration::ZERO);
            return true;
        }
        tracing::warn!(error, "a memory goes without a vector; words find it");
        self.singly = self.singly.saturating_sub(1);
        self.refused.extend(blanks.into_iter().map(|blank| blank.due));
        true
    }

    /// Returns the pause after a failure, twice as long as that before it.
    fn next_rest(&self) -> Duration {
        self.rest.map_or(REST, |rest| (rest * 2).clamp(REST, LONGEST_REST))
    }

    fn failed(&mut self, blanks: Vec<Blank>, why: &NoAnswer) -> bool {
        let silent = match why {
            NoAnswer::Capped => {
                tracing::debug!("there is no money for vectors this month; words find memories");
                return self.put_off(blanks, LONGEST_REST);
            }
            NoAnswer::Silent(silent) => silent,
        };
        let rest = self.next_rest();
        let why = &silent.message;
        tracing::warn!(why, seconds = rest.as_secs(), "no vectors were made; they are tried again");
        match silent.why {
            Why::Refused | Why::Unusable if blanks.len() > 1 => {
                // One of them may be what the server does not take.
                (self.singly, self.has_taken) = (blanks.len(), false);
                self.put_off(blanks, REST)
            }
            Why::Unusable if self.singly == 0 => {
                // It was paid for, and would be paid for each time.
                self.refused.extend(blanks.into_iter().map(|blank| blank.due));
                self.rest_for(REST);
                false
            }
            Why::Refused | Why::Unusable => self.suspect(blanks),
            // The server rests, or all its places are taken: it did not fail once more.
            Why::NotAsked => self.put_off(blanks, REST),
            Why::Down => self.put_off(blanks, rest),
        }
    }

    /// A text that was sent by itself was refused. If none of those sent so is taken, the server refuses everybody.
    fn suspect(&mut self, blanks: Vec<Blank>) -> bool {
        self.singly = self.singly.saturating_sub(1);
        self.suspects.extend(blanks.into_iter().map(|blank| blank.due));
        if self.singly > 0 {
            self.rest_for(REST);
            return false;
        }
        let suspects = std::mem::take(&mut self.suspects);
        if std::mem::take(&mut self.has_taken) {
            self.refused.extend(suspects);
            self.rest_for(REST);
            return false;
        }
        suspects.into_iter().rev().for_each(|due| self.waiting.push_front(due));
        self.rest_for(LONGEST_REST);
        false
    }
}

/// Returns a memory that has no vector yet, and `None` if it has one or needs none.
fn blank(shared: &Shared, maker: &Maker, due: &Due) -> Result<Option<Blank>, Failure> {
    let (tenant, id) = due;
    let store = Store::new(&shared.engine, tenant);
    let Some(kept) = store.get::<Memory>(Sort::Memory, id)? else { return Ok(None) };
    if kept.state.archived || maker.has_made(&kept.record) {
        return Ok(None);
    }
    let Memory { tenant, agent_id, task_id, .. } = &kept.state;
    let whom = task_id.as_ref().map(|task| For {
        tenant: tenant.clone(),
        agent: agent_id.clone(),
        task: task.clone(),
    });
    let text = kept.record.content;
    Ok(Some(Blank { due: due.clone(), hash: hash_of(&text), text, whom }))
}

/// Returns a vector for each text: those that are kept in mind, and the others from the server.
fn made(
    shared: &Shared,
    settings: &Settings,
    maker: &Maker,
    blanks: &[Blank],
) -> Result<Vec<Vector>, NoAnswer> {
    let known: Vec<Option<Vector>> =
        blanks.iter().map(|blank| shared.cache.get(maker, &blank.hash)).collect();
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
        let whom = blanks.iter().find_map(|blank| blank.whom.as_ref());
        let patience = Patience::long(settings);
        new = paying::ask(shared, settings, server, &texts, &patience, whom).answer?;
    }
    let new: HashMap<&str, Vector> =
        unknown.iter().map(|blank| blank.hash.as_str()).zip(new).collect();
    let mut all = Vec::with_capacity(blanks.len());
    for (blank, known) in blanks.iter().zip(known) {
        let Some(vector) = known.or_else(|| new.get(blank.hash.as_str()).cloned()) else { break };
        shared.cache.put(maker, &blank.hash, vector.clone());
        all.push(vector);
    }
    Ok(all)
}

/// States vectors on their memories, all in one write.
fn state_all(
    shared: &Shared,
    maker: &Maker,
    blanks: &[Blank],
    vectors: &[Vector],
) -> Result<(), Failure> {
    let Some(first) = blanks.first() else { return Ok(()) };
    // The name of a memory knows its tenant; a write knows none.
    let writer = Store::new(&shared.engine, &first.due.0);
    retried(|| {
        let mut batch = Batch::default();
        for (blank, vector) in blanks.iter().zip(vectors) {
            let (tenant, id) = &blank.due;
            let store = Store::new(&shared.engine, tenant);
            let Some(kept) = store.get::<Memory>(Sort::Memory, id)? else { continue };
            // It says something else by now, and waits for that once more.
            let is_as_it_was = hash_of(&kept.record.content) == blank.hash;
            if is_as_it_was && !kept.state.archived && !maker.has_made(&kept.record) {
                state_one(&store, &mut batch, &kept, maker, blank, vector)?;
            }
        }
        if !batch.is_empty() {
            writer.commit(batch)?;
        }
        Ok(())
    })
}

fn state_one(
    store: &Store,
    batch: &mut Batch,
    kept: &Kept<Memory>,
    maker: &Maker,
    blank: &Blank,
    vector: &Vector,
) -> Result<(), Failure> {
    let state = kept.state.with_vector(kept.version);
    let shape = Shape {
        vector: Some(maker.stated(vector.clone(), &blank.hash)),
        ..Shape::of(&kept.record)
    };
    store.change(batch, kept, &state, &shape)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank(id: &str) -> Vec<Blank> {
        let due = ("default".to_owned(), id.to_owned());
        vec![Blank { due, text: id.to_owned(), hash: id.to_owned(), whom: None }]
    }

    fn ids(all: impl IntoIterator<Item = Due>) -> Vec<String> {
        all.into_iter().map(|(_, id)| id).collect()
    }

    #[test]
    fn a_server_that_refuses_everybody_leaves_nobody_without_a_vector() {
        let mut work = Work { singly: 2, ..Work::default() };
        work.suspect(blank("a"));
        work.suspect(blank("b"));
        assert_eq!(ids(work.waiting), ["a", "b"]);
        assert!(work.refused.is_empty());
        assert_eq!(work.rest, Some(LONGEST_REST));
    }

    #[test]
    fn what_is_refused_while_others_are_taken_goes_without() {
        let mut work = Work { singly: 1, has_taken: true, ..Work::default() };
        work.suspect(blank("a"));
        assert_eq!(ids(work.refused), ["a"]);
        assert!(work.waiting.is_empty());
    }

    #[test]
    fn no_failure_is_followed_by_another_try_at_once() {
        let work = Work { rest: Some(Duration::ZERO), ..Work::default() };
        assert_eq!(work.next_rest(), REST);
        let work = Work { rest: Some(LONGEST_REST), ..Work::default() };
        assert_eq!(work.next_rest(), LONGEST_REST);
    }
}
