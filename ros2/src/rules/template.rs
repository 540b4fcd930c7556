//! Texts with fields of a message in them: `{name}: {msg}`, `battery at {percentage:.0%}`.
//!
//! | | |
//! |---|---|
//! | `{pose.position.x}` | the field at that path; a list of `[*]` is joined by commas |
//! | `{x:.2}` | with two decimals; without, six significant digits |
//! | `{percentage:.0%}` | times a hundred, with a percent sign |
//! | `{yaw:.1deg}` | radians as degrees |
//! | `{level:name}` | the name of the constant of that value, as in `WARN` |
//! | `{msg:words}` | every number or address in it as `#`: the same words for each reading |
//! | `{values[*]:.1 join( / )}` | a list with something else between its elements |
//! | `{^header.frame_id}` | in a rule with `each`: from the whole message, not the element |
//! | `{@topic}` `{@node}` `{@type}` | where the message came from |
//! | `{{` `}}` | the braces themselves |

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use omir_core::instant::Instant;

use crate::interface::{FieldType, MessageType};
use crate::message::{FieldPath, Message, PathError, Value};
use crate::stamp::Stamp;

/// Longest text that a template makes, in bytes; what is longer is cut.
pub const MAX_TEXT: usize = 4096;

/// Most elements of a list that are written out.
const MAX_ELEMENTS: usize = 64;

/// What a rule looks at: one message, or one element of a list in it.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The message as it came.
    pub whole: &'a Message,
    /// The element a rule with `each` is at; otherwise the message again.
    pub element: &'a Message,
    /// The topic.
    pub topic: &'a str,
    /// The node that published it, as far as that is known.
    pub node: Option<&'a str>,
}

/// A field of the element, or with `^` of the whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRef {
    of_whole: bool,
    path: FieldPath,
}

impl FieldRef {
    /// The values it leads to.
    pub fn select<'a>(&self, scene: &Scene<'a>) -> Vec<Cow<'a, Value>> {
        let message = if self.of_whole { scene.whole } else { scene.element };
        message.select(&self.path)
    }

    /// The first value it leads to, as a number.
    pub fn number(&self, scene: &Scene<'_>) -> Option<f64> {
        let value = self.select(scene).into_iter().next()?;
        value.as_f64().or_else(|| value.as_bool().map(f64::from))
    }

    /// Whether types of that form have the field.
    ///
    /// # Errors
    /// Says from where on they do not.
    pub fn check(&self, types: Types<'_>) -> Result<(), PathError> {
        self.ty(types).map(|_| ())
    }

    /// The type of what it leads to.
    ///
    /// # Errors
    /// Says from where on types of that form do not have it.
    pub fn ty(&self, types: Types<'_>) -> Result<FieldType, PathError> {
        self.path.check(if self.of_whole { types.whole } else { types.element })
    }

    /// The path alone.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// Whether it is a field of the whole message.
    pub fn is_of_whole(&self) -> bool {
        self.of_whole
    }
}

impl FromStr for FieldRef {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let (of_whole, path) = match text.strip_prefix('^') {
            Some(path) => (true, path),
            None => (false, text),
        };
        Ok(Self { of_whole, path: path.parse()? })
    }
}

/// The types of a [`Scene`].
#[derive(Debug, Clone, Copy)]
pub struct Types<'a> {
    /// That of the message.
    pub whole: &'a Arc<MessageType>,
    /// That of the element.
    pub element: &'a Arc<MessageType>,
}

/// A text with fields in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Field(FieldRef, Format),
    Topic,
    Node,
    Type,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Format {
    decimals: Option<usize>,
    style: Style,
    join: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Style {
    #[default]
    Plain,
    Percent,
    Degrees,
    Name,
    Words,
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let Some(field) = from.strip_prefix('{') else {
                return Err(TemplateError("a } without a {; write }} for the brace".into()));
            };
            let Some((field, after)) = field.split_once('}') else {
                return Err(TemplateError("a { without a }; write {{ for the brace".into()));
            };
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::parse(field)?);
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }
}

impl Piece {
    fn parse(text: &str) -> Result<Self, TemplateError> {
        let (path, format) = text.split_once(':').unwrap_or((text, ""));
        match path.trim() {
            "@topic" => return Ok(Self::Topic),
            "@node" => return Ok(Self::Node),
            "@type" => return Ok(Self::Type),
            other if other.starts_with('@') => {
                let message = format!("{{{other}}} is none of {{@topic}}, {{@node}}, {{@type}}");
                return Err(TemplateError(message));
            }
            _ => {}
        }
        let field = path.trim().parse().map_err(|e| TemplateError(format!("{{{text}}}: {e}")))?;
        let format = Format::parse(format).ok_or_else(|| {
            TemplateError(format!(
                "{{{text}}}: after the colon stands .2, .0%, .1deg, name or words, and join(, )"
            ))
        })?;
        Ok(Self::Field(field, format))
    }
}

