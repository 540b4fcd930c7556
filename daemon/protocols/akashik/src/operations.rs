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
use crate::operation_context::{OperationContext, OperationResult};
use crate::params::Params;
use crate::words::Operation;
use omir_core::value::Value;

/// Carries out an operation.
pub(crate) fn carry_out(context: &mut OperationContext<'_>) -> OperationResult {
    let envelope = context.envelope;
    let mut params = Params::new(&envelope.payload);
    let (status, answer) = match envelope.operation {
        Operation::Register => agents::register(context, params),
        Operation::Deregister => agents::deregister(context, params),
        Operation::Record => record::record(context, params),
        Operation::Attune => attune::attune(context, params),
        Operation::Detect => detect::detect(context, params),
        Operation::Merge => merge::merge(context, params),
        Operation::Subscribe => subscribe::subscribe(context, params),
        Operation::Replay => {
            replay::replay(context, &mut params).and_then(|done| params.finish().map(|()| done))
        }
        Operation::Compact => compact::compact(context, params),
        Operation::Coordinate => coordinate::coordinate(context, params),
        Operation::Handoff => handoff::handoff(context, params),
        Operation::Session => session::session(context, params),
    }?;
    Ok((status, answers::with_gaps(answer, context.model)))
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
