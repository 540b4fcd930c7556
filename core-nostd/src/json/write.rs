//! Values to JSON text. Members keep their order; numbers keep their kind.

use alloc::string::String;
use core::fmt::Write;

use crate::value::Value;

/// Spaces per level in [`to_string_pretty`].
const INDENT: usize = 2;

/// Compact JSON, without any space between tokens.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, None);
    out
}

/// JSON for people: one member or element per line, two spaces of indent, no newline at the end.
pub fn to_string_pretty(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, Some(0));
    out
}

/// Appends what [`to_string_pretty`] gives, indented as a value that lies `level` levels deep: for
/// documents that are put together from written parts.
pub fn write_pretty(value: &Value, level: usize, out: &mut String) {
    write_value(out, value, Some(level));
}

/// `level` is the depth of indentation, `None` for compact text.
fn write_value(out: &mut String, value: &Value, level: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        // Writing to a String cannot fail.
        Value::Number(number) => drop(write!(out, "{number}")),
        Value::Text(text) => write_text(out, text),
        Value::Array(items) => {
            let inner = level.map(|level| level + 1);
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, index, inner);
                write_value(out, item, inner);
            }
            close(out, items.is_empty(), level);
            out.push(']');
        }
        Value::Object(map) => {
            let inner = level.map(|level| level + 1);
            out.push('{');
            for (index, (key, member)) in map.iter().enumerate() {
                separate(out, index, inner);
                write_text(out, key);
                out.push_str(if level.is_some() { ": " } else { ":" });
                write_value(out, member, inner);
            }
            close(out, map.is_empty(), level);
            out.push('}');
        }
    }
}

fn separate(out: &mut String, index: usize, level: Option<usize>) {
    if index > 0 {
        out.push(',');
    }
    if let Some(level) = level {
        new_line(out, level);
    }
}

fn close(out: &mut String, empty: bool, level: Option<usize>) {
    if let (false, Some(level)) = (empty, level) {
        new_line(out, level);
    }
}

fn new_line(out: &mut String, level: usize) {
    out.push('\n');
    out.extend(core::iter::repeat_n(' ', level * INDENT));
}

/// RFC 8259 §7: quotation mark, backslash and control characters must be escaped, nothing else is.
pub(crate) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\') {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0C => out.push_str("\\f"),
            control => drop(write!(out, "\\u{control:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}
