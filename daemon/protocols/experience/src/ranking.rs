//! Hints made of candidates and statistics: pure, and the same for the same data.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use omir_core::instant::Timestamp;
use omir_core::value::{Map, Value};

use crate::ids::Key;
use crate::patterns;
use crate::statistics::{Usage, node_key, pattern_key};

const SIMILARITY: f64 = 0.60;
const RATE: f64 = 0.30;
const FRESHNESS: f64 = 0.10;
/// Added for what is at hand.
const AT_HAND: f64 = 0.05;
/// Less confidence is no hint.
const LEAST_CONFIDENCE: f64 = 0.2;
/// A thing that was used so often and mostly failed gives no hint.
const OFTEN: u64 = 3;
const LEAST_RATE: f64 = 0.2;
/// The longest note that is a title, in characters.
const LONGEST_TITLE: usize = 80;
/// The tasks that a hint names.
const MOST_TASKS: usize = 3;

/// A node of a candidate, once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Used {
    pub(crate) node_type: String,
    pub(crate) reference: String,
    /// The first note on it, if that is short.
    pub(crate) title: Option<String>,
    /// Its name in the statistics, hashed once as it is drawn and not with each hint.
    pub(crate) thing: Key,
}

impl Used {
    pub(crate) fn new(node_type: &str, reference: &str, title: Option<String>) -> Self {
        let thing = node_key(node_type, reference);
        Self { node_type: node_type.to_owned(), reference: reference.to_owned(), title, thing }
    }
}

/// A pattern of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    pub(crate) slug: String,
    /// As [`Used::thing`].
    pub(crate) thing: Key,
}

impl From<&str> for Pattern {
    fn from(slug: &str) -> Self {
        Self { slug: slug.to_owned(), thing: pattern_key(slug) }
    }
}

/// An experience that an answer may rest on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) task_id: String,
    pub(crate) similarity: f64,
    pub(crate) retrievability: f64,
    pub(crate) domain: Option<String>,
    pub(crate) nodes: Vec<Used>,
    pub(crate) patterns: Vec<Pattern>,
}

impl Candidate {
    /// Returns the names of all that it used.
    pub(crate) fn things(&self) -> impl Iterator<Item = &Key> {
        let nodes = self.nodes.iter().map(|node| &node.thing);
        nodes.chain(self.patterns.iter().map(|pattern| &pattern.thing))
    }
}

/// A hint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hint {
    pub(crate) confidence: f64,
    pub(crate) reference: String,
    pub(crate) hint_type: &'static str,
    title: String,
    support: usize,
    usage: Usage,
    /// The end of its latest use, looked up for the hints that are given.
    pub(crate) last: Option<Timestamp>,
    tasks: Vec<String>,
    /// The thing that is hinted at.
    pub(crate) thing: Key,
    domain: Option<String>,
    /// The type that no hint has.
    node_type: Option<&'static str>,
}

/// A thing that candidates used, with what speaks for it.
struct Support<'c> {
    thing: Key,
    reference: String,
    hint_type: &'static str,
    node_type: Option<&'static str>,
    title: Option<String>,
    /// The candidates, best first.
    by: Vec<&'c Candidate>,
}

/// Returns the hints that candidates give, best first, at most `most`.
pub(crate) fn hints(
    candidates: &[&Candidate],
    tools: &[String],
    most: usize,
    usage: impl Fn(&Key) -> Usage,
) -> Vec<Hint> {
    let mut found: Vec<Hint> = supported(candidates)
        .into_iter()
        .map(|support| {
            let usage = usage(&support.thing);
            hint(support, tools, usage)
        })
        .filter(|hint| {
            let rarely_works = hint.usage.uses >= OFTEN && hint.success_rate() < LEAST_RATE;
            hint.confidence >= LEAST_CONFIDENCE && !rarely_works
        })
        .collect();
    found.sort_by(|a, b| {
        let by_uses = || b.usage.uses.cmp(&a.usage.uses);
        let by_name = || (&a.reference, a.hint_type).cmp(&(&b.reference, b.hint_type));
        b.confidence.total_cmp(&a.confidence).then_with(by_uses).then_with(by_name)
    });
    found.truncate(most);
    found
}

