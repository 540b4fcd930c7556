//! Schemas in the form `ros2idl`: what of OMG IDL 4.2 `rosidl` uses for messages.
//!
//! Structures, type definitions, sequences, arrays, bounded strings; constants, annotations and
//! comments are passed over. Each structure becomes the text of a `.msg` file, which the registry reads.

use std::collections::BTreeMap;

use crate::interface::{InterfaceError, Registry, TypeName};

/// Modules within modules.
const DEEPEST: usize = 32;
const NESTED: &str = "a sequence of sequences, which ROS does not have";

/// Adds all types that a schema defines.
pub(super) fn add(
    registry: &mut Registry,
    name: &TypeName,
    text: &str,
) -> Result<(), InterfaceError> {
    let bad = |(line, why)| InterfaceError::Text { file: format!("{name}.idl"), line, why };
    for (name, text) in structures(text).map_err(bad)? {
        registry.add_text(&name, &text)?;
    }
    Ok(())
}

/// A line and what is wrong in it.
type Fault = (usize, String);

fn structures(text: &str) -> Result<Vec<(TypeName, String)>, Fault> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, types: BTreeMap::new(), found: Vec::new() };
    while parser.peek().is_some() {
        parser.definition(&mut Vec::new())?;
    }
    Ok(parser.found)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name, a keyword or a number; `::` within it.
    Word(String),
    /// A literal in quotes.
    Text,
    /// Anything else.
    Sign(char),
}

