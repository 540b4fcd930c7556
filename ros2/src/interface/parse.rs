//! The text of `.msg`, `.srv` and `.action` files, as `rosidl_adapter` reads it.
//!
//! Grammar: <https://docs.ros.org/en/jazzy/Concepts/Basic/About-Interfaces.html>.

use std::collections::HashSet;

mod error;

use self::error::{BadLiteral, BadStatement};
use super::{Constant, Element, FieldType, InterfaceError, Kind, MessageType, Shape, TypeName};
use crate::message::{Value, fit};

/// A structure whose nested types are names still.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw {
    pub fields: Vec<RawField>,
    pub constants: Vec<Constant>,
}

#[derive(Clone, Debug)]
pub(super) struct RawField {
    pub name: String,
    pub element: RawElement,
    pub shape: Shape,
    pub default: Option<Value>,
}

#[derive(Clone, Debug)]
pub(super) enum RawElement {
    Plain(Element),
    Named(TypeName),
}

impl RawField {
    pub fn plain(name: &str, element: Element) -> Self {
        let element = RawElement::Plain(element);
        Self { name: name.into(), element, shape: Shape::Single, default: None }
    }

    pub fn named(name: &str, ty: TypeName, shape: Shape) -> Self {
        Self { name: name.into(), element: RawElement::Named(ty), shape, default: None }
    }
}

/// A structure without fields has one all the same, as in `rosidl`.
pub(super) fn never_empty(fields: Vec<RawField>) -> Vec<RawField> {
    if fields.is_empty() {
        return vec![RawField::plain(MessageType::EMPTY_MEMBER, Element::U8)];
    }
    fields
}

/// The sections of a file: one of a message, two of a service, three of an action.
///
/// `file` is for the messages of errors.
pub(super) fn sections(
    name: &TypeName,
    file: &str,
    text: &str,
) -> Result<Vec<Raw>, InterfaceError> {
    let wanted = match name.kind() {
        Kind::Msg => 1,
        Kind::Srv => 2,
        Kind::Action => 3,
    };
    let mut all = vec![Raw::default()];
    let mut names = HashSet::new();
    for (i, line) in text.lines().enumerate() {
        let bad = |why| InterfaceError::Text { file: file.into(), line: i + 1, why };
        let line = without_comment(line).trim();
        if line == "---" {
            if all.len() == wanted {
                return Err(bad(match name.kind() {
                    Kind::Msg => "a message has no `---`".into(),
                    Kind::Srv => "a service has one `---`, between request and response".into(),
                    Kind::Action => "an action has two `---`: goal, result, feedback".into(),
                }));
            }
            all.push(Raw::default());
            names.clear();
        } else if !line.is_empty()
            && let Some(section) = all.last_mut()
        {
            statement(line, name.package(), section, &mut names)
                .map_err(|why| bad(why.to_string()))?;
        }
    }
    if all.len() < wanted {
        return Err(InterfaceError::Text {
            file: file.into(),
            line: text.lines().count().max(1),
            why: match name.kind() {
                Kind::Srv => "a service needs `---` between request and response".into(),
                _ => "an action needs `---` between goal, result and feedback".into(),
            },
        });
    }
    for section in &mut all {
        section.fields = never_empty(std::mem::take(&mut section.fields));
    }
    Ok(all)
}

/// The line up to a `#` that is not within quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            ('#', None) => return &line[..at],
            // An apostrophe within a word quotes nothing.
            ('"' | '\'', None) if line[..at].ends_with([' ', '=', '[', ',', '\t']) => {
                quote = Some(c);
            }
            (c, Some(open)) if c == open => quote = None,
            _ => {}
        }
    }
    // A quote that nothing closes was none.
    match (quote, line.find('#')) {
        (Some(_), Some(at)) => &line[..at],
        _ => line,
    }
}

/// One field or one constant. `names` are those of the section so far: there may be tens of thousands.
fn statement<'a>(
    line: &'a str,
    package: &str,
    section: &mut Raw,
    names: &mut HashSet<&'a str>,
) -> Result<(), BadStatement> {
    let (ty, rest) =
        line.split_once(char::is_whitespace).ok_or_else(|| BadStatement::NoName(line.into()))?;
    let (element, shape) = field_type(ty, package)?;
    let rest = rest.trim();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (name, rest) = (&rest[..end], &rest[end..]);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(BadStatement::Name(line.into()));
    }
    if !names.insert(name) {
        return Err(BadStatement::Repeated(name.into()));
    }
    let value = rest.trim();
    if let Some(value) = value.strip_prefix('=') {
        let RawElement::Plain(element) = element else {
            return Err(BadStatement::ConstantMessage(name.into()));
        };
        if shape != Shape::Single {
            return Err(BadStatement::ConstantList(name.into()));
        }
        let value = literal(value.trim(), &element)
            .and_then(|value| Ok(fit(value, &FieldType::single(element.clone()))?))
            .map_err(|why| BadStatement::Constant { name: name.into(), why })?;
        section.constants.push(Constant { name: name.into(), element, value });
        return Ok(());
    }
    let default = match (&element, value) {
        (_, "") => None,
        _ if !rest.starts_with(char::is_whitespace) => {
            return Err(BadStatement::Trailing(line.into()));
        }
        (RawElement::Named(_), _) => {
            return Err(BadStatement::DefaultMessage(name.into()));
        }
        (RawElement::Plain(element), value) => {
            let ty = FieldType { element: element.clone(), shape };
            let given = match shape {
                Shape::Single => literal(value, element),
                _ => literals(value, element),
            };
            let value = given
                .and_then(|value| Ok(fit(value, &ty)?))
                .map_err(|why| BadStatement::Default { name: name.into(), why })?;
            Some(value)
        }
    };
    section.fields.push(RawField { name: name.into(), element, shape, default });
    Ok(())
}

