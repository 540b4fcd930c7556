use super::*;
use crate::decode::{DecodeErrorKind, DecodeErrorKind::*, Limits};
use crate::json;
use crate::value::Value;

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value(text: &str) -> Value {
    json::from_slice(text.as_bytes(), &Limits::default()).unwrap()
}

fn read(hex: &str) -> Result<Value, crate::decode::DecodeError> {
    from_slice(&bytes(hex), &Limits::default())
}

/// RFC 8949 Appendix A, the vectors JSON can hold. Those marked `true` are in deterministic form.
const APPENDIX_A: &[(&str, &str, bool)] = &[
    ("0", "00", true),
    ("1", "01", true),
    ("10", "0a", true),
    ("23", "17", true),
    ("24", "1818", true),
    ("25", "1819", true),
    ("100", "1864", true),
    ("1000", "1903e8", true),
    ("1000000", "1a000f4240", true),
    ("1000000000000", "1b000000e8d4a51000", true),
    ("18446744073709551615", "1bffffffffffffffff", true),
    ("18446744073709551616", "c249010000000000000000", true),
    ("-18446744073709551616", "3bffffffffffffffff", true),
    ("-18446744073709551617", "c349010000000000000000", true),
    ("-1", "20", true),
    ("-10", "29", true),
    ("-100", "3863", true),
    ("-1000", "3903e7", true),
    ("0.0", "f90000", true),
    ("-0.0", "f98000", true),
    ("1.0", "f93c00", true),
    ("1.1", "fb3ff199999999999a", true),
    ("1.5", "f93e00", true),
    ("65504.0", "f97bff", true),
    ("100000.0", "fa47c35000", true),
    ("3.4028234663852886e+38", "fa7f7fffff", true),
    ("1.0e+300", "fb7e37e43c8800759c", true),
    ("5.960464477539063e-8", "f90001", true),
    ("0.00006103515625", "f90400", true),
    ("-4.0", "f9c400", true),
    ("-4.1", "fbc010666666666666", true),
    ("false", "f4", true),
    ("true", "f5", true),
    ("null", "f6", true),
    ("\"\"", "60", true),
    ("\"a\"", "6161", true),
    ("\"IETF\"", "6449455446", true),
    ("\"\\\"\\\\\"", "62225c", true),
    ("\"\\u00fc\"", "62c3bc", true),
    ("\"\\u6c34\"", "63e6b0b4", true),
    ("\"\\ud800\\udd51\"", "64f0908591", true),
    ("[]", "80", true),
    ("[1, 2, 3]", "83010203", true),
    ("[1, [2, 3], [4, 5]]", "8301820203820405", true),
    (
        "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]",
        "98190102030405060708090a0b0c0d0e0f101112131415161718181819",
        true,
    ),
    ("{}", "a0", true),
    ("{\"a\": 1, \"b\": [2, 3]}", "a26161016162820203", true),
    ("[\"a\", {\"b\": \"c\"}]", "826161a161626163", true),
    (
        "{\"a\": \"A\", \"b\": \"B\", \"c\": \"C\", \"d\": \"D\", \"e\": \"E\"}",
        "a56161614161626142616361436164614461656145",
        true,
    ),
    ("\"streaming\"", "7f657374726561646d696e67ff", false),
    ("[]", "9fff", false),
    ("[1, [2, 3], [4, 5]]", "9f018202039f0405ffff", false),
    ("[1, [2, 3], [4, 5]]", "9f01820203820405ff", false),
    ("[1, [2, 3], [4, 5]]", "83018202039f0405ff", false),
    ("[1, [2, 3], [4, 5]]", "83019f0203ff820405", false),
    ("{\"a\": 1, \"b\": [2, 3]}", "bf61610161629f0203ffff", false),
    ("[\"a\", {\"b\": \"c\"}]", "826161bf61626163ff", false),
    ("{\"Fun\": true, \"Amt\": -2}", "bf6346756ef563416d7421ff", false),
];

