//! Messages against vectors of another implementation, and against themselves.
//!
//! Invariant 24 of ARCHITECTURE.md.

mod arbitrary;
mod registry;

use std::sync::Arc;

use omir_core::decode::Limits;
use omir_core::json;
use omir_ros2::interface::{MessageType, Registry};
use omir_ros2::message::{Message, Value};
use proptest::prelude::*;

use registry::registry;

/// Type, little endian, big endian, JSON.
const VECTORS: &str = include_str!("data/cdr.tsv");

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn vectors_of_another_implementation() {
    let registry = registry();
    let mut count = 0;
    for line in VECTORS.lines() {
        let [name, little, big, text] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let ty = registry.message(name).unwrap();
        let message = Message::decode(&ty, &bytes(little)).unwrap();
        assert_eq!(Message::decode(&ty, &bytes(big)).unwrap(), message, "{name}");
        assert_eq!(message.encode(), bytes(little), "{name}");
        let value = json::from_slice(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(message.to_json(), value, "{name}");
        count += 1;
    }
    assert!(count >= 70, "{count}");
}

fn ty(text: &str) -> Arc<MessageType> {
    let mut registry = Registry::standard();
    registry.add_text(&"demo_msgs/msg/Inner".parse().unwrap(), "int8 a\nstring<=3 name").unwrap();
    registry.add_text(&"demo_msgs/msg/Demo".parse().unwrap(), text).unwrap();
    registry.message("demo_msgs/msg/Demo").unwrap()
}

fn refused(ty: &Arc<MessageType>, cdr: &[u8]) -> String {
    Message::decode(ty, cdr).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_said_with_field_and_byte() {
    let ty = ty("uint8 first\nInner[] inner\nbool flag");
    assert_eq!(
        refused(&ty, &[0, 1, 0]),
        "no demo_msgs/msg/Demo: at byte 0: 3 bytes, and the header alone has 4"
    );
    assert_eq!(
        refused(&ty, &[0, 7, 0, 0]),
        "no demo_msgs/msg/Demo: at byte 0: the representation 00 07 is not plain CDR, 00 00 or 00 01"
    );
    assert_eq!(
        refused(&ty, &[0, 1, 0, 0]),
        "no demo_msgs/msg/Demo: first at byte 4: the bytes end here"
    );
    let many = [0, 1, 0, 0, 9, 0, 0, 0, 255, 255, 255, 255];
    assert_eq!(
        refused(&ty, &many),
        "no demo_msgs/msg/Demo: inner at byte 12: 4294967295 values of demo_msgs/msg/Inner[] in the 0 bytes that are left"
    );
    let mut cdr = vec![0, 1, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0];
    cdr.extend(b"abcd\0");
    assert_eq!(
        refused(&ty, &cdr),
        "no demo_msgs/msg/Demo: inner[0].name at byte 25: a text of 4 bytes, at most 3 are allowed"
    );
    cdr[16] = 4;
    cdr.truncate(23);
    cdr.extend([0, 2]);
    assert_eq!(refused(&ty, &cdr), "no demo_msgs/msg/Demo: flag at byte 25: 2 is no bool, 0 or 1");
    cdr[24] = 1;
    assert_eq!(Message::decode(&ty, &cdr).unwrap().text("inner[0].name"), Some("abc"));
    // Up to three bytes fill a payload up; more are another type.
    cdr.extend([0, 0, 0]);
    Message::decode(&ty, &cdr).unwrap();
    cdr.push(0);
    assert_eq!(
        refused(&ty, &cdr),
        "no demo_msgs/msg/Demo: at byte 25: the message ends here, and 4 more bytes follow: it is of another type"
    );
}

#[test]
fn texts_that_are_no_utf_8_are_read() {
    let ty = ty("string text\nwstring wide");
    let mut cdr = vec![0, 1, 0, 0, 3, 0, 0, 0, 0xfc, b'x', 0, 0];
    cdr.extend([2, 0, 0, 0, b'a', 0, 0x00, 0xd8]);
    let message = Message::decode(&ty, &cdr).unwrap();
    assert_eq!(message.text("text"), Some("\u{fffd}x"));
    assert_eq!(message.text("wide"), Some("a\u{fffd}"));
    // A text within may not hold a NUL, which would end it in C.
    cdr[8] = 0;
    assert!(refused(&ty, &cdr).contains("text at byte 11: a text with a NUL"));
}

#[test]
fn new_messages_have_the_defaults_of_the_file() {
    let registry = Registry::standard();
    let pose = Message::new(&registry.message("geometry_msgs/msg/PoseWithCovariance").unwrap());
    assert_eq!(pose.f64("pose.orientation.w"), Some(1.0));
    assert_eq!(pose.f64("covariance[35]"), Some(0.0));
    assert_eq!(pose.f64("covariance[36]"), None);
    let status = Message::new(&registry.message("sensor_msgs/msg/NavSatStatus").unwrap());
    assert_eq!(status.i64("status"), Some(-2));
    let demo =
        Message::new(&ty("string[] names [\"a, b\", 'c']\nfloat32[2] f [1.5, -2]\nbool on true"));
    assert_eq!(demo.list("names").map(<[_]>::len), Some(2));
    assert_eq!(demo.floats("f"), Some(&[1.5, -2.0][..]));
    assert_eq!(demo.bool("on"), Some(true));
}

#[test]
fn what_does_not_fit_is_not_set() {
    let ty = ty(
        "int8 small\nuint8[] raw\nstring<=3 name\nwstring<=2 wide\nInner[<=1] inner\nfloat32 f\nuint64 u",
    );
    let mut demo = Message::new(&ty);
    let inner = Message::new(&Registry::standard().message("std_msgs/msg/String").unwrap());
    let mut refused = |path: &str, value: omir_ros2::message::Value| {
        demo.set(path, value).unwrap_err().to_string()
    };
    assert_eq!(refused("small", 128.into()), "small: 128 is out of the range of int8");
    assert_eq!(refused("u", (-1).into()), "u: -1 is out of the range of uint64");
    assert_eq!(refused("name", "käse".into()), "name: a text of 5 bytes is too long for string<=3");
    assert_eq!(refused("name", "a\0".into()), "name: a text with a NUL cannot be a string of ROS");
    assert_eq!(
        refused("wide", "😀!".into()),
        "wide: a text of 3 UTF-16 units is too long for wstring<=2"
    );
    assert_eq!(
        refused("f", 1e39.into()),
        "f: 1000000000000000000000000000000000000000 is out of the range of float32"
    );
    assert_eq!(refused("small", "1".into()), "small: a text is no int8");
    assert_eq!(
        refused("inner", vec![inner].into()),
        "inner: [0]: a std_msgs/msg/String is no demo_msgs/msg/Inner"
    );
    assert_eq!(refused("raw[0]", 1.into()), "raw[0]: the list is shorter: set all of it");
    assert_eq!(refused("inner[1].a", 1.into()), "inner[1]: there are at most 1, counted from 0");
    assert_eq!(
        refused("smal", 1.into()),
        "smal: demo_msgs/msg/Demo has no such field; is it small? it has small, raw, name, wide, inner, f, u"
    );
    assert_eq!(refused("small.x", 1.into()), "small.x: a int8 has no fields");
    assert_eq!(refused("raw[*]", 1.into()), "raw[*]: [*] names no single value");
    demo.set("raw", vec![1u8, 2]).unwrap();
    demo.set("raw[1]", 7).unwrap();
    demo.set("u", u64::MAX).unwrap();
    assert_eq!(demo.bytes("raw"), Some(&[1, 7][..]));
    assert_eq!(demo.u64("raw[1]"), Some(7));
    assert_eq!(Message::decode(&ty, &demo.encode()).unwrap(), demo);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((ty, message) in arbitrary::message()) {
        let cdr = message.encode();
        prop_assert_eq!(&Message::decode(&ty, &cdr).unwrap(), &message);
    }

    /// Whatever arrives: no panic, and what is understood is a message that can be written.
    #[test]
    fn any_bytes_are_read_or_refused(
        (ty, message) in arbitrary::message(),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut cdr = message.encode();
        let i = at.index(cdr.len());
        cdr[i] = byte;
        cdr.truncate(cut.index(cdr.len()) + 1);
        if let Ok(read) = Message::decode(&ty, &cdr) {
            let again = Message::decode(&ty, &read.encode()).unwrap();
            prop_assert_eq!(again.encode(), read.encode());
        }
    }

    #[test]
    fn text_of_interfaces_never_panics(text in "(([a-zA-Z0-9_/<=>\\[\\]# .'\"-]|\n|---|string|int8 )*)") {
        let mut registry = Registry::new();
        for name in ["demo_msgs/msg/Demo", "demo_msgs/srv/Demo", "demo_msgs/action/Demo"] {
            let _ = registry.add_text(&name.parse().unwrap(), &text);
            let _ = registry.message(name);
        }
    }
}

#[test]
fn a_bounded_text_that_is_no_utf_8_keeps_within_its_bound() {
    let mut registry = Registry::standard();
    registry.add_text(&"lab_msgs/msg/Tag".parse().unwrap(), "string<=5 tag").unwrap();
    let ty = registry.message("lab_msgs/msg/Tag").unwrap();
    let read = Message::decode(&ty, b"\0\x01\0\0\x05\0\0\0a\x89aa\0").unwrap();
    assert_eq!(read.text("tag"), Some("a\u{fffd}a"));
    assert_eq!(Message::decode(&ty, &read.encode()), Ok(read));
}

#[test]
fn a_grid_of_millions_of_cells_takes_little_more_than_on_the_wire() {
    let mut registry = Registry::standard();
    let name = "lab_msgs/msg/Grid".parse().unwrap();
    registry.add_text(&name, "int8[] cells\nbool[] seen\nuint16[3] size\nint32[<=4] few").unwrap();
    let ty = registry.message("lab_msgs/msg/Grid").unwrap();
    let mut grid = Message::new(&ty);
    grid.set("cells", vec![Value::Int(-1), Value::Int(100), Value::Int(0)]).unwrap();
    grid.set("seen", vec![Value::Bool(true), Value::Bool(false)]).unwrap();
    grid.set("size", vec![Value::Int(1), Value::Uint(2), Value::Uint(65_535)]).unwrap();
    grid.set("size[0]", 9u16).unwrap();
    assert!(grid.set("size[0]", 65_536u32).is_err());
    assert!(grid.set("few", vec![Value::Int(1); 5]).is_err());
    assert!(grid.set("cells", vec![Value::Int(128)]).is_err());
    let back = Message::decode(&ty, &grid.encode()).unwrap();
    assert_eq!(back, grid);
    assert_eq!(back.get("cells"), Some(&Value::Ints(vec![-1, 100, 0])));
    assert_eq!(back.get("seen"), Some(&Value::Bools(vec![true, false])));
    assert_eq!((back.i64("cells[1]"), back.u64("size[2]")), (Some(100), Some(65_535)));
    let all = back.select(&"cells[*]".parse().unwrap());
    assert_eq!(all.iter().map(|one| one.as_i64().unwrap()).sum::<i64>(), 99);
    // Seven million cells were too many at forty bytes for each.
    let n = 7_000_000u32;
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend(n.to_le_bytes());
    bytes.resize(8 + n as usize, 0xff);
    bytes.extend([0, 0, 0, 0]);
    bytes.extend([0; 12]);
    let grid = Message::decode(&ty, &bytes).unwrap();
    assert_eq!(grid.get("cells").map(Value::len), Some(n as usize));
    assert_eq!(grid.i64("cells[6999999]"), Some(-1));
}
