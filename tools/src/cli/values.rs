//! Option values: checked once, here, and typed from then on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use omir_core::quantity::parse_duration;
use omir_core::reference::{Id, Ref, ResourceType};
use omird::service::check_endpoint;

use crate::ids;

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

/// Metres between poses: 0 keeps every pose, infinity sets no distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing(pub f64);

impl FromStr for Position {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match *numbers(text)? {
            [x, y] => Ok(Self([x, y, 0.0])),
            [x, y, z] => Ok(Self([x, y, z])),
            _ => Err("expected two or three numbers: x,y or x,y,z".to_owned()),
        }
    }
}

impl FromStr for Planar {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = numbers(text)?;
        match numbers.len() {
            2 | 3 => Ok(Self(numbers)),
            _ => Err("expected two or three numbers: x,y or x,y,z".to_owned()),
        }
    }
}

impl FromStr for Bounds {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        <[f64; 6]>::try_from(numbers(text)?)
            .map(Self)
            .map_err(|_| "expected six numbers: x0,y0,z0,x1,y1,z1".to_owned())
    }
}

impl FromStr for Orientation {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let q = <[f64; 4]>::try_from(numbers(text)?)
            .map_err(|_| "expected four numbers: qx,qy,qz,qw".to_owned())?;
        crate::trajectory::unit_quaternion(q)
            .map(Self)
            .ok_or_else(|| "a zero quaternion is no orientation".to_owned())
    }
}

impl FromStr for Geo {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (lat, lon, alt) = match *numbers(text)? {
            [lat, lon] => (lat, lon, None),
            [lat, lon, alt] => (lat, lon, Some(alt)),
            _ => return Err("expected lat,lon or lat,lon,alt".to_owned()),
        };
        if !(-90.0..=90.0).contains(&lat) {
            return Err(format!("latitude {lat} is not within -90 and 90 degrees"));
        }
        if !(-180.0..=180.0).contains(&lon) {
            return Err(format!("longitude {lon} is not within -180 and 180 degrees"));
        }
        Ok(Self { lat, lon, alt })
    }
}

impl FromStr for Spacing {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(metres) if metres >= 0.0 => Ok(Self(metres)),
            _ => Err("expected metres, 0 or more, or inf".to_owned()),
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

pub(super) fn numbers(text: &str) -> Result<Vec<f64>, String> {
    let separated = "; numbers are separated by commas, as in 4.2,-1";
    text.split(',').map(|part| finite(part).map_err(|why| why + separated)).collect()
}

pub(super) fn finite(text: &str) -> Result<f64, String> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(format!("`{text}` is not a finite number")),
        Err(_) if text.is_empty() => Err("a number is missing".to_owned()),
        Err(_) => Err(format!("`{text}` is not a number")),
    }
}

pub(super) fn unit(text: &str) -> Result<f64, String> {
    finite(text).and_then(|number| {
        if (0.0..=1.0).contains(&number) {
            Ok(number)
        } else {
            Err("expected a number from 0 to 1".to_owned())
        }
    })
}

/// Something: a shell makes nothing of a variable that is not set.
pub(super) fn said(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("there is nothing to remember in it".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    finite(text).and_then(|number| {
        if number > 0.0 { Ok(number) } else { Err("expected a number above 0".to_owned()) }
    })
}

pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    finite(text).and_then(|number| {
        if number >= 0.0 { Ok(number) } else { Err("expected 0 or more".to_owned()) }
    })
}

/// A time, in words or as a number of `unit`s.
fn time(text: &str, unit: Duration) -> Result<f64, String> {
    if let Ok(number) = text.trim().parse::<f64>() {
        return finite(text).map(|_| number * unit.as_secs_f64());
    }
    parse_duration(text).map(|time| time.as_secs_f64()).map_err(|why| why.to_string())
}

