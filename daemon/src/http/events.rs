//! Recent events, for clients that come back: each has an id by which it is asked for again.
//!
//! An id is the sequence of the transaction, and for each further event of the same transaction `<sequence>.<n>`. A store
//! keeps its sequence over a restart, and so do the ids: one of an earlier run is known as such.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use omir_core::event::EventKind;
use omir_core::json;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::engine::{Engine, Event, Listening, RotFinding, decode_stored};

/// Events that are kept.
const MOST: usize = 4096;
/// Bytes of resources that are kept with them.
const MOST_BYTES: usize = 2 << 20;

/// The id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct EventId {
    /// The transaction.
    pub(crate) seq: u64,
    /// Its number among the events of that, from 0.
    pub(crate) ordinal: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ordinal {
            0 => write!(f, "{}", self.seq),
            ordinal => write!(f, "{}.{ordinal}", self.seq),
        }
    }
}

/// A text that is no id of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoEventId;

impl FromStr for EventId {
    type Err = NoEventId;

    fn from_str(text: &str) -> Result<Self, NoEventId> {
        let (seq, ordinal) = text.split_once('.').unwrap_or((text, "0"));
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| is_number).ok_or(NoEventId)
        };
        Ok(Self { seq: number(seq)?, ordinal: number(ordinal)? })
    }
}

/// An event, or a finding about a file.
enum Announcement {
    Event(Event),
    Finding(RotFinding),
}

/// An event that is kept.
pub(crate) struct Entry {
    id: EventId,
    announced: Announcement,
    /// Made when the first client asks for it.
    text: OnceLock<Bytes>,
}

impl Entry {
    fn bytes(&self) -> usize {
        match &self.announced {
            Announcement::Event(event) => event.resource.len(),
            Announcement::Finding(finding) => finding.message.len(),
        }
    }

    /// Returns the event as a stream of events has it (HTML, section 9.2.6).
    pub(crate) fn text(&self) -> Bytes {
        let text = self.text.get_or_init(|| {
            let (kind, data) = match &self.announced {
                Announcement::Event(event) => (event.kind, of_event(event)),
                Announcement::Finding(finding) => (finding.kind, of_finding(finding)),
            };
            // JSON has no line breaks.
            let data = json::to_string(&Value::Object(data));
            format!("id: {}\nevent: {kind}\ndata: {data}\n\n", self.id).into()
        });
        text.clone()
    }
}

fn of_event(event: &Event) -> Map {
    let mut map = Map::new();
    map.insert("kind", event.kind.as_str());
    map.insert("ref", event.target.to_string());
    map.insert("seq", Value::Number(Number::from(event.seq)));
    if event.kind != EventKind::Forgotten
        && let Ok(resource) = decode_stored(&event.resource)
    {
        map.insert("resource", resource);
    }
    if let Some(cause) = &event.cause {
        let cause = cause.to_value();
        map.insert("why", cause);
    }
    map
}

fn of_finding(finding: &RotFinding) -> Map {
    let mut map = Map::new();
    map.insert("kind", finding.kind.as_str());
    map.insert("file", finding.file.as_str());
    map.insert("message", finding.message.as_str());
    map
}

/// The events that are kept.
struct Ring {
    kept: VecDeque<Arc<Entry>>,
    /// Number of events that were let go of: the position of the first that is kept.
    begins: u64,
    bytes: usize,
    /// The last event that is not kept, if there ever was one.
    gone: Option<EventId>,
    /// The last event of all.
    last: Option<EventId>,
}

impl Ring {
    fn after(gone: Option<EventId>) -> Self {
        Self { kept: VecDeque::new(), begins: 0, bytes: 0, gone, last: gone }
    }

    fn end(&self) -> u64 {
        self.begins + self.kept.len() as u64
    }

