//! What is said over the link: requests and answers, each one CBOR map.
//!
//! `docs/serial.md` section 3. A request has an `id` and an `op`, its answers repeat the `id`. Written is the
//! deterministic form of [`crate::cbor`]; read is any well-formed one with the members of its kind and no
//! others: a filter that is not understood must not be passed over.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ciborium_ll::Header;

use crate::cbor;
use crate::cbor_head;
use crate::decode::Limits;
use crate::value::{Map, Value};

/// Bytes of a message, unpacked. A resource may have 1 MiB, and comes in one.
pub const MOST_MESSAGE: usize = 2 << 20;
/// What a message with several resources is filled up to: little enough that not much is lost when the
/// cable is pulled, and enough to compress well.
pub const BATCH: usize = 32 << 10;

const LIMITS: Limits = Limits { max_bytes: MOST_MESSAGE, max_depth: 72, max_items: 500_000 };

/// The names of members and operations are shorter, with their heads.
const SHORT: usize = 64;

/// A request and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Drawn by the initiator, rising within a session.
    pub id: u64,
    /// What is asked for.
    pub request: Request,
}

/// What an initiator may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// `info`: who is there, and what may be done? Answered by [`Info`].
    Info,
    /// `pull`: resources. Answered by [`Answer::Begin`], [`Answer::Items`] and [`Answer::End`].
    Pull(Pull),
    /// `push`: resources to be stored, all or none. Answered by [`Pushed`] when they are durable.
    Push(Push),
    /// `unlock`: a token that lets this session write.
    Unlock(String),
    /// `cancel`: the request with this number is not wanted any more.
    Cancel(u64),
}

/// Resources to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Push {
    /// The resources.
    pub items: Vec<Value>,
    /// What was forgotten over there comes back by it, as by an import.
    pub restore: bool,
}

/// Which resources, and from where on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pull {
    /// Names and values as in a payload of `recall`; nothing means everything.
    pub filter: Map,
    /// The last `next` whose resources are safe here.
    pub after: Option<u64>,
    /// What was known then; of the first answer to the same pull.
    pub as_of: Option<String>,
    /// Whose memory that was; of the first answer too. Goes with `after`.
    pub store: Option<String>,
    /// Answers may be packed.
    pub deflate: bool,
}

/// An answer, and the number of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Of the request.
    pub id: u64,
    /// What is answered.
    pub answer: Answer,
}

/// What a responder answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// It was done; with what there is to say of it ([`Info`], [`Pushed`]).
    Ok(Map),
    /// A pull begins.
    Begin {
        /// What was known then is what comes; for [`Pull::as_of`].
        as_of: String,
        /// How many resources follow.
        count: u64,
        /// Which memory this is: another one numbers its resources differently; for [`Pull::store`].
        store: String,
    },
    /// Resources of a pull, in the order they were recorded.
    Items {
        /// The resources.
        items: Vec<Value>,
        /// Where to go on after them; means nothing to anybody but the responder.
        next: u64,
        /// What is the matter with those that belong here and cannot be read, one text for each.
        lost: Vec<String>,
    },
    /// A pull ends.
    End {
        /// How many resources came.
        count: u64,
        /// Whether these are all: false if it was cancelled.
        complete: bool,
    },
    /// It was not done.
    Error(Failure),
}

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A code of the contract, such as `INVALID_QUERY` or `UNAUTHORIZED`.
    pub code: String,
    /// The same for a person.
    pub message: String,
    /// JSON Pointer into what was sent, where one applies.
    pub path: Option<String>,
}

/// The answer to [`Request::Info`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The name of the robot.
    pub robot: String,
    /// The program that answers, with its version.
    pub program: String,
    /// Whether this session may push.
    pub write: bool,
    /// The responder's time, an RFC 3339 instant.
    pub time: String,
    /// How far that can be trusted: `unknown`, `coarse` or `synchronised`.
    pub clock: String,
    /// How many resources there are.
    pub count: u64,
    /// Whether it reads packed messages.
    pub deflate: bool,
}

/// The answer to [`Request::Push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pushed {
    /// Resources that are new, or newer than what was there.
    pub stored: u64,
    /// Resources that were there, or were forgotten and stay so.
    pub unchanged: u64,
}

/// A message that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    /// The request it would have been, if it got so far: it is answered with an error, any other ends
    /// the session.
    pub id: Option<u64>,
    /// JSON Pointer to what is wrong.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl core::error::Error for MessageError {}

