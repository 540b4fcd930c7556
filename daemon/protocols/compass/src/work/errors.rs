//! The methods of errors: recorded, listed, searched for patterns, and told in a context.

use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Kind, Tier};
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use crate::call::Call;
use crate::failure::Failure;
use crate::names::{self, Sort};
use crate::patterns::{self, Repeated};
use crate::state::{ErrorPattern, ErrorRecord, Memory, Task};
use crate::store::{Batch, Kept, Search, Shape, Store, retried};
use crate::words::{ErrorType, PatternType, StageType};
use crate::work::context::{Wish, made, or_empty};
use crate::work::shown;
use crate::work::tasks::memories_of_stage;

/// Errors that a task tells of by itself.
const MOST_LOGGED: usize = 10;
/// The share of errors that is told to whoever watches the agents, and the memories from which on it is one.
const ERROR_RATE: f64 = 0.30;
const LEAST_MEMORIES: usize = 5;

/// Records an error.
pub(crate) fn record_error(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task()?.state;
    let params = &mut call.params;
    let error_type: Option<ErrorType> = params.word("error_type")?;
    let error_type = params.required("error_type", error_type)?;
    let description = params.said("error_description")?;
    let description = params.required("error_description", description)?.to_owned();
    let severity = params.share("error_severity")?.unwrap_or(error_type.severity());
    let stage_id = params.id("stage_id")?.map(str::to_owned);
    let error_id = params.id("error_id")?.map(str::to_owned);
    let context = params.said("context_when_occurred")?.map(str::to_owned);
    let recovery = params.said("recovery_action")?.map(str::to_owned);
    let memory_ids = params.ids("memory_ids")?.unwrap_or_default();
    let at = params.instant("recorded_at")?;
    params.finish()?;
    let note = match &stage_id {
        Some(id) => {
            let note = task.stages.iter().find(|note| note.stage_id == *id);
            Some(note.ok_or_else(|| Failure::not_found("stage", id))?)
        }
        None => task.current(),
    };
    let (now, _) = call.store.now();
    let error = ErrorRecord {
        tenant: call.store.tenant().to_owned(),
        error_id: error_id.unwrap_or_else(|| call.store.new_id()),
        task_id: task.task_id.clone(),
        agent_id: task.agent_id.clone(),
        stage_id: note.map(|note| note.stage_id.clone()),
        stage_type: note.map(|note| note.stage_type),
        error_type,
        error_description: description,
        context_when_occurred: context,
        recovery_action: recovery,
        error_severity: severity,
        recorded_at: Store::stamp(at.unwrap_or(now)),
        memory_ids,
    };
    for id in &error.memory_ids {
        call.memory(id)?;
    }
    let mut batch = Batch::default();
    let shape = shape_of_error(call, &mut batch, &error)?;
    call.store.add(&mut batch, Sort::Error, &error, &shape)?;
    match call.commit(batch) {
        Err(failure) if failure.is_race() => {
            return Err(Failure::conflict(format!("the id {:?} is taken", error.error_id)));
        }
        ended => ended?,
    };
    let signal = signal(call, &task, &error, now)?;
    let mut map = Map::new();
    map.insert("error_id", error.error_id.as_str());
    map.insert("recorded_at", error.recorded_at.as_str());
    map.insert("error_severity", error.error_severity);
    map.insert("ace_signal", signal);
    Ok(map)
}

fn shape_of_error(
    call: &Call<'_>,
    batch: &mut Batch,
    error: &ErrorRecord,
) -> Result<Shape, Failure> {
    let mut handles = call.store.add_owners(batch, &error.agent_id, Some(&error.task_id))?;
    if let Some(stage) = &error.stage_id {
        handles.push(call.store.name(Sort::StageHandle, stage)?);
    }
    let texts = [
        Some(&error.error_description),
        error.context_when_occurred.as_ref(),
        error.recovery_action.as_ref(),
    ];
    let content: Vec<&str> = texts.into_iter().flatten().map(String::as_str).collect();
    Ok(Shape {
        content: content.join("\n"),
        experience_type: Some(ExperienceType::Error),
        tier: Some(Tier::Session),
        importance: Some(error.error_severity),
        event_time: Timestamp::parse(&error.recorded_at).ok(),
        entities: handles,
        external_id: Some(format!("compass:{}", error.error_id)),
        ..Shape::default()
    })
}