/// Gathers the nodes and patterns of the candidates.
fn supported<'c>(candidates: &[&'c Candidate]) -> Vec<Support<'c>> {
    let mut best: Vec<&Candidate> = candidates.to_vec();
    best.sort_by(|a, b| {
        let by_similarity = b.similarity.total_cmp(&a.similarity);
        by_similarity.then_with(|| a.task_id.cmp(&b.task_id))
    });
    let mut places: HashMap<Key, usize> = HashMap::new();
    let mut all: Vec<Support<'c>> = Vec::new();
    for candidate in best {
        let nodes = candidate.nodes.iter().map(|node| {
            let (hint_type, node_type) = hint_type(&node.node_type);
            let thing = node.thing;
            let (reference, title) = (node.reference.clone(), node.title.clone());
            Support { thing, reference, hint_type, node_type, title, by: Vec::new() }
        });
        let patterns = candidate.patterns.iter().map(|Pattern { slug, thing }| Support {
            thing: *thing,
            reference: format!("{}{slug}", patterns::PREFIX),
            hint_type: "pattern",
            node_type: None,
            title: Some(slug.replace('_', " ")),
            by: Vec::new(),
        });
        for one in nodes.chain(patterns) {
            let at = *places.entry(one.thing).or_insert(all.len());
            if at == all.len() {
                all.push(one);
            } else if all[at].title.is_none() {
                all[at].title = one.title;
            }
            all[at].by.push(candidate);
        }
    }
    all
}

/// Returns the type of the hint that a node gives, and its own type where no hint has that.
fn hint_type(node_type: &str) -> (&'static str, Option<&'static str>) {
    match node_type {
        "document" => ("document", None),
        "tool" => ("tool", None),
        "api" => ("api", None),
        "database" => ("external", Some("database")),
        _ => ("external", None),
    }
}

fn hint(support: Support<'_>, tools: &[String], usage: Usage) -> Hint {
    let best = |of: fn(&Candidate) -> f64| support.by.iter().map(|it| of(it)).fold(0.0, f64::max);
    let damped = (usage.successes + 1.0) / (usage.uses as f64 + 2.0);
    let bonus = if tools.contains(&support.reference) { AT_HAND } else { 0.0 };
    let confidence = SIMILARITY * best(|it| it.similarity)
        + RATE * damped
        + FRESHNESS * best(|it| it.retrievability)
        + bonus;
    Hint {
        confidence: (confidence.clamp(0.0, 1.0) * 100.0).round() / 100.0,
        title: support.title.unwrap_or_else(|| support.reference.clone()),
        reference: support.reference,
        thing: support.thing,
        hint_type: support.hint_type,
        support: support.by.len(),
        usage,
        last: None,
        tasks: support.by.iter().take(MOST_TASKS).map(|it| it.task_id.clone()).collect(),
        domain: support.by.iter().find_map(|it| it.domain.clone()),
        node_type: support.node_type,
    }
}

impl Hint {
    fn success_rate(&self) -> f64 {
        match self.usage.uses {
            0 => 0.0,
            uses => (self.usage.successes / uses as f64).clamp(0.0, 1.0),
        }
    }

    /// Returns it as the contract writes it.
    pub(crate) fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("ref", self.reference.as_str());
        map.insert("type", self.hint_type);
        map.insert("title", self.title.as_str());
        let tasks = if self.support == 1 { "task" } else { "tasks" };
        let support = self.support;
        let mut reason = format!("used in {support} similar {tasks}");
        if self.usage.uses > 0 {
            let percent = (self.success_rate() * 100.0).round();
            let _ = write!(reason, ", {percent:.0} % of its uses succeeded");
        }
        map.insert("reason", reason);
        map.insert("confidence", self.confidence);
        let mut stats = Map::new();
        if self.usage.uses > 0 {
            stats.insert("success_rate", (self.success_rate() * 10_000.0).round() / 10_000.0);
        }
        if let Some(mean) = self.usage.mean_ms {
            stats.insert("avg_duration_ms", mean);
        }
        if let Some(last) = self.last {
            stats.insert("last_used", Timestamp::writable(last).to_string());
        }
        map.insert("usage_stats", stats);
        let mut metadata = Map::new();
        metadata.insert("uses", self.usage.uses);
        metadata.insert("tasks", self.tasks.iter().map(String::as_str).collect::<Value>());
        if let Some(domain) = &self.domain {
            metadata.insert("domain", domain.as_str());
        }
        if let Some(node_type) = self.node_type {
            metadata.insert("node_type", node_type);
        }
        map.insert("metadata", metadata);
        map.into()
    }
}

/// Returns the places of the candidates that used something that is hinted at.
pub(crate) fn supports(hints: &[Hint], candidates: &[&Candidate]) -> Vec<usize> {
    let shown: HashSet<&Key> = hints.iter().map(|hint| &hint.thing).collect();
    let rests_on = |candidate: &Candidate| candidate.things().any(|thing| shown.contains(thing));
    candidates.iter().enumerate().filter(|(_, it)| rests_on(it)).map(|(at, _)| at).collect()
}

/// Returns a note as a title, if it is short enough for one.
pub(crate) fn title(note: &str) -> Option<String> {
    let is_title = !note.is_empty() && note.chars().nth(LONGEST_TITLE).is_none();
    is_title.then(|| note.to_owned())
}

#[cfg(test)]
mod tests;
