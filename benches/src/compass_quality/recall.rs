//! Questions: what is found among the first five, with and without the factors of stage and errors, and pairs among them
//! that contradict each other.

use omird_protocol_compass::CompassSettings as Settings;
use serde_json::{Value, json};

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};
use crate::compass_quality::patterns::record;
use crate::compass_quality::rig::{Bed, Rig, Stages};
use crate::compass_quality::set::{Agent, Query, instant};

/// Memories of an answer that count.
const FIRST: usize = 5;

/// An answer, as far as it counts.
struct Retrieved {
    ids: Vec<String>,
    named: Vec<[String; 2]>,
}

/// Measures what questions find.
///
/// # Errors
/// A request was refused.
pub fn figures(agents: &[Agent], bed: &Bed) -> Result<Vec<Figure>> {
    let [
        mut all,
        mut many,
        mut stage,
        mut stages,
        mut error,
        mut errors,
        mut unnamed,
        mut detected,
    ] = [(); 8].map(|()| Vec::new());
    for agent in agents {
        let mut rig = Rig::new(bed)?;
        rig.store_all(agent, Stages::Marked, |_, _, _| {})?;
        be_after(&rig, agent)?;
        let [mut sum, mut sum_many, mut sum_stage, mut sum_stages, mut sum_unnamed] =
            [(); 5].map(|()| vec![0.0; 3]);
        let weightless = Settings { stage_relevance_weight: 0.0, ..Settings::default() };
        for query in &agent.queries {
            let found = ask(&rig, agent, query, false)?;
            let precision =
                precision(&found, |id| query.relevant.contains(id), query.relevant.len());
            add(&mut sum, &[precision, 1.0]);
            if query.relevant.len() >= FIRST {
                add(&mut sum_many, &[precision, 1.0]);
            }
            add(&mut sum_unnamed, &[f64::from(u8::from(has_unnamed(agent, &found))), 1.0]);
            if query.kind == "stage" {
                add(&mut sum_stage, &[precision, 1.0]);
            }
        }
        rig.set(weightless);
        for query in agent.queries.iter().filter(|query| query.kind == "stage") {
            let found = ask(&rig, agent, query, false)?;
            let plain = precision(&found, |id| query.relevant.contains(id), query.relevant.len());
            add(&mut sum_stages, &[plain, 1.0]);
        }
        sum_stages[2] = sum_stage[0];
        all.push(sum);
        many.push(sum_many);
        stage.push(sum_stage);
        stages.push(sum_stages);
        unnamed.push(sum_unnamed);
        let (with, without) = error_aware(agent, bed)?;
        error.push(with.clone());
        errors.push(vec![without[0], without[1], with[0]]);
        let rig = Rig::new(bed)?;
        rig.store_all(agent, Stages::Detected, |_, _, _| {})?;
        be_after(&rig, agent)?;
        let mut sum = vec![0.0; 2];
        for query in &agent.queries {
            let found = ask(&rig, agent, query, false)?;
            let hit = precision(&found, |id| query.relevant.contains(id), query.relevant.len());
            add(&mut sum, &[hit, 1.0]);
        }
        detected.push(sum);
    }
    let gain = |sum: &[f64]| sum[2] / sum[0] - 1.0;
    Ok(vec![
        Figure::share("precision@5, all queries", Aim::AtLeast(0.95), all),
        Figure::share("- queries with five or more relevant turns", Aim::None, many),
        Figure::share("- with detected stages", Aim::None, detected),
        Figure::share("stage relevance, queries of a stage", Aim::AtLeast(0.90), stage),
        Figure::new("stage-aware against plain", Aim::AtLeast(0.10), stages, gain),
        Figure::share("- precision of queries about errors", Aim::None, error),
        Figure::new("error-aware against plain", Aim::AtLeast(0.05), errors, gain),
        Figure::share("queries with a contradiction not named", Aim::AtMost(0.05), unnamed),
    ])
}

