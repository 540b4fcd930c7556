//! JSON Schemas (draft 2020-12) of what the validator accepts, for editors and for other languages.
//!
//! They are printed from the tables the validator walks, so they accept and refuse the same documents
//! as [`crate::validate::validate_shape`] and [`crate::validate::validate_resource`], with these
//! limits:
//!
//! - What holds between resources is beyond a schema: unique ids, references that lead somewhere.
//! - Numbers are exact decimals here; most libraries round them to a float first, and take
//!   1.0000000000000000001 for 1, and 1e400 for infinity or for no JSON at all.
//! - A pose's quaternion is refused if it is shorter than [`MIN_QUATERNION_NORM`], and a schema cannot
//!   compute a length: it accepts those of more than half that. Its numbers end at the largest float,
//!   to which a little more would still round.
//! - What is no JSON to begin with, such as a key given twice, is the reader's to refuse.

mod pattern;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::reference::ResourceType;
use crate::space::MIN_QUATERNION_NORM;
use crate::spatial::POSE;
use crate::validate::{self, BUNDLE, Field, Range, Shape, Table};
use crate::value::{Map, Value};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The subject of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A whole document.
    Bundle,
    /// One resource.
    Resource(ResourceType),
    /// The `valueJson` of a spatial pose extension, see [`crate::spatial`].
    SpatialPose,
}

impl Subject {
    /// Every subject.
    pub const ALL: [Self; 6] = [
        Self::Bundle,
        Self::Resource(ResourceType::MemoryRecord),
        Self::Resource(ResourceType::Entity),
        Self::Resource(ResourceType::Relationship),
        Self::Resource(ResourceType::Episode),
        Self::SpatialPose,
    ];

    /// The name of the schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bundle => "Bundle",
            Self::Resource(kind) => kind.as_str(),
            Self::SpatialPose => "SpatialPose",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Subject {
    type Err = UnknownSubject;

    fn from_str(text: &str) -> Result<Self, UnknownSubject> {
        Self::ALL.into_iter().find(|subject| subject.as_str() == text).ok_or(UnknownSubject)
    }
}

/// A name that is none of a [`Subject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSubject;

impl fmt::Display for UnknownSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Subject::ALL.map(Subject::as_str).join(", ");
        write!(f, "there are schemas of {names}")
    }
}

impl core::error::Error for UnknownSubject {}

/// True if the draft fields (`x-omir-maturity: 0`) belong to the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Drafts {
    /// They do, as the validator sees it.
    Allowed,
    /// They are unknown fields, as in releases of R1 without them.
    Refused,
}

/// The schema of one subject, on its own: everything it refers to is in its `$defs`.
///
/// ```
/// use omir_core::json_schema::{Drafts, Subject, json_schema};
///
/// let schema = json_schema(Subject::Bundle, Drafts::Allowed);
/// let version = schema.pointer("/$defs/MemoryRecord/properties/version/minimum");
/// assert_eq!(version.and_then(|least| least.as_u64()), Some(1));
/// ```
pub fn json_schema(subject: Subject, drafts: Drafts) -> Value {
    let mut writer = Writer { drafts, definitions: Map::new() };
    let (body, comment) = match subject {
        Subject::Bundle => (writer.bundle(), BUNDLE_COMMENT),
        Subject::Resource(kind) => (writer.table(validate::resource(kind)), RESOURCE_COMMENT),
        Subject::SpatialPose => (writer.pose(), POSE_COMMENT),
    };
    let release = match drafts {
        Drafts::Allowed => "R1",
        Drafts::Refused => "R1-plain",
    };
    let mut root = Map::new();
    root.insert("$schema", DIALECT);
    root.insert("$id", format!("urn:omird:schema:{release}:{subject}"));
    root.insert("$comment", comment);
    extend(&mut root, body);
    root.insert("$defs", writer.definitions);
    Value::Object(root)
}

const BUNDLE_COMMENT: &str = "Beyond a schema's reach: ids are unique within a type (W202), references \
     lead to a resource of the right type in the bundle (E200, E201), normalized weights of a node sum \
     to 1 at most (E250, E251), no key is given twice. Numbers are compared exactly; a library that \
     rounds them takes 1.0000000000000000001 for 1.";

