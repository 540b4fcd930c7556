//! Why a memory is critical: a caller's word, the rules for a new memory, severe errors, interventions and successes.
//!
//! | reason | given by |
//! |---|---|
//! | the caller's, or `manual` | [`criticise`], [`update_criticality`] |
//! | `constraint` | [`criticise`], [`note_constraint`] |
//! | `error_recovery` | [`criticise`] |
//! | `error_prevention` | [`criticise`], [`prevent`], patterns by [`make_critical`] |
//! | `intervention` | [`note_interventions`] |
//! | `frequent_success` | [`learn_from_success`] |

use omir_core::value::Map;

use crate::call::Call;
use crate::failure::Failure;
use crate::methods::retrieve::contradict;
use crate::methods::store::valid_until;
use crate::names::Sort;
use crate::state::{ErrorRecord, Memory, Task};
use crate::store::{Batch, Search, Store, Stored, retried};

/// Severe errors of a task, and memories linked to them, that a new memory is compared with.
const MOST_SEVERE: usize = 10;
const MOST_LINKED_OF_TASK: usize = 20;
/// Memories of an error, words of each, and memories with such words, that are compared.
const MOST_LINKED_OF_ERROR: usize = 5;
const MOST_WORDS: usize = 50;
const MOST_COMPARED: usize = 20;
/// Interventions, and their mean effectiveness, from which on a memory is critical.
const OFTEN: u32 = 3;
const EFFECTIVE: f64 = 0.7;
/// Tasks that ended well, and uses by them, from which on a memory is critical.
const SUCCESSES: u32 = 2;
const SUCCESS_USES: u32 = 5;
/// Memories that one task makes worth more: each is written.
const MOST_LEARNT: usize = 16;

/// The caller's word about a new memory.
pub(crate) struct Stated<'a> {
    pub(crate) is_critical: Option<bool>,
    pub(crate) reason: Option<&'a str>,
}

/// Decides if a memory is critical: the caller's word, else the rules.
pub(crate) fn criticise(
    call: &Call<'_>,
    memory: &mut Memory,
    content: &str,
    stated: &Stated<'_>,
    task: Option<&Task>,
) -> Result<(), Failure> {
    if let Some(error) = &memory.corrects {
        the_error(call, error, &memory.agent_id)?;
    }
    let reason = match stated.is_critical {
        Some(true) => Some(stated.reason.unwrap_or("manual")),
        Some(false) => None,
        None => by_rule(call, memory, content, task)?,
    };
    memory.is_critical = reason.is_some();
    memory.criticality_reason = reason.map(str::to_owned);
    Ok(())
}

fn the_error(call: &Call<'_>, id: &str, agent: &str) -> Result<Stored<ErrorRecord>, Failure> {
    let error = call.store.get::<ErrorRecord>(Sort::Error, id)?;
    let own = error.filter(|error| error.state.agent_id == agent);
    own.ok_or_else(|| Failure::not_found("error", id))
}

/// Returns the rule by which a new memory is critical.
fn by_rule(
    call: &Call<'_>,
    memory: &Memory,
    content: &str,
    task: Option<&Task>,
) -> Result<Option<&'static str>, Failure> {
    if says_constraint(content) {
        return Ok(Some("constraint"));
    }
    if memory.corrects.is_some() && memory.success != Some(false) {
        return Ok(Some("error_recovery"));
    }
    let Some(task) = task else { return Ok(None) };
    let threshold = Some(call.settings.error_severity_threshold);
    let severe = call.store.errors_of(task, MOST_SEVERE, threshold)?;
    for id in severe.iter().flat_map(|error| &error.state.memory_ids).take(MOST_LINKED_OF_TASK) {
        if let Some(linked) = call.store.get_readable::<Memory>(Sort::Memory, id)?
            && contradict(&linked.record.content, content)
        {
            return Ok(Some("error_prevention"));
        }
    }
    Ok(None)
}

fn says_constraint(content: &str) -> bool {
    !omird_text::critical_facts(content).is_empty()
}

/// Makes a memory critical whose new content says a constraint.
pub(crate) fn note_constraint(memory: &mut Memory, content: &str) {
    if !memory.is_decided && !memory.is_critical && says_constraint(content) {
        memory.is_critical = true;
        memory.criticality_reason = Some("constraint".to_owned());
    }
}

/// Makes those memories critical that contradict one which a severe error is linked to: they would have prevented it.
pub(crate) fn prevent(
    call: &Call<'_>,
    batch: &mut Batch,
    task: &Task,
    error: &ErrorRecord,
) -> Result<(), Failure> {
    let handle = call.store.name(Sort::TaskHandle, &task.task_id)?;
    let mut changed: Vec<String> = Vec::new();
    for id in error.memory_ids.iter().take(MOST_LINKED_OF_ERROR) {
        let Some(linked) = call.store.get_readable::<Memory>(Sort::Memory, id)? else { continue };
        let content = linked.record.content.as_str();
        let words: Vec<&str> = content.split_whitespace().take(MOST_WORDS).collect();
        let search = Search {
            text: Some(words.join(" ")),
            newest: false,
            most: Some(MOST_COMPARED),
            ..Search::of(handle.clone())
        };
        for found in call.store.find::<Memory>(&search)? {
            let other = &found;
            let is_open = !other.state.is_critical && !other.state.is_decided;
            let id = &other.state.memory_id;
            if !is_open || changed.contains(id) || !contradict(content, &other.record.content) {
                continue;
            }
            if make_critical(&call.store, batch, id)? {
                changed.push(id.clone());
            }
        }
    }
    Ok(())
}

