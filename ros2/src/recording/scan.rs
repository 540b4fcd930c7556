//! Finds the parts of a file: a walk over its records by their lengths, without reading what they hold.
//!
//! The walk needs no index, so that a file which was cut off, was never finished or was written without
//! chunks is read like any other; it costs one seek for each chunk. Where a record is damaged the
//! index at the end of the file, if there is one, tells where the next chunks are.
//! <https://mcap.dev/spec>

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use mcap::records::{Record, op};
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};

use super::RecordingError;
use super::bounds::{
    MOST_DESCRIBED, MOST_DESCRIPTION, MOST_INDEX, MOST_INDEXED, MOST_PIECES, described,
};
use super::input::Kind;
use super::losses::Losses;

/// A record longer than this is passed over; so is what a damaged length claims to be one.
pub(super) const MOST_RECORD: usize = 256 << 20;
/// Opcode and length before each record.
pub(super) const FRAME: u64 = 9;
/// Bytes of a chunk before its name of the compression.
const CHUNK_HEADER: u64 = 40;
/// Bytes of a message before its data.
const MESSAGE_HEADER: u64 = 22;
/// Bytes of a footer.
const FOOTER: u64 = 20;
/// Messages outside of chunks are taken together until they have so many bytes.
const RUN: u64 = 1 << 20;

/// A part of a file that holds whole records: a chunk, or messages in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Position of its first record.
    pub(super) offset: u64,
    /// Its bytes, with the frames of the records.
    pub(super) length: u64,
    /// The earliest log time in it, as it says itself.
    pub(super) start: u64,
    /// Channels that it has messages of, if its index says so.
    pub(super) channels: Vec<u16>,
    /// True if its end is missing.
    pub(super) is_cut: bool,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) pieces: Vec<Piece>,
    /// Name, encoding and text.
    pub(super) schemas: BTreeMap<u16, (String, String, Vec<u8>)>,
    pub(super) channels: BTreeMap<u16, mcap::records::Channel>,
}

/// Walks over a file.
pub(super) fn scan(
    input: &mut (impl Read + Seek),
    name: &str,
    losses: &mut Losses,
) -> Result<Scan, RecordingError> {
    let unreadable = |why: io::Error| RecordingError::new(name, format!("cannot be read: {why}"));
    let size = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut first = Vec::new();
    input.by_ref().take(16).read_to_end(&mut first).map_err(unreadable)?;
    if !first.starts_with(mcap::MAGIC) {
        return Err(RecordingError::new(name, not_mcap(name, &first)));
    }
    input.seek(SeekFrom::Start(mcap::MAGIC.len() as u64)).map_err(unreadable)?;
    let mut walk = Walk {
        scan: Scan::default(),
        run: None,
        input: BufReader::new(&mut *input),
        size,
        name,
        losses,
        described: 0,
        indexed: 0,
    };
    let ended = walk.records().map_err(unreadable)?;
    walk.close();
    let mut scan = walk.scan;
    let room = MOST_PIECES.saturating_sub(scan.pieces.len());
    if let Some((offset, what)) = ended {
        let mut found = pieces_behind(input, size, offset);
        found.truncate(room);
        let what = match found.len() {
            0 => what,
            found => format!("{what}; {found} chunks behind it are found by the index"),
        };
        losses.add(name, offset, what);
        scan.pieces.extend(found);
    }
    Ok(scan)
}

fn not_mcap(name: &str, first: &[u8]) -> String {
    match Kind::of(first) {
        Some(Kind::Bag) => format!(
            "is a bag of ROS 1; `rosbags-convert` (PyPI: rosbags) makes one of ROS 2 of it: rosbags-convert --src \
             {name} --dst FOLDER; then: omir import FOLDER"
        ),
        Some(Kind::Zstd | Kind::Gzip) => {
            "is compressed twice as a whole: unpack it first".to_owned()
        }
        _ => "is no recording: neither MCAP nor a bag of rosbag2 (.db3)".to_owned(),
    }
}

struct Walk<'a, R: Read + Seek> {
    scan: Scan,
    /// Messages outside of chunks that still grow.
    run: Option<Piece>,
    input: BufReader<R>,
    size: u64,
    /// Of the file.
    name: &'a str,
    losses: &'a mut Losses,
    /// Memory of schemas and channels so far.
    described: usize,
    /// Channels that indexes named so far.
    indexed: usize,
}

