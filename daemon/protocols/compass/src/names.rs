//! Names in the store: an id of COMPASS is any text, a name of omird is not, and tenants never meet.

use omir_core::hex;
use omir_core::reference::{Id, Ref, ResourceType};
use omird_router::store_key;
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// A kind of thing in the store. Each has a prefix of its own, so that ids of two kinds never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// An agent: the handle of all its memories.
    Agent,
    /// A task: the handle of all its memories.
    TaskHandle,
    /// The context of a task: the lock of all that changes the task.
    Task,
    /// A stage: the handle of all its memories.
    StageHandle,
    /// The summary of a stage.
    Stage,
    /// A memory of an agent.
    Memory,
    /// An error.
    Error,
    /// The handle of all errors of a task.
    Errors,
    /// The handle of all critical memories of a task.
    Critical,
    /// The handle of all critical memories of an agent that belong to no task.
    CriticalOfAgent,
    /// A pattern among errors.
    Pattern,
    /// The handle of what corrects an error.
    Correction,
    /// An intervention.
    Intervention,
    /// A named thing that memories speak of.
    Thing,
    /// The settings of an agent.
    Settings,
    /// The money of a month.
    Budget,
}

impl Sort {
    fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "ca.",
            Self::TaskHandle => "ct.",
            Self::Task => "cx.",
            Self::StageHandle => "cs.",
            Self::Stage => "cm.",
            Self::Memory => "cr.",
            Self::Error => "ce.",
            Self::Errors => "cw.",
            Self::Critical => "ck.",
            Self::CriticalOfAgent => "cl.",
            Self::Pattern => "cp.",
            Self::Correction => "cf.",
            Self::Intervention => "ci.",
            Self::Thing => "cn.",
            Self::Settings => "cg.",
            Self::Budget => "cb.",
        }
    }

    fn of_type(self) -> ResourceType {
        match self {
            Self::Agent
            | Self::TaskHandle
            | Self::StageHandle
            | Self::Errors
            | Self::Critical
            | Self::CriticalOfAgent
            | Self::Correction
            | Self::Thing => ResourceType::Entity,
            _ => ResourceType::MemoryRecord,
        }
    }

    /// Returns true if a name is that of an agent.
    pub(crate) fn is_agent(name: &Ref) -> bool {
        name.kind == ResourceType::Entity && name.id.as_str().starts_with(Self::Agent.prefix())
    }

    /// Returns the part of a name that stands for the id.
    pub(crate) fn key_of(self, name: &Ref) -> &str {
        let text = name.id.as_str();
        text.strip_prefix(self.prefix()).unwrap_or(text)
    }
}

/// Returns the name of what has this id for this tenant.
pub(crate) fn name(sort: Sort, tenant: &str, id: &str) -> Result<Ref, Failure> {
    let text = format!("{}{}", sort.prefix(), store_key(tenant, id, || digest(tenant, id)));
    let id = Id::new(text).map_err(|error| Failure::internal(error.to_string()))?;
    Ok(Ref::new(sort.of_type(), id))
}

fn digest(tenant: &str, id: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(tenant.as_bytes());
    digest.update([0]);
    digest.update(id.as_bytes());
    let digest = digest.finalize();
    hex::encode(&digest[..16])
}

/// Returns an id that is made of what it stands for, so that the same thing has the same id.
pub(crate) fn derived_id(tenant: &str, what: &str) -> String {
    uuid(&digest(tenant, what))
}

/// Writes 128 random bits, in hexadecimal as the engine gives them, as a UUID of version 4 (RFC 9562).
pub(crate) fn uuid(hex: &str) -> String {
    let random = u128::from_str_radix(hex, 16).unwrap_or_default();
    let versioned = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{versioned:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tenant: &str, id: &str) -> String {
        name(Sort::Memory, tenant, id).unwrap().to_string()
    }

    #[test]
    fn ids_become_names() {
        assert_eq!(of("default", "m-1"), "MemoryRecord/cr.m-1");
        assert_eq!(name(Sort::Agent, "default", "a1").unwrap().to_string(), "Entity/ca.a1");
        // SHA-256 of `default`, NUL, `küche`, by another program.
        assert_eq!(of("default", "küche"), "MemoryRecord/cr.70ca7d3e7f6200ded763b1e19b1eb3d7");
        assert_eq!(of("default", &"x".repeat(97)).len(), "MemoryRecord/cr.".len() + 32);
    }

    #[test]
    fn no_two_ids_meet() {
        let ids = ["a", "b", "a b", "0123456789abcdef0123456789abcdef", "küche"];
        let mut seen = std::collections::HashSet::new();
        for tenant in ["default", "t", "u"] {
            for id in ids {
                assert!(seen.insert(of(tenant, id)), "{tenant} {id}");
            }
        }
        // The key of another tenant, chosen as an id.
        let key = of("t", "a");
        assert_ne!(of("default", key.trim_start_matches("MemoryRecord/cr.")), key);
    }

    #[test]
    fn random_bits_become_uuids() {
        assert_eq!(uuid(&"f".repeat(32)), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid("1"), "00000000-0000-4000-8000-000000000001");
    }
}
