//! `omir compact`: room on the card.

use std::time::Duration;

use omir_core::value::Value;

use crate::cli::{CompactArgs, Globals};
use crate::client::Client;
use crate::error::Result;
use crate::output;
use crate::selector::Parameters;

/// Rewriting a large store takes its time: so long is waited for it, if --timeout is not longer.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn run(globals: &Globals, args: &CompactArgs) -> Result<()> {
    let mut client = Client::open(globals)?;
    client.be_patient(PATIENCE);
    let robot = client.robot(globals.robot.as_deref())?;
    let scope = match (args.forgotten, args.all) {
        (true, _) => "forgotten",
        (_, true) => "all",
        _ => "due",
    };
    let mut parameters = Parameters::new();
    parameters.push("scope", scope);
    let answer = client.ask(&robot, "compact", &parameters, None)?.value()?;
    if globals.json {
        return Ok(output::print_json(&answer)?);
    }
    Ok(output::print(&sentence(&answer))?)
}

fn sentence(answer: &Value) -> String {
    let int = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let written = int("/bytesWritten");
    if written == 0 {
        return format!(
            "nothing to do: {} segments, {} bytes",
            int("/segmentsAfter"),
            int("/bytesAfter")
        );
    }
    format!(
        "{} segments with {} bytes became {} with {}; {written} bytes written; dropped: {} superseded, \
         {} forgotten",
        int("/segmentsBefore"),
        int("/bytesBefore"),
        int("/segmentsAfter"),
        int("/bytesAfter"),
        int("/dropped/superseded"),
        int("/dropped/forgotten"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_said_in_one_sentence() {
        let read = |text: &str| {
            let limits = omir_core::decode::Limits::default();
            sentence(&omir_core::json::from_slice(text.as_bytes(), &limits).unwrap())
        };
        let done = r#"{"segmentsBefore":9,"segmentsAfter":2,"bytesBefore":900,"bytesAfter":400,
            "bytesWritten":500,"dropped":{"superseded":3,"forgotten":4}}"#;
        assert_eq!(
            read(done),
            "9 segments with 900 bytes became 2 with 400; 500 bytes written; dropped: 3 superseded, \
             4 forgotten"
        );
        let idle = r#"{"segmentsBefore":2,"segmentsAfter":2,"bytesBefore":9,"bytesAfter":9,
            "bytesWritten":0,"dropped":{"superseded":0,"forgotten":0}}"#;
        assert_eq!(read(idle), "nothing to do: 2 segments, 9 bytes");
    }
}