/// Returns what whoever watches the agents is told of an error, if anything. A new pattern is told of too.
fn signal(
    call: &mut Call<'_>,
    task: &Task,
    error: &ErrorRecord,
    now: Timestamp,
) -> Result<Option<Value>, Failure> {
    let told = |kind: &str, value: f64, threshold: f64| {
        let mut map = Map::new();
        map.insert("signal_type", kind);
        map.insert("value", value);
        map.insert("threshold", threshold);
        map.insert("task_id", task.task_id.as_str());
        map.insert("agent_id", task.agent_id.as_str());
        map.insert("at", Store::stamp(now));
        Some(Value::Object(map))
    };
    let threshold = call.settings.error_severity_threshold;
    if error.error_severity >= threshold {
        return Ok(told("severity", error.error_severity, threshold));
    }
    let Some(stage) = &error.stage_id else { return Ok(None) };
    let memories = memories_of_stage(call, stage)?.len();
    if memories >= LEAST_MEMORIES {
        let errors = super::tasks::errors_of_stage(call, stage)?.len();
        let rate = errors as f64 / memories as f64;
        if rate > ERROR_RATE {
            return Ok(told("error_rate", rate, ERROR_RATE));
        }
    }
    Ok(None)
}

/// The errors that a question is about: those of a task, or of an agent.
struct Scope {
    agent: String,
    task: Option<Task>,
    handle: Ref,
}

fn scope(call: &mut Call<'_>) -> Result<Scope, Failure> {
    let by_task = call.params.states("task_id") && !call.params.states("agent_id");
    let agent = if by_task { None } else { Some(call.take_agent()?) };
    let task = call.take_task(agent.as_deref())?.map(|kept| kept.state);
    call.params.id("agent_id")?;
    let agent = agent.or(task.as_ref().map(|task| task.agent_id.clone()));
    let agent = call.params.required("task_id", agent)?;
    let handle = match &task {
        Some(task) => call.store.name(Sort::TaskHandle, &task.task_id)?,
        None => call.store.name(Sort::Agent, &agent)?,
    };
    Ok(Scope { agent, task, handle })
}

/// Returns the errors under a handle, newest first.
fn errors_under(call: &Call<'_>, handle: &Ref) -> Result<Vec<Kept<ErrorRecord>>, Failure> {
    let search = Search { experience: vec![ExperienceType::Error], ..Search::of(handle.clone()) };
    Ok(call.store.find(&search)?.into_iter().map(|found| found.kept).collect())
}

/// Returns the patterns under a handle, those that were seen last first.
pub(crate) fn patterns_under(
    call: &Call<'_>,
    handle: &Ref,
) -> Result<Vec<Kept<ErrorPattern>>, Failure> {
    let search = Search { experience: vec![ExperienceType::Pattern], ..Search::of(handle.clone()) };
    let found = call.store.find::<ErrorPattern>(&search)?;
    let mut all: Vec<Kept<ErrorPattern>> = found.into_iter().map(|found| found.kept).collect();
    all.sort_by_key(|kept| std::cmp::Reverse(Timestamp::parse(&kept.state.last_seen).ok()));
    Ok(all)
}

/// Looks for patterns among errors, and keeps them.
pub(crate) fn detect_error_patterns(call: &mut Call<'_>) -> Result<Map, Failure> {
    let scope = scope(call)?;
    let params = &mut call.params;
    let lookback = params.count("lookback_stages", 1, 1000)?;
    let lookback = lookback.unwrap_or(call.settings.error_history_lookback_stages);
    let least = call.params.count("min_count", 2, 1000)?.unwrap_or(3);
    let wanted: Vec<PatternType> = call.params.words("pattern_types")?;
    call.params.finish()?;
    retried(|| {
        let mut errors = match &scope.task {
            Some(task) => call.recent_errors(task, lookback)?,
            None => errors_under(call, &scope.handle)?,
        };
        errors.reverse();
        let states: Vec<&ErrorRecord> = errors.iter().map(|kept| &kept.state).collect();
        let mut batch = Batch::default();
        let mut shown = Vec::new();
        for repeated in patterns::patterns(&states, least, &wanted) {
            let pattern = keep(call, &mut batch, &scope, &repeated, &states)?;
            shown.push(Value::Object(shown::pattern(&pattern)?));
        }
        if !batch.is_empty() {
            call.commit(batch)?;
        }
        let mut map = Map::new();
        map.insert("patterns", Value::Array(shown));
        map.insert("errors_examined", states.len());
        Ok(map)
    })
}

