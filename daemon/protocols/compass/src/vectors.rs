//! The thread that has vectors made of memories by a server of models, after they were stored. A store never waits for it, and
//! none fails because of it.
//!
//! It is told of each memory that is written, and at its start, when the settings name another model, and when it was told of more than
//! it could keep in mind, it looks for memories without a vector. So it goes on where it was, whatever happened between.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use omird_embedding::{MAX_DIMS, Vector};
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
const MOST_BYTES: usize = 512 << 10;
/// Bytes by which a memory grows at most: the numbers of its vector in base64, and names.
const VECTOR_BYTES: usize = MAX_DIMS.div_ceil(3) * 4 + 1024;
/// Texts that are refused one by one before the server is taken to refuse everybody, unless it has taken others.
const MOST_SUSPECTS: usize = 4;

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
    /// Bytes of the memory as it is stored.
    bytes: usize,
    whom: Option<For>,
}

/// The memories that wait, and the state of the thread.
#[derive(Default)]
struct Work {
    waiting: VecDeque<Due>,
    /// The model that all of this is about.
    maker: Option<Maker>,
    /// The model that all memories were looked through for.
    looked_for: Option<Maker>,
    /// Memories whose texts the server refuses, or whose vectors the store does.
    refused: HashSet<Due>,
    /// Halves of requests that were refused, to be sent one after the other before anything else.
    parts: VecDeque<VecDeque<Due>>,
    /// Memories whose texts were refused one by one since. They are `refused` once a part is taken: else it refuses everybody.
    suspects: Vec<Due>,
    /// Texts of the largest part that was taken. 0 if none was, so that the server may refuse everybody.
    largest_taken: usize,
    /// Texts that are sent at a time, after more were too many for the server or the money.
    fewer: Option<usize>,
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
                *self = Self::default();
                return;
            };
            if self.maker.as_ref() != Some(&maker) {
                self.begin_with(&maker);
            }
            if shared.told.take_missed() {
                self.looked_for = None;
            }
            let is_idle = self.waiting.is_empty() && self.parts.is_empty();
            if self.looked_for.as_ref() != Some(&maker)
                && is_idle
                && let Err(failure) = self.look(shared, &maker)
            {
                let error = failure.error.message;
                tracing::warn!(error, "memories without a vector could not be looked for");
                return self.rest_for(LONGEST_REST);
            }
            if self.waiting.is_empty() && self.parts.is_empty() {
                self.rest = None;
                return;
            }
            if !self.step(shared, &settings, &maker) {
                return;
            }
        }
    }

    /// Begins with another model, which may take what the one before refused.
    fn begin_with(&mut self, maker: &Maker) {
        self.maker = Some(maker.clone());
        self.refused.clear();
        self.waiting.extend(self.suspects.drain(..));
        self.join();
        (self.largest_taken, self.fewer) = (0, None);
    }

    /// Joins parts with all others that wait.
    fn join(&mut self) {
        while let Some(part) = self.parts.pop_back() {
            part.into_iter().rev().for_each(|due| self.waiting.push_front(due));
        }
    }

    /// Looks through all memories for those without a vector.
    fn look(&mut self, shared: &Shared, maker: &Maker) -> Result<(), Failure> {
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

    /// Takes the memories of the next request, and returns true if they are a part of one that was refused.
    fn next(&mut self, shared: &Shared, maker: &Maker) -> (Vec<Blank>, bool) {
        let limits = shared.engine.settings().limits;
        let mut part = self.parts.pop_front();
        let most = self.fewer.filter(|_| part.is_none()).unwrap_or(MOST_TEXTS);
        // The vectors of one request are one write, which the store bounds too.
        let most = most.min(limits.max_resources).max(1);
        let most_bytes = MOST_BYTES.min(limits.max_payload_bytes);
        let from = part.as_mut().unwrap_or(&mut self.waiting);
        let mut blanks: Vec<Blank> = Vec::new();
        let mut bytes = 0;
        while blanks.len() < most
            && let Some(due) = from.pop_front()
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
                from.push_front(due);
                break;
            }
            bytes += grown;
            blanks.push(blank);
        }
        let is_part = part.is_some();
        if let Some(left) = part.filter(|left| !left.is_empty()) {
            self.parts.push_front(left);
        }
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
                    Ok(()) => self.taken(blanks.len(), is_part),
                    Err(failure) => self.not_written(blanks, is_part, failure),
                },
                Err(why) => self.failed(blanks, is_part, &why),
            }
        };
        self.judge() && goes_on
    }

    /// Notes that a request of so many texts was answered.
    fn taken(&mut self, texts: usize, is_part: bool) -> bool {
        self.rest = None;
        if is_part {
            self.largest_taken = self.largest_taken.max(texts);
        } else {
            // One more each time: the server may take more by now.
            self.fewer = self.fewer.map(|fewer| fewer + 1).filter(|fewer| *fewer < MOST_TEXTS);
        }
        true
    }

    /// Decides about the texts that were refused one by one, once all parts were sent, or so many of them that it is enough.
    fn judge(&mut self) -> bool {
        let refuses_all = self.largest_taken == 0 && self.suspects.len() >= MOST_SUSPECTS;
        if !self.parts.is_empty() && !refuses_all {
            return true;
        }
        let taken = std::mem::take(&mut self.largest_taken);
        let suspects = std::mem::take(&mut self.suspects);
        if taken > 0 {
            if suspects.is_empty() {
                // No text was at fault, but their number.
                self.fewer = Some(taken).filter(|taken| *taken < MOST_TEXTS);
            }
            self.refused.extend(suspects);
            return true;
        }
        if suspects.is_empty() {
            return true;
        }
        // Those behind come first then, so that no text holds up the others.
        self.join();
        self.waiting.extend(suspects);
        self.rest_for(LONGEST_REST);
        false
    }

    /// Lets memories wait for a time.
    fn put_off(&mut self, blanks: Vec<Blank>, is_part: bool, rest: Duration) -> bool {
        let dues = blanks.into_iter().map(|blank| blank.due);
        if is_part {
            self.parts.push_front(dues.collect());
        } else {
            dues.rev().for_each(|due| self.waiting.push_front(due));
        }
        self.rest_for(rest);
        false
    }

    /// Has memories sent in two halves.
    fn split(&mut self, mut blanks: Vec<Blank>) {
        let second = blanks.split_off(blanks.len() / 2);
        for half in [second, blanks].into_iter().filter(|half| !half.is_empty()) {
            self.parts.push_front(half.into_iter().map(|blank| blank.due).collect());
        }
    }

    /// Vectors were made and could not be stated. What the store never takes must not hold up the others.
    fn not_written(&mut self, blanks: Vec<Blank>, is_part: bool, failure: Failure) -> bool {
        let is_for_good =
            matches!(failure.code, Code::InvalidResource | Code::InvalidQuery | Code::TooLarge);
        let error = failure.error.message;
        if !is_for_good {
            let rest = self.next_rest();
            tracing::warn!(error, seconds = rest.as_secs(), "vectors could not be written");
            return self.put_off(blanks, is_part, rest);
        }
        if blanks.len() > 1 {
            self.split(blanks);
            return true;
        }
        tracing::warn!(error, "a memory goes without a vector; words find it");
        self.refused.extend(blanks.into_iter().map(|blank| blank.due));
        true
    }

    /// Returns the pause after a failure, twice as long as that before it.
    fn next_rest(&self) -> Duration {
        self.rest.map_or(REST, |rest| (rest * 2).clamp(REST, LONGEST_REST))
    }

    fn failed(&mut self, blanks: Vec<Blank>, is_part: bool, why: &NoAnswer) -> bool {
        let half = blanks.len() / 2;
        let silent = match why {
            NoAnswer::Capped if half > 0 => {
                // Nobody was asked, and there may be money for half of them.
                if is_part {
                    self.split(blanks);
                } else {
                    self.fewer = Some(half);
                    self.put_off(blanks, is_part, Duration::ZERO);
                    (self.not_before, self.rest) = (None, None);
                }
                return true;
            }
            NoAnswer::Capped => {
                tracing::debug!("there is no money for vectors this month; words find memories");
                self.fewer = None;
                // A shorter text may be within what is left.
                self.waiting.extend(blanks.into_iter().map(|blank| blank.due));
                self.rest_for(LONGEST_REST);
                return false;
            }
            NoAnswer::Silent(silent) => silent,
        };
        let (why, texts) = (&silent.message, blanks.len());
        tracing::warn!(why, texts, "no vectors were made; they are tried again");
        let rest = self.next_rest();
        match silent.why {
            Why::Refused | Why::Unusable if half > 0 => {
                // They may be too many, or one of them may be what the server does not take. So that it is not asked for long
                // where it refuses everybody, texts are not sent one by one from the start.
                self.split(blanks);
                true
            }
            // A single text because the server was away before says nothing about the text: a portal of the network may answer.
            Why::Unusable if !is_part && self.fewer.is_none() => {
                // It was paid for, and would be paid for each time.
                self.refused.extend(blanks.into_iter().map(|blank| blank.due));
                self.rest_for(REST);
                false
            }
            Why::Refused | Why::Unusable => self.suspect(blanks),
            Why::NotAsked => self.put_off(blanks, is_part, rest),
            Why::Down => {
                if half > 0 && !is_part {
                    // It may be too slow for so many.
                    self.fewer = Some(half);
                }
                self.put_off(blanks, is_part, rest)
            }
        }
    }

    /// A text that was sent by itself was refused.
    fn suspect(&mut self, blanks: Vec<Blank>) -> bool {
        self.suspects.extend(blanks.into_iter().map(|blank| blank.due));
        if self.largest_taken > 0 {
            return true;
        }
        self.rest_for(REST);
        false
    }
}

