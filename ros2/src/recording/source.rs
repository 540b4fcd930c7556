//! A recording of one or many files, message by message in the order of their log times.
//!
//! Pieces are read one after another, and a message is handed out when no piece that is still unread
//! can hold an earlier one. Memory is what overlapping pieces hold of the wanted channels, and no
//! more than `bounds.rs` allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use tempfile::NamedTempFile;

use super::RecordingError;
use super::bounds::{MOST_DESCRIBED, MOST_HELD, MOST_STATIC, weight};
use super::channels::{Channel, ChannelFilter, Channels};
use super::input::{Input, Kind, Source};
use super::losses::{At, Loss, Losses};
use super::piece::{self, Contents};
use super::scan::{Piece, Scan, scan};
use super::sqlite;
use super::types::Types;
use super::unpack;
use crate::stamp::Stamp;

/// A message as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its channel.
    pub channel: Arc<Channel>,
    /// Time at which it was recorded.
    pub log_time: Stamp,
    /// The message, encoded.
    pub data: Vec<u8>,
}

/// One or many files as one sequence of messages.
pub struct Recording {
    files: Vec<File>,
    /// The next one last.
    pieces: Vec<(usize, Piece)>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    held: usize,
    count: u64,
    latest: u64,
    losses: Losses,
    size: u64,
    position: u64,
    disordered: u64,
    /// A file that was compressed as a whole, while it is read.
    unpacked: Vec<NamedTempFile>,
}

struct File {
    name: String,
    storage: Storage,
    channels: Channels,
    /// True if the channels were known before any piece was read.
    is_indexed: bool,
}

/// The layout of the messages in a file.
enum Storage {
    Mcap(Box<dyn Source>),
    Sqlite(sqlite::Bag),
}

impl Storage {
    /// Looks where in a file what is.
    fn open(mut input: Input, losses: &mut Losses) -> Result<(Self, Scan), RecordingError> {
        let name = input.name.clone();
        let unreadable = |why| RecordingError::new(&name, format!("cannot be read: {why}"));
        let kind = Kind::sniff(&mut *input.source).map_err(unreadable)?;
        match (kind, input.path) {
            (Some(Kind::Sqlite), Some(path)) => {
                let (bag, found) = sqlite::Bag::open(&path, &name, losses)?;
                Ok((Self::Sqlite(bag), found))
            }
            (Some(Kind::Sqlite), None) => {
                let why = "is an SQLite database, which is read from a file on the disk alone";
                Err(RecordingError::new(&name, why))
            }
            (_, _) => {
                let found = scan(&mut input.source, &name, losses)?;
                Ok((Self::Mcap(input.source), found))
            }
        }
    }

    fn read(&mut self, piece: &Piece, channels: &mut Channels) -> Contents {
        match self {
            Self::Mcap(input) => piece::read(input, piece, channels),
            Self::Sqlite(bag) => bag.read(piece, channels),
        }
    }

    fn at(&self, piece: &Piece) -> At {
        match self {
            Self::Mcap(_) => At::Byte(piece.offset),
            Self::Sqlite(bag) => At::Row(bag.first_row(piece)),
        }
    }
}

/// A message that earlier ones may come before; of one time, in the order in which they were read.
struct Waiting {
    log_time: u64,
    count: u64,
    message: Recorded,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.log_time, self.count).cmp(&(other.log_time, other.count))
    }
}

impl Recording {
    /// Looks where in the files what is, and reads nothing of it yet.
    ///
    /// # Errors
    /// A file that cannot be read or is no recording; one that is damaged is none.
    pub(super) fn open(
        files: Vec<Input>,
        types: &Types,
        wanted: &Rc<ChannelFilter>,
    ) -> Result<Self, RecordingError> {
        let mut recording = Self {
            files: Vec::new(),
            pieces: Vec::new(),
            waiting: BinaryHeap::new(),
            held: 0,
            count: 0,
            latest: 0,
            losses: Losses::default(),
            size: 0,
            position: 0,
            disordered: 0,
            unpacked: Vec::new(),
        };
        for mut input in files {
            let name = input.name.clone();
            let unreadable = |why| RecordingError::new(&name, format!("cannot be read: {why}"));
            let kind = Kind::sniff(&mut *input.source).map_err(unreadable)?;
            if let Some(packed @ (Kind::Zstd | Kind::Gzip)) = kind {
                let (unpacked, kept) = unpack::file(input, packed)?;
                input = unpacked;
                recording.unpacked.push(kept);
            }
            let (storage, found) = Storage::open(input, &mut recording.losses)?;
            let mut channels = Channels::new(types.clone(), wanted.clone());
            for (id, (name, encoding, text)) in &found.schemas {
                channels.add_schema(*id, name, encoding, text);
            }
            found.channels.values().for_each(|channel| channels.add(channel));
            let mut pieces = found.pieces;
            let is_indexed = !found.channels.is_empty();
            if !is_indexed {
                // Each piece may need what an earlier one says of its channels: keep their order.
                let mut least = u64::MAX;
                for piece in pieces.iter_mut().rev().filter(|piece| piece.start > 0) {
                    least = least.min(piece.start);
                    piece.start = least;
                }
            }
            let index = recording.files.len();
            recording.size += pieces.iter().map(|piece| piece.length).sum::<u64>();
            recording.pieces.extend(pieces.into_iter().map(|piece| (index, piece)));
            recording.files.push(File { name, storage, channels, is_indexed });
        }
        recording.pieces.sort_by_key(|(file, piece)| Reverse((piece.start, *file, piece.offset)));
        Ok(recording)
    }

