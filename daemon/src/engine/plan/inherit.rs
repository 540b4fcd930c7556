//! What a new version takes over from the one before it, and what of a version is no difference.

use omir_core::cbor;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Decay, Resource};
use omir_core::number::Number;
use omir_core::tier::Tier;

use super::State;
use crate::engine::doubt;
use crate::engine::stamp::strip;
use crate::index::facts::{Access, Facts};

/// Carries over what belongs to the memory and not to what was said about it this time: when it
/// was first recorded, which tier it is in, and how it is being forgotten, unless the new version
/// says so itself.
pub(super) fn inherit(new: &mut Resource, old: &Resource, state: &State, stamped: bool) {
    match (&mut *new, old) {
        (Resource::MemoryRecord(new), Resource::MemoryRecord(old)) if stamped => {
            new.created_at = old.created_at.clone();
        }
        (Resource::Episode(new), Resource::Episode(old)) if stamped => {
            new.created_at = old.created_at.clone();
        }
        (Resource::Entity(new), Resource::Entity(old)) if stamped || new.created_at.is_none() => {
            new.created_at = old.created_at.clone();
        }
        (Resource::Relationship(new), Resource::Relationship(old))
            if stamped || new.created_at.is_none() =>
        {
            new.created_at = old.created_at.clone();
        }
        _ => {}
    }
    // Before accesses, which count from the date that was put right.
    doubt::catch_up(new, old);
    if let (Resource::MemoryRecord(new_record), Resource::MemoryRecord(old_record)) =
        (&mut *new, old)
    {
        let states_tier = new_record.tier.is_some();
        if !states_tier {
            new_record.tier = old_record.tier;
        }
        if new_record.decay.is_none() {
            new_record.decay = old_record.decay.clone();
            inherit_access(new, state.access, false);
        }
        if !states_tier {
            set_tier(new, state.moved);
        }
    }
}

/// Writes the access state of the index into a record's decay block, where the record has one or
/// accesses have given it one.
pub fn inherit_access(resource: &mut Resource, access: Option<Access>, always: bool) {
    let (Resource::MemoryRecord(record), Some(access)) = (resource, access) else { return };
    let stored = Facts::of(&Resource::MemoryRecord(record.clone())).access;
    if stored == Some(access) && !always {
        return;
    }
    let decay: &mut Decay = record.decay.get_or_insert_default();
    if stored != Some(access) {
        decay.half_life_hours = Number::from_f64(access.half_life_hours);
        decay.last_access = Some(Instant::from(Timestamp::from_micros(access.last_access)));
        decay.access_count = Some(Number::from(u64::from(access.access_count)));
    }
}

/// Puts a record into another tier, if there is another.
pub fn set_tier(resource: &mut Resource, tier: Option<Tier>) {
    if let (Resource::MemoryRecord(record), Some(_)) = (resource, tier) {
        record.tier = tier;
    }
}

/// The tier a resource states; only records can.
pub(super) fn tier_of(resource: &Resource) -> Option<Tier> {
    match resource {
        Resource::MemoryRecord(record) => record.tier,
        _ => None,
    }
}

/// A stored resource as clients get it: see `Engine::emit`. Sending that back is no change.
pub(super) fn shown(stored: &Resource, state: &State) -> Vec<u8> {
    let mut shown = stored.clone();
    inherit_access(&mut shown, state.access, false);
    set_tier(&mut shown, state.moved);
    bare(shown)
}

/// The bytes of a resource without our stamp and our note, which the one who sends it may have from
/// an export: see [`strip`] and [`doubt::strip`].
pub(super) fn bare(mut resource: Resource) -> Vec<u8> {
    strip(&mut resource);
    doubt::strip(&mut resource);
    cbor::to_vec(&resource.to_value())
}
