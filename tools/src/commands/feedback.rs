//! `omir feedback`: what came of a memory.

use omir_core::value::Value;

use super::view;
use crate::cli::{FeedbackArgs, Globals};
use crate::client::Client;
use crate::error::Result;
use crate::selector::Parameters;
use crate::{id_prefix, output};

pub(super) fn run(globals: &Globals, args: &FeedbackArgs) -> Result<()> {
    let client = Client::open(globals)?;
    let robot = client.robot(globals.robot.as_deref())?;
    let (reference, reply) = id_prefix::with(&client, &robot, &args.reference, |reference| {
        let mut parameters = Parameters::new();
        parameters.push("ref", &reference.to_string());
        parameters.push("outcome", args.outcome.as_str());
        parameters.push_some("weight", args.weight);
        client.ask(&robot, "feedback", &parameters, None)
    })?;
    let reply = reply.value()?;
    if globals.json {
        return Ok(output::print_json(&reply)?);
    }
    let mut line = format!("{reference} {}", args.outcome.as_str());
    if let Some(confidence) = reply.get("confidence") {
        line.push_str(&confidence_words(confidence));
    }
    Ok(output::print(&line)?)
}

/// `, confidence 0.75 (Beta 3.0, 1.0)`, as far as the reply tells.
fn confidence_words(confidence: &Value) -> String {
    let number = |name| view::number(confidence.get(name), 2);
    let (calibrated, alpha, beta) = (number("calibrated"), number("alpha"), number("beta"));
    let mut words = String::new();
    if !calibrated.is_empty() {
        words.push_str(&format!(", confidence {calibrated}"));
    }
    if !alpha.is_empty() && !beta.is_empty() {
        words.push_str(&format!(" (Beta {alpha}, {beta})"));
    }
    words
}
