//! A memory as far as its score needs it, read out of a record without the rest. Of hundreds of candidates few become answers.

use std::collections::BTreeMap;

use omir_core::cbor::{self, MapEntry};
use omir_core::decode::{DecodeError, Limits};
use omir_core::extension::COMPASS_URL;
use omir_core::instant::Timestamp;
use omir_core::model::Extension;
use omir_core::value::{Map, Value};
use omird_embedding::{EMBEDDING_URL, Given};

use super::{Stored, UNSEEN, Understood, decode};
use crate::failure::Failure;
use crate::model::embedding::{Maker, Note, TEXT_HASH};
use crate::similarity::{Agreement, Candidate};
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
    /// The agreement with the question.
    pub(crate) agreement: Agreement,
    /// The vectors that it states.
    vectors: Vec<Note>,
    bytes: Vec<u8>,
}

impl Sketch {
    /// Reads a record. `None` if it holds no memory.
    pub(super) fn of(bytes: Vec<u8>, agreement: Agreement) -> Result<Option<Self>, Failure> {
        let read = Self::read(&bytes, agreement).map_err(|error| {
            Failure::internal(format!("a stored record cannot be read: {error}"))
        })?;
        Ok(read.map(|sketch| Self { bytes, ..sketch }))
    }

    /// Reads what is needed of a record, and steps over the rest.
    fn read(bytes: &[u8], agreement: Agreement) -> Result<Option<Self>, DecodeError> {
        let record = Members::of(bytes)?;
        let Some(extensions) = record.bytes_of("extension") else { return Ok(None) };
        let Some(memory) = memory(extensions)? else { return Ok(None) };
        let decay = record.value("decay")?;
        let of_decay = |name: &str| decay.as_ref().and_then(|decay| decay.get(name));
        let accesses = of_decay("accessCount").and_then(Value::as_u64).unwrap_or(0);
        let used = of_decay("lastAccess").filter(|_| accesses > 0).and_then(Value::as_str);
        Ok(Some(Self {
            memory,
            content: record.text("content")?.unwrap_or_default(),
            accesses,
            last_access: used.and_then(|at| Timestamp::parse(at).ok()),
            valid_until: record.text("validUntil")?.and_then(|at| Timestamp::parse(&at).ok()),
            agreement,
            vectors: vectors(extensions)?,
            bytes: Vec::new(),
        }))
    }

    /// Returns true if it has a vector of this model and of what it says.
    pub(crate) fn has_vector_of(&self, maker: &Maker) -> bool {
        self.vectors.iter().any(|one| maker.made(one) && one.is_of(&self.content))
    }

    /// Returns it as a candidate for a question, whose vector the server of models may have made. A cosine below the floor counts
    /// for nothing.
    pub(crate) fn candidate(&self, question: Option<&Understood>, floor: f64) -> Candidate<'_> {
        let mut agreement = self.agreement;
        let mut has_vector = question.is_some() && agreement.cosine != 0.0;
        // The engine compares a vector a moment after it was stated, and not with each search that finds the memory. It is here.
        if let Some(question) = question.filter(|_| !has_vector)
            && let Some(cosine) = self.cosine_with(question)
        {
            has_vector = true;
            agreement.cosine = if cosine < floor { 0.0 } else { cosine };
        }
        Candidate {
            agreement,
            has_vector,
            task: self.memory.task_id.as_deref(),
            at: Timestamp::parse(&self.memory.timestamp).ok(),
            id: &self.memory.memory_id,
        }
    }

    /// Returns the cosine of the vector that it states with that of a question. `None` if it states none of that model and size, or
    /// one that was made of another text.
    fn cosine_with(&self, question: &Understood) -> Option<f64> {
        let Understood { model, vector } = question;
        let maker = Maker { model: model.clone(), dims: Some(vector.values.len()) };
        if !self.has_vector_of(&maker) {
            return None;
        }
        let record = Members::of(&self.bytes).ok()?;
        let extensions = record.bytes_of("extension")?;
        cbor::array_items(extensions).ok()?.into_iter().find_map(|item| {
            let extension = Members::of(extensions.get(item)?).ok()?;
            if extension.text("url").ok()?.as_deref() != Some(EMBEDDING_URL) {
                return None;
            }
            let Value::Object(stated) = extension.value("valueJson").ok()?? else { return None };
            let extension = Extension::json(EMBEDDING_URL, stated);
            let note = Note::of(extension.value_json.as_ref()?)?;
            let given = Given::from_extension(&extension).ok()?;
            let is_it = maker.made(&note) && note.is_of(&self.content);
            is_it.then(|| f64::from(given.vector.cosine(vector)))
        })
    }

    /// Reads all of it.
    pub(crate) fn whole(self) -> Result<Stored<Memory>, Failure> {
        let stored = decode(self.bytes, UNSEEN)?;
        stored.ok_or_else(|| Failure::internal("a memory that was found is none"))
    }
}

