//! JSON Schemas (2020-12) of fields.

use omir_core::number::Number;
use omir_core::value::{Map, Value};

use super::{Field, Shape};

/// The form of a number in a list that is written as text.
const NUMBER: &str = "-?[0-9]{1,9}(?:\\.[0-9]{1,9})?";

/// Returns the schema of an object of these fields. `is_closed` refuses any other member. Schemas of the protocol that are
/// named lie at `place`, such as `#/components/schemas/`.
pub fn object_schema(fields: &[Field], is_closed: bool, place: &str) -> Map {
    let mut schema = of_type("object");
    let mut properties = Map::new();
    for field in fields {
        let mut property = field.shape.schema(place);
        if !field.about.is_empty() {
            property.insert("description", field.about);
        }
        properties.insert(field.name, property);
    }
    schema.insert("properties", properties);
    let required = fields.iter().filter(|field| field.is_required);
    let required: Vec<Value> = required.map(|field| field.name.into()).collect();
    if !required.is_empty() {
        schema.insert("required", Value::Array(required));
    }
    if is_closed {
        schema.insert("additionalProperties", false);
    }
    schema
}

impl Shape {
    /// Returns the schema of such a value. Schemas that are named lie at `place`.
    pub fn schema(&self, place: &str) -> Map {
        let mut schema = match self {
            Self::Named(name) => {
                let mut reference = Map::new();
                reference.insert("$ref", format!("{place}{name}"));
                return reference;
            }
            Self::Object(fields) => return object_schema(fields, false, place),
            shape => of_type(shape.type_name()),
        };
        match *self {
            Self::Number(least, most) => {
                if least == f64::MIN_POSITIVE {
                    schema.insert("exclusiveMinimum", 0);
                } else {
                    insert_finite(&mut schema, "minimum", least);
                }
                insert_finite(&mut schema, "maximum", most);
            }
            Self::Integer(least, most) => {
                schema.insert("minimum", least);
                schema.insert("maximum", most);
            }
            Self::Text(most) => insert_bound(&mut schema, "maxLength", most),
            Self::Form(form) => _ = schema.insert("pattern", form),
            Self::OneOf(words) => {
                schema.insert("enum", words.iter().copied().collect::<Value>());
            }
            Self::List(of, least, most) => {
                schema.insert("items", of.schema(place));
                if least > 0 {
                    schema.insert("minItems", least as u64);
                }
                insert_bound(&mut schema, "maxItems", most);
            }
            Self::Flag | Self::Named(_) | Self::Object(_) | Self::Anything => {}
        }
        schema
    }

    /// Returns the schema of such a value where it is written as text: in the query of a path.
    pub fn text_schema(&self, place: &str) -> Map {
        let Self::List(of, least, most) = self else { return self.schema(place) };
        let mut schema = of_type("string");
        if let Some(one) = of.form_in_list() {
            let more = match (least.saturating_sub(1), most.saturating_sub(1)) {
                (0, more) if more == usize::MAX - 1 => "*".to_owned(),
                (least, more) if more == usize::MAX - 1 => format!("{{{least},}}"),
                (least, more) if least == more => format!("{{{least}}}"),
                (least, more) => format!("{{{least},{more}}}"),
            };
            schema.insert("pattern", format!("^{one}(?:,{one}){more}$"));
        }
        schema
    }

    /// Returns the regular expression of one value in a list that is written as text, if it has one.
    fn form_in_list(&self) -> Option<String> {
        match self {
            Self::OneOf(words) => Some(format!("(?:{})", words.join("|"))),
            Self::Form(form) => Some(form.trim_start_matches('^').trim_end_matches('$').to_owned()),
            Self::Number(..) => Some(NUMBER.to_owned()),
            _ => None,
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Form(_) | Self::Named(_) | Self::OneOf(_) => "string",
            Self::Number(..) => "number",
            Self::Integer(..) => "integer",
            Self::Flag => "boolean",
            Self::List(..) => "array",
            Self::Object(_) | Self::Anything => "object",
        }
    }
}

