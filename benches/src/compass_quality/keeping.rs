//! Facts that summaries keep, and contexts within a fifth of the history. Stages are those of the labels.

use omird_text::{Approx1, Language, TokenCounter, retention, sentences};
use serde_json::{Value, json};

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};
use crate::compass_quality::rig::{Bed, Rig, Stages};
use crate::compass_quality::set::{Agent, Task, Turn};

/// The share of the history that a context may take.
const SHARE: f64 = 0.20;
/// The code of a budget that what is never cut does not fit in.
const TOO_SMALL: i64 = -32008;

/// Measures what is kept.
///
/// # Errors
/// A request was refused.
pub fn figures(agents: &[Agent], bed: &Bed) -> Result<Vec<Figure>> {
    let [mut kept, mut ratio, mut sizes, mut within, mut facts_in] = [(); 5].map(|()| Vec::new());
    for agent in agents {
        let rig = Rig::new(bed)?;
        let mut stages: Vec<(String, String)> = Vec::new();
        rig.store_all(agent, Stages::Marked, |_, turn, answer| {
            let stage = answer["stage_id"].as_str().unwrap_or_default().to_owned();
            stages.push((turn.id.clone(), stage));
        })?;
        rig.wait_for_vectors()?;
        let mut contexts = [0.0; 6];
        for (task, turns) in &agent.tasks {
            let found = context(&rig, agent, task, turns)?;
            contexts.iter_mut().zip(found).for_each(|(sum, one)| *sum += one);
        }
        sizes.push(contexts[..2].to_vec());
        within.push(contexts[2..4].to_vec());
        facts_in.push(contexts[4..].to_vec());
        for (task, _) in &agent.tasks {
            rig.ask("memory.complete_stage", &json!({"task_id": task.id}))?;
        }
        let [mut hit, mut input, mut output] = [0.0; 3];
        let mut seen: Vec<&str> = Vec::new();
        let mut of_turn: Vec<(&str, Vec<String>)> = Vec::new();
        for (turn, stage) in &stages {
            if seen.contains(&&**stage) {
                continue;
            }
            seen.push(stage);
            let task = &agent.turn(turn)?.task;
            let told = rig.ask(
                "memory.get_stage_context",
                &json!({"task_id": task, "stage_id": stage, "token_budget": 200_000}),
            )?;
            let told = &told["stage"];
            let mut said = vec![told["stage_summary"].as_str().unwrap_or_default().to_owned()];
            said.extend(texts(&told["critical_facts"]));
            of_turn.push((stage, said));
            let metrics = rig.ask("memory.get_compression_metrics", &json!({"stage_id": stage}))?;
            if let Some(last) = metrics["metrics"].as_array().and_then(|all| all.last()) {
                input += last["input_tokens"].as_f64().unwrap_or_default();
                output += last["output_tokens"].as_f64().unwrap_or_default();
            }
        }
        for fact in &agent.facts {
            let stage = stages.iter().find(|(turn, _)| *turn == fact.turn).map(|(_, stage)| stage);
            let said = of_turn.iter().find(|(of, _)| Some(*of) == stage.map(String::as_str));
            let is_kept = said.is_some_and(|(_, said)| keeps(said, &fact.text));
            hit += f64::from(u8::from(is_kept));
        }
        kept.push(vec![hit, agent.facts.len() as f64]);
        ratio.push(vec![input, output]);
    }
    Ok(vec![
        Figure::share("fact retention of stage summaries", Aim::AtLeast(0.95), kept),
        Figure::share("- input by output tokens", Aim::None, ratio).plain(),
        Figure::share("context, tokens of the history", Aim::AtMost(SHARE), sizes),
        Figure::share("- tasks whose context fits a fifth", Aim::None, within),
        Figure::share("- labelled facts that are in it", Aim::None, facts_in),
    ])
}

/// Makes the context of a task within a fifth of its tokens: tokens, tokens of the turns, contexts that fit, contexts, facts in
/// it, facts.
fn context(rig: &Rig, agent: &Agent, task: &Task, turns: &[Turn]) -> Result<[f64; 6]> {
    let history: usize = turns.iter().map(|turn| Approx1.count(&turn.text)).sum();
    let budget = (history as f64 * SHARE) as usize;
    let asked = |budget: usize| {
        rig.response("memory.get_context", &json!({"task_id": task.id, "token_budget": budget}))
    };
    let mut made = asked(budget)?;
    let fits = made["error"]["code"].as_i64() != Some(TOO_SMALL);
    if !fits {
        // The size that the context needs counts as its size.
        let needed = made["error"]["data"]["needed"].as_u64().unwrap_or_default();
        made = asked(usize::try_from(needed)?)?;
    }
    let text = made["result"]["context"].as_str().ok_or_else(|| format!("{}: {made}", task.id))?;
    let said = [text.to_owned()];
    let facts: Vec<_> =
        agent.facts.iter().filter(|fact| turns.iter().any(|turn| turn.id == fact.turn)).collect();
    let hit = facts.iter().filter(|fact| keeps(&said, &fact.text)).count();
    let fits = f64::from(u8::from(fits));
    let tokens = Approx1.count(text) as f64;
    Ok([tokens, history as f64, fits, 1.0, hit as f64, facts.len() as f64])
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    all.map(str::to_owned).collect()
}

/// Tells if a sentence of these texts keeps a fact, by the measure of docs/text.md.
fn keeps(said: &[String], fact: &str) -> bool {
    let all: Vec<&str> = said.iter().flat_map(|text| sentences(text)).collect();
    retention(Language::English, &[fact], &all) >= 1.0
}
