//! Option values: checked once, here, and typed from then on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use omir_core::reference::{Id, Ref, ResourceType};

use crate::ids;

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
    text.split(',').map(finite).collect()
}

pub(super) fn finite(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{}` is not a finite number", text.trim())),
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

/// Seconds up to a day: nobody waits longer, and sums of it cannot overflow.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    not_negative(text).and_then(|number| {
        if number <= 86_400.0 {
            Ok(Duration::from_secs_f64(number))
        } else {
            Err("expected at most 86400 seconds".to_owned())
        }
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