#[test]
fn appendix_a() {
    for (text, encoded, deterministic) in APPENDIX_A {
        let expected = value(text);
        assert_eq!(read(encoded).as_ref(), Ok(&expected), "{encoded}");
        // Equality is by value; the text shows that 1.0 has not become 1.
        assert_eq!(read(encoded).unwrap().to_string(), expected.to_string());
        if *deterministic {
            assert_eq!(hex(&to_vec(&expected)), *encoded, "{text}");
        }
    }
}

#[test]
fn appendix_a_without_json_form_is_refused() {
    for encoded in [
        "f97c00",
        "f97e00",
        "f9fc00",
        "fa7f800000",
        "fa7fc00000",
        "faff800000",
        "fb7ff0000000000000",
        "fb7ff8000000000000",
        "fbfff0000000000000",
        "f7",
        "f0",
        "f8ff",
        "c074323031332d30332d32315432303a30343a30305a",
        "c11a514b67b0",
        "c1fb41d452d9e8200000",
        "d74401020304",
        "d818456449455446",
        "d82076687474703a2f2f7777772e6578616d706c652e636f6d",
        "40",
        "4401020304",
        "a201020304",
        "5f42010243030405ff",
    ] {
        let error = read(encoded).unwrap_err();
        assert_eq!(error.kind, Unsupported, "{encoded}: {error}");
    }
}

#[test]
fn exotic_numbers_travel_as_decimal_fractions() {
    for (text, encoded) in [
        ("1e400", "c48219019001"),
        ("-1e400", "c48219019020"),
        ("273.15", "fb4071126666666666"),
        ("0.3000000000000000000001", "c48235c249a2a15d09519be00001"),
    ] {
        let written = to_vec(&value(text));
        assert_eq!(from_slice(&written, &Limits::default()).unwrap().to_string(), text);
        assert_eq!(hex(&written), encoded);
    }
    // RFC 8949 §3.4.4: 273.15 as a decimal fraction is the float again.
    assert_eq!(read("c48221196ab3").unwrap().to_string(), "273.15");
    assert_eq!(read("c49f21196ab3ff").unwrap().to_string(), "273.15");
    assert_eq!(
        read("c48200c249010000000000000000").unwrap().to_string(),
        "1.8446744073709551616e19"
    );
    assert_eq!(read("c2420001").unwrap().to_string(), "1");
    assert_eq!(read("c240").unwrap().to_string(), "0");
    assert_eq!(read("c340").unwrap().to_string(), "-1");
    assert_eq!(read("c25f41014100ff").unwrap().to_string(), "256");
}

#[test]
fn the_self_described_mark_is_skipped_once() {
    assert_eq!(read("d9d9f783010203").unwrap(), value("[1,2,3]"));
    assert_eq!(read("d9d9f7d9d9f701").unwrap_err().offset, 3);
    assert_eq!(read("81d9d9f701").unwrap_err().offset, 1);
}

