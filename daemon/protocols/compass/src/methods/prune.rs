//! `memory.prune`, and what a store puts aside by itself. What is pruned is archived: found when it is asked for, and kept.

use omir_core::instant::Timestamp;
use omir_core::reference::Ref;
use omir_core::value::Map;
use omird_engine::{Change, Effect};

use crate::active_memories::EvictionEntry;
use crate::call::Call;
use crate::failure::Failure;
use crate::names::Sort;
use crate::state::Memory;
use crate::store::{Batch, Search, Stored, retried};
use crate::words::{MemoryType, PruneMode, PruneStrategy};

/// The relevance below which `relevance` prunes by default.
const LITTLE: f64 = 0.2;
/// Most that one call prunes, and one store.
const MOST: usize = 1000;
const MOST_AT_ONCE: usize = 100;
/// The part of a payload that one write of memories which are put aside may take: what they refer to is written with them.
const PAYLOAD_PART: usize = 4;

/// Prunes memories of an agent or a task. Critical ones stay.
pub(crate) fn prune(call: &mut Call<'_>) -> Result<Map, Failure> {
    let named = call.params.has("agent_id");
    let own = match call.params.has("task_id") && !named {
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
    // Memories that were archived stay archived and count, even if a later part loses a race.
    let mut archived: Vec<String> = Vec::new();
    retried(|| {
        let expired = strategy == PruneStrategy::Expired;
        let search = Search { expired, ..Search::of(handle.clone()) };
        let (now, _) = call.store.now();
        let mut examined = 0;
        let mut chosen: Vec<Candidate> = Vec::new();
        call.store.each_sketch(&search, |sketch| {
            examined += 1;
            let memory = &sketch.memory;
            // A memory that is archived already may still be forgotten.
            let is_open = !memory.archived || mode == PruneMode::Forget;
            let is_one = match strategy {
                PruneStrategy::Capacity => true,
                PruneStrategy::Expired => sketch.valid_until.is_some_and(|until| until <= now),
                PruneStrategy::Relevance => memory.relevance_score < below,
            };
            if is_open && is_one {
                chosen.push(Candidate::of(&sketch.memory));
            }
        })?;
        let mut kept_critical = 0;
        if strategy == PruneStrategy::Capacity {
            (chosen, kept_critical) = above(call, chosen, task.is_some());
        }
        let before = chosen.len();
        chosen.retain(|one| !one.is_critical);
        kept_critical += before - chosen.len();
        chosen.truncate(most - archived.len());
        let ids = || chosen.iter().map(|one| one.id.clone()).collect();
        let (pruned, ids) = match (is_dry, mode) {
            (true, _) => (chosen.len(), ids()),
            (false, PruneMode::Archive) => {
                archive(call, &chosen, &mut archived)?;
                (archived.len(), archived.clone())
            }
            (false, PruneMode::Forget) => (forget(call, &chosen)?, ids()),
        };
        let mut map = Map::new();
        map.insert("examined", examined);
        map.insert("pruned", pruned);
        map.insert("kept_critical", kept_critical);
        map.insert("ids", ids);
        map.insert("dry_run", is_dry);
        Ok(map)
    })
}

/// A memory that may be pruned. An agent may have very many.
struct Candidate {
    id: String,
    agent: String,
    task: Option<String>,
    kind: MemoryType,
    relevance: f64,
    at: Option<Timestamp>,
    is_critical: bool,
}

impl Candidate {
    fn of(memory: &Memory) -> Self {
        Self {
            id: memory.memory_id.clone(),
            agent: memory.agent_id.clone(),
            task: memory.task_id.clone(),
            kind: memory.memory_type,
            relevance: memory.relevance_score,
            at: Timestamp::parse(&memory.timestamp).ok(),
            is_critical: memory.is_critical,
        }
    }
}

/// Returns those above the capacities, of least worth first, and how many stay above them because they are critical: these
/// are counted and never chosen.
fn above(call: &Call<'_>, all: Vec<Candidate>, is_task: bool) -> (Vec<Candidate>, usize) {
    let episodic = if is_task { call.settings.episodic_memory_capacity } else { 0 };
    let capacities = [
        (MemoryType::Episodic, episodic),
        (MemoryType::Semantic, call.settings.semantic_memory_capacity),
    ];
    let (mut chosen, mut kept) = (Vec::new(), 0);
    let mut rest = all;
    for (kind, capacity) in capacities {
        let (of_kind, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|one| one.kind == kind);
        rest = others;
        if capacity > 0 && of_kind.len() > capacity {
            let excess = of_kind.len() - capacity;
            let of_kind = of_least_worth(of_kind, excess);
            kept += excess - of_kind.len();
            chosen.extend(of_kind);
        }
    }
    (chosen, kept)
}

/// Returns so many that are not critical: of little relevance first, and of these the oldest.
fn of_least_worth(mut memories: Vec<Candidate>, count: usize) -> Vec<Candidate> {
    memories.retain(|one| !one.is_critical);
    memories.sort_by(|a, b| {
        let relevance = a.relevance.total_cmp(&b.relevance);
        relevance.then_with(|| a.at.cmp(&b.at)).then_with(|| a.id.cmp(&b.id))
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
    let active_memories = &call.shared.active_memories;
    let known = active_memories.excess(&handle, capacity, MOST_AT_ONCE);
    let excess = match known {
        Some(excess) => excess,
        None => {
            active_memories.begin(&handle, new.memory_type);
            let mut read = Vec::new();
            let search = Search::of(handle.clone());
            call.store
                .each_sketch(&search, |sketch| read.push(EvictionEntry::of(&sketch.memory)))?;
            active_memories.complete(&handle, read);
            active_memories.excess(&handle, capacity, MOST_AT_ONCE).unwrap_or_default()
        }
    };
    // The rest goes with the next one: a store must not be refused for what it puts aside.
    let (mut pruned, mut bytes, most) = (0, 0, most_bytes(call));
    for id in excess {
        match call.store.get_readable::<Memory>(Sort::Memory, &id)? {
            Some(stored) if !stored.state.archived && !stored.state.is_critical => {
                bytes += stored.bytes.len();
                if pruned > 0 && bytes > most {
                    break;
                }
                put_aside(call, batch, &stored)?;
                pruned += 1;
            }
            // Another client has changed it since.
            Some(stored) => call.shared.enter(&call.store, &stored.state)?,
            None => active_memories.remove(&handle, &id),
        }
    }
    Ok(pruned)
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

/// Adds to a write that a memory is put aside.
fn put_aside(call: &Call<'_>, batch: &mut Batch, stored: &Stored<Memory>) -> Result<(), Failure> {
    let mut state = stored.state.clone();
    state.archived = true;
    let until = stored.record.valid_until.as_ref().map(|until| until.at());
    let shape = call.store.shape_of_memory(batch, &state, &stored.record.content, until)?;
    call.store.change(batch, stored, &state, &shape)?;
    Ok(())
}

/// Returns the bytes of records that one write may put aside. A single one may be larger: it was stored by itself.
fn most_bytes(call: &Call<'_>) -> usize {
    call.store.engine().settings().limits.max_payload_bytes / PAYLOAD_PART
}

/// Puts memories aside, in as many writes as their sizes need. Adds those of each write that is done to `archived`.
fn archive(
    call: &mut Call<'_>,
    chosen: &[Candidate],
    archived: &mut Vec<String>,
) -> Result<(), Failure> {
    let most = most_bytes(call);
    let (mut batch, mut ids, mut bytes) = (Batch::default(), Vec::new(), 0);
    for one in chosen {
        // Read again: what a search found tells no version. Another client may have changed or forgotten it since.
        let stored = call.store.get_readable::<Memory>(Sort::Memory, &one.id)?;
        let is_open = |stored: &Stored<Memory>| !stored.state.archived && !stored.state.is_critical;
        let Some(stored) = stored.filter(is_open) else { continue };
        if !ids.is_empty() && (bytes + stored.bytes.len() > most || ids.len() == MOST_AT_ONCE) {
            call.commit(std::mem::take(&mut batch))?;
            archived.append(&mut ids);
            bytes = 0;
        }
        put_aside(call, &mut batch, &stored)?;
        bytes += stored.bytes.len();
        ids.push(one.id.clone());
    }
    if !batch.is_empty() {
        call.commit(batch)?;
        archived.append(&mut ids);
    }
    Ok(())
}

fn forget(call: &mut Call<'_>, chosen: &[Candidate]) -> Result<usize, Failure> {
    if chosen.is_empty() {
        return Ok(0);
    }
    let names = chosen.iter().map(|one| call.store.name(Sort::Memory, &one.id));
    let names = names.collect::<Result<Vec<Ref>, Failure>>()?;
    call.admitted.touched(&names);
    let receipt = call.store.engine().execute(Change::Forget(names))?;
    for one in chosen {
        for handle in call.store.owners(&one.agent, one.task.as_deref())? {
            call.shared.active_memories.remove(&handle, &one.id);
        }
    }
    Ok(match receipt.effect {
        Effect::Forgotten(count) => usize::try_from(count).unwrap_or(usize::MAX),
        _ => chosen.len(),
    })
}
