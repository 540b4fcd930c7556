//! One value of a resource and the field that holds it, or nearly does.

use std::fmt;

use omir_core::instant::{Instant, Timestamp};
use omir_core::number::Number;
use omir_core::value::{Map, Value as Json};

use crate::interface::{Element, FieldType};
use crate::message::{FieldPath, Message, Value};
use crate::stamp::Stamp;
use crate::tf::normalised;

/// Members of an object in a field `json`, or of one that is a list of pairs. They are looked up one after another.
pub(super) const MOST_MEMBERS: usize = 1000;

/// The form of a value. An absent value is the field as it is in a new message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// `string`; empty is absent.
    Text,
    /// `string`, the name of a frame, without a leading slash; empty is absent.
    Frame,
    /// `builtin_interfaces/Time`; zero is absent.
    Instant,
    /// `float64[]`, none or one
    Float,
    /// `uint64[]`, none or one
    Uint,
    /// `bool[]`, none or one
    Bool,
    /// `bool`; false is absent.
    Flag,
    /// `uint64`; zero is absent.
    Count,
    /// `string[]`; empty is absent.
    Texts,
    /// `string[]` of references, which are objects in OMIR; empty is absent.
    Refs,
    /// `string`, a reference; empty is absent.
    Ref,
    /// `KeyValue[]`, an object of texts; empty is absent.
    Pairs,
}

/// A value at a place in a resource, and the field for it.
pub(super) struct Row {
    pub json: &'static [&'static str],
    pub field: &'static str,
    pub codec: Codec,
}

/// The share of a value that the field can hold: itself, something near it, or nothing.
pub(super) fn near(codec: Codec, exact: &Json) -> Option<Json> {
    let texts = |items: Vec<Json>| if items.is_empty() { None } else { Some(Json::Array(items)) };
    match codec {
        Codec::Text => text(exact).map(Json::from),
        Codec::Frame => normalised(&text(exact)?).map(Json::from),
        Codec::Instant => {
            let at = Stamp::from_timestamp(Timestamp::parse(exact.as_str()?).ok()?)?;
            at.to_ros()?;
            if at.is_zero() { None } else { Some(instant(at)) }
        }
        Codec::Float => Number::from_f64(exact.as_f64()?).map(Json::from),
        Codec::Uint => exact.as_u64().map(Json::from),
        Codec::Bool => exact.as_bool().map(Json::from),
        Codec::Flag => exact.as_bool().filter(|flag| *flag).map(Json::from),
        Codec::Count => exact.as_u64().filter(|n| *n != 0).map(Json::from),
        Codec::Texts => {
            // An empty text in a list is one.
            let items = exact.as_array()?.iter().filter_map(Json::as_str).map(without_nul);
            texts(items.map(Json::from).collect())
        }
        Codec::Refs => {
            let items = exact.as_array()?.iter().filter_map(|item| near(Codec::Ref, item));
            texts(items.collect())
        }
        Codec::Ref => {
            let mut map = Map::new();
            map.insert("ref", text(exact.get("ref")?)?);
            Some(Json::Object(map))
        }
        Codec::Pairs => {
            let pairs = exact.as_object()?.iter().filter(|(key, _)| !key.contains('\0'));
            let map: Map = pairs
                .filter_map(|(key, value)| {
                    Some((key.to_string(), Json::from(without_nul(value.as_str()?))))
                })
                .collect();
            if map.is_empty() { None } else { Some(Json::Object(map)) }
        }
    }
}

/// The text without NUL, if anything is left.
fn text(exact: &Json) -> Option<String> {
    exact.as_str().map(without_nul).filter(|text| !text.is_empty())
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

pub(super) fn instant(at: Stamp) -> Json {
    Json::from(Instant::from(at).as_str())
}

/// Writes what [`near`] gave into the field.
pub(super) fn write(message: &mut Message, path: &str, codec: Codec, near: &Json) {
    let texts = |items: &Json, f: &dyn Fn(&Json) -> Option<String>| -> Value {
        let items = items.as_array().unwrap_or_default().iter().filter_map(f);
        Value::List(items.map(Value::Text).collect())
    };
    let plain = |item: &Json| item.as_str().map(str::to_string);
    let reference = |item: &Json| item.get("ref").and_then(plain);
    let value = match codec {
        Codec::Text | Codec::Frame => plain(near).map(Value::Text),
        Codec::Ref => reference(near).map(Value::Text),
        Codec::Instant => {
            let at = near.as_str().and_then(|text| Timestamp::parse(text).ok());
            if let Some((sec, nanosec)) = at.and_then(Stamp::from_timestamp).and_then(Stamp::to_ros)
            {
                set(message, &format!("{path}.sec"), sec.into());
                set(message, &format!("{path}.nanosec"), nanosec.into());
            }
            return;
        }
        Codec::Float => near.as_f64().map(|float| vec![float].into()),
        Codec::Uint => near.as_u64().map(|n| vec![Value::Uint(n)].into()),
        Codec::Bool => near.as_bool().map(|flag| vec![Value::Bool(flag)].into()),
        Codec::Flag => near.as_bool().map(Value::Bool),
        Codec::Count => near.as_u64().map(Value::Uint),
        Codec::Texts => Some(texts(near, &plain)),
        Codec::Refs => Some(texts(near, &reference)),
        Codec::Pairs => pairs(message, path, near),
    };
    if let Some(value) = value {
        set(message, path, value);
    }
}

fn pairs(message: &Message, path: &str, near: &Json) -> Option<Value> {
    let ty = path.parse::<FieldPath>().ok()?.check(message.ty()).ok()?;
    let FieldType { element: Element::Message(pair), .. } = ty else {
        return None;
    };
    let items = near.as_object()?.iter().filter_map(|(key, value)| {
        let mut item = Message::new(&pair);
        item.set("key", key).ok()?;
        item.set("value", value.as_str()?).ok()?;
        Some(item)
    });
    Some(items.collect::<Vec<Message>>().into())
}

/// Sets a field of a type of ours to a value that [`near`] made fit it.
pub(super) fn set(message: &mut Message, path: &str, value: Value) {
    let done = message.set(path, value);
    debug_assert!(done.is_ok(), "{done:?}");
}

/// A field that holds no value of its kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BadField {
    /// More elements than the one for which there is room.
    TooMany(usize),
    /// More pairs than [`MOST_MEMBERS`].
    TooManyPairs(usize),
    RepeatedKey(String),
    NoFrame(String),
    Nanoseconds(u32),
    /// A float that JSON does not have.
    NotFinite(f64),
}