/// Adds to a write that a memory prevents errors, unless it is critical anyway or a caller has said otherwise.
pub(crate) fn make_critical(store: &Store, batch: &mut Batch, id: &str) -> Result<bool, Failure> {
    let Some(stored) = store.get_readable::<Memory>(Sort::Memory, id)? else { return Ok(false) };
    // Two patterns may name one memory.
    if stored.state.is_critical || stored.state.is_decided || batch.writes_memory(id) {
        return Ok(false);
    }
    let mut state = stored.state.clone();
    state.is_critical = true;
    state.criticality_reason = Some("error_prevention".to_owned());
    let until = stored.record.valid_until.as_ref().map(|until| until.at());
    let shape = store.shape_of_memory(batch, &state, &stored.record.content, until)?;
    store.change(batch, &stored, &state, &shape)?;
    Ok(true)
}

/// Makes a memory critical that effective interventions used often.
pub(crate) fn note_interventions(memory: &mut Memory) {
    let mean = memory.effectiveness / f64::from(memory.interventions);
    let is_often = memory.interventions >= OFTEN && mean >= EFFECTIVE;
    if is_often && !memory.is_critical && !memory.is_decided {
        memory.is_critical = true;
        memory.criticality_reason = Some("intervention".to_owned());
    }
}

/// Counts the uses of memories by a task that ends well. One that several such tasks used often is critical from then on.
pub(crate) fn learn_from_success(
    call: &Call<'_>,
    batch: &mut Batch,
    task: &mut Task,
) -> Result<(), Failure> {
    let uses = call.shared.uses.added_to(&task.uses, &task.tenant, &task.task_id);
    let mut often: Vec<(&String, u32)> = uses.iter().map(|(id, count)| (id, *count)).collect();
    often.sort_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
    for (id, count) in often.into_iter().take(MOST_LEARNT) {
        let Some(stored) = call.store.get_readable::<Memory>(Sort::Memory, id)? else { continue };
        if stored.state.agent_id != task.agent_id || stored.state.archived {
            continue;
        }
        let mut state = stored.state.clone();
        state.successes = state.successes.saturating_add(1);
        state.success_uses = state.success_uses.saturating_add(count);
        let is_often = state.successes >= SUCCESSES && state.success_uses >= SUCCESS_USES;
        if is_often && !state.is_critical && !state.is_decided {
            state.is_critical = true;
            state.criticality_reason = Some("frequent_success".to_owned());
        }
        let until = stored.record.valid_until.as_ref().map(|until| until.at());
        let shape = call.store.shape_of_memory(batch, &state, &stored.record.content, until)?;
        call.store.change(batch, &stored, &state, &shape)?;
    }
    task.uses.clear();
    Ok(())
}

/// Says that a memory is critical, or is not: that stands against the rules from then on.
pub(crate) fn update_criticality(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("memory_id")?;
    let id = call.params.required("memory_id", id)?.to_owned();
    let is_critical = call.params.flag("is_critical")?;
    let is_critical = call.params.required("is_critical", is_critical)?;
    let reason = call.params.said("reason")?.map(str::to_owned);
    let reason = if is_critical { Some(call.params.required("reason", reason)?) } else { None };
    call.params.finish()?;
    retried(|| {
        let stored = call.memory(&id)?;
        let mut state = stored.state.clone();
        state.is_critical = is_critical;
        state.criticality_reason.clone_from(&reason);
        state.is_decided = true;
        let mut map = Map::new();
        map.insert("memory_id", id.as_str());
        map.insert("is_critical", is_critical);
        if state == stored.state {
            map.insert("version", stored.version);
            map.insert("unchanged", true);
            return Ok(map);
        }
        let mut batch = Batch::default();
        let (now, _) = call.store.now();
        let until = match stored.state.is_critical && !is_critical {
            // While it was critical it had no end.
            true => valid_until(call, state.memory_type, now),
            false => stored.record.valid_until.as_ref().map(|until| until.at()),
        };
        let shape =
            call.store.shape_of_memory(&mut batch, &state, &stored.record.content, until)?;
        let name = call.store.change(&mut batch, &stored, &state, &shape)?;
        let written = call.commit(batch)?;
        let (version, unchanged) = written.version(&name).unwrap_or((stored.version, false));
        map.insert("version", version);
        map.insert("unchanged", unchanged);
        Ok(map)
    })
}
