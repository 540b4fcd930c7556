//! Patterns among errors, against labelled groups.

use omir_core::instant::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};
use crate::compass_quality::rig::{Bed, Rig, put};
use crate::compass_quality::set::{Agent, ErrorNote};

/// Of the errors of two groups together, the share that both must have.
const SAME: f64 = 0.5;

/// Measures patterns.
///
/// # Errors
/// A request was refused.
pub fn figures(agents: &[Agent], bed: &Bed) -> Result<Vec<Figure>> {
    let [mut found, mut false_ones, mut joined, mut all_kinds] = [(); 4].map(|()| Vec::new());
    for agent in agents {
        let rig = Rig::new(bed)?;
        let mut tasks: BTreeSet<String> = BTreeSet::new();
        for error in &agent.errors {
            let task = error.task.clone().unwrap_or_else(|| format!("{}.earlier", agent.name));
            rig.be_at(Timestamp::parse(&error.recorded_at)?);
            if tasks.insert(task.clone()) {
                let begun =
                    json!({"agent_id": agent.name, "task_id": task, "content": "It begins."});
                rig.ask("memory.store", &begun)?;
            }
            record(&rig, error, &task)?;
        }
        let patterns: Vec<&BTreeSet<String>> =
            agent.groups.iter().filter(|one| one.is_pattern).map(|one| &one.errors).collect();
        let others: Vec<&BTreeSet<String>> =
            agent.groups.iter().filter(|one| !one.is_pattern).map(|one| &one.errors).collect();
        // Of one situation: frequencies and sequences of types name no cause, and say so.
        let told = detect(&rig, agent, &["context"])?;
        let meets = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
            a.intersection(b).count() as f64 >= SAME * a.union(b).count() as f64
        };
        let hit = patterns.iter().filter(|one| told.iter().any(|other| meets(one, other))).count();
        let is_false = |one: &BTreeSet<String>| !patterns.iter().any(|other| meets(one, other));
        let missed = told.iter().filter(|one| is_false(one)).count();
        found.push(vec![hit as f64, patterns.len() as f64]);
        false_ones.push(vec![missed as f64, told.len() as f64]);
        let is_joined = |one: &&&BTreeSet<String>| {
            told.iter().any(|other| one.intersection(other).count() >= 2)
        };
        joined.push(vec![others.iter().filter(is_joined).count() as f64, others.len() as f64]);
        let told = detect(&rig, agent, &[])?;
        let missed = told.iter().filter(|one| is_false(one)).count();
        all_kinds.push(vec![missed as f64, told.len() as f64]);
    }
    Ok(vec![
        Figure::share("error patterns found", Aim::AtLeast(0.80), found),
        Figure::share("error patterns that are false", Aim::AtMost(0.10), false_ones),
        Figure::share("- the same with frequencies and sequences of types", Aim::None, all_kinds),
        Figure::share("- groups that are none, joined", Aim::None, joined),
    ])
}

fn detect(rig: &Rig, agent: &Agent, kinds: &[&str]) -> Result<Vec<BTreeSet<String>>> {
    let params = json!({"agent_id": agent.name, "min_count": 2, "pattern_types": kinds});
    let answer = rig.ask("memory.detect_error_patterns", &params)?;
    let patterns = answer["patterns"].as_array().cloned().unwrap_or_default();
    let ids = |pattern: &Value| {
        let ids = pattern["error_ids"].as_array().cloned().unwrap_or_default();
        ids.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Ok(patterns.iter().map(ids).collect())
}

/// Records an error in a task.
///
/// # Errors
/// It was refused.
pub fn record(rig: &Rig, error: &ErrorNote, task: &str) -> Result<()> {
    let mut params = json!({
        "task_id": task, "error_id": error.id, "error_type": error.error_type,
        "error_description": error.error_description, "recorded_at": error.recorded_at,
    });
    put(&mut params, "error_severity", error.error_severity.map(Value::from));
    let texts = [
        ("context_when_occurred", &error.context_when_occurred),
        ("recovery_action", &error.recovery_action),
    ];
    for (name, text) in texts {
        put(&mut params, name, text.as_deref().map(Value::from));
    }
    rig.ask("memory.record_error", &params).map(drop)
}
