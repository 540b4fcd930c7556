//! The JSON-LD context this program carries, and what it says of each field.
//!
//! The context is the only table of fields: preparation asks it what a value is, so the two cannot
//! disagree, and a field it does not name is refused instead of dropped.

use std::collections::HashMap;

use omir_core::decode::Limits;
use omir_core::json;
use omir_core::value::Value;

use super::LiftError;

const FILE: &str = include_str!("context.jsonld");

const DATE_TIME: &str = "http://www.w3.org/2001/XMLSchema#dateTime";
const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";
const BOOLEAN: &str = "http://www.w3.org/2001/XMLSchema#boolean";

/// A field's value, by the context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Coercion {
    /// Nothing: the JSON value says it all.
    None,
    DateTime,
    Integer,
    Iri,
    /// A JSON literal.
    Json,
    /// An object whose names are data; each becomes a property of this namespace.
    Keys(String),
}

fn damaged(what: &str) -> LiftError {
    LiftError::Library(format!("the JSON-LD context: {what}"))
}

/// One field.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) iri: String,
    pub(super) coercion: Coercion,
}

/// The context.
pub(super) struct Context {
    text: String,
    terms: HashMap<String, Term>,
}

impl Context {
    /// The one in this program.
    pub(super) fn ours() -> Result<Self, LiftError> {
        let file = json::from_slice(FILE.as_bytes(), &Limits::default())
            .map_err(|why| damaged(&why.to_string()))?;
        let context = file.get("@context").ok_or_else(|| damaged("no @context"))?;
        let members = context.as_object().ok_or_else(|| damaged("@context is no object"))?;
        let mut terms = HashMap::new();
        for (name, definition) in members.iter() {
            if let Some(term) = Term::read(definition)? {
                terms.insert(name.to_owned(), term);
            }
        }
        Ok(Self { text: json::to_string(context), terms })
    }

    /// The context as JSON.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn term(&self, name: &str) -> Option<&Term> {
        self.terms.get(name)
    }
}

impl Term {
    /// `None` for what is no field: `@version` and the other names of keywords.
    fn read(definition: &Value) -> Result<Option<Self>, LiftError> {
        let iri = definition.as_str().or_else(|| definition.get("@id").and_then(Value::as_str));
        let Some(iri) = iri.filter(|iri| !iri.starts_with('@')) else {
            return Ok(None);
        };
        let keys = definition.pointer("/@context/1/@vocab").and_then(Value::as_str);
        let coercion = match definition.get("@type").and_then(Value::as_str) {
            None => keys.map_or(Coercion::None, |keys| Coercion::Keys(keys.to_owned())),
            Some("@id") => Coercion::Iri,
            Some("@json") => Coercion::Json,
            Some(DATE_TIME) => Coercion::DateTime,
            Some(INTEGER) => Coercion::Integer,
            Some(BOOLEAN) => Coercion::None,
            Some(other) => return Err(damaged(&format!("{iri}: unknown @type {other}"))),
        };
        Ok(Some(Self { iri: iri.to_owned(), coercion }))
    }
}
