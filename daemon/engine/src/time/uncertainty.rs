//! Notes on memories that came in while the time was unknown. `uncertainty/correction.rs` corrects their dates.
//!
//! The note is the extension [`CLOCK_URL`]. It keeps the monotonic stamp, from which the true time
//! follows once the clock is set, and what the wall clock showed: another program on the same machine
//! dates by that. It is ours, as our stamp in `meta` is (`engine/time/stamp.rs`): sending back what one
//! got, or the original again, is no change.

mod correction;

use omir_core::instant::{Instant, Timestamp};
use omir_core::model::{Extension, Resource};
use omir_core::number::Number;
use omir_core::reference::ResourceType;
use omir_core::value::{Map, Value};
use omird_store::UntrustedInterval;

use crate::time::clock::{SLACK, TOLERANCE};
use crate::time::stamp::is_completed;

pub(crate) use self::correction::{catch_up, corrected};

/// The URL of the note; see docs/extensions.md.
pub(crate) const CLOCK_URL: &str = "urn:omird:ext:clock";

/// Largest distance between a time and an unset clock at which the time is taken to come from it.
/// Microseconds; one day.
const NEAR: i64 = 86_400_000_000;

/// The time at which a memory came in, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockUncertainty {
    /// The start of the daemon, if it was noted.
    pub boot: Option<u64>,
    /// The start of the machine.
    pub boot_id: String,
    /// Since that start; microseconds.
    pub monotonic: i64,
    /// Reading of the wall clock; microseconds since 1970.
    pub wall: i64,
    /// True if `createdAt` is the daemon's.
    pub stamped: bool,
}

impl ClockUncertainty {
    /// Returns true if a time was read off the untrusted clock. A time from elsewhere, such as that
    /// of an old memory, is left alone.
    fn covers(&self, time: &Instant) -> bool {
        let time = time.at().as_micros();
        let booted = self.wall.saturating_sub(self.monotonic);
        (booted.saturating_sub(NEAR)..=self.wall.saturating_add(NEAR)).contains(&time)
    }

    /// Returns true if any time that `resource` states was read off the untrusted clock.
    fn covers_any(&self, resource: &Resource) -> bool {
        let (created, event) = match resource {
            Resource::MemoryRecord(record) => (&record.created_at, &record.event_time),
            Resource::Episode(episode) => (&episode.created_at, &episode.event_time),
            Resource::Entity(_) | Resource::Relationship(_) => return false,
        };
        let created = (!self.stamped).then_some(created);
        created.into_iter().chain(event).any(|time| self.covers(time))
    }