impl Format {
    fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut style = text.trim();
        if let Some((before, join)) = text.split_once("join(") {
            format.join = Some(join.trim_end().strip_suffix(')')?.to_owned());
            style = before.trim();
        }
        if let Some(digits) = style.strip_prefix('.') {
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let decimals: usize = digits[..end].parse().ok()?;
            format.decimals = Some(decimals).filter(|decimals| *decimals <= 12);
            format.decimals?;
            style = &digits[end..];
        }
        format.style = match style {
            "" => Style::Plain,
            "%" => Style::Percent,
            "deg" => Style::Degrees,
            "name" if format.decimals.is_none() => Style::Name,
            "words" if format.decimals.is_none() => Style::Words,
            _ => return None,
        };
        Some(format)
    }
}

impl Template {
    /// The text of one field.
    pub fn of_field(field: FieldRef) -> Self {
        Self(vec![Piece::Field(field, Format::default())])
    }

    /// Whether types of that form have all the fields.
    ///
    /// # Errors
    /// The first they do not have.
    pub fn check(&self, types: Types<'_>) -> Result<(), PathError> {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Field(field, _) => field.check(types),
            _ => Ok(()),
        })
    }

    /// The text. What is not there (an element of an empty list) leaves nothing in it.
    pub fn render(&self, scene: &Scene<'_>) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            piece.render(scene, &mut out);
        }
        cut(out.trim(), MAX_TEXT).to_owned()
    }

    /// The text as a name: `None` if a field of it is not there or empty.
    pub fn render_name(&self, scene: &Scene<'_>) -> Option<String> {
        let mut out = String::new();
        for piece in &self.0 {
            let before = out.len();
            piece.render(scene, &mut out);
            if out.len() == before {
                return None;
            }
        }
        let name = cut(out.trim(), MAX_TEXT);
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// The beginning of a text, of whole characters.
fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Piece {
    fn render(&self, scene: &Scene<'_>, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Topic => out.push_str(scene.topic),
            Self::Node => out.push_str(scene.node.unwrap_or_default()),
            Self::Type => _ = write!(out, "{}", scene.whole.ty().name),
            Self::Field(field, format) => {
                let join = format.join.as_deref().unwrap_or(", ");
                let values = field.select(scene);
                for (index, value) in values.iter().take(MAX_ELEMENTS).enumerate() {
                    if index > 0 {
                        out.push_str(join);
                    }
                    if format.style == Style::Name
                        && let Some(name) = field.constant(scene, value)
                    {
                        out.push_str(name);
                    } else {
                        format.write(value, out);
                    }
                    if out.len() > MAX_TEXT {
                        return;
                    }
                }
            }
        }
    }
}

impl FieldRef {
    /// The name of the constant with that value beside the field: `WARN` for `level`. Where several
    /// have it, the one that begins as the field is called (`POWER_SUPPLY_STATUS_FULL`).
    fn constant<'a>(&self, scene: &Scene<'a>, value: &Value) -> Option<&'a str> {
        let message = if self.of_whole { scene.whole } else { scene.element };
        let path = self.path.to_string();
        let (ty, field) = match path.rsplit_once('.') {
            None => (message.ty(), path.as_str()),
            Some((parent, field)) => {
                let parent: FieldPath = parent.parse().ok()?;
                let Cow::Borrowed(Value::Message(parent)) = *message.select(&parent).first()?
                else {
                    return None;
                };
                (parent.ty(), field)
            }
        };
        let number = value.as_i64()?;
        let prefix = format!("{}_", field.to_ascii_uppercase());
        let named = |name: &&str| name.strip_prefix(&prefix).is_some();
        let mut names = ty
            .constants
            .iter()
            .filter(|constant| constant.value.as_i64() == Some(number))
            .map(|constant| constant.name.as_str());
        match names.clone().find(named) {
            Some(name) => name.strip_prefix(&prefix),
            None => names.next(),
        }
    }
}

