//! Reading a document part by part: what `omir convert` and `omir validate` do with documents larger
//! than memory.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use omir_core::decode::{DecodeError, Limits};
use omir_core::stream::{Event, Source, StreamError};
use omir_core::{cbor, json};

use super::{Encoding, capture, is_standard};
use crate::error::{Error, Result};

/// As many first bytes as tell the encoding.
const SNIFFED: u64 = 4;

/// A document, being read.
pub struct Parts {
    events: Events,
    name: PathBuf,
    size: Option<u64>,
}

enum Events {
    Json(json::Events<Input>),
    Cbor(cbor::Events<Input>),
}

/// Bytes of a file, a pipe or a test.
struct Input(Box<dyn Read>);

impl Source for Input {
    type Error = io::Error;

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl Parts {
    /// Opens a file, or standard input for `-`. The ending says what it is; without one that does, the
    /// first byte.
    ///
    /// # Errors
    /// [`Error::Input`] naming the file.
    pub fn open(file: &Path) -> Result<Self> {
        if is_standard(file) {
            return Self::read(file, None, Box::new(io::stdin()));
        }
        let opened = File::open(file).map_err(|why| Error::input(file, why))?;
        let found = opened.metadata().map_err(|why| Error::input(file, why))?;
        let mut parts = Self::read(file, Encoding::of_ending(file), Box::new(opened))?;
        parts.size = found.is_file().then_some(found.len());
        Ok(parts)
    }

    fn read(name: &Path, encoding: Option<Encoding>, mut input: Box<dyn Read>) -> Result<Self> {
        let mut start = Vec::new();
        let sniffed = input.by_ref().take(SNIFFED).read_to_end(&mut start);
        sniffed.map_err(|why| Error::input(name, why))?;
        let encoding = encoding.unwrap_or_else(|| Encoding::sniff(&start));
        if capture::may_be(&start) {
            // No more than a cable carries while a person waits.
            input.read_to_end(&mut start).map_err(|why| Error::input(name, why))?;
            if let Some(document) = capture::document(&start) {
                start = document.map_err(|why| Error::input(name, why))?;
            }
        }
        let input = Input(Box::new(Cursor::new(start).chain(input)));
        let limits = Limits::default();
        let events = match encoding {
            Encoding::Json => Events::Json(json::Events::new(input, &limits)),
            Encoding::Cbor => Events::Cbor(cbor::Events::new(input, &limits)),
        };
        Ok(Self { events, name: name.to_owned(), size: None })
    }

    /// Its encoding.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self.events {
            Events::Json(_) => Encoding::Json,
            Events::Cbor(_) => Encoding::Cbor,
        }
    }

    /// Its size in bytes, if that is known beforehand.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Number of bytes that are read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        let offset = match &self.events {
            Events::Json(events) => events.offset(),
            Events::Cbor(events) => events.offset(),
        };
        offset as u64
    }

    /// The next part; `None` behind the last.
    ///
    /// # Errors
    /// [`Error::Input`] naming the file and, where the document is at fault, the place in it.
    pub fn next_part(&mut self) -> Result<Option<Event>> {
        let part = match &mut self.events {
            Events::Json(events) => events.next(),
            Events::Cbor(events) => events.next(),
        };
        part.map_err(|why| match why {
            StreamError::Source(why) => Error::input(&self.name, why),
            StreamError::Decode(why) => unreadable(&self.name, self.encoding(), &why),
        })
    }
}

/// The refusal of a file's bytes: what it is instead of a document, or file, encoding, place and fault.
pub(super) fn unreadable(file: &Path, encoding: Encoding, why: &DecodeError) -> Error {
    let refused = |message: String| Error::Input {
        message: format!("{}: {message}", file.display()),
        path: Some(why.pointer.clone()),
    };
    if std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() == 0) {
        return refused("is empty".to_owned());
    }
    if why.offset == 0 {
        let name = encoding.name();
        return refused(format!(
            "is no OMIR document: .omir holds JSON and .omirb CBOR, and it does not begin as {name} ({})",
            why.message
        ));
    }
    let line = if encoding == Encoding::Json { line_of(file, why.offset) } else { None };
    let line = line.map(|line| format!("line {line}, ")).unwrap_or_default();
    if why.message.starts_with("EOF while") {
        return refused(format!(
            "ends in the middle ({line}at byte {}): it was cut off",
            why.offset
        ));
    }
    refused(format!("unreadable {}: {line}{why}", encoding.name()))
}

/// The line, from one on, of a byte of a file that can be read a second time.
fn line_of(file: &Path, offset: usize) -> Option<usize> {
    if is_standard(file) || !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut start = BufReader::new(File::open(file).ok()?.take(offset as u64));
    let mut line = 1;
    loop {
        let bytes = start.fill_buf().ok()?;
        if bytes.is_empty() {
            return Some(line);
        }
        line += bytes.iter().filter(|byte| **byte == b'\n').count();
        let read = bytes.len();
        start.consume(read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(encoding: Option<Encoding>, bytes: &'static [u8]) -> Result<(Encoding, usize)> {
        let mut parts = Parts::read(Path::new("x"), encoding, Box::new(bytes))?;
        let mut count = 0;
        while parts.next_part()?.is_some() {
            count += 1;
        }
        assert_eq!(parts.offset(), bytes.len() as u64);
        Ok((parts.encoding(), count))
    }

    #[test]
    fn the_first_byte_tells_what_the_ending_does_not() {
        let json = br#"{"omirVersion":"R1","entry":[{},{}]}"#;
        assert_eq!(events(None, json).unwrap(), (Encoding::Json, 4));
        let cbor = b"\xd9\xd9\xf7\xa1\x65entry\x82\xa0\xa0";
        assert_eq!(events(None, cbor).unwrap(), (Encoding::Cbor, 3));
        assert_eq!(events(Some(Encoding::Cbor), b"\x01").unwrap(), (Encoding::Cbor, 1));
        assert_eq!(events(None, b"3").unwrap(), (Encoding::Json, 1));
    }

    #[test]
    fn a_fault_in_a_text_file_names_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.omir");
        std::fs::write(&file, "{\n\n\"a\": nil}").unwrap();
        let error = Parts::open(&file).unwrap().next_part().unwrap_err();
        assert!(error.to_string().contains("unreadable JSON: line 3, at byte 9"), "{error}");
        assert_eq!(line_of(&file, 2), Some(2));
    }

    #[test]
    fn a_fault_names_file_place_and_encoding() {
        let error = events(None, br#"{"entry":[{"a":1,"a":2}]}"#).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("x: unreadable JSON: at byte 17 (/entry/0): "), "{text}");
        assert_eq!(error.path(), Some("/entry/0"));
        let error = events(None, b"").unwrap_err();
        assert!(error.to_string().contains("EOF"), "{error}");
        assert!(events(None, b"\xEF\xBB\xBF{}").unwrap_err().to_string().contains("byte order"));
    }
}
