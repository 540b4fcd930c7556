//! Resources, documents and errors as lines of text.

use omir_core::json;
use omir_core::value::{Map, Value};
use omir_core::words;
use omird_engine::Error;
use omird_engine::{Hit, LeftOut, Query, Recall};

/// Characters of a text in a list.
const WIDTH: usize = 60;

/// Describes what is missing in a document, as a line. Empty if nothing is missing.
pub(super) fn shortfall(left_out: &LeftOut) -> String {
    match left_out.first.first() {
        None => String::new(),
        Some(why) => format!(
            "{} resources are left out, with what cannot stand without them: {why}; \
             `omir store check` names what is damaged\n",
            left_out.count
        ),
    }
}

/// Returns the name of a file with a robot's document, such that any system takes it.
pub(super) fn file_name(robot: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let name: String = robot.chars().take(100).map(plain).collect();
    format!("{}.omir", if name.starts_with('-') { name.replacen('-', "_", 1) } else { name })
}

/// Returns an error as a line.
pub fn error_line(error: &Error) -> String {
    let at = if error.path.is_empty() { String::new() } else { format!(" ({})", error.path) };
    format!("{}{at}: {}\n", error.code.as_str(), error.message)
}

/// Returns JSON that a terminal and its capture file leave as it is.
pub(super) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out += &format!("\\u{unit:04x}");
            }
        }
    }
    out
}

/// Returns a resource in a line.
pub(super) fn summary(resource: &Value) -> String {
    let said = words::words(resource).replace('\n', " ");
    let mut short: String = said.chars().take(WIDTH).collect();
    if short.len() < said.len() {
        short.push_str("...");
    }
    format!("{} {short}", words::name(resource))
}

/// Returns a hit as a line, with what was asked to be told of it.
pub(super) fn hit_line(hit: &Hit, resource: &Value) -> String {
    let mut line = format!("{:.2} {}", hit.retrievability, summary(resource));
    if let Some(entities) = &hit.entities {
        let names: Vec<String> = entities.iter().map(plain).collect();
        line += &format!("; of {}", names.join(", "));
    }
    if hit.forgotten {
        line += "; forgotten";
    }
    line.push('\n');
    line
}

