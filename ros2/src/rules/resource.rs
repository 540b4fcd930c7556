//! The OMIR resource that a sight becomes.
//!
//! What it says of where it came from: `provenance.source` is `ros2`, the topic, the type and the node,
//! with spaces between; `provenance.externalId` is `ros2:` and the topic, `@` and the stamp, and `#`
//! and the place in the list for an element of one. The id is a digest of the rule, the topic, the
//! stamp and the message, so that a recording that is imported twice makes no memory twice.

use std::collections::BTreeMap;
use std::time::Duration;

use omir_core::extension::{Consolidated, UNPLACED_URL};
use omir_core::hex::encode as hex;
use omir_core::instant::Instant;
use omir_core::model::{Confidence, Decay, Entity, Extension, MemoryRecord, Provenance, Resource};
use omir_core::number::Number;
use omir_core::reference::{Id, Ref, Reference, ResourceType};
use omir_core::spatial::SpatialPose;
use omir_core::value::Value;
use sha2::{Digest, Sha256};

use super::bind::Bound;
use super::config::{Amount, ResourceKind};
use super::levels::Level;
use super::placing::Placement;
use super::sighting::Memo;
use super::sighting_tracker::Thing;
use super::template::Scene;
use crate::stamp::Stamp;

/// Inputs of a resource, beside the message.
#[derive(Debug)]
pub struct ResourceInputs<'a> {
    /// The rule, for this type.
    pub bound: &'a Bound,
    /// The message.
    pub scene: Scene<'a>,
    /// The thing that was seen.
    pub thing: &'a Thing,
    /// Time at which this sight happened.
    pub event: Stamp,
    /// The content.
    pub text: String,
    /// The name of the entity it is about.
    pub entity: Option<String>,
    /// Its place.
    pub placement: Placement,
}

/// The id of the resource of a message, of which the SHA-256 is given: 96 bits of SHA-256, as `ros2-` and 24
/// hexadecimal digits.
pub fn record_id(
    rule: &str,
    topic: &str,
    event: Stamp,
    element: usize,
    message: &[u8; 32],
) -> String {
    let mut hasher = Sha256::new();
    for part in [rule.as_bytes(), topic.as_bytes()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.update(event.nanos().to_le_bytes());
    hasher.update((element as u64).to_le_bytes());
    hasher.update(message);
    format!("ros2-{}", hex(&hasher.finalize()[..12]))
}

/// The id of the entity of that name: the name itself in small letters, with `-` for what an id cannot
/// hold. Where that would not tell names apart, a digest of the name follows.
pub fn entity_id(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    let mut id = String::with_capacity(lower.len());
    let mut is_plain = lower.len() <= 64;
    for letter in lower.chars() {
        match letter {
            'a'..='z' | '0'..='9' | '.' | '_' | ':' | '-' => id.push(letter),
            ' ' if id.ends_with('-') => {}
            ' ' => id.push('-'),
            _ => is_plain = false,
        }
    }
    if !is_plain || id.is_empty() {
        id.truncate(64);
        let digest = hex(&Sha256::digest(name.trim().as_bytes())[..8]);
        id = if id.is_empty() { digest } else { format!("{id}-{digest}") };
    }
    id
}

/// Returns the name of the message that something came from: the `externalId` of its provenance.
pub fn origin(topic: &str, event: Stamp, element: Option<usize>) -> String {
    match element {
        Some(element) => format!("ros2:{topic}@{event}#{element}"),
        None => format!("ros2:{topic}@{event}"),
    }
}

impl ResourceInputs<'_> {
    /// The resource, and the entities it refers to.
    pub fn finish(self) -> (Value, Vec<Value>) {
        match self.bound.make {
            ResourceKind::Record => self.record(),
            ResourceKind::Entity => (self.entity_kept(), Vec::new()),
        }
    }

    fn record(self) -> (Value, Vec<Value>) {
        let Self { bound, scene, thing, event, .. } = &self;
        let Memo { id, origin, created } = &thing.memo;
        let Ok(id) = Id::new(id.as_str()) else { return (Value::Null, Vec::new()) };
        let mut record = MemoryRecord::new(id, self.text.clone(), Instant::from(*created));
        record.kind = bound.kind;
        record.experience_type = Some(bound.experience_type);
        record.event_time = Some(Instant::from(*event));
        let number = |amount: &Option<Amount>, least, most| {
            amount_of(amount.as_ref()?, scene, least, most).and_then(Number::from_f64)
        };
        record.importance = number(&bound.importance, 0.0, 1.0);
        if let Some(calibrated) = number(&bound.confidence, 0.0, 1.0) {
            record.confidence =
                Some(Confidence { calibrated: Some(calibrated), ..Confidence::default() });
        }
        let half_life_hours = number(&bound.half_life_h, 0.001, 1_000_000.0);
        if half_life_hours.is_some() || bound.anchored.is_some() {
            record.decay =
                Some(Decay { half_life_hours, anchored: bound.anchored, ..Decay::default() });
        }
        let node = scene.node.map(|node| format!(" {node}")).unwrap_or_default();
        record.provenance = Some(Provenance {
            source: Some(format!("ros2 {} {}{node}", scene.topic, scene.whole.ty().name)),
            source_type: Some("observation".into()),
            credibility: None,
            external_id: Some(origin.clone()),
        });
        let valid_for = |duration: Duration| Instant::from(event.saturating_add(duration));
        record.valid_until = bound.expires.map(valid_for);
        let about = self.about();
        record.entity_refs = about
            .as_ref()
            .map(|entity| vec![Reference::from(Ref::new(ResourceType::Entity, entity.id.clone()))]);
        let extensions = self.extensions();
        record.extension = (!extensions.is_empty()).then_some(extensions);
        let about = about.into_iter().map(|entity| Resource::from(entity).to_value()).collect();
        (Resource::from(record).to_value(), about)
    }

    fn about(&self) -> Option<Entity> {
        let name = self.entity.as_deref()?;
        let id = Id::new(entity_id(name)).ok()?;
        let mut entity = Entity::new(id, name);
        entity.labels = self.bound.labels.clone();
        entity.created_at = Some(Instant::from(self.thing.memo.created));
        Some(entity)
    }

    fn entity_kept(self) -> Value {
        let Some(mut entity) = self.about() else { return Value::Null };
        entity.summary = Some(self.text.clone());
        entity.mention_count = Some(Number::from(self.thing.count));
        entity.last_seen_at = Some(Instant::from(self.thing.last));
        let importance = self.bound.importance.as_ref();
        entity.salience = importance
            .and_then(|amount| amount_of(amount, &self.scene, 0.0, 1.0))
            .and_then(Number::from_f64);
        let extensions = self.extensions();
        entity.extension = (!extensions.is_empty()).then_some(extensions);
        Resource::from(entity).to_value()
    }

    fn extensions(&self) -> Vec<Extension> {
        let mut extensions: Vec<Extension> =
            self.placement.poses().map(SpatialPose::to_extension).collect();
        if let Some(missing) = &self.placement.missing {
            extensions.push(Extension {
                value_string: Some(missing.clone()),
                ..Extension::new(UNPLACED_URL)
            });
        }
        if self.thing.count > 1 && self.bound.make == ResourceKind::Record {
            let seen = Consolidated {
                count: self.thing.count,
                first: Instant::from(self.thing.first),
                last: Instant::from(self.thing.last),
                from: Vec::new(),
                evidence: BTreeMap::new(),
            };
            extensions.push(seen.to_extension());
        }
        extensions
    }
}

