//! A memory as something to look at: `foxglove_msgs/SceneUpdate`.
//!
//! A sphere where it is, an arrow if it is known how it is turned, and its words above. The more it
//! matters the redder it is, and the surer the more solid. Everything else is metadata, which the 3D
//! panel shows of what is selected. <https://docs.foxglove.dev/docs/visualization/message-schemas>

use std::sync::Arc;

use omir_core::model::{Confidence, Resource};
use omir_core::number::Number;
use omir_core::spatial::{self, SpatialPose};

use crate::interface::{InterfaceError, MessageType, Registry};
use crate::message::{Message, PathError, Value};
use crate::stamp::Stamp;
use crate::tf::normalised;

/// The name of the type.
pub(super) const TYPE: &str = "foxglove_msgs/msg/SceneUpdate";
/// Its definition, in the form `ros2msg`; the fields are those of `foxglove_msgs` 3 (MIT).
pub(super) const DEFINITION: &str = include_str!("scene_update.msg");

/// Letters of a memory that stand in the scene; metadata has all.
const LETTERS: usize = 60;
/// Metres.
const SPHERE: f64 = 0.2;
const ABOVE: f64 = 0.25;
/// Pixels.
const FONT: f64 = 12.0;

/// The types that a scene is made of.
#[derive(Debug)]
pub(super) struct Scenes {
    update: Arc<MessageType>,
    entity: Arc<MessageType>,
    pair: Arc<MessageType>,
    sphere: Arc<MessageType>,
    arrow: Arc<MessageType>,
    text: Arc<MessageType>,
}

/// The part of a resource that a scene shows.
#[derive(Debug)]
struct Shown {
    words: String,
    pairs: Vec<(&'static str, String)>,
    /// In [0, 1].
    importance: f64,
    /// In [0, 1].
    confidence: f64,
}

impl Scenes {
    pub(super) fn new() -> Result<Self, InterfaceError> {
        let mut registry = Registry::new();
        registry.add_schema(&TYPE.parse()?, DEFINITION)?;
        let part = |name: &str| registry.message(&format!("foxglove_msgs/msg/{name}"));
        Ok(Self {
            update: part("SceneUpdate")?,
            entity: part("SceneEntity")?,
            pair: part("KeyValuePair")?,
            sphere: part("SpherePrimitive")?,
            arrow: part("ArrowPrimitive")?,
            text: part("TextPrimitive")?,
        })
    }

    /// The update that shows a resource from `at` on; `None` if it has no place.
    pub(super) fn of(&self, resource: &Resource, at: Stamp) -> Option<Result<Message, PathError>> {
        let pose = spatial::pose_of(resource)?.ok()?;
        Some(self.update(resource, &pose, at))
    }

