//! Stage detection: turns in order, without labels.

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};
use crate::compass_quality::rig::{Bed, Rig, Stages};
use crate::compass_quality::set::Agent;

/// Measures stage detection.
///
/// # Errors
/// A store was refused.
pub fn figures(agents: &[Agent], bed: &Bed) -> Result<Vec<Figure>> {
    let [mut right, mut also, mut turns, mut false_ones] = [(); 4].map(|()| Vec::new());
    for agent in agents {
        let rig = Rig::new(bed)?;
        let [mut at_change, mut at_change_also, mut changes] = [0.0; 3];
        let [mut same, mut all, mut moved, mut still] = [0.0; 4];
        let mut before: Option<(String, String, String)> = None;
        rig.store_all(agent, Stages::Detected, |task, turn, answer| {
            let found = answer["stage_type"].as_str().unwrap_or_default().to_owned();
            let is_right = found == turn.stage;
            let is_also = turn.stage_also.as_deref() == Some(&found);
            all += 1.0;
            same += f64::from(u8::from(is_right));
            if let Some((_, label, last)) = before.as_ref().filter(|(of, ..)| *of == task.id) {
                if *label == turn.stage {
                    still += 1.0;
                    moved += f64::from(u8::from(*last != found));
                } else {
                    changes += 1.0;
                    at_change += f64::from(u8::from(is_right));
                    at_change_also += f64::from(u8::from(is_right || is_also));
                }
            }
            before = Some((task.id.clone(), turn.stage.clone(), found));
        })?;
        right.push(vec![at_change, changes]);
        also.push(vec![at_change_also, changes]);
        turns.push(vec![same, all]);
        false_ones.push(vec![moved, still]);
    }
    Ok(vec![
        Figure::share("stage detection, at labelled transitions", Aim::AtLeast(0.90), right),
        Figure::share("- with a second acceptable stage", Aim::None, also),
        Figure::share("- all turns with the right stage", Aim::None, turns),
        Figure::share("- changes where there is none", Aim::None, false_ones),
    ])
}
