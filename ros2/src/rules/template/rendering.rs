//! From the pieces and a message to a text.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use omir_core::instant::Instant;

use super::{Format, Piece, Scene, Style, Template};
use crate::message::{Message, Value};
use crate::stamp::Stamp;

/// Longest text that a template makes, in bytes; of what is longer the beginning, and [`MORE`].
/// As many as go into one request take half of what that may have by default.
pub const MAX_TEXT: usize = 8 << 10;

/// Longest name.
const MAX_NAME: usize = 4096;

/// Most elements of a list that are written out; of a longer one those, and [`MORE`].
const MAX_ELEMENTS: usize = 64;

/// Stands where something was left out.
const MORE: &str = "…";

impl Template {
    /// The text. What is not there (an element of an empty list) leaves nothing in it.
    pub fn render(&self, scene: &Scene<'_>) -> String {
        let mut out = String::new();
        for piece in &self.0 {
            piece.render(scene, MORE, &mut out);
        }
        let text = out.trim();
        if text.len() <= MAX_TEXT {
            return text.to_owned();
        }
        cut(text, MAX_TEXT - MORE.len()).to_owned() + MORE
    }

    /// The text as a name: `None` if a field of it is not there or empty.
    pub fn render_name(&self, scene: &Scene<'_>) -> Option<String> {
        let mut out = String::new();
        for piece in &self.0 {
            let before = out.len();
            // A name does not mark a list that was cut: the thing has no other name for a longer one.
            piece.render(scene, "", &mut out);
            if out.len() == before {
                return None;
            }
        }
        let name = cut(out.trim(), MAX_NAME);
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

/// Between the elements of a list, and instead of those that are too many.
fn separate(index: usize, join: &str, more: &str, out: &mut String) -> ControlFlow<()> {
    let is_too_many = index == MAX_ELEMENTS;
    if index > 0 && !(is_too_many && more.is_empty()) {
        out.push_str(join);
    }
    if is_too_many {
        out.push_str(more);
        return ControlFlow::Break(());
    }
    ControlFlow::Continue(())
}

impl Piece {
    /// `more` stands where something was left out.
    fn render(&self, scene: &Scene<'_>, more: &str, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text),
            Self::Topic => out.push_str(scene.topic),
            Self::Node => out.push_str(scene.node.unwrap_or_default()),
            Self::Type => _ = write!(out, "{}", scene.whole.ty().name),
            Self::Field(field, format) => {
                let join = format.join.as_deref().unwrap_or(", ");
                let values = field.select(scene);
                for (index, value) in values.iter().enumerate() {
                    if separate(index, join, more, out).is_break() {
                        break;
                    }
                    if format.style == Style::Name
                        && let Some(name) = field.constant(scene, value)
                    {
                        out.push_str(name);
                    } else {
                        format.write(value, more, out);
                    }
                    if out.len() > MAX_TEXT {
                        return;
                    }
                }
            }
        }
    }
}

impl Format {
    fn write(&self, value: &Value, more: &str, out: &mut String) {
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
                if bytes.len() > MAX_ELEMENTS {
                    out.push_str(more);
                }
            }
            Value::Message(message) => self.write_message(message, more, out),
            many => {
                let items = (0..=MAX_ELEMENTS).map_while(|at| many.at(at));
                for (index, item) in items.enumerate() {
                    let join = self.join.as_deref().unwrap_or(", ");
                    if separate(index, join, more, out).is_break() {
                        break;
                    }
                    self.write(&item, more, out);
                }
            }
        }
    }

    /// A stamp as RFC 3339, any other message as its values.
    fn write_message(&self, message: &Message, more: &str, out: &mut String) {
        if let Some(stamp) = stamp_of(message) {
            _ = write!(out, "{}", Instant::from(stamp));
            return;
        }
        for (index, value) in message.values().iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            self.write(value, more, out);
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
pub(super) fn significant(number: f64, out: &mut String) {
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
pub(super) fn words(text: &str, out: &mut String) {
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
