//! From dynamic to typed: a serde deserializer over a [`Value`], and values out of any other.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::{self, Vec};
use core::fmt;

use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use super::map::{duplicate_key, map_of};
use super::{Map, Value};
use crate::number::{Number, from_exact_bytes};

/// The typed form of `value`.
///
/// The error is serde's first complaint. For every fault of a document, and where it is, validate it
/// ([`crate::validate`]) before.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, DeError> {
    T::deserialize(value)
}

/// A value that is not of the wanted type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeError(String);

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for DeError {}

impl de::Error for DeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(map) => Ok(map),
            other => Err(de::Error::custom(format_args!(
                "an object is expected here, not {}",
                other.kind_name()
            ))),
        }
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(truth.into())
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_i128<E>(self, int: i128) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_u64<E>(self, int: u64) -> Result<Value, E> {
        Ok(int.into())
    }

    fn visit_u128<E>(self, int: u128) -> Result<Value, E> {
        Ok(Number::from(int).into())
    }

    fn visit_f64<E: de::Error>(self, float: f64) -> Result<Value, E> {
        Number::from_f64(float)
            .map(Value::Number)
            .ok_or_else(|| E::custom("NaN and infinities are not numbers in JSON"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Value, E> {
        from_exact_bytes(bytes)
            .map(Value::Number)
            .ok_or_else(|| E::invalid_type(de::Unexpected::Bytes(bytes), &self))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members: Vec<(String, Value)> = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        match duplicate_key(members.len(), |at| &members[at].0) {
            Some(at) => {
                Err(de::Error::custom(format_args!("the key {:?} occurs twice", members[at].0)))
            }
            None => Ok(Value::Object(map_of(members))),
        }
    }
}

impl<'de> Deserializer<'de> for Value {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(truth) => visitor.visit_bool(truth),
            Self::Number(number) => number.visit(visitor),
            Self::Text(text) => visitor.visit_string(text),
            Self::Array(items) => {
                let mut items = Items(items.into_iter());
                let result = visitor.visit_seq(&mut items)?;
                match items.0.len() {
                    0 => Ok(result),
                    left => Err(DeError(alloc::format!("{left} array elements too many"))),
                }
            }
            Self::Object(map) => {
                visitor.visit_map(&mut Members { members: map.into_iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match self {
            Self::Null => visitor.visit_none(),
            present => visitor.visit_some(present),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        match self {
            Self::Text(variant) => visitor.visit_enum(Variant { variant, content: None }),
            Self::Object(map) if map.len() == 1 => {
                let mut members = map.into_iter();
                match members.next() {
                    Some((variant, content)) => {
                        visitor.visit_enum(Variant { variant, content: Some(content) })
                    }
                    None => Err(DeError("an empty object names no variant".to_owned())),
                }
            }
            other => {
                Err(DeError(alloc::format!("a string is expected here, not {}", other.kind_name())))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, DeError> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

struct Items(vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Items {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DeError> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Members {
    members: vec::IntoIter<(String, Value)>,
    value: Option<Value>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = DeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DeError> {
        match self.members.next() {
            Some((key, value)) => {
                self.value = Some(value);
                seed.deserialize(Value::Text(key)).map(Some)
            }
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeError> {
        seed.deserialize(self.value.take().unwrap_or_default())
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

struct Variant {
    variant: String,
    content: Option<Value>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = DeError;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content), DeError> {
        let variant = seed.deserialize(Value::Text(self.variant))?;
        Ok((variant, Content(self.content)))
    }
}

struct Content(Option<Value>);

impl Content {
    fn present(self) -> Result<Value, DeError> {
        self.0.ok_or_else(|| DeError("this variant needs content".to_owned()))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = DeError;

    fn unit_variant(self) -> Result<(), DeError> {
        match self.0 {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(DeError("this variant has no content".to_owned())),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DeError> {
        seed.deserialize(self.present()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeError> {
        self.present()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        self.present()?.deserialize_any(visitor)
    }
}
