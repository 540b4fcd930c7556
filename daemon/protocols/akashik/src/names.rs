//! Names in the store: an id of Akashik is any text, a name of omird is not, and tenants never meet.

pub(crate) use omir_core::hex::encode as hex;
use omir_core::reference::{Id, Ref, ResourceType};
use omird_router::store_key;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// A kind of thing in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A unit.
    Unit,
    /// A conflict.
    Conflict,
    /// An entry of the log.
    Entry,
    /// Reads, some of them together.
    Reads,
    /// The field: the handle of its units and conflicts.
    Field,
    /// The log: the handle of its entries.
    Log,
    /// An agent: the handle of its units.
    Agent,
    /// A task: the handle of its units.
    Task,
    /// A session: the handle of its units.
    Session,
}

impl Sort {
    fn parts(self) -> (&'static str, ResourceType) {
        use ResourceType::{Entity, MemoryRecord};
        match self {
            Self::Unit => ("ak.", MemoryRecord),
            Self::Conflict => ("akc.", MemoryRecord),
            Self::Entry => ("akl.", MemoryRecord),
            Self::Reads => ("akr.", MemoryRecord),
            Self::Field => ("akf.", Entity),
            Self::Log => ("akg.", Entity),
            Self::Agent => ("aka.", Entity),
            Self::Task => ("akt.", Entity),
            Self::Session => ("aks.", Entity),
        }
    }
}

/// Returns the name of what has this id for this tenant.
pub(crate) fn name(sort: Sort, tenant: &str, id: &str) -> Result<Ref, Failure> {
    let (prefix, of) = sort.parts();
    let key = store_key(tenant, id, || hex(&digest(&[tenant.as_bytes(), id.as_bytes()])));
    let id =
        Id::new(format!("{prefix}{key}")).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Ref::new(of, id))
}

/// Returns 128 bits of a digest of some parts.
pub(crate) fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
        digest.update([0]);
    }
    let digest = digest.finalize();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ids_meet() {
        let ids = ["a", "b", "a b", "0123456789abcdef0123456789abcdef", "küche"];
        let mut seen = std::collections::HashSet::new();
        for tenant in ["default", "t", "u"] {
            for id in ids {
                let name = name(Sort::Unit, tenant, id).unwrap().to_string();
                assert!(seen.insert(name), "{tenant} {id}");
            }
        }
        assert_eq!(
            name(Sort::Unit, "default", "mem-7").unwrap().to_string(),
            "MemoryRecord/ak.mem-7"
        );
    }
}
