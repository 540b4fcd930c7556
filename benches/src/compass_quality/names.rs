//! Entities of turns, against the labelled names of each.

use std::collections::BTreeSet;

use omird_text::{EntityKind, Language, entities};

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};
use crate::compass_quality::set::Agent;

/// Measures entities.
///
/// # Errors
/// A label names a turn that is not there.
pub fn figures(agents: &[Agent]) -> Result<Vec<Figure>> {
    let [mut recalled, mut precise, mut both] = [(); 3].map(|()| Vec::new());
    for agent in agents {
        let [mut right, mut found, mut labelled] = [0.0; 3];
        for names in &agent.names {
            let text = &agent.turn(&names.turn)?.text;
            let wanted: BTreeSet<String> =
                names.mentions.iter().map(|name| name.text.to_lowercase()).collect();
            // Times and readings are no names.
            let is_name = |kind| !matches!(kind, EntityKind::Time | EntityKind::Quantity);
            let told: BTreeSet<String> = entities(Language::English, text, &[])
                .into_iter()
                .filter(|entity| is_name(entity.kind))
                .map(|entity| entity.text.to_lowercase())
                .collect();
            right += wanted.intersection(&told).count() as f64;
            found += told.len() as f64;
            labelled += wanted.len() as f64;
        }
        recalled.push(vec![right, labelled]);
        precise.push(vec![right, found]);
        both.push(vec![right, labelled, found]);
    }
    Ok(vec![
        Figure::new("entity extraction, F1", Aim::AtLeast(0.85), both, |sum| {
            2.0 * sum[0] / (sum[1] + sum[2])
        }),
        Figure::share("- labelled names that are found", Aim::None, recalled),
        Figure::share("- found names that are labelled", Aim::None, precise),
    ])
}
