//! Positions in a JSON text of the values that JSON Pointers name: what a person with an editor wants to
//! know of a fault.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::value::RawValue;

use super::RawMembers;
use crate::pointer;

/// The places of a text's values.
///
/// The outermost object and its member `entry` are looked through once; what lies inside an entry is
/// looked for when it is asked for.
pub struct Places<'t> {
    text: &'t str,
    members: Vec<(String, &'t str)>,
    entries: Vec<&'t str>,
    /// Start of each line.
    lines: Vec<usize>,
}

impl<'t> Places<'t> {
    /// The places of a document. `None` if it is no JSON object.
    pub fn of(text: &'t str) -> Option<Self> {
        let members = members(text)?;
        let entry = members.iter().find(|(name, _)| name == "entry");
        let entries = entry.and_then(|(_, entry)| items(entry)).unwrap_or_default();
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = core::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Some(Self { text, members, entries, lines })
    }

    /// Line and column, from one on, of the first character of what `pointer` names; columns count
    /// characters. `None` if there is nothing.
    pub fn line_and_column(&self, pointer: &str) -> Option<(usize, usize)> {
        let at = self.find(pointer)?.as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines.get(line.checked_sub(1)?)?;
        Some((line, self.text.get(*start..at)?.chars().count() + 1))
    }

    fn find(&self, pointer: &str) -> Option<&'t str> {
        let mut tokens = pointer::tokens(pointer);
        let Some(first) = tokens.next() else { return Some(self.text.trim_start()) };
        let mut found = self.members.iter().find(|(name, _)| *name == first)?.1;
        if first == "entry"
            && let Some(index) = tokens.next()
        {
            found = self.entries.get(index.parse::<usize>().ok()?)?;
        }
        tokens.try_fold(found, step)
    }
}

/// From a value to the one inside it that a token names.
fn step(value: &str, token: String) -> Option<&str> {
    if value.starts_with('[') {
        return items(value)?.get(token.parse::<usize>().ok()?).copied();
    }
    members(value)?.into_iter().find(|(name, _)| *name == token).map(|(_, value)| value)
}

fn items(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let RawMembers(members) = serde_json::from_str(text).ok()?;
    let read = |(name, value): (&'_ RawValue, _)| {
        let name: String = serde_json::from_str(name.get()).ok()?;
        Some((name, RawValue::get(value)))
    };
    members.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
{ \"id\": \"ü\", \"x\": 1,
  \"entry\": [ {\"a/b\": [1,
    22]}, {},
  3 ]
}
";

    #[test]
    fn every_value_has_its_line_and_column() {
        let places = Places::of(TEXT).unwrap();
        for (pointer, place) in [
            ("/", (2, 1)),
            ("", (2, 1)),
            ("/id", (2, 9)),
            ("/x", (2, 19)),
            ("/entry", (3, 12)),
            ("/entry/0", (3, 14)),
            ("/entry/0/a~1b", (3, 22)),
            ("/entry/0/a~1b/1", (4, 5)),
            ("/entry/1", (4, 11)),
            ("/entry/2", (5, 3)),
        ] {
            assert_eq!(places.line_and_column(pointer), Some(place), "{pointer}");
        }
        for nothing in ["/y", "/entry/3", "/entry/x", "/id/0", "/entry/0/a~1b/2", "/entry/2/z"] {
            assert_eq!(places.line_and_column(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_places() {
        assert!(Places::of("[]").is_none());
        assert!(Places::of("{").is_none());
        assert!(Places::of("{\"entry\": 3}").unwrap().line_and_column("/entry/0").is_none());
    }
}
