//! The methods of stages: their context, their end, the progress of a task, and signs of a change.

use omir_core::value::{Map, Value};

use omird_text::{Counter, TokenCounter};

use crate::call::Call;
use crate::context::{Context, Draft, Section, Worth};
use crate::failure::Failure;
use crate::methods::context::{
    BuiltContext, ContextRequest, critical_facts, facts_of_stage, or_nothing,
};
use crate::methods::detection::{errors_lately, last_actions};
use crate::methods::modelled::take_preference;
use crate::methods::retrieve::{self, RetrieveRequest};
use crate::methods::shown;
use crate::methods::store::LONGEST_CONTENT;
use crate::methods::tasks::{
    Completion, Course, current_stage, errors_of_stage, memories_of_stage,
};
use crate::names::Sort;
use crate::stages::{self, Signal, Wording};
use crate::state::{Memory, Stage, Task};
use crate::store::{Batch, Search, Stored, retried};
use crate::words::{StageType, TaskStatus, Word};

/// Newest records of a stage that are searched for actions, or for any entry.
const MOST_LOOKED_AT: usize = 50;

/// Answers `memory.get_stage_context`.
pub(crate) fn get_stage_context(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task();
    let id = call.params.id("stage_id")?.map(str::to_owned);
    let stage_type: Option<StageType> = call.params.word("stage_type")?;
    let query = call.params.said("query")?.map(str::to_owned);
    let least = super::context::BUDGETS;
    let budget = call.params.count("token_budget", least.0, least.1)?.unwrap_or(2000);
    call.params.finish()?;
    let request = ContextRequest::plain(query, budget);
    let worked = task.and_then(|task| {
        let stage = the_stage(call, &task.state, id.as_deref(), stage_type)?.state;
        let built = build_stage_context(call, &task.state, &stage, &request)?;
        Ok((shown::stage(&stage)?, built))
    });
    let (stage, built) = match or_nothing(call, worked)? {
        Some((stage, built)) => (Value::Object(stage), built),
        None => (Value::Null, BuiltContext::empty(call, &request)?),
    };
    let mut map = Map::new();
    map.insert("stage", stage);
    map.insert("context", built.context.context.clone());
    map.insert("quality", built.quality());
    map.insert("sections", built.context.sections());
    Ok(map)
}

fn build_stage_context(
    call: &Call<'_>,
    task: &Task,
    stage: &Stage,
    request: &ContextRequest,
) -> Result<BuiltContext, Failure> {
    let memories = memories_of_stage(call, &stage.stage_id)?;
    let counter = call.settings.token_counter;
    let history = memories.iter().map(|stored| counter.count(&stored.record.content)).sum();
    let mut draft = Draft::default();
    draft.add(Section::Current, Worth::Fixed, format!("Stage: {}", stage.stage_type));
    draft.add(Section::Current, Worth::Stage, &stage.stage_summary);
    for insight in &stage.stage_insights {
        draft.add(Section::Current, Worth::Stage, format!("- {insight}"));
    }
    let facts = match &stage.completed_at {
        Some(_) => facts_of_stage(call, stage)?,
        None => critical_facts(call, task)?,
    };
    draft.add_facts(&facts);
    let wanted = RetrieveRequest {
        query: request.query.as_deref(),
        k: 100,
        types: Vec::new(),
        stage_id: None,
        stage_type: Some(stage.stage_type),
        min_score: 0.0,
        archived: false,
        critical_beside: false,
    };
    let mut found = retrieve::select(call, &task.agent_id, Some(task), &wanted)?;
    // Critical memories of other stages go: their facts are in the section of facts.
    found.memories.retain(|one| one.stored.state.stage_id.as_deref() == Some(&*stage.stage_id));
    for one in &found.memories {
        draft.add(Section::Current, Worth::Raw, format!("- {}", one.stored.record.content.trim()));
    }
    let context = draft.fit(request.budget, request.format, counter)?;
    super::context::touch_shown(call, &task.agent_id, Some(task), &found, &context);
    let coverage = super::context::coverage(&facts, &context) * found.known;
    Ok(BuiltContext {
        context,
        coverage,
        coherence: super::context::coherence(&found.memories),
        history,
    })
}

