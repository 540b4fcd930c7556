//! `.omir` and `.omirb` files: which encoding a file has, reading and writing, at once or part by part.

mod capture;
mod order;
mod parts;
mod replace;
mod writer;

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use omir_core::decode::{DecodeError, Limits};
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};

use crate::error::{Error, Result};
use crate::output;

pub use order::in_schema_order;
pub use parts::Parts;
pub use writer::Writer;

/// Encodings of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `.omir`
    Json,
    /// `.omirb`
    Cbor,
}

impl Encoding {
    /// The format named by a file's ending, if any.
    #[must_use]
    pub fn of_ending(file: &Path) -> Option<Self> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "omir" | "json" => Some(Self::Json),
            "omirb" | "cbor" => Some(Self::Cbor),
            _ => None,
        }
    }

    /// The format named by the first byte. A JSON object, array or white space begins with an ASCII character
    /// that in CBOR would be a small integer or a short text, which no document is.
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Self {
        match bytes.first() {
            // A byte order mark is JSON's business, and its reader explains it.
            Some(0x80..) if !bytes.starts_with(b"\xEF\xBB\xBF") => Self::Cbor,
            _ => Self::Json,
        }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// The grammar fault, with its byte offset.
    pub fn read(self, bytes: &[u8]) -> std::result::Result<Value, DecodeError> {
        match self {
            Self::Json => json::from_slice(bytes, &Limits::default()),
            Self::Cbor => cbor::from_slice(bytes, &Limits::default()),
        }
    }

    /// Writes a document: JSON for reading, with a newline at the end; CBOR in its one
    /// deterministic form.
    #[must_use]
    pub fn write(self, value: &Value) -> Vec<u8> {
        match self {
            Self::Json => {
                let mut text = json::to_string_pretty(value);
                text.push('\n');
                text.into_bytes()
            }
            Self::Cbor => cbor::to_vec(value),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Cbor => "CBOR",
        }
    }
}

/// Returns true if a path means standard input or output.
#[must_use]
pub fn is_standard(file: &Path) -> bool {
    file.as_os_str() == OsStr::new("-")
}

/// Decodes bytes whose first one says what they are.
///
/// # Errors
/// The encoding, the place and the fault.
pub fn decode(bytes: &[u8]) -> std::result::Result<Value, Unreadable> {
    let encoding = Encoding::sniff(bytes);
    encoding.read(bytes).map_err(|why| Unreadable { encoding, why })
}

/// Bytes that are no document.
#[derive(Debug, Clone, PartialEq)]
pub struct Unreadable {
    encoding: Encoding,
    why: DecodeError,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.encoding.name(), self.why)
    }
}

impl std::error::Error for Unreadable {}

/// The bytes of a file, or of standard input for `-`.
///
/// # Errors
/// [`Error::Input`] naming the file.
pub fn read_bytes(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if is_standard(file) {
        io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(file).map(|content| bytes = content)
    };
    read.map_err(|why| Error::input(file, why))?;
    Ok(bytes)
}

/// The text of a file, or of standard input for `-`.
///
/// # Errors
/// [`Error::Input`] naming the file.
pub fn read_text(file: &Path) -> Result<String> {
    String::from_utf8(read_bytes(file)?).map_err(|_| Error::input(file, "is not UTF-8 text"))
}

/// Reads a document, or what a terminal captured of one. The ending says what it is; without one that does, the
/// first byte.
///
/// # Errors
/// [`Error::Input`] naming the file, and the place within the document where one is known.
pub fn read(file: &Path) -> Result<Value> {
    let mut bytes = read_bytes(file)?;
    if capture::may_be(&bytes)
        && let Some(document) = capture::document(&bytes)
    {
        bytes = document.map_err(|why| Error::input(file, why))?;
    }
    let by_ending = Encoding::of_ending(file).filter(|_| !is_standard(file));
    let encoding = by_ending.unwrap_or_else(|| Encoding::sniff(&bytes));
    encoding.read(&bytes).map_err(|why| parts::unreadable(file, encoding, &why))
}

/// Encoding for that file.
///
/// # Errors
/// [`Error::Usage`] for an ending that says nothing: a guess would be found out only by the reader.
pub fn encoding_for_output(file: &Path) -> Result<Encoding> {
    if is_standard(file) {
        return Ok(Encoding::Json);
    }
    Encoding::of_ending(file).ok_or_else(|| {
        Error::Usage(format!(
            "{}: the ending must say how to write it: .omir (JSON) or .omirb (CBOR)",
            file.display()
        ))
    })
}

/// Returns true if both paths lead to one file that is there.
#[must_use]
pub fn is_same(one: &Path, other: &Path) -> bool {
    let real = |file: &Path| file.canonicalize().ok().filter(|file| file.is_file());
    real(one).is_some_and(|file| real(other) == Some(file))
}

