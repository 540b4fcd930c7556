//! The things of a field, as they go over the wire and into the log.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::words::{
    AgentStatus, ConflictStatus, ConflictType, Detection, EventName, HandoffState, MemoryType,
    Mode, RelationType, SessionState, Strategy, TaskState, UnitStatus,
};

/// The intent of a unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) purpose: String,
    #[serde(default)]
    pub(crate) task_id: Option<String>,
    #[serde(default)]
    pub(crate) question: Option<String>,
}

/// The confidence in a unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Confidence {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) evidence: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) assumptions: Vec<String>,
}

/// The origin of a unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) agent_id: String,
    pub(crate) agent_role: String,
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    pub(crate) timestamp: String,
}

/// A relation of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Relation {
    #[serde(rename = "type")]
    pub(crate) of: RelationType,
    pub(crate) target_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

/// A memory unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub(crate) id: String,
    pub(crate) mode: Mode,
    #[serde(rename = "type")]
    pub(crate) of: MemoryType,
    pub(crate) content: String,
    pub(crate) intent: Intent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) confidence: Option<Confidence>,
    pub(crate) source: Source,
    #[serde(default)]
    pub(crate) relations: Vec<Relation>,
    pub(crate) status: UnitStatus,
    pub(crate) epoch: u64,
}

impl Unit {
    /// Returns the confidence score, if there is one.
    pub(crate) fn score(&self) -> Option<f64> {
        self.confidence.as_ref().and_then(|confidence| confidence.score)
    }

    /// Returns the session it was recorded in.
    pub(crate) fn session(&self) -> Option<&str> {
        self.source.session_id.as_deref()
    }
}

/// An agent, with what only the field knows of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) role: String,
    pub(crate) status: AgentStatus,
    #[serde(default)]
    pub(crate) interests: Vec<String>,
    #[serde(default)]
    pub(crate) current_task_id: Option<String>,
    /// The token that registered it; empty if there was none.
    #[serde(default)]
    pub(crate) holder: String,
    /// The authority of its credential when it registered, or what it declared if that is less.
    #[serde(default)]
    pub(crate) authority: u32,
    /// The authority that it declared: it asks for no more, whatever its credential has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) declared: Option<u32>,
}

/// The end of a conflict, or its escalation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resolution {
    pub(crate) strategy: Strategy,
    #[serde(default)]
    pub(crate) winner_id: Option<String>,
    pub(crate) rationale: String,
    pub(crate) resolved_by: String,
    pub(crate) epoch_resolved: u64,
}

/// A vote that is under way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Vote {
    /// Agents that may vote: fixed when the vote begins.
    pub(crate) electorate: BTreeSet<String>,
    /// The unit each voter is for.
    pub(crate) cast: BTreeMap<String, String>,
}

/// A conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Conflict {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) of: ConflictType,
    pub(crate) status: ConflictStatus,
    pub(crate) unit_a: String,
    pub(crate) unit_b: String,
    pub(crate) description: String,
    pub(crate) detected_by: Detection,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<Resolution>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) vote: Option<Vote>,
}

impl Conflict {
    /// Returns true until it is resolved.
    pub(crate) fn is_open(&self) -> bool {
        self.status != ConflictStatus::Resolved
    }

    /// Returns both units.
    pub(crate) fn units(&self) -> [&str; 2] {
        [&self.unit_a, &self.unit_b]
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    pub(crate) state: TaskState,
    pub(crate) created_by: String,
    #[serde(default)]
    pub(crate) assignee: Option<String>,
    #[serde(default)]
    pub(crate) depends_on: Vec<String>,
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    /// Its agent is gone or has failed, so another agent must take it.
    #[serde(default)]
    pub(crate) needs_reassignment: bool,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) result: Option<String>,
    pub(crate) epoch: u64,
}

/// A rule of a session about a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoleRule {
    pub(crate) role: String,
    /// The types that the role does not see.
    #[serde(default)]
    pub(crate) hidden_types: Vec<MemoryType>,
}

/// A rule of a session about authority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TypeRule {
    #[serde(rename = "type")]
    pub(crate) of: MemoryType,
    pub(crate) min_authority: u32,
}

/// The policy of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Policy {
    /// Anybody may join.
    #[serde(default)]
    pub(crate) open: bool,
    #[serde(default)]
    pub(crate) role_rules: Vec<RoleRule>,
    #[serde(default)]
    pub(crate) type_rules: Vec<TypeRule>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) goal: String,
    pub(crate) state: SessionState,
    pub(crate) creator: String,
    pub(crate) members: BTreeSet<String>,
    #[serde(default)]
    pub(crate) invited: BTreeSet<String>,
    #[serde(default)]
    pub(crate) policy: Policy,
    pub(crate) epoch: u64,
}

/// The context of a task, packed for the agent that takes it over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Package {
    pub(crate) summary: String,
    #[serde(default)]
    pub(crate) unit_ids: Vec<String>,
    #[serde(default)]
    pub(crate) open_questions: Vec<String>,
    #[serde(default)]
    pub(crate) next_steps: Vec<String>,
    #[serde(default)]
    pub(crate) constraints: Vec<String>,
    #[serde(default)]
    pub(crate) conflict_ids: Vec<String>,
}

/// A handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Handoff {
    pub(crate) id: String,
    pub(crate) task_id: String,
    pub(crate) from_agent: String,
    pub(crate) to_agent: String,
    pub(crate) state: HandoffState,
    pub(crate) context: Package,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    pub(crate) epoch: u64,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) agent_id: String,
    pub(crate) events: BTreeSet<EventName>,
    #[serde(default)]
    pub(crate) min_relevance: Option<f64>,
    #[serde(default)]
    pub(crate) debounce_ms: Option<u64>,
}
