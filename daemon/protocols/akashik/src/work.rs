//! The twelve operations, a file for each group.

pub(crate) mod agents;
pub(crate) mod attune;
pub(crate) mod compact;
pub(crate) mod coordinate;
pub(crate) mod detect;
pub(crate) mod handoff;
pub(crate) mod merge;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod session;
pub(crate) mod subscribe;

use crate::answers;
use crate::envelope::Envelope;
use crate::params::Params;
use crate::turn::{Done, Turn};
use crate::words::Operation;
use omir_core::value::Value;

/// Works on an operation.
pub(crate) fn work(turn: &mut Turn<'_>) -> Done {
    let envelope = turn.envelope;
    let mut params = Params::new(&envelope.payload);
    let (status, answer) = match envelope.operation {
        Operation::Register => agents::register(turn, params),
        Operation::Deregister => agents::deregister(turn, params),
        Operation::Record => record::record(turn, params),
        Operation::Attune => attune::attune(turn, params),
        Operation::Detect => detect::detect(turn, params),
        Operation::Merge => merge::merge(turn, params),
        Operation::Subscribe => subscribe::subscribe(turn, params),
        Operation::Replay => {
            replay::replay(turn, &mut params).and_then(|done| params.finish().map(|()| done))
        }
        Operation::Compact => compact::compact(turn, params),
        Operation::Coordinate => coordinate::coordinate(turn, params),
        Operation::Handoff => handoff::handoff(turn, params),
        Operation::Session => session::session(turn, params),
    }?;
    Ok((status, answers::with_gaps(answer, turn.model)))
}

/// Returns true if a message may change something: it is decided by the one writer of its field.
pub(crate) fn changes(envelope: &Envelope) -> bool {
    let word = |name: &str| envelope.payload.get(name).and_then(Value::as_str).unwrap_or_default();
    match envelope.operation {
        Operation::Attune | Operation::Replay => false,
        Operation::Detect => word("mode") != "list",
        Operation::Coordinate | Operation::Handoff | Operation::Session => {
            !matches!(word("action"), "get" | "list")
        }
        Operation::Subscribe => word("action") != "list",
        _ => true,
    }
}
