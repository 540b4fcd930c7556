//! The received part of a pull, wherever it is to go: as little of it as possible lies in memory.
//!
//! For a file it lies in `FILE.part` beside it until all is there: a sequence of CBOR items (RFC 8742), first what was
//! asked for and of whom, then `{"items", "next", "lost"}` as they came. A last one that was cut short is dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use omir_core::cbor;
use omir_core::decode::Limits;
use omir_core::stream::Event;
use omir_core::value::{Map, Value};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::document::{self, Encoding, Writer};
use crate::error::{Error, Result};

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// No item is longer: a message has at most 2 MiB, unpacked.
const MOST_ITEM: usize = 4 << 20;

/// Of which memory it is, and of when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The name of the robot.
    pub robot: String,
    /// The memory within it.
    pub store: String,
    /// The instant of the first answer.
    pub as_of: String,
}

/// The resources received so far.
pub struct PartialPull {
    kept: Destination,
    /// The filter. What goes on has the instants of the first pull.
    pub filter: Map,
    /// The members of it that were given as spans, as they were given.
    spans: Map,
    /// Known once the first answer came.
    pub origin: Option<Origin>,
    /// The number to resume from.
    pub next: Option<u64>,
    /// Number of resources.
    pub count: u64,
    /// Number of resources the daemon could not read, and the fault of the first.
    pub lost: (u64, String),
}

enum Destination {
    Part(PathBuf, File),
    /// For standard output.
    Document(Box<Writer>),
}

