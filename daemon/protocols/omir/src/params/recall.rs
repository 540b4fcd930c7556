//! From the names of `docs/keys.md`, "Recall", to a [`Query`].
//!
//! Selector parameters and payload members come through the same door, as text; a payload's
//! arrays become comma-separated lists first.

use std::fmt::Display;
use std::str::FromStr;

use omir_core::geo::GeoPoint;
use omir_core::instant::Timestamp;
use omir_core::space::{self, Aabb, Center};
use omir_core::validate::closest;

use super::named::flag;
use super::time_range;
use crate::about;
use omird_embedding::parse_vector;
use omird_engine::{Code, CountBy, Error, MAX_LIMIT, Moment, Order, Query, QueryVector, Question};
use omird_router::About;

/// Microseconds between two visits where none are stated: half an hour.
const DEFAULT_GAP: i64 = 1_800_000_000;

/// Reads the parameters of recall on top of `base`. `now(…)` in a time range means `now`.
///
/// # Errors
/// `INVALID_QUERY`, naming the parameter, what was found and what is expected.
pub fn parse(base: Query, parameters: &[(String, String)], now: Timestamp) -> Result<Query, Error> {
    parse_of(&about::RECALL, base, parameters, now)
}

/// Reads parameters on top of `base`: those of `about`, which is recall or has a part of its parameters. `now(…)` in a time
/// range means `now`.
///
/// # Errors
/// `INVALID_QUERY`, naming the parameter, what was found and what is expected.
pub(crate) fn parse_of(
    about: &About,
    base: Query,
    parameters: &[(String, String)],
    now: Timestamp,
) -> Result<Query, Error> {
    let mut query = base;
    let mut gap = None;
    query.by_meaning = true;
    let (mut vector, mut model) = (None, None);
    for (name, value) in parameters {
        let name = name.as_str();
        // First, so that nothing is taken that the table does not tell of.
        if !about.names().any(|known| known == name) {
            return Err(unknown(about, name));
        }
        match name {
            "q" => {
                query.text = Question::parse(value).map_err(|error| Error::query(name, error))?;
            }
            "floor" => query.floor = unit(name, value)?,
            "before" => query.before = Some(moment(name, value)?),
            "after" => query.after = Some(moment(name, value)?),
            "count" => query.asks.count = flag(name, value)?,
            "countBy" => {
                query.asks.count_by = Some(CountBy::by_name(value).ok_or_else(|| {
                    let known = CountBy::WORDS.join("`, `");
                    Error::query(name, format!("{value:?} is none of `{known}`"))
                })?);
            }
            "cell" => {
                let cell = number(name, value)?;
                if cell <= 0.0 {
                    return Err(Error::query(name, "a cell has more than 0 metres"));
                }
                query.asks.cell = Some(cell);
            }
            "distinct" => query.asks.distinct = only(name, value, "entity")?,
            "unseenSince" => {
                query.asks.unseen_since = Some(instant(name, value)?);
            }
            "visits" => query.asks.visits = flag(name, value)?.then_some(DEFAULT_GAP),
            "visitGap" => {
                let seconds = number(name, value)?;
                if seconds < 0.0 {
                    return Err(Error::query(name, "a gap in seconds is not negative"));
                }
                gap = Some((seconds * 1e6) as i64);
            }
            "history" => query.asks.history = only(name, value, "place")?,
            "spread" => query.spread = flag(name, value)?,
            "exactTotal" => query.exact_total = flag(name, value)?,
            "vector" => {
                let read = parse_vector(value).map_err(|reason| Error::query(name, reason))?;
                vector = Some(read);
            }
            "model" => model = Some(value.as_str()).filter(|model| !model.is_empty()),
            "minCosine" => {
                let least = number(name, value)?;
                if !(-1.0..=1.0).contains(&least) {
                    return Err(Error::query(name, format!("{least} is outside [-1, 1]")));
                }
                query.min_cosine = Some(least);
            }
            "near" => query.near = Some(center(name, value)?),
            "frame" => {
                if value.is_empty() {
                    return Err(Error::query(name, "expected the name of a frame, such as `map`"));
                }
                query.frame = Some(value.clone());
            }
            "radius" => {
                let radius = space::radius(number(name, value)?);
                let wrong = || Error::query(name, "a radius in metres is not negative");
                query.radius = Some(radius.ok_or_else(wrong)?);
            }
            "box" => {
                let within = Aabb::from_coordinates(&numbers(name, value)?);
                query.within = Some(within.ok_or_else(|| {
                    Error::query(name, "expected six numbers: x0,y0,z0,x1,y1,z1")
                })?);
            }
            "geo" => query.geo = Some(geo(name, value)?),
            "_time" => {
                let range = time_range::parse(value, now);
                query.time = Some(range.map_err(|error| Error::query(name, error))?);
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
                query.as_of = Some(instant(name, value)?);
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
            _ => return Err(unknown(about, name)),
        }
    }
    finish(&mut query, gap, parameters)?;
    if model.is_some() && vector.is_none() {
        return Err(Error::query("model", "names the model of `vector`, which is missing"));
    }
    if let Some(vector) = vector {
        query.vector = Some(QueryVector::stated(model, vector));
    }
    if query.lacks_center() {
        return Err(Error::query("radius", "needs `near` or `geo` to be around"));
    }
    if query.order == Order::Distance && !query.has_center() {
        return Err(Error::query("order", "`distance` needs `near` or `geo` to be from"));
    }
    Ok(query)
}

/// Brings together what stands in several parameters.
fn finish(
    query: &mut Query,
    gap: Option<i64>,
    parameters: &[(String, String)],
) -> Result<(), Error> {
    let asks = &mut query.asks;
    if let Some(gap) = gap {
        if asks.visits.is_none() {
            return Err(Error::query("visitGap", "needs `visits=true`"));
        }
        asks.visits = Some(gap);
    }
    if asks.cell.is_some() && asks.count_by != Some(CountBy::Place) && !asks.history {
        return Err(Error::query("cell", "needs `countBy=place` or `history=place`"));
    }
    if asks.history && query.entities.is_empty() {
        return Err(Error::query("history", "needs `entity`: the things whose places it tells"));
    }
    if (asks.count || asks.count_by.is_some()) && (asks.distinct || asks.unseen_since.is_some()) {
        let name = if asks.count { "count" } else { "countBy" };
        return Err(Error::query(
            name,
            "gives no hits, and goes without `distinct` and `unseenSince`",
        ));
    }
    // A list of groups that ends after ten would pass for all of them.
    let has_groups = asks.count_by.is_some() || asks.distinct || asks.unseen_since.is_some();
    if has_groups && !parameters.iter().any(|(name, _)| name == "limit") {
        query.limit = Some(MAX_LIMIT);
    }
    Ok(())
}

fn instant(name: &str, value: &str) -> Result<Timestamp, Error> {
    Timestamp::parse(value)
        .map_err(|error| Error::query(name, format!("{value:?} is no instant: {error}")))
}

fn moment(name: &str, value: &str) -> Result<Moment, Error> {
    if value.contains('/') {
        return super::reference(name, value).map(Moment::Of);
    }
    Timestamp::parse(value).map(Moment::At).map_err(|error| {
        Error::query(name, format!("{value:?} is neither Type/id nor an instant: {error}"))
    })
}

fn only(name: &str, value: &str, known: &str) -> Result<bool, Error> {
    if value == known {
        return Ok(true);
    }
    Err(Error::query(name, format!("{value:?} is not `{known}`, which is all there is")))
}

/// The refusal of a parameter that is not in the table, with the nearest name that is.
fn unknown(about: &About, name: &str) -> Error {
    let hint = closest(name, about.names()).map_or_else(
        || format!("known are {}", about.names().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Error::at(Code::InvalidQuery, format!("/{name}"), format!("unknown parameter `{name}`: {hint}"))
}

fn center(name: &str, value: &str) -> Result<Center, Error> {
    Center::from_coordinates(&numbers(name, value)?)
        .ok_or_else(|| Error::query(name, "expected two or three numbers: x,y or x,y,z in metres"))
}

fn geo(name: &str, value: &str) -> Result<GeoPoint, Error> {
    GeoPoint::from_coordinates(&numbers(name, value)?).ok_or_else(|| {
        let expected = "expected lat,lon or lat,lon,alt: degrees (latitude first) and metres";
        Error::query(name, format!("{value:?} is no point on the earth; {expected}"))
    })
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
        for name in about::RECALL.names() {
            if let Err(error) = read(&[(name, "1")]) {
                assert!(!error.message.contains("unknown"), "{name}: {error}");
            }
        }
        assert!(about::RECALL.parameters.starts_with(about::EXPORT.parameters));
        assert_eq!(about::EXPORT.parameters, about::DOCUMENT.parameters);
    }

    #[test]
    fn an_unknown_parameter_is_named_and_corrected() {
        let error = read(&[("raduis", "2")]).unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, "/raduis"));
        assert!(error.message.contains("did you mean `radius`"), "{error}");
        let error = read(&[("limits", "2")]).unwrap_err();
        assert!(error.message.contains("did you mean `limit`"), "{error}");
        let error = read(&[("z", "2")]).unwrap_err();
        assert!(error.message.contains("known are "), "{error}");
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
            ("floor", "1.1"),
            ("before", "MemoryRecord/"),
            ("after", "yesterday"),
            ("countBy", "room"),
            ("cell", "0"),
            ("cell", "2"),
            ("distinct", "place"),
            ("unseenSince", "today"),
            ("visitGap", "60"),
            ("history", "place"),
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
