//! The states that the extension `urn:omird:ext:compass` of a record holds: all that COMPASS knows and OMIR has no member for.
//!
//! Members are named as in answers, so that an export reads like the protocol. Each state tells its tenant and agent: a
//! name in the store alone is no proof of whose it is.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::uses::Counts;
use crate::words::{ErrorType, MemoryType, PatternType, StageType, TaskStatus};

/// A state that a record of its own holds.
pub(crate) trait State: Serialize + DeserializeOwned + Clone {
    /// The member `is` of the extension.
    const IS: &'static str;

    /// Returns the tenant, and the id that callers know it by.
    fn identity(&self) -> (&str, &str);

    /// Returns the agent it belongs to.
    fn agent(&self) -> &str;
}

macro_rules! state {
    ($state:ident, $is:literal, $id:ident) => {
        impl State for $state {
            const IS: &'static str = $is;

            fn identity(&self) -> (&str, &str) {
                (&self.tenant, &self.$id)
            }

            fn agent(&self) -> &str {
                &self.agent_id
            }
        }
    };
}

/// A memory of an agent. Its content is that of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) tenant: String,
    pub(crate) memory_id: String,
    pub(crate) agent_id: String,
    pub(crate) task_id: Option<String>,
    pub(crate) memory_type: MemoryType,
    /// RFC 3339.
    pub(crate) timestamp: String,
    pub(crate) summary: String,
    pub(crate) entities: Vec<String>,
    pub(crate) facts: Vec<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) related_memory_ids: Vec<String>,
    pub(crate) parent_memory_id: Option<String>,
    pub(crate) relevance_score: f64,
    pub(crate) is_critical: bool,
    pub(crate) criticality_reason: Option<String>,
    /// A caller said whether it is critical: that stands against the rules.
    pub(crate) is_decided: bool,
    pub(crate) stage_id: Option<String>,
    pub(crate) stage_type: Option<StageType>,
    pub(crate) stage_relevance_map: BTreeMap<StageType, f64>,
    pub(crate) actions: Vec<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) success: Option<bool>,
    /// The error that it corrects.
    pub(crate) corrects: Option<String>,
    pub(crate) archived: bool,
    pub(crate) trace_id: Option<String>,
    /// Interventions it was used in, and the sum of their effectiveness.
    pub(crate) interventions: u32,
    pub(crate) effectiveness: f64,
    /// Tasks that used it and ended well, and its uses by them.
    #[serde(default)]
    pub(crate) successes: u32,
    #[serde(default)]
    pub(crate) success_uses: u32,
    /// The versions that a caller cannot tell apart, because they differ by vectors alone: the first one, and the last.
    #[serde(default)]
    pub(crate) vector_since: Option<u64>,
    #[serde(default)]
    pub(crate) vector_at: Option<u64>,
}

impl Memory {
    /// Returns the first of the versions that differ from the present one, `now`, by vectors alone. A client that has
    /// seen it has seen all that a caller may change.
    fn seen_since(&self, now: u64) -> u64 {
        // A change of anything else carries the two numbers along, and its version is not the one that they tell of.
        self.vector_since.filter(|_| self.vector_at == Some(now)).unwrap_or(now)
    }

    /// Returns true if a version is this one to a caller, where the record has the version `now`.
    pub(crate) fn is_as_in(&self, seen: u64, now: u64) -> bool {
        (self.seen_since(now)..=now).contains(&seen)
    }

    /// Returns the state of the next version, where that differs by its vector alone from the present one, `now`.
    pub(crate) fn with_vector(&self, now: u64) -> Self {
        let (since, at) = (self.seen_since(now), now.saturating_add(1));
        Self { vector_since: Some(since), vector_at: Some(at), ..self.clone() }
    }
}
state!(Memory, "memory", memory_id);

impl Memory {
    /// Returns the part of it that is critical. Of a memory that states a constraint only the sentence is that states it: with
    /// all of it, a long task would be facts alone.
    pub(crate) fn critical_part(&self) -> CriticalPart {
        match self.criticality_reason.as_deref() {
            _ if !self.is_critical => CriticalPart::Constraints,
            // A caller may give this reason to whatever it is.
            Some("constraint") => CriticalPart::ConstraintsOrAll,
            _ => CriticalPart::All,
        }
    }
}

/// The sentences of a text that are critical facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CriticalPart {
    /// Those that state a constraint.
    Constraints,
    /// Those that state a constraint; all of them where none does.
    ConstraintsOrAll,
    /// All of them.
    All,
}

