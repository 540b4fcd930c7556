use super::*;
use DecodeErrorKind::*;

fn read_text(text: &str) -> Result<Value, DecodeError> {
    from_slice(text.as_bytes(), &Limits::default())
}

fn round_trip(text: &str) {
    let value = read_text(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(to_string(&value), text);
}

#[test]
fn canonical_texts_come_back() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-0.0",
        "1e400",
        r#""""#,
        r#""\"\\\b\f\n\r\t\u0000\u001f/é😀""#,
        "[]",
        "{}",
        r#"[1,[2,[3,{}]],{"a":{"b":[]}}]"#,
        r#"{"b":1,"a":2,"":3,"é\"":4}"#,
    ] {
        round_trip(text);
    }
    assert_eq!(
        read_text(r#" [ 1 , "\u00e9\/\ud83d\ude00" ] "#).unwrap().to_string(),
        r#"[1,"é/😀"]"#
    );
}

#[test]
fn pretty_text_reads_back() {
    let value = read_text(r#"{"a":[1,{"b":null}],"c":{},"d":[]}"#).unwrap();
    let pretty = to_string_pretty(&value);
    assert_eq!(
        pretty,
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}"
    );
    assert_eq!(read_text(&pretty).unwrap(), value);
}

#[test]
fn refusals_tell_kind_and_offset() {
    for (text, kind, offset) in [
        ("", Truncated, 0),
        ("  ", Truncated, 2),
        ("[1,", Truncated, 3),
        (r#"{"a":1"#, Truncated, 6),
        (r#""abc"#, Truncated, 4),
        ("tru", Truncated, 3),
        ("[1,]", Syntax, 3),
        ("{,}", Syntax, 1),
        ("[01]", Syntax, 2),
        ("\n\n[1 2]", Syntax, 5),
        ("nul", Truncated, 3),
        ("NaN", Syntax, 0),
        ("-Infinity", Syntax, 1),
        ("'a'", Syntax, 0),
        ("{\"a\":1,\"b\":2,\"a\":3}", DuplicateKey, 13),
        ("{\"a\":1,\"\\u0061\":3}", DuplicateKey, 7),
        ("1 2", TrailingBytes, 2),
        ("{} \n x", TrailingBytes, 5),
        ("[1e100001]", TooLarge, 1),
        ("[0,\"\\ud800\"]", Syntax, 10),
        ("[0,\"\\udc00x\"]", Syntax, 9),
        ("\"\u{1}\"", Syntax, 0),
    ] {
        let error = read_text(text).expect_err(text);
        assert_eq!((error.kind, error.offset), (kind, offset), "{text:?}: {error}");
    }
    let mark = from_slice(b"\xEF\xBB\xBF{}", &Limits::default()).unwrap_err();
    assert_eq!((mark.kind, mark.offset), (Syntax, 0));
    assert!(mark.message.contains("byte order mark"));
    let latin1 = from_slice(b"[\"caf\xE9\"]", &Limits::default()).unwrap_err();
    assert_eq!((latin1.kind, latin1.offset), (Syntax, 5));
}

#[test]
fn errors_below_the_root_say_where() {
    let error = read_text(r#"{"a/b":[0,{"x":1,"x":2}]}"#).unwrap_err();
    assert_eq!(error.pointer, "/a~1b/1");
    assert_eq!(
        error.to_string(),
        "at byte 17 (/a~1b/1): the key \"x\" occurs twice in one object; keep one"
    );
    assert_eq!(read_text("[").unwrap_err().pointer, "/");
}

#[test]
fn limits_hold() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read_text(&nested(128)).is_ok());
    let error = read_text(&nested(129)).unwrap_err();
    assert_eq!((error.kind, error.offset), (Depth, 128));
    // Anything that recursed blindly would overflow its stack long before the end of these.
    for hostile in ["[".repeat(1_000_000), nested(1_000_000), r#"{"a":"#.repeat(1_000_000)] {
        assert_eq!(read_text(&hostile).unwrap_err().kind, Depth);
    }
    // Brackets in strings do not nest.
    assert!(read_text(&format!(r#"["{}\"["]"#, "[".repeat(1000))).is_ok());

    let no_ceiling = Limits { max_depth: usize::MAX, ..Limits::default() };
    assert_eq!(from_slice(nested(100_000).as_bytes(), &no_ceiling).unwrap_err().kind, Depth);

    let deepest = nested(crate::decode::DEPTH_CEILING);
    let value = from_slice(deepest.as_bytes(), &no_ceiling).unwrap();
    assert_eq!(to_string(&value), deepest);
    let bytes = crate::cbor::to_vec(&value);
    assert_eq!(crate::cbor::from_slice(&bytes, &no_ceiling), Ok(value));

    let few = Limits { max_items: 3, max_bytes: 12, ..Limits::default() };
    assert!(from_slice(b"[1,2]", &few).is_ok());
    let error = from_slice(b"[1,2,3]", &few).unwrap_err();
    assert_eq!((error.kind, error.offset), (TooLarge, 5));
    assert_eq!(from_slice(b"             ", &few).unwrap_err().kind, TooLarge);
}

#[test]
fn an_object_of_many_members_is_not_quadratic() {
    let members: Vec<String> = (0..200_000).map(|i| format!("\"k{i}\":{i}")).collect();
    let value = read_text(&format!("{{{}}}", members.join(","))).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 200_000);
}
