//! Members of a payload, taken one by one. Members that the operation does not take are refused in the end, so that a
//! typing error is not passed over.

use omir_core::value::{Map, Value};

use crate::failure::{Failure, INVALID_CONFIDENCE, quoted};

/// Longest id, in bytes.
pub(crate) const LONGEST_ID: usize = 256;
/// Longest text that is no content, in bytes.
pub(crate) const LONGEST_TEXT: usize = 16 << 10;
/// Most elements of a list.
const MOST_IN_LIST: usize = 1000;

/// The members of one object.
#[derive(Debug)]
pub(crate) struct Params<'a> {
    map: &'a Map,
    at: String,
    taken: Vec<&'static str>,
}

impl<'a> Params<'a> {
    /// Returns the members of a payload.
    pub(crate) fn new(map: &'a Map) -> Self {
        Self { map, at: String::new(), taken: Vec::new() }
    }

    /// Returns the JSON Pointer of a member.
    pub(crate) fn path(&self, name: &str) -> String {
        omir_core::pointer::join(&self.at, name)
    }

    /// Returns a member; `null` is as good as none.
    pub(crate) fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.taken.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns the failure of a member.
    pub(crate) fn fault(&self, name: &str, message: impl AsRef<str>) -> Failure {
        Failure::payload(&self.path(name), message)
    }

    fn expected(&self, name: &str, what: &str, found: &Value) -> Failure {
        self.fault(name, format!("expected {what}, found {}", found.kind_name()))
    }

    /// Returns a text of at most `most` bytes.
    pub(crate) fn long_text(
        &mut self,
        name: &'static str,
        most: usize,
    ) -> Result<Option<&'a str>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.expected(name, "a text", value))?;
        if text.len() > most {
            let message = format!("{} bytes are more than the {most} it may have", text.len());
            return Err(self.fault(name, message));
        }
        Ok(Some(text))
    }

    /// Returns a text; an empty one is as good as none.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, Failure> {
        Ok(self.long_text(name, LONGEST_TEXT)?.filter(|text| !text.trim().is_empty()))
    }

    /// Returns a text that must be there, and say something.
    pub(crate) fn said(&mut self, name: &'static str) -> Result<&'a str, Failure> {
        self.text(name)?.ok_or_else(|| self.fault(name, "is missing or empty"))
    }

    /// Returns an id.
    pub(crate) fn id(&mut self, name: &'static str) -> Result<Option<&'a str>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.expected(name, "an id as a text", value))?;
        check_id(text).map_err(|why| self.fault(name, why.to_string()))?;
        Ok(Some(text))
    }

    /// Returns an id that must be there.
    pub(crate) fn needed_id(&mut self, name: &'static str) -> Result<&'a str, Failure> {
        self.id(name)?.ok_or_else(|| self.fault(name, "is missing"))
    }

    /// Returns a word of a list.
    pub(crate) fn word<W>(
        &mut self,
        name: &'static str,
        words: &[&str],
        parse: fn(&str) -> Option<W>,
    ) -> Result<Option<W>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.expected(name, "a text", value))?;
        let known =
            || self.fault(name, format!("{} is none of {}", quoted(text), words.join(", ")));
        parse(text).map(Some).ok_or_else(known)
    }

    /// Returns words of a list.
    pub(crate) fn words<W>(
        &mut self,
        name: &'static str,
        words: &[&str],
        parse: fn(&str) -> Option<W>,
    ) -> Result<Vec<W>, Failure> {
        self.texts(name)?
            .iter()
            .map(|text| {
                let known = || {
                    self.fault(name, format!("{} is none of {}", quoted(text), words.join(", ")))
                };
                parse(text).ok_or_else(known)
            })
            .collect()
    }

    /// Returns a list of texts that say something.
    pub(crate) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Failure> {
        let Some(value) = self.value(name) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.expected(name, "a list", value))?;
        if list.len() > MOST_IN_LIST {
            return Err(self.fault(name, format!("more than {MOST_IN_LIST} elements")));
        }
        list.iter()
            .map(|one| match one.as_str() {
                Some(text) if !text.trim().is_empty() && text.len() <= LONGEST_TEXT => {
                    Ok(text.to_owned())
                }
                _ => Err(self.fault(name, "expected texts that say something")),
            })
            .collect()
    }

    /// Returns a flag.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.expected(name, "true or false", value))
    }

    /// Returns a number from 0 to 1.
    pub(crate) fn share(&mut self, name: &'static str) -> Result<Option<f64>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| self.expected(name, "a number", value))?;
        if !(0.0..=1.0).contains(&number) {
            return Err(self.fault(name, format!("{number} is not between 0 and 1")));
        }
        Ok(Some(number))
    }

    /// Returns a confidence score, whose fault has a code of its own.
    pub(crate) fn score(&mut self, name: &'static str) -> Result<Option<f64>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_f64() {
            Some(score) if (0.0..=1.0).contains(&score) => Ok(Some(score)),
            _ => {
                let message =
                    format!("payload{}: {value} is no number from 0.0 to 1.0", self.path(name));
                Err(Failure::new(&INVALID_CONFIDENCE, message))
            }
        }
    }

    /// Returns a whole number of at least `least`.
    pub(crate) fn integer(
        &mut self,
        name: &'static str,
        least: u64,
    ) -> Result<Option<u64>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value.as_u64().filter(|number| *number >= least) {
            Some(number) => Ok(Some(number)),
            None => Err(self.fault(name, format!("expected a whole number of at least {least}"))),
        }
    }

    /// Returns the members of an object.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Option<Params<'a>>, Failure> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match value {
            Value::Object(map) => Ok(Some(Params { map, at: self.path(name), taken: Vec::new() })),
            _ => Err(self.expected(name, "an object", value)),
        }
    }

    /// Returns the members of each object of a list.
    pub(crate) fn objects(&mut self, name: &'static str) -> Result<Vec<Params<'a>>, Failure> {
        let Some(value) = self.value(name) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.expected(name, "a list", value))?;
        if list.len() > MOST_IN_LIST {
            return Err(self.fault(name, format!("more than {MOST_IN_LIST} elements")));
        }
        let at = self.path(name);
        list.iter()
            .enumerate()
            .map(|(index, one)| match one {
                Value::Object(map) => {
                    Ok(Params { map, at: format!("{at}/{index}"), taken: Vec::new() })
                }
                _ => Err(self.expected(name, "objects", one)),
            })
            .collect()
    }

    /// Refuses members that the operation did not take.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self.map.keys().find(|name| !self.taken.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let known =
                    if self.taken.is_empty() { "none".to_owned() } else { self.taken.join(", ") };
                Err(self.fault(name, format!("is no member here; known: {known}")))
            }
        }
    }
}

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidId;

impl std::fmt::Display for InvalidId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an id is 1 to {LONGEST_ID} bytes without control characters")
    }
}

/// Checks an id: 1 to 256 bytes without control characters.
pub(crate) fn check_id(id: &str) -> Result<(), InvalidId> {
    if id.trim().is_empty() || id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        return Err(InvalidId);
    }
    Ok(())
}
