//! A World made of live memories. Its WorldId is minted from their digest, so that the same memories give the same World.
//!
//! Everything that is selected is read, also the Worlds that are then left out. So a snapshot has a time, and one is made at a
//! time. Entries are taken one after the other, which ends where they are larger than a World may be.

use std::time::{Duration, Instant};

use omir_core::jcs;
use omir_core::manifesto::World;
use omir_core::value::{Map, Value};
use omird_engine::{LeftOut, Query};
use omird_router::Scope;
use sha2::{Digest as _, Sha256};

use crate::exchange::Manifesto;
use crate::failure::Failure;
use crate::filter;
use crate::names::{self, OURS, hex};
use crate::request::{MOST_WORLD, Request};
use crate::store::Put;

/// The schema of the entries.
const SCHEMA: &str = "omir:R1";
/// Members that change while a memory stays the same.
const PASSING: [&str; 3] = ["decay", "meta", "tier"];

/// Time for which a snapshot reads.
const MOST_TIME: Duration = Duration::from_secs(5);

impl Manifesto {
    /// Makes a World of the memories that filters select. They are the robot owner's, so the caller must be one who may read those.
    pub(crate) fn snapshot(
        &self,
        request: &Request,
        filters: &Value,
        metadata: Option<Value>,
    ) -> Result<(Put, World), Failure> {
        let caller = request.admitted.caller();
        if !caller.scopes.hold(Scope::READ)
            || names::tenant(request.tenant())? != names::tenant(None)?
        {
            let message = format!(
                "a snapshot is of the robot's memories: it needs the scope `{}`, and no tenant",
                Scope::READ
            );
            return Err(Failure::unauthorized("/snapshot", message));
        }
        if metadata.as_ref().is_some_and(|metadata| metadata.as_object().is_none()) {
            return Err(Failure::invalid("/metadata", "expected an object"));
        }
        let query = filter::read(Query::everything(), filters, "/snapshot", filter::OF_MEMORIES)?;
        let Some(_turn) = self.snapshots.try_lock() else {
            return Err(Failure::busy("another snapshot is being made; try again"));
        };
        let end = Instant::now() + MOST_TIME;
        let entries = self.entries(&query, || Instant::now() < end)?;
        let (mut hasher, mut data) = (Sha256::new(), Vec::with_capacity(entries.len()));
        hasher.update("[");
        for (index, (_, canonical, entry)) in entries.into_iter().enumerate() {
            hasher.update(if index > 0 { "," } else { "" });
            hasher.update(canonical);
            data.push(entry);
        }
        hasher.update("]");
        let schema_hash = hex(&Sha256::digest(SCHEMA));
        let snapshot_hash = hex(&hasher.finalize());
        let world_id = hex(&Sha256::digest(format!("{schema_hash}:{snapshot_hash}")));
        let mut map = Map::new();
        map.insert("worldId", world_id);
        map.insert("schemaHash", schema_hash);
        map.insert("snapshotHash", snapshot_hash);
        map.insert("createdAt", self.milliseconds());
        map.insert("createdBy", Value::Null);
        map.insert("metadata", metadata.unwrap_or_else(|| Value::Object(Map::new())));
        map.insert("snapshot", [("data", Value::Array(data))].into_iter().collect::<Map>());
        let world =
            World::from_value(Value::Object(map)).map_err(|fault| Failure::of_world("", &fault))?;
        Ok((Put::new(names::world(None, world.id())?, &world, true)?, world))
    }

    /// Returns the memories by reference, with their canonical form, without what passes. `goes_on` is asked after each that
    /// is read.
    pub(crate) fn entries(
        &self,
        query: &Query,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Vec<(String, String, Value)>, Failure> {
        let too_long = || {
            Failure::too_large("/snapshot", "these memories take too long to read; select fewer")
        };
        let mut is_over = false;
        let selection = self.engine.select(query, None, || {
            is_over = !goes_on();
            !is_over
        });
        let selection = match selection {
            Err(_) if is_over => return Err(too_long()),
            selection => selection?,
        };
        whole(selection.left_out())?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for position in 0..selection.len() {
            if !goes_on() {
                return Err(too_long());
            }
            let Some(mut entry) = self.engine.selected(&selection, position)? else { continue };
            let text = |name| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            // Worlds are no live memories.
            if text("id").starts_with(OURS) {
                continue;
            }
            let reference = format!("{}/{}", text("resourceType"), text("id"));
            if let Some(map) = entry.as_object_mut() {
                map.retain(|name, _| !PASSING.contains(&name));
            }
            let canonical = jcs::to_string(&entry).map_err(|error| {
                let message = format!("{reference}{error}");
                Failure { code: "INVALID_WORLD", ..Failure::invalid("/snapshot", message) }
            })?;
            bytes += canonical.len();
            if bytes > MOST_WORLD {
                let message = format!(
                    "these memories are more than the {MOST_WORLD} bytes of a World; select fewer"
                );
                return Err(Failure::too_large("/snapshot", message));
            }
            entries.push((reference, canonical, entry));
        }
        entries.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        Ok(entries)
    }

    /// Returns the time of the store in milliseconds since 1970: above 0, also where the clock is not.
    pub(crate) fn milliseconds(&self) -> i64 {
        (self.engine.now().0.as_micros() / 1000).max(1)
    }
}

/// Refuses a part of what was selected: it would have a WorldId as if it were all.
fn whole(left_out: &LeftOut) -> Result<(), Failure> {
    if left_out.count == 0 {
        return Ok(());
    }
    let message = format!(
        "{} of these memories cannot be read, so there is no World of them: {}",
        left_out.count,
        left_out.first.join("; ")
    );
    Err(Failure::internal(message))
}

#[cfg(test)]
mod tests {
    use omird_engine::{Code, Error};

    use super::*;

    #[test]
    fn there_is_no_snapshot_of_a_part() {
        let mut left_out = LeftOut::default();
        assert_eq!(whole(&left_out), Ok(()));
        left_out.note(Error::new(Code::Internal, "the card does not give it back"));
        let failure = whole(&left_out).unwrap_err();
        assert_eq!((failure.status, failure.code), (500, "INTERNAL"));
        assert!(failure.message.ends_with("the card does not give it back"));
    }
}
