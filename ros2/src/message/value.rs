//! A message as a tree of values.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::interface::{Element, Field, FieldType, MessageType, Shape};

/// The value of a field.
///
/// Each type has one form: `bool` is [`Value::Bool`], signed integers are [`Value::Int`], unsigned ones
/// [`Value::Uint`] (as are `byte` and `char`), both widths of floats [`Value::Float`], both of strings
/// [`Value::Text`]. Arrays and sequences are [`Value::List`] if they are of texts or messages; numbers and
/// truth values are packed, for images, clouds and grids have millions: see [`Value::at`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `bool`
    Bool(bool),
    /// `int8` to `int64`
    Int(i64),
    /// `uint8` to `uint64`, `byte`, `char`
    Uint(u64),
    /// `float32`, `float64`
    Float(f64),
    /// `string`, `wstring`
    Text(String),
    /// An array or sequence of `uint8`, `byte` or `char`
    Bytes(Vec<u8>),
    /// An array or sequence of `float32` or `float64`
    Floats(Vec<f64>),
    /// An array or sequence of `bool`
    Bools(Vec<bool>),
    /// An array or sequence of `int8` to `int64`
    Ints(Vec<i64>),
    /// An array or sequence of `uint16` to `uint64` or `wchar`
    Uints(Vec<u64>),
    /// An array or sequence of strings or messages
    List(Vec<Value>),
    /// A nested message
    Message(Message),
}

/// A message: a type, and a value for each of its fields.
#[derive(Clone)]
pub struct Message {
    ty: Arc<MessageType>,
    values: Vec<Value>,
}

impl Message {
    /// A message as a constructor of ROS makes it: the defaults of the file, else zeros, empty strings
    /// and empty sequences.
    pub fn new(ty: &Arc<MessageType>) -> Self {
        let values = ty.fields.iter().map(fresh).collect();
        Self { ty: ty.clone(), values }
    }

    /// A message of values that were made by the type.
    pub(super) fn of(ty: Arc<MessageType>, values: Vec<Value>) -> Self {
        debug_assert_eq!(ty.fields.len(), values.len());
        Self { ty, values }
    }

    /// The type.
    pub fn ty(&self) -> &Arc<MessageType> {
        &self.ty
    }

    /// The values, in the order of the fields of the type.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [Value] {
        &mut self.values
    }

    /// Each field with its value.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &Value)> {
        self.ty.fields.iter().zip(&self.values)
    }

    /// The value of a field of this message itself.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.ty.field(name).map(|(at, _)| &self.values[at])
    }
}

/// The value of a field in a new message.
fn fresh(field: &Field) -> Value {
    field.default.clone().unwrap_or_else(|| zero(&field.ty))
}

fn zero(ty: &FieldType) -> Value {
    let n = match ty.shape {
        Shape::Single => return zero_of(&ty.element),
        Shape::Array(n) => n,
        Shape::Bounded(_) | Shape::Unbounded => 0,
    };
    match Many::of(&ty.element) {
        Many::Bytes => Value::Bytes(vec![0; n]),
        Many::Floats => Value::Floats(vec![0.0; n]),
        Many::Bools => Value::Bools(vec![false; n]),
        Many::Ints => Value::Ints(vec![0; n]),
        Many::Uints => Value::Uints(vec![0; n]),
        Many::Values => Value::List(vec![zero_of(&ty.element); n]),
    }
}

fn zero_of(element: &Element) -> Value {
    match element {
        Element::Bool => Value::Bool(false),
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => Value::Int(0),
        Element::Byte
        | Element::Char
        | Element::WideChar
        | Element::U8
        | Element::U16
        | Element::U32
        | Element::U64 => Value::Uint(0),
        Element::F32 | Element::F64 => Value::Float(0.0),
        Element::Text { .. } | Element::WideText { .. } => Value::Text(String::new()),
        Element::Message(ty) => Value::Message(Message::new(ty)),
    }
}

/// In which form an array or sequence is held.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Many {
    Bytes,
    Floats,
    Bools,
    Ints,
    Uints,
    Values,
}