impl Asked {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        let mut map = Map::new();
        map.insert("id", self.id);
        let op = match self.request {
            Request::Info => "info",
            Request::Pull(pull) => {
                if !pull.filter.is_empty() {
                    map.insert("filter", pull.filter);
                }
                if let Some(after) = pull.after {
                    map.insert("after", after);
                }
                if let Some(as_of) = pull.as_of {
                    map.insert("asOf", as_of);
                }
                if let Some(store) = pull.store {
                    map.insert("store", store);
                }
                if pull.deflate {
                    map.insert("deflate", true);
                }
                "pull"
            }
            Request::Push(push) => {
                map.insert("items", Value::Array(push.items));
                if push.restore {
                    map.insert("restore", true);
                }
                "push"
            }
            Request::Unlock(token) => {
                map.insert("token", token);
                "unlock"
            }
            Request::Cancel(of) => {
                map.insert("of", of);
                "cancel"
            }
        };
        map.insert("op", op);
        cbor::to_vec(&Value::Object(map))
    }

    /// The `id` and the `op` of a request, without decoding the rest; `None` if it is not that far in order.
    pub fn glance(bytes: &[u8]) -> Option<(u64, String)> {
        let short = |bytes: &[u8]| {
            let limits = Limits { max_items: 1, ..LIMITS };
            cbor::read_item(bytes.get(..bytes.len().min(SHORT))?, &limits).ok()
        };
        let Ok((Header::Map(members), mut at)) = cbor_head::read(bytes) else { return None };
        let (mut id, mut op) = (None, None);
        for _ in 0..members.unwrap_or(usize::MAX) {
            let (name, key) = short(bytes.get(at..)?)?;
            let value = bytes.get(at + key..)?;
            match name.as_str()? {
                "id" => id = Some(number(short(value)?.0).ok()?),
                "op" => op = Some(text(short(value)?.0).ok()?),
                _ => {}
            }
            if id.is_some() && op.is_some() {
                break;
            }
            at += key + cbor::skip_item(value, &LIMITS).ok()?;
        }
        Some((id?, op?))
    }

    /// Reads a request.
    ///
    /// # Errors
    /// Says what is wrong, and with which request.
    pub fn decode(bytes: &[u8]) -> Result<Asked, MessageError> {
        let mut members = Members::read(bytes)?;
        let op = members.text("op")?;
        let request = match op.as_str() {
            "info" => Request::Info,
            "pull" => Request::Pull(Pull {
                filter: members.optional("filter", object)?.unwrap_or_default(),
                after: members.optional("after", number)?,
                as_of: members.optional("asOf", text)?,
                store: members.optional("store", text)?,
                deflate: members.optional("deflate", truth)?.unwrap_or(false),
            }),
            "push" => Request::Push(Push {
                items: members.need("items", array)?,
                restore: members.optional("restore", truth)?.unwrap_or(false),
            }),
            "unlock" => Request::Unlock(members.text("token")?),
            "cancel" => Request::Cancel(members.number("of")?),
            other => {
                let known = "known are info, pull, push, unlock, cancel";
                return Err(members.error("op", format!("unknown operation {other:?}: {known}")));
            }
        };
        Ok(Asked { id: members.finish()?, request })
    }
}

