//! What a memory bears that came in while nobody knew the time, and how it is dated anew.
//!
//! The note is the extension [`CLOCK_URL`]. It keeps the monotonic stamp, from which the true time
//! follows once the clock is set, and what the wall clock showed: another program on the same machine
//! dates by that. It is ours, as our stamp in `meta` is (`engine/stamp.rs`): sending back what one
//! got, or the original again, is no change.

use omir_core::extension::CONSOLIDATED_URL;
use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Extension, Resource};
use omir_core::number::Number;
use omir_core::reference::ResourceType;
use omir_core::spatial::SPATIAL_POSE_URL;
use omir_core::value::{Map, Value};

use super::stamp::is_completed;
use crate::clock::{SLACK, TOLERANCE};
use crate::store::mark::Unsettled;

/// The URL of the note; see docs/extensions.md.
pub const CLOCK_URL: &str = "urn:omird:ext:clock";

/// How far from what an unset clock shows a time may lie and still be taken to come from it.
/// Microseconds; one day.
const NEAR: i64 = 86_400_000_000;

/// When something came in, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// Which start of the daemon, if it was noted.
    pub boot: Option<u64>,
    /// Which start of the machine.
    pub boot_id: String,
    /// Since that start; microseconds.
    pub monotonic: i64,
    /// What the wall clock showed; microseconds since 1970.
    pub wall: i64,
    /// Whether `createdAt` is the daemon's.
    pub stamped: bool,
}

impl Doubt {
    /// Whether a time was read off the clock that is in doubt. A time from elsewhere, such as that
    /// of an old memory, is left alone.
    fn covers(&self, time: &Instant) -> bool {
        let time = time.at().as_micros();
        let booted = self.wall.saturating_sub(self.monotonic);
        (booted.saturating_sub(NEAR)..=self.wall.saturating_add(NEAR)).contains(&time)
    }

    /// Whether any time that `resource` states was read off the clock that is in doubt.
    fn covers_any(&self, resource: &Resource) -> bool {
        let (created, event) = match resource {
            Resource::MemoryRecord(record) => (&record.created_at, &record.event_time),
            Resource::Episode(episode) => (&episode.created_at, &episode.event_time),
            Resource::Entity(_) | Resource::Relationship(_) => return false,
        };
        let created = (!self.stamped).then_some(created);
        created.into_iter().chain(event).any(|time| self.covers(time))
    }

    /// Notes on a memory that is remembered now what of it is in doubt, if anything is. `stamped`
    /// says that its `createdAt` is the daemon's, `is_new` that what it states was stated just now.
    pub fn note(mut self, resource: &mut Resource, stamped: bool, is_new: bool) {
        let kind = resource.resource_type();
        if !matches!(kind, ResourceType::MemoryRecord | ResourceType::Episode) {
            return;
        }
        self.stamped = stamped;
        let is_in_doubt = stamped || (is_new && self.covers_any(resource));
        if is_in_doubt && note_of(resource).is_none() {
            resource.extensions_mut().push(self.to_extension());
        }
    }

    fn members(&self) -> Map {
        let mut map = Map::new();
        if let Some(boot) = self.boot {
            map.insert("boot", Value::Number(Number::from(boot)));
        }
        map.insert("bootId", self.boot_id.as_str());
        map.insert("monotonicMicros", Value::Number(Number::from(self.monotonic)));
        map.insert("wallMicros", Value::Number(Number::from(self.wall)));
        if self.stamped {
            map.insert("stamped", Value::Bool(true));
        }
        map
    }

    fn to_extension(&self) -> Extension {
        let mut map = self.members();
        map.insert("state", "unknown");
        Extension { value_json: Some(Value::Object(map)), ..Extension::new(CLOCK_URL) }
    }

    /// What would have been noted on a memory that came in by a clock that might have been right and
    /// was not. From its order stamp and its date follows whether it was dated by that clock: by us,
    /// or by a program that sent it at once.
    fn in_hindsight(resource: &Resource, recorded: i64, spans: &[Unsettled]) -> Option<Self> {
        let created = match resource {
            Resource::MemoryRecord(record) => record.created_at.at().as_micros(),
            Resource::Episode(episode) => episode.created_at.at().as_micros(),
            Resource::Entity(_) | Resource::Relationship(_) => return None,
        };
        let stamped = is_completed(resource);
        let age = recorded.saturating_sub(created);
        let is_ours = age >= -SLACK && (stamped || age < TOLERANCE);
        let is_in = |span: &&Unsettled| {
            span.coarse && span.since <= recorded && span.dated().contains(&created)
        };
        let span = spans.iter().rev().find(is_in).filter(|_| is_ours)?;
        let monotonic = created.saturating_sub(span.before);
        Some(Self { boot: None, boot_id: span.boot_id.clone(), monotonic, wall: created, stamped })
    }