    /// Notes on a memory that is remembered now what of it is uncertain, if anything is. `stamped`
    /// says that its `createdAt` is the daemon's, `is_new` that what it states was stated just now.
    pub fn note(mut self, resource: &mut Resource, stamped: bool, is_new: bool) {
        let kind = resource.resource_type();
        if !matches!(kind, ResourceType::MemoryRecord | ResourceType::Episode) {
            return;
        }
        self.stamped = stamped;
        let is_uncertain = stamped || (is_new && self.covers_any(resource));
        if is_uncertain && note_of(resource).is_none() {
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

    /// The note for a memory that came in by a clock that might have been right and
    /// was not. From its order stamp and its date follows whether it was dated by that clock: by us,
    /// or by a program that sent it at once.
    fn in_hindsight(
        resource: &Resource,
        recorded: i64,
        intervals: &[UntrustedInterval],
    ) -> Option<Self> {
        let created = match resource {
            Resource::MemoryRecord(record) => record.created_at.at().as_micros(),
            Resource::Episode(episode) => episode.created_at.at().as_micros(),
            Resource::Entity(_) | Resource::Relationship(_) => return None,
        };
        let stamped = is_completed(resource);
        let age = recorded.saturating_sub(created);
        let is_ours = age >= -SLACK && (stamped || age < TOLERANCE);
        let is_in = |interval: &&UntrustedInterval| {
            interval.coarse && interval.since <= recorded && interval.dated().contains(&created)
        };
        let interval = intervals.iter().rev().find(is_in).filter(|_| is_ours)?;
        let monotonic = created.saturating_sub(interval.before);
        Some(Self {
            boot: None,
            boot_id: interval.boot_id.clone(),
            monotonic,
            wall: created,
            stamped,
        })
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

/// Returns true if it may still become known when a resource came in: it came in one of these intervals, in which
/// the time was unknown.
pub(crate) fn waits(resource: &Resource, intervals: &[UntrustedInterval]) -> bool {
    let uncertainty = note_of(resource).and_then(ClockUncertainty::of);
    let may_tell = |uncertainty: ClockUncertainty| {
        intervals.iter().any(|interval| !interval.coarse && interval.boot_id == uncertainty.boot_id)
    };
    uncertainty.is_some_and(may_tell)
}

/// Takes the note away.
pub(crate) fn strip(resource: &mut Resource) {
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

/// Returns true if encoded bytes bear a note of ours that waits; `false` is certain.
pub(crate) fn may_wait(bytes: &[u8]) -> bool {
    let url = CLOCK_URL.as_bytes();
    bytes.windows(url.len()).any(|window| window == url)
}

/// Returns true if the stated time of a memory from the network can be believed: not more
/// than a day ago, and not later than clocks that follow each other may differ (uhlc: 500 ms).
pub(crate) fn believable(sent: Timestamp, now: Timestamp) -> bool {
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

    fn uncertainty() -> ClockUncertainty {
        ClockUncertainty {
            boot: Some(1),
            boot_id: "b".into(),
            monotonic: 5,
            wall: 7,
            stamped: false,
        }
    }

    fn interval() -> UntrustedInterval {
        UntrustedInterval {
            boot_id: "b".into(),
            until: 10,
            after: Some(1_780_000_000_000_000),
            ..UntrustedInterval::default()
        }
    }

    #[test]
    fn only_what_was_read_off_the_wrong_clock_is_noted() {
        let is_noted = |created: &str, event: &str| {
            let mut record = record(&format!(r#","createdAt":"{created}","eventTime":"{event}""#));
            uncertainty().note(&mut record, false, true);
            note_of(&record).is_some()
        };
        let (wrong, old, right) =
            ("1970-01-01T09:00:00Z", "2019-01-01T00:00:00Z", "2026-06-01T00:00:00Z");
        assert!(is_noted(wrong, wrong) && is_noted(wrong, right) && is_noted(right, wrong));
        assert!(!is_noted(right, right) && !is_noted(old, old) && !is_noted(right, old));
    }

    #[test]
    fn only_what_can_still_be_redated_waits_for_it() {
        let mut noted = record(r#","createdAt":"1970-01-01T00:00:00Z""#);
        assert!(!waits(&noted, &[interval()]));
        uncertainty().note(&mut noted, true, true);
        let open = UntrustedInterval { until: 0, after: None, ..interval() };
        assert!(waits(&noted, &[open]) && waits(&noted, &[interval()]));
        assert!(!waits(&noted, &[]), "the machine has been started again");
        assert!(!waits(&noted, &[UntrustedInterval { boot_id: "c".into(), ..interval() }]));
        assert!(!waits(&noted, &[UntrustedInterval { coarse: true, ..interval() }]));
        let redated = corrected(&noted, 0, &[interval()]).unwrap();
        assert!(!waits(&redated, &[interval()]));
    }

    #[test]
    fn what_was_redated_is_not_dated_again_and_comes_back_as_it_was() {
        let plain = record(r#","createdAt":"1970-01-01T00:00:00Z""#);
        let mut noted = plain.clone();
        uncertainty().note(&mut noted, false, true);
        let corrected = |resource: &Resource, interval| corrected(resource, 0, &[interval]);
        let redated = corrected(&noted, interval()).unwrap();
        assert_ne!(redated.created_at(), noted.created_at());
        assert_eq!(corrected(&redated, interval()), None);
        assert_eq!(
            corrected(&noted, UntrustedInterval { boot_id: "c".into(), ..interval() }),
            None
        );
        assert_eq!(corrected(&noted, UntrustedInterval { after: None, ..interval() }), None);
        for said in [plain.clone(), noted] {
            let mut again = said;
            catch_up(&mut again, &redated);
            assert_eq!(again, redated);
        }
        let mut bare = redated.clone();
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
            let uncertainty = ClockUncertainty { monotonic, wall, ..uncertainty() };
            uncertainty.note(&mut noted, stamped, true);
            let [from, until, before, after, since] = numbers;
            let boot_id = "b".to_owned();
            let coarse = stamped;
            let interval = UntrustedInterval { boot_id, since, from, until, before, after: Some(after), coarse };
            let all = UntrustedInterval { since: i64::MIN, from: i64::MIN, until: i64::MAX, ..interval.clone() };
            let mut bare = noted.clone();
            strip(&mut bare);
            for (noted, interval) in [(&noted, &interval), (&noted, &all), (&bare, &interval), (&bare, &all)] {
                if let Some(redated) = corrected(noted, time, std::slice::from_ref(interval)) {
                    let mut faults = Vec::new();
                    validate_resource(&redated.to_value(), "/", &mut faults);
                    prop_assert!(faults.is_empty(), "{:?}", faults);
                }
            }
        }
    }
}
