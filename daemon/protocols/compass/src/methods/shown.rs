//! States as they stand in answers.

use omir_core::model::Resource;
use omir_core::spatial::pose_of;
use omir_core::value::{Map, Value, to_value};

use crate::failure::Failure;
use crate::state::{ErrorPattern, ErrorRecord, Memory, Metric, Stage, Task};
use crate::store::{Store, Stored};

fn members<S: serde::Serialize>(state: &S, hidden: &[&str]) -> Result<Map, Failure> {
    let value = to_value(state).map_err(|error| Failure::internal(error.to_string()))?;
    let Value::Object(map) = value else { return Err(Failure::internal("a state is no object")) };
    Ok(map
        .iter()
        .filter(|(name, _)| !hidden.contains(name))
        .map(|(name, value)| (name, value.clone()))
        .collect())
}

/// Writes a memory.
pub(crate) fn memory(stored: &Stored<Memory>) -> Result<Map, Failure> {
    let hidden = [
        "tenant",
        "is_decided",
        "interventions",
        "effectiveness",
        "successes",
        "success_uses",
        "vector_since",
        "vector_at",
        "trace_id",
        "stage_relevance_map",
    ];
    let mut map = members(&stored.state, &hidden)?;
    if !stored.state.stage_relevance_map.is_empty() {
        let own = to_value(&stored.state.stage_relevance_map);
        map.insert(
            "stage_relevance_map",
            own.map_err(|error| Failure::internal(error.to_string()))?,
        );
    }
    map.insert("content", stored.record.content.as_str());
    map.insert("embedding", Value::Null);
    let record = Resource::from(stored.record.clone());
    if let Some(Ok(pose)) = pose_of(&record) {
        map.insert("pose", pose.to_value());
    }
    map.insert("access_count", stored.accesses());
    map.insert("last_accessed", stored.last_access().map(Store::stamp));
    Ok(map)
}

/// Writes a stage.
pub(crate) fn stage(stage: &Stage) -> Result<Map, Failure> {
    members(stage, &["tenant", "metrics"])
}

/// Writes a task, without what is derived from other records.
pub(crate) fn task(task: &Task) -> Result<Map, Failure> {
    let hidden =
        ["tenant", "metrics", "stages", "compression", "critical_facts", "uses", "has_handles"];
    let mut map = members(task, &hidden)?;
    map.insert("completed_stages", task.completed_stages());
    Ok(map)
}

/// Writes an error.
pub(crate) fn error(error: &ErrorRecord) -> Result<Map, Failure> {
    members(error, &["tenant", "stage_type"])
}

/// Writes a pattern.
pub(crate) fn pattern(pattern: &ErrorPattern) -> Result<Map, Failure> {
    members(pattern, &["tenant", "agent_id"])
}

/// Writes a compression.
pub(crate) fn metric(metric: &Metric) -> Result<Map, Failure> {
    members(metric, &[])
}
