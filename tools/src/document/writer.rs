//! Writing a document part by part: the entries wait, encoded, in a temporary file on the disk the
//! document will lie on, until the envelope around them is known.

use std::io::{self, Seek as _, Write};
use std::path::{Path, PathBuf};

use omir_core::stream::Event;
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};
use tempfile::{SpooledTempFile, spooled_tempfile_in};

use super::replace::{folder_beside, replace};
use super::{Encoding, is_standard, order};
use crate::error::{Error, Result};

/// Entries of this many bytes wait in memory.
const IN_MEMORY: usize = 1 << 20;

/// Entries are handed to the disk in portions of about this many bytes.
const PORTION: usize = 64 * 1024;

/// Levels of indentation around an entry.
const ENTRY_LEVEL: usize = 2;

/// A document, being written. Nothing is seen of it before [`Writer::finish`].
pub struct Writer {
    file: PathBuf,
    encoding: Encoding,
    in_schema_order: bool,
    /// The members beside the entries; where those stood there is an empty array.
    members: Vec<(String, Value)>,
    entries: Option<Spool>,
    /// The document, if it is no object.
    document: Option<Value>,
}

struct Spool {
    bytes: SpooledTempFile,
    portion: Vec<u8>,
    text: String,
    count: usize,
}

impl Writer {
    /// Prepares to write `file`, or standard output for `-`. Members come out in the order of the
    /// schemas if that is asked for, else as they come in; CBOR has an order of its own.
    #[must_use]
    pub fn new(file: &Path, encoding: Encoding, in_schema_order: bool) -> Self {
        let in_schema_order = in_schema_order && encoding == Encoding::Json;
        Self {
            file: file.to_owned(),
            encoding,
            in_schema_order,
            members: Vec::new(),
            entries: None,
            document: None,
        }
    }

    /// Takes the next part.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no room on the disk.
    pub fn part(&mut self, part: Event) -> Result<()> {
        match part {
            Event::Member(name, value) => self.members.push((name, value)),
            Event::Entries => {
                self.members.push(("entry".to_owned(), Value::Array(Vec::new())));
                self.entries = Some(Spool::new(&self.file));
            }
            Event::Entry(value) => {
                let value = if self.in_schema_order { order::resource(value) } else { value };
                if let Some(spool) = &mut self.entries {
                    spool
                        .push(&value, self.encoding)
                        .map_err(|why| cannot_write(&self.file, why))?;
                }
            }
            Event::Document(value) => self.document = Some(value),
        }
        Ok(())
    }

    /// Writes the document: all of it or none.
    ///
    /// # Errors
    /// [`Error::Input`] naming the file, [`Error::Output`] for standard output.
    pub fn finish(self) -> Result<()> {
        let file = self.file.clone();
        if is_standard(&file) {
            let mut out = io::stdout().lock();
            self.write(&mut out)?;
            return Ok(out.flush()?);
        }
        replace(&file, |out| self.write(out)).map_err(|why| cannot_write(&file, why))
    }

    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let members: Map = self.members.into_iter().collect();
        let Some(spool) = self.entries else {
            let value = self.document.unwrap_or(Value::Object(members));
            let value = if self.in_schema_order { order::in_schema_order(value) } else { value };
            return out.write_all(&self.encoding.write(&value));
        };
        match self.encoding {
            Encoding::Json if self.in_schema_order => {
                write_json(order::envelope(members), spool, out)
            }
            Encoding::Json => write_json(members, spool, out),
            Encoding::Cbor => write_cbor(members, spool, out),
        }
    }
}

/// As [`json::to_string_pretty`] writes an object, and a newline.
fn write_json(members: Map, mut spool: Spool, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::from("{");
    for (index, (name, value)) in members.into_iter().enumerate() {
        text.push_str(if index > 0 { ",\n  " } else { "\n  " });
        text.push_str(&json::to_string(&Value::Text(name.clone())));
        text.push_str(": ");
        if name == "entry" && spool.count > 0 {
            text.push('[');
            out.write_all(text.as_bytes())?;
            spool.copy(out)?;
            text.clear();
            text.push_str("\n  ]");
        } else {
            json::write_pretty(&value, 1, &mut text);
        }
    }
    text.push_str("\n}\n");
    out.write_all(text.as_bytes())
}

/// The one deterministic form (RFC 8949 §4.2.1): keys in the bytewise order of their encodings, which
/// is by length and then by bytes.
fn write_cbor(members: Map, mut spool: Spool, out: &mut dyn Write) -> io::Result<()> {
    let mut members: Vec<(String, Value)> = members.into_iter().collect();
    members.sort_unstable_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut bytes = Vec::new();
    cbor::write_map_header(members.len(), &mut bytes);
    for (name, value) in members {
        let is_entry = name == "entry";
        cbor::write(&Value::Text(name), &mut bytes);
        if is_entry {
            cbor::write_array_header(spool.count, &mut bytes);
            out.write_all(&bytes)?;
            spool.copy(out)?;
            bytes.clear();
        } else {
            cbor::write(&value, &mut bytes);
        }
    }
    out.write_all(&bytes)
}

impl Spool {
    fn new(file: &Path) -> Self {
        Self {
            bytes: spooled_tempfile_in(IN_MEMORY, folder_beside(file)),
            portion: Vec::new(),
            text: String::new(),
            count: 0,
        }
    }

    fn push(&mut self, entry: &Value, encoding: Encoding) -> io::Result<()> {
        match encoding {
            Encoding::Cbor => cbor::write(entry, &mut self.portion),
            Encoding::Json => {
                let separator: &[u8] = if self.count > 0 { b",\n    " } else { b"\n    " };
                self.portion.extend_from_slice(separator);
                self.text.clear();
                json::write_pretty(entry, ENTRY_LEVEL, &mut self.text);
                self.portion.extend_from_slice(self.text.as_bytes());
            }
        }
        self.count += 1;
        if self.portion.len() >= PORTION { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.bytes.write_all(&self.portion)?;
        self.portion.clear();
        Ok(())
    }

    fn copy(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.flush()?;
        self.bytes.rewind()?;
        io::copy(&mut self.bytes, out).map(drop)
    }
}

fn cannot_write(file: &Path, why: io::Error) -> Error {
    match is_standard(file) {
        true => Error::Output(why),
        false => Error::input(file, format!("cannot write: {why}")),
    }
}