    /// Reads a note that waits for the clock to be set.
    fn of(extension: &Extension) -> Option<Self> {
        let map = extension.value_json.as_ref()?.as_object()?;
        if map.get("state").and_then(Value::as_str) != Some("unknown") {
            return None;
        }
        Some(Self {
            boot: map.get("boot").and_then(Value::as_u64),
            boot_id: map.get("bootId")?.as_str()?.to_owned(),
            monotonic: map.get("monotonicMicros")?.as_i64()?,
            wall: map.get("wallMicros")?.as_i64()?,
            stamped: map.get("stamped").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

/// The note of ours that a resource bears.
fn note_of(resource: &Resource) -> Option<&Extension> {
    resource.extensions().iter().find(|extension| extension.url == CLOCK_URL)
}

/// Whether it may still become known when a resource came in: it came in one of these spans, in which
/// nobody knew the time.
pub fn waits(resource: &Resource, spans: &[Unsettled]) -> bool {
    let doubt = note_of(resource).and_then(Doubt::of);
    let may_tell =
        |doubt: Doubt| spans.iter().any(|span| !span.coarse && span.boot_id == doubt.boot_id);
    doubt.is_some_and(may_tell)
}

/// Takes the note away.
pub fn strip(resource: &mut Resource) {
    if note_of(resource).is_some() {
        resource.extensions_mut().retain(|extension| extension.url != CLOCK_URL);
        drop_empty(resource);
    }
}

/// An empty list of extensions says the same as none.
fn drop_empty(resource: &mut Resource) {
    let extension = match resource {
        Resource::MemoryRecord(record) => &mut record.extension,
        Resource::Episode(episode) => &mut episode.extension,
        Resource::Entity(entity) => &mut entity.extension,
        Resource::Relationship(relationship) => &mut relationship.extension,
    };
    if extension.as_ref().is_some_and(Vec::is_empty) {
        *extension = None;
    }
}

/// Where a resource holds times that may have been read off a clock: paths of member names.
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

/// The resource as it is dated now that the clock was set, or `None` if nothing of it was in doubt
/// or the clock was not set in that boot. What it was dated before is kept in its note. `recorded` is
/// its order stamp; microseconds.
pub fn corrected(resource: &Resource, recorded: i64, spans: &[Unsettled]) -> Option<Resource> {
    let doubt = match note_of(resource) {
        Some(note) => Doubt::of(note)?,
        None => Doubt::in_hindsight(resource, recorded, spans)?,
    };
    // Only what came in by a clock that may have been right lacks the number of the start.
    let span = spans.iter().rev().find(|span| {
        span.coarse == doubt.boot.is_none()
            && span.boot_id == doubt.boot_id
            && (span.from..=span.until).contains(&doubt.monotonic)
    })?;
    // How far dating was wrong, and how far the wall clock was.
    let after = span.after?;
    let by_dating = span.step()?;
    let by_wall = after.saturating_add(doubt.monotonic).saturating_sub(doubt.wall);
    let dated = span.dated();
    // Who leaves `createdAt` to us may have asked us for the time as well, as our node in ROS does: then
    // an event lies in what we dated by, and nearer to our date than to the wall clock.
    let dated_at = span.before.saturating_add(doubt.monotonic);
    let is_of_ours = |time: i64| {
        let is_nearer = time.abs_diff(dated_at) <= time.abs_diff(doubt.wall);
        doubt.stamped && dated.contains(&time) && is_nearer
    };
    let mut value = resource.to_value();
    let mut was = Map::new();
    let mut event = None;
    for place in places(resource) {
        let Some(time) = time_at(&value, &place) else { continue };
        let micros = time.at().as_micros();
        let is_ours = match place.as_str() {
            "createdAt" => doubt.stamped,
            "decay/lastAccess" => dated.contains(&micros),
            _ => is_of_ours(micros),
        };
        let offset = match (is_ours, doubt.covers(&time)) {
            (true, _) => by_dating,
            (false, true) => by_wall,
            (false, false) => continue,
        };
        if place == "eventTime" {
            event = Some((micros, offset, is_ours));
        }
        shift(&mut value, place, offset, &mut was);
    }
    // Who read the event off our clock counted from that how long it holds; who read it off the wall
    // clock too, unless that is nearer to where the event comes to lie.
    if let Some((event, offset, is_ours)) = event
        && let Some(until) = time_at(&value, "validUntil").map(|until| until.at().as_micros())
        && (is_ours || until.abs_diff(event) < until.abs_diff(event.saturating_add(offset)))
    {
        shift(&mut value, "validUntil".to_owned(), offset, &mut was);
    }
    let mut note = doubt.members();
    note.insert("state", "corrected");
    note.insert("offsetMicros", Value::Number(Number::from(by_dating)));
    note.insert("was", Value::Object(was));
    let note = Extension { value_json: Some(Value::Object(note)), ..Extension::new(CLOCK_URL) };
    let mut anew = Resource::from_value(value).ok()?;
    match anew.extensions_mut().iter_mut().find(|extension| extension.url == CLOCK_URL) {
        Some(held) => *held = note,
        None => anew.extensions_mut().push(note),
    }
    Some(anew)
}

/// Takes over into a new version what was put right in the one before it, where it says again what
/// that said before.
pub fn catch_up(new: &mut Resource, old: &Resource) {
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

/// Whether encoded bytes bear a note of ours that waits; `false` is certain.
pub fn may_wait(bytes: &[u8]) -> bool {
    let url = CLOCK_URL.as_bytes();
    bytes.windows(url.len()).any(|window| window == url)
}

/// When something that came over the network says it was made, if that can be believed: not more
/// than a day ago, and not later than clocks that follow each other may differ (uhlc: 500 ms).
pub fn believable(sent: Timestamp, now: Timestamp) -> bool {
    (-NEAR..=500_000).contains(&sent.micros_since(now))
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::validate::validate_resource;
    use proptest::prelude::*;

    use super::*;

    fn record(more: &str) -> Resource {
        let json = format!(r#"{{"resourceType":"MemoryRecord","id":"a","content":"x"{more}}}"#);
        let value = omir_core::json::from_slice(json.as_bytes(), &Limits::default()).unwrap();
        Resource::from_value(value).unwrap()
    }

    fn doubt() -> Doubt {
        Doubt { boot: Some(1), boot_id: "b".into(), monotonic: 5, wall: 7, stamped: false }
    }

    fn span() -> Unsettled {
        Unsettled {
            boot_id: "b".into(),
            until: 10,
            after: Some(1_780_000_000_000_000),
            ..Unsettled::default()
        }
    }

    #[test]
    fn only_what_was_read_off_the_wrong_clock_is_noted() {
        let is_noted = |created: &str, event: &str| {
            let mut record = record(&format!(r#","createdAt":"{created}","eventTime":"{event}""#));
            doubt().note(&mut record, false, true);
            note_of(&record).is_some()
        };
        let (wrong, old, right) =
            ("1970-01-01T09:00:00Z", "2019-01-01T00:00:00Z", "2026-06-01T00:00:00Z");
        assert!(is_noted(wrong, wrong) && is_noted(wrong, right) && is_noted(right, wrong));
        assert!(!is_noted(right, right) && !is_noted(old, old) && !is_noted(right, old));
    }

    #[test]
    fn only_what_can_still_be_dated_anew_waits_for_it() {
        let mut noted = record(r#","createdAt":"1970-01-01T00:00:00Z""#);
        assert!(!waits(&noted, &[span()]));
        doubt().note(&mut noted, true, true);
        let open = Unsettled { until: 0, after: None, ..span() };
        assert!(waits(&noted, &[open]) && waits(&noted, &[span()]));
        assert!(!waits(&noted, &[]), "the machine has been started again");
        assert!(!waits(&noted, &[Unsettled { boot_id: "c".into(), ..span() }]));
        assert!(!waits(&noted, &[Unsettled { coarse: true, ..span() }]));
        let anew = corrected(&noted, 0, &[span()]).unwrap();
        assert!(!waits(&anew, &[span()]));
    }

    #[test]
    fn what_was_dated_anew_is_not_dated_again_and_comes_back_as_it_was() {
        let plain = record(r#","createdAt":"1970-01-01T00:00:00Z""#);
        let mut noted = plain.clone();
        doubt().note(&mut noted, false, true);
        let corrected = |resource: &Resource, span| corrected(resource, 0, &[span]);
        let anew = corrected(&noted, span()).unwrap();
        assert_ne!(anew.created_at(), noted.created_at());
        assert_eq!(corrected(&anew, span()), None);
        assert_eq!(corrected(&noted, Unsettled { boot_id: "c".into(), ..span() }), None);
        assert_eq!(corrected(&noted, Unsettled { after: None, ..span() }), None);
        for said in [plain.clone(), noted] {
            let mut again = said;
            catch_up(&mut again, &anew);
            assert_eq!(again, anew);
        }
        let mut bare = anew.clone();
        strip(&mut bare);
        assert!(note_of(&bare).is_none() && bare != plain);
    }

    proptest! {
        #[test]
        fn whatever_a_note_and_a_span_say_the_result_is_valid(
            numbers in prop::array::uniform5(any::<i64>()),
            (monotonic, wall, stamped) in (any::<i64>(), any::<i64>(), any::<bool>()),
            time in any::<i64>(),
        ) {
            let at = Instant::from(Timestamp::from_micros(time));
            let mut noted = record(&format!(
                r#","createdAt":"{at}","eventTime":"{at}","decay":{{"lastAccess":"{at}"}}"#
            ));
            let doubt = Doubt { monotonic, wall, ..doubt() };
            doubt.note(&mut noted, stamped, true);
            let [from, until, before, after, since] = numbers;
            let boot_id = "b".to_owned();
            let coarse = stamped;
            let span = Unsettled { boot_id, since, from, until, before, after: Some(after), coarse };
            let all = Unsettled { since: i64::MIN, from: i64::MIN, until: i64::MAX, ..span.clone() };
            let mut bare = noted.clone();
            strip(&mut bare);
            for (noted, span) in [(&noted, &span), (&noted, &all), (&bare, &span), (&bare, &all)] {
                if let Some(anew) = corrected(noted, time, std::slice::from_ref(span)) {
                    let mut faults = Vec::new();
                    validate_resource(&anew.to_value(), "/", &mut faults);
                    prop_assert!(faults.is_empty(), "{:?}", faults);
                }
            }
        }
    }
}