impl Answered {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        let mut map = Map::new();
        map.insert("id", self.id);
        match self.answer {
            Answer::Ok(about) => {
                map.insert("ok", about);
            }
            Answer::Begin { as_of, count, store } => {
                let about: [(&str, Value); 3] =
                    [("asOf", as_of.into()), ("count", count.into()), ("store", store.into())];
                map.insert("begin", Map::from_iter(about));
            }
            Answer::Items { items, next, lost } => {
                map.insert("items", Value::Array(items));
                map.insert("next", next);
                if !lost.is_empty() {
                    map.insert("lost", lost.into_iter().map(Value::from).collect::<Value>());
                }
            }
            Answer::End { count, complete } => {
                let about: [(&str, Value); 2] =
                    [("count", count.into()), ("complete", complete.into())];
                map.insert("end", Map::from_iter(about));
            }
            Answer::Error(failure) => {
                let mut about = Map::new();
                about.insert("code", failure.code);
                about.insert("message", failure.message);
                if let Some(path) = failure.path {
                    about.insert("path", path);
                }
                map.insert("error", about);
            }
        }
        cbor::to_vec(&Value::Object(map))
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Answered, MessageError> {
        let mut members = Members::read(bytes)?;
        let answer = if let Some(about) = members.optional("ok", object)? {
            Answer::Ok(about)
        } else if let Some(about) = members.optional("begin", object)? {
            let mut about = members.inside("begin", about);
            let begin = Answer::Begin {
                as_of: about.text("asOf")?,
                count: about.number("count")?,
                store: about.text("store")?,
            };
            about.finish()?;
            begin
        } else if let Some(items) = members.optional("items", array)? {
            let next = members.number("next")?;
            let lost = members.optional("lost", texts)?.unwrap_or_default();
            Answer::Items { items, next, lost }
        } else if let Some(about) = members.optional("end", object)? {
            let mut about = members.inside("end", about);
            let end = Answer::End {
                count: about.number("count")?,
                complete: about.need("complete", truth)?,
            };
            about.finish()?;
            end
        } else if let Some(about) = members.optional("error", object)? {
            let mut about = members.inside("error", about);
            let failure = Failure {
                code: about.text("code")?,
                message: about.text("message")?,
                path: about.optional("path", text)?,
            };
            about.finish()?;
            Answer::Error(failure)
        } else {
            return Err(members.whole("is none of ok, begin, items, end, error"));
        };
        Ok(Answered { id: members.finish()?, answer })
    }
}

impl Info {
    /// As the member `ok` of an answer.
    pub fn to_map(self) -> Map {
        let members: [(&str, Value); 7] = [
            ("robot", self.robot.into()),
            ("program", self.program.into()),
            ("access", if self.write { "write" } else { "read" }.into()),
            ("time", self.time.into()),
            ("clock", self.clock.into()),
            ("count", self.count.into()),
            ("deflate", self.deflate.into()),
        ];
        members.into_iter().collect()
    }

    /// Reads the member `ok` of the answer to `info`.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn from_map(map: Map) -> Result<Info, MessageError> {
        let mut members = Members { id: 0, path: "/ok".to_owned(), map };
        let access = members.text("access")?;
        let info = Info {
            robot: members.text("robot")?,
            program: members.text("program")?,
            write: match access.as_str() {
                "write" => true,
                "read" => false,
                _ => return Err(members.error("access", "is neither \"read\" nor \"write\"")),
            },
            time: members.text("time")?,
            clock: members.text("clock")?,
            count: members.number("count")?,
            deflate: members.need("deflate", truth)?,
        };
        members.finish().map(|_| info)
    }
}

impl Pushed {
    /// As the member `ok` of an answer.
    pub fn to_map(self) -> Map {
        [("stored", self.stored), ("unchanged", self.unchanged)].into_iter().collect()
    }

    /// Reads the member `ok` of the answer to `push`.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn from_map(map: Map) -> Result<Pushed, MessageError> {
        let mut members = Members { id: 0, path: "/ok".to_owned(), map };
        let pushed =
            Pushed { stored: members.number("stored")?, unchanged: members.number("unchanged")? };
        members.finish().map(|_| pushed)
    }
}

/// How much memory a message takes when it is decoded, roughly, in bytes: a small map is some hundred bytes, of three
/// to five on the line. What is malformed counts as far as it is not. Takes no memory itself.
pub fn weight(mut message: &[u8]) -> usize {
    /// Containers take room for so many members at once.
    const ROOM: usize = 4;
    /// Around what is allocated.
    const AROUND: usize = 16;
    let mut weight = 0usize;
    while let Ok((header, len)) = cbor_head::read(message) {
        let (inside, more) = match header {
            Header::Text(len) | Header::Bytes(len) => {
                let len = len.unwrap_or(0);
                (len, len.saturating_add(AROUND))
            }
            Header::Array(_) => (0, ROOM * size_of::<Value>()),
            Header::Map(_) => (0, ROOM * size_of::<(String, Value)>()),
            _ => (0, 0),
        };
        weight = weight.saturating_add(size_of::<Value>()).saturating_add(more);
        message = message.get(len.saturating_add(inside)..).unwrap_or_default();
    }
    weight
}

