//! `memory.update`: the members that a caller may change later.

use omir_core::value::Map;
use omird_text::Counter;

use crate::call::Call;
use crate::failure::Failure;
use crate::methods::criticality::note_constraint;
use crate::methods::store::{LONGEST_CONTENT, stage_map, summary, valid_until};
use crate::params::Params;
use crate::state::Memory;
use crate::store::{Batch, retried};
use crate::words::MemoryType;

/// Changes a memory, if it has the version that the caller has seen.
pub(crate) fn update(call: &mut Call<'_>) -> Result<Map, Failure> {
    let id = call.params.id("memory_id")?;
    let id = call.params.required("memory_id", id)?.to_owned();
    let seen = call.params.count("version", 1, usize::MAX)?;
    let changes = Changes::read(&mut call.params)?;
    call.params.finish()?;
    retried(|| {
        let stored = call.memory(&id)?;
        if seen.is_some_and(|seen| !stored.state.is_as_in(seen as u64, stored.version)) {
            let message = format!(
                "the memory {id:?} is version {}; read it, and send the change with that version",
                stored.version
            );
            return Err(Failure::conflict(message));
        }
        let mut state = stored.state.clone();
        let content = changes.content.as_deref().unwrap_or(&stored.record.content).to_owned();
        let is_other = content != stored.record.content;
        changes.apply(&mut state, is_other, &content, call.settings.token_counter);
        let is_same = state == stored.state && content == stored.record.content;
        let mut map = Map::new();
        map.insert("memory_id", id.as_str());
        if is_same {
            map.insert("version", stored.version);
            map.insert("unchanged", true);
            return Ok(map);
        }
        let (now, _) = call.store.now();
        let until = match state.memory_type == stored.state.memory_type {
            true => stored.record.valid_until.as_ref().map(|until| until.at()),
            false => valid_until(call, state.memory_type, now),
        };
        let mut batch = Batch::default();
        let shape = call.store.shape_of_memory(&mut batch, &state, &content, until)?;
        let name = call.store.change(&mut batch, &stored, &state, &shape)?;
        let written = call.commit(batch)?;
        let (version, unchanged) = written.version(&name).unwrap_or((stored.version, false));
        map.insert("version", version);
        map.insert("unchanged", unchanged);
        Ok(map)
    })
}

#[derive(Default)]
struct Changes {
    content: Option<String>,
    summary: Option<String>,
    keywords: Option<Vec<String>>,
    entities: Option<Vec<String>>,
    facts: Option<Vec<String>>,
    related: Option<Vec<String>>,
    relevance: Option<f64>,
    memory_type: Option<MemoryType>,
    stage_map: Option<std::collections::BTreeMap<crate::words::StageType, f64>>,
    outcome: Option<String>,
    success: Option<bool>,
}

impl Changes {
    fn read(params: &mut Params<'_>) -> Result<Self, Failure> {
        let content = params.long_text("content", LONGEST_CONTENT)?;
        let has_map = params.states("stage_relevance_map");
        let map = stage_map(params)?;
        Ok(Self {
            content: params.not_blank("content", content)?.map(str::to_owned),
            summary: params.said("summary")?.map(str::to_owned),
            keywords: params.texts("keywords")?,
            entities: params.texts("entities")?,
            facts: params.texts("facts")?,
            related: params.ids("related_memory_ids")?,
            relevance: params.share("relevance_score")?,
            memory_type: params.word("memory_type")?,
            stage_map: has_map.then_some(map),
            outcome: params.text("outcome")?.map(str::to_owned),
            success: params.flag("success")?,
        })
    }

    fn apply(&self, state: &mut Memory, is_other: bool, content: &str, counter: Counter) {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(from) = from {
                to.clone_from(from);
            }
        }
        match (&self.summary, is_other) {
            (Some(summary), _) => state.summary.clone_from(summary),
            // A summary of what it says no more would be wrong.
            (None, true) => state.summary = summary(content, counter),
            (None, false) => {}
        }
        set(&mut state.keywords, &self.keywords);
        set(&mut state.entities, &self.entities);
        set(&mut state.facts, &self.facts);
        set(&mut state.related_memory_ids, &self.related);
        set(&mut state.relevance_score, &self.relevance);
        set(&mut state.memory_type, &self.memory_type);
        set(&mut state.stage_relevance_map, &self.stage_map);
        if self.outcome.is_some() {
            state.outcome.clone_from(&self.outcome);
        }
        if self.success.is_some() {
            state.success = self.success;
        }
        if is_other {
            note_constraint(state, content);
        }
    }
}
