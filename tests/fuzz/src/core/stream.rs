//! Documents read part by part, beside the readers of whole documents; and where in a text their
//! values stand.

use std::convert::Infallible;

use omir_core::decode::{DecodeError, Limits};
use omir_core::pointer;
use omir_core::stream::{Event, Source, StreamError};
use omir_core::value::{Map, Value};
use omir_core::{cbor, json};

/// The first byte says how many bytes come at once, the second how much is allowed; zero is no bound.
pub fn run(bytes: &[u8]) {
    let Some((&[step, bound], document)) = bytes.split_first_chunk() else { return };
    let chunk = if step == 0 { 1 << 16 } else { usize::from(step) };
    let limits = match usize::from(bound) {
        0 => Limits::default(),
        bound => Limits { max_items: bound, max_depth: bound / 8 + 1, max_bytes: 64 * bound },
    };
    let trickle = || Trickle { bytes: document, step: chunk };
    let mut events = json::Events::with_chunk(trickle(), &limits, chunk);
    agree(assemble(|| events.next()), json::from_slice(document, &limits), document);
    let mut events = cbor::Events::with_chunk(trickle(), &limits, chunk);
    agree(assemble(|| events.next()), cbor::from_slice(document, &limits), document);
    places(document);
}

struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
}

impl Source for Trickle<'_> {
    type Error = Infallible;

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let len = self.step.min(buffer.len());
        self.bytes.read(&mut buffer[..len])
    }
}

/// Puts a document together from its parts.
fn assemble(
    mut next: impl FnMut() -> Result<Option<Event>, StreamError<Infallible>>,
) -> Result<Value, DecodeError> {
    let mut map = Map::new();
    let mut document = None;
    loop {
        match next() {
            Ok(Some(Event::Member(name, value))) => assert!(map.insert(name, value).is_none()),
            Ok(Some(Event::Entries)) => {
                assert!(map.insert("entry", Value::Array(Vec::new())).is_none());
            }
            Ok(Some(Event::Entry(item))) => {
                let entry = map.get_mut("entry").and_then(Value::as_array_mut);
                entry.expect("`Entries` comes before").push(item);
            }
            Ok(Some(Event::Document(value))) => document = Some(value),
            Ok(None) => return Ok(document.unwrap_or(Value::Object(map))),
            Err(StreamError::Decode(error)) => {
                assert!(matches!(next(), Ok(None)), "nothing comes behind an error");
                return Err(error);
            }
            Err(StreamError::Source(never)) => match never {},
        }
    }
}

fn agree(parts: Result<Value, DecodeError>, whole: Result<Value, DecodeError>, document: &[u8]) {
    match (parts, whole) {
        (Ok(parts), Ok(whole)) => assert_eq!(json::to_string(&parts), json::to_string(&whole)),
        (Err(error), Err(_)) => {
            assert!(error.offset <= document.len() && !error.message.is_empty(), "{error:?}");
        }
        (parts, whole) => panic!("in parts {parts:?}, at once {whole:?}"),
    }
}

/// Every value of the two outermost levels stands where it is said to.
fn places(document: &[u8]) {
    let Ok(text) = std::str::from_utf8(document) else { return };
    let Some(places) = json::Places::of(text) else { return };
    let Ok(value) = json::from_slice(document, &Limits::default()) else { return };
    for (name, member) in value.as_object().into_iter().flatten().take(32) {
        // A lone `/` is the document itself.
        if name.is_empty() {
            continue;
        }
        let at = pointer::join("", name);
        stands(text, places.line_and_column(&at), member);
        for (index, item) in member.as_array().unwrap_or_default().iter().take(32).enumerate() {
            let at = pointer::join_index(&at, index);
            stands(text, places.line_and_column(&at), item);
        }
    }
}

fn stands(text: &str, place: Option<(usize, usize)>, value: &Value) {
    let (line, column) = place.expect("it is there");
    let line_start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let first = text[line_start..].chars().nth(column - 1).expect("a character");
    let is_first = match value {
        Value::Null => first == 'n',
        Value::Bool(flag) => first == if *flag { 't' } else { 'f' },
        Value::Number(_) => first == '-' || first.is_ascii_digit(),
        Value::Text(_) => first == '"',
        Value::Array(_) => first == '[',
        Value::Object(_) => first == '{',
    };
    assert!(is_first, "{line}:{column} {value}");
}
