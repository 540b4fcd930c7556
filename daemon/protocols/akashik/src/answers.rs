//! Shapes of answers that several operations give.

use omir_core::value::Value;

use crate::envelope::VERSION;
use crate::failure::Failure;
use crate::log::object;
use crate::meaning;
use crate::model::Model;
use crate::operation_context::value;
use crate::store::StoreView;
use crate::types::{Agent, Conflict};
use crate::words::{Operation, Strategy};

/// The level that is declared here and in `docs/akashik.md`.
const LEVEL: u32 = 3;
/// The level that is declared where nothing outlives a stop: every higher one begins with units that do.
const LEVEL_IN_MEMORY: u32 = 0;

/// Gaps of the log that an answer names.
const MOST_GAPS: usize = 16;

fn texts(words: &[&str]) -> Value {
    words.iter().map(|word| Value::from(*word)).collect()
}

/// Returns the level that is declared.
pub(crate) fn level(persists: bool) -> u32 {
    if persists { LEVEL } else { LEVEL_IN_MEMORY }
}

/// Returns `field_capabilities`.
pub(crate) fn capabilities(contents: &StoreView<'_>) -> Value {
    let persists = contents.persists();
    object([
        ("conformance_level", level(persists).into()),
        ("supported_operations", texts(Operation::WORDS)),
        ("protocol_version", VERSION.into()),
        ("persistence", persists.into()),
        ("conflict_strategies", texts(Strategy::WORDS)),
        ("embedding", contents.embedding().into()),
        ("token_count", meaning::TOKEN_COUNT.into()),
    ])
}

/// Returns an agent as others see it.
pub(crate) fn agent(agent: &Agent) -> Value {
    object([
        ("id", agent.id.as_str().into()),
        ("role", agent.role.as_str().into()),
        ("status", agent.status.as_str().into()),
        ("interests", agent.interests.iter().map(|one| Value::from(one.as_str())).collect()),
        ("current_task_id", agent.current_task_id.clone().into()),
    ])
}

/// Returns a conflict as others see it: without the votes.
pub(crate) fn conflict(conflict: &Conflict) -> Result<Value, Failure> {
    value(&Conflict { vote: None, ..conflict.clone() })
}

/// Adds to an answer which entries the log lacks, if there are any: a retraction or the policy of a session may be among them.
pub(crate) fn with_gaps(mut answer: Value, model: &Model) -> Value {
    if let Some(map) = answer.as_object_mut().filter(|_| !model.gaps.is_empty()) {
        let gaps = model.gaps.iter().take(MOST_GAPS);
        map.insert("log_gaps", gaps.map(|epoch| Value::from(*epoch)).collect::<Value>());
    }
    answer
}
