//! `.omir` and `.omirb` files: which encoding a file has, reading, and writing that leaves either the
//! old file or the whole new one.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use omir_core::decode::{DecodeError, Limits};
use omir_core::model::{Bundle, Resource};
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};

use crate::error::{Error, Result};
use crate::output;

/// How a document is written as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `.omir`
    Json,
    /// `.omirb`
    Cbor,
}

impl Encoding {
    /// What a file's ending says, if it says anything.
    #[must_use]
    pub fn of_ending(file: &Path) -> Option<Self> {
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "omir" | "json" => Some(Self::Json),
            "omirb" | "cbor" => Some(Self::Cbor),
            _ => None,
        }
    }

    /// What the first byte says. A JSON object, array or white space begins with an ASCII character
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

/// Whether a path means standard input or output.
#[must_use]
pub fn is_standard(file: &Path) -> bool {
    file.as_os_str() == OsStr::new("-")
}

/// Decodes bytes whose first one says what they are.
///
/// # Errors
/// Encoding, place and fault, in words.
pub fn decode(bytes: &[u8]) -> std::result::Result<Value, String> {
    let encoding = Encoding::sniff(bytes);
    encoding.read(bytes).map_err(|why| format!("{}: {why}", encoding.name()))
}

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

/// Reads a document. The ending says what it is; without one that does, the first byte.
///
/// # Errors
/// [`Error::Input`] naming the file, and the place within the document where one is known.
pub fn read(file: &Path) -> Result<Value> {
    decode_file(file, &read_bytes(file)?).map(|(_, value)| value)
}

/// As [`read`], with the bytes of `file` at hand; also tells how they were written.
///
/// # Errors
/// As [`read`].
pub fn decode_file(file: &Path, bytes: &[u8]) -> Result<(Encoding, Value)> {
    let by_ending = Encoding::of_ending(file).filter(|_| !is_standard(file));
    let encoding = by_ending.unwrap_or_else(|| Encoding::sniff(bytes));
    match encoding.read(bytes) {
        Ok(value) => Ok((encoding, value)),
        Err(why) => Err(Error::Input {
            message: format!("{}: unreadable {}: {why}", file.display(), encoding.name()),
            path: Some(why.pointer),
        }),
    }
}

/// How to write to that file.
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
    replace(file, bytes).map_err(|why| Error::input(file, format!("cannot write: {why}")))
}

/// Puts `bytes` in the place of `file`: written beside it, synced, renamed, and the folder synced, so
/// that a crash or a full disk leaves the old file or the new one and nothing between.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // A device or a pipe is written to, not replaced.
    if let Ok(found) = std::fs::metadata(file)
        && !found.is_file()
    {
        return std::fs::OpenOptions::new().write(true).open(file)?.write_all(bytes);
    }
    // A symbolic link keeps pointing where it points.
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".omir-");
    share(&mut builder);
    let mut temporary = builder.tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    if let Ok(old) = std::fs::metadata(&target) {
        temporary.as_file().set_permissions(old.permissions())?;
    }
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|why| why.error)?;
    std::fs::File::open(folder)?.sync_all()
}

/// A temporary file is private; ours gets the rights of an ordinary new file, less the umask.
#[cfg(unix)]
fn share(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt as _;
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn share(_: &mut tempfile::Builder<'_, '_>) {}

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

/// The same document with its members in the order of the schemas, for reading: CBOR sorts them by
/// length. What is no valid Bundle or resource stays as it is.
#[must_use]
pub fn in_schema_order(value: Value) -> Value {
    let ordered = match value.get("resourceType").and_then(Value::as_str) {
        Some("Bundle") => Bundle::from_value(value.clone()).map(|bundle| bundle.to_value()),
        Some(_) => Resource::from_value(value.clone()).map(|resource| resource.to_value()),
        None => return value,
    };
    match ordered {
        // Equal bytes, because a document has one CBOR form: nothing but the order changed.
        Ok(ordered) if cbor::to_vec(&ordered) == cbor::to_vec(&value) => ordered,
        _ => value,
    }
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
    fn what_was_cbor_reads_like_the_specification() {
        let text = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"resourceType":"MemoryRecord","id":"m","content":"c","createdAt":"2026-01-01T00:00:00Z","extension":[{"url":"urn:x:y","valueJson":{"b":1.0,"a":2}}]}]}"#;
        let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        let sorted = Encoding::Cbor.read(&cbor::to_vec(&value)).unwrap();
        assert!(json::to_string(&sorted).starts_with(r#"{"entry":"#));
        let ordered = in_schema_order(sorted.clone());
        assert_eq!(ordered, sorted);
        let start = r#"{"resourceType":"Bundle","omirVersion":"R1","entry":[{"resourceType":"MemoryRecord","id":"m","#;
        assert!(json::to_string(&ordered).starts_with(start));
        let other = json::from_slice(br#"{"resourceType":"Bundle","x":1}"#, &Limits::default());
        let other = other.unwrap();
        assert_eq!(in_schema_order(other.clone()), other);
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
