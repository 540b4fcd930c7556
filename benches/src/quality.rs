//! `omird-bench recall-quality`: how well recall finds, by words, by the embedding without a model, and by a static model.
//!
//! It loads the sets of `benches/data/recall` with their distractors into an engine, asks every question, and prints recall@5
//! and the reciprocal rank of the first right answer, with 95 % intervals by a bootstrap over questions. Tune on the part
//! `tune`, and report on `held_out`.

pub mod conversations;
mod rig;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use comfy_table::{ContentArrangement, Table, presets};
use omir_core::instant::Timestamp;
use omird::engine::{Engine, Query, id_of};
use serde_json::Value;

use self::rig::{Ranking, interval, mean_of, store, wait_for_vectors};
use crate::Result;

/// Hits that count.
const AT: usize = 5;
/// Hits that are asked for: those of other topics are skipped.
const ASKED: usize = 1000;

/// Measures how well recall finds.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The folder of the sets
    #[arg(long, default_value = "benches/data/recall")]
    sets: PathBuf,
    /// Distractors among the memories
    #[arg(long, default_value_t = 10_000)]
    distractors: usize,
    #[command(flatten)]
    ranking: Ranking,
    /// The parameter `floor` of each question
    #[arg(long, default_value_t = 0.0)]
    floor: f64,
}

/// A question with its right answers.
struct Question {
    topic: String,
    /// The kind, and of other words the level.
    kind: String,
    text: String,
    right: HashSet<String>,
    typed: Option<(Value, Value)>,
}

/// Measures and prints.
///
/// # Errors
/// If a set or a model cannot be read, or the engine refuses.
pub fn run(options: &Options) -> Result<()> {
    let mut memories = lines(&options.sets.join("memories.jsonl"))?;
    let topics: HashMap<String, String> = memories
        .iter()
        .map(|memory| (text(memory, "id").to_owned(), text(memory, "topic").to_owned()))
        .collect();
    let made = Command::new("python3")
        .arg(options.sets.join("distractors.py"))
        .args(["--count", &options.distractors.to_string()])
        .output()?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned().into());
    }
    memories.extend(parse_lines(&made.stdout)?);
    // As they happened, each robot by itself.
    let order =
        |memory: &Value| (text(memory, "topic").to_owned(), text(memory, "eventTime").to_owned());
    memories.sort_by_key(order);
    let parts = [("tune", "questions.tune.jsonl"), ("held out", "questions.held_out.jsonl")];
    let mut questions = Vec::new();
    for (part, file) in parts {
        questions.push((part, questions_of(&lines(&options.sets.join(file))?)));
    }
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["", "part", "questions", "n", "recall@5 [95 %]", "MRR", "p50 ms"]);
    for (name, embedder) in options.ranking.backends()? {
        let data = tempfile::tempdir()?;
        let engine = options.ranking.engine(data.path(), embedder.clone())?;
        fill(&engine, &options.sets, &memories)?;
        wait_for_vectors(&engine, embedder.is_some())?;
        for (part, questions) in &questions {
            let found = measure(&engine, questions, &topics, options)?;
            found.tell(name, part, &mut table);
        }
        engine.stop();
    }
    println!("{table}");
    Ok(())
}

fn lines(path: &Path) -> Result<Vec<Value>> {
    parse_lines(&std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?)
}

fn parse_lines(bytes: &[u8]) -> Result<Vec<Value>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<std::result::Result<_, _>>()?)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn questions_of(lines: &[Value]) -> Vec<Question> {
    let one = |line: &Value| {
        let kind = text(line, "kind");
        let level = text(line, "level");
        let kind = if level.is_empty() { kind.to_owned() } else { format!("{kind}, {level}") };
        let answers = line.get("answers").and_then(Value::as_array);
        let right = answers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let typed = line.get("parameters").cloned().zip(line.get("answer").cloned());
        Question {
            topic: text(line, "topic").to_owned(),
            kind,
            text: text(line, "question").to_owned(),
            right: right.collect(),
            typed,
        }
    };
    lines.iter().map(one).collect()
}

