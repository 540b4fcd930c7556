//! A resource made ready for a JSON-LD processor, so that what the processor makes of it is exact and the
//! same every time.
//!
//! The members of each object are sorted, so that `.omir` and `.omirb` give the same text.

use omir_core::instant::Timestamp;
use omir_core::number::Number;
use omir_core::pointer;
use omir_core::reference::{Id, Ref, ResourceType};
use omir_core::value::{Map, Value};
use oxrdf::NamedNode;

use super::LiftError;
use super::context::{Coercion, Context, Term};
use super::digits::Digits;
use super::json_literal;
use super::names::{self, Base};

const DECIMAL: &str = "http://www.w3.org/2001/XMLSchema#decimal";
const JSON: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON";
/// An instant by RFC 3339 that is none by XML Schema. Ours, because no vocabulary has one.
const RFC_3339: &str = "urn:omird:rfc3339";

/// Position of the preparation: the pointer for complaints, the label for a blank node.
pub(super) struct Prepare<'a> {
    context: &'a Context,
    base: &'a Base,
    label: &'a str,
    pointer: &'a str,
}

type Prepared<T> = Result<T, LiftError>;

impl<'a> Prepare<'a> {
    /// `label` begins the labels of the blank nodes below `pointer`.
    pub(super) fn new(
        context: &'a Context,
        base: &'a Base,
        label: &'a str,
        pointer: &'a str,
    ) -> Self {
        Self { context, base, label, pointer }
    }

    /// A resource or a Bundle of that name and type; its own `id` and `resourceType` are not looked at.
    pub(super) fn resource(&self, name: &str, kind: &str, members: &Map) -> Prepared<Value> {
        let rest = members.iter().filter(|(name, _)| !matches!(*name, "id" | "resourceType"));
        let own = [("@id", Value::from(name)), ("@type", kind.into())];
        self.object(own.into_iter(), rest)
    }

    fn object<'v>(
        &self,
        own: impl Iterator<Item = (&'static str, Value)>,
        members: impl Iterator<Item = (&'v str, &'v Value)>,
    ) -> Prepared<Value> {
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|(name, _)| *name);
        let own = own.map(|(name, value)| Ok((name.to_owned(), value)));
        let prepared = own.chain(members.into_iter().map(|(name, value)| self.member(name, value)));
        Ok(Value::Object(prepared.collect::<Prepared<Map>>()?))
    }

    /// The same place one step down.
    fn below<T>(&self, token: &str, then: impl FnOnce(&Prepare<'_>) -> Prepared<T>) -> Prepared<T> {
        let label = format!("{}-{token}", self.label);
        let pointer = pointer::join(self.pointer, token);
        then(&Prepare::new(self.context, self.base, &label, &pointer))
    }

    fn refuse(&self, message: impl Into<String>) -> LiftError {
        LiftError::value(self.pointer, message.into())
    }

    fn member(&self, name: &str, value: &Value) -> Prepared<(String, Value)> {
        self.below(name, |at| {
            let Some(term) = at.context.term(name) else {
                return Err(at.refuse("the context has no term for this field"));
            };
            match term.coercion {
                // Under the term itself even a value object would be taken for JSON.
                Coercion::Json => {
                    Ok((term.iri.clone(), literal(json_literal::canonical(value), JSON)))
                }
                _ => Ok((name.to_owned(), at.value(name, term, value)?)),
            }
        })
    }

    fn value(&self, name: &str, term: &Term, value: &Value) -> Prepared<Value> {
        match (&term.coercion, value) {
            (Coercion::Keys(namespace), Value::Object(members)) => self.keys(namespace, members),
            (_, Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    self.below(&index.to_string(), |at| at.value(name, term, item))
                })
                .collect::<Prepared<Vec<Value>>>()
                .map(Value::Array),
            (Coercion::DateTime, Value::Text(text)) => self.instant(text),
            (Coercion::Integer, Value::Number(number)) => match number.is_integer() {
                true => self.plain(number).map(Value::from),
                false => Err(self.refuse("not an integer")),
            },
            (Coercion::Iri, Value::Text(id)) if name == "parentId" => {
                let id = Id::new(id.as_str()).map_err(|why| self.refuse(why.to_string()))?;
                Ok(self.base.resource(ResourceType::MemoryRecord.as_str(), &id).into())
            }
            (Coercion::Iri, Value::Text(iri)) => match NamedNode::new(iri.as_str()) {
                Ok(_) => Ok(value.clone()),
                Err(why) => Err(self.refuse(format!("not an IRI: {why}"))),
            },
            (Coercion::None, Value::Object(members)) => match members.get("ref") {
                Some(target) => self.reference(target),
                None => self.node(members),
            },
            (Coercion::None, Value::Number(number)) => Ok(literal(self.plain(number)?, DECIMAL)),
            (Coercion::None, Value::Text(_) | Value::Bool(_)) => Ok(value.clone()),
            _ => Err(self.refuse(format!("{} is not what belongs here", value.kind_name()))),
        }
    }

    /// A blank node, labelled by its place.
    fn node(&self, members: &Map) -> Prepared<Value> {
        self.object([("@id", self.blank())].into_iter(), members.iter())
    }

    /// A blank node whose properties are the names in the data.
    fn keys(&self, namespace: &str, members: &Map) -> Prepared<Value> {
        let mut members: Vec<_> = members.iter().collect();
        members.sort_by_key(|(name, _)| *name);
        let mut prepared = vec![("@id".to_owned(), self.blank())];
        for (name, value) in members {
            if value.as_str().is_none() {
                return Err(self.refuse(format!("the value of {name:?} is no text")));
            }
            prepared.push((names::key(namespace, name), value.clone()));
        }
        Ok(Value::Object(prepared.into_iter().collect()))
    }

    fn blank(&self) -> Value {
        format!("_:{}", self.label).into()
    }

    fn reference(&self, target: &Value) -> Prepared<Value> {
        let parsed = target.as_str().map(str::parse::<Ref>);
        let Some(Ok(target)) = parsed else {
            return Err(self.refuse("not a reference such as {\"ref\": \"Entity/kitchen\"}"));
        };
        let iri = self.base.resource(target.kind.as_str(), &target.id);
        Ok(Value::Object([("@id", iri)].into_iter().collect()))
    }

    fn plain(&self, number: &Number) -> Prepared<String> {
        Digits::of(number).and_then(|digits| digits.plain()).ok_or_else(|| {
            self.refuse("too many digits without an exponent, which xsd:decimal does not have")
        })
    }

    /// `xsd:dateTime` has upper-case letters, no leap second, and offsets up to 14 hours (XML Schema
    /// 1.1 part 2, §3.3.7). The letters are only spelling. An instant beyond the rest keeps its text and
    /// says that it is RFC 3339: any other second or offset would be another text, or another instant.
    fn instant(&self, text: &str) -> Prepared<Value> {
        Timestamp::parse(text).map_err(|why| self.refuse(why.to_string()))?;
        let upper = text.to_ascii_uppercase();
        let leap = upper.get(17..19) == Some("60");
        let offset = upper.len().checked_sub(5).and_then(|at| upper.get(at..));
        let far = !upper.ends_with('Z') && offset.is_some_and(|offset| offset > "14:00");
        Ok(if leap || far { literal(text.to_owned(), RFC_3339) } else { upper.into() })
    }
}

fn literal(text: String, datatype: &str) -> Value {
    let members = [("@value", Value::from(text)), ("@type", datatype.into())];
    Value::Object(members.into_iter().collect())
}
