//! Ids in the store. A WorldId may hold characters and lengths that no id may, so the id of its Episode is a digest of all of
//! it; and of the tenant, so that nothing of two tenants meets.

pub(crate) use omir_core::hex::encode as hex;
use omir_core::reference::{Id, Ref, ResourceType};
use omird_engine::{Code, Error};
use omird_router::DEFAULT_TENANT;
use sha2::{Digest as _, Sha256};

/// Ids of ours begin so.
pub(crate) const OURS: &str = "mm.";

/// Returns the Episode that holds a World.
pub(crate) fn world(tenant: Option<&str>, world_id: &str) -> Result<Ref, Error> {
    let mut hasher = Sha256::new();
    if let Some(tenant) = tenant {
        hasher.update(tenant);
        // No tenant's name has it.
        hasher.update([0]);
    }
    hasher.update(world_id);
    let digest = hex(&hasher.finalize());
    named(ResourceType::Episode, format!("{OURS}w.{}", &digest[..32]))
}

/// Returns true if an id may be that of the Episode of a World.
pub(crate) fn is_world(id: &str) -> bool {
    id.strip_prefix(OURS).is_some_and(|rest| rest.starts_with("w."))
}

/// Returns the Entity that all Worlds of a tenant refer to: a search for it meets Worlds and nothing else.
pub(crate) fn tenant(tenant: Option<&str>) -> Result<Ref, Error> {
    named(ResourceType::Entity, format!("{OURS}n.{}", tenant.unwrap_or(DEFAULT_TENANT)))
}

/// Returns the Episode that holds a recorded trace.
pub(crate) fn trace(id: &str) -> Result<Ref, Error> {
    named(ResourceType::Episode, format!("{OURS}t.{id}"))
}

fn named(kind: ResourceType, id: String) -> Result<Ref, Error> {
    let bug = |error| Error::new(Code::Internal, format!("an id of our own is none: {error}"));
    Ok(Ref::new(kind, Id::new(id).map_err(bug)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(tenant: Option<&str>, world_id: &str) -> String {
        world(tenant, world_id).unwrap().to_string()
    }

    #[test]
    fn the_id_of_a_world_is_that_of_the_vector() {
        let expected = "Episode/mm.w.0065abd009780926778f5e00851728b3";
        assert_eq!(id(None, "w-1"), expected);
    }

    #[test]
    fn tenants_have_ids_of_their_own() {
        assert_ne!(id(Some("a"), "w-1"), id(None, "w-1"));
        assert_ne!(id(Some("a"), "bw-1"), id(Some("ab"), "w-1"));
        assert_eq!(tenant(None).unwrap().to_string(), "Entity/mm.n.default");
        assert_eq!(tenant(Some("acme")).unwrap().to_string(), "Entity/mm.n.acme");
    }
}