impl<R: Read + Seek> Walk<'_, R> {
    /// Up to the end of the file, or to where it cannot go on and why.
    fn records(&mut self) -> io::Result<Option<(u64, String)>> {
        let mut offset = mcap::MAGIC.len() as u64;
        loop {
            let left = self.size.saturating_sub(offset);
            if left == 0 {
                let what = "the file ends here without an index: it was never finished, or cut off";
                return Ok(Some((offset, what.to_owned())));
            }
            if self.scan.pieces.len() >= MOST_PIECES {
                let what = format!("there are more than {MOST_PIECES} chunks: these are not read");
                self.losses.add(self.name, offset, what);
                return Ok(None);
            }
            if left < FRAME {
                return Ok(Some((offset, "the file is cut off here, in a record".to_owned())));
            }
            let mut frame = [0; FRAME as usize];
            self.input.read_exact(&mut frame)?;
            let [opcode, length @ ..] = frame;
            let length = u64::from_le_bytes(length);
            if opcode == 0 {
                return Ok(Some((offset, "no record begins here: the file is damaged".to_owned())));
            }
            let there = left - FRAME;
            let is_cut = length > there;
            let read = self.record(opcode, offset, length, there)?;
            if is_cut {
                let what = format!(
                    "a record of {length} bytes begins here, and the file has {there} more: it was \
                     cut off, or is damaged"
                );
                return Ok(Some((offset, what)));
            }
            if opcode == op::FOOTER {
                return self.end(offset, length, there);
            }
            offset += FRAME + length;
            let rest = length.saturating_sub(read);
            self.input.seek_relative(i64::try_from(rest).unwrap_or(i64::MAX))?;
        }
    }

    /// Nothing where a footer ends the file; else where the walk cannot go on and why. Of the magic behind it a part may
    /// be cut off: nothing is missing then.
    fn end(&mut self, offset: u64, length: u64, there: u64) -> io::Result<Option<(u64, String)>> {
        let magic = mcap::MAGIC.len() as u64;
        if length == FOOTER && there <= FOOTER + magic {
            let mut bytes = Vec::new();
            self.input.by_ref().take(there).read_to_end(&mut bytes)?;
            if bytes.get(FOOTER as usize..).is_some_and(|end| mcap::MAGIC.starts_with(end)) {
                return Ok(None);
            }
        }
        let what = format!(
            "a footer begins here and does not end the file ({there} bytes follow): several files \
             were put together, which are imported one by one, or it is damaged"
        );
        Ok(Some((offset, what)))
    }

    /// Looks at a record of which so many bytes are there, and says how many of these were read.
    fn record(&mut self, opcode: u8, offset: u64, length: u64, there: u64) -> io::Result<u64> {
        let is_cut = length > there;
        match opcode {
            op::CHUNK => {
                self.close();
                if length.min(there) < CHUNK_HEADER {
                    return Ok(0);
                }
                let start = self.u64()?;
                let length = FRAME + length.min(there);
                let channels = Vec::new();
                self.scan.pieces.push(Piece { offset, length, start, channels, is_cut });
                Ok(8)
            }
            op::MESSAGE if length >= MESSAGE_HEADER && !is_cut => {
                let mut bytes = [0; MESSAGE_HEADER as usize];
                self.input.read_exact(&mut bytes)?;
                // Channel, sequence, log time, publish time.
                let log_time = bytes.get(6..14).and_then(|time| time.try_into().ok());
                self.grow(offset, FRAME + length, log_time.map_or(0, u64::from_le_bytes));
                Ok(MESSAGE_HEADER)
            }
            op::MESSAGE_INDEX if length >= 2 && there >= 2 => {
                let mut channel = [0; 2];
                self.input.read_exact(&mut channel)?;
                if let Some(piece) = self.scan.pieces.last_mut() {
                    self.indexed += 1;
                    if self.indexed <= MOST_INDEXED {
                        piece.channels.push(u16::from_le_bytes(channel));
                    } else {
                        // Part of it would say that others are not in it.
                        piece.channels = Vec::new();
                    }
                }
                Ok(2)
            }
            op::SCHEMA | op::CHANNEL if !is_cut => {
                self.close();
                if length > MOST_DESCRIPTION as u64 {
                    let what = format!("{length} bytes for one type or channel: it is not read");
                    self.losses.add(self.name, offset, what);
                    return Ok(0);
                }
                let mut bytes = Vec::new();
                self.input.by_ref().take(length).read_to_end(&mut bytes)?;
                let is_new = match mcap::parse_record(opcode, &bytes) {
                    Ok(Record::Schema { header, data }) => {
                        let schema = (header.name, header.encoding, data.into_owned());
                        let is_new = self.scan.schemas.get(&header.id) != Some(&schema);
                        if is_new && self.described < MOST_DESCRIBED {
                            self.scan.schemas.insert(header.id, schema);
                        }
                        is_new
                    }
                    Ok(Record::Channel(channel)) => {
                        let is_new = self.scan.channels.get(&channel.id) != Some(&channel);
                        if is_new && self.described < MOST_DESCRIBED {
                            self.scan.channels.insert(channel.id, channel);
                        }
                        is_new
                    }
                    Ok(_) => false,
                    Err(why) => {
                        self.losses.add(self.name, offset, why.to_string());
                        false
                    }
                };
                if is_new {
                    if self.described >= MOST_DESCRIBED {
                        let what = format!(
                            "types and channels take more than {MOST_DESCRIBED} bytes: this one is \
                             not read"
                        );
                        self.losses.add(self.name, offset, what);
                    }
                    self.described = self.described.saturating_add(described(&[&bytes]));
                }
                Ok(length)
            }
            _ => {
                self.close();
                Ok(0)
            }
        }
    }

    fn u64(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.input.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Adds a message to those before it.
    fn grow(&mut self, offset: u64, length: u64, log_time: u64) {
        match &mut self.run {
            Some(run) if run.length < RUN => {
                run.length += length;
                run.start = run.start.min(log_time);
            }
            _ => {
                self.close();
                self.run = Some(Piece {
                    offset,
                    length,
                    start: log_time,
                    channels: Vec::new(),
                    is_cut: false,
                });
            }
        }
    }

    fn close(&mut self) {
        self.scan.pieces.extend(self.run.take());
    }
}