/// Returns the stage that is named, the newest of a type, or the current one.
fn the_stage(
    call: &Call<'_>,
    task: &Task,
    id: Option<&str>,
    stage_type: Option<StageType>,
) -> Result<Stored<Stage>, Failure> {
    let note = match (id, stage_type) {
        (Some(id), _) => task.stages.iter().find(|note| note.stage_id == id),
        (None, Some(wanted)) => task.stages.iter().rev().find(|note| note.stage_type == wanted),
        (None, None) => task.current().or(task.stages.last()),
    };
    let wanted = id.or(stage_type.map(Word::as_str)).unwrap_or("current");
    let note = note.ok_or_else(|| Failure::not_found("stage", wanted))?;
    current_stage(call, &note.stage_id)
}

/// Completes the current stage, and begins the next one. A task without a current stage can only be ended.
pub(crate) fn complete_stage(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("task_id")?;
    let id = call.params.required("task_id", id)?.to_owned();
    let params = &mut call.params;
    let stage_id = params.id("stage_id")?.map(str::to_owned);
    let summary = params.long_text("summary", LONGEST_CONTENT)?;
    let summary = params.not_blank("summary", summary)?.map(str::to_owned);
    let insights = params.texts("insights")?;
    let next: Option<StageType> = params.word("next_stage_type")?;
    let status: Option<TaskStatus> = params.word("task_status")?;
    if status == Some(TaskStatus::Active) {
        return Err(Failure::params("/task_status", "task_status: is completed or failed"));
    }
    if status.is_some() && next.is_some() {
        let message = "next_stage_type: a task that is over has no next stage";
        return Err(Failure::params("/next_stage_type", message));
    }
    take_preference(call)?;
    call.params.finish()?;
    let says_something = summary.is_some() || insights.is_some();
    let is_bare = stage_id.is_none() && next.is_none() && status.is_none();
    // The stage that was current at the first try. If a retry finds another one, another client has completed this stage.
    let mut meant: Option<Option<String>> = None;
    retried(|| {
        let mut course = Course::of(call.task(&id)?);
        let current = course.task.current_stage_id.clone();
        if stage_id.is_none() && *meant.get_or_insert_with(|| current.clone()) != current {
            return Err(Failure::conflict("somebody else completed the stage at the same time"));
        }
        let wanted = match (&stage_id, current) {
            (Some(wanted), Some(current)) if *wanted == current => Some(current),
            (Some(wanted), _) if course.task.stages.iter().any(|note| note.stage_id == *wanted) => {
                return Err(Failure::conflict(format!(
                    "the stage {wanted:?} is completed already"
                )));
            }
            (Some(wanted), _) => return Err(Failure::not_found("stage", wanted)),
            (None, Some(current)) => Some(current),
            (None, None) if status.is_some() && course.task.is_active() => {
                if says_something {
                    let name = if summary.is_some() { "summary" } else { "insights" };
                    let message = format!(
                        "{name}: the task waits for its end, and has no stage that it could be of"
                    );
                    return Err(Failure::params(format!("/{name}"), message));
                }
                None
            }
            (None, None) => {
                return Err(Failure::conflict(match course.task.is_active() {
                    true => "the task has no stage to complete: it waits for task_status",
                    false => "the task has no stage to complete: it is over",
                }));
            }
        };
        let (now, _) = call.store.now();
        let mut batch = Batch::default();
        let (stage, metric) = match &wanted {
            Some(wanted) => {
                let stored = current_stage(call, wanted)?;
                let memories = memories_of_stage(call, wanted)?;
                // A call that names no stage may arrive twice. The second time the current stage is new and empty, and must
                // not be completed too.
                let is_second = || course.task.stages.iter().any(|note| note.is_completed);
                if is_bare && memories.is_empty() && is_second() && !has_entries(call, wanted)? {
                    return Err(Failure::conflict(format!(
                        "the stage before is completed already, and the current one has no memories; \
                         state stage_id {wanted:?} to complete it"
                    )));
                }
                let how = Completion { summary: summary.as_deref(), insights: insights.clone() };
                let done = course.complete(call, &mut batch, stored, &memories, &how, now)?;
                (Some(done.0), done.1)
            }
            None => (last_stage(call, &course.task)?, None),
        };
        let next_id = match status {
            Some(status) => {
                if status == TaskStatus::Completed {
                    super::criticality::learn_from_success(call, &mut batch, &mut course.task)?;
                }
                course.task.status = status;
                course.is_changed = true;
                None
            }
            None => match next.or(stage.as_ref().and_then(|stage| follows(stage.stage_type))) {
                Some(next) => Some(course.begin(call, &mut batch, next, now)?),
                None => None,
            },
        };
        let progress = course.task.task_progress_summary.clone();
        let task = course.write(call, &mut batch, now)?;
        call.commit(batch)?;
        let mut map = Map::new();
        map.insert("stage", stage.map(|stage| shown::stage(&stage)).transpose()?);
        map.insert("metric", metric.map(|metric| shown::metric(&metric)).transpose()?);
        map.insert("next_stage_id", next_id);
        map.insert("task_progress_summary", progress);
        map.insert("task_status", task.status.as_str());
        Ok(map)
    })
}