/// Puts the parts of a message together.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Takes the next part; gives the message if it is the last one.
    ///
    /// # Errors
    /// The message has more than [`MOST_MESSAGE`] bytes: the session is to be ended.
    pub fn push(&mut self, part: &[u8], last: bool) -> Result<Option<Vec<u8>>, MessageError> {
        if self.bytes.len() + part.len() > MOST_MESSAGE {
            self.bytes = Vec::new();
            let message = format!("a message has more than {MOST_MESSAGE} bytes");
            return Err(MessageError { id: None, path: "/".to_owned(), message });
        }
        self.bytes.extend_from_slice(part);
        Ok(last.then(|| core::mem::take(&mut self.bytes)))
    }

    /// Drops what is there of a message: its session is over.
    pub fn clear(&mut self) {
        self.bytes = Vec::new();
    }
}

/// The members of a map, taken out one by one.
struct Members {
    id: u64,
    /// Of the map in the message.
    path: String,
    map: Map,
}

impl Members {
    fn read(bytes: &[u8]) -> Result<Members, MessageError> {
        let root = |message: String| MessageError { id: None, path: "/".to_owned(), message };
        let value = cbor::from_slice(bytes, &LIMITS).map_err(|error| root(format!("{error}")))?;
        let Value::Object(mut map) = value else {
            return Err(root(format!("a message is a map, and this is {}", value.kind_name())));
        };
        let id = map.remove("id").as_ref().and_then(Value::as_u64);
        let Some(id) = id else {
            let message = "is missing, or no number from 0 on".to_owned();
            return Err(MessageError { id: None, path: "/id".to_owned(), message });
        };
        Ok(Members { id, path: String::new(), map })
    }

    /// The members of a member.
    fn inside(&self, name: &str, map: Map) -> Members {
        Members { id: self.id, path: format!("{}/{name}", self.path), map }
    }

    fn error(&self, name: &str, message: impl Into<String>) -> MessageError {
        let path = crate::pointer::join(&self.path, name);
        MessageError { id: Some(self.id), path, message: message.into() }
    }

    fn whole(&self, message: &str) -> MessageError {
        MessageError { id: Some(self.id), path: "/".to_owned(), message: message.to_owned() }
    }

    fn optional<T>(&mut self, name: &str, read: Read<T>) -> Result<Option<T>, MessageError> {
        let Some(value) = self.map.remove(name) else { return Ok(None) };
        let found = value.kind_name();
        read(value)
            .map(Some)
            .map_err(|expected| self.error(name, format!("expected {expected}, found {found}")))
    }

    fn need<T>(&mut self, name: &str, read: Read<T>) -> Result<T, MessageError> {
        self.optional(name, read)?.ok_or_else(|| self.error(name, "is missing"))
    }

    fn text(&mut self, name: &str) -> Result<String, MessageError> {
        self.need(name, text)
    }

    fn number(&mut self, name: &str) -> Result<u64, MessageError> {
        self.need(name, number)
    }

    /// The number of the request, if nothing is left.
    fn finish(self) -> Result<u64, MessageError> {
        match self.map.keys().next() {
            None => Ok(self.id),
            Some(name) => Err(self.error(name, "is unknown here")),
        }
    }
}

/// What a member holds, or what it should.
type Read<T> = fn(Value) -> Result<T, &'static str>;

fn text(value: Value) -> Result<String, &'static str> {
    if let Value::Text(text) = value { Ok(text) } else { Err("a string") }
}

fn number(value: Value) -> Result<u64, &'static str> {
    value.as_u64().ok_or("a whole number from 0 on")
}

fn truth(value: Value) -> Result<bool, &'static str> {
    value.as_bool().ok_or("a boolean")
}

fn array(value: Value) -> Result<Vec<Value>, &'static str> {
    if let Value::Array(items) = value { Ok(items) } else { Err("an array") }
}

fn texts(value: Value) -> Result<Vec<String>, &'static str> {
    array(value)
        .and_then(|all| all.into_iter().map(text).collect())
        .map_err(|_| "an array of strings")
}