impl Format {
    fn write(&self, value: &Value, out: &mut String) {
        let scale = match self.style {
            Style::Percent => 100.0,
            Style::Degrees => 1.0_f64.to_degrees(),
            Style::Plain | Style::Name | Style::Words => 1.0,
        };
        match value {
            Value::Text(text) if self.style == Style::Words => words(text, out),
            Value::Text(text) => out.push_str(text),
            Value::Bool(truth) => _ = write!(out, "{truth}"),
            Value::Int(_) | Value::Uint(_) if scale == 1.0 && self.decimals.is_none() => {
                match (value.as_i64(), value.as_u64()) {
                    (Some(int), _) => _ = write!(out, "{int}"),
                    (None, int) => _ = write!(out, "{}", int.unwrap_or_default()),
                }
            }
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
                let number = value.as_f64().unwrap_or(f64::NAN) * scale;
                match self.decimals {
                    Some(decimals) => _ = write!(out, "{number:.decimals$}"),
                    None => significant(number, out),
                }
                if self.style == Style::Percent {
                    out.push('%');
                }
            }
            Value::Bytes(bytes) => {
                for byte in bytes.iter().take(MAX_ELEMENTS) {
                    _ = write!(out, "{byte:02x}");
                }
            }
            Value::Message(message) => self.write_message(message, out),
            many => {
                let items = (0..MAX_ELEMENTS).map_while(|at| many.at(at));
                for (index, item) in items.enumerate() {
                    if index > 0 {
                        out.push_str(self.join.as_deref().unwrap_or(", "));
                    }
                    self.write(&item, out);
                }
            }
        }
    }

    /// A stamp as RFC 3339, any other message as its values.
    fn write_message(&self, message: &Message, out: &mut String) {
        if let Some(stamp) = stamp_of(message) {
            _ = write!(out, "{}", Instant::from(stamp));
            return;
        }
        for (index, value) in message.values().iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            self.write(value, out);
            if out.len() > MAX_TEXT {
                return;
            }
        }
    }
}

/// The moment that a `builtin_interfaces/Time` says.
pub fn stamp_of(message: &Message) -> Option<Stamp> {
    let name = &message.ty().name;
    if (name.package(), name.name()) != ("builtin_interfaces", "Time") {
        return None;
    }
    let sec = i32::try_from(message.field("sec")?.as_i64()?).ok()?;
    let nanosec = u32::try_from(message.field("nanosec")?.as_u64()?).ok()?;
    Some(Stamp::from_ros(sec, nanosec))
}

/// A number with six significant digits, without zeros at the end. A `float32` of 0.1 is 0.1.
fn significant(number: f64, out: &mut String) {
    const DIGITS: i32 = 6;
    if !number.is_finite() {
        _ = write!(out, "{number}");
        return;
    }
    let magnitude = if number == 0.0 { 0 } else { number.abs().log10().floor() as i32 };
    let text = if (-5..16).contains(&magnitude) {
        let decimals = usize::try_from(DIGITS - 1 - magnitude).unwrap_or(0);
        format!("{number:.decimals$}")
    } else {
        format!("{number:.5e}")
    };
    match text.split_once('e') {
        Some((mantissa, exponent)) => _ = write!(out, "{}e{exponent}", trimmed(mantissa)),
        None => out.push_str(trimmed(&text)),
    }
}

fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A text with `#` for each number; of a decimal number the point belongs to it. A run of at least four
/// hexadecimal digits with a decimal one among them is an address or a hash, and as much a number.
fn words(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_run = |c: char| c.is_ascii_alphanumeric();
        let (run, after) = rest.split_at(rest.find(|c| !is_run(c)).unwrap_or(rest.len()));
        if run.is_empty() {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        rest = after;
        let digits = run.strip_prefix("0x").unwrap_or(run);
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit())
            && digits.bytes().any(|b| b.is_ascii_digit())
            && (digits.len() >= 4 || digits.len() < run.len());
        if is_hex {
            out.push('#');
        } else {
            digits_as_one(run, out);
        }
        // The fraction of a decimal number.
        if run.ends_with(|c: char| c.is_ascii_digit())
            && let Some(fraction) = rest.strip_prefix('.')
        {
            let end = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
            rest = if end > 0 { &fraction[end..] } else { rest };
        }
    }
}

