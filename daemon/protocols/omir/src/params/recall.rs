//! From the names of `docs/keys.md`, "Recall", to a [`Query`].
//!
//! Selector parameters and payload members come through the same door, as text; a payload's
//! arrays become comma-separated lists first.

use std::fmt::Display;
use std::str::FromStr;

use omir_core::geo::GeoPoint;
use omir_core::instant::Timestamp;
use omir_core::space::{Aabb, Center};

use super::named::flag;
use super::time_range;
use crate::about;
use omird_engine::{Code, Error, MAX_LIMIT, Order, Query};

/// Every parameter a recall knows.
fn names() -> impl Iterator<Item = &'static str> {
    about::RECALL.names()
}

/// Reads parameters on top of `base`. `now(…)` in a time range means `now`.
///
/// # Errors
/// `INVALID_QUERY`, naming the parameter, what was found and what is expected.
pub fn parse(base: Query, parameters: &[(String, String)], now: Timestamp) -> Result<Query, Error> {
    let mut query = base;
    for (name, value) in parameters {
        let name = name.as_str();
        // First, so that nothing is taken that the table does not tell of.
        if !names().any(|known| known == name) {
            return Err(unknown(name));
        }
        match name {
            "q" => query.text = Some(value.clone()).filter(|text| !text.trim().is_empty()),
            "near" => query.near = Some(center(name, value)?),
            "frame" => {
                if value.is_empty() {
                    return Err(Error::query(name, "expected the name of a frame, such as `map`"));
                }
                query.frame = Some(value.clone());
            }
            "radius" => {
                let radius = number(name, value)?;
                if radius < 0.0 {
                    return Err(Error::query(name, "a radius in metres is not negative"));
                }
                query.radius = Some(radius);
            }
            "box" => {
                let [x0, y0, z0, x1, y1, z1] = numbers(name, value)?[..] else {
                    return Err(Error::query(name, "expected six numbers: x0,y0,z0,x1,y1,z1"));
                };
                query.within = Some(Aabb::new([x0, y0, z0].into(), [x1, y1, z1].into()));
            }
            "geo" => query.geo = Some(geo(name, value)?),
            "_time" => {
                let span = time_range::parse(value, now);
                query.time = Some(span.map_err(|error| Error::query(name, error))?);
            }
            "type" => query.types = list(name, value)?,
            "kind" => query.kinds = list(name, value)?,
            "tier" => query.tiers = list(name, value)?,
            "experienceType" => query.experience_types = list(name, value)?,
            "entity" => query.entities = list(name, value)?,
            "label" => query.labels = list(name, value)?,
            "minImportance" => query.min_importance = Some(unit(name, value)?),
            "minConfidence" => query.min_confidence = Some(unit(name, value)?),
            "minRetrievability" => query.min_retrievability = Some(unit(name, value)?),
            "includeExpired" => query.include_expired = flag(name, value)?,
            "includeIntentions" => query.include_intentions = flag(name, value)?,
            "includeForgotten" => query.include_forgotten = flag(name, value)?,
            "asOf" => {
                let at = Timestamp::parse(value).map_err(|error| {
                    Error::query(name, format!("{value:?} is no instant: {error}"))
                })?;
                query.as_of = Some(at);
            }
            "order" => {
                query.order = Order::by_name(value).ok_or_else(|| {
                    let known = Order::WORDS.join("`, `");
                    Error::query(name, format!("{value:?} is none of `{known}`"))
                })?;
            }
            "limit" => {
                let limit: usize = whole(name, value)?;
                if limit > MAX_LIMIT {
                    return Err(Error::query(
                        name,
                        format!("{limit} is more than {MAX_LIMIT}; page with `offset`"),
                    ));
                }
                query.limit = Some(limit);
            }
            "offset" => query.offset = whole(name, value)?,
            "touch" => query.touch = flag(name, value)?,
            "explain" => query.explain = flag(name, value)?,
            _ => return Err(unknown(name)),
        }
    }
    if query.radius.is_some() && query.near.is_none() && query.geo.is_none() {
        return Err(Error::query("radius", "needs `near` or `geo` to be around"));
    }
    if query.order == Order::Distance && query.near.is_none() && query.geo.is_none() {
        return Err(Error::query("order", "`distance` needs `near` or `geo` to be from"));
    }
    Ok(query)
}

/// The refusal of a parameter nobody knows, with the nearest name that somebody does.
fn unknown(name: &str) -> Error {
    let hint =
        names().find(|known| known.eq_ignore_ascii_case(name) || is_near(known, name)).map_or_else(
            || format!("known are {}", names().collect::<Vec<_>>().join(", ")),
            |known| format!("did you mean `{known}`?"),
        );
    Error::at(Code::InvalidQuery, format!("/{name}"), format!("unknown parameter `{name}`: {hint}"))
}

