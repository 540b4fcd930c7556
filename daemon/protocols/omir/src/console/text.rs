//! Resources, documents and errors as lines of text.

use omir_core::json;
use omir_core::value::{Map, Value};
use omir_core::words;
use omird_engine::Error;
use omird_engine::LeftOut;

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
