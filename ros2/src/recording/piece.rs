//! The messages of one piece of a file.

use std::io::{self, Read, Seek, SeekFrom};

use mcap::McapError;
use mcap::records::{Record, op};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::bounds::{MOST_MESSAGES, weight};
use super::channels::Channels;
use super::scan::{FRAME, MOST_RECORD, Piece};

/// Bytes that the contents of a chunk, or one record in it, may take, and [`MOST_RATIO`] times what the chunk
/// has: nothing is reserved because a damaged length says so, and a small chunk does not unpack to a large one.
const LEAST_LIMIT: u64 = 32 << 20;
const MOST_RATIO: u64 = 1024;

/// A message of a channel that is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RawMessage {
    pub(super) log_time: u64,
    pub(super) channel: u16,
    pub(super) data: Vec<u8>,
}

/// Result of a piece.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// In the order of the file.
    pub(super) messages: Vec<RawMessage>,
    /// The reason, if it is not all.
    pub(super) loss: Option<String>,
}

/// Reads a piece. Schemas and channels in it become known to `channels`, which also says which
/// messages are wanted. Of a piece whose end is missing all that came before is used; of one that
/// is damaged nothing, since it is unknown what of it is right.
pub(super) fn read(
    input: &mut (impl Read + Seek),
    piece: &Piece,
    channels: &mut Channels,
) -> Contents {
    let mut contents = Contents::default();
    if let Err(why) = fill(input, piece, channels, &mut contents.messages) {
        let is_cut = matches!(why, McapError::UnexpectedEof | McapError::UnexpectedEoc);
        let found = contents.messages.len();
        if !(piece.is_cut && is_cut) {
            contents.messages.clear();
        }
        if piece.is_cut {
            // The walk over the file has told of it.
            return contents;
        }
        contents.loss = Some(match found {
            0 => format!("a chunk cannot be read: {why}"),
            found => {
                format!("a chunk cannot be read, and {found} messages in it are not used: {why}")
            }
        });
    }
    contents
}

fn fill(
    input: &mut (impl Read + Seek),
    piece: &Piece,
    channels: &mut Channels,
    messages: &mut Vec<RawMessage>,
) -> Result<(), McapError> {
    input.seek(SeekFrom::Start(piece.offset))?;
    let mut left = piece.length;
    let options = LinearReaderOptions::default()
        .with_skip_start_magic(true)
        .with_skip_end_magic(true)
        .with_validate_chunk_crcs(true)
        .with_record_length_limit(limit(piece));
    let (mut kept, mut unpacked) = (0_usize, 0_usize);
    let mut reader = LinearReader::new_with_options(options);
    while let Some(event) = reader.next_event() {
        let event = event?;
        if let LinearReadEvent::Record { data, .. } = &event {
            unpacked = unpacked.saturating_add(data.len()).saturating_add(FRAME as usize);
            if unpacked > limit(piece) {
                return Err(McapError::ChunkTooLarge(unpacked as u64));
            }
        }
        match event {
            LinearReadEvent::ReadRequest(need) => {
                // No more than is there: a damaged length must not make room for what never comes.
                let need = need.min(usize::try_from(left).unwrap_or(usize::MAX));
                let read = read_some(input, reader.insert(need))?;
                left -= read as u64;
                reader.notify_read(read);
            }
            LinearReadEvent::Record { opcode: op::MESSAGE, data } => {
                let Record::Message { header, data } = mcap::parse_record(op::MESSAGE, data)?
                else {
                    continue;
                };
                if channels.is_wanted(header.channel_id) {
                    kept = kept.saturating_add(weight(&data));
                    if kept > MOST_MESSAGES {
                        return Err(McapError::ChunkTooLarge(kept as u64));
                    }
                    messages.push(RawMessage {
                        log_time: header.log_time,
                        channel: header.channel_id,
                        data: data.into_owned(),
                    });
                }
            }
            LinearReadEvent::Record { opcode: opcode @ (op::SCHEMA | op::CHANNEL), data } => {
                match mcap::parse_record(opcode, data)? {
                    Record::Schema { header, data } => {
                        channels.add_schema(header.id, &header.name, &header.encoding, &data);
                    }
                    Record::Channel(channel) => channels.add(&channel),
                    _ => {}
                }
            }
            LinearReadEvent::Record { .. } => {}
        }
    }
    Ok(())
}

fn limit(piece: &Piece) -> usize {
    let limit = piece.length.saturating_mul(MOST_RATIO).saturating_add(LEAST_LIMIT);
    usize::try_from(limit).map_or(MOST_RECORD, |limit| limit.min(MOST_RECORD))
}

fn read_some(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    if into.is_empty() {
        return Ok(0);
    }
    loop {
        match input.read(into) {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
