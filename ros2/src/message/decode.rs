//! CDR to a message: XCDR version 1 of either byte order, as all middlewares of ROS 2 write it.
//!
//! DDS-XTYPES 1.3, 7.4 and RTPS 2.5, 10.5. The four bytes of the encapsulation come first; alignment
//! counts from behind them.
//!
//! Nothing is allocated for what is not there: each value takes at least one byte of the input, and a
//! length is believed only as far as bytes are left. A value takes more room here than on the wire, a
//! small message a hundred times as much, so that all lists of a message together are bounded too.

use std::fmt;
use std::sync::Arc;

use byteorder::ByteOrder;
use hiroz_cdr::{BigEndian, CdrReader, LittleEndian};

use super::value::{Many, Message, Value};
use crate::interface::{Element, FieldType, MessageType, Shape};

/// Bytes before the first field: the representation (big endian) and two of options.
pub(super) const HEADER: usize = 4;

/// Bytes that may stand behind the last field: a payload is filled up to a multiple of four.
const PADDING: usize = 3;

/// Bytes of memory that the lists of one message may take, bytes and floats left out, which take no more
/// than on the wire or twice that. Half a million detections have room in it.
const MOST_ROOM: usize = 256 << 20;

/// Bytes that are not a message of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The type that was expected.
    pub ty: String,
    /// The field, as in `header.frame_id`; empty for the message as a whole.
    pub path: String,
    /// Position in the bytes, counted from the first of the encapsulation.
    pub offset: usize,
    /// The fault there.
    pub why: String,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}: ", self.ty)?;
        if !self.path.is_empty() {
            write!(f, "{} ", self.path)?;
        }
        write!(f, "at byte {}: {}", self.offset, self.why)
    }
}

impl std::error::Error for DecodeError {}

impl Message {
    /// Reads a message of this type, header and all. Up to three bytes of padding may follow it.
    pub fn decode(ty: &Arc<MessageType>, cdr: &[u8]) -> Result<Self, DecodeError> {
        let bad =
            |offset, why| DecodeError { ty: ty.name.to_string(), path: String::new(), offset, why };
        let (header, body) = cdr.split_first_chunk::<HEADER>().ok_or_else(|| {
            bad(0, format!("{} bytes, and the header alone has {HEADER}", cdr.len()))
        })?;
        let (decoded, end) = match header {
            [0, 0, ..] => read::<BigEndian>(ty, body),
            [0, 1, ..] => read::<LittleEndian>(ty, body),
            [a, b, ..] => {
                return Err(bad(
                    0,
                    format!("the representation {a:02x} {b:02x} is not plain CDR, 00 00 or 00 01"),
                ));
            }
        };
        let message = decoded.map_err(|wrong| DecodeError {
            ty: ty.name.to_string(),
            path: wrong.path(),
            offset: HEADER + end,
            why: wrong.why,
        })?;
        let left = body.len() - end;
        if left > PADDING {
            return Err(bad(
                HEADER + end,
                format!(
                    "the message ends here, and {left} more bytes follow: it is of another type"
                ),
            ));
        }
        Ok(message)
    }
}

/// The fault, and the path to it from the end.
struct DecodeFault {
    why: String,
    path: Vec<String>,
}

impl DecodeFault {
    fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), path: Vec::new() }
    }

    fn within(mut self, step: impl FnOnce() -> String) -> Self {
        self.path.push(step());
        self
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in self.path.iter().rev() {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(step);
        }
        path
    }
}

fn read<Order: ByteOrder>(
    ty: &Arc<MessageType>,
    body: &[u8],
) -> (Result<Message, DecodeFault>, usize) {
    let mut reader = Reader { cdr: CdrReader::<Order>::new(body), room: MOST_ROOM };
    let message = reader.message(ty);
    (message, reader.cdr.position())
}

struct Reader<'a, Order> {
    cdr: CdrReader<'a, Order>,
    /// Bytes of memory that lists may still take.
    room: usize,
}

