//! Single values of the configuration: names, paths and counts, and their faults.

use std::fmt;

use crate::message::PathError;
use crate::rules::pattern::Pattern;
use crate::rules::template::{FieldRef, TemplateError};
use crate::rules::written::{Table, UnknownWord, one_of};
use crate::tf::normalised;

pub(super) fn count(table: &Table<'_>, name: &'static str, most: u64) -> Option<usize> {
    table.integer(name, 1..=most).and_then(|number| usize::try_from(number).ok())
}

pub(super) fn word_of<T: Copy>(
    word: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownWord> {
    let words: Vec<_> = all.iter().map(|one| (name(*one), *one)).collect();
    one_of(word, &words)
}

/// A text that is no value of its key.
#[derive(Debug)]
pub(super) enum BadValue {
    Empty,
    Topic { text: String, why: Option<Box<BadValue>> },
    Topics(String),
    Frame(String),
    Name(String),
    Remapping(String),
    List(String),
    Field(PathError),
    Template(TemplateError),
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty; leave the key out"),
            Self::Topic { text, why: None } => {
                write!(f, "{text:?} is no topic; it begins with / and has letters, digits, _ and *")
            }
            Self::Topic { text, why: Some(why) } => write!(f, "{text:?} is no topic: {why}"),
            Self::Topics(text) => write!(
                f,
                "{text:?} is more than one topic; name the one that tells where the robot is"
            ),
            Self::Frame(text) => write!(f, "{text:?} is no frame, such as map"),
            Self::Name(text) => {
                write!(f, "{text:?} is not letters, digits and _, beginning with no digit")
            }
            Self::Remapping(text) => {
                write!(f, "{text:?} is no remapping, such as /odom:=/robot/odom")
            }
            Self::List(text) => write!(f, "{text:?} is no list; write it as in detections[*]"),
            Self::Field(error) => error.fmt(f),
            Self::Template(error) => error.fmt(f),
        }
    }
}

pub(super) fn field(text: &str) -> Result<FieldRef, BadValue> {
    text.parse().map_err(BadValue::Field)
}

pub(super) fn not_empty(text: &str) -> Result<&str, BadValue> {
    if text.is_empty() { Err(BadValue::Empty) } else { Ok(text) }
}

pub(super) fn topic_pattern(text: &str) -> Result<Pattern, BadValue> {
    let bad = |why| BadValue::Topic { text: text.to_owned(), why };
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '*');
    if !text.starts_with(['/', '*']) || text.len() < 2 && text != "*" || !text.chars().all(good) {
        return Err(bad(None));
    }
    let pattern = Pattern::new(text);
    if pattern.is_exact() {
        for part in text[1..].split('/') {
            base_name(part).map_err(|why| bad(Some(Box::new(why))))?;
        }
    }
    Ok(pattern)
}

pub(super) fn frame_name(text: &str) -> Result<String, BadValue> {
    normalised(text)
        .filter(|name| !name.contains(char::is_whitespace))
        .map(ToOwned::to_owned)
        .ok_or_else(|| BadValue::Frame(text.to_owned()))
}

/// A name as nodes have it (ROS 2 design, "Topic and Service name mapping").
pub(super) fn base_name(text: &str) -> Result<String, BadValue> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(good)
    {
        return Err(BadValue::Name(text.to_owned()));
    }
    Ok(text.to_owned())
}

pub(super) fn namespace(text: &str) -> Result<String, BadValue> {
    let name = text.trim_start_matches('/');
    if name.is_empty() {
        return Ok(String::new());
    }
    let parts: Result<Vec<String>, BadValue> = name.split('/').map(base_name).collect();
    Ok(format!("/{}", parts?.join("/")))
}

pub(super) fn remapping(text: &str) -> Result<String, BadValue> {
    match text.split_once(":=") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(text.to_owned()),
        _ => Err(BadValue::Remapping(text.to_owned())),
    }
}
