//! The methods of compression: a stage or task on request, its measures, and how hard it is.

use omir_core::instant::Timestamp;
use omir_core::model::Tier;
use omir_core::value::{Map, Value};

use crate::call::Call;
use crate::failure::Failure;
use crate::methods::modelled::take_preference;
use crate::methods::shown;
use crate::names::Sort;
use crate::state::{AgentSettings, Compression, Metric, Stage, Task};
use crate::store::{Batch, Shape, retried};

use crate::methods::tasks::{Course, compressed, memories_of_stage, shape_of_stage, take_summary};

/// Summarises a stage, which stays open if it was.
pub(crate) fn compress_stage(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("stage_id")?;
    let id = call.params.required("stage_id", id)?.to_owned();
    let ratio = call.params.number("ratio", 1.0, 20.0)?;
    take_preference(call)?;
    call.params.finish()?;
    retried(|| {
        let stored = call.stage(&id)?;
        let task = call.task(&stored.state.task_id)?;
        let memories = memories_of_stage(call, &id)?;
        let ratio = match ratio {
            Some(ratio) => ratio,
            None => Course::of(task.clone()).in_force(call, &memories)?.stage_ratio,
        };
        let made = compressed(call, &task.state, &memories, ratio, None)?;
        let (now, _) = call.store.now();
        let mut stage = stored.state.clone();
        let metric = take_summary(call, &mut stage, made, now);
        let mut batch = Batch::default();
        let shape = shape_of_stage(call, &mut batch, &stage)?;
        call.store.change(&mut batch, &stored, &stage, &shape)?;
        call.commit(batch)?;
        let mut map = Map::new();
        map.insert("stage", shown::stage(&stage)?);
        map.insert("metric", shown::metric(&metric)?);
        Ok(map)
    })
}

/// Summarises the stages of a task that are completed.
pub(crate) fn compress_task(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("task_id")?;
    let id = call.params.required("task_id", id)?.to_owned();
    let ratio = call.params.number("ratio", 1.0, 10.0)?;
    take_preference(call)?;
    call.params.finish()?;
    retried(|| {
        let mut course = Course::of(call.task(&id)?);
        let (now, _) = call.store.now();
        let Some(metric) = course.summarise(call, None, ratio, true, now)? else {
            let message = "there is nothing to compress: no stage of the task is completed";
            return Err(Failure::not_compressed(message));
        };
        let mut batch = Batch::default();
        let task = course.write(call, &mut batch, now)?;
        call.commit(batch)?;
        let mut map = Map::new();
        map.insert("task_progress_summary", task.task_progress_summary);
        map.insert("critical_facts", task.critical_facts);
        map.insert("metric", shown::metric(&metric)?);
        Ok(map)
    })
}

/// Tells how stages and tasks were compressed: the last eight times of each.
pub(crate) fn get_compression_metrics(call: &mut Call<'_>) -> Result<Map, Failure> {
    let named = call.params.has("agent_id");
    let is_narrow = call.params.has("task_id") || call.params.has("stage_id");
    let agent = if named || !is_narrow { Some(call.take_agent()?) } else { None };
    let task = call.take_task(agent.as_deref())?.map(|stored| stored.state);
    let stage = match call.params.id("stage_id")? {
        Some(id) => Some(call.stage(id)?.state),
        None => None,
    };
    call.params.id("agent_id")?;
    let since = call.params.instant("since")?;
    call.params.finish()?;
    let mut metrics: Vec<Metric> = Vec::new();
    match (&stage, &task, &agent) {
        (Some(stage), _, _) => metrics.extend(stage.metrics.clone()),
        (None, Some(task), _) => {
            metrics.extend(task.metrics.clone());
            let handle = call.store.name(Sort::TaskHandle, &task.task_id)?;
            let stages = call.store.all::<Stage>(handle)?;
            metrics.extend(stages.into_iter().flat_map(|stored| stored.state.metrics));
        }
        (None, None, Some(agent)) => {
            let handle = call.store.name(Sort::Agent, agent)?;
            let stages = call.store.all::<Stage>(handle.clone())?;
            metrics.extend(stages.into_iter().flat_map(|stored| stored.state.metrics));
            let tasks = call.store.all::<Task>(handle)?;
            metrics.extend(tasks.into_iter().flat_map(|stored| stored.state.metrics));
        }
        (None, None, None) => {}
    }
    let at = |metric: &Metric| Timestamp::parse(&metric.recorded_at).ok();
    metrics.retain(|metric| since.is_none_or(|since| at(metric).is_some_and(|at| at >= since)));
    metrics.sort_by_key(|metric| std::cmp::Reverse(at(metric)));
    let mut map = Map::new();
    let shown = metrics.iter().map(|metric| shown::metric(metric).map(Value::Object));
    map.insert("metrics", Value::Array(shown.collect::<Result<Vec<_>, _>>()?));
    map.insert("summary", summary(&metrics));
    map.insert("budget", call.shared.account.shown(&call.shared.engine, call.settings)?);
    Ok(map)
}

