//! Contradictions, of pairs: two memories that an agent has, and nothing else.

use serde_json::json;

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};
use crate::compass_quality::rig::{Bed, Rig};
use crate::compass_quality::set::Agent;

/// Measures which pairs are named.
///
/// # Errors
/// A request was refused.
pub fn figures(agents: &[Agent], bed: &Bed) -> Result<Vec<Figure>> {
    let [mut precise, mut recalled] = [(); 2].map(|()| Vec::new());
    for agent in agents {
        let rig = Rig::new(bed)?;
        let [mut right, mut named, mut labelled] = [0.0; 3];
        for (at, pair) in agent.pairs.iter().enumerate() {
            let who = format!("{}.{at}", agent.name);
            let turns = [agent.turn(&pair.turns[0])?, agent.turn(&pair.turns[1])?];
            for turn in turns {
                rig.ask(
                    "memory.store",
                    &json!({"agent_id": who, "content": turn.text, "stage_type": turn.stage}),
                )?;
            }
        }
        rig.wait_for_vectors()?;
        for (at, pair) in agent.pairs.iter().enumerate() {
            let who = format!("{}.{at}", agent.name);
            let turns = [agent.turn(&pair.turns[0])?, agent.turn(&pair.turns[1])?];
            let query = turns.map(|turn| turn.text.as_str()).join("\n");
            let asked = json!({"agent_id": who, "query": query, "k": 2, "touch": false});
            let answer = rig.ask("memory.retrieve", &asked)?;
            let pairs = &answer["validation"]["contradictions"];
            let is_named = pairs.as_array().is_some_and(|pairs| !pairs.is_empty());
            named += f64::from(u8::from(is_named));
            labelled += f64::from(u8::from(pair.contradicts));
            right += f64::from(u8::from(is_named && pair.contradicts));
        }
        precise.push(vec![right, named]);
        recalled.push(vec![right, labelled]);
    }
    Ok(vec![
        Figure::share("- labelled contradictions that are named", Aim::None, recalled),
        Figure::share("- named pairs that contradict", Aim::None, precise),
    ])
}