/// The chunks that the index at the end of the file tells of behind `offset`.
fn pieces_behind(input: &mut (impl Read + Seek), size: u64, offset: u64) -> Vec<Piece> {
    let Some(summary) = summary(input, size) else { return Vec::new() };
    let mut pieces: Vec<Piece> = summary
        .chunk_indexes
        .iter()
        .filter(|chunk| {
            let end = chunk.chunk_start_offset.checked_add(chunk.chunk_length);
            chunk.chunk_start_offset > offset && end.is_some_and(|end| end <= size)
        })
        .map(|chunk| Piece {
            offset: chunk.chunk_start_offset,
            length: chunk.chunk_length,
            start: chunk.message_start_time,
            channels: chunk.message_index_offsets.keys().copied().collect(),
            is_cut: false,
        })
        .collect();
    pieces.sort_by_key(|piece| piece.offset);
    pieces.dedup_by_key(|piece| piece.offset);
    pieces
}

/// The index at the end of the file, if it can be read.
fn summary(input: &mut (impl Read + Seek), size: u64) -> Option<mcap::Summary> {
    let limit = usize::try_from(size.min(MOST_INDEX)).ok()?;
    // All of it is taken into memory. The footer, which says where it begins, ends with a checksum and
    // is followed by the magic.
    let mut start = [0; 8];
    input.seek(SeekFrom::Start(size.checked_sub(8 + 4 + 8 + 8)?)).ok()?;
    input.read_exact(&mut start).ok()?;
    if size.checked_sub(u64::from_le_bytes(start))? > MOST_INDEX {
        return None;
    }
    input.seek(SeekFrom::Start(0)).ok()?;
    let options =
        SummaryReaderOptions::default().with_file_size(size).with_record_length_limit(limit);
    let mut reader = SummaryReader::new_with_options(options);
    while let Some(event) = reader.next_event() {
        match event.ok()? {
            SummaryReadEvent::ReadRequest(need) => {
                let read = input.read(reader.insert(need.min(limit))).ok()?;
                reader.notify_read(read);
            }
            SummaryReadEvent::SeekRequest(to) => reader.notify_seeked(input.seek(to).ok()?),
        }
    }
    reader.finish()
}
