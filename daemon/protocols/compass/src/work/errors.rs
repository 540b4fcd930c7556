//! The methods of errors: recorded, listed, searched for patterns, and told in a context.

use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Kind, Label, Tier};
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use crate::call::{Call, MOST_RECENT_ERRORS};
use crate::failure::Failure;
use crate::names::{self, Sort};
use crate::patterns::{self, Repeated};
use crate::signals::{Signal, SignalType};
use crate::state::{ErrorPattern, ErrorRecord, Memory, Task};
use crate::store::{Batch, Kept, Search, Shape, Store, retried};
use crate::words::{ErrorType, PatternType, StageType};
use crate::work::context::{Made, Wish, made, or_nothing};
use crate::work::criticality::{make_critical, prevent};
use crate::work::shown;
use crate::work::tasks::errors_of_stage;

/// Errors that a task tells of by itself.
const MOST_LOGGED: usize = 10;
/// Errors among which patterns are looked for, and of which a type is looked for, at most.
const MOST_EXAMINED: usize = 1000;
const MOST_LISTED: usize = 10_000;
/// Errors that a pattern names, and those of one type that are a pattern if nobody says otherwise.
const MOST_NAMED: usize = 64;
pub(crate) const LEAST_OFTEN: usize = 3;
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
            let known = known.map(|kept| kept.state);
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

/// Returns true if an error is sent again whose answer was lost. A stage and a time that nobody stated may differ: the task
/// may have moved on meanwhile.
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

/// Returns what whoever watches the agents is told of an error at once, if anything.
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

/// The errors that a question is about: those of a task, or of an agent.
pub(crate) struct Scope {
    agent: String,
    task: Option<Task>,
    handle: Ref,
}

impl Scope {
    /// Returns the errors of a task.
    pub(crate) fn of_task(store: &Store, task: Task) -> Result<Self, Failure> {
        let handle = store.name(Sort::TaskHandle, &task.task_id)?;
        Ok(Self { agent: task.agent_id.clone(), task: Some(task), handle })
    }
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

/// Returns the patterns under a handle, those that were seen last first.
pub(crate) fn patterns_under(
    call: &Call<'_>,
    handle: &Ref,
) -> Result<Vec<Kept<ErrorPattern>>, Failure> {
    let search = Search { experience: vec![ExperienceType::Pattern], ..Search::of(handle.clone()) };
    let mut all = call.store.find::<ErrorPattern>(&search)?;
    all.sort_by_key(|kept| std::cmp::Reverse(Timestamp::parse(&kept.state.last_seen).ok()));
    Ok(all)
}

/// Looks for patterns among errors, and keeps them.
pub(crate) fn detect_error_patterns(call: &mut Call<'_>) -> Result<Map, Failure> {
    let scope = scope(call)?;
    let params = &mut call.params;
    let lookback = params.count("lookback_stages", 1, 1000)?;
    let lookback = lookback.unwrap_or(call.settings.error_history_lookback_stages);
    let least = call.params.count("min_count", 2, 1000)?.unwrap_or(LEAST_OFTEN);
    let wanted: Vec<PatternType> = call.params.words("pattern_types")?;
    call.params.finish()?;
    let look = Look { lookback, least, wanted: &wanted, grown: 1.0 };
    let found = retried(|| {
        let mut found = look.among(&call.store, &scope)?;
        if !found.batch.is_empty() {
            call.commit(std::mem::take(&mut found.batch))?;
        }
        Ok(found)
    })?;
    let (now, _) = call.store.now();
    for signal in found.signals(&call.store, &scope, least, now)? {
        call.shared.announcer.tell(&signal);
    }
    let shown = found.patterns.iter().map(|pattern| shown::pattern(pattern).map(Value::Object));
    let mut map = Map::new();
    map.insert("patterns", Value::Array(shown.collect::<Result<Vec<_>, _>>()?));
    map.insert("errors_examined", found.examined);
    Ok(map)
}

/// A look for patterns.
pub(crate) struct Look<'w> {
    /// Stages of a task whose errors count, the current one included.
    pub(crate) lookback: usize,
    /// Errors of one type from which on they are a pattern.
    pub(crate) least: usize,
    /// Types of patterns; empty for all.
    pub(crate) wanted: &'w [PatternType],
    /// A known pattern is written again once it has so many times the errors.
    pub(crate) grown: f64,
}

