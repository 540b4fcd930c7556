//! The SQLite storage of rosbag2: tables of topics, of messages, and since Iron of the definitions of their types.
//!
//! Rows are read in the order of their ids, which is that in which they came, in pieces of about a megabyte as an
//! MCAP has chunks. The file is not ours: it is not written to, what it says of itself is not run
//! (no views, no triggers), and nothing is larger than its bound. Where its pages are damaged, rows are found from
//! both ends.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};

use super::RecordingError;
use super::bounds::{
    MOST_DESCRIBED, MOST_DESCRIPTION, MOST_INDEXED, MOST_MESSAGES, MOST_PIECES, described, weight,
};
use super::channels::Channels;
use super::losses::{At, Losses};
use super::piece::{Contents, RawMessage};
use super::scan::{MOST_RECORD, Piece, Scan};

/// Rows are taken together until they have so many bytes.
const RUN: usize = 1 << 20;

/// Topics that a statement names; with more of them that are wanted all are read.
const MOST_NAMED: usize = 200;

/// A database, and where in it the pieces are.
pub(super) struct Bag {
    connection: Connection,
    /// First and last row of each piece.
    ranges: Vec<(i64, i64)>,
    /// The channels of topics, by their ids.
    topics: BTreeMap<i64, u16>,
}

/// A walk over the rows, with the piece that grows.
#[derive(Default)]
struct Walk {
    done: Vec<(Piece, (i64, i64))>,
    piece: Option<(Piece, (i64, i64))>,
    taken: usize,
    indexed: usize,
}

impl Bag {
    /// Opens a database and looks where in it what is.
    ///
    /// # Errors
    /// It is none of rosbag2, or cannot be read at all.
    pub(super) fn open(
        path: &Path,
        name: &str,
        losses: &mut Losses,
    ) -> Result<(Self, Scan), RecordingError> {
        let failed = |why: rusqlite::Error| {
            RecordingError::new(name, format!("cannot be read as an SQLite database: {why}"))
        };
        let connection = connect(path, name, losses).map_err(failed)?;
        let tables = tables(&connection).map_err(failed)?;
        for needed in ["topics", "messages"] {
            if !tables.iter().any(|table| table == needed) {
                let why =
                    format!("is an SQLite database without a table `{needed}`: no bag of rosbag2");
                return Err(RecordingError::new(name, why));
            }
        }
        let mut scan = Scan::default();
        let mut bag = Self { connection, ranges: Vec::new(), topics: BTreeMap::new() };
        let definitions = if tables.iter().any(|table| table == "message_definitions") {
            bag.definitions(name, losses)
        } else {
            BTreeMap::new()
        };
        bag.describe(&definitions, &mut scan, name, losses).map_err(|why| {
            RecordingError::new(name, format!("the table `topics` cannot be read: {why}"))
        })?;
        for (piece, range) in bag.walk(name, losses) {
            // Of a database the offset of a piece is which one it is.
            scan.pieces.push(Piece { offset: bag.ranges.len() as u64, ..piece });
            bag.ranges.push(range);
        }
        Ok((bag, scan))
    }

    /// Encoding and text of the definition of each type.
    fn definitions(&self, name: &str, losses: &mut Losses) -> BTreeMap<String, (String, Vec<u8>)> {
        let mut all = BTreeMap::new();
        let mut taken = 0_usize;
        let sql =
            "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions";
        let read = self.each(sql, [], |row| {
            let [ty, encoding, text] = [bytes(row, 0)?, bytes(row, 1)?, bytes(row, 2)?];
            taken = taken.saturating_add(described(&[ty, encoding, text]));
            if text.len() <= MOST_DESCRIPTION && taken <= MOST_DESCRIBED {
                let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                all.insert(words(ty), (words(encoding), text.to_vec()));
            }
            Ok(true)
        });
        if let Err(why) = read {
            let what = format!("the table `message_definitions` cannot be read: {why}");
            losses.add(name, At::File, what);
        }
        all
    }

