//! A recording of one or many files, message by message in the order of their log times.
//!
//! Pieces are read one after another, and a message is handed out when no piece that is still unread
//! can hold an earlier one. Memory is what overlapping pieces hold of the wanted channels, and no
//! more than `bounds.rs` allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Seek};
use std::rc::Rc;
use std::sync::Arc;

use super::RecordingError;
use super::bounds::{MOST_DESCRIBED, MOST_HELD, MOST_STATIC, weight};
use super::channels::{Channel, Channels, Wanted};
use super::losses::{Loss, Losses};
use super::piece;
use super::scan::{Piece, scan};
use super::types::Types;
use crate::stamp::Stamp;

/// What a recording is read from.
pub trait Source: Read + Seek {}

impl<S: Read + Seek> Source for S {}

/// A message as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its channel.
    pub channel: Arc<Channel>,
    /// When it was recorded.
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
}

struct File {
    name: String,
    input: Box<dyn Source>,
    channels: Channels,
    /// Whether the channels were known before any piece was read.
    is_indexed: bool,
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
    /// A file that cannot be read or is no MCAP; one that is damaged is none.
    pub(super) fn open(
        files: Vec<(String, Box<dyn Source>)>,
        types: &Types,
        wanted: &Rc<Wanted>,
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
        };
        for (name, mut input) in files {
            let found = scan(&mut input, &name, &mut recording.losses)?;
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
            recording.files.push(File { name, input, channels, is_indexed });
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
        let contents = piece::read(&mut file.input, &piece, &mut file.channels);
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
            self.losses.add(&file.name, piece.offset, what);
        }
    }

    /// What the first pieces with a channel that `matches` hold of it, up to `most` pieces. Where no
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
            let File { input, channels, is_indexed, .. } = file;
            let is_one = |id: &u16| channels.get(*id).is_some_and(|channel| matches(channel));
            // Without an index each piece may tell what later ones are made of.
            let may_have =
                !*is_indexed || piece.channels.is_empty() || piece.channels.iter().any(is_one);
            if looked_at[*index] >= most || !may_have {
                continue;
            }
            looked_at[*index] += 1;
            for message in piece::read(input, piece, channels).messages {
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
        self.files.iter_mut().for_each(|file| file.channels.count_anew());
        found
    }

    /// Every channel of every file, with how many messages of it were met so far and whether they
    /// are wanted.
    pub(super) fn channels(&self) -> impl Iterator<Item = (&Channel, u64, bool)> {
        let files = self.files.iter();
        files.flat_map(|file| file.channels.all()).map(|(_, channel, seen, is)| (channel, seen, is))
    }

    /// What could not be used so far.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses = self.losses.all();
        for File { name, channels, .. } in &self.files {
            let mut add = |what| losses.push(Loss { file: name.clone(), offset: 0, what });
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