/// Adds a pattern to the write: a known one is updated, and nothing is written where it says nothing new.
fn keep(
    call: &Call<'_>,
    batch: &mut Batch,
    scope: &Scope,
    repeated: &Repeated,
    errors: &[&ErrorRecord],
) -> Result<ErrorPattern, Failure> {
    let task_id = scope.task.as_ref().map(|task| task.task_id.clone());
    // The same pattern of the same errors has one id, so that two that look at once keep one.
    let whose = task_id.clone().unwrap_or_default();
    let identity = format!("{}\0{whose}\0{}", scope.agent, repeated.identity());
    let id = names::derived_id(call.store.tenant(), &identity);
    let times: Vec<&str> = errors
        .iter()
        .filter(|error| repeated.error_ids.contains(&error.error_id))
        .map(|error| error.recorded_at.as_str())
        .collect();
    let known = call.store.get::<ErrorPattern>(Sort::Pattern, &id)?;
    let first = known.as_ref().map(|kept| kept.state.first_seen.clone());
    let prevention = match &repeated.recovery {
        Some(recovery) => recovery.clone(),
        None => corrected(call, &repeated.error_ids)?.unwrap_or_default(),
    };
    let pattern = ErrorPattern {
        tenant: call.store.tenant().to_owned(),
        pattern_id: id,
        agent_id: scope.agent.clone(),
        task_id: task_id.clone(),
        pattern_type: repeated.pattern_type,
        error_types: repeated.error_types.clone(),
        error_ids: repeated.error_ids.clone(),
        count: repeated.error_ids.len() as u64,
        confidence: repeated.confidence(),
        description: repeated.description.clone(),
        prevention_strategy: prevention,
        first_seen: first.or(times.first().map(|at| (*at).to_owned())).unwrap_or_default(),
        last_seen: times.last().map(|at| (*at).to_owned()).unwrap_or_default(),
    };
    let handles = call.store.add_owners(batch, &pattern.agent_id, task_id.as_deref())?;
    let says = |text: &String| !text.is_empty();
    let texts =
        [Some(&pattern.description), Some(&pattern.prevention_strategy).filter(|text| says(text))];
    let content: Vec<&str> = texts.into_iter().flatten().map(String::as_str).collect();
    let shape = Shape {
        content: content.join("\n"),
        kind: Some(Kind::Learning),
        experience_type: Some(ExperienceType::Pattern),
        tier: Some(Tier::Longterm),
        importance: Some(pattern.confidence),
        anchored: true,
        entities: handles,
        external_id: Some(format!("compass:{}", pattern.pattern_id)),
        ..Shape::default()
    };
    match known {
        Some(kept) if kept.state == pattern => {}
        Some(kept) => drop(call.store.change(batch, &kept, &pattern, &shape)?),
        None => drop(call.store.add(batch, Sort::Pattern, &pattern, &shape)?),
    }
    Ok(pattern)
}

/// Returns what corrected the newest of these errors that was corrected.
fn corrected(call: &Call<'_>, errors: &[String]) -> Result<Option<String>, Failure> {
    for error in errors.iter().rev() {
        let found = call.store.all::<Memory>(call.store.name(Sort::Correction, error)?)?;
        if let Some(newest) = found.first() {
            return Ok(Some(newest.state.summary.clone()));
        }
    }
    Ok(None)
}

