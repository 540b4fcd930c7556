//! Single values: the names, paths and counts that keys have, each with what is wrong with it.

use crate::rules::pattern::Pattern;
use crate::rules::template::FieldRef;
use crate::rules::written::{Table, one_of};
use crate::tf::normalised;

pub(super) fn count(table: &Table<'_>, name: &'static str, most: u64) -> Option<usize> {
    table.integer(name, 1..=most).and_then(|number| usize::try_from(number).ok())
}

pub(super) fn word_of<T: Copy>(
    word: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let words: Vec<_> = all.iter().map(|one| (name(*one), *one)).collect();
    one_of(word, &words)
}

pub(super) fn field(text: &str) -> Result<FieldRef, String> {
    text.parse().map_err(|error: crate::message::PathError| error.to_string())
}

pub(super) fn not_empty(text: &str) -> Result<&str, String> {
    if text.is_empty() { Err("is empty; leave the key out".into()) } else { Ok(text) }
}

pub(super) fn topic_pattern(text: &str) -> Result<Pattern, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '*');
    if !text.starts_with(['/', '*']) || text.len() < 2 && text != "*" || !text.chars().all(good) {
        return Err(format!(
            "{text:?} is no topic; it begins with / and has letters, digits, _ and *"
        ));
    }
    let pattern = Pattern::new(text);
    if pattern.is_exact() {
        for part in text[1..].split('/') {
            base_name(part).map_err(|why| format!("{text:?} is no topic: {why}"))?;
        }
    }
    Ok(pattern)
}

pub(super) fn frame_name(text: &str) -> Result<String, String> {
    normalised(text)
        .filter(|name| !name.contains(char::is_whitespace))
        .map(ToOwned::to_owned)
        .ok_or_else(|| format!("{text:?} is no frame, such as map"))
}

/// A name as nodes have it (ROS 2 design, "Topic and Service name mapping").
pub(super) fn base_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(good)
    {
        return Err(format!("{text:?} is not letters, digits and _, beginning with no digit"));
    }
    Ok(text.to_owned())
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    let name = text.trim_start_matches('/');
    if name.is_empty() {
        return Ok(String::new());
    }
    let parts: Result<Vec<String>, String> = name.split('/').map(base_name).collect();
    Ok(format!("/{}", parts?.join("/")))
}

pub(super) fn remapping(text: &str) -> Result<String, String> {
    match text.split_once(":=") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no remapping, such as /odom:=/robot/odom")),
    }
}
