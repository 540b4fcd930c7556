//! A record from CBOR, without allocating.
//!
//! Bytes from elsewhere: bounded, and nothing panics. What is read is every record that [`Record`] has
//! room and fields for, its members in any order, integers where numbers are asked for. Refused are: items
//! of indefinite length; members that occur twice; numbers that are decimal fractions; text longer than
//! its room; and one half of a posterior without the other. Members without a field here (`meta`,
//! `provenance`, further extensions, a covariance) are refused too, or with [`Unknown::Skip`] left out and
//! counted: a record that lost some must not be sent back in the place of the whole one.
//!
//! Instants become points on the UTC time line; a text with another offset says the same moment.

use ciborium_ll::{Header, simple};
use core::fmt;
use core::num::NonZeroU32;
use heapless::Vec;
use nalgebra::Point3;

use super::{Confidence, Decay, Frame, Id, Moment, Pose, Record, Reference, Text, Unit, Uptime};
use crate::cbor_head::{self, HeadError};
use crate::confidence::Beta;
use crate::forgetting::HalfLife;
use crate::geo::GeoPoint;
use crate::instant::Timestamp;
use crate::space::{SPATIAL_POSE_URL, unit_quaternion};

/// Treatment of members that [`Record`] has no field for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The record is refused.
    Refuse,
    /// They are left out, and counted.
    Skip,
}

/// Bytes that are no record, with the fault and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// Bytes before what is wrong.
    pub at: usize,
    /// The fault.
    pub kind: ReadErrorKind,
}

/// Faults of bytes that are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// They end inside an item.
    Truncated,
    /// No well-formed CBOR, or of indefinite length.
    Malformed,
    /// Another kind of item than the member asks for.
    Unexpected,
    /// A member that must be there is not.
    Missing(&'static str),
    /// A member that was there before.
    Repeated,
    /// A member without a field here.
    Unknown,
    /// More than there is room for.
    NoRoom,
    /// The right kind of item, with a value that the member does not allow.
    Value,
    /// Something follows the record.
    Trailing,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match self.kind {
            ReadErrorKind::Truncated => f.write_str("the bytes end inside an item"),
            ReadErrorKind::Malformed => f.write_str("no CBOR of definite length"),
            ReadErrorKind::Unexpected => f.write_str("another kind of value belongs here"),
            ReadErrorKind::Missing(member) => write!(f, "{member} is missing"),
            ReadErrorKind::Repeated => f.write_str("this member occurs twice"),
            ReadErrorKind::Unknown => f.write_str("this program has no field for this member"),
            ReadErrorKind::NoRoom => f.write_str("longer than this program has room for"),
            ReadErrorKind::Value => f.write_str("this value is not allowed here"),
            ReadErrorKind::Trailing => f.write_str("bytes follow the record"),
        }
    }
}

impl core::error::Error for ReadError {}

impl<const ID: usize, const TEXT: usize, const REFS: usize> Record<ID, TEXT, REFS> {
    /// Reads the bytes of [`Record::write`], [`Record::write_kept`] or another encoder.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        Self::read_with(bytes, Unknown::Refuse).map(|(record, _)| record)
    }

    /// Reads a record, and says how many members were left out.
    pub fn read_with(bytes: &[u8], unknown: Unknown) -> Result<(Self, u32), ReadError> {
        let mut reader = Reader { bytes, at: 0, unknown, skipped: 0 };
        let record = reader.record()?;
        reader.end()?;
        Ok((record, reader.skipped))
    }
}

impl Decay {
    /// Reads what [`Decay::write_kept`] wrote.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut reader = Reader { bytes, at: 0, unknown: Unknown::Refuse, skipped: 0 };
        let decay = reader.decay()?;
        reader.end()?;
        Ok(decay)
    }
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    unknown: Unknown,
    skipped: u32,
}

type Result<T, E = ReadError> = core::result::Result<T, E>;

