//! A message to CDR: XCDR version 1, little endian.

use hiroz_cdr::{CdrWriter, LittleEndian};

use super::value::{Message, Value};
use crate::interface::{Element, FieldType, Shape};

/// `CDR_LE`, no options.
const HEADER: [u8; 4] = [0, 1, 0, 0];

impl Message {
    /// The message as it goes over the wire, header and all.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = HEADER.to_vec();
        write(&mut CdrWriter::<LittleEndian>::new(&mut bytes), self);
        bytes
    }
}

fn write(cdr: &mut CdrWriter<'_, LittleEndian>, message: &Message) {
    for (field, value) in message.fields() {
        write_field(cdr, &field.ty, value);
    }
}

fn write_field(cdr: &mut CdrWriter<'_, LittleEndian>, ty: &FieldType, value: &Value) {
    if let Shape::Bounded(_) | Shape::Unbounded = ty.shape {
        cdr.write_sequence_length(value.len());
    }
    match value {
        Value::Bytes(bytes) => cdr.buffer_mut().extend_from_slice(bytes),
        Value::Floats(floats) => {
            for float in floats {
                write_float(cdr, &ty.element, *float);
            }
        }
        Value::Bools(truths) => truths.iter().for_each(|truth| cdr.write_bool(*truth)),
        Value::Ints(ints) => {
            for int in ints {
                write_one(cdr, &ty.element, &Value::Int(*int));
            }
        }
        Value::Uints(ints) => {
            for int in ints {
                write_one(cdr, &ty.element, &Value::Uint(*int));
            }
        }
        Value::List(items) => {
            for item in items {
                write_one(cdr, &ty.element, item);
            }
        }
        one => write_one(cdr, &ty.element, one),
    }
}

/// The value fits the element, so each cast keeps it.
fn write_one(cdr: &mut CdrWriter<'_, LittleEndian>, element: &Element, value: &Value) {
    match value {
        Value::Bool(truth) => cdr.write_bool(*truth),
        Value::Int(n) => match element {
            Element::I8 => cdr.write_i8(*n as i8),
            Element::I16 => cdr.write_i16(*n as i16),
            Element::I32 => cdr.write_i32(*n as i32),
            _ => cdr.write_i64(*n),
        },
        Value::Uint(n) => match element {
            Element::U8 | Element::Byte | Element::Char => cdr.write_u8(*n as u8),
            Element::U16 | Element::WideChar => cdr.write_u16(*n as u16),
            Element::U32 => cdr.write_u32(*n as u32),
            _ => cdr.write_u64(*n),
        },
        Value::Float(float) => write_float(cdr, element, *float),
        Value::Text(text) => match element {
            Element::WideText { .. } => {
                cdr.write_sequence_length(text.encode_utf16().count());
                for unit in text.encode_utf16() {
                    cdr.write_u16(unit);
                }
            }
            _ => cdr.write_string(text),
        },
        Value::Message(message) => write(cdr, message),
        _ => debug_assert!(false, "ROS has no lists of lists"),
    }
}

fn write_float(cdr: &mut CdrWriter<'_, LittleEndian>, element: &Element, float: f64) {
    match element {
        Element::F32 => cdr.write_f32(float as f32),
        _ => cdr.write_f64(float),
    }
}