fn of_type(name: &str) -> Map {
    let mut schema = Map::new();
    schema.insert("type", name);
    schema
}

/// Inserts a bound unless it is infinite, which is none.
fn insert_finite(schema: &mut Map, name: &str, bound: f64) {
    if let Some(bound) = Number::from_f64(bound).filter(|_| bound.is_finite()) {
        schema.insert(name, Value::Number(bound));
    }
}

/// Inserts a bound on a size unless it is the largest, which is none.
fn insert_bound(schema: &mut Map, name: &str, most: usize) {
    if most < usize::MAX {
        schema.insert(name, most as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ANY_NUMBER, ANY_TEXT};
    use super::*;
    use omir_core::json;

    const FIELDS: &[Field] = &[
        Field::new("text", Shape::Text(5), "Words.").required(),
        Field::new("open", Shape::Number(0.0, f64::INFINITY), ""),
        Field::new("weight", Shape::Number(f64::MIN_POSITIVE, 10.0), ""),
        Field::new("limit", Shape::Integer(1, 50), ""),
        Field::new("entities", Shape::List(&Shape::Form("^Entity/"), 0, 2), ""),
        Field::new("near", Shape::List(&ANY_NUMBER, 2, 3), ""),
        Field::new("at", Shape::Named("Instant"), ""),
        Field::new("note", ANY_TEXT, ""),
    ];

    #[test]
    fn the_schema_says_what_the_check_takes() {
        let schema = object_schema(FIELDS, true, "#/here/");
        let schema = json::to_string(&Value::Object(schema));
        for part in [
            r#""text":{"type":"string","maxLength":5,"description":"Words."}"#,
            r#""open":{"type":"number","minimum":0.0}"#,
            r#""weight":{"type":"number","exclusiveMinimum":0,"maximum":10.0}"#,
            r#""limit":{"type":"integer","minimum":1,"maximum":50}"#,
            r#""entities":{"type":"array","items":{"type":"string","pattern":"^Entity/"},"maxItems":2}"#,
            r#""near":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":3}"#,
            r##""at":{"$ref":"#/here/Instant"}"##,
            r#""note":{"type":"string"}"#,
            r#""required":["text"]"#,
            r#""additionalProperties":false"#,
        ] {
            assert!(schema.contains(part), "{part} in {schema}");
        }
    }

    /// A query holds what the parser takes: values with commas between them.
    #[test]
    fn lists_have_a_form_as_text() {
        const WORDS: Shape = Shape::OneOf(&["a", "b"]);
        const NAMES: Shape = Shape::Form("^Entity/[a-z]+$");
        let number = NUMBER;
        for (shape, form) in [
            (Shape::List(&WORDS, 1, usize::MAX), "^(?:a|b)(?:,(?:a|b))*$".to_owned()),
            (Shape::List(&NAMES, 0, usize::MAX), "^Entity/[a-z]+(?:,Entity/[a-z]+)*$".to_owned()),
            (Shape::List(&WORDS, 3, usize::MAX), "^(?:a|b)(?:,(?:a|b)){2,}$".to_owned()),
            (Shape::List(&ANY_NUMBER, 2, 3), format!("^{number}(?:,{number}){{1,2}}$")),
            (Shape::List(&ANY_NUMBER, 6, 6), format!("^{number}(?:,{number}){{5}}$")),
            (NAMES, "^Entity/[a-z]+$".to_owned()),
        ] {
            let schema = shape.text_schema("");
            assert_eq!(schema.get("pattern").and_then(Value::as_str), Some(&*form), "{shape:?}");
            assert_eq!(schema.get("type").and_then(Value::as_str), Some("string"));
        }
        assert_eq!(Shape::Flag.text_schema(""), Shape::Flag.schema(""));
        assert!(Shape::List(&ANY_TEXT, 1, 2).text_schema("").get("pattern").is_none());
    }
}
