//! A path into a message: `pose.pose.position.x`, `detections[0].results[*].score`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use omir_core::validate::closest;

use super::fit::fit;
use super::value::{Message, Value};
use crate::interface::{Element, FieldType, MessageType, Shape};

/// A path of fields and places in lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Field(String),
    At(usize),
    Each,
}

/// A path that leads nowhere, or a value that cannot be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// The path up to where it goes wrong.
    pub path: String,
    /// The fault there.
    pub why: String,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

impl std::error::Error for PathError {}

impl FromStr for FieldPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let bad = |why: &str| PathError { path: text.into(), why: why.into() };
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (name, mut indexes) = match part.find('[') {
                Some(at) => part.split_at(at),
                None => (part, ""),
            };
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if name.is_empty() || !plain {
                return Err(bad("a path is names of fields with dots between them, \
                                and [n] or [*] behind a list"));
            }
            steps.push(Step::Field(name.into()));
            while !indexes.is_empty() {
                let (index, rest) = indexes
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once(']'))
                    .ok_or_else(|| bad("a `[` has no `]`"))?;
                steps.push(match index {
                    "*" => Step::Each,
                    _ => Step::At(
                        index
                            .parse()
                            .map_err(|_| bad("between [ and ] stands a number from 0, or *"))?,
                    ),
                });
                indexes = rest;
            }
        }
        Ok(Self(steps))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if i == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::At(n) => write!(f, "[{n}]")?,
                Step::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

impl FieldPath {
    /// Returns true if it may lead to more than one value.
    pub fn is_many(&self) -> bool {
        self.0.contains(&Step::Each)
    }

    /// The type of what the path leads to, checked before there is a message.
    pub fn check(&self, ty: &Arc<MessageType>) -> Result<FieldType, PathError> {
        let mut at = FieldType::single(Element::Message(ty.clone()));
        for (i, step) in self.0.iter().enumerate() {
            let bad = |why| PathError { path: Self(self.0[..=i].to_vec()).to_string(), why };
            at = match (step, at) {
                (
                    Step::Field(name),
                    FieldType { element: Element::Message(ty), shape: Shape::Single },
                ) => ty.field(name).map(|(_, field)| field.ty.clone()).ok_or_else(|| {
                    let names: Vec<&str> = ty.fields.iter().map(|f| f.name.as_str()).collect();
                    let near = closest(name, names.iter().copied());
                    let near = near.map(|near| format!("is it {near}? ")).unwrap_or_default();
                    bad(format!("{} has no such field; {near}it has {}", ty.name, names.join(", ")))
                })?,
                (Step::Field(_), ty) => {
                    return Err(bad(match ty.shape {
                        Shape::Single => format!("a {ty} has no fields"),
                        _ => format!("a {ty} is a list: say which one, [0] or [*]"),
                    }));
                }
                (Step::At(_) | Step::Each, ty) if ty.shape == Shape::Single => {
                    return Err(bad(format!("a {ty} is no list")));
                }
                (Step::At(n), FieldType { shape: Shape::Array(len) | Shape::Bounded(len), .. })
                    if *n >= len =>
                {
                    return Err(bad(format!("there are at most {len}, counted from 0")));
                }
                (Step::At(_) | Step::Each, ty) => FieldType::single(ty.element),
            };
        }
        Ok(at)
    }
}

impl Message {
    /// The value at a path. `None` if the path leads nowhere, or to an element of a list of numbers or truth
    /// values, which is not held as a value: see [`Message::view`].
    pub fn get(&self, path: &str) -> Option<&Value> {
        let path: FieldPath = path.parse().ok()?;
        match self.find(&path)? {
            Cow::Borrowed(value) => Some(value),
            Cow::Owned(_) => None,
        }
    }

