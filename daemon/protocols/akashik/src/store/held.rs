//! Records of the store as what a field wrote into them.

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::extension::AKASHIK_URL;
use omir_core::model::{MemoryRecord, Resource};
use omir_core::value::{Value, from_value};
use serde::de::DeserializeOwned;

use super::wrong;
use crate::failure::Failure;
use crate::names;
use crate::names::Sort;
use crate::types::Unit;

pub(super) fn record_in(bytes: &[u8]) -> Result<Option<MemoryRecord>, Failure> {
    let value = cbor::from_slice(bytes, &Limits::default()).map_err(wrong)?;
    let resource = Resource::from_value(value)
        .map_err(|faults| wrong(faults.first().map(ToString::to_string).unwrap_or_default()))?;
    match resource {
        Resource::MemoryRecord(record) => Ok(Some(*record)),
        _ => Ok(None),
    }
}

/// Returns what the extension of a record holds, if it is of this kind and tenant. Another client may write such an
/// extension: one with faults is none of ours.
pub(super) fn value_in(record: &MemoryRecord, is: &str, tenant: &str) -> Option<Value> {
    let extensions = record.extension.iter().flatten();
    extensions.filter(|extension| extension.url == AKASHIK_URL).find_map(|extension| {
        let map = extension.value_json.as_ref()?.as_object()?;
        let says = |name: &str| map.get(name).and_then(Value::as_str);
        let is_it = says("is") == Some(is) && says("tenant") == Some(tenant);
        is_it.then(|| map.get(is).cloned())?
    })
}

pub(super) fn held<T: DeserializeOwned>(
    bytes: &[u8],
    is: &str,
    tenant: &str,
) -> Result<Option<T>, Failure> {
    let Some(record) = record_in(bytes)? else { return Ok(None) };
    let Some(value) = value_in(&record, is, tenant) else { return Ok(None) };
    from_value(value).map(Some).map_err(wrong)
}

/// Returns the epoch of the entry that a record is; `None` if it is none of this field.
pub(super) fn epoch_in(bytes: &[u8], tenant: &str) -> Result<Option<u64>, Failure> {
    let Some(record) = record_in(bytes)? else { return Ok(None) };
    let Some(value) = value_in(&record, "entry", tenant) else { return Ok(None) };
    let epoch = value.get("epoch").and_then(Value::as_u64);
    // Its name proves it: a copy under another name is none of ours.
    let own = epoch.and_then(|epoch| names::name(Sort::Entry, tenant, &epoch.to_string()).ok());
    Ok(epoch.filter(|_| own.is_some_and(|own| own.id == record.id)))
}

pub(super) fn unit_in(bytes: &[u8], tenant: &str) -> Result<Option<Unit>, Failure> {
    let Some(record) = record_in(bytes)? else { return Ok(None) };
    let Some(value) = value_in(&record, "unit", tenant) else { return Ok(None) };
    let Ok(unit) = from_value::<Unit>(value) else { return Ok(None) };
    Ok(Some(Unit { content: record.content, ..unit }))
}
