//! The methods of errors: recorded, listed, and told in a context.

use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Label, Tier};
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use crate::call::{Call, MOST_RECENT_ERRORS};
use crate::failure::Failure;
use crate::methods::context::{BuiltContext, ContextRequest, build_context, or_nothing};
use crate::methods::criticality::prevent;
use crate::methods::patterns::{Scope, patterns_under, shown_patterns};
use crate::methods::shown;
use crate::methods::tasks::errors_of_stage;
use crate::names::Sort;
use crate::signals::{Signal, SignalType};
use crate::state::{ErrorRecord, Memory, Task};
use crate::store::{Batch, Search, Shape, Store, Stored, retried};
use crate::words::{ErrorType, StageType};

/// Errors that a task tells of by itself.
const MOST_LOGGED: usize = 10;
/// Errors of which a type is looked for, at most.
const MOST_LISTED: usize = 10_000;
/// The share of errors that is told to supervisors of the agents, and the memories from which on it is one.
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
    let (is_chosen, states_stage, states_time) =
        (error_id.is_some(), stage_id.is_some(), at.is_some());
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
    // The write holds changes of memories too, so a lost race may be one about those: worked out again, it says which.
    let (about, first) = retried(|| {
        let about = call.store.name(Sort::Error, &error.error_id)?;
        if is_chosen && call.store.has(&about) {
            let known = call.store.get::<ErrorRecord>(Sort::Error, &error.error_id)?;
            let known = known.map(|stored| stored.state);
            let first = known.filter(|known| says_same(known, &error, states_stage, states_time));
            return match first {
                Some(first) => Ok((about, Some(first))),
                None => Err(Failure::conflict(format!(
                    "the id {:?} is taken by another error",
                    error.error_id
                ))),
            };
        }
        for id in &error.memory_ids {
            call.memory(id)?;
        }
        let mut batch = Batch::default();
        let shape = shape_of_error(call, &mut batch, &error)?;
        let about = call.store.add(&mut batch, Sort::Error, &error, &shape)?;
        if error.error_severity >= call.settings.error_severity_threshold {
            prevent(call, &mut batch, &task, &error)?;
        }
        call.commit(batch)?;
        Ok((about, None))
    })?;
    let is_repeated = first.is_some();
    let error = first.unwrap_or(error);
    if !is_repeated {
        call.patterns.look_at(call.store.tenant(), &task.task_id);
    }
    // The error is stored by now: an answer of failure would have it recorded twice.
    let signal = signal(call, &task, &error, about, now).unwrap_or_else(|failure| {
        tracing::error!(error = %failure.error.message, "an error is told to nobody");
        call.degraded = true;
        None
    });
    if !is_repeated {
        signal.iter().for_each(|signal| call.shared.announcer.tell(signal));
    }
    let mut map = Map::new();
    map.insert("error_id", error.error_id.as_str());
    map.insert("recorded_at", error.recorded_at.as_str());
    map.insert("error_severity", error.error_severity);
    map.insert("ace_signal", signal.map(|signal| signal.to_value()));
    if is_repeated {
        map.insert("unchanged", true);
    }
    Ok(map)
}

/// Returns true if an error is sent again whose answer was lost. A stage and a time that the client did not state may
/// differ: the task may have moved on meanwhile.
fn says_same(
    known: &ErrorRecord,
    sent: &ErrorRecord,
    states_stage: bool,
    states_time: bool,
) -> bool {
    let mut again = sent.clone();
    if !states_stage {
        again.stage_id.clone_from(&known.stage_id);
        again.stage_type = known.stage_type;
    }
    if !states_time {
        again.recorded_at.clone_from(&known.recorded_at);
    }
    again == *known
}

fn shape_of_error(
    call: &Call<'_>,
    batch: &mut Batch,
    error: &ErrorRecord,
) -> Result<Shape, Failure> {
    let mut handles = call.store.add_owners(batch, &error.agent_id, Some(&error.task_id))?;
    handles.push(call.store.add_handle(batch, Sort::Errors, &error.task_id, Label::Event)?);
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
        pose: call.robot_pose(),
        ..Shape::default()
    })
}

/// Returns the signal to supervisors that an error causes at once, if any.
fn signal(
    call: &Call<'_>,
    task: &Task,
    error: &ErrorRecord,
    about: Ref,
    now: Timestamp,
) -> Result<Option<Signal>, Failure> {
    let told = |signal_type, value, threshold| {
        let (task_id, agent_id) = (task.task_id.clone(), task.agent_id.clone());
        let (at, task) = (Store::stamp(now), call.store.name(Sort::Task, &task_id)?);
        Ok(Some(Signal { signal_type, value, threshold, task_id, agent_id, at, task, about }))
    };
    let threshold = call.settings.error_severity_threshold;
    if error.error_severity >= threshold {
        return told(SignalType::Severity, error.error_severity, threshold);
    }
    let Some(stage) = &error.stage_id else { return Ok(None) };
    let errors = errors_of_stage(call, stage)?;
    // Beside memories and errors the stage itself bears its handle.
    let all = call.store.count(call.store.name(Sort::StageHandle, stage)?, &[])?;
    let memories = all.saturating_sub(errors + 1);
    let rate = errors as f64 / memories.max(1) as f64;
    if memories >= LEAST_MEMORIES && rate > ERROR_RATE {
        return told(SignalType::ErrorRate, rate, ERROR_RATE);
    }
    Ok(None)
}

