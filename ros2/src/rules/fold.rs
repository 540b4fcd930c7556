//! A memory that is written again meets what is stored of it by now.
//!
//! A client may have confirmed it, recalled it or anchored it, and the daemon may have merged others
//! into it. Nothing of that may be lost for a thing that was seen once more, and no sight may count
//! twice, also when a recording is imported again. What comes out states the version that went in, so that a store
//! refuses it if another writer was faster. Pure: the recorder fetches what is stored, and stores what comes out.

use omir_core::extension::{Consolidated, REBASE_URL, UNPLACED_URL};
use omir_core::instant::Instant;
use omir_core::model::{Entity, Extension, MemoryRecord, Resource};
use omir_core::number::Number;
use omir_core::spatial::{SPATIAL_POSE_URL, SpatialPose};
use omir_core::value::Value;

use super::decision::{KeptResource, UnreportedSightings};
use super::sighting::is_a_clock_wrong;
use crate::place::moved;
use crate::stamp::Stamp;
use crate::tf::Transform;

/// Returns what to store of `kept`, if `stored` is what there is under its name. `None` if that tells of
/// this sight already: of a later one, or what was published just then is late by seconds.
pub fn folded(stored: Option<&Value>, kept: &KeptResource) -> Option<Value> {
    let fresh = || Some(kept.resource.clone());
    let Some(stored) = stored.cloned() else { return fresh() };
    let resources = (Resource::from_value(stored), Resource::from_value(kept.resource.clone()));
    let is_placed = kept.unplaced.is_none();
    match resources {
        (Ok(Resource::MemoryRecord(stored)), Ok(Resource::MemoryRecord(new))) => {
            records(*stored, *new, kept, is_placed)
        }
        (Ok(Resource::Entity(stored)), Ok(Resource::Entity(new))) => {
            entities(*stored, *new, kept, is_placed)
        }
        // Nothing of what is stored can be kept if it cannot be read.
        _ => fresh(),
    }
}

/// `stored` when it tells how often the thing was seen since it was written, and of the last sight all that its
/// rule says. `None` if it tells of that already.
pub fn with_unreported(stored: &Value, untold: &UnreportedSightings) -> Option<Value> {
    if let Some(late) = &untold.late {
        let late = KeptResource { seen: untold.seen, ..(**late).clone() };
        return folded(Some(stored), &late);
    }
    let last = Instant::from(untold.last);
    match Resource::from_value(stored.clone()).ok()? {
        Resource::MemoryRecord(mut record) => {
            let known = Consolidated::of(&record).last;
            let last = last_seen(Some(&known), last, untold.heard)?;
            count(&mut record, untold.seen, last);
            Some(Resource::MemoryRecord(record).to_value())
        }
        Resource::Entity(mut entity) => {
            let last = last_seen(entity.last_seen_at.as_ref(), last, untold.heard)?;
            entity.mention_count = Some(mentions(&entity, untold.seen));
            entity.last_seen_at = Some(last);
            Some(Resource::Entity(entity).to_value())
        }
        Resource::Relationship(_) | Resource::Episode(_) => None,
    }
}

/// Returns the last sight of the thing, where something stored says `known` and a sight says `new`; `None` if
/// what is stored tells of that sight already.
///
/// A sight that was recorded, or kept by its publisher, may have come before: it has, if something later is
/// told of. One that was published just then, and was `heard` at that time, is news where a clock was wrong:
/// the publisher's may have begun in 1970, or that of an earlier publisher was ahead. Then the time
/// is ours. Else it came late, and what is stored is where the thing is.
fn last_seen(known: Option<&Instant>, new: Instant, heard: Option<Stamp>) -> Option<Instant> {
    let Some(known) = known.filter(|known| known.at() >= new.at()) else { return Some(new) };
    let heard = heard?;
    // A time that no stamp can hold is ahead of, or behind, all that a clock of ROS says.
    let told = Stamp::from_timestamp(known.at()).unwrap_or(Stamp::MAX);
    let event = Stamp::from_timestamp(new.at()).unwrap_or(Stamp::MIN);
    if !is_a_clock_wrong(event, heard, told) {
        return None;
    }
    let now = Instant::from(heard);
    let last = if now.at() > new.at() { now } else { new };
    (last.at() != known.at()).then_some(last)
}

