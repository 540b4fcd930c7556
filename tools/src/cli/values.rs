//! Option values: checked once, here, and typed from then on.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::str::FromStr;
use std::time::Duration;

use omir_core::quantity::parse_duration;
use omir_core::reference::{Id, Ref, ResourceType};
use omird::zenoh::check_endpoint;

use super::bad_value::BadValue;
use crate::ids;
use crate::instant::TimeBound;

/// Bytes of a file with a vector: 4096 numbers in text.
const MOST_VECTOR: u64 = 256 << 10;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A position; z is 0 when it is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position(pub [f64; 3]);

/// A position to search at: two coordinates search in the plane, three in space.
#[derive(Debug, Clone, PartialEq)]
pub struct Planar(pub Vec<f64>);

/// Corners of a box: `x0, y0, z0, x1, y1, z1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds(pub [f64; 6]);

/// A unit quaternion: x, y, z, w.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Orientation(pub [f64; 4]);

/// WGS 84 degrees and metres.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geo {
    /// Latitude, north positive.
    pub lat: f64,
    /// Longitude, east positive.
    pub lon: f64,
    /// Height above the ellipsoid.
    pub alt: Option<f64>,
}

/// A vector as the daemon reads it: numbers with commas between, or base64 of 32-bit floats.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorText(pub String);

/// Metres between poses: 0 keeps every pose, infinity sets no distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing(pub f64);

impl FromStr for Position {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        match *numbers(text)? {
            [x, y] => Ok(Self([x, y, 0.0])),
            [x, y, z] => Ok(Self([x, y, z])),
            _ => Err(BadValue::Form("expected two or three numbers: x,y or x,y,z")),
        }
    }
}

impl FromStr for Planar {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let numbers = numbers(text)?;
        match numbers.len() {
            2 | 3 => Ok(Self(numbers)),
            _ => Err(BadValue::Form("expected two or three numbers: x,y or x,y,z")),
        }
    }
}

impl FromStr for Bounds {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        <[f64; 6]>::try_from(numbers(text)?)
            .map(Self)
            .map_err(|_| BadValue::Form("expected six numbers: x0,y0,z0,x1,y1,z1"))
    }
}

impl FromStr for Orientation {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let q = <[f64; 4]>::try_from(numbers(text)?)
            .map_err(|_| BadValue::Form("expected four numbers: qx,qy,qz,qw"))?;
        crate::trajectory::unit_quaternion(q)
            .map(Self)
            .ok_or_else(|| BadValue::Form("a zero quaternion is no orientation"))
    }
}

impl FromStr for Geo {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (lat, lon, alt) = match *numbers(text)? {
            [lat, lon] => (lat, lon, None),
            [lat, lon, alt] => (lat, lon, Some(alt)),
            _ => return Err(BadValue::Form("expected lat,lon or lat,lon,alt")),
        };
        if !(-90.0..=90.0).contains(&lat) {
            return Err(BadValue::Degrees { angle: "latitude", value: lat, most: 90.0 });
        }
        if !(-180.0..=180.0).contains(&lon) {
            return Err(BadValue::Degrees { angle: "longitude", value: lon, most: 180.0 });
        }
        Ok(Self { lat, lon, alt })
    }
}

impl FromStr for VectorText {
    type Err = BadValue;
    /// Reads a vector, or the file that `@` names. Brackets around, as those of a JSON array, are left out, so that a file may
    /// hold what `json.dump` writes.
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let Some(path) = text.strip_prefix('@') else { return Self::of(text) };
        let of_file = |why: String| BadValue::other(format!("{path}: {why}"));
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(|error| of_file(error.to_string()))?;
        file.take(MOST_VECTOR + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| of_file(error.to_string()))?;
        if bytes.len() as u64 > MOST_VECTOR {
            return Err(of_file(format!("it has more than {MOST_VECTOR} bytes, and is no vector")));
        }
        let text = String::from_utf8(bytes).map_err(|_| of_file("it is no text".to_owned()))?;
        Self::of(&text).map_err(|why| of_file(why.to_string()))
    }
}

impl VectorText {
    fn of(text: &str) -> Result<Self, BadValue> {
        let text = text.trim();
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let text: String = inner.unwrap_or(text).split_whitespace().collect();
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        if text.contains(',') {
            numbers(&text)?;
        } else if text.is_empty() || !text.chars().all(is_base64) {
            return Err(BadValue::Form(
                "expected numbers with commas, as JSON has them in an array, or base64 of 32-bit floats",
            ));
        }
        Ok(Self(text))
    }
}

