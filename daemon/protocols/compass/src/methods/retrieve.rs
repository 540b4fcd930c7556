//! `memory.retrieve`: candidates from the store, ranked by six factors, with every critical memory that is related to the
//! question.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};
use omird_text::{Claim, sentences};

use crate::call::Call;
use crate::compress::LANGUAGE;
use crate::failure::Failure;
use crate::methods::shown;
use crate::methods::understood::understood;
use crate::names::Sort;
use crate::score::{self, Parts, RecentErrors, Weights};
use crate::similarity::{Candidate, Vectors, similarities};
use crate::state::{ErrorRecord, Memory, Task};
use crate::store::{Search, Sketch, Stored, Understood};
use crate::words::{MemoryType, StageType};

/// Candidates of each search, at most. All of them are scored, so their order is exact.
const MOST_CANDIDATES: usize = 100;
/// Hits that a search looks at, at most, if fewer answers than asked for are among the first [`MOST_CANDIDATES`], because
/// archived memories or those of other types are in their way: the best by words, or the newest.
const MOST_MET_BY_WORDS: usize = 10_000;
const MOST_MET_BY_TIME: usize = 1000;
/// Errors of a task that memories are compared with.
const MOST_ERRORS: usize = 20;
/// Similarity from which on a critical memory is related to the question.
const RELATED: f64 = 0.1;
/// The similarity of each memory if there is no question.
const NO_QUERY: f64 = 0.5;
/// Sentences of a memory that are compared with those of another.
const MOST_COMPARED: usize = 20;

/// A question, with its filters.
#[derive(Debug, Clone)]
pub(crate) struct RetrieveRequest<'q> {
    pub(crate) query: Option<&'q str>,
    pub(crate) k: usize,
    pub(crate) types: Vec<MemoryType>,
    /// Only memories of this stage.
    pub(crate) stage_id: Option<&'q str>,
    /// The type of stage whose relevance counts; by default that of the task's current stage.
    pub(crate) stage_type: Option<StageType>,
    pub(crate) min_score: f64,
    pub(crate) archived: bool,
    /// Critical memories that must be among the answers take none of the `k` places.
    pub(crate) critical_beside: bool,
}

impl RetrieveRequest<'_> {
    /// Returns true if a memory may be a candidate: it is of a type that was asked for, and not archived unless archived ones
    /// were asked for.
    fn admits(&self, memory: &Memory) -> bool {
        (self.archived || !memory.archived)
            && (self.types.is_empty() || self.types.contains(&memory.memory_type))
    }
}

/// A memory with its score.
#[derive(Debug, Clone)]
pub(crate) struct Ranked {
    pub(crate) stored: Stored<Memory>,
    pub(crate) parts: Parts,
    pub(crate) score: f64,
}

/// The memories that answer a question.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Best first.
    pub(crate) memories: Vec<Ranked>,
    /// Candidates that match.
    pub(crate) total: usize,
    /// True if there are more than `k` memories. All of them are critical then, and none may be left out.
    pub(crate) extended: bool,
    /// Share of the related critical memories that are in `memories`, multiplied by `known`.
    pub(crate) coverage: f64,
    /// Share of the candidates that could be read.
    pub(crate) known: f64,
    /// Ids of the related critical memories that are not in `memories`.
    pub(crate) missed: Vec<String>,
    /// Ids of memories that contradict each other. The second of each pair is left out.
    pub(crate) contradictions: Vec<(String, String)>,
}

