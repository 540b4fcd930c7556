//! Values that fit a type, and values that do not.

use std::borrow::Cow;
use std::fmt;

use super::value::{Many, Value};
use crate::interface::{Element, FieldType, Shape};

/// A value that does not fit the type of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypeMismatch {
    /// A value of another kind.
    Kind { given: String, wanted: String },
    /// A number beyond the type.
    Range { number: String, wanted: String },
    /// More or fewer values than an array has.
    Length { values: usize, len: usize, wanted: String },
    /// More values than a sequence may have.
    Bound { values: usize, bound: usize, wanted: String },
    /// A text longer than its bound.
    TooLong { len: usize, unit: &'static str, wanted: String },
    /// A NUL in a text.
    Nul,
    /// The element of a list.
    Element { index: usize, why: Box<TypeMismatch> },
}

impl TypeMismatch {
    fn kind(given: &Value, wanted: impl fmt::Display) -> Self {
        Self::Kind { given: given.kind().to_owned(), wanted: wanted.to_string() }
    }

    fn range(number: impl fmt::Display, wanted: &Element) -> Self {
        Self::Range { number: number.to_string(), wanted: wanted.to_string() }
    }

    fn too_long(len: usize, unit: &'static str, wanted: &Element) -> Self {
        Self::TooLong { len, unit, wanted: wanted.to_string() }
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { given, wanted } => write!(f, "{given} is no {wanted}"),
            Self::Range { number, wanted } => write!(f, "{number} is out of the range of {wanted}"),
            Self::Length { values, len, wanted } => {
                write!(f, "{values} values, and {wanted} has {len}")
            }
            Self::Bound { values, bound, wanted } => {
                write!(f, "{values} values, and {wanted} has at most {bound}")
            }
            Self::TooLong { len, unit, wanted } => {
                write!(f, "a text of {len} {unit} is too long for {wanted}")
            }
            Self::Nul => f.write_str("a text with a NUL cannot be a string of ROS"),
            Self::Element { index, why } => write!(f, "[{index}]: {why}"),
        }
    }
}

/// Converts a value to the form that the type has, if it fits: integers of either sign by their value, integers
/// also as floats, and lists of what fits the elements.
pub(crate) fn fit(value: Value, ty: &FieldType) -> Result<Value, TypeMismatch> {
    if ty.shape == Shape::Single {
        return fit_one(value, &ty.element);
    }
    let many = match (value, Many::of(&ty.element)) {
        (Value::Bytes(bytes), Many::Bytes) => Value::Bytes(bytes),
        (Value::Floats(floats), Many::Floats) => {
            let fitted: Result<Vec<f64>, TypeMismatch> =
                floats.into_iter().map(|float| fit_float(float, &ty.element)).collect();
            Value::Floats(fitted?)
        }
        (Value::List(items), _) => fit_list(items.into_iter(), ty)?,
        (packed, _) if packed.is_many() => {
            let items = (0..packed.len()).filter_map(|at| packed.at(at).map(Cow::into_owned));
            fit_list(items, ty)?
        }
        (other, _) => return Err(TypeMismatch::kind(&other, ty)),
    };
    let n = many.len();
    match ty.shape {
        Shape::Array(len) if n != len => {
            Err(TypeMismatch::Length { values: n, len, wanted: ty.to_string() })
        }
        Shape::Bounded(bound) if n > bound => {
            Err(TypeMismatch::Bound { values: n, bound, wanted: ty.to_string() })
        }
        _ => Ok(many),
    }
}