impl<Order: ByteOrder> Reader<'_, Order> {
    fn message(&mut self, ty: &Arc<MessageType>) -> Result<Message, DecodeFault> {
        let mut values = Vec::with_capacity(ty.fields.len().min(self.cdr.remaining()));
        for field in &ty.fields {
            let value =
                self.field(&field.ty).map_err(|wrong| wrong.within(|| field.name.clone()))?;
            values.push(value);
        }
        Ok(Message::of(ty.clone(), values))
    }

    fn field(&mut self, ty: &FieldType) -> Result<Value, DecodeFault> {
        let n = match ty.shape {
            Shape::Single => return self.one(&ty.element),
            Shape::Array(n) => n,
            Shape::Bounded(bound) => match self.length()? {
                n if n > bound => {
                    return Err(DecodeFault::new(format!(
                        "{n} values, and {ty} has at most {bound}"
                    )));
                }
                n => n,
            },
            Shape::Unbounded => self.length()?,
        };
        let left = self.cdr.remaining();
        if n.saturating_mul(least(&ty.element)) > left {
            return Err(DecodeFault::new(format!(
                "{n} values of {ty} in the {left} bytes that are left"
            )));
        }
        match Many::of(&ty.element) {
            Many::Bytes => {
                self.cdr.read_bytes(n).map(|bytes| Value::Bytes(bytes.into())).map_err(cut)
            }
            Many::Floats => {
                let mut floats = Vec::with_capacity(n);
                for _ in 0..n {
                    floats.push(self.float(&ty.element)?);
                }
                Ok(Value::Floats(floats))
            }
            Many::Bools => self.packed(n, ty, 1, |value| value.as_bool()).map(Value::Bools),
            Many::Ints => self.packed(n, ty, 8, |value| value.as_i64()).map(Value::Ints),
            Many::Uints => self.packed(n, ty, 8, |value| value.as_u64()).map(Value::Uints),
            Many::Values => {
                self.take_room(n, ty, FieldType::single(ty.element.clone()).room())?;
                let mut items = Vec::with_capacity(n);
                for i in 0..n {
                    let item =
                        self.one(&ty.element).map_err(|wrong| wrong.within(|| format!("[{i}]")))?;
                    items.push(item);
                }
                Ok(Value::List(items))
            }
        }
    }

    /// Values that are held without the kind of each.
    fn packed<T>(
        &mut self,
        n: usize,
        ty: &FieldType,
        size: usize,
        of: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>, DecodeFault> {
        self.take_room(n, ty, size)?;
        let mut values = Vec::with_capacity(n);
        for i in 0..n {
            let value = self.one(&ty.element).map_err(|wrong| wrong.within(|| format!("[{i}]")))?;
            values.extend(of(&value));
        }
        Ok(values)
    }

    fn take_room(&mut self, n: usize, ty: &FieldType, each: usize) -> Result<(), DecodeFault> {
        self.room = self.room.checked_sub(n.saturating_mul(each)).ok_or_else(|| {
            let most = MOST_ROOM >> 20;
            DecodeFault::new(format!("with {n} values of {ty} it takes more than {most} MiB"))
        })?;
        Ok(())
    }

    fn one(&mut self, element: &Element) -> Result<Value, DecodeFault> {
        let cdr = &mut self.cdr;
        match element {
            Element::Bool => cdr.read_bool().map(Value::from),
            Element::I8 => cdr.read_i8().map(Value::from),
            Element::I16 => cdr.read_i16().map(Value::from),
            Element::I32 => cdr.read_i32().map(Value::from),
            Element::I64 => cdr.read_i64().map(Value::from),
            Element::U8 | Element::Byte | Element::Char => cdr.read_u8().map(Value::from),
            Element::U16 | Element::WideChar => cdr.read_u16().map(Value::from),
            Element::U32 => cdr.read_u32().map(Value::from),
            Element::U64 => cdr.read_u64().map(Value::from),
            Element::F32 | Element::F64 => return self.float(element).map(Value::Float),
            Element::Text { bound } => return self.text(*bound).map(Value::Text),
            Element::WideText { bound } => return self.wide_text(*bound).map(Value::Text),
            Element::Message(ty) => return self.message(ty).map(Value::Message),
        }
        .map_err(cut)
    }

    fn float(&mut self, element: &Element) -> Result<f64, DecodeFault> {
        match element {
            Element::F32 => self.cdr.read_f32().map(f64::from),
            _ => self.cdr.read_f64(),
        }
        .map_err(cut)
    }

    fn length(&mut self) -> Result<usize, DecodeFault> {
        self.cdr.read_u32().map(|n| n as usize).map_err(cut)
    }

    /// A string is its length with the NUL that ends it, and the bytes. ROS says UTF-8 and does not check:
    /// a byte that is none becomes U+FFFD, for one letter is no reason to lose a message of an error. Where
    /// there is a bound the text still keeps within it.
    fn text(&mut self, bound: Option<usize>) -> Result<String, DecodeFault> {
        let n = self.length()?;
        let left = self.cdr.remaining();
        let bytes = self.cdr.read_bytes(n).map_err(|_| {
            DecodeFault::new(format!("a text of {n} bytes in the {left} that are left"))
        })?;
        let plain = bytes.strip_suffix(&[0]).unwrap_or(bytes);
        if plain.contains(&0) {
            return Err(DecodeFault::new("a text with a NUL in it"));
        }
        match bound {
            Some(bound) if plain.len() > bound => Err(DecodeFault::new(format!(
                "a text of {} bytes, at most {bound} are allowed",
                plain.len()
            ))),
            _ => {
                let mut text = String::from_utf8_lossy(plain).into_owned();
                let most = bound.unwrap_or(usize::MAX);
                while text.len() > most {
                    text.pop();
                }
                Ok(text)
            }
        }
    }

    /// A wide string is its length in units without NUL, and the units in UTF-16 (Fast-CDR 2, in ROS 2
    /// since Jazzy).
    fn wide_text(&mut self, bound: Option<usize>) -> Result<String, DecodeFault> {
        let n = self.length()?;
        let left = self.cdr.remaining();
        if n > left / 2 {
            return Err(DecodeFault::new(format!(
                "a text of {n} UTF-16 units in the {left} bytes left"
            )));
        }
        if let Some(bound) = bound.filter(|bound| n > *bound) {
            return Err(DecodeFault::new(format!(
                "a text of {n} units, at most {bound} are allowed"
            )));
        }
        let mut units = Vec::with_capacity(n);
        for _ in 0..n {
            units.push(self.cdr.read_u16().map_err(cut)?);
        }
        if units.contains(&0) {
            return Err(DecodeFault::new("a text with a NUL in it"));
        }
        Ok(String::from_utf16_lossy(&units))
    }
}

fn cut(why: hiroz_cdr::Error) -> DecodeFault {
    match why {
        hiroz_cdr::Error::UnexpectedEof => DecodeFault::new("the bytes end here"),
        hiroz_cdr::Error::InvalidBool(byte) => {
            DecodeFault::new(format!("{byte} is no bool, 0 or 1"))
        }
        other => DecodeFault::new(other),
    }
}

/// The fewest bytes that a value takes, padding left out.
fn least(element: &Element) -> usize {
    match element {
        Element::Bool
        | Element::Byte
        | Element::Char
        | Element::I8
        | Element::U8
        // Each has at least one field, and that at least one byte.
        | Element::Message(_) => 1,
        Element::WideChar | Element::I16 | Element::U16 => 2,
        Element::I32 | Element::U32 | Element::F32 => 4,
        Element::Text { .. } | Element::WideText { .. } => 4,
        Element::I64 | Element::U64 | Element::F64 => 8,
    }
}