impl Many {
    pub(super) fn of(element: &Element) -> Self {
        match element {
            Element::U8 | Element::Byte | Element::Char => Self::Bytes,
            Element::F32 | Element::F64 => Self::Floats,
            Element::Bool => Self::Bools,
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => Self::Ints,
            Element::U16 | Element::WideChar | Element::U32 | Element::U64 => Self::Uints,
            Element::Text { .. } | Element::WideText { .. } | Element::Message(_) => Self::Values,
        }
    }
}

impl Value {
    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The integer, if it is one in this range.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Uint(n) => i64::try_from(*n).ok(),
            _ => None,
        }
    }

    /// The integer, if it is one in this range.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(n) => u64::try_from(*n).ok(),
            Self::Uint(n) => Some(*n),
            _ => None,
        }
    }

    /// The number as the nearest float, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Uint(n) => Some(*n as f64),
            Self::Float(float) => Some(*float),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The floats, if it is an array or a sequence of them.
    pub fn as_floats(&self) -> Option<&[f64]> {
        match self {
            Self::Floats(floats) => Some(floats),
            _ => None,
        }
    }

    /// The bytes, if it is an array or a sequence of them.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements, if it is a list of strings or messages; see [`Value::at`] for those of numbers.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The message, if it is one.
    pub fn as_message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the number of elements of an array or a sequence; 1 for anything else.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Floats(floats) => floats.len(),
            Self::Bools(truths) => truths.len(),
            Self::Ints(ints) => ints.len(),
            Self::Uints(ints) => ints.len(),
            Self::List(items) => items.len(),
            _ => 1,
        }
    }

    /// Returns true if this is an array or a sequence.
    pub fn is_many(&self) -> bool {
        match self {
            Self::Bool(_) | Self::Int(_) | Self::Uint(_) | Self::Float(_) => false,
            Self::Text(_) | Self::Message(_) => false,
            Self::Bytes(_) | Self::Floats(_) | Self::List(_) => true,
            Self::Bools(_) | Self::Ints(_) | Self::Uints(_) => true,
        }
    }

    /// An element of an array or a sequence, counted from 0; packed ones are made into values.
    pub fn at(&self, at: usize) -> Option<Cow<'_, Self>> {
        let one = match self {
            Self::List(items) => return items.get(at).map(Cow::Borrowed),
            Self::Bytes(bytes) => Self::Uint((*bytes.get(at)?).into()),
            Self::Floats(floats) => Self::Float(*floats.get(at)?),
            Self::Bools(truths) => Self::Bool(*truths.get(at)?),
            Self::Ints(ints) => Self::Int(*ints.get(at)?),
            Self::Uints(ints) => Self::Uint(*ints.get(at)?),
            _ => return None,
        };
        Some(Cow::Owned(one))
    }

    /// Returns true if this is an array or a sequence without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the kind of value, for messages: "a text".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a truth value",
            Self::Int(_) | Self::Uint(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::Floats(_) => "a list of floats",
            Self::Bools(_) => "a list of truth values",
            Self::Ints(_) | Self::Uints(_) => "a list of integers",
            Self::List(_) => "a list",
            Self::Message(_) => "a message",
        }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        *self.ty == *other.ty && self.values == other.values
    }
}

/// The type and the fields: `builtin_interfaces/msg/Time { sec: Int(1), nanosec: Uint(2) }`.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct(&self.ty.name.to_string());
        for (field, value) in self.fields() {
            all.field(&field.name, value);
        }
        all.finish()
    }
}

macro_rules! from {
    ($($given:ty => $form:ident as $kept:ty),* $(,)?) => {$(
        impl From<$given> for Value {
            fn from(given: $given) -> Self {
                Self::$form(<$kept>::from(given))
            }
        }
    )*};
}
from!(
    bool => Bool as bool,
    i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64,
    u8 => Uint as u64, u16 => Uint as u64, u32 => Uint as u64, u64 => Uint as u64,
    f32 => Float as f64, f64 => Float as f64,
    &str => Text as String, String => Text as String,
    Vec<u8> => Bytes as Vec<u8>, &[u8] => Bytes as Vec<u8>,
    Vec<f64> => Floats as Vec<f64>, &[f64] => Floats as Vec<f64>,
    Vec<Value> => List as Vec<Value>,
    Message => Message as Message,
);

impl From<Vec<Message>> for Value {
    fn from(messages: Vec<Message>) -> Self {
        Self::List(messages.into_iter().map(Self::Message).collect())
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts.into_iter().map(Self::Text).collect())
    }
}