/// A map whose members are decoded when they are asked for.
struct Members<'b> {
    bytes: &'b [u8],
    entries: Vec<MapEntry<'b>>,
}

impl<'b> Members<'b> {
    fn of(bytes: &'b [u8]) -> Result<Self, DecodeError> {
        Ok(Self { bytes, entries: cbor::map_entries(bytes)?.collect() })
    }

    fn bytes_of(&self, name: &str) -> Option<&'b [u8]> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        self.bytes.get(entry.value_range.clone())
    }

    fn value(&self, name: &str) -> Result<Option<Value>, DecodeError> {
        let bytes = self.bytes_of(name);
        bytes.map(|bytes| cbor::from_slice(bytes, &Limits::default())).transpose()
    }

    /// Returns a string. `None` if there is none, or something else.
    fn text(&self, name: &str) -> Result<Option<String>, DecodeError> {
        Ok(match self.value(name)? {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        })
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, DecodeError> {
        Ok(self.value(name)?.as_ref().and_then(Value::as_bool))
    }
}

/// Reads the memory in the extensions of a record.
fn memory(extensions: &[u8]) -> Result<Option<Memory>, DecodeError> {
    for item in cbor::array_items(extensions)? {
        let extension = Members::of(&extensions[item])?;
        if extension.text("url")?.as_deref() != Some(COMPASS_URL) {
            continue;
        }
        let Some(state) = extension.bytes_of("valueJson") else { continue };
        // A value that is no map is no state of ours.
        let Ok(state) = Members::of(state) else { continue };
        if state.text("is")?.as_deref() == Some(Memory::IS) {
            return memory_of(&state);
        }
    }
    Ok(None)
}

/// Reads which vectors the extensions of a record state, and steps over their numbers.
fn vectors(extensions: &[u8]) -> Result<Vec<Note>, DecodeError> {
    let mut all = Vec::new();
    for item in cbor::array_items(extensions)? {
        let extension = Members::of(&extensions[item])?;
        if extension.text("url")?.as_deref() != Some(EMBEDDING_URL) {
            continue;
        }
        let Some(Ok(stated)) = extension.bytes_of("valueJson").map(Members::of) else { continue };
        let dims = stated.value("dims")?.as_ref().and_then(Value::as_u64);
        if let (Some(model), Some(dims)) = (stated.text("model")?, dims) {
            all.push(Note { model, dims, hash: stated.text(TEXT_HASH)? });
        }
    }
    Ok(all)
}

/// Reads the members of a state that a score depends on. `None` if one of those is missing that every memory has.
fn memory_of(state: &Members<'_>) -> Result<Option<Memory>, DecodeError> {
    let share =
        |name: &str| Ok::<_, DecodeError>(state.value(name)?.as_ref().and_then(Value::as_f64));
    let memory_type = state.text("memory_type")?.and_then(|name| MemoryType::by_name(&name));
    let stage_type = state.text("stage_type")?.and_then(|name| StageType::by_name(&name));
    let shares = state.value("stage_relevance_map")?;
    let shares = shares.as_ref().and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let shares =
        shares.filter_map(|(name, share)| Some((StageType::by_name(name)?, share.as_f64()?)));
    let actions = state.value("actions")?;
    let has_actions = actions.as_ref().and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let (Some(tenant), Some(memory_id), Some(agent_id), Some(timestamp)) = (
        state.text("tenant")?,
        state.text("memory_id")?,
        state.text("agent_id")?,
        state.text("timestamp")?,
    ) else {
        return Ok(None);
    };
    let (Some(memory_type), Some(relevance_score), Some(is_critical), Some(archived)) = (
        memory_type,
        share("relevance_score")?,
        state.flag("is_critical")?,
        state.flag("archived")?,
    ) else {
        return Ok(None);
    };
    Ok(Some(Memory {
        tenant,
        memory_id,
        agent_id,
        task_id: state.text("task_id")?,
        memory_type,
        timestamp,
        summary: String::new(),
        entities: Vec::new(),
        facts: Vec::new(),
        keywords: Vec::new(),
        related_memory_ids: Vec::new(),
        parent_memory_id: None,
        relevance_score,
        is_critical,
        criticality_reason: state.text("criticality_reason")?,
        is_decided: false,
        stage_id: state.text("stage_id")?,
        stage_type,
        stage_relevance_map: shares.collect::<BTreeMap<StageType, f64>>(),
        // A score asks if there are any.
        actions: if has_actions { vec![String::new()] } else { Vec::new() },
        outcome: None,
        success: state.flag("success")?,
        corrects: state.text("corrects")?,
        archived,
        trace_id: None,
        interventions: 0,
        effectiveness: 0.0,
        successes: 0,
        success_uses: 0,
        vector_since: None,
        vector_at: None,
    }))
}