/// Writes a document to a file, or to standard output for `-`.
///
/// # Errors
/// [`Error::Usage`] for an unknown ending, [`Error::Input`] if the file cannot be written.
pub fn write(file: &Path, value: &Value) -> Result<()> {
    write_bytes(file, &encoding_for_output(file)?.write(value))
}

/// Writes the bytes of a whole file, or of standard output for `-`.
///
/// # Errors
/// [`Error::Input`] if the file cannot be written.
pub fn write_bytes(file: &Path, bytes: &[u8]) -> Result<()> {
    if is_standard(file) {
        return Ok(output::print_bytes(bytes)?);
    }
    replace(file, |out| out.write_all(bytes))
}

/// Puts what `write` writes in the place of `file`: all of it or, if it or the disk fails, nothing.
///
/// # Errors
/// [`Error::Input`] naming the file.
pub fn replace(
    file: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<()> {
    replace::replace(file, write).map_err(|why| Error::input(file, format!("cannot write: {why}")))
}

/// The resources of a document, each with its JSON Pointer: the entries of a Bundle, the items of an
/// array, or the one resource it is.
///
/// # Errors
/// [`Error::Input`] if it is none of these.
pub fn resources(file: &Path, document: Value) -> Result<Vec<(String, Value)>> {
    let wrong = |path: &str, message: &str| Error::Input {
        message: format!("{}: {path}: {message}", file.display()),
        path: Some(path.to_owned()),
    };
    let (items, base) = match document {
        Value::Array(items) => (items, ""),
        Value::Object(mut members) => {
            if members.get("resourceType").and_then(Value::as_str) != Some("Bundle") {
                return Ok(vec![(String::new(), Value::Object(members))]);
            }
            if members.get("omirVersion").and_then(Value::as_str) != Some("R1") {
                return Err(wrong("/omirVersion", "expected \"R1\""));
            }
            match members.remove("entry") {
                Some(Value::Array(items)) => (items, "/entry"),
                _ => return Err(wrong("/entry", "expected an array of resources")),
            }
        }
        _ => return Err(wrong("/", "expected a Bundle, an array or a resource")),
    };
    Ok(items
        .into_iter()
        .enumerate()
        .map(|(index, item)| (format!("{base}/{index}"), item))
        .collect())
}

/// A Bundle around resources.
#[must_use]
pub fn bundle(resources: impl IntoIterator<Item = Value>) -> Value {
    let mut members = Map::new();
    members.insert("resourceType", "Bundle");
    members.insert("omirVersion", "R1");
    members.insert("entry", Value::Array(resources.into_iter().collect()));
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_and_first_bytes_tell() {
        let of = |name: &str| Encoding::of_ending(Path::new(name));
        assert_eq!(of("a.omir"), Some(Encoding::Json));
        assert_eq!(of("a.b.OMIRB"), Some(Encoding::Cbor));
        assert_eq!(of("a.txt"), None);
        assert_eq!(of("omir"), None);
        assert_eq!(Encoding::sniff(b"  {}"), Encoding::Json);
        assert_eq!(Encoding::sniff(&[0xa3, 0x01]), Encoding::Cbor);
        assert_eq!(Encoding::sniff(&[0xd9, 0xd9, 0xf7]), Encoding::Cbor);
        assert!(encoding_for_output(Path::new("x.zip")).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.omir");
        let value = bundle([]);
        write(&file, &value).unwrap();
        write(&file, &value).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.ends_with("}\n"), "{text}");
        assert_eq!(read(&file).unwrap(), value);
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "no temporary file is left");
    }

    #[test]
    fn both_encodings_carry_the_same_document() {
        let value = json::from_slice(
            br#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"n":1e400,"z":-0.0,"i":18446744073709551616}]}"#,
            &Limits::default(),
        )
        .unwrap();
        for encoding in [Encoding::Json, Encoding::Cbor] {
            assert_eq!(encoding.read(&encoding.write(&value)).unwrap(), value);
        }
    }

    #[test]
    fn resources_know_where_they_stood() {
        let file = Path::new("x.omir");
        let read = |text: &str| {
            let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
            resources(file, value)
        };
        let found =
            read(r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{},{}]}"#).unwrap();
        assert_eq!(found[1].0, "/entry/1");
        assert_eq!(read("[{}]").unwrap()[0].0, "/0");
        assert_eq!(read(r#"{"resourceType":"Entity"}"#).unwrap()[0].0, "");
        let error = read(r#"{"resourceType":"Bundle","omirVersion":"R2","entry":[]}"#).unwrap_err();
        assert_eq!(error.path(), Some("/omirVersion"));
        assert!(read("3").is_err());
    }
}