/// Letters as they are, and `#` for each run of digits.
fn digits_as_one(run: &str, out: &mut String) {
    let mut in_number = false;
    for letter in run.chars() {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            out.push(letter);
        } else if !in_number {
            out.push('#');
        }
        in_number = is_digit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Registry;

    fn registry() -> Registry {
        let mut registry = Registry::standard();
        registry
            .add_text(
                &"my_msgs/msg/Reading".parse().unwrap(),
                "uint8 GOOD=1\nuint8 STATE_LOST=1\nuint8 STATE_FOUND=2\n\
                 builtin_interfaces/Time stamp\nstring label\nuint8 state\nuint8 quality\n\
                 float32 share\nfloat64[] values\nstring[] names\nbool on\nuint8[4] uuid\nint64 n\n\
                 geometry_msgs/Point at\n",
            )
            .unwrap();
        registry
    }

    fn reading() -> Message {
        let mut message = Message::new(&registry().message("my_msgs/msg/Reading").unwrap());
        message.set("label", "door 12 opened 3.50 m, 7.").unwrap();
        message.set("share", 0.1_f32).unwrap();
        message.set("values", vec![1.0, 2.25, -3.0e-9]).unwrap();
        message.set("names", vec!["a".to_owned(), "b".to_owned()]).unwrap();
        message.set("state", 2_u8).unwrap();
        message.set("quality", 1_u8).unwrap();
        message.set("on", true).unwrap();
        message.set("uuid", vec![0xde_u8, 0xad, 0, 1]).unwrap();
        message.set("n", i64::MIN).unwrap();
        message.set("stamp.sec", 1_780_141_325).unwrap();
        message.set("at.x", 1.5).unwrap();
        message
    }

    fn render(text: &str) -> String {
        let template: Template = text.parse().unwrap();
        let message = reading();
        template
            .check(Types { whole: message.ty(), element: message.ty() })
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        template.render(&Scene {
            whole: &message,
            element: &message,
            topic: "/r",
            node: Some("/n"),
        })
    }

    #[test]
    fn every_form_by_hand() {
        for (template, text) in [
            ("{share}", "0.1"),
            ("{share:.3}", "0.100"),
            ("{share:.0%}", "10%"),
            ("{share:%}", "10%"),
            ("{at.x:.1deg}", "85.9"),
            ("{at}", "1.5 0 0"),
            ("{values}", "1, 2.25, -3e-9"),
            ("{values[*]:.1 join( / )}", "1.0 / 2.2 / -0.0"),
            ("{values[1]} {names[1]} {names[7]}!", "2.25 b !"),
            ("{names[*]}", "a, b"),
            ("{names:join(+)}", "a+b"),
            ("{state:name} {quality:name}", "FOUND GOOD"),
            ("{label:words}", "door # opened # m, #."),
            ("{{{on}}}", "{true}"),
            ("{uuid}", "dead0001"),
            ("{n} {stamp}", "-9223372036854775808 2026-05-30T11:42:05Z"),
            ("{@node} {@topic} {@type} {^state}", "/n /r my_msgs/msg/Reading 2"),
            ("  no field  ", "no field"),
        ] {
            assert_eq!(render(template), text, "{template}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part) in [
            ("{a", "a { without a }"),
            ("a}", "a } without a {"),
            ("{a..b}", "{a..b}: a..b: a path is names"),
            ("{}", "{}: : a path"),
            ("{x:.2f}", "{x:.2f}: after the colon"),
            ("{x:.99}", "after the colon"),
            ("{x:join(}", "after the colon"),
            ("{@robot}", "{@robot} is none of"),
        ] {
            let error = text.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let message = reading();
        let template: Template = "{share} {colour}".parse().unwrap();
        let error =
            template.check(Types { whole: message.ty(), element: message.ty() }).unwrap_err();
        assert_eq!(error.path, "colour");
    }

    #[test]
    fn a_name_is_whole_or_not_there() {
        let message = reading();
        let scene = Scene { whole: &message, element: &message, topic: "/r", node: None };
        let name = |text: &str| text.parse::<Template>().unwrap().render_name(&scene);
        assert_eq!(name("{names[0]}-{state}").as_deref(), Some("a-2"));
        assert_eq!(name("{names[2]}-{state}"), None);
        assert_eq!(name("{@node}"), None);
        assert_eq!(name("dock").as_deref(), Some("dock"));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut message = reading();
        message.set("label", format!("a{}", "ä".repeat(MAX_TEXT))).unwrap();
        let scene = Scene { whole: &message, element: &message, topic: "/r", node: None };
        let text = "{label}{label}".parse::<Template>().unwrap().render(&scene);
        assert!(text.len() <= MAX_TEXT && text.len() > MAX_TEXT - 4);
    }

    #[test]
    fn words_are_the_same_for_each_reading() {
        let plain = |text: &str| {
            let mut out = String::new();
            words(text, &mut out);
            out
        };
        for (text, expected) in [
            ("took 3.25 s, 14 s", "took # s, # s"),
            ("at 0x7ffe3a, id 5f3ac9d1.", "at #, id #."),
            ("wheel_left2 of arm12b", "wheel_left# of arm#b"),
            ("dead face 12:30:45", "dead face #:#:#"),
            ("v1.2.3", "v#.#"),
            ("12.", "#."),
            ("größe 7 µm", "größe # µm"),
            ("", ""),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn six_digits_are_significant() {
        let show = |number: f64| {
            let mut out = String::new();
            significant(number, &mut out);
            out
        };
        for (number, text) in [
            (0.0, "0"),
            (-0.5, "-0.5"),
            (999_999.9, "1000000"),
            (0.000_123_456_7, "0.000123457"),
            (1.0e-7, "1e-7"),
            (1.5e300, "1.5e300"),
            (123_456_789.0, "123456789"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(show(number), text);
        }
    }
}
