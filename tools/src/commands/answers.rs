//! Answers of `recall` about all matches, for people.

use omir_core::value::{Map, Value};

use super::view;
use crate::table::{self, Column};

/// The members of an answer beside its hits, each in lines of its own.
pub(super) fn text(more: &Map, width: Option<usize>) -> String {
    let mut text = String::new();
    for one in list(more.get("corrected")) {
        let to: Vec<&str> = list(one.get("to")).iter().filter_map(Value::as_str).collect();
        text.push_str(&format!("{} was read as {}\n", word(one, "from"), to.join(", ")));
    }
    if let Some(count) = more.get("count") {
        text.push_str(&format!("count {}\n", plain(count)));
    }
    let counts = list(more.get("counts"));
    if !counts.is_empty() {
        let columns = [
            Column::Text("of"),
            Column::Number("count"),
            Column::Words("first"),
            Column::Words("last"),
        ];
        let rows: Vec<Vec<String>> = counts
            .iter()
            .map(|one| vec![group(one), word(one, "count"), word(one, "first"), word(one, "last")])
            .collect();
        text.push_str(&table::set(&columns, &rows, &["first"], width));
        text.push_str("\n\n");
    }
    if let Some(groups) = more.get("groups") {
        text.push_str(&format!("groups {}\n", plain(groups)));
    }
    if let Some(visits) = more.get("visits") {
        text.push_str(&format!("visits {}", word(visits, "count")));
        if visits.get("first").is_some() {
            let (first, last) = (word(visits, "first"), word(visits, "last"));
            text.push_str(&format!(", the first {first}, the last {last}"));
        }
        text.push('\n');
    }
    for one in list(more.get("history")) {
        let (entity, moves) = (word(one, "entity"), word(one, "moves"));
        text.push_str(&format!("{entity}: moves {moves}\n"));
        let columns = [
            Column::Text("place"),
            Column::Number("count"),
            Column::Words("first"),
            Column::Words("last"),
        ];
        let rows: Vec<Vec<String>> = list(one.get("places"))
            .iter()
            .map(|one| vec![group(one), word(one, "count"), word(one, "first"), word(one, "last")])
            .collect();
        if !rows.is_empty() {
            text.push_str(&table::set(&columns, &rows, &["first"], width));
            text.push_str("\n\n");
        }
    }
    text
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], |list| list)
}

/// A member as text; nothing if there is none.
fn word(of: &Value, name: &str) -> String {
    of.get(name).map(plain).unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| omir_core::json::to_string(value), str::to_owned)
}

/// What a group has in common: an entity, a day, or a place.
fn group(of: &Value) -> String {
    if let Some(position) = of.get("position").and_then(Value::as_array) {
        let metres: Vec<String> = position.iter().map(|one| view::number(Some(one), 2)).collect();
        return format!("{} {}", word(of, "frame"), metres.join(", "));
    }
    let name = word(of, "entity");
    if name.is_empty() { word(of, "day") } else { name }
}