fn object(value: Value) -> Result<Map, &'static str> {
    if let Value::Object(map) = value { Ok(map) } else { Err("an object") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn indefinite(inside: &[u8]) -> Vec<u8> {
        [&[0xbf][..], inside, &[0xff]].concat()
    }

    #[test]
    fn a_glance_tells_what_is_asked_whatever_else_is_in_it() {
        let push = |items| Request::Push(Push { items, restore: true });
        let small: Value = [("a", 1u64)].into_iter().collect::<Map>().into();
        for (request, op) in [
            (Request::Info, "info"),
            (Request::Cancel(7), "cancel"),
            (push(vec![small; 50_000]), "push"),
        ] {
            let message = Asked { id: 9, request }.encode();
            assert_eq!(Asked::glance(&message), Some((9, op.to_owned())));
            let inside = &message[1..];
            assert_eq!(Asked::glance(&indefinite(inside)), Some((9, op.to_owned())));
        }
        let members =
            |json: &str| cbor::to_vec(&crate::json::from_slice(json.as_bytes(), &LIMITS).unwrap());
        for none in
            [r#"{"id":1}"#, r#"{"op":"info"}"#, r#"{"id":[1],"op":"info"}"#, r#"["id"]"#, "{}"]
        {
            assert_eq!(Asked::glance(&members(none)), None, "{none}");
        }
        let long = members(&format!(r#"{{"id":1,"op":"{}"}}"#, "x".repeat(100)));
        assert_eq!(Asked::glance(&long), None);
    }

    #[test]
    fn what_takes_much_memory_weighs_much() {
        // The smallest map with a member, as often as it fits.
        let maps = [0xbf, 0x61, 0x61, 0x00, 0xff].repeat(MOST_MESSAGE / 5);
        assert!(weight(&maps) > 400_000 * 300, "{}", weight(&maps));
        // Numbers, as a map of the surroundings may have.
        let numbers: Value = (0..200_000).map(|n| Value::from(n * 100_000_000u64)).collect();
        let numbers = cbor::to_vec(&numbers);
        assert!((200_000 * 32..200_000 * 100).contains(&weight(&numbers)));
        let text = cbor::to_vec(&Value::from("x".repeat(1 << 20)));
        assert!((1 << 20..(1 << 20) + 200).contains(&weight(&text)));
        assert_eq!(weight(&[0xff, 0xff]), weight(&[0xff]) * 2);
        assert_eq!(weight(&[0x7b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), usize::MAX);
        assert_eq!(weight(&[]), 0);
    }

    proptest! {
        #[test]
        fn a_glance_at_any_bytes_is_one(bytes: Vec<u8>) {
            let _ = (Asked::glance(&bytes), weight(&bytes), Asked::glance(&indefinite(&bytes)));
        }
    }
    use crate::json;

    fn value(text: &str) -> Value {
        json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
    }

    fn bytes(text: &str) -> Vec<u8> {
        cbor::to_vec(&value(text))
    }

    #[test]
    fn messages_by_hand() {
        let pull = Pull {
            filter: [("type", "Entity")].into_iter().collect(),
            after: Some(7),
            as_of: Some("2026-01-01T00:00:00Z".to_owned()),
            store: Some("s".to_owned()),
            deflate: true,
        };
        let answer = |answer| Answered { id: 1, answer };
        let failure = |path: Option<&str>| Failure {
            code: "NOT_FOUND".to_owned(),
            message: "gone".to_owned(),
            path: path.map(ToOwned::to_owned),
        };
        for (request, text) in [
            (Request::Info, r#"{"id":1,"op":"info"}"#),
            (Request::Pull(Pull::default()), r#"{"id":1,"op":"pull"}"#),
            (
                Request::Pull(pull),
                r#"{"id":1,"op":"pull","filter":{"type":"Entity"},"after":7,
                    "asOf":"2026-01-01T00:00:00Z","store":"s","deflate":true}"#,
            ),
            (
                Request::Push(Push { items: vec![value(r#"{"id":"a"}"#)], restore: false }),
                r#"{"id":1,"op":"push","items":[{"id":"a"}]}"#,
            ),
            (
                Request::Push(Push { items: vec![], restore: true }),
                r#"{"id":1,"op":"push","items":[],"restore":true}"#,
            ),
            (Request::Unlock("abc".to_owned()), r#"{"id":1,"op":"unlock","token":"abc"}"#),
            (Request::Cancel(3), r#"{"id":1,"op":"cancel","of":3}"#),
        ] {
            let asked = Asked { id: 1, request };
            assert_eq!(asked.clone().encode(), bytes(text), "{text}");
            assert_eq!(Asked::decode(&bytes(text)), Ok(asked));
        }
        let items = vec![value("1")];
        for (answer, text) in [
            (answer(Answer::Ok(Map::new())), r#"{"id":1,"ok":{}}"#),
            (
                answer(Answer::Begin { as_of: "x".to_owned(), count: 2, store: "s".to_owned() }),
                r#"{"id":1,"begin":{"asOf":"x","count":2,"store":"s"}}"#,
            ),
            (
                answer(Answer::Items { items, next: 9, lost: vec![] }),
                r#"{"id":1,"items":[1],"next":9}"#,
            ),
            (
                answer(Answer::Items { items: vec![], next: 9, lost: vec!["rot".to_owned()] }),
                r#"{"id":1,"lost":["rot"],"next":9,"items":[]}"#,
            ),
            (
                answer(Answer::End { count: 2, complete: true }),
                r#"{"id":1,"end":{"count":2,"complete":true}}"#,
            ),
            (
                answer(Answer::Error(failure(None))),
                r#"{"id":1,"error":{"code":"NOT_FOUND","message":"gone"}}"#,
            ),
            (
                answer(Answer::Error(failure(Some("/x")))),
                r#"{"id":1,"error":{"code":"NOT_FOUND","message":"gone","path":"/x"}}"#,
            ),
        ] {
            assert_eq!(answer.clone().encode(), bytes(text), "{text}");
            assert_eq!(Answered::decode(&bytes(text)), Ok(answer));
        }
    }

    #[test]
    fn what_a_microcontroller_sends_byte_by_byte() {
        // The order of a deterministic map: shorter keys first, then by their bytes.
        let asked = Asked { id: 1, request: Request::Push(Push::default()) };
        let expected = b"\xa3\x62id\x01\x62op\x64push\x65items\x80";
        assert_eq!(asked.encode(), expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let says = |text: &str| Asked::decode(&bytes(text)).unwrap_err();
        for (text, id, said) in [
            ("[]", None, "/: a message is a map, and this is an array"),
            (r#"{"op":"info"}"#, None, "/id: is missing, or no number from 0 on"),
            (r#"{"id":-1,"op":"info"}"#, None, "/id: is missing, or no number from 0 on"),
            (r#"{"id":5}"#, Some(5), "/op: is missing"),
            (r#"{"id":5,"op":"info","x/y":1}"#, Some(5), "/x~1y: is unknown here"),
            (
                r#"{"id":5,"op":"pull","after":"1"}"#,
                Some(5),
                "/after: expected a whole number from 0 on, found a string",
            ),
            (r#"{"id":5,"op":"push"}"#, Some(5), "/items: is missing"),
            (
                r#"{"id":5,"op":"fetch"}"#,
                Some(5),
                "/op: unknown operation \"fetch\": known are info, pull, push, unlock, cancel",
            ),
        ] {
            let error = says(text);
            assert_eq!((error.id, error.to_string().as_str()), (id, said), "{text}");
        }
        let says = |text: &str| Answered::decode(&bytes(text)).unwrap_err().to_string();
        assert_eq!(says(r#"{"id":1}"#), "/: is none of ok, begin, items, end, error");
        assert_eq!(says(r#"{"id":1,"ok":{},"end":{}}"#), "/end: is unknown here");
        assert_eq!(says(r#"{"id":1,"end":{"count":1}}"#), "/end/complete: is missing");
        assert_eq!(says(r#"{"id":1,"items":[]}"#), "/next: is missing");
        assert!(Asked::decode(b"\xff").unwrap_err().message.contains("byte 0"));
    }

    #[test]
    fn what_is_told_in_ok_comes_back() {
        let info = Info {
            robot: "r2".to_owned(),
            program: "omird 1".to_owned(),
            write: false,
            time: "2026-01-01T00:00:00Z".to_owned(),
            clock: "coarse".to_owned(),
            count: 12,
            deflate: true,
        };
        assert_eq!(Info::from_map(info.clone().to_map()), Ok(info.clone()));
        let mut other = info.to_map();
        other.insert("access", "all");
        let error = Info::from_map(other).unwrap_err();
        assert_eq!(error.to_string(), r#"/ok/access: is neither "read" nor "write""#);
        let pushed = Pushed { stored: 3, unchanged: 1 };
        assert_eq!(Pushed::from_map(pushed.to_map()), Ok(pushed));
        assert!(Pushed::from_map(Map::new()).is_err());
    }

    #[test]
    fn a_message_has_an_end() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.push(b"ab", false), Ok(None));
        assert_eq!(inbox.push(b"c", true), Ok(Some(b"abc".to_vec())));
        assert_eq!(inbox.push(&vec![0; MOST_MESSAGE], false), Ok(None));
        assert!(inbox.push(b"x", true).is_err());
        assert_eq!(inbox.push(b"x", true), Ok(Some(b"x".to_vec())), "the next one may come");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = (Asked::decode(&bytes), Answered::decode(&bytes));
        }
    }
}
