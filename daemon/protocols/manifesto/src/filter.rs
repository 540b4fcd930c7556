//! The filters of a selection or a snapshot, by the names of a recall (`docs/keys.md`).

use std::fmt::Display;
use std::ops::Bound;
use std::str::FromStr;

use omir_core::geo::GeoPoint;
use omir_core::instant::Timestamp;
use omir_core::space::{self, Aabb, Center};
use omir_core::value::Value;
use omird_engine::{Query, TimeRange};

use crate::failure::Failure;

/// Filters of place, time and weight, which Worlds have.
pub(crate) const OF_WORLDS: &[&str] = &["near", "frame", "radius", "box", "geo", "from", "to"];
/// Filters of live memories.
pub(crate) const OF_MEMORIES: &[&str] = &[
    "near",
    "frame",
    "radius",
    "box",
    "geo",
    "from",
    "to",
    "q",
    "type",
    "kind",
    "tier",
    "experienceType",
    "entity",
    "label",
    "minImportance",
    "minConfidence",
];

/// Reads filters on top of `query`. `path` is where they stand in the request.
pub(crate) fn read(
    mut query: Query,
    value: &Value,
    path: &str,
    known: &[&str],
) -> Result<Query, Failure> {
    let Some(map) = value.as_object() else {
        let message = format!("expected an object of filters, found {}", value.kind_name());
        return Err(Failure::invalid(path, message));
    };
    let (mut from, mut to) = (Bound::Unbounded, Bound::Unbounded);
    for (name, value) in map.iter() {
        let at = Filter { path: omir_core::pointer::join(path, name), value };
        if !known.contains(&name) {
            return Err(at.expected(&format!("one of {}", known.join(", "))));
        }
        match name {
            "near" => {
                let near = Center::from_coordinates(&at.numbers()?);
                query.near =
                    Some(near.ok_or_else(|| at.expected("[x, y] or [x, y, z] in metres"))?);
            }
            "frame" => query.frame = Some(at.text()?),
            "radius" => {
                let radius = at.value.as_f64().and_then(space::radius);
                let expected = || at.expected("a number of metres that is not negative");
                query.radius = Some(radius.ok_or_else(expected)?);
            }
            "box" => {
                let within = Aabb::from_coordinates(&at.numbers()?);
                let expected = || at.expected("six numbers: x0, y0, z0, x1, y1, z1");
                query.within = Some(within.ok_or_else(expected)?);
            }
            "geo" => {
                let point = GeoPoint::from_coordinates(&at.numbers()?);
                let expected = "[lat, lon] or [lat, lon, alt]: a point on the earth, in degrees";
                query.geo = Some(point.ok_or_else(|| at.expected(expected))?);
            }
            "from" => from = Bound::Included(at.instant()?),
            "to" => to = Bound::Included(at.instant()?),
            "q" => query.text = Some(at.text()?.into()),
            "type" => query.types = at.words()?,
            "kind" => query.kinds = at.words()?,
            "tier" => query.tiers = at.words()?,
            "experienceType" => query.experience_types = at.words()?,
            "entity" => query.entities = at.words()?,
            "label" => query.labels = at.words()?,
            "minImportance" => query.min_importance = Some(at.share()?),
            "minConfidence" => query.min_confidence = Some(at.share()?),
            _ => return Err(at.expected("a filter that is served here")),
        }
    }
    if query.lacks_center() {
        return Err(Failure::invalid(path, "`radius` needs `near` or `geo` to be around"));
    }
    if (from, to) != (Bound::Unbounded, Bound::Unbounded) {
        query.time = Some(TimeRange { from, to });
    }
    Ok(query)
}

/// A filter being read.
struct Filter<'a> {
    path: String,
    value: &'a Value,
}

impl Filter<'_> {
    fn expected(&self, what: &str) -> Failure {
        Failure::invalid(&self.path, format!("expected {what}"))
    }

    fn text(&self) -> Result<String, Failure> {
        let text = self.value.as_str().filter(|text| !text.trim().is_empty());
        text.map(str::to_owned).ok_or_else(|| self.expected("a text that is not empty"))
    }

    fn share(&self) -> Result<f64, Failure> {
        let share = self.value.as_f64().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| self.expected("a number from 0 to 1"))
    }

    fn numbers(&self) -> Result<Vec<f64>, Failure> {
        let finite = |value: &Value| value.as_f64().filter(|number| number.is_finite());
        let numbers = self.value.as_array().and_then(|all| all.iter().map(finite).collect());
        numbers.ok_or_else(|| self.expected("a list of numbers"))
    }

    fn instant(&self) -> Result<Timestamp, Failure> {
        let instant = self.value.as_str().and_then(|text| Timestamp::parse(text).ok());
        instant.ok_or_else(|| self.expected("an instant such as 2026-06-01T12:00:00Z"))
    }

    /// A word, or a list of them.
    fn words<T: FromStr<Err: Display>>(&self) -> Result<Vec<T>, Failure> {
        let all = self.value.as_array().unwrap_or(std::slice::from_ref(self.value));
        let word = |value: &Value| {
            let text = value.as_str().ok_or_else(|| self.expected("a word, or a list of words"))?;
            text.parse().map_err(|error| Failure::invalid(&self.path, format!("{text:?}: {error}")))
        };
        all.iter().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;
    use omir_core::json;

    use super::*;

    fn of(text: &str) -> Result<Query, Failure> {
        let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        read(Query::default(), &value, "/filter", OF_MEMORIES)
    }

    #[test]
    fn each_filter_is_read_or_refused_where_it_stands() {
        let query = of(r#"{"near":[1,2.5],"radius":3,"frame":"map","from":"2026-06-01T00:00:00Z","type":["Entity","Episode"],"kind":"plan"}"#).unwrap();
        assert_eq!((query.near, query.radius), (Some(Center::Plane { x: 1.0, y: 2.5 }), Some(3.0)));
        assert_eq!((query.types.len(), query.kinds.len(), query.time.is_some()), (2, 1, true));
        for (text, path) in [
            ("7", "/filter"),
            (r#"{"raduis":1}"#, "/filter/raduis"),
            (r#"{"near":[1]}"#, "/filter/near"),
            (r#"{"near":[1,"2"]}"#, "/filter/near"),
            (r#"{"near":[1,1e999]}"#, "/filter/near"),
            (r#"{"radius":-1,"near":[1,2]}"#, "/filter/radius"),
            (r#"{"radius":1}"#, "/filter"),
            (r#"{"box":[1,2,3]}"#, "/filter/box"),
            (r#"{"geo":[91,0]}"#, "/filter/geo"),
            (r#"{"from":"yesterday"}"#, "/filter/from"),
            (r#"{"q":" "}"#, "/filter/q"),
            (r#"{"type":"Thing"}"#, "/filter/type"),
            (r#"{"entity":[7]}"#, "/filter/entity"),
            (r#"{"minImportance":2}"#, "/filter/minImportance"),
        ] {
            assert_eq!(of(text).unwrap_err().path, path, "{text}");
        }
        for name in OF_WORLDS {
            assert!(OF_MEMORIES.contains(name));
        }
    }
}