/// Lists errors, newest first.
pub(crate) fn get_error_history(call: &mut Call<'_>) -> Result<Map, Failure> {
    let scope = Scope::asked(call)?;
    let params = &mut call.params;
    let limit = params.count("limit", 1, 1000)?.unwrap_or(20);
    let stages: Vec<StageType> = params.words("stage_types")?;
    let types: Vec<ErrorType> = params.words("error_types")?;
    let least = params.share("min_severity")?.unwrap_or(0.0);
    let with_patterns = params.flag("include_patterns")?.unwrap_or(true);
    params.finish()?;
    let by_type = !types.is_empty() || !stages.is_empty();
    let search = Search {
        // The severity is the importance of the record.
        min_importance: (least > 0.0).then_some(least),
        most: Some(if by_type { MOST_LISTED } else { limit }),
        ..scope.errors()
    };
    let (mut errors, counted) = call.store.find_counted::<ErrorRecord>(&search)?;
    errors.retain(|stored| {
        let error = &stored.state;
        let of_stage = || error.stage_type.is_some_and(|stage| stages.contains(&stage));
        error.error_severity >= least
            && (types.is_empty() || types.contains(&error.error_type))
            && (stages.is_empty() || of_stage())
    });
    let total = if by_type { errors.len() } else { counted };
    errors.truncate(limit);
    let mut map = Map::new();
    map.insert("errors", shown_errors(&errors)?);
    map.insert("total", total);
    let patterns = if with_patterns { patterns_under(call, &scope.handle)? } else { Vec::new() };
    map.insert("patterns", shown_patterns(&patterns)?);
    Ok(map)
}

fn shown_errors(errors: &[Stored<ErrorRecord>]) -> Result<Value, Failure> {
    let shown = errors.iter().map(|stored| shown::error(&stored.state).map(Value::Object));
    Ok(Value::Array(shown.collect::<Result<Vec<_>, _>>()?))
}

/// Returns the newest errors of a task.
pub(crate) fn log_of(call: &Call<'_>, task: &Task) -> Result<Value, Failure> {
    shown_errors(&call.store.errors_of(task, MOST_LOGGED, None)?)
}

/// Makes a context that tells what went wrong, and what put it right.
pub(crate) fn get_error_aware_context(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task();
    let query = call.params.said("query")?.map(str::to_owned);
    let least = super::context::BUDGETS;
    let budget = call.params.count("token_budget", least.0, least.1)?.unwrap_or(2000);
    call.params.finish()?;
    let request = ContextRequest::plain(query, budget);
    let worked = task.and_then(|task| {
        let task = task.state;
        let built = build_context(call, &task.agent_id, Some(&task), &request)?;
        Ok((built, Lessons::of(call, &task)?))
    });
    let (built, lessons) = match or_nothing(call, worked)? {
        Some(worked) => worked,
        None => (BuiltContext::empty(call, &request)?, Lessons::default()),
    };
    let mut map = Map::new();
    map.insert("context", built.context.context.clone());
    map.insert("errors", shown_errors(&lessons.errors)?);
    map.insert("prevention", lessons.prevention);
    map.insert("boosted", lessons.boosted);
    map.insert("quality", built.quality());
    map.insert("sections", built.context.sections());
    Ok(map)
}

/// The errors of a task lately, and what is known against them.
#[derive(Default)]
struct Lessons {
    errors: Vec<Stored<ErrorRecord>>,
    /// What prevents them, once each.
    prevention: Vec<String>,
    /// Memories that correct one of them: they count more than their words alone would make them.
    boosted: Vec<String>,
}

impl Lessons {
    fn of(call: &Call<'_>, task: &Task) -> Result<Self, Failure> {
        let handle = call.store.name(Sort::TaskHandle, &task.task_id)?;
        let errors = call.recent_errors(task, MOST_RECENT_ERRORS)?;
        let patterns = patterns_under(call, &handle)?;
        let mut boosted: Vec<String> = Vec::new();
        for error in &errors {
            let handle = call.store.name(Sort::Correction, &error.state.error_id)?;
            let found = call.store.all::<Memory>(handle)?;
            boosted.extend(found.into_iter().map(|stored| stored.state.memory_id));
        }
        boosted.sort();
        boosted.dedup();
        let by_pattern = patterns.into_iter().map(|stored| stored.state.prevention_strategy);
        let recoveries = errors.iter().filter_map(|stored| stored.state.recovery_action.clone());
        let mut prevention: Vec<String> = Vec::new();
        for one in by_pattern.chain(recoveries).filter(|one| !one.is_empty()) {
            if !prevention.contains(&one) {
                prevention.push(one);
            }
        }
        Ok(Self { errors, prevention, boosted })
    }
}