const RESOURCE_COMMENT: &str = "Beyond a schema's reach: references lead to a resource of the right \
     type (E200, E201), no key is given twice. Numbers are compared exactly; a library that rounds them \
     takes 1.0000000000000000001 for 1.";

const POSE_COMMENT: &str = "Beyond a schema's reach: the length of the quaternion, which must be 1e-9 at \
     least; it is normalised when it is read.";

/// A quaternion whose four components are all below this is too short for certain.
const MIN_COMPONENT: f64 = MIN_QUATERNION_NORM / 2.0;

/// Collects the definitions a schema refers to while it is written.
struct Writer {
    drafts: Drafts,
    definitions: Map,
}

impl Writer {
    fn bundle(&mut self) -> Map {
        let mut body = self.table(&BUNDLE);
        // The rules with codes of their own, which the table leaves open.
        let entry = self.define("Entry", Self::entry);
        narrow(&mut body, "resourceType", exactly("Bundle"));
        narrow(&mut body, "omirVersion", exactly("R1"));
        narrow(&mut body, "entry", keywords([("items", entry.into())]));
        body.insert("required", texts(&["resourceType", "omirVersion", "entry"]));
        body
    }

    /// Chosen by `resourceType` rather than by `oneOf`, so that a library complains of the type at hand
    /// and not of four.
    fn entry(&mut self) -> Map {
        let mut choices = Vec::new();
        for kind in ResourceType::ALL {
            let named = keywords([("resourceType", exactly(kind.as_str()).into())]);
            let condition = keywords([
                ("type", "object".into()),
                ("properties", named.into()),
                ("required", texts(&["resourceType"])),
            ]);
            let table = self.defined(validate::resource(kind));
            choices.push(keywords([("if", condition.into()), ("then", table.into())]));
        }
        let kinds = one_of(&ResourceType::ALL.map(ResourceType::as_str));
        keywords([
            ("description", "A resource; resourceType says which".into()),
            ("type", "object".into()),
            ("properties", keywords([("resourceType", kinds.into())]).into()),
            ("required", texts(&["resourceType"])),
            ("allOf", choices.into()),
        ])
    }

    fn pose(&mut self) -> Map {
        let mut body = self.table(&POSE);
        let far = [("maximum", -MIN_COMPONENT), ("minimum", MIN_COMPONENT)];
        let far = far.map(|(keyword, bound)| keywords([(keyword, bound.into())]));
        let not_zero = keywords([("anyOf", far.into_iter().collect())]);
        narrow(&mut body, "orientation", keywords([("contains", not_zero.into())]));
        body
    }

    fn table(&mut self, table: &Table) -> Map {
        let fields: Vec<&Field> = table
            .fields
            .iter()
            .filter(|field| self.drafts == Drafts::Allowed || !field.draft)
            .collect();
        // The table leaves a missing release to a code of its own.
        let needed = |field: &&&Field| field.required || matches!(field.shape, Shape::MetaVersion);
        let required: Vec<&str> = fields.iter().filter(needed).map(|field| field.name).collect();
        let depends: Map = table
            .depends
            .iter()
            .filter(|(name, _)| fields.iter().any(|field| field.name == *name))
            .map(|(name, partner)| (*name, texts(&[partner])))
            .collect();
        let properties: Map = fields.iter().map(|field| (field.name, self.field(field))).collect();

        let mut body = keywords([
            ("title", format!("OMIR R1 {}", table.name).into()),
            ("description", table.doc.into()),
            ("type", "object".into()),
            ("properties", properties.into()),
        ]);
        if !required.is_empty() {
            body.insert("required", texts(&required));
        }
        if !depends.is_empty() {
            body.insert("dependentRequired", depends);
        }
        body.insert("additionalProperties", false);
        body
    }

    fn field(&mut self, field: &Field) -> Map {
        let mut schema = keywords([("description", field.doc.into())]);
        if field.draft {
            schema.insert("x-omir-maturity", 0);
        }
        let shape = self.shape(&field.shape);
        if shape.contains_key("$ref") {
            // Beside it, some editors would show the definition's description and not the field's.
            schema.insert("allOf", [shape].into_iter().collect::<Value>());
        } else {
            extend(&mut schema, shape);
        }
        schema
    }

