//! Tools: what a protocol offers to a program that reads descriptions, such as a language model.
//!
//! A tool asks for one method of a table, so the router decides about it as about any request. Its input and output are
//! flat objects of [`Field`]s: the schema that is shown, and the check of what comes in, are made of the same list.

use omir_core::code::Code;
use omir_core::number::Number;
use omir_core::value::{Map, Value};
use omird_engine::Error;

use super::admitted::Admitted;
use super::method::{Effect, Method};
use super::refusal::Refusal;

/// A tool of a protocol.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// A few words for a person.
    pub title: &'static str,
    /// Sentences for a model: the use of it, and what comes back.
    pub about: &'static str,
    /// The row that the router decides by.
    pub method: &'static Method,
    /// The members of its input.
    pub inputs: &'static [Field],
    /// The members of its result.
    pub outputs: &'static [Field],
    /// It takes something away that was there.
    pub is_destructive: bool,
    /// The same call again changes nothing more.
    pub is_idempotent: bool,
}

impl Tool {
    /// Returns true if it changes no memory.
    pub fn only_reads(&self) -> bool {
        self.method.effect == Effect::Reads
    }
}

/// The tools of a protocol, and what each of them does.
pub trait Toolbox: Send + Sync {
    /// Returns all tools.
    fn tools(&self) -> &'static [Tool];

    /// Uses a tool. The arguments fit its inputs: [`check`] has been asked.
    ///
    /// # Errors
    /// Those of its method.
    fn call(
        &self,
        tool: &'static Tool,
        admitted: Admitted,
        arguments: &Map,
        watch: &dyn Watch,
    ) -> Result<Map, Error>;

    /// Words a refusal of the router.
    fn worded(&self, refusal: Refusal) -> Error;
}

/// The eyes of whoever waits for a call.
pub trait Watch: Sync {
    /// Returns true while somebody waits.
    fn is_wanted(&self) -> bool;

    /// Takes note of how far the work has come.
    fn note(&self, done: u64, of: u64);
}

/// A member of an input or a result.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The values it takes.
    pub shape: Shape,
    /// It is always there.
    pub is_required: bool,
    /// One sentence: the meaning, the unit, the default.
    pub about: &'static str,
}

