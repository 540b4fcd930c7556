//! The held-out figures as docs/compass.md publishes them: no change of a rule makes one worse unseen.

use crate::Result;
use crate::compass_quality::figure::{Aim, Figure};

/// The name of a figure and its value: those that do not rest on the recall of the engine.
const PUBLISHED: &[(&str, f64)] = &[
    ("stage detection, at labelled transitions", 0.548),
    ("fact retention of stage summaries", 0.921),
    ("context, tokens of the history", 0.196),
    ("- labelled facts that are in it", 0.246),
    ("error patterns found", 0.703),
    ("error patterns that are false", 0.395),
    ("entity extraction, F1", 0.704),
];

/// The change that is no loss.
const NOISE: f64 = 0.01;

/// Checks that no figure is worse than published.
///
/// # Errors
/// Names those that are, and a published figure of a measured part that is not there any more.
pub fn check(figures: &[Figure]) -> Result<()> {
    let mut worse = Vec::new();
    for figure in figures {
        let Some((_, published)) = PUBLISHED.iter().find(|(name, _)| *name == figure.name) else {
            continue;
        };
        let value = figure.value();
        let lost = match figure.aim {
            Aim::AtMost(_) => value - published,
            Aim::AtLeast(_) | Aim::None => published - value,
        };
        // A figure that is no number is a loss too.
        if lost.is_nan() || lost > NOISE {
            worse.push(format!("{}: {value:.3}, published {published:.3}", figure.name));
        }
    }
    if worse.is_empty() { Ok(()) } else { Err(worse.join("; ").into()) }
}