/// Returns the answers about all matches: a line for each count, group, visit and place.
pub(super) fn answers(more: &[(&'static str, Value)]) -> String {
    let mut text = String::new();
    for (name, value) in more {
        match *name {
            "counts" => list(Some(value)).iter().for_each(|of| text += &format!("{}\n", run(of))),
            "visits" => text += &format!("visits {}\n", run(value)),
            "history" => {
                for one in list(Some(value)) {
                    let moves = one.get("moves").map(plain).unwrap_or_default();
                    text += &format!("history {} moves {moves}\n", run(one));
                    for place in list(one.get("places")) {
                        text += &format!("  {}\n", run(place));
                    }
                }
            }
            name => text += &format!("{name} {}\n", json::to_string(value)),
        }
    }
    text
}

/// Returns what a group has in common, how many are in it, and the times of the first and the last of them.
fn run(of: &Value) -> String {
    let mut words = Vec::new();
    for name in ["entity", "day", "frame", "position", "count", "first", "last", "ref"] {
        let Some(value) = of.get(name) else { continue };
        if name == "last" {
            words.push("to".to_owned());
        }
        words.push(plain(value));
    }
    words.join(" ")
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

/// Returns a value in a word or two. A name that the card has lost is `?`.
fn plain(value: &Value) -> String {
    match (value.as_str(), value.as_array()) {
        (Some(text), _) => text.replace(char::is_control, "?"),
        (_, Some(parts)) => parts.iter().map(plain).collect::<Vec<_>>().join(","),
        _ if value.is_null() => "?".to_owned(),
        _ => json::to_string(value),
    }
}

/// Returns what a page has of all matches, as a line: also what is not shown, and where the next page begins.
pub(super) fn page_line(query: &Query, recalled: &Recall) -> String {
    let only_counts = query.asks.count || query.asks.count_by.is_some();
    let mut line = match only_counts {
        true => format!("{} in all", recalled.total),
        false => format!("{} of {}", recalled.hits.len(), recalled.total),
    };
    if recalled.hidden > 0 {
        line += &format!("; {} hidden", recalled.hidden);
    }
    if recalled.unreadable > 0 {
        let count = recalled.unreadable;
        line += &format!("; {count} cannot be read (`omir store check` names what is damaged)");
    }
    if let Some(offset) = next_offset(query, recalled) {
        line += &format!("; more with offset={offset}");
    }
    line.push('\n');
    line
}

/// Returns the offset of the next page, if there is one. What cannot be read has its place on a page like the rest.
fn next_offset(query: &Query, recalled: &Recall) -> Option<usize> {
    let told =
        |name: &str| recalled.more.iter().find(|(of, _)| *of == name).map(|(_, value)| value);
    let all = match told("groups").and_then(Value::as_u64) {
        // Several of them may be one hit: behind the last hit there is nothing.
        Some(groups) => {
            let is_empty = recalled.hits.is_empty() && list(told("counts")).is_empty();
            if is_empty && recalled.unreadable == 0 {
                return None;
            }
            groups
        }
        None if query.asks.count => return None,
        None => recalled.total.saturating_sub(recalled.hidden),
    };
    let left = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(query.offset);
    let page = query.limit.unwrap_or(usize::MAX).min(left);
    (page > 0 && page < left).then(|| query.offset + page)
}

/// Writes each value on a line, named by its place.
pub(super) fn flatten(name: &str, value: &Value, out: &mut String) {
    let inside = |part: &str| {
        if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
    };
    match value {
        Value::Object(map) if !Map::is_empty(map) => {
            map.iter().for_each(|(part, value)| flatten(&inside(part), value, out));
        }
        value => *out += &format!("{name} {}\n", json::to_string(value)),
    }
}

#[cfg(test)]
mod tests {
    use omir_core::decode::Limits;

    use super::*;

    #[test]
    fn a_line_says_what_a_resource_is() {
        let line =
            |text: &str| summary(&json::from_slice(text.as_bytes(), &Limits::default()).unwrap());
        assert_eq!(line(r#"{"resourceType":"Entity","id":"a","name":"cup"}"#), "Entity/a cup");
        let on = r#"{"resourceType":"Relationship","id":"r","relationType":"on","from":{"ref":"Entity/a"},"to":{"ref":"Entity/b"}}"#;
        assert_eq!(line(on), "Relationship/r Entity/a on Entity/b");
    }

    #[test]
    fn a_history_is_told_place_by_place_and_what_has_no_line_as_json() {
        let text = r#"[{"entity":"Entity/cup","moves":1,"places":[
            {"frame":"map","position":[4.25,-1.5,0.8],"count":2,"first":"a","last":"b","ref":"MemoryRecord/m2"},
            {"frame":"k\u0007\nx","position":[9,3,0],"count":1,"first":"c","last":"c","ref":null}]}]"#;
        let history = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        let more = [("totalIsExact", Value::Bool(false)), ("history", history)];
        assert_eq!(
            answers(&more),
            "totalIsExact false\nhistory Entity/cup moves 1\n  map 4.25,-1.5,0.8 2 a to b MemoryRecord/m2\n  \
             k??x 9,3,0 1 c to c ?\n"
        );
    }

    #[test]
    fn a_page_line_says_where_to_go_on() {
        let mut query = Query { limit: Some(20), ..Query::default() };
        let mut recalled = Recall {
            hits: Vec::new(),
            total: 60,
            hidden: 0,
            corrected: Vec::new(),
            more: Vec::new(),
            unreadable: 0,
            took_micros: 0,
        };
        let check = "(`omir store check` names what is damaged)";
        recalled.unreadable = 20;
        let line = page_line(&query, &recalled);
        assert_eq!(line, format!("0 of 60; 20 cannot be read {check}; more with offset=20\n"));
        query.offset = 40;
        assert_eq!(page_line(&query, &recalled), format!("0 of 60; 20 cannot be read {check}\n"));
        (query.offset, recalled.unreadable, recalled.hidden) = (20, 0, 25);
        assert_eq!(page_line(&query, &recalled), "0 of 60; 25 hidden\n");
        (query.limit, recalled.hidden) = (Some(0), 0);
        assert_eq!(page_line(&query, &recalled), "0 of 60\n");
        // Pages of groups, until none is left.
        (query.offset, query.limit) = (0, Some(2));
        recalled.more = vec![("groups", 5_u64.into())];
        assert_eq!(page_line(&query, &recalled), "0 of 60\n");
        recalled.more.push(("counts", Value::Array(vec![Value::Null])));
        query.asks.count_by = Some(omird_engine::CountBy::Day);
        assert_eq!(page_line(&query, &recalled), "60 in all; more with offset=2\n");
    }

    #[test]
    fn a_robot_gives_its_dump_a_plain_name() {
        assert_eq!(file_name("r2"), "r2.omir");
        assert_eq!(file_name("-fleet/../k\u{fc}che"), "_fleet----k-che.omir");
    }

    #[test]
    fn a_document_is_ascii_and_the_same() {
        let value = Value::from("k\u{fc}che \u{1f916}\u{7f}\n\"\\");
        let text = ascii(&json::to_string(&value));
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert_eq!(json::from_slice(text.as_bytes(), &Limits::default()), Ok(value));
    }
}