    fn update(
        &self,
        resource: &Resource,
        pose: &SpatialPose,
        at: Stamp,
    ) -> Result<Message, PathError> {
        let shown = shown(resource);
        let (sec, nanosec) = at.to_ros().unwrap_or_default();
        let mut entity = Message::new(&self.entity);
        entity.set("timestamp.sec", sec)?;
        entity.set("timestamp.nanosec", nanosec)?;
        entity.set("frame_id", normalised(&pose.frame).unwrap_or(&pose.frame))?;
        entity.set("id", resource.reference().to_string())?;
        let mut pairs = Vec::new();
        for (key, value) in &shown.pairs {
            let mut pair = Message::new(&self.pair);
            pair.set("key", *key)?;
            pair.set("value", value.as_str())?;
            pairs.push(pair);
        }
        entity.set("metadata", pairs)?;
        let mut sphere = Message::new(&self.sphere);
        place(&mut sphere, pose, 0.0)?;
        for axis in ["x", "y", "z"] {
            sphere.set(&format!("size.{axis}"), SPHERE)?;
        }
        colour(&mut sphere, &shown)?;
        entity.set("spheres", vec![sphere])?;
        if pose.orientation.is_some() {
            let mut arrow = Message::new(&self.arrow);
            place(&mut arrow, pose, 0.0)?;
            for (field, metres) in [
                ("shaft_length", 0.3),
                ("shaft_diameter", 0.04),
                ("head_length", 0.12),
                ("head_diameter", 0.1),
            ] {
                arrow.set(field, metres)?;
            }
            colour(&mut arrow, &shown)?;
            entity.set("arrows", vec![arrow])?;
        }
        let mut text = Message::new(&self.text);
        place(&mut text, pose, ABOVE)?;
        text.set("billboard", true)?;
        text.set("font_size", FONT)?;
        text.set("scale_invariant", true)?;
        for part in ["r", "g", "b", "a"] {
            text.set(&format!("color.{part}"), 1.0)?;
        }
        text.set("text", beginning(&shown.words))?;
        entity.set("texts", vec![text])?;
        let mut update = Message::new(&self.update);
        update.set("entities", vec![entity])?;
        Ok(update)
    }
}

fn place(primitive: &mut Message, pose: &SpatialPose, above: f64) -> Result<(), PathError> {
    let [x, y, z] = pose.position.coords.into();
    for (axis, metres) in [("x", x), ("y", y), ("z", z + above)] {
        primitive.set(&format!("pose.position.{axis}"), metres)?;
    }
    let turned = pose.orientation.map_or([0.0, 0.0, 0.0, 1.0], |turned| turned.coords.into());
    for (part, number) in ["x", "y", "z", "w"].into_iter().zip(turned) {
        primitive.set(&format!("pose.orientation.{part}"), number)?;
    }
    Ok(())
}

fn colour(primitive: &mut Message, shown: &Shown) -> Result<(), PathError> {
    let warm = shown.importance;
    let parts = [("r", warm), ("g", 0.4), ("b", 1.0 - warm), ("a", 0.3 + 0.7 * shown.confidence)];
    parts.into_iter().try_for_each(|(part, amount)| primitive.set(&format!("color.{part}"), amount))
}

fn shown(resource: &Resource) -> Shown {
    let mut pairs = Vec::new();
    let mut add = |key, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            pairs.push((key, value));
        }
    };
    let joined = |all: Vec<String>| Some(all.join(", "));
    let number = |number: &Option<Number>| number.as_ref().map(Number::as_f64);
    let (words, importance, confidence) = match resource {
        Resource::MemoryRecord(record) => {
            let confidence = record.confidence.as_ref().and_then(calibrated);
            let importance = number(&record.importance);
            add("content", Some(record.content.clone()));
            add("importance", importance.map(|number| number.to_string()));
            add("confidence", confidence.map(|number| number.to_string()));
            add("tier", record.tier.map(|tier| tier.as_str().to_owned()));
            add("kind", record.kind.map(|kind| kind.as_str().to_owned()));
            let entities = record.entity_refs.iter().flatten();
            add("entities", joined(entities.map(|one| one.target.to_string()).collect()));
            (record.content.clone(), importance, confidence)
        }
        Resource::Entity(entity) => {
            add("name", Some(entity.name.clone()));
            add("summary", entity.summary.clone());
            let labels = entity.labels.iter().flatten();
            add("labels", joined(labels.map(|label| label.as_str().to_owned()).collect()));
            (entity.name.clone(), number(&entity.salience), None)
        }
        Resource::Episode(episode) => {
            add("content", Some(episode.content.clone()));
            (episode.content.clone(), None, None)
        }
        Resource::Relationship(relationship) => (relationship.id.to_string(), None, None),
    };
    let unit = |amount: Option<f64>, else_: f64| amount.unwrap_or(else_).clamp(0.0, 1.0);
    Shown { words, pairs, importance: unit(importance, 0.5), confidence: unit(confidence, 1.0) }
}

/// The probability that it is so.
fn calibrated(confidence: &Confidence) -> Option<f64> {
    let number = |number: &Option<Number>| number.as_ref().map(Number::as_f64);
    number(&confidence.calibrated).or_else(|| {
        let (alpha, beta) = (number(&confidence.alpha)?, number(&confidence.beta)?);
        Some(alpha / (alpha + beta))
    })
}

/// The first letters, in one line.
fn beginning(words: &str) -> Value {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.char_indices().nth(LETTERS).map(|(at, _)| at);
    Value::Text(cut.map_or(line.clone(), |at| format!("{}…", &line[..at])))
}