impl fmt::Display for VectorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Spacing {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.parse::<f64>() {
            Ok(metres) if metres >= 0.0 => Ok(Self(metres)),
            _ => Err(BadValue::Form("expected metres, 0 or more, or inf")),
        }
    }
}

impl fmt::Display for Planar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0)
    }
}

impl fmt::Display for Geo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &[self.lat, self.lon])?;
        match self.alt {
            Some(alt) => write!(f, ",{alt}"),
            None => Ok(()),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, numbers: &[f64]) -> fmt::Result {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write!(f, "{number}")?;
    }
    Ok(())
}

pub(super) fn numbers(text: &str) -> Result<Vec<f64>, BadValue> {
    text.split(',')
        .map(|part| finite(part).map_err(|why| BadValue::InList(Box::new(why))))
        .collect()
}

pub(super) fn finite(text: &str) -> Result<f64, BadValue> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Err(_) if text.is_empty() => Err(BadValue::NoNumber),
        read => Err(BadValue::Number { text: text.to_owned(), is_number: read.is_ok() }),
    }
}

pub(super) fn unit(text: &str) -> Result<f64, BadValue> {
    finite(text).and_then(|number| {
        if (0.0..=1.0).contains(&number) {
            Ok(number)
        } else {
            Err(BadValue::Form("expected a number from 0 to 1"))
        }
    })
}

/// Something: a shell makes nothing of a variable that is not set.
pub(super) fn said(text: &str) -> Result<String, BadValue> {
    if text.trim().is_empty() {
        return Err(BadValue::Form("there is nothing to remember in it"));
    }
    Ok(text.to_owned())
}

pub(super) fn positive(text: &str) -> Result<f64, BadValue> {
    finite(text).and_then(|number| {
        if number > 0.0 { Ok(number) } else { Err(BadValue::Form("expected a number above 0")) }
    })
}

pub(super) fn cosine(text: &str) -> Result<f64, BadValue> {
    finite(text).and_then(|number| {
        if (-1.0..=1.0).contains(&number) {
            Ok(number)
        } else {
            Err(BadValue::Form("expected a cosine, from -1 to 1"))
        }
    })
}

pub(super) fn not_negative(text: &str) -> Result<f64, BadValue> {
    finite(text).and_then(|number| {
        if number >= 0.0 { Ok(number) } else { Err(BadValue::Form("expected 0 or more")) }
    })
}

/// A time, in words or as a number of `unit`s.
fn time(text: &str, unit: Duration) -> Result<f64, BadValue> {
    if let Ok(number) = text.trim().parse::<f64>() {
        return finite(text).map(|_| number * unit.as_secs_f64());
    }
    parse_duration(text).map(|time| time.as_secs_f64()).map_err(BadValue::other)
}

/// Seconds, or a time in words, up to a day: nobody waits longer, and sums of it cannot overflow.
pub(super) fn seconds(text: &str) -> Result<Duration, BadValue> {
    match time(text, SECOND)? {
        seconds if seconds < 0.0 => Err(BadValue::Form("expected 0 or more")),
        seconds if seconds > 86_400.0 => Err(BadValue::Form("expected at most a day")),
        seconds => Ok(Duration::from_secs_f64(seconds)),
    }
}

/// More seconds than none, or a time in words.
pub(super) fn pause(text: &str) -> Result<f64, BadValue> {
    above_none(time(text, SECOND)?)
}

/// More hours than none, or a time in words.
pub(super) fn hours(text: &str) -> Result<f64, BadValue> {
    above_none(time(text, HOUR)? / HOUR.as_secs_f64())
}

fn above_none(time: f64) -> Result<f64, BadValue> {
    if time > 0.0 && time.is_finite() {
        Ok(time)
    } else {
        Err(BadValue::Form("expected a time above 0"))
    }
}

/// The largest number of hits of a recall.
pub(super) fn limit(text: &str) -> Result<usize, BadValue> {
    text.parse::<usize>()
        .ok()
        .filter(|limit| (1..=1000).contains(limit))
        .ok_or_else(|| BadValue::Limit(text.to_owned()))
}

/// An endpoint of Zenoh's; `host:port` alone means TCP.
pub(super) fn endpoint(text: &str) -> Result<String, BadValue> {
    let text = text.trim();
    if text.is_empty() {
        return Err(BadValue::Form("an endpoint is missing, such as tcp/127.0.0.1:7448"));
    }
    if text.contains('/') {
        return check_endpoint(text).map(|()| text.to_owned()).map_err(BadValue::other);
    }
    let endpoint = format!("tcp/{text}");
    check_endpoint(&endpoint).map(|()| endpoint).map_err(|_| BadValue::Port(text.to_owned()))
}