impl fmt::Display for BadField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(n) => write!(f, "{n} values; there is room for none or one"),
            Self::TooManyPairs(n) => {
                write!(f, "{n} pairs, and at most {MOST_MEMBERS} are taken: send fewer")
            }
            Self::RepeatedKey(key) => write!(f, "the key {key:?} stands there twice"),
            Self::NoFrame(name) => write!(f, "{name:?} names no frame"),
            Self::Nanoseconds(n) => write!(f, "{n} nanoseconds are more than a second"),
            Self::NotFinite(float) => {
                write!(f, "{float} is no number for a memory; what is not known is left empty")
            }
        }
    }
}

/// Returns the one element of a sequence that holds none or one. A bound (`[<=1]`) would say so in the type, but not
/// every implementation of ROS hashes bounded sequences as `rosidl` does.
pub(super) fn alone_of<T>(items: &[T]) -> Result<Option<&T>, BadField> {
    match items {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        more => Err(BadField::TooMany(more.len())),
    }
}

/// Returns the value of the field; `None` if it states none.
pub(super) fn read(message: &Message, path: &str, codec: Codec) -> Result<Option<Json>, BadField> {
    let alone = || match message.get(path) {
        Some(all) if all.len() > 1 => Err(BadField::TooMany(all.len())),
        all => Ok(all.and_then(|all| all.at(0))),
    };
    let reference = |text: &str| {
        let mut map = Map::new();
        map.insert("ref", text);
        Json::Object(map)
    };
    let some_text = || message.text(path).filter(|text| !text.is_empty());
    let texts = |f: &dyn Fn(&str) -> Json| {
        let items: Vec<Json> = message
            .list(path)
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_text)
            .map(f)
            .collect();
        if items.is_empty() { None } else { Some(Json::Array(items)) }
    };
    Ok(match codec {
        Codec::Text => some_text().map(Json::from),
        Codec::Frame => some_text().map(frame).transpose()?.map(Json::from),
        Codec::Ref => some_text().map(reference),
        Codec::Instant => stamp(message, path)?.map(instant),
        Codec::Float => {
            alone_of(message.floats(path).unwrap_or_default())?.map(|n| finite(*n)).transpose()?
        }
        Codec::Uint => alone()?.and_then(|one| one.as_u64()).map(Json::from),
        Codec::Bool => alone()?.and_then(|one| one.as_bool()).map(Json::from),
        Codec::Flag => message.bool(path).filter(|flag| *flag).map(Json::from),
        Codec::Count => message.u64(path).filter(|n| *n != 0).map(Json::from),
        Codec::Texts => texts(&|text| Json::from(text)),
        Codec::Refs => texts(&reference),
        Codec::Pairs => {
            let pairs = message.list(path).unwrap_or_default();
            if pairs.len() > MOST_MEMBERS {
                return Err(BadField::TooManyPairs(pairs.len()));
            }
            let mut map = Map::new();
            for pair in pairs.iter().filter_map(Value::as_message) {
                let [key, value] = ["key", "value"].map(|name| pair.text(name).unwrap_or_default());
                if map.insert(key, value).is_some() {
                    return Err(BadField::RepeatedKey(key.to_owned()));
                }
            }
            if map.is_empty() { None } else { Some(Json::Object(map)) }
        }
    })
}

/// Returns the name of a frame as the rest of ROS compares it.
pub(super) fn frame(name: &str) -> Result<&str, BadField> {
    normalised(name).ok_or_else(|| BadField::NoFrame(name.to_owned()))
}

/// Returns the moment in a field of the type `builtin_interfaces/Time`; `None` if it is zero.
pub(super) fn stamp(message: &Message, path: &str) -> Result<Option<Stamp>, BadField> {
    let sec = message.i64(&format!("{path}.sec")).and_then(|sec| i32::try_from(sec).ok());
    let nanosec = message.u64(&format!("{path}.nanosec")).and_then(|n| u32::try_from(n).ok());
    let (sec, nanosec) = (sec.unwrap_or_default(), nanosec.unwrap_or_default());
    if nanosec >= 1_000_000_000 {
        return Err(BadField::Nanoseconds(nanosec));
    }
    let at = Stamp::from_ros(sec, nanosec);
    Ok(if at.is_zero() { None } else { Some(at) })
}

/// Returns the float as JSON, which has no NaN and no infinity.
pub(super) fn finite(float: f64) -> Result<Json, BadField> {
    Number::from_f64(float).map(Json::from).ok_or(BadField::NotFinite(float))
}
