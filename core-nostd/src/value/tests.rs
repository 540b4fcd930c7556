use super::*;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

fn json(text: &str) -> Value {
    crate::json::from_slice(text.as_bytes(), &crate::decode::Limits::default()).unwrap()
}

#[test]
fn maps_keep_order_and_compare_without_it() {
    let a = json(r#"{"x":1,"y":[2],"z":{"a":null,"b":true}}"#);
    let b = json(r#"{"z":{"b":true,"a":null},"x":1.0,"y":[2]}"#);
    assert_eq!(a, b);
    assert_eq!(a.to_string(), r#"{"x":1,"y":[2],"z":{"a":null,"b":true}}"#);
    assert_ne!(a, json(r#"{"x":1,"y":[2],"z":{"a":null}}"#));
    assert_ne!(json(r#"{"x":1}"#), json(r#"{"y":1}"#));

    let large: Map = (0..5000).map(|i| (i.to_string(), i)).collect();
    let reversed: Map = (0..5000).rev().map(|i| (i.to_string(), i)).collect();
    assert_eq!(large, reversed);
}

#[test]
fn the_last_of_equal_names_wins_in_place() {
    let map: Map = [("a", 1), ("b", 2), ("a", 3)].into_iter().collect();
    assert_eq!(Value::from(map.clone()).to_string(), r#"{"a":3,"b":2}"#);
    let mut map = map;
    assert_eq!(map.insert("b", 4), Some(2.into()));
    assert_eq!(map.remove("a"), Some(3.into()));
    assert_eq!(map.len(), 1);
}

#[test]
fn repeated_names_are_found_in_large_maps() {
    let names: Vec<String> = (0..100).map(|i| (i % 97).to_string()).collect();
    assert_eq!(duplicate_key(names.len(), |at| &names[at]), Some(97));
    assert_eq!(duplicate_key(97, |at| &names[at]), None);
    assert_eq!(duplicate_key(3, |at| ["a", "b", "a"][at]), Some(2));
}

#[test]
fn pointers_reach_every_value() {
    let value = json(r#"{"a/b":[10,{"~":true}],"":1}"#);
    assert_eq!(value.pointer(""), Some(&value));
    assert_eq!(value.pointer("/"), Some(&value));
    assert_eq!(value.pointer("/a~1b/0"), Some(&10.into()));
    assert_eq!(value.pointer("/a~1b/1/~0"), Some(&true.into()));
    for absent in ["/a~1b/01", "/a~1b/2", "/a~1b/-", "a", "/b", "/a~1b/0/0"] {
        assert_eq!(value.pointer(absent), None, "{absent}");
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    New(u8),
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    shapes: Vec<Shape>,
    map: BTreeMap<String, Option<i64>>,
    numbers: Vec<Number>,
    any: Value,
    tuple: (i8, f32, char),
    unit: (),
    wide: u128,
}

#[test]
fn typed_values_pass_without_loss() {
    let numbers = ["1e400", "0.1", "9.0", "-170141183460469231731687303715884105729", "7"];
    let everything = Everything {
        shapes: vec![Shape::Unit, Shape::New(1), Shape::Tuple(1, 2), Shape::Struct { a: 3 }],
        map: [("a".to_owned(), Some(-1)), ("b".to_owned(), None)].into(),
        numbers: numbers.iter().map(|text| text.parse().unwrap()).collect(),
        any: json(r#"[1e400,{"k":[null]}]"#),
        tuple: (-1, 0.5, 'x'),
        unit: (),
        wide: u128::MAX,
    };
    let value = to_value(&everything).unwrap();
    let texts: Vec<String> =
        value.get("numbers").unwrap().as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(texts, numbers);
    // u128 has no way back through serde's integers of i128: it arrives as an exact number.
    let mut without_wide = value.clone();
    without_wide.as_object_mut().unwrap().insert("wide", 5);
    let back: Everything = from_value(without_wide).unwrap();
    assert_eq!(back.shapes, everything.shapes);
    assert_eq!(back.numbers, everything.numbers);
    assert_eq!(back.any, everything.any);
    assert_eq!(back.tuple, everything.tuple);
}

#[test]
fn foreign_formats_refuse_what_they_would_round() {
    assert_eq!(
        serde_json::to_string(&json("[1,2.5,18446744073709551615]")).unwrap(),
        "[1,2.5,18446744073709551615]"
    );
    let error = serde_json::to_string(&json("[1e400]")).unwrap_err();
    assert!(error.to_string().contains("1e400"), "{error}");
    let back: Value = serde_json::from_str(r#"{"a":[1,-2,0.5,"x",null,true]}"#).unwrap();
    assert_eq!(back, json(r#"{"a":[1,-2,0.5,"x",null,true]}"#));
    assert!(serde_json::from_str::<Value>(r#"{"a":1,"a":2}"#).is_err());
    assert!(serde_json::from_str::<Number>(r#""12""#).is_err());
}

#[test]
fn what_json_cannot_hold_is_refused() {
    assert!(to_value(&f64::NAN).is_err());
    assert!(to_value(&BTreeMap::from([(1, 2)])).is_err());
    assert!(from_value::<(u8, u8)>(json("[1,2,3]")).is_err());
    assert!(from_value::<u8>(json("256")).is_err());
}
