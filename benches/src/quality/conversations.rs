//! `omird-bench recall-conversations`: how much of the evidence recall finds in conversations of others.
//!
//! It reads files that are not in the project, because their licences do not allow it: `locomo10.json` of LoCoMo (CC BY-NC 4.0), of which each
//! conversation is a store of its own, and `longmemeval_oracle.json` of LongMemEval, whose sessions are put into one store. Each turn is
//! a memory. What counts is the share of the turns named as evidence that are among the first ten hits. The first half of the conversations or
//! questions is `tune`, the other `held out`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use comfy_table::{ContentArrangement, Table, presets};
use omir_core::instant::Timestamp;
use omird::engine::{Engine, Query, id_of};
use serde_json::{Value, json};

use super::rig::{Ranking, interval, store, wait_for_vectors};
use crate::Result;

/// Between turns of a session; their own times are not told.
const TURN: i64 = 20_000_000;
/// Between sessions.
const SESSION: i64 = 86_400_000_000;
/// When the first session began: 2023-05-01T00:00:00Z.
const BEGIN: i64 = 1_682_899_200_000_000;

/// Measures how much of the evidence recall finds.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// `locomo10.json`
    #[arg(long)]
    locomo: Option<PathBuf>,
    /// `longmemeval_oracle.json`
    #[arg(long)]
    longmemeval: Option<PathBuf>,
    /// Hits that count
    #[arg(long, default_value_t = 10)]
    at: usize,
    #[command(flatten)]
    ranking: Ranking,
}

/// Turns of one store, with the questions about them.
struct Conversation {
    /// Identifier and text, session by session.
    sessions: Vec<Vec<(String, String)>>,
    questions: Vec<Question>,
}

struct Question {
    part: &'static str,
    kind: String,
    text: String,
    evidence: Vec<String>,
}