/// Asks what went wrong in a task, with its errors recorded and what corrected them stored so: with their factor, and with
/// weight 0. Sums and counts of precision.
fn error_aware(agent: &Agent, bed: &Bed) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut rig = Rig::new(bed)?;
    for (task, turns) in &agent.tasks {
        for turn in turns {
            let corrects = agent.errors.iter().find(|error| {
                error.task.as_deref() == Some(&task.id) && error.corrected_by.contains(&turn.id)
            });
            // An error may be recorded at the turn that corrects it; it must be there before.
            let corrects =
                corrects.filter(|error| is_before(turns, error.turn.as_deref(), &turn.id));
            let corrects = corrects.map(|error| &*error.id);
            rig.store(&agent.name, task, turn, Stages::Marked, corrects)?;
            for error in agent.errors.iter().filter(|error| error.turn.as_deref() == Some(&turn.id))
            {
                record(&rig, error, &task.id)?;
            }
        }
    }
    be_after(&rig, agent)?;
    // All stages of the task count as recent: those of the set have two turns on average.
    let aware = Settings { error_history_lookback_stages: 1000, ..Settings::default() };
    let blind = Settings { error_correction_weight: 0.0, ..aware.clone() };
    let mut sums = Vec::new();
    for settings in [aware, blind] {
        rig.set(settings);
        let mut sum = vec![0.0; 2];
        for query in agent.queries.iter().filter(|query| query.kind == "error") {
            let of_task = |id: &String| agent.turn(id).is_ok_and(|turn| turn.task == query.task);
            let relevant = query.relevant.iter().filter(|id| of_task(id)).count();
            if relevant == 0 {
                continue;
            }
            let found = ask(&rig, agent, query, true)?;
            let hit = precision(&found, |id| query.relevant.contains(id), relevant);
            add(&mut sum, &[hit, 1.0]);
        }
        sums.push(sum);
    }
    let without = sums.pop().unwrap_or_default();
    Ok((sums.pop().unwrap_or_default(), without))
}

fn is_before(turns: &[crate::compass_quality::set::Turn], error: Option<&str>, turn: &str) -> bool {
    let place = |id: &str| turns.iter().position(|one| one.id == id);
    error.is_some_and(|error| place(error) < place(turn))
}

/// Lets an hour go by after the last turn, in which vectors are made.
fn be_after(rig: &Rig, agent: &Agent) -> Result<()> {
    let mut last = None;
    for (task, turns) in &agent.tasks {
        for turn in turns {
            last = last.max(Some(instant(task, turn)?));
        }
    }
    let after = last.and_then(|at| at.checked_add_micros(3_600_000_000));
    rig.be_at(after.ok_or("an agent without turns")?);
    rig.wait_for_vectors()
}

fn ask(rig: &Rig, agent: &Agent, query: &Query, of_task: bool) -> Result<Retrieved> {
    let mut params = json!({
        "agent_id": agent.name, "query": query.text, "k": FIRST, "stage_type": query.stage,
        "include_archived": true, "touch": false,
    });
    if of_task {
        params["task_id"] = json!(query.task);
    }
    let answer = rig.ask("memory.retrieve", &params)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Retrieved {
        ids: list(&answer["memories"]).iter().map(|one| id(&one["memory"]["memory_id"])).collect(),
        named: list(&answer["validation"]["contradictions"])
            .iter()
            .map(|pair| [id(&pair[0]), id(&pair[1])])
            .collect(),
    })
}

/// Relevant among the first five, or among the first R where only R are relevant.
fn precision(found: &Retrieved, is_relevant: impl Fn(&String) -> bool, relevant: usize) -> f64 {
    let first = FIRST.min(relevant).max(1);
    found.ids.iter().take(first).filter(|id| is_relevant(id)).count() as f64 / first as f64
}

/// Tells if the first five hold a labelled contradiction that the answer does not name.
fn has_unnamed(agent: &Agent, found: &Retrieved) -> bool {
    let first: Vec<&String> = found.ids.iter().take(FIRST).collect();
    agent.pairs.iter().filter(|pair| pair.contradicts).any(|pair| {
        let is_named =
            found.named.iter().any(|named| pair.turns.iter().all(|id| named.contains(id)));
        pair.turns.iter().all(|id| first.contains(&id)) && !is_named
    })
}

fn add(sum: &mut [f64], one: &[f64]) {
    sum.iter_mut().zip(one).for_each(|(sum, one)| *sum += one);
}
