//! A message as JSON, as far as JSON can say it.

use omir_core::value::{Map, Value as Json};

use super::value::{Message, Value};

impl Message {
    /// Each field by its name. NaN and the infinities are `null`; bytes are numbers.
    pub fn to_json(&self) -> Json {
        let mut map = Map::new();
        for (field, value) in self.fields() {
            map.insert(field.name.clone(), value.to_json());
        }
        Json::Object(map)
    }
}

impl Value {
    /// See [`Message::to_json`].
    pub fn to_json(&self) -> Json {
        match self {
            Self::Bool(truth) => (*truth).into(),
            Self::Int(n) => (*n).into(),
            Self::Uint(n) => (*n).into(),
            Self::Float(float) => (*float).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Bytes(bytes) => bytes.iter().copied().collect(),
            Self::Floats(floats) => floats.iter().copied().collect(),
            Self::Bools(truths) => truths.iter().copied().collect(),
            Self::Ints(ints) => ints.iter().copied().collect(),
            Self::Uints(ints) => ints.iter().copied().collect(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Message(message) => message.to_json(),
        }
    }
}
