//! Fingerprints: the log has that of each message, so that its id is not used for another, and that of each unit, so that a record
//! which was changed past the field is not taken for it.

use omir_core::json;
use omir_core::value::{Value, to_value};

use crate::envelope::Envelope;
use crate::names::{digest, hex};
use crate::types::Unit;

/// Returns the fingerprint of a unit as it was recorded, with its content; `None` for one that cannot be written.
pub(crate) fn of_unit(unit: &Unit) -> Option<String> {
    let text = json::to_string(&to_value(unit).ok()?);
    Some(hex(&digest(&[text.as_bytes()])))
}

/// Returns a digest of what a message asks for. Its epoch is not part of it: an agent that sends it once more may know
/// a later one.
pub(crate) fn of_message(envelope: &Envelope) -> String {
    let payload = json::to_string(&Value::Object(envelope.payload.clone()));
    let session = envelope.session_id.as_deref().unwrap_or_default();
    let parts = [envelope.operation.as_str(), session, &payload];
    hex(&digest(&parts.map(str::as_bytes)))
}