/// Returns a memory that has no vector yet, and `None` if it has one or needs none.
fn blank(shared: &Shared, maker: &Maker, due: &Due) -> Result<Option<Blank>, Failure> {
    let (tenant, id) = due;
    let store = Store::new(&shared.engine, tenant);
    let Some(kept) = store.get_readable::<Memory>(Sort::Memory, id)? else { return Ok(None) };
    if kept.state.archived || maker.has_made(&kept.record) {
        return Ok(None);
    }
    let Memory { tenant, agent_id, task_id, .. } = &kept.state;
    let whom = task_id.as_ref().map(|task| For {
        tenant: tenant.clone(),
        agent: agent_id.clone(),
        task: task.clone(),
    });
    let (bytes, text) = (kept.bytes.len(), kept.record.content);
    Ok(Some(Blank { due: due.clone(), hash: hash_of(&text), text, bytes, whom }))
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
            let Some(kept) = store.get_readable::<Memory>(Sort::Memory, id)? else { continue };
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
    use crate::asking::Silent;

    fn blanks(ids: &[&str]) -> Vec<Blank> {
        let blank = |id: &&str| {
            let due = ("default".to_owned(), (*id).to_owned());
            Blank { due, text: (*id).to_owned(), hash: (*id).to_owned(), bytes: 1, whom: None }
        };
        ids.iter().map(blank).collect()
    }

    fn ids<'d>(all: impl IntoIterator<Item = &'d Due>) -> Vec<&'d str> {
        all.into_iter().map(|(_, id)| id.as_str()).collect()
    }

    fn silent(why: Why) -> NoAnswer {
        NoAnswer::Silent(Silent { message: "no".to_owned(), lost: 0, why })
    }

    /// Fails as one step does.
    fn fail(work: &mut Work, all: &[&str], why: &NoAnswer) -> bool {
        let is_part = !work.parts.is_empty();
        if is_part {
            assert_eq!(ids(&work.parts.pop_front().unwrap()), all);
        }
        let goes_on = work.failed(blanks(all), is_part, why);
        work.judge() && goes_on
    }

    #[test]
    fn a_server_that_refuses_everybody_leaves_nobody_without_a_vector() {
        let mut work = Work::default();
        let refused = silent(Why::Refused);
        assert!(fail(&mut work, &["a", "b", "c", "d", "e", "f", "g", "h"], &refused));
        assert!(fail(&mut work, &["a", "b", "c", "d"], &refused));
        assert!(fail(&mut work, &["a", "b"], &refused));
        for one in ["a", "b"] {
            assert!(!fail(&mut work, &[one], &refused), "nothing was taken: it rests");
            assert_eq!(work.rest, Some(REST));
        }
        assert!(fail(&mut work, &["c", "d"], &refused));
        assert!(!fail(&mut work, &["c"], &refused));
        assert!(!fail(&mut work, &["d"], &refused));
        assert_eq!(work.rest, Some(LONGEST_REST));
        assert_eq!(ids(&work.waiting), ["e", "f", "g", "h", "a", "b", "c", "d"]);
        assert!(work.refused.is_empty() && work.parts.is_empty() && work.suspects.is_empty());
    }

    #[test]
    fn what_is_refused_while_others_are_taken_goes_without() {
        let mut work = Work::default();
        let refused = silent(Why::Refused);
        assert!(fail(&mut work, &["a", "b", "c"], &refused));
        assert!(!fail(&mut work, &["a"], &refused));
        assert!(fail(&mut work, &["b", "c"], &refused));
        assert!(work.refused.is_empty(), "nobody knows yet");
        work.parts.pop_front();
        assert!(work.taken(1, true) && work.judge());
        assert!(fail(&mut work, &["c"], &refused), "the server works: no rest");
        let mut without = ids(&work.refused);
        without.sort_unstable();
        assert_eq!(without, ["a", "c"]);
        assert!(work.waiting.is_empty() && work.fewer.is_none());
    }

    #[test]
    fn after_too_many_fewer_are_sent_and_then_one_more_each_time() {
        let mut work = Work::default();
        assert!(fail(&mut work, &["a", "b", "c", "d"], &silent(Why::Refused)));
        for _ in 0..2 {
            work.parts.pop_front();
            assert!(work.taken(2, true) && work.judge());
        }
        assert_eq!(work.fewer, Some(2));
        assert!(work.taken(2, false));
        assert_eq!(work.fewer, Some(3));
        work.fewer = Some(MOST_TEXTS - 1);
        assert!(work.taken(1, false));
        assert_eq!(work.fewer, None);
        // One that takes too long for all may have the time for some.
        assert!(!fail(&mut work, &["a", "b", "c", "d"], &silent(Why::Down)));
        assert_eq!((work.fewer, work.rest), (Some(2), Some(REST)));
        assert_eq!(ids(&work.waiting), ["a", "b", "c", "d"]);
    }

    #[test]
    fn money_for_some_is_spent_on_them() {
        let mut work = Work::default();
        assert!(fail(&mut work, &["a", "b"], &NoAnswer::Capped), "nobody was asked");
        assert_eq!((work.fewer, ids(&work.waiting)), (Some(1), vec!["a", "b"]));
        work.waiting.pop_front();
        assert!(!fail(&mut work, &["a"], &NoAnswer::Capped));
        assert_eq!((work.fewer, ids(&work.waiting)), (None, vec!["b", "a"]));
        assert_eq!(work.rest, Some(LONGEST_REST));
    }

    #[test]
    fn no_failure_is_followed_by_another_try_at_once() {
        let work = Work { rest: Some(Duration::ZERO), ..Work::default() };
        assert_eq!(work.next_rest(), REST);
        let work = Work { rest: Some(LONGEST_REST), ..Work::default() };
        assert_eq!(work.next_rest(), LONGEST_REST);
    }
}