fn fit_list(items: impl Iterator<Item = Value>, ty: &FieldType) -> Result<Value, TypeMismatch> {
    let fitted = items.enumerate().map(|(index, item)| {
        fit_one(item, &ty.element)
            .map_err(|why| TypeMismatch::Element { index, why: Box::new(why) })
    });
    // It fits by now, so that none of these finds nothing.
    macro_rules! packed {
        ($of:ident) => {
            fitted
                .filter_map(|item| item.map(|value| value.$of()).transpose())
                .collect::<Result<_, _>>()?
        };
    }
    Ok(match Many::of(&ty.element) {
        Many::Values => Value::List(fitted.collect::<Result<_, _>>()?),
        Many::Bytes => {
            let bytes: Vec<u64> = packed!(as_u64);
            Value::Bytes(bytes.into_iter().map(|byte| byte as u8).collect())
        }
        Many::Floats => Value::Floats(packed!(as_f64)),
        Many::Bools => Value::Bools(packed!(as_bool)),
        Many::Ints => Value::Ints(packed!(as_i64)),
        Many::Uints => Value::Uints(packed!(as_u64)),
    })
}

fn fit_one(value: Value, element: &Element) -> Result<Value, TypeMismatch> {
    let wrong = |value: &Value| TypeMismatch::kind(value, element);
    let signed = |value: Value, low: i64, high: i64| match value.as_i64() {
        Some(n) if (low..=high).contains(&n) => Ok(Value::Int(n)),
        Some(n) => Err(TypeMismatch::range(n, element)),
        None => Err(wrong(&value)),
    };
    let unsigned = |value: Value, high: u64| match (value.as_u64(), &value) {
        (Some(n), _) if n <= high => Ok(Value::Uint(n)),
        (Some(n), _) => Err(TypeMismatch::range(n, element)),
        (None, Value::Int(n)) => Err(TypeMismatch::range(n, element)),
        (None, _) => Err(wrong(&value)),
    };
    match element {
        Element::Bool => match value {
            Value::Bool(_) => Ok(value),
            _ => Err(wrong(&value)),
        },
        Element::I8 => signed(value, i8::MIN.into(), i8::MAX.into()),
        Element::I16 => signed(value, i16::MIN.into(), i16::MAX.into()),
        Element::I32 => signed(value, i32::MIN.into(), i32::MAX.into()),
        Element::I64 => signed(value, i64::MIN, i64::MAX),
        Element::U8 | Element::Byte | Element::Char => unsigned(value, u8::MAX.into()),
        Element::U16 | Element::WideChar => unsigned(value, u16::MAX.into()),
        Element::U32 => unsigned(value, u32::MAX.into()),
        Element::U64 => unsigned(value, u64::MAX),
        Element::F32 | Element::F64 => match value.as_f64() {
            Some(float) => fit_float(float, element).map(Value::Float),
            None => Err(wrong(&value)),
        },
        Element::Text { bound } => match value {
            Value::Text(text) => match bound {
                Some(bound) if text.len() > *bound => {
                    Err(TypeMismatch::too_long(text.len(), "bytes", element))
                }
                _ => text_without_nul(text),
            },
            _ => Err(wrong(&value)),
        },
        Element::WideText { bound } => match value {
            Value::Text(text) => {
                let units = text.encode_utf16().count();
                match bound {
                    Some(bound) if units > *bound => {
                        Err(TypeMismatch::too_long(units, "UTF-16 units", element))
                    }
                    _ => text_without_nul(text),
                }
            }
            _ => Err(wrong(&value)),
        },
        Element::Message(ty) => match value {
            Value::Message(message) if *message.ty() == *ty => Ok(Value::Message(message)),
            Value::Message(message) => Err(TypeMismatch::Kind {
                given: format!("a {}", message.ty().name),
                wanted: ty.name.to_string(),
            }),
            _ => Err(wrong(&value)),
        },
    }
}

/// Refuses a text with a NUL: C strings end at the first one, so the rest would be lost on the way.
fn text_without_nul(text: String) -> Result<Value, TypeMismatch> {
    if text.contains('\0') {
        return Err(TypeMismatch::Nul);
    }
    Ok(Value::Text(text))
}

/// Rounds a value to the type; a `float32` is kept as the `float64` of the same value.
fn fit_float(float: f64, element: &Element) -> Result<f64, TypeMismatch> {
    match element {
        Element::F32 if float.is_finite() && (float as f32).is_infinite() => {
            Err(TypeMismatch::range(float, element))
        }
        Element::F32 => Ok(f64::from(float as f32)),
        _ => Ok(float),
    }
}
