//! Lines that a person types: the command that each means.

use omird_engine::{Code, Error};
use omird_router::Method;

use crate::methods::{DOCUMENT, EVENTS, GET, RECALL, STATUS};
use crate::params::Parameters;

/// A line that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The list of commands.
    Help,
    /// The status.
    Status,
    /// A list of what parameters select.
    List(Parameters),
    /// One resource.
    Get(String),
    /// A recall.
    Recall(Parameters),
    /// Events.
    Tail,
    /// A document.
    Dump(Parameters),
    /// A document as a file, named as at a shell.
    Sz(Parameters),
}

impl Command {
    /// Returns the method that it asks for. `help` asks the memory for nothing.
    pub fn method(&self) -> Option<&'static Method> {
        match self {
            Command::Help => None,
            Command::Status => Some(&STATUS),
            Command::List(_) | Command::Recall(_) => Some(&RECALL),
            Command::Get(_) => Some(&GET),
            Command::Tail => Some(&EVENTS),
            Command::Dump(_) | Command::Sz(_) => Some(&DOCUMENT),
        }
    }

    /// Reads a line. `None` if the line is empty.
    ///
    /// # Errors
    /// `INVALID_QUERY`; the message says which commands there are.
    pub fn parse(line: &str) -> Result<Option<Command>, Error> {
        let mut words = split(line).into_iter();
        let Some((name, _)) = words.next() else { return Ok(None) };
        let (mut parameters, mut text) = (Vec::new(), Vec::new());
        for (word, quoted) in words {
            match word.split_once('=') {
                Some((name, value)) if !quoted => {
                    parameters.push((name.to_owned(), value.to_owned()))
                }
                _ => text.push(word),
            }
        }
        let refuse = |message: String| Err(Error::new(Code::InvalidQuery, message));
        let plain = |command| match (text.first(), parameters.first()) {
            (None, None) => Ok(Some(command)),
            _ => refuse(format!("`{name}` takes nothing after it")),
        };
        let filtered = |command: fn(Parameters) -> Command| match text.first() {
            None => Ok(Some(command(parameters.clone()))),
            Some(word) => refuse(format!("{word:?} is no filter such as type=Entity")),
        };
        match name.as_str() {
            "help" | "?" => plain(Command::Help),
            "status" => plain(Command::Status),
            "tail" => plain(Command::Tail),
            "ls" => filtered(Command::List),
            "dump" => filtered(Command::Dump),
            "sz" => filtered(Command::Sz),
            "get" => match (&text[..], parameters.is_empty()) {
                ([target], true) => Ok(Some(Command::Get(target.clone()))),
                _ => refuse("`get` takes one reference, such as Entity/dock".to_owned()),
            },
            "recall" => {
                if !text.is_empty() {
                    parameters.push(("q".to_owned(), text.join(" ")));
                }
                Ok(Some(Command::Recall(parameters)))
            }
            _ => refuse(format!("unknown command {name:?}; `help` tells what there is")),
        }
    }
}

/// Splits a line into words, and tells of each if it was in quotes.
fn split(line: &str) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after, quoted) = if first == '"' {
            let inner = &rest[1..];
            let end = inner.find('"').unwrap_or(inner.len());
            (&inner[..end], inner.get(end + 1..).unwrap_or_default(), true)
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (&rest[..end], &rest[end..], false)
        };
        all.push((word.to_owned(), quoted));
        rest = after.trim_start();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Command {
        Command::parse(line).unwrap().unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Parameters {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn lines_are_commands() {
        assert_eq!(Command::parse("  "), Ok(None));
        assert_eq!(parse(" help "), Command::Help);
        assert_eq!(parse("get Entity/dock"), Command::Get("Entity/dock".to_owned()));
        assert_eq!(
            parse("recall red  charger near=1,2 radius=3"),
            Command::Recall(pairs(&[("near", "1,2"), ("radius", "3"), ("q", "red charger")]))
        );
        assert_eq!(parse(r#"recall "a=b" "c d""#), Command::Recall(pairs(&[("q", "a=b c d")])));
        assert_eq!(parse("ls type=Entity"), Command::List(pairs(&[("type", "Entity")])));
        assert_eq!(parse("dump"), Command::Dump(vec![]));
        assert_eq!(parse("sz type=Entity"), Command::Sz(pairs(&[("type", "Entity")])));
        let says = |line: &str| Command::parse(line).unwrap_err().message;
        assert_eq!(says("rm -rf"), "unknown command \"rm\"; `help` tells what there is");
        assert_eq!(says("status now"), "`status` takes nothing after it");
        assert_eq!(says("get"), "`get` takes one reference, such as Entity/dock");
        assert_eq!(says("dump all"), "\"all\" is no filter such as type=Entity");
        assert_eq!(parse("recall \""), Command::Recall(pairs(&[("q", "")])));
    }
}
