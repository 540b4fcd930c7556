//! Shapes of answers that several operations give.

use omir_core::value::Value;

use crate::envelope::VERSION;
use crate::failure::Failure;
use crate::log::object;
use crate::meaning;
use crate::turn::value;
use crate::types::{Agent, Conflict};
use crate::words::{Operation, Strategy};

/// The level that is declared here and in `docs/akashik.md`.
pub(crate) const LEVEL: u32 = 3;

fn texts(words: &[&str]) -> Value {
    words.iter().map(|word| Value::from(*word)).collect()
}

/// Returns `field_capabilities`. `embedding` names what makes the vectors that units are ranked by.
pub(crate) fn capabilities(embedding: String) -> Value {
    object([
        ("conformance_level", LEVEL.into()),
        ("supported_operations", texts(Operation::WORDS)),
        ("protocol_version", VERSION.into()),
        ("persistence", true.into()),
        ("conflict_strategies", texts(Strategy::WORDS)),
        ("embedding", embedding.into()),
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