impl PartialPull {
    /// Nothing yet, or what an earlier pull into the same file left. `spans` are the members of the `filter` that are
    /// instants for this pull alone: two pulls are the same if these are the same spans.
    ///
    /// # Errors
    /// [`Error::Input`]: `FILE.part` cannot be used, or is of another pull.
    pub fn open(output: Option<&Path>, filter: Map, spans: Map) -> Result<PartialPull> {
        let lost = (0, String::new());
        let origin = None;
        let new = |kept| PartialPull { kept, filter, spans, origin, next: None, count: 0, lost };
        let Some(output) = output.filter(|file| !document::is_standard(file)) else {
            return Ok(new(Destination::Document(Box::new(bundle(
                Path::new("-"),
                Encoding::Json,
            )?))));
        };
        let mut path = output.as_os_str().to_owned();
        path.push(".part");
        let path = PathBuf::from(path);
        let wrong = |error: io::Error| Error::input(&path, error);
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = file.map_err(wrong)?;
        // A file system without locks locks nothing.
        if let Err(Errno::WOULDBLOCK) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            return Err(Error::input(&path, "another pull writes to it"));
        }
        let mut items = Items::of(file.try_clone().map_err(wrong)?);
        let mut partial = new(Destination::Part(path.clone(), file));
        let mut whole = 0;
        while let Some(item) = items.next().map_err(wrong)? {
            let is_sound = if whole == 0 {
                partial.take_up(&path, &item)?;
                true
            } else {
                partial.count_up(&item)
            };
            if !is_sound {
                break;
            }
            whole = items.whole;
        }
        if let Destination::Part(_, file) = &partial.kept {
            file.set_len(whole).map_err(wrong)?;
        }
        Ok(partial)
    }

    /// Takes up the head of what an earlier pull left.
    fn take_up(&mut self, path: &Path, head: &Value) -> Result<()> {
        let start_over =
            |why: &str| Err(Error::input(path, format!("{why}; remove it to start over")));
        let object = |name| head.get(name).and_then(Value::as_object);
        let mut filter = self.filter.clone();
        for (name, _) in &self.spans {
            if let Some(instant) = object("filter").and_then(|filter| filter.get(name)) {
                filter.insert(name, instant.clone());
            }
        }
        let no_spans = Map::new();
        let same_spans = *object("spans").unwrap_or(&no_spans) == self.spans;
        if !same_spans || object("filter") != Some(&filter) {
            return start_over("is of a pull with other filters");
        }
        self.filter = filter;
        let text = |name| head.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(robot), Some(store), Some(as_of)) = (text("robot"), text("store"), text("asOf"))
        else {
            return start_over("does not say of which memory it is");
        };
        self.origin = Some(Origin { robot, store, as_of });
        Ok(())
    }

    /// Counts what came with an answer; false if it is none.
    fn count_up(&mut self, item: &Value) -> bool {
        let array = |name| item.get(name).and_then(Value::as_array);
        let next = item.get("next").and_then(Value::as_u64);
        let (Some(items), Some(next)) = (array("items"), next) else { return false };
        let lost = array("lost").unwrap_or_default();
        if let Some(first) = lost.first().and_then(Value::as_str).filter(|_| self.lost.0 == 0) {
            self.lost.1 = first.to_owned();
        }
        self.count += items.len() as u64;
        self.lost.0 += lost.len() as u64;
        self.next = Some(next);
        true
    }

    /// Checks that this robot's answer belongs to it.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn is_of(&self, robot: &str) -> Result<()> {
        match &self.origin {
            Some(origin) if origin.robot != robot => {
                let known = &origin.robot;
                Err(self.start_over(&format!("what came is of {known}, and this is {robot}")))
            }
            _ => Ok(()),
        }
    }

    /// The reason why it cannot go on, and the remedy.
    pub fn start_over(&self, why: &str) -> Error {
        match &self.kept {
            Destination::Part(path, _) => {
                Error::input(path, format!("{why}; remove it to start over"))
            }
            Destination::Document(_) => Error::Partial(format!("{why}; nothing was written")),
        }
    }

    /// A pull begins, or goes on.
    ///
    /// # Errors
    /// [`Error::Input`]: another memory answers, or the disk takes nothing.
    pub fn begin(&mut self, origin: Origin) -> Result<()> {
        if let Some(known) = &self.origin {
            if *known != origin {
                return Err(self.start_over("what came is of another memory, or of another time"));
            }
            return Ok(());
        }
        if let Destination::Part(path, file) = &mut self.kept {
            let mut head = Map::new();
            head.insert("robot", origin.robot.as_str());
            head.insert("store", origin.store.as_str());
            head.insert("asOf", origin.as_of.as_str());
            head.insert("filter", self.filter.clone());
            if !self.spans.is_empty() {
                head.insert("spans", self.spans.clone());
            }
            append(path, file, &Value::Object(head))?;
        }
        self.origin = Some(origin);
        Ok(())
    }

    /// Keeps what came.
    ///
    /// # Errors
    /// [`Error::Input`]: the disk does not take it.
    pub fn take(&mut self, items: Vec<Value>, next: u64, lost: Vec<String>) -> Result<()> {
        let mut members = Map::new();
        members.insert("items", items);
        members.insert("next", next);
        members.insert("lost", lost.into_iter().map(Value::from).collect::<Value>());
        let item = Value::Object(members);
        match &mut self.kept {
            Destination::Part(path, file) => append(path, file, &item)?,
            Destination::Document(writer) => _ = entries(writer, item.clone())?,
        }
        self.count_up(&item);
        Ok(())
    }

    /// Describes what an interrupted pull left; nothing if it left nothing.
    pub fn remains(&self) -> Option<String> {
        match &self.kept {
            Destination::Part(path, _) if self.next.is_some() => {
                let path = path.display();
                Some(format!("{} resources are in {path}: run this again to go on", self.count))
            }
            _ => None,
        }
    }

    /// Writes the document: all is there.
    ///
    /// # Errors
    /// It cannot be written; what came stays in `FILE.part`.
    pub fn finish(self, output: Option<&Path>) -> Result<()> {
        let (path, file) = match self.kept {
            Destination::Document(writer) => return writer.finish(),
            Destination::Part(path, file) => (path, file),
        };
        let output = output.unwrap_or(Path::new("-"));
        let mut writer = bundle(output, document::encoding_for_output(output)?)?;
        let wrong = |error: io::Error| Error::input(&path, error);
        let mut file = file;
        file.rewind().map_err(wrong)?;
        let mut items = Items::of(file);
        // The first is the head.
        items.next().map_err(wrong)?;
        let mut written = 0;
        while let Some(item) = items.next().map_err(wrong)? {
            written += entries(&mut writer, item)?;
        }
        if written != self.count {
            let message =
                format!("{written} of {} resources are in it: somebody wrote to it", self.count);
            return Err(Error::input(&path, message));
        }
        writer.finish()?;
        fs::remove_file(&path).map_err(wrong)
    }
}

fn append(path: &Path, file: &mut File, item: &Value) -> Result<()> {
    file.write_all(&cbor::to_vec(item)).map_err(|error| Error::input(path, error))
}

/// A Bundle to be written, as far as its entries.
fn bundle(file: &Path, encoding: Encoding) -> Result<Writer> {
    let mut writer = Writer::new(file, encoding, true);
    for (name, value) in [("resourceType", "Bundle"), ("omirVersion", "R1")] {
        writer.part(Event::Member(name.to_owned(), value.into()))?;
    }
    writer.part(Event::Entries)?;
    Ok(writer)
}

