//! The labelled sessions of `benches/data/compass`, read as they stand. Its README has the meaning of each member.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use omir_core::instant::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Result;

/// A task of an agent.
#[derive(Debug, Clone, Deserialize)]
pub struct Task {
    pub id: String,
    pub agent: String,
    pub goal: String,
    pub constraints: Vec<String>,
    pub started_at: String,
}

/// A turn of a task.
#[derive(Debug, Clone, Deserialize)]
pub struct Turn {
    pub id: String,
    pub task: String,
    pub n: u32,
    pub at_s: f64,
    pub stage: String,
    pub stage_also: Option<String>,
    pub text: String,
    pub query: Option<String>,
    #[serde(default)]
    pub actions: Vec<String>,
    pub outcome: Option<String>,
    pub success: Option<bool>,
}

/// A fact that a successor must know after its stage.
#[derive(Debug, Clone, Deserialize)]
pub struct Fact {
    pub turn: String,
    pub text: String,
}

/// The labelled names of a turn.
#[derive(Debug, Clone, Deserialize)]
pub struct Names {
    pub turn: String,
    pub mentions: Vec<Mention>,
}

/// One name.
#[derive(Debug, Clone, Deserialize)]
pub struct Mention {
    pub text: String,
}

/// An error.
#[derive(Debug, Clone, Deserialize)]
pub struct ErrorNote {
    pub id: String,
    pub agent: String,
    pub task: Option<String>,
    pub turn: Option<String>,
    pub recorded_at: String,
    pub error_type: String,
    pub error_severity: Option<f64>,
    pub error_description: String,
    pub context_when_occurred: Option<String>,
    pub recovery_action: Option<String>,
    #[serde(default)]
    pub corrected_by: Vec<String>,
}

/// Errors of one cause, or a group that only looks like it.
#[derive(Debug, Clone, Deserialize)]
pub struct Group {
    pub agent: String,
    pub is_pattern: bool,
    pub errors: BTreeSet<String>,
}

/// Two turns that contradict each other, or only look like it.
#[derive(Debug, Clone, Deserialize)]
pub struct Pair {
    pub agent: String,
    pub turns: [String; 2],
    pub contradicts: bool,
}

/// A question with all turns that bear on it.
#[derive(Debug, Clone, Deserialize)]
pub struct Query {
    pub agent: String,
    pub task: String,
    pub stage: String,
    pub kind: String,
    pub text: String,
    pub relevant: BTreeSet<String>,
}

/// One agent with all that is known of it.
#[derive(Debug, Default)]
pub struct Agent {
    pub name: String,
    /// Tasks by their beginning, each with its turns in order.
    pub tasks: Vec<(Task, Vec<Turn>)>,
    pub facts: Vec<Fact>,
    pub names: Vec<Names>,
    pub errors: Vec<ErrorNote>,
    pub groups: Vec<Group>,
    pub pairs: Vec<Pair>,
    pub queries: Vec<Query>,
}

impl Agent {
    /// All turns, oldest first.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.tasks.iter().flat_map(|(_, turns)| turns)
    }

    /// The turn of an id.
    ///
    /// # Errors
    /// There is none.
    pub fn turn(&self, id: &str) -> Result<&Turn> {
        let turn = self.turns().find(|turn| turn.id == id);
        turn.ok_or_else(|| format!("{id} is no turn of {}", self.name).into())
    }
}

/// Reads the agents of a split, `tune` or `held_out`, sorted by name.
///
/// # Errors
/// A file is not there, or not as the README says.
pub fn read(folder: &Path, split: &str) -> Result<Vec<Agent>> {
    let mut agents: BTreeMap<String, Agent> = BTreeMap::new();
    let mut tasks: Vec<Task> = lines(folder, "tasks", split)?;
    tasks.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    let mut owners = BTreeMap::new();
    for task in tasks {
        owners.insert(task.id.clone(), task.agent.clone());
        let agent = agents.entry(task.agent.clone()).or_default();
        agent.name.clone_from(&task.agent);
        agent.tasks.push((task, Vec::new()));
    }
    let mut of_turn = BTreeMap::new();
    for turn in lines::<Turn>(folder, "turns", split)? {
        let owner = owners.get(&turn.task).ok_or_else(|| format!("no task {}", turn.task))?;
        of_turn.insert(turn.id.clone(), owner.clone());
        let tasks = agents.get_mut(owner).map(|agent| &mut agent.tasks);
        let task = tasks.and_then(|all| all.iter_mut().find(|(task, _)| task.id == turn.task));
        task.ok_or("a task without an agent")?.1.push(turn);
    }
    for (_, turns) in agents.values_mut().flat_map(|agent| &mut agent.tasks) {
        turns.sort_by_key(|turn| turn.n);
    }
    let mut with = |name: &str, put: &mut dyn FnMut(&mut Agent)| -> Result<()> {
        put(agents.get_mut(name).ok_or_else(|| format!("no agent {name}"))?);
        Ok(())
    };
    let owner = |turn: &str| -> Result<&String> {
        of_turn.get(turn).ok_or_else(|| format!("no turn {turn}").into())
    };
    for fact in lines::<Fact>(folder, "facts", split)? {
        with(owner(&fact.turn)?, &mut |agent| agent.facts.push(fact.clone()))?;
    }
    for names in lines::<Names>(folder, "entities", split)? {
        with(owner(&names.turn)?, &mut |agent| agent.names.push(names.clone()))?;
    }
    for error in lines::<ErrorNote>(folder, "errors", split)? {
        with(&error.agent, &mut |agent| agent.errors.push(error.clone()))?;
    }
    for group in lines::<Group>(folder, "patterns", split)? {
        with(&group.agent, &mut |agent| agent.groups.push(group.clone()))?;
    }
    for pair in lines::<Pair>(folder, "contradictions", split)? {
        with(&pair.agent, &mut |agent| agent.pairs.push(pair.clone()))?;
    }
    for query in lines::<Query>(folder, "queries", split)? {
        with(&query.agent, &mut |agent| agent.queries.push(query.clone()))?;
    }
    for agent in agents.values_mut() {
        agent.errors.sort_by(|a, b| a.recorded_at.cmp(&b.recorded_at));
    }
    Ok(agents.into_values().collect())
}

fn lines<T: DeserializeOwned>(folder: &Path, name: &str, split: &str) -> Result<Vec<T>> {
    let path = folder.join(format!("{name}.{split}.jsonl"));
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let of = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), at + 1))
    };
    Ok(text.lines().enumerate().map(of).collect::<std::result::Result<_, _>>()?)
}

/// The instant of a turn.
///
/// # Errors
/// The task began at no instant.
pub fn instant(task: &Task, turn: &Turn) -> Result<Timestamp> {
    let began = Timestamp::parse(&task.started_at).map_err(|e| format!("{}: {e}", task.id))?;
    let at = began.checked_add_micros((turn.at_s * 1e6) as i64);
    at.ok_or_else(|| format!("{}: beyond all time", turn.id).into())
}