fn summary(metrics: &[Metric]) -> Value {
    let mean = |of: fn(&Metric) -> f64| {
        let sum: f64 = metrics.iter().map(of).sum();
        (!metrics.is_empty()).then(|| sum / metrics.len() as f64)
    };
    let input: u64 = metrics.iter().map(|metric| metric.input_tokens).sum();
    let output: u64 = metrics.iter().map(|metric| metric.output_tokens).sum();
    let least = metrics.iter().map(|metric| metric.critical_fact_retention_rate).reduce(f64::min);
    let mut map = Map::new();
    map.insert("count", metrics.len());
    map.insert("mean_ratio", mean(|metric| metric.compression_ratio));
    map.insert("min_retention", least);
    map.insert("mean_coherence", mean(|metric| metric.coherence_score));
    map.insert("input_tokens", input);
    map.insert("output_tokens", output);
    let saved = (input > 0).then(|| 100.0 * (1.0 - output as f64 / input as f64));
    map.insert("saved_pct", saved);
    map.insert("cost_usd", metrics.iter().map(|metric| metric.cost_usd).sum::<f64>());
    Value::Object(map)
}

/// Sets how hard a task, or all tasks of an agent, are compressed.
pub(crate) fn adjust_compression(call: &mut Call<'_>) -> Result<Map, Failure> {
    let by_task = call.params.has("task_id") && !call.params.has("agent_id");
    let agent = if by_task { None } else { Some(call.take_agent()?) };
    let id = call.params.id("task_id")?.map(str::to_owned);
    call.params.id("agent_id")?;
    let params = &mut call.params;
    let wanted = Compression {
        aggressiveness: params.share("aggressiveness")?,
        stage_ratio: params.number("stage_ratio", 1.0, 20.0)?,
        task_ratio: params.number("task_ratio", 1.0, 10.0)?,
        auto: params.flag("auto")?,
    };
    params.finish()?;
    if wanted == Compression::default() {
        let message = "aggressiveness: state it, or stage_ratio, task_ratio or auto";
        return Err(Failure::params("/aggressiveness", message));
    }
    retried(|| {
        let (now, _) = call.store.now();
        let mut batch = Batch::default();
        let course = match (&id, &agent) {
            (Some(id), _) => {
                let task = call.task(id)?;
                if agent.as_ref().is_some_and(|agent| *agent != task.state.agent_id) {
                    return Err(Failure::not_found("task", id));
                }
                let mut course = Course::of(task);
                take(&mut course.task.compression, &wanted);
                course.is_changed = true;
                course
            }
            (None, Some(agent)) => {
                set_of_agent(call, &mut batch, agent, &wanted)?;
                call.commit(batch)?;
                // A task without settings of its own shows what is in force.
                let course = Course::open(call, "", agent, now);
                return in_force(call, &course);
            }
            (None, None) => return Err(Failure::params("/task_id", "task_id: names no task")),
        };
        let shown = in_force(call, &course)?;
        course.write(call, &mut batch, now)?;
        call.commit(batch)?;
        Ok(shown)
    })
}

/// Returns the settings in force for a task.
fn in_force(call: &Call<'_>, course: &Course) -> Result<Map, Failure> {
    let memories = match &course.task.current_stage_id {
        Some(stage) => memories_of_stage(call, stage)?,
        None => Vec::new(),
    };
    let force = course.in_force(call, &memories)?;
    let mut map = Map::new();
    map.insert("aggressiveness", force.aggressiveness);
    map.insert("auto", force.auto);
    map.insert("stage_ratio", force.stage_ratio);
    map.insert("task_ratio", force.task_ratio);
    Ok(map)
}

/// Takes over what is stated; the rest stays.
fn take(settings: &mut Compression, wanted: &Compression) {
    settings.aggressiveness = wanted.aggressiveness.or(settings.aggressiveness);
    settings.stage_ratio = wanted.stage_ratio.or(settings.stage_ratio);
    settings.task_ratio = wanted.task_ratio.or(settings.task_ratio);
    settings.auto = wanted.auto.or(settings.auto);
}

fn set_of_agent(
    call: &Call<'_>,
    batch: &mut Batch,
    agent: &str,
    wanted: &Compression,
) -> Result<(), Failure> {
    let known = call.store.get::<AgentSettings>(Sort::Settings, agent)?;
    let mut state = AgentSettings {
        tenant: call.store.tenant().to_owned(),
        agent_id: agent.to_owned(),
        compression: known
            .as_ref()
            .map(|stored| stored.state.compression.clone())
            .unwrap_or_default(),
    };
    take(&mut state.compression, wanted);
    let shape = Shape {
        content: format!("Settings of the agent {agent}"),
        tier: Some(Tier::Longterm),
        anchored: true,
        entities: call.store.add_owners(batch, agent, None)?,
        external_id: Some(format!("compass:settings:{agent}")),
        ..Shape::default()
    };
    match known {
        Some(stored) => call.store.change(batch, &stored, &state, &shape)?,
        None => call.store.add(batch, Sort::Settings, &state, &shape)?,
    };
    Ok(())
}
