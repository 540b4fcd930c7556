//! One row of the index: a version of a resource, with the location of its bytes and its scores.

use omir_core::forgetting::{Decay, HalfLife};
use omir_core::instant::Timestamp;
use omir_core::tier::Tier;
use omird_store::RefKey;

use super::facts::{Class, DecayState, Facts};
use super::producers::ProducerNumber;
pub(crate) use omird_store::{DocId, FileId, Location, Stamp};

/// The importance or confidence of a version that states none.
const NEUTRAL: f64 = 0.5;

/// An importance or a confidence as it counts: [`NEUTRAL`] for NaN, which is not stated.
pub(crate) fn or_neutral(stated: f64) -> f64 {
    if stated.is_nan() { NEUTRAL } else { stated }
}

/// A moment that has not come: nothing has superseded the version, or it never expires.
pub(crate) const NEVER: i64 = i64::MAX;

/// [`Doc::retired`] of a version that no reader may see yet: it was never current, now or at any earlier time.
const STAGED: i64 = i64::MIN;

/// One version of a resource. About 150 bytes: this is what a memory costs in RAM, with its words
/// and its place in the spatial index.
#[derive(Debug, Clone)]
pub struct Doc {
    /// The resource's key.
    pub key: RefKey,
    /// The transaction that wrote it.
    pub seq: u64,
    /// Its position in that transaction.
    pub ordinal: u32,
    /// Version of the resource.
    pub version: u64,
    /// Time of recording; microseconds.
    pub recorded: i64,
    /// Time at which a later version or a tombstone took its place, or [`NEVER`].
    pub retired: i64,
    /// True if a tombstone retired it.
    pub forgotten: bool,
    /// True if it or a later version of the same was forgotten.
    pub tombstoned: bool,
    /// True if a compaction dropped it: nothing finds it any more.
    pub dropped: bool,
    /// The time of the event; that of recording for what states none.
    pub when: Timestamp,
    /// True if it states a time of its own. Only then can a time range find it.
    pub is_dated: bool,
    /// `createdAt` of a record, when the strength of a relationship was stated; that of recording for
    /// what states neither. Microseconds.
    pub since: i64,
    /// End of its validity, or [`NEVER`]; microseconds.
    pub valid_until: i64,
    /// Importance as stated, or NaN; see `Catalog::importance`.
    pub importance: f64,
    /// Confidence as stated, or NaN; see `Catalog::confidence`.
    pub confidence: f64,
    /// Forgetting state as stored in its bytes.
    pub access: Option<DecayState>,
    /// True if accesses have changed that state since; see `Catalog::access`.
    pub is_touched: bool,
    /// Its enumerated fields.
    pub class: Class,
    /// Its producer.
    pub producer: ProducerNumber,
    /// First of its rows in the table of places.
    pub place: u32,
    /// Number of them; seldom more than one.
    pub places: u16,
    /// Location of its bytes.
    pub location: Location,
    /// The version of the same reference before this one, or `u32::MAX`.
    pub older: DocId,
}

impl Doc {
    /// A live version with these facts.
    pub fn new(
        facts: &Facts,
        producer: ProducerNumber,
        stamp: Stamp,
        location: Location,
        place: u32,
        places: u16,
    ) -> Self {
        let when = facts
            .when
            .map_or(Timestamp::from_micros(stamp.recorded), |(s, n)| Timestamp::from_unix(s, n));
        Self {
            key: facts.key,
            seq: stamp.seq,
            ordinal: stamp.ordinal,
            version: stamp.version,
            recorded: stamp.recorded,
            retired: NEVER,
            forgotten: false,
            tombstoned: false,
            dropped: false,
            when,
            is_dated: facts.when.is_some(),
            since: facts.since.unwrap_or(stamp.recorded),
            valid_until: facts.valid_until.unwrap_or(NEVER),
            importance: facts.importance.unwrap_or(f64::NAN),
            confidence: facts.confidence.unwrap_or(f64::NAN),
            access: facts.access,
            is_touched: false,
            class: facts.class,
            producer,
            place,
            places,
            location,
            older: DocId::MAX,
        }
    }

    /// The time since which the store has had it, as far as that can be told at `now`; microseconds. The order of the
    /// store can be ahead of the date for long (`engine/time.rs`). Then the time that the version states has to do.
    pub fn held_since(&self, now: i64) -> i64 {
        if self.recorded > now { self.since } else { self.recorded }
    }

    /// Recency in [0, 1] at `now` (microseconds): the retrievability of the version if it had not been used since the
    /// event, with the default half-life. So no use renews it, and it never rises. It is 1 for everything but events.
    ///
    /// A date after the time of recording comes from a clock that is ahead. Such an event counts as of recording, or
    /// it would be the newest until that date comes.
    pub fn recency(&self, now: i64) -> f64 {
        if !self.class.is_event() {
            return 1.0;
        }
        let unused = DecayState {
            half_life_hours: HalfLife::DEFAULT.hours(),
            last_access: self.when.as_micros().min(self.recorded),
            access_count: 0,
            anchored: self.access.is_some_and(|access| access.anchored),
        };
        retrievability(&unused, now)
    }