#[test]
fn keys_are_written_in_bytewise_order() {
    let map = value(r#"{"b":1,"aa":2,"a":3,"":4,"é":5}"#);
    assert_eq!(hex(&to_vec(&map)), "a56004616103616201626161026 2c3a905".replace(' ', ""));
    let long = "x".repeat(24);
    let map = Value::from(crate::value::Map::from_iter([(long.as_str(), 1), ("z", 2)]));
    assert!(hex(&to_vec(&map)).starts_with("a2617a027818"));
}

#[test]
fn refusals_tell_kind_and_offset() {
    let cases: &[(&str, DecodeErrorKind, usize)] = &[
        ("", Truncated, 0),
        ("18", Truncated, 1),
        ("6261", Truncated, 2),
        ("8201", Truncated, 2),
        ("a1616101 00", TrailingBytes, 4),
        ("0000", TrailingBytes, 1),
        ("9f01", Truncated, 2),
        ("bf6161", Truncated, 3),
        ("1c", Syntax, 0),
        ("81fc", Syntax, 1),
        ("ff", Syntax, 0),
        ("82 01 ff", Syntax, 2),
        ("bf 6161 ff", Syntax, 3),
        ("a1 ff", Syntax, 1),
        ("1f", Syntax, 0),
        ("df01", Syntax, 0),
        ("f814", Syntax, 0),
        ("81f818", Syntax, 1),
        ("62c328", Syntax, 1),
        ("81 63 61ff61", Syntax, 3),
        ("7f 61c3 61a9 ff", Syntax, 2),
        ("7f 4161 ff", Syntax, 1),
        ("7f 7f6161ff ff", Syntax, 1),
        ("8140", Unsupported, 1),
        ("81c000", Unsupported, 1),
        ("81f97e00", Unsupported, 1),
        ("81f7", Unsupported, 1),
        ("a10102", Unsupported, 1),
        ("a1f602", Unsupported, 1),
        ("a3 616101 616202 616103", DuplicateKey, 7),
        ("bf 616181616a 7f6161ff 02 ff", DuplicateKey, 6),
        ("c200", Syntax, 1),
        ("c400", Syntax, 1),
        ("c48101", Syntax, 1),
        ("c482616101", Syntax, 2),
        ("c48201f90000", Syntax, 3),
        ("c49f010203ff", Syntax, 4),
        ("c4821a000186a101", TooLarge, 0),
        ("c4821bffffffffffffffff01", TooLarge, 0),
        ("c4823bffffffffffffffff01", TooLarge, 0),
    ];
    for (encoded, kind, offset) in cases {
        let error = read(encoded).expect_err(encoded);
        assert_eq!((error.kind, error.offset), (*kind, *offset), "{encoded}: {error}");
    }
    let error = read("a1 6161 83 01 02 a1 6162 f97e00").unwrap_err();
    assert_eq!((error.pointer.as_str(), error.offset), ("/a/2/b", 9));
    assert_eq!(read("ff").unwrap_err().pointer, "/");
}

#[test]
fn long_bignums_are_refused() {
    let mut digits_1000 = bytes("c2 59 019f");
    digits_1000.extend([0x42; 415]);
    assert!(from_slice(&digits_1000, &Limits::default()).is_ok());
    let mut digits_1002 = bytes("c2 59 01a0");
    digits_1002.extend([0xff; 416]);
    assert_eq!(from_slice(&digits_1002, &Limits::default()).unwrap_err().kind, TooLarge);
    let mut huge = bytes("c2 5a 00100000");
    huge.extend(vec![0xff; 1 << 20]);
    assert_eq!(from_slice(&huge, &Limits::default()).unwrap_err().kind, TooLarge);
}

#[test]
fn hostile_lengths_and_depths() {
    for encoded in [
        "9b1000000000000000",
        "bb1000000000000000",
        "7b1000000000000000",
        "5b1000000000000000",
        "9bffffffffffffffff",
        "bbffffffffffffffff",
        "7bffffffffffffffff",
        "c25bffffffffffffffff",
        "a17bffffffffffffffff",
    ] {
        let error = read(encoded).unwrap_err();
        assert!(matches!(error.kind, Truncated | Unsupported), "{encoded}: {error}");
        assert_eq!(skip_item(&bytes(encoded), &Limits::default()).unwrap_err().kind, Truncated);
        assert!(map_entries(&bytes(encoded)).is_err());
    }
    for byte in [0x81, 0x9f, 0xc1] {
        let deep = vec![byte; 1_000_000];
        let no_ceiling = Limits { max_depth: usize::MAX, ..Limits::default() };
        assert_eq!(skip_item(&deep, &no_ceiling).unwrap_err().kind, Depth);
        let error = from_slice(&deep, &no_ceiling).unwrap_err();
        assert!(matches!(error.kind, Depth | Unsupported));
    }
    let mut maps = Vec::new();
    (0..1000).for_each(|_| maps.extend(bytes("a16161")));
    assert_eq!(from_slice(&maps, &Limits::default()).unwrap_err().kind, Depth);
    let nested = |depth: usize| [vec![0x81; depth], vec![0x00]].concat();
    assert!(from_slice(&nested(128), &Limits::default()).is_ok());
    let error = from_slice(&nested(129), &Limits::default()).unwrap_err();
    assert_eq!((error.kind, error.offset), (Depth, 128));
    let few = Limits { max_items: 3, ..Limits::default() };
    assert!(from_slice(&bytes("820102"), &few).is_ok());
    assert_eq!(from_slice(&bytes("83010203"), &few).unwrap_err().offset, 3);
    let short = Limits { max_bytes: 2, ..Limits::default() };
    assert_eq!(from_slice(&bytes("820102"), &short).unwrap_err().kind, TooLarge);
}

#[test]
fn items_come_off_a_sequence_one_by_one() {
    let sequence = bytes("d9d9f7 820102 a0 00");
    let limits = Limits::default();
    let (first, used) = read_item(&sequence, &limits).unwrap();
    assert_eq!((first, used), (value("[1,2]"), 6));
    assert_eq!(skip_item(&sequence, &limits), Ok(6));
    assert_eq!(read_item(&sequence[6..], &limits).unwrap(), (value("{}"), 1));
    assert_eq!(skip_item(&sequence[7..], &limits), Ok(1));
    // Skipping asks only for well-formedness.
    assert_eq!(skip_item(&bytes("a1 5f4100ff c1 f97e00 00"), &limits), Ok(9));
}

#[test]
fn an_array_tells_its_length_though_its_items_are_damaged() {
    assert_eq!(read_array_header(&bytes("83 01 ff")).unwrap(), (Some(3), 1));
    assert_eq!(read_array_header(&bytes("99 0100 1c")).unwrap(), (Some(256), 3));
    assert_eq!(read_array_header(&bytes("9f")).unwrap(), (None, 1));
    assert_eq!(read_array_header(&bytes("a0")).unwrap_err().kind, Unsupported);
    assert_eq!(read_array_header(&bytes("99 01")).unwrap_err().kind, Truncated);
}

#[test]
fn a_slot_is_where_the_member_is_or_would_be() {
    // {"a": 1, "c": [2], "bb": 3}
    let map = bytes("a3 6161 01 6163 8102 626262 03");
    let slot = |name| map_slot(&map, name).unwrap();
    assert_eq!((slot("c").members, slot("c").start), (3, 1));
    assert_eq!((slot("a").member, slot("a").value), (1..4, Some(3..4)));
    assert_eq!((slot("c").member, slot("c").value), (4..8, Some(6..8)));
    assert_eq!((slot("bb").member, slot("bb").value), (8..12, Some(11..12)));
    assert_eq!((slot("b").member, slot("b").value), (4..4, None));
    assert_eq!((slot("ccc").member, slot("ccc").value), (12..12, None));
    assert_eq!(map_slot(&bytes("80"), "a").unwrap_err().kind, Unsupported);
    assert_eq!(map_slot(&map[..9], "bb").unwrap_err().kind, Truncated);
}

#[test]
fn map_entries_give_the_ranges() {
    let plain = bytes("a2 6161 820102 7f6162ff a16163f6");
    let entries: Vec<MapEntry<'_>> = map_entries(&plain).unwrap().collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (&*entries[0].key, &entries[0].key_range, &entries[0].value_range),
        ("a", &(1..3), &(3..6))
    );
    assert_eq!(
        (&*entries[1].key, &entries[1].key_range, &entries[1].value_range),
        ("b", &(6..10), &(10..14))
    );

    let indefinite = bytes("d9d9f7 bf 6161 01 ff");
    let entry = map_entries(&indefinite).unwrap().next().unwrap();
    assert_eq!(&indefinite[entry.value_range], [1]);
    assert_eq!(map_entries(&bytes("80")).unwrap_err().kind, Unsupported);
    assert_eq!(map_entries(&bytes("a000")).unwrap_err().kind, TrailingBytes);
    assert_eq!(map_entries(&bytes("a10102")).unwrap_err().kind, Unsupported);
    assert_eq!(map_entries(&bytes("a1616181")).unwrap_err().pointer, "/a");
}