/// Returns what is to be written of a thing's last sighting, if `before` would have been told of the one before: a
/// sight without a place leaves the thing where it was.
pub(super) fn following(before: KeptResource, now: KeptResource) -> KeptResource {
    if now.unplaced.is_none() || before.unplaced.is_some() {
        return now;
    }
    let read = |kept: &KeptResource| Resource::from_value(kept.resource.clone()).ok();
    let (Some(was), Some(mut is)) = (read(&before), read(&now)) else { return now };
    let others = is.extensions().iter().filter(|extension| !is_pose(extension)).cloned();
    let places = was.extensions().iter().filter(|extension| is_pose(extension)).cloned();
    let all: Vec<Extension> = places.chain(others).collect();
    *is.extensions_mut() = all;
    KeptResource { resource: is.to_value(), unplaced: None, ..now }
}

/// The map moved, and what is to be told lies elsewhere in `frame` by now.
pub(super) fn carry(late: &mut KeptResource, frame: &str, motion: &Transform) {
    let Ok(mut resource) = Resource::from_value(late.resource.clone()) else { return };
    for extension in resource.extensions_mut() {
        let pose = SpatialPose::from_extension(extension).ok().filter(|pose| pose.frame == frame);
        if let Some(pose) = pose {
            *extension = moved(&pose, frame, motion).to_extension();
        }
    }
    late.resource = resource.to_value();
}

fn records(
    stored: MemoryRecord,
    new: MemoryRecord,
    kept: &KeptResource,
    is_placed: bool,
) -> Option<Value> {
    let known = Consolidated::of(&stored).last;
    let last = last_seen(Some(&known), Consolidated::of(&new).last, kept.heard)?;
    let extension = extensions(new.extension, stored.extension, is_placed);
    let has_evidence = stored.confidence.as_ref().is_some_and(|known| known.alpha.is_some());
    let mut record = MemoryRecord {
        content: new.content,
        valid_until: new.valid_until,
        importance: new.importance.or(stored.importance),
        confidence: if has_evidence { stored.confidence } else { new.confidence },
        extension: Some(extension),
        ..stored
    };
    count(&mut record, kept.seen, last);
    Some(Resource::from(record).to_value())
}

fn entities(stored: Entity, new: Entity, kept: &KeptResource, is_placed: bool) -> Option<Value> {
    let last = last_seen(stored.last_seen_at.as_ref(), new.last_seen_at?, kept.heard)?;
    let mentions = mentions(&stored, kept.seen);
    let extension = extensions(new.extension, stored.extension, is_placed);
    let mut labels = stored.labels.clone().unwrap_or_default();
    for label in new.labels.into_iter().flatten() {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let entity = Entity {
        mention_count: Some(mentions),
        last_seen_at: Some(last),
        summary: new.summary,
        labels: (!labels.is_empty()).then_some(labels),
        salience: stored.salience.or(new.salience),
        extension: (!extension.is_empty()).then_some(extension),
        ..stored
    };
    Some(Resource::from(entity).to_value())
}

/// The poses of the new, if it has any and lies in the fixed frame, and what else the old one says. Where
/// it is not known where it was seen this time, it is where it was.
fn extensions(
    new: Option<Vec<Extension>>,
    stored: Option<Vec<Extension>>,
    is_placed: bool,
) -> Vec<Extension> {
    // With a new place, what says from where the old one was moved is over.
    let stored = stored.into_iter().flatten();
    let mut poses: Vec<Extension> = new.into_iter().flatten().filter(is_pose).collect();
    if !is_placed || poses.is_empty() {
        return stored.collect();
    }
    poses.extend(stored.filter(|extension| !is_pose(extension)));
    poses
}

fn is_pose(extension: &Extension) -> bool {
    [SPATIAL_POSE_URL, UNPLACED_URL, REBASE_URL].contains(&extension.url.as_str())
}

fn mentions(entity: &Entity, seen: u64) -> Number {
    let before = entity.mention_count.as_ref().and_then(Number::as_u64).unwrap_or(0);
    Number::from(before.saturating_add(seen))
}

/// Adds sights to a record, the last of which happened at `last`.
fn count(record: &mut MemoryRecord, seen: u64, last: Instant) {
    let mut known = Consolidated::of(record);
    known.count = known.count.saturating_add(seen);
    if last.at() < known.first.at() {
        known.first = last.clone();
    }
    known.last = last.clone();
    record.event_time = Some(last);
    known.write_to(record);
}

#[cfg(test)]
mod tests;