/// A stage of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) tenant: String,
    pub(crate) stage_id: String,
    pub(crate) task_id: String,
    pub(crate) agent_id: String,
    pub(crate) stage_type: StageType,
    pub(crate) stage_summary: String,
    pub(crate) stage_insights: Vec<String>,
    /// The newest of its memories, newest first. All of them bear its handle.
    pub(crate) raw_memory_refs: Vec<String>,
    /// Memories that it had when it was completed.
    #[serde(default)]
    pub(crate) memory_count: Option<u64>,
    pub(crate) relevance_score: f64,
    pub(crate) compression_ratio: Option<f64>,
    pub(crate) compression_model: Option<String>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) completed_at: Option<String>,
    pub(crate) critical_facts: Vec<String>,
    /// Its memories state critical facts that are not among these.
    #[serde(default)]
    pub(crate) has_more_facts: bool,
    /// The last compressions.
    pub(crate) metrics: Vec<Metric>,
}
state!(Stage, "stage", stage_id);

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) tenant: String,
    pub(crate) task_id: String,
    pub(crate) agent_id: String,
    pub(crate) task_goal: String,
    pub(crate) critical_constraints: Vec<String>,
    pub(crate) status: TaskStatus,
    pub(crate) current_stage_id: Option<String>,
    /// In the order of their beginnings, with the current one.
    pub(crate) stages: Vec<StageNote>,
    pub(crate) task_progress_summary: Option<String>,
    /// Critical facts of the stages that are completed.
    pub(crate) critical_facts: Vec<String>,
    /// Those stages have critical facts that are not among these.
    #[serde(default)]
    pub(crate) has_more_facts: bool,
    pub(crate) performance_metrics: BTreeMap<String, f64>,
    pub(crate) compression: Compression,
    pub(crate) metrics: Vec<Metric>,
    /// Uses of memories by the task, by their ids.
    #[serde(default)]
    pub(crate) uses: Counts,
    /// Its errors and its critical memories bear handles of their own. Those of tasks that an earlier build opened do not.
    #[serde(default)]
    pub(crate) has_handles: bool,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}
state!(Task, "task", task_id);

/// A stage, as its task knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StageNote {
    pub(crate) stage_id: String,
    pub(crate) stage_type: StageType,
    pub(crate) began_at: String,
    pub(crate) is_completed: bool,
    /// Tokens that its summary stood for when it was completed, so that the stage need not be read for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_tokens: Option<u64>,
}

/// Settings of compression; what is not stated is as the agent, and then the configuration, has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compression {
    pub(crate) aggressiveness: Option<f64>,
    pub(crate) stage_ratio: Option<f64>,
    pub(crate) task_ratio: Option<f64>,
    pub(crate) auto: Option<bool>,
}

/// One compression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Metric {
    pub(crate) metric_id: String,
    pub(crate) stage_id: Option<String>,
    pub(crate) task_id: Option<String>,
    pub(crate) compression_type: String,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) compression_ratio: f64,
    pub(crate) critical_fact_retention_rate: f64,
    pub(crate) coherence_score: f64,
    pub(crate) cost_usd: f64,
    pub(crate) model_used: String,
    pub(crate) count_method: String,
    pub(crate) recorded_at: String,
}

/// The settings of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentSettings {
    pub(crate) tenant: String,
    pub(crate) agent_id: String,
    pub(crate) compression: Compression,
}
state!(AgentSettings, "settings", agent_id);

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorRecord {
    pub(crate) tenant: String,
    pub(crate) error_id: String,
    pub(crate) task_id: String,
    pub(crate) agent_id: String,
    pub(crate) stage_id: Option<String>,
    pub(crate) stage_type: Option<StageType>,
    pub(crate) error_type: ErrorType,
    pub(crate) error_description: String,
    pub(crate) context_when_occurred: Option<String>,
    pub(crate) recovery_action: Option<String>,
    pub(crate) error_severity: f64,
    pub(crate) recorded_at: String,
    pub(crate) memory_ids: Vec<String>,
}
state!(ErrorRecord, "error", error_id);

/// A pattern among errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ErrorPattern {
    pub(crate) tenant: String,
    pub(crate) pattern_id: String,
    pub(crate) agent_id: String,
    pub(crate) task_id: Option<String>,
    pub(crate) pattern_type: PatternType,
    pub(crate) error_types: Vec<ErrorType>,
    pub(crate) error_ids: Vec<String>,
    pub(crate) count: u64,
    pub(crate) confidence: f64,
    pub(crate) description: String,
    pub(crate) prevention_strategy: String,
    pub(crate) first_seen: String,
    pub(crate) last_seen: String,
}
state!(ErrorPattern, "pattern", pattern_id);

/// The money of a month for models: one record for the daemon, of no agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Budget {
    pub(crate) tenant: String,
    pub(crate) agent_id: String,
    /// `2026-11`, in UTC.
    pub(crate) month: String,
    /// All that may have been spent by now.
    pub(crate) leased_usd: f64,
    /// As far as it was known when this was written.
    pub(crate) spent_usd: f64,
    pub(crate) alerted: bool,
}
state!(Budget, "budget", month);

/// An intervention of an agent's supervisor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Intervention {
    pub(crate) tenant: String,
    pub(crate) intervention_id: String,
    pub(crate) agent_id: String,
    pub(crate) task_id: String,
    pub(crate) context_id: String,
    pub(crate) intervention_type: String,
    pub(crate) effectiveness: f64,
    pub(crate) success: bool,
    pub(crate) memory_ids: Vec<String>,
    pub(crate) notes: Option<String>,
    pub(crate) metrics_after: BTreeMap<String, f64>,
    pub(crate) recorded_at: String,
}
state!(Intervention, "intervention", intervention_id);
