//! Patterns among errors: looked for, kept, told of and listed.

use omir_core::instant::Timestamp;
use omir_core::model::{ExperienceType, Kind, Tier};
use omir_core::reference::Ref;
use omir_core::value::{Map, Value};

use crate::call::Call;
use crate::failure::Failure;
use crate::methods::criticality::make_critical;
use crate::methods::shown;
use crate::names::{self, Sort};
use crate::patterns::{self, Repeated};
use crate::signals::{Signal, SignalType};
use crate::state::{ErrorPattern, ErrorRecord, Memory, Task};
use crate::store::{Batch, Search, Shape, Store, Stored, retried};
use crate::words::PatternType;

/// Errors among which patterns are looked for, at most.
const MOST_EXAMINED: usize = 1000;
/// Errors that a pattern names, and those of one type that are a pattern by default.
const MOST_NAMED: usize = 64;
pub(crate) const LEAST_OFTEN: usize = 3;

/// The errors that a question is about: those of a task, or of an agent.
pub(crate) struct Scope {
    agent: String,
    task: Option<Task>,
    pub(crate) handle: Ref,
}

impl Scope {
    /// Returns the errors of a task.
    pub(crate) fn of_task(store: &Store, task: Task) -> Result<Self, Failure> {
        let handle = store.name(Sort::TaskHandle, &task.task_id)?;
        Ok(Self { agent: task.agent_id.clone(), task: Some(task), handle })
    }

    /// Reads which errors a call is about.
    pub(crate) fn asked(call: &mut Call<'_>) -> Result<Self, Failure> {
        let by_task = call.params.has("task_id") && !call.params.has("agent_id");
        let agent = if by_task { None } else { Some(call.take_agent()?) };
        let task = call.take_task(agent.as_deref())?.map(|stored| stored.state);
        call.params.id("agent_id")?;
        let agent = agent.or(task.as_ref().map(|task| task.agent_id.clone()));
        let agent = call.params.required("task_id", agent)?;
        let handle = match &task {
            Some(task) => call.store.name(Sort::TaskHandle, &task.task_id)?,
            None => call.store.name(Sort::Agent, &agent)?,
        };
        Ok(Self { agent, task, handle })
    }

    /// Returns a search for them, newest first.
    pub(crate) fn errors(&self) -> Search {
        Search { experience: vec![ExperienceType::Error], ..Search::of(self.handle.clone()) }
    }
}

/// Looks for patterns among errors, and keeps them.
pub(crate) fn detect_error_patterns(call: &mut Call<'_>) -> Result<Map, Failure> {
    let scope = Scope::asked(call)?;
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
    /// New ones.
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
                let search = Search { most: Some(MOST_EXAMINED), ..scope.errors() };
                store.find(&search)?
            }
        };
        errors.reverse();
        let states: Vec<&ErrorRecord> = errors.iter().map(|stored| &stored.state).collect();
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
        let first = known.as_ref().map(|stored| stored.state.first_seen.clone());
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
        let has_grown = |stored: &Stored<ErrorPattern>| {
            pattern.count as f64 >= stored.state.count as f64 * self.grown
                || pattern.prevention_strategy != stored.state.prevention_strategy
        };
        match known {
            Some(stored) if stored.state == pattern || !has_grown(&stored) => {}
            Some(stored) => drop(store.change(batch, &stored, &pattern, &shape)?),
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
        let mut found = found.into_iter().map(|stored| stored.state);
        if let Some(newest) = found.find(|memory| memory.success != Some(false)) {
            return Ok(Some(newest));
        }
    }
    Ok(None)
}

/// Returns the patterns under a handle, those that were seen last first.
pub(crate) fn patterns_under(
    call: &Call<'_>,
    handle: &Ref,
) -> Result<Vec<Stored<ErrorPattern>>, Failure> {
    let search = Search { experience: vec![ExperienceType::Pattern], ..Search::of(handle.clone()) };
    let mut all = call.store.find::<ErrorPattern>(&search)?;
    all.sort_by_key(|stored| std::cmp::Reverse(Timestamp::parse(&stored.state.last_seen).ok()));
    Ok(all)
}

pub(crate) fn shown_patterns(patterns: &[Stored<ErrorPattern>]) -> Result<Value, Failure> {
    let shown = patterns.iter().map(|stored| shown::pattern(&stored.state).map(Value::Object));
    Ok(Value::Array(shown.collect::<Result<Vec<_>, _>>()?))
}
