//! Where in a file what is: a walk over its records by their lengths, without reading what they hold.
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

/// A record longer than this is passed over; so is what a damaged length claims to be one.
pub(super) const MOST_RECORD: usize = 256 << 20;
/// Opcode and length before each record.
const FRAME: u64 = 9;
/// Bytes of a chunk before its name of the compression.
const CHUNK_HEADER: u64 = 40;
/// Bytes of a message before its data.
const MESSAGE_HEADER: u64 = 22;
/// Messages outside of chunks are taken together until they have so many bytes.
const RUN: u64 = 1 << 20;

/// A part of a file that holds whole records: a chunk, or messages in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where its first record begins.
    pub(super) offset: u64,
    /// Its bytes, with the frames of the records.
    pub(super) length: u64,
    /// The earliest log time in it, as it says itself.
    pub(super) start: u64,
    /// Channels that it has messages of, if its index says so.
    pub(super) channels: Vec<u16>,
    /// Whether its end is missing.
    pub(super) is_cut: bool,
}

/// Something of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The file.
    pub file: String,
    /// The byte in it.
    pub offset: u64,
    /// What is lost, and why.
    pub what: String,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) pieces: Vec<Piece>,
    pub(super) schemas: Vec<(u16, String, String, Vec<u8>)>,
    pub(super) channels: BTreeMap<u16, mcap::records::Channel>,
    /// Byte and what.
    pub(super) losses: Vec<(u64, String)>,
}

/// Walks over a file.
pub(super) fn scan(input: &mut (impl Read + Seek), name: &str) -> Result<Scan, RecordingError> {
    let unreadable = |why: io::Error| RecordingError::new(name, format!("cannot be read: {why}"));
    let size = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut first = Vec::new();
    input.by_ref().take(mcap::MAGIC.len() as u64).read_to_end(&mut first).map_err(unreadable)?;
    if first != mcap::MAGIC {
        return Err(RecordingError::new(name, not_mcap(&first)));
    }
    let mut walk =
        Walk { scan: Scan::default(), run: None, input: BufReader::new(&mut *input), size };
    let ended = walk.records().map_err(unreadable)?;
    walk.close();
    let mut scan = walk.scan;
    if let Some((offset, what)) = ended {
        let found = pieces_behind(input, size, offset);
        let what = match found.len() {
            0 => what,
            found => format!("{what}; {found} chunks behind it are found by the index"),
        };
        scan.losses.push((offset, what));
        scan.pieces.extend(found);
    }
    Ok(scan)
}

fn not_mcap(first: &[u8]) -> String {
    let is = |magic: &[u8]| first.starts_with(magic);
    if is(b"#ROSBAG") {
        "is a bag of ROS 1; `rosbags-convert` (PyPI: rosbags) makes an MCAP of it: \
         rosbags-convert --src FILE.bag --dst FOLDER --dst-storage mcap"
    } else if is(b"SQLite f") {
        "is a bag of rosbag2 in its older storage, sqlite3; `ros2 bag convert` or `rosbags-convert` \
         makes an MCAP of it"
    } else if is(&[0x28, 0xb5, 0x2f, 0xfd]) {
        "is compressed as a whole (zstd): unpack it first"
    } else {
        "is no MCAP file"
    }
    .to_owned()
}

struct Walk<R: Read + Seek> {
    scan: Scan,
    /// Messages outside of chunks that still grow.
    run: Option<Piece>,
    input: BufReader<R>,
    size: u64,
}

impl<R: Read + Seek> Walk<R> {
    /// Up to the end of the file, or to where it cannot go on and why.
    fn records(&mut self) -> io::Result<Option<(u64, String)>> {
        let mut offset = mcap::MAGIC.len() as u64;
        loop {
            let left = self.size.saturating_sub(offset);
            if left == 0 {
                let what = "the file ends here without an index: it was never finished, or cut off";
                return Ok(Some((offset, what.to_owned())));
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
                return Ok(None);
            }
            offset += FRAME + length;
            let rest = length.saturating_sub(read);
            self.input.seek_relative(i64::try_from(rest).unwrap_or(i64::MAX))?;
        }
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
                    piece.channels.push(u16::from_le_bytes(channel));
                }
                Ok(2)
            }
            op::SCHEMA | op::CHANNEL if !is_cut && length <= MOST_RECORD as u64 => {
                self.close();
                let mut bytes = Vec::new();
                self.input.by_ref().take(length).read_to_end(&mut bytes)?;
                match mcap::parse_record(opcode, &bytes) {
                    Ok(Record::Schema { header, data }) => {
                        let schema = (header.id, header.name, header.encoding, data.into_owned());
                        self.scan.schemas.push(schema);
                    }
                    Ok(Record::Channel(channel)) => {
                        self.scan.channels.insert(channel.id, channel);
                    }
                    Ok(_) => {}
                    Err(why) => self.scan.losses.push((offset, why.to_string())),
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
    let limit = usize::try_from(size).map_or(MOST_RECORD, |size| size.min(MOST_RECORD));
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