    /// Keeps an event of a transaction; a finding is of the last one.
    fn push(&mut self, seq: Option<u64>, announced: Announcement) {
        let last = self.last.unwrap_or_default();
        let id = match seq {
            Some(seq) if self.last.is_none() || seq > last.seq => EventId { seq, ordinal: 0 },
            _ => EventId { seq: last.seq, ordinal: last.ordinal + 1 },
        };
        self.last = Some(id);
        let kept = Arc::new(Entry { id, announced, text: OnceLock::new() });
        self.bytes += kept.bytes();
        self.kept.push_back(kept);
        while self.kept.len() > MOST || (self.bytes > MOST_BYTES && self.kept.len() > 1) {
            let Some(first) = self.kept.pop_front() else { break };
            self.bytes -= first.bytes();
            self.begins += 1;
            self.gone = self.gone.max(Some(first.id));
        }
    }

    /// Returns the position behind an event that a client had last; `None` if some of those behind it are gone, or it is of
    /// another store.
    fn behind(&self, had: EventId) -> Option<u64> {
        let is_known = self.last.is_some_and(|last| had.seq <= last.seq);
        if self.gone.is_some_and(|gone| had < gone) || !is_known {
            return None;
        }
        Some(self.begins + self.kept.partition_point(|kept| kept.id <= had) as u64)
    }
}

/// The recent events of one daemon. Cloning gives another handle on the same.
#[derive(Clone)]
pub(crate) struct Events {
    ring: Arc<Mutex<Ring>>,
    end: watch::Sender<u64>,
}

/// The events that come next for a client.
pub(crate) enum Next {
    /// These, oldest first.
    Events(Vec<Arc<Entry>>),
    /// Some are gone before the client got them. It goes on behind them.
    Missed,
}

impl Events {
    /// Keeps events of `engine` from now on, until what is returned with them is dropped.
    pub(super) fn of(engine: &Engine) -> (Self, Listening) {
        let events = Self::after(None);
        let (listener, finder) = (events.clone(), events.clone());
        // Listens before it looks: what is committed between the two is kept, though it counts as gone.
        let listening = engine.events().listen(move |event| {
            listener.keep(Some(event.seq), Announcement::Event(event.clone()))
        });
        engine.on_finding(Box::new(move |finding| {
            finder.keep(None, Announcement::Finding(finding.clone()));
        }));
        // All of an earlier run are gone. What is found before something is recorded has ids of the transaction by which this
        // run began. Where the card did not take that, nobody knows how many ids of the last one an earlier run gave away.
        let (seq, ordinal) = match engine.began_with() {
            Some(seq) => (seq, 0),
            None => (engine.last_before(), u64::MAX),
        };
        let mut ring = events.ring();
        ring.gone = ring.gone.max(Some(EventId { seq, ordinal }));
        ring.last = ring.last.max(Some(EventId { seq, ordinal: 0 }));
        drop(ring);
        (events, listening)
    }

    fn after(gone: Option<EventId>) -> Self {
        Self { ring: Arc::new(Mutex::new(Ring::after(gone))), end: watch::Sender::new(0) }
    }

    fn keep(&self, seq: Option<u64>, announced: Announcement) {
        let mut ring = self.ring();
        ring.push(seq, announced);
        self.end.send_replace(ring.end());
    }

    /// Returns a place in the row: behind an event that the client had, or at the end.
    pub(crate) fn cursor(&self, had: Option<EventId>) -> Cursor {
        let ring = self.ring();
        let behind = had.map(|had| ring.behind(had));
        Cursor {
            events: self.clone(),
            at: behind.flatten().unwrap_or(ring.end()),
            has_missed: behind == Some(None),
            end: self.end.subscribe(),
        }
    }

    fn ring(&self) -> parking_lot::MutexGuard<'_, Ring> {
        self.ring.lock()
    }
}

/// The place of one client in the row of events.
pub(crate) struct Cursor {
    events: Events,
    at: u64,
    has_missed: bool,
    end: watch::Receiver<u64>,
}

