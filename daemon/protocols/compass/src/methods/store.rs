//! `memory.store`.

use std::collections::BTreeMap;

use omir_core::instant::Timestamp;
use omir_core::pointer;
use omir_core::spatial::SpatialPose;
use omir_core::value::{Map, Value};
use omird_text::{
    Counter, EntityKind, Passage, Summarizer, TokenCounter, entities, facts, keywords, sentences,
};

use crate::call::Call;
use crate::compress::LANGUAGE;
use crate::failure::Failure;
use crate::methods::criticality::{Stated, criticise};
use crate::methods::detection::place;
use crate::methods::prune;
use crate::methods::tasks::Course;
use crate::names::Sort;
use crate::params::Params;
use crate::state::{Memory, Task};
use crate::store::{Batch, Store, retried};
use crate::words::{MemoryType, StageType, Word};

/// Most bytes of a content.
pub(crate) const LONGEST_CONTENT: usize = 256 << 10;
/// Tokens of a memory's own summary.
const SUMMARY_TOKENS: usize = 64;
/// Keywords of a memory, and facts.
const MOST_KEYWORDS: usize = 10;
const MOST_FACTS: usize = 64;

/// A memory as it was sent.
struct StoreRequest {
    memory_id: Option<String>,
    agent: String,
    task_id: Option<String>,
    task: Option<(String, Vec<String>)>,
    memory_type: MemoryType,
    timestamp: Option<Timestamp>,
    content: String,
    summary: Option<String>,
    entities: Vec<String>,
    facts: Vec<String>,
    keywords: Vec<String>,
    related: Vec<String>,
    parent: Option<String>,
    relevance: f64,
    is_critical: Option<bool>,
    reason: Option<String>,
    stage_type: Option<StageType>,
    stage_map: BTreeMap<StageType, f64>,
    actions: Vec<String>,
    outcome: Option<String>,
    success: Option<bool>,
    corrects: Option<String>,
    pose: Option<SpatialPose>,
}

/// Stores a memory. The first of a task opens the task and a stage.
pub(crate) fn store(call: &mut Call<'_>) -> Result<Map, Failure> {
    let request = read(call)?;
    call.params.finish()?;
    // A memory that is put aside beside it is a condition more. Calls that store at once choose the same ones. A call
    // that has lost to another leaves them to the next store: its own memory is not refused for them.
    let mut puts_aside = true;
    retried(|| put(call, &request, std::mem::take(&mut puts_aside)))
}

fn read(call: &mut Call<'_>) -> Result<StoreRequest, Failure> {
    let agent = call.take_agent()?;
    let params = &mut call.params;
    let content = params.long_text("content", LONGEST_CONTENT)?;
    let content = params.not_blank("content", content)?;
    let mut actions = params.texts("actions")?;
    let mut outcome = params.text("outcome")?.map(str::to_owned);
    let mut success = params.flag("success")?;
    let content = match (content, params.object("interaction")?) {
        (Some(content), None) => content.to_owned(),
        (None, Some(interaction)) => {
            let said = Interaction::read(interaction)?;
            let content = said.content();
            actions = actions.or(Some(said.actions));
            outcome = outcome.or(said.outcome);
            success = success.or(said.success);
            content
        }
        (Some(_), Some(_)) => {
            let message = "state content or interaction, not both";
            return Err(Failure::params("/interaction", message));
        }
        (None, None) => {
            return Err(Failure::params("/content", "content: is required, or interaction"));
        }
    };
    if content.len() > LONGEST_CONTENT {
        let message = format!("the interaction is longer than {LONGEST_CONTENT} bytes");
        return Err(Failure::too_large("/interaction", message));
    }
    let task_id = params.id("task_id")?.map(str::to_owned);
    let task = match params.object("task")? {
        None => None,
        Some(_) if task_id.is_none() => {
            return Err(Failure::params("/task_id", "task_id: is required to open a task"));
        }
        Some(mut task) => {
            let goal = task.said("goal")?;
            let goal = task.required("goal", goal)?.to_owned();
            let constraints = task.texts("constraints")?.unwrap_or_default();
            task.finish()?;
            Some((goal, constraints))
        }
    };
    let is_critical = params.flag("is_critical")?;
    let reason = params.said("criticality_reason")?.map(str::to_owned);
    if reason.is_some() && is_critical != Some(true) {
        let message = "criticality_reason: needs is_critical to be true";
        return Err(Failure::params("/criticality_reason", message));
    }
    Ok(StoreRequest {
        agent,
        content,
        actions: actions.unwrap_or_default(),
        outcome,
        success,
        task_id,
        task,
        is_critical,
        reason,
        memory_id: params.id("memory_id")?.map(str::to_owned),
        memory_type: params.word("memory_type")?.unwrap_or(MemoryType::Episodic),
        timestamp: params.instant("timestamp")?,
        summary: params.said("summary")?.map(str::to_owned),
        entities: params.texts("entities")?.unwrap_or_default(),
        facts: params.texts("facts")?.unwrap_or_default(),
        keywords: params.texts("keywords")?.unwrap_or_default(),
        related: params.ids("related_memory_ids")?.unwrap_or_default(),
        parent: params.id("parent_memory_id")?.map(str::to_owned),
        relevance: params.share("relevance_score")?.unwrap_or(1.0),
        stage_type: params.word("stage_type")?,
        stage_map: stage_map(params)?,
        corrects: params.id("corrects_error_id")?.map(str::to_owned),
        pose: params.pose("pose")?,
    })
}

