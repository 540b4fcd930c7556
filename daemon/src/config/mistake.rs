//! A configuration that cannot be read, said to a person: the line, the key, what was found there, what is allowed.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use omir_core::validate::closest;

/// No configuration is longer; whatever is, is another file.
const MOST: u64 = 1 << 20;

/// A configuration file that cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// It cannot be read, or is not there.
    Disk(io::Error),
    /// It is a folder.
    Folder,
    /// It is longer than any configuration.
    TooLong,
    /// It is no text in UTF-8.
    NotText {
        /// The line that is none.
        line: usize,
    },
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) if error.kind() == io::ErrorKind::NotFound => {
                f.write_str("there is no such file")
            }
            Self::Disk(error) => write!(f, "cannot be read: {error}"),
            Self::Folder => {
                f.write_str("is a folder; a configuration is a file, such as omird.toml")
            }
            Self::TooLong => f.write_str("is longer than 1 MiB, and no configuration"),
            Self::NotText { line } => write!(f, "line {line}: is no text in UTF-8"),
        }
    }
}

/// Returns the text of a configuration file.
pub fn text_of(path: &Path) -> Result<String, Unreadable> {
    let file = std::fs::File::open(path).map_err(Unreadable::Disk)?;
    if file.metadata().is_ok_and(|found| found.is_dir()) {
        return Err(Unreadable::Folder);
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(Unreadable::Disk)?;
    if bytes.len() as u64 > MOST {
        return Err(Unreadable::TooLong);
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Unreadable::NotText { line }
    })
}

/// A complaint of the reader of TOML: `line 3: store.segment_bytes: …`.
pub fn in_words(text: &str, error: &toml::de::Error) -> String {
    let message = reworded(error.message());
    let Some(at) = error.span().map(|span| span.start.min(text.len())) else { return message };
    let line = 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
    match key(text, line) {
        Some(key) => format!("line {line}: {key}: {message}"),
        None => format!("line {line}: {message}"),
    }
}

/// The whole key that a line sets, by the header of a section above it.
fn key(text: &str, line: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let (name, _) = lines.last()?.split_once('=')?;
    let header = lines.iter().rev().map(|line| line.trim()).find(|line| line.starts_with('['));
    let section = header.and_then(|header| header.split(']').next()).unwrap_or_default();
    let section = section.trim_start_matches('[').trim();
    let name = name.trim();
    Some(if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") })
}

/// The message of serde, without the names of Rust's types, and with the nearest of the names it knows.
fn reworded(message: &str) -> String {
    let message = message.trim();
    let names = |list: &str| -> Vec<String> {
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    for (kind, what) in [("unknown field `", "no such key"), ("unknown variant `", "no such word")]
    {
        let Some((found, known)) = message.strip_prefix(kind).and_then(|rest| rest.split_once('`'))
        else {
            continue;
        };
        let known = names(known);
        let near = closest(found, known.iter().map(String::as_str));
        let near = near.map(|near| format!(" did you mean {near:?}?")).unwrap_or_default();
        return format!("{what} as {found:?};{near} there are {}", known.join(", "));
    }
    let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return message.replace('\n', "; ");
    };
    let found = found.replace("string ", "the text ").replace("floating point ", "the number ");
    let found = found.replace("integer ", "the number ").replace("boolean ", "").replace('`', "");
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not below 0",
        "f64" => "a number",
        "a string" | "path string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        expected if expected.starts_with("struct ") => "a section",
        expected => expected,
    };
    format!("found {found}; expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::File;

    #[test]
    fn each_mistake_says_where_and_what() {
        for (text, message) in [
            (
                "[store]\nsegment_bytes = 'big'",
                r#"line 2: store.segment_bytes: "big" is no size such as "64KiB", "8MiB" or "2GB""#,
            ),
            (
                "[store]\n\nsegment_bytes = true",
                r#"line 3: store.segment_bytes: found true; expected a size such as "8MiB", or a whole number of bytes"#,
            ),
            (
                "[store]\nkeep_history_s = '30'",
                r#"line 2: store.keep_history_s: "30" has no unit: "30s", "90min", "1h30m" or "3d""#,
            ),
            (
                "[store]\nkeep_history_s = '500ms'",
                r#"line 2: store.keep_history_s: "500ms" is not in whole seconds"#,
            ),
            (
                "[limits]\r\nmax_depth = 'deep'\r\n",
                r#"line 2: limits.max_depth: found the text "deep"; expected a whole number, not below 0"#,
            ),
            (
                "[limits]\nreaders = -1",
                "line 2: limits.readers: found the number -1; expected a whole number, not below 0",
            ),
            (
                "[access]\nread_only = 1",
                "line 2: access.read_only: found the number 1; expected true or false",
            ),
            ("robot = 7", "line 1: robot: found the number 7; expected a text in quotes"),
            (
                "[access]\nreadonly = true",
                r#"line 2: access.readonly: no such key as "readonly"; did you mean "read_only"? there are read_only, require, jwt"#,
            ),
        ] {
            let error = toml::from_str::<File>(text).unwrap_err();
            assert_eq!(in_words(text, &error), message);
        }
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(text_of(dir.path()).unwrap_err().to_string().starts_with("is a folder"));
        assert_eq!(
            text_of(&dir.path().join("none")).unwrap_err().to_string(),
            "there is no such file"
        );
        let file = dir.path().join("file");
        std::fs::write(&file, vec![b'#'; (MOST + 1) as usize]).unwrap();
        assert!(text_of(&file).unwrap_err().to_string().starts_with("is longer"));
        std::fs::write(&file, b"robot = 'a'\nprefix = '\xff'").unwrap();
        assert_eq!(text_of(&file).unwrap_err().to_string(), "line 2: is no text in UTF-8");
    }
}
