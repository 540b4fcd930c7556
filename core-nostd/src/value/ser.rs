//! From typed to dynamic: a serde serializer that ends in a [`Value`], and values through any other.

mod key;

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::ser::{self, Serialize, SerializeMap, Serializer};

use self::key::KeyText;
use super::map::{duplicate_key, map_of};
use super::{Map, Value};
use crate::number::{EXACT_TOKEN, Number, exact_text};

/// The dynamic form of `value`.
///
/// Fails only for what JSON cannot hold (NaN, byte strings, keys that are not text) or where the type
/// itself refuses; the resources of this crate never do.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, SerError> {
    value.serialize(ToValue)
}

/// A type without a dynamic form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerError(String);

impl fmt::Display for SerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SerError {}

impl ser::Error for SerError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(map) => map.serialize(serializer),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

struct ToValue;

macro_rules! integers {
    ($($method:ident($int:ty))*) => {$(
        fn $method(self, int: $int) -> Result<Value, SerError> {
            Ok(Value::Number(int.into()))
        }
    )*};
}

impl Serializer for ToValue {
    type Ok = Value;
    type Error = SerError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    fn serialize_bool(self, truth: bool) -> Result<Value, SerError> {
        Ok(truth.into())
    }

    integers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64) serialize_u128(u128)
    }

    fn serialize_f32(self, float: f32) -> Result<Value, SerError> {
        self.serialize_f64(float.into())
    }

    fn serialize_f64(self, float: f64) -> Result<Value, SerError> {
        Number::from_f64(float)
            .map(Value::Number)
            .ok_or_else(|| ser::Error::custom("NaN and infinities have no JSON form"))
    }

    fn serialize_char(self, character: char) -> Result<Value, SerError> {
        Ok(Value::Text(character.into()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, SerError> {
        Ok(text.into())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<Value, SerError> {
        Err(ser::Error::custom("byte strings have no JSON form"))
    }

    fn serialize_none(self) -> Result<Value, SerError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, SerError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, SerError> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, SerError> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, SerError> {
        Ok(variant.into())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, SerError> {
        let result = value.serialize(self);
        match &result {
            Err(SerError(message)) if name == EXACT_TOKEN => exact_text(message)
                .and_then(|digits| Number::parse(digits).ok())
                .map(Value::Number)
                .map_or(result, Ok),
            _ => result,
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, SerError> {
        Ok(wrapped(variant, value.serialize(self)?))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items, SerError> {
        Ok(Items::new(None, len))
    }

    fn serialize_tuple(self, len: usize) -> Result<Items, SerError> {
        Ok(Items::new(None, Some(len)))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, SerError> {
        Ok(Items::new(None, Some(len)))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, SerError> {
        Ok(Items::new(Some(variant), Some(len)))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Members, SerError> {
        Ok(Members::new(None, len))
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Members, SerError> {
        Ok(Members::new(None, Some(len)))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Members, SerError> {
        Ok(Members::new(Some(variant), Some(len)))
    }
}

fn wrapped(variant: &str, value: Value) -> Value {
    Value::Object(map_of(alloc::vec![(variant.to_owned(), value)]))
}

/// An array being built, in an object of one member if it belongs to an enum variant.
struct Items {
    variant: Option<&'static str>,
    items: Vec<Value>,
}

impl Items {
    fn new(variant: Option<&'static str>, len: Option<usize>) -> Self {
        Self { variant, items: Vec::with_capacity(len.unwrap_or(0)) }
    }

    fn done(self) -> Result<Value, SerError> {
        let array = Value::Array(self.items);
        Ok(match self.variant {
            Some(variant) => wrapped(variant, array),
            None => array,
        })
    }
}

macro_rules! elements {
    ($($trait:ident::$method:ident)*) => {$(
        impl ser::$trait for Items {
            type Ok = Value;
            type Error = SerError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerError> {
                self.items.push(value.serialize(ToValue)?);
                Ok(())
            }

            fn end(self) -> Result<Value, SerError> {
                self.done()
            }
        }
    )*};
}

elements! {
    SerializeSeq::serialize_element
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
}

/// An object being built.
struct Members {
    variant: Option<&'static str>,
    members: Vec<(String, Value)>,
    key: Option<String>,
}

impl Members {
    fn new(variant: Option<&'static str>, len: Option<usize>) -> Self {
        Self { variant, members: Vec::with_capacity(len.unwrap_or(0)), key: None }
    }

    fn done(self) -> Result<Value, SerError> {
        if let Some(at) = duplicate_key(self.members.len(), |at| &self.members[at].0) {
            let key = &self.members[at].0;
            return Err(ser::Error::custom(format_args!("the key {key:?} occurs twice")));
        }
        let object = Value::Object(map_of(self.members));
        Ok(match self.variant {
            Some(variant) => wrapped(variant, object),
            None => object,
        })
    }
}

impl SerializeMap for Members {
    type Ok = Value;
    type Error = SerError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerError> {
        self.key = Some(key.serialize(KeyText)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), SerError> {
        let key = self.key.take().ok_or_else(|| SerError("a value without a key".to_owned()))?;
        self.members.push((key, value.serialize(ToValue)?));
        Ok(())
    }

    fn end(self) -> Result<Value, SerError> {
        self.done()
    }
}

macro_rules! fields {
    ($($trait:ident)*) => {$(
        impl ser::$trait for Members {
            type Ok = Value;
            type Error = SerError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), SerError> {
                self.members.push((key.to_owned(), value.serialize(ToValue)?));
                Ok(())
            }

            fn end(self) -> Result<Value, SerError> {
                self.done()
            }
        }
    )*};
}

fields! { SerializeStruct SerializeStructVariant }
