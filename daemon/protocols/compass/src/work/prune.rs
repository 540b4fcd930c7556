//! `memory.prune`, and what a store puts aside by itself. What is pruned is archived: found when it is asked for, and kept.

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::Map;
use omird_engine::{Change, Effect};

use crate::ask::Ask;
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
pub(crate) fn prune(ask: &mut Ask<'_>) -> Result<Map, Failure> {
    let named = ask.params.states("agent_id");
    let own = match ask.params.states("task_id") && !named {
        true => None,
        false => Some(ask.take_agent()?),
    };
    let task = ask.take_task(own.as_deref())?;
    let params = &mut ask.params;
    // The agent of the task is known by now.
    params.id("agent_id")?;
    let strategy = params.word("strategy")?.unwrap_or(PruneStrategy::Capacity);
    let below = params.share("below")?.unwrap_or(LITTLE);
    let mode = params.word("mode")?.unwrap_or(PruneMode::Archive);
    let most = params.count("max", 1, MOST)?.unwrap_or(MOST);
    let is_dry = params.flag("dry_run")?.unwrap_or(false);
    params.finish()?;
    if mode == PruneMode::Forget {
        ask.who.check_operator("to forget")?;
    }
    if !is_dry {
        ask.expect_change()?;
    }
    let handle = match (&task, &own) {
        (Some(task), _) => ask.store.name(Sort::TaskHandle, &task.state.task_id)?,
        (None, Some(agent)) => ask.store.name(Sort::Agent, agent)?,
        (None, None) => return Err(Failure::params("/task_id", "task_id: names no task")),
    };
    retried(|| {
        let expired = strategy == PruneStrategy::Expired;
        let search = Search { expired, ..Search::of(handle.clone()) };
        let found = ask.store.find::<Memory>(&search)?;
        let all: Vec<Kept<Memory>> = found.into_iter().map(|found| found.kept).collect();
        let examined = all.len();
        let (now, _) = ask.store.now();
        // What is archived already may still be forgotten.
        let is_open = |kept: &Kept<Memory>| !kept.state.archived || mode == PruneMode::Forget;
        let mut chosen: Vec<Kept<Memory>> = match strategy {
            PruneStrategy::Capacity => {
                above(ask, all.into_iter().filter(is_open).collect(), task.is_some())
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
            (false, PruneMode::Archive) => archive(ask, &chosen)?,
            (false, PruneMode::Forget) => forget(ask, &chosen)?,
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
fn above(ask: &Ask<'_>, all: Vec<Kept<Memory>>, is_task: bool) -> Vec<Kept<Memory>> {
    let capacity = |kind| match kind {
        MemoryType::Episodic if is_task => ask.settings.episodic_memory_capacity,
        MemoryType::Semantic => ask.settings.semantic_memory_capacity,
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
    ask: &Ask<'_>,
    batch: &mut Batch,
    new: &Memory,
) -> Result<usize, Failure> {
    let Some((handle, capacity)) = bound_of(ask, new)? else { return Ok(0) };
    // The hint spares reading all of them at each store.
    if ask.counts.one_more(&handle).is_some_and(|count| count <= capacity) {
        return Ok(0);
    }
    let mut active = ask.store.all::<Memory>(handle.clone())?;
    active.retain(|kept| kept.state.memory_type == new.memory_type && !kept.state.archived);
    let count = active.len() + 1;
    if count <= capacity {
        ask.counts.note(&handle, count);
        return Ok(0);
    }
    let chosen = of_least_worth(active, count - capacity);
    for kept in &chosen {
        put_aside(ask, batch, kept)?;
    }
    ask.counts.note(&handle, count - chosen.len());
    Ok(chosen.len())
}

/// Lets the count go that a failed store has raised.
pub(crate) fn miscounted(ask: &Ask<'_>, memory: &Memory) {
    if let Ok(Some((handle, _))) = bound_of(ask, memory) {
        ask.counts.forget(&handle);
    }
}

/// Returns the handle under which memories like this one are counted, and their bound.
fn bound_of(ask: &Ask<'_>, memory: &Memory) -> Result<Option<(Ref, usize)>, Failure> {
    let (sort, id, capacity) = match (memory.memory_type, &memory.task_id) {
        (MemoryType::Episodic, Some(task)) => {
            (Sort::TaskHandle, task, ask.settings.episodic_memory_capacity)
        }
        (MemoryType::Semantic, _) => {
            (Sort::Agent, &memory.agent_id, ask.settings.semantic_memory_capacity)
        }
        _ => return Ok(None),
    };
    Ok(if capacity == 0 { None } else { Some((ask.store.name(sort, id)?, capacity)) })
}

/// Adds to a write that a memory is put aside. It is read anew: what a search found may be older than what is stored.
fn put_aside(ask: &Ask<'_>, batch: &mut Batch, found: &Kept<Memory>) -> Result<(), Failure> {
    let Some(kept) = ask.store.get::<Memory>(Sort::Memory, &found.state.memory_id)? else {
        // Somebody else has forgotten it since.
        return Ok(());
    };
    let mut state = kept.state.clone();
    state.archived = true;
    let until = kept.record.valid_until.as_ref().map(|until| until.at());
    let shape = ask.store.shape_of_memory(batch, &state, &kept.record.content, until)?;
    ask.store.change(batch, &kept, &state, &shape)?;
    Ok(())
}

fn archive(ask: &mut Ask<'_>, chosen: &[Kept<Memory>]) -> Result<usize, Failure> {
    let mut batch = Batch::default();
    for kept in chosen {
        put_aside(ask, &mut batch, kept)?;
    }
    if !batch.is_empty() {
        ask.commit(batch)?;
    }
    chosen.iter().for_each(|kept| miscounted(ask, &kept.state));
    Ok(chosen.len())
}

fn forget(ask: &mut Ask<'_>, chosen: &[Kept<Memory>]) -> Result<usize, Failure> {
    if chosen.is_empty() {
        return Ok(0);
    }
    let names = chosen.iter().map(|kept| ask.store.name(Sort::Memory, &kept.state.memory_id));
    let names = names.collect::<Result<Vec<Ref>, Failure>>()?;
    ask.admitted.touched(&names);
    let receipt = ask.store.engine().execute(Change::Forget(names))?;
    chosen.iter().for_each(|kept| miscounted(ask, &kept.state));
    Ok(match receipt.effect {
        Effect::Forgotten(count) => usize::try_from(count).unwrap_or(usize::MAX),
        _ => chosen.len(),
    })
}