fn is_word(text: &str, longest: usize, extra: &str) -> bool {
    (1..=longest).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || extra.contains(c))
}

pub(super) fn robot(text: &str) -> Result<String, BadValue> {
    if is_word(text, 64, "") {
        Ok(text.to_owned())
    } else {
        Err(BadValue::Form("a robot's name has 1 to 64 of the characters A-Z a-z 0-9 . _ -"))
    }
}

/// A configured prefix may have several parts (`site/omir`), all literal.
pub(super) fn prefix(text: &str) -> Result<String, BadValue> {
    if text.split('/').all(|part| is_word(part, 64, "@:")) {
        Ok(text.to_owned())
    } else {
        Err(BadValue::Form("expected words of A-Z a-z 0-9 . _ - separated by /"))
    }
}

pub(super) fn id(text: &str) -> Result<Id, BadValue> {
    Id::new(text).map_err(BadValue::other)
}

/// Ids are the name and `-` and a number of up to twenty digits.
pub(super) fn drive(text: &str) -> Result<String, BadValue> {
    if is_word(text, 100, ":") {
        Ok(text.to_owned())
    } else {
        Err(BadValue::Form("a drive's name has 1 to 100 of the characters A-Z a-z 0-9 . _ : -"))
    }
}

/// `Type/id`, or an id alone for the default type. Copied from a table, it may end in an ellipsis.
fn typed(text: &str, default: ResourceType) -> Result<Ref, BadValue> {
    let text = text.trim_end_matches(ids::ELLIPSIS);
    if text.contains('/') {
        text.parse().map_err(BadValue::other)
    } else {
        Ok(Ref::new(default, id(text)?))
    }
}

fn only(kind: ResourceType, text: &str) -> Result<Ref, BadValue> {
    let reference = typed(text, kind)?;
    if reference.kind == kind {
        Ok(reference)
    } else {
        Err(BadValue::other(format!("expected {kind}/id")))
    }
}

pub(super) fn reference(text: &str) -> Result<Ref, BadValue> {
    typed(text, ResourceType::MemoryRecord)
}

pub(super) fn entity(text: &str) -> Result<Ref, BadValue> {
    only(ResourceType::Entity, text)
}

pub(super) fn memory(text: &str) -> Result<Ref, BadValue> {
    only(ResourceType::MemoryRecord, text)
}
/// A stored memory, or a time.
#[derive(Debug, Clone)]
pub enum Moment {
    /// The time of that memory.
    Of(Ref),
    /// A time.
    At(TimeBound),
}

/// Reads a memory, as `Type/id`, or a time.
pub(super) fn moment(text: &str) -> Result<Moment, BadValue> {
    if text.contains('/') {
        return text.parse().map(Moment::Of).map_err(BadValue::other);
    }
    text.parse().map(Moment::At).map_err(BadValue::Moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_memory_or_a_time() {
        assert!(matches!(moment("MemoryRecord/cup"), Ok(Moment::Of(_))));
        assert!(matches!(moment("2026-11-25T20:15:00Z"), Ok(Moment::At(_))));
        assert!(moment("Cup/1").is_err());
        let error = moment("cup").unwrap_err().to_string();
        assert!(error.ends_with("; a memory is written as Type/id"), "{error}");
    }

    #[test]
    fn a_vector_is_read_from_the_line_and_from_a_file() {
        let read = |text: &str| text.parse::<VectorText>().map(|vector| vector.0);
        assert_eq!(read(" 1,-2.5e-3 ,3").unwrap(), "1,-2.5e-3,3");
        assert_eq!(read("AACAPwAAAMA=").unwrap(), "AACAPwAAAMA=");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "[0.5,\n 0.25]\n").unwrap();
        assert_eq!(read(&format!("@{}", file.path().display())).unwrap(), "0.5,0.25");
        assert!(read("1,two").unwrap_err().to_string().contains("`two`"));
        assert!(read("1,,2").is_err());
        assert!(read("@/does/not/exist").unwrap_err().to_string().contains("/does/not/exist"));
        assert!(read("[]").is_err());
        assert!(read(r#"{"vector": [1]}"#).unwrap_err().to_string().contains("base64"));
        let endless = read("@/dev/zero").unwrap_err().to_string();
        assert!(endless.contains("/dev/zero") && endless.contains("bytes"), "{endless}");
    }
}
