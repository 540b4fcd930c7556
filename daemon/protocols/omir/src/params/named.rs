//! Parameters by name, taken one by one.

use omir_core::reference::Ref;
use omir_core::value::Value;

use omird_engine::{Code, Error};
use omird_router::About;

/// Parameters, by name and decoded.
pub type Parameters = Vec<(String, String)>;

/// Parameters that a request may name: more than any method has. Each is looked for among all, so that many would take long.
const MOST: usize = 64;

/// Adds one to those that a request names.
///
/// # Errors
/// `INVALID_QUERY` if it is there already, or there are more than any method has.
pub fn add(given: &mut Parameters, name: String, value: String) -> Result<(), Error> {
    if given.iter().any(|(known, _)| *known == name) {
        return Err(Error::query(&name, "is given twice"));
    }
    expect_few(given.len() + 1)?;
    given.push((name, value));
    Ok(())
}

/// Adds those members of a payload that no parameter names.
///
/// # Errors
/// `INVALID_QUERY` if the payload is no object, a member is no parameter, or there are more than any method has.
pub fn add_members(given: &mut Parameters, payload: &Value) -> Result<(), Error> {
    let Value::Object(members) = payload else {
        return Err(Error::new(Code::InvalidQuery, "expected an object of parameters"));
    };
    expect_few(members.len())?;
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        if !given.iter().any(|(known, _)| known == name) {
            given.push((name.to_owned(), text_of(name, value)?));
        }
    }
    Ok(())
}

fn expect_few(count: usize) -> Result<(), Error> {
    if count <= MOST {
        return Ok(());
    }
    let message = format!("{count} parameters or more; no method has more than {MOST}");
    Err(Error::new(Code::InvalidQuery, message))
}

/// Returns a member as the text that a selector has for it.
fn text_of(name: &str, value: &Value) -> Result<String, Error> {
    Ok(match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Array(items) => items
            .iter()
            .map(|item| match item {
                Value::Array(_) | Value::Object(_) | Value::Null => {
                    Err(Error::query(name, "expected a list of texts or numbers"))
                }
                item => text_of(name, item),
            })
            .collect::<Result<Vec<_>, _>>()?
            .join(","),
        Value::Object(_) | Value::Null => {
            return Err(Error::query(name, "expected a text, a number, a boolean or a list"));
        }
    })
}

/// Takes the parameters that the table of methods has, and refuses all others.
#[derive(Debug)]
pub struct Named {
    about: &'static About,
    given: Parameters,
}

impl Named {
    /// Parameters of the method that `about` is about.
    pub fn of(about: &'static About, given: Parameters) -> Self {
        Self { about, given }
    }

    /// The value of a parameter, if it is given.
    ///
    /// # Panics
    /// If the table has no such parameter, where debug assertions are on: documents would not tell of it.
    pub fn take(&mut self, name: &str) -> Option<String> {
        debug_assert!(self.about.names().any(|known| known == name), "{name} is not in the table");
        let at = self.given.iter().position(|(known, _)| known == name)?;
        Some(self.given.remove(at).1)
    }

    /// The value of a parameter that must be given.
    ///
    /// # Errors
    /// `INVALID_QUERY` if it is missing.
    pub fn need(&mut self, name: &str) -> Result<String, Error> {
        self.take(name).ok_or_else(|| Error::query(name, "is missing"))
    }

    /// A parameter that is true or false; false if it is not given.
    ///
    /// # Errors
    /// `INVALID_QUERY` if it is neither.
    pub fn flag(&mut self, name: &str) -> Result<bool, Error> {
        self.take(name).map_or(Ok(false), |text| flag(name, &text))
    }

    /// Ends it. `hint` is what else to say about a parameter that is not known, or nothing.
    ///
    /// # Errors
    /// Names the first parameter that was not taken.
    pub fn finish(self, hint: &str) -> Result<(), Error> {
        let Some((name, _)) = self.given.into_iter().next() else { return Ok(()) };
        let path = format!("/{name}");
        // One of the table that is left goes without another one that was given.
        if self.about.names().any(|known| known == name) {
            let message = format!("`{name}` does not go with the other parameters");
            return Err(Error::at(Code::InvalidQuery, path, message));
        }
        let known: Vec<&str> = self.about.names().collect();
        let known = match known.as_slice() {
            [] => "there are none here".to_owned(),
            known => format!("known are {}", known.join(", ")),
        };
        let between = if hint.is_empty() { "" } else { "; " };
        let message = format!("unknown parameter `{name}`: {known}{between}{hint}");
        Err(Error::at(Code::InvalidQuery, path, message))
    }
}

/// Reads a yes or no. A bare name counts as yes, as in `explain`.
pub fn flag(name: &str, value: &str) -> Result<bool, Error> {
    match value {
        "" | "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::query(name, format!("{value:?} is neither `true` nor `false`"))),
    }
}

/// Reads `Type/id` from a parameter.
pub fn reference(name: &str, text: &str) -> Result<Ref, Error> {
    text.parse().map_err(|error| {
        Error::query(name, format!("{text:?} is no reference such as MemoryRecord/dock-1: {error}"))
    })
}
