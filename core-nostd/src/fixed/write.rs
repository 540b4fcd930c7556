//! A record as CBOR: the deterministic form of RFC 8949 §4.2.1, without allocating.
//!
//! Maps are written with their keys in the order of the encodings, by length and then by bytes. The order
//! is in the code; `core-nostd/tests/fixed.rs` compares with the encoder that sorts.

use ciborium_ll::{Header, simple};
use core::fmt;
use nalgebra::Point3;

use super::{Confidence, Dating, Decay, Moment, NoClock, Pose, Record, Reference, Sink};
use crate::cbor_head::Head;
use crate::geo::GeoPoint;
use crate::space::SPATIAL_POSE_URL;

/// A record that was not written. What the sink took before is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError<E> {
    /// The sink took no more.
    Sink(E),
    /// A moment that cannot be dated; OMIR has none of these. Learn the time first.
    Undated,
    /// A coordinate is NaN or infinite.
    NotFinite,
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sink(error) => error.fmt(f),
            Self::Undated => f.write_str("a moment since a start that nobody can date"),
            Self::NotFinite => f.write_str("a coordinate is NaN or infinite"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for WriteError<E> {}

impl<const ID: usize, const TEXT: usize, const REFS: usize> Record<ID, TEXT, REFS> {
    /// Writes the record as an OMIR document has it, every moment as RFC 3339 in UTC.
    ///
    /// Byte for byte what `cbor::to_vec` gives for the same record.
    pub fn write<S: Sink>(
        &self,
        dating: &impl Dating,
        sink: &mut S,
    ) -> Result<(), WriteError<S::Error>> {
        Writer { sink, dating: Some(dating) }.record(self)
    }

    /// Writes the record as it is kept in flash: as [`Record::write`], but a moment since a start of the
    /// machine is the array `[boot, micros]`.
    pub fn write_kept<S: Sink>(&self, sink: &mut S) -> Result<(), WriteError<S::Error>> {
        Writer { sink, dating: None::<&NoClock> }.record(self)
    }
}

impl Decay {
    /// Writes the state as it is kept in flash: see [`Record::write_kept`].
    pub fn write_kept<S: Sink>(&self, sink: &mut S) -> Result<(), WriteError<S::Error>> {
        Writer { sink, dating: None::<&NoClock> }.decay(self)
    }
}

struct Writer<'a, S, D: ?Sized> {
    sink: &'a mut S,
    /// None: moments are kept as they are.
    dating: Option<&'a D>,
}

/// Counts the members that are present.
fn count(members: &[bool]) -> usize {
    members.iter().filter(|there| **there).count()
}