/// Recall of each question, by backend, part and kind; the times of all.
type Found = BTreeMap<(usize, &'static str, String), Vec<f64>>;

/// Measures and prints.
///
/// # Errors
/// If a file or a model cannot be read, or the engine refuses.
pub fn run(options: &Options) -> Result<()> {
    let mut table = Table::new();
    table
        .load_preset(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled);
    let recall = format!("recall@{} [95 %]", options.at);
    table.set_header(["set", "ranking", "part", "questions", "n", &recall, "p50 ms"]);
    let sets = [
        ("LoCoMo", &options.locomo, locomo as fn(&Value) -> Vec<Conversation>),
        ("LongMemEval", &options.longmemeval, longmemeval),
    ];
    for (name, path, read) in sets {
        let Some(path) = path else { continue };
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = std::fs::read(path).map_err(|error| told(&error))?;
        let value = serde_json::from_slice(&bytes).map_err(|error| told(&error))?;
        measure(name, &read(&value), options, &mut table)?;
    }
    println!("{table}");
    Ok(())
}

fn measure(
    set: &str,
    conversations: &[Conversation],
    options: &Options,
    table: &mut Table,
) -> Result<()> {
    let backends = options.ranking.backends()?;
    let mut found = Found::new();
    let mut times = vec![Vec::new(); backends.len()];
    for conversation in conversations {
        for (at, (_, embedder)) in backends.iter().enumerate() {
            let data = tempfile::tempdir()?;
            let engine = options.ranking.engine(data.path(), embedder.clone())?;
            store(&engine, &memories(conversation))?;
            wait_for_vectors(&engine, embedder.is_some())?;
            for question in &conversation.questions {
                let began = Instant::now();
                let recall = ask(&engine, question, options.at)?;
                times[at].push(began.elapsed().as_secs_f64() * 1000.0);
                for kind in [question.kind.as_str(), "all"] {
                    let key = (at, question.part, kind.to_owned());
                    found.entry(key).or_default().push(recall);
                }
            }
            engine.stop();
        }
    }
    for ((at, part, kind), recalls) in &found {
        let (mean, low, high) = interval(recalls);
        let times = &mut times[*at];
        times.sort_by(f64::total_cmp);
        let time = times.get(times.len() / 2).copied().unwrap_or(0.0);
        table.add_row([
            set.to_owned(),
            backends[*at].0.to_owned(),
            (*part).to_owned(),
            kind.clone(),
            recalls.len().to_string(),
            format!("{mean:.3} [{low:.3}, {high:.3}]"),
            format!("{time:.2}"),
        ]);
    }
    Ok(())
}

/// Asks, and returns the share of the evidence among the first hits.
fn ask(engine: &Engine, question: &Question, at: usize) -> Result<f64> {
    let query = Query {
        text: omird::engine::Question::parse(&question.text)?,
        by_meaning: true,
        limit: Some(at),
        touch: false,
        ..Query::default()
    };
    let hits = engine.recall(&query).map_err(|e| format!("{e}"))?.hits;
    let ids: Vec<String> = hits.iter().filter_map(|hit| id_of(&hit.resource)).collect();
    let right = question.evidence.iter().filter(|id| ids.contains(id)).count();
    Ok(right as f64 / question.evidence.len() as f64)
}

fn memories(conversation: &Conversation) -> Vec<Value> {
    let mut all = Vec::new();
    for (session, turns) in conversation.sessions.iter().enumerate() {
        for (turn, (id, text)) in turns.iter().enumerate() {
            let micros = BEGIN + session as i64 * SESSION + turn as i64 * TURN;
            let time = Timestamp::from_micros(micros).to_string();
            all.push(json!({
                "resourceType": "MemoryRecord",
                "id": id,
                "content": text,
                "experienceType": "conversation",
                "eventTime": time,
                "createdAt": time,
            }));
        }
    }
    all
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The conversations of LoCoMo. Questions that were made to have no answer are left out.
fn locomo(value: &Value) -> Vec<Conversation> {
    const KINDS: [&str; 4] = ["several turns", "time", "open domain", "one turn"];
    let all: Vec<&Value> = value.as_array().into_iter().flatten().collect();
    let one = |(at, sample): (usize, &&Value)| {
        let part = if at < all.len() / 2 { "tune" } else { "held out" };
        let said = &sample["conversation"];
        let sessions = (1..).map_while(|n| said.get(format!("session_{n}"))?.as_array());
        let turn = |turn: &Value| {
            let id = text(turn, "dia_id").replace(':', ".");
            (id, format!("{}: {}", text(turn, "speaker"), text(turn, "text")))
        };
        let question = |asked: &Value| {
            let kind = asked["category"].as_u64()?.checked_sub(1)?;
            let kind = KINDS.get(usize::try_from(kind).ok()?)?;
            // Some name several turns in one string.
            let evidence: Vec<String> = items(asked, "evidence")
                .filter_map(Value::as_str)
                .flat_map(|ids| ids.split([';', ' ']))
                .filter(|id| !id.is_empty())
                .map(|id| id.replace(':', "."))
                .collect();
            (!evidence.is_empty()).then(|| Question {
                part,
                kind: (*kind).to_owned(),
                text: text(asked, "question").to_owned(),
                evidence,
            })
        };
        Conversation {
            sessions: sessions.map(|turns| turns.iter().map(turn).collect()).collect(),
            questions: items(sample, "qa").filter_map(question).collect(),
        }
    };
    all.iter().enumerate().map(one).collect()
}

/// All sessions of LongMemEval in one store. A question whose evidence is not marked is left out.
fn longmemeval(value: &Value) -> Vec<Conversation> {
    let all: Vec<&Value> = value.as_array().into_iter().flatten().collect();
    let mut sessions: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut questions = Vec::new();
    for (at, asked) in all.iter().enumerate() {
        let mut evidence = Vec::new();
        for (name, turns) in
            items(asked, "haystack_session_ids").zip(items(asked, "haystack_sessions"))
        {
            let name = name.as_str().unwrap_or("");
            let turns = turns.as_array().into_iter().flatten().enumerate();
            let mut said = Vec::new();
            for (at, turn) in turns {
                let id = format!("{name}.{at}");
                if turn["has_answer"] == true {
                    evidence.push(id.clone());
                }
                said.push((id, format!("{}: {}", text(turn, "role"), text(turn, "content"))));
            }
            sessions.entry(name.to_owned()).or_insert(said);
        }
        if !evidence.is_empty() {
            questions.push(Question {
                part: if at % 2 == 0 { "tune" } else { "held out" },
                kind: text(asked, "question_type").to_owned(),
                text: text(asked, "question").to_owned(),
                evidence,
            });
        }
    }
    vec![Conversation { sessions: sessions.into_values().collect(), questions }]
}
