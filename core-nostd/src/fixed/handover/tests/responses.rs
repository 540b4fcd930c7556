//! Responses, as far as they are read.

use std::vec::Vec;

use proptest::prelude::*;

use super::super::*;
use crate::cbor;
use crate::instant::Timestamp;
use crate::link::message::{Info, Response as LinkResponse, ResponseMessage};

proptest! {
    #[test]
    fn no_answer_harms(bytes: Vec<u8>, cut: bool) {
        let _ = Response::read(&bytes, cut);
    }
}

#[test]
fn answers_by_hand() {
    let read = |text: &str| {
        let value = crate::json::from_slice(text.as_bytes(), &crate::decode::Limits::default());
        Response::read(&cbor::to_vec(&value.unwrap()), false)
    };
    let empty = Response { id: 3, ..Response::default() };
    assert_eq!(read(r#"{"id":3,"ok":{}}"#), Some(empty.clone()));
    let pushed = Response { stored: 5, unchanged: 2, kept: 1, ..empty.clone() };
    assert_eq!(
        read(r#"{"id":3,"ok":{"stored":5,"unchanged":2,"kept":1,"new":[{}]}}"#),
        Some(pushed)
    );
    let failed = Response { error: Some(Text::try_from("BUSY").unwrap()), ..empty };
    assert_eq!(read(r#"{"id":3,"error":{"code":"BUSY","message":"later"}}"#), Some(failed));
    for none in
        ["[]", "{}", r#"{"id":3}"#, r#"{"ok":{}}"#, r#"{"id":-1,"ok":{}}"#, r#"{"id":3,"ok":5}"#]
    {
        assert_eq!(read(none), None, "{none}");
    }
    // The beginning of an answer is one if it was cut, and none if it was not.
    let info = Info {
        robot: "r2".to_owned(),
        program: "p".repeat(400),
        write: false,
        time: "2026-05-30T12:00:00Z".to_owned(),
        clock: "unknown".to_owned(),
        count: 1,
        deflate: true,
    };
    let whole = ResponseMessage { id: 9, response: LinkResponse::Ok(info.to_map()) }.encode();
    let front = Response::read(&whole[..ANSWER], true).unwrap();
    assert_eq!(front.time, Some(Timestamp::parse("2026-05-30T12:00:00Z").unwrap()));
    assert_eq!((front.id, front.may_write), (9, Some(false)));
    assert_eq!(front.clock, Some(Trust::Unknown));
    assert_eq!(Response::read(&whole[..ANSWER], false), None);
}
