//! Everything that a daemon tells, one line for each field.

use omir_core::value::Value;

use super::summary::card_life;
use crate::{instant, table};

/// Every field, nested ones behind their parents' names, with units for people.
pub(in crate::commands) fn rows(status: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    flatten("", "", status, &mut rows);
    rows
}

fn flatten(label: &str, field: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter() {
                let words = words(name);
                let label = if label.is_empty() { words } else { format!("{label} {words}") };
                flatten(&label, name, member, rows);
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| plain(field, item)).collect();
            rows.push((label.to_owned(), items.join(", ")));
        }
        other => rows.push((label.to_owned(), plain(field, other))),
    }
}

fn plain(field: &str, value: &Value) -> String {
    let unit = field.to_ascii_lowercase();
    match (value, value.as_u64()) {
        (Value::Null, _) => "-".to_owned(),
        (Value::Bool(true), _) => "yes".to_owned(),
        (Value::Bool(false), _) => "no".to_owned(),
        (Value::Text(text), _) => text.clone(),
        (_, Some(count)) if unit.contains("bytes") || field == "writtenToday" => {
            table::bytes(count)
        }
        (_, Some(count)) if unit.ends_with("seconds") => instant::span(count.into()),
        (other, _) => match other.as_f64() {
            Some(years) if field == "cardYears" => card_life(years),
            // The seventeenth digit of an estimate says nothing.
            Some(number) => ((number * 100.0).round() / 100.0).to_string(),
            None => other.to_string(),
        },
    }
}

/// `bytesWrittenSinceBoot` as `bytes written since boot`; names that begin with a capital, as types
/// do, stay as they are.
fn words(name: &str) -> String {
    if name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return name.to_owned();
    }
    let mut words = String::new();
    for c in name.trim_end_matches("Seconds").chars() {
        if c.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::decode::Limits;
    use omir_core::json;

    #[test]
    fn an_open_object_becomes_two_columns() {
        let status = json::from_slice(
            br#"{"robot":"r1","uptimeSeconds":7300,"counts":{"types":{"MemoryRecord":2}},
                "disk":{"bytes":2048,"full":false},"bytesWrittenSinceBoot":10,"frames":["map","odom"],
                "ratio":0.5,"wear":{"cardYears":41.23789,"budget":{"bytesPerDay":null}},"clock":{"state":"synced","since":null}}"#,
            &Limits::default(),
        )
        .unwrap();
        let rows: Vec<String> =
            rows(&status).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            rows,
            [
                "robot=r1",
                "uptime=2 h",
                "counts types MemoryRecord=2",
                "disk bytes=2.0 KiB",
                "disk full=no",
                "bytes written since boot=10 B",
                "frames=map, odom",
                "ratio=0.5",
                "wear card years=decades",
                "wear budget bytes per day=-",
                "clock state=synced",
                "clock since=-",
            ]
        );
    }
}
