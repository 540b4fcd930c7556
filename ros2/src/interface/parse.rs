//! The text of `.msg`, `.srv` and `.action` files, as `rosidl_adapter` reads it.
//!
//! Grammar: <https://docs.ros.org/en/jazzy/Concepts/Basic/About-Interfaces.html>.

use std::collections::HashSet;

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
            statement(line, name.package(), section, &mut names).map_err(bad)?;
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
) -> Result<(), String> {
    let (ty, rest) = line
        .split_once(char::is_whitespace)
        .ok_or_else(|| format!("`{line}` is a type without the name of a field"))?;
    let (element, shape) = field_type(ty, package)?;
    let rest = rest.trim();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let (name, rest) = (&rest[..end], &rest[end..]);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("`{line}`: a name is letters, digits and underscores"));
    }
    if !names.insert(name) {
        return Err(format!("`{name}` stands here a second time"));
    }
    let value = rest.trim();
    if let Some(value) = value.strip_prefix('=') {
        let RawElement::Plain(element) = element else {
            return Err(format!("the constant `{name}` cannot be a message"));
        };
        if shape != Shape::Single {
            return Err(format!("the constant `{name}` cannot be a list"));
        }
        let value = literal(value.trim(), &element)
            .and_then(|value| fit(value, &FieldType::single(element.clone())))
            .map_err(|why| format!("the constant `{name}`: {why}"))?;
        section.constants.push(Constant { name: name.into(), element, value });
        return Ok(());
    }
    let default = match (&element, value) {
        (_, "") => None,
        _ if !rest.starts_with(char::is_whitespace) => {
            return Err(format!("`{line}`: behind the name stands nothing, `=` or a default"));
        }
        (RawElement::Named(_), _) => {
            return Err(format!("the field `{name}` is a message and can have no default"));
        }
        (RawElement::Plain(element), value) => {
            let ty = FieldType { element: element.clone(), shape };
            let given = match shape {
                Shape::Single => literal(value, element),
                _ => literals(value, element),
            };
            let value = given
                .and_then(|value| fit(value, &ty))
                .map_err(|why| format!("the default of `{name}`: {why}"))?;
            Some(value)
        }
    };
    section.fields.push(RawField { name: name.into(), element, shape, default });
    Ok(())
}

/// `uint8[<=16]`, `string<=10[]`, `Pose`, `geometry_msgs/Pose[2]`.
fn field_type(text: &str, package: &str) -> Result<(RawElement, Shape), String> {
    let number = |digits: &str| match digits.parse::<usize>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("`{text}`: `{digits}` is no bound, it would be a number from 1")),
    };
    let (base, shape) = match text.strip_suffix(']') {
        None => (text, Shape::Single),
        Some(head) => {
            let (base, inside) =
                head.rsplit_once('[').ok_or_else(|| format!("`{text}` has a `]` without `[`"))?;
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
                return Err(format!("`{text}`: only string and wstring have a bound"));
            }
            let name = match name.contains('/') {
                true => name.parse(),
                false => TypeName::new(package, Kind::Msg, name),
            };
            let name = name.map_err(|why| format!("{why}, and no type of ROS itself either"))?;
            return Ok((RawElement::Named(name), shape));
        }
    };
    if bound.is_some() {
        return Err(format!("`{text}`: only string and wstring have a bound"));
    }
    Ok((RawElement::Plain(plain), shape))
}

