//! The methods of supervisors: strategic context, outcomes of interventions, and what is critical.

use std::collections::BTreeMap;

use omir_core::confidence::{Beta, FeedbackOutcome, Weight};
use omir_core::model::{ExperienceType, MemoryRecord, Tier};
use omir_core::number::Number;
use omir_core::value::{Map, Value};

use omird_text::Counter;

use crate::call::{CRITICAL_IMPORTANCE, Call, MOST_RECENT_ERRORS};
use crate::context::{Draft, Section, Worth};
use crate::failure::Failure;
use crate::methods::context::{
    BUDGETS, BuiltContext, ContextRequest, coherence_of, coverage, critical_facts, line_of_error,
    or_nothing,
};
use crate::methods::criticality;
use crate::methods::errors::log_of;
use crate::methods::patterns::{patterns_under, shown_patterns};
use crate::methods::shown;
use crate::methods::tasks::current_stage;
use crate::names::Sort;
use crate::state::{ErrorPattern, ErrorRecord, Intervention, Memory, Stage, Task};
use crate::store::{Batch, Search, Shape, Store, Stored, retried};
use crate::words::{Format, Word};

/// The share of the way that an intervention moves a relevance.
const LEARNING: f64 = 0.2;
/// Successes that are told, and the newest records of a task among which they are looked for.
const MOST_SUCCESSES: usize = 10;
const MOST_LOOKED_AT: usize = 1000;

/// A matter to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Errors,
    Progress,
    Constraints,
}

impl Word for Focus {
    const ALL: &'static [Self] = &[Self::Errors, Self::Progress, Self::Constraints];

    fn as_str(self) -> &'static str {
        match self {
            Self::Errors => "errors",
            Self::Progress => "progress",
            Self::Constraints => "constraints",
        }
    }
}

/// Returns what to look at by the figures of an agent, beside what was asked for.
fn focus(stated: &[Focus], metrics: &BTreeMap<String, f64>) -> Vec<Focus> {
    let metric = |name: &str| metrics.get(name).copied();
    let all = [
        (Focus::Errors, metric("error_rate").is_some_and(|rate| rate > 0.3)),
        (Focus::Progress, metric("progress_rate").is_some_and(|rate| rate < 0.5)),
        (Focus::Constraints, metric("coherence_score").is_some_and(|score| score < 0.8)),
    ];
    let is_one = |(focus, by_figures): &(Focus, bool)| *by_figures || stated.contains(focus);
    all.into_iter().filter(is_one).map(|(focus, _)| focus).collect()
}

/// Makes the context of a decision about a task.
pub(crate) fn get_strategic_context(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task();
    let params = &mut call.params;
    let task_id = params.id("task_id")?.unwrap_or_default().to_owned();
    let decision = params.said("decision_type")?;
    let decision = params.required("decision_type", decision)?.to_owned();
    let mut metrics = BTreeMap::new();
    if let Some(mut stated) = params.object("metrics")? {
        for name in ["error_rate", "progress_rate", "coherence_score", "context_efficiency"] {
            if let Some(share) = stated.share(name)? {
                metrics.insert(name.to_owned(), share);
            }
        }
        stated.finish()?;
    }
    let stated: Vec<Focus> = params.words("focus_areas")?;
    let budget = params.count("token_budget", BUDGETS.0, BUDGETS.1)?.unwrap_or(2000);
    params.finish()?;
    let focus = focus(&stated, &metrics);
    let worked = task.and_then(|task| {
        let grounds = Grounds::of(call, &task.state, &focus)?;
        let built =
            grounds.build_context(&task.state, &decision, budget, call.settings.token_counter)?;
        call.store.touch(grounds.successes.iter().map(|stored| stored.bytes.as_slice()));
        Ok((task.state.critical_constraints, grounds, built))
    });
    let (constraints, grounds, built) = match or_nothing(call, worked)? {
        Some(worked) => worked,
        None => (
            Vec::new(),
            Grounds::default(),
            BuiltContext::empty(call, &ContextRequest::plain(None, budget))?,
        ),
    };
    // As sure as the patterns it rests on; without any, as the facts that it covers.
    let surest = grounds.patterns.iter().map(|stored| stored.state.confidence).reduce(f64::max);
    let confidence = surest.unwrap_or(built.coverage);
    let mut map = Map::new();
    map.insert("context_id", call.store.new_id());
    map.insert("task_id", task_id);
    map.insert("focus", focus.iter().map(|focus| focus.as_str()).collect::<Vec<_>>());
    map.insert("critical_facts", grounds.facts);
    map.insert("constraints", constraints);
    map.insert("errors", grounds.errors_shown);
    map.insert("patterns", shown_patterns(&grounds.patterns)?);
    let shown = grounds.successes.iter().map(|stored| shown::memory(stored).map(Value::Object));
    map.insert("successes", Value::Array(shown.collect::<Result<Vec<_>, _>>()?));
    let shown = grounds.stages.iter().map(|stage| shown::stage(stage).map(Value::Object));
    map.insert("stages", Value::Array(shown.collect::<Result<Vec<_>, _>>()?));
    map.insert("context", built.context.context.clone());
    map.insert("token_count", built.context.tokens);
    map.insert("confidence", confidence);
    map.insert("quality", built.quality());
    Ok(map)
}