/// Returns true if two names differ by one letter that was added, left out or mistaken.
fn is_near(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    let same = short.iter().zip(long.iter()).take_while(|(x, y)| x == y).count();
    match long.len() - short.len() {
        0 => short[same..].iter().skip(1).eq(long[same..].iter().skip(1)),
        1 => short[same..] == long[same + 1..],
        _ => false,
    }
}

fn center(name: &str, value: &str) -> Result<Center, Error> {
    match numbers(name, value)?[..] {
        [x, y] => Ok(Center::Plane { x, y }),
        [x, y, z] => Ok(Center::Space { x, y, z }),
        _ => Err(Error::query(name, "expected two or three numbers: x,y or x,y,z in metres")),
    }
}

fn geo(name: &str, value: &str) -> Result<GeoPoint, Error> {
    let expected = "expected lat,lon or lat,lon,alt: degrees (latitude first) and metres";
    let (lat, lon, alt) = match numbers(name, value)?[..] {
        [lat, lon] => (lat, lon, None),
        [lat, lon, alt] => (lat, lon, Some(alt)),
        _ => return Err(Error::query(name, expected)),
    };
    GeoPoint::new(lat, lon, alt)
        .map_err(|_| Error::query(name, format!("{value:?} is no point on the earth; {expected}")))
}

fn number(name: &str, value: &str) -> Result<f64, Error> {
    match value.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(Error::query(name, format!("{value:?} is no number"))),
    }
}

fn numbers(name: &str, value: &str) -> Result<Vec<f64>, Error> {
    value.split(',').map(|part| number(name, part)).collect()
}

fn unit(name: &str, value: &str) -> Result<f64, Error> {
    let number = number(name, value)?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(Error::query(name, format!("{number} is outside [0, 1]")))
    }
}

fn whole(name: &str, value: &str) -> Result<usize, Error> {
    value
        .trim()
        .parse()
        .map_err(|_| Error::query(name, format!("{value:?} is no whole number from 0")))
}

fn list<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<Vec<T>, Error> {
    value
        .split(',')
        .map(|part| {
            let part = part.trim();
            part.parse().map_err(|error| Error::query(name, format!("{part:?}: {error}")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Query, Error> {
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        parse(Query::default(), &pairs, Timestamp::EPOCH)
    }

    /// Of the table, which is held against docs/keys.md where it is.
    #[test]
    fn every_listed_name_is_known() {
        for name in names() {
            if let Err(error) = read(&[(name, "1")]) {
                assert!(!error.message.contains("unknown"), "{name}: {error}");
            }
        }
        assert_eq!(about::RECALL.parameters, about::EXPORT.parameters);
        assert_eq!(about::RECALL.parameters, about::DOCUMENT.parameters);
    }

    #[test]
    fn an_unknown_parameter_is_named_and_corrected() {
        let error = read(&[("raduis", "2")]).unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, "/raduis"));
        let error = read(&[("limits", "2")]).unwrap_err();
        assert!(error.message.contains("did you mean `limit`"), "{error}");
    }

    #[test]
    fn bad_values_say_what_is_expected() {
        for (name, value) in [
            ("near", "1"),
            ("near", "1,nan"),
            ("radius", "-1"),
            ("radius", "1"),
            ("box", "1,2,3"),
            ("geo", "91,0"),
            ("limit", "1001"),
            ("limit", "-1"),
            ("minImportance", "1.5"),
            ("type", "Thing"),
            ("entity", "Entity/"),
            ("asOf", "yesterday"),
            ("touch", "maybe"),
            ("order", "newest"),
            ("order", "distance"),
            ("frame", ""),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert_eq!(error.code, Code::InvalidQuery, "{name}={value}");
            assert_eq!(error.path, format!("/{name}"), "{name}={value}");
        }
    }

    #[test]
    fn a_payload_means_the_same_as_parameters() {
        let payload = omir_core::json::from_slice(
            br#"{"q":"dock","near":[1,2.5],"radius":3,"explain":true,"type":["Entity","Episode"]}"#,
            &omir_core::decode::Limits::default(),
        )
        .unwrap();
        let mut members = Vec::new();
        crate::params::add_members(&mut members, &payload).unwrap();
        let from_payload = parse(Query::default(), &members, Timestamp::EPOCH).unwrap();
        let from_selector = read(&[
            ("q", "dock"),
            ("near", "1,2.5"),
            ("radius", "3"),
            ("explain", ""),
            ("type", "Entity,Episode"),
        ])
        .unwrap();
        assert_eq!(from_payload, from_selector);
    }
}