/// Returns true if a stage has an error or a memory, even one that has expired.
fn has_entries(call: &Call<'_>, stage: &str) -> Result<bool, Failure> {
    let handle = call.store.name(Sort::StageHandle, stage)?;
    let search = Search { expired: true, most: Some(MOST_LOOKED_AT), ..Search::of(handle) };
    let memories = call.store.find::<Memory>(&search)?;
    Ok(!memories.is_empty() || errors_of_stage(call, stage)? > 0)
}

/// Returns the stage that a task had last, if the store still has it.
fn last_stage(call: &Call<'_>, task: &Task) -> Result<Option<Stage>, Failure> {
    let Some(note) = task.stages.last() else { return Ok(None) };
    let stored = call.store.get_readable::<Stage>(Sort::Stage, &note.stage_id)?;
    Ok(stored.map(|stored| stored.state))
}

/// Returns the type of the stage that follows if the caller names none. Verification has none: the task waits until it is ended.
fn follows(stage: StageType) -> Option<StageType> {
    match stage {
        StageType::Planning | StageType::Reflection => Some(StageType::Execution),
        StageType::Execution => Some(StageType::Verification),
        StageType::Verification => None,
    }
}

/// Answers `memory.get_task_progress`.
pub(crate) fn get_task_progress(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("task_id")?;
    let id = call.params.required("task_id", id)?.to_owned();
    let least = super::context::BUDGETS;
    let budget = call.params.count("token_budget", least.0, least.1)?.unwrap_or(500);
    let refresh = call.params.flag("refresh")?.unwrap_or(false);
    call.params.finish()?;
    if refresh {
        call.expect_change()?;
        retried(|| {
            let mut course = Course::of(call.task(&id)?);
            let (now, _) = call.store.now();
            if course.summarise(call, None, None, false, now)?.is_some() {
                let mut batch = Batch::default();
                course.write(call, &mut batch, now)?;
                call.commit(batch)?;
            }
            Ok(())
        })?;
    }
    let task = call.task(&id)?.state;
    let facts = critical_facts(call, &task)?;
    let context =
        brief(&task, &facts, &ContextRequest::plain(None, budget), call.settings.token_counter)?;
    let history = task.metrics.last().map_or(0, |metric| metric.input_tokens);
    let built = BuiltContext {
        coverage: super::context::coverage(&facts, &context),
        coherence: task.metrics.last().map_or(1.0, |metric| metric.coherence_score),
        history: usize::try_from(history).unwrap_or(usize::MAX),
        context,
    };
    let mut map = shown::task(&task)?;
    map.insert("error_log", super::errors::log_of(call, &task)?);
    map.insert("brief", built.context.context.clone());
    map.insert("quality", built.quality());
    Ok(map)
}

