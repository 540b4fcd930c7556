//! Rebase: after a loop closure a keyframe has another place in the map, and the memories
//! that are tied to it move with it.
//!
//! A memory is tied to a keyframe by having a pose in the keyframe's frame beside the one in the map
//! (`docs/extensions.md`). Its pose in the map is computed again from the other; what it was stays in
//! the memory ([`REBASE_URL`]), so that taking the step back gives the very same pose. Steps are taken back
//! in the reverse of their order, as many as [`MAX_STEPS`] of one memory. One request is one transaction:
//! all memories move, or none.

use nalgebra::Isometry3;
use omir_core::extension::REBASE_URL;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Decay, Extension, MemoryRecord, Resource};
use omir_core::number::Number;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::space::rotate_covariance;
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::value::{Map, Value};

use crate::error::{Code, Error};

/// The cause that the event of a memory bears that was moved.
pub const CAUSE: &str = "rebase";

/// Most steps that one memory can be taken back by. Each costs it about a hundred bytes, four times that
/// with a covariance; of more the oldest falls off.
pub const MAX_STEPS: usize = 4;

/// New poses of keyframes in a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebase {
    /// The frame of the map.
    pub frame: String,
    /// Each keyframe with its pose in the map, by name.
    pub keyframes: Vec<(String, Isometry3<f64>)>,
    /// The reason, for people.
    pub reason: Option<String>,
}

/// One step, or one step back.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Move what is tied to these keyframes.
    Forward(Rebase),
    /// Undo the step that this record tells of.
    Back(Ref),
}

/// A request to move memories with the map.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The direction.
    pub step: Step,
    /// Only say what it would do.
    pub dry_run: bool,
    /// The id of the record that tells of a step forward.
    pub id: Id,
    /// Most bytes of resources that one transaction may hold.
    pub max_bytes: usize,
}

impl Rebase {
    fn keyframe(&self, name: &str) -> Option<&Isometry3<f64>> {
        self.keyframes.iter().find(|(known, _)| known == name).map(|(_, pose)| pose)
    }

    /// The record that tells of the step: in the same transaction, and what a step back starts from. It is
    /// anchored until that cannot be taken back any more, or it might be forgotten before.
    pub fn record(&self, id: Id, moved: u64, now: Timestamp) -> Resource {
        let names: Vec<&str> = self.keyframes.iter().map(|(name, _)| name.as_str()).collect();
        let shown = names[..names.len().min(5)].join(", ");
        let more = if names.len() > 5 { ", …" } else { "" };
        let why = self.reason.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
        let frame = &self.frame;
        let content =
            format!("The map moved in {frame}{why}: {shown}{more}, and {moved} memories with it");
        let mut record = MemoryRecord::new(id, content, Instant::from(now));
        let mut keyframes = Map::new();
        for (name, pose) in &self.keyframes {
            let mut at = Map::new();
            at.insert("position", pose.translation.vector.iter().copied().collect::<Value>());
            at.insert("orientation", pose.rotation.coords.iter().copied().collect::<Value>());
            keyframes.insert(name.as_str(), at);
        }
        let mut step = Map::new();
        step.insert("frame", frame.as_str());
        step.insert("keyframes", keyframes);
        step.insert("moved", Value::Number(Number::from(moved)));
        record.extension = Some(vec![Extension::json(REBASE_URL, step)]);
        record.decay = Some(Decay { anchored: Some(true), ..Decay::default() });
        record.into()
    }
}

/// The frames that a step was about: the map, and the keyframes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RebaseStep {
    /// The frame of the map.
    pub frame: String,
    /// The keyframes.
    pub keyframes: Vec<String>,
}

/// Reads what the record of a step tells.
///
/// # Errors
/// `INVALID_QUERY` if it tells of none, `CONFLICT` if that was undone already.
pub(crate) fn step_of(record: &Resource) -> Result<RebaseStep, Error> {
    let target = record.reference();
    let step = extension(record).and_then(|at| record.extensions()[at].value_json.as_ref());
    let frame = step.and_then(|step| step.get("frame")).and_then(Value::as_str);
    let keyframes = step.and_then(|step| step.get("keyframes")).and_then(Value::as_object);
    let (Some(frame), Some(keyframes)) = (frame, keyframes) else {
        let message = format!("{target} does not tell of a map that moved");
        return Err(Error::at(Code::InvalidQuery, "/undo", message));
    };
    if step.is_some_and(|step| step.get("undone").is_some()) {
        let message = format!("{target} was undone already");
        return Err(Error::at(Code::Conflict, "/undo", message));
    }
    let keyframes = keyframes.keys().map(ToOwned::to_owned).collect();
    Ok(RebaseStep { frame: frame.to_owned(), keyframes })
}

/// The record of a step that was taken back.
pub(crate) fn undone(record: &Resource, now: Timestamp) -> Resource {
    let mut record = record.clone();
    if let Some(at) = extension(&record)
        && let Some(Value::Object(step)) = &mut record.extensions_mut()[at].value_json
    {
        step.insert("undone", Instant::from(now).as_str());
    }
    released(&record).unwrap_or(record)
}

/// The record of a step that need not be kept any longer than others; `None` if it is free already, or
/// tells of no step.
pub(crate) fn released(record: &Resource) -> Option<Resource> {
    let at = extension(record)?;
    record.extensions()[at].value_json.as_ref()?.get("keyframes")?;
    let mut record = record.clone();
    let Resource::MemoryRecord(free) = &mut record else { return None };
    let anchored = &mut free.decay.as_mut()?.anchored;
    (anchored.replace(false) == Some(true)).then_some(record)
}