/// The patterns that were found, and the write that keeps them.
pub(crate) struct Patterns {
    patterns: Vec<ErrorPattern>,
    /// Those that nobody knew.
    new: Vec<String>,
    examined: usize,
    pub(crate) batch: Batch,
}

impl Patterns {
    /// Returns the signals that tell of new patterns. Of an agent's patterns beyond one task there are none: a signal's key is
    /// that of a task.
    pub(crate) fn signals(
        &self,
        store: &Store,
        scope: &Scope,
        least: usize,
        now: Timestamp,
    ) -> Result<Vec<Signal>, Failure> {
        let Some(task) = &scope.task else { return Ok(Vec::new()) };
        let new = self.patterns.iter().filter(|pattern| self.new.contains(&pattern.pattern_id));
        let signal = |pattern: &ErrorPattern| {
            Ok(Signal {
                signal_type: SignalType::Pattern,
                value: pattern.count as f64,
                threshold: least as f64,
                task_id: task.task_id.clone(),
                agent_id: task.agent_id.clone(),
                at: Store::stamp(now),
                task: store.name(Sort::Task, &task.task_id)?,
                about: store.name(Sort::Pattern, &pattern.pattern_id)?,
            })
        };
        new.map(signal).collect()
    }
}

impl Look<'_> {
    /// Looks among the newest errors.
    pub(crate) fn among(&self, store: &Store, scope: &Scope) -> Result<Patterns, Failure> {
        let mut errors = match &scope.task {
            Some(task) => store.recent_errors(task, self.lookback, MOST_EXAMINED)?,
            None => {
                let search = Search { most: Some(MOST_EXAMINED), ..of_errors(&scope.handle) };
                store.find(&search)?
            }
        };
        errors.reverse();
        let states: Vec<&ErrorRecord> = errors.iter().map(|kept| &kept.state).collect();
        let examined = states.len();
        let mut found =
            Patterns { patterns: Vec::new(), new: Vec::new(), examined, batch: Batch::default() };
        for repeated in patterns::patterns(&states, self.least, self.wanted) {
            self.keep(store, &mut found, scope, &repeated, &states)?;
        }
        Ok(found)
    }

    /// Adds a pattern to the write: a known one is updated, and nothing is written where it says nothing new.
    fn keep(
        &self,
        store: &Store,
        found: &mut Patterns,
        scope: &Scope,
        repeated: &Repeated,
        errors: &[&ErrorRecord],
    ) -> Result<(), Failure> {
        let batch = &mut found.batch;
        let task_id = scope.task.as_ref().map(|task| task.task_id.clone());
        // The same pattern of the same errors has one id, so that two that look at once keep one.
        let whose = task_id.clone().unwrap_or_default();
        let identity = format!("{}\0{whose}\0{}", scope.agent, repeated.identity());
        let id = names::derived_id(store.tenant(), &identity);
        let times: Vec<&str> = errors
            .iter()
            .filter(|error| repeated.error_ids.contains(&error.error_id))
            .map(|error| error.recorded_at.as_str())
            .collect();
        let known = store.get::<ErrorPattern>(Sort::Pattern, &id)?;
        let first = known.as_ref().map(|kept| kept.state.first_seen.clone());
        let prevention = match &repeated.recovery {
            Some(recovery) => recovery.clone(),
            None => match corrected(store, &repeated.error_ids)? {
                Some(memory) => {
                    make_critical(store, batch, &memory.memory_id)?;
                    memory.summary
                }
                None => String::new(),
            },
        };
        // The newest: of an error that comes all day a record would grow without end.
        let over = repeated.error_ids.len().saturating_sub(MOST_NAMED);
        let pattern = ErrorPattern {
            tenant: store.tenant().to_owned(),
            pattern_id: id,
            agent_id: scope.agent.clone(),
            task_id: task_id.clone(),
            pattern_type: repeated.pattern_type,
            error_types: repeated.error_types.clone(),
            error_ids: repeated.error_ids[over..].to_vec(),
            count: repeated.error_ids.len() as u64,
            confidence: repeated.confidence(),
            description: repeated.description.clone(),
            prevention_strategy: prevention,
            first_seen: first.or(times.first().map(|at| (*at).to_owned())).unwrap_or_default(),
            last_seen: times.last().map(|at| (*at).to_owned()).unwrap_or_default(),
        };
        let handles = store.add_owners(batch, &pattern.agent_id, task_id.as_deref())?;
        let says = |text: &String| !text.is_empty();
        let texts = [
            Some(&pattern.description),
            Some(&pattern.prevention_strategy).filter(|text| says(text)),
        ];
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
        let has_grown = |kept: &Kept<ErrorPattern>| {
            pattern.count as f64 >= kept.state.count as f64 * self.grown
                || pattern.prevention_strategy != kept.state.prevention_strategy
        };
        match known {
            Some(kept) if kept.state == pattern || !has_grown(&kept) => {}
            Some(kept) => drop(store.change(batch, &kept, &pattern, &shape)?),
            None => {
                store.add(batch, Sort::Pattern, &pattern, &shape)?;
                found.new.push(pattern.pattern_id.clone());
            }
        }
        found.patterns.push(pattern);
        Ok(())
    }
}

