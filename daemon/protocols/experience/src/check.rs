//! The check of a message against a closed shape: the one validator of this protocol.
//!
//! The shapes of [`crate::shapes`] say what the JSON Schemas of the contract say, and bounds of our own beside it. A property
//! test holds both against each other. The first fault is named by its JSON Pointer (RFC 6901).

use omir_core::instant::Timestamp;
use omir_core::pointer;
use omir_core::value::{Map, Value};

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A text of at least and at most so many bytes.
    Text(usize, usize),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A whole number of at least this, and at most that where it is bounded: `1.0` is one.
    Whole(u64, Option<u64>),
    /// A number from 0 to 1.
    Share,
    /// `true` or `false`.
    Flag,
    /// A date-time of RFC 3339.
    Instant,
    /// A list of at most so many.
    List(&'static Shape, usize),
    /// An object of these members and no others.
    Object(&'static [Member]),
    /// Any object.
    Open,
}

/// A member of an object.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) is_required: bool,
}

/// A member that must be there.
pub(crate) const fn need(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, is_required: true }
}

/// A member that may be there.
pub(crate) const fn may(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, is_required: false }
}

/// A place where a message breaks its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// JSON Pointer; empty for the message itself.
    pub(crate) path: String,
    /// The finding and what is expected, for a person.
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }

    /// The same fault seen from the container that holds the value under `token`.
    fn inside(mut self, token: &str) -> Self {
        self.path = pointer::join("", token) + &self.path;
        self
    }
}

impl Shape {
    /// Checks a value. The recursion is as deep as the shape, and a shape is a static table.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Fault> {
        let expected = |what: &str| {
            Err(Fault::new("", format!("expected {what}, found {}", value.kind_name())))
        };
        match self {
            Self::Text(least, most) => match value.as_str() {
                None => expected("a string"),
                Some(text) if text.len() < *least => Err(Fault::new("", "is empty")),
                Some(text) if text.len() > *most => {
                    let found = text.len();
                    Err(Fault::new("", format!("{found} bytes are more than the {most} allowed")))
                }
                Some(_) => Ok(()),
            },
            Self::OneOf(words) => match value.as_str() {
                None => expected("a string"),
                Some(word) if words.contains(&word) => Ok(()),
                Some(word) => {
                    let word: String = word.chars().take(64).collect();
                    Err(Fault::new("", format!("{word:?} is none of {}", words.join(", "))))
                }
            },
            Self::Whole(least, most) => check_whole(value, *least, *most),
            Self::Share => match value.as_f64() {
                None => expected("a number"),
                Some(share) if (0.0..=1.0).contains(&share) => Ok(()),
                Some(_) => Err(Fault::new("", "is not between 0 and 1")),
            },
            Self::Flag => value.as_bool().map_or_else(|| expected("true or false"), |_| Ok(())),
            Self::Instant => match value.as_str() {
                None => expected("a string"),
                Some(text) if Timestamp::parse(text).is_ok() => Ok(()),
                Some(_) => {
                    let form = "is no date-time of RFC 3339 such as 2026-01-31T12:00:00Z";
                    Err(Fault::new("", form))
                }
            },
            Self::List(shape, most) => {
                let Some(items) = value.as_array() else { return expected("an array") };
                if items.len() > *most {
                    let found = items.len();
                    return Err(Fault::new("", format!("{found} items, at most {most} are taken")));
                }
                let check = |(at, item): (usize, &Value)| {
                    shape.check(item).map_err(|fault| fault.inside(&at.to_string()))
                };
                items.iter().enumerate().try_for_each(check)
            }
            Self::Object(members) => match value.as_object() {
                Some(map) => check_members(members, map),
                None => expected("an object"),
            },
            Self::Open => value.as_object().map_or_else(|| expected("an object"), |_| Ok(())),
        }
    }
}

fn check_whole(value: &Value, least: u64, most: Option<u64>) -> Result<(), Fault> {
    let Some(number) = value.as_number() else {
        let found = value.kind_name();
        return Err(Fault::new("", format!("expected a whole number, found {found}")));
    };
    if !number.is_integer() {
        return Err(Fault::new("", "is no whole number"));
    }
    // The sign decides for a number beyond 64 bits.
    let found = number.as_u64().unwrap_or(if number.as_f64() < 0.0 { 0 } else { u64::MAX });
    let is_below = number.as_f64() < 0.0 || found < least;
    match most {
        _ if is_below => Err(Fault::new("", format!("is less than {least}"))),
        Some(most) if found > most => Err(Fault::new("", format!("is more than {most}"))),
        _ => Ok(()),
    }
}

fn check_members(members: &[Member], map: &Map) -> Result<(), Fault> {
    for member in members {
        match map.get(member.name) {
            Some(value) => {
                member.shape.check(value).map_err(|fault| fault.inside(member.name))?;
            }
            None if member.is_required => {
                return Err(Fault::new("", "is required").inside(member.name));
            }
            None => {}
        }
    }
    let is_unknown = |name: &&str| !members.iter().any(|member| member.name == *name);
    match map.keys().find(is_unknown) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = members.iter().map(|member| member.name).collect();
            let reason = format!("is no member here; known are {}", known.join(", "));
            Err(Fault::new("", reason).inside(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::json;

    fn fault(shape: &Shape, text: &str) -> Option<(String, String)> {
        let value = json::from_slice(text.as_bytes(), &Default::default()).unwrap();
        shape.check(&value).err().map(|fault| (fault.path, fault.reason))
    }

    #[test]
    fn the_first_fault_is_named_by_its_pointer() {
        const INNER: &[Member] = &[need("a/b", Shape::Whole(1, Some(3)))];
        const SHAPE: Shape = Shape::Object(&[
            need("name", Shape::Text(1, 4)),
            may("list", Shape::List(&Shape::Object(INNER), 2)),
        ]);
        for (text, path, reason) in [
            ("[]", "", "expected an object, found an array"),
            ("{}", "/name", "is required"),
            (r#"{"name":""}"#, "/name", "is empty"),
            (r#"{"name":"abcde"}"#, "/name", "5 bytes are more than the 4 allowed"),
            (r#"{"name":"a","list":[{"a/b":1},{"a/b":4}]}"#, "/list/1/a~1b", "is more than 3"),
            (r#"{"name":"a","list":[{"a/b":1.5}]}"#, "/list/0/a~1b", "is no whole number"),
            (r#"{"name":"a","list":[{"a/b":-1e40}]}"#, "/list/0/a~1b", "is less than 1"),
            (r#"{"name":"a","list":[{},{},{}]}"#, "/list", "3 items, at most 2 are taken"),
            (r#"{"name":"a","b~":null}"#, "/b~0", "is no member here; known are name, list"),
        ] {
            assert_eq!(fault(&SHAPE, text), Some((path.into(), reason.into())), "{text}");
        }
        assert_eq!(fault(&SHAPE, r#"{"name":"é","list":[{"a/b":2.0},{"a/b":1e0}]}"#), None);
    }

    #[test]
    fn instants_are_those_of_rfc_3339() {
        for good in ["2025-09-06T10:00:00Z", "2025-09-06T10:00:00.5+02:00", "2016-12-31T23:59:60Z"]
        {
            assert_eq!(fault(&Shape::Instant, &format!("{good:?}")), None, "{good}");
        }
        for bad in ["2025-09-06 10:00", "2025-02-30T10:00:00Z", "2025-09-06T10:00:00", ""] {
            assert!(fault(&Shape::Instant, &format!("{bad:?}")).is_some(), "{bad}");
        }
    }
}