    /// The value at a path, also within lists of numbers. `[*]` leads nowhere here.
    pub fn view(&self, path: &str) -> Option<Cow<'_, Value>> {
        self.find(&path.parse().ok()?)
    }

    /// The value at a path; see [`Message::view`].
    pub fn find(&self, path: &FieldPath) -> Option<Cow<'_, Value>> {
        if path.is_many() {
            return None;
        }
        self.select(path).pop()
    }

    /// All values a path leads to, in order. None of them if it leads nowhere.
    pub fn select(&self, path: &FieldPath) -> Vec<Cow<'_, Value>> {
        let mut found = Vec::new();
        select(self, &path.0, &mut found);
        found
    }

    /// Puts a value where the path leads, if it fits the type there.
    ///
    /// ```
    /// # use omir_ros2::{interface::Registry, message::Message};
    /// let registry = Registry::standard();
    /// let mut message = Message::new(&registry.message("geometry_msgs/msg/PoseStamped")?);
    /// message.set("header.frame_id", "map")?;
    /// message.set("pose.position.x", 1.5)?;
    /// assert_eq!(message.f64("pose.position.x"), Some(1.5));
    /// assert!(message.set("pose.position.x", "far").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> Result<(), PathError> {
        let steps: FieldPath = path.parse()?;
        if steps.is_many() {
            return Err(PathError { path: path.into(), why: "[*] names no single value".into() });
        }
        let ty = steps.check(self.ty())?;
        let value = fit(value.into(), &ty)
            .map_err(|why| PathError { path: path.into(), why: why.to_string() })?;
        put(self, &steps.0, value).ok_or_else(|| PathError {
            path: path.into(),
            why: "the list is shorter: set all of it".into(),
        })
    }

    /// The text at a path, if there is one.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_text()
    }

    /// The number at a path as a float, if there is one.
    pub fn f64(&self, path: &str) -> Option<f64> {
        self.view(path)?.as_f64()
    }

    /// The integer at a path, if there is one.
    pub fn i64(&self, path: &str) -> Option<i64> {
        self.view(path)?.as_i64()
    }

    /// The integer at a path, if there is one.
    pub fn u64(&self, path: &str) -> Option<u64> {
        self.view(path)?.as_u64()
    }

    /// The truth value at a path, if there is one.
    pub fn bool(&self, path: &str) -> Option<bool> {
        self.get(path)?.as_bool()
    }

    /// The message at a path, if there is one.
    pub fn message(&self, path: &str) -> Option<&Message> {
        self.get(path)?.as_message()
    }

    /// The list of strings or messages at a path, if there is one; see [`Message::floats`] and
    /// [`Message::bytes`] too.
    pub fn list(&self, path: &str) -> Option<&[Value]> {
        self.get(path)?.as_list()
    }

    /// The floats at a path, if there is an array or a sequence of them.
    pub fn floats(&self, path: &str) -> Option<&[f64]> {
        self.get(path)?.as_floats()
    }

    /// The bytes at a path, if there is an array or a sequence of them.
    pub fn bytes(&self, path: &str) -> Option<&[u8]> {
        self.get(path)?.as_bytes()
    }
}

fn select<'a>(message: &'a Message, steps: &[Step], found: &mut Vec<Cow<'a, Value>>) {
    if let Some((Step::Field(name), rest)) = steps.split_first()
        && let Some(value) = message.field(name)
    {
        descend(value, rest, found);
    }
}

fn descend<'a>(value: &'a Value, steps: &[Step], found: &mut Vec<Cow<'a, Value>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(Cow::Borrowed(value));
        return;
    };
    let range = match step {
        Step::Field(_) => {
            if let Value::Message(message) = value {
                select(message, steps, found);
            }
            return;
        }
        Step::At(n) => *n..n.saturating_add(1),
        Step::Each => 0..usize::MAX,
    };
    match value {
        Value::List(items) => {
            for item in items.iter().take(range.end).skip(range.start) {
                descend(item, rest, found);
            }
        }
        packed if rest.is_empty() && packed.is_many() => {
            let range = range.start..range.end.min(packed.len());
            found.extend(range.filter_map(|at| packed.at(at)));
        }
        _ => {}
    }
}

/// Puts a value that fits; `None` if a list is too short for the path.
fn put(message: &mut Message, steps: &[Step], value: Value) -> Option<()> {
    let (Step::Field(name), rest) = steps.split_first()? else {
        return None;
    };
    let (at, _) = message.ty().field(name)?;
    put_in(message.values_mut().get_mut(at)?, rest, value)
}

fn put_in(at: &mut Value, steps: &[Step], value: Value) -> Option<()> {
    match (steps.split_first(), at) {
        (None, at) => *at = value,
        (Some((Step::At(n), rest)), Value::List(items)) => {
            return put_in(items.get_mut(*n)?, rest, value);
        }
        (Some((Step::At(n), _)), Value::Floats(floats)) => *floats.get_mut(*n)? = value.as_f64()?,
        (Some((Step::At(n), _)), Value::Bools(all)) => *all.get_mut(*n)? = value.as_bool()?,
        (Some((Step::At(n), _)), Value::Ints(all)) => *all.get_mut(*n)? = value.as_i64()?,
        (Some((Step::At(n), _)), Value::Uints(all)) => *all.get_mut(*n)? = value.as_u64()?,
        (Some((Step::At(n), _)), Value::Bytes(bytes)) => {
            *bytes.get_mut(*n)? = u8::try_from(value.as_u64()?).ok()?;
        }
        (Some((Step::Field(_), _)), Value::Message(message)) => return put(message, steps, value),
        _ => return None,
    }
    Some(())
}
