//! Standard output: results only, and no panic when a reader such as `head` closes the pipe.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use omir_core::json;
use omir_core::value::{Map, Value};

use crate::cli::Globals;
use crate::document;

/// An object with these members, in this order.
#[must_use]
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().collect::<Map>())
}

/// Writes text and makes sure that it ends with a newline.
///
/// # Errors
/// What the operating system says; a closed pipe becomes exit code 0 in [`crate::error`].
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes bytes as they are.
///
/// # Errors
/// As [`print()`].
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes one JSON value over several lines.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &Value) -> io::Result<()> {
    print(&json::to_string_pretty(value))
}

/// Writes one JSON value on one line.
///
/// # Errors
/// As [`print()`].
pub fn print_json_line(value: &Value) -> io::Result<()> {
    print(&json::to_string(value))
}

/// A remark for people, on standard error; lost without complaint if standard error is closed.
pub fn remark(quiet: bool, text: &str) {
    if !quiet {
        let _ = writeln!(io::stderr().lock(), "omir: {text}");
    }
}

/// Tells that resources were written into a file: people by a remark, programs as JSON. Nothing where they went to
/// standard output, which says it itself.
///
/// # Errors
/// As [`print()`].
pub fn written(globals: &Globals, count: u64, file: &Path, more: &str) -> io::Result<()> {
    if document::is_standard(file) {
        return Ok(());
    }
    if globals.json {
        let file = file.display().to_string();
        return print_json(&object([("resources", count.into()), ("file", file.as_str().into())]));
    }
    remark(globals.quiet, &format!("{count} resources written to {}{more}", file.display()));
    Ok(())
}

/// Returns true if standard output is read by a person.
#[must_use]
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns the number of columns to print in: what `COLUMNS` says, else the terminal's. `None` behind a pipe,
/// where nothing is cut.
#[must_use]
pub fn width() -> Option<usize> {
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = stated.filter(|&columns| columns > 0).or_else(|| {
        if !is_terminal() {
            return None;
        }
        comfy_table::Table::new().width().map(usize::from)
    })?;
    Some(width.max(NARROWEST))
}

/// A table on less cannot be read.
const NARROWEST: usize = 20;

/// One line without control characters: a resource's text may hold escape sequences, and a
/// terminal must not obey them.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut space = false;
    for c in text.chars() {
        if c.is_control() || c.is_whitespace() {
            space = true;
            continue;
        }
        // Marks that reorder the text around them.
        if matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            continue;
        }
        if space && !line.is_empty() {
            line.push(' ');
        }
        space = false;
        line.push(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn hostile_text_stays_one_harmless_line() {
        assert_eq!(one_line("a\n\tb\r\nc  d "), "a b c d");
        assert_eq!(one_line("\u{1b}[2Jcleared"), "[2Jcleared");
        assert_eq!(one_line("left\u{202e}right"), "leftright");
        assert_eq!(one_line("дверь 3 🤖"), "дверь 3 🤖");
    }
}