/// The resources of an answer, as entries of a Bundle; how many.
fn entries(writer: &mut Writer, item: Value) -> Result<u64> {
    let Value::Object(mut members) = item else { return Ok(0) };
    let Some(Value::Array(items)) = members.remove("items") else { return Ok(0) };
    let count = items.len() as u64;
    items.into_iter().try_for_each(|item| writer.part(Event::Entry(item)))?;
    Ok(count)
}

/// The items of a sequence, as long as they are whole.
struct Items<R> {
    from: R,
    /// Bytes read and not taken, from `at` on.
    buffer: Vec<u8>,
    at: usize,
    /// Bytes of the items that were taken.
    whole: u64,
}

impl<R: Read> Items<R> {
    fn of(from: R) -> Self {
        Items { from, buffer: Vec::new(), at: 0, whole: 0 }
    }

    fn next(&mut self) -> io::Result<Option<Value>> {
        let limits = Limits::default();
        loop {
            let rest = &self.buffer[self.at..];
            if !rest.is_empty()
                && let Ok((item, length)) = cbor::read_item(rest, &limits)
            {
                self.at += length;
                self.whole += length as u64;
                return Ok(Some(item));
            }
            if rest.len() > MOST_ITEM {
                return Ok(None);
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            // Twice as much each time, so that a long item is not looked at too often.
            let more = PIECE.max(self.buffer.len()) as u64;
            if self.from.by_ref().take(more).read_to_end(&mut self.buffer)? == 0 {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(n: u64, size: usize) -> Value {
        let mut members = Map::new();
        members.insert("items", vec![Value::from("x".repeat(size))]);
        members.insert("next", n);
        Value::Object(members)
    }

    #[test]
    fn a_sequence_is_read_as_far_as_it_is_whole() {
        let sizes = [0, 1, 100, PIECE - 20, PIECE, 3 * PIECE, 2 << 20, 7];
        let all: Vec<Value> = sizes.iter().map(|&size| answer(size as u64, size)).collect();
        let bytes: Vec<Vec<u8>> = all.iter().map(cbor::to_vec).collect();
        let whole = bytes.concat();
        let last = bytes.last().unwrap().len();
        for (cut, expected) in
            [(0, all.len()), (1, all.len() - 1), (last - 1, all.len() - 1), (last, all.len() - 1)]
        {
            let mut items = Items::of(&whole[..whole.len() - cut]);
            for item in &all[..expected] {
                assert_eq!(items.next().unwrap().as_ref(), Some(item));
                assert!(items.buffer.len() < 6 << 20, "{} in memory", items.buffer.len());
            }
            assert_eq!(items.next().unwrap(), None);
            assert_eq!(items.whole as usize, bytes[..expected].concat().len());
        }
        // Bytes that are no item end it too, however many follow.
        let noise = vec![0xff; 20 << 20];
        let mut items = Items::of(&noise[..]);
        assert_eq!(items.next().unwrap(), None);
        assert!(items.buffer.len() < 12 << 20);
    }

    #[test]
    fn two_do_not_pull_into_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.omir");
        let first = PartialPull::open(Some(&file), Map::new(), Map::new()).unwrap();
        let again = PartialPull::open(Some(&file), Map::new(), Map::new());
        let Err(error) = again else { panic!("both write") };
        assert!(error.to_string().contains("another pull"), "{error}");
        drop(first);
        PartialPull::open(Some(&file), Map::new(), Map::new()).unwrap();
    }

    #[test]
    fn a_pull_of_the_same_span_goes_on_with_its_first_instant() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.omir");
        let one = |value: &str| -> Map { [("after", value)].into_iter().collect() };
        let open = |after: &str, spans: Map| PartialPull::open(Some(&file), one(after), spans);
        let origin = Origin { robot: "r".into(), store: "s".into(), as_of: "t".into() };
        let mut partial = open("2026-01-01T00:00:00Z", one("now(-3600s)")).unwrap();
        partial.begin(origin).unwrap();
        drop(partial);
        let partial = open("2026-01-01T00:05:00Z", one("now(-3600s)")).unwrap();
        assert_eq!(partial.filter, one("2026-01-01T00:00:00Z"));
        drop(partial);
        for (after, spans) in [
            ("2026-01-01T00:05:00Z", one("now(-60s)")),
            ("2026-01-01T00:05:00Z", Map::new()),
            ("2026-01-01T00:00:00Z", Map::new()),
        ] {
            let Err(error) = open(after, spans) else { panic!("it is another pull") };
            assert!(error.to_string().contains("other filters"), "{error}");
        }
    }
}
