//! Holding a value against a table.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::fault::{Fault, FaultCode};
use super::schema::{self, Range, Shape, Table};
use super::suggest::closest;
use super::uri::is_absolute_uri;
use crate::instant::Timestamp;
use crate::number::Number;
use crate::pointer;
use crate::reference::{self, Id, ResourceType};
use crate::value::{Map, Value};

/// Faults listed for one resource. Hostile documents could otherwise turn each byte into a report.
pub(super) const MOST_FAULTS: usize = 1000;

/// Characters of a text that messages quote.
const QUOTED: usize = 40;

/// Position of the walk. A chain on the stack, spelled out only when a fault needs it.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Base(&'a str),
    Name(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// The place a pointer names, `/` being the document.
    pub(crate) fn base(pointer: &'a str) -> Self {
        let pointer = if pointer == "/" { "" } else { pointer };
        Self { parent: None, step: Step::Base(pointer) }
    }

    /// A member of the object here.
    pub(crate) fn name(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Name(name) }
    }

    /// An element of the array here.
    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// The pointer; empty for the document itself.
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.spell(&mut pointer);
        pointer
    }

    /// A fault here.
    pub(crate) fn fault(&self, code: FaultCode, message: impl Into<String>) -> Fault {
        Fault::new(pointer::displayed(&self.pointer()), code, message)
    }

    fn spell(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.spell(out);
        }
        match self.step {
            Step::Base(pointer) => out.push_str(pointer),
            Step::Name(name) => pointer::push(out, name),
            Step::Index(index) => {
                out.push('/');
                out.push_str(&index.to_string());
            }
        }
    }
}

/// Checks one resource; its type chooses the table. Returns the type if there is one.
pub(super) fn resource(
    value: &Value,
    at: &At<'_>,
    plain_r1: bool,
    out: &mut Vec<Fault>,
) -> Option<ResourceType> {
    let Some(map) = value.as_object() else {
        let message = format!("an entry must be an object, not {}", value.kind_name());
        out.push(at.fault(FaultCode::NotAnObject, message));
        return None;
    };
    let types = ResourceType::ALL.map(ResourceType::as_str);
    let kind = match map.get("resourceType") {
        None => {
            let message = format!("\"resourceType\" is missing; it is one of {}", types.join(", "));
            out.push(at.fault(FaultCode::UnknownType, message));
            return None;
        }
        Some(kind) => kind,
    };
    match kind.as_str().and_then(|name| name.parse().ok()) {
        Some(kind) => {
            let mut walk = Walk::new(FaultCode::Schema, out).plain(plain_r1);
            walk.members(map, schema::resource(kind), at);
            Some(kind)
        }
        None => {
            let mut message = format!("{} is not one of {}", shown(kind), types.join(", "));
            push_hint(&mut message, kind, &types);
            out.push(at.name("resourceType").fault(FaultCode::UnknownType, message));
            None
        }
    }
}

/// A walk whose faults carry one code.
pub(crate) struct Walk<'a> {
    code: FaultCode,
    out: &'a mut Vec<Fault>,
    /// No more faults are listed once `out` is this long.
    full: usize,
    /// True if draft fields are unknown.
    plain_r1: bool,
}

impl<'a> Walk<'a> {
    /// A walk that appends to `out`, [`MOST_FAULTS`] at most.
    pub(crate) fn new(code: FaultCode, out: &'a mut Vec<Fault>) -> Self {
        let full = out.len() + MOST_FAULTS;
        Self { code, out, full, plain_r1: false }
    }

    /// The same walk, to which draft fields are unknown if `plain_r1`.
    pub(crate) fn plain(self, plain_r1: bool) -> Self {
        Self { plain_r1, ..self }
    }

    fn complain(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.complain_of(self.code, at, message);
    }

    fn complain_of(&mut self, code: FaultCode, at: &At<'_>, message: impl Into<String>) {
        if self.out.len() < self.full {
            self.out.push(at.fault(code, message));
        }
    }

