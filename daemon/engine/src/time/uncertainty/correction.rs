//! Correction: the dates of a memory put right, once it is known how far the clock was off.

use omir_core::extension::CONSOLIDATED_URL;
use omir_core::instant::Instant;
use omir_core::model::{Extension, Resource};
use omir_core::number::Number;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value};
use omird_store::UntrustedInterval;

use super::{CLOCK_URL, ClockUncertainty, note_of, strip};

/// Members with times that may have been read off a clock: paths of names.
fn places(resource: &Resource) -> Vec<String> {
    let mut places: Vec<String> =
        ["createdAt", "eventTime", "decay/lastAccess"].map(str::to_owned).into();
    for (index, extension) in resource.extensions().iter().enumerate() {
        let members: &[&str] = match extension.url.as_str() {
            SPATIAL_POSE_URL => &["stamp"],
            CONSOLIDATED_URL => &["first", "last"],
            _ => &[],
        };
        let named = |member| format!("extension/{index}/valueJson/{member}");
        places.extend(members.iter().map(named));
    }
    places
}

fn member<'v>(value: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    path.split('/').try_fold(value, |value, step| match value {
        Value::Object(map) => map.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn time_at(value: &Value, path: &str) -> Option<Instant> {
    Instant::parse(value.pointer(&format!("/{path}"))?.as_str()?).ok()
}

/// Moves a time, and notes what it was.
fn shift(value: &mut Value, place: String, offset: i64, was: &mut Map) {
    let Some(time) = time_at(value, &place) else { return };
    if let Some(moved) = time.at().checked_add_micros(offset)
        && let Some(held) = member(value, &place)
    {
        *held = Instant::from(moved).as_str().into();
        was.insert(place, time.as_str());
    }
}

/// The resource as it is dated now that the clock was set, or `None` if nothing of it was uncertain
/// or the clock was not set in that boot. What it was dated before is kept in its note. `recorded` is
/// its order stamp; microseconds.
pub(crate) fn corrected(
    resource: &Resource,
    recorded: i64,
    intervals: &[UntrustedInterval],
) -> Option<Resource> {
    let uncertainty = match note_of(resource) {
        Some(note) => ClockUncertainty::of(note)?,
        None => ClockUncertainty::in_hindsight(resource, recorded, intervals)?,
    };
    // Only what came in by a clock that may have been right lacks the number of the start.
    let interval = intervals.iter().rev().find(|interval| {
        interval.coarse == uncertainty.boot.is_none()
            && interval.boot_id == uncertainty.boot_id
            && (interval.from..=interval.until).contains(&uncertainty.monotonic)
    })?;
    // The errors of dating and of the wall clock.
    let after = interval.after?;
    let by_dating = interval.step()?;
    let by_wall = after.saturating_add(uncertainty.monotonic).saturating_sub(uncertainty.wall);
    let dated = interval.dated();
    // A client that leaves `createdAt` to us may have asked us for the time as well, as our node in ROS does. Its event
    // then lies in the interval that we dated by, and nearer to our date than to the wall clock.
    let dated_at = interval.before.saturating_add(uncertainty.monotonic);
    let is_of_ours = |time: i64| {
        let is_nearer = time.abs_diff(dated_at) <= time.abs_diff(uncertainty.wall);
        uncertainty.stamped && dated.contains(&time) && is_nearer
    };
    let mut value = resource.to_value();
    let mut was = Map::new();
    let mut event = None;
    for place in places(resource) {
        let Some(time) = time_at(&value, &place) else { continue };
        let micros = time.at().as_micros();
        let is_ours = match place.as_str() {
            "createdAt" => uncertainty.stamped,
            "decay/lastAccess" => dated.contains(&micros),
            _ => is_of_ours(micros),
        };
        let offset = match (is_ours, uncertainty.covers(&time)) {
            (true, _) => by_dating,
            (false, true) => by_wall,
            (false, false) => continue,
        };
        if place == "eventTime" {
            event = Some((micros, offset, is_ours));
        }
        shift(&mut value, place, offset, &mut was);
    }
    // A client counts how long an event holds from the clock that it read the event off. If that was the wall clock,
    // the end may be nearer to where the event comes to lie; then it stays.
    if let Some((event, offset, is_ours)) = event
        && let Some(until) = time_at(&value, "validUntil").map(|until| until.at().as_micros())
        && (is_ours || until.abs_diff(event) < until.abs_diff(event.saturating_add(offset)))
    {
        shift(&mut value, "validUntil".to_owned(), offset, &mut was);
    }
    let mut note = uncertainty.members();
    note.insert("state", "corrected");
    note.insert("offsetMicros", Value::Number(Number::from(by_dating)));
    note.insert("was", Value::Object(was));
    let note = Extension { value_json: Some(Value::Object(note)), ..Extension::new(CLOCK_URL) };
    let mut redated = Resource::from_value(value).ok()?;
    match redated.extensions_mut().iter_mut().find(|extension| extension.url == CLOCK_URL) {
        Some(held) => *held = note,
        None => redated.extensions_mut().push(note),
    }
    Some(redated)
}

/// Takes over into a new version what was put right in the one before it, where it says again what
/// that said before.
pub(crate) fn catch_up(new: &mut Resource, old: &Resource) {
    let Some(note) = note_of(old) else { return };
    let was = note.value_json.as_ref().and_then(|value| value.get("was")?.as_object());
    let mut value = None;
    for (place, was) in was.into_iter().flat_map(|was| was.iter()) {
        let value = value.get_or_insert_with(|| (new.to_value(), old.to_value()));
        let now = value.1.pointer(&format!("/{place}")).cloned();
        if let (Some(held), Some(now)) = (member(&mut value.0, place), now)
            && held == was
        {
            *held = now;
        }
    }
    if let Some((value, _)) = value
        && let Ok(caught_up) = Resource::from_value(value)
    {
        *new = caught_up;
    }
    // The note goes with the date it is about.
    if new.created_at() == old.created_at() {
        let note = note.clone();
        strip(new);
        new.extensions_mut().push(note);
    }
}
