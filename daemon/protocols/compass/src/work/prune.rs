//! `memory.prune`, and what a store puts aside by itself. What is pruned is archived: found when it is asked for, and kept.

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::Map;
use omird_engine::{Change, Effect};

use crate::call::Call;
use crate::failure::Failure;
use crate::names::Sort;
use crate::state::Memory;
use crate::store::{Batch, Kept, Search, retried};
use crate::words::{MemoryType, PruneMode, PruneStrategy};

/// The relevance below which `relevance` prunes, if nobody says otherwise.
const LITTLE: f64 = 0.2;
/// Most that one call prunes.
const MOST: usize = 1000;

/// Prunes memories of an agent or a task. Critical ones stay.
pub(crate) fn prune(call: &mut Call<'_>) -> Result<Map, Failure> {
    let named = call.params.states("agent_id");
    let own = match call.params.states("task_id") && !named {
        true => None,
        false => Some(call.take_agent()?),
    };
    let task = call.take_task(own.as_deref())?;
    let params = &mut call.params;
    // The agent of the task is known by now.
    params.id("agent_id")?;
    let strategy = params.word("strategy")?.unwrap_or(PruneStrategy::Capacity);
    let below = params.share("below")?.unwrap_or(LITTLE);
    let mode = params.word("mode")?.unwrap_or(PruneMode::Archive);
    let most = params.count("max", 1, MOST)?.unwrap_or(MOST);
    let is_dry = params.flag("dry_run")?.unwrap_or(false);
    params.finish()?;
    if mode == PruneMode::Forget {
        call.who.check_operator("to forget")?;
    }
    if !is_dry {
        call.expect_change()?;
    }
    let handle = match (&task, &own) {
        (Some(task), _) => call.store.name(Sort::TaskHandle, &task.state.task_id)?,
        (None, Some(agent)) => call.store.name(Sort::Agent, agent)?,
        (None, None) => return Err(Failure::params("/task_id", "task_id: names no task")),
    };
    retried(|| {
        let expired = strategy == PruneStrategy::Expired;
        let search = Search { expired, ..Search::of(handle.clone()) };
        let found = call.store.find::<Memory>(&search)?;
        let all: Vec<Kept<Memory>> = found.into_iter().map(|found| found.kept).collect();
        let examined = all.len();
        let (now, _) = call.store.now();
        // What is archived already may still be forgotten.
        let is_open = |kept: &Kept<Memory>| !kept.state.archived || mode == PruneMode::Forget;
        let mut chosen: Vec<Kept<Memory>> = match strategy {
            PruneStrategy::Capacity => {
                above(call, all.into_iter().filter(is_open).collect(), task.is_some())
            }
            PruneStrategy::Expired => {
                all.into_iter().filter(|kept| is_open(kept) && is_over(kept, now)).collect()
            }
            PruneStrategy::Relevance => {
                let is_little = |kept: &Kept<Memory>| kept.state.relevance_score < below;
                all.into_iter().filter(|kept| is_open(kept) && is_little(kept)).collect()
            }
        };
        let before = chosen.len();
        chosen.retain(|kept| !kept.state.is_critical);
        let kept_critical = before - chosen.len();
        chosen.truncate(most);
        let pruned = match (is_dry, mode) {
            (true, _) => chosen.len(),
            (false, PruneMode::Archive) => archive(call, &chosen)?,
            (false, PruneMode::Forget) => forget(call, &chosen)?,
        };
        let mut map = Map::new();
        map.insert("examined", examined);
        map.insert("pruned", pruned);
        map.insert("kept_critical", kept_critical);
        let ids = chosen.iter().map(|kept| kept.state.memory_id.as_str());
        map.insert("ids", ids.collect::<Vec<_>>());
        map.insert("dry_run", is_dry);
        Ok(map)
    })
}

fn is_over(kept: &Kept<Memory>, now: Timestamp) -> bool {
    kept.record.valid_until.as_ref().is_some_and(|until| until.at() <= now)
}

/// Returns those above the capacities, of least worth first; critical ones are counted and never chosen.
fn above(call: &Call<'_>, all: Vec<Kept<Memory>>, is_task: bool) -> Vec<Kept<Memory>> {
    let capacity = |kind| match kind {
        MemoryType::Episodic if is_task => call.settings.episodic_memory_capacity,
        MemoryType::Semantic => call.settings.semantic_memory_capacity,
        _ => 0,
    };
    let mut chosen = Vec::new();
    let mut of_kind: [Vec<Kept<Memory>>; 2] = Default::default();
    for kept in all {
        match kept.state.memory_type {
            MemoryType::Episodic => of_kind[0].push(kept),
            MemoryType::Semantic => of_kind[1].push(kept),
            _ => {}
        }
    }
    for (kind, memories) in [MemoryType::Episodic, MemoryType::Semantic].into_iter().zip(of_kind) {
        let capacity = capacity(kind);
        if capacity > 0 && memories.len() > capacity {
            let excess = memories.len() - capacity;
            chosen.extend(of_least_worth(memories, excess));
        }
    }
    chosen
}