/// Stores entities and memories.
fn fill(engine: &Engine, sets: &Path, memories: &[Value]) -> Result<()> {
    let mut entities: BTreeMap<String, Value> = BTreeMap::new();
    for entity in lines(&sets.join("entities.jsonl"))? {
        let mut stored = entity.clone();
        stored["resourceType"] = "Entity".into();
        entities.insert(text(&entity, "id").to_owned(), stored);
    }
    for reference in
        memories.iter().filter_map(|memory| memory.get("entityRefs")?.as_array()).flatten()
    {
        let Some(id) = reference.as_str().and_then(|text| text.strip_prefix("Entity/")) else {
            continue;
        };
        let name = id.rsplit('.').next().unwrap_or(id);
        let made = || serde_json::json!({"resourceType": "Entity", "id": id, "name": name});
        entities.entry(id.to_owned()).or_insert_with(made);
    }
    store(engine, &entities.into_values().collect::<Vec<_>>())?;
    let resource = |memory: &Value| {
        let references = memory.get("entityRefs").and_then(Value::as_array);
        let references = references.into_iter().flatten();
        let references: Vec<Value> =
            references.map(|reference| serde_json::json!({ "ref": reference })).collect();
        serde_json::json!({
            "resourceType": "MemoryRecord",
            "id": memory["id"],
            "content": memory["content"],
            "experienceType": memory["experienceType"],
            "eventTime": memory["eventTime"],
            "createdAt": memory["eventTime"],
            "entityRefs": references,
            "extension": [{
                "url": omir_core::spatial::SPATIAL_POSE_URL,
                "valueJson": {"frame": memory["place"]["frame"], "position": memory["place"]["position"]},
            }],
        })
    };
    store(engine, &memories.iter().map(resource).collect::<Vec<_>>())
}

/// Figures of one part.
#[derive(Default)]
struct Found {
    recalls: BTreeMap<String, Vec<f64>>,
    ranks: BTreeMap<String, Vec<f64>>,
    times: BTreeMap<String, Vec<f64>>,
    /// Questions that found nothing: those without an answer, and all others.
    empty: (usize, usize),
    without_answer: usize,
    typed: (usize, usize),
}

fn measure(
    engine: &Engine,
    questions: &[Question],
    topics: &HashMap<String, String>,
    options: &Options,
) -> Result<Found> {
    let mut found = Found::default();
    for question in questions {
        if let Some((parameters, answer)) = &question.typed {
            found.typed.1 += 1;
            found.typed.0 += usize::from(is_exact(engine, parameters, answer)?);
            continue;
        }
        let query = Query {
            text: omird::engine::Question::parse(&question.text)?,
            by_meaning: true,
            floor: options.floor,
            types: vec!["MemoryRecord".parse().map_err(|_| "a type")?],
            limit: Some(ASKED),
            touch: false,
            ..Query::default()
        };
        let began = Instant::now();
        let hits = engine.recall(&query).map_err(|e| format!("{e}"))?.hits;
        let took = began.elapsed().as_secs_f64() * 1000.0;
        let ids = hits.iter().filter_map(|hit| id_of(&hit.resource));
        if question.kind == "no_answer" {
            found.without_answer += 1;
            found.empty.0 += usize::from(hits.is_empty());
            continue;
        }
        found.empty.1 += usize::from(hits.is_empty());
        // Memories of another topic are another robot's: they count neither for nor against.
        let counts = |id: &String| topics.get(id).is_none_or(|topic| *topic == question.topic);
        let ids: Vec<String> = ids.filter(counts).collect();
        let first = ids.iter().take(AT).filter(|id| question.right.contains(*id)).count();
        let recall = first as f64 / question.right.len().max(1) as f64;
        let rank = ids.iter().position(|id| question.right.contains(id));
        let rank = rank.map_or(0.0, |at| 1.0 / (at + 1) as f64);
        found.recalls.entry(question.kind.clone()).or_default().push(recall);
        found.ranks.entry(question.kind.clone()).or_default().push(rank);
        found.times.entry(question.kind.clone()).or_default().push(took);
    }
    Ok(found)
}