impl<S: Sink, D: Dating + ?Sized> Writer<'_, S, D> {
    fn record<const ID: usize, const TEXT: usize, const REFS: usize>(
        &mut self,
        record: &Record<ID, TEXT, REFS>,
    ) -> Result<(), WriteError<S::Error>> {
        let optional = [
            record.kind.is_some(),
            record.tier.is_some(),
            record.decay.is_some(),
            record.version.is_some(),
            record.event_time.is_some(),
            record.pose.is_some(),
            record.confidence.is_some(),
            !record.entity_refs.is_empty(),
            record.importance.is_some(),
            record.valid_until.is_some(),
            record.experience_type.is_some(),
        ];
        // And id, content, createdAt, resourceType.
        self.head(Header::Map(Some(4 + count(&optional))))?;
        self.member("id", record.id.as_str())?;
        if let Some(kind) = record.kind {
            self.member("kind", kind.as_str())?;
        }
        if let Some(tier) = record.tier {
            self.member("tier", tier.as_str())?;
        }
        if let Some(decay) = &record.decay {
            self.text("decay")?;
            self.decay(decay)?;
        }
        self.member("content", &record.content)?;
        if let Some(version) = record.version {
            self.text("version")?;
            self.head(Header::Positive(version.get().into()))?;
        }
        self.moment("createdAt", Some(record.created_at))?;
        self.moment("eventTime", record.event_time)?;
        if let Some(pose) = &record.pose {
            self.text("extension")?;
            self.head(Header::Array(Some(1)))?;
            self.head(Header::Map(Some(2)))?;
            self.member("url", SPATIAL_POSE_URL)?;
            self.text("valueJson")?;
            self.pose(pose)?;
        }
        if let Some(confidence) = &record.confidence {
            self.confidence(confidence)?;
        }
        if !record.entity_refs.is_empty() {
            self.text("entityRefs")?;
            self.head(Header::Array(Some(record.entity_refs.len())))?;
            record.entity_refs.iter().try_for_each(|reference| self.reference(reference))?;
        }
        self.number("importance", record.importance.map(|unit| unit.get()))?;
        self.moment("validUntil", record.valid_until)?;
        self.member("resourceType", "MemoryRecord")?;
        if let Some(experience) = record.experience_type {
            self.member("experienceType", experience.as_str())?;
        }
        Ok(())
    }

    fn decay(&mut self, decay: &Decay) -> Result<(), WriteError<S::Error>> {
        let members = [
            decay.anchored.is_some(),
            decay.last_access.is_some(),
            decay.access_count.is_some(),
            decay.half_life.is_some(),
        ];
        self.head(Header::Map(Some(count(&members))))?;
        if let Some(anchored) = decay.anchored {
            self.text("anchored")?;
            let word = if anchored { simple::TRUE } else { simple::FALSE };
            self.head(Header::Simple(word))?;
        }
        self.moment("lastAccess", decay.last_access)?;
        if let Some(accesses) = decay.access_count {
            self.text("accessCount")?;
            self.head(Header::Positive(accesses.into()))?;
        }
        self.number("halfLifeHours", decay.half_life.map(|half_life| half_life.hours()))
    }

    fn confidence(&mut self, confidence: &Confidence) -> Result<(), WriteError<S::Error>> {
        self.text("confidence")?;
        let both = confidence.posterior;
        let members = [both.is_some(), both.is_some(), confidence.calibrated.is_some()];
        self.head(Header::Map(Some(count(&members))))?;
        self.number("beta", both.map(|beta| beta.beta()))?;
        self.number("alpha", both.map(|beta| beta.alpha()))?;
        self.number("calibrated", confidence.calibrated.map(|unit| unit.get()))
    }

    fn reference<const ID: usize>(
        &mut self,
        reference: &Reference<ID>,
    ) -> Result<(), WriteError<S::Error>> {
        self.head(Header::Map(Some(1)))?;
        self.text("ref")?;
        let (kind, id) = (reference.kind.as_str(), reference.id.as_str());
        self.head(Header::Text(Some(kind.len() + 1 + id.len())))?;
        [kind, "/", id].into_iter().try_for_each(|part| self.put(part.as_bytes()))
    }

    fn pose<const ID: usize>(&mut self, pose: &Pose<ID>) -> Result<(), WriteError<S::Error>> {
        let optional = [
            pose.geo.is_some(),
            pose.stamp.is_some(),
            pose.child_frame.is_some(),
            pose.orientation.is_some(),
        ];
        // And frame, position.
        self.head(Header::Map(Some(2 + count(&optional))))?;
        if let Some(geo) = &pose.geo {
            self.geo(geo)?;
        }
        self.member("frame", pose.frame.as_str())?;
        self.moment("stamp", pose.stamp)?;
        let Point3 { coords } = pose.position;
        self.numbers("position", &[coords.x, coords.y, coords.z])?;
        if let Some(frame) = &pose.child_frame {
            self.member("childFrame", frame.as_str())?;
        }
        match &pose.orientation {
            Some(q) => self.numbers("orientation", &[q.i, q.j, q.k, q.w]),
            None => Ok(()),
        }
    }

    fn geo(&mut self, geo: &GeoPoint) -> Result<(), WriteError<S::Error>> {
        self.text("geo")?;
        self.head(Header::Map(Some(2 + usize::from(geo.alt().is_some()))))?;
        self.number("alt", geo.alt())?;
        self.number("lat", Some(geo.lat()))?;
        self.number("lon", Some(geo.lon()))
    }

    /// A member, if it is there.
    fn moment(&mut self, key: &str, moment: Option<Moment>) -> Result<(), WriteError<S::Error>> {
        let Some(moment) = moment else { return Ok(()) };
        self.text(key)?;
        let at = match (moment, self.dating) {
            (Moment::At(at), _) => at,
            (Moment::SinceBoot(uptime), Some(dating)) => {
                dating.date(uptime).ok_or(WriteError::Undated)?
            }
            (Moment::SinceBoot(uptime), None) => {
                self.head(Header::Array(Some(2)))?;
                self.head(Header::Positive(uptime.boot.into()))?;
                return self.head(Header::Positive(uptime.micros));
            }
        };
        self.text(at.writable().text().as_str())
    }

    /// A member, if it is there.
    fn number(&mut self, key: &str, number: Option<f64>) -> Result<(), WriteError<S::Error>> {
        let Some(number) = number else { return Ok(()) };
        self.text(key)?;
        self.float(number)
    }

    fn numbers(&mut self, key: &str, numbers: &[f64]) -> Result<(), WriteError<S::Error>> {
        self.text(key)?;
        self.head(Header::Array(Some(numbers.len())))?;
        numbers.iter().try_for_each(|number| self.float(*number))
    }

    fn float(&mut self, number: f64) -> Result<(), WriteError<S::Error>> {
        if !number.is_finite() {
            return Err(WriteError::NotFinite);
        }
        self.head(Header::Float(number))
    }

    fn member(&mut self, key: &str, text: &str) -> Result<(), WriteError<S::Error>> {
        self.text(key)?;
        self.text(text)
    }

    fn text(&mut self, text: &str) -> Result<(), WriteError<S::Error>> {
        self.head(Header::Text(Some(text.len())))?;
        self.put(text.as_bytes())
    }

    fn head(&mut self, header: Header) -> Result<(), WriteError<S::Error>> {
        self.put(Head::new(header).as_bytes())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), WriteError<S::Error>> {
        self.sink.put(bytes).map_err(WriteError::Sink)
    }
}