/// Reads the relevance of a memory for each stage.
pub(crate) fn stage_map(params: &mut Params<'_>) -> Result<BTreeMap<StageType, f64>, Failure> {
    let numbers = params.numbers("stage_relevance_map", 0.0, 1.0)?.unwrap_or_default();
    let of = |(name, share): (&str, f64)| {
        StageType::by_name(name).map(|stage| (stage, share)).ok_or_else(|| {
            let path = pointer::join("/stage_relevance_map", name);
            Failure::params(path, format!("stage_relevance_map: {name:?} is no type of a stage"))
        })
    };
    numbers.into_iter().map(of).collect()
}

/// A question, what was done, and how it went.
struct Interaction {
    query: String,
    actions: Vec<String>,
    outcome: Option<String>,
    success: Option<bool>,
}

impl Interaction {
    fn read(mut params: Params<'_>) -> Result<Self, Failure> {
        let query = params.long_text("query", LONGEST_CONTENT)?;
        let query = params.not_blank("query", query)?;
        let said = Self {
            query: params.required("query", query)?.to_owned(),
            actions: params.texts("actions")?.unwrap_or_default(),
            outcome: params.long_text("outcome", LONGEST_CONTENT)?.map(str::to_owned),
            success: params.flag("success")?,
        };
        params.finish()?;
        Ok(said)
    }