    /// The tier it was stored with; `None` for what is no record.
    pub fn stored_tier(&self) -> Option<Tier> {
        Tier::ALL.get(usize::from(self.class.tier)).copied()
    }

    /// Keeps the version from readers until [`Doc::enter`].
    pub fn stage(&mut self) {
        self.retired = STAGED;
    }

    /// Makes the version the current one.
    pub fn enter(&mut self) {
        self.retired = NEVER;
    }

    /// Returns true if no reader may see this version yet.
    pub fn is_staged(&self) -> bool {
        self.retired == STAGED
    }

    /// Returns true if this is the current version of something that was not forgotten.
    pub fn is_live(&self) -> bool {
        self.retired == NEVER
    }
}

/// Retrievability of an decay state at `now` (microseconds).
pub(crate) fn retrievability(access: &DecayState, now: i64) -> f64 {
    let elapsed = hours(now.saturating_sub(access.last_access));
    decay_of(access).map_or(0.0, |decay| decay.retrievability(elapsed))
}

/// The decay state after one more access at `now`.
pub(crate) fn accessed(access: &DecayState, now: i64) -> DecayState {
    let elapsed = hours(now.saturating_sub(access.last_access));
    match decay_of(access).map(|decay| decay.accessed(elapsed)) {
        Some(after) => DecayState {
            half_life_hours: after.half_life.hours(),
            last_access: access.last_access.max(now),
            access_count: after.access_count,
            anchored: access.anchored,
        },
        None => *access,
    }
}

fn decay_of(access: &DecayState) -> Option<Decay> {
    Some(Decay {
        half_life: HalfLife::new(access.half_life_hours)?,
        access_count: access.access_count,
        anchored: access.anchored,
    })
}

/// Microseconds as hours.
pub(crate) fn hours(micros: i64) -> f64 {
    micros as f64 / 3_600_000_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::model::Resource;
    use omir_core::{decode::Limits, json};

    const DAY: i64 = 86_400_000_000;
    /// 2026-06-01T00:00:00Z, in microseconds.
    const DAWN: i64 = 1_780_272_000_000_000;

    /// The row of a record that was recorded at [`DAWN`].
    fn row(more: &str) -> Doc {
        let text = format!(
            r#"{{"resourceType":"MemoryRecord","id":"a","content":"a cup",
            "createdAt":"2026-06-01T00:00:00Z"{more}}}"#
        );
        let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        let facts = Facts::of(&Resource::from_value(value).unwrap());
        let stamp = Stamp { seq: 1, ordinal: 0, version: 1, recorded: DAWN };
        let location = Location { file: FileId::Log(1), offset: 0, len: 0, crc: 0 };
        Doc::new(&facts, super::super::producers::OURS, stamp, location, 0, 0)
    }

    #[test]
    fn recency_by_hand() {
        let plain = row("");
        assert_eq!(plain.recency(DAWN), 1.0);
        assert_eq!(plain.recency(DAWN + 7 * DAY), 0.5); // 1 + 3 = 4
        assert_eq!(plain.recency(DAWN + 35 * DAY), 0.25); // 1 + 15 = 16
        assert_eq!(plain.recency(DAWN - DAY), 1.0, "the clock was set back");
        // When it happened, not when it was told.
        let told_later = row(r#","eventTime":"2026-05-25T00:00:00Z""#);
        assert_eq!(told_later.recency(DAWN), 0.5);
        let last_access = r#","decay":{"lastAccess":"2026-06-05T00:00:00Z"}"#;
        assert_eq!(row(last_access).recency(DAWN + 35 * DAY), 0.25, "use renews nothing");
        let stated = r#","decay":{"halfLifeHours":1}"#;
        assert_eq!(row(stated).recency(DAWN + 7 * DAY), 0.5, "of all alike");
        let anchored = r#","decay":{"anchored":true}"#;
        assert_eq!(row(anchored).recency(DAWN + 35 * DAY), 0.5, "its floor");
    }

    #[test]
    fn a_clock_that_is_wrong_does_not_make_it_new() {
        let ahead = row(r#","eventTime":"2027-06-01T00:00:00Z""#);
        assert_eq!(ahead.recency(DAWN + 7 * DAY), 0.5);
        let unset = row(r#","eventTime":"1970-01-01T00:00:07Z""#).recency(DAWN);
        assert!(unset > 0.0 && unset < 0.02, "{unset}");
        assert_eq!(row("").recency(0), 1.0, "asked in 1970");
    }

    #[test]
    fn what_does_not_happen_does_not_get_old() {
        for more in [
            r#","kind":"learning""#,
            r#","kind":"plan","eventTime":"2026-05-01T00:00:00Z""#,
            r#","experienceType":"intention","eventTime":"2026-07-01T00:00:00Z""#,
        ] {
            assert_eq!(row(more).recency(DAWN + 90 * DAY), 1.0, "{more}");
        }
        assert!(
            row(r#","kind":"memory","experienceType":"observation""#).recency(DAWN + DAY) < 1.0
        );
    }
}