    fn shape(&mut self, shape: &Shape) -> Map {
        match shape {
            Shape::Any => Map::new(),
            Shape::Text => of_type("string"),
            Shape::SomeText => keywords([("type", "string".into()), ("minLength", 1.into())]),
            Shape::Flag => of_type("boolean"),
            Shape::Exactly(word) => exactly(word),
            Shape::MetaVersion => exactly("R1"),
            Shape::Words(words) => one_of(words),
            Shape::Id => self
                .define("Id", |_| matching("1 to 128 letters, digits and . _ : -", pattern::id())),
            Shape::Instant => self.define("Instant", |_| instant()),
            Shape::Uri => {
                self.define("Uri", |_| matching("An absolute URI (RFC 3986)", pattern::uri()))
            }
            Shape::Ref => self
                .define("Ref", |_| matching("Type/id, as in Entity/kitchen", pattern::reference())),
            Shape::Number(range) => within("number", *range),
            Shape::Integer(range) => within("integer", *range),
            Shape::List(element) => list_of(self.shape(element)),
            Shape::Float => float(),
            Shape::Floats(count) => {
                let mut list = list_of(float());
                list.insert("minItems", *count);
                list.insert("maxItems", *count);
                list
            }
            Shape::TextMap => keywords([
                ("type", "object".into()),
                ("additionalProperties", of_type("string").into()),
            ]),
            Shape::Object(table) => self.defined(table),
        }
    }

    /// A reference to a table's definition.
    fn defined(&mut self, table: &'static Table) -> Map {
        self.define(table.name, |writer| writer.table(table))
    }

    /// A reference to a definition, which is written when it is needed first.
    fn define(&mut self, name: &str, write: impl FnOnce(&mut Self) -> Map) -> Map {
        if !self.definitions.contains_key(name) {
            // Takes its place before what it refers to itself.
            self.definitions.insert(name, Map::new());
            let definition = write(self);
            self.definitions.insert(name, definition);
        }
        keywords([("$ref", format!("#/$defs/{name}").into())])
    }
}

fn instant() -> Map {
    let mut instant = matching("An RFC 3339 date-time, best in UTC", pattern::instant());
    // Second 60 is 23:59:60 UTC, whatever the offset.
    let leap: Vec<Map> =
        pattern::leap_second().into_iter().map(|p| keywords([("pattern", p.into())])).collect();
    instant.insert("if", keywords([("pattern", pattern::SECOND_60.into())]));
    instant.insert("then", keywords([("allOf", leap.into())]));
    instant
}

/// Text that matches `pattern` from its first character to its last.
fn matching(description: &str, pattern: String) -> Map {
    keywords([
        ("description", description.into()),
        ("type", "string".into()),
        ("pattern", pattern.into()),
        ("not", keywords([("pattern", pattern::FOREIGN.into())]).into()),
    ])
}

fn within(name: &str, range: Range) -> Map {
    let mut schema = of_type(name);
    match range {
        Range::All => {}
        Range::Above(low) => {
            schema.insert("exclusiveMinimum", low);
        }
        Range::AtLeast(low) => {
            schema.insert("minimum", low);
        }
        Range::Between(low, high) => {
            schema.insert("minimum", low);
            schema.insert("maximum", high);
        }
    }
    schema
}

fn float() -> Map {
    keywords([
        ("type", "number".into()),
        ("minimum", f64::MIN.into()),
        ("maximum", f64::MAX.into()),
    ])
}

fn list_of(element: Map) -> Map {
    keywords([("type", "array".into()), ("items", element.into())])
}

fn of_type(name: &str) -> Map {
    keywords([("type", name.into())])
}

fn exactly(word: &str) -> Map {
    keywords([("const", word.into())])
}

fn one_of(words: &[&str]) -> Map {
    keywords([("enum", texts(words))])
}

fn texts(words: &[&str]) -> Value {
    words.iter().copied().collect()
}

fn keywords<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().collect()
}

fn extend(schema: &mut Map, more: Map) {
    for (keyword, value) in more {
        schema.insert(keyword, value);
    }
}

/// Adds to the schema of one property.
fn narrow(body: &mut Map, property: &str, more: Map) {
    let schema = body.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(schema) = schema.and_then(|all| all.get_mut(property)?.as_object_mut()) {
        extend(schema, more);
    }
}