/// Seconds, or a time in words, up to a day: nobody waits longer, and sums of it cannot overflow.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    match time(text, SECOND)? {
        seconds if seconds < 0.0 => Err("expected 0 or more".to_owned()),
        seconds if seconds > 86_400.0 => Err("expected at most a day".to_owned()),
        seconds => Ok(Duration::from_secs_f64(seconds)),
    }
}

/// More seconds than none, or a time in words.
pub(super) fn pause(text: &str) -> Result<f64, String> {
    above_none(time(text, SECOND)?)
}

/// More hours than none, or a time in words.
pub(super) fn hours(text: &str) -> Result<f64, String> {
    above_none(time(text, HOUR)? / HOUR.as_secs_f64())
}

fn above_none(time: f64) -> Result<f64, String> {
    if time > 0.0 && time.is_finite() {
        Ok(time)
    } else {
        Err("expected a time above 0".to_owned())
    }
}

/// How many hits a recall may bring.
pub(super) fn limit(text: &str) -> Result<usize, String> {
    text.parse::<usize>().ok().filter(|limit| (1..=1000).contains(limit)).ok_or_else(|| {
        format!("`{text}` is no number from 1 to 1000; --offset shows the next ones")
    })
}

/// An endpoint of Zenoh's; `host:port` alone means TCP.
pub(super) fn endpoint(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("an endpoint is missing, such as tcp/127.0.0.1:7448".to_owned());
    }
    if text.contains('/') {
        return check_endpoint(text).map(|()| text.to_owned());
    }
    let endpoint = format!("tcp/{text}");
    check_endpoint(&endpoint).map(|()| endpoint).map_err(|_| {
        let host = text.split(':').next().unwrap_or_default();
        format!("`{text}` names no port from 0 to 65535; write it as in {host}:7448")
    })
}

fn is_word(text: &str, longest: usize, extra: &str) -> bool {
    (1..=longest).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || extra.contains(c))
}

pub(super) fn robot(text: &str) -> Result<String, String> {
    if is_word(text, 64, "") {
        Ok(text.to_owned())
    } else {
        Err("a robot's name has 1 to 64 of the characters A-Z a-z 0-9 . _ -".to_owned())
    }
}

/// A configured prefix may have several parts (`site/omir`), all literal.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    if text.split('/').all(|part| is_word(part, 64, "@:")) {
        Ok(text.to_owned())
    } else {
        Err("expected words of A-Z a-z 0-9 . _ - separated by /".to_owned())
    }
}

pub(super) fn id(text: &str) -> Result<Id, String> {
    Id::new(text).map_err(|why| why.to_string())
}

/// Ids are the name and `-` and a number of up to twenty digits.
pub(super) fn drive(text: &str) -> Result<String, String> {
    if is_word(text, 100, ":") {
        Ok(text.to_owned())
    } else {
        Err("a drive's name has 1 to 100 of the characters A-Z a-z 0-9 . _ : -".to_owned())
    }
}

/// `Type/id`, or an id alone for the default type. Copied from a table, it may end in an ellipsis.
fn typed(text: &str, default: ResourceType) -> Result<Ref, String> {
    let text = text.trim_end_matches(ids::ELLIPSIS);
    if text.contains('/') {
        text.parse().map_err(|why| format!("{why}"))
    } else {
        Ok(Ref::new(default, id(text)?))
    }
}

fn only(kind: ResourceType, text: &str) -> Result<Ref, String> {
    let reference = typed(text, kind)?;
    if reference.kind == kind { Ok(reference) } else { Err(format!("expected {kind}/id")) }
}

pub(super) fn reference(text: &str) -> Result<Ref, String> {
    typed(text, ResourceType::MemoryRecord)
}

pub(super) fn entity(text: &str) -> Result<Ref, String> {
    only(ResourceType::Entity, text)
}

pub(super) fn memory(text: &str) -> Result<Ref, String> {
    only(ResourceType::MemoryRecord, text)
}