/// The grounds of a decision: as much of a task as the focus asks for.
struct Grounds {
    facts: Vec<String>,
    errors: Vec<Stored<ErrorRecord>>,
    errors_shown: Value,
    patterns: Vec<Stored<ErrorPattern>>,
    successes: Vec<Stored<Memory>>,
    /// Newest first.
    stages: Vec<Stage>,
}

impl Default for Grounds {
    fn default() -> Self {
        Self {
            facts: Vec::new(),
            errors: Vec::new(),
            errors_shown: Value::Array(Vec::new()),
            patterns: Vec::new(),
            successes: Vec::new(),
            stages: Vec::new(),
        }
    }
}

impl Grounds {
    fn of(call: &Call<'_>, task: &Task, focus: &[Focus]) -> Result<Self, Failure> {
        let is = |one| focus.contains(&one);
        let mut grounds = Self { facts: critical_facts(call, task)?, ..Self::default() };
        if is(Focus::Errors) || focus.is_empty() {
            grounds.errors = call.recent_errors(task, MOST_RECENT_ERRORS)?;
            grounds.errors_shown = log_of(call, task)?;
        }
        if is(Focus::Errors) {
            let handle = call.store.name(Sort::TaskHandle, &task.task_id)?;
            grounds.patterns = patterns_under(call, &handle)?;
        }
        if is(Focus::Progress) {
            grounds.successes = successes(call, task)?;
        }
        if is(Focus::Progress) || focus.is_empty() {
            for note in task.stages.iter().rev() {
                grounds.stages.push(current_stage(call, &note.stage_id)?.state);
            }
        }
        Ok(grounds)
    }

    /// Makes the context of them.
    fn build_context(
        &self,
        task: &Task,
        decision: &str,
        budget: usize,
        counter: Counter,
    ) -> Result<BuiltContext, Failure> {
        let mut draft = Draft::default();
        draft.add(Section::Progress, Worth::Fixed, format!("Decision: {decision}"));
        if !task.task_goal.is_empty() {
            draft.add(Section::Progress, Worth::Fixed, format!("Goal: {}", task.task_goal));
        }
        let summary = task.task_progress_summary.as_deref().unwrap_or_default();
        draft.add(Section::Progress, Worth::Progress, summary);
        for one in &self.successes {
            draft.add(Section::Current, Worth::Raw, format!("- {}", one.record.content.trim()));
        }
        let told = self.stages.iter().filter(|stage| !stage.stage_summary.is_empty());
        for stage in told.clone() {
            let text = format!("- {}: {}", stage.stage_type, stage.stage_summary);
            draft.add(Section::Past, Worth::Past, text);
        }
        draft.add_facts(&self.facts);
        for error in &self.errors {
            draft.add(Section::Errors, Worth::Error, line_of_error(&error.state));
        }
        for pattern in &self.patterns {
            let pattern = &pattern.state;
            let text = format!("- {}: {}", pattern.description, pattern.prevention_strategy);
            draft.add(Section::Errors, Worth::Error, text.trim_end_matches([':', ' ']));
        }
        let facts = self.facts.iter().map(String::as_str);
        let successes = self.successes.iter().map(|one| one.record.content.as_str());
        let coherence = coherence_of(
            facts.chain(successes).chain(told.map(|stage| stage.stage_summary.as_str())),
        );
        let context = draft.fit(budget, Format::Markdown, counter)?;
        let history = task.metrics.last().map_or(0, |metric| metric.input_tokens);
        let history = usize::try_from(history).unwrap_or(usize::MAX);
        let coverage = coverage(&self.facts, &context);
        Ok(BuiltContext { context, coverage, coherence, history })
    }
}

/// Returns what went well in a task, newest first.
fn successes(call: &Call<'_>, task: &Task) -> Result<Vec<Stored<Memory>>, Failure> {
    let handle = call.store.name(Sort::TaskHandle, &task.task_id)?;
    let search = Search { most: Some(MOST_LOOKED_AT), ..Search::of(handle) };
    let mut all = call.store.find::<Memory>(&search)?;
    all.retain(|stored| stored.state.success == Some(true) && !stored.state.archived);
    all.truncate(MOST_SUCCESSES);
    Ok(all)
}