    /// The next message of a channel that is wanted.
    pub fn next_message(&mut self) -> Option<Recorded> {
        while let Some((_, piece)) = self.pieces.last() {
            let is_ready =
                self.waiting.peek().is_some_and(|Reverse(first)| first.log_time < piece.start);
            if is_ready || self.held > MOST_HELD {
                break;
            }
            self.read_piece();
        }
        let Reverse(Waiting { log_time, message, .. }) = self.waiting.pop()?;
        self.held -= weight(&message.data);
        self.disordered += u64::from(log_time < self.latest);
        self.latest = self.latest.max(log_time);
        Some(message)
    }

    fn read_piece(&mut self) {
        let Some((index, piece)) = self.pieces.pop() else { return };
        let file = &mut self.files[index];
        let contents = file.storage.read(&piece, &mut file.channels);
        self.position += piece.length;
        for found in contents.messages {
            let Some(channel) = file.channels.get(found.channel).cloned() else { continue };
            self.held += weight(&found.data);
            self.count += 1;
            let log_time = Stamp::from_nanos(i64::try_from(found.log_time).unwrap_or(i64::MAX));
            let message = Recorded { channel, log_time, data: found.data };
            let waiting = Waiting { log_time: found.log_time, count: self.count, message };
            self.waiting.push(Reverse(waiting));
        }
        if let Some(what) = contents.loss {
            self.losses.add(&file.name, file.storage.at(&piece), what);
        }
    }

    /// Reads what the first pieces with a channel that `matches` hold of it, up to `most` pieces. Where no
    /// index says which pieces these are, the first ones are looked at.
    pub(super) fn ahead(
        &mut self,
        most: usize,
        matches: impl Fn(&Channel) -> bool,
    ) -> Vec<Recorded> {
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut looked_at = vec![0; self.files.len()];
        for (index, piece) in self.pieces.iter().rev() {
            let Some(file) = self.files.get_mut(*index) else { continue };
            let File { storage, channels, is_indexed, .. } = file;
            let is_one = |id: &u16| channels.get(*id).is_some_and(|channel| matches(channel));
            // Without an index each piece may tell what later ones are made of.
            let may_have =
                !*is_indexed || piece.channels.is_empty() || piece.channels.iter().any(is_one);
            if looked_at[*index] >= most || !may_have {
                continue;
            }
            looked_at[*index] += 1;
            for message in storage.read(piece, channels).messages {
                let Some(channel) = channels.get(message.channel) else { continue };
                if matches(channel) && bytes < MOST_STATIC {
                    bytes += weight(&message.data);
                    let nanos = i64::try_from(message.log_time).unwrap_or(i64::MAX);
                    found.push(Recorded {
                        channel: channel.clone(),
                        log_time: Stamp::from_nanos(nanos),
                        data: message.data,
                    });
                }
            }
        }
        self.files.iter_mut().for_each(|file| file.channels.reset_counts());
        found
    }

    /// Every channel of every file, with how many messages of it were met so far and whether they
    /// are wanted.
    pub(super) fn channels(&self) -> impl Iterator<Item = (&Channel, u64, bool)> {
        let files = self.files.iter();
        files.flat_map(|file| file.channels.all()).map(|(_, channel, seen, is)| (channel, seen, is))
    }

    /// Parts that could not be used so far.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses = self.losses.all();
        for File { name, channels, .. } in &self.files {
            let mut add = |what| losses.push(Loss { file: name.clone(), at: At::File, what });
            if channels.unknown > 0 {
                let unknown = channels.unknown;
                add(format!("{unknown} messages of channels that it does not describe"));
            }
            if channels.too_many > 0 {
                let many = channels.too_many;
                add(format!(
                    "{many} channels are not read: {MOST_DESCRIBED} bytes are full of others"
                ));
            }
        }
        losses
    }

    /// Bytes of all pieces.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the pieces that were read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Messages that came after later ones, because too many overlap.
    pub fn disordered(&self) -> u64 {
        self.disordered
    }
}