/// Returns so many that are not critical: of little relevance first, and of these the oldest.
fn of_least_worth(mut memories: Vec<Kept<Memory>>, count: usize) -> Vec<Kept<Memory>> {
    memories.retain(|kept| !kept.state.is_critical);
    memories.sort_by(|a, b| {
        let time = |kept: &Kept<Memory>| Timestamp::parse(&kept.state.timestamp).ok();
        let relevance = a.state.relevance_score.total_cmp(&b.state.relevance_score);
        relevance
            .then_with(|| time(a).cmp(&time(b)))
            .then_with(|| a.state.memory_id.cmp(&b.state.memory_id))
    });
    memories.truncate(count);
    memories
}

/// Adds to a write that stores one more what goes beyond the capacity by it; returns how many.
pub(crate) fn above_capacity(
    call: &Call<'_>,
    batch: &mut Batch,
    new: &Memory,
) -> Result<usize, Failure> {
    let Some((handle, capacity)) = bound_of(call, new)? else { return Ok(0) };
    // The hint spares reading all of them at each store.
    if call.counts.one_more(&handle).is_some_and(|count| count <= capacity) {
        return Ok(0);
    }
    let mut active = call.store.all::<Memory>(handle.clone())?;
    active.retain(|kept| kept.state.memory_type == new.memory_type && !kept.state.archived);
    let count = active.len() + 1;
    if count <= capacity {
        call.counts.note(&handle, count);
        return Ok(0);
    }
    let chosen = of_least_worth(active, count - capacity);
    for kept in &chosen {
        put_aside(call, batch, kept)?;
    }
    call.counts.note(&handle, count - chosen.len());
    Ok(chosen.len())
}

/// Lets the count go that a failed store has raised.
pub(crate) fn miscounted(call: &Call<'_>, memory: &Memory) {
    if let Ok(Some((handle, _))) = bound_of(call, memory) {
        call.counts.forget(&handle);
    }
}

/// Returns the handle under which memories like this one are counted, and their bound.
fn bound_of(call: &Call<'_>, memory: &Memory) -> Result<Option<(Ref, usize)>, Failure> {
    let (sort, id, capacity) = match (memory.memory_type, &memory.task_id) {
        (MemoryType::Episodic, Some(task)) => {
            (Sort::TaskHandle, task, call.settings.episodic_memory_capacity)
        }
        (MemoryType::Semantic, _) => {
            (Sort::Agent, &memory.agent_id, call.settings.semantic_memory_capacity)
        }
        _ => return Ok(None),
    };
    Ok(if capacity == 0 { None } else { Some((call.store.name(sort, id)?, capacity)) })
}

/// Adds to a write that a memory is put aside. It is read again: what a search found may be older than what is stored.
fn put_aside(call: &Call<'_>, batch: &mut Batch, found: &Kept<Memory>) -> Result<(), Failure> {
    let Some(kept) = call.store.get::<Memory>(Sort::Memory, &found.state.memory_id)? else {
        // Somebody else has forgotten it since.
        return Ok(());
    };
    let mut state = kept.state.clone();
    state.archived = true;
    let until = kept.record.valid_until.as_ref().map(|until| until.at());
    let shape = call.store.shape_of_memory(batch, &state, &kept.record.content, until)?;
    call.store.change(batch, &kept, &state, &shape)?;
    Ok(())
}

fn archive(call: &mut Call<'_>, chosen: &[Kept<Memory>]) -> Result<usize, Failure> {
    let mut batch = Batch::default();
    for kept in chosen {
        put_aside(call, &mut batch, kept)?;
    }
    if !batch.is_empty() {
        call.commit(batch)?;
    }
    chosen.iter().for_each(|kept| miscounted(call, &kept.state));
    Ok(chosen.len())
}

fn forget(call: &mut Call<'_>, chosen: &[Kept<Memory>]) -> Result<usize, Failure> {
    if chosen.is_empty() {
        return Ok(0);
    }
    let names = chosen.iter().map(|kept| call.store.name(Sort::Memory, &kept.state.memory_id));
    let names = names.collect::<Result<Vec<Ref>, Failure>>()?;
    call.admitted.touched(&names);
    let receipt = call.store.engine().execute(Change::Forget(names))?;
    chosen.iter().for_each(|kept| miscounted(call, &kept.state));
    Ok(match receipt.effect {
        Effect::Forgotten(count) => usize::try_from(count).unwrap_or(usize::MAX),
        _ => chosen.len(),
    })
}
