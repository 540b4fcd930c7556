//! From a text to its pieces, or why it is no template.

use std::fmt;
use std::str::FromStr;

use super::{Format, Piece, Style, Template};

/// A text that is no template.
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
