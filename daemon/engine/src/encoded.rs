//! Encoded resources: members that are read or replaced without decoding the rest.

use omir_core::cbor::{self, MapSlot};
use omir_core::decode::{DecodeError, Limits};
use omir_core::instant::Timestamp;
use omir_core::model::Resource;
use omir_core::number::Number;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::tier::Tier;
use omir_core::value::{Map, Value};
use omird_store::{Handle, RefKey};

use crate::index::facts::DecayState;

/// Returns the id of an encoded resource.
pub fn id_of(resource: &[u8]) -> Option<String> {
    let id = cbor::map_slot(resource, "id").ok()?.value?;
    let id = cbor::from_slice(&resource[id], &Limits::default()).ok()?;
    id.as_str().map(str::to_owned)
}

/// The name of something that cannot be read, if its bytes still tell it: the index knows what its hash must be.
pub(crate) fn name_of_unreadable(handle: &Handle, of: ResourceType, key: RefKey) -> Option<Ref> {
    let id = id_of(&handle.unchecked_bytes()?)?;
    let name = Ref::new(of, Id::new(id).ok()?);
    (RefKey::of(&name) == key).then_some(name)
}

pub(crate) fn float(n: f64) -> Value {
    Number::from_f64(n).map_or(Value::Null, Value::Number)
}

/// Returns true if an encoded resource has members that refer to others and can do without.
pub(crate) fn has_optional_references(resource: &[u8]) -> bool {
    cbor::map_entries(resource).is_ok_and(|mut members| {
        members.any(|member| matches!(&*member.key, "entityRefs" | "parentId" | "sourceEpisode"))
    })
}

/// An encoded record with this access state in its decay block; everything else stays as it is.
///
/// Decoding the whole record for three numbers would cost more than the rest of a recall.
pub(crate) fn with_access(record: &[u8], access: &DecayState) -> Result<Vec<u8>, DecodeError> {
    let slot = cbor::map_slot(record, "decay")?;
    let mut decay = match &slot.value {
        Some(value) => cbor::from_slice(&record[value.clone()], &Limits::default())?,
        None => Value::Object(Map::new()),
    };
    if let Value::Object(decay) = &mut decay {
        decay.insert("halfLifeHours", float(access.half_life_hours));
        let last_access = Timestamp::from_micros(access.last_access);
        decay.insert("lastAccess", last_access.to_string());
        decay.insert("accessCount", Value::Number(Number::from(access.access_count)));
    }
    Ok(with_member(record, "decay", &decay, &slot))
}

/// An encoded record in this tier; everything else stays as it is.
pub(crate) fn with_tier(record: &[u8], tier: Tier) -> Result<Vec<u8>, DecodeError> {
    let slot = cbor::map_slot(record, "tier")?;
    Ok(with_member(record, "tier", &Value::from(tier.as_str()), &slot))
}

/// An encoded map with a member at its place.
fn with_member(map: &[u8], name: &str, value: &Value, slot: &MapSlot) -> Vec<u8> {
    let mut out = Vec::with_capacity(map.len() + 96);
    cbor::write_map_header(slot.members + usize::from(slot.value.is_none()), &mut out);
    out.extend_from_slice(&map[slot.start..slot.member.start]);
    cbor::write(&Value::from(name), &mut out);
    cbor::write(value, &mut out);
    out.extend_from_slice(&map[slot.member.end..]);
    out
}

/// The entities an encoded record mentions.
pub(crate) fn mentions_of(record: &[u8]) -> Vec<RefKey> {
    entity_refs(record).iter().map(|name| RefKey::of_text(name)).collect()
}

/// The names of the entities that an encoded resource mentions, or connects as a relationship.
pub(crate) fn named_mentions(resource: &[u8]) -> Vec<String> {
    let mut names = entity_refs(resource);
    let value = cbor::from_slice(resource, &Limits::default()).ok();
    let resource = value.and_then(|value| Resource::from_value(value).ok());
    if let Some(resource) = resource {
        resource.for_each_reference(|_, _, target| names.push(target.to_string()));
    }
    names
}

/// `Type/id` of an encoded resource.
pub(crate) fn name_of(resource: &[u8]) -> Option<String> {
    let kind = cbor::map_slot(resource, "resourceType").ok()?.value?;
    let kind = cbor::from_slice(&resource[kind], &Limits::default()).ok()?;
    Some(format!("{}/{}", kind.as_str()?, id_of(resource)?))
}

fn entity_refs(record: &[u8]) -> Vec<String> {
    let slot = cbor::map_slot(record, "entityRefs").ok().and_then(|slot| slot.value);
    let refs = slot.and_then(|refs| cbor::from_slice(&record[refs], &Limits::default()).ok());
    let refs = refs.as_ref().and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|each| each.get("ref")?.as_str()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::plan::{inherit_access, set_tier};

    #[test]
    fn splicing_an_access_state_is_the_same_as_setting_it() {
        let access = DecayState {
            half_life_hours: 336.25,
            last_access: 1_780_000_000_000_001,
            access_count: 3,
            anchored: true,
        };
        for decay in ["", r#""decay":{},"#, r#""decay":{"anchored":true,"accessCount":1},"#] {
            let json = format!(
                r#"{{"resourceType":"MemoryRecord","id":"a",{decay}"content":"x","kind":"plan",
                "createdAt":"2026-05-30T11:42:05Z","importance":0.5,"version":2}}"#
            );
            let value = omir_core::json::from_slice(json.as_bytes(), &Limits::default()).unwrap();
            let mut resource = Resource::from_value(value).unwrap();
            let bytes = cbor::to_vec(&resource.to_value());
            let spliced = with_access(&bytes, &access).unwrap();
            inherit_access(&mut resource, Some(access), false);
            assert_eq!(spliced, cbor::to_vec(&resource.to_value()), "{decay}");
            let spliced = with_tier(&spliced, Tier::Archive).unwrap();
            set_tier(&mut resource, Some(Tier::Archive));
            assert_eq!(spliced, cbor::to_vec(&resource.to_value()), "{decay}");
        }
    }
}