    /// Checks the members of a closed object.
    pub(crate) fn members(&mut self, map: &Map, table: &Table, at: &At<'_>) {
        let mut seen = 0_u32;
        for (name, value) in map {
            match table.fields.iter().position(|field| field.name == name) {
                Some(index) if table.fields[index].draft && self.plain_r1 => {
                    let message =
                        format!("\"{name}\" is a draft field, which plain R1 does not have");
                    self.complain(at, message);
                }
                Some(index) => {
                    seen |= 1 << index;
                    self.value(value, &table.fields[index].shape, &at.name(name));
                }
                None => self.unknown_field(name, table, at),
            }
        }
        for (index, field) in table.fields.iter().enumerate() {
            if seen & (1 << index) != 0 {
                continue;
            }
            if field.required {
                self.complain(at, format!("\"{}\" is missing; it is required here", field.name));
            } else if matches!(field.shape, Shape::MetaVersion) {
                let message = "\"meta\" must say \"omirVersion\": \"R1\"";
                self.complain_of(FaultCode::MetaVersion, at, message);
            }
        }
        for (field, partner) in table.depends {
            let known = table.fields.iter().position(|known| known.name == *field);
            let is_there = known.is_some_and(|index| seen & (1 << index) != 0);
            if is_there && !map.contains_key(partner) {
                let message = format!("\"{field}\" needs \"{partner}\" beside it to mean anything");
                self.complain_of(FaultCode::EdgeRegime, at, message);
            }
        }
    }

    fn unknown_field(&mut self, name: &str, table: &Table, at: &At<'_>) {
        let mut message = format!("unknown field {}", quoted(name));
        match closest(name, table.fields.iter().map(|field| field.name)) {
            Some(near) => message.push_str(&format!("; did you mean \"{near}\"?")),
            None if table.extensible => {
                message.push_str("; data beyond the core belongs in \"extension\"");
            }
            None => {
                let names: Vec<&str> = table.fields.iter().map(|field| field.name).collect();
                message.push_str(&format!("; allowed here: {}", names.join(", ")));
            }
        }
        self.complain(at, message);
    }