/// Puts a member in its place, unless it was there already.
fn set<T>(slot: &mut Option<T>, at: usize, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(ReadError { at, kind: ReadErrorKind::Repeated }),
    }
}

impl<'a> Reader<'a> {
    /// Of bytes that are no record: a message that [`super::handover`] looks for a few members in.
    #[cfg(feature = "link")]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, unknown: Unknown::Skip, skipped: 0 }
    }

    fn record<const ID: usize, const TEXT: usize, const REFS: usize>(
        &mut self,
    ) -> Result<Record<ID, TEXT, REFS>> {
        let start = self.at;
        let (mut id, mut content, mut created_at, mut named) = (None, None, None, None);
        let (mut kind, mut experience_type, mut tier) = (None, None, None);
        let (mut event_time, mut valid_until, mut version) = (None, None, None);
        let (mut importance, mut confidence, mut decay) = (None, None, None);
        let (mut references, mut extension) = (None, None);
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "resourceType" => set(&mut named, at, self.exactly("MemoryRecord")?)?,
                "id" => set(&mut id, at, self.named(Id::try_from)?)?,
                "content" => set(&mut content, at, self.named(Text::try_from)?)?,
                "kind" => set(&mut kind, at, self.word()?)?,
                "experienceType" => set(&mut experience_type, at, self.word()?)?,
                "tier" => set(&mut tier, at, self.word()?)?,
                "createdAt" => set(&mut created_at, at, self.moment()?)?,
                "eventTime" => set(&mut event_time, at, self.moment()?)?,
                "validUntil" => set(&mut valid_until, at, self.moment()?)?,
                "version" => set(&mut version, at, self.checked(Self::count, NonZeroU32::new)?)?,
                "importance" => set(&mut importance, at, self.checked(Self::number, Unit::new)?)?,
                "confidence" => set(&mut confidence, at, self.confidence()?)?,
                "decay" => set(&mut decay, at, self.decay()?)?,
                "entityRefs" => set(&mut references, at, self.references()?)?,
                "extension" => set(&mut extension, at, self.extensions()?)?,
                _ => self.pass(at)?,
            }
        }
        let missing = |name| ReadError { at: start, kind: ReadErrorKind::Missing(name) };
        named.ok_or(missing("resourceType"))?;
        Ok(Record {
            id: id.ok_or(missing("id"))?,
            content: content.ok_or(missing("content"))?,
            kind,
            experience_type,
            tier,
            created_at: created_at.ok_or(missing("createdAt"))?,
            event_time,
            importance,
            confidence,
            decay,
            entity_refs: references.unwrap_or_default(),
            valid_until,
            version,
            pose: extension.flatten(),
        })
    }

    fn decay(&mut self) -> Result<Decay> {
        let (mut half_life, mut last_access) = (None, None);
        let (mut access_count, mut anchored) = (None, None);
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "halfLifeHours" => {
                    set(&mut half_life, at, self.checked(Self::number, HalfLife::new)?)?;
                }
                "lastAccess" => set(&mut last_access, at, self.moment()?)?,
                "accessCount" => set(&mut access_count, at, self.count()?)?,
                "anchored" => set(&mut anchored, at, self.flag()?)?,
                _ => self.pass(at)?,
            }
        }
        Ok(Decay { half_life, last_access, access_count, anchored })
    }

    fn confidence(&mut self) -> Result<Confidence> {
        let start = self.at;
        let (mut alpha, mut beta, mut calibrated) = (None, None, None);
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "alpha" => set(&mut alpha, at, self.number()?)?,
                "beta" => set(&mut beta, at, self.number()?)?,
                "calibrated" => set(&mut calibrated, at, self.checked(Self::number, Unit::new)?)?,
                _ => self.pass(at)?,
            }
        }
        let fault = |kind| ReadError { at: start, kind };
        let posterior = match (alpha, beta) {
            (None, None) => None,
            (Some(alpha), Some(beta)) => {
                Some(Beta::new(alpha, beta).ok_or(fault(ReadErrorKind::Value))?)
            }
            (None, Some(_)) => return Err(fault(ReadErrorKind::Missing("alpha"))),
            (Some(_), None) => return Err(fault(ReadErrorKind::Missing("beta"))),
        };
        Ok(Confidence { posterior, calibrated })
    }

    fn references<const ID: usize, const REFS: usize>(
        &mut self,
    ) -> Result<Vec<Reference<ID>, REFS>> {
        let at = self.at;
        let mut references = Vec::new();
        for _ in 0..self.array()? {
            let start = self.at;
            let mut target = None;
            for _ in 0..self.map()? {
                let at = self.at;
                match self.text()? {
                    "ref" => set(&mut target, at, self.named(Reference::try_from)?)?,
                    _ => self.pass(at)?,
                }
            }
            let target =
                target.ok_or(ReadError { at: start, kind: ReadErrorKind::Missing("ref") })?;
            references.push(target).map_err(|_| ReadError { at, kind: ReadErrorKind::NoRoom })?;
        }
        Ok(references)
    }

    /// The first pose counts; all else has no field here.
    fn extensions<const ID: usize>(&mut self) -> Result<Option<Pose<ID>>> {
        let mut pose = None;
        for _ in 0..self.array()? {
            let start = self.at;
            match self.extension()? {
                Some(found) if pose.is_none() => pose = Some(found),
                // `extension` counts all that it skips; only a further pose is counted here.
                Some(_) => self.leave_out(start)?,
                None => {}
            }
        }
        Ok(pose)
    }

    fn extension<const ID: usize>(&mut self) -> Result<Option<Pose<ID>>> {
        let start = self.at;
        // The URL says how to read the rest, and may come after it: look for it first.
        let mut url = None;
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "url" => set(&mut url, at, self.text()?)?,
                _ => self.skip()?,
            }
        }
        let url = url.ok_or(ReadError { at: start, kind: ReadErrorKind::Missing("url") })?;
        if url != SPATIAL_POSE_URL {
            self.leave_out(start)?;
            return Ok(None);
        }
        self.at = start;
        let mut pose = None;
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "url" => self.skip()?,
                "valueJson" => set(&mut pose, at, self.pose()?)?,
                _ => self.pass(at)?,
            }
        }
        pose.map(Some).ok_or(ReadError { at: start, kind: ReadErrorKind::Missing("valueJson") })
    }

    fn pose<const ID: usize>(&mut self) -> Result<Pose<ID>> {
        let start = self.at;
        let (mut frame, mut position, mut orientation) = (None, None, None);
        let (mut stamp, mut child_frame, mut geo) = (None, None, None);
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "frame" => set(&mut frame, at, self.named(Frame::try_from)?)?,
                "position" => set(&mut position, at, self.numbers::<3>()?)?,
                "orientation" => {
                    set(&mut orientation, at, self.checked(Self::numbers, unit_quaternion)?)?;
                }
                "stamp" => set(&mut stamp, at, self.moment()?)?,
                "childFrame" => set(&mut child_frame, at, self.named(Frame::try_from)?)?,
                "geo" => set(&mut geo, at, self.geo()?)?,
                _ => self.pass(at)?,
            }
        }
        let missing = |name| ReadError { at: start, kind: ReadErrorKind::Missing(name) };
        let [x, y, z] = position.ok_or(missing("position"))?;
        Ok(Pose {
            frame: frame.ok_or(missing("frame"))?,
            position: Point3::new(x, y, z),
            orientation,
            stamp,
            child_frame,
            geo,
        })
    }

    fn geo(&mut self) -> Result<GeoPoint> {
        let start = self.at;
        let (mut lat, mut lon, mut alt) = (None, None, None);
        for _ in 0..self.map()? {
            let at = self.at;
            match self.text()? {
                "lat" => set(&mut lat, at, self.number()?)?,
                "lon" => set(&mut lon, at, self.number()?)?,
                "alt" => set(&mut alt, at, self.number()?)?,
                _ => self.pass(at)?,
            }
        }
        let fault = |kind| ReadError { at: start, kind };
        let lat = lat.ok_or(fault(ReadErrorKind::Missing("lat")))?;
        let lon = lon.ok_or(fault(ReadErrorKind::Missing("lon")))?;
        GeoPoint::new(lat, lon, alt).map_err(|_| fault(ReadErrorKind::Value))
    }

    /// A text on the time line, or `[boot, micros]`.
    fn moment(&mut self) -> Result<Moment> {
        let at = self.at;
        match self.head()? {
            Header::Text(Some(len)) => {
                let text = self.str(len)?;
                let value = ReadError { at, kind: ReadErrorKind::Value };
                Timestamp::parse(text).map(Moment::At).map_err(|_| value)
            }
            Header::Array(Some(2)) => {
                let boot = self.count()?;
                let at = self.at;
                match self.head()? {
                    Header::Positive(micros) => Ok(Moment::SinceBoot(Uptime { boot, micros })),
                    _ => Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
                }
            }
            _ => Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
        }
    }

    fn exactly(&mut self, word: &str) -> Result<()> {
        self.named(|text| if text == word { Ok(()) } else { Err(()) })
    }

    fn word<T: core::str::FromStr<Err: Refusal>>(&mut self) -> Result<T> {
        self.named(T::from_str)
    }

    /// A text that `make` takes.
    fn named<T, E>(&mut self, make: impl FnOnce(&'a str) -> Result<T, E>) -> Result<T>
    where
        E: Refusal,
    {
        let at = self.at;
        make(self.text()?).map_err(|error| ReadError { at, kind: error.kind() })
    }

    /// Returns the result of `read`, if `make` takes it.
    fn checked<A, T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<A>,
        make: impl FnOnce(A) -> Option<T>,
    ) -> Result<T> {
        let at = self.at;
        make(read(self)?).ok_or(ReadError { at, kind: ReadErrorKind::Value })
    }

    fn numbers<const N: usize>(&mut self) -> Result<[f64; N]> {
        let at = self.at;
        if self.array()? != N {
            return Err(ReadError { at, kind: ReadErrorKind::Value });
        }
        let mut numbers = [0.0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Ok(numbers)
    }

    /// A finite float, or an integer that a float holds exactly.
    fn number(&mut self) -> Result<f64> {
        let at = self.at;
        let (int, negative) = match self.head()? {
            Header::Float(float) if float.is_finite() => return Ok(float),
            Header::Positive(int) => (int, false),
            Header::Negative(int) => (int.saturating_add(1), true),
            _ => return Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
        };
        if int > 1 << 53 {
            return Err(ReadError { at, kind: ReadErrorKind::Value });
        }
        Ok(if negative { -(int as f64) } else { int as f64 })
    }

    /// A count, also one that was written as a float.
    pub(super) fn count(&mut self) -> Result<u32> {
        self.checked(Self::number, |number| {
            let count = number as u32;
            (f64::from(count) == number).then_some(count)
        })
    }

    fn flag(&mut self) -> Result<bool> {
        let at = self.at;
        match self.head()? {
            Header::Simple(simple::TRUE) => Ok(true),
            Header::Simple(simple::FALSE) => Ok(false),
            _ => Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        let at = self.at;
        match self.head()? {
            Header::Text(Some(len)) => self.str(len),
            Header::Text(None) => Err(ReadError { at, kind: ReadErrorKind::Malformed }),
            _ => Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
        }
    }

    fn str(&mut self, len: usize) -> Result<&'a str> {
        let at = self.at;
        let bytes = self.take(len)?;
        core::str::from_utf8(bytes).map_err(|_| ReadError { at, kind: ReadErrorKind::Malformed })
    }

    pub(super) fn map(&mut self) -> Result<usize> {
        let at = self.at;
        match self.head()? {
            Header::Map(Some(len)) => Ok(len),
            Header::Map(None) => Err(ReadError { at, kind: ReadErrorKind::Malformed }),
            _ => Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
        }
    }

    fn array(&mut self) -> Result<usize> {
        let at = self.at;
        match self.head()? {
            Header::Array(Some(len)) => Ok(len),
            Header::Array(None) => Err(ReadError { at, kind: ReadErrorKind::Malformed }),
            _ => Err(ReadError { at, kind: ReadErrorKind::Unexpected }),
        }
    }

    /// The value of a member without a field, whose key stands at `at`.
    fn pass(&mut self, at: usize) -> Result<()> {
        self.skip()?;
        self.leave_out(at)
    }

    /// Counts what has no field and stands at `at`, or refuses it.
    fn leave_out(&mut self, at: usize) -> Result<()> {
        if self.unknown == Unknown::Refuse {
            return Err(ReadError { at, kind: ReadErrorKind::Unknown });
        }
        self.skipped = self.skipped.saturating_add(1);
        Ok(())
    }

    /// Moves over one item, without recursion and without looking for duplicate keys in it.
    pub(super) fn skip(&mut self) -> Result<()> {
        let mut left = 1_usize;
        while left > 0 {
            let at = self.at;
            let more = match self.head()? {
                Header::Array(Some(len)) => len,
                Header::Map(Some(len)) => len.saturating_mul(2),
                Header::Tag(_) => 1,
                Header::Text(Some(len)) => {
                    self.str(len)?;
                    0
                }
                Header::Bytes(Some(len)) => {
                    self.take(len)?;
                    0
                }
                Header::Positive(_)
                | Header::Negative(_)
                | Header::Float(_)
                | Header::Simple(_) => 0,
                Header::Array(None)
                | Header::Map(None)
                | Header::Text(None)
                | Header::Bytes(None)
                | Header::Break => return Err(ReadError { at, kind: ReadErrorKind::Malformed }),
            };
            // Every item takes a byte at least, so this cannot go on for longer than the bytes do.
            left = (left - 1).saturating_add(more);
            if left > self.bytes.len() - self.at {
                return Err(self.truncated());
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<()> {
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => Err(ReadError { at: self.at, kind: ReadErrorKind::Trailing }),
        }
    }

    pub(super) fn head(&mut self) -> Result<Header> {
        match cbor_head::read(&self.bytes[self.at..]) {
            Ok((header, len)) => {
                self.at += len;
                Ok(header)
            }
            Err(HeadError::Truncated) => Err(self.truncated()),
            Err(HeadError::Malformed) => {
                Err(ReadError { at: self.at, kind: ReadErrorKind::Malformed })
            }
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..len).ok_or(self.truncated())?;
        self.at += len;
        Ok(taken)
    }

    fn truncated(&self) -> ReadError {
        ReadError { at: self.bytes.len(), kind: ReadErrorKind::Truncated }
    }
}

/// True if a text was too long or wrong.
trait Refusal {
    fn kind(&self) -> ReadErrorKind;
}

impl Refusal for super::NameError {
    fn kind(&self) -> ReadErrorKind {
        match self {
            Self::NoRoom => ReadErrorKind::NoRoom,
            _ => ReadErrorKind::Value,
        }
    }
}

/// Of text.
impl Refusal for heapless::CapacityError {
    fn kind(&self) -> ReadErrorKind {
        ReadErrorKind::NoRoom
    }
}

macro_rules! wrong_value {
    ($($error:ty),+) => {$(
        impl Refusal for $error {
            fn kind(&self) -> ReadErrorKind {
                ReadErrorKind::Value
            }
        }
    )+};
}
wrong_value!((), crate::tier::UnknownTier, crate::vocabulary::UnknownWord);