/// A memory that was moved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moved {
    /// As it is by now.
    pub resource: Resource,
    /// The step that it can no longer be taken back by, because of too many later ones.
    pub over: Option<Ref>,
}

/// A memory where it lies by now; `None` if it is tied to none of the keyframes, or lies there already.
pub(crate) fn moved(resource: &Resource, rebase: &Rebase, by: &Ref) -> Option<Moved> {
    let poses = poses(resource);
    let (at, old) = poses.iter().find(|(_, pose)| pose.frame == rebase.frame)?;
    let (pose, own) =
        poses.iter().find_map(|(_, own)| rebase.keyframe(&own.frame).map(|pose| (pose, own)))?;
    let new = placed(old, own, pose);
    if new == *old {
        return None;
    }
    let mut resource = resource.clone();
    let mut moves = moves(&resource);
    // As it was written: what is worked out from it again may be spelled differently.
    let before = resource.extensions_mut()[*at].value_json.replace(new.to_value())?;
    moves.insert(0, Move { by: by.clone(), before });
    let over = moves.drain(MAX_STEPS.min(moves.len())..).next().map(|oldest| oldest.by);
    note(&mut resource, moves);
    Some(Moved { resource, over })
}

/// A memory where it lay before the step `by`; `None` if that was not what moved it last.
pub(crate) fn moved_back(resource: &Resource, frame: &str, by: &Ref) -> Option<Resource> {
    let mut moves = moves(resource);
    if moves.first()?.by != *by {
        return None;
    }
    let Move { before, .. } = moves.remove(0);
    let mut before = Extension::json(SPATIAL_POSE_URL, before);
    SpatialPose::from_extension(&before).ok()?;
    let (pose_at, pose) = poses(resource).into_iter().find(|(_, pose)| pose.frame == frame)?;
    // No step changes when a pose held; the clock may have been set since.
    if let (Some(Value::Object(before)), Some(stamp)) = (&mut before.value_json, &pose.stamp) {
        before.insert("stamp", stamp.as_str());
    }
    let mut resource = resource.clone();
    resource.extensions_mut()[pose_at] = before;
    note(&mut resource, moves);
    Some(resource)
}

/// The step that moved a memory last, if the step `by` moved it before that.
pub(crate) fn moved_since(resource: &Resource, by: &Ref) -> Option<Ref> {
    let moves = moves(resource);
    let is_earlier = moves.iter().skip(1).any(|earlier| earlier.by == *by);
    moves.into_iter().next().filter(|_| is_earlier).map(|last| last.by)
}

/// One move of a memory: by which step, and its pose in the map before.
struct Move {
    by: Ref,
    before: Value,
}

impl Move {
    fn read(value: &Value) -> Option<Self> {
        let by = value.get("by")?.as_str()?.parse().ok()?;
        Some(Self { by, before: value.get("before")?.clone() })
    }

    fn into_map(self) -> Map {
        let mut map = Map::new();
        map.insert("by", self.by.to_string());
        map.insert("before", self.before);
        map
    }
}

/// The moves that a memory tells of, the last one first.
fn moves(resource: &Resource) -> Vec<Move> {
    let note = extension(resource).and_then(|at| resource.extensions()[at].value_json.as_ref());
    let Some(note) = note else { return Vec::new() };
    let earlier = note.get("earlier").and_then(Value::as_array).unwrap_or_default();
    std::iter::once(note).chain(earlier).map_while(Move::read).collect()
}

/// Writes the moves down, where they stood before.
fn note(resource: &mut Resource, moves: Vec<Move>) {
    let at = extension(resource);
    let extensions = resource.extensions_mut();
    let mut moves = moves.into_iter().map(Move::into_map);
    let Some(mut note) = moves.next() else {
        if let Some(at) = at {
            extensions.remove(at);
        }
        return;
    };
    let earlier: Vec<Value> = moves.map(Value::Object).collect();
    if !earlier.is_empty() {
        note.insert("earlier", Value::Array(earlier));
    }
    let note = Extension::json(REBASE_URL, note);
    match at {
        Some(at) => extensions[at] = note,
        None => extensions.push(note),
    }
}

/// The pose in the map that follows from the pose `own` in a keyframe and the keyframe's `pose` there.
fn placed(old: &SpatialPose, own: &SpatialPose, pose: &Isometry3<f64>) -> SpatialPose {
    let position = pose * own.position;
    let turned = own.orientation.map(|own| pose.rotation * own);
    // How the thing has turned: what it says of its own uncertainty turns with it.
    let turn = match (turned, old.orientation) {
        (Some(new), Some(old)) => Some(new * old.inverse()),
        _ => None,
    };
    let orientation = turned.or(old.orientation);
    let covariance = match (&own.covariance, &old.covariance, turn) {
        (Some(own), ..) => Some(Box::new(rotate_covariance(own, &pose.rotation))),
        (None, Some(old), Some(turn)) => Some(Box::new(rotate_covariance(old, &turn))),
        (None, old, None) => old.clone(),
        (None, None, _) => None,
    };
    SpatialPose { position, orientation, covariance, ..old.clone() }
}

/// The poses of a resource, with their places among its extensions.
fn poses(resource: &Resource) -> Vec<(usize, SpatialPose)> {
    let extensions = resource.extensions().iter().enumerate();
    extensions.filter_map(|(at, e)| Some((at, SpatialPose::from_extension(e).ok()?))).collect()
}

fn extension(resource: &Resource) -> Option<usize> {
    resource.extensions().iter().position(|extension| extension.url == REBASE_URL)
}

/// The reference of a step's record.
pub(crate) fn record_of(id: &Id) -> Ref {
    Ref { kind: ResourceType::MemoryRecord, id: id.clone() }
}

#[cfg(test)]
mod tests;
