//! A memory as far as its score needs it, read out of a record without the rest. Of hundreds of candidates few become answers.

use std::collections::BTreeMap;

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::extension::COMPASS_URL;
use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};

use super::{Kept, UNSEEN, decode};
use crate::failure::Failure;
use crate::state::{Memory, State};
use crate::words::{MemoryType, StageType, Word};

/// A candidate.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    /// The members that a score depends on, and the ids. All others are empty.
    pub(crate) memory: Memory,
    pub(crate) content: String,
    pub(crate) accesses: u64,
    pub(crate) last_access: Option<Timestamp>,
    pub(crate) valid_until: Option<Timestamp>,
    /// The agreement with the words, from 0 to 1; 0 where there are none.
    pub(crate) text: f64,
    bytes: Vec<u8>,
}

impl Sketch {
    /// Reads a record. `None` if it holds no memory.
    pub(super) fn of(bytes: Vec<u8>, text: f64) -> Result<Option<Self>, Failure> {
        let value = cbor::from_slice(&bytes, &Limits::default()).map_err(|error| {
            Failure::internal(format!("a stored record cannot be read: {error}"))
        })?;
        let Some(memory) = held(&value).and_then(memory) else { return Ok(None) };
        let decay = |name: &str| value.get("decay").and_then(|decay| decay.get(name));
        let accesses = decay("accessCount").and_then(Value::as_u64).unwrap_or(0);
        let used = decay("lastAccess").filter(|_| accesses > 0).and_then(Value::as_str);
        let last_access = used.and_then(|at| Timestamp::parse(at).ok());
        let content = value.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
        let until = value.get("validUntil").and_then(Value::as_str);
        let valid_until = until.and_then(|at| Timestamp::parse(at).ok());
        Ok(Some(Self { memory, content, accesses, last_access, valid_until, text, bytes }))
    }

    /// Reads all of it.
    pub(crate) fn whole(self) -> Result<Kept<Memory>, Failure> {
        let kept = decode(self.bytes, UNSEEN)?;
        kept.ok_or_else(|| Failure::internal("a memory that was found is none"))
    }
}

/// Returns the state in the extension of a record.
fn held(record: &Value) -> Option<&Map> {
    let extensions = record.get("extension")?.as_array()?;
    let urls = |one: &&Value| one.get("url").and_then(Value::as_str) == Some(COMPASS_URL);
    let states = extensions.iter().filter(urls).filter_map(|one| one.get("valueJson")?.as_object());
    let is_memory = |state: &&Map| state.get("is").and_then(Value::as_str) == Some(Memory::IS);
    states.into_iter().find(is_memory)
}

fn memory(state: &Map) -> Option<Memory> {
    let text = |name: &str| state.get(name).and_then(Value::as_str).map(str::to_owned);
    let flag = |name: &str| state.get(name).and_then(Value::as_bool);
    let is_some =
        |name: &str| state.get(name).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let stage = |name: &str| StageType::by_name(name);
    let shares = state.get("stage_relevance_map").and_then(Value::as_object);
    let shares = shares.into_iter().flat_map(Map::iter);
    let shares = shares.filter_map(|(name, share)| Some((stage(name)?, share.as_f64()?)));
    Some(Memory {
        tenant: text("tenant")?,
        memory_id: text("memory_id")?,
        agent_id: text("agent_id")?,
        task_id: text("task_id"),
        memory_type: MemoryType::by_name(state.get("memory_type")?.as_str()?)?,
        timestamp: text("timestamp")?,
        summary: String::new(),
        entities: Vec::new(),
        facts: Vec::new(),
        keywords: Vec::new(),
        related_memory_ids: Vec::new(),
        parent_memory_id: None,
        relevance_score: state.get("relevance_score")?.as_f64()?,
        is_critical: flag("is_critical")?,
        criticality_reason: text("criticality_reason"),
        is_decided: false,
        stage_id: text("stage_id"),
        stage_type: state.get("stage_type").and_then(Value::as_str).and_then(stage),
        stage_relevance_map: shares.collect::<BTreeMap<StageType, f64>>(),
        // A score asks if there are any.
        actions: if is_some("actions") { vec![String::new()] } else { Vec::new() },
        outcome: None,
        success: flag("success"),
        corrects: text("corrects"),
        archived: flag("archived")?,
        trace_id: None,
        interventions: 0,
        effectiveness: 0.0,
        successes: 0,
        success_uses: 0,
    })
}
