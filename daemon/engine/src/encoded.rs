//! Members of an encoded resource, read without decoding the rest.

use omir_core::cbor;
use omir_core::decode::Limits;

/// Returns the id of an encoded resource.
pub fn id_of(resource: &[u8]) -> Option<String> {
    let id = cbor::map_slot(resource, "id").ok()?.value?;
    let id = cbor::from_slice(&resource[id], &Limits::default()).ok()?;
    id.as_str().map(str::to_owned)
}
