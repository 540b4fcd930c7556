//! Types of all shapes, and messages of them.

use std::sync::Arc;

use omir_ros2::interface::{Element, Field, FieldType, MessageType, Registry, Shape};
use omir_ros2::message::{Message, Value};
use proptest::prelude::*;

/// A type of up to three levels and a message of it.
pub fn message() -> impl Strategy<Value = (Arc<MessageType>, Message)> {
    prop::collection::vec(fields(0), 1)
        .prop_flat_map(|inner| (Just(inner), prop::collection::vec(fields(1), 1)))
        .prop_flat_map(|(inner, middle)| (Just(inner), Just(middle), fields(2)))
        .prop_map(|(inner, middle, outer)| {
            let mut registry = Registry::new();
            for (name, text) in [("T0", &inner[0]), ("T1", &middle[0]), ("T2", &outer)] {
                let name = format!("demo_msgs/msg/{name}").parse().unwrap();
                registry.add_text(&name, text).unwrap();
            }
            registry.message("demo_msgs/msg/T2").unwrap()
        })
        .prop_flat_map(|ty| (Just(ty.clone()), of(&ty)))
}

fn fields(level: usize) -> impl Strategy<Value = String> {
    let plain = prop::sample::select(vec![
        "bool",
        "byte",
        "char",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float32",
        "float64",
        "string",
        "string<=5",
        "wstring",
        "wstring<=5",
    ])
    .prop_map(str::to_string);
    let element = match level {
        0 => plain.boxed(),
        n => prop_oneof![3 => plain, 1 => (0..n).prop_map(|i| format!("T{i}"))].boxed(),
    };
    let shape = prop::sample::select(vec!["", "", "[]", "[<=3]", "[2]"]);
    prop::collection::vec((element, shape), 0..6).prop_map(|all| {
        all.iter().enumerate().map(|(i, (e, s))| format!("{e}{s} f{i}\n")).collect()
    })
}

/// A message of that type.
pub fn of(ty: &Arc<MessageType>) -> BoxedStrategy<Message> {
    let values: Vec<_> = ty.fields.iter().map(value).collect();
    let ty = ty.clone();
    values
        .prop_map(move |values| {
            let mut message = Message::new(&ty);
            for (field, value) in ty.fields.iter().zip(values) {
                message.set(&field.name, value).unwrap();
            }
            message
        })
        .boxed()
}

fn value(field: &Field) -> BoxedStrategy<Value> {
    let FieldType { element, shape } = &field.ty;
    let n = match shape {
        Shape::Single => return one(element),
        Shape::Array(n) => *n..=*n,
        Shape::Bounded(n) => 0..=*n,
        Shape::Unbounded => 0..=4,
    };
    prop::collection::vec(one(element), n).prop_map(Value::List).boxed()
}

fn one(element: &Element) -> BoxedStrategy<Value> {
    match element {
        Element::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Element::Byte | Element::Char | Element::U8 => any::<u8>().prop_map(Value::from).boxed(),
        Element::I8 => any::<i8>().prop_map(Value::from).boxed(),
        Element::I16 => any::<i16>().prop_map(Value::from).boxed(),
        Element::U16 | Element::WideChar => any::<u16>().prop_map(Value::from).boxed(),
        Element::I32 => any::<i32>().prop_map(Value::from).boxed(),
        Element::U32 => any::<u32>().prop_map(Value::from).boxed(),
        Element::I64 => any::<i64>().prop_map(Value::from).boxed(),
        Element::U64 => any::<u64>().prop_map(Value::from).boxed(),
        // A NaN is not equal to itself, so there is none.
        Element::F32 => (prop::num::f32::NORMAL | prop::num::f32::ZERO | prop::num::f32::SUBNORMAL)
            .prop_map(Value::from)
            .boxed(),
        Element::F64 => (prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::INFINITE)
            .prop_map(Value::from)
            .boxed(),
        Element::Text { bound: None } => "[^\0]{0,8}".prop_map(Value::from).boxed(),
        Element::WideText { bound: None } => "[^\0]{0,8}".prop_map(Value::from).boxed(),
        Element::Text { .. } | Element::WideText { .. } => {
            "[a-z]{0,5}".prop_map(Value::from).boxed()
        }
        Element::Message(ty) => of(ty).prop_map(Value::from).boxed(),
    }
}