impl Field {
    /// Returns a member that may be left out.
    pub const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, shape, is_required: false, about }
    }

    /// Returns the same, always there.
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// The values of a [`Field`].
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A text of at most so many characters.
    Text(usize),
    /// A text of this form, as a regular expression; the reader of the value decides.
    Form(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A number from the first to the second.
    Number(f64, f64),
    /// A whole number from the first to the second.
    Integer(i64, i64),
    /// `true` or `false`.
    Flag,
    /// Values of one shape, at most so many.
    List(&'static Shape, usize),
    /// An object with these members.
    Object(&'static [Field]),
    /// An object of any members.
    Anything,
}

/// Any number.
pub const ANY_NUMBER: Shape = Shape::Number(f64::NEG_INFINITY, f64::INFINITY);

/// Returns the JSON Schema (2020-12) of an object of these fields. `is_closed` refuses any other member.
pub fn schema(fields: &[Field], is_closed: bool) -> Map {
    let mut schema = Map::new();
    schema.insert("type", "object");
    let mut properties = Map::new();
    for field in fields {
        let mut property = field.shape.schema();
        if !field.about.is_empty() {
            property.insert("description", field.about);
        }
        properties.insert(field.name, Value::Object(property));
    }
    schema.insert("properties", Value::Object(properties));
    let required = fields.iter().filter(|field| field.is_required);
    let required: Vec<Value> = required.map(|field| field.name.into()).collect();
    if !required.is_empty() {
        schema.insert("required", Value::Array(required));
    }
    if is_closed {
        schema.insert("additionalProperties", Value::Bool(false));
    }
    schema
}

/// Checks arguments against the inputs of a tool. A null counts as left out.
///
/// # Errors
/// `INVALID_QUERY`: which member is wrong, what was found and what is expected.
pub fn check(fields: &[Field], arguments: &Map) -> Result<(), Error> {
    for (name, value) in arguments.iter() {
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            let message = format!("unknown argument `{name}`: known are {}", known.join(", "));
            return Err(Error::at(Code::InvalidQuery, format!("/{name}"), message));
        };
        if !value.is_null() {
            field.shape.check(name, value)?;
        }
    }
    let is_missing = |field: &&Field| arguments.get(field.name).is_none_or(Value::is_null);
    match fields.iter().filter(|field| field.is_required).find(is_missing) {
        Some(field) => Err(Error::query(field.name, format!("is missing: {}", field.about))),
        None => Ok(()),
    }
}

impl Shape {
    fn schema(&self) -> Map {
        let mut map = Map::new();
        let mut bound = |name: &str, number: f64| {
            if let Some(number) = Number::from_f64(number).filter(|_| number.is_finite()) {
                map.insert(name, Value::Number(number));
            }
        };
        match *self {
            Self::Number(least, most) => {
                bound("minimum", least);
                bound("maximum", most);
            }
            Self::Integer(least, most) => {
                map.insert("minimum", least);
                if most < i64::MAX {
                    map.insert("maximum", most);
                }
            }
            Self::Text(most) => {
                if most < usize::MAX {
                    map.insert("maxLength", most);
                }
            }
            Self::Form(pattern) => _ = map.insert("pattern", pattern),
            Self::OneOf(words) => {
                map.insert("enum", words.iter().map(|&word| Value::from(word)).collect::<Value>());
            }
            Self::List(shape, most) => {
                map.insert("items", Value::Object(shape.schema()));
                if most < usize::MAX {
                    map.insert("maxItems", most);
                }
            }
            Self::Object(fields) => return schema(fields, false),
            Self::Flag | Self::Anything => {}
        }
        map.insert("type", self.type_name());
        map
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Form(_) | Self::OneOf(_) => "string",
            Self::Number(..) => "number",
            Self::Integer(..) => "integer",
            Self::Flag => "boolean",
            Self::List(..) => "array",
            Self::Object(_) | Self::Anything => "object",
        }
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), Error> {
        let refuse = |expected: String| {
            let found = value.kind_name();
            Err(Error::query(name, format!("expected {expected}, found {found}")))
        };
        match (self, value) {
            (Self::Text(most), Value::Text(text)) => {
                let count = text.chars().count();
                if count > *most {
                    let message = format!("{count} characters are more than {most}");
                    return Err(Error::query(name, message));
                }
                Ok(())
            }
            (Self::Form(_), Value::Text(_)) | (Self::Flag, Value::Bool(_)) => Ok(()),
            (Self::OneOf(words), Value::Text(text)) => match words.contains(&text.as_str()) {
                true => Ok(()),
                false => {
                    let known = words.join("`, `");
                    Err(Error::query(name, format!("{text:?} is none of `{known}`")))
                }
            },
            (Self::Number(least, most), Value::Number(number)) => {
                let number = number.as_f64();
                match number.is_finite() && (*least..=*most).contains(&number) {
                    true => Ok(()),
                    false => Err(Error::query(name, outside(number, *least, *most))),
                }
            }
            (Self::Integer(least, most), Value::Number(number)) => match number.as_i64() {
                Some(whole) if (*least..=*most).contains(&whole) => Ok(()),
                _ => {
                    let message = format!("{number} is no whole number from {least} to {most}");
                    Err(Error::query(name, message))
                }
            },
            (Self::List(shape, most), Value::Array(items)) => {
                if items.len() > *most {
                    let message = format!("{} are more than {most}", items.len());
                    return Err(Error::query(name, message));
                }
                items.iter().try_for_each(|item| shape.check(name, item))
            }
            (Self::Object(fields), Value::Object(members)) => check(fields, members),
            (Self::Anything, Value::Object(_)) => Ok(()),
            (Self::Text(_) | Self::Form(_), _) => refuse("a text".to_owned()),
            (Self::OneOf(words), _) => refuse(format!("one of `{}`", words.join("`, `"))),
            (Self::Number(..), _) => refuse("a number".to_owned()),
            (Self::Integer(..), _) => refuse("a whole number".to_owned()),
            (Self::Flag, _) => refuse("`true` or `false`".to_owned()),
            (Self::List(..), _) => refuse("a list".to_owned()),
            (Self::Object(_) | Self::Anything, _) => refuse("an object".to_owned()),
        }
    }
}