/// The number, within its bounds; `None` if there is none.
fn amount_of(amount: &Amount, scene: &Scene<'_>, least: f64, most: f64) -> Option<f64> {
    let number = match amount {
        Amount::Always(number) => *number,
        Amount::Field(field) => field.number(scene)?,
        Amount::ByLevel(levels) => {
            let is = level_of(scene)?;
            levels.iter().find(|(level, _)| *level == is)?.1
        }
    };
    (!number.is_nan()).then(|| number.clamp(least, most))
}

/// The level of a log or diagnostic message.
pub fn level_of(scene: &Scene<'_>) -> Option<Level> {
    let name = &scene.element.ty().name;
    Level::of(name, scene.element.field(Level::field_of(name)?)?.as_i64()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_entities_are_names_where_they_can_be() {
        assert_eq!(entity_id("Cup"), "cup");
        assert_eq!(entity_id(" Charging  Dock 3 "), "charging-dock-3");
        assert!(entity_id("Tür").starts_with("tr-"));
        assert_ne!(entity_id("a/b"), entity_id("ab"));
        assert_ne!(entity_id("杯"), entity_id("門"));
        for name in ["", "  ", "!", &"x".repeat(500), &"é".repeat(500), "a:b.c_d-e"] {
            assert!(Id::new(entity_id(name)).is_ok(), "{name}");
        }
    }

    #[test]
    fn another_message_has_another_id() {
        let id = |rule: &str, topic: &str, nanos, element, message: &[u8]| {
            let digest = Sha256::digest(message).into();
            record_id(rule, topic, Stamp::from_nanos(nanos), element, &digest)
        };
        let all = [
            id("r", "/t", 1, 0, b"m"),
            id("r/", "t", 1, 0, b"m"),
            id("r", "/t", 2, 0, b"m"),
            id("r", "/t", 1, 1, b"m"),
            id("r", "/t", 1, 0, b"n"),
        ];
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(all.iter().all(|id| Id::new(id.as_str()).is_ok() && id.len() == 29));
        assert_eq!(all[0], id("r", "/t", 1, 0, b"m"));
    }
}
