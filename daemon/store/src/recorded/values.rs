//! Values of log steps and manifests.

use omir_core::number::Number;
use omir_core::value::{Map, Value};

pub(crate) fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect::<Map>())
}

pub(crate) fn int(n: impl Into<i128>) -> Value {
    Value::Number(Number::from(n.into()))
}
