use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::json;
use crate::value::{Map, Value};

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
    let answer = |answer| ResponseMessage { id: 1, response: answer };
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
        let asked = RequestMessage { id: 1, request };
        assert_eq!(asked.clone().encode(), bytes(text), "{text}");
        assert_eq!(RequestMessage::decode(&bytes(text)), Ok(asked));
    }
    let items = vec![value("1")];
    for (answer, text) in [
        (answer(Response::Ok(Map::new())), r#"{"id":1,"ok":{}}"#),
        (
            answer(Response::Begin { as_of: "x".to_owned(), count: 2, store: "s".to_owned() }),
            r#"{"id":1,"begin":{"asOf":"x","count":2,"store":"s"}}"#,
        ),
        (
            answer(Response::Items { items, next: 9, lost: vec![] }),
            r#"{"id":1,"items":[1],"next":9}"#,
        ),
        (
            answer(Response::Items { items: vec![], next: 9, lost: vec!["rot".to_owned()] }),
            r#"{"id":1,"lost":["rot"],"next":9,"items":[]}"#,
        ),
        (
            answer(Response::End { count: 2, complete: true }),
            r#"{"id":1,"end":{"count":2,"complete":true}}"#,
        ),
        (
            answer(Response::Error(failure(None))),
            r#"{"id":1,"error":{"code":"NOT_FOUND","message":"gone"}}"#,
        ),
        (
            answer(Response::Error(failure(Some("/x")))),
            r#"{"id":1,"error":{"code":"NOT_FOUND","message":"gone","path":"/x"}}"#,
        ),
    ] {
        assert_eq!(answer.clone().encode(), bytes(text), "{text}");
        assert_eq!(ResponseMessage::decode(&bytes(text)), Ok(answer));
    }
}

#[test]
fn what_a_microcontroller_sends_byte_by_byte() {
    // The order of a deterministic map: shorter keys first, then by their bytes.
    let asked = RequestMessage { id: 1, request: Request::Push(Push::default()) };
    let expected = b"\xa3\x62id\x01\x62op\x64push\x65items\x80";
    assert_eq!(asked.encode(), expected);
}

#[test]
fn what_is_wrong_is_named() {
    let says = |text: &str| RequestMessage::decode(&bytes(text)).unwrap_err();
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
    let says = |text: &str| ResponseMessage::decode(&bytes(text)).unwrap_err().to_string();
    assert_eq!(says(r#"{"id":1}"#), "/: is none of ok, begin, items, end, error");
    assert_eq!(says(r#"{"id":1,"ok":{},"end":{}}"#), "/end: does not belong here");
    assert_eq!(says(r#"{"id":1,"end":{"count":1}}"#), "/end/complete: is missing");
    assert_eq!(says(r#"{"id":1,"items":[]}"#), "/next: is missing");
    assert_eq!(says(r#"{"id":1,"op":"info","ok":{}}"#), "/op: does not belong here");
    assert!(RequestMessage::decode(b"\xff").unwrap_err().message.contains("byte 0"));
}

#[test]
fn what_fits_arrives_and_nothing_else_does() {
    let deep = |depth: usize| (1..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let text = |len: usize| Value::from("x".repeat(len));
    let many = |len: usize| Value::Array(vec![Value::from(1u64); len]);
    for (item, fit) in [
        (deep(71), true),
        (deep(73), false),
        (text(MOST_MESSAGE - 2 * AROUND), true),
        (text(MOST_MESSAGE), false),
        (many(498_000), true),
        (many(500_000), false),
    ] {
        assert_eq!(fits(&cbor::to_vec(&item)), fit);
        let answer = Response::Items { items: vec![item], next: u64::MAX, lost: vec![] };
        let message = ResponseMessage { id: u64::MAX, response: answer }.encode();
        let arrives = message.len() <= MOST_MESSAGE && ResponseMessage::decode(&message).is_ok();
        assert_eq!(arrives, fit);
    }
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
    let pushed = Pushed { stored: 3, unchanged: 1, kept: 2 };
    assert_eq!(Pushed::from_map(pushed.to_map()), Ok(pushed));
    assert!(Pushed::from_map(Map::new()).is_err());
    // Later versions say more.
    let mut more = pushed.to_map();
    more.insert("new", true);
    assert_eq!(Pushed::from_map(more), Ok(pushed));
    for (more, plain) in [
        (r#"{"id":1,"ok":{},"new":1}"#, r#"{"id":1,"ok":{}}"#),
        (r#"{"id":1,"items":[],"next":2,"new":1}"#, r#"{"id":1,"items":[],"next":2}"#),
        (
            r#"{"id":1,"end":{"count":1,"complete":true,"new":1}}"#,
            r#"{"id":1,"end":{"count":1,"complete":true}}"#,
        ),
    ] {
        assert_eq!(ResponseMessage::decode(&bytes(more)), ResponseMessage::decode(&bytes(plain)));
        assert!(ResponseMessage::decode(&bytes(plain)).is_ok());
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        let _ = (RequestMessage::decode(&bytes), ResponseMessage::decode(&bytes));
    }
}