fn outside(number: f64, least: f64, most: f64) -> String {
    match (least.is_finite(), most.is_finite()) {
        (true, true) => format!("{number} is not from {least} to {most}"),
        (true, false) => format!("{number} is less than {least}"),
        (false, true) => format!("{number} is more than {most}"),
        (false, false) => format!("{number} is no finite number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omir_core::{decode::Limits, json};

    const INNER: &[Field] = &[Field::new("x", ANY_NUMBER, "Metres.").required()];
    const FIELDS: &[Field] = &[
        Field::new("text", Shape::Text(5), "Words.").required(),
        Field::new("share", Shape::Number(0.0, 1.0), ""),
        Field::new("limit", Shape::Integer(1, 50), ""),
        Field::new("open", Shape::Number(0.0, f64::INFINITY), ""),
        Field::new("order", Shape::OneOf(&["latest", "earliest"]), ""),
        Field::new("entities", Shape::List(&Shape::Form("^Entity/"), 2), ""),
        Field::new("place", Shape::Object(INNER), ""),
        Field::new("force", Shape::Flag, ""),
    ];

    fn object(text: &str) -> Map {
        match json::from_slice(text.as_bytes(), &Limits::default()).unwrap() {
            Value::Object(map) => map,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_fits_is_taken() {
        for text in [
            r#"{"text":"a cup"}"#,
            r#"{"text":"","share":0,"limit":50,"order":"latest","entities":["Entity/a"]}"#,
            r#"{"text":"é","place":{"x":-1.5},"force":false,"open":1e9,"share":null}"#,
        ] {
            check(FIELDS, &object(text)).unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_is_named_with_what_is_expected() {
        for (text, path, expected) in [
            ("{}", "/text", "is missing: Words."),
            (r#"{"text":null}"#, "/text", "is missing"),
            (r#"{"text":5}"#, "/text", "expected a text"),
            (r#"{"text":"a cup."}"#, "/text", "6 characters are more than 5"),
            (r#"{"text":"a","share":1.5}"#, "/share", "not from 0 to 1"),
            (r#"{"text":"a","open":-1}"#, "/open", "-1 is less than 0"),
            (r#"{"text":"a","limit":2.5}"#, "/limit", "no whole number from 1 to 50"),
            (r#"{"text":"a","limit":"5"}"#, "/limit", "expected a whole number"),
            (r#"{"text":"a","order":"newest"}"#, "/order", "none of `latest`, `earliest`"),
            (r#"{"text":"a","entities":"Entity/a"}"#, "/entities", "expected a list"),
            (r#"{"text":"a","entities":[1]}"#, "/entities", "expected a text"),
            (r#"{"text":"a","entities":["","",""]}"#, "/entities", "3 are more than 2"),
            (r#"{"text":"a","place":{}}"#, "/x", "is missing"),
            (r#"{"text":"a","force":1}"#, "/force", "expected `true` or `false`"),
            (r#"{"text":"a","lmit":1}"#, "/lmit", "known are text, share, limit"),
        ] {
            let error = check(FIELDS, &object(text)).unwrap_err();
            assert_eq!((error.code, error.path.as_str()), (Code::InvalidQuery, path), "{text}");
            assert!(error.message.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_schema_says_the_same() {
        let schema = json::to_string(&Value::Object(schema(FIELDS, true)));
        for part in [
            r#""text":{"maxLength":5,"type":"string","description":"Words."}"#,
            r#""open":{"minimum":0.0,"type":"number"}"#,
            r#""limit":{"minimum":1,"maximum":50,"type":"integer"}"#,
            r#""entities":{"items":{"pattern":"^Entity/","type":"string"},"maxItems":2,"type":"array"}"#,
            r#""required":["text"]"#,
            r#""additionalProperties":false"#,
        ] {
            assert!(schema.contains(part), "{part} in {schema}");
        }
    }
}