/// Answers `memory.retrieve`.
pub(crate) fn retrieve(call: &mut Call<'_>) -> Result<Map, Failure> {
    let agent = call.take_agent()?;
    let task = call.take_task(Some(&agent))?;
    let params = &mut call.params;
    let query = params.said("query")?;
    let query = params.required("query", query)?;
    let limit = params.count("limit", 1, 100)?;
    let request = RetrieveRequest {
        query: Some(query),
        k: params.count("k", 1, 100)?.or(limit).unwrap_or(5),
        types: params.words("memory_types")?,
        stage_id: None,
        stage_type: params.word("stage_type")?,
        min_score: params.share("min_score")?.unwrap_or(0.0),
        archived: params.flag("include_archived")?.unwrap_or(false),
        critical_beside: false,
    };
    let touch = params.flag("touch")?.unwrap_or(true);
    params.finish()?;
    let found = select(call, &agent, task.as_ref().map(|task| &task.state), &request)?;
    let mut memories = Vec::with_capacity(found.memories.len());
    for ranked in &found.memories {
        let mut map = Map::new();
        map.insert("memory", shown::memory(&ranked.stored)?);
        map.insert("score", ranked.score);
        map.insert("parts", ranked.parts.to_value());
        memories.push(Value::Object(map));
    }
    if touch {
        touch_all(call, &agent, task.as_ref().map(|task| &*task.state.task_id), &found.memories);
    }
    let mut validation = Map::new();
    validation.insert("critical_coverage", found.coverage);
    validation.insert("missed_critical", found.missed);
    let pairs = found.contradictions.into_iter().map(|(a, b)| Value::from(vec![a, b]));
    validation.insert("contradictions", pairs.collect::<Value>());
    let mut map = Map::new();
    map.insert("memories", Value::Array(memories));
    map.insert("total", found.total);
    map.insert("extended", found.extended);
    map.insert("validation", validation);
    Ok(map)
}

/// Counts memories as used, for a task.
pub(crate) fn touch_all(call: &Call<'_>, agent: &str, task: Option<&str>, memories: &[Ranked]) {
    call.store.touch(memories.iter().map(|ranked| ranked.stored.bytes.as_slice()));
    let ids = memories.iter().map(|ranked| ranked.stored.state.memory_id.as_str());
    call.shared.uses.note(call.store.tenant(), agent, task, ids);
    if let Some(task) = task {
        call.shared.uses.works_on(call.store.tenant(), agent, task);
    }
}

/// Selects the memories that answer a question. The caller has checked that the task is the agent's own.
pub(crate) fn select(
    call: &Call<'_>,
    agent: &str,
    task: Option<&Task>,
    request: &RetrieveRequest<'_>,
) -> Result<Selection, Failure> {
    let weights = Weights::of(call.settings);
    let stage_type =
        request.stage_type.or(task.and_then(Task::current).map(|note| note.stage_type));
    let errors = match task {
        Some(task) => call.recent_errors(task, MOST_ERRORS)?,
        None => Vec::new(),
    };
    let recent = RecentErrors::of(
        request.query,
        errors.iter().map(|error| (error.state.error_id.as_str(), error.record.content.as_str())),
    );
    let (now, _) = call.store.now();
    let by_server = understood(call, request.query, task);
    let mut found = candidates(call, agent, task, &errors, request, by_server.as_ref())?;
    // Memories of other stages are no answers. They go before similarities are computed, so that they raise no others.
    found.retain(|sketch| {
        request.stage_id.is_none_or(|stage| sketch.memory.stage_id.as_deref() == Some(stage))
    });
    let similarities = {
        let floor = call.shared.engine.settings().fusion.min_cosine;
        let all: Vec<Candidate<'_>> =
            found.iter().map(|sketch| sketch.candidate(by_server.as_ref(), floor)).collect();
        let by_server = by_server.is_some();
        similarities(&all, if by_server { Vectors::OfServer } else { Vectors::OfEngine })
    };
    let mut scored: Vec<ScoredCandidate> = found
        .into_iter()
        .zip(similarities)
        .map(|(sketch, similarity)| {
            let (memory, content) = (&sketch.memory, sketch.content.as_str());
            let written = Timestamp::parse(&memory.timestamp).ok();
            let since = sketch.last_access.or(written).unwrap_or(now);
            let parts = Parts {
                sim: match request.query {
                    Some(_) => similarity,
                    None => NO_QUERY,
                },
                rec: score::recency(now.hours_since(since)),
                freq: score::frequency(sketch.accesses),
                stage: score::stage_relevance(memory, content, stage_type),
                crit: score::criticality(
                    memory.is_critical,
                    call.settings.criticality_boost_multiplier,
                ),
                err: recent.relevance(memory.corrects.as_deref(), content),
            };
            let score = parts.score(&weights);
            ScoredCandidate { sketch, written, parts, score }
        })
        .collect();
    scored.sort_by(|a, b| {
        let score = b.score.total_cmp(&a.score);
        score
            .then_with(|| b.written.cmp(&a.written))
            .then_with(|| a.sketch.memory.memory_id.cmp(&b.sketch.memory.memory_id))
    });
    let known = match call.store.left_out() {
        0 => 1.0,
        left_out => scored.len() as f64 / (scored.len() + left_out) as f64,
    };
    chosen(scored, task, request, known)
}