/// Returns what corrected the newest of these errors that was corrected.
fn corrected(store: &Store, errors: &[String]) -> Result<Option<Memory>, Failure> {
    for error in errors.iter().rev().take(MOST_NAMED) {
        let found = store.all::<Memory>(store.name(Sort::Correction, error)?)?;
        let mut found = found.into_iter().map(|kept| kept.state);
        if let Some(newest) = found.find(|memory| memory.success != Some(false)) {
            return Ok(Some(newest));
        }
    }
    Ok(None)
}

/// Returns a search for the errors under a handle, newest first.
fn of_errors(handle: &Ref) -> Search {
    Search { experience: vec![ExperienceType::Error], ..Search::of(handle.clone()) }
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
    let by_type = !types.is_empty() || !stages.is_empty();
    let search = Search {
        // The severity is the importance of the record.
        min_importance: (least > 0.0).then_some(least),
        most: Some(if by_type { MOST_LISTED } else { limit }),
        ..of_errors(&scope.handle)
    };
    let (mut errors, counted) = call.store.find_counted::<ErrorRecord>(&search)?;
    errors.retain(|kept| {
        let error = &kept.state;
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
    shown_errors(&call.store.errors_of(task, MOST_LOGGED, None)?)
}

/// Makes a context that tells what went wrong, and what put it right.
pub(crate) fn get_error_aware_context(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task();
    let query = call.params.said("query")?.map(str::to_owned);
    let least = super::context::BUDGETS;
    let budget = call.params.count("token_budget", least.0, least.1)?.unwrap_or(2000);
    call.params.finish()?;
    let wish = Wish::plain(query, budget);
    let worked = task.and_then(|task| {
        let task = task.state;
        let made = made(call, &task.agent_id, Some(&task), &wish)?;
        Ok((made, Lessons::of(call, &task)?))
    });
    let (made, lessons) = match or_nothing(call, worked)? {
        Some(worked) => worked,
        None => (Made::empty(call, &wish)?, Lessons::default()),
    };
    let mut map = Map::new();
    map.insert("context", made.context.context.clone());
    map.insert("errors", shown_errors(&lessons.errors)?);
    map.insert("prevention", lessons.prevention);
    map.insert("boosted", lessons.boosted);
    map.insert("quality", made.quality());
    map.insert("sections", made.context.sections());
    Ok(map)
}

/// The errors of a task lately, and what is known against them.
#[derive(Default)]
struct Lessons {
    errors: Vec<Kept<ErrorRecord>>,
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
            boosted.extend(found.into_iter().map(|kept| kept.state.memory_id));
        }
        boosted.sort();
        boosted.dedup();
        let by_pattern = patterns.into_iter().map(|kept| kept.state.prevention_strategy);
        let recoveries = errors.iter().filter_map(|kept| kept.state.recovery_action.clone());
        let mut prevention: Vec<String> = Vec::new();
        for one in by_pattern.chain(recoveries).filter(|one| !one.is_empty()) {
            if !prevention.contains(&one) {
                prevention.push(one);
            }
        }
        Ok(Self { errors, prevention, boosted })
    }
}