/// `uint8[<=16]`, `string<=10[]`, `Pose`, `geometry_msgs/Pose[2]`.
fn field_type(text: &str, package: &str) -> Result<(RawElement, Shape), BadStatement> {
    let number = |digits: &str| match digits.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(BadStatement::Bound { ty: text.into(), bound: digits.into() }),
    };
    let (base, shape) = match text.strip_suffix(']') {
        None => (text, Shape::Single),
        Some(head) => {
            let (base, inside) =
                head.rsplit_once('[').ok_or_else(|| BadStatement::Bracket(text.into()))?;
            let shape = match inside.strip_prefix("<=") {
                Some(bound) => Shape::Bounded(number(bound)?),
                None if inside.is_empty() => Shape::Unbounded,
                None => Shape::Array(number(inside)?),
            };
            (base, shape)
        }
    };
    let (base, bound) = match base.split_once("<=") {
        Some((base, bound)) => (base, Some(number(bound)?)),
        None => (base, None),
    };
    let plain = match base {
        "bool" => Element::Bool,
        "byte" => Element::Byte,
        "char" | "uint8" => Element::U8,
        "int8" => Element::I8,
        "int16" => Element::I16,
        "uint16" => Element::U16,
        "int32" => Element::I32,
        "uint32" => Element::U32,
        "int64" => Element::I64,
        "uint64" => Element::U64,
        "float32" => Element::F32,
        "float64" => Element::F64,
        "string" => return Ok((RawElement::Plain(Element::Text { bound }), shape)),
        "wstring" => return Ok((RawElement::Plain(Element::WideText { bound }), shape)),
        name => {
            if bound.is_some() {
                return Err(BadStatement::BoundOfNoText(text.into()));
            }
            let name = match name.contains('/') {
                true => name.parse(),
                false => TypeName::new(package, Kind::Msg, name),
            };
            return Ok((RawElement::Named(name.map_err(BadStatement::Type)?), shape));
        }
    };
    if bound.is_some() {
        return Err(BadStatement::BoundOfNoText(text.into()));
    }
    Ok((RawElement::Plain(plain), shape))
}

/// `[1, 2, 3]`
fn literals(text: &str, element: &Element) -> Result<Value, BadLiteral> {
    let inside = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| BadLiteral::NoList(text.into()))?;
    let mut items = Vec::new();
    let mut rest = inside.trim();
    while !rest.is_empty() {
        let end = end_of_item(rest);
        items.push(literal(rest[..end].trim(), element)?);
        rest = rest[end..].trim_start_matches(',').trim();
    }
    Ok(Value::List(items))
}

/// Returns the position of the first comma outside of quotes, or the end.
fn end_of_item(text: &str) -> usize {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut quoted = quote.is_some();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(usize::from(quoted)) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            _ if quoted && Some(c) == quote => quoted = false,
            ',' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}

fn literal(text: &str, element: &Element) -> Result<Value, BadLiteral> {
    let wrong = || BadLiteral::Kind { text: text.into(), wanted: element.to_string() };
    match element {
        Element::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(wrong()),
        },
        Element::F32 | Element::F64 => text.parse().map(Value::Float).map_err(|_| wrong()),
        Element::Text { .. } | Element::WideText { .. } => Ok(Value::Text(unquoted(text))),
        Element::Message(_) => Err(wrong()),
        _ => integer(text).ok_or_else(wrong),
    }
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let magnitude = match lower.get(..2) {
        Some("0x") => i128::from_str_radix(&lower[2..], 16),
        Some("0o") => i128::from_str_radix(&lower[2..], 8),
        Some("0b") => i128::from_str_radix(&lower[2..], 2),
        _ => lower.parse(),
    };
    let n = if negative { -magnitude.ok()? } else { magnitude.ok()? };
    match u64::try_from(n) {
        Ok(n) => Some(Value::Uint(n)),
        Err(_) => i64::try_from(n).ok().map(Value::Int),
    }
}

/// The text within quotes with its escapes resolved, or the bare text.
fn unquoted(text: &str) -> String {
    let inside = ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
    let Some(inside) = inside else {
        return text.into();
    };
    let mut plain = String::with_capacity(inside.len());
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some(c @ ('\\' | '"' | '\'')) => plain.push(c),
                Some(other) => plain.extend(['\\', other]),
                None => plain.push('\\'),
            },
            (c, false) => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