/// Lists errors, newest first.
pub(crate) fn get_error_history(call: &mut Call<'_>) -> Result<Map, Failure> {
    let scope = scope(call)?;
    let params = &mut call.params;
    let limit = params.count("limit", 1, 1000)?.unwrap_or(20);
    let stages: Vec<StageType> = params.words("stage_types")?;
    let types: Vec<ErrorType> = params.words("error_types")?;
    let least = params.share("min_severity")?.unwrap_or(0.0);
    let with_patterns = params.flag("include_patterns")?.unwrap_or(true);
    params.finish()?;
    let mut errors = errors_under(call, &scope.handle)?;
    errors.retain(|kept| {
        let error = &kept.state;
        let of_stage = || error.stage_type.is_some_and(|stage| stages.contains(&stage));
        error.error_severity >= least
            && (types.is_empty() || types.contains(&error.error_type))
            && (stages.is_empty() || of_stage())
    });
    let total = errors.len();
    errors.truncate(limit);
    let mut map = Map::new();
    map.insert("errors", shown_errors(&errors)?);
    map.insert("total", total);
    let patterns = if with_patterns { patterns_under(call, &scope.handle)? } else { Vec::new() };
    map.insert("patterns", shown_patterns(&patterns)?);
    Ok(map)
}

fn shown_errors(errors: &[Kept<ErrorRecord>]) -> Result<Value, Failure> {
    let shown = errors.iter().map(|kept| shown::error(&kept.state).map(Value::Object));
    Ok(Value::Array(shown.collect::<Result<Vec<_>, _>>()?))
}

pub(crate) fn shown_patterns(patterns: &[Kept<ErrorPattern>]) -> Result<Value, Failure> {
    let shown = patterns.iter().map(|kept| shown::pattern(&kept.state).map(Value::Object));
    Ok(Value::Array(shown.collect::<Result<Vec<_>, _>>()?))
}

/// Returns the newest errors of a task.
pub(crate) fn log_of(call: &Call<'_>, task: &Task) -> Result<Value, Failure> {
    let mut errors = errors_under(call, &call.store.name(Sort::TaskHandle, &task.task_id)?)?;
    errors.truncate(MOST_LOGGED);
    shown_errors(&errors)
}

/// Makes a context that tells what went wrong, and what put it right.
pub(crate) fn get_error_aware_context(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task()?.state;
    let query = call.params.said("query")?.map(str::to_owned);
    let least = super::context::BUDGETS;
    let budget = call.params.count("token_budget", least.0, least.1)?.unwrap_or(2000);
    call.params.finish()?;
    let wish = Wish::plain(query, budget);
    let worked = made(call, &task.agent_id.clone(), Some(task.clone()), &wish);
    let made = or_empty(call, worked, &wish)?;
    let lookback = call.settings.error_history_lookback_stages;
    let (errors, patterns) = match call.degraded {
        true => (Vec::new(), Vec::new()),
        false => {
            let handle = call.store.name(Sort::TaskHandle, &task.task_id)?;
            (call.recent_errors(&task, lookback)?, patterns_under(call, &handle)?)
        }
    };
    // What corrects a recent error counts more than its words alone would make it.
    let mut boosted: Vec<String> = Vec::new();
    for error in &errors {
        let handle = call.store.name(Sort::Correction, &error.state.error_id)?;
        let found = call.store.all::<Memory>(handle)?;
        boosted.extend(found.into_iter().map(|kept| kept.state.memory_id));
    }
    boosted.sort();
    boosted.dedup();
    let mut prevention: Vec<&str> =
        patterns.iter().map(|kept| kept.state.prevention_strategy.as_str()).collect();
    prevention.extend(errors.iter().filter_map(|kept| kept.state.recovery_action.as_deref()));
    let mut said: Vec<&str> = Vec::new();
    for one in prevention.into_iter().filter(|one| !one.is_empty()) {
        if !said.contains(&one) {
            said.push(one);
        }
    }
    let mut map = Map::new();
    map.insert("context", made.context.context.clone());
    map.insert("errors", shown_errors(&errors)?);
    map.insert("prevention", said);
    map.insert("boosted", boosted);
    map.insert("quality", made.quality());
    map.insert("sections", made.context.sections());
    Ok(map)
}
