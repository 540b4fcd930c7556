//! Versions: those that resources state, and those that they get.
//!
//! Invariant 7 of ARCHITECTURE.md.

use omir_core::model::Resource;
use omir_core::number::Number;

use crate::error::{Code, Error};
use crate::ingest::import_rule::stated_version;

/// The highest version that is counted on: what any JSON reader keeps exactly.
const MAX_VERSION: u64 = 1 << 53;

/// # Errors
/// `INVALID_RESOURCE` for a version that could not be followed by another.
pub(super) fn check_version(resource: &Resource, pointer: &str) -> Result<(), Error> {
    let Resource::MemoryRecord(record) = resource else { return Ok(()) };
    match &record.version {
        Some(version) if version.as_u64().is_none_or(|version| version > MAX_VERSION) => {
            let message = format!("version {version} is more than {MAX_VERSION} (2^53)");
            Err(Error::at(Code::InvalidResource, format!("{pointer}/version"), message))
        }
        _ => Ok(()),
    }
}

pub(super) fn stamp(resource: &mut Resource, version: u64) {
    if let Resource::MemoryRecord(record) = resource {
        // A version that is only spelled differently (1.0) stays as it came.
        let stated = record.version.as_ref().and_then(Number::as_u64);
        if stated.unwrap_or(1) != version {
            record.version = Some(Number::from(version));
        }
    }
}

pub(super) fn stamp_at_least(resource: &mut Resource, least: u64) -> u64 {
    let version = stated_version(resource).unwrap_or(least).max(least);
    stamp(resource, version);
    version
}

/// The version of an update: `None` if it is the same as what is stored.
pub(super) fn next_version(
    resource: &mut Resource,
    current: u64,
    pointer: &str,
    is_same: impl Fn(&Resource) -> bool,
) -> Result<Option<u64>, Error> {
    let stated = stated_version(resource);
    if let Some(stated) = stated
        && stated < current
    {
        return Err(Error::at(
            Code::Conflict,
            format!("{pointer}/version"),
            format!(
                "version {stated} is older than the stored version {current}; get it, apply the \
                 change to that, and send it again"
            ),
        ));
    }
    if stated.is_none_or(|stated| stated == current) {
        let mut same = resource.clone();
        stamp(&mut same, current);
        if is_same(&same) {
            return Ok(None);
        }
        let next = current.saturating_add(1);
        stamp(resource, next);
        return Ok(Some(next));
    }
    Ok(stated)
}