impl Found {
    fn tell(&self, name: &str, part: &str, table: &mut Table) {
        let mut all = Vec::new();
        for (kind, recalls) in &self.recalls {
            all.extend(recalls);
            let (mean, low, high) = interval(recalls);
            let rank = self.ranks.get(kind).map_or(0.0, |ranks| mean_of(ranks));
            let mut times = self.times.get(kind).cloned().unwrap_or_default();
            times.sort_by(f64::total_cmp);
            let time = times.get(times.len() / 2).copied().unwrap_or(0.0);
            table.add_row([
                name.to_owned(),
                part.to_owned(),
                kind.clone(),
                recalls.len().to_string(),
                format!("{mean:.3} [{low:.3}, {high:.3}]"),
                format!("{rank:.3}"),
                format!("{time:.2}"),
            ]);
        }
        let (mean, low, high) = interval(&all);
        let row = |kind: &str, n: usize, value: String| {
            [
                name.into(),
                part.into(),
                kind.into(),
                n.to_string(),
                value,
                String::new(),
                String::new(),
            ]
        };
        table.add_row(row("all", all.len(), format!("{mean:.3} [{low:.3}, {high:.3}]")));
        let (right, wrong) = self.empty;
        let share = |part: usize, of: usize| {
            if of == 0 { "none".to_owned() } else { format!("{:.3}", part as f64 / of as f64) }
        };
        let value = format!(
            "nothing found: precision {}, recall {}",
            share(right, right + wrong),
            share(right, self.without_answer)
        );
        table.add_row(row("no_answer", self.without_answer, value));
        let (exact, typed) = self.typed;
        table.add_row(row("typed", typed, format!("exact {exact} of {typed}")));
    }
}

/// Asks a typed question, and compares the answer with the one that is stated.
fn is_exact(engine: &Engine, parameters: &Value, answer: &Value) -> Result<bool> {
    let mut pairs = vec![("type".to_owned(), "MemoryRecord".to_owned())];
    for (name, value) in parameters.as_object().into_iter().flatten() {
        pairs.push((name.clone(), plain(value)));
    }
    if !parameters.get("limit").is_some_and(Value::is_number) {
        pairs.push(("limit".to_owned(), ASKED.to_string()));
    }
    let now = Timestamp::parse("2026-11-25T00:00:00Z").map_err(|e| e.to_string())?;
    let query = omird::protocols::omir::parse_query(Query::default(), &pairs, now)
        .map_err(|e| format!("{parameters}: {e}"))?;
    let recall = engine.recall(&query).map_err(|e| format!("{parameters}: {e}"))?;
    let reply = omir_core::json::to_string(&recall.to_value().map_err(|e| format!("{e}"))?);
    let reply: Value = serde_json::from_str(&reply)?;
    if let Some(count) = answer.get("count") {
        return Ok(reply.get("count") == Some(count));
    }
    let hits = reply["hits"].as_array().cloned().unwrap_or_default();
    if let Some(ids) = answer.get("ids").and_then(Value::as_array) {
        let found: Vec<&Value> = hits.iter().map(|hit| &hit["resource"]["id"]).collect();
        return Ok(found == ids.iter().collect::<Vec<_>>());
    }
    let reference = |value: &Value| {
        let of = |value: &Value| value.as_str().map(str::to_owned);
        of(value).or_else(|| value.get("ref").and_then(of)).unwrap_or_default()
    };
    if let Some(wanted) = answer.get("entities").and_then(Value::as_array) {
        let stated = reply
            .get("unseen")
            .or_else(|| reply.get("entities"))
            .and_then(Value::as_array)
            .cloned();
        let from_hits = || {
            let entities = hits.iter().filter_map(|hit| hit.get("entities")?.as_array()).flatten();
            entities.cloned().collect()
        };
        let found: HashSet<String> =
            stated.unwrap_or_else(from_hits).iter().map(reference).collect();
        return Ok(found == wanted.iter().map(reference).collect());
    }
    if let Some(wanted) = answer.get("counts").and_then(Value::as_object) {
        let groups = reply.get("counts").and_then(Value::as_array).cloned().unwrap_or_default();
        let count_of = |name: &str| {
            let group = groups.iter().find(|group| {
                ["entity", "day", "of"]
                    .iter()
                    .any(|key| group.get(key).is_some_and(|value| reference(value) == name))
            });
            group.and_then(|group| group.get("count")?.as_u64()).unwrap_or(0)
        };
        return Ok(wanted.iter().all(|(name, count)| Some(count_of(name)) == count.as_u64()));
    }
    Ok(false)
}

/// A parameter as a selector has it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
