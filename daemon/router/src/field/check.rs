//! Values held against fields: what is wrong, where, and what is expected.

use omir_core::code::Code;
use omir_core::pointer::{join, join_index};
use omir_core::value::{Map, Value};
use omird_engine::Error;

use super::{Field, Shape};

/// Checks the members of an object against its fields. A null counts as left out.
///
/// # Errors
/// `INVALID_QUERY`: which member is wrong, what was found and what is expected.
pub fn check(fields: &[Field], members: &Map) -> Result<(), Error> {
    check_at("", fields, members)
}

fn check_at(place: &str, fields: &[Field], members: &Map) -> Result<(), Error> {
    for (name, value) in members.iter() {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            let message = format!("unknown argument `{name}`: known are {}", known.join(", "));
            return Err(refused(&join(place, name), message));
        };
        if !value.is_null() {
            field.shape.check(&join(place, name), value)?;
        }
    }
    let is_missing = |field: &&Field| members.get(field.name).is_none_or(Value::is_null);
    match fields.iter().filter(|field| field.is_required).find(is_missing) {
        Some(field) => {
            Err(refused(&join(place, field.name), format!("is missing: {}", field.about)))
        }
        None => Ok(()),
    }
}

fn refused(place: &str, message: String) -> Error {
    Error::at(Code::InvalidQuery, place, message)
}

impl Shape {
    /// Checks the value at a place, as a JSON Pointer has it.
    fn check(&self, place: &str, value: &Value) -> Result<(), Error> {
        let refuse = |expected: String| {
            let found = value.kind_name();
            Err(refused(place, format!("expected {expected}, found {found}")))
        };
        match (self, value) {
            (Self::Text(most), Value::Text(text)) => {
                let count = text.chars().count();
                if count > *most {
                    let message = format!("{count} characters are more than {most}");
                    return Err(refused(place, message));
                }
                Ok(())
            }
            (Self::Form(_), Value::Text(_))
            | (Self::Flag, Value::Bool(_))
            | (Self::Named(_), _) => Ok(()),
            (Self::OneOf(words), Value::Text(text)) => match words.contains(&text.as_str()) {
                true => Ok(()),
                false => {
                    let known = words.join("`, `");
                    Err(refused(place, format!("{text:?} is none of `{known}`")))
                }
            },
            (Self::Number(least, most), Value::Number(number)) => {
                let number = number.as_f64();
                match number.is_finite() && (*least..=*most).contains(&number) {
                    true => Ok(()),
                    false => Err(refused(place, outside(number, *least, *most))),
                }
            }
            (Self::Integer(least, most), Value::Number(number)) => match number.as_i64() {
                Some(whole) if (*least..=*most).contains(&whole) => Ok(()),
                _ => {
                    let message = format!("{number} is no whole number from {least} to {most}");
                    Err(refused(place, message))
                }
            },
            (Self::List(shape, least, most), Value::Array(items)) => {
                let count = items.len();
                if count > *most {
                    return Err(refused(place, format!("{count} are more than {most}")));
                }
                if count < *least {
                    return Err(refused(place, format!("{count} are fewer than {least}")));
                }
                (0..)
                    .zip(items)
                    .try_for_each(|(index, item)| shape.check(&join_index(place, index), item))
            }
            (Self::Object(fields), Value::Object(members)) => check_at(place, fields, members),
            (Self::Anything, Value::Object(_)) => Ok(()),
            (Self::Text(_) | Self::Form(_), _) => refuse("a text".to_owned()),
            (Self::OneOf(words), _) => refuse(format!("one of `{}`", words.join("`, `"))),
            (Self::Number(..), _) => refuse("a number".to_owned()),
            (Self::Integer(..), _) => refuse("a whole number".to_owned()),
            (Self::Flag, _) => refuse("`true` or `false`".to_owned()),
            (Self::List(..), _) => refuse("a list".to_owned()),
            (Self::Object(_) | Self::Anything, _) => refuse("an object".to_owned()),
        }
    }
}

fn outside(number: f64, least: f64, most: f64) -> String {
    match (least.is_finite(), most.is_finite()) {
        (true, true) if least == f64::MIN_POSITIVE => {
            format!("{number} is not above 0, at most {most}")
        }
        (true, true) => format!("{number} is not from {least} to {most}"),
        (true, false) => format!("{number} is less than {least}"),
        (false, true) => format!("{number} is more than {most}"),
        (false, false) => format!("{number} is no finite number"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ANY_NUMBER;
    use super::*;
    use omir_core::{decode::Limits, json};

    const INNER: &[Field] = &[Field::new("x", ANY_NUMBER, "Metres.").required()];
    const FIELDS: &[Field] = &[
        Field::new("text", Shape::Text(5), "Words.").required(),
        Field::new("share", Shape::Number(0.0, 1.0), ""),
        Field::new("limit", Shape::Integer(1, 50), ""),
        Field::new("open", Shape::Number(0.0, f64::INFINITY), ""),
        Field::new("order", Shape::OneOf(&["latest", "earliest"]), ""),
        Field::new("entities", Shape::List(&Shape::Form("^Entity/"), 1, 2), ""),
        Field::new("place", Shape::Object(INNER), ""),
        Field::new("weight", Shape::Number(f64::MIN_POSITIVE, 10.0), ""),
        Field::new("force", Shape::Flag, ""),
    ];

    fn object(text: &str) -> Map {
        match json::from_slice(text.as_bytes(), &Limits::default()).unwrap() {
            Value::Object(map) => map,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_fits_is_taken() {
        for text in [
            r#"{"text":"a cup"}"#,
            r#"{"text":"","share":0,"limit":50,"order":"latest","entities":["Entity/a"]}"#,
            r#"{"text":"é","place":{"x":-1.5},"force":false,"open":1e9,"share":null}"#,
        ] {
            check(FIELDS, &object(text)).unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_what_is_expected() {
        for (text, path, expected) in [
            ("{}", "/text", "is missing: Words."),
            (r#"{"text":null}"#, "/text", "is missing"),
            (r#"{"text":5}"#, "/text", "expected a text"),
            (r#"{"text":"a cup."}"#, "/text", "6 characters are more than 5"),
            (r#"{"text":"a","share":1.5}"#, "/share", "not from 0 to 1"),
            (r#"{"text":"a","open":-1}"#, "/open", "-1 is less than 0"),
            (r#"{"text":"a","limit":2.5}"#, "/limit", "no whole number from 1 to 50"),
            (r#"{"text":"a","limit":"5"}"#, "/limit", "expected a whole number"),
            (r#"{"text":"a","order":"newest"}"#, "/order", "none of `latest`, `earliest`"),
            (r#"{"text":"a","entities":"Entity/a"}"#, "/entities", "expected a list"),
            (r#"{"text":"a","entities":[1]}"#, "/entities/0", "expected a text"),
            (r#"{"text":"a","entities":["","",""]}"#, "/entities", "3 are more than 2"),
            (r#"{"text":"a","entities":[]}"#, "/entities", "0 are fewer than 1"),
            (r#"{"text":"a","weight":0}"#, "/weight", "0 is not above 0, at most 10"),
            (r#"{"text":"a","place":{}}"#, "/place/x", "is missing"),
            (r#"{"text":"a","force":1}"#, "/force", "expected `true` or `false`"),
            (r#"{"text":"a","lmit":1}"#, "/lmit", "known are text, share, limit"),
        ] {
            let error = check(FIELDS, &object(text)).unwrap_err();
            assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, path), "{text}");
            assert!(error.message.contains(expected), "{text}: {error}");
        }
    }
}