/// Makes the brief of a task. No budget is too small for it: facts that do not fit are left out, which lowers the coverage, and
/// then the goal is.
fn brief(
    task: &Task,
    facts: &[String],
    request: &ContextRequest,
    counter: Counter,
) -> Result<Context, Failure> {
    for with_facts in [true, false] {
        let mut draft = Draft::default();
        super::context::write_progress(&mut draft, task, facts);
        if with_facts {
            draft.add_facts(facts);
        }
        match draft.fit(request.budget, request.format, counter) {
            Err(failure) if failure.is_of_budget() => {}
            fitted => return fitted,
        }
    }
    Draft::default().fit(request.budget, request.format, counter)
}

/// Answers `memory.detect_stage_transition`. With `apply` the task moves on.
pub(crate) fn detect_stage_transition(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("task_id")?;
    let id = call.params.required("task_id", id)?.to_owned();
    let params = &mut call.params;
    let actions = params.texts("recent_actions")?;
    let content = params.long_text("content", LONGEST_CONTENT)?.unwrap_or_default().to_owned();
    let told: Option<StageType> = params.word("ace_signal")?;
    let apply = params.flag("apply")?.unwrap_or(false);
    params.finish()?;
    if apply {
        call.expect_change()?;
    }
    retried(|| {
        let mut course = Course::of(call.task(&id)?);
        // A task that is over or waits to be ended has no current stage, and moves nowhere.
        let current = course.task.current().map(|note| note.stage_type);
        let signals = match call.settings.stage_detection_enabled {
            true => signals(call, &course.task, actions.as_deref(), &content, told)?,
            false => Vec::new(),
        };
        let decided = current.and_then(|current| stages::decided(&signals, current));
        let mut map = Map::new();
        map.insert("should_transition", decided.is_some());
        map.insert("current_stage_type", current.map(Word::as_str));
        map.insert("suggested_stage_type", decided.map(|signal| signal.stage_type.as_str()));
        let strongest = signals.iter().map(|signal| signal.weight).fold(0.0, f64::max);
        map.insert("confidence", decided.map_or(strongest, |signal| signal.weight));
        map.insert("signals", signals.iter().map(|signal| signal.to_value()).collect::<Value>());
        let mut applied = false;
        if let Some(signal) = decided.filter(|_| apply) {
            let (now, _) = call.store.now();
            let mut batch = Batch::default();
            course.move_on(call, &mut batch, signal.stage_type, now)?;
            course.write(call, &mut batch, now)?;
            call.commit(batch)?;
            applied = true;
        }
        map.insert("applied", applied);
        Ok(map)
    })
}

/// Collects the signals that the stage has changed, strongest first.
fn signals(
    call: &Call<'_>,
    task: &Task,
    actions: Option<&[String]>,
    content: &str,
    told: Option<StageType>,
) -> Result<Vec<Signal>, Failure> {
    let Some(note) = task.current() else { return Ok(Vec::new()) };
    let mut all: Vec<Signal> = Vec::new();
    all.extend(stages::marker(None, content));
    all.extend(stages::told(told));
    match actions {
        Some(actions) => all.extend(stages::acted(actions.iter().map(String::as_str))),
        None => {
            let last = last_actions(call, &note.stage_id, MOST_LOOKED_AT)?;
            all.extend(stages::acted(last.iter().map(String::as_str)));
        }
    }
    let (now, clock) = call.store.now();
    // The duration of a stage counts only if the clock is trusted.
    if clock != omird_engine::ClockState::Unknown
        && let Ok(began) = omir_core::instant::Timestamp::parse(&note.began_at)
    {
        all.extend(stages::lasted(note.stage_type, now.hours_since(began) * 3600.0));
    }
    all.extend(errors_lately(call, task)?);
    // Wording is the least certain signal. It counts only if no other signal moves the task, and only in this method.
    if stages::decided(&all, note.stage_type).is_none() {
        let actions = actions.unwrap_or_default();
        all.extend(stages::worded(note.stage_type, Wording { content, actions }));
    }
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    Ok(all)
}