/// Records how an intervention went, and learns from it.
pub(crate) fn record_intervention_outcome(call: &mut Call<'_>) -> Result<Map, Failure> {
    let task = call.required_task()?.state;
    let params = &mut call.params;
    let context_id = params.id("context_id")?;
    let context_id = params.required("context_id", context_id)?.to_owned();
    let kind = params.said("intervention_type")?;
    let kind = params.required("intervention_type", kind)?.to_owned();
    let effectiveness = params.share("effectiveness")?;
    let effectiveness = params.required("effectiveness", effectiveness)?;
    let success = params.flag("success")?;
    let success = params.required("success", success)?;
    let mut memory_ids = params.ids("memory_ids")?.unwrap_or_default();
    memory_ids.sort();
    memory_ids.dedup();
    let notes = params.said("notes")?.map(str::to_owned);
    let chosen = params.id("intervention_id")?.map(str::to_owned);
    let after = params.numbers("metrics_after", f64::MIN, f64::MAX)?.unwrap_or_default();
    let after: BTreeMap<String, f64> =
        after.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    params.finish()?;
    let (id, changed, is_repeated) = retried(|| {
        let (now, _) = call.store.now();
        let intervention = Intervention {
            tenant: call.store.tenant().to_owned(),
            intervention_id: chosen.clone().unwrap_or_else(|| call.store.new_id()),
            agent_id: task.agent_id.clone(),
            task_id: task.task_id.clone(),
            context_id: context_id.clone(),
            intervention_type: kind.clone(),
            effectiveness,
            success,
            memory_ids: memory_ids.clone(),
            notes: notes.clone(),
            metrics_after: after.clone(),
            recorded_at: Store::stamp(now),
        };
        if let Some(id) = &chosen
            && call.store.has(&call.store.name(Sort::Intervention, id)?)
        {
            return Ok((id.clone(), repeated(call, &intervention)?, true));
        }
        let mut batch = Batch::default();
        let mut changed = Vec::new();
        for memory in &memory_ids {
            let mut stored = call.memory(memory)?;
            if stored.state.agent_id != task.agent_id {
                return Err(Failure::not_found("memory", memory));
            }
            let state = learned(&stored.state, effectiveness);
            // In the same write: evidence of its own could fail after it, and would count twice where the caller asks again.
            believe(&mut stored.record, success, effectiveness)?;
            let until = stored.record.valid_until.as_ref().map(|until| until.at());
            let shape =
                call.store.shape_of_memory(&mut batch, &state, &stored.record.content, until)?;
            call.store.change(&mut batch, &stored, &state, &shape)?;
            changed.push(state);
        }
        let said = notes.iter().map(String::as_str);
        let content: Vec<&str> = std::iter::once(kind.as_str()).chain(said).collect();
        let shape = Shape {
            content: content.join("\n"),
            experience_type: Some(ExperienceType::Decision),
            tier: Some(Tier::Session),
            importance: Some(effectiveness),
            event_time: Some(now),
            entities: call.store.add_owners(&mut batch, &task.agent_id, Some(&task.task_id))?,
            external_id: Some(format!("compass:{}", intervention.intervention_id)),
            ..Shape::default()
        };
        call.store.add(&mut batch, Sort::Intervention, &intervention, &shape)?;
        // The figures are those of the task from now on.
        if !after.is_empty() {
            let mut course = super::tasks::Course::of(call.task(&task.task_id)?);
            course.task.performance_metrics.extend(after.clone());
            course.is_changed = true;
            course.write(call, &mut batch, now)?;
        }
        call.commit(batch)?;
        Ok((intervention.intervention_id, changed, false))
    })?;
    let mut map = Map::new();
    map.insert("intervention_id", id);
    let updated = changed.iter().map(|memory| {
        let mut map = Map::new();
        map.insert("memory_id", memory.memory_id.as_str());
        map.insert("relevance_score", memory.relevance_score);
        map.insert("is_critical", memory.is_critical);
        Value::Object(map)
    });
    map.insert("updated", updated.collect::<Value>());
    if is_repeated {
        map.insert("unchanged", true);
    }
    Ok(map)
}

