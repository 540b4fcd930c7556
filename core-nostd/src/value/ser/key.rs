//! Object keys: text, and enum variants, which are text.

use alloc::borrow::ToOwned;
use alloc::string::String;

use serde::ser::{Impossible, Serialize, Serializer};

use super::SerError;

/// Accepts what may be an object key.
pub(super) struct KeyText;

macro_rules! refused {
    ($($method:ident($($argument:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$ok, SerError> {
            Err(SerError("object keys must be text".to_owned()))
        }
    )*};
}

/// A part of a key, of which there is none.
type NoPart = Impossible<String, SerError>;

impl Serializer for KeyText {
    type Ok = String;
    type Error = SerError;
    type SerializeSeq = NoPart;
    type SerializeTuple = NoPart;
    type SerializeTupleStruct = NoPart;
    type SerializeTupleVariant = NoPart;
    type SerializeMap = NoPart;
    type SerializeStruct = NoPart;
    type SerializeStructVariant = NoPart;

    refused! {
        serialize_bool(bool) -> String;
        serialize_i8(i8) -> String;
        serialize_i16(i16) -> String;
        serialize_i32(i32) -> String;
        serialize_i64(i64) -> String;
        serialize_u8(u8) -> String;
        serialize_u16(u16) -> String;
        serialize_u32(u32) -> String;
        serialize_u64(u64) -> String;
        serialize_f32(f32) -> String;
        serialize_f64(f64) -> String;
        serialize_bytes(&[u8]) -> String;
        serialize_none() -> String;
        serialize_unit() -> String;
        serialize_unit_struct(&'static str) -> String;
        serialize_seq(Option<usize>) -> NoPart;
        serialize_tuple(usize) -> NoPart;
        serialize_tuple_struct(&'static str, usize) -> NoPart;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> NoPart;
        serialize_map(Option<usize>) -> NoPart;
        serialize_struct(&'static str, usize) -> NoPart;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> NoPart;
    }

    fn serialize_char(self, character: char) -> Result<String, SerError> {
        Ok(character.into())
    }

    fn serialize_str(self, text: &str) -> Result<String, SerError> {
        Ok(text.to_owned())
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String, SerError> {
        Ok(variant.to_owned())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, key: &T) -> Result<String, SerError> {
        key.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        key: &T,
    ) -> Result<String, SerError> {
        key.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, SerError> {
        Err(SerError("object keys must be text".to_owned()))
    }
}