/// The contents of each line, with its number.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Fault> {
    let mut tokens = Vec::new();
    let mut in_comment = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let is_separator = trimmed.len() >= 40 && trimmed.trim_end().bytes().all(|b| b == b'=');
        if !in_comment
            && (is_separator || trimmed.starts_with(['#']) || trimmed.starts_with("IDL:"))
        {
            continue;
        }
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            if in_comment {
                match rest.split_once("*/") {
                    Some((_, behind)) => (rest, in_comment) = (behind, false),
                    None => break,
                }
            } else if rest.starts_with("//") {
                break;
            } else if let Some(behind) = rest.strip_prefix("/*") {
                (rest, in_comment) = (behind, true);
            } else if matches!(first, '"' | '\'') {
                let inside = &rest[1..];
                let end = closing(inside, first)
                    .ok_or_else(|| (index + 1, "a quote that nothing closes".to_owned()))?;
                tokens.push((index + 1, Token::Text));
                rest = &inside[end + 1..];
            } else if is_word(first) {
                let mut end = 0;
                loop {
                    end += rest[end..].find(|c| !is_word(c)).unwrap_or(rest.len() - end);
                    if !rest[end..].starts_with("::") {
                        break;
                    }
                    end += 2;
                }
                tokens.push((index + 1, Token::Word(rest[..end].to_owned())));
                rest = &rest[end..];
            } else {
                if !first.is_whitespace() {
                    tokens.push((index + 1, Token::Sign(first)));
                }
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// A type as a `.msg` file writes it: `float64` and `[36]`.
#[derive(Clone, Debug)]
struct Written {
    element: String,
    shape: String,
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
    /// Types defined by `typedef`, by full name.
    types: BTreeMap<String, Written>,
    found: Vec<(TypeName, String)>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn fault<T>(&self, why: impl Into<String>) -> Result<T, Fault> {
        let last = || self.tokens.last();
        let line = self.tokens.get(self.at).or_else(last).map_or(1, |(line, _)| *line);
        Err((line, why.into()))
    }

    fn is_next(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    fn take(&mut self, sign: char) -> bool {
        let is = self.is_next(sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: char) -> Result<(), Fault> {
        if self.take(sign) { Ok(()) } else { self.fault(format!("`{sign}` is missing here")) }
    }

    fn word(&mut self) -> Result<String, Fault> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => self.fault("a name is missing here"),
        }
    }

    /// `@name` or `@name(…)`, any number of them.
    fn annotations(&mut self) -> Result<(), Fault> {
        while self.take('@') {
            self.word()?;
            if self.is_next('(') {
                let mut open = 0usize;
                loop {
                    match self.peek() {
                        Some(Token::Sign('(')) => open += 1,
                        Some(Token::Sign(')')) => open -= 1,
                        Some(_) => {}
                        None => return self.fault("a `)` is missing"),
                    }
                    self.at += 1;
                    if open == 0 {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn definition(&mut self, modules: &mut Vec<String>) -> Result<(), Fault> {
        self.annotations()?;
        match self.word()?.as_str() {
            "module" => {
                let name = self.word()?;
                modules.push(name);
                if modules.len() > DEEPEST {
                    return self.fault("modules are nested too deeply");
                }
                self.expect('{')?;
                while !self.take('}') {
                    self.definition(modules)?;
                }
                modules.pop();
            }
            "struct" => self.structure(modules)?,
            "typedef" => {
                let ty = self.ty(modules)?;
                let (name, ty) = self.declarator(ty)?;
                self.types.insert(scoped(modules, &name), ty);
            }
            "const" => {
                while !self.is_next(';') && self.peek().is_some() {
                    self.at += 1;
                }
            }
            other => return self.fault(format!("`{other}` is nothing that ROS uses")),
        }
        self.expect(';')
    }

    fn structure(&mut self, modules: &[String]) -> Result<(), Fault> {
        let name = self.word()?;
        let name = match scoped(modules, &name).replace("::", "/").parse::<TypeName>() {
            Ok(name) => name,
            Err(why) => return self.fault(why.to_string()),
        };
        self.expect('{')?;
        let mut text = String::new();
        while !self.take('}') {
            self.annotations()?;
            let ty = self.ty(modules)?;
            loop {
                let (field, ty) = self.declarator(ty.clone())?;
                text.push_str(&format!("{}{} {field}\n", ty.element, ty.shape));
                if !self.take(',') {
                    break;
                }
            }
            self.expect(';')?;
        }
        self.found.push((name, text));
        Ok(())
    }

    /// A name, with the size of an array behind it.
    fn declarator(&mut self, ty: Written) -> Result<(String, Written), Fault> {
        let name = self.word()?;
        if !self.take('[') {
            return Ok((name, ty));
        }
        let size = self.word()?;
        self.expect(']')?;
        if !ty.shape.is_empty() || self.is_next('[') {
            return self.fault("an array of arrays, which ROS does not have");
        }
        Ok((name, Written { shape: format!("[{size}]"), ..ty }))
    }

    fn ty(&mut self, modules: &[String]) -> Result<Written, Fault> {
        self.annotations()?;
        let word = self.word()?;
        let plain = |element: &str| Ok(Written { element: element.into(), shape: String::new() });
        match word.as_str() {
            "sequence" => {
                self.expect('<')?;
                self.annotations()?;
                // At once: a thousand of them in a row would not fit on the stack.
                if self.take_word("sequence") {
                    return self.fault(NESTED);
                }
                let inner = self.ty(modules)?;
                let bound =
                    if self.take(',') { format!("<={}", self.word()?) } else { String::new() };
                self.expect('>')?;
                if !inner.shape.is_empty() {
                    return self.fault(NESTED);
                }
                Ok(Written { shape: format!("[{bound}]"), ..inner })
            }
            "string" | "wstring" if self.take('<') => {
                let bound = self.word()?;
                self.expect('>')?;
                plain(&format!("{word}<={bound}"))
            }
            "unsigned" => match self.word()?.as_str() {
                "short" => plain("uint16"),
                "long" => plain(if self.take_word("long") { "uint64" } else { "uint32" }),
                other => self.fault(format!("`unsigned {other}` is no type")),
            },
            "long" if self.take_word("long") => plain("int64"),
            "long" if self.take_word("double") => self.fault("long double, which is not read"),
            "long" => plain("int32"),
            "short" => plain("int16"),
            "boolean" => plain("bool"),
            "octet" => plain("byte"),
            "float" => plain("float32"),
            "double" => plain("float64"),
            "wchar" => self.fault("wchar, which is not read"),
            "string" | "wstring" | "char" | "int8" | "uint8" | "int16" | "uint16" | "int32"
            | "uint32" | "int64" | "uint64" => plain(&word),
            name => match self.defined(name, modules) {
                Some(written) => Ok(written.clone()),
                None if name.contains("::") => plain(&name.replace("::", "/")),
                None => plain(&scoped(modules, name).replace("::", "/")),
            },
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(is);
        is
    }

    /// Looks up a `typedef` in this module or one around it.
    fn defined(&self, name: &str, modules: &[String]) -> Option<&Written> {
        let name = name.trim_start_matches("::");
        (0..=modules.len()).rev().find_map(|depth| self.types.get(&scoped(&modules[..depth], name)))
    }
}

fn scoped(modules: &[String], name: &str) -> String {
    let parts: Vec<&str> = modules.iter().map(String::as_str).chain([name]).collect();
    parts.join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `rosidl_adapter` and people write it.
    const TEXT: &str = r#"
================================================================================
IDL: my_msgs/msg/Thing
// generated from rosidl_adapter/resource/msg.idl.em
#include "geometry_msgs/msg/Pose.idl"
module my_msgs {
  module msg {
    typedef double double__36[36];
    typedef sequence<my_msgs::msg::Part, 3> parts_t;
    module Thing_Constants {
      const uint8 KIND_A = 1;
      @verbatim (language="comment", text="with a ; and a \" in it" "and more")
      const string NAME = "x;y";
    };
    @verbatim (language="comment", text=
      "A thing // no comment")
    struct Thing {
      @default (value=1.5)
      double weight; /* in
      kilograms */
      double__36 covariance;
      parts_t parts;
      sequence<unsigned long> counts;
      string<=8> nothing;
    };
  };
};
"#;

    fn fixed() -> String {
        TEXT.replace(
            "string<=8> nothing",
            "string<8> label, other;\n long long big; boolean on;\n geometry_msgs::msg::Pose pose",
        ) + "================================================================================\n\
               IDL: my_msgs/msg/Part\nmodule my_msgs { module msg { struct Part { octet raw; }; }; };\n"
    }

    #[test]
    fn a_structure_is_the_same_as_its_msg_file() {
        let name: TypeName = "my_msgs/msg/Thing".parse().unwrap();
        let mut by_idl = Registry::standard();
        add(&mut by_idl, &name, &fixed()).unwrap();
        let mut by_msg = Registry::standard();
        let text = "float64 weight\nfloat64[36] covariance\nPart[<=3] parts\nuint32[] counts\n\
                    string<=8 label\nstring<=8 other\nint64 big\nbool on\ngeometry_msgs/Pose pose";
        by_msg.add_text(&name, text).unwrap();
        by_msg.add_text(&"my_msgs/msg/Part".parse().unwrap(), "byte raw").unwrap();
        let [a, b] = [by_idl, by_msg].map(|all| all.message("my_msgs/msg/Thing").unwrap());
        assert_eq!(a.hash, b.hash);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, line, why) in [
            (TEXT, 24, "a name is missing"),
            ("module a {\n  union X {};\n};", 2, "`union` is nothing"),
            ("module a { module msg { struct X { long double y; }; }; };", 1, "long double"),
            (
                "module a { module msg {\nstruct X { sequence<sequence<long>> y; }; }; };",
                2,
                "sequences",
            ),
            ("module a { module msg {\nstruct X { long y[2][3]; }; }; };", 2, "array of arrays"),
            ("struct X", 1, "is not the name of a type"),
            ("@a(", 1, "`)` is missing"),
            ("\n\"x", 2, "a quote"),
            ("é", 1, "a name is missing"),
        ] {
            let (at, found) = structures(text).unwrap_err();
            assert!(at == line && found.contains(why), "{text}: {at}: {found}");
        }
        let deep = "module a {".repeat(100_000);
        assert!(structures(&deep).is_err());
        for open in ["sequence<", "sequence<@a "] {
            let deep = format!("module a {{ module msg {{ struct X {{ {}", open.repeat(1_000_000));
            assert!(structures(&deep).unwrap_err().1.contains("sequence of sequences"));
        }
    }
}