    /// Makes a channel of each topic.
    fn describe(
        &mut self,
        definitions: &BTreeMap<String, (String, Vec<u8>)>,
        scan: &mut Scan,
        name: &str,
        losses: &mut Losses,
    ) -> rusqlite::Result<()> {
        let mut topics = BTreeMap::new();
        let mut types: BTreeMap<String, u16> = BTreeMap::new();
        let (mut taken, mut is_full) = (0_usize, false);
        let sql = "SELECT id, name, type, serialization_format FROM topics ORDER BY id";
        self.each(sql, [], |row| {
            let id: i64 = row.get(0)?;
            let [topic, ty, encoding] = [bytes(row, 1)?, bytes(row, 2)?, bytes(row, 3)?];
            taken = taken.saturating_add(described(&[topic, ty, encoding]));
            let (Ok(number), true) = (u16::try_from(topics.len()), taken <= MOST_DESCRIBED) else {
                is_full = true;
                return Ok(false);
            };
            let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let ty = words(ty);
            let next = types.len() as u16;
            let schema_id = *types.entry(ty.clone()).or_insert(next);
            scan.schemas.entry(schema_id).or_insert_with(|| {
                // Older bags have no definitions: an empty text is looked up.
                let (encoding, text) = definitions.get(&ty).cloned().unwrap_or_default();
                let encoding = if encoding.is_empty() { "ros2msg".to_owned() } else { encoding };
                (ty, encoding, text)
            });
            topics.insert(id, number);
            let channel = mcap::records::Channel {
                id: number,
                schema_id,
                topic: words(topic),
                message_encoding: words(encoding),
                metadata: BTreeMap::new(),
            };
            scan.channels.insert(number, channel);
            Ok(true)
        })?;
        if is_full {
            losses.add(name, At::File, "there are too many topics: the rest of them is not read");
        }
        self.topics = topics;
        Ok(())
    }

    /// The pieces, from both ends where something between is damaged.
    fn walk(&self, name: &str, losses: &mut Losses) -> Vec<(Piece, (i64, i64))> {
        const SELECT: &str = "SELECT rowid, topic_id, timestamp, length(data) FROM messages";
        let mut walk = Walk::default();
        let mut last = None;
        let forward = self.each(&format!("{SELECT} ORDER BY rowid"), [], |row| {
            let id: i64 = row.get(0)?;
            // In a damaged tree a page may be met twice.
            if last.is_some_and(|last| id <= last) {
                return Err(disordered());
            }
            last = Some(id);
            Ok(self.take(&mut walk, id, row))
        });
        walk.close();
        let Err(why) = forward else {
            if walk.is_full() {
                let at = last.unwrap_or_default();
                let what =
                    format!("there are more than {MOST_PIECES} pieces: the rest is not read");
                losses.add(name, At::Row(at), what);
            }
            return walk.done;
        };
        let mut behind = Walk { indexed: walk.indexed, ..Walk::default() };
        let mut first = i64::MAX;
        let sql = format!("{SELECT} WHERE rowid > ?1 ORDER BY rowid DESC");
        // Until it meets the damage from behind; what is wrong is known already.
        _ = self.each(&sql, [last.unwrap_or(i64::MIN)], |row| {
            let id: i64 = row.get(0)?;
            if id >= first {
                return Err(disordered());
            }
            first = id;
            Ok(self.take(&mut behind, id, row))
        });
        behind.close();
        let found = behind.done.len();
        behind.done.truncate(MOST_PIECES.saturating_sub(walk.done.len()));
        let mut what = format!("the rows behind this one cannot be read: {why}");
        if found > 0 {
            what += &format!("; from row {first} on they can, to the end");
        }
        losses.add(name, At::Row(last.unwrap_or_default()), what);
        walk.done.extend(behind.done.into_iter().rev());
        walk.done
    }

    /// Adds a row to the walk; whether it goes on.
    fn take(&self, walk: &mut Walk, id: i64, row: &Row<'_>) -> bool {
        let number = |at| row.get::<_, i64>(at).ok();
        let channel = number(1).and_then(|topic| self.topics.get(&topic).copied());
        let start = number(2).and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
        let length = number(3).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        walk.take(id, channel, start, length);
        !walk.is_full()
    }

    /// Calls for each row until it says `false`.
    fn each<P: rusqlite::Params>(
        &self,
        sql: &str,
        parameters: P,
        mut each: impl FnMut(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            if !each(row)? {
                break;
            }
        }
        Ok(())
    }

    /// The first row of a piece.
    pub(super) fn first_row(&self, piece: &Piece) -> i64 {
        self.range(piece).map_or(0, |(first, _)| first)
    }

    fn range(&self, piece: &Piece) -> Option<(i64, i64)> {
        self.ranges.get(usize::try_from(piece.offset).ok()?).copied()
    }

    /// The column with the messages, as far as they are wanted: images of which nothing is kept need not be read
    /// from the disk.
    fn data_of(&self, channels: &Channels) -> String {
        let wanted = self.topics.iter().filter(|(_, channel)| channels.wants(**channel));
        let wanted: Vec<String> = wanted.map(|(topic, _)| topic.to_string()).collect();
        if wanted.len() > MOST_NAMED {
            return "data".to_owned();
        }
        format!("CASE WHEN topic_id IN ({}) THEN data END", wanted.join(","))
    }