/// `[1, 2, 3]`
fn literals(text: &str, element: &Element) -> Result<Value, String> {
    let inside = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .ok_or_else(|| format!("`{text}` is no list, which stands in [ and ]"))?;
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

fn literal(text: &str, element: &Element) -> Result<Value, String> {
    let wrong = || format!("`{text}` is no {element}");
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
mod tests {
    use super::*;

    fn message(text: &str) -> Result<Raw, String> {
        let name = "demo_msgs/msg/Demo".parse().unwrap();
        match sections(&name, "Demo.msg", text) {
            Ok(all) => Ok(all[0].clone()),
            Err(wrong) => Err(wrong.to_string()),
        }
    }

    fn constant(line: &str) -> Value {
        message(line).unwrap().constants[0].value.clone()
    }

    #[test]
    fn comments_and_quotes() {
        assert_eq!(constant("string A = bare text # and why"), "bare text".into());
        assert_eq!(constant("string A=\"a # b\" # c"), "a # b".into());
        assert_eq!(constant(r#"string A='it\'s "so"\n'"#), "it's \"so\"\n".into());
        assert_eq!(constant("string A=don't # ask"), "don't".into());
        assert_eq!(constant("string A=\""), "\"".into());
        assert!(message("   # nothing\n\n").unwrap().fields[0].name.contains("at_least_one"));
    }

    #[test]
    fn numbers_in_each_form() {
        assert_eq!(constant("int8 A=-128"), Value::Int(-128));
        assert_eq!(constant("uint64 A=0xFFFFFFFFFFFFFFFF"), Value::Uint(u64::MAX));
        assert_eq!(constant("int16 A = 0b101"), Value::Int(5));
        assert_eq!(constant("char A=0o17"), Value::Uint(15));
        assert_eq!(constant("float32 A=-1.5e3"), Value::Float(-1500.0));
        assert_eq!(constant("bool A=True"), Value::Bool(true));
    }

    #[test]
    fn shapes_and_bounds() {
        let raw = message("string<=5[<=3] a\ngeometry_msgs/Pose[2] b\nOther[] c").unwrap();
        let shapes: Vec<Shape> = raw.fields.iter().map(|field| field.shape).collect();
        assert_eq!(shapes, [Shape::Bounded(3), Shape::Array(2), Shape::Unbounded]);
        let named = |i: usize| match &raw.fields[i].element {
            RawElement::Named(name) => name.to_string(),
            RawElement::Plain(element) => element.to_string(),
        };
        assert_eq!(
            [named(0), named(1), named(2)].join(" "),
            "string<=5 geometry_msgs/msg/Pose demo_msgs/msg/Other"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        for (text, why) in [
            ("int8 a\nint8", "Demo.msg:2: `int8` is a type without the name of a field"),
            ("int8 a\nint8 a", "Demo.msg:2: `a` stands here a second time"),
            ("int8 A=128", "Demo.msg:1: the constant `A`: 128 is out of the range of int8"),
            ("int8 A=x", "Demo.msg:1: the constant `A`: `x` is no int8"),
            ("int8[] A=[1]", "Demo.msg:1: the constant `A` cannot be a list"),
            ("Pose A=1", "Demo.msg:1: the constant `A` cannot be a message"),
            ("Pose p 1", "Demo.msg:1: the field `p` is a message and can have no default"),
            ("int8[2] a [1]", "Demo.msg:1: the default of `a`: 1 values, and int8[2] has 2"),
            (
                "int8[] a 1",
                "Demo.msg:1: the default of `a`: `1` is no list, which stands in [ and ]",
            ),
            (
                "int8 a-b",
                "Demo.msg:1: `int8 a-b`: behind the name stands nothing, `=` or a default",
            ),
            ("int8<=3 a", "Demo.msg:1: `int8<=3`: only string and wstring have a bound"),
            ("int8[0] a", "Demo.msg:1: `int8[0]`: `0` is no bound, it would be a number from 1"),
            ("int8] a", "Demo.msg:1: `int8]` has a `]` without `[`"),
            ("---", "Demo.msg:1: a message has no `---`"),
        ] {
            assert_eq!(message(text).unwrap_err(), why);
        }
        let wrong = message("uint9 a").unwrap_err();
        assert!(wrong.starts_with("Demo.msg:1: `demo_msgs/msg/uint9` is not the name"), "{wrong}");
        let service = "demo_msgs/srv/Demo".parse().unwrap();
        let wrong = sections(&service, "Demo.srv", "int8 a\n").unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "Demo.srv:1: a service needs `---` between request and response"
        );
    }
}