    fn value(&mut self, value: &Value, shape: &Shape, at: &At<'_>) {
        match shape {
            Shape::Any => {}
            Shape::Text => drop(self.text(value, at)),
            Shape::SomeText => {
                if self.text(value, at) == Some("") {
                    self.complain(at, "the text is empty");
                }
            }
            Shape::Flag => {
                if value.as_bool().is_none() {
                    self.wrong_kind(value, "true or false", at);
                }
            }
            Shape::Exactly(word) => {
                if value.as_str() != Some(word) {
                    self.complain(at, format!("expected \"{word}\", found {}", shown(value)));
                }
            }
            Shape::MetaVersion => {
                if value.as_str() != Some("R1") {
                    let message = format!("expected \"R1\", found {}", shown(value));
                    self.complain_of(FaultCode::MetaVersion, at, message);
                }
            }
            Shape::Words(words) => self.word(value, words, at),
            Shape::Id => {
                if let Some(Err(error)) = self.text(value, at).map(Id::check) {
                    self.complain(at, format!("{}: {error}", shown(value)));
                }
            }
            Shape::Instant => {
                if let Some(Err(error)) = self.text(value, at).map(Timestamp::parse) {
                    self.complain(at, format!("{}: {error}", shown(value)));
                }
            }
            Shape::Uri => {
                if self.text(value, at).is_some_and(|text| !is_absolute_uri(text)) {
                    let found = shown(value);
                    self.complain(at, format!("{found} is not an absolute URI such as https://…"));
                }
            }
            Shape::Ref => {
                if let Some(Err(error)) = self.text(value, at).map(reference::split) {
                    self.complain(at, format!("{}: {error}", shown(value)));
                }
            }
            Shape::Number(range) => {
                if let Some(number) = self.number(value, "a number", at) {
                    self.range(number, *range, at);
                }
            }
            Shape::Integer(range) => {
                if let Some(number) = self.number(value, "a whole number", at) {
                    if number.is_integer() {
                        self.range(number, *range, at);
                    } else {
                        self.complain(at, format!("{} is not a whole number", shown(value)));
                    }
                }
            }
            Shape::List(element) => match value.as_array() {
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        self.value(item, element, &at.index(index));
                    }
                }
                None => self.wrong_kind(value, "an array", at),
            },
            Shape::Float => self.float(value, at),
            Shape::Floats(count) => self.floats(value, *count, at),
            Shape::TextMap => match value.as_object() {
                Some(map) => {
                    for (name, member) in map {
                        self.text(member, &at.name(name));
                    }
                }
                None => self.wrong_kind(value, "an object", at),
            },
            Shape::Object(table) => match value.as_object() {
                Some(map) => self.members(map, table, at),
                None => self.wrong_kind(value, "an object", at),
            },
        }
    }

    fn text<'v>(&mut self, value: &'v Value, at: &At<'_>) -> Option<&'v str> {
        let text = value.as_str();
        if text.is_none() {
            self.wrong_kind(value, "a string", at);
        }
        text
    }

    fn number<'v>(&mut self, value: &'v Value, wanted: &str, at: &At<'_>) -> Option<&'v Number> {
        let number = value.as_number();
        if number.is_none() {
            self.wrong_kind(value, wanted, at);
        }
        number
    }

    fn range(&mut self, number: &Number, range: Range, at: &At<'_>) {
        let found = shortened(&number.to_string());
        match range {
            Range::Above(low) if *number <= low => {
                self.complain(at, format!("{found} is not greater than {low}"));
            }
            Range::AtLeast(low) if *number < low => {
                self.complain(at, format!("{found} is less than {low}"));
            }
            Range::Between(low, high) if *number < low || *number > high => {
                self.complain(at, format!("{found} is not between {low} and {high}"));
            }
            _ => {}
        }
    }

    fn word(&mut self, value: &Value, words: &[&'static str], at: &At<'_>) {
        if value.as_str().is_some_and(|text| words.contains(&text)) {
            return;
        }
        let mut message = format!("{} is not one of {}", shown(value), words.join(", "));
        push_hint(&mut message, value, words);
        self.complain(at, message);
    }

    fn floats(&mut self, value: &Value, count: usize, at: &At<'_>) {
        let Some(items) = value.as_array() else {
            return self.wrong_kind(value, &format!("an array of {count} numbers"), at);
        };
        if items.len() != count {
            self.complain(at, format!("{count} numbers are expected, found {}", items.len()));
        }
        for (index, item) in items.iter().enumerate().take(count) {
            self.float(item, &at.index(index));
        }
    }

    fn float(&mut self, value: &Value, at: &At<'_>) {
        if let Some(number) = self.number(value, "a number", at)
            && !number.as_f64().is_finite()
        {
            self.complain(at, format!("{} is beyond the range of a float", shown(value)));
        }
    }

    fn wrong_kind(&mut self, value: &Value, wanted: &str, at: &At<'_>) {
        let mut message = format!("{wanted} is expected here, not {}", value.kind_name());
        if value.is_null() {
            message.push_str("; leave the field out instead");
        }
        self.complain(at, message);
    }
}

fn push_hint(message: &mut String, value: &Value, words: &[&'static str]) {
    if let Some(near) = value.as_str().and_then(|text| closest(text, words.iter().copied())) {
        message.push_str(&format!("; did you mean \"{near}\"?"));
    }
}

/// A value as a message quotes it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Number(number) => shortened(&number.to_string()),
        Value::Bool(truth) => truth.to_string(),
        other => other.kind_name().to_string(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// An id as messages name it: whole, unless it is longer than any id may be.
pub(super) fn id_shown(id: &str) -> String {
    if Id::check(id).is_ok() { id.to_string() } else { shortened(id) }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
