//! Types with everything they contain resolved.

use std::fmt;
use std::sync::Arc;

use hiroz_schema::TypeHash;

use super::TypeName;
use crate::message::Value;

/// A structure: a message, or one part of a service or an action.
pub struct MessageType {
    /// The name of the type.
    pub name: TypeName,
    /// The fields in the order of the file, which is the order on the wire. A type without fields has
    /// one of the name [`MessageType::EMPTY_MEMBER`], as `rosidl` gives it.
    pub fields: Vec<Field>,
    /// The constants; they are not on the wire and not in the hash.
    pub constants: Vec<Constant>,
    /// RIHS01 of this type and all it contains.
    pub hash: TypeHash,
    /// Bytes of memory that a new message takes: arrays have their length from the beginning.
    pub(crate) room: usize,
}

/// A field of a structure.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name, as in `frame_id`.
    pub name: String,
    /// The type.
    pub ty: FieldType,
    /// The value of a new message, if the file states one.
    pub default: Option<Value>,
}

/// A constant of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// The name, as in `COVARIANCE_TYPE_UNKNOWN`.
    pub name: String,
    /// The type of the value.
    pub element: Element,
    /// The value.
    pub value: Value,
}

/// The type of a field: what, and how many.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldType {
    /// The type of one element.
    pub element: Element,
    /// Their number.
    pub shape: Shape,
}

/// One, or many?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    Single,
    /// Always so many values: `float64[36]`.
    Array(usize),
    /// At most so many values: `float64[<=36]`.
    Bounded(usize),
    /// Any number of values: `float64[]`.
    Unbounded,
}

/// The type of one value.
#[derive(Clone, Debug)]
pub enum Element {
    /// `bool`
    Bool,
    /// `byte`: eight bits, not a number to `rosidl`; here a number from 0 to 255.
    Byte,
    /// `char` of an IDL file: eight bits. The `char` of a `.msg` file is [`Element::U8`].
    Char,
    /// `wchar` of an IDL file: sixteen bits.
    WideChar,
    /// `int8`
    I8,
    /// `uint8` and `char`
    U8,
    /// `int16`
    I16,
    /// `uint16`
    U16,
    /// `int32`
    I32,
    /// `uint32`
    U32,
    /// `int64`
    I64,
    /// `uint64`
    U64,
    /// `float32`
    F32,
    /// `float64`
    F64,
    /// `string`
    Text {
        /// At most so many bytes of UTF-8, if it is bounded.
        bound: Option<usize>,
    },
    /// `wstring`
    WideText {
        /// At most so many UTF-16 units, if it is bounded.
        bound: Option<usize>,
    },
    /// Another structure.
    Message(Arc<MessageType>),
}

/// A service.
#[derive(Clone, Debug)]
pub struct ServiceType {
    /// The name, as in `omir_msgs/srv/Recall`.
    pub name: TypeName,
    /// `Name_Request`
    pub request: Arc<MessageType>,
    /// `Name_Response`
    pub response: Arc<MessageType>,
    /// `Name_Event`, which introspection publishes.
    pub event: Arc<MessageType>,
    /// The hash of the service, which stands in keys and tokens.
    pub hash: TypeHash,
    /// The service as one structure of the three, which is what the hash is of.
    pub ty: Arc<MessageType>,
}

/// An action.
#[derive(Clone, Debug)]
pub struct ActionType {
    /// The name, as in `omir_msgs/action/Import`.
    pub name: TypeName,
    /// `Name_Goal`
    pub goal: Arc<MessageType>,
    /// `Name_Result`
    pub result: Arc<MessageType>,
    /// `Name_Feedback`
    pub feedback: Arc<MessageType>,
    /// `Name_SendGoal`
    pub send_goal: ServiceType,
    /// `Name_GetResult`
    pub get_result: ServiceType,
    /// `Name_FeedbackMessage`, which is published.
    pub feedback_message: Arc<MessageType>,
    /// The hash of the action; the wire has those of its services and messages.
    pub hash: TypeHash,
    /// The action as one structure of the six, which is what the hash is of.
    pub ty: Arc<MessageType>,
}

impl MessageType {
    /// The field of a structure that has none, for IDL knows no empty structure.
    pub const EMPTY_MEMBER: &str = "structure_needs_at_least_one_member";

    /// The field of that name, and its place.
    pub fn field(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }

    /// The value of the constant of that name.
    pub fn constant(&self, name: &str) -> Option<&Value> {
        self.constants.iter().find(|constant| constant.name == name).map(|c| &c.value)
    }
}

/// Types are the same if name and hash are.
impl PartialEq for MessageType {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.name == other.name
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.hash)
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        use Element::{Message, Text, WideText};
        match (self, other) {
            (Text { bound: a }, Text { bound: b }) => a == b,
            (WideText { bound: a }, WideText { bound: b }) => a == b,
            (Message(a), Message(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl FieldType {
    /// Bytes of memory that a new value takes. Saturates, for a description may say anything.
    pub(crate) fn room(&self) -> usize {
        let one = match &self.element {
            Element::Message(ty) => size_of::<Value>().saturating_add(ty.room),
            Element::Text { .. } | Element::WideText { .. } => size_of::<Value>(),
            _ if self.shape == Shape::Single => size_of::<Value>(),
            Element::Bool | Element::Byte | Element::Char | Element::U8 => 1,
            _ => 8,
        };
        match self.shape {
            Shape::Single => one,
            Shape::Array(n) => one.saturating_mul(n),
            Shape::Bounded(_) | Shape::Unbounded => 0,
        }
    }

    /// One value of the kind.
    pub fn single(element: Element) -> Self {
        Self { element, shape: Shape::Single }
    }
}

/// As the file says it, with the full names of nested types: `uint8[<=16]`.
impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.element)?;
        match self.shape {
            Shape::Single => Ok(()),
            Shape::Array(n) => write!(f, "[{n}]"),
            Shape::Bounded(n) => write!(f, "[<={n}]"),
            Shape::Unbounded => f.write_str("[]"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::Byte => "byte",
            Self::Char => "char",
            Self::WideChar => "wchar",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::I16 => "int16",
            Self::U16 => "uint16",
            Self::I32 => "int32",
            Self::U32 => "uint32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::Text { bound: None } => "string",
            Self::Text { bound: Some(n) } => return write!(f, "string<={n}"),
            Self::WideText { bound: None } => "wstring",
            Self::WideText { bound: Some(n) } => return write!(f, "wstring<={n}"),
            Self::Message(ty) => return write!(f, "{}", ty.name),
        })
    }
}