/// A candidate with its score.
struct ScoredCandidate {
    sketch: Sketch,
    written: Option<Timestamp>,
    parts: Parts,
    score: f64,
}

impl ScoredCandidate {
    /// Decodes the whole memory.
    fn whole(self) -> Result<Ranked, Failure> {
        let Self { sketch, parts, score, .. } = self;
        Ok(Ranked { stored: sketch.whole()?, parts, score })
    }
}

/// Takes the `k` best. Critical memories that are related to the question replace the last ones that are not critical.
/// `known` is the share of the candidates that could be read.
fn chosen(
    scored: Vec<ScoredCandidate>,
    task: Option<&Task>,
    request: &RetrieveRequest<'_>,
    known: f64,
) -> Result<Selection, Failure> {
    let is_due = |one: &ScoredCandidate| {
        let memory = &one.sketch.memory;
        let is_related = match request.query {
            Some(_) => one.sketch.agreement.text >= RELATED,
            None => task.is_some(),
        };
        let is_of_owner = memory.task_id.as_deref() == task.map(|task| &*task.task_id);
        memory.is_critical && is_related && is_of_owner
    };
    // Candidates match if they are similar to the question at all and score high enough. Related critical ones always match.
    let is_match = |one: &ScoredCandidate| one.parts.sim > 0.0 && one.score >= request.min_score;
    let matching: Vec<ScoredCandidate> =
        scored.into_iter().filter(|one| is_due(one) || is_match(one)).collect();
    let total = matching.len();
    let due: Vec<String> = matching
        .iter()
        .filter(|one| is_due(one))
        .map(|one| one.sketch.memory.memory_id.clone())
        .collect();
    let mut places = 0;
    let (mut best, rest): (Vec<_>, Vec<_>) =
        matching.into_iter().enumerate().partition(|(_, one)| {
            let is_beside = request.critical_beside && is_due(one);
            places += usize::from(!is_beside);
            is_beside || places <= request.k
        });
    for (at, one) in rest.into_iter().filter(|(_, one)| is_due(one)) {
        match best.iter().rposition(|(_, other)| !other.sketch.memory.is_critical) {
            Some(last) => {
                best.remove(last);
                best.push((at, one));
            }
            None => best.push((at, one)),
        }
    }
    best.sort_by_key(|(at, _)| *at);
    let extended = best.len() > request.k;
    let best = best.into_iter().map(|(_, one)| one.whole());
    let best: Vec<Ranked> = best.collect::<Result<_, _>>()?;
    let (memories, contradictions) = without_contradictions(best.into_iter());
    let is_there = |id: &String| memories.iter().any(|one| one.stored.state.memory_id == *id);
    let missed: Vec<String> = due.iter().filter(|id| !is_there(id)).cloned().collect();
    let coverage = if due.is_empty() { 1.0 } else { 1.0 - missed.len() as f64 / due.len() as f64 };
    // A memory that could not be read may be critical: the coverage is less by the share of those.
    let coverage = coverage * known;
    Ok(Selection { memories, total, extended, coverage, known, missed, contradictions })
}