impl Cursor {
    /// Waits for the next events, of which it returns at most so many.
    pub(crate) async fn next(&mut self, most: usize) -> Next {
        loop {
            // Before it looks: what comes after that wakes it.
            self.end.borrow_and_update();
            if std::mem::take(&mut self.has_missed) {
                return Next::Missed;
            }
            {
                let ring = self.events.ring();
                if self.at < ring.begins {
                    self.at = ring.begins;
                    return Next::Missed;
                }
                let from = usize::try_from(self.at - ring.begins).unwrap_or(usize::MAX);
                let next: Vec<_> = ring.kept.iter().skip(from).take(most).cloned().collect();
                if !next.is_empty() {
                    self.at += next.len() as u64;
                    return Next::Events(next);
                }
            }
            // An error: the daemon is gone, and clients that wait are told so in another way.
            if self.end.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64) -> Announcement {
        let (kind, target) = (EventKind::Recorded, "Entity/a".parse().unwrap());
        Announcement::Event(Event { kind, target, resource: vec![0; 10], cause: None, seq })
    }

    fn ids(next: Next) -> Vec<String> {
        match next {
            Next::Events(list) => list.iter().map(|kept| kept.id.to_string()).collect(),
            Next::Missed => vec!["missed".to_owned()],
        }
    }

    fn had(text: &str) -> Option<EventId> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        for text in ["0", "7", "7.1", "18446744073709551615.3"] {
            assert_eq!(text.parse::<EventId>().unwrap().to_string(), text);
        }
        for text in ["", "-1", "+1", "7.", ".1", "1.2.3", "x", "1e3", " 1"] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_client_goes_on_where_it_was() {
        let events = Events::after(Some(EventId { seq: 4, ordinal: 1 }));
        for seq in [5, 6, 6, 6, 7] {
            events.keep(Some(seq), event(seq));
        }
        events.keep(
            None,
            Announcement::Finding(RotFinding {
                kind: EventKind::Lost,
                file: "f".into(),
                message: "m".into(),
            }),
        );
        for (from, expected) in [
            ("4.1", &["5", "6", "6.1", "6.2", "7", "7.1"][..]),
            ("5", &["6", "6.1", "6.2", "7", "7.1"]),
            ("6", &["6.1", "6.2", "7", "7.1"]),
            ("6.2", &["7", "7.1"]),
            // Of the transaction before the start it may have missed a part.
            ("4", &["missed"]),
            // Of another store.
            ("9", &["missed"]),
        ] {
            assert_eq!(ids(events.cursor(had(from)).next(100).await), expected, "{from}");
        }
        let mut cursor = events.cursor(had("9"));
        assert_eq!(ids(cursor.next(9).await), ["missed"]);
        events.keep(Some(8), event(8));
        assert_eq!(ids(cursor.next(9).await), ["8"]);
    }

    #[tokio::test]
    async fn who_is_too_slow_hears_that_it_missed_some() {
        let events = Events::after(None);
        let mut cursor = events.cursor(None);
        for seq in 0..MOST as u64 + 2 {
            events.keep(Some(seq), event(seq));
        }
        assert_eq!(ids(cursor.next(1).await), ["missed"]);
        assert_eq!(ids(cursor.next(1).await), ["2"]);
        assert_eq!(ids(events.cursor(had("1")).next(1).await), ["2"]);
        assert_eq!(ids(events.cursor(had("0")).next(1).await), ["missed"]);
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let events = Events::after(None);
        let mut cursor = events.cursor(None);
        let waiting = tokio::spawn(async move { ids(cursor.next(5).await) });
        tokio::task::yield_now().await;
        events.keep(Some(1), event(1));
        assert_eq!(waiting.await.unwrap(), ["1"]);
    }

    #[test]
    fn large_events_make_room_sooner() {
        let mut ring = Ring::after(None);
        for seq in 0..10 {
            let Announcement::Event(mut large) = event(seq) else { unreachable!() };
            large.resource = vec![0; MOST_BYTES / 2];
            ring.push(Some(seq), Announcement::Event(large));
        }
        assert_eq!((ring.kept.len(), ring.begins, ring.bytes), (2, 8, MOST_BYTES));
    }
}