    /// The messages of a piece. Of a row that cannot be read it is said which.
    pub(super) fn read(&self, piece: &Piece, channels: &mut Channels) -> Contents {
        let mut contents = Contents::default();
        let Some((first, last)) = self.range(piece) else { return contents };
        let sql = format!(
            "SELECT rowid, topic_id, timestamp, {} FROM messages \
             WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid",
            self.data_of(channels)
        );
        let (mut kept, mut before, mut odd) = (0_usize, None, 0_u64);
        let read = self.each(&sql, [first, last], |row| {
            let id: i64 = row.get(0)?;
            if id > last || before.is_some_and(|before| id <= before) {
                return Err(disordered());
            }
            before = Some(id);
            let (Ok(topic), Ok(at)) = (row.get::<_, i64>(1), row.get::<_, i64>(2)) else {
                odd += 1;
                return Ok(true);
            };
            let channel = self.topics.get(&topic).copied();
            let Some(channel) = channel.filter(|channel| channels.is_wanted(*channel)) else {
                channels.unknown += u64::from(channel.is_none());
                return Ok(true);
            };
            let Ok(data) = bytes(row, 3) else {
                odd += 1;
                return Ok(true);
            };
            kept = kept.saturating_add(weight(data));
            if kept > MOST_MESSAGES {
                return Err(rusqlite::Error::ToSqlConversionFailure(
                    format!("messages of more than {} MiB together", MOST_MESSAGES >> 20).into(),
                ));
            }
            let log_time = u64::try_from(at).unwrap_or(0);
            contents.messages.push(RawMessage { log_time, channel, data: data.to_vec() });
            Ok(true)
        });
        contents.loss = match (read, odd) {
            (Err(why), _) => Some(format!(
                "rows up to {last} cannot be read behind row {}: {why}",
                before.unwrap_or(first)
            )),
            (Ok(()), 0) => None,
            (Ok(()), odd) => Some(format!("up to row {last}, {odd} rows are no messages")),
        };
        contents
    }
}

impl Walk {
    fn take(&mut self, id: i64, channel: Option<u16>, start: u64, length: usize) {
        let weight = length.saturating_add(128);
        if self.taken >= RUN {
            self.close();
        }
        self.taken = self.taken.saturating_add(weight);
        let (piece, (first, last)) = self.piece.get_or_insert_with(|| {
            let piece = Piece { offset: 0, length: 0, start, channels: Vec::new(), is_cut: false };
            (piece, (id, id))
        });
        piece.length = piece.length.saturating_add(length as u64);
        piece.start = piece.start.min(start);
        (*first, *last) = ((*first).min(id), (*last).max(id));
        if let Some(channel) = channel
            && let Err(place) = piece.channels.binary_search(&channel)
            && self.indexed < MOST_INDEXED
        {
            self.indexed += 1;
            piece.channels.insert(place, channel);
        }
    }

    fn close(&mut self) {
        self.done.extend(self.piece.take());
        self.taken = 0;
    }

    fn is_full(&self) -> bool {
        self.done.len() >= MOST_PIECES || self.indexed >= MOST_INDEXED
    }
}

/// Opens for reading. What a recorder that was cut off left beside the file, a log or a journal, is read with it if
/// that can be done without writing.
fn connect(path: &Path, name: &str, losses: &mut Losses) -> rusqlite::Result<Connection> {
    let beside = ["-wal", "-journal"].into_iter().find(|ending| {
        let mut beside = path.as_os_str().to_owned();
        beside.push(ending);
        std::fs::metadata(beside).is_ok_and(|found| found.len() > 0)
    });
    let Some(beside) = beside else { return opened(path, true) };
    opened(path, false).or_else(|why| {
        let what = format!(
            "what its recorder left in {name}{beside} is not read: {why}. Copy both into a folder of your own and \
             open the copy with `sqlite3` once, which puts it in"
        );
        losses.add(name, At::File, what);
        opened(path, true)
    })
}

fn opened(path: &Path, is_immutable: bool) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    if is_immutable {
        uri.push_str("?immutable=1");
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri, flags)?;
    let most = i32::try_from(MOST_RECORD).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most)?;
    // The contents of the file are data, and no program. With `writable_schema` SQLite reads a file that is shorter
    // than its header says. Nothing is written to a file that is opened so.
    for (name, value) in [
        ("trusted_schema", 0),
        ("cell_size_check", 1),
        ("mmap_size", 0),
        ("query_only", 1),
        ("writable_schema", 1),
    ] {
        connection.pragma_update(None, name, value)?;
    }
    // Read something, so that what cannot be opened says so here.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    Ok(connection)
}

/// Names of the tables; views, which may go on for ever, are none.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT name FROM sqlite_master WHERE type = 'table' \
         AND sql NOT LIKE '%VIRTUAL%' AND sql NOT LIKE '%GENERATED%' AND length(sql) < 10000 LIMIT 1000",
    )?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The bytes of a text or blob; none of what is something else.
fn bytes<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes),
        other => Err(rusqlite::Error::InvalidColumnType(column, String::new(), other.data_type())),
    }
}

fn disordered() -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure("its rows are not in order: the file is damaged".into())
}