    /// Writes it as one text, a line each.
    fn content(&self) -> String {
        let actions = self.actions.iter().map(|action| format!("Action: {action}"));
        let outcome = self.outcome.iter().map(|outcome| format!("Outcome: {outcome}"));
        let lines = std::iter::once(self.query.clone()).chain(actions).chain(outcome);
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn put(call: &mut Call<'_>, request: &StoreRequest, puts_aside: bool) -> Result<Map, Failure> {
    if let Some(id) = &request.memory_id
        && let Some(stored) = call.store.get::<Memory>(Sort::Memory, id)?
    {
        let is_same =
            stored.state.agent_id == request.agent && stored.record.content == request.content;
        if !is_same {
            return Err(Failure::conflict(format!("the id {id:?} is taken by another memory")));
        }
        return Ok(answer(&stored.state, stored.version, None, 0, true, true));
    }
    if let Some(parent) = &request.parent {
        call.memory(parent)?;
    }
    let (now, _) = call.store.now();
    let mut batch = Batch::default();
    let mut memory = encode(call, request, now);
    let mut transition = None;
    let mut course = None;
    if let Some(id) = &request.task_id {
        let mut opened = course_of(call, id, request, now)?;
        transition = place(call, &mut batch, &mut opened, &mut memory, &request.content, now)?;
        course = Some(opened);
    }
    let task = course.as_ref().map(|course| &course.task);
    let stated = Stated { is_critical: request.is_critical, reason: request.reason.as_deref() };
    criticise(call, &mut memory, &request.content, &stated, task)?;
    let valid_until = valid_until(call, memory.memory_type, now);
    let mut shape =
        call.store.shape_of_memory(&mut batch, &memory, &request.content, valid_until)?;
    shape.pose = request.pose.clone().or_else(|| call.robot_pose());
    let name = call.store.add(&mut batch, Sort::Memory, &memory, &shape)?;
    let pruned = if puts_aside { prune::above_capacity(call, &mut batch, &memory)? } else { 0 };
    if let Some(course) = course {
        course.write(call, &mut batch, now)?;
    }
    let written = call.commit(batch)?;
    if let Some(task) = &memory.task_id {
        call.shared.uses.works_on(call.store.tenant(), &memory.agent_id, task);
    }
    let (version, _) = written.version(&name).unwrap_or((1, false));
    Ok(answer(&memory, version, transition, pruned, written.is_durable(), false))
}

fn answer(
    memory: &Memory,
    version: u64,
    transition: Option<(StageType, StageType)>,
    pruned: usize,
    durable: bool,
    unchanged: bool,
) -> Map {
    let mut map = Map::new();
    map.insert("memory_id", memory.memory_id.as_str());
    map.insert("version", version);
    map.insert("stage_id", memory.stage_id.as_deref());
    map.insert("stage_type", memory.stage_type.map(Word::as_str));
    map.insert("is_critical", memory.is_critical);
    map.insert("criticality_reason", memory.criticality_reason.as_deref());
    let transition = transition.map(|(from, to)| {
        let mut map = Map::new();
        map.insert("from", from.as_str());
        map.insert("to", to.as_str());
        Value::Object(map)
    });
    map.insert("transition", transition);
    map.insert("pruned", pruned);
    map.insert("durable", durable);
    if unchanged {
        map.insert("unchanged", true);
    }
    map
}

/// Returns the instant after which a memory of this type is not found any more, unless it is critical.
pub(crate) fn valid_until(call: &Call<'_>, kind: MemoryType, now: Timestamp) -> Option<Timestamp> {
    let ttl = i64::try_from(call.settings.working_memory_ttl.as_micros()).unwrap_or(i64::MAX);
    (kind == MemoryType::Working).then(|| now.checked_add_micros(ttl))?
}

/// Reads members that the client did not state out of the text.
fn encode(call: &Call<'_>, request: &StoreRequest, now: Timestamp) -> Memory {
    let content = request.content.as_str();
    let joined = |given: &[String], found: Vec<String>| {
        let mut all = given.to_vec();
        for one in found {
            if !all.iter().any(|known| known.to_lowercase() == one.to_lowercase()) {
                all.push(one);
            }
        }
        all
    };
    let texts = |found: Vec<&str>, most| found.into_iter().take(most).map(str::to_owned).collect();
    // Readings and times are what memories of one thing differ in: they name nothing.
    let is_name = |kind| !matches!(kind, EntityKind::Quantity | EntityKind::Time);
    let named = entities(LANGUAGE, content, &[]).into_iter();
    let named = named.filter(|entity| is_name(entity.kind)).map(|entity| entity.text);
    let named: Vec<String> = named.take(MOST_FACTS).map(str::to_owned).collect();
    Memory {
        tenant: call.store.tenant().to_owned(),
        memory_id: request.memory_id.clone().unwrap_or_else(|| call.store.new_id()),
        agent_id: request.agent.clone(),
        task_id: request.task_id.clone(),
        memory_type: request.memory_type,
        timestamp: Store::stamp(request.timestamp.unwrap_or(now)),
        summary: request
            .summary
            .clone()
            .unwrap_or_else(|| summary(content, call.settings.token_counter)),
        entities: joined(&request.entities, named),
        facts: joined(&request.facts, texts(facts(LANGUAGE, content), MOST_FACTS)),
        keywords: joined(&request.keywords, keywords(LANGUAGE, content, MOST_KEYWORDS)),
        related_memory_ids: request.related.clone(),
        parent_memory_id: request.parent.clone(),
        relevance_score: request.relevance,
        is_critical: false,
        criticality_reason: None,
        is_decided: request.is_critical.is_some(),
        stage_id: None,
        stage_type: request.stage_type,
        stage_relevance_map: request.stage_map.clone(),
        actions: request.actions.clone(),
        outcome: request.outcome.clone(),
        success: request.success,
        corrects: request.corrects.clone(),
        archived: false,
        trace_id: Some(call.who.trace_id().to_owned()),
        interventions: 0,
        effectiveness: 0.0,
        successes: 0,
        success_uses: 0,
        vector_since: None,
        vector_at: None,
    }
}

/// Returns a summary of one text: its best sentences within the bound, or the beginning where no sentence is so short.
pub(crate) fn summary(content: &str, counter: Counter) -> String {
    let whole =
        Summarizer::new(LANGUAGE, &counter).within(&[Passage::new(content)], SUMMARY_TOKENS);
    if let Ok(whole) = whole
        && !whole.extracts.is_empty()
    {
        return whole.text();
    }
    let first = sentences(content).next().unwrap_or_default();
    let mut short = String::new();
    for word in first.split_whitespace() {
        let longer = if short.is_empty() { word.to_owned() } else { format!("{short} {word}") };
        if counter.count(&longer) > SUMMARY_TOKENS {
            break;
        }
        short = longer;
    }
    short
}

/// Returns the task that a memory belongs to, opened if there is none.
fn course_of(
    call: &Call<'_>,
    id: &str,
    request: &StoreRequest,
    now: Timestamp,
) -> Result<Course, Failure> {
    let mut course = match call.store.get::<Task>(Sort::Task, id)? {
        Some(task) if task.state.agent_id == request.agent => Course::of(task),
        Some(_) => {
            return Err(Failure::conflict(format!("the task id {id:?} is taken")));
        }
        None => Course::open(call, id, &request.agent, now),
    };
    if !course.task.is_active() {
        return Err(Failure::conflict(format!("the task {id:?} is over: {}", course.task.status)));
    }
    if let Some((goal, constraints)) = &request.task {
        let task = &mut course.task;
        if task.task_goal != *goal {
            task.task_goal.clone_from(goal);
            course.is_changed = true;
        }
        for constraint in constraints {
            if !task.critical_constraints.contains(constraint) {
                task.critical_constraints.push(constraint.clone());
                course.is_changed = true;
            }
        }
    }
    Ok(course)
}
