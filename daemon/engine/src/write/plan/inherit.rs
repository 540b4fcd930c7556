//! Inheritance of a new version from the one before it, and members that make no difference.

use omir_core::cbor;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Decay, MemoryRecord, Resource};
use omir_core::number::Number;
use omir_core::tier::Tier;

use super::State;
use crate::index::facts::{DecayState, Facts};
use crate::time::stamp::strip;
use crate::time::uncertainty;

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
    uncertainty::catch_up(new, old);
    if let (Resource::MemoryRecord(new_record), Resource::MemoryRecord(old_record)) =
        (&mut *new, old)
    {
        let states_tier = new_record.tier.is_some();
        let was_accessed = was_accessed(old_record, state);
        let is_of_one_date = new_record.created_at == old_record.created_at;
        if !states_tier {
            new_record.tier = old_record.tier;
        }
        if new_record.decay.is_none() {
            new_record.decay = old_record.decay.clone();
            // Without an access it fades from its own date, which may be another one by now.
            if was_accessed {
                inherit_access(new, state.access, false);
            }
        }
        // A tier that time gave it by a wrong date is not kept: time may move it again.
        if !states_tier && (was_accessed || is_of_one_date) {
            set_tier(new, state.moved);
        }
    }
}

/// Returns true if accesses came to the index that the record does not state. When the last one was does not tell: a
/// clock that is set back touches what is dated ahead.
fn was_accessed(record: &MemoryRecord, state: &State) -> bool {
    let stated = Facts::of(&Resource::MemoryRecord(Box::new(record.clone()))).access;
    let counted = |access: Option<DecayState>| access.map(|access| access.access_count);
    counted(stated) != counted(state.access)
}

/// Writes the access state of the index into a record's decay block, where the record has one or
/// accesses have given it one.
pub(crate) fn inherit_access(resource: &mut Resource, access: Option<DecayState>, always: bool) {
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
pub(crate) fn set_tier(resource: &mut Resource, tier: Option<Tier>) {
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
/// an export: see [`strip`] and [`uncertainty::strip`].
pub(super) fn bare(mut resource: Resource) -> Vec<u8> {
    strip(&mut resource);
    uncertainty::strip(&mut resource);
    cbor::to_vec(&resource.to_value())
}

#[cfg(test)]
mod tests {
    use omir_core::json;

    use crate::Engine;
    use crate::ingest::request::Encoding;
    use crate::read::export::decode_stored;
    use crate::recall::query::Query;

    fn remember(engine: &Engine, more: &str) {
        let text =
            format!(r#"{{"resourceType":"MemoryRecord","id":"a","content":"a door"{more}}}"#);
        let change = engine.prepare(text.as_bytes(), Encoding::Json, None).unwrap();
        engine.execute(change).unwrap();
    }

    fn decay(engine: &Engine) -> Option<String> {
        let stored = engine.get(&"MemoryRecord/a".parse().unwrap()).unwrap().unwrap();
        Some(json::to_string(decode_stored(&stored).unwrap().get("decay")?))
    }

    fn recall(engine: &Engine, touch: bool) -> f64 {
        let query = Query { text: Some("door".into()), touch, ..Query::default() };
        engine.recall(&query).unwrap().hits[0].retrievability
    }

    const OLD: &str = r#","createdAt":"1970-01-01T00:01:00Z""#;

    /// A clock that was not set dated it; a client puts that right, and it fades from there.
    #[test]
    fn what_was_never_thought_of_fades_from_the_date_that_is_stated_last() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(crate::testing::parts(dir.path()), &mut |_| {}).unwrap();
        remember(&engine, OLD);
        assert!(recall(&engine, false) < 0.1);
        let now = engine.now().0;
        remember(&engine, &format!(r#","createdAt":"{now}""#));
        assert_eq!(decay(&engine), None);
        assert!(recall(&engine, false) > 0.9);
        engine.stop();
    }

    #[test]
    fn what_was_thought_of_stays_so_and_a_block_without_an_access_stays_without() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(crate::testing::parts(dir.path()), &mut |_| {}).unwrap();
        remember(&engine, &format!(r#"{OLD},"decay":{{"anchored":true}}"#));
        remember(&engine, r#","createdAt":"2026-01-01T00:00:00Z""#);
        assert_eq!(decay(&engine).as_deref(), Some(r#"{"anchored":true}"#));
        recall(&engine, true);
        while decay(&engine).is_none_or(|decay| !decay.contains(r#""accessCount":1"#)) {
            std::thread::yield_now();
        }
        let accessed = decay(&engine);
        remember(&engine, r#","createdAt":"2026-02-01T00:00:00Z""#);
        assert_eq!(decay(&engine), accessed);
        engine.stop();
    }
}