/// Returns the memories of an intervention that is sent again, because its answer was lost: as they are now.
fn repeated(call: &Call<'_>, again: &Intervention) -> Result<Vec<Memory>, Failure> {
    let id = &again.intervention_id;
    let known = call.store.get::<Intervention>(Sort::Intervention, id)?.map(|stored| stored.state);
    let is_same = known.is_some_and(|known| {
        known == Intervention { recorded_at: known.recorded_at.clone(), ..again.clone() }
    });
    if !is_same {
        return Err(Failure::conflict(format!("the id {id:?} is taken by another intervention")));
    }
    let memories = again.memory_ids.iter().map(|id| call.store.get::<Memory>(Sort::Memory, id));
    let memories =
        memories.filter_map(|stored| stored.map(|stored| Some(stored?.state)).transpose());
    memories.collect()
}

/// Returns a memory after an intervention that used it.
fn learned(memory: &Memory, effectiveness: f64) -> Memory {
    let mut state = memory.clone();
    state.relevance_score += LEARNING * (effectiveness - state.relevance_score);
    state.interventions += 1;
    state.effectiveness += effectiveness;
    criticality::note_interventions(&mut state);
    state
}

/// Counts the outcome as evidence for or against a memory, as `feedback` does.
fn believe(record: &mut MemoryRecord, success: bool, effectiveness: f64) -> Result<(), Failure> {
    let outcome = if success { FeedbackOutcome::Confirmed } else { FeedbackOutcome::Contradicted };
    let weight = Weight::new(effectiveness.max(0.1));
    let weight = weight.ok_or_else(|| Failure::internal("a share is no weight of evidence"))?;
    let confidence = record.confidence.get_or_insert_default();
    let stated = |number: &Option<Number>| number.as_ref().map(Number::as_f64);
    let before = match (stated(&confidence.alpha), stated(&confidence.beta)) {
        (Some(alpha), Some(beta)) => Beta::new(alpha, beta),
        _ => None,
    };
    let belief = before.unwrap_or(Beta::PRIOR).after(outcome, weight);
    confidence.alpha = Number::from_f64(belief.alpha());
    confidence.beta = Number::from_f64(belief.beta());
    confidence.calibrated = Number::from_f64(belief.damped());
    Ok(())
}

/// Lists what is critical, newest first.
pub(crate) fn get_critical_memories(call: &mut Call<'_>) -> Result<Map, Failure> {
    let by_task = call.params.has("task_id") && !call.params.has("agent_id");
    let agent = if by_task { None } else { Some(call.take_agent()?) };
    let task = call.take_task(agent.as_deref())?.map(|stored| stored.state);
    call.params.id("agent_id")?;
    let reasons = call.params.texts("reasons")?.unwrap_or_default();
    let limit = call.params.count("limit", 1, 1000)?.unwrap_or(100);
    call.params.finish()?;
    let search = match (&task, &agent) {
        (Some(task), _) => call.store.critical_of(task)?,
        (None, Some(agent)) => Search {
            min_importance: Some(CRITICAL_IMPORTANCE),
            ..Search::of(call.store.name(Sort::Agent, agent)?)
        },
        (None, None) => return Err(Failure::params("/task_id", "task_id: names no task")),
    };
    let (mut memories, mut total): (Vec<Stored<Memory>>, _) = (Vec::new(), 0);
    let mut failed = None;
    call.store.each_sketch(&search, |sketch| {
        let reason = sketch.memory.criticality_reason.as_deref();
        let is_wanted = || reason.is_some_and(|reason| reasons.iter().any(|known| known == reason));
        if !sketch.memory.is_critical || !(reasons.is_empty() || is_wanted()) {
            return;
        }
        total += 1;
        if memories.len() < limit {
            match sketch.whole() {
                Ok(stored) => memories.push(stored),
                Err(failure) => failed = Some(failure),
            }
        }
    })?;
    failed.map_or(Ok(()), Err)?;
    let shown = memories.iter().map(|stored| shown::memory(stored).map(Value::Object));
    let mut map = Map::new();
    map.insert("memories", Value::Array(shown.collect::<Result<Vec<_>, _>>()?));
    map.insert("total", total);
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_decide_what_to_look_at() {
        let of = |stated: &[Focus], metrics: &[(&str, f64)]| {
            let metrics = metrics.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
            focus(stated, &metrics)
        };
        assert_eq!(of(&[], &[]), []);
        assert_eq!(of(&[], &[("error_rate", 0.5)]), [Focus::Errors]);
        assert_eq!(of(&[], &[("error_rate", 0.3), ("progress_rate", 0.5)]), []);
        assert_eq!(
            of(&[Focus::Constraints], &[("progress_rate", 0.4)]),
            [Focus::Progress, Focus::Constraints]
        );
        assert_eq!(of(&[], &[("coherence_score", 0.7)]), [Focus::Constraints]);
    }
}