/// Leaves out the lower ranked of two memories that contradict each other. Returns the others, and the ids of each pair.
fn without_contradictions(
    best: impl Iterator<Item = Ranked>,
) -> (Vec<Ranked>, Vec<(String, String)>) {
    let mut kept: Vec<(Ranked, Vec<Claim>)> = Vec::new();
    let mut pairs = Vec::new();
    for one in best {
        let claims = claims(&one.stored.record.content);
        let other = kept.iter().find(|(other, others)| {
            same_things(&one.stored.state, &other.stored.state) && oppose(&claims, others)
        });
        match other {
            Some((other, _)) => {
                pairs.push((
                    other.stored.state.memory_id.clone(),
                    one.stored.state.memory_id.clone(),
                ));
            }
            None => kept.push((one, claims)),
        }
    }
    (kept.into_iter().map(|(one, _)| one).collect(), pairs)
}

pub(crate) fn same_things(a: &Memory, b: &Memory) -> bool {
    let names = |memory: &Memory| {
        let mut names: Vec<String> =
            memory.entities.iter().map(|name| name.to_lowercase()).collect();
        names.sort();
        names
    };
    names(a) == names(b)
}

fn claims(content: &str) -> Vec<Claim> {
    sentences(content).take(MOST_COMPARED).map(|sentence| Claim::of(LANGUAGE, sentence)).collect()
}

fn oppose(a: &[Claim], b: &[Claim]) -> bool {
    a.iter().any(|claim| b.iter().any(|other| claim.opposes(other).is_some()))
}

/// Returns true if two texts contradict each other.
pub(crate) fn contradict(a: &str, b: &str) -> bool {
    oppose(&claims(a), &claims(b))
}

/// Collects candidates: memories that match the question, those of the current stage, the critical ones of the task, and
/// corrections of its errors.
fn candidates(
    call: &Call<'_>,
    agent: &str,
    task: Option<&Task>,
    errors: &[Stored<ErrorRecord>],
    request: &RetrieveRequest<'_>,
    vector: Option<&Understood>,
) -> Result<Vec<Sketch>, Failure> {
    let owner = match task {
        Some(task) => call.store.name(Sort::TaskHandle, &task.task_id)?,
        None => call.store.name(Sort::Agent, agent)?,
    };
    let text = request.query.map(str::to_owned);
    let search = Search {
        newest: text.is_none(),
        text: text.clone(),
        by_meaning: true,
        vector: vector.cloned(),
        most: Some(MOST_CANDIDATES),
        ..Search::of(owner)
    };
    let mut all: HashMap<String, Sketch> = HashMap::new();
    let look = |search: &Search| {
        let is_own = |memory: &Memory| memory.agent_id == agent && request.admits(memory);
        let most_met = if search.newest { MOST_MET_BY_TIME } else { MOST_MET_BY_WORDS };
        call.store.sketches_that(search, request.k, most_met, is_own)
    };
    let mut add = |found: Vec<Sketch>| {
        for one in found {
            match all.entry(one.memory.memory_id.clone()) {
                Entry::Vacant(free) => drop(free.insert(one)),
                Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    known.agreement = known.agreement.or(&one.agreement);
                }
            }
        }
    };
    add(look(&search)?);
    let mut narrower = Vec::new();
    match task {
        Some(task) => {
            if let Some(stage) = &task.current_stage_id {
                let handle = call.store.name(Sort::StageHandle, stage)?;
                narrower.push(Search { most: Some(MOST_CANDIDATES), ..Search::of(handle) });
            }
            narrower.push(call.store.critical_of(task)?);
            for error in errors {
                let handle = call.store.name(Sort::Correction, &error.state.error_id)?;
                narrower.push(Search { most: Some(MOST_CANDIDATES), ..Search::of(handle) });
            }
        }
        None => {
            let handle = call.store.name(Sort::CriticalOfAgent, agent)?;
            narrower.push(Search { most: Some(MOST_CANDIDATES), ..Search::of(handle) });
        }
    }
    for search in narrower {
        // Two searches: one by the words of the question, for the agreement of memories that the search above did not
        // reach, and one for all memories, whatever their words.
        if text.is_some() {
            add(look(&Search {
                text: text.clone(),
                by_meaning: true,
                vector: vector.cloned(),
                newest: false,
                ..search.clone()
            })?);
        }
        add(look(&search)?);
    }
    Ok(all.into_values().collect())
}
